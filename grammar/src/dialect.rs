//! Spark's SQL as a sqlparser dialect: Databricks' choices, and what Spark does beyond them.
//!
//! Only hooks of the parser matter: sqlparser's tokenizer never runs (see `lift`).

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, DataType, Expr, TimezoneInfo, TrimWhereField, TypedString};
use sqlparser::dialect::{DatabricksDialect, Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// The dialect of the SQL inside our statements.
#[derive(Debug)]
pub(crate) struct SsqlDialect;

impl Dialect for SsqlDialect {
    /// Code in sqlparser that asks for a dialect by type takes us for Databricks.
    fn dialect(&self) -> TypeId {
        TypeId::of::<DatabricksDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        DatabricksDialect.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        matches!(ch, '`' | '"')
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn is_table_factor(&self, kw: &Keyword, parser: &mut Parser<'_>) -> bool {
        DatabricksDialect.is_table_factor(kw, parser)
    }

    fn supports_string_literal_column_alias(&self, _explicit: bool) -> bool {
        false
    }

    fn supports_string_literal_table_alias(&self, _explicit: bool) -> bool {
        false
    }

    fn supports_comparison_in_between_low_bound(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    /// `INTERVAL '10 minutes'` has its unit inside; a number without one is refused by `check`.
    fn require_interval_qualifier(&self) -> bool {
        false
    }

    fn supports_struct_literal(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_cte_without_as(&self) -> bool {
        true
    }

    fn supports_select_item_multi_column_alias(&self) -> bool {
        true
    }

    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    fn supports_from_first_select(&self) -> bool {
        true
    }

    fn supports_long_type_as_bigint(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_table_sample_before_alias(&self) -> bool {
        true
    }

    fn supports_subquery_as_function_arg(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    /// `INTERVAL DAY TO SECOND` as a type.
    fn supports_interval_options(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    /// Forms that begin with a word of their own: `INTERVAL 1 HOUR 30 MINUTES`, Spark's `trim`, `TIMESTAMP_LTZ '...'`.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let Token::Word(word) = &parser.peek_token_ref().token else { return None };
        if word.quote_style.is_some() {
            return None;
        }
        let follows = &parser.peek_nth_token_ref(1).token;
        let parse: fn(&mut Parser<'_>) -> Result<Expr, ParserError> = match (word.keyword, follows) {
            (Keyword::INTERVAL, amount) if is_amount(amount) => parse_interval_sum,
            (Keyword::TRIM, Token::LParen) => parse_trim,
            _ if word.value.eq_ignore_ascii_case("timestamp_ltz")
                && matches!(follows, Token::SingleQuotedString(_)) =>
            {
                parse_timestamp_ltz
            }
            _ => return None,
        };
        let _ = parser.next_token();
        Some(parse(parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if let Some(negated) = matches_null(parser) {
            // sqlparser takes the NULL of `x RLIKE NULL` for that of `x NOT NULL`.
            (0..1 + usize::from(negated)).for_each(|_| drop(parser.next_token()));
            return Some(parser.parse_subexpr(precedence).map(|pattern| Expr::RLike {
                negated,
                expr: Box::new(expr.clone()),
                pattern: Box::new(pattern),
                regexp: false,
            }));
        }
        let op = if parser.parse_keyword(Keyword::DIV) {
            BinaryOperator::MyIntegerDivide
        } else if is_unsigned_shift(parser) {
            let _ = (parser.next_token(), parser.next_token());
            BinaryOperator::Custom(">>>".into())
        } else {
            return None;
        };
        Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
            left: Box::new(expr.clone()),
            op,
            right: Box::new(right),
        }))
    }

    /// In Spark `||` binds as `+` does, and DIV as `*`.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::StringConcat => Some(Ok(self.prec_value(Precedence::PlusMinus))),
            Token::Word(w) if w.keyword == Keyword::DIV => Some(Ok(self.prec_value(Precedence::MulDivModOp))),
            _ => None,
        }
    }
}

/// Whether `>>>` follows, which comes as `>>` with a `>` right behind it.
fn is_unsigned_shift(parser: &Parser<'_>) -> bool {
    let (shift, more) = (parser.peek_token_ref(), parser.peek_nth_token_ref(1));
    shift.token == Token::ShiftRight && more.token == Token::Gt && shift.span.end == more.span.start
}

/// Whether `[NOT] RLIKE NULL` follows, and whether with NOT.
fn matches_null(parser: &Parser<'_>) -> Option<bool> {
    let word = |n: usize| match &parser.peek_nth_token_ref(n).token {
        Token::Word(w) => w.keyword,
        _ => Keyword::NoKeyword,
    };
    let negated = word(0) == Keyword::NOT;
    let n = usize::from(negated);
    (matches!(word(n), Keyword::RLIKE | Keyword::REGEXP) && word(n + 1) == Keyword::NULL).then_some(negated)
}

/// `TIMESTAMP_LTZ '...'`, another name of `TIMESTAMP '...'`.
fn parse_timestamp_ltz(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    Ok(Expr::TypedString(TypedString {
        data_type: DataType::Timestamp(None, TimezoneInfo::None),
        value: parser.parse_value()?,
        uses_odbc_syntax: false,
    }))
}

/// What follows `trim`: `(text)`, `(characters, text)` and `([BOTH | LEADING | TRAILING] [characters] FROM text)`.
fn parse_trim(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let side = match &parser.peek_token_ref().token {
        Token::Word(word) => match word.keyword {
            Keyword::BOTH => Some(TrimWhereField::Both),
            Keyword::LEADING => Some(TrimWhereField::Leading),
            Keyword::TRAILING => Some(TrimWhereField::Trailing),
            _ => None,
        },
        _ => None,
    };
    // A column may be called `leading`.
    let trim_where = side.filter(|_| !matches!(parser.peek_nth_token_ref(1).token, Token::RParen | Token::Comma));
    if trim_where.is_some() {
        let _ = parser.next_token();
    }
    let characters = match trim_where.is_some()
        && matches!(&parser.peek_token_ref().token, Token::Word(w) if w.keyword == Keyword::FROM)
    {
        true => None,
        false => Some(Box::new(parser.parse_expr()?)),
    };
    let separated =
        parser.parse_keyword(Keyword::FROM) || (trim_where.is_none() && parser.consume_token(&Token::Comma));
    let (trim_what, expr) = match (characters, separated) {
        (what, true) => (what, Box::new(parser.parse_expr()?)),
        (Some(text), false) => (None, text),
        (None, false) => return parser.expected_ref("FROM", parser.peek_token_ref()),
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { expr, trim_where, trim_what, trim_characters: None })
}

fn is_amount(token: &Token) -> bool {
    matches!(token, Token::Number(..) | Token::SingleQuotedString(_))
}

fn parse_interval_sum(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let mut sum = parser.parse_interval()?;
    let mut terms = 1;
    while has_unit(&sum) && is_amount(&parser.peek_token_ref().token) {
        let unit = matches!(&parser.peek_nth_token_ref(1).token,
            Token::Word(w) if SsqlDialect.is_interval_qualifier(w.keyword));
        if !unit {
            break;
        }
        let term = parser.parse_interval()?;
        sum = Expr::BinaryOp { left: Box::new(sum), op: BinaryOperator::Plus, right: Box::new(term) };
        terms += 1;
    }
    Ok(if terms > 1 { Expr::Nested(Box::new(sum)) } else { sum })
}

/// Whether the last term names its unit, so that another may follow.
fn has_unit(expr: &Expr) -> bool {
    match expr {
        Expr::Interval(i) => i.leading_field.is_some() && i.last_field.is_none(),
        Expr::BinaryOp { right, .. } => has_unit(right),
        _ => false,
    }
}
