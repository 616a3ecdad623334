//! The text of the IR, which [`crate::parse`] reads back to an equal value.
//!
//! The rules, in the style of CLIF and MLIR:
//! 1. One operator a line, in topological order: `%n = name %inputs [parameters] : (columns) change wm=(...)`.
//! 2. The type stands at the line's end: columns with `?` for those that may be NULL, what the rows mean, event times.
//! 3. Parameters are `key=value` in a fixed order; those that say nothing (no filter, not distinct) are left out; flags
//!    stand bare. Columns are `#n`, relations `@name`, inputs `%n`, subqueries are pipelines behind the operators.
//! 4. An expression carries its type after a colon; a column only where it differs from the input's.
//! 5. Times are in the largest unit that is exact (`10s`, `1500ms`); floats are the shortest that read back the same.
//!
//! Origins are not printed, and take no part in equality.

use std::fmt::{self, Display, Write};

use crate::expr::{CastMode, Expr, ExprKind, Literal};
use crate::op::{
    AggArg, AggCall, CloseRule, EmitMode, Frame, FrameBound, JoinKind, JoinSide, Node, Op, Pipeline, SortKey,
    WindowCall,
};
use crate::types::{ChangeKind, DataType, Field, Schema};

/// Names that begin a form of their own in an expression; a function of such a name is printed in backticks.
pub(crate) const RESERVED: [&str; 13] =
    ["cast", "try_cast", "and", "or", "case", "else", "coalesce", "lambda", "subquery", "null", "true", "false", "nan"];

/// Prints the pipeline as the module describes.
impl Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pipeline(f, self, 0)
    }
}

fn pipeline(f: &mut dyn Write, p: &Pipeline, indent: usize) -> fmt::Result {
    writeln!(f, "{:indent$}pipeline @{} [mode={}] {{", "", Name(&p.name), p.mode)?;
    for (i, node) in p.nodes.iter().enumerate() {
        write!(f, "{:indent$}  ", "")?;
        write_node(f, p, i, node)?;
        f.write_char('\n')?;
    }
    for subquery in &p.subqueries {
        pipeline(f, subquery, indent + 2)?;
    }
    writeln!(f, "{:indent$}}}", "")
}

/// The line of one operator, as verifier messages quote it.
pub(crate) fn node_line(p: &Pipeline, index: usize) -> String {
    let mut line = String::new();
    write_node(&mut line, p, index, &p.nodes[index]).expect("a String takes all text");
    line
}

/// Columns that an operator's expressions refer to: of all inputs, one behind the other.
pub(crate) fn input_fields(p: &Pipeline, node: &Node) -> Vec<Field> {
    node.inputs.iter().filter_map(|id| p.nodes.get(id.0 as usize)).flat_map(|n| n.schema.fields.clone()).collect()
}

fn write_node(f: &mut dyn Write, p: &Pipeline, index: usize, node: &Node) -> fmt::Result {
    let columns = input_fields(p, node);
    let columns = columns.as_slice();
    write!(f, "%{index} = {}", op_name(&node.op))?;
    for (i, id) in node.inputs.iter().enumerate() {
        write!(f, "{} %{}", if i > 0 { "," } else { "" }, id.0)?;
    }
    if let Op::Source { relation, .. } | Op::Sink { relation } = &node.op {
        write!(f, " @{}", Name(relation))?;
    }
    let params = params(&node.op, columns);
    if !params.is_empty() {
        write!(f, " [{}]", params.join(", "))?;
    }
    write!(f, " : {} {}", SchemaText(&node.schema), node.change)?;
    if !node.event_time.is_empty() {
        write!(f, " wm={}", columns_list(&node.event_time))?;
    }
    Ok(())
}

fn op_name(op: &Op) -> &'static str {
    match op {
        Op::Source { .. } => "source",
        Op::Values { .. } => "values",
        Op::Map { .. } => "map",
        Op::Watermark { .. } => "watermark",
        Op::DropLate { .. } => "drop_late",
        Op::AssignWindows { .. } => "assign_windows",
        Op::Aggregate { .. } => "aggregate",
        Op::HopAggregate { .. } => "hop_aggregate",
        Op::SessionAggregate { .. } => "session_aggregate",
        Op::Dedup { .. } => "dedup",
        Op::StreamJoin { .. } => "stream_join",
        Op::HashJoin { .. } => "hash_join",
        Op::Union => "union",
        Op::Sort { .. } => "sort",
        Op::Limit { .. } => "limit",
        Op::Expand { .. } => "expand",
        Op::Generate { .. } => "generate",
        Op::WindowFunction { .. } => "window",
        Op::Sink { .. } => "sink",
    }
}

/// The parameters in their order.
fn params(op: &Op, columns: &[Field]) -> Vec<String> {
    let expr = |e: &Expr| ExprText(e, columns).to_string();
    let exprs = |es: &[Expr]| list(es.iter().map(expr));
    let aggs = |calls: &[AggCall]| list(calls.iter().map(|c| AggText(c).to_string()));
    let mut out = Vec::new();
    let flag = |on: bool, name: &str| on.then(|| name.to_owned());
    match op {
        Op::Source { streaming, columns, .. } => {
            out.extend(flag(*streaming, "streaming"));
            out.push(format!("columns={}", columns_list(columns)));
        }
        Op::Values { rows } => out.push(format!("rows={}", list(rows.iter().map(|r| exprs(r))))),
        Op::Map { predicate, project } => {
            out.extend(predicate.as_ref().map(|p| format!("where={}", expr(p))));
            out.push(format!("project={}", exprs(project)));
        }
        Op::Watermark { column, delay, idle_after, max_skew } => {
            out.push(format!("on=#{column}"));
            out.push(format!("delay={}", Duration(delay.micros)));
            out.extend(idle_after.map(|d| format!("idle_after={}", Duration(d))));
            out.extend(max_skew.map(|d| format!("max_skew={}", Duration(d))));
        }
        Op::DropLate { rule } => out.push(format!("on={rule}")),
        Op::AssignWindows { time, size, slide, offset } => {
            out.push(format!("on=#{time}"));
            for (name, value) in [("size", size), ("slide", slide), ("offset", offset)] {
                out.push(format!("{name}={}", Duration(*value)));
            }
        }
        Op::Aggregate { keys, aggs: calls, close, emit } => {
            out.push(format!("keys={}", columns_list(keys)));
            out.push(format!("aggs={}", aggs(calls)));
            out.extend(close.map(|rule| format!("close={rule}")));
            out.push(format!("emit={emit}"));
        }
        Op::HopAggregate { slice, size, slide, offset, keys, aggs: calls, close, emit } => {
            out.push(format!("slice=#{slice}"));
            for (name, value) in [("size", size), ("slide", slide), ("offset", offset)] {
                out.push(format!("{name}={}", Duration(*value)));
            }
            out.push(format!("keys={}", columns_list(keys)));
            out.push(format!("aggs={}", aggs(calls)));
            out.extend(flag(*close, "close"));
            out.push(format!("emit={emit}"));
        }
        Op::SessionAggregate { start, end, keys, aggs: calls, close, emit } => {
            out.push(format!("start=#{start}"));
            out.push(format!("end=#{end}"));
            out.push(format!("keys={}", columns_list(keys)));
            out.push(format!("aggs={}", aggs(calls)));
            out.extend(flag(*close, "close"));
            out.push(format!("emit={emit}"));
        }
        Op::Dedup { keys, close, within_watermark } => {
            out.push(format!("keys={}", columns_list(keys)));
            out.extend(close.map(|rule| format!("close={rule}")));
            out.extend(flag(*within_watermark, "within_watermark"));
        }
        Op::StreamJoin { kind, left, right, residual } => {
            out.push(format!("kind={kind}"));
            out.push(format!("left={}", side(left)));
            out.push(format!("right={}", side(right)));
            out.extend(residual.as_ref().map(|e| format!("residual={}", expr(e))));
        }
        Op::HashJoin { kind, left_keys, right_keys, null_safe, residual } => {
            out.push(format!("kind={kind}"));
            out.push(format!("left_keys={}", columns_list(left_keys)));
            out.push(format!("right_keys={}", columns_list(right_keys)));
            out.push(format!("null_safe={}", list(null_safe.iter().map(bool::to_string))));
            out.extend(residual.as_ref().map(|e| format!("residual={}", expr(e))));
        }
        Op::Union | Op::Sink { .. } => {}
        Op::Sort { keys } => out.push(format!("keys={}", list(keys.iter().map(SortKey::to_string)))),
        Op::Limit { limit, offset } => {
            out.extend(limit.map(|n| format!("limit={n}")));
            out.push(format!("offset={offset}"));
        }
        Op::Expand { projections } => out.push(format!("projections={}", list(projections.iter().map(|p| exprs(p))))),
        Op::Generate { generator, args, outer } => {
            out.push(format!("function={}", FunctionName(generator)));
            out.push(format!("args={}", exprs(args)));
            out.extend(flag(*outer, "outer"));
        }
        Op::WindowFunction { partition, order, calls } => {
            out.push(format!("partition={}", columns_list(partition)));
            out.push(format!("order={}", list(order.iter().map(SortKey::to_string))));
            out.push(format!("calls={}", list(calls.iter().map(WindowCall::to_string))));
        }
    }
    out
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("({})", items.collect::<Vec<String>>().join(", "))
}

fn columns_list(columns: &[u32]) -> String {
    list(columns.iter().map(|c| format!("#{c}")))
}

fn side(side: &JoinSide) -> String {
    let mut parts = vec![format!("keys={}", columns_list(&side.keys))];
    parts.extend(side.expire.map(|rule| format!("expire={rule}")));
    parts.extend(side.late.map(|c| format!("late=#{c}")));
    format!("({})", parts.join(", "))
}

/// A plain word, or a quoted string.
pub(crate) struct Name<'a>(pub &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_word(self.0) { f.write_str(self.0) } else { write!(f, "{}", Quoted(self.0)) }
    }
}

/// Whether it reads back as one word.
fn is_word(s: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    s.starts_with(letter) && s.chars().all(|c| letter(c) || c.is_ascii_digit())
}

struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\u{{{:x}}}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

struct FunctionName<'a>(&'a str);

impl Display for FunctionName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = is_word(self.0) && !RESERVED.contains(&self.0);
        if plain { f.write_str(self.0) } else { write!(f, "`{}`", self.0) }
    }
}

/// Microseconds in the largest unit that is exact.
pub(crate) struct Duration(pub i64);

/// Units of time, largest first.
pub(crate) const UNITS: [(&str, i64); 6] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1)];

impl Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let (unit, micros) = UNITS.iter().find(|(_, m)| self.0 % m == 0).expect("every number is whole microseconds");
        write!(f, "{}{unit}", self.0 / micros)
    }
}

struct SchemaText<'a>(&'a Schema);

impl Display for SchemaText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = |x: &Field| format!("{} {}", Name(&x.name), FieldType(&x.data_type, x.nullable));
        f.write_str(&list(self.0.fields.iter().map(field)))
    }
}

/// A type with `?` where NULL may occur. Unlike SQL's, it says this inside nested types too.
pub(crate) struct FieldType<'a>(pub &'a DataType, pub bool);

impl Display for FieldType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            DataType::Array(e) => write!(f, "ARRAY<{}>", FieldType(&e.data_type, e.nullable))?,
            DataType::Map(k, v) => {
                write!(f, "MAP<{}, {}>", FieldType(&k.data_type, k.nullable), FieldType(&v.data_type, v.nullable))?
            }
            DataType::Struct(fields) => {
                let field = |x: &Field| format!("{}: {}", Name(&x.name), FieldType(&x.data_type, x.nullable));
                write!(f, "STRUCT<{}>", fields.iter().map(field).collect::<Vec<String>>().join(", "))?;
            }
            plain => write!(f, "{plain}")?,
        }
        if self.1 { f.write_char('?') } else { Ok(()) }
    }
}

/// An expression over these columns.
pub struct ExprText<'a>(pub &'a Expr, pub &'a [Field]);

impl Display for ExprText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExprText(e, columns) = *self;
        let exprs =
            |es: &[Expr]| es.iter().map(|e| ExprText(e, columns).to_string()).collect::<Vec<String>>().join(", ");
        match &e.kind {
            ExprKind::Column(c) => {
                write!(f, "#{c}")?;
                let as_input = columns
                    .get(*c as usize)
                    .is_some_and(|field| field.data_type == e.data_type && field.nullable == e.nullable);
                if as_input {
                    return Ok(());
                }
            }
            ExprKind::Literal(value) => {
                write!(f, "{value}")?;
                let plain = matches!(
                    (value, &e.data_type),
                    (Literal::Boolean(_), DataType::Boolean) | (Literal::String(_), DataType::String)
                );
                if plain && !e.nullable {
                    return Ok(());
                }
            }
            ExprKind::Call { function, args } => write!(f, "{}({})", FunctionName(function), exprs(args))?,
            ExprKind::Cast { input, mode } => {
                let name = if *mode == CastMode::Try { "try_cast" } else { "cast" };
                write!(f, "{name}({})", ExprText(input, columns))?;
            }
            ExprKind::And(a, b) => write!(f, "and({}, {})", ExprText(a, columns), ExprText(b, columns))?,
            ExprKind::Or(a, b) => write!(f, "or({}, {})", ExprText(a, columns), ExprText(b, columns))?,
            ExprKind::Case { branches, otherwise } => {
                let mut parts: Vec<String> = branches
                    .iter()
                    .map(|(c, v)| format!("{} => {}", ExprText(c, columns), ExprText(v, columns)))
                    .collect();
                parts.extend(otherwise.as_ref().map(|e| format!("else {}", ExprText(e, columns))));
                write!(f, "case({})", parts.join(", "))?;
            }
            ExprKind::Coalesce(args) => write!(f, "coalesce({})", exprs(args))?,
            ExprKind::Lambda { params, body } => {
                let params: Vec<String> = params
                    .iter()
                    .map(|p| format!("{}${}: {}", Name(&p.name), p.id, FieldType(&p.data_type, p.nullable)))
                    .collect();
                write!(f, "lambda({} => {})", params.join(", "), ExprText(body, columns))?;
            }
            ExprKind::LambdaVariable(id) => write!(f, "${id}")?,
            ExprKind::ScalarSubquery(n) => write!(f, "subquery({n})")?,
        }
        write!(f, ":{}", FieldType(&e.data_type, e.nullable))
    }
}

/// Prints a constant so that its kind shows: `1`, `1.0`, `1d` (unscaled decimal), `"text"`, `x"00ff"`.
impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Boolean(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Float(x) if x.is_nan() => f.write_str("nan"),
            Literal::Float(x) => write!(f, "{x:?}"),
            Literal::Decimal(d) => write!(f, "{d}d"),
            Literal::String(s) => write!(f, "{}", Quoted(s)),
            Literal::Binary(bytes) => {
                f.write_str("x\"")?;
                bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
                f.write_char('"')
            }
        }
    }
}

struct AggText<'a>(&'a AggCall);

impl Display for AggText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        write!(f, "{}", FunctionName(&call.function))?;
        let mut flags = Vec::new();
        flags.extend(call.distinct.then(|| "distinct".to_owned()));
        flags.extend(call.ignore_nulls.then(|| "ignore_nulls".to_owned()));
        flags.extend(call.filter.map(|c| format!("filter=#{c}")));
        if !call.order.is_empty() {
            flags.push(format!("order={}", list(call.order.iter().map(SortKey::to_string))));
        }
        if !flags.is_empty() {
            write!(f, "[{}]", flags.join(", "))?;
        }
        // A constant's own type, and behind it the parameter's where that is another.
        let arg = |(arg, t): (&AggArg, &DataType)| match arg {
            AggArg::Column(c) => format!("#{c}:{}", FieldType(t, false)),
            AggArg::Literal(value, own) if own == t => format!("{value}:{}", FieldType(own, false)),
            AggArg::Literal(value, own) => format!("{value}:{} as {}", FieldType(own, false), FieldType(t, false)),
        };
        write!(f, "{}", list(call.args.iter().zip(&call.arg_types).map(arg)))?;
        write!(f, ":{}", FieldType(&call.data_type, call.nullable))
    }
}

impl Display for WindowCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", AggText(&self.call), self.frame)
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} .. {}", if self.rows { "rows" } else { "range" }, self.start, self.end)
    }
}

impl Display for FrameBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameBound::Unbounded => f.write_str("unbounded"),
            FrameBound::CurrentRow => f.write_str("current"),
            FrameBound::Preceding(by) => write!(f, "preceding {by}"),
            FrameBound::Following(by) => write!(f, "following {by}"),
        }
    }
}

impl Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (direction, nulls) =
            (if self.descending { "desc" } else { "asc" }, if self.nulls_first { "nulls_first" } else { "nulls_last" });
        write!(f, "#{} {direction} {nulls}", self.column)
    }
}

impl Display for CloseRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.column)?;
        if self.add_micros == 0 { Ok(()) } else { write!(f, "+{}", Duration(self.add_micros)) }
    }
}

impl Display for EmitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EmitMode::Append => "append",
            EmitMode::Update => "update",
            EmitMode::Complete => "complete",
        })
    }
}

impl Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChangeKind::Append => "append",
            ChangeKind::Upsert => "upsert",
            ChangeKind::Replace => "replace",
            ChangeKind::Retract => "retract",
        })
    }
}

impl Display for JoinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinKind::Inner => "inner",
            JoinKind::Left => "left",
            JoinKind::Right => "right",
            JoinKind::Full => "full",
            JoinKind::LeftSemi => "left_semi",
            JoinKind::LeftAnti => "left_anti",
            JoinKind::NullAwareAnti => "null_aware_anti",
            JoinKind::Existence => "existence",
        })
    }
}
