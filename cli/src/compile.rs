//! The bridge from generated code to the engine, and `EXPLAIN`.

use std::fmt::Write;
use std::sync::Arc;

use ssql_abi::{AggregateKernel, MapKernel, RowLayout};
use ssql_engine::KernelCompiler;
use ssql_engine::operators::aggregate::Aggregation;
use ssql_grammar::ast::{ExplainStage, Statement};
use ssql_ir::{AggCall, Expr, ExprKind, Op, Pipeline, Schema};
use ssql_plan::Planned;

/// Cranelift, as the engine is handed it.
#[derive(Debug, Default)]
pub struct Cranelift;

impl KernelCompiler for Cranelift {
    fn compile_map(
        &self,
        predicate: Option<&Expr>,
        project: &[Expr],
        input: &Schema,
    ) -> Result<Option<Arc<dyn MapKernel>>, String> {
        let kernel = ssql_jit::compile_map(predicate, project, input).map_err(|e| e.to_string())?;
        Ok(kernel.map(|k| k as Arc<dyn MapKernel>))
    }

    fn compile_aggregate(
        &self,
        keys: &[u32],
        aggs: &[AggCall],
        input: &Schema,
        layout: &RowLayout,
    ) -> Result<Option<Arc<dyn AggregateKernel>>, String> {
        let kernel = ssql_jit::compile_aggregate(keys, aggs, input, layout).map_err(|e| e.to_string())?;
        Ok(kernel.map(|k| k as Arc<dyn AggregateKernel>))
    }
}

/// A planned statement in one of its forms.
///
/// # Errors
/// Code generation failed: our bug.
pub fn explain(stage: ExplainStage, statement: &Statement, planned: &Planned) -> Result<String, String> {
    if stage == ExplainStage::Ast {
        return Ok(ssql_grammar::dump::dump_statement(statement));
    }
    let (logical, pipeline, state) = match planned {
        Planned::Query(q) => (&q.logical, &q.pipeline, Some(ssql_plan::explain::state_text(&q.state))),
        Planned::Batch(b) => (&b.logical, &b.pipeline, None),
        Planned::Insert(i) => (&i.rows.logical, &i.rows.pipeline, None),
        Planned::Explain(e) => return explain(stage, statement, &e.planned),
        _ => return Ok("This statement has no plan: it is carried out as it stands.\n".to_owned()),
    };
    match stage {
        ExplainStage::Logical => Ok(match state.filter(|s| !s.is_empty()) {
            Some(state) => format!("{}\n{state}", logical.trim_end()),
            None => logical.clone(),
        }),
        ExplainStage::Ir => Ok(pipeline.to_string()),
        _ => kernels(stage, pipeline),
    }
}

/// The text of every kernel of a pipeline.
fn kernels(stage: ExplainStage, pipeline: &Pipeline) -> Result<String, String> {
    let mut out = String::new();
    for (n, node) in pipeline.nodes.iter().enumerate() {
        let text = match &node.op {
            Op::Map { predicate, project } => {
                let plain = predicate.is_none() && project.iter().all(|e| matches!(e.kind, ExprKind::Column(_)));
                let input = &pipeline.nodes[node.inputs[0].0 as usize].schema;
                match ssql_jit::compile_map(predicate.as_ref(), project, input).map_err(|e| e.to_string())? {
                    Some(kernel) if !plain => match stage {
                        ExplainStage::Asm => kernel.asm_text().map_err(|e| e.to_string())?,
                        _ => kernel.clif_text(),
                    },
                    _ => "interpreted\n".to_owned(),
                }
            }
            Op::Aggregate { .. } | Op::HopAggregate { .. } => {
                let (keys, aggs) = match &node.op {
                    Op::HopAggregate { slice, keys, aggs, .. } => {
                        ([*slice].iter().chain(keys).copied().collect(), aggs)
                    }
                    Op::Aggregate { keys, aggs, .. } => (keys.clone(), aggs),
                    _ => continue,
                };
                let input = &pipeline.nodes[node.inputs[0].0 as usize].schema;
                let (kernel_input, kernel_keys, layout) =
                    Aggregation::kernel_shape(&keys, aggs, input).map_err(|e| e.message)?;
                let kernel = ssql_jit::compile_aggregate(&kernel_keys, aggs, &kernel_input, &layout)
                    .map_err(|e| e.to_string())?;
                match kernel {
                    Some(kernel) => match stage {
                        ExplainStage::Asm => kernel.asm_text().map_err(|e| e.to_string())?,
                        _ => kernel.clif_text(),
                    },
                    None => "interpreted\n".to_owned(),
                }
            }
            _ => continue,
        };
        let _ = writeln!(out, "; kernel of %{n}\n{}", text.trim_end());
    }
    Ok(if out.is_empty() { "This plan has no kernels.\n".to_owned() } else { out })
}
