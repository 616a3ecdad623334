//! Which types turn into which: the implicit and explicit casts of Spark's ANSI mode.

use ssql_ir::{DataType as T, Field, Literal};

use crate::error::ResolveError;
use crate::function::Param;

/// Largest precision of a DECIMAL.
pub const MAX_PRECISION: u8 = 38;
/// Scale that a capped DECIMAL result keeps at least.
const MINIMUM_ADJUSTED_SCALE: i32 = 6;

/// DECIMAL(precision, scale) as Spark caps it at 38 digits: digits before the point win, but at least
/// min(scale, 6) digits after it stay.
pub fn adjusted_decimal(precision: i32, scale: i32) -> T {
    let max = i32::from(MAX_PRECISION);
    if precision <= max {
        return T::Decimal(precision.max(1) as u8, scale as u8);
    }
    let kept = (max - (precision - scale)).max(scale.min(MINIMUM_ADJUSTED_SCALE));
    T::Decimal(MAX_PRECISION, kept as u8)
}

/// DECIMAL with both numbers capped at 38, digits after the point winning (Spark's `bounded`).
pub fn bounded_decimal(precision: i32, scale: i32) -> T {
    let max = i32::from(MAX_PRECISION);
    T::Decimal(precision.clamp(1, max) as u8, scale.clamp(0, max) as u8)
}

/// The DECIMAL that holds every value of a numeric type: TINYINT is (3,0), BIGINT (20,0), DOUBLE (30,15).
pub fn decimal_for(t: &T) -> Option<(u8, u8)> {
    Some(match t {
        T::Int8 => (3, 0),
        T::Int16 => (5, 0),
        T::Int32 => (10, 0),
        T::Int64 => (20, 0),
        T::Float32 => (14, 7),
        T::Float64 => (30, 15),
        T::Decimal(p, s) => (*p, *s),
        _ => return None,
    })
}

/// The DECIMAL of an integer constant: as many digits as it has.
pub fn decimal_for_literal(l: &Literal) -> Option<(u8, u8)> {
    match l {
        Literal::Int(v) => Some((v.unsigned_abs().checked_ilog10().unwrap_or(0) as u8 + 1, 0)),
        _ => None,
    }
}

/// The DECIMAL that both widen to without losing a digit where 38 allow it.
pub fn wider_decimal((p1, s1): (u8, u8), (p2, s2): (u8, u8)) -> T {
    let scale = s1.max(s2);
    let range = (p1 - s1).max(p2 - s2);
    bounded_decimal(i32::from(range) + i32::from(scale), i32::from(scale))
}

fn rank(t: &T) -> Option<u8> {
    Some(match t {
        T::Int8 => 0,
        T::Int16 => 1,
        T::Int32 => 2,
        T::Int64 => 3,
        T::Float32 => 4,
        T::Float64 => 5,
        _ => return None,
    })
}

/// Whether the type is one value, not a collection.
pub(crate) fn is_atomic(t: &T) -> bool {
    !t.is_nested() && *t != T::Null
}

/// How far types give way to each other to become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Widening {
    /// No digit is lost: integers widen, but no DECIMAL beside another or a fraction, and no STRING.
    Tightest,
    /// As for the operands of arithmetic; a STRING stays one.
    Numbers,
    /// A STRING becomes what stands beside it too.
    Strings,
}

/// Spark's `findTightestCommonType`, for an array and an element or another array of its kind: integers and fractions
/// widen, DECIMALs of different precision and texts do not.
pub fn tightest_common_type(a: &T, b: &T) -> Option<T> {
    common(a, b, Widening::Tightest)
}

/// The type that both sides of an operator, or branches of a CASE, widen to, without turning strings into anything.
pub fn common_type_no_strings(a: &T, b: &T) -> Option<T> {
    common(a, b, Widening::Numbers)
}

/// Spark's widest common type, for CASE, COALESCE, UNION, IN and comparisons: a string beside another atomic type
/// becomes BIGINT beside integers, DOUBLE beside fractions, else the other type.
pub fn common_type(a: &T, b: &T) -> Option<T> {
    common(a, b, Widening::Strings)
}

/// The common type of a list: strings are taken first, as in Spark, so that the result does not depend on their place.
pub fn common_type_of<'a>(types: impl IntoIterator<Item = &'a T>) -> Option<T> {
    let (strings, others): (Vec<&T>, Vec<&T>) = types.into_iter().partition(|t| **t == T::String);
    let mut all = strings.into_iter().chain(others);
    let first = all.next()?.clone();
    all.try_fold(first, |wide, t| common_type(&wide, t))
}

fn common(a: &T, b: &T, widening: Widening) -> Option<T> {
    Some(match (a, b) {
        _ if a == b => a.clone(),
        (T::Null, t) | (t, T::Null) => t.clone(),
        (d @ T::Decimal(p, s), t) | (t, d @ T::Decimal(p, s)) if widening == Widening::Tightest && t.is_integer() => {
            let (digits, _) = decimal_for(t)?;
            (p - s >= digits).then(|| d.clone())?
        }
        (T::Decimal(..), t) | (t, T::Decimal(..)) if widening == Widening::Tightest && t.is_numeric() => return None,
        (T::Decimal(..), t) | (t, T::Decimal(..)) if t.is_float() => T::Float64,
        (T::Decimal(..), t) | (t, T::Decimal(..)) if t.is_numeric() => wider_decimal(decimal_for(a)?, decimal_for(b)?),
        (a, b) if a.is_numeric() && b.is_numeric() => {
            let (wide, narrow) = if rank(a)? >= rank(b)? { (a, b) } else { (b, a) };
            // FLOAT cannot hold what an integer may be.
            if *wide == T::Float32 && narrow.is_integer() { T::Float64 } else { wide.clone() }
        }
        (T::Date, t @ (T::Timestamp | T::TimestampNtz)) | (t @ (T::Timestamp | T::TimestampNtz), T::Date) => t.clone(),
        (T::Timestamp, T::TimestampNtz) | (T::TimestampNtz, T::Timestamp) => T::Timestamp,
        (T::String, t) | (t, T::String) if widening == Widening::Strings => match t {
            t if t.is_integer() => T::Int64,
            t if t.is_float() || matches!(t, T::Decimal(..)) => T::Float64,
            T::DayTimeInterval(..) | T::YearMonthInterval(..) => return None,
            t if is_atomic(t) => t.clone(),
            _ => return None,
        },
        (T::DayTimeInterval(..), T::DayTimeInterval(..)) | (T::YearMonthInterval(..), T::YearMonthInterval(..)) => {
            a.wider_interval(b)?
        }
        (T::Array(a), T::Array(b)) => T::Array(Box::new(common_field(a, b, widening)?)),
        (T::Map(ka, va), T::Map(kb, vb)) => {
            let mut key = common_field(ka, kb, widening)?;
            key.nullable = false;
            T::Map(Box::new(key), Box::new(common_field(va, vb, widening)?))
        }
        (T::Struct(a), T::Struct(b)) if a.len() == b.len() => {
            let fields = a
                .iter()
                .zip(b)
                .map(|(a, b)| if a.name.eq_ignore_ascii_case(&b.name) { common_field(a, b, widening) } else { None });
            T::Struct(fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn common_field(a: &Field, b: &Field, widening: Widening) -> Option<Field> {
    Some(Field::new(&a.name, common(&a.data_type, &b.data_type, widening)?, a.nullable || b.nullable))
}

/// Whether an explicit CAST (ANSI) is allowed. Whether a value survives it is known only when it runs.
pub fn can_cast(from: &T, to: &T) -> bool {
    match (from, to) {
        _ if from == to => true,
        (T::Null, _) | (_, T::String) => true,
        (T::String, t) => is_atomic(t),
        (T::Boolean, t) => t.is_numeric(),
        (f, T::Boolean) => f.is_numeric(),
        (f, T::Timestamp) => f.is_numeric() || matches!(f, T::Date | T::TimestampNtz),
        (T::Timestamp, t) => t.is_numeric() || matches!(t, T::Date | T::TimestampNtz),
        (T::Date | T::TimestampNtz, T::Date | T::TimestampNtz) => true,
        (T::DayTimeInterval(..), T::DayTimeInterval(..)) | (T::YearMonthInterval(..), T::YearMonthInterval(..)) => true,
        (T::DayTimeInterval(..) | T::YearMonthInterval(..), t) => t.is_integer() || matches!(t, T::Decimal(..)),
        (f, T::DayTimeInterval(..) | T::YearMonthInterval(..)) => f.is_integer() || matches!(f, T::Decimal(..)),
        (T::Array(f), T::Array(t)) => can_cast(&f.data_type, &t.data_type) && (t.nullable || !f.nullable),
        (T::Map(fk, fv), T::Map(tk, tv)) => {
            can_cast(&fk.data_type, &tk.data_type)
                && can_cast(&fv.data_type, &tv.data_type)
                && (tv.nullable || !fv.nullable)
        }
        (T::Struct(f), T::Struct(t)) => {
            f.len() == t.len()
                && f.iter().zip(t).all(|(f, t)| can_cast(&f.data_type, &t.data_type) && (t.nullable || !f.nullable))
        }
        (f, t) => f.is_numeric() && t.is_numeric(),
    }
}

/// Whether an ANSI cast makes NULL of some values that are not: NaN and the infinities have no DECIMAL.
pub fn cast_makes_null(from: &T, to: &T) -> bool {
    from.is_float() && matches!(to, T::Decimal(..))
}

/// Why a CAST that [`can_cast`] refuses is refused, with Spark's condition and what to use instead.
pub fn cast_mismatch(from: &T, to: &T) -> ResolveError {
    let message = format!("Cannot cast {from} to {to}.");
    match (from, to) {
        (T::Date, t) if t.is_numeric() => ResolveError::new("DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", message)
            .with_help("use `unix_date(d)` for the number of days since 1970-01-01"),
        (f, T::Date) if f.is_numeric() => ResolveError::new("DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION", message)
            .with_help("use `date_from_unix_date(n)` for a number of days since 1970-01-01"),
        (T::Boolean, T::Timestamp) | (T::Timestamp, T::Boolean) | (T::Date, T::Boolean) => {
            ResolveError::new("DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION", message)
        }
        (f, T::Binary) if f.is_integer() => ResolveError::new("DATATYPE_MISMATCH.CAST_WITH_CONF_SUGGESTION", message),
        _ => ResolveError::new("DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", message),
    }
}

/// Whether Spark's ANSI store assignment converts without a CAST.
fn ansi_assign(from: &T, to: &T) -> bool {
    match (from, to) {
        _ if from == to => true,
        (T::Null, _) => true,
        (f, t) if f.is_numeric() && t.is_numeric() => true,
        (f, T::String) => is_atomic(f),
        (T::Date | T::Timestamp | T::TimestampNtz, T::Date | T::Timestamp | T::TimestampNtz) => true,
        (T::Array(f), T::Array(t)) => ansi_assign(&f.data_type, &t.data_type) && (t.nullable || !f.nullable),
        (T::Map(fk, fv), T::Map(tk, tv)) => {
            ansi_assign(&fk.data_type, &tk.data_type)
                && ansi_assign(&fv.data_type, &tv.data_type)
                && (tv.nullable || !fv.nullable)
        }
        (T::Struct(f), T::Struct(t)) => {
            f.len() == t.len()
                && f.iter().zip(t).all(|(f, t)| ansi_assign(&f.data_type, &t.data_type) && (t.nullable || !f.nullable))
        }
        _ => false,
    }
}

/// Whether INSERT converts a value to the column's type by itself. More lenient than Spark's store assignment in one
/// thing: text becomes what the column is (`INSERT INTO s VALUES ('2024-01-01 10:00:00', ...)`), inside nested values too.
pub fn can_store_assign(from: &T, to: &T) -> bool {
    match (from, to) {
        (T::String, t) => is_atomic(t),
        (T::Array(f), T::Array(t)) => can_store_assign(&f.data_type, &t.data_type),
        (T::Map(fk, fv), T::Map(tk, tv)) => {
            can_store_assign(&fk.data_type, &tk.data_type) && can_store_assign(&fv.data_type, &tv.data_type)
        }
        (T::Struct(f), T::Struct(t)) => {
            f.len() == t.len() && f.iter().zip(t).all(|(f, t)| can_store_assign(&f.data_type, &t.data_type))
        }
        _ => ansi_assign(from, to),
    }
}

/// Whether values of the type have an order: all but maps and what holds one.
pub fn is_ordered(t: &T) -> bool {
    match t {
        T::Map(..) => false,
        T::Array(e) => is_ordered(&e.data_type),
        T::Struct(fields) => fields.iter().all(|f| is_ordered(&f.data_type)),
        _ => true,
    }
}

/// Whether the parameter takes the type as it is.
pub fn accepts(p: &Param, t: &T) -> bool {
    match p {
        Param::Boolean => *t == T::Boolean,
        Param::TinyInt => *t == T::Int8,
        Param::SmallInt => *t == T::Int16,
        Param::Int => *t == T::Int32,
        Param::BigInt => *t == T::Int64,
        Param::Float => *t == T::Float32,
        Param::Double => *t == T::Float64,
        Param::Decimal => matches!(t, T::Decimal(..)),
        Param::String => *t == T::String,
        Param::Binary => *t == T::Binary,
        Param::Date => *t == T::Date,
        Param::Timestamp => *t == T::Timestamp,
        Param::TimestampNtz => *t == T::TimestampNtz,
        Param::AnyTimestamp => matches!(t, T::Timestamp | T::TimestampNtz),
        Param::DayTime => matches!(t, T::DayTimeInterval(..)),
        Param::YearMonth => matches!(t, T::YearMonthInterval(..)),
        Param::Integral => t.is_integer(),
        Param::Numeric => t.is_numeric(),
        Param::Array => matches!(t, T::Array(_)),
        Param::Map => matches!(t, T::Map(..)),
        Param::Struct => matches!(t, T::Struct(_)),
        Param::ArrayOf(p) => matches!(t, T::Array(e) if accepts(p, &e.data_type)),
        Param::Any | Param::Lambda => true,
        Param::Ordered => is_ordered(t),
        Param::Exactly(p) => accepts(p, t),
        Param::OneOf(ps) => ps.iter().any(|p| accepts(p, t)),
    }
}

/// The type that an untyped NULL takes for that parameter; also the target of a parameter that names one type.
fn default_of(p: &Param) -> T {
    match p {
        Param::Boolean => T::Boolean,
        Param::TinyInt => T::Int8,
        Param::SmallInt => T::Int16,
        Param::Int | Param::Integral => T::Int32,
        Param::BigInt => T::Int64,
        Param::Float => T::Float32,
        Param::Double | Param::Numeric => T::Float64,
        Param::Decimal => T::Decimal(38, 18),
        Param::String => T::String,
        Param::Binary => T::Binary,
        Param::Date => T::Date,
        Param::Timestamp | Param::AnyTimestamp => T::Timestamp,
        Param::TimestampNtz => T::TimestampNtz,
        Param::DayTime => T::DAY_TO_SECOND,
        Param::YearMonth => T::YEAR_TO_MONTH,
        Param::Array => T::array(T::Null),
        Param::ArrayOf(p) => T::array(default_of(p)),
        Param::Map => T::map(T::Null, T::Null),
        Param::Struct => T::Struct(vec![]),
        Param::Any | Param::Ordered | Param::Lambda => T::Null,
        Param::Exactly(p) => default_of(p),
        Param::OneOf(ps) => ps.first().map_or(T::Null, default_of),
    }
}

/// The type that a value of type `t` is implicitly cast to for that parameter; `None` where it is refused.
pub fn implicit_cast(t: &T, p: &Param) -> Option<T> {
    if accepts(p, t) {
        return Some(t.clone());
    }
    match (t, p) {
        (T::Null, p) => Some(default_of(p)),
        (_, Param::Exactly(_)) => None,
        (_, Param::OneOf(ps)) => ps.iter().find_map(|p| implicit_cast(t, p)),
        (t, Param::Decimal) if t.is_numeric() => decimal_for(t).map(|(p, s)| T::Decimal(p, s)),
        (T::String, Param::Integral) => Some(T::Int64),
        (T::Array(e), Param::ArrayOf(p)) => {
            Some(T::Array(Box::new(Field::new("element", implicit_cast(&e.data_type, p)?, e.nullable))))
        }
        (_, Param::Array | Param::ArrayOf(_) | Param::Map | Param::Struct | Param::Any | Param::Ordered) => None,
        // Integral takes no fraction: cutting it off has to be said.
        (_, Param::Integral) => None,
        (T::String, p) => Some(default_of(p)),
        (t, p) => {
            let target = default_of(p);
            ansi_assign(t, &target).then_some(target)
        }
    }
}

/// How a parameter's class is called in messages, as Spark writes it.
pub fn param_name(p: &Param) -> String {
    match p {
        Param::Integral => "INTEGRAL".into(),
        Param::Numeric => "NUMERIC".into(),
        Param::Decimal => "DECIMAL".into(),
        Param::AnyTimestamp => "(TIMESTAMP OR TIMESTAMP WITHOUT TIME ZONE)".into(),
        Param::Array => "ARRAY".into(),
        Param::ArrayOf(p) => format!("ARRAY<{}>", param_name(p)),
        Param::Map => "MAP".into(),
        Param::Struct => "STRUCT".into(),
        Param::Any => "ANY".into(),
        Param::Ordered => "ORDERABLE".into(),
        Param::Lambda => "LAMBDA".into(),
        Param::Exactly(p) => param_name(p),
        Param::OneOf(ps) => format!("({})", ps.iter().map(param_name).collect::<Vec<_>>().join(" OR ")),
        p => default_of(p).to_string(),
    }
}
