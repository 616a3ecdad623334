//! Differential test of aggregate kernels: the same batches through a kernel and through the reference aggregates, into
//! two group tables of one layout; then every group's results must be equal.

mod support;

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use rand::Rng;
use ssql_abi::{ColumnView, GroupTable, KernelError, KeyKind, RowLayout, hash_columns};
use ssql_ir::{AggArg, AggCall, DataType as T, Field, Schema};
use ssql_jit::compile_aggregate;
use ssql_stdlib::aggregate::SKIP;
use ssql_stdlib::{EvalError, Objects, StateRows, aggregate, canonical_floats, state_size};
use support::{Dice, Taste, Views, bytes_of, columns_of_all_types, random_batch};

fn call(function: &str, args: &[u32], schema: &Schema, filter: Option<u32>) -> AggCall {
    let arg_types: Vec<T> = args.iter().map(|&c| schema.fields[c as usize].data_type.clone()).collect();
    let data_type = match function {
        "count" => T::Int64,
        "avg" => T::Float64,
        "sum" if arg_types[0].is_float() => T::Float64,
        "sum" => T::Int64,
        _ => arg_types[0].clone(),
    };
    AggCall {
        function: function.into(),
        args: args.iter().map(|&c| AggArg::Column(c)).collect(),
        arg_types,
        filter,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type,
        nullable: function != "count",
    }
}

fn key_kind(t: &T) -> KeyKind {
    match t {
        T::Boolean => KeyKind::Bit,
        T::String => KeyKind::Bytes,
        t => KeyKind::Fixed(t.fixed_width().expect("a key type") as u8),
    }
}

fn random_calls(rng: &mut Dice, schema: &Schema) -> Vec<AggCall> {
    (0..rng.random_range(1..5))
        .map(|_| {
            let filter = rng.random_ratio(1, 3).then(|| rng.random_range(0..2));
            let c = rng.random_range(0..schema.len() as u32);
            let t = &schema.fields[c as usize].data_type;
            let function = match t {
                t if t.is_numeric() => ["count", "sum", "avg", "min", "max"][rng.random_range(0..5)],
                T::String => ["count", "min"][rng.random_range(0..2)],
                _ => ["count", "min", "max"][rng.random_range(0..3)],
            };
            match function {
                "count" => {
                    let args: Vec<u32> = (0..rng.random_range(0..3)).map(|_| rng.random_range(0..22)).collect();
                    call(function, &args, schema, filter)
                }
                _ => call(function, &[c], schema, filter),
            }
        })
        .collect()
}

/// Bytes of several values, `None` for NULL.
type Values = Vec<Option<Vec<u8>>>;

/// One side of the comparison: a table and its objects.
struct Side {
    table: GroupTable,
    objects: Objects,
}

impl Side {
    /// Updates the aggregates `which` by the reference.
    fn update(
        &mut self,
        calls: &[AggCall],
        which: &[usize],
        groups: &[u32],
        batch: &RecordBatch,
    ) -> Result<(), EvalError> {
        for &i in which {
            let args: Vec<ArrayRef> = calls[i]
                .args
                .iter()
                .map(|a| match a {
                    AggArg::Column(c) => batch.column(*c as usize).clone(),
                    AggArg::Literal(..) => unreachable!("the generator makes columns only"),
                })
                .collect();
            let filtered: Vec<u32> = match calls[i].filter {
                None => groups.to_vec(),
                Some(c) => {
                    let mask = batch.column(c as usize).as_boolean();
                    let counts = |row: usize| mask.is_valid(row) && mask.value(row);
                    groups.iter().enumerate().map(|(row, &g)| if counts(row) { g } else { SKIP }).collect()
                }
            };
            let offset = self.table.layout().agg_offsets[i];
            let (bytes, row_size) = self.table.bytes_mut();
            let mut rows = StateRows { bytes, row_size, offset, objects: &mut self.objects };
            aggregate(&calls[i]).expect("binds").update(&mut rows, &filtered, &args)?;
        }
        Ok(())
    }

    fn results(&mut self, calls: &[AggCall]) -> HashMap<Values, Values> {
        let groups: Vec<u32> = (0..self.table.len() as u32).collect();
        let columns: Vec<ArrayRef> = calls
            .iter()
            .enumerate()
            .map(|(i, call)| {
                let offset = self.table.layout().agg_offsets[i];
                let (bytes, row_size) = self.table.bytes_mut();
                let rows = StateRows { bytes, row_size, offset, objects: &mut self.objects };
                let results = aggregate(call).expect("binds").finish(&rows, &groups).expect("finishes");
                // Infinity less infinity is a NaN whose sign depends on the compiler.
                canonical_floats(&results).expect("floats")
            })
            .collect();
        let fields = 0..self.table.kinds().len();
        let key = |g: u32| fields.clone().map(|k| self.table.key(g, k).map(<[u8]>::to_vec)).collect();
        let value = |c: &ArrayRef, g: u32| match c.as_string_view_opt() {
            Some(s) => s.is_valid(g as usize).then(|| s.value(g as usize).as_bytes().to_vec()),
            None => bytes_of(c, g as usize),
        };
        groups.iter().map(|&g| (key(g), columns.iter().map(|c| value(c, g)).collect())).collect()
    }
}

fn without_odd_floats(batch: &RecordBatch) -> RecordBatch {
    let columns = batch.columns().iter().map(|c| canonical_floats(c).expect("floats")).collect();
    RecordBatch::try_new(batch.schema(), columns).expect("columns of the same types")
}

fn case(seed: u64) -> bool {
    let rng = &mut Dice::seeded(seed);
    let schema = columns_of_all_types();
    let keys: Vec<u32> = (0..rng.random_range(0..4)).map(|_| rng.random_range(0..schema.len() as u32)).collect();
    let calls = random_calls(rng, &schema);
    let kinds: Vec<KeyKind> = keys.iter().map(|&k| key_kind(&schema.fields[k as usize].data_type)).collect();
    let widths: Vec<usize> = kinds.iter().map(|k| k.width()).collect();
    let sizes: Vec<usize> = calls.iter().map(|c| state_size(aggregate(c).expect("binds").slots())).collect();
    let layout = RowLayout::new(&widths, &sizes);
    let Some(kernel) = compile_aggregate(&keys, &calls, &schema, &layout).expect("compiles") else { return false };
    let kernel = &*kernel;
    let computed: Vec<usize> = ssql_abi::AggregateKernel::computed(kernel).to_vec();
    let rest: Vec<usize> = (0..calls.len()).filter(|i| !computed.contains(i)).collect();
    let side = || Side { table: GroupTable::new(layout.clone(), kinds.clone()), objects: Objects::new() };
    let (mut by_kernel, mut by_reference) = (side(), side());
    let taste = if rng.random_ratio(1, 3) { Taste::Wild } else { Taste::Tame };
    for _ in 0..3 {
        let rows = rng.random_range(0..300);
        let batch = without_odd_floats(&random_batch(rng, &schema, rows, taste));
        let rows = batch.num_rows();
        let views = Views::new(&batch);
        let key_views: Vec<ColumnView> = keys.iter().map(|&k| views.columns[k as usize]).collect();
        let (mut hashes, mut groups) = (vec![], vec![0; rows]);
        let mut kernel_groups = vec![0; rows];
        // SAFETY: the views are of the batch and of these kinds; the kernel was compiled for this layout.
        let ran = unsafe {
            hash_columns(&key_views, &kinds, rows, &mut hashes);
            by_reference.table.find_or_insert(&key_views, &hashes, 0..rows, &mut groups);
            by_kernel.table.run(kernel, &views.columns, &keys, &hashes, Some(&mut kernel_groups))
        };
        let all: Vec<usize> = (0..calls.len()).collect();
        let context = || format!("seed {seed}, keys {keys:?}, calls {calls:#?}");
        match ran {
            Ok(()) => {
                assert_eq!(groups, kernel_groups, "{}", context());
                by_reference.update(&calls, &all, &groups, &batch).unwrap_or_else(|e| panic!("{e}\n{}", context()));
                by_kernel.update(&calls, &rest, &kernel_groups, &batch).expect("as the reference");
            }
            Err(KernelError { status, row, expr }) => {
                // The aggregate that the kernel names fails in that row, if it is given the rows up to it.
                let upto = batch.slice(0, row as usize + 1);
                let which = [expr as usize];
                by_reference
                    .update(&calls, &which, &groups[..row as usize], &batch.slice(0, row as usize))
                    .expect("fits");
                let last: Vec<u32> = groups[row as usize..=row as usize].to_vec();
                let e = by_reference
                    .update(&calls, &which, &last, &upto.slice(row as usize, 1))
                    .expect_err("the reference fails in the same row");
                assert_eq!(Some(e.condition), status.condition(), "{}", context());
                return true;
            }
        }
    }
    assert_eq!(by_kernel.results(&calls), by_reference.results(&calls), "seed {seed}, keys {keys:?}, calls {calls:#?}");
    true
}

#[test]
fn kernels_agree_with_the_reference() {
    let seeds = std::env::var("JIT_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(300);
    let compiled = (0..seeds).filter(|&seed| case(seed)).count() as u64;
    assert!(compiled * 2 > seeds, "{compiled} of {seeds} were compiled");
}

#[test]
fn a_sum_that_does_not_fit_names_the_aggregate_and_the_row() {
    let schema = Schema::new(vec![Field::new("v", T::Int64, false)]);
    let calls = [call("count", &[], &schema, None), call("sum", &[0], &schema, None)];
    let layout = RowLayout::new(&[], &[8, 16]);
    let kernel = compile_aggregate(&[], &calls, &schema, &layout).expect("compiles").expect("supported");
    let column = arrow::array::Int64Array::from(vec![1, i64::MAX, 3]);
    let batch = RecordBatch::try_from_iter([("v", std::sync::Arc::new(column) as ArrayRef)]).expect("a batch");
    let views = Views::new(&batch);
    let mut table = GroupTable::new(layout, vec![]);
    // SAFETY: the view is of the batch; the kernel was compiled for this layout.
    let error = unsafe { table.run(&*kernel, &views.columns, &[], &[5; 3], None) }.expect_err("overflows");
    assert_eq!((error.status, error.row, error.expr), (ssql_abi::Status::ArithmeticOverflow, 1, 1));
}

#[test]
fn keys_of_a_large_table_are_found_with_prefetching() {
    let schema = Schema::new(vec![Field::new("k", T::Int64, false), Field::new("s", T::String, false)]);
    let calls = [call("count", &[], &schema, None)];
    let kinds = vec![KeyKind::Fixed(8), KeyKind::Bytes];
    let layout = RowLayout::new(&[8, 16], &[8]);
    let kernel = compile_aggregate(&[0, 1], &calls, &schema, &layout).expect("compiles").expect("supported");
    let keys = arrow::array::Int64Array::from_iter_values((0..40_000).map(|i| i % 20_000));
    let texts = arrow::array::StringViewArray::from_iter_values((0..40_000).map(|i| format!("the key {}", i % 20_000)));
    let columns: [(_, ArrayRef); 2] = [("k", std::sync::Arc::new(keys)), ("s", std::sync::Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let views = Views::new(&batch);
    let mut table = GroupTable::new(layout.clone(), kinds.clone());
    let mut hashes = vec![];
    // SAFETY: the views are of the batch and of these kinds; the kernel was compiled for this layout.
    unsafe {
        hash_columns(&views.columns, &kinds, 40_000, &mut hashes);
        table.run(&*kernel, &views.columns, &[0, 1], &hashes, None).expect("counts");
    }
    assert_eq!(table.len(), 20_000);
    let at = layout.agg_offsets[0];
    assert!(table.rows().all(|row| row[at..at + 8] == 2u64.to_le_bytes()));
}

#[test]
fn what_is_not_supported_is_left_to_the_interpreter() {
    let schema = columns_of_all_types();
    let layout = RowLayout::new(&[8], &[8]);
    let mut distinct = call("count", &[8], &schema, None);
    distinct.distinct = true;
    let text = call("min", &[20], &schema, None);
    for call in [distinct, text] {
        assert!(compile_aggregate(&[8], &[call], &schema, &layout).expect("no error").is_none());
    }
    let both = [call("min", &[20], &schema, None), call("count", &[], &schema, None)];
    let layout = RowLayout::new(&[8], &[8, 8]);
    let kernel = compile_aggregate(&[8], &both, &schema, &layout).expect("compiles").expect("supported");
    assert_eq!(ssql_abi::AggregateKernel::computed(&*kernel), [1]);
    assert!(kernel.clif_text().contains("function"));
    assert!(kernel.asm_text().expect("compiles again").contains("block0"));
}
