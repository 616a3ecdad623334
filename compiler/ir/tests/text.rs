//! The text of the IR reads back to the same value, and the verifier takes what is right and names what is not.

use ssql_ir::parse::{parse, parse_expr};
use ssql_ir::print::ExprText;
use ssql_ir::verify::verify;
use ssql_ir::{
    AggArg, AggCall, CastMode, ChangeKind, CloseRule, DataType as T, Delay, EmitMode, Expr, ExprKind, Field, Frame,
    FrameBound, JoinKind, JoinSide, LambdaParam, Literal, Node, NodeId, Op, Pipeline, Schema, SortKey, WindowCall,
};

fn field(name: &str, t: T, nullable: bool) -> Field {
    Field::new(name, t, nullable)
}

fn click_fields() -> Vec<Field> {
    vec![field("user", T::Int64, false), field("url", T::String, true), field("ts", T::Timestamp, true)]
}

fn node(op: Op, inputs: &[u32], fields: Vec<Field>, event_time: &[u32], change: ChangeKind) -> Node {
    let inputs = inputs.iter().map(|&i| NodeId(i)).collect();
    Node { op, inputs, schema: Schema::new(fields), event_time: event_time.to_vec(), change }
}

fn pipeline(nodes: Vec<Node>) -> Pipeline {
    Pipeline { name: "q".into(), nodes, mode: EmitMode::Append, subqueries: vec![] }
}

fn source() -> Node {
    let op = Op::Source { relation: "clicks".into(), streaming: true, columns: vec![0, 2, 5] };
    node(op, &[], click_fields(), &[], ChangeKind::Append)
}

fn agg(function: &str, args: Vec<AggArg>, arg_types: Vec<T>, data_type: T) -> AggCall {
    AggCall {
        function: function.into(),
        args,
        arg_types,
        filter: None,
        distinct: false,
        ignore_nulls: false,
        order: vec![],
        data_type,
        nullable: true,
    }
}

fn count() -> AggCall {
    AggCall { nullable: false, ..agg("count", vec![], vec![], T::Int64) }
}

/// Prints, reads back, compares, and wants the verifier's consent.
fn round_trip(p: &Pipeline) -> String {
    let text = p.to_string();
    let back = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(*p, back, "{text}");
    assert_eq!(back.to_string(), text);
    if let Err(errors) = verify(p) {
        panic!("{}\n{text}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    text
}

#[test]
fn a_streaming_pipeline() {
    let mut fields = click_fields();
    let time = |c| CloseRule { column: c, add_micros: 60_000_000 };
    let watermark = Op::Watermark {
        column: 2,
        delay: Delay { micros: 10_000_000 },
        idle_after: Some(90_000_000),
        max_skew: Some(1_500_000),
    };
    let window_args = vec![
        Expr::column(2, T::Timestamp, true),
        Expr::literal(Literal::Int(60_000_000), T::Int64),
        Expr::literal(Literal::Int(0), T::Int64),
    ];
    let window = Expr::call("window_start", window_args, T::Timestamp, true);
    let like = [Expr::column(1, T::String, true), Expr::literal(Literal::String("/p/\"%\n".into()), T::String)];
    let map = Op::Map {
        predicate: Some(Expr::call("like", like.to_vec(), T::Boolean, true)),
        project: vec![Expr::column(0, T::Int64, false), window],
    };
    let mapped = vec![field("user", T::Int64, false), field("window start", T::Timestamp, true)];
    let aggregate = Op::Aggregate {
        keys: vec![1, 0],
        aggs: vec![count(), agg("sum", vec![AggArg::Column(0)], vec![T::Int64], T::Int64)],
        close: Some(time(1)),
        emit: EmitMode::Append,
    };
    let aggregated = vec![
        field("window start", T::Timestamp, true),
        field("user", T::Int64, false),
        field("n", T::Int64, false),
        field("sum", T::Int64, true),
    ];
    fields.truncate(3);
    let p = pipeline(vec![
        source(),
        node(watermark, &[0], fields.clone(), &[2], ChangeKind::Append),
        node(Op::DropLate { rule: CloseRule { column: 2, add_micros: 0 } }, &[1], fields, &[2], ChangeKind::Append),
        node(map, &[2], mapped, &[1], ChangeKind::Append),
        node(aggregate, &[3], aggregated.clone(), &[0], ChangeKind::Append),
        node(Op::Sink { relation: "out put".into() }, &[4], aggregated, &[], ChangeKind::Append),
    ]);
    assert_eq!(
        round_trip(&p),
        r#"pipeline @q [mode=append] {
  %0 = source @clicks [streaming, columns=(#0, #2, #5)] : (user BIGINT, url STRING?, ts TIMESTAMP?) append
  %1 = watermark %0 [on=#2, delay=10s, idle_after=90s, max_skew=1500ms] : (user BIGINT, url STRING?, ts TIMESTAMP?) append wm=(#2)
  %2 = drop_late %1 [on=#2] : (user BIGINT, url STRING?, ts TIMESTAMP?) append wm=(#2)
  %3 = map %2 [where=like(#1, "/p/\"%\n"):BOOLEAN?, project=(#0, window_start(#2, 60000000:BIGINT, 0:BIGINT):TIMESTAMP?)] : (user BIGINT, "window start" TIMESTAMP?) append wm=(#1)
  %4 = aggregate %3 [keys=(#1, #0), aggs=(count():BIGINT, sum(#0:BIGINT):BIGINT?), close=#1+1m, emit=append] : ("window start" TIMESTAMP?, user BIGINT, n BIGINT, sum BIGINT?) append wm=(#0)
  %5 = sink %4 @"out put" : ("window start" TIMESTAMP?, user BIGINT, n BIGINT, sum BIGINT?) append
}
"#
    );
}

#[test]
fn the_other_operators() {
    let clicks = click_fields();
    let with = |more: &[Field]| [clicks.clone(), more.to_vec()].concat();
    let one = |op: Op, fields: Vec<Field>| {
        round_trip(&pipeline(vec![source(), node(op, &[0], fields, &[], ChangeKind::Replace)]))
    };
    let key = SortKey { column: 0, descending: true, nulls_first: false };
    one(
        Op::AssignWindows { time: 2, size: 3_600_000_000, slide: 90_000, offset: -5 },
        with(&[field("w", T::Timestamp, false)]),
    );
    let mut percentile = agg(
        "percentile_approx",
        vec![AggArg::Column(0), AggArg::Literal(Literal::Float(0.5), T::Float64)],
        vec![T::Int64, T::Float64],
        T::Int64,
    );
    percentile.args.push(AggArg::Literal(Literal::Int(100), T::Int32));
    percentile.arg_types.push(T::Int64);
    percentile.distinct = true;
    percentile.ignore_nulls = true;
    percentile.order = vec![key];
    let session = vec![
        field("s", T::Timestamp, true),
        field("e", T::Timestamp, true),
        field("user", T::Int64, false),
        field("p", T::Int64, true),
    ];
    let aggs = vec![percentile.clone()];
    for close in [true, false] {
        let op =
            Op::SessionAggregate { start: 2, end: 2, keys: vec![0], aggs: aggs.clone(), close, emit: EmitMode::Update };
        one(op, session.clone());
        let hop = Op::HopAggregate {
            slice: 2,
            size: 7_000_000,
            slide: 2_000_000,
            offset: -1,
            keys: vec![0],
            aggs: aggs.clone(),
            close,
            emit: EmitMode::Update,
        };
        let mut fields = session.clone();
        fields.remove(1);
        fields[0].nullable = false;
        one(hop, fields);
    }
    let close = Some(CloseRule { column: 2, add_micros: 1 });
    one(Op::Dedup { keys: vec![0, 1], close, within_watermark: true }, clicks.clone());
    one(Op::Dedup { keys: vec![], close: None, within_watermark: false }, clicks.clone());
    one(Op::Sort { keys: vec![key, SortKey { column: 1, descending: false, nulls_first: true }] }, clicks.clone());
    one(Op::Limit { limit: Some(5), offset: 2 }, clicks.clone());
    one(Op::Limit { limit: None, offset: 7 }, clicks.clone());
    let projection = vec![Expr::column(0, T::Int64, false), Expr::literal(Literal::Null, T::String)];
    one(
        Op::Expand { projections: vec![projection.clone(), projection] },
        vec![field("a", T::Int64, false), field("b", T::String, true)],
    );
    let split = Expr::call("split", vec![Expr::column(1, T::String, true)], T::array(T::String), true);
    one(
        Op::Generate { generator: "explode".into(), args: vec![split], outer: true },
        with(&[field("col", T::String, true)]),
    );
    let frames = [
        Frame { rows: true, start: FrameBound::Unbounded, end: FrameBound::CurrentRow },
        Frame {
            rows: false,
            start: FrameBound::Preceding(Literal::Int(5)),
            end: FrameBound::Following(Literal::Float(2.5)),
        },
    ];
    let calls = frames.into_iter().map(|frame| WindowCall { call: count(), frame }).collect();
    one(
        Op::WindowFunction { partition: vec![1], order: vec![key], calls },
        with(&[field("n", T::Int64, false), field("m", T::Int64, false)]),
    );
    let row = vec![Expr::literal(Literal::Int(1), T::Int8), Expr::literal(Literal::String("é".into()), T::String)];
    let fields = vec![field("a", T::Int8, false), field("b", T::String, false)];
    let values = Op::Values { rows: vec![row.clone(), row] };
    round_trip(&pipeline(vec![node(values, &[], fields, &[], ChangeKind::Replace)]));
    let union = node(Op::Union, &[0, 1], clicks.clone(), &[], ChangeKind::Append);
    round_trip(&pipeline(vec![source(), source(), union]));
}

#[test]
fn joins() {
    let clicks = click_fields();
    let nullable = |f: &Field| Field { nullable: true, ..f.clone() };
    let maybe: Vec<Field> = clicks.iter().map(nullable).collect();
    let side = |expire| JoinSide { keys: vec![0], expire, late: Some(2) };
    let both = |a: &[Field], b: &[Field]| [a, b].concat();
    let outputs = [
        (JoinKind::Inner, both(&clicks, &clicks)),
        (JoinKind::Left, both(&clicks, &maybe)),
        (JoinKind::Right, both(&maybe, &clicks)),
        (JoinKind::Full, both(&maybe, &maybe)),
        (JoinKind::LeftSemi, clicks.clone()),
        (JoinKind::LeftAnti, clicks.clone()),
        (JoinKind::NullAwareAnti, clicks.clone()),
        (JoinKind::Existence, both(&clicks, &[field("exists", T::Boolean, false)])),
    ];
    for (kind, fields) in outputs {
        let later = Expr::call(
            "<",
            vec![Expr::column(2, T::Timestamp, true), Expr::column(5, T::Timestamp, true)],
            T::Boolean,
            true,
        );
        let stream = Op::StreamJoin {
            kind,
            left: side(Some(CloseRule { column: 2, add_micros: -60_000_000 })),
            right: side(None),
            residual: Some(later.clone()),
        };
        round_trip(&pipeline(vec![source(), source(), node(stream, &[0, 1], fields.clone(), &[], ChangeKind::Append)]));
        let hash = Op::HashJoin {
            kind,
            left_keys: vec![0, 1],
            right_keys: vec![0, 1],
            null_safe: vec![false, true],
            residual: Some(later),
        };
        round_trip(&pipeline(vec![source(), source(), node(hash, &[0, 1], fields, &[], ChangeKind::Append)]));
    }
}

#[test]
fn subqueries_stand_inside() {
    let inner = pipeline(vec![node(
        Op::Values { rows: vec![vec![Expr::literal(Literal::Int(1), T::Int32)]] },
        &[],
        vec![field("a", T::Int32, false)],
        &[],
        ChangeKind::Replace,
    )]);
    let subquery =
        Expr { kind: ExprKind::ScalarSubquery(0), data_type: T::Int32, nullable: true, origin: Default::default() };
    let map = Op::Map { predicate: None, project: vec![subquery] };
    let mut p = pipeline(vec![source(), node(map, &[0], vec![field("a", T::Int32, true)], &[], ChangeKind::Append)]);
    p.subqueries = vec![inner.clone(), inner];
    assert!(round_trip(&p).contains("  pipeline @q [mode=append] {\n    %0 = values [rows=((1:INT))]"));
}

/// Random numbers without a dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn data_type(&mut self, depth: u32) -> T {
        match self.below(if depth == 0 { 17 } else { 20 }) {
            0 => T::Null,
            1 => T::Boolean,
            2 => T::Int8,
            3 => T::Int16,
            4 => T::Int32,
            5 => T::Int64,
            6 => T::Float32,
            7 => T::Float64,
            8 => T::Decimal(38, 18),
            9 | 10 => T::String,
            11 => T::Binary,
            12 => T::Date,
            13 => T::Timestamp,
            14 => T::TimestampNtz,
            15 => T::DayTimeInterval(ssql_ir::DayTimeField::Hour, ssql_ir::DayTimeField::Second),
            16 => T::YEAR_TO_MONTH,
            17 => T::Array(Box::new(field("element", self.data_type(depth - 1), self.below(2) == 0))),
            18 => T::Map(
                Box::new(field("key", self.data_type(depth - 1), false)),
                Box::new(field("value", self.data_type(depth - 1), self.below(2) == 0)),
            ),
            _ => T::Struct(vec![
                field("a", self.data_type(depth - 1), true),
                field("b c\"", self.data_type(depth - 1), false),
            ]),
        }
    }

    fn literal(&mut self) -> Literal {
        match self.below(8) {
            0 => Literal::Null,
            1 => Literal::Boolean(self.below(2) == 0),
            2 => Literal::Int(self.below(u64::MAX) as i64 - i64::from(u32::MAX) / 2),
            3 => Literal::Int(i64::MIN),
            4 => {
                let odd = [0.1, -0.0, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY, -2.0, 1.5e-7];
                Literal::Float(odd[self.below(8) as usize])
            }
            5 => Literal::Decimal(i128::MIN + i128::from(self.below(9))),
            6 => Literal::String(["", "a\\b\"c", "\u{7}\n", "für", "-- %0 = x"][self.below(5) as usize].into()),
            _ => Literal::Binary(vec![0, 255, self.below(256) as u8]),
        }
    }

    fn expr(&mut self, depth: u32) -> Expr {
        let next = |r: &mut Random| r.expr(depth - 1);
        let kind = match self.below(if depth == 0 { 4 } else { 12 }) {
            0 => ExprKind::Column(self.below(5) as u32),
            1 => ExprKind::Literal(self.literal()),
            2 => ExprKind::LambdaVariable(self.below(9) as u32),
            3 => ExprKind::ScalarSubquery(self.below(3) as u32),
            4 => ExprKind::And(next(self).into(), next(self).into()),
            5 => ExprKind::Or(next(self).into(), next(self).into()),
            6 => ExprKind::Cast {
                mode: if self.below(2) == 0 { CastMode::Ansi } else { CastMode::Try },
                input: next(self).into(),
            },
            7 => ExprKind::Case {
                branches: (0..1 + self.below(2)).map(|_| (next(self), next(self))).collect(),
                otherwise: (self.below(2) == 0).then(|| next(self).into()),
            },
            8 => ExprKind::Coalesce((0..self.below(3)).map(|_| next(self)).collect()),
            9 => ExprKind::Lambda {
                params: (0..self.below(3) as u32)
                    .map(|id| LambdaParam {
                        id,
                        name: ["x", "a b", "else"][id as usize].into(),
                        data_type: self.data_type(1),
                        nullable: self.below(2) == 0,
                    })
                    .collect(),
                body: next(self).into(),
            },
            _ => {
                let names = ["+", "upper", "and", "<=>", "inf", "x", "[]", "null", "else"];
                let args = (0..self.below(3)).map(|_| next(self)).collect();
                ExprKind::Call { function: names[self.below(9) as usize].into(), args }
            }
        };
        Expr { kind, data_type: self.data_type(2), nullable: self.below(2) == 0, origin: Default::default() }
    }
}

#[test]
fn random_expressions_read_back() {
    let columns = click_fields();
    for seed in 0..3000 {
        let e = Random(seed).expr(4);
        let text = ExprText(&e, &columns).to_string();
        let back = parse_expr(&text, &columns).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(back, e, "{text}");
    }
}

#[test]
fn errors_of_form_have_a_place() {
    let text = "pipeline @q [mode=append] {\n  %0 = sauce : () append\n}";
    let error = parse(text).expect_err("no such operator");
    assert_eq!(error.to_string(), "2:14: expected an operator, not `sauce`");
    for text in ["", "pipeline", "pipeline @q [mode=later] {}", "pipeline @q [mode=append] { %1", "pipeline @\"q"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

/// Messages of the verifier for a pipeline of a source and this operator.
fn complaints(op: Op, inputs: &[u32], fields: Vec<Field>) -> String {
    let errors = verify(&pipeline(vec![source(), node(op, inputs, fields, &[], ChangeKind::Append)]));
    let errors = errors.expect_err("something is wrong");
    assert!(errors.iter().all(|e| e.line.starts_with("%1 = ")), "the message quotes the operator");
    errors.into_iter().map(|e| e.message).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_verifier_names_what_is_wrong() {
    let clicks = click_fields();
    let map = |predicate, e: Expr| Op::Map { predicate, project: vec![e] };
    let bigint = || vec![field("a", T::Int64, true)];
    let column = |c, t, n| Expr::column(c, t, n);
    assert_eq!(complaints(map(None, column(9, T::Int64, true)), &[0], bigint()), "there is no column #9");
    assert_eq!(complaints(map(None, column(1, T::Int64, true)), &[0], bigint()), "#1 is STRING?, not BIGINT?");
    assert_eq!(
        complaints(map(None, column(1, T::String, true)), &[0], bigint()),
        "output column #0 is STRING?, not BIGINT?"
    );
    let number = column(0, T::Int64, false);
    assert_eq!(
        complaints(map(Some(number.clone()), number.clone()), &[0], bigint()),
        "the predicate is BIGINT, not BOOLEAN"
    );
    let large = Expr::literal(Literal::Int(200), T::Int8);
    assert_eq!(complaints(map(None, large), &[0], vec![field("a", T::Int8, false)]), "the constant 200 is no TINYINT");
    assert_eq!(complaints(Op::Union, &[1], clicks.clone()), "an input does not stand before its user");
    assert_eq!(complaints(Op::Union, &[], clicks.clone()), "it has 0 inputs");
    let wrong = Op::DropLate { rule: CloseRule { column: 0, add_micros: 0 } };
    assert_eq!(complaints(wrong, &[0], clicks.clone()), "column #0 is BIGINT, not a timestamp");
    let delay = Op::Watermark { column: 2, delay: Delay { micros: -1 }, idle_after: None, max_skew: None };
    assert_eq!(complaints(delay, &[0], clicks.clone()), "a delay is not negative");
    let windows = Op::AssignWindows { time: 2, size: 5, slide: 6, offset: 0 };
    let fields = [clicks.clone(), vec![field("w", T::Timestamp, false)]].concat();
    assert_eq!(complaints(windows, &[0], fields), "a slide is in 1..=size");
    let variable = Expr { kind: ExprKind::LambdaVariable(3), ..number };
    assert_eq!(complaints(map(None, variable), &[0], bigint()), "no lambda around binds $3");
    let empty = Pipeline { nodes: vec![], ..pipeline(vec![]) };
    assert_eq!(verify(&empty).expect_err("empty")[0].to_string(), "pipeline q: it has no operators");
}
