//! What each stateful operator keeps, in words that stay the same while its state can be read: the plan's fingerprint,
//! and what has changed between two of them.
//!
//! A column is told by where it comes from (`device_id`, `window_start(event_time, ...)`), not by its name in the query,
//! so that renaming one changes nothing and grouping by another one does.

use serde::{Deserialize, Serialize};
use ssql_ir::{AggArg, AggCall, CloseRule, EmitMode, Expr, ExprKind, JoinKind, JoinSide, Literal, Node, Op, Pipeline};

/// What one stateful operator keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorShape {
    /// What it is: `aggregation`, `deduplication`, ...
    pub operator: String,
    /// Its facts, by name.
    pub facts: Vec<(String, String)>,
}

/// The stateful operators of a pipeline, in the order of their state directories.
pub fn shapes(pipeline: &Pipeline) -> Vec<OperatorShape> {
    (0..pipeline.nodes.len()).filter_map(|at| shape(pipeline, at)).collect()
}

fn shape(pipeline: &Pipeline, at: usize) -> Option<OperatorShape> {
    if !crate::stateful::is_stateful(pipeline, at) {
        return None;
    }
    let node = &pipeline.nodes[at];
    let input = |i: usize, columns: &[u32]| -> String {
        let from = node.inputs[i].0 as usize;
        let all = columns.iter().map(|&c| column(pipeline, from, c));
        listed(all.collect())
    };
    let every = |i: usize| {
        let from = node.inputs[i].0 as usize;
        (0..pipeline.nodes[from].schema.len() as u32).collect::<Vec<_>>()
    };
    let calls = |aggs: &[AggCall]| listed(aggs.iter().map(|c| call(pipeline, node, c)).collect());
    let closes = |rule: &Option<CloseRule>| match rule {
        Some(r) => format!("{} after {}", span(r.add_micros), origin(pipeline, node.inputs[0].0 as usize, r.column)),
        None => "never".to_owned(),
    };
    let kept =
        |emit: EmitMode| if emit == EmitMode::Complete { "all groups, for ever" } else { "open groups" }.to_owned();
    let (operator, facts) = match &node.op {
        Op::Aggregate { keys, aggs, close, emit } => (
            "aggregation",
            vec![
                ("keys", input(0, keys)),
                ("aggregates", calls(aggs)),
                ("end of a group", closes(close)),
                ("groups kept", kept(*emit)),
            ],
        ),
        Op::HopAggregate { slice, size, slide, offset, keys, aggs, close, emit } => (
            "hopping-window aggregation",
            vec![
                ("windows", format!("{} every {} from {}", span(*size), span(*slide), span(*offset))),
                ("slice", input(0, &[*slice])),
                ("keys", input(0, keys)),
                ("aggregates", calls(aggs)),
                ("end of a group", if *close { "its window's end" } else { "never" }.to_owned()),
                ("groups kept", kept(*emit)),
            ],
        ),
        Op::SessionAggregate { start, end, keys, aggs, close, emit } => (
            "session aggregation",
            vec![
                ("session", input(0, &[*start, *end])),
                ("keys", input(0, keys)),
                ("aggregates", calls(aggs)),
                ("end of a group", if *close { "its end" } else { "never" }.to_owned()),
                ("groups kept", kept(*emit)),
            ],
        ),
        Op::Dedup { keys, close, within_watermark } => {
            let end = if *within_watermark { "its first row's time passes" } else { "its own time passes" };
            let end = if close.is_some() { format!("{end}: {}", closes(close)) } else { "never".to_owned() };
            ("deduplication", vec![("keys", input(0, keys)), ("end of a key", end)])
        }
        Op::StreamJoin { kind, left, right, residual } => {
            let expires = |side: &JoinSide, i: usize| match &side.expire {
                Some(rule) => {
                    let time = origin(pipeline, node.inputs[i].0 as usize, rule.column);
                    format!("{} after {time}", span(rule.add_micros))
                }
                None => "never".to_owned(),
            };
            let mut facts = vec![
                ("join type", format!("{kind:?}").to_uppercase()),
                ("left keys", input(0, &left.keys)),
                ("right keys", input(1, &right.keys)),
                ("left columns kept", input(0, &every(0))),
                ("right columns kept", input(1, &every(1))),
                ("end of a left row", expires(left, 0)),
                ("end of a right row", expires(right, 1)),
            ];
            // Whether a kept row has found a match is part of the state, and hangs on the whole condition.
            if *kind != JoinKind::Inner
                && let Some(condition) = residual
            {
                facts.push(("condition", join_expression(pipeline, node, condition)));
            }
            ("stream-stream join", facts)
        }
        Op::Limit { .. } => ("limit", vec![]),
        _ => return None,
    };
    let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Some(OperatorShape { operator: operator.to_owned(), facts })
}

/// What has changed, a sentence each; empty if the state can be read.
pub fn differences(was: &[OperatorShape], is: &[OperatorShape]) -> Vec<String> {
    let mut all = Vec::new();
    if was.len() != is.len() {
        let names = |shapes: &[OperatorShape]| match shapes {
            [] => "none".to_owned(),
            some => format!("{} ({})", some.len(), listed(some.iter().map(|s| s.operator.clone()).collect())),
        };
        all.push(format!("The number of stateful operators was {}; it is {}.", names(was), names(is)));
    }
    for (i, (was, is)) in was.iter().zip(is).enumerate() {
        if was.operator != is.operator {
            all.push(format!("Stateful operator {i} was of kind {}; it is of kind {}.", was.operator, is.operator));
            continue;
        }
        let value = |shape: &OperatorShape, name: &str| {
            shape.facts.iter().find(|(n, _)| n == name).map_or("(none)".to_owned(), |(_, v)| v.clone())
        };
        let mut names: Vec<&String> = was.facts.iter().map(|(n, _)| n).collect();
        names.extend(is.facts.iter().map(|(n, _)| n).filter(|n| !was.facts.iter().any(|(w, _)| w == *n)));
        for name in names {
            let (before, now) = (value(was, name), value(is, name));
            if before != now {
                all.push(format!("Of the {} (operator {i}) the {name}: was {before}; is {now}.", was.operator));
            }
        }
    }
    all
}

fn listed(items: Vec<String>) -> String {
    if items.is_empty() { "(none)".to_owned() } else { items.join(", ") }
}

/// Microseconds in the largest unit that divides them.
fn span(micros: i64) -> String {
    const UNITS: &[(i64, &str)] =
        &[(86_400_000_000, "days"), (3_600_000_000, "hours"), (60_000_000, "minutes"), (1_000_000, "seconds")];
    match UNITS.iter().find(|(size, _)| micros != 0 && micros % size == 0) {
        Some((size, unit)) => format!("{} {unit}", micros / size),
        None => format!("{micros} microseconds"),
    }
}

/// A column of a node's output: where it comes from, and its type.
fn column(pipeline: &Pipeline, node: usize, column: u32) -> String {
    let data_type = pipeline.nodes[node].schema.fields.get(column as usize).map(|f| f.data_type.to_string());
    format!("{} {}", origin(pipeline, node, column), data_type.unwrap_or_default())
}

/// Where a column of a node's output comes from.
fn origin(pipeline: &Pipeline, at: usize, column: u32) -> String {
    let node = &pipeline.nodes[at];
    let below = |i: usize, c: u32| origin(pipeline, node.inputs[i].0 as usize, c);
    let width = |i: usize| pipeline.nodes[node.inputs[i].0 as usize].schema.len() as u32;
    let named = || node.schema.fields.get(column as usize).map_or_else(|| format!("#{column}"), |f| f.name.clone());
    match &node.op {
        Op::Map { project, .. } => match project.get(column as usize) {
            Some(expr) => expression(expr, &|c| below(0, c)),
            None => named(),
        },
        Op::Watermark { .. } | Op::DropLate { .. } | Op::Dedup { .. } | Op::Sort { .. } | Op::Limit { .. } => {
            below(0, column)
        }
        Op::Union | Op::Sink { .. } => below(0, column),
        Op::AssignWindows { time, size, slide, offset } if column == width(0) => {
            let from = if *offset == 0 { String::new() } else { format!(" from {}", span(*offset)) };
            format!("window of {} every {}{from} over {}", span(*size), span(*slide), below(0, *time))
        }
        Op::AssignWindows { .. } | Op::Generate { .. } | Op::WindowFunction { .. } if column < width(0) => {
            below(0, column)
        }
        Op::Aggregate { keys, aggs, .. } => match keys.get(column as usize) {
            Some(&key) => below(0, key),
            None => aggs.get(column as usize - keys.len()).map_or_else(named, |c| call(pipeline, node, c)),
        },
        Op::HopAggregate { keys, aggs, .. } => match (column, column as usize) {
            (0, _) => "window start".to_owned(),
            (_, c) if c - 1 < keys.len() => below(0, keys[c - 1]),
            (_, c) => aggs.get(c - 1 - keys.len()).map_or_else(named, |a| call(pipeline, node, a)),
        },
        Op::SessionAggregate { keys, aggs, .. } => match (column, column as usize) {
            (0, _) => "session start".to_owned(),
            (1, _) => "session end".to_owned(),
            (_, c) if c - 2 < keys.len() => below(0, keys[c - 2]),
            (_, c) => aggs.get(c - 2 - keys.len()).map_or_else(named, |a| call(pipeline, node, a)),
        },
        Op::StreamJoin { .. } | Op::HashJoin { .. } if column < width(0) => below(0, column),
        Op::StreamJoin { .. } | Op::HashJoin { .. } if column - width(0) < width(1) => below(1, column - width(0)),
        _ => named(),
    }
}

fn call(pipeline: &Pipeline, node: &Node, call: &AggCall) -> String {
    let below = |c: u32| column(pipeline, node.inputs[0].0 as usize, c);
    let args = call.args.iter().map(|arg| match arg {
        AggArg::Column(c) => below(*c),
        AggArg::Literal(value, _) => literal(value),
    });
    let args = args.collect::<Vec<_>>().join(", ");
    let mut text = format!("{}({}{args})", call.function, if call.distinct { "DISTINCT " } else { "" });
    if call.ignore_nulls {
        text.push_str(" IGNORE NULLS");
    }
    if !call.order.is_empty() {
        let keys = call.order.iter().map(|k| format!("{}{}", below(k.column), if k.descending { " DESC" } else { "" }));
        text.push_str(&format!(" ORDER BY {}", keys.collect::<Vec<_>>().join(", ")));
    }
    if let Some(filter) = call.filter {
        text.push_str(&format!(" FILTER {}", below(filter)));
    }
    text
}

fn join_expression(pipeline: &Pipeline, node: &Node, expr: &Expr) -> String {
    let (left, right) = (node.inputs[0].0 as usize, node.inputs[1].0 as usize);
    let width = pipeline.nodes[left].schema.len() as u32;
    expression(expr, &|c| match c.checked_sub(width) {
        None => origin(pipeline, left, c),
        Some(c) => origin(pipeline, right, c),
    })
}

/// An expression with its columns told by where they come from.
fn expression(expr: &Expr, column: &dyn Fn(u32) -> String) -> String {
    let one = |e: &Expr| expression(e, column);
    let many = |all: &[Expr]| all.iter().map(one).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        ExprKind::Column(c) => column(*c),
        ExprKind::Literal(value) => literal(value),
        ExprKind::Call { function, args } => match &**function {
            // A window's place in time is the longest number that users have to read here.
            "window_start" if args.len() == 3 => {
                let micros = |e: &Expr| match e.kind {
                    ExprKind::Literal(Literal::Int(n)) => span(n),
                    _ => one(e),
                };
                let from = match &args[2].kind {
                    ExprKind::Literal(Literal::Int(0)) => String::new(),
                    _ => format!(" from {}", micros(&args[2])),
                };
                format!("window of {}{from} over {}", micros(&args[1]), one(&args[0]))
            }
            _ => format!("{function}({})", many(args)),
        },
        ExprKind::Cast { input, .. } => format!("cast({} as {})", one(input), expr.data_type),
        ExprKind::And(a, b) => format!("({} and {})", one(a), one(b)),
        ExprKind::Or(a, b) => format!("({} or {})", one(a), one(b)),
        ExprKind::Case { branches, otherwise } => {
            let branches = branches.iter().map(|(when, then)| format!("when {} then {}", one(when), one(then)));
            let otherwise = otherwise.as_ref().map_or(String::new(), |e| format!(" else {}", one(e)));
            format!("case {}{otherwise} end", branches.collect::<Vec<_>>().join(" "))
        }
        ExprKind::Coalesce(args) => format!("coalesce({})", many(args)),
        ExprKind::Lambda { body, .. } => format!("lambda({})", one(body)),
        ExprKind::LambdaVariable(_) => "parameter".to_owned(),
        ExprKind::ScalarSubquery(n) => format!("subquery {n}"),
    }
}

fn literal(value: &Literal) -> String {
    match value {
        Literal::Null => "NULL".to_owned(),
        Literal::Boolean(b) => b.to_string(),
        Literal::Int(n) => n.to_string(),
        Literal::Float(x) => format!("{x:?}"),
        Literal::Decimal(n) => format!("decimal {n}"),
        Literal::String(s) => format!("'{s}'"),
        Literal::Binary(b) => format!("X'{}'", b.iter().map(|b| format!("{b:02X}")).collect::<String>()),
    }
}
