//! Structs built.

use std::sync::Arc;

use arrow::array::StructArray;
use ssql_ir::{DataType as T, Field, Literal};

use super::lists::adapt;
use crate::arrow::arrow_field;
use crate::call::{Call, EvalResult};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("named_struct", named_type, build).nulls(NullRule::Never).doc(
        "A struct of the arguments, constant names and values in turn.",
        "named_struct(name, value, ...)",
        "named_struct('a', 1, 'b', 'x')",
    ),
    scalar_with("struct", unnamed_type, build).nulls(NullRule::Never).doc(
        "A struct of the arguments; what has no name of its own is `col1`, `col2`, ...",
        "struct(a, b, ...)",
        "struct(1, 'x')",
    ),
];

fn named_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    if c.is_empty() || !c.len().is_multiple_of(2) {
        return Err(ResolveError::new(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            format!("`named_struct` requires 2n (n > 0) parameters but the actual number is {}.", c.len()),
        ));
    }
    let mut types = vec![];
    let mut fields = vec![];
    for i in (0..c.len()).step_by(2) {
        let Some(Literal::String(name)) = c.literal(i) else {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING",
                "`named_struct` takes constant texts as names.",
            )
            .at_arg(i));
        };
        fields.push(Field::new(name, c.ty(i + 1).clone(), c.args[i + 1].nullable));
        types.extend([T::String, c.ty(i + 1).clone()]);
    }
    Ok(Typed::new(types, T::Struct(fields)).nullable(false))
}

fn unnamed_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, usize::MAX)?;
    let field = |i: usize| Field::new(format!("col{}", i + 1), c.ty(i).clone(), c.args[i].nullable);
    let types = c.args.iter().map(|a| a.data_type.clone()).collect();
    Ok(Typed::new(types, T::Struct((0..c.len()).map(field).collect())).nullable(false))
}

/// `named_struct` and `struct`, told apart by name. Names and nullability are those of the call's type.
fn build(c: &Call<'_>) -> EvalResult {
    let T::Struct(fields) = c.data_type else { return Err(EvalError::internal("a struct")) };
    let place = |i: usize| if c.name == "struct" { i } else { 2 * i + 1 };
    let columns = fields
        .iter()
        .enumerate()
        .map(|(i, f)| adapt(c.column(place(i))?, &f.data_type))
        .collect::<Result<Vec<_>, _>>()?;
    let fields: Vec<_> = fields.iter().map(arrow_field).collect();
    Ok(Arc::new(StructArray::try_new(fields.into(), columns, None)?))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    #[test]
    fn building() {
        assert_eq!(eval("named_struct", &[str("a"), int(1), str("b"), null()]), "{1, null}");
        assert_eq!(type_of("named_struct", &[str("k"), null()]), "STRUCT<k: VOID>");
        assert_eq!(eval("struct", &[int(1), str("x")]), "{1, x}");
        assert_eq!(type_of("struct", &[int(1), str("x")]), "STRUCT<col1: INT NOT NULL, col2: STRING NOT NULL>");
        assert_eq!(eval("named_struct", &[str("a"), int(1), str("b")]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
        assert_eq!(
            eval("named_struct", &[int(1), int(1)]),
            "!DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING"
        );
    }
}
