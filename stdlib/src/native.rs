//! Scalar functions that the embedding program brings: whole Arrow arrays in, one array out.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::ArrayRef;
use ssql_ir::DataType;

use crate::arrow::arrow_type;
use crate::error::EvalError;

/// What evaluates a [`NativeFunction`]: the arguments as columns of one length, NULLs included, to a column of that
/// length; or the message of what went wrong.
pub type NativeEval = dyn Fn(&[ArrayRef]) -> Result<ArrayRef, String> + Send + Sync;

/// A scalar function written in Rust outside of this library. It is called by every worker thread.
pub struct NativeFunction {
    /// Its name, as SQL writes it; calls find it in any case.
    pub name: String,
    /// Types of its arguments; calls convert to them as INSERT would.
    pub params: Vec<DataType>,
    /// Type of its result, which may always be NULL.
    pub returns: DataType,
    /// Its evaluation.
    pub eval: Box<NativeEval>,
}

impl fmt::Debug for NativeFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} -> {}", self.name, self.params, self.returns)
    }
}

impl NativeFunction {
    /// Calls it. Errors with FAILED_EXECUTE_UDF where it fails, panics, or gives a column that is not what it promised.
    pub(crate) fn call(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef, EvalError> {
        let failed =
            |why: String| EvalError::new("FAILED_EXECUTE_UDF", format!("The function `{}` failed: {why}.", self.name));
        let result = catch_unwind(AssertUnwindSafe(|| (self.eval)(args)))
            .unwrap_or_else(|_| Err("it panicked".to_owned()))
            .map_err(|why| failed(why.trim_end_matches('.').to_owned()))?;
        let promised = arrow_type(&self.returns);
        if *result.data_type() != promised {
            return Err(failed(format!("it gave {} where {promised} was promised", result.data_type())));
        }
        if result.len() != rows {
            return Err(failed(format!("it gave {} rows of {rows}", result.len())));
        }
        Ok(result)
    }
}

/// The native functions that a session knows. Clones are cheap and see what was known when they were made.
#[derive(Debug, Clone, Default)]
pub struct NativeFunctions(Arc<BTreeMap<String, Arc<NativeFunction>>>);

impl NativeFunctions {
    /// Makes a function known, in place of any of that name.
    pub fn insert(&mut self, function: NativeFunction) {
        Arc::make_mut(&mut self.0).insert(function.name.to_lowercase(), Arc::new(function));
    }

    /// The function of that name, in any case.
    pub fn get(&self, name: &str) -> Option<&NativeFunction> {
        self.0.get(&name.to_lowercase()).map(Arc::as_ref)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|f| f.name.as_str())
    }
}
