//! Building blocks of expressions: implicit casts, calls of the standard library, three-valued connectives.

use ssql_grammar::Span;
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Field, Literal};
use ssql_stdlib::{ArgType, ResolveError, Resolved};

use super::{Binder, origin_at};
use crate::diag::{Fallible, fail_help};
use crate::logical::{ColumnId, WindowEnd, WindowRef};
use ssql_grammar::Diagnostic;

/// Whether two types hold the same values; nested nullability and field names do not count.
pub(crate) fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Array(a), DataType::Array(b)) => same_type(&a.data_type, &b.data_type),
        (DataType::Map(ak, av), DataType::Map(bk, bv)) => {
            same_type(&ak.data_type, &bk.data_type) && same_type(&av.data_type, &bv.data_type)
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_type(&a.data_type, &b.data_type))
        }
        _ => a == b,
    }
}

/// Whether types that hold the same values also name their members the same, so that no cast is needed between them.
fn same_names(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Array(a), DataType::Array(b)) => same_names(&a.data_type, &b.data_type),
        (DataType::Map(ak, av), DataType::Map(bk, bv)) => {
            same_names(&ak.data_type, &bk.data_type) && same_names(&av.data_type, &bv.data_type)
        }
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.iter().zip(b).all(|(a, b)| a.name == b.name && same_names(&a.data_type, &b.data_type))
        }
        _ => true,
    }
}

/// The expression as a value of type `to`.
pub(crate) fn cast(expr: Expr, to: &DataType, mode: CastMode) -> Expr {
    if same_type(&expr.data_type, to) && same_names(&expr.data_type, to) {
        return expr;
    }
    if let ExprKind::Literal(Literal::Null) = expr.kind {
        return Expr::literal(Literal::Null, to.clone()).at(expr.origin);
    }
    let nullable = expr.nullable || mode == CastMode::Try;
    let origin = expr.origin;
    Expr { kind: ExprKind::Cast { input: Box::new(expr), mode }, data_type: to.clone(), nullable, origin }
}

/// Arithmetic whose mistakes are NULL; texts in it are read by the same rule.
const TRIED: [&str; 5] = ["try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"];

/// Operators that compare two values of one type.
const COMPARISONS: [&str; 7] = ["=", "<=>", "<>", "<", "<=", ">", ">="];

/// The same value under a type that differs in names and nullability only.
pub(crate) fn retyped(e: Expr, to: &DataType) -> Expr {
    let (nullable, origin) = (e.nullable, e.origin);
    let kind = ExprKind::Cast { input: Box::new(e), mode: CastMode::Ansi };
    Expr { kind, data_type: to.clone(), nullable, origin }
}

/// What stdlib wants to know of an argument.
pub(crate) fn arg_type(expr: &Expr) -> ArgType {
    let literal = match &expr.kind {
        ExprKind::Literal(l) => Some(l.clone()),
        // A schema or a format may be put together: `from_json(x, schema_of_json('...'))`.
        ExprKind::Call { .. } if expr.data_type == DataType::String => {
            ssql_stdlib::fold_constant(expr, &ssql_stdlib::EvalContext::default())
        }
        _ => None,
    };
    ArgType { data_type: expr.data_type.clone(), nullable: expr.nullable, literal }
}

/// Casts arguments to what the overload takes; lambdas stay, their bodies are cast.
pub(crate) fn cast_args(args: Vec<Expr>, types: &[DataType]) -> Vec<Expr> {
    args.into_iter()
        .zip(types)
        .map(|(arg, to)| match arg.kind {
            ExprKind::Lambda { params, body } => {
                let body = cast(*body, to, CastMode::Ansi);
                let (data_type, nullable) = (body.data_type.clone(), body.nullable);
                let kind = ExprKind::Lambda { params, body: Box::new(body) };
                Expr { kind, data_type, nullable, origin: arg.origin }
            }
            _ => cast(arg, to, CastMode::Ansi),
        })
        .collect()
}

/// `a AND b` of two BOOLEANs.
pub(crate) fn and(a: Expr, b: Expr) -> Expr {
    let (nullable, origin) = (a.nullable || b.nullable, a.origin);
    Expr { kind: ExprKind::And(Box::new(a), Box::new(b)), data_type: DataType::Boolean, nullable, origin }
}

/// `a OR b` of two BOOLEANs.
pub(crate) fn or(a: Expr, b: Expr) -> Expr {
    let (nullable, origin) = (a.nullable || b.nullable, a.origin);
    Expr { kind: ExprKind::Or(Box::new(a), Box::new(b)), data_type: DataType::Boolean, nullable, origin }
}

/// TRUE or FALSE.
pub(crate) fn boolean(value: bool) -> Expr {
    Expr::literal(Literal::Boolean(value), DataType::Boolean)
}

/// A BIGINT.
pub(crate) fn bigint(value: i64) -> Expr {
    Expr::literal(Literal::Int(value), DataType::Int64)
}

/// An INT.
pub(crate) fn int(value: i32) -> Expr {
    Expr::literal(Literal::Int(value.into()), DataType::Int32)
}

/// A STRING.
pub(crate) fn string(value: &str) -> Expr {
    Expr::literal(Literal::String(value.to_string()), DataType::String)
}

/// `NOT e` of a BOOLEAN.
pub(crate) fn not(e: Expr) -> Expr {
    let (nullable, origin) = (e.nullable, e.origin);
    Expr::call("not", vec![e], DataType::Boolean, nullable).at(origin)
}

/// `e IS NULL` or `e IS NOT NULL`.
pub(crate) fn is_null(e: Expr, negated: bool) -> Expr {
    let origin = e.origin;
    Expr::call(if negated { "isnotnull" } else { "isnull" }, vec![e], DataType::Boolean, false).at(origin)
}

/// `time + micros`, of a TIMESTAMP.
pub(crate) fn plus_micros(time: Expr, micros: i64) -> Expr {
    let (data_type, nullable, origin) = (time.data_type.clone(), time.nullable, time.origin);
    let interval = Expr::literal(Literal::Int(micros), DataType::DAY_TO_SECOND);
    Expr::call("+", vec![time, interval], data_type, nullable).at(origin)
}

/// A mistake that stdlib's resolution found, shown at its argument or at the call.
pub(crate) fn resolve_error(e: ResolveError, args: &[Expr], span: Span) -> Box<Diagnostic> {
    let counted = e.condition.starts_with("WRONG_NUM_ARGS");
    let arg = e.arg.filter(|_| !counted).and_then(|i| args.get(i));
    let at = arg.and_then(|a| a.origin.span).map(|(s, t)| Span::new(s, t));
    let mut d = Diagnostic::error(e.condition, e.message).at(at.unwrap_or(span));
    for help in e.help {
        d = d.with_help(ssql_grammar::diagnostic::sentence(&help));
    }
    let is_time = |a: &Expr| matches!(a.data_type, DataType::Timestamp | DataType::TimestampNtz);
    if d.condition == "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"
        && args.iter().any(is_time)
        && args.iter().any(|a| a.data_type.is_numeric())
    {
        d = d.with_help("A length of time is an interval: ts - INTERVAL 5 MINUTES.");
    }
    Box::new(d)
}

/// A call whose overload is settled.
pub(crate) fn resolved_call(resolved: Resolved, args: Vec<Expr>, span: Span) -> Expr {
    let args = cast_args(args, &resolved.arg_types);
    Expr {
        kind: ExprKind::Call { function: resolved.function, args },
        data_type: resolved.data_type,
        nullable: resolved.nullable,
        origin: origin_at(span),
    }
}

impl<'a> Binder<'a> {
    /// A call of a scalar function or operator of the standard library.
    pub(crate) fn call(&self, name: &str, mut args: Vec<Expr>, span: Span) -> Fallible<Expr> {
        if COMPARISONS.contains(&name)
            && let [a, b] = args.as_mut_slice()
            && a.data_type.is_nested()
            && a.data_type != b.data_type
            && same_type(&a.data_type, &b.data_type)
        {
            // Structs are compared field by field, whatever the fields are called.
            *b = retyped(b.clone(), &a.data_type);
        }
        let types: Vec<ArgType> = args.iter().map(arg_type).collect();
        match ssql_stdlib::resolve_scalar(name, &types) {
            Ok(resolved) => {
                if TRIED.contains(&name) {
                    for (arg, to) in args.iter_mut().zip(&resolved.arg_types) {
                        if arg.data_type == DataType::String {
                            *arg = cast(std::mem::replace(arg, boolean(false)), to, CastMode::Try);
                        }
                    }
                }
                Ok(resolved_call(resolved, args, span))
            }
            Err(e) => Err(resolve_error(e, &args, span)),
        }
    }

    /// `a = b`; of two window structs, the comparison of what they were put together from.
    pub(crate) fn equal(&self, op: &str, a: Expr, b: Expr, span: Span) -> Fallible<Expr> {
        if let (Some(x), Some(y)) = (self.window_ref(&a), self.window_ref(&b)) {
            let starts = self.call(op, vec![self.columns.expr(x.start), self.columns.expr(y.start)], span)?;
            if let (WindowEnd::Size(m), WindowEnd::Size(n)) = (x.end, y.end)
                && m == n
            {
                return Ok(starts);
            }
            let ends = self.call(op, vec![self.window_end(x), self.window_end(y)], span)?;
            return Ok(and(starts, ends));
        }
        self.call(op, vec![a, b], span)
    }

    /// A BOOLEAN where one is needed.
    pub(crate) fn to_boolean(&self, e: Expr, what: &str, condition: &'static str, span: Span) -> Fallible<Expr> {
        match e.data_type {
            DataType::Boolean => Ok(e),
            DataType::Null => Ok(cast(e, &DataType::Boolean, CastMode::Ansi)),
            _ => fail_help(
                condition,
                format!("{what} must be BOOLEAN, not {}", e.data_type),
                span,
                "Compare it with a value, for example `... > 0`.",
            ),
        }
    }

    /// The window struct that an expression is, if it is one.
    pub(crate) fn window_ref(&self, e: &Expr) -> Option<WindowRef> {
        match &e.kind {
            ExprKind::Column(id) => self.columns.get(*id).window,
            ExprKind::Call { function, args } if &**function == "named_struct" && args.len() == 4 => {
                let ExprKind::Column(start) = args[1].kind else { return None };
                if !self.columns.get(start).window_edge {
                    return None;
                }
                let end = match &args[3].kind {
                    ExprKind::Column(end) if self.columns.get(*end).window_edge => WindowEnd::Column(*end),
                    ExprKind::Call { function, args } if &**function == "+" => match (&args[0].kind, &args[1].kind) {
                        (ExprKind::Column(c), ExprKind::Literal(Literal::Int(size))) if *c == start => {
                            WindowEnd::Size(*size)
                        }
                        _ => return None,
                    },
                    _ => return None,
                };
                Some(WindowRef { start, end })
            }
            _ => None,
        }
    }

    /// The end of a window.
    pub(crate) fn window_end(&self, w: WindowRef) -> Expr {
        match w.end {
            WindowEnd::Size(size) => plus_micros(self.columns.expr(w.start), size),
            WindowEnd::Column(id) => self.columns.expr(id),
        }
    }

    /// The event time of a window: its last microsecond.
    pub(crate) fn window_time(&self, w: WindowRef) -> Expr {
        match w.end {
            WindowEnd::Size(size) => plus_micros(self.columns.expr(w.start), size - 1),
            WindowEnd::Column(id) => plus_micros(self.columns.expr(id), -1),
        }
    }

    /// The window struct.
    pub(crate) fn window_struct(&self, start: ColumnId, end: WindowEnd) -> Expr {
        let w = WindowRef { start, end };
        let (start, end) = (self.columns.expr(start), self.window_end(w));
        let fields = vec![
            Field::new("start", start.data_type.clone(), start.nullable),
            Field::new("end", end.data_type.clone(), end.nullable),
        ];
        Expr::call("named_struct", vec![string("start"), start, string("end"), end], DataType::Struct(fields), false)
    }

    /// The role as event time that a column with this expression has.
    pub(crate) fn event_time_of(&self, e: &Expr) -> Option<crate::logical::EventTime> {
        match &e.kind {
            ExprKind::Column(id) => self.columns.get(*id).event_time,
            ExprKind::Call { function, args } if &**function == "+" && args.len() == 2 => {
                // window_time: the last microsecond of a window is event time as the window is.
                let (ExprKind::Column(id), ExprKind::Literal(Literal::Int(n))) = (&args[0].kind, &args[1].kind) else {
                    return None;
                };
                let info = self.columns.get(*id);
                let role = info.event_time.filter(|t| info.window_edge && *n == t.add_micros - 1)?;
                Some(crate::logical::EventTime { group: role.group, add_micros: 0 })
            }
            _ => self.window_ref(e).and_then(|w| match w.end {
                WindowEnd::Size(_) => self.columns.get(w.start).event_time,
                WindowEnd::Column(end) => self.columns.get(end).event_time,
            }),
        }
    }
}
