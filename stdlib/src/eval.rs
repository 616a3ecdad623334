//! The reference evaluation of expressions over whole Arrow arrays; the oracle for generated code.
//!
//! Every form gives the same value for a row whatever batch the row comes in. Forms that must not evaluate all their
//! arguments are evaluated on the rows that need them only: an error in a branch that no row takes is never raised.
//! Constants stay one value until something needs a column.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Datum, RecordBatch, Scalar, UInt32Array, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute;
use jiff::tz::TimeZone;
use ssql_ir::{CastMode, DataType, Expr, ExprKind, LambdaParam, Literal};

use crate::arrow::{arrow_type, conform, ir_type, literal_array, literal_at};
use crate::call::{Call, EvalResult, Value, expand};
use crate::cast::cast_array;
use crate::error::EvalError;
use crate::function::{Eval, FunctionDef, Generated, NullRule};
use crate::functions::lookup;
use crate::native::NativeFunctions;

/// What an evaluation depends on beside its input rows.
#[derive(Debug, Clone)]
pub struct EvalContext {
    /// The session's time zone.
    pub time_zone: TimeZone,
    /// `current_timestamp()`: microseconds since 1970, one value per micro-batch.
    pub now_micros: i64,
    /// `batch_id()`.
    pub batch_id: i64,
    /// Values of the pipeline's subqueries, each an array of one row.
    pub subqueries: Vec<ArrayRef>,
    /// Seed of `rand()` and its kin for calls that give none.
    pub seed: u64,
    /// Number of the batch's first row, for `monotonically_increasing_id()` and for the random functions, whose values
    /// follow from seed and row number.
    pub first_row: u64,
    /// `current_user()`.
    pub user: String,
    /// Functions that the embedding program has registered.
    pub natives: NativeFunctions,
}

impl Default for EvalContext {
    fn default() -> EvalContext {
        EvalContext {
            time_zone: TimeZone::UTC,
            now_micros: 0,
            batch_id: 0,
            subqueries: vec![],
            seed: 0,
            first_row: 0,
            user: String::new(),
            natives: NativeFunctions::default(),
        }
    }
}

/// The rows that an expression is evaluated on: those of a batch, or some of them, with the lambda variables in force.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    columns: &'a [ArrayRef],
    rows: usize,
    /// Rows of the batch; `None`: all.
    selection: Option<UInt32Array>,
    /// Lambda variables, one value per row of the scope.
    variables: Vec<(u32, ArrayRef)>,
    /// Columns already cut down to the selection.
    taken: RefCell<Vec<Option<ArrayRef>>>,
}

impl<'a> Scope<'a> {
    fn of_batch(batch: &'a RecordBatch) -> Scope<'a> {
        Scope {
            columns: batch.columns(),
            rows: batch.num_rows(),
            selection: None,
            variables: vec![],
            taken: RefCell::default(),
        }
    }

    /// The rows `indices` of this scope.
    fn select(&self, indices: &UInt32Array) -> Result<Scope<'a>, EvalError> {
        let selection = match &self.selection {
            None => indices.clone(),
            Some(outer) => compute::take(outer, indices, None)?.as_primitive().clone(),
        };
        let variables = self
            .variables
            .iter()
            .map(|(id, a)| Ok((*id, compute::take(a.as_ref(), indices, None)?)))
            .collect::<Result<Vec<_>, EvalError>>()?;
        Ok(Scope {
            columns: self.columns,
            rows: indices.len(),
            selection: Some(selection),
            variables,
            taken: RefCell::default(),
        })
    }

    fn column(&self, index: usize) -> EvalResult {
        let column = self
            .columns
            .get(index)
            .ok_or_else(|| EvalError::internal(format!("column #{index} of {}", self.columns.len())))?;
        let Some(selection) = &self.selection else { return Ok(column.clone()) };
        let mut taken = self.taken.borrow_mut();
        taken.resize(self.columns.len(), None);
        if let Some(done) = &taken[index] {
            return Ok(done.clone());
        }
        let cut = compute::take(column.as_ref(), selection, None)?;
        taken[index] = Some(cut.clone());
        Ok(cut)
    }
}

/// A lambda together with the rows it was met on.
#[derive(Debug, Clone, Copy)]
pub struct Lambda<'a> {
    params: &'a [LambdaParam],
    body: &'a Expr,
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
}

impl Lambda<'_> {
    /// Number of parameters.
    pub fn arity(&self) -> usize {
        self.params.len()
    }

    /// Type of the result.
    pub fn data_type(&self) -> &DataType {
        &self.body.data_type
    }

    /// Evaluates the body once per element of `args` (one array per parameter, equally long; surplus arrays are not
    /// used). `rows[i]` is the row of the call that element `i` belongs to.
    pub fn apply(&self, rows: &[u32], args: &[ArrayRef]) -> EvalResult {
        let mut scope = self.scope.select(&UInt32Array::from(rows.to_vec()))?;
        for (param, array) in self.params.iter().zip(args) {
            scope.variables.push((param.id, conform(array.clone(), &param.data_type)?));
        }
        let value = evaluate_in(self.body, &scope, self.ctx).map_err(|e| outer_row(e, |i| rows[i]))?;
        expand(&value, rows.len())
    }
}

/// Moves an error from a row of a selection to the row it was selected from.
fn outer_row(mut e: EvalError, row: impl Fn(usize) -> u32) -> EvalError {
    e.row = e.row.map(|i| row(i) as usize);
    e
}

/// Evaluates the expression for each row of the batch: an array of `batch.num_rows()` values of exactly the Arrow type
/// of `expr.data_type`.
///
/// Errors name Spark's condition, the failing part of the expression and the row.
pub fn evaluate(expr: &Expr, batch: &RecordBatch, ctx: &EvalContext) -> EvalResult {
    let scope = Scope::of_batch(batch);
    let value = evaluate_in(expr, &scope, ctx)?;
    expand(&value, batch.num_rows())
}

/// Rows for which the predicate is true (NULL is as bad as false): one bit per row, no NULLs.
pub fn filter_mask(predicate: &Expr, batch: &RecordBatch, ctx: &EvalContext) -> Result<BooleanArray, EvalError> {
    Ok(only_true(&truth(&evaluate(predicate, batch, ctx)?)?))
}

/// A condition's values. An untyped NULL is as good as a NULL of BOOLEAN.
fn truth(array: &ArrayRef) -> Result<BooleanArray, EvalError> {
    match array.data_type() {
        arrow::datatypes::DataType::Boolean => Ok(array.as_boolean().clone()),
        arrow::datatypes::DataType::Null => Ok(BooleanArray::new_null(array.len())),
        other => Err(EvalError::internal(format!("a condition of type {other}"))),
    }
}

fn only_true(mask: &BooleanArray) -> BooleanArray {
    if mask.null_count() == 0 { mask.clone() } else { compute::prep_null_mask_filter(mask) }
}

/// The constant that the expression always gives, if it is built of constants by deterministic functions, its type has
/// constants, and evaluating it does not fail (an error stays for the rows that meet it).
pub fn fold_constant(expr: &Expr, ctx: &EvalContext) -> Option<Literal> {
    let mut constant = true;
    expr.walk(&mut |e| {
        constant &= match &e.kind {
            ExprKind::Column(_) | ExprKind::ScalarSubquery(_) => false,
            ExprKind::Call { function, .. } => lookup(function).is_some_and(|d| d.deterministic),
            _ => true,
        }
    });
    if !constant {
        return None;
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
    let schema = Arc::new(arrow::datatypes::Schema::empty());
    let batch = RecordBatch::try_new_with_options(schema, vec![], &options).ok()?;
    literal_at(evaluate(expr, &batch, ctx).ok()?.as_ref(), 0)
}

/// Runs a generator over columns of equal length: the input row of each output row, ascending, and the generated
/// columns. With `outer` a row that generates nothing stands once, with NULLs.
pub fn generate(generator: &str, args: &[ArrayRef], outer: bool, ctx: &EvalContext) -> Result<Generated, EvalError> {
    let def = lookup(generator);
    let Some(FunctionDef { name, eval: Eval::Generate { rows: run, .. }, .. }) = def else {
        return Err(EvalError::internal(format!("`{generator}` is no generator")));
    };
    let types = args
        .iter()
        .map(|a| ir_type(a.data_type()).ok_or_else(|| EvalError::internal("an argument of no dialect type")))
        .collect::<Result<Vec<_>, _>>()?;
    let n = args.first().map_or(1, |a| a.len());
    let call = Call {
        name,
        args: args.iter().cloned().map(Value::Column).collect(),
        types: types.iter().collect(),
        rows: n,
        data_type: &DataType::Null,
        strict: false,
        ctx,
    };
    let (rows, columns) = run(&call)?;
    if !outer {
        return Ok((rows, columns));
    }
    let mut indices: Vec<Option<u32>> = Vec::with_capacity(rows.len() + n);
    let mut all = Vec::with_capacity(rows.len() + n);
    let mut next = 0;
    for row in 0..n as u32 {
        let before = next;
        while next < rows.len() && rows[next] == row {
            indices.push(Some(next as u32));
            all.push(row);
            next += 1;
        }
        if before == next {
            indices.push(None);
            all.push(row);
        }
    }
    let indices = UInt32Array::from(indices);
    let columns = columns
        .iter()
        .map(|c| Ok(compute::take(c.as_ref(), &indices, None)?))
        .collect::<Result<Vec<_>, EvalError>>()?;
    Ok((all, columns))
}

pub(crate) fn evaluate_in<'a>(
    expr: &'a Expr,
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let value = match &expr.kind {
        ExprKind::Column(i) => Value::Column(scope.column(*i as usize)?),
        ExprKind::Literal(l) => Value::Constant(literal_array(l, &expr.data_type, 1)),
        ExprKind::LambdaVariable(id) => {
            let found = scope.variables.iter().rev().find(|(v, _)| v == id);
            Value::Column(
                found.ok_or_else(|| EvalError::internal(format!("lambda variable {id} is unbound")))?.1.clone(),
            )
        }
        ExprKind::ScalarSubquery(i) => {
            let value = ctx.subqueries.get(*i as usize);
            Value::Constant(value.ok_or_else(|| EvalError::internal(format!("subquery {i} has no value")))?.clone())
        }
        ExprKind::Lambda { params, body } => Value::Lambda(Lambda { params, body, scope, ctx }),
        ExprKind::Call { function, args } => call(expr, function, args, scope, ctx)?,
        ExprKind::Cast { input, mode } => cast(expr, input, *mode, scope, ctx)?,
        ExprKind::And(a, b) => connective(a, b, true, scope, ctx)?,
        ExprKind::Or(a, b) => connective(a, b, false, scope, ctx)?,
        ExprKind::Case { branches, otherwise } => case(expr, branches, otherwise.as_deref(), scope, ctx)?,
        ExprKind::Coalesce(args) => coalesce(expr, args, scope, ctx)?,
    };
    Ok(match value {
        Value::Column(a) => Value::Column(conform(a, &expr.data_type)?),
        Value::Constant(a) => Value::Constant(conform(a, &expr.data_type)?),
        lambda => lambda,
    })
}

fn call<'a>(
    expr: &'a Expr,
    function: &str,
    args: &'a [Expr],
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let Some(def) = lookup(function) else { return call_native(expr, function, args, scope, ctx) };
    let Eval::Rows(run) = def.eval else {
        return Err(EvalError::internal(format!("`{function}` is no scalar function")));
    };
    let values = args.iter().map(|a| evaluate_in(a, scope, ctx)).collect::<Result<Vec<_>, _>>()?;
    let strict = matches!(def.nulls, NullRule::Strict | NullRule::StrictNullable);
    let is_null = |v: &Value<'_>| matches!(v, Value::Constant(a) if a.is_null(0) || a.data_type() == &arrow::datatypes::DataType::Null);
    if strict && values.iter().any(is_null) {
        return Ok(Value::Constant(new_null_array(&arrow_type(&expr.data_type), 1)));
    }
    let constant = def.deterministic && values.iter().all(|v| matches!(v, Value::Constant(_)));
    if scope.rows == 0 {
        return Ok(Value::Column(new_null_array(&arrow_type(&expr.data_type), 0)));
    }
    let rows = if constant { 1 } else { scope.rows };
    let call = Call {
        name: def.name,
        args: values,
        types: args.iter().map(|a| &a.data_type).collect(),
        rows,
        data_type: &expr.data_type,
        strict,
        ctx,
    };
    let array = run(&call).map_err(|e| e.at(expr.origin))?;
    debug_assert_eq!(array.len(), rows, "`{function}` gave the wrong number of rows");
    Ok(if constant { Value::Constant(array) } else { Value::Column(array) })
}

fn call_native<'a>(
    expr: &'a Expr,
    function: &str,
    args: &'a [Expr],
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let native = ctx.natives.get(function);
    let native = native.ok_or_else(|| EvalError::internal(format!("unknown function `{function}`")))?;
    let columns = args.iter().map(|a| expand(&evaluate_in(a, scope, ctx)?, scope.rows));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    if scope.rows == 0 {
        return Ok(Value::Column(new_null_array(&arrow_type(&expr.data_type), 0)));
    }
    Ok(Value::Column(native.call(&columns, scope.rows).map_err(|e| e.at(expr.origin))?))
}

fn cast<'a>(
    expr: &'a Expr,
    input: &'a Expr,
    mode: CastMode,
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let to = &expr.data_type;
    let run = |a: &ArrayRef| cast_array(a, &input.data_type, to, mode, ctx).map_err(|e| e.at(expr.origin));
    Ok(match evaluate_in(input, scope, ctx)? {
        Value::Column(a) => Value::Column(run(&a)?),
        Value::Constant(_) if scope.rows == 0 => Value::Column(new_null_array(&arrow_type(to), 0)),
        Value::Constant(a) => Value::Constant(run(&a)?),
        Value::Lambda(_) => return Err(EvalError::internal("a lambda cannot be cast")),
    })
}

/// Whether evaluating the expression on rows that do not need it is harmless: it raises no error and is cheap.
fn is_harmless(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::LambdaVariable(_) | ExprKind::ScalarSubquery(_) => true,
        ExprKind::Call { function, args } => {
            matches!(
                &**function,
                "=" | "<=>"
                    | "<>"
                    | "<"
                    | "<="
                    | ">"
                    | ">="
                    | "not"
                    | "isnull"
                    | "isnotnull"
                    | "isnan"
                    | "istrue"
                    | "isfalse"
                    | "in"
            ) && args.iter().all(|a| !a.data_type.is_nested() && is_harmless(a))
        }
        ExprKind::And(a, b) | ExprKind::Or(a, b) => is_harmless(a) && is_harmless(b),
        _ => false,
    }
}

/// Positions of the set bits.
fn indices_where(mask: &BooleanArray) -> UInt32Array {
    UInt32Array::from_iter_values(mask.values().set_indices().map(|i| i as u32))
}

/// AND (`and`) or OR: the right side only where the left does not decide.
fn connective<'a>(
    left: &'a Expr,
    right: &'a Expr,
    and: bool,
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let kleene = if and { compute::and_kleene } else { compute::or_kleene };
    let decides = |v: &BooleanArray, i: usize| v.is_valid(i) && v.value(i) != and;
    let column = |v: BooleanArray| Value::Column(Arc::new(v));
    let left = evaluate_in(left, scope, ctx)?;
    if let Value::Constant(a) = &left
        && decides(&truth(a)?, 0)
    {
        return Ok(left);
    }
    if is_harmless(right) || matches!(left, Value::Constant(_)) {
        let right = evaluate_in(right, scope, ctx)?;
        if let (Value::Constant(l), Value::Constant(r)) = (&left, &right) {
            return Ok(Value::Constant(Arc::new(kleene(&truth(l)?, &truth(r)?)?)));
        }
        let (l, r) = (expand(&left, scope.rows)?, expand(&right, scope.rows)?);
        return Ok(column(kleene(&truth(&l)?, &truth(&r)?)?));
    }
    let left = truth(&expand(&left, scope.rows)?)?;
    let open = BooleanArray::new(BooleanBuffer::collect_bool(scope.rows, |i| !decides(&left, i)), None);
    let open_count = open.true_count();
    if open_count == 0 {
        return Ok(column(left));
    }
    if open_count == scope.rows {
        let right = expand(&evaluate_in(right, scope, ctx)?, scope.rows)?;
        return Ok(column(kleene(&left, &truth(&right)?)?));
    }
    let indices = indices_where(&open);
    let right = truth(&evaluate_rows(right, scope, &indices, ctx)?)?;
    let mut next = 0;
    let merged = BooleanArray::from_iter((0..scope.rows).map(|i| {
        if !open.value(i) {
            return Some(!and);
        }
        let r = right.is_valid(next).then(|| right.value(next));
        next += 1;
        match (left.is_valid(i).then(|| left.value(i)), r) {
            // The left side is not deciding: it is the neutral value, or NULL.
            (Some(_), r) => r,
            (None, Some(r)) if r != and => Some(r),
            (None, _) => None,
        }
    }));
    Ok(column(merged))
}

/// Evaluates on some rows of the scope only; one value per index.
fn evaluate_rows(expr: &Expr, scope: &Scope<'_>, indices: &UInt32Array, ctx: &EvalContext) -> EvalResult {
    let child = scope.select(indices)?;
    let value = evaluate_in(expr, &child, ctx).map_err(|e| outer_row(e, |i| indices.value(i)))?;
    expand(&value, indices.len())
}

/// Collects the rows of a result from pieces that were computed for different rows.
struct Pieces {
    arrays: Vec<ArrayRef>,
    /// (piece, row in it) of each row.
    places: Vec<(usize, usize)>,
}

impl Pieces {
    /// All rows NULL at first.
    fn new(t: &DataType, rows: usize) -> Pieces {
        Pieces { arrays: vec![new_null_array(&arrow_type(t), 1)], places: vec![(0, 0); rows] }
    }

    fn finish(self) -> EvalResult {
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(|a| a.as_ref()).collect();
        Ok(compute::interleave(&arrays, &self.places)?)
    }
}

fn case<'a>(
    expr: &'a Expr,
    branches: &'a [(Expr, Expr)],
    otherwise: Option<&'a Expr>,
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let mut pieces: Option<Pieces> = None;
    // Rows that no branch has taken yet; `None`: all.
    let mut open: Option<UInt32Array> = None;
    for (condition, value) in branches {
        let holds = match &open {
            Some(indices) => evaluate_rows(condition, scope, indices, ctx)?,
            None => match evaluate_in(condition, scope, ctx)? {
                Value::Constant(c) if only_true(&truth(&c)?).value(0) => {
                    return evaluate_in(value, scope, ctx);
                }
                Value::Constant(_) => continue,
                column => expand(&column, scope.rows)?,
            },
        };
        let holds = only_true(&truth(&holds)?);
        let n = holds.true_count();
        if n == 0 {
            continue;
        }
        if n == scope.rows {
            return evaluate_in(value, scope, ctx);
        }
        if let ([_], Some(other)) = (branches, otherwise)
            && [value, other].iter().all(|e| e.data_type == expr.data_type && is_harmless(e))
            && !expr.data_type.is_nested()
        {
            // One condition and two values that are there already: no rows need to be picked apart.
            let (value, other) = (evaluate_in(value, scope, ctx)?, evaluate_in(other, scope, ctx)?);
            return Ok(Value::Column(choose(&holds, &value, &other)?));
        }
        let hit = indices_where(&holds);
        let miss = indices_where(&compute::not(&holds)?);
        let (hit, miss) = match &open {
            None => (hit, miss),
            Some(rows) => (
                compute::take(rows, &hit, None)?.as_primitive().clone(),
                compute::take(rows, &miss, None)?.as_primitive().clone(),
            ),
        };
        let pieces = pieces.get_or_insert_with(|| Pieces::new(&expr.data_type, scope.rows));
        take_piece(pieces, expr, value, scope, &hit, ctx)?;
        let done = miss.is_empty();
        open = Some(miss);
        if done {
            break;
        }
    }
    match (pieces, open) {
        (Some(mut pieces), Some(open)) => {
            if let Some(value) = otherwise
                && !open.is_empty()
            {
                take_piece(&mut pieces, expr, value, scope, &open, ctx)?;
            }
            Ok(Value::Column(pieces.finish()?))
        }
        _ => match otherwise {
            Some(value) => evaluate_in(value, scope, ctx),
            None => Ok(Value::Constant(new_null_array(&arrow_type(&expr.data_type), 1))),
        },
    }
}

/// `value` where the mask is set, `other` elsewhere; both of one type.
fn choose(mask: &BooleanArray, value: &Value<'_>, other: &Value<'_>) -> EvalResult {
    let datum = |v: &Value<'_>| -> Result<Box<dyn Datum>, EvalError> {
        match v {
            Value::Column(a) => Ok(Box::new(a.clone())),
            Value::Constant(a) => Ok(Box::new(Scalar::new(a.clone()))),
            Value::Lambda(_) => Err(EvalError::internal("a lambda is no value")),
        }
    };
    Ok(compute::kernels::zip::zip(mask, datum(value)?.as_ref(), datum(other)?.as_ref())?)
}

fn take_piece(
    pieces: &mut Pieces,
    expr: &Expr,
    value: &Expr,
    scope: &Scope<'_>,
    rows: &UInt32Array,
    ctx: &EvalContext,
) -> Result<(), EvalError> {
    let piece = pieces.arrays.len();
    if let ExprKind::Literal(l) = &value.kind {
        pieces.arrays.push(literal_array(l, &expr.data_type, 1));
        for row in rows.values() {
            pieces.places[*row as usize] = (piece, 0);
        }
        return Ok(());
    }
    pieces.arrays.push(conform(evaluate_rows(value, scope, rows, ctx)?, &expr.data_type)?);
    for (i, row) in rows.values().iter().enumerate() {
        pieces.places[*row as usize] = (piece, i);
    }
    Ok(())
}

fn coalesce<'a>(
    expr: &'a Expr,
    args: &'a [Expr],
    scope: &'a Scope<'a>,
    ctx: &'a EvalContext,
) -> Result<Value<'a>, EvalError> {
    let mut pieces: Option<Pieces> = None;
    let mut open: Option<UInt32Array> = None;
    for arg in args {
        let array = match &open {
            Some(rows) => evaluate_rows(arg, scope, rows, ctx)?,
            None => match evaluate_in(arg, scope, ctx)? {
                Value::Constant(a) if a.is_valid(0) && a.data_type() != &arrow::datatypes::DataType::Null => {
                    return Ok(Value::Constant(a));
                }
                Value::Constant(_) => continue,
                column => expand(&column, scope.rows)?,
            },
        };
        let array = conform(array, &expr.data_type)?;
        if array.data_type() == &arrow::datatypes::DataType::Null {
            continue;
        }
        if open.is_none() && array.null_count() == 0 {
            return Ok(Value::Column(array));
        }
        let pieces = pieces.get_or_insert_with(|| Pieces::new(&expr.data_type, scope.rows));
        let piece = pieces.arrays.len();
        let mut rest = Vec::new();
        for i in 0..array.len() {
            let row = open.as_ref().map_or(i as u32, |rows| rows.value(i));
            if array.is_valid(i) {
                pieces.places[row as usize] = (piece, i);
            } else {
                rest.push(row);
            }
        }
        pieces.arrays.push(array);
        let done = rest.is_empty();
        open = Some(UInt32Array::from(rest));
        if done {
            break;
        }
    }
    match pieces {
        Some(pieces) => Ok(Value::Column(pieces.finish()?)),
        None => Ok(Value::Constant(new_null_array(&arrow_type(&expr.data_type), 1))),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int32Array;
    use arrow::datatypes::Int32Type;
    use ssql_ir::{Field, Schema};

    use super::*;

    /// `x -> x + a` over elements of rows, with an outer lambda's variable in force.
    #[test]
    fn lambdas_see_their_row_and_outer_variables() {
        let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
        let column: ArrayRef = Arc::new(Int32Array::from(vec![10, 0, 30]));
        let batch = RecordBatch::try_new(crate::arrow_schema(&schema), vec![column]).expect("a batch");
        let mut scope = Scope::of_batch(&batch);
        scope.variables.push((7, Arc::new(Int32Array::from(vec![100, 200, 300]))));
        let variable = |id| Expr {
            kind: ExprKind::LambdaVariable(id),
            data_type: DataType::Int32,
            nullable: true,
            origin: Default::default(),
        };
        let add = |a, b| Expr::call("+", vec![a, b], DataType::Int32, true);
        let body = add(add(variable(1), Expr::column(0, DataType::Int32, true)), variable(7));
        let params = [LambdaParam { id: 1, name: "x".into(), data_type: DataType::Int32, nullable: true }];
        let ctx = EvalContext::default();
        let lambda = Lambda { params: &params, body: &body, scope: &scope, ctx: &ctx };
        let elements: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), None, Some(3)]));
        let result = lambda.apply(&[0, 0, 2, 2], &[elements]).expect("no error");
        let result: Vec<_> = result.as_primitive::<Int32Type>().iter().collect();
        assert_eq!(result, [Some(111), Some(112), None, Some(333)]);
        // An error names the row of the call.
        let by_zero = Expr::call("%", vec![variable(1), Expr::column(0, DataType::Int32, true)], DataType::Int32, true);
        let lambda = Lambda { body: &by_zero, ..lambda };
        let elements: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        assert_eq!(lambda.apply(&[0, 1], &[elements]).expect_err("0 in row 1").row, Some(1));
    }
}
