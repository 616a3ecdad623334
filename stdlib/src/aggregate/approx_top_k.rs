//! `approx_top_k`: the most frequent values with their counts, from a sketch of frequent items: exact while no more distinct
//! values than the sketch tracks have come.
//!
//! Source: Anderson et al., "A high-performance algorithm for identifying frequent items in data streams", as Apache
//! DataSketches has it. Of equally frequent values the smallest comes first, where Spark's order hangs on their hashes.

use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, Int64Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use datasketches::codec::{SketchBytes, SketchSlice};
use datasketches::error::{Error, ErrorKind};
use datasketches::frequencies::{ErrorType, FrequentItemValue, FrequentItemsSketch};
use ssql_ir::{AggArg, AggCall, DataType as T, Field, Literal};

use super::basic::first_type;
use super::{Aggregate, SKIP, SlotType, StateRows, codec, values};
use crate::arrow::{arrow_type, conform};
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, aggregate_with};
use crate::resolve::{TypeCall, Typed};

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[aggregate_with("approx_top_k", typing, make).nulls(NullRule::Never).doc(
    "The `k` most frequent values (5 unless given) as an array of structs of `item` and `count`, most frequent first; \
     `maxItemsTracked` values (10000 unless given) are counted at a time.",
    "approx_top_k(expr[, k[, maxItemsTracked]])",
    "",
)];

const K: i64 = 5;
const TRACKED: i64 = 10_000;
/// Largest `maxItemsTracked`, as in Spark.
const MOST_TRACKED: i64 = 1_000_000;

fn typing(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 3)?;
    let wrong = |i: usize, message: String| {
        Err(ResolveError::new("DATATYPE_MISMATCH.TYPE_CHECK_FAILURE_WITH_HINT", message).at_arg(i))
    };
    let item = c.ty(0);
    let countable =
        item.is_numeric() || matches!(item, T::Boolean | T::Date | T::Timestamp | T::TimestampNtz | T::String);
    if !countable {
        return wrong(0, format!("`approx_top_k` counts numbers, texts, BOOLEAN, DATE and TIMESTAMP, not {item}."));
    }
    let mut types = vec![item.clone()];
    let mut numbers = [K, TRACKED];
    for i in 1..c.len() {
        let what = ["k", "maxItemsTracked"][i - 1];
        types.push(c.coerce(i, Param::Int)?);
        numbers[i - 1] = match &c.args[i].literal {
            Some(Literal::Int(n)) if *n > 0 => *n,
            Some(Literal::Int(n)) => {
                let message = format!("The {what} of `approx_top_k` is above 0, not {n}.");
                return Err(ResolveError::new("APPROX_TOP_K_NON_POSITIVE_ARG", message).at_arg(i));
            }
            Some(Literal::Null) => {
                let message = format!("The {what} of `approx_top_k` must not be NULL.");
                return Err(ResolveError::new("APPROX_TOP_K_NULL_ARG", message).at_arg(i));
            }
            _ => return wrong(i, format!("The {what} of `approx_top_k` has to be a constant INT.")),
        };
    }
    let [k, tracked] = numbers;
    if tracked > MOST_TRACKED {
        let message = format!("`approx_top_k` tracks at most {MOST_TRACKED} items, not {tracked}.");
        return Err(ResolveError::new("APPROX_TOP_K_MAX_ITEMS_TRACKED_EXCEEDS_LIMIT", message).at_arg(2));
    }
    if tracked < k {
        let message = format!("`approx_top_k` of {k} items cannot track fewer of them, {tracked}.");
        return Err(ResolveError::new("APPROX_TOP_K_MAX_ITEMS_TRACKED_LESS_THAN_K", message).at_arg(c.len() - 1));
    }
    let entry = T::Struct(vec![Field::new("item", item.clone(), true), Field::new("count", T::Int64, false)]);
    Ok(Typed::new(types, T::Array(Box::new(Field::new("element", entry, false)))))
}

fn make(call: &AggCall) -> Result<Arc<dyn Aggregate>, EvalError> {
    let number = |i: usize, default: i64| match call.args.get(i) {
        None => Ok(default as usize),
        Some(AggArg::Literal(Literal::Int(n), _)) if *n > 0 => Ok(*n as usize),
        Some(_) => Err(EvalError::internal("typing has checked the constants")),
    };
    let (k, tracked) = (number(1, K)?, number(2, TRACKED)?);
    // Three quarters of the sketch's slots are used.
    let slots = (tracked * 4).div_ceil(3).next_power_of_two().max(8);
    Ok(Arc::new(TopK { item: first_type(call)?.clone(), result: call.data_type.clone(), k, slots }))
}

/// A value as bytes that compare as the values do; NULL is one of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Item(Vec<u8>);

impl FrequentItemValue for Item {
    fn serialize_size(item: &Item) -> usize {
        4 + item.0.len()
    }

    fn serialize_value(&self, bytes: &mut SketchBytes) {
        bytes.write_u32_le(self.0.len() as u32);
        bytes.write(&self.0);
    }

    fn deserialize_value(cursor: &mut SketchSlice<'_>) -> Result<Item, Error> {
        let len = cursor.read_u32_le().map_err(|e| Error::new(ErrorKind::InvalidData, e.to_string()))? as usize;
        let bytes = cursor.remaining().get(..len).map(<[u8]>::to_vec);
        let bytes = bytes.ok_or_else(|| Error::new(ErrorKind::InvalidData, "an item ends early"))?;
        cursor.advance(len as u64);
        Ok(Item(bytes))
    }
}

type Items = FrequentItemsSketch<Item>;

#[derive(Debug)]
struct Counts(Items);

crate::object_state!(Counts, |c| c.0.estimated_size() + c.0.num_active_items() * 16);

#[derive(Debug)]
struct TopK {
    item: T,
    result: T,
    k: usize,
    /// Slots of the sketch.
    slots: usize,
}

impl TopK {
    fn empty(&self) -> Result<Items, EvalError> {
        Items::new(self.slots).map_err(|e| EvalError::internal(format!("a sketch: {}", e.message())))
    }
}

impl Aggregate for TopK {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let items = values::encode_key(&self.item, &args[0])?;
        let none = self.empty()?;
        // A value that comes often in a batch is looked up and copied once.
        let mut batch = AHashMap::new();
        for (row, g) in groups.iter().enumerate().filter(|(_, g)| **g != SKIP) {
            batch.entry((*g, items.row(row).data())).and_modify(|(_, n)| *n += 1).or_insert((row, 1));
        }
        // By place, so that equal input always gives an equal sketch.
        let mut batch: Vec<_> = batch.into_iter().collect();
        batch.sort_unstable_by_key(|(_, (row, _))| *row);
        for ((g, item), (_, n)) in batch {
            rows.object_or(g, 0, || Counts(none.clone())).0.update_with_count(Item(item.to_vec()), n);
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
        let none = self.empty()?;
        for (d, s) in dst_groups.iter().zip(src_groups) {
            if let Some(theirs) = src.object::<Counts>(*s, 0) {
                dst.object_or(*d, 0, || Counts(none.clone())).0.merge(&theirs.0);
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        let mut top = vec![];
        let lengths: Vec<usize> = groups
            .iter()
            .map(|g| {
                let counts = rows.object::<Counts>(*g, 0);
                let mut all = counts.map(|c| c.0.frequent_items(ErrorType::NoFalseNegatives)).unwrap_or_default();
                all.sort_by(|a, b| b.estimate().cmp(&a.estimate()).then_with(|| a.item().cmp(b.item())));
                all.truncate(self.k);
                let n = all.len();
                top.extend(all);
                n
            })
            .collect();
        let items = values::decode(&self.item, top.iter().map(|row| Some(row.item().0.as_slice())))?;
        let counts = Arc::new(Int64Array::from_iter_values(top.iter().map(|row| row.estimate() as i64)));
        let T::Array(element) = &self.result else { return Err(EvalError::internal("the result is an array")) };
        let arrow::datatypes::DataType::Struct(fields) = arrow_type(&element.data_type) else {
            return Err(EvalError::internal("the result is an array of structs"));
        };
        let entries: ArrayRef = Arc::new(StructArray::try_new(fields, vec![items, counts], None)?);
        let field = Arc::new(arrow::datatypes::Field::new("element", entries.data_type().clone(), false));
        conform(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), entries, None)?), &self.result)
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        codec::put_bytes(out, &rows.object::<Counts>(row, 0).map(|c| c.0.serialize()).unwrap_or_default());
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let bytes = codec::get_bytes(input)?;
        if !bytes.is_empty() {
            let sketch = Items::deserialize(bytes).map_err(|e| DecodeError(e.message().to_owned()))?;
            rows.object_or(row, 0, || Counts(sketch));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int32Array, StringViewArray};

    use super::*;
    use crate::testing::{agg_call, check_aggregate};

    #[test]
    fn counts_merge_and_store() {
        let numbers: ArrayRef =
            Arc::new(Int32Array::from(vec![Some(4), None, Some(-1), Some(4), None, Some(7), Some(4)]));
        let call = agg_call("approx_top_k", &[T::Int32], false);
        assert_eq!(check_aggregate(&call, &[numbers]), "[{4, 3}, {null, 2}, {-1, 1}, {7, 1}]");
        let mut call = agg_call("approx_top_k", &[T::String], false);
        call.args.push(AggArg::Literal(Literal::Int(2), T::Int32));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["b", "a", "", "b", "a"]));
        assert_eq!(check_aggregate(&call, std::slice::from_ref(&texts)), "[{a, 2}, {b, 2}]");
        assert_eq!(check_aggregate(&call, &[texts.slice(0, 0)]), "[]");
    }

    #[test]
    fn frequent_values_outlast_many_rare_ones() {
        let mut call = agg_call("approx_top_k", &[T::Int32], false);
        call.args.extend([2, 10].map(|n| AggArg::Literal(Literal::Int(n), T::Int32)));
        let agg = crate::aggregate(&call).expect("an aggregate");
        let mut table = crate::testing::Table::new(agg.as_ref(), 1);
        let column: ArrayRef =
            Arc::new(Int32Array::from_iter_values((0..30_000).map(|i| [1, 2, 1, i + 10][i as usize % 4])));
        agg.update(&mut table.rows(), &vec![0; column.len()], &[column]).expect("an update");
        let top = table.result(agg.as_ref());
        assert!(top.starts_with("[{1, 1") && top.contains("}, {2, "), "{top}");
    }
}
