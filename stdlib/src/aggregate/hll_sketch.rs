//! Apache DataSketches' HyperLogLog sketches as values: `hll_sketch_agg` and `hll_union_agg` build them,
//! `hll_sketch_estimate` and `hll_union` take them. The bytes are those of the DataSketches libraries, so that sketches
//! made by Spark are read here and the other way round.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder};
use arrow::datatypes::{Int32Type, Int64Type};
use datasketches::hash::value::{raw_bytes, sign_extend};
use datasketches::hll::{HllSketch, HllType, HllUnion};
use ssql_ir::{AggArg, AggCall, DataType as T, Literal};

use super::{Aggregate, SKIP, SlotType, StateRows, codec};
use crate::call::{Call, EvalResult};
use crate::error::{DecodeError, EvalError, ResolveError};
use crate::function::{FunctionDef, NullRule, Param, Ret, aggregate_with, scalar, scalar_with};
use crate::resolve::{TypeCall, Typed};

/// BINARY, and nothing that would have to be made one.
const SKETCH: Param = Param::Exactly(&Param::Binary);

/// Entries of this family.
pub const TABLE: &[FunctionDef] = &[
    aggregate_with("hll_sketch_agg", sketch_type, |call| Ok(Arc::new(SketchAgg { lg_k: lg_k_of(call)? })))
        .nulls(NullRule::Never)
        .doc(
            "A HyperLogLog sketch of the distinct values, of 2 to the power of `lgConfigK` registers (12 unless given).",
            "hll_sketch_agg(expr[, lgConfigK])",
            "",
        ),
    aggregate_with("hll_union_agg", union_agg_type, |call| Ok(Arc::new(UnionAgg { lenient: lenient_of(call) })))
        .nulls(NullRule::Never)
        .doc(
            "The sketch of all values that the sketches have seen; sketches of different sizes only if that is allowed.",
            "hll_union_agg(sketch[, allowDifferentLgConfigK])",
            "",
        ),
    scalar("hll_sketch_estimate", &[SKETCH], Ret::BigInt, |c| {
        let sketch = c.bytes(0);
        c.primitive::<Int64Type>(|r| Ok(Some(read(sketch.get(r), c.name)?.estimate().round() as i64)))
    })
    .doc("Number of distinct values that a sketch has seen, estimated.", "hll_sketch_estimate(sketch)", ""),
    scalar_with("hll_union", union_type, union).doc(
        "The sketch of all values that two sketches have seen; sketches of different sizes only if that is allowed.",
        "hll_union(a, b[, allowDifferentLgConfigK])",
        "",
    ),
];

const LG_K: u8 = 12;

fn sketch_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    c.count(1, 2)?;
    if !matches!(c.ty(0), T::Int32 | T::Int64 | T::String | T::Binary) {
        return Err(c.mismatch(0, "(INT OR BIGINT OR STRING OR BINARY)"));
    }
    let mut types = vec![c.ty(0).clone()];
    if c.len() == 2 {
        types.push(c.coerce(1, Param::Int)?);
        match c.literal(1) {
            Some(Literal::Int(k)) if (4..=21).contains(k) => {}
            Some(Literal::Int(k)) => {
                let message = format!("The lgConfigK of `hll_sketch_agg` is 4 to 21, not {k}.");
                return Err(ResolveError::new("HLL_INVALID_LG_K", message).at_arg(1));
            }
            _ => {
                let message = "The lgConfigK of `hll_sketch_agg` has to be a constant INT.";
                return Err(ResolveError::new("HLL_K_MUST_BE_CONSTANT", message).at_arg(1));
            }
        }
    }
    Ok(Typed::new(types, T::Binary))
}

fn lg_k_of(call: &AggCall) -> Result<u8, EvalError> {
    match call.args.get(1) {
        None => Ok(LG_K),
        Some(AggArg::Literal(Literal::Int(k), _)) if (4..=21).contains(k) => Ok(*k as u8),
        Some(_) => Err(EvalError::internal("typing has checked lgConfigK")),
    }
}

fn union_agg_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    let types = c.fixed(&[SKETCH, Param::Boolean], 1, false)?;
    if c.len() == 2 && c.args[1].literal.is_none() {
        let message = "Whether `hll_union_agg` allows different sizes has to be a constant.";
        return Err(ResolveError::new("DATATYPE_MISMATCH.NON_FOLDABLE_INPUT", message).at_arg(1));
    }
    Ok(Typed::new(types, T::Binary))
}

fn lenient_of(call: &AggCall) -> bool {
    matches!(call.args.get(1), Some(AggArg::Literal(Literal::Boolean(true), _)))
}

fn union_type(c: &TypeCall<'_>) -> Result<Typed, ResolveError> {
    Ok(Typed::new(c.fixed(&[SKETCH, SKETCH, Param::Boolean], 1, false)?, T::Binary))
}

fn read(bytes: &[u8], function: &str) -> Result<HllSketch, EvalError> {
    HllSketch::deserialize(bytes).map_err(|e| {
        let message = format!("What `{function}` was given is no HyperLogLog sketch: {}.", e.message());
        EvalError::new("HLL_INVALID_INPUT_SKETCH_BUFFER", message)
            .with_help("give it what hll_sketch_agg, hll_union or hll_union_agg made")
    })
}

fn internal(e: datasketches::error::Error) -> EvalError {
    EvalError::internal(format!("a sketch: {}", e.message()))
}

/// Refuses sketches of different sizes unless that is allowed.
fn check_sizes(a: u8, b: u8, lenient: bool, function: &str) -> Result<(), EvalError> {
    if a == b || lenient {
        return Ok(());
    }
    Err(EvalError::new(
        "HLL_UNION_DIFFERENT_LG_K",
        format!("The sketches of `{function}` have different lgConfigK: {a} and {b}."),
    )
    .with_help(format!("give `true` as the last argument of `{function}` to allow it")))
}

fn union(c: &Call<'_>) -> EvalResult {
    let (a, b) = (c.bytes(0), c.bytes(1));
    let lenient = (c.len() == 3).then(|| c.bool(2));
    c.binaries(|row, out| {
        let (a, b) = (read(a.get(row), c.name)?, read(b.get(row), c.name)?);
        check_sizes(a.lg_config_k(), b.lg_config_k(), lenient.as_ref().is_some_and(|l| l.get(row)), c.name)?;
        let mut union = HllUnion::new(a.lg_config_k().min(b.lg_config_k())).map_err(internal)?;
        union.update(&a);
        union.update(&b);
        out.extend_from_slice(&union.to_sketch(HllType::Hll8).serialize());
        Ok(true)
    })
}

/// What has been taken in so far.
#[derive(Debug)]
struct Sketch(HllSketch);

crate::object_state!(Sketch, |s| s.0.estimated_size());

impl Sketch {
    fn write(row: Option<&Sketch>, out: &mut Vec<u8>) {
        codec::put_bytes(out, &row.map(|s| s.0.serialize()).unwrap_or_default());
    }

    fn restore(rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        let bytes = codec::get_bytes(input)?;
        if !bytes.is_empty() {
            let sketch = HllSketch::deserialize(bytes).map_err(|e| DecodeError(e.message().to_owned()))?;
            rows.object_or(row, 0, || Sketch(sketch));
        }
        Ok(())
    }

    /// Takes in the values that another sketch has seen.
    fn absorb(&mut self, other: &HllSketch) -> Result<(), EvalError> {
        let mut union = HllUnion::new(self.0.lg_config_k().min(other.lg_config_k())).map_err(internal)?;
        union.update(&self.0);
        union.update(other);
        self.0 = union.to_sketch(HllType::Hll8);
        Ok(())
    }
}

fn empty(lg_k: u8) -> Result<HllSketch, EvalError> {
    HllSketch::new(lg_k, HllType::Hll8).map_err(internal)
}

fn finished(
    rows: &StateRows<'_>,
    groups: &[u32],
    none: impl Fn() -> Result<HllSketch, EvalError>,
) -> Result<ArrayRef, EvalError> {
    let mut out = BinaryViewBuilder::with_capacity(groups.len());
    for g in groups {
        match rows.object::<Sketch>(*g, 0) {
            Some(sketch) => out.append_value(sketch.0.serialize()),
            None => out.append_value(none()?.serialize()),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// `hll_sketch_agg`.
#[derive(Debug)]
struct SketchAgg {
    lg_k: u8,
}

impl Aggregate for SketchAgg {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        use arrow::datatypes::DataType as A;
        let column = &args[0];
        let none = empty(self.lg_k)?;
        for (row, g) in groups.iter().enumerate().filter(|(row, g)| **g != SKIP && column.is_valid(*row)) {
            let sketch = &mut rows.object_or(*g, 0, || Sketch(none.clone())).0;
            let mut bytes = |v: &[u8]| {
                // As in Java, an empty text or an empty BINARY is no value.
                if !v.is_empty() {
                    sketch.update(raw_bytes::from_slice(v));
                }
            };
            match column.data_type() {
                A::Utf8View => bytes(column.as_string_view().value(row).as_bytes()),
                A::BinaryView => bytes(column.as_binary_view().value(row)),
                A::Int32 => sketch.update(sign_extend::from_i32(column.as_primitive::<Int32Type>().value(row))),
                A::Int64 => sketch.update(column.as_primitive::<Int64Type>().value(row)),
                t => return Err(EvalError::internal(format!("a sketch of {t}"))),
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
        let none = empty(self.lg_k)?;
        for (d, s) in dst_groups.iter().zip(src_groups) {
            if let Some(theirs) = src.object::<Sketch>(*s, 0) {
                dst.object_or(*d, 0, || Sketch(none.clone())).absorb(&theirs.0)?;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        finished(rows, groups, || empty(self.lg_k))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        Sketch::write(rows.object(row, 0), out);
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        Sketch::restore(rows, row, input)
    }
}

/// `hll_union_agg`.
#[derive(Debug)]
struct UnionAgg {
    lenient: bool,
}

impl UnionAgg {
    fn take(&self, rows: &mut StateRows<'_>, row: u32, theirs: HllSketch) -> Result<(), EvalError> {
        match rows.object::<Sketch>(row, 0).map(|ours| ours.0.lg_config_k()) {
            None => {
                rows.object_or(row, 0, || Sketch(theirs));
                Ok(())
            }
            Some(lg_k) => {
                check_sizes(lg_k, theirs.lg_config_k(), self.lenient, "hll_union_agg")?;
                rows.object_or(row, 0, || Sketch(theirs.clone())).absorb(&theirs)
            }
        }
    }
}

impl Aggregate for UnionAgg {
    fn slots(&self) -> &[SlotType] {
        &[SlotType::Object]
    }

    fn update(&self, rows: &mut StateRows<'_>, groups: &[u32], args: &[ArrayRef]) -> Result<(), EvalError> {
        let column = args[0].as_binary_view();
        for (row, g) in groups.iter().enumerate().filter(|(row, g)| **g != SKIP && column.is_valid(*row)) {
            let sketch = read(column.value(row), "hll_union_agg").map_err(|e| e.at_row(row))?;
            self.take(rows, *g, sketch)?;
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
            if let Some(theirs) = src.object::<Sketch>(*s, 0) {
                self.take(dst, *d, theirs.0.clone())?;
            }
        }
        Ok(())
    }

    fn finish(&self, rows: &StateRows<'_>, groups: &[u32]) -> Result<ArrayRef, EvalError> {
        finished(rows, groups, || empty(LG_K))
    }

    fn encode(&self, rows: &StateRows<'_>, row: u32, out: &mut Vec<u8>) {
        Sketch::write(rows.object(row, 0), out);
    }

    fn decode(&self, rows: &mut StateRows<'_>, row: u32, input: &mut &[u8]) -> Result<(), DecodeError> {
        Sketch::restore(rows, row, input)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryViewArray, Int32Array, Int64Array, StringViewArray};

    use super::*;
    use crate::testing::{Table, agg_call, check_aggregate};

    fn sketch(column: ArrayRef, t: T, lg_k: u8) -> Vec<u8> {
        let mut call = agg_call("hll_sketch_agg", &[t], false);
        call.args.push(AggArg::Literal(Literal::Int(lg_k.into()), T::Int32));
        let agg = crate::aggregate(&call).expect("an aggregate");
        let mut table = Table::new(agg.as_ref(), 1);
        agg.update(&mut table.rows(), &vec![0; column.len()], &[column]).expect("an update");
        agg.finish(&table.rows(), &[0]).expect("a sketch").as_binary_view().value(0).to_vec()
    }

    fn estimate(bytes: &[u8]) -> i64 {
        read(bytes, "a test").expect("a sketch").estimate().round() as i64
    }

    #[test]
    fn estimates_are_those_of_spark() {
        let ids = |n: i64| Arc::new(Int64Array::from_iter_values(0..n)) as ArrayRef;
        for (n, lg_k, wanted) in
            [(300, 8, 299), (1000, 12, 996), (100_000, 12, 101_148), (100_000, 4, 120_212), (100_000, 15, 100_028)]
        {
            assert_eq!(estimate(&sketch(ids(n), T::Int64, lg_k)), wanted, "{n} {lg_k}");
        }
        let texts = StringViewArray::from_iter_values((0..100_000).map(|v| v.to_string()));
        assert_eq!(estimate(&sketch(Arc::new(texts), T::String, 12)), 98_814);
        // INT and BIGINT are one value.
        let narrow = sketch(Arc::new(Int32Array::from_iter_values(-9..9)), T::Int32, 12);
        assert_eq!(narrow, sketch(Arc::new(Int64Array::from_iter_values(-9..9)), T::Int64, 12));
    }

    #[test]
    fn sketches_merge_and_store() {
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some(""), Some("b"), Some("a")]));
        let few = check_aggregate(&agg_call("hll_sketch_agg", &[T::String], false), &[texts]);
        assert!(few.len() > 8, "{few:?}");
        let (a, b) = (
            sketch(Arc::new(Int64Array::from_iter_values(0..40)), T::Int64, 10),
            sketch(Arc::new(Int64Array::from_iter_values(20..60)), T::Int64, 10),
        );
        let both: ArrayRef = Arc::new(BinaryViewArray::from_iter(vec![Some(&a[..]), None, Some(&b[..])]));
        let agg = crate::aggregate(&agg_call("hll_union_agg", &[T::Binary], false)).expect("an aggregate");
        let mut table = Table::new(agg.as_ref(), 1);
        agg.update(&mut table.rows(), &[0; 3], std::slice::from_ref(&both)).expect("an update");
        assert_eq!(estimate(agg.finish(&table.rows(), &[0]).expect("a sketch").as_binary_view().value(0)), 60);
        let other = sketch(Arc::new(Int64Array::from_iter_values(0..2)), T::Int64, 12);
        let mixed: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&a[..], &other[..]]));
        let call = agg_call("hll_union_agg", &[T::Binary], false);
        assert_eq!(check_aggregate(&call, &[mixed]), "!HLL_UNION_DIFFERENT_LG_K");
        let broken: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&b"sketch"[..]]));
        assert_eq!(check_aggregate(&call, &[broken]), "!HLL_INVALID_INPUT_SKETCH_BUFFER");
    }
}
