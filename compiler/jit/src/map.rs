//! The fused filter and projection kernel.
//!
//! One pass over the rows: the predicate, then for a row that passes all computed columns, written densely behind one
//! another. Where the columns are cheap they are written for every row and the write position moves only past those that
//! pass, which leaves no branch to guess.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::sync::Arc;

use cranelift_codegen::ir::{Function, InstBuilder, Value, types};
use cranelift_frontend::FunctionBuilder;
use ssql_abi::{ColumnView, KernelError, MapCtx, MapKernel, MapOutput, OutputColumn, OutputView, Status};
use ssql_ir::{Expr, ExprKind, Origin, Schema};

use crate::JitError;
use crate::emit::{Emitter, Imports, Val, input, shared};
use crate::intrinsics::{BYTES_COMPARE, BYTES_EQUAL};
use crate::lower::Lowering;
use crate::module::{Code, ModuleBuilder};
use crate::node::{Node, NodeOp, Text, Ty};

/// Compiles a filter and the columns of a projection that generated code can compute. `None`: the predicate is not
/// among what it can do, or there is nothing to compute.
///
/// # Errors
/// [`JitError`], when the host cannot run generated code.
pub fn compile_map(
    predicate: Option<&Expr>,
    project: &[Expr],
    input: &Schema,
) -> Result<Option<Arc<CompiledMap>>, JitError> {
    let mut lowering = Lowering::default();
    let predicate = match predicate {
        Some(expr) => match lowering.lower(expr) {
            Some(node) => Some(node),
            None => return Ok(None),
        },
        None => None,
    };
    let (mut computed, mut outputs) = (Vec::new(), Vec::new());
    for (i, expr) in project.iter().enumerate() {
        if !matches!(expr.kind, ExprKind::Column(_))
            && let Some(node) = lowering.lower(expr)
        {
            computed.push(i);
            outputs.push(node);
        }
    }
    if predicate.is_none() && outputs.is_empty() {
        return Ok(None);
    }
    let plan = Plan { predicate, outputs };
    let columns = plan.columns();
    let nullable = nullable_columns(columns.iter().copied(), input);
    let mut module = ModuleBuilder::new()?;
    let mut nulls = vec![define(&mut module, "map_valid", &plan, &columns.iter().map(|&c| (c, false)).collect())?];
    if nullable.values().any(|&n| n) {
        nulls.push(define(&mut module, "map_nullable", &plan, &nullable)?);
    }
    Ok(Some(Arc::new(CompiledMap {
        code: module.finish()?,
        computed,
        widths: plan.outputs.iter().map(|n| n.ty.width()).collect(),
        nulls,
        filters: plan.predicate.is_some(),
        columns: nullable.into_iter().filter_map(|(c, nullable)| nullable.then_some(c)).collect(),
        sites: lowering.sites,
    })))
}

/// These columns with whether they may have NULLs.
pub(crate) fn nullable_columns(columns: impl Iterator<Item = u32>, input: &Schema) -> BTreeMap<u32, bool> {
    columns.map(|c| (c, input.fields.get(c as usize).is_none_or(|f| f.nullable))).collect()
}

/// A compiled filter and projection.
#[derive(Debug)]
pub struct CompiledMap {
    code: Code,
    computed: Vec<usize>,
    widths: Vec<usize>,
    /// For the entry without NULL checks and (if there is one) the one with: which outputs can be NULL.
    nulls: Vec<Vec<bool>>,
    filters: bool,
    /// Columns it reads that may have NULLs.
    columns: Vec<u32>,
    sites: Vec<Origin>,
}

impl CompiledMap {
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
}

impl MapKernel for CompiledMap {
    fn computed(&self) -> &[usize] {
        &self.computed
    }

    fn origin(&self, expr: u32) -> Option<(u32, u32)> {
        self.sites.get(expr as usize)?.span
    }

    unsafe fn run(&self, columns: &[ColumnView], rows: usize) -> Result<MapOutput, KernelError> {
        let nulls = self.columns.iter().any(|&c| !columns[c as usize].validity.is_null());
        let version = usize::from(nulls);
        let mut selection: Option<Vec<u32>> = self.filters.then(|| Vec::with_capacity(rows));
        let mut outputs: Vec<OutputColumn> = self
            .widths
            .iter()
            .zip(&self.nulls[version])
            .map(|(&width, &null)| OutputColumn {
                values: Vec::with_capacity(rows * width),
                validity: Vec::with_capacity(if null { rows } else { 0 }),
            })
            .collect();
        let views: Vec<OutputView> = outputs
            .iter_mut()
            .map(|o| OutputView { values: o.values.as_mut_ptr(), validity: o.validity.as_mut_ptr() })
            .collect();
        let mut ctx = MapCtx {
            selection: selection.as_mut().map_or(std::ptr::null_mut(), Vec::as_mut_ptr),
            n_selected: 0,
            outputs: views.as_ptr(),
            error_expr: 0,
            row: 0,
        };
        // SAFETY: the columns are valid for `rows` rows (caller), and every buffer in the context has room for `rows`
        // entries; the entry was compiled for these columns and outputs.
        let status = unsafe { self.code.entry(version)((&raw mut ctx).cast(), columns.as_ptr(), 0, rows as u64) };
        match Status::from_raw(status) {
            Some(Status::Done) => {}
            other => {
                let status = other.expect("kernels return the numbers of Status");
                return Err(KernelError { status, row: ctx.row, expr: ctx.error_expr });
            }
        }
        let n = ctx.n_selected as usize;
        // SAFETY: the kernel has written the first `n <= rows` entries of each buffer.
        unsafe {
            if let Some(selection) = &mut selection {
                selection.set_len(n);
            }
            for ((output, &width), &null) in outputs.iter_mut().zip(&self.widths).zip(&self.nulls[version]) {
                output.values.set_len(n * width);
                output.validity.set_len(if null { n } else { 0 });
            }
        }
        Ok(MapOutput { selection, columns: outputs })
    }
}

/// Columns this much work or less are computed for rows that do not pass, too.
const BRANCHLESS_COST: u32 = 24;

struct Plan {
    predicate: Option<Node>,
    outputs: Vec<Node>,
}

impl Plan {
    fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.predicate.iter().chain(&self.outputs)
    }

    fn columns(&self) -> BTreeSet<u32> {
        let mut columns = BTreeSet::new();
        self.nodes().for_each(|n| {
            n.columns(&mut |c| {
                columns.insert(c);
            });
        });
        columns
    }
}

/// Makes the string functions and the constant strings of these nodes available in `function`.
pub(crate) fn imports<'n>(
    module: &mut ModuleBuilder,
    function: &mut Function,
    nodes: impl Iterator<Item = &'n Node>,
) -> Result<Imports, JitError> {
    let mut literals = BTreeSet::new();
    for node in nodes {
        collect_literals(node, &mut literals);
    }
    Ok(Imports {
        bytes_equal: Some(module.intrinsic(BYTES_EQUAL, function)?),
        bytes_compare: Some(module.intrinsic(BYTES_COMPARE, function)?),
        literals: literals
            .into_iter()
            .map(|s| Ok((s.clone(), module.bytes(s.as_bytes(), function)?)))
            .collect::<Result<_, JitError>>()?,
    })
}

fn collect_literals(node: &Node, literals: &mut BTreeSet<String>) {
    let mut text = |t: &Text| {
        if let Text::Literal(s) = t {
            literals.insert(s.clone());
        }
    };
    match &node.op {
        NodeOp::CompareText(_, a, b) | NodeOp::NullSafeEqText(a, b) => {
            text(a);
            text(b);
        }
        NodeOp::StartsWith(a, prefix) => {
            text(a);
            literals.insert(prefix.clone());
        }
        _ => node.children().into_iter().for_each(|c| collect_literals(c, literals)),
    }
}

/// Builds and compiles one version of the loop; tells which outputs can be NULL in it.
fn define(
    module: &mut ModuleBuilder,
    name: &str,
    plan: &Plan,
    columns: &BTreeMap<u32, bool>,
) -> Result<Vec<bool>, JitError> {
    let mut function = module.function();
    let imports = imports(module, &mut function, plan.nodes())?;
    let config = module.frontend_config();
    let mut b = FunctionBuilder::new(&mut function, &mut module.builder_context);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let &[ctx, views, first, rows] = b.block_params(entry) else { unreachable!("a kernel has four parameters") };

    let (head, done, error) = (b.create_block(), b.create_block(), b.create_block());
    for _ in 0..2 {
        b.append_block_param(head, types::I64);
        b.append_block_param(error, types::I32);
    }
    b.append_block_param(done, types::I64);
    b.set_cold_block(error);

    let mut e = Emitter::new(&mut b, views, columns, imports, error);
    let selection = e.load(types::I64, input(), ctx, offset_of!(MapCtx, selection));
    let start = e.load(types::I64, shared(), ctx, offset_of!(MapCtx, n_selected));
    let outputs = e.load(types::I64, input(), ctx, offset_of!(MapCtx, outputs));
    let places: Vec<(Value, Value)> = (0..plan.outputs.len())
        .map(|k| {
            let at = k * size_of::<OutputView>();
            let values = e.load(types::I64, input(), outputs, at + offset_of!(OutputView, values));
            (values, e.load(types::I64, input(), outputs, at + offset_of!(OutputView, validity)))
        })
        .collect();
    let any = e.icmp(cranelift_codegen::ir::condcodes::IntCC::UnsignedLessThan, first, rows);
    e.b.ins().brif(any, head, &[first.into(), start.into()], done, &[start.into()]);

    e.enter(head);
    let (row, at) = (e.b.block_params(head)[0], e.b.block_params(head)[1]);
    e.set_row(row);
    let one = e.int(types::I64, 1);
    let next_row = e.add(row, one);
    let mut nulls = Vec::new();
    let latch = e.block(&[types::I64]);
    match &plan.predicate {
        None => {
            write_outputs(&mut e, plan, &places, at, &mut nulls);
            let next = e.add(at, one);
            e.jump(latch, &[next]);
        }
        Some(predicate) => {
            let passes = e.emit(predicate).v;
            let branchless = plan.outputs.iter().map(Node::cost).sum::<u32>() <= BRANCHLESS_COST;
            if !branchless {
                let then = e.block(&[]);
                e.b.ins().brif(passes, then, &[], latch, &[at.into()]);
                e.enter(then);
            }
            let place = e.element(selection, at, 4);
            let short_row = e.b.ins().ireduce(types::I32, row);
            e.b.ins().store(shared(), short_row, place, 0);
            if branchless {
                e.when(passes, |e| write_outputs(e, plan, &places, at, &mut nulls));
            } else {
                write_outputs(&mut e, plan, &places, at, &mut nulls);
            }
            let step = if branchless { e.b.ins().uextend(types::I64, passes) } else { one };
            let next = e.add(at, step);
            e.jump(latch, &[next]);
        }
    }
    e.enter(latch);
    let at = e.b.block_params(latch)[0];
    let more = e.icmp(cranelift_codegen::ir::condcodes::IntCC::UnsignedLessThan, next_row, rows);
    e.b.ins().brif(more, head, &[next_row.into(), at.into()], done, &[at.into()]);

    e.enter(done);
    let at = e.b.block_params(done)[0];
    e.b.ins().store(shared(), at, ctx, offset_of!(MapCtx, n_selected) as i32);
    let status = e.int(types::I32, Status::Done as i64);
    e.b.ins().return_(&[status]);

    e.enter(error);
    leave_with_error(&mut e, error, ctx, offset_of!(MapCtx, error_expr), offset_of!(MapCtx, row));
    b.seal_all_blocks();
    b.finalize(config);
    module.define(name, function)?;
    Ok(nulls)
}

/// The error block: notes the site and the row in the context and returns the status.
pub(crate) fn leave_with_error(
    e: &mut Emitter<'_, '_>,
    error: cranelift_codegen::ir::Block,
    ctx: Value,
    site_at: usize,
    row_at: usize,
) {
    let (site, status) = (e.b.block_params(error)[0], e.b.block_params(error)[1]);
    let row = e.row();
    let row = e.b.ins().ireduce(types::I32, row);
    e.b.ins().store(shared(), site, ctx, site_at as i32);
    e.b.ins().store(shared(), row, ctx, row_at as i32);
    e.b.ins().return_(&[status]);
}

fn write_outputs(e: &mut Emitter<'_, '_>, plan: &Plan, places: &[(Value, Value)], at: Value, nulls: &mut Vec<bool>) {
    for (node, &(values, validity)) in plan.outputs.iter().zip(places) {
        let Val { v, null } = e.emit(node);
        let place = e.element(values, at, node.ty.width());
        debug_assert!(node.ty != Ty::Bool || node.ty.width() == 1, "a BOOLEAN is a byte");
        e.b.ins().store(shared(), v, place, 0);
        if let Some(null) = null {
            let valid = e.not(null);
            let place = e.add(validity, at);
            e.b.ins().store(shared(), valid, place, 0);
        }
        nulls.push(null.is_some());
    }
}
