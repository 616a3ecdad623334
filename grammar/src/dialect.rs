//! Spark's SQL as a sqlparser dialect: Databricks' choices, and what Spark does beyond them.
//!
//! Only hooks of the parser matter: sqlparser's tokenizer never runs (see `lift`).

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr};
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

    /// `INTERVAL 1 HOUR 30 MINUTES` is the sum of its parts, in brackets so that it stays one operand.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let interval = matches!(&parser.peek_token_ref().token, Token::Word(w) if w.keyword == Keyword::INTERVAL);
        if !interval || !is_amount(&parser.peek_nth_token_ref(1).token) {
            return None;
        }
        let _ = parser.next_token();
        Some(parse_interval_sum(parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if !parser.parse_keyword(Keyword::DIV) {
            return None;
        }
        Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
            left: Box::new(expr.clone()),
            op: BinaryOperator::MyIntegerDivide,
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
