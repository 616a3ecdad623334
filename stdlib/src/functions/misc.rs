//! Functions about types, the session and the run: `typeof`, `version`, `uuid`, `assert_true`, `raise_error`,
//! `current_user`, `monotonically_increasing_id`, `batch_id`.

use arrow::array::new_null_array;
use arrow::datatypes::Int64Type;
use ssql_ir::DataType as T;

use super::random::XorShift;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar("typeof", &[Param::Any], Ret::String, |c| {
        let name = type_name(c.types[0]);
        c.strs(|_| Ok(Some(name.as_str())))
    })
    .nulls(NullRule::Never)
    .doc("Name of the value's type.", "typeof(expr)", "typeof(1)"),
    scalar("version", &[], Ret::String, |c| c.strs(|_| Ok(Some(env!("CARGO_PKG_VERSION"))))).doc(
        "Version of this engine.",
        "version()",
        "",
    ),
    scalar("uuid", &[], Ret::String, uuid).volatile().doc("A random UUID of version 4.", "uuid()", ""),
    scalar_with("assert_true", assert_type, assert_true).nulls(NullRule::Any).doc(
        "NULL if the condition is true, else the error USER_RAISED_EXCEPTION with the message.",
        "assert_true(condition[, message])",
        "assert_true(1 < 2)",
    ),
    scalar_with("raise_error", raise_type, raise_error).nulls(NullRule::Any).doc(
        "The error USER_RAISED_EXCEPTION with the message.",
        "raise_error(message)",
        "",
    ),
    scalar("current_user", &[], Ret::String, |c| c.strs(|_| Ok(Some(c.ctx.user.as_str()))))
        .aliases(&["user", "session_user"])
        .volatile()
        .doc("Name of the user who runs the statement.", "current_user()", ""),
    scalar("monotonically_increasing_id", &[], Ret::BigInt, |c| {
        c.primitive_all::<Int64Type>(|r| c.ctx.first_row.wrapping_add(r as u64) as i64)
    })
    .volatile()
    .doc("Number of the row, growing.", "monotonically_increasing_id()", ""),
    scalar("batch_id", &[], Ret::BigInt, |c| c.primitive_all::<Int64Type>(|_| c.ctx.batch_id)).volatile().doc(
        "Number of the micro-batch.",
        "batch_id()",
        "",
    ),
    scalar("input_file_name", &[], Ret::String, |c| c.strs(|_| Ok(Some("")))).volatile().doc(
        "Empty: rows do not keep the name of the file they were read from.",
        "input_file_name()",
        "",
    ),
];

/// A type as Spark's `typeof` shows it: `array<struct<a:int>>`.
fn type_name(t: &T) -> String {
    match t {
        T::Null => "void".into(),
        T::Array(e) => format!("array<{}>", type_name(&e.data_type)),
        T::Map(k, v) => format!("map<{},{}>", type_name(&k.data_type), type_name(&v.data_type)),
        T::Struct(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|f| format!("{}:{}", f.name, type_name(&f.data_type))).collect();
            format!("struct<{}>", fields.join(","))
        }
        t => t.to_string().to_ascii_lowercase(),
    }
}

fn uuid(c: &Call<'_>) -> EvalResult {
    let mut source = XorShift::new(super::random::seed(c, 0));
    // Four draws a row, so that a row's value does not depend on its batch.
    source.jump(c.ctx.first_row.wrapping_mul(4));
    c.strings(|_, out| {
        let bits = |v: f64| (v * (1u64 << 53) as f64) as u64;
        let (high, low) = (bits(source.next_double()), bits(source.next_double()));
        let bytes =
            (u128::from(high) << 75 ^ u128::from(low) << 22 ^ u128::from(high) << 11 ^ u128::from(low)).to_be_bytes();
        let id = ::uuid::Builder::from_random_bytes(bytes).into_uuid();
        out.push_str(id.as_hyphenated().encode_lower(&mut ::uuid::Uuid::encode_buffer()));
        Ok(true)
    })
}

fn assert_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    Ok(Typed::new(c.fixed(&[Param::Exactly(&Param::Boolean), Param::String], 1, false)?, T::Null))
}

fn raise_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    Ok(Typed::new(c.fixed(&[Param::String], 0, false)?, T::Null))
}

fn raised(message: &str) -> EvalError {
    EvalError::new("USER_RAISED_EXCEPTION", message)
}

fn assert_true(c: &Call<'_>) -> EvalResult {
    let condition = c.bool(0);
    for r in 0..c.rows {
        if condition.opt(r) == Some(true) {
            continue;
        }
        let shown = if condition.is_null(r) { "NULL" } else { "false" };
        let error = match (c.len() == 2).then(|| c.str(1)) {
            Some(message) => raised(message.opt(r).unwrap_or("null")),
            None => raised(&format!("'{shown}' is not true!")),
        };
        return Err(error.at_row(r));
    }
    Ok(new_null_array(&arrow::datatypes::DataType::Null, c.rows))
}

fn raise_error(c: &Call<'_>) -> EvalResult {
    if c.rows == 0 {
        return Ok(c.all_null());
    }
    Err(raised(c.str(0).opt(0).unwrap_or("null")).at_row(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvalContext;
    use crate::testing::{boolean, decimal, eval, expr, int, null, null_of, seconds, show_in, str};

    #[test]
    fn names_of_types() {
        let name = |a: crate::testing::Arg| eval("typeof", &[a]);
        assert_eq!(name(int(1)), "int");
        assert_eq!(name(decimal("1.5")), "decimal(2,1)");
        assert_eq!(name(null()), "void");
        assert_eq!(name(null_of(T::array(T::Int32))), "array<int>");
        assert_eq!(name(null_of(T::map(T::String, T::Int64))), "map<string,bigint>");
        assert_eq!(name(seconds(1)), "interval day to second");
    }

    #[test]
    fn errors_on_purpose() {
        assert_eq!(eval("assert_true", &[boolean(true)]), "NULL");
        assert_eq!(eval("assert_true", &[boolean(false)]), "!USER_RAISED_EXCEPTION");
        assert_eq!(eval("assert_true", &[null(), str("why")]), "!USER_RAISED_EXCEPTION");
        assert_eq!(eval("raise_error", &[str("x")]), "!USER_RAISED_EXCEPTION");
    }

    #[test]
    fn facts_of_the_run() {
        let ctx = EvalContext { batch_id: 3, first_row: 7, user: "ada".into(), ..EvalContext::default() };
        let show = |name: &str| show_in(&expr(name, &[]), &ctx);
        assert_eq!(show("batch_id"), "3");
        assert_eq!(show("monotonically_increasing_id"), "7");
        assert_eq!(show("session_user"), "ada");
        assert_eq!(show("input_file_name"), "");
        let (a, b) = (show("uuid"), show_in(&expr("uuid", &[]), &EvalContext { first_row: 8, ..ctx.clone() }));
        assert_eq!((a.len(), &a[14..15]), (36, "4"));
        assert_ne!(a, b);
    }
}
