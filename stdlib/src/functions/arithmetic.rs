//! Arithmetic operators and their `try_` forms: typing for all operand types, evaluation for integers and floats.
//! Decimals are evaluated in [`super::decimal`], dates, timestamps and intervals in [`super::datetime_arithmetic`].
//!
//! ANSI: a result that does not fit, and a division by zero, are errors. NULL beside zero is NULL: the zero is looked at
//! only where both sides are there.

use std::sync::Arc;

use arrow::array::{ArrowPrimitiveType, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{ArrowNativeType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use ssql_ir::DataType as T;

use super::{datetime_arithmetic as datetime, decimal};
use crate::arrow::arrow_type;
use crate::call::{Call, EvalResult, Fixed, zip_each, zip_with};
use crate::coercion::{common_type, decimal_for, decimal_for_literal, implicit_cast, is_atomic};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[
        scalar_with("+", add_type, |c| binary(c, Op::Add, false)).doc("Sum.", "a + b", "1 + 2"),
        scalar_with("-", subtract_type, |c| binary(c, Op::Subtract, false)).doc("Difference.", "a - b", "3 - 1"),
        scalar_with("*", multiply_type, |c| binary(c, Op::Multiply, false)).doc("Product.", "a * b", "2 * 3"),
        scalar_with("/", divide_type, |c| binary(c, Op::Divide, false)).doc(
            "Quotient, as DOUBLE or DECIMAL.",
            "a / b",
            "7 / 2",
        ),
        scalar_with("div", integral_divide_type, |c| binary(c, Op::IntegralDivide, false)).doc(
            "Quotient cut off to a whole number, as BIGINT.",
            "a div b",
            "7 div 2",
        ),
        scalar_with("%", remainder_type, |c| binary(c, Op::Remainder, false)).aliases(&["mod"]).doc(
            "Remainder with the sign of the dividend.",
            "a % b",
            "7 % 2",
        ),
        scalar_with("pmod", remainder_type, |c| binary(c, Op::PositiveModulo, false)).doc(
            "Remainder that is never negative for a positive divisor.",
            "pmod(a, b)",
            "pmod(-7, 3)",
        ),
        scalar_with("try_add", add_type, |c| binary(c, Op::Add, true)).nulls(NullRule::StrictNullable).doc(
            "Sum, NULL where it does not fit.",
            "try_add(a, b)",
            "try_add(2147483647, 1)",
        ),
        scalar_with("try_subtract", subtract_type, |c| binary(c, Op::Subtract, true))
            .nulls(NullRule::StrictNullable)
            .doc("Difference, NULL where it does not fit.", "try_subtract(a, b)", "try_subtract(-2147483648, 1)"),
        scalar_with("try_multiply", multiply_type, |c| binary(c, Op::Multiply, true))
            .nulls(NullRule::StrictNullable)
            .doc("Product, NULL where it does not fit.", "try_multiply(a, b)", "try_multiply(65536, 65536)"),
        scalar_with("try_divide", divide_type, |c| binary(c, Op::Divide, true)).nulls(NullRule::StrictNullable).doc(
            "Quotient, NULL where the divisor is 0.",
            "try_divide(a, b)",
            "try_divide(1, 0)",
        ),
        scalar_with("try_mod", remainder_type, |c| binary(c, Op::Remainder, true)).nulls(NullRule::StrictNullable).doc(
            "Remainder, NULL where the divisor is 0.",
            "try_mod(a, b)",
            "try_mod(7, 0)",
        ),
        scalar_with("negative", sign_type, negative).doc("The number or interval negated.", "- a", "-(1)"),
        scalar_with("positive", sign_type, |c| c.column(0)).doc("The number or interval itself.", "+ a", "+1"),
        scalar_with("abs", sign_type, abs).doc("Absolute value of a number or interval.", "abs(a)", "abs(-1)"),
    ];

/// The operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `div`
    IntegralDivide,
    /// `%`
    Remainder,
    /// `pmod`
    PositiveModulo,
}

impl Op {
    /// What the result is called in messages.
    pub fn result_name(self) -> &'static str {
        match self {
            Op::Add => "The sum",
            Op::Subtract => "The difference",
            Op::Multiply => "The product",
            Op::Divide | Op::IntegralDivide => "The quotient",
            Op::Remainder | Op::PositiveModulo => "The remainder",
        }
    }

    /// The function that gives NULL instead of the error.
    pub fn tried(self) -> &'static str {
        match self {
            Op::Add => "try_add",
            Op::Subtract => "try_subtract",
            Op::Multiply => "try_multiply",
            Op::Divide | Op::IntegralDivide => "try_divide",
            Op::Remainder | Op::PositiveModulo => "try_mod",
        }
    }

    /// The error for a divisor of zero.
    pub fn zero_error(self) -> EvalError {
        match self {
            Op::Remainder | Op::PositiveModulo => EvalError::remainder_by_zero(),
            _ => EvalError::divide_by_zero(),
        }
    }
}

fn different(c: &TypeCall<'_>) -> ResolveError {
    ResolveError::new(
        "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        format!("The left and right operands of `{}` have incompatible types ({} and {}).", c.name, c.ty(0), c.ty(1)),
    )
}

fn wrong_type(c: &TypeCall<'_>, required: &str, actual: &T) -> ResolveError {
    ResolveError::new(
        "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
        format!("`{}` requires {required} operands, not {actual}.", c.name),
    )
}

/// Types both operands of a numeric operation: one type for both, or two DECIMALs, whose result type each operation
/// computes itself.
fn numeric_operands(c: &TypeCall<'_>) -> Result<(T, T), ResolveError> {
    let (a, b) = (c.ty(0), c.ty(1));
    // A string beside a number becomes a number; two strings do not.
    let promoted = |own: &T, other: &T| match own {
        T::String => implicit_cast(own, if other.is_integer() { &Param::BigInt } else { &Param::Double }),
        T::Null if other.is_numeric() => Some(other.clone()),
        own if own.is_numeric() => Some(own.clone()),
        _ => None,
    };
    if *a == T::Null && *b == T::Null {
        return Ok((T::Float64, T::Float64));
    }
    // A text takes the type beside it; where that is no number, both operands are of a wrong type.
    let read_as = match (a, b) {
        (T::String, T::Null) | (T::Null, T::String) => Some(&T::String),
        (T::String, t) | (t, T::String) if is_atomic(t) && !datetime::is_interval(t) => Some(t),
        (a, b) => (a == b).then_some(a),
    };
    if let Some(t) = read_as.filter(|t| !t.is_numeric()) {
        return Err(wrong_type(c, "numeric or interval", t));
    }
    let (Some(mut left), Some(mut right)) = (
        if b.is_numeric() || a.is_numeric() { promoted(a, b) } else { None },
        if b.is_numeric() || a.is_numeric() { promoted(b, a) } else { None },
    ) else {
        return Err(different(c));
    };
    if matches!(left, T::Decimal(..)) || matches!(right, T::Decimal(..)) {
        if left.is_float() || right.is_float() {
            return Ok((T::Float64, T::Float64));
        }
        for (i, t) in [&mut left, &mut right].into_iter().enumerate() {
            if t.is_integer() {
                // A constant takes the digits that it has, a column those that its type may need.
                let (p, s) =
                    c.literal(i).and_then(decimal_for_literal).or(decimal_for(t)).expect("integers have a decimal");
                *t = T::Decimal(p, s);
            }
        }
        return Ok((left, right));
    }
    let wide = common_type(&left, &right).ok_or_else(|| different(c))?;
    Ok((wide.clone(), wide))
}

fn numeric(c: &TypeCall<'_>, of_decimals: fn((u8, u8), (u8, u8)) -> T) -> Result<Typed, ResolveError> {
    let (left, right) = numeric_operands(c)?;
    let result = match (&left, &right) {
        (T::Decimal(p1, s1), T::Decimal(p2, s2)) => of_decimals((*p1, *s1), (*p2, *s2)),
        _ => left.clone(),
    };
    Ok(Typed::new(vec![left, right], result))
}

fn add_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    match datetime::add_type(c)? {
        Some(typed) => Ok(typed),
        None => numeric(c, decimal::add_type),
    }
}

/// `-` with one operand is [`negative`] and is resolved under that name.
fn subtract_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    match datetime::subtract_type(c)? {
        Some(typed) => Ok(typed),
        None => numeric(c, decimal::add_type),
    }
}

fn multiply_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    match datetime::multiply_type(c)? {
        Some(typed) => Ok(typed),
        None => numeric(c, decimal::multiply_type),
    }
}

fn divide_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if let Some(typed) = datetime::divide_type(c)? {
        return Ok(typed);
    }
    let (left, right) = numeric_operands(c)?;
    // An untyped NULL as the dividend makes a quotient of doubles, as in Spark.
    let untyped = *c.ty(0) == T::Null;
    Ok(match (&left, &right) {
        (T::Decimal(p1, s1), T::Decimal(p2, s2)) if !untyped => {
            let result = decimal::divide_type((*p1, *s1), (*p2, *s2));
            Typed::new(vec![left, right], result)
        }
        _ => Typed::new(vec![T::Float64, T::Float64], T::Float64),
    })
}

fn integral_divide_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if let Some(typed) = datetime::integral_divide_type(c) {
        return Ok(typed);
    }
    let (left, right) = numeric_operands(c)?;
    if left.is_float() {
        let same = c.ty(0) == c.ty(1);
        return Err(if same { wrong_type(c, "integral, DECIMAL or interval", &left) } else { different(c) });
    }
    if matches!(left, T::Decimal(..)) {
        return Ok(Typed::new(vec![left, right], T::Int64));
    }
    Ok(Typed::new(vec![T::Int64, T::Int64], T::Int64))
}

fn remainder_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    numeric(c, decimal::remainder_type)
}

fn sign_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let t = c.coerce(0, Param::OneOf(&[Param::Numeric, Param::DayTime, Param::YearMonth]))?;
    // Text is read as DOUBLE here whatever it looks like.
    let t = if *c.ty(0) == T::String { T::Float64 } else { t };
    Ok(Typed::new(vec![t.clone()], t))
}

/// Evaluates an arithmetic operation over operands of any type that its typing allows; `tried` gives NULL for an error.
pub fn binary(c: &Call<'_>, op: Op, tried: bool) -> EvalResult {
    match (c.types[0], c.types[1]) {
        (T::Int8, T::Int8) => integers::<Int8Type>(c, op, tried),
        (T::Int16, T::Int16) => integers::<Int16Type>(c, op, tried),
        (T::Int32, T::Int32) => integers::<Int32Type>(c, op, tried),
        (T::Int64, T::Int64) => integers::<Int64Type>(c, op, tried),
        (T::Float32, T::Float32) => floats::<Float32Type>(c, op, tried),
        (T::Float64, T::Float64) => floats::<Float64Type>(c, op, tried),
        (T::Decimal(..), T::Decimal(..)) => decimal::binary(c, op, tried),
        _ => datetime::binary(c, op, tried),
    }
}

/// Finishes a result whose loop ran over all rows and marked failures: rows that fail *and* count are an error, or NULL
/// if `tried`.
pub(super) fn finish<P: ArrowPrimitiveType>(
    c: &Call<'_>,
    values: Vec<P::Native>,
    any_failed: bool,
    tried: bool,
    failed: impl Fn(usize) -> Option<EvalError>,
) -> EvalResult {
    let mut nulls = c.valid();
    if any_failed {
        let counts = |row: usize| nulls.as_ref().is_none_or(|n| n.is_valid(row));
        if tried {
            let fine = BooleanBuffer::collect_bool(c.rows, |row| counts(row) && failed(row).is_none());
            nulls = Some(NullBuffer::new(fine));
        } else if let Some((row, e)) = (0..c.rows).filter(|r| counts(*r)).find_map(|r| Some((r, failed(r)?))) {
            return Err(e.at_row(row));
        }
    }
    Ok(Arc::new(PrimitiveArray::<P>::new(values.into(), nulls).with_data_type(arrow_type(c.data_type))))
}

/// What the integer loops need of a width.
pub(super) trait Integer: Copy + PartialOrd + Default {
    const MINUS_ONE: Self;
    fn add(self, b: Self) -> (Self, bool);
    fn subtract(self, b: Self) -> (Self, bool);
    fn multiply(self, b: Self) -> (Self, bool);
    fn divide(self, b: Self) -> Self;
    fn remainder(self, b: Self) -> Self;
    fn positive_modulo(self, b: Self) -> Self;
    fn is_min(self) -> bool;
    /// Negative where the sum `r` of these does not fit: the signs of both operands differ from the result's.
    fn sum_overflow(self, b: Self, r: Self) -> Self;
    /// Negative where the difference `r` of these does not fit.
    fn difference_overflow(self, b: Self, r: Self) -> Self;
    /// `self | b`.
    fn or(self, b: Self) -> Self;
}

macro_rules! integer {
    ($($t:ty)*) => {$(
        impl Integer for $t {
            const MINUS_ONE: Self = -1;
            #[inline] fn add(self, b: Self) -> (Self, bool) { self.overflowing_add(b) }
            #[inline] fn subtract(self, b: Self) -> (Self, bool) { self.overflowing_sub(b) }
            #[inline] fn multiply(self, b: Self) -> (Self, bool) { self.overflowing_mul(b) }
            #[inline] fn divide(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_div(b) } }
            #[inline] fn remainder(self, b: Self) -> Self { if b == 0 { 0 } else { self.wrapping_rem(b) } }
            // Spark's rule: r < 0 ? (r + n) % n : r, in the type's own wrapping arithmetic.
            #[inline] fn positive_modulo(self, b: Self) -> Self {
                let r = self.remainder(b);
                if r < 0 { r.wrapping_add(b).remainder(b) } else { r }
            }
            #[inline] fn is_min(self) -> bool { self == <$t>::MIN }
            #[inline] fn sum_overflow(self, b: Self, r: Self) -> Self { (self ^ r) & (b ^ r) }
            #[inline] fn difference_overflow(self, b: Self, r: Self) -> Self { (self ^ b) & (self ^ r) }
            #[inline] fn or(self, b: Self) -> Self { self | b }
        }
    )*};
}
integer!(i8 i16 i32 i64);

/// A loop over both operands that notes whether any result did not fit.
#[inline]
fn overflowing<P: ArrowPrimitiveType>(
    a: &Fixed<'_, P>,
    b: &Fixed<'_, P>,
    rows: usize,
    bad: &mut bool,
    f: impl Fn(P::Native, P::Native) -> (P::Native, bool),
) -> Vec<P::Native> {
    let mut any = false;
    let values = zip_with(a, b, rows, |x, y| {
        let (v, o) = f(x, y);
        any |= o;
        v
    });
    *bad = any;
    values
}

/// A loop over both operands that notes whether any result did not fit by the signs of operands and results: no branch
/// and no flag, so that it vectorises.
#[inline]
fn checked<P: ArrowPrimitiveType>(
    a: &Fixed<'_, P>,
    b: &Fixed<'_, P>,
    rows: usize,
    bad: &mut bool,
    wrapping: impl Fn(P::Native, P::Native) -> P::Native,
    overflow: impl Fn(P::Native, P::Native, P::Native) -> P::Native,
) -> Vec<P::Native>
where
    P::Native: Integer,
{
    let values = zip_with(a, b, rows, &wrapping);
    let mut signs = P::Native::default();
    zip_each(a, b, rows, |x, y| signs = signs.or(overflow(x, y, wrapping(x, y))));
    *bad = signs < P::Native::default();
    values
}

fn integers<P: ArrowPrimitiveType>(c: &Call<'_>, op: Op, tried: bool) -> EvalResult
where
    P::Native: Integer,
{
    let (a, b) = (c.fixed::<P>(0), c.fixed::<P>(1));
    let mut bad = false;
    let zero = P::Native::default();
    let values = match op {
        Op::Add => checked(&a, &b, c.rows, &mut bad, |x, y| x.add(y).0, Integer::sum_overflow),
        Op::Subtract => checked(&a, &b, c.rows, &mut bad, |x, y| x.subtract(y).0, Integer::difference_overflow),
        Op::Multiply => overflowing(&a, &b, c.rows, &mut bad, Integer::multiply),
        Op::Divide | Op::IntegralDivide => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero || (y == P::Native::MINUS_ONE && x.is_min());
            x.divide(y)
        }),
        Op::Remainder => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero;
            x.remainder(y)
        }),
        Op::PositiveModulo => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero;
            x.positive_modulo(y)
        }),
    };
    finish::<P>(c, values, bad, tried, |row| {
        let (x, y) = (a.get(row), b.get(row));
        let overflows = match op {
            Op::Add => x.add(y).1,
            Op::Subtract => x.subtract(y).1,
            Op::Multiply => x.multiply(y).1,
            _ if y == zero => return Some(op.zero_error()),
            Op::Divide | Op::IntegralDivide => y == P::Native::MINUS_ONE && x.is_min(),
            _ => false,
        };
        overflows.then(|| EvalError::overflow(op.result_name(), c.data_type, op.tried()))
    })
}

fn floats<P: ArrowPrimitiveType>(c: &Call<'_>, op: Op, tried: bool) -> EvalResult
where
    P::Native: std::ops::Add<Output = P::Native>
        + std::ops::Sub<Output = P::Native>
        + std::ops::Mul<Output = P::Native>
        + std::ops::Div<Output = P::Native>
        + std::ops::Rem<Output = P::Native>
        + PartialOrd,
{
    let (a, b) = (c.fixed::<P>(0), c.fixed::<P>(1));
    let zero = P::Native::usize_as(0);
    let mut bad = false;
    let values = match op {
        Op::Add => zip_with(&a, &b, c.rows, |x, y| x + y),
        Op::Subtract => zip_with(&a, &b, c.rows, |x, y| x - y),
        Op::Multiply => zip_with(&a, &b, c.rows, |x, y| x * y),
        Op::Divide | Op::IntegralDivide => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero;
            x / y
        }),
        Op::Remainder => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero;
            x % y
        }),
        Op::PositiveModulo => zip_with(&a, &b, c.rows, |x, y| {
            bad |= y == zero;
            let r = x % y;
            if r < zero { (r + y) % y } else { r }
        }),
    };
    finish::<P>(c, values, bad, tried, |row| (b.get(row) == zero).then(|| op.zero_error()))
}

fn negative(c: &Call<'_>) -> EvalResult {
    sign(c, "The negated value")
}

fn abs(c: &Call<'_>) -> EvalResult {
    sign(c, "The absolute value")
}

/// `negative` and `abs`, told apart by name.
fn sign(c: &Call<'_>, what: &str) -> EvalResult {
    use arrow::datatypes::{Decimal128Type, DurationMicrosecondType, IntervalYearMonthType};
    let absolute = c.name == "abs";
    macro_rules! integer {
        ($t:ty) => {{
            let a = c.fixed::<$t>(0);
            let mut bad = false;
            let values: Vec<_> = (0..c.rows)
                .map(|row| {
                    let v = a.get(row);
                    bad |= v.is_min();
                    if absolute && v > 0 { v } else { v.wrapping_neg() }
                })
                .collect();
            finish::<$t>(c, values, bad, false, |row| {
                a.get(row).is_min().then(|| EvalError::overflow(what, c.data_type, ""))
            })
        }};
    }
    match c.types[0] {
        T::Int8 => integer!(Int8Type),
        T::Int16 => integer!(Int16Type),
        T::Int32 => integer!(Int32Type),
        T::Int64 => integer!(Int64Type),
        T::DayTimeInterval(..) => integer!(DurationMicrosecondType),
        T::YearMonthInterval(..) => integer!(IntervalYearMonthType),
        T::Float32 => {
            let a = c.f32(0);
            c.primitive_all::<Float32Type>(|r| if absolute { a.get(r).abs() } else { -a.get(r) })
        }
        T::Float64 => {
            let a = c.f64(0);
            c.primitive_all::<Float64Type>(|r| if absolute { a.get(r).abs() } else { -a.get(r) })
        }
        T::Decimal(..) => {
            let a = c.decimal(0);
            c.primitive_all::<Decimal128Type>(|r| if absolute { a.get(r).abs() } else { -a.get(r) })
        }
        t => Err(EvalError::internal(format!("`{}` of {t}", c.name))),
    }
}
