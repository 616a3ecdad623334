//! Aggregates that gather values: `collect_list`, `collect_set`, `listagg`, `mode`.

use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, ListArray, StringViewBuilder};
use arrow::buffer::OffsetBuffer;
use arrow::row::{RowConverter, SortField};
use ssql_ir::{AggCall, DataType as T, Field};

use super::basic::first_type;
use super::values::{self, Packed, decode, encode, encode_key};
use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::arrow::conform;
use crate::compare::canonical_floats;
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, STRING_OR_BINARY, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate_with("collect_list", list_type, |call| {
        Ok(Arc::new(CollectList { element: first_type(call)?.clone(), result: call.data_type.clone() }))
    })
    .aliases(&["array_agg"])
    .nulls(NullRule::Never)
    .doc("Array of the values that are not NULL; empty where there are none.", "collect_list(expr)", ""),
    aggregate_with("collect_set", set_type, |call| {
        Ok(Arc::new(CollectSet { element: first_type(call)?.clone(), result: call.data_type.clone() }))
    })
    .nulls(NullRule::Never)
    .doc("Array of the distinct values that are not NULL, in order of arrival.", "collect_set(expr)", ""),
    aggregate_with("listagg", listagg_type, |call| Ok(Arc::new(ListAgg::new(call)?))).aliases(&["string_agg"]).doc(
        "The values that are not NULL, joined with a delimiter, in order of arrival or of `WITHIN GROUP (ORDER BY ...)`.",
        "listagg(expr[, delimiter])",
        "",
    ),
    aggregate_with("mode", mode_type, |call| {
        let descending = call.order.first().is_some_and(|k| k.descending);
        Ok(Arc::new(Mode { data_type: first_type(call)?.clone(), descending }))
    })
    .doc(
        "The most frequent value that is not NULL; of equally frequent ones the smallest, or the first in the order given.",
        "mode(expr) | mode() WITHIN GROUP (ORDER BY expr)",
        "",
    ),
];

fn array_of(t: &T) -> T {
    T::Array(Box::new(Field::new("element", t.clone(), false)))
}

fn list_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 1)?;
    Ok(Typed::new(vec![c.ty(0).clone()], array_of(c.ty(0))))
}

fn holds_map(t: &T) -> bool {
    match t {
        T::Map(..) => true,
        T::Array(e) => holds_map(&e.data_type),
        T::Struct(fields) => fields.iter().any(|f| holds_map(&f.data_type)),
        _ => false,
    }
}

fn set_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let typed = list_type(c)?;
    if holds_map(c.ty(0)) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.UNSUPPORTED_INPUT_TYPE",
            format!("The values of `{}` cannot be maps.", c.name),
        )
        .at_arg(0));
    }
    Ok(typed)
}

fn listagg_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    let t = c.coerce(0, STRING_OR_BINARY)?;
    let mut types = vec![t.clone()];
    if c.len() == 2 {
        c.coerce(1, STRING_OR_BINARY)?;
        if c.args[1].literal.is_none() && *c.ty(1) != T::Null {
            return Err(ResolveError::new(
                "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                format!("The delimiter of `{}` has to be a constant.", c.name),
            )
            .at_arg(1));
        }
        types.push(t.clone());
    }
    Ok(Typed::new(types, t))
}

fn mode_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !crate::coercion::is_ordered(c.ty(0)) {
        return Err(ResolveError::new(
            "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
            format!("`{}` does not support ordering on type {}.", c.name, c.ty(0)),
        )
        .at_arg(0));
    }
    let mut types = vec![c.ty(0).clone()];
    if c.len() == 2 {
        types.push(c.coerce(1, Param::Boolean)?);
    }
    Ok(Typed::new(types, c.ty(0).clone()))
}

/// The array column of the groups' values.
fn lists<'a>(
    element: &T,
    result: &T,
    groups: impl Iterator<Item = Option<Box<dyn Iterator<Item = &'a [u8]> + 'a>>>,
) -> Result<ArrayRef, EvalError> {
    let mut lengths = Vec::new();
    let mut all: Vec<Option<&[u8]>> = Vec::new();
    for group in groups {
        let before = all.len();
        all.extend(group.into_iter().flatten().map(Some));
        lengths.push(all.len() - before);
    }
    let values = decode(element, all.into_iter())?;
    let field = Arc::new(arrow::datatypes::Field::new("element", values.data_type().clone(), false));
    let list = ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, None)?;
    conform(Arc::new(list), result)
}

/// `collect_list`.
#[derive(Debug)]
struct CollectList {
    element: T,
    result: T,
}

#[derive(Debug, Default)]
struct List(Packed);

crate::object_state!(List, |l| l.0.heap_bytes());

impl Aggregate for CollectList {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let encoded = encode(&self.element, &args[0])?;
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && values::is_valid(&args[0], row) {
                rows.object_or(*g, 0, List::default).0.push(encoded.row(row).as_ref()).map_err(|e| e.at_row(row))?;
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<List>(*s, 0) else { continue };
            let ours = dst.object_or(*d, 0, List::default);
            for value in theirs.0.iter() {
                ours.0.push(value)?;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        lists(
            &self.element,
            &self.result,
            groups
                .iter()
                .map(|g| rows.object::<List>(*g, 0).map(|l| Box::new(l.0.iter()) as Box<dyn Iterator<Item = &[u8]>>)),
        )
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        match rows.object::<List>(row, 0) {
            None => codec::put_len(out, 0),
            Some(list) => list.0.write(out),
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let packed = Packed::read(input)?;
        if packed.len() > 0 {
            rows.object_or(row, 0, || List(packed));
        }
        Ok(())
    }
}

/// `collect_set`.
#[derive(Debug)]
struct CollectSet {
    element: T,
    result: T,
}

/// Distinct values in order of arrival, and the set of their bytes.
#[derive(Debug, Default)]
struct Set {
    order: Packed,
    seen: AHashSet<Box<[u8]>>,
}

crate::object_state!(Set, |s| s.order.heap_bytes() + s.seen.iter().map(|v| v.len() + 32).sum::<usize>());

impl Set {
    fn insert(&mut self, value: &[u8]) -> Result<(), EvalError> {
        if !self.seen.contains(value) {
            self.order.push(value)?;
            self.seen.insert(value.into());
        }
        Ok(())
    }
}

impl Aggregate for CollectSet {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let encoded = encode_key(&self.element, &args[0])?;
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && values::is_valid(&args[0], row) {
                let set: &mut Set = rows.object_or(*g, 0, Set::default);
                set.insert(encoded.row(row).as_ref()).map_err(|e| e.at_row(row))?;
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Set>(*s, 0) else { continue };
            let ours: &mut Set = dst.object_or(*d, 0, Set::default);
            for value in theirs.order.iter() {
                ours.insert(value)?;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        lists(
            &self.element,
            &self.result,
            groups.iter().map(|g| {
                rows.object::<Set>(*g, 0).map(|s| Box::new(s.order.iter()) as Box<dyn Iterator<Item = &[u8]>>)
            }),
        )
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        match rows.object::<Set>(row, 0) {
            None => codec::put_len(out, 0),
            Some(set) => set.order.write(out),
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let order = Packed::read(input)?;
        if order.len() > 0 {
            let seen = order.iter().map(Into::into).collect();
            rows.object_or(row, 0, || Set { order, seen });
        }
        Ok(())
    }
}

/// `listagg`.
#[derive(Debug)]
struct ListAgg {
    data_type: T,
    delimited: bool,
    /// Of each sort key: descending, NULLs first.
    order: Vec<(bool, bool)>,
}

/// Values, and the bytes by which they are sorted (empty: by arrival).
#[derive(Debug, Default)]
struct Pieces {
    delimiter: Vec<u8>,
    keys: Packed,
    values: Packed,
}

crate::object_state!(Pieces, |p| p.delimiter.capacity() + p.keys.heap_bytes() + p.values.heap_bytes());

impl ListAgg {
    fn new(call: &AggCall) -> Result<ListAgg, EvalError> {
        Ok(ListAgg {
            data_type: first_type(call)?.clone(),
            delimited: call.arg_types.len() > 1,
            order: call.order.iter().map(|k| (k.descending, k.nulls_first)).collect(),
        })
    }

    fn bytes<'a>(&self, array: &'a ArrayRef, row: usize) -> &'a [u8] {
        match self.data_type {
            T::Binary => array.as_binary_view().value(row),
            _ => array.as_string_view().value(row).as_bytes(),
        }
    }

    /// The sort keys of the rows. When distinct values are merged the key columns are not there: they can only be the
    /// values themselves.
    fn keys(&self, args: &[ArrayRef]) -> Result<Option<arrow::row::Rows>, EvalError> {
        if self.order.is_empty() {
            return Ok(None);
        }
        let n_args = 1 + usize::from(self.delimited);
        let mut columns = args[n_args..].iter().map(canonical_floats).collect::<Result<Vec<_>, _>>()?;
        columns.resize(self.order.len(), args[0].clone());
        let fields = columns
            .iter()
            .zip(&self.order)
            .map(|(c, (descending, nulls_first))| {
                let options = arrow::compute::SortOptions { descending: *descending, nulls_first: *nulls_first };
                SortField::new_with_options(c.data_type().clone(), options)
            })
            .collect();
        Ok(Some(RowConverter::new(fields)?.convert_columns(&columns)?))
    }
}

impl Aggregate for ListAgg {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let keys = self.keys(args)?;
        for (row, g) in groups.iter().enumerate() {
            if *g == SKIP || args[0].is_null(row) {
                continue;
            }
            let pieces: &mut Pieces = rows.object_or(*g, 0, Pieces::default);
            if pieces.values.len() == 0 && self.delimited && args[1].is_valid(row) {
                pieces.delimiter = self.bytes(&args[1], row).to_vec();
            }
            if let Some(keys) = &keys {
                pieces.keys.push(keys.row(row).as_ref())?;
            }
            pieces.values.push(self.bytes(&args[0], row)).map_err(|e| e.at_row(row))?;
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Pieces>(*s, 0) else { continue };
            let ours: &mut Pieces = dst.object_or(*d, 0, Pieces::default);
            if ours.values.len() == 0 {
                ours.delimiter.clone_from(&theirs.delimiter);
            }
            for key in theirs.keys.iter() {
                ours.keys.push(key)?;
            }
            for value in theirs.values.iter() {
                ours.values.push(value)?;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let joined = |g: u32| {
            let pieces = rows.object::<Pieces>(g, 0)?;
            let mut values: Vec<&[u8]> = pieces.values.iter().collect();
            if !self.order.is_empty() {
                let mut keyed: Vec<(&[u8], &[u8])> = pieces.keys.iter().zip(values).collect();
                keyed.sort_by_key(|(key, _)| *key);
                values = keyed.into_iter().map(|(_, value)| value).collect();
            }
            Some(values.join(&pieces.delimiter[..]))
        };
        Ok(match self.data_type {
            T::Binary => {
                let mut out = BinaryViewBuilder::with_capacity(groups.len());
                groups.iter().for_each(|g| out.append_option(joined(*g)));
                Arc::new(out.finish())
            }
            _ => {
                let mut out = StringViewBuilder::with_capacity(groups.len());
                for g in groups {
                    let text = joined(*g).map(String::from_utf8).transpose();
                    out.append_option(text.map_err(|_| EvalError::internal("joined STRINGs are UTF-8"))?);
                }
                Arc::new(out.finish())
            }
        })
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        match rows.object::<Pieces>(row, 0) {
            None => out.push(0),
            Some(pieces) => {
                out.push(1);
                codec::put_bytes(out, &pieces.delimiter);
                pieces.keys.write(out);
                pieces.values.write(out);
            }
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        if codec::take(input, 1)? == [1] {
            let delimiter = codec::get_bytes(input)?.to_vec();
            let (keys, values) = (Packed::read(input)?, Packed::read(input)?);
            rows.object_or(row, 0, || Pieces { delimiter, keys, values });
        }
        Ok(())
    }
}

/// `mode`.
#[derive(Debug)]
struct Mode {
    data_type: T,
    descending: bool,
}

/// How often each value was seen.
#[derive(Debug, Default)]
struct Counts(AHashMap<Box<[u8]>, i64>);

crate::object_state!(Counts, |c| c.0.keys().map(|k| k.len() + 48).sum());

impl Counts {
    fn add(&mut self, value: &[u8], n: i64) {
        match self.0.get_mut(value) {
            Some(count) => *count += n,
            None => {
                self.0.insert(value.into(), n);
            }
        }
    }
}

impl Aggregate for Mode {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let encoded = encode_key(&self.data_type, &args[0])?;
        for (row, g) in groups.iter().enumerate() {
            if *g != SKIP && values::is_valid(&args[0], row) {
                let counts: &mut Counts = rows.object_or(*g, 0, Counts::default);
                counts.add(encoded.row(row).as_ref(), 1);
            }
        }
        Ok(())
    }

    fn merge(
        &self,
        dst: &mut StateRows<'_>,
        dst_groups: &[u32],
        src: &StateRows<'_>,
        src_groups: &[u32],
    ) -> Result<(), EvalError> {
        for (d, s) in dst_groups.iter().zip(src_groups) {
            let Some(theirs) = src.object::<Counts>(*s, 0) else { continue };
            let ours: &mut Counts = dst.object_or(*d, 0, Counts::default);
            for (value, n) in &theirs.0 {
                ours.add(value, *n);
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let most = |g: &u32| {
            let counts = rows.object::<Counts>(*g, 0)?;
            let best = counts
                .0
                .iter()
                .max_by(|(a, n), (b, m)| n.cmp(m).then_with(|| if self.descending { a.cmp(b) } else { b.cmp(a) }));
            best.map(|(value, _)| &**value)
        };
        decode(&self.data_type, groups.iter().map(most))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        let mut counts: Vec<_> = rows.object::<Counts>(row, 0).iter().flat_map(|c| &c.0).collect();
        counts.sort_unstable();
        codec::put_len(out, counts.len());
        for (value, n) in counts {
            codec::put_bytes(out, value);
            codec::put_i64(out, *n);
        }
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let n = codec::get_len(input)?;
        if n > 0 {
            let mut counts = Counts::default();
            for _ in 0..n {
                let value = codec::get_bytes(input)?;
                counts.add(value, codec::get_i64(input)?);
            }
            rows.object_or(row, 0, || counts);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float64Array, Int32Array, StringViewArray};
    use ssql_ir::{Literal, SortKey};

    use super::*;
    use crate::ArgType;
    use crate::testing::{agg_call, agg_call_of, check_aggregate};

    #[test]
    fn lists_and_sets() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), Some(1), None, Some(3)]));
        let run = |name: &str, n: usize| check_aggregate(&agg_call(name, &[T::Int32], false), &[column.slice(0, n)]);
        assert_eq!(run("collect_list", 4), "[3, 1, 3]");
        assert_eq!(run("array_agg", 0), "[]");
        assert_eq!(run("collect_set", 4), "[3, 1]");
        assert_eq!(run("collect_set", 0), "[]");
        let doubled: ArrayRef = Arc::new(Int32Array::from(vec![1, 1, 3, 3]));
        assert_eq!(check_aggregate(&agg_call("collect_list", &[T::Int32], true), &[doubled]), "[1, 3]");
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, -0.0, f64::NAN, 0.0]));
        assert_eq!(check_aggregate(&agg_call("collect_set", &[T::Float64], false), &[floats]), "[NaN, 0.0]");
        let texts: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("b"), None, Some("a text of more than twelve")]));
        let call = agg_call("collect_list", &[T::String], false);
        assert_eq!(check_aggregate(&call, &[texts]), "[b, a text of more than twelve]");
    }

    #[test]
    fn joined_texts() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("b"), Some("a"), None, Some("b")]));
        let delimiter: ArrayRef = Arc::new(StringViewArray::from(vec![", "; 4]));
        let plain = agg_call("listagg", &[T::String], false);
        assert_eq!(check_aggregate(&plain, std::slice::from_ref(&texts)), "bab");
        assert_eq!(check_aggregate(&plain, &[texts.slice(2, 1)]), "NULL");
        let types = [ArgType::new(T::String, true), ArgType::constant(T::String, Literal::String(", ".into()))];
        let mut call = agg_call_of("string_agg", &types, false);
        assert_eq!(check_aggregate(&call, &[texts.clone(), delimiter.clone()]), "b, a, b");
        call.order = vec![SortKey { column: 2, descending: true, nulls_first: false }];
        let by: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
        assert_eq!(check_aggregate(&call, &[texts.clone(), delimiter.clone(), by]), "b, a, b");
        call.distinct = true;
        call.order[0].descending = false;
        assert_eq!(check_aggregate(&call, &[texts.clone(), delimiter, texts]), "a, b");
    }

    #[test]
    fn the_most_frequent() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(3), Some(3), Some(1), None, Some(1), Some(2)]));
        let mut call = agg_call("mode", &[T::Int32], false);
        assert_eq!(check_aggregate(&call, std::slice::from_ref(&column)), "1");
        assert_eq!(check_aggregate(&call, &[column.slice(3, 1)]), "NULL");
        call.order = vec![SortKey { column: 0, descending: true, nulls_first: false }];
        assert_eq!(check_aggregate(&call, &[column]), "3");
    }
}
