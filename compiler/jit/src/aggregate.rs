//! The aggregate kernel: probe of the group table and update of all aggregates of the row in one loop.
//!
//! For each row: from its hash to a slot; while the slot's salt is another key's, to the next; then all key fields
//! against the state row; then each aggregate's words in place. An empty slot leaves the loop: inserting is Rust's
//! part. What an aggregate has already taken of the row in which a later one fails stays, as an error ends the batch
//! and its state with it.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use ssql_abi::group_table::prefetch;
use ssql_abi::layout::SALT_MASK;
use ssql_abi::{AggregateCtx, AggregateKernel, AggregateRun, ColumnView, KernelError, RowLayout, Status};
use ssql_ir::{AggArg, AggCall, DataType, Literal, Schema};
use ssql_stdlib::aggregate::layout::{COUNT, SEEN, VALUE};

use crate::JitError;
use crate::emit::{Emitter, Val, input, shared};
use crate::map::{imports, leave_with_error, nullable_columns};
use crate::module::{Code, ModuleBuilder};
use crate::node::{CompareOp, Ty};

const WORD: usize = 8;
/// Rows per call of the loop while the table is large: the slots and state rows of the next ones are fetched between.
const BLOCK: usize = 64;
/// From this many slots on, a table is taken to be outside the near caches.
const LARGE: u64 = 1 << 13;

/// Compiles the probe and update of a table with this layout, for keys and aggregates over columns of `input`. `None`:
/// the key is not among what generated code can compare, or none of the aggregates is among what it can update.
///
/// # Errors
/// [`JitError`], when the host cannot run generated code.
pub fn compile_aggregate(
    keys: &[u32],
    aggs: &[AggCall],
    input: &Schema,
    layout: &RowLayout,
) -> Result<Option<Arc<CompiledAggregate>>, JitError> {
    let type_of = |c: u32| input.fields.get(c as usize).map(|f| &f.data_type);
    let mut plan = Plan { keys: Vec::new(), updates: Vec::new(), row_size: layout.size };
    for (&column, &offset) in keys.iter().zip(&layout.key_offsets) {
        let kind = match type_of(column) {
            Some(DataType::String | DataType::Binary) => KeyField::Text,
            Some(DataType::Decimal(..)) => KeyField::Wide,
            Some(t) => match Ty::of(t) {
                Some(ty) => KeyField::Word(ty),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        plan.keys.push((column, kind, offset));
    }
    let mut computed = Vec::new();
    for (i, (call, &offset)) in aggs.iter().zip(&layout.agg_offsets).enumerate() {
        if let Some(update) = Update::of(call, type_of) {
            computed.push(i);
            plan.updates.push((i as u32, update, call.filter, offset));
        }
    }
    if computed.is_empty() {
        return Ok(None);
    }
    let mut module = ModuleBuilder::new()?;
    let columns = plan.columns();
    let nullable = nullable_columns(columns.iter().copied(), input);
    define(&mut module, "aggregate_valid", &plan, &columns.iter().map(|&c| (c, false)).collect())?;
    if nullable.values().any(|&n| n) {
        define(&mut module, "aggregate_nullable", &plan, &nullable)?;
    }
    Ok(Some(Arc::new(CompiledAggregate {
        code: module.finish()?,
        computed,
        columns: nullable.into_iter().filter_map(|(c, nullable)| nullable.then_some(c)).collect(),
        row_size: layout.size,
    })))
}

/// A compiled probe and update.
#[derive(Debug)]
pub struct CompiledAggregate {
    code: Code,
    computed: Vec<usize>,
    /// Columns it reads that may have NULLs.
    columns: Vec<u32>,
    row_size: usize,
}

impl CompiledAggregate {
    /// The kernel as it was handed to Cranelift: first for batches without NULLs, then for those with.
    pub fn clif_text(&self) -> String {
        self.code.clif()
    }

    /// The host's instructions.
    ///
    /// # Errors
    /// [`JitError::Backend`], if they cannot be made again.
    pub fn asm_text(&self) -> Result<String, JitError> {
        self.code.asm()
    }

    /// Asks for the slots of rows `far` and for the state rows behind the slots of rows `near`, which were asked for a
    /// block ago.
    ///
    /// # Safety
    /// As for [`AggregateKernel::run`], with hashes for all these rows.
    unsafe fn fetch(&self, ctx: &AggregateCtx, near: std::ops::Range<usize>, far: std::ops::Range<usize>) {
        for row in far {
            // SAFETY: there is a hash for the row (caller), and a slot for every masked hash.
            prefetch(unsafe { ctx.slots.add((*ctx.hashes.add(row) & ctx.mask) as usize) });
        }
        for row in near {
            // SAFETY: as above.
            let slot = unsafe { *ctx.slots.add((*ctx.hashes.add(row) & ctx.mask) as usize) };
            let state = (slot as u32).wrapping_sub(1) as usize;
            // No dereference: a wrong guess fetches a line that no one needs.
            prefetch(ctx.rows.wrapping_add(state * self.row_size));
        }
    }
}

impl AggregateKernel for CompiledAggregate {
    fn computed(&self) -> &[usize] {
        &self.computed
    }

    fn origin(&self, _agg: u32) -> Option<(u32, u32)> {
        // A bound aggregate call carries no origin.
        None
    }

    unsafe fn run(
        &self,
        ctx: &mut AggregateCtx,
        columns: &[ColumnView],
        first: usize,
        rows: usize,
    ) -> Result<AggregateRun, KernelError> {
        let nulls = self.columns.iter().any(|&c| !columns[c as usize].validity.is_null());
        let entry = self.code.entry(usize::from(nulls));
        let large = ctx.mask >= LARGE;
        let mut at = first;
        while at < rows {
            let end = if large { rows.min(at + BLOCK) } else { rows };
            if large {
                let (near, far) = (end..rows.min(end + BLOCK), rows.min(end + BLOCK)..rows.min(end + 2 * BLOCK));
                // SAFETY: the rows are below `rows`, for which the context has hashes (caller).
                unsafe { self.fetch(ctx, near, far) };
            }
            // SAFETY: the caller's promise: columns, hashes and groups for `rows` rows, and a table of this layout.
            let status = unsafe { entry((&raw mut *ctx).cast(), columns.as_ptr(), at as u64, end as u64) };
            match Status::from_raw(status).expect("kernels return the numbers of Status") {
                Status::Done => at = end,
                Status::Insert => return Ok(AggregateRun::Insert(ctx.row)),
                status => return Err(KernelError { status, row: ctx.row, expr: ctx.error_expr }),
            }
        }
        Ok(AggregateRun::Done)
    }
}

#[derive(Debug, Clone, Copy)]
enum KeyField {
    /// A value that fits a register.
    Word(Ty),
    /// DECIMAL, two words.
    Wide,
    /// STRING or BINARY.
    Text,
}

/// What happens to an aggregate's words.
#[derive(Debug, Clone)]
enum Update {
    /// `count`: rows in which none of the columns is NULL.
    Count(Vec<u32>),
    /// `sum` of integers and day-time intervals.
    SumInt(u32, Ty),
    /// `sum` of floats, and `avg` of floats and integers.
    SumFloat(u32, Ty),
    /// `min` or `max`, with the comparison that makes a value replace the one held.
    Extreme(u32, Ty, CompareOp),
}

impl Update {
    fn of<'s>(call: &AggCall, type_of: impl Fn(u32) -> Option<&'s DataType>) -> Option<Update> {
        let extreme = matches!(&*call.function, "min" | "max");
        if (call.distinct && !extreme) || !call.order.is_empty() {
            return None;
        }
        if &*call.function == "count" {
            let mut columns = Vec::new();
            for arg in &call.args {
                match arg {
                    AggArg::Column(c) if *type_of(*c)? != DataType::Null => columns.push(*c),
                    AggArg::Literal(value, _) if *value != Literal::Null => {}
                    _ => return None,
                }
            }
            return Some(Update::Count(columns));
        }
        let ([AggArg::Column(c)], [t]) = (&call.args[..], &call.arg_types[..]) else { return None };
        if type_of(*c)? != t {
            return None;
        }
        let ty = Ty::of(t)?;
        match &*call.function {
            "sum" if t.is_integer() || matches!(t, DataType::DayTimeInterval(..)) => Some(Update::SumInt(*c, ty)),
            "sum" if t.is_float() => Some(Update::SumFloat(*c, ty)),
            "avg" if t.is_integer() || t.is_float() => Some(Update::SumFloat(*c, ty)),
            "min" => Some(Update::Extreme(*c, ty, CompareOp::Lt)),
            "max" => Some(Update::Extreme(*c, ty, CompareOp::Gt)),
            _ => None,
        }
    }

    fn columns(&self) -> &[u32] {
        match self {
            Update::Count(columns) => columns,
            Update::SumInt(c, _) | Update::SumFloat(c, _) | Update::Extreme(c, ..) => std::slice::from_ref(c),
        }
    }
}

struct Plan {
    /// Column, kind, and offset in the state row.
    keys: Vec<(u32, KeyField, usize)>,
    /// Number of the aggregate, what is done, filter column, and offset in the state row.
    updates: Vec<(u32, Update, Option<u32>, usize)>,
    row_size: usize,
}

impl Plan {
    fn columns(&self) -> BTreeSet<u32> {
        let keys = self.keys.iter().map(|k| k.0);
        keys.chain(self.updates.iter().flat_map(|(_, u, filter, _)| u.columns().iter().copied().chain(*filter)))
            .collect()
    }
}

/// Builds and compiles one version of the loop.
fn define(module: &mut ModuleBuilder, name: &str, plan: &Plan, columns: &BTreeMap<u32, bool>) -> Result<(), JitError> {
    let mut function = module.function();
    let imports = imports(module, &mut function, std::iter::empty())?;
    let config = module.frontend_config();
    let mut b = FunctionBuilder::new(&mut function, &mut module.builder_context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[ctx, views, first, rows] = b.block_params(entry) else { unreachable!("a kernel has four parameters") };
    let error = b.create_block();
    b.append_block_param(error, types::I32);
    b.append_block_param(error, types::I32);
    b.set_cold_block(error);

    let mut e = Emitter::new(&mut b, views, columns, imports, error);
    let mut field = |offset: usize| e.load(types::I64, input(), ctx, offset);
    let hashes = field(offset_of!(AggregateCtx, hashes));
    let table = Table {
        slots: field(offset_of!(AggregateCtx, slots)),
        mask: field(offset_of!(AggregateCtx, mask)),
        rows: field(offset_of!(AggregateCtx, rows)),
        heap: field(offset_of!(AggregateCtx, heap)),
    };
    let groups = field(offset_of!(AggregateCtx, groups));
    let (head, done, missing) = (e.block(&[types::I64]), e.block(&[]), e.block(&[]));
    e.b.set_cold_block(missing);
    let any = e.icmp(IntCC::UnsignedLessThan, first, rows);
    e.b.ins().brif(any, head, &[first.into()], done, &[]);

    e.enter(head);
    let row = e.b.block_params(head)[0];
    e.set_row(row);
    let at = e.element(hashes, row, WORD);
    let hash = e.load(types::I64, input(), at, 0);
    let key = load_key(&mut e, plan);
    let (group, state) = probe(&mut e, plan, &table, &key, hash, missing);

    let (write_group, update) = (e.block(&[]), e.block(&[]));
    e.branch(groups, write_group, update);
    e.enter(write_group);
    let at = e.element(groups, row, 4);
    e.b.ins().store(shared(), group, at, 0);
    e.jump(update, &[]);
    e.enter(update);
    for (number, what, filter, offset) in &plan.updates {
        apply(&mut e, *number, what, *filter, state, *offset);
    }
    let one = e.int(types::I64, 1);
    let next = e.add(row, one);
    let more = e.icmp(IntCC::UnsignedLessThan, next, rows);
    e.b.ins().brif(more, head, &[next.into()], done, &[]);

    e.enter(done);
    let status = e.int(types::I32, Status::Done as i64);
    e.b.ins().return_(&[status]);

    e.enter(missing);
    let (none, status) = (e.int(types::I32, 0), e.int(types::I32, Status::Insert as i64));
    e.jump(error, &[none, status]);

    e.enter(error);
    leave_with_error(&mut e, error, ctx, offset_of!(AggregateCtx, error_expr), offset_of!(AggregateCtx, row));
    b.seal_all_blocks();
    b.finalize(config);
    module.define(name, function)
}

struct Table {
    slots: Value,
    mask: Value,
    rows: Value,
    heap: Value,
}

/// A key field of the row in hand: its words, which are zero where it is NULL, and for a string how to reach its bytes.
enum KeyValue {
    Word(Value),
    Wide(Value, Value),
    Text(crate::emit::TextVal),
}

struct Key {
    /// The null bits as they stand in a state row.
    nulls: Value,
    fields: Vec<KeyValue>,
}

fn load_key(e: &mut Emitter<'_, '_>, plan: &Plan) -> Key {
    let mut nulls = e.int(types::I64, 0);
    let mut fields = Vec::new();
    for (k, &(column, kind, _)) in plan.keys.iter().enumerate() {
        let (value, null) = match kind {
            KeyField::Word(ty) => {
                let Val { mut v, null } = e.column_value(column, ty);
                if ty.is_float() {
                    v = e.b.ins().bitcast(int_of(ty), cranelift_codegen::ir::MemFlagsData::new(), v);
                }
                if let Some(null) = null {
                    let zero = e.int(int_of(ty), 0);
                    v = e.select(null, zero, v);
                }
                (KeyValue::Word(v), null)
            }
            // A decimal is read as a view is: two words, zero where NULL.
            KeyField::Wide => {
                let pair = e.text_column(column);
                (KeyValue::Wide(pair.head, pair.tail), pair.null)
            }
            KeyField::Text => {
                let text = e.text_column(column);
                let null = text.null;
                (KeyValue::Text(text), null)
            }
        };
        if let Some(null) = null {
            let (wide, shift) = (e.b.ins().uextend(types::I64, null), e.int(types::I64, k as i64));
            let bit = e.b.ins().ishl(wide, shift);
            nulls = e.or(nulls, bit);
        }
        fields.push(value);
    }
    Key { nulls, fields }
}

/// The integer type with the bits of `ty`.
fn int_of(ty: Ty) -> cranelift_codegen::ir::Type {
    match ty {
        Ty::F32 => types::I32,
        Ty::F64 => types::I64,
        other => other.clif(),
    }
}

/// Finds the key's state row: its number (i32) and address. Goes to `missing` at an empty slot.
fn probe(
    e: &mut Emitter<'_, '_>,
    plan: &Plan,
    table: &Table,
    key: &Key,
    hash: Value,
    missing: Block,
) -> (Value, Value) {
    let (look, taken, salted, next, found) =
        (e.block(&[types::I64]), e.block(&[]), e.block(&[]), e.block(&[]), e.block(&[]));
    let start = e.and(hash, table.mask);
    e.jump(look, &[start]);

    e.enter(look);
    let position = e.b.block_params(look)[0];
    let at = e.element(table.slots, position, WORD);
    let slot = e.load(types::I64, shared(), at, 0);
    e.branch(slot, taken, missing);

    e.enter(taken);
    let differs = e.b.ins().bxor(slot, hash);
    let salt = e.int(types::I64, SALT_MASK as i64);
    let differs = e.and(differs, salt);
    e.branch(differs, next, salted);

    e.enter(salted);
    let (one, size) = (e.int(types::I64, 1), e.int(types::I64, plan.row_size as i64));
    let low = e.int(types::I64, 0xffff_ffff);
    let number = e.and(slot, low);
    let number = e.b.ins().isub(number, one);
    let offset = e.b.ins().imul(number, size);
    let state = e.add(table.rows, offset);
    same_key(e, plan, table, key, state, next, found);

    e.enter(next);
    let one = e.int(types::I64, 1);
    let after = e.add(position, one);
    let after = e.and(after, table.mask);
    e.jump(look, &[after]);

    e.enter(found);
    let group = e.b.ins().ireduce(types::I32, number);
    (group, state)
}

/// Branches to `found` if the state row has the key, else to `next`: one comparison for all words, then the strings.
fn same_key(e: &mut Emitter<'_, '_>, plan: &Plan, table: &Table, key: &Key, state: Value, next: Block, found: Block) {
    let nulls = e.load(types::I64, shared(), state, RowLayout::NULLS);
    let mut differs = e.b.ins().bxor(nulls, key.nulls);
    let mut texts = Vec::new();
    for (value, &(_, _, offset)) in key.fields.iter().zip(&plan.keys) {
        let mut word = |e: &mut Emitter<'_, '_>, v: Value, at: usize| {
            let ty = e.b.func.dfg.value_type(v);
            let held = e.load(ty, shared(), state, at);
            let bits = e.b.ins().bxor(held, v);
            let bits = if ty == types::I64 { bits } else { e.b.ins().uextend(types::I64, bits) };
            differs = e.or(differs, bits);
        };
        match value {
            KeyValue::Word(v) => word(e, *v, offset),
            KeyValue::Wide(low, high) => {
                word(e, *low, offset);
                word(e, *high, offset + WORD);
            }
            KeyValue::Text(text) => {
                word(e, text.head, offset);
                texts.push((text, offset + WORD));
            }
        }
    }
    if texts.is_empty() {
        return e.branch(differs, next, found);
    }
    let first = e.block(&[]);
    e.branch(differs, next, first);
    e.enter(first);
    for (i, (text, at)) in texts.iter().enumerate() {
        let after = if i + 1 == texts.len() { found } else { e.block(&[]) };
        let (short, long) = (e.block(&[]), e.block(&[]));
        let held = e.load(types::I64, shared(), state, *at);
        let is_long = e.is_long(text);
        e.branch(is_long, long, short);
        e.enter(short);
        let differs = e.b.ins().bxor(held, text.tail);
        e.branch(differs, next, after);
        e.enter(long);
        let place = e.add(table.heap, held);
        let same = e.long_bytes_equal(text, place);
        e.branch(same, after, next);
        if after != found {
            e.enter(after);
        }
    }
}

/// Updates one aggregate's words at `state + offset`. A row that does not count writes what is there already.
fn apply(e: &mut Emitter<'_, '_>, number: u32, what: &Update, filter: Option<u32>, state: Value, offset: usize) {
    // 1 where the row counts; absent where all do.
    let mut counts = filter.map(|c| e.column_value(c, Ty::Bool).v);
    for &c in what.columns() {
        if let Some(null) = e.null_of(c) {
            let valid = e.not(null);
            counts = Some(counts.map_or(valid, |counts| e.and(counts, valid)));
        }
    }
    let step = match counts {
        Some(counts) => e.b.ins().uextend(types::I64, counts),
        None => e.int(types::I64, 1),
    };
    let word = |word: usize| offset + word * WORD;
    if let Update::Count(_) = what {
        let n = e.load(types::I64, shared(), state, word(COUNT));
        let n = e.add(n, step);
        e.b.ins().store(shared(), n, state, word(COUNT) as i32);
        return;
    }
    let seen = e.load(types::I64, shared(), state, word(SEEN));
    let zero = e.int(types::I64, 0);
    let empty = e.icmp(IntCC::Equal, seen, zero);
    let next = match what {
        Update::Count(_) => unreachable!("returned above"),
        Update::SumInt(c, ty) => {
            let value = e.column_value(*c, *ty).v;
            let value = e.widen(value, *ty, types::I64);
            let value = counts.map_or(value, |counts| e.select(counts, value, zero));
            let held = e.load(types::I64, shared(), state, word(VALUE));
            let (sum, failed) = e.b.ins().sadd_overflow(held, value);
            e.guard(failed, None, number, Status::ArithmeticOverflow);
            sum
        }
        Update::SumFloat(c, ty) => {
            let value = to_double(e, *c, *ty);
            let held = e.load(types::F64, shared(), state, word(VALUE));
            let sum = e.b.ins().fadd(held, value);
            // A new row holds 0.0, so that a sum of -0.0 is 0.0, as in Spark.
            counts.map_or(sum, |counts| e.select(counts, sum, held))
        }
        Update::Extreme(c, ty, op) => {
            let (value, held_ty) = if ty.is_float() {
                (to_double(e, *c, *ty), Ty::F64)
            } else {
                let value = e.column_value(*c, *ty).v;
                (e.widen(value, *ty, types::I64), Ty::I64)
            };
            let held = e.load(held_ty.clif(), shared(), state, word(VALUE));
            let better = e.compare(*op, value, held, held_ty);
            let replace = e.or(empty, better);
            let replace = counts.map_or(replace, |counts| e.and(replace, counts));
            e.select(replace, value, held)
        }
    };
    e.b.ins().store(shared(), next, state, word(VALUE) as i32);
    let seen = e.add(seen, step);
    e.b.ins().store(shared(), seen, state, word(SEEN) as i32);
}

/// The column's value as a DOUBLE.
fn to_double(e: &mut Emitter<'_, '_>, c: u32, ty: Ty) -> Value {
    let value = e.column_value(c, ty).v;
    match ty {
        Ty::F64 => value,
        Ty::F32 => e.b.ins().fpromote(types::F64, value),
        _ => {
            let wide = e.widen(value, ty, types::I64);
            e.b.ins().fcvt_from_sint(types::F64, wide)
        }
    }
}
