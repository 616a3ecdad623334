//! The join against nested loops over all rows, and against itself after a restart.

use arrow::array::{Int64Array, StringViewArray, TimestampMicrosecondArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::*;

/// Event time, key, value.
type Row = (Option<i64>, Option<&'static str>, i64);

const KINDS: [JoinKind; 5] = [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full, JoinKind::LeftSemi];

fn schema(prefix: &str) -> Schema {
    Schema::new(vec![
        Field::new(format!("{prefix}t"), DataType::Timestamp, true),
        Field::new(format!("{prefix}k"), DataType::String, true),
        Field::new(format!("{prefix}v"), DataType::Int64, false),
    ])
}

fn batch(rows: &[Row]) -> RecordBatch {
    let schema = arrow_schema(&schema(""));
    let times = rows.iter().map(|r| r.0).collect::<TimestampMicrosecondArray>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.with_data_type(schema.field(0).data_type().clone())),
        Arc::new(rows.iter().map(|r| r.1).collect::<StringViewArray>()),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.2))),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

/// `lv > 1 AND rv > 0 AND lv < rv`: a part for each side, and one for both.
fn condition() -> Expr {
    let column = |c: u32| Expr::column(c, DataType::Int64, false);
    let constant = |v: i64| Expr::literal(ssql_ir::Literal::Int(v), DataType::Int64);
    let compare = |op: &str, a: Expr, b: Expr| Expr::call(op, vec![a, b], DataType::Boolean, false);
    let and = |a: Expr, b: Expr| Expr {
        kind: ssql_ir::ExprKind::And(Box::new(a), Box::new(b)),
        data_type: DataType::Boolean,
        nullable: false,
        origin: ssql_ir::Origin::default(),
    };
    let own = and(compare(">", column(2), constant(1)), compare(">", column(5), constant(0)));
    and(own, compare("<", column(2), column(5)))
}

fn operator(kind: JoinKind, add: [i64; 2], residual: bool) -> StreamJoin {
    let side = |add| JoinSide { keys: vec![1], expire: Some(CloseRule { column: 0, add_micros: add }), late: Some(0) };
    let (left, right) = (schema("l"), schema("r"));
    let nullable =
        |s: &Schema| s.fields.iter().map(|f| Field::new(f.name.clone(), f.data_type.clone(), true)).collect();
    let mut fields: Vec<Field> = nullable(&left);
    if kind != JoinKind::LeftSemi {
        fields.extend::<Vec<Field>>(nullable(&right));
    }
    let residual = residual.then(condition);
    StreamJoin::new(kind, &side(add[0]), &side(add[1]), residual, &left, &right, &Schema::new(fields)).unwrap()
}

fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    let options = FormatOptions::new().with_null("NULL");
    for batch in batches {
        let integers = |c: &ArrayRef| match c.data_type() {
            arrow::datatypes::DataType::Timestamp(..) => {
                arrow::compute::cast(c, &arrow::datatypes::DataType::Int64).unwrap()
            }
            _ => Arc::clone(c),
        };
        let columns: Vec<ArrayRef> = batch.columns().iter().map(integers).collect();
        let cells: Vec<_> = columns.iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            lines.push(cells.iter().map(|c| c.value(row).to_string()).collect::<Vec<_>>().join(" "));
        }
    }
    lines.sort();
    lines
}

fn at(watermark: i64) -> BatchWatermark {
    BatchWatermark { late: watermark, evict: watermark }
}

fn step(join: &mut StreamJoin, left: &[Row], right: &[Row], wm: i64, log: Option<&mut Vec<u8>>) -> Vec<String> {
    let mut out = join.apply(&[batch(left)], &[batch(right)], at(wm), &EvalContext::default()).unwrap();
    out.extend(join.finish(at(wm), log).unwrap());
    lines(&out)
}

/// The definition, row by row.
struct NestedLoops {
    kind: JoinKind,
    add: [i64; 2],
    residual: bool,
    /// Rows kept of each side, and whether they have matched.
    kept: [Vec<(Row, bool)>; 2],
    late: u64,
}

impl NestedLoops {
    fn text(row: Option<&Row>) -> String {
        let Some((t, k, v)) = row else { return "NULL NULL NULL".to_owned() };
        format!("{} {} {v}", t.map_or("NULL".to_owned(), |t| t.to_string()), k.unwrap_or("NULL"))
    }

    fn outer(&self, side: usize) -> bool {
        matches!((self.kind, side), (JoinKind::Full, _) | (JoinKind::Left, 0) | (JoinKind::Right, 1))
    }

    fn alone(side: usize, row: &Row) -> String {
        let (l, r) = if side == 0 { (Some(row), None) } else { (None, Some(row)) };
        format!("{} {}", Self::text(l), Self::text(r))
    }

    fn step(&mut self, left: &[Row], right: &[Row], wm: i64) -> Vec<String> {
        let mut out = Vec::new();
        for (side, rows) in [left, right].into_iter().enumerate() {
            for row in rows {
                if row.0.is_some_and(|t| t <= wm) {
                    self.late += 1;
                    continue;
                }
                if self.residual && row.2 <= [1, 0][side] {
                    if self.outer(side) {
                        out.push(Self::alone(side, row));
                    }
                    continue;
                }
                let mut matched = false;
                for (other, has) in &mut self.kept[1 - side] {
                    let (l, r) = if side == 0 { (row, &*other) } else { (&*other, row) };
                    if row.1.is_none() || l.1 != r.1 || (self.residual && l.2 >= r.2) {
                        continue;
                    }
                    if self.kind == JoinKind::LeftSemi {
                        let shown = if side == 0 { matched } else { *has };
                        if !shown {
                            out.push(Self::text(Some(l)));
                        }
                    } else {
                        out.push(format!("{} {}", Self::text(Some(l)), Self::text(Some(r))));
                    }
                    matched = true;
                    *has = true;
                }
                self.kept[side].push((*row, matched));
            }
        }
        for side in 0..2 {
            let add = self.add[side];
            let expired = |row: &Row| row.0.is_some_and(|t| t + add <= wm);
            if self.outer(side) {
                let alone = self.kept[side].iter().filter(|(row, matched)| expired(row) && !matched);
                out.extend(alone.map(|(row, _)| Self::alone(side, row)));
            }
            self.kept[side].retain(|(row, _)| !expired(row));
        }
        out.sort();
        out
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn rows(&mut self, from: i64) -> Vec<Row> {
        let keys = [Some("a"), Some("b"), Some("c"), Some("a key that is longer than a view holds"), None];
        let n = self.below(12);
        (0..n)
            .map(|_| {
                let time = (self.below(10) > 0).then(|| from - 3 + self.below(25) as i64);
                (time, keys[self.below(5) as usize], self.below(6) as i64)
            })
            .collect()
    }
}

#[test]
fn nested_loops_and_restarts_give_the_same() {
    for (seed, kind) in (0..24).flat_map(|seed| KINDS.map(|kind| (seed, kind))) {
        let residual = seed % 2 == 0;
        // Some sides expire before the watermark reaches their rows' time.
        let add = [[0, 0], [7, 3], [-2, 12]][seed as usize % 3];
        let mut random = Random(seed * 31 + 7);
        let mut join = operator(kind, add, residual);
        let mut oracle = NestedLoops { kind, add, residual, kept: Default::default(), late: 0 };
        let mut log = vec![operator(kind, add, residual).snapshot(0)];
        let mut wm = 0;
        for round in 0..14 {
            let case = format!("seed {seed} {kind:?} round {round}");
            let mut other = operator(kind, add, residual);
            log.iter().for_each(|bytes| other.restore(bytes).unwrap());
            assert_eq!(other.metrics().0, join.metrics().0, "{case}");
            if random.below(4) == 0 {
                log = vec![join.snapshot(wm)];
            }
            let (left, right) = (random.rows(wm), random.rows(wm));
            wm += random.below(8) as i64;
            oracle.late = 0;
            let expected = oracle.step(&left, &right, wm);
            let mut delta = Vec::new();
            assert_eq!(step(&mut join, &left, &right, wm, Some(&mut delta)), expected, "{case}");
            assert_eq!(step(&mut other, &left, &right, wm, None), expected, "{case}, restarted");
            assert_eq!(join.late(), oracle.late, "{case}");
            log.push(delta);
        }
        // Nothing that can expire outlives its time.
        step(&mut join, &[], &[], i64::MAX - 1, None);
        for side in &mut join.sides {
            assert!(side.kept.len() <= 14 * 12);
            assert!(side.kept.expire(i64::MAX - 1).is_empty());
        }
    }
}

#[test]
fn more_pairs_than_are_looked_at_together() {
    let n = 300;
    let rows: Vec<Row> = (0..n).map(|i| (Some(10), Some("a"), 2 + i % 3)).collect();
    for residual in [false, true] {
        let mut join = operator(JoinKind::Inner, [0, 0], residual);
        let mut oracle =
            NestedLoops { kind: JoinKind::Inner, add: [0, 0], residual, kept: Default::default(), late: 0 };
        assert_eq!(step(&mut join, &rows, &rows, 5, None), oracle.step(&rows, &rows, 5));
        // All are evicted, and only the free slots stay.
        step(&mut join, &[], &[], 10, None);
        let (kept, added, removed, _) = join.metrics();
        assert_eq!((kept, added, removed), (0, 0, 2 * n as u64));
    }
}

#[test]
fn an_unmatched_row_waits_until_it_expires() {
    // The bound is inclusive, so the planner adds a millisecond.
    let mut join = operator(JoinKind::Left, [5_001, 0], false);
    let rows =
        [(Some(10_000), Some("a"), 2), (Some(9_999), Some("b"), 2), (None, Some("c"), 2), (Some(9_000), None, 2)];
    assert!(step(&mut join, &rows, &[], 0, None).is_empty());
    assert_eq!(step(&mut join, &[], &[], 15_000, None), ["9000 NULL 2 NULL NULL NULL", "9999 b 2 NULL NULL NULL"]);
    assert_eq!(step(&mut join, &[], &[], 15_001, None), ["10000 a 2 NULL NULL NULL"]);
    // A row without a time is kept for ever.
    assert!(step(&mut join, &[], &[], i64::MAX - 1, None).is_empty());
    assert_eq!(join.metrics().0, 1);
}

#[test]
fn the_watermark_behind_the_join_waits_for_kept_rows() {
    assert_eq!(operator(JoinKind::Left, [3_600, 20], false).output_watermark(10_000), 6_400);
    assert_eq!(operator(JoinKind::Inner, [-50, -10], false).output_watermark(10_000), 10_000);
    // A window's start among the keys: rows meet within one window only.
    let keyed = JoinSide { keys: vec![0, 1], expire: Some(CloseRule { column: 0, add_micros: 500 }), late: None };
    let (left, right) = (schema("l"), schema("r"));
    let output = Schema::new(left.fields.iter().chain(&right.fields).cloned().collect());
    let join = StreamJoin::new(JoinKind::Inner, &keyed, &keyed, None, &left, &right, &output).unwrap();
    assert_eq!(join.output_watermark(10_000), 10_000);
}

#[test]
fn cut_off_state_is_refused() {
    let mut join = operator(JoinKind::Left, [0, 0], false);
    step(&mut join, &[(Some(10), Some("a"), 2)], &[(Some(11), Some("b"), 3)], 0, None);
    let bytes = join.snapshot(0);
    let one = 8 + (bytes.len() - 8) / 2;
    for cut in (0..8).chain(9..one).chain(one + 1..bytes.len()) {
        let error = operator(JoinKind::Left, [0, 0], false).restore(&bytes[..cut]).unwrap_err();
        assert_eq!(error.condition, "CHECKPOINT_CORRUPT", "{cut}");
    }
}
