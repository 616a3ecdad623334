//! Reads the text that [`crate::print`] writes. `parse(text of x)` equals `x`; whitespace and line ends are free.
//!
//! What is read is not checked beyond its form: [`crate::verify`] says whether it is a pipeline that makes sense.

use crate::expr::{CastMode, Expr, ExprKind, LambdaParam, Literal, Origin, Symbol};
use crate::op::{
    AggArg, AggCall, CloseRule, Delay, EmitMode, Frame, FrameBound, JoinKind, JoinSide, Node, NodeId, Op, Pipeline,
    SortKey, WindowCall,
};
use crate::print::{UNITS, input_fields};
use crate::types::{ChangeKind, DataType, Field, Schema};

/// Where the text is not IR, and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
    /// What was expected.
    pub message: String,
}

type Result<T> = std::result::Result<T, ParseError>;

/// Reads one pipeline.
pub fn parse(text: &str) -> Result<Pipeline> {
    let mut p = Parser { text, at: 0 };
    let pipeline = p.pipeline()?;
    p.end()?;
    Ok(pipeline)
}

/// Reads one expression over these columns.
pub fn parse_expr(text: &str, columns: &[Field]) -> Result<Expr> {
    let mut p = Parser { text, at: 0 };
    let expr = p.expr(columns)?;
    p.end()?;
    Ok(expr)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// The words of an enumeration and what they stand for.
type Words<T> = &'static [(&'static str, T)];

const MODES: Words<EmitMode> =
    &[("append", EmitMode::Append), ("update", EmitMode::Update), ("complete", EmitMode::Complete)];
const CHANGES: Words<ChangeKind> = &[
    ("append", ChangeKind::Append),
    ("upsert", ChangeKind::Upsert),
    ("replace", ChangeKind::Replace),
    ("retract", ChangeKind::Retract),
];
const JOINS: Words<JoinKind> = &[
    ("inner", JoinKind::Inner),
    ("left", JoinKind::Left),
    ("right", JoinKind::Right),
    ("full", JoinKind::Full),
    ("left_semi", JoinKind::LeftSemi),
    ("left_anti", JoinKind::LeftAnti),
    ("null_aware_anti", JoinKind::NullAwareAnti),
    ("existence", JoinKind::Existence),
];
const BOOLS: Words<bool> = &[("true", true), ("false", false)];
const PLAIN_TYPES: Words<DataType> = &[
    ("VOID", DataType::Null),
    ("BOOLEAN", DataType::Boolean),
    ("TINYINT", DataType::Int8),
    ("SMALLINT", DataType::Int16),
    ("INT", DataType::Int32),
    ("BIGINT", DataType::Int64),
    ("FLOAT", DataType::Float32),
    ("DOUBLE", DataType::Float64),
    ("STRING", DataType::String),
    ("BINARY", DataType::Binary),
    ("DATE", DataType::Date),
    ("TIMESTAMP", DataType::Timestamp),
    ("TIMESTAMP_NTZ", DataType::TimestampNtz),
];

impl<'a> Parser<'a> {
    // ---- tokens ----

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Err(ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        })
    }

    fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn end(&mut self) -> Result<()> {
        if self.rest().is_empty() { Ok(()) } else { self.fail("expected the end of the text") }
    }

    /// Takes a sign if it is next.
    fn eat(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(format!("expected `{sign}`")) }
    }

    /// The next word without taking it; empty if there is none.
    fn peek_word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &rest[..end] }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.at += word.len();
        }
        found
    }

    fn word(&mut self) -> Result<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return self.fail("expected a word");
        }
        self.at += word.len();
        Ok(word)
    }

    fn one_of<T: Clone>(&mut self, words: Words<T>) -> Result<T> {
        let word = self.peek_word();
        match words.iter().find(|(name, _)| *name == word) {
            Some((name, value)) => {
                self.at += name.len();
                Ok(value.clone())
            }
            None => self.fail(format!("expected one of {}", words.iter().map(|w| w.0).collect::<Vec<_>>().join(", "))),
        }
    }

    /// The characters of a number, sign and fraction included.
    fn digits(&mut self) -> &'a str {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let end = rest[sign..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |i| i + sign);
        self.at += end;
        &rest[..end]
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T> {
        let start = self.at;
        match self.digits().parse() {
            Ok(n) => Ok(n),
            Err(_) => {
                self.at = start;
                self.fail("expected a number in range")
            }
        }
    }

    fn quoted(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let mut chars = rest.char_indices();
            let Some((_, c)) = chars.next() else { return self.fail("expected `\"`") };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => {
                    let Some((_, escaped)) = chars.next() else { return self.fail("expected an escaped character") };
                    self.at += escaped.len_utf8();
                    match escaped {
                        'n' => out.push('\n'),
                        'u' => {
                            let end = self.text[self.at..].find('}').map(|i| self.at + i);
                            let code = end.and_then(|end| self.text[self.at..end].strip_prefix('{'));
                            let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
                            let (Some(end), Some(code)) = (end, code) else {
                                return self.fail("expected a code point");
                            };
                            out.push(code);
                            self.at = end + 1;
                        }
                        other => out.push(other),
                    }
                }
                c => out.push(c),
            }
        }
    }

    fn name(&mut self) -> Result<String> {
        if self.rest().starts_with('"') { self.quoted() } else { self.word().map(str::to_owned) }
    }

    fn function_name(&mut self) -> Result<Symbol> {
        if !self.eat("`") {
            return Ok(Symbol::from(self.word()?));
        }
        let rest = &self.text[self.at..];
        let Some(end) = rest.find('`') else { return self.fail("expected a closing backtick") };
        self.at += end + 1;
        Ok(Symbol::from(&rest[..end]))
    }

    /// `(item, item)`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect("(")?;
        let mut items = Vec::new();
        while !self.eat(")") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn column(&mut self) -> Result<u32> {
        self.expect("#")?;
        self.number()
    }

    fn columns(&mut self) -> Result<Vec<u32>> {
        self.list(Self::column)
    }

    fn duration(&mut self) -> Result<i64> {
        let n: i64 = self.number()?;
        let unit = self.word()?;
        match UNITS.iter().find(|(name, _)| *name == unit).and_then(|(_, micros)| n.checked_mul(*micros)) {
            Some(micros) => Ok(micros),
            None => self.fail("expected a time such as `10s`"),
        }
    }

    fn close_rule(&mut self) -> Result<CloseRule> {
        let column = self.column()?;
        let add_micros = if self.eat("+") { self.duration()? } else { 0 };
        Ok(CloseRule { column, add_micros })
    }

    // ---- parameters ----

    /// `key=`, if it is next (behind a comma unless it is the first).
    fn key(&mut self, key: &str) -> bool {
        let start = self.at;
        self.eat(",");
        if self.eat_word(key) && self.eat("=") {
            return true;
        }
        self.at = start;
        false
    }

    fn param<T>(&mut self, key: &str, value: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.key(key) { value(self) } else { self.fail(format!("expected `{key}=`")) }
    }

    fn optional<T>(&mut self, key: &str, value: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.key(key) { value(self).map(Some) } else { Ok(None) }
    }

    fn flag(&mut self, name: &str) -> bool {
        let start = self.at;
        self.eat(",");
        let found = self.eat_word(name);
        if !found {
            self.at = start;
        }
        found
    }

    // ---- pipelines ----

    fn pipeline(&mut self) -> Result<Pipeline> {
        if !self.eat_word("pipeline") {
            return self.fail("expected `pipeline`");
        }
        self.expect("@")?;
        let name = self.name()?;
        self.expect("[")?;
        let mode = self.param("mode", |p| p.one_of(MODES))?;
        self.expect("]")?;
        self.expect("{")?;
        let mut pipeline = Pipeline { name, nodes: vec![], mode, subqueries: vec![] };
        while self.rest().starts_with('%') {
            let node = self.node(&pipeline)?;
            pipeline.nodes.push(node);
        }
        while self.peek_word() == "pipeline" {
            pipeline.subqueries.push(self.pipeline()?);
        }
        self.expect("}")?;
        Ok(pipeline)
    }

    fn node(&mut self, pipeline: &Pipeline) -> Result<Node> {
        self.expect("%")?;
        if self.number::<usize>()? != pipeline.nodes.len() {
            return self.fail(format!("expected the result %{}", pipeline.nodes.len()));
        }
        self.expect("=")?;
        let name = self.word()?;
        let mut inputs = Vec::new();
        while self.eat("%") {
            inputs.push(NodeId(self.number()?));
            if !self.eat(",") {
                break;
            }
        }
        let relation = if self.eat("@") { Some(Symbol::from(self.name()?)) } else { None };
        let mut node =
            Node { op: Op::Union, inputs, schema: Schema::default(), event_time: vec![], change: ChangeKind::Append };
        let columns = input_fields(pipeline, &node);
        let bracket = self.eat("[");
        node.op = self.op(name, relation, &columns)?;
        if bracket {
            self.expect("]")?;
        }
        self.expect(":")?;
        node.schema = Schema::new(self.list(|p| {
            let name = p.name()?;
            let (data_type, nullable) = p.field_type()?;
            Ok(Field { name, data_type, nullable })
        })?);
        node.change = self.one_of(CHANGES)?;
        if self.eat_word("wm") {
            self.expect("=")?;
            node.event_time = self.columns()?;
        }
        Ok(node)
    }

    fn op(&mut self, name: &str, relation: Option<Symbol>, columns: &[Field]) -> Result<Op> {
        let exprs = |p: &mut Self| p.list(|p| p.expr(columns));
        let aggs = |p: &mut Self| p.list(Self::agg_call);
        Ok(match (name, relation) {
            ("source", Some(relation)) => {
                let streaming = self.flag("streaming");
                Op::Source { relation, streaming, columns: self.param("columns", Self::columns)? }
            }
            ("sink", Some(relation)) => Op::Sink { relation },
            (_, Some(_)) => return self.fail("expected no relation here"),
            ("source" | "sink", None) => return self.fail("expected `@relation`"),
            ("values", _) => Op::Values { rows: self.param("rows", |p| p.list(exprs))? },
            ("map", _) => Op::Map {
                predicate: self.optional("where", |p| p.expr(columns))?,
                project: self.param("project", exprs)?,
            },
            ("watermark", _) => Op::Watermark {
                column: self.param("on", Self::column)?,
                delay: Delay { micros: self.param("delay", Self::duration)? },
                idle_after: self.optional("idle_after", Self::duration)?,
                max_skew: self.optional("max_skew", Self::duration)?,
            },
            ("drop_late", _) => Op::DropLate { rule: self.param("on", Self::close_rule)? },
            ("assign_windows", _) => Op::AssignWindows {
                time: self.param("on", Self::column)?,
                size: self.param("size", Self::duration)?,
                slide: self.param("slide", Self::duration)?,
                offset: self.param("offset", Self::duration)?,
            },
            ("aggregate", _) => Op::Aggregate {
                keys: self.param("keys", Self::columns)?,
                aggs: self.param("aggs", aggs)?,
                close: self.optional("close", Self::close_rule)?,
                emit: self.param("emit", |p| p.one_of(MODES))?,
            },
            ("hop_aggregate", _) => Op::HopAggregate {
                slice: self.param("slice", Self::column)?,
                size: self.param("size", Self::duration)?,
                slide: self.param("slide", Self::duration)?,
                offset: self.param("offset", Self::duration)?,
                keys: self.param("keys", Self::columns)?,
                aggs: self.param("aggs", aggs)?,
                close: self.flag("close"),
                emit: self.param("emit", |p| p.one_of(MODES))?,
            },
            ("session_aggregate", _) => Op::SessionAggregate {
                start: self.param("start", Self::column)?,
                end: self.param("end", Self::column)?,
                keys: self.param("keys", Self::columns)?,
                aggs: self.param("aggs", aggs)?,
                close: self.flag("close"),
                emit: self.param("emit", |p| p.one_of(MODES))?,
            },
            ("dedup", _) => Op::Dedup {
                keys: self.param("keys", Self::columns)?,
                close: self.optional("close", Self::close_rule)?,
                within_watermark: self.flag("within_watermark"),
            },
            ("stream_join", _) => Op::StreamJoin {
                kind: self.param("kind", |p| p.one_of(JOINS))?,
                left: self.param("left", Self::join_side)?,
                right: self.param("right", Self::join_side)?,
                residual: self.optional("residual", |p| p.expr(columns))?,
            },
            ("hash_join", _) => Op::HashJoin {
                kind: self.param("kind", |p| p.one_of(JOINS))?,
                left_keys: self.param("left_keys", Self::columns)?,
                right_keys: self.param("right_keys", Self::columns)?,
                null_safe: self.param("null_safe", |p| p.list(|p| p.one_of(BOOLS)))?,
                residual: self.optional("residual", |p| p.expr(columns))?,
            },
            ("union", _) => Op::Union,
            ("sort", _) => Op::Sort { keys: self.param("keys", Self::sort_keys)? },
            ("limit", _) => {
                Op::Limit { limit: self.optional("limit", Self::number)?, offset: self.param("offset", Self::number)? }
            }
            ("expand", _) => Op::Expand { projections: self.param("projections", |p| p.list(exprs))? },
            ("generate", _) => Op::Generate {
                generator: self.param("function", Self::function_name)?,
                args: self.param("args", exprs)?,
                outer: self.flag("outer"),
            },
            ("window", _) => Op::WindowFunction {
                partition: self.param("partition", Self::columns)?,
                order: self.param("order", Self::sort_keys)?,
                calls: self.param("calls", |p| p.list(Self::window_call))?,
            },
            _ => return self.fail(format!("expected an operator, not `{name}`")),
        })
    }

    fn join_side(&mut self) -> Result<JoinSide> {
        self.expect("(")?;
        let side = JoinSide {
            keys: self.param("keys", Self::columns)?,
            expire: self.optional("expire", Self::close_rule)?,
            late: self.optional("late", Self::column)?,
        };
        self.expect(")")?;
        Ok(side)
    }

    fn sort_keys(&mut self) -> Result<Vec<SortKey>> {
        self.list(|p| {
            let column = p.column()?;
            let descending = p.one_of(&[("asc", false), ("desc", true)])?;
            let nulls_first = p.one_of(&[("nulls_last", false), ("nulls_first", true)])?;
            Ok(SortKey { column, descending, nulls_first })
        })
    }

    fn agg_call(&mut self) -> Result<AggCall> {
        let function = self.function_name()?;
        let (mut distinct, mut ignore_nulls, mut filter, mut order) = (false, false, None, vec![]);
        if self.eat("[") {
            distinct = self.flag("distinct");
            ignore_nulls = self.flag("ignore_nulls");
            filter = self.optional("filter", Self::column)?;
            order = self.optional("order", Self::sort_keys)?.unwrap_or_default();
            self.expect("]")?;
        }
        let args = self.list(|p| {
            if p.rest().starts_with('#') {
                let column = p.column()?;
                p.expect(":")?;
                return Ok((AggArg::Column(column), p.data_type()?));
            }
            let value = p.literal()?;
            p.expect(":")?;
            let own = p.data_type()?;
            let taken = if p.eat_word("as") { p.data_type()? } else { own.clone() };
            Ok((AggArg::Literal(value, own), taken))
        })?;
        self.expect(":")?;
        let (data_type, nullable) = self.field_type()?;
        let (args, arg_types) = args.into_iter().unzip();
        Ok(AggCall { function, args, arg_types, filter, distinct, ignore_nulls, order, data_type, nullable })
    }

    fn window_call(&mut self) -> Result<WindowCall> {
        let call = self.agg_call()?;
        let rows = self.one_of(&[("rows", true), ("range", false)])?;
        let start = self.frame_bound()?;
        self.expect("..")?;
        let end = self.frame_bound()?;
        Ok(WindowCall { call, frame: Frame { rows, start, end } })
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        Ok(match self.word()? {
            "unbounded" => FrameBound::Unbounded,
            "current" => FrameBound::CurrentRow,
            "preceding" => FrameBound::Preceding(self.literal()?),
            "following" => FrameBound::Following(self.literal()?),
            _ => return self.fail("expected a frame's bound"),
        })
    }

    // ---- types ----

    fn field_type(&mut self) -> Result<(DataType, bool)> {
        let data_type = self.data_type()?;
        Ok((data_type, self.eat("?")))
    }

    fn data_type(&mut self) -> Result<DataType> {
        let field = |p: &mut Self, name: &str| {
            let (data_type, nullable) = p.field_type()?;
            Ok(Box::new(Field { name: name.to_owned(), data_type, nullable }))
        };
        match self.peek_word() {
            "DECIMAL" => {
                self.word()?;
                let digits = self.list(Self::number)?;
                match digits[..] {
                    [precision, scale] => Ok(DataType::Decimal(precision, scale)),
                    _ => self.fail("expected precision and scale"),
                }
            }
            "INTERVAL" => {
                self.word()?;
                let first = self.word()?;
                let last = if self.eat_word("TO") { Some(self.word()?) } else { None };
                match DataType::interval(first, last) {
                    Some(t) => Ok(t),
                    None => self.fail("expected fields of an interval, such as `DAY TO SECOND`"),
                }
            }
            "ARRAY" => {
                self.word()?;
                self.expect("<")?;
                let element = field(self, "element")?;
                self.expect(">")?;
                Ok(DataType::Array(element))
            }
            "MAP" => {
                self.word()?;
                self.expect("<")?;
                let key = field(self, "key")?;
                self.expect(",")?;
                let value = field(self, "value")?;
                self.expect(">")?;
                Ok(DataType::Map(key, value))
            }
            "STRUCT" => {
                self.word()?;
                self.expect("<")?;
                let mut fields = Vec::new();
                while !self.eat(">") {
                    if !fields.is_empty() {
                        self.expect(",")?;
                    }
                    let name = self.name()?;
                    self.expect(":")?;
                    fields.push(*field(self, &name)?);
                }
                Ok(DataType::Struct(fields))
            }
            _ => self.one_of(PLAIN_TYPES),
        }
    }

    // ---- expressions ----

    fn literal(&mut self) -> Result<Literal> {
        let rest = self.rest();
        if rest.starts_with('"') {
            return self.quoted().map(Literal::String);
        }
        if let Some(hex) = rest.strip_prefix("x\"") {
            let Some(end) = hex.find('"') else { return self.fail("expected `\"`") };
            let bytes = hex.as_bytes()[..end].chunks(2);
            let byte = |b: &[u8]| u8::from_str_radix(std::str::from_utf8(b).ok()?, 16).ok();
            return match bytes.map(byte).collect() {
                Some(bytes) => {
                    self.at += end + 3;
                    Ok(Literal::Binary(bytes))
                }
                None => self.fail("expected pairs of hexadecimal digits"),
            };
        }
        match self.peek_word() {
            "null" => self.word().map(|_| Literal::Null),
            "true" | "false" => Ok(Literal::Boolean(self.one_of(BOOLS)?)),
            "nan" => self.word().map(|_| Literal::Float(f64::NAN)),
            "inf" => self.word().map(|_| Literal::Float(f64::INFINITY)),
            _ if rest.starts_with("-inf") => {
                self.at += 4;
                Ok(Literal::Float(f64::NEG_INFINITY))
            }
            _ => self.number_literal(),
        }
    }

    fn number_literal(&mut self) -> Result<Literal> {
        let rest = self.rest();
        let part_of = |(i, c): (usize, char)| {
            // `..` between two bounds of a frame is no fraction.
            let fraction = c == '.' && !rest[i + 1..].starts_with('.') && !rest[..i].ends_with('.');
            let sign = c == '-' && (i == 0 || rest[..i].ends_with('e'));
            c.is_ascii_digit() || c == 'e' || fraction || sign
        };
        let end = rest.char_indices().find(|&at| !part_of(at)).map_or(rest.len(), |(i, _)| i);
        let digits = &rest[..end];
        let decimal = rest[end..].starts_with('d');
        let value = match digits {
            _ if decimal => digits.parse().ok().map(Literal::Decimal),
            _ if digits.contains(['.', 'e']) => digits.parse().ok().map(Literal::Float),
            _ => digits.parse().ok().map(Literal::Int),
        };
        match value {
            Some(value) => {
                self.at += end + usize::from(decimal);
                Ok(value)
            }
            None => self.fail("expected a constant"),
        }
    }

    fn expr(&mut self, columns: &[Field]) -> Result<Expr> {
        let rest = self.rest();
        let kind = if rest.starts_with('#') {
            ExprKind::Column(self.column()?)
        } else if self.eat("$") {
            ExprKind::LambdaVariable(self.number()?)
        } else if rest.starts_with('`') {
            self.call(columns)?
        } else if rest.starts_with(['"', '-'])
            || rest.starts_with("x\"")
            || rest.starts_with(|c: char| c.is_ascii_digit())
        {
            ExprKind::Literal(self.literal()?)
        } else {
            self.form(columns)?
        };
        let (data_type, nullable) = if self.eat(":") {
            self.field_type()?
        } else {
            match &kind {
                ExprKind::Literal(Literal::Boolean(_)) => (DataType::Boolean, false),
                ExprKind::Literal(Literal::String(_)) => (DataType::String, false),
                ExprKind::Column(c) => match columns.get(*c as usize) {
                    Some(field) => (field.data_type.clone(), field.nullable),
                    None => return self.fail(format!("expected a type, as the input has no column #{c}")),
                },
                _ => return self.fail("expected `:` and a type"),
            }
        };
        Ok(Expr { kind, data_type, nullable, origin: Origin::default() })
    }

    /// What begins with a word.
    fn form(&mut self, columns: &[Field]) -> Result<ExprKind> {
        let word = self.peek_word();
        match word {
            "null" | "true" | "false" | "nan" => return self.literal().map(ExprKind::Literal),
            "inf" if !self.text[self.at + 3..].starts_with('(') => return self.literal().map(ExprKind::Literal),
            "cast" | "try_cast" | "and" | "or" | "case" | "coalesce" | "lambda" | "subquery" => {}
            _ => return self.call(columns),
        }
        self.word()?;
        if word == "coalesce" {
            return Ok(ExprKind::Coalesce(self.list(|p| p.expr(columns))?));
        }
        self.expect("(")?;
        let kind = match word {
            "cast" | "try_cast" => {
                let mode = if word == "cast" { CastMode::Ansi } else { CastMode::Try };
                ExprKind::Cast { input: Box::new(self.expr(columns)?), mode }
            }
            "and" | "or" => {
                let a = Box::new(self.expr(columns)?);
                self.expect(",")?;
                let b = Box::new(self.expr(columns)?);
                if word == "and" { ExprKind::And(a, b) } else { ExprKind::Or(a, b) }
            }
            "case" => self.case(columns)?,
            "lambda" => self.lambda(columns)?,
            _ => ExprKind::ScalarSubquery(self.number()?),
        };
        self.expect(")")?;
        Ok(kind)
    }

    fn call(&mut self, columns: &[Field]) -> Result<ExprKind> {
        let function = self.function_name()?;
        Ok(ExprKind::Call { function, args: self.list(|p| p.expr(columns))? })
    }

    fn case(&mut self, columns: &[Field]) -> Result<ExprKind> {
        let (mut branches, mut otherwise) = (Vec::new(), None);
        loop {
            if self.eat_word("else") {
                otherwise = Some(Box::new(self.expr(columns)?));
                break;
            }
            let condition = self.expr(columns)?;
            self.expect("=>")?;
            branches.push((condition, self.expr(columns)?));
            if !self.eat(",") {
                break;
            }
        }
        Ok(ExprKind::Case { branches, otherwise })
    }

    fn lambda(&mut self, columns: &[Field]) -> Result<ExprKind> {
        let mut params = Vec::new();
        while !self.eat("=>") {
            if !params.is_empty() {
                self.expect(",")?;
            }
            let name = self.name()?;
            self.expect("$")?;
            let id = self.number()?;
            self.expect(":")?;
            let (data_type, nullable) = self.field_type()?;
            params.push(LambdaParam { id, name, data_type, nullable });
        }
        Ok(ExprKind::Lambda { params, body: Box::new(self.expr(columns)?) })
    }
}
