//! IR expressions to [`Node`]s. `None` means that this expression is the interpreter's.
//!
//! Left to the interpreter: decimals, nested types, results of type STRING or BINARY, whatever needs the session's time
//! zone (TIMESTAMP to DATE, whole days added to a TIMESTAMP), `%` of floats, and errors that no [`ssql_abi::Status`]
//! stands for (interval overflow).

use ssql_ir::{CastMode, DataType, Expr, ExprKind, Literal, Origin};

use crate::node::{BinaryOp, CastKind, CompareOp, Node, NodeOp, Site, Text, Ty, UnaryOp};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// A longer IN list is the interpreter's, which makes a set of it.
const IN_LIST: usize = 32;

/// Lowers the expressions of one kernel and collects where its fallible expressions stand.
#[derive(Debug, Default)]
pub(crate) struct Lowering {
    /// Origin of each site.
    pub sites: Vec<Origin>,
}

fn node(op: NodeOp, ty: Ty) -> Node {
    Node { op, ty }
}

impl Lowering {
    fn site(&mut self, origin: Origin) -> Site {
        self.sites.push(origin);
        (self.sites.len() - 1) as Site
    }

    /// The node that computes `expr`, if generated code can.
    pub(crate) fn lower(&mut self, expr: &Expr) -> Option<Node> {
        let sites = self.sites.len();
        let lowered = self.expr(expr);
        if lowered.is_none() {
            self.sites.truncate(sites);
        }
        lowered
    }

    fn expr(&mut self, expr: &Expr) -> Option<Node> {
        let ty = Ty::of(&expr.data_type)?;
        let op = match &expr.kind {
            ExprKind::Column(c) => NodeOp::Column(*c),
            ExprKind::Literal(value) => literal(value, ty)?,
            ExprKind::And(a, b) => NodeOp::And(self.boxed(a)?, self.boxed(b)?),
            ExprKind::Or(a, b) => NodeOp::Or(self.boxed(a)?, self.boxed(b)?),
            ExprKind::Case { branches, otherwise } => {
                let branches = branches
                    .iter()
                    .map(|(c, v)| Some((self.expr(c)?, self.expr(v)?)))
                    .collect::<Option<Vec<(Node, Node)>>>()?;
                let otherwise = match otherwise {
                    Some(e) => Some(self.boxed(e)?),
                    None => None,
                };
                if branches.iter().any(|(_, v)| v.ty != ty) || otherwise.as_ref().is_some_and(|e| e.ty != ty) {
                    return None;
                }
                NodeOp::Case(branches, otherwise)
            }
            ExprKind::Coalesce(args) => {
                let args = args.iter().map(|a| self.expr(a)).collect::<Option<Vec<Node>>>()?;
                if args.is_empty() || args.iter().any(|a| a.ty != ty) {
                    return None;
                }
                NodeOp::Coalesce(args)
            }
            ExprKind::Cast { input, mode } => return self.cast(expr, input, *mode),
            ExprKind::Call { function, args } => return self.call(expr, function, args),
            ExprKind::Lambda { .. } | ExprKind::LambdaVariable(_) | ExprKind::ScalarSubquery(_) => return None,
        };
        Some(node(op, ty))
    }

    fn boxed(&mut self, expr: &Expr) -> Option<Box<Node>> {
        self.expr(expr).map(Box::new)
    }

    fn call(&mut self, expr: &Expr, function: &str, args: &[Expr]) -> Option<Node> {
        match (function, args) {
            ("+" | "-" | "*" | "/" | "div" | "%" | "&" | "|" | "^", [a, b]) => self.binary(expr, function, a, b),
            ("=" | "<>" | "!=" | "<" | "<=" | ">" | ">=" | "<=>", [a, b]) => self.compare(function, a, b),
            ("not" | "!", [a]) => self.unary(expr, UnaryOp::Not, a, |t| *t == DataType::Boolean),
            ("negative", [a]) => self.unary(expr, UnaryOp::Negative, a, |t| t.is_integer() || t.is_float()),
            ("abs", [a]) => self.unary(expr, UnaryOp::Abs, a, |t| t.is_integer() || t.is_float()),
            ("~", [a]) => self.unary(expr, UnaryOp::BitNot, a, DataType::is_integer),
            ("isnan", [a]) => self.unary(expr, UnaryOp::IsNan, a, DataType::is_float),
            ("isnull", [a]) => self.is_null(a),
            ("isnotnull", [a]) => {
                let null = self.is_null(a)?;
                Some(node(NodeOp::Unary(UnaryOp::Not, Box::new(null), 0), Ty::Bool))
            }
            ("in", [a, list @ ..]) => self.in_list(a, list),
            ("startswith", [a, b]) => match (text(a)?, text(b)?) {
                (a, Text::Literal(prefix)) => Some(node(NodeOp::StartsWith(a, prefix), Ty::Bool)),
                _ => None,
            },
            ("like", [a, pattern]) => {
                let Text::Literal(pattern) = text(pattern)? else { return None };
                like(text(a)?, &pattern)
            }
            ("window_start", [time, size, offset]) => {
                let (size, offset) = (int_literal(size)?, int_literal(offset)?);
                if size <= 0 || Ty::of(&time.data_type)? != Ty::I64 {
                    return None;
                }
                let time = self.boxed(time)?;
                let site = self.site(expr.origin);
                Some(node(NodeOp::WindowStart { time, size, offset, site }, Ty::I64))
            }
            _ => None,
        }
    }

    fn unary(&mut self, expr: &Expr, op: UnaryOp, a: &Expr, takes: fn(&DataType) -> bool) -> Option<Node> {
        if !takes(&a.data_type) {
            return None;
        }
        let ty = Ty::of(&expr.data_type)?;
        let a = self.boxed(a)?;
        if op != UnaryOp::IsNan && a.ty != ty {
            return None;
        }
        Some(node(NodeOp::Unary(op, a, self.site(expr.origin)), ty))
    }

    fn binary(&mut self, expr: &Expr, function: &str, a: &Expr, b: &Expr) -> Option<Node> {
        use DataType::{DayTimeInterval, Timestamp, TimestampNtz};
        let (ta, tb) = (&a.data_type, &b.data_type);
        let op = match function {
            "+" => BinaryOp::Add,
            "-" => BinaryOp::Sub,
            "*" => BinaryOp::Mul,
            "/" => BinaryOp::Divide,
            "div" => BinaryOp::IntDivide,
            "%" => BinaryOp::Remainder,
            "&" => BinaryOp::BitAnd,
            "|" => BinaryOp::BitOr,
            _ => BinaryOp::BitXor,
        };
        let ty = Ty::of(&expr.data_type)?;
        let fits = match op {
            BinaryOp::Add | BinaryOp::Sub
                if matches!(ta, Timestamp | TimestampNtz) && matches!(tb, DayTimeInterval(..)) =>
            {
                // A whole day in a zone is not always 24 hours.
                let constant = int_literal(b).is_some_and(|v| v.unsigned_abs() < MICROS_PER_DAY as u64);
                *ta == expr.data_type && (constant || *ta == TimestampNtz)
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                ta == tb && *ta == expr.data_type && (ta.is_integer() || ta.is_float())
            }
            BinaryOp::Divide => ta == tb && *ta == expr.data_type && ta.is_float(),
            BinaryOp::IntDivide => ta == tb && *ta == DataType::Int64 && ty == Ty::I64,
            BinaryOp::Remainder | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                ta == tb && *ta == expr.data_type && ta.is_integer()
            }
        };
        if !fits {
            return None;
        }
        let (a, b) = (self.boxed(a)?, self.boxed(b)?);
        Some(node(NodeOp::Binary(op, a, b, self.site(expr.origin)), ty))
    }

    fn compare(&mut self, function: &str, a: &Expr, b: &Expr) -> Option<Node> {
        if a.data_type != b.data_type {
            return None;
        }
        let op = match function {
            "=" => Some(CompareOp::Eq),
            "<>" | "!=" => Some(CompareOp::Ne),
            "<" => Some(CompareOp::Lt),
            "<=" => Some(CompareOp::Le),
            ">" => Some(CompareOp::Gt),
            ">=" => Some(CompareOp::Ge),
            _ => None,
        };
        let op = if a.data_type == DataType::String {
            let (a, b) = (text(a)?, text(b)?);
            match op {
                Some(op) => NodeOp::CompareText(op, a, b),
                None => NodeOp::NullSafeEqText(a, b),
            }
        } else {
            let (a, b) = (self.boxed(a)?, self.boxed(b)?);
            match op {
                Some(op) => NodeOp::Compare(op, a, b),
                None => NodeOp::NullSafeEq(a, b),
            }
        };
        Some(node(op, Ty::Bool))
    }

    fn is_null(&mut self, a: &Expr) -> Option<Node> {
        let op = match a.kind {
            // A column of type VOID has no validity to look at.
            ExprKind::Column(_) if a.data_type == DataType::Null => return None,
            ExprKind::Column(c) => NodeOp::IsNullColumn(c),
            _ => NodeOp::IsNull(self.boxed(a)?),
        };
        Some(node(op, Ty::Bool))
    }

    /// `a IN (b, c)` is `a = b OR a = c`, as a balanced tree.
    fn in_list(&mut self, a: &Expr, list: &[Expr]) -> Option<Node> {
        if list.is_empty() || list.len() > IN_LIST || list.iter().any(|e| !matches!(e.kind, ExprKind::Literal(_))) {
            return None;
        }
        // The left side stands in each comparison; as they all are computed, it is computed once.
        if !matches!(a.kind, ExprKind::Column(_)) {
            return None;
        }
        if let [one] = list {
            return match (&one.kind, &one.data_type) {
                (ExprKind::Literal(Literal::Null), DataType::String) => Some(node(NodeOp::Null, Ty::Bool)),
                _ => self.compare("=", a, one),
            };
        }
        let (left, right) = list.split_at(list.len() / 2);
        let (left, right) = (self.in_list(a, left)?, self.in_list(a, right)?);
        Some(node(NodeOp::Or(Box::new(left), Box::new(right)), Ty::Bool))
    }

    fn cast(&mut self, expr: &Expr, input: &Expr, mode: CastMode) -> Option<Node> {
        use DataType::{Boolean, Date, Timestamp, TimestampNtz};
        let (from, to) = (&input.data_type, &expr.data_type);
        if from == to {
            return self.expr(input);
        }
        let number = |t: &DataType| t.is_integer() || t.is_float();
        let kind = match (from, to) {
            (f, t) if (number(f) || *f == Boolean) && (number(t) || *t == Boolean) => CastKind::Number,
            (Timestamp, t) if t.is_integer() => CastKind::MicrosToSeconds,
            (Timestamp, t) if t.is_float() => CastKind::MicrosToFloat,
            (f, Timestamp) if f.is_integer() => CastKind::SecondsToMicros,
            (TimestampNtz, Date) => CastKind::MicrosToDays,
            _ => return None,
        };
        let ty = Ty::of(to)?;
        let input = self.boxed(input)?;
        let site = self.site(expr.origin);
        // What always fits cannot fail, whatever its mode.
        let always = match kind {
            CastKind::Number => {
                ty.is_float() || ty == Ty::Bool || (!input.ty.is_float() && input.ty.width() <= ty.width())
            }
            CastKind::MicrosToSeconds => ty == Ty::I64,
            CastKind::MicrosToFloat | CastKind::SecondsToMicros | CastKind::MicrosToDays => true,
        };
        let tries = always || mode == CastMode::Try;
        Some(node(NodeOp::Cast { kind, input, tries, site }, ty))
    }
}

fn literal(value: &Literal, ty: Ty) -> Option<NodeOp> {
    Some(match (value, ty) {
        (Literal::Null, _) => NodeOp::Null,
        (Literal::Boolean(b), Ty::Bool) => NodeOp::Const(u64::from(*b)),
        (Literal::Int(i), Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64) => NodeOp::Const(*i as u64),
        (Literal::Float(f), Ty::F32) => NodeOp::Const((*f as f32).to_bits().into()),
        (Literal::Float(f), Ty::F64) => NodeOp::Const(f.to_bits()),
        _ => return None,
    })
}

fn int_literal(expr: &Expr) -> Option<i64> {
    match expr.kind {
        ExprKind::Literal(Literal::Int(i)) => Some(i),
        _ => None,
    }
}

fn text(expr: &Expr) -> Option<Text> {
    match &expr.kind {
        _ if expr.data_type != DataType::String => None,
        ExprKind::Column(c) => Some(Text::Column(*c)),
        ExprKind::Literal(Literal::String(s)) => Some(Text::Literal(s.clone())),
        _ => None,
    }
}

/// A pattern without wildcards is an equality, with one `%` at its end a prefix.
fn like(a: Text, pattern: &str) -> Option<Node> {
    let plain = |s: &str| !s.contains(['%', '_', '\\']);
    let op = match pattern.strip_suffix('%') {
        Some(prefix) if plain(prefix) => NodeOp::StartsWith(a, prefix.to_owned()),
        None if plain(pattern) => NodeOp::CompareText(CompareOp::Eq, a, Text::Literal(pattern.to_owned())),
        _ => return None,
    };
    Some(node(op, Ty::Bool))
}
