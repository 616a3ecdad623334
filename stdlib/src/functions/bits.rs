//! Functions over bits: shifts, `bit_count`, `getbit`.

use arrow::datatypes::{Int8Type, Int32Type, Int64Type};
use ssql_ir::DataType as T;

use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] =
    &[
        scalar_with("shiftleft", shift_type, |c| shift(c, |v, n| v << n, |v, n| v << n)).aliases(&["<<"]).doc(
            "Bits moved up; the number of places counts modulo the width.",
            "shiftleft(value, n) | value << n",
            "shiftleft(1, 4)",
        ),
        scalar_with("shiftright", shift_type, |c| shift(c, |v, n| v >> n, |v, n| v >> n)).aliases(&[">>"]).doc(
            "Bits moved down, the sign kept.",
            "shiftright(value, n) | value >> n",
            "shiftright(-16, 2)",
        ),
        scalar_with("shiftrightunsigned", shift_type, |c| {
            shift(c, |v, n| (v as u32 >> n) as i32, |v, n| (v as u64 >> n) as i64)
        })
        .aliases(&[">>>"])
        .doc(
            "Bits moved down, zeros following.",
            "shiftrightunsigned(value, n) | value >>> n",
            "shiftrightunsigned(-1, 28)",
        ),
        scalar_with("bit_count", bit_count_type, bit_count).doc(
            "Number of bits set, of a negative number in 64 bits.",
            "bit_count(value)",
            "bit_count(255)",
        ),
        scalar("getbit", &[Param::Exactly(&Param::Integral), Param::Int], Ret::TinyInt, getbit)
            .aliases(&["bit_get"])
            .doc("The bit at a position, counted from 0 at the lowest.", "getbit(value, position)", "getbit(5, 2)"),
    ];

/// An integer or a BOOLEAN; a text is not read as one.
fn bit_count_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    if *c.ty(0) == T::String {
        return Err(c.mismatch(0, "(INTEGRAL OR BOOLEAN)"));
    }
    Ok(Typed::new(vec![c.coerce(0, Param::OneOf(&[Param::Integral, Param::Boolean]))?], T::Int32))
}

fn shift_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let value = match c.ty(0) {
        T::Int64 => T::Int64,
        _ => c.coerce(0, Param::Int)?,
    };
    Ok(Typed::new(vec![value.clone(), c.coerce(1, Param::Int)?], value))
}

fn shift(c: &Call<'_>, narrow: fn(i32, u32) -> i32, wide: fn(i64, u32) -> i64) -> EvalResult {
    let n = c.i32(1);
    if *c.types[0] == T::Int32 {
        let v = c.i32(0);
        return c.primitive_all::<Int32Type>(|r| narrow(v.get(r), n.get(r) as u32 & 31));
    }
    let v = c.i64(0);
    c.primitive_all::<Int64Type>(|r| wide(v.get(r), n.get(r) as u32 & 63))
}

/// An integer argument widened with its sign.
fn wide<'a>(c: &'a Call<'_>, i: usize) -> Result<Box<dyn Fn(usize) -> i64 + 'a>, EvalError> {
    Ok(match c.types[i] {
        T::Boolean => {
            let v = c.bool(i);
            Box::new(move |r| v.get(r).into())
        }
        T::Int8 => {
            let v = c.i8(i);
            Box::new(move |r| v.get(r).into())
        }
        T::Int16 => {
            let v = c.i16(i);
            Box::new(move |r| v.get(r).into())
        }
        T::Int32 => {
            let v = c.i32(i);
            Box::new(move |r| v.get(r).into())
        }
        T::Int64 => {
            let v = c.i64(i);
            Box::new(move |r| v.get(r))
        }
        t => return Err(EvalError::internal(format!("bits of {t}"))),
    })
}

fn bit_count(c: &Call<'_>) -> EvalResult {
    let v = wide(c, 0)?;
    c.primitive_all::<Int32Type>(|r| v(r).count_ones() as i32)
}

fn getbit(c: &Call<'_>) -> EvalResult {
    let (v, position) = (wide(c, 0)?, c.i32(1));
    let width = match c.types[0] {
        T::Int8 => 8,
        T::Int16 => 16,
        T::Int32 => 32,
        _ => 64,
    };
    c.primitive::<Int8Type>(|r| {
        let p = position.get(r);
        if !(0..width).contains(&p) {
            return Err(EvalError::new(
                "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
                format!("The bit position of {} is 0 to {}, not {p}.", c.types[0], width - 1),
            ));
        }
        Ok(Some((v(r) >> p & 1) as i8))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{bigint, boolean, decimal, eval, int, null, str, tinyint};

    #[test]
    fn shifts() {
        assert_eq!(eval("shiftleft", &[tinyint(1), int(4)]), "16");
        assert_eq!(eval("<<", &[int(1), int(33)]), "2");
        assert_eq!(eval(">>", &[int(-16), int(2)]), "-4");
        assert_eq!(eval("shiftright", &[bigint(-16), int(65)]), "-8");
        assert_eq!(eval(">>>", &[int(-1), int(28)]), "15");
        assert_eq!(eval("shiftrightunsigned", &[bigint(-1), int(60)]), "15");
        assert_eq!(eval("shiftleft", &[bigint(1), str("2")]), "4");
        assert_eq!(eval("shiftleft", &[null(), int(1)]), "NULL");
    }

    #[test]
    fn bits() {
        assert_eq!(eval("bit_count", &[boolean(true)]), "1");
        assert_eq!(eval("bit_count", &[tinyint(-1)]), "64");
        assert_eq!(eval("bit_count", &[decimal("1.5")]), "!DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
        assert_eq!(eval("getbit", &[int(5), int(2)]), "1");
        assert_eq!(eval("bit_get", &[bigint(-1), int(63)]), "1");
        assert_eq!(eval("getbit", &[int(-1), int(31)]), "1");
        assert_eq!(eval("getbit", &[int(5), int(32)]), "!INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE");
        assert_eq!(eval("getbit", &[int(5), int(-1)]), "!INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE");
    }
}
