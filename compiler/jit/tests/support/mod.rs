//! What the tests share: Arrow batches as column views, random batches and expressions, and the comparison of a kernel
//! with the reference evaluation.

// Each test binary uses a part of this.
#![allow(dead_code)]

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{filter_record_batch, take};
use rand::Rng;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use ssql_abi::{ColumnView, KernelError, MapKernel};
use ssql_ir::print::ExprText;
use ssql_ir::{CastMode, DataType as T, Expr, ExprKind, Field, Literal, Schema};
use ssql_jit::compile_map;
use ssql_stdlib::{EvalContext, EvalError, arrow_schema, evaluate, filter_mask};

/// Where random choices come from: a seed, or the bytes that a fuzzer chose (and nothing but zeros behind them).
pub enum Dice {
    Seeded(Box<StdRng>),
    Bytes(std::vec::IntoIter<u8>),
}

impl Dice {
    pub fn seeded(seed: u64) -> Dice {
        Dice::Seeded(Box::new(StdRng::seed_from_u64(seed)))
    }

    pub fn bytes(bytes: &[u8]) -> Dice {
        Dice::Bytes(Vec::from(bytes).into_iter())
    }
}

impl RngCore for Dice {
    fn next_u32(&mut self) -> u32 {
        match self {
            Dice::Seeded(rng) => rng.next_u32(),
            // A byte is spread over the word: choices among few come from its high bits, small numbers from its low ones.
            Dice::Bytes(bytes) => u32::from(bytes.next().unwrap_or(0)) * 0x0101_0101,
        }
    }

    fn next_u64(&mut self) -> u64 {
        match self {
            Dice::Seeded(rng) => rng.next_u64(),
            Dice::Bytes(_) => u64::from(self.next_u32()) << 32 | u64::from(self.next_u32()),
        }
    }

    fn fill_bytes(&mut self, into: &mut [u8]) {
        into.iter_mut().for_each(|b| *b = self.next_u32() as u8);
    }
}

/// A batch's columns as generated code sees them; the batch must outlive it.
pub struct Views {
    pub columns: Vec<ColumnView>,
    /// Pointers to the buffers of string columns.
    _buffers: Vec<Vec<*const u8>>,
}

impl Views {
    pub fn new(batch: &RecordBatch) -> Views {
        let mut views = Views { columns: vec![], _buffers: vec![] };
        for array in batch.columns() {
            let (validity, validity_bit) = match array.nulls().filter(|n| n.null_count() > 0) {
                Some(nulls) => (nulls.validity().as_ptr(), nulls.offset() as u64),
                None => (std::ptr::null(), 0),
            };
            let (mut buffers, mut values_bit) = (vec![], 0);
            let values = if let Some(bits) = array.as_boolean_opt() {
                values_bit = bits.values().offset() as u64;
                bits.values().values().as_ptr()
            } else if let Some(strings) = array.as_string_view_opt() {
                buffers = strings.data_buffers().iter().map(|b| b.as_ptr()).collect();
                strings.views().as_ptr().cast()
            } else {
                let data = array.to_data();
                let width = data.data_type().primitive_width().expect("a fixed-width column");
                data.buffers()[0].as_ptr().wrapping_add(data.offset() * width)
            };
            views.columns.push(ColumnView { values, validity, buffers: buffers.as_ptr(), values_bit, validity_bit });
            views._buffers.push(buffers);
        }
        views
    }
}

pub fn columns_of_all_types() -> Schema {
    let types = [
        T::Boolean,
        T::Int8,
        T::Int16,
        T::Int32,
        T::Int64,
        T::Float32,
        T::Float64,
        T::Date,
        T::Timestamp,
        T::TimestampNtz,
        T::String,
    ];
    // Each type twice: once with NULLs, once without.
    let field = |(i, t): (usize, &T), null| Field::new(format!("c{i}{}", if null { "n" } else { "" }), t.clone(), null);
    let all = types.iter().enumerate();
    Schema::new(all.flat_map(|at| [field(at, true), field(at, false)]).collect())
}

/// How far the values of a batch go: at the extremes almost every batch has an error.
#[derive(Clone, Copy, PartialEq)]
pub enum Taste {
    Tame,
    Wild,
}

fn random_int(rng: &mut Dice, taste: Taste, least: i64, most: i64) -> i64 {
    if taste == Taste::Wild && rng.random_ratio(1, 6) {
        return [least, least + 1, most, most - 1, least / 2, most / 3][rng.random_range(0..6)];
    }
    rng.random_range(-4..=6)
}

fn random_float(rng: &mut Dice, taste: Taste) -> f64 {
    if rng.random_ratio(1, if taste == Taste::Wild { 3 } else { 12 }) {
        let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 127.9, -128.9, 32767.5, 2147483648.0];
        let odder = [-2147483649.0, i64::MAX as f64, -9.3e18, 1e300, 5e-324, 127.0, 128.0, -129.0, 0.1];
        return odd.into_iter().chain(odder).nth(rng.random_range(0..18)).expect("18 values");
    }
    f64::from(rng.random_range(-8..9)) / 2.0
}

pub fn random_string(rng: &mut Dice) -> String {
    let stem = ["", "a", "abc", "abcd", "abcdefghijkl", "abcdefghijklm", "abcd a long string", "abcd a long strinh"];
    let mut s = stem[rng.random_range(0..stem.len())].to_owned();
    if rng.random_ratio(1, 4) {
        s.push(['x', '\0', 'é'][rng.random_range(0..3)]);
    }
    s
}

fn random_micros(rng: &mut Dice, taste: Taste) -> i64 {
    if taste == Taste::Wild && rng.random_ratio(1, 10) {
        return [i64::MIN, i64::MAX, i64::MIN + 7, -1, -1_000_000][rng.random_range(0..5)];
    }
    rng.random_range(-200_000_000_000..200_000_000_000)
}

fn random_column(rng: &mut Dice, t: &T, rows: usize, nulls: bool, taste: Taste) -> ArrayRef {
    let nulls = nulls.then(|| NullBuffer::from_iter((0..rows).map(|_| rng.random_ratio(4, 5))));
    macro_rules! ints {
        ($array:ty, $t:ty) => {{
            let values: Vec<$t> =
                (0..rows).map(|_| random_int(rng, taste, <$t>::MIN.into(), <$t>::MAX.into()) as $t).collect();
            std::sync::Arc::new(<$array>::new(values.into(), nulls))
        }};
    }
    match t {
        T::Boolean => {
            let values: Vec<bool> = (0..rows).map(|_| rng.random()).collect();
            std::sync::Arc::new(BooleanArray::new(values.into(), nulls))
        }
        T::Int8 => ints!(Int8Array, i8),
        T::Int16 => ints!(Int16Array, i16),
        T::Int32 => ints!(Int32Array, i32),
        T::Int64 => ints!(Int64Array, i64),
        T::Date => ints!(Date32Array, i32),
        T::Float32 => {
            let values: Vec<f32> = (0..rows).map(|_| random_float(rng, taste) as f32).collect();
            std::sync::Arc::new(Float32Array::new(values.into(), nulls))
        }
        T::Float64 => {
            let values: Vec<f64> = (0..rows).map(|_| random_float(rng, taste)).collect();
            std::sync::Arc::new(Float64Array::new(values.into(), nulls))
        }
        T::Timestamp | T::TimestampNtz => {
            let values: Vec<i64> = (0..rows).map(|_| random_micros(rng, taste)).collect();
            let array = TimestampMicrosecondArray::new(values.into(), nulls);
            let utc = *t == T::Timestamp;
            std::sync::Arc::new(if utc { array.with_timezone("UTC") } else { array })
        }
        T::String => {
            let values: Vec<Option<String>> =
                (0..rows).map(|i| (nulls.as_ref().is_none_or(|n| n.is_valid(i))).then(|| random_string(rng))).collect();
            std::sync::Arc::new(StringViewArray::from_iter(values))
        }
        other => panic!("no random values of {other}"),
    }
}

/// A batch that starts in the middle of its buffers, so that bitmaps start at odd bits.
pub fn random_batch(rng: &mut Dice, schema: &Schema, rows: usize, taste: Taste) -> RecordBatch {
    let skip = rng.random_range(0..10);
    let no_nulls = rng.random_ratio(1, 3);
    let columns = schema
        .fields
        .iter()
        .map(|f| random_column(rng, &f.data_type, rows + skip, f.nullable && !no_nulls, taste))
        .collect();
    RecordBatch::try_new(arrow_schema(schema), columns).expect("columns of the schema").slice(skip, rows)
}

/// Random typed expressions over a schema.
pub struct Exprs<'a> {
    pub rng: &'a mut Dice,
    pub schema: &'a Schema,
}

impl Exprs<'_> {
    fn pick<'t>(&mut self, types: &'t [T]) -> &'t T {
        &types[self.rng.random_range(0..types.len())]
    }

    fn column(&mut self, t: &T) -> Expr {
        let all: Vec<usize> = (0..self.schema.len()).filter(|&i| self.schema.fields[i].data_type == *t).collect();
        let i = all[self.rng.random_range(0..all.len())];
        Expr::column(i as u32, t.clone(), self.schema.fields[i].nullable)
    }

    fn literal(&mut self, t: &T) -> Expr {
        let value = match t {
            _ if self.rng.random_ratio(1, 8) => Literal::Null,
            T::Boolean => Literal::Boolean(self.rng.random()),
            T::Float32 => Literal::Float(f64::from(random_float(self.rng, Taste::Tame) as f32)),
            T::Float64 => Literal::Float(random_float(self.rng, Taste::Tame)),
            T::String => Literal::String(random_string(self.rng)),
            T::Timestamp | T::TimestampNtz => Literal::Int(random_micros(self.rng, Taste::Tame)),
            _ => Literal::Int(self.rng.random_range(-5..20)),
        };
        Expr::literal(value, t.clone())
    }

    fn call(&mut self, name: &str, args: Vec<Expr>, t: &T) -> Expr {
        Expr::call(name, args, t.clone(), true)
    }

    pub fn expr(&mut self, t: &T, depth: u32) -> Expr {
        if depth == 0 || self.rng.random_ratio(1, 8) {
            return if self.rng.random_ratio(3, 4) { self.column(t) } else { self.literal(t) };
        }
        let d = depth - 1;
        let kind = |kind, t: &T| Expr { kind, data_type: t.clone(), nullable: true, origin: Default::default() };
        match self.rng.random_range(0..6) {
            0 => {
                let branches =
                    (0..self.rng.random_range(1..4)).map(|_| (self.expr(&T::Boolean, d), self.expr(t, d))).collect();
                let otherwise = self.rng.random::<bool>().then(|| Box::new(self.expr(t, d)));
                return kind(ExprKind::Case { branches, otherwise }, t);
            }
            1 => {
                let args = (0..self.rng.random_range(1..4)).map(|_| self.expr(t, d)).collect();
                return kind(ExprKind::Coalesce(args), t);
            }
            2 if *t != T::Boolean => {
                let numbers = [T::Boolean, T::Int8, T::Int16, T::Int32, T::Int64, T::Float32, T::Float64];
                let from = match t {
                    T::Timestamp => self.pick(&[T::Int8, T::Int32, T::Int64]),
                    T::Date => &T::TimestampNtz,
                    t if t.is_numeric() => {
                        if self.rng.random_ratio(1, 5) {
                            &T::Timestamp
                        } else {
                            self.pick(&numbers)
                        }
                    }
                    _ => return self.expr(t, d),
                };
                let input = Box::new(self.expr(from, d));
                let mode = if self.rng.random_ratio(1, 3) { CastMode::Try } else { CastMode::Ansi };
                return kind(ExprKind::Cast { input, mode }, t);
            }
            _ => {}
        }
        match t {
            T::Boolean => self.boolean(d),
            t if t.is_integer() => {
                let ops = ["+", "-", "*", "%", "&", "|", "^", "~", "div", "negative", "abs"];
                match ops[self.rng.random_range(0..ops.len())] {
                    // Their condition is pinned by `map.rs` instead.
                    "negative" | "abs" if matches!(t, T::Int8 | T::Int16) => self.expr(t, d),
                    op @ ("negative" | "abs" | "~") => {
                        let a = self.expr(t, d);
                        self.call(op, vec![a], t)
                    }
                    "div" if *t != T::Int64 => self.expr(t, d),
                    op => {
                        let args = vec![self.expr(t, d), self.expr(t, d)];
                        self.call(op, args, t)
                    }
                }
            }
            t if t.is_float() => {
                let ops = ["+", "-", "*", "negative", "abs", "/"];
                match ops[self.rng.random_range(0..ops.len())] {
                    op @ ("negative" | "abs") => {
                        let a = self.expr(t, d);
                        self.call(op, vec![a], t)
                    }
                    "/" if *t == T::Float32 => self.expr(t, d),
                    op => {
                        let args = vec![self.expr(t, d), self.expr(t, d)];
                        self.call(op, args, t)
                    }
                }
            }
            T::Timestamp | T::TimestampNtz => {
                let long = |v| Expr::literal(Literal::Int(v), T::Int64);
                let size = self.rng.random_range(1..100_000_000);
                let args = vec![self.expr(t, d), long(size), long(self.rng.random_range(-200_000_000..200_000_000))];
                self.call("window_start", args, t)
            }
            t => self.expr(t, 0),
        }
    }

    fn boolean(&mut self, d: u32) -> Expr {
        let kind = |kind| Expr { kind, data_type: T::Boolean, nullable: true, origin: Default::default() };
        let types = [
            T::Boolean,
            T::Int8,
            T::Int16,
            T::Int32,
            T::Int64,
            T::Float32,
            T::Float64,
            T::Date,
            T::Timestamp,
            T::TimestampNtz,
            T::String,
        ];
        let t = self.pick(&types).clone();
        // Strings are operands only as columns and literals.
        let depth = if t == T::String { 0 } else { d };
        match self.rng.random_range(0..10) {
            0 | 1 => kind(ExprKind::And(self.expr(&T::Boolean, d).into(), self.expr(&T::Boolean, d).into())),
            2 | 3 => kind(ExprKind::Or(self.expr(&T::Boolean, d).into(), self.expr(&T::Boolean, d).into())),
            4 => {
                let a = self.expr(&T::Boolean, d);
                self.call("not", vec![a], &T::Boolean)
            }
            5 => {
                let a = if t == T::String { self.column(&t) } else { self.expr(&t, depth) };
                let name = if self.rng.random() { "isnull" } else { "isnotnull" };
                self.call(name, vec![a], &T::Boolean)
            }
            6 => {
                let mut args = vec![self.column(&t)];
                args.extend((0..self.rng.random_range(1..6)).map(|_| self.literal(&t)));
                self.call("in", args, &T::Boolean)
            }
            7 => {
                let pattern = random_string(self.rng) + ["", "%"][self.rng.random_range(0..2)];
                let args = vec![self.column(&T::String), Expr::literal(Literal::String(pattern), T::String)];
                self.call("like", args, &T::Boolean)
            }
            _ => {
                let name = ["=", "<>", "<", "<=", ">", ">=", "<=>"][self.rng.random_range(0..7)];
                let args = vec![self.expr(&t, depth), self.expr(&t, depth)];
                self.call(name, args, &T::Boolean)
            }
        }
    }
}

/// What a comparison with the reference found.
#[derive(Debug, PartialEq)]
pub enum Checked {
    /// Nothing of it is for generated code.
    NotCompiled,
    /// Both gave the same rows.
    Rows(usize),
    /// Both stopped with this condition.
    Error(&'static str),
}

/// Runs the map kernel and the reference over the batch and compares. Panics at a difference.
pub fn check_map(predicate: Option<&Expr>, project: &[Expr], schema: &Schema, batch: &RecordBatch) -> Checked {
    let Some(kernel) = compile_map(predicate, project, schema).expect("compiles") else { return Checked::NotCompiled };
    let views = Views::new(batch);
    // SAFETY: the views are of the batch, which has the schema's columns.
    let got = unsafe { kernel.run(&views.columns, batch.num_rows()) };
    let wanted: Vec<&Expr> = kernel.computed().iter().map(|&i| &project[i]).collect();
    let show = |e: &Expr| ExprText(e, &schema.fields).to_string();
    let context = || {
        let project: Vec<String> = wanted.iter().map(|e| show(e)).collect();
        format!("predicate {:?}\nproject {project:#?}", predicate.map(show))
    };
    match got {
        Ok(got) => {
            let (rows, columns) = reference(predicate, &wanted, batch)
                .unwrap_or_else(|e| panic!("the kernel ran, the reference did not: {e}\n{}", context()));
            if let Some(selection) = &got.selection {
                assert_eq!(*selection, rows, "selection\n{}", context());
            }
            for (k, (output, column)) in got.columns.iter().zip(&columns).enumerate() {
                let width = output.values.len() / rows.len().max(1);
                for (i, row) in rows.iter().enumerate() {
                    let valid = output.validity.is_empty() || output.validity[i] == 1;
                    let value = valid.then(|| &output.values[i * width..(i + 1) * width]);
                    let want = bytes_of(column, i);
                    assert!(
                        same(value, want.as_deref(), &wanted[k].data_type),
                        "row {} of column {k}: kernel {value:?}, reference {want:?}; batch {:?}\n{}",
                        row,
                        batch.slice(*row as usize, 1),
                        context()
                    );
                }
            }
            Checked::Rows(rows.len())
        }
        Err(KernelError { status, row, .. }) => {
            let one = batch.slice(row as usize, 1);
            let condition = status.condition().expect("an error of the data");
            match reference(predicate, &wanted, &one) {
                Ok(_) => panic!(
                    "the kernel stopped with {condition}, the reference did not\n{}\n{:?}",
                    context(),
                    one.columns()
                ),
                Err(e) => assert_eq!(e.condition, condition, "{e:?}\n{}\n{:?}", context(), one.columns()),
            }
            Checked::Error(condition)
        }
    }
}

/// The rows that pass, and the columns over them.
fn reference(
    predicate: Option<&Expr>,
    project: &[&Expr],
    batch: &RecordBatch,
) -> Result<(Vec<u32>, Vec<ArrayRef>), EvalError> {
    let ctx = EvalContext::default();
    let mask = match predicate {
        Some(predicate) => filter_mask(predicate, batch, &ctx)?,
        None => BooleanArray::from(vec![true; batch.num_rows()]),
    };
    let rows = (0..batch.num_rows() as u32).filter(|&i| mask.is_valid(i as usize) && mask.value(i as usize)).collect();
    let kept = filter_record_batch(batch, &mask).expect("a mask as long as the batch");
    let columns = project.iter().map(|e| evaluate(e, &kept, &ctx)).collect::<Result<_, _>>()?;
    Ok((rows, columns))
}

/// A value's bytes as a kernel writes them; `None` for NULL.
pub fn bytes_of(array: &ArrayRef, row: usize) -> Option<Vec<u8>> {
    if array.is_null(row) {
        return None;
    }
    if let Some(bits) = array.as_boolean_opt() {
        return Some(vec![u8::from(bits.value(row))]);
    }
    // `take` makes a value stand alone at the start of its buffer.
    let one = take(array, &arrow::array::UInt32Array::from(vec![row as u32]), None).expect("a row of the array");
    let width = one.data_type().primitive_width().expect("a fixed-width result");
    Some(one.to_data().buffers()[0].as_slice()[..width].to_vec())
}

/// Bitwise, but any NaN is a NaN.
fn same(a: Option<&[u8]>, b: Option<&[u8]>, t: &T) -> bool {
    let nan = |bytes: &[u8]| match t {
        T::Float32 => f32::from_le_bytes(bytes.try_into().expect("4 bytes")).is_nan(),
        T::Float64 => f64::from_le_bytes(bytes.try_into().expect("8 bytes")).is_nan(),
        _ => false,
    };
    match (a, b) {
        (Some(a), Some(b)) => a == b || (nan(a) && nan(b)),
        (a, b) => a == b,
    }
}
