//! Filter and projection over one batch: by generated code, by the interpreter, or by both and compared.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use ssql_abi::MapKernel;
use ssql_ir::{Expr, ExprKind, Schema};
use ssql_stdlib::{EvalContext, arrow_schema, evaluate, filter_mask};

use crate::error::{EngineError, Result};
use crate::kernels::{JitMode, Kernels};
use crate::views::run_map;

/// An instantiated `Op::Map`.
pub struct Map {
    predicate: Option<Expr>,
    project: Vec<Expr>,
    schema: SchemaRef,
    kernel: Option<Arc<dyn MapKernel>>,
    verify: bool,
}

impl Map {
    /// Instantiates the operator over input columns `input` to output columns `output`.
    pub fn new(
        predicate: Option<Expr>,
        project: Vec<Expr>,
        input: &Schema,
        output: &Schema,
        kernels: &Kernels,
    ) -> Result<Map> {
        let only_columns = predicate.is_none() && project.iter().all(|e| matches!(e.kind, ExprKind::Column(_)));
        let kernel = match kernels.active() {
            Some(compiler) if !only_columns => compiler
                .compile_map(predicate.as_ref(), &project, input)
                .map_err(|e| EngineError::internal(format!("code generation failed: {e}")))?,
            _ => None,
        };
        // A kernel may leave projections to us only if there is no selection to apply or they are plain columns.
        let covers = |k: &Arc<dyn MapKernel>| {
            let computed = k.computed();
            project.iter().enumerate().all(|(i, e)| computed.contains(&i) || matches!(e.kind, ExprKind::Column(_)))
        };
        let kernel = kernel.filter(covers);
        let verify = kernels.mode == JitMode::Verify && kernel.is_some();
        Ok(Map { predicate, project, schema: arrow_schema(output), kernel, verify })
    }

    /// Whether generated code runs.
    pub fn is_compiled(&self) -> bool {
        self.kernel.is_some()
    }

    /// The rows that pass, projected.
    pub fn apply(&self, batch: &RecordBatch, ctx: &EvalContext) -> Result<RecordBatch> {
        let Some(kernel) = &self.kernel else { return self.interpret(batch, ctx) };
        if batch.num_rows() == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        match run_map(kernel.as_ref(), &self.project, batch)? {
            Some(columns) => {
                let compiled = self.batch(columns, batch.num_rows())?;
                if self.verify {
                    let interpreted = self.interpret(batch, ctx).map_err(|e| differ(&compiled, &e.to_string()))?;
                    if interpreted != compiled {
                        return Err(differ(&compiled, &format!("{interpreted:?}")));
                    }
                }
                Ok(compiled)
            }
            None => match self.interpret(batch, ctx) {
                Err(error) => Err(error),
                Ok(rows) => Err(differ(&rows, "an error in generated code only")),
            },
        }
    }

    fn interpret(&self, batch: &RecordBatch, ctx: &EvalContext) -> Result<RecordBatch> {
        let filtered;
        let input = match &self.predicate {
            Some(predicate) => {
                let mask = filter_mask(predicate, batch, ctx)?;
                if mask.true_count() == batch.num_rows() {
                    batch
                } else {
                    filtered = filter_record_batch(batch, &mask)?;
                    &filtered
                }
            }
            None => batch,
        };
        let columns = self
            .project
            .iter()
            .map(|e| match e.kind {
                ExprKind::Column(c) => Ok(Arc::clone(input.column(c as usize))),
                _ => evaluate(e, input, ctx),
            })
            .collect::<Result<Vec<ArrayRef>, _>>()?;
        self.batch(columns, input.num_rows())
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let rows = columns.first().map_or(rows, |c| c.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The two routes disagree: our bug, shown whole.
fn differ(one: &RecordBatch, other: &str) -> EngineError {
    EngineError::internal(format!("generated code and interpreter differ: {one:?} against {other}"))
}
