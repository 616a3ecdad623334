//! Maps built, combined and laid open. Keys are never NULL and never twice in a map.

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, AsArray, NullBufferBuilder, StringViewBuilder};
use ssql_ir::{DataType as T, Field};

use super::arrays::{array_arg, array_of};
use super::java_regex::Regex;
use super::lists::{key_rows, map_array, pick};
use crate::call::{Call, EvalResult};
use crate::coercion::{common_type_no_strings, common_type_of, is_ordered};
use crate::error::{EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, TEXT, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    scalar_with("map", map_type, map).nulls(NullRule::Never).doc(
        "A map of the arguments, keys and values in turn.",
        "map(key, value, ...)",
        "map('a', 1, 'b', 2)",
    ),
    scalar("map_keys", &[Param::Map], Ret::With(keys_type), keys).doc(
        "The keys of a map.",
        "map_keys(map)",
        "map_keys(map('a', 1))",
    ),
    scalar("map_values", &[Param::Map], Ret::With(values_type), keys).doc(
        "The values of a map.",
        "map_values(map)",
        "map_values(map('a', 1))",
    ),
    scalar("map_entries", &[Param::Map], Ret::With(entries_type), keys).doc(
        "The entries of a map as structs of `key` and `value`.",
        "map_entries(map)",
        "map_entries(map('a', 1))",
    ),
    scalar_with("map_contains_key", contains_type, contains_key).doc(
        "Whether a map has the key.",
        "map_contains_key(map, key)",
        "map_contains_key(map('a', 1), 'a')",
    ),
    scalar_with("map_concat", concat_type, concat).doc(
        "The entries of all maps in one; a key that two of them have is an error.",
        "map_concat(a, b, ...)",
        "map_concat(map('a', 1), map('b', 2))",
    ),
    scalar_with("map_from_arrays", from_arrays_type, from_arrays).doc(
        "A map of an array of keys and an array of as many values.",
        "map_from_arrays(keys, values)",
        "map_from_arrays(array('x'), array(1))",
    ),
    scalar_with("map_from_entries", from_entries_type, from_entries).nulls(NullRule::StrictNullable).doc(
        "A map of an array of structs of key and value; NULL if one of them is NULL.",
        "map_from_entries(entries)",
        "map_from_entries(array(struct('k', 1)))",
    ),
    scalar("str_to_map", &[TEXT, TEXT, TEXT], Ret::With(text_map), str_to_map).optional(2).doc(
        "A map of a text, cut into entries and these into key and value by regular expressions (`,` and `:`).",
        "str_to_map(str[, pair_delim[, key_value_delim]])",
        "str_to_map('a:1,b:2')",
    ),
];

/// The map arguments of a `With` result: its key and value.
fn parts(types: &[T]) -> (Field, Field) {
    match types.first() {
        Some(T::Map(k, v)) => ((**k).clone(), (**v).clone()),
        _ => (Field::new("key", T::Null, false), Field::new("value", T::Null, true)),
    }
}

fn keys_type(types: &[T]) -> T {
    array_of(parts(types).0.data_type, false)
}

fn values_type(types: &[T]) -> T {
    let (_, v) = parts(types);
    array_of(v.data_type, v.nullable)
}

fn entries_type(types: &[T]) -> T {
    let (k, v) = parts(types);
    array_of(
        T::Struct(vec![Field::new("key", k.data_type, false), Field::new("value", v.data_type, v.nullable)]),
        false,
    )
}

fn text_map(_: &[T]) -> T {
    T::map(T::String, T::String)
}

/// `MAP<key, value>`.
pub(super) fn map_of(key: T, value: T, nullable: bool) -> T {
    T::Map(Box::new(Field::new("key", key, false)), Box::new(Field::new("value", value, nullable)))
}

/// A key type has to have an order, which decides whether keys are equal.
pub(super) fn check_key(c: &TypeCall<'_>, key: &T) -> Result<(), ResolveError> {
    if is_ordered(key) {
        return Ok(());
    }
    Err(ResolveError::new(
        "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE",
        format!("The key of a map cannot be of the type {key} in `{}`.", c.name),
    ))
}

/// The error "NULL as a key".
pub(super) fn null_key() -> EvalError {
    EvalError::new("NULL_MAP_KEY", "Cannot use NULL as a map key.")
}

/// The error "the map has keys of another type".
pub(super) fn no_such_key(c: &TypeCall<'_>) -> ResolveError {
    ResolveError::new(
        "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES",
        format!("`{}` takes a map and a key of its type, not {} and {}.", c.name, c.ty(0), c.ty(1)),
    )
    .at_arg(1)
}

/// The error "this key twice".
pub(super) fn duplicate_key(keys: &dyn Array, at: usize) -> EvalError {
    let mut shown = String::new();
    crate::text::CellFormatter::new(keys, jiff::tz::TimeZone::UTC).write(at, &mut shown);
    EvalError::new("DUPLICATED_MAP_KEY", format!("The map key {shown} was found twice."))
}

/// Maps whose entries are picked from sources of keys and of values, with the checks that keys need.
struct Maps {
    keys: Vec<ArrayRef>,
    values: Vec<ArrayRef>,
    key_places: Vec<(usize, usize)>,
    value_places: Vec<(usize, usize)>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Maps {
    fn new(rows: usize, keys: Vec<ArrayRef>, values: Vec<ArrayRef>) -> Maps {
        let nulls = NullBufferBuilder::new(rows);
        Maps { keys, values, key_places: vec![], value_places: vec![], offsets: vec![0], nulls }
    }

    fn push(&mut self, key: (usize, usize), value: (usize, usize)) {
        self.key_places.push(key);
        self.value_places.push(value);
    }

    fn end_row(&mut self, valid: bool) {
        self.offsets.push(self.key_places.len() as i32);
        self.nulls.append(valid);
    }

    fn finish(self, t: &T) -> EvalResult {
        let keys = pick(&self.keys, &self.key_places)?;
        check_keys(&keys, &self.offsets)?;
        map_array(t, self.offsets, keys, pick(&self.values, &self.value_places)?, self.nulls)
    }
}

/// Refuses NULL keys, and a key twice in a row.
pub(super) fn check_keys(keys: &ArrayRef, offsets: &[i32]) -> Result<(), EvalError> {
    if keys.is_empty() {
        return Ok(());
    }
    let nulls = keys.logical_nulls();
    let rows = key_rows(std::slice::from_ref(keys))?;
    let mut seen = AHashSet::new();
    for (row, bounds) in offsets.windows(2).enumerate() {
        seen.clear();
        for i in bounds[0] as usize..bounds[1] as usize {
            if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                return Err(null_key().at_row(row));
            }
            if !seen.insert(rows[0].row(i)) {
                return Err(duplicate_key(keys.as_ref(), i).at_row(row));
            }
        }
    }
    Ok(())
}

fn map_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    if !c.len().is_multiple_of(2) {
        return Err(ResolveError::new(
            "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
            format!("`map` requires 2n (n > 0) parameters but the actual number is {}.", c.len()),
        ));
    }
    let common = |from: usize, condition: &'static str, what: &str| {
        let types: Vec<&T> = (from..c.len()).step_by(2).map(|i| c.ty(i)).collect();
        if types.is_empty() { Some(T::Null) } else { common_type_of(types.iter().copied()) }.ok_or_else(|| {
            let types: Vec<String> = types.iter().map(|t| t.to_string()).collect();
            let message =
                format!("The {what} of `map` should all be of one type, but they are ({}).", types.join(", "));
            ResolveError::new(condition, message)
        })
    };
    let key = common(0, "DATATYPE_MISMATCH.CREATE_MAP_KEY_DIFF_TYPES", "keys")?;
    let value = common(1, "DATATYPE_MISMATCH.CREATE_MAP_VALUE_DIFF_TYPES", "values")?;
    check_key(c, &key)?;
    let nullable = (1..c.len()).step_by(2).any(|i| c.args[i].nullable);
    let types = (0..c.len()).map(|i| if i % 2 == 0 { key.clone() } else { value.clone() }).collect();
    Ok(Typed::new(types, map_of(key, value, nullable)).nullable(false))
}

fn map(c: &Call<'_>) -> EvalResult {
    let nothing = || vec![arrow::array::new_empty_array(&arrow::datatypes::DataType::Null)];
    let every_other = |from: usize| {
        let all: Vec<ArrayRef> = (from..c.len()).step_by(2).map(|i| c.raw(i).clone()).collect();
        if all.is_empty() { nothing() } else { all }
    };
    let mut out = Maps::new(c.rows, every_other(0), every_other(1));
    let place = |i: usize, row: usize| (i / 2, if c.is_constant(i) { 0 } else { row });
    for row in 0..c.rows {
        for i in (0..c.len()).step_by(2) {
            out.push(place(i, row), place(i + 1, row));
        }
        out.end_row(true);
    }
    out.finish(c.data_type)
}

/// `map_keys`, `map_values` and `map_entries`, told apart by name: the map's own parts as lists.
fn keys(c: &Call<'_>) -> EvalResult {
    let column = c.column(0)?;
    let map = column.as_map();
    let values: ArrayRef = match c.name {
        "map_keys" => map.keys().clone(),
        "map_values" => map.values().clone(),
        _ => std::sync::Arc::new(map.entries().clone()),
    };
    let T::Array(element) = c.data_type else { return Err(EvalError::internal("an array")) };
    let values = super::lists::adapt(values, &element.data_type)?;
    let field = std::sync::Arc::new(crate::arrow::arrow_field(element));
    let list = arrow::array::ListArray::try_new(field, map.offsets().clone(), values, map.nulls().cloned())?;
    Ok(std::sync::Arc::new(list))
}

fn contains_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    if *c.ty(1) == T::Null {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.NULL_TYPE",
            format!("Null typed values cannot be used as arguments of `{}`.", c.name),
        )
        .at_arg(1));
    }
    let T::Map(k, v) = c.ty(0) else { return Err(no_such_key(c)) };
    let wide = common_type_no_strings(&k.data_type, c.ty(1)).filter(is_ordered);
    let Some(wide) = wide else { return Err(no_such_key(c)) };
    Ok(Typed::new(vec![map_of(wide.clone(), v.data_type.clone(), v.nullable), wide], T::Boolean))
}

fn contains_key(c: &Call<'_>) -> EvalResult {
    let map = c.map(0);
    let order = crate::compare::comparator(map.keys().as_ref(), c.raw(1).as_ref())?;
    let constant = c.is_constant(1);
    c.booleans(|row| {
        let at = if constant { 0 } else { row };
        Ok(Some(map.range(row).any(|i| order(i, at).is_eq())))
    })
}

fn concat_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    if c.is_empty() {
        return Ok(Typed::new(vec![], map_of(T::String, T::String, false)).nullable(false));
    }
    let maps = c.args.iter().all(|a| matches!(a.data_type, T::Map(..)));
    let Some(T::Map(k, v)) = c.common_no_strings(0).ok().filter(|_| maps) else {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES",
            "The arguments of `map_concat` should all be maps of one type.",
        ));
    };
    check_key(c, &k.data_type)?;
    let t = T::Map(k, v);
    Ok(Typed::new(vec![t.clone(); c.len()], t))
}

fn concat(c: &Call<'_>) -> EvalResult {
    let maps: Vec<_> = (0..c.len()).map(|i| c.map(i)).collect();
    let valid = c.valid();
    let mut out = if maps.is_empty() {
        let nothing = || vec![arrow::array::new_empty_array(&arrow::datatypes::DataType::Utf8View)];
        Maps::new(c.rows, nothing(), nothing())
    } else {
        let keys = maps.iter().map(|m| m.keys().clone()).collect();
        Maps::new(c.rows, keys, maps.iter().map(|m| m.values().clone()).collect())
    };
    for row in 0..c.rows {
        let valid = valid.as_ref().is_none_or(|n| n.is_valid(row));
        if valid {
            for (source, map) in maps.iter().enumerate() {
                map.range(row).for_each(|i| out.push((source, i), (source, i)));
            }
        }
        out.end_row(valid);
    }
    out.finish(c.data_type)
}

fn from_arrays_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(2, 2)?;
    let ((kt, k), (vt, v)) = (array_arg(c, 0)?, array_arg(c, 1)?);
    check_key(c, &k.data_type)?;
    Ok(Typed::new(vec![kt, vt], map_of(k.data_type, v.data_type, v.nullable)))
}

fn from_arrays(c: &Call<'_>) -> EvalResult {
    let (keys, values) = (c.list(0), c.list(1));
    let valid = c.valid();
    let mut out = Maps::new(c.rows, vec![keys.elements().clone()], vec![values.elements().clone()]);
    for row in 0..c.rows {
        let valid = valid.as_ref().is_none_or(|n| n.is_valid(row));
        if valid {
            let (k, v) = (keys.range(row), values.range(row));
            if k.len() != v.len() {
                return Err(EvalError::new(
                    "MAP_KEY_VALUE_DIFF_SIZES",
                    format!("There are {} keys but {} values.", k.len(), v.len()),
                )
                .at_row(row));
            }
            k.zip(v).for_each(|(k, v)| out.push((0, k), (0, v)));
        }
        out.end_row(valid);
    }
    out.finish(c.data_type)
}

fn from_entries_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    let (t, element) = array_arg(c, 0)?;
    let T::Struct(fields) = &element.data_type else { return Err(c.mismatch(0, "ARRAY of pair STRUCT")) };
    let [k, v] = fields.as_slice() else { return Err(c.mismatch(0, "ARRAY of pair STRUCT")) };
    check_key(c, &k.data_type)?;
    let map = map_of(k.data_type.clone(), v.data_type.clone(), v.nullable);
    Ok(Typed::new(vec![t], map).nullable(c.any_nullable() || element.nullable))
}

fn from_entries(c: &Call<'_>) -> EvalResult {
    let list = c.list(0);
    let entries = list.elements().as_struct();
    let mut out = Maps::new(c.rows, vec![entries.column(0).clone()], vec![entries.column(1).clone()]);
    for row in 0..c.rows {
        let valid = !list.is_null(row) && list.range(row).all(|i| entries.is_valid(i));
        if valid {
            list.range(row).for_each(|i| out.push((0, i), (0, i)));
        }
        out.end_row(valid);
    }
    out.finish(c.data_type)
}

fn str_to_map(c: &Call<'_>) -> EvalResult {
    let s = c.str(0);
    let delimiters: Vec<_> = (1..c.len()).map(|i| c.str(i)).collect();
    let mut compiled: Option<(&str, &str, Regex, Regex)> = None;
    let (mut keys, mut values) = (StringViewBuilder::new(), StringViewBuilder::new());
    let (mut offsets, mut n) = (vec![0i32], 0i32);
    let valid = c.valid();
    let mut nulls = NullBufferBuilder::new(c.rows);
    for row in 0..c.rows {
        let valid = valid.as_ref().is_none_or(|n| n.is_valid(row));
        nulls.append(valid);
        if valid {
            let pair = delimiters.first().map_or(",", |d| d.get(row));
            let colon = delimiters.get(1).map_or(":", |d| d.get(row));
            if !matches!(&compiled, Some((p, k, ..)) if *p == pair && *k == colon) {
                compiled = Some((pair, colon, Regex::compile(pair, c.name)?, Regex::compile(colon, c.name)?));
            }
            let Some((_, _, pairs, colons)) = &compiled else { return Err(EvalError::internal("just compiled")) };
            let text = s.get(row);
            let mut entry = |part: &str| -> Result<(), EvalError> {
                match colons.find_at(part, 0)? {
                    Some((a, b)) if b > 0 => {
                        keys.append_value(&part[..a]);
                        values.append_value(&part[b..]);
                    }
                    _ => {
                        keys.append_value(part);
                        values.append_null();
                    }
                }
                n += 1;
                Ok(())
            };
            let mut from = 0;
            pairs.for_each_range(text, |a, b| {
                if b > 0 {
                    entry(&text[from..a])?;
                    from = b;
                }
                Ok(())
            })?;
            entry(&text[from..])?;
        }
        offsets.push(n);
    }
    let keys: ArrayRef = std::sync::Arc::new(keys.finish());
    check_keys(&keys, &offsets)?;
    map_array(c.data_type, offsets, keys, std::sync::Arc::new(values.finish()), nulls)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;

    fn ab() -> Arg {
        expr("map", &[str("a"), int(1), str("b"), int(2)])
    }

    #[test]
    fn building() {
        assert_eq!(eval("map", &[str("a"), int(1), str("b"), null()]), "{a -> 1, b -> null}");
        assert_eq!(eval("map", &[]), "{}");
        assert_eq!(eval("map", &[str("a"), int(1), str("a"), int(2)]), "!DUPLICATED_MAP_KEY");
        assert_eq!(eval("map", &[null(), int(1)]), "!NULL_MAP_KEY");
        assert_eq!(eval("map", &[str("a")]), "!WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
        assert_eq!(eval("map", &[double(0.0), int(1), double(-0.0), int(1)]), "!DUPLICATED_MAP_KEY");
        let (x, y) = (expr("array", &[str("x"), str("y")]), expr("array", &[int(1), null()]));
        assert_eq!(eval("map_from_arrays", &[x.clone(), y]), "{x -> 1, y -> null}");
        assert_eq!(eval("map_from_arrays", &[x, expr("array", &[int(1)])]), "!MAP_KEY_VALUE_DIFF_SIZES");
        let pair = |k: &str, v: i32| expr("struct", &[str(k), int(v)]);
        assert_eq!(eval("map_from_entries", &[expr("array", &[pair("k", 1), pair("l", 2)])]), "{k -> 1, l -> 2}");
        assert_eq!(eval("str_to_map", &[str("a:1,b:2,c")]), "{a -> 1, b -> 2, c -> null}");
        assert_eq!(eval("str_to_map", &[str("a=1&b="), str("&"), str("=")]), "{a -> 1, b -> }");
        assert_eq!(eval("str_to_map", &[str("a:1,a:2")]), "!DUPLICATED_MAP_KEY");
    }

    #[test]
    fn reading() {
        assert_eq!(eval("map_keys", &[ab()]), "[a, b]");
        assert_eq!(eval("map_values", &[ab()]), "[1, 2]");
        assert_eq!(eval("map_entries", &[ab()]), "[{a, 1}, {b, 2}]");
        assert_eq!(eval("element_at", &[ab(), str("b")]), "2");
        assert_eq!(eval("element_at", &[ab(), str("z")]), "NULL");
        assert_eq!(eval("[]", &[ab(), str("a")]), "1");
        assert_eq!(eval("size", &[ab()]), "2");
        assert_eq!(eval("map_contains_key", &[ab(), str("z")]), "false");
        assert_eq!(eval("map_concat", &[ab(), expr("map", &[str("z"), int(26)])]), "{a -> 1, b -> 2, z -> 26}");
        assert_eq!(eval("map_concat", &[ab(), ab()]), "!DUPLICATED_MAP_KEY");
        assert_eq!(eval("map_concat", &[]), "{}");
        assert_eq!(eval("map_concat", &[ab(), null()]), "!DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES");
    }
}
