//! Joins with at most one streaming side: the other side is built into a hash table, then probed batch by batch.

use std::sync::Arc;

use ahash::AHashMap;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::{concat_batches, take};
use arrow::datatypes::SchemaRef;
use ssql_ir::{DataType, Expr, JoinKind, Schema};
use ssql_stdlib::{EvalContext, arrow_schema, filter_mask};

use crate::error::{EngineError, Result};
use crate::operators::keys::KeyRows;

/// Candidate pairs evaluated at a time, so that a join without keys stays within cache and memory.
const PAIRS: usize = 1 << 16;

/// What a hash join needs to know of its operator; shared by both sides.
#[derive(Debug)]
pub struct JoinSpec {
    /// Kind, seen from input 0 as left.
    pub kind: JoinKind,
    /// Whether the table is built from input 0.
    pub build_left: bool,
    build_keys: Vec<usize>,
    probe_keys: Vec<usize>,
    null_safe: Vec<bool>,
    residual: Option<Expr>,
    keys: KeyRows,
    build_schema: SchemaRef,
    pairs_schema: SchemaRef,
    output: SchemaRef,
}

impl JoinSpec {
    /// The join of inputs with these columns.
    #[allow(clippy::too_many_arguments)] // the operator's own fields
    pub fn new(
        kind: JoinKind,
        build_left: bool,
        left_keys: &[u32],
        right_keys: &[u32],
        null_safe: &[bool],
        residual: Option<Expr>,
        left: &Schema,
        right: &Schema,
        output: &Schema,
    ) -> Result<JoinSpec> {
        let types: Vec<DataType> = left_keys.iter().map(|&k| left.fields[k as usize].data_type.clone()).collect();
        let at = |keys: &[u32]| keys.iter().map(|&k| k as usize).collect::<Vec<_>>();
        let (build_keys, probe_keys) =
            if build_left { (at(left_keys), at(right_keys)) } else { (at(right_keys), at(left_keys)) };
        let pairs = Schema::new(left.fields.iter().chain(&right.fields).map(nullable).collect());
        Ok(JoinSpec {
            kind,
            build_left,
            build_keys,
            probe_keys,
            null_safe: null_safe.to_vec(),
            residual,
            keys: KeyRows::new(&types)?,
            build_schema: arrow_schema(if build_left { left } else { right }),
            pairs_schema: arrow_schema(&pairs),
            output: arrow_schema(output),
        })
    }

    /// Builds the table from all rows of the static side.
    pub fn build(&self, batches: &[RecordBatch]) -> Result<Build> {
        let rows = concat_batches(&self.build_schema, batches)?;
        let (keys, nulls) = self.key_rows(&rows, &self.build_keys)?;
        let mut index: AHashMap<Box<[u8]>, Vec<u32>> = AHashMap::new();
        let mut has_null = false;
        for i in 0..rows.num_rows() {
            if nulls.as_ref().is_some_and(|n| n.is_null(i)) {
                has_null = true;
                continue;
            }
            index.entry(keys.row(i).data().into()).or_default().push(i as u32);
        }
        Ok(Build { rows, index, has_null })
    }

    /// The keys of a batch, and which rows have a NULL in a key that NULL does not equal.
    fn key_rows(&self, batch: &RecordBatch, keys: &[usize]) -> Result<(arrow::row::Rows, Option<NullBuffer>)> {
        let columns: Vec<ArrayRef> = keys.iter().map(|&k| Arc::clone(batch.column(k))).collect();
        let mut nulls: Option<NullBuffer> = None;
        for (column, &null_safe) in columns.iter().zip(&self.null_safe) {
            if !null_safe {
                nulls = NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref());
            }
        }
        if keys.is_empty() {
            // The row format has no rows of no columns; one constant key stands for "every pair is a candidate".
            let ones: ArrayRef = Arc::new(arrow::array::Int8Array::from(vec![0; batch.num_rows()]));
            let one = KeyRows::new(&[DataType::Int8])?;
            return Ok((one.rows(&[ones])?, None));
        }
        Ok((self.keys.rows(&columns)?, nulls))
    }
}

fn nullable(field: &ssql_ir::Field) -> ssql_ir::Field {
    ssql_ir::Field::new(field.name.clone(), field.data_type.clone(), true)
}

/// The static side of a join, by key.
pub struct Build {
    rows: RecordBatch,
    index: AHashMap<Box<[u8]>, Vec<u32>>,
    /// Some row has a NULL key.
    has_null: bool,
}

impl Build {
    /// Rows in the table.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The probing side of a join.
pub struct Probe {
    /// The join.
    pub spec: Arc<JoinSpec>,
}

/// Pairs of (probe row, build row) that match.
struct Pairs {
    probe: Vec<u32>,
    build: Vec<u32>,
}

impl Probe {
    /// The join of one probe batch with the table.
    pub fn apply(&self, batch: &RecordBatch, build: &Build, ctx: &EvalContext) -> Result<RecordBatch> {
        let spec = &self.spec;
        let (matches, _) = self.matches(batch, build, ctx)?;
        let probe_is_outer = match spec.kind {
            JoinKind::Inner => false,
            JoinKind::Left => !spec.build_left,
            JoinKind::Right => spec.build_left,
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::NullAwareAnti | JoinKind::Existence => {
                return self.semi(batch, build, &matches, ctx);
            }
            JoinKind::Full => return Err(EngineError::internal("a full join keeps its build side's matches")),
        };
        let mut probe = matches.probe;
        let mut found: Vec<Option<u32>> = matches.build.into_iter().map(Some).collect();
        if probe_is_outer {
            // Matches of a row are adjacent and ascending by probe row: put the unmatched where they belong.
            let (mut p, mut b) = (Vec::with_capacity(probe.len()), Vec::with_capacity(found.len()));
            let mut at = 0;
            for row in 0..batch.num_rows() as u32 {
                let from = at;
                while at < probe.len() && probe[at] == row {
                    p.push(row);
                    b.push(found[at]);
                    at += 1;
                }
                if from == at {
                    p.push(row);
                    b.push(None);
                }
            }
            (probe, found) = (p, b);
        }
        spec.join(batch, Some(&UInt32Array::from(probe)), &build.rows, Some(&UInt32Array::from(found)))
    }

    /// Matching pairs in probe order, and which build rows matched.
    fn matches(&self, batch: &RecordBatch, build: &Build, ctx: &EvalContext) -> Result<(Pairs, Vec<bool>)> {
        let spec = &self.spec;
        let (keys, nulls) = spec.key_rows(batch, &spec.probe_keys)?;
        let mut all = Pairs { probe: Vec::new(), build: Vec::new() };
        let mut pending = Pairs { probe: Vec::new(), build: Vec::new() };
        for row in 0..batch.num_rows() {
            if nulls.as_ref().is_some_and(|n| n.is_null(row)) {
                continue;
            }
            for &b in build.index.get(keys.row(row).data()).map_or(&[][..], Vec::as_slice) {
                pending.probe.push(row as u32);
                pending.build.push(b);
                if pending.probe.len() == PAIRS {
                    self.settle(batch, build, &mut pending, &mut all, ctx)?;
                }
            }
        }
        self.settle(batch, build, &mut pending, &mut all, ctx)?;
        let mut hit = vec![false; build.len()];
        for &b in &all.build {
            hit[b as usize] = true;
        }
        Ok((all, hit))
    }

    /// Moves the pending pairs for which the residual is true over to `all`.
    fn settle(
        &self,
        batch: &RecordBatch,
        build: &Build,
        pending: &mut Pairs,
        all: &mut Pairs,
        ctx: &EvalContext,
    ) -> Result<()> {
        let (probe, found) = (std::mem::take(&mut pending.probe), std::mem::take(&mut pending.build));
        if probe.is_empty() {
            return Ok(());
        }
        let Some(residual) = &self.spec.residual else {
            all.probe.extend(probe);
            all.build.extend(found);
            return Ok(());
        };
        let (p, b) = (UInt32Array::from(probe), UInt32Array::from(found));
        let pairs = self.spec.pairs(batch, &p, &build.rows, &b)?;
        let mask = filter_mask(residual, &pairs, ctx)?;
        for i in mask.values().set_indices().filter(|&i| mask.is_valid(i)) {
            all.probe.push(p.value(i));
            all.build.push(b.value(i));
        }
        Ok(())
    }

    /// Semi, anti and existence joins: the left rows, by whether they have a match.
    fn semi(&self, batch: &RecordBatch, build: &Build, matches: &Pairs, ctx: &EvalContext) -> Result<RecordBatch> {
        let spec = &self.spec;
        let mut matched = vec![false; batch.num_rows()];
        for &row in &matches.probe {
            matched[row as usize] = true;
        }
        if spec.kind == JoinKind::Existence {
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(BooleanArray::from(matched)));
            return Ok(RecordBatch::try_new(Arc::clone(&spec.output), columns)?);
        }
        let keep: Vec<u32> = match spec.kind {
            JoinKind::LeftSemi => (0..matched.len() as u32).filter(|&i| matched[i as usize]).collect(),
            JoinKind::NullAwareAnti => {
                let possible = self.possible(batch, build, ctx)?;
                (0..matched.len() as u32).filter(|&i| !matched[i as usize] && !possible[i as usize]).collect()
            }
            _ => (0..matched.len() as u32).filter(|&i| !matched[i as usize]).collect(),
        };
        spec.project(batch, Some(&UInt32Array::from(keep)))
    }

    /// NOT IN: rows that a NULL on either side might match. Without rows on the other side nothing can.
    fn possible(&self, batch: &RecordBatch, build: &Build, ctx: &EvalContext) -> Result<Vec<bool>> {
        let mut possible = vec![false; batch.num_rows()];
        if build.is_empty() {
            return Ok(possible);
        }
        let (_, nulls) = self.spec.key_rows(batch, &self.spec.probe_keys)?;
        if self.spec.residual.is_none() && !build.has_null {
            if let Some(nulls) = nulls {
                possible.iter_mut().enumerate().for_each(|(i, p)| *p = nulls.is_null(i));
            }
            return Ok(possible);
        }
        // Compare each undecided row with every row: NULL on either side of each key counts as equal.
        let probe: Vec<ArrayRef> = self.spec.probe_keys.iter().map(|&k| Arc::clone(batch.column(k))).collect();
        let built: Vec<ArrayRef> = self.spec.build_keys.iter().map(|&k| Arc::clone(build.rows.column(k))).collect();
        for (row, flag) in possible.iter_mut().enumerate() {
            let mut pending = Pairs { probe: Vec::new(), build: Vec::new() };
            for b in 0..build.len() {
                let unknown = probe.iter().zip(&built).any(|(p, q)| p.is_null(row) || q.is_null(b));
                if unknown {
                    pending.probe.push(row as u32);
                    pending.build.push(b as u32);
                }
            }
            let mut all = Pairs { probe: Vec::new(), build: Vec::new() };
            self.settle(batch, build, &mut pending, &mut all, ctx)?;
            *flag = !all.probe.is_empty();
        }
        Ok(possible)
    }
}

/// Right and full outer joins of two bounded inputs: all probe rows, then what no probe row matched.
pub fn outer_join(
    spec: &Arc<JoinSpec>,
    probe_rows: &[RecordBatch],
    build: &Build,
    ctx: &EvalContext,
) -> Result<Vec<RecordBatch>> {
    let probe = Probe { spec: Arc::clone(spec) };
    let mut hit = vec![false; build.len()];
    let mut out = Vec::new();
    for batch in probe_rows {
        let (matches, hits) = probe.matches(batch, build, ctx)?;
        hit.iter_mut().zip(hits).for_each(|(h, b)| *h |= b);
        let mut p = matches.probe;
        let mut b: Vec<Option<u32>> = matches.build.into_iter().map(Some).collect();
        if spec.kind == JoinKind::Full {
            let mut matched = vec![false; batch.num_rows()];
            p.iter().for_each(|&row| matched[row as usize] = true);
            for row in (0..batch.num_rows()).filter(|&i| !matched[i]) {
                p.push(row as u32);
                b.push(None);
            }
        }
        out.push(spec.join(batch, Some(&UInt32Array::from(p)), &build.rows, Some(&UInt32Array::from(b)))?);
    }
    let missed: Vec<u32> = (0..hit.len() as u32).filter(|&i| !hit[i as usize]).collect();
    let nothing = UInt32Array::new_null(missed.len());
    let probe_schema = probe_rows.first().map(RecordBatch::schema);
    let empty = probe_schema.map(RecordBatch::new_empty);
    if let Some(batch) = probe_rows.first().or(empty.as_ref()) {
        out.push(spec.join(batch, Some(&nothing), &build.rows, Some(&UInt32Array::from(missed)))?);
    } else {
        out.push(spec.unmatched_build(&build.rows, &UInt32Array::from(missed))?);
    }
    Ok(out)
}

impl JoinSpec {
    /// Pairs as rows of left columns then right columns, all nullable: what a residual is evaluated over.
    fn pairs(&self, probe: &RecordBatch, p: &UInt32Array, build: &RecordBatch, b: &UInt32Array) -> Result<RecordBatch> {
        self.side_by_side(probe, Some(p), build, Some(b), &self.pairs_schema)
    }

    /// Output rows of an inner or outer join.
    fn join(
        &self,
        probe: &RecordBatch,
        p: Option<&UInt32Array>,
        build: &RecordBatch,
        b: Option<&UInt32Array>,
    ) -> Result<RecordBatch> {
        self.side_by_side(probe, p, build, b, &self.output)
    }

    fn side_by_side(
        &self,
        probe: &RecordBatch,
        p: Option<&UInt32Array>,
        build: &RecordBatch,
        b: Option<&UInt32Array>,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let rows = p.map_or(probe.num_rows(), UInt32Array::len);
        let probe_columns = take_all(probe, p)?;
        let build_columns = take_all(build, b)?;
        let columns: Vec<ArrayRef> = match self.build_left {
            true => build_columns.into_iter().chain(probe_columns).collect(),
            false => probe_columns.into_iter().chain(build_columns).collect(),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
    }

    /// Build rows beside NULLs, where the probe side had no batch at all.
    fn unmatched_build(&self, build: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
        let built = take_all(build, Some(rows))?;
        let n_probe = self.output.fields().len() - built.len();
        let fields: Vec<_> = if self.build_left {
            self.output.fields().iter().skip(built.len()).cloned().collect()
        } else {
            self.output.fields().iter().take(n_probe).cloned().collect()
        };
        let nulls = fields.iter().map(|f| new_null_array(f.data_type(), rows.len()));
        let columns: Vec<ArrayRef> = match self.build_left {
            true => built.into_iter().chain(nulls).collect(),
            false => nulls.chain(built).collect(),
        };
        Ok(RecordBatch::try_new(Arc::clone(&self.output), columns)?)
    }

    fn project(&self, batch: &RecordBatch, rows: Option<&UInt32Array>) -> Result<RecordBatch> {
        let n = rows.map_or(batch.num_rows(), UInt32Array::len);
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), take_all(batch, rows)?, &options)?)
    }
}

fn take_all(batch: &RecordBatch, rows: Option<&UInt32Array>) -> Result<Vec<ArrayRef>> {
    match rows {
        None => Ok(batch.columns().to_vec()),
        Some(rows) => {
            // `take` by a NULL index gives NULL, which is what an unmatched side shows.
            batch
                .columns()
                .iter()
                .map(|c| {
                    if c.is_empty() { Ok(new_null_array(c.data_type(), rows.len())) } else { Ok(take(c, rows, None)?) }
                })
                .collect()
        }
    }
}
