//! Nodes to CLIF, one row at a time.
//!
//! A value is a register and, where it may be NULL, a flag beside it. What is cheap is computed without branches, needed
//! or not; an error in it counts only where SQL evaluates it, which a flag says ([`Emitter::active`]). What is dear stands
//! behind a branch. An error leaves the loop through one cold block that takes the site and the status; such branches are
//! never taken in a healthy batch and so cost next to nothing.

mod number;
mod text;

pub(crate) use text::TextVal;

use std::collections::BTreeMap;
use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{
    Block, BlockArg, FuncRef, GlobalValue, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value, types,
};
use cranelift_frontend::FunctionBuilder;
use ssql_abi::{ColumnView, Status};

use crate::node::{CompareOp, Node, NodeOp, Site, Ty, UnaryOp};

/// A value of the row in hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Val {
    pub v: Value,
    /// 1 where the value is NULL; absent when it cannot be.
    pub null: Option<Value>,
}

/// A column's pointers, loaded before the loop.
#[derive(Debug, Clone, Copy)]
struct Column {
    values: Value,
    values_bit: Value,
    buffers: Value,
    /// Bitmap, first bit, and a mask for the bit's number: a batch without NULLs in this column reads one set bit for
    /// ever. Absent in the loop that knows of no NULLs.
    validity: Option<(Value, Value, Value)>,
}

/// What functions of the module may be called, and constant strings by content.
#[derive(Debug, Clone, Default)]
pub(crate) struct Imports {
    pub bytes_equal: Option<FuncRef>,
    pub bytes_compare: Option<FuncRef>,
    pub literals: BTreeMap<String, GlobalValue>,
}

/// Emits nodes into a function under construction.
pub(crate) struct Emitter<'a, 'f> {
    pub b: &'a mut FunctionBuilder<'f>,
    columns: BTreeMap<u32, Column>,
    imports: Imports,
    /// Number of the row in hand, an i64.
    row: Option<Value>,
    /// 1 where SQL evaluates what is being emitted; absent: always. Errors elsewhere are not errors.
    active: Option<Value>,
    /// Takes (site, status), both i32.
    error: Block,
}

/// Memory that no one writes while a kernel runs.
pub(crate) fn input() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_can_move().with_readonly()
}

/// Memory that the kernel or its caller writes.
pub(crate) fn shared() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Begins in the function's entry block: loads the pointers of these columns (each with whether it may have NULLs)
    /// from the array of views at `views`.
    pub(crate) fn new(
        b: &'a mut FunctionBuilder<'f>,
        views: Value,
        columns: &BTreeMap<u32, bool>,
        imports: Imports,
        error: Block,
    ) -> Emitter<'a, 'f> {
        let mut emitter = Emitter { b, columns: BTreeMap::new(), imports, row: None, active: None, error };
        // One set bit, which stands for the validity of columns that have none.
        let valid = columns.values().any(|&nullable| nullable).then(|| {
            let slot = emitter.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
            let ones = emitter.b.ins().iconst(types::I64, -1);
            emitter.b.ins().stack_store(types::I64, ones, slot, 0);
            emitter.b.ins().stack_addr(types::I64, slot, 0)
        });
        for (&c, &nullable) in columns {
            let mut field = |offset: usize| {
                let at = c as usize * size_of::<ColumnView>() + offset;
                emitter.b.ins().load(types::I64, input(), views, at as i32)
            };
            let values = field(offset_of!(ColumnView, values));
            let values_bit = field(offset_of!(ColumnView, values_bit));
            let buffers = field(offset_of!(ColumnView, buffers));
            let (bitmap, first) =
                (field(offset_of!(ColumnView, validity)), field(offset_of!(ColumnView, validity_bit)));
            let validity = valid.filter(|_| nullable).map(|valid| {
                let (zero, ones) = (emitter.int(types::I64, 0), emitter.int(types::I64, -1));
                let absent = emitter.icmp(IntCC::Equal, bitmap, zero);
                let mask = emitter.select(absent, zero, ones);
                (emitter.select(absent, valid, bitmap), first, mask)
            });
            emitter.columns.insert(c, Column { values, values_bit, buffers, validity });
        }
        emitter
    }

    /// Sets the row that following nodes are computed for.
    pub(crate) fn set_row(&mut self, row: Value) {
        self.row = Some(row);
    }

    pub(crate) fn row(&self) -> Value {
        self.row.expect("the loop has set a row")
    }

    fn column(&self, c: u32) -> Column {
        self.columns[&c]
    }

    // ---- small instructions ----

    pub(crate) fn int(&mut self, ty: Type, value: i64) -> Value {
        // An immediate of a narrow type must not have bits above it.
        let bits = ty.bits();
        let value = if bits < 64 { value & ((1i64 << bits) - 1) } else { value };
        self.b.ins().iconst(ty, value)
    }

    pub(crate) fn icmp(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cc, a, b)
    }

    fn fcmp(&mut self, cc: FloatCC, a: Value, b: Value) -> Value {
        self.b.ins().fcmp(cc, a, b)
    }

    pub(crate) fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        self.b.ins().select(c, a, b)
    }

    pub(crate) fn and(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().band(a, b)
    }

    pub(crate) fn or(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().bor(a, b)
    }

    pub(crate) fn add(&mut self, a: Value, b: Value) -> Value {
        self.b.ins().iadd(a, b)
    }

    /// Negation of a flag.
    pub(crate) fn not(&mut self, a: Value) -> Value {
        let one = self.int(types::I8, 1);
        self.b.ins().bxor(a, one)
    }

    fn and_not(&mut self, a: Value, b: Value) -> Value {
        let b = self.not(b);
        self.and(a, b)
    }

    /// NULL where either is.
    fn either(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.or(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    fn zero(&mut self, ty: Ty) -> Value {
        self.constant(0, ty)
    }

    fn constant(&mut self, bits: u64, ty: Ty) -> Value {
        match ty {
            Ty::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            Ty::F64 => self.b.ins().f64const(f64::from_bits(bits)),
            _ => self.int(ty.clif(), bits as i64),
        }
    }

    pub(crate) fn load(&mut self, ty: Type, flags: MemFlagsData, at: Value, offset: usize) -> Value {
        self.b.ins().load(ty, flags, at, offset as i32)
    }

    /// Address of element `index` (an i64) of width `1 << shift` at `base`.
    pub(crate) fn element(&mut self, base: Value, index: Value, width: usize) -> Value {
        let width_log = i64::from(width.trailing_zeros());
        let offset = if width_log == 0 {
            index
        } else {
            let shift = self.int(types::I64, width_log);
            self.b.ins().ishl(index, shift)
        };
        self.add(base, offset)
    }

    /// A new block, with parameters of these types, to go on in.
    pub(crate) fn block(&mut self, params: &[Type]) -> Block {
        let block = self.b.create_block();
        for &ty in params {
            self.b.append_block_param(block, ty);
        }
        block
    }

    pub(crate) fn branch(&mut self, c: Value, then: Block, otherwise: Block) {
        self.b.ins().brif(c, then, &[], otherwise, &[]);
    }

    pub(crate) fn jump(&mut self, to: Block, args: &[Value]) {
        let args: Vec<BlockArg> = args.iter().map(|&v| BlockArg::Value(v)).collect();
        self.b.ins().jump(to, &args);
    }

    pub(crate) fn enter(&mut self, block: Block) {
        self.b.switch_to_block(block);
    }

    /// Whether an error in what is being emitted may be none.
    fn conditional(&self) -> bool {
        self.active.is_some()
    }

    /// Emits what SQL evaluates only where `condition` is 1.
    pub(crate) fn when<T>(&mut self, condition: Value, emit: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.active;
        self.active = Some(outer.map_or(condition, |outer| self.and(outer, condition)));
        let result = emit(self);
        self.active = outer;
        result
    }

    /// Leaves the loop with `status` where `failed` is 1 and the value is not NULL.
    pub(crate) fn guard(&mut self, failed: Value, null: Option<Value>, site: Site, status: Status) {
        let mut failed = self.canonical(failed, null);
        if let Some(active) = self.active {
            failed = self.and(failed, active);
        }
        let (site, status) = (self.int(types::I32, site.into()), self.int(types::I32, status as i64));
        let next = self.block(&[]);
        let args = [BlockArg::Value(site), BlockArg::Value(status)];
        self.b.ins().brif(failed, self.error, &args, next, &[]);
        self.enter(next);
    }

    // ---- columns ----

    /// Bit `first + row` of a bitmap.
    fn bit(&mut self, bitmap: Value, at: Value) -> Value {
        let three = self.int(types::I64, 3);
        let byte = self.b.ins().ushr(at, three);
        let address = self.add(bitmap, byte);
        let byte = self.load(types::I8, input(), address, 0);
        let at = self.b.ins().ireduce(types::I8, at);
        let seven = self.int(types::I8, 7);
        let shift = self.and(at, seven);
        let bit = self.b.ins().ushr(byte, shift);
        let one = self.int(types::I8, 1);
        self.and(bit, one)
    }

    /// 1 where the column is NULL in this row.
    pub(crate) fn null_of(&mut self, c: u32) -> Option<Value> {
        let (bitmap, first, mask) = self.column(c).validity?;
        let at = self.add(first, self.row());
        let at = self.and(at, mask);
        let valid = self.bit(bitmap, at);
        Some(self.not(valid))
    }

    pub(crate) fn column_value(&mut self, c: u32, ty: Ty) -> Val {
        let column = self.column(c);
        let null = self.null_of(c);
        let row = self.row();
        let v = if ty == Ty::Bool {
            let at = self.add(column.values_bit, row);
            let bit = self.bit(column.values, at);
            self.canonical(bit, null)
        } else {
            let address = self.element(column.values, row, ty.width());
            self.load(ty.clif(), input(), address, 0)
        };
        Val { v, null }
    }

    /// A flag that is 0 where the value is NULL.
    fn canonical(&mut self, flag: Value, null: Option<Value>) -> Value {
        match null {
            Some(null) => self.and_not(flag, null),
            None => flag,
        }
    }

    fn flag(&mut self, flag: Value, null: Option<Value>) -> Val {
        Val { v: self.canonical(flag, null), null }
    }

    // ---- nodes ----

    /// Computes `node` for the row in hand.
    pub(crate) fn emit(&mut self, node: &Node) -> Val {
        match &node.op {
            NodeOp::Column(c) => self.column_value(*c, node.ty),
            NodeOp::Const(bits) => Val { v: self.constant(*bits, node.ty), null: None },
            NodeOp::Null => Val { v: self.zero(node.ty), null: Some(self.int(types::I8, 1)) },
            NodeOp::Unary(op, a, site) => {
                let a_val = self.emit(a);
                self.unary(*op, a_val, a.ty, *site)
            }
            NodeOp::Binary(op, a, b, site) => {
                let (a, b) = (self.emit(a), self.emit(b));
                self.binary(*op, a, b, node.ty, *site)
            }
            NodeOp::Compare(op, a, b) => {
                let ty = a.ty;
                let (a, b) = (self.emit(a), self.emit(b));
                let null = self.either(a.null, b.null);
                let holds = self.compare(*op, a.v, b.v, ty);
                self.flag(holds, null)
            }
            NodeOp::NullSafeEq(a, b) => {
                let ty = a.ty;
                let (a, b) = (self.emit(a), self.emit(b));
                let same = self.compare(CompareOp::Eq, a.v, b.v, ty);
                Val { v: self.null_safe(same, a.null, b.null), null: None }
            }
            NodeOp::CompareText(op, a, b) => {
                let (a, b) = (self.text(a), self.text(b));
                let null = self.either(a.null, b.null);
                let holds = self.compare_text(*op, &a, &b);
                self.flag(holds, null)
            }
            NodeOp::NullSafeEqText(a, b) => {
                let (a, b) = (self.text(a), self.text(b));
                let same = self.compare_text(CompareOp::Eq, &a, &b);
                Val { v: self.null_safe(same, a.null, b.null), null: None }
            }
            NodeOp::StartsWith(a, prefix) => {
                let a = self.text(a);
                let holds = self.starts_with(&a, prefix);
                self.flag(holds, a.null)
            }
            NodeOp::IsNull(a) => {
                let a = self.emit(a);
                Val { v: a.null.unwrap_or_else(|| self.int(types::I8, 0)), null: None }
            }
            NodeOp::IsNullColumn(c) => {
                let null = self.null_of(*c);
                Val { v: null.unwrap_or_else(|| self.int(types::I8, 0)), null: None }
            }
            NodeOp::And(a, b) => self.and_or(true, a, b),
            NodeOp::Or(a, b) => self.and_or(false, a, b),
            NodeOp::Case(branches, otherwise) => self.case(branches, otherwise.as_deref(), node.ty),
            NodeOp::Coalesce(args) => self.coalesce(args, node.ty),
            NodeOp::Cast { kind, input, tries, site } => {
                let value = self.emit(input);
                self.cast(*kind, value, input.ty, node.ty, *tries, *site)
            }
            NodeOp::WindowStart { time, size, offset, site } => {
                let time = self.emit(time);
                self.window_start(time, *size, *offset, *site)
            }
        }
    }

    /// `<=>`: both NULL, or neither and the same.
    fn null_safe(&mut self, same: Value, a: Option<Value>, b: Option<Value>) -> Value {
        match (a, b) {
            (None, None) => same,
            (Some(null), None) | (None, Some(null)) => self.and_not(same, null),
            (Some(a), Some(b)) => {
                let (any, both) = (self.or(a, b), self.and(a, b));
                let same = self.and_not(same, any);
                self.or(same, both)
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, a: Val, ty: Ty, site: Site) -> Val {
        match op {
            UnaryOp::Not => {
                let v = self.not(a.v);
                self.flag(v, a.null)
            }
            UnaryOp::BitNot => Val { v: self.b.ins().bnot(a.v), null: a.null },
            UnaryOp::IsNan => {
                let nan = self.fcmp(FloatCC::Unordered, a.v, a.v);
                Val { v: self.canonical(nan, a.null), null: None }
            }
            UnaryOp::Negative | UnaryOp::Abs => self.negate(op, a, ty, site),
        }
    }

    /// AND and OR. The right side is evaluated where the left (false for AND, true for OR) does not settle the result.
    fn and_or(&mut self, is_and: bool, a: &Node, b: &Node) -> Val {
        let a = self.emit(a);
        let settled = if is_and {
            // False, not NULL.
            let maybe = a.null.map_or(a.v, |null| self.or(a.v, null));
            self.not(maybe)
        } else {
            a.v
        };
        if b.eager() {
            let open = self.not(settled);
            let b = self.when(open, |e| e.emit(b));
            return self.and_or_values(is_and, a, b);
        }
        let (right, merge) = (self.block(&[]), self.block(&[types::I8, types::I8]));
        let (zero, settled_value) = (self.int(types::I8, 0), self.int(types::I8, i64::from(!is_and)));
        let args = [BlockArg::Value(settled_value), BlockArg::Value(zero)];
        self.b.ins().brif(settled, merge, &args, right, &[]);
        self.enter(right);
        let b = self.emit(b);
        let both = self.and_or_values(is_and, a, b);
        self.merge_into(merge, both);
        self.merged(merge, both.null.is_some())
    }

    fn and_or_values(&mut self, is_and: bool, a: Val, b: Val) -> Val {
        let v = if is_and { self.and(a.v, b.v) } else { self.or(a.v, b.v) };
        let Some(either) = self.either(a.null, b.null) else { return Val { v, null: None } };
        // NULL unless one side settles it: a false one for AND, a true one for OR.
        let null = if is_and {
            let a_maybe = a.null.map_or(a.v, |null| self.or(a.v, null));
            let b_maybe = b.null.map_or(b.v, |null| self.or(b.v, null));
            let unsettled = self.and(a_maybe, b_maybe);
            self.and(either, unsettled)
        } else {
            self.and_not(either, v)
        };
        Val { v, null: Some(null) }
    }

    /// Goes on in a merge block of (value, NULL flag).
    fn merge_into(&mut self, merge: Block, value: Val) {
        let null = value.null.unwrap_or_else(|| self.int(types::I8, 0));
        self.jump(merge, &[value.v, null]);
    }

    fn merged(&mut self, merge: Block, nullable: bool) -> Val {
        self.enter(merge);
        let params = self.b.block_params(merge);
        let (v, null) = (params[0], params[1]);
        Val { v, null: nullable.then_some(null) }
    }

    fn case(&mut self, branches: &[(Node, Node)], otherwise: Option<&Node>, ty: Ty) -> Val {
        let null = Node { op: NodeOp::Null, ty };
        let otherwise = otherwise.unwrap_or(&null);
        if branches.iter().all(|(c, v)| c.eager() && v.eager()) && otherwise.eager() {
            // 1 where no branch has been taken yet.
            let mut open = self.int(types::I8, 1);
            let mut values = Vec::new();
            for (condition, value) in branches {
                let condition = self.when(open, |e| e.emit(condition)).v;
                let taken = self.and(open, condition);
                values.push((condition, self.when(taken, |e| e.emit(value))));
                open = self.and_not(open, condition);
            }
            let last = self.when(open, |e| e.emit(otherwise));
            return values.into_iter().rev().fold(last, |rest, (c, value)| self.choose(c, value, rest));
        }
        let merge = self.block(&[ty.clif(), types::I8]);
        let mut nullable = false;
        for (condition, value) in branches {
            let (then, next) = (self.block(&[]), self.block(&[]));
            let condition = self.emit(condition).v;
            self.branch(condition, then, next);
            self.enter(then);
            let value = self.emit(value);
            nullable |= value.null.is_some();
            self.merge_into(merge, value);
            self.enter(next);
        }
        let last = self.emit(otherwise);
        nullable |= last.null.is_some();
        self.merge_into(merge, last);
        self.merged(merge, nullable)
    }

    /// `a` where `c` is 1, else `b`.
    fn choose(&mut self, c: Value, a: Val, b: Val) -> Val {
        let null = match (a.null, b.null) {
            (None, None) => None,
            (a, b) => {
                let zero = self.int(types::I8, 0);
                Some(self.select(c, a.unwrap_or(zero), b.unwrap_or(zero)))
            }
        };
        Val { v: self.select(c, a.v, b.v), null }
    }

    fn coalesce(&mut self, args: &[Node], ty: Ty) -> Val {
        let (first, rest) = args.split_first().expect("COALESCE has arguments");
        let first = self.emit(first);
        let Some(null) = first.null else { return first };
        if rest.is_empty() {
            return first;
        }
        if rest.iter().all(Node::eager) {
            let rest = self.when(null, |e| e.coalesce(rest, ty));
            let v = self.select(null, rest.v, first.v);
            return Val { v, null: rest.null.map(|rest| self.and(null, rest)) };
        }
        let (next, merge) = (self.block(&[]), self.block(&[ty.clif(), types::I8]));
        let zero = self.int(types::I8, 0);
        self.b.ins().brif(null, next, &[], merge, &[BlockArg::Value(first.v), BlockArg::Value(zero)]);
        self.enter(next);
        let rest = self.coalesce(rest, ty);
        self.merge_into(merge, rest);
        self.merged(merge, rest.null.is_some())
    }
}
