//! What the unit tests of the families are written with.
//!
//! ```text
//! assert_eq!(eval("upper", &[str("a")]), "A");
//! assert_eq!(eval("/", &[int(1), int(0)]), "!DIVIDE_BY_ZERO");
//! assert_eq!(type_of("+", &[int(1), bigint(1)]), "BIGINT");
//! ```

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use jiff::tz::TimeZone;
use ssql_ir::{AggArg, AggCall, CastMode, DataType as T, Expr, ExprKind, Literal, Symbol};

use crate::aggregate::{Aggregate, Objects, StateRows, state_size};
use crate::resolve::{ArgType, resolve_aggregate, resolve_scalar};
use crate::text::{CellFormatter, parse_date, parse_decimal, parse_timestamp};
use crate::{EvalContext, EvalError, evaluate};

/// An argument: a constant expression.
pub type Arg = Expr;

/// TINYINT.
pub fn tinyint(v: i8) -> Arg {
    Expr::literal(Literal::Int(v.into()), T::Int8)
}

/// SMALLINT.
pub fn smallint(v: i16) -> Arg {
    Expr::literal(Literal::Int(v.into()), T::Int16)
}

/// INT.
pub fn int(v: i32) -> Arg {
    Expr::literal(Literal::Int(v.into()), T::Int32)
}

/// BIGINT.
pub fn bigint(v: i64) -> Arg {
    Expr::literal(Literal::Int(v), T::Int64)
}

/// FLOAT.
pub fn float(v: f32) -> Arg {
    Expr::literal(Literal::Float(v.into()), T::Float32)
}

/// DOUBLE.
pub fn double(v: f64) -> Arg {
    Expr::literal(Literal::Float(v), T::Float64)
}

/// A DECIMAL of that type from its text.
pub fn decimal_of(text: &str, p: u8, s: u8) -> Arg {
    Expr::literal(Literal::Decimal(parse_decimal(text, p, s).expect("a decimal")), T::Decimal(p, s))
}

/// A DECIMAL of the type that a literal of that text has.
pub fn decimal(text: &str) -> Arg {
    let digits = text.trim_start_matches('-');
    let scale = digits.split_once('.').map_or(0, |(_, f)| f.len()) as u8;
    let whole = digits.split('.').next().unwrap_or("").trim_start_matches('0').len() as u8;
    decimal_of(text, (whole + scale).max(1), scale)
}

/// STRING.
pub fn str(v: &str) -> Arg {
    Expr::literal(Literal::String(v.into()), T::String)
}

/// BINARY.
pub fn binary(v: &[u8]) -> Arg {
    Expr::literal(Literal::Binary(v.into()), T::Binary)
}

/// BOOLEAN.
pub fn boolean(v: bool) -> Arg {
    Expr::literal(Literal::Boolean(v), T::Boolean)
}

/// DATE from its text.
pub fn date(text: &str) -> Arg {
    Expr::literal(Literal::Int(parse_date(text).expect("a date").into()), T::Date)
}

/// TIMESTAMP from its text, UTC.
pub fn timestamp(text: &str) -> Arg {
    Expr::literal(Literal::Int(parse_timestamp(text, &TimeZone::UTC).expect("a timestamp")), T::Timestamp)
}

/// INTERVAL DAY TO SECOND of that many seconds.
pub fn seconds(v: i64) -> Arg {
    Expr::literal(Literal::Int(v * 1_000_000), T::DAY_TO_SECOND)
}

/// INTERVAL DAY.
pub fn days(v: i64) -> Arg {
    let day = ssql_ir::DayTimeField::Day;
    Expr::literal(Literal::Int(v * day.micros()), T::DayTimeInterval(day, day))
}

/// INTERVAL YEAR TO MONTH.
pub fn months(v: i64) -> Arg {
    Expr::literal(Literal::Int(v), T::YEAR_TO_MONTH)
}

/// NULL of a type.
pub fn null_of(t: T) -> Arg {
    Expr::literal(Literal::Null, t)
}

/// NULL without a type.
pub fn null() -> Arg {
    null_of(T::Null)
}

/// The call with its casts, or the condition that refuses it.
pub fn call(name: &str, args: &[Arg]) -> Result<Expr, &'static str> {
    let types: Vec<ArgType> = args
        .iter()
        .map(|a| ArgType {
            data_type: a.data_type.clone(),
            nullable: a.nullable,
            literal: if let ExprKind::Literal(l) = &a.kind { Some(l.clone()) } else { None },
        })
        .collect();
    let resolved = resolve_scalar(name, &types).map_err(|e| e.condition)?;
    let args = args.iter().zip(&resolved.arg_types).map(|(a, t)| cast(a.clone(), t.clone())).collect();
    Ok(Expr::call(&resolved.function, args, resolved.data_type, resolved.nullable))
}

/// The call, for use as an argument of another.
pub fn expr(name: &str, args: &[Arg]) -> Arg {
    call(name, args).expect("a call that resolves")
}

fn cast_mode(e: Expr, t: T, mode: CastMode) -> Expr {
    if e.data_type == t {
        return e;
    }
    let nullable = e.nullable || mode == CastMode::Try || crate::cast_makes_null(&e.data_type, &t);
    Expr { kind: ExprKind::Cast { input: Box::new(e), mode }, data_type: t, nullable, origin: Default::default() }
}

/// `CAST(e AS t)`.
pub fn cast(e: Expr, t: T) -> Expr {
    cast_mode(e, t, CastMode::Ansi)
}

/// `TRY_CAST(e AS t)`.
pub fn try_cast(e: Expr, t: T) -> Expr {
    cast_mode(e, t, CastMode::Try)
}

/// The text of the expression's value in UTC, `NULL`, or `!` and the condition that it fails with.
pub fn show(e: &Expr) -> String {
    show_in(e, &EvalContext::default())
}

/// As [`show`], in a context.
pub fn show_in(e: &Expr, ctx: &EvalContext) -> String {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let schema = std::sync::Arc::new(arrow::datatypes::Schema::empty());
    let batch = RecordBatch::try_new_with_options(schema, vec![], &options).expect("a batch of one row");
    match evaluate(e, &batch, ctx) {
        Err(e) => format!("!{}", e.condition),
        Ok(array) => {
            assert_eq!(array.data_type(), &crate::arrow_type(&e.data_type), "the array has the type that typing says");
            let mut out = String::new();
            CellFormatter::new(array.as_ref(), ctx.time_zone.clone()).write(0, &mut out);
            assert!(e.nullable || out != "NULL", "typing says that the result is never NULL");
            out
        }
    }
}

/// The text of a call's value, or `!` and the condition that refuses it or that it fails with.
pub fn eval(name: &str, args: &[Arg]) -> String {
    match call(name, args) {
        Ok(e) => show(&e),
        Err(condition) => format!("!{condition}"),
    }
}

/// The type of a call, or `!` and the condition that refuses it.
pub fn type_of(name: &str, args: &[Arg]) -> String {
    call(name, args).map_or_else(|condition| format!("!{condition}"), |e| e.data_type.to_string())
}

/// A bound call of an aggregate over columns of those types.
pub fn agg_call(name: &str, types: &[T], distinct: bool) -> AggCall {
    agg_call_of(name, &types.iter().map(|t| ArgType::new(t.clone(), true)).collect::<Vec<_>>(), distinct)
}

/// As [`agg_call`], where arguments may have to be constants.
pub fn agg_call_of(name: &str, types: &[ArgType], distinct: bool) -> AggCall {
    let resolved = resolve_aggregate(name, types, distinct).expect("an aggregate that resolves");
    AggCall {
        function: Symbol::from(&*resolved.function),
        args: (0..types.len() as u32).map(AggArg::Column).collect(),
        arg_types: resolved.arg_types,
        filter: None,
        distinct,
        ignore_nulls: false,
        order: vec![],
        data_type: resolved.data_type,
        nullable: resolved.nullable,
    }
}

/// A state table of `n` rows for one aggregate.
pub struct Table {
    /// Rows.
    pub bytes: Vec<u8>,
    /// Objects.
    pub objects: Objects,
    size: usize,
}

impl Table {
    /// All empty.
    pub fn new(agg: &dyn Aggregate, n: usize) -> Table {
        let size = state_size(agg.slots());
        Table { bytes: vec![0; size * n], objects: Objects::new(), size }
    }

    /// The rows.
    pub fn rows(&mut self) -> StateRows<'_> {
        StateRows { bytes: &mut self.bytes, row_size: self.size, offset: 0, objects: &mut self.objects }
    }

    /// The result of row 0 as text, `!` and the condition if it fails.
    pub fn result(&mut self, agg: &dyn Aggregate) -> String {
        match agg.finish(&self.rows(), &[0]) {
            Err(e) => format!("!{}", e.condition),
            Ok(array) => {
                let mut out = String::new();
                CellFormatter::new(array.as_ref(), TimeZone::UTC).write(0, &mut out);
                out
            }
        }
    }
}

/// The aggregate's result over the columns as one group, after checking that splitting the input, merging and storing
/// give the same. The text of the result, or `!` and a condition.
pub fn check_aggregate(call: &AggCall, columns: &[ArrayRef]) -> String {
    run_aggregate(call, columns).unwrap_or_else(|e| format!("!{}", e.condition))
}

fn run_aggregate(call: &AggCall, columns: &[ArrayRef]) -> Result<String, EvalError> {
    let agg = crate::aggregate(call)?;
    let agg = agg.as_ref();
    let rows = columns.first().map_or(0, |c| c.len());
    let slice = |from: usize, n: usize| columns.iter().map(|c| c.slice(from, n)).collect::<Vec<_>>();
    let mut whole = Table::new(agg, 1);
    agg.update(&mut whole.rows(), &vec![0; rows], columns)?;
    let result = whole.result(agg);
    let expected = crate::arrow_type(&call.data_type);
    if let Ok(array) = agg.finish(&whole.rows(), &[0]) {
        assert_eq!(array.data_type(), &expected);
    }
    for cut in 0..=rows {
        let (mut a, mut b) = (Table::new(agg, 1), Table::new(agg, 1));
        agg.update(&mut a.rows(), &vec![0; cut], &slice(0, cut))?;
        agg.update(&mut b.rows(), &vec![0; rows - cut], &slice(cut, rows - cut))?;
        let mut stored = Vec::new();
        agg.encode(&a.rows(), 0, &mut stored);
        stored.push(0xaa);
        let mut input = &stored[..];
        let mut read = Table::new(agg, 1);
        agg.decode(&mut read.rows(), 0, &mut input).expect("a state reads back");
        assert_eq!(input, [0xaa], "decoding stops where the state ends");
        agg.merge(&mut read.rows(), &[0], &b.rows(), &[0])?;
        assert_eq!(read.result(agg), result, "split after {cut} rows");
        agg.release(&mut read.rows(), 0);
        assert!(read.objects.is_empty(), "release frees all objects");
    }
    Ok(result)
}
