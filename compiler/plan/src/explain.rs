//! The logical plan as text, and what bounds the state of each stateful operator.
//!
//! One operator per line, inputs indented below it; columns are `name#id`, parameters `key=value`.

use std::fmt::Write as _;

use ssql_grammar::Span;
use ssql_ir::{CastMode, EmitMode, Expr, ExprKind, JoinKind, Literal};

use crate::logical::{AggExpr, ColumnId, Columns, DedupKind, Node, OrderKey, Plan, Query};
use crate::stream_join::{event_columns, expiries, parts};

/// The logical plan of a query.
pub fn logical_text(query: &Query) -> String {
    let mut out = String::new();
    let names: Vec<String> =
        query.output.iter().map(|(id, name)| format!("{name}={}", column_text(*id, &query.columns))).collect();
    let _ = writeln!(out, "Output {}", names.join(", "));
    plan_text(&query.plan, &query.columns, 1, &mut out);
    for (i, (plan, id)) in query.subqueries.iter().enumerate() {
        let _ = writeln!(out, "Subquery {i} {}", column_text(*id, &query.columns));
        plan_text(plan, &query.columns, 1, &mut out);
    }
    out
}

fn plan_text(plan: &Plan, columns: &Columns, depth: usize, out: &mut String) {
    let _ = writeln!(out, "{}{}", "  ".repeat(depth), node_text(plan, columns));
    for input in &plan.inputs {
        plan_text(input, columns, depth + 1, out);
    }
}

fn node_text(plan: &Plan, columns: &Columns) -> String {
    let ids = |ids: &[ColumnId]| ids.iter().map(|id| column_text(*id, columns)).collect::<Vec<_>>().join(", ");
    let exprs = |es: &[Expr]| es.iter().map(|e| expr_text(e, columns)).collect::<Vec<_>>().join(", ");
    let defs = |defs: &[(ColumnId, Expr)]| {
        defs.iter()
            .map(|(id, e)| match e.kind {
                ExprKind::Column(c) if c == *id => column_text(*id, columns),
                _ => format!("{} := {}", column_text(*id, columns), expr_text(e, columns)),
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let aggs = |aggs: &[(ColumnId, AggExpr)]| {
        aggs.iter()
            .map(|(id, a)| format!("{} := {}", column_text(*id, columns), agg_text(a, columns)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let order = |keys: &[OrderKey]| {
        keys.iter()
            .map(|k| {
                format!(
                    "{} {} NULLS {}",
                    expr_text(&k.expr, columns),
                    if k.descending { "DESC" } else { "ASC" },
                    if k.nulls_first { "FIRST" } else { "LAST" }
                )
            })
            .collect::<Vec<_>>()
            .join(", ")
    };
    match &plan.node {
        Node::Source { relation, streaming, columns: read } => {
            let read: Vec<ColumnId> = read.iter().map(|(id, _)| *id).collect();
            format!("{} {relation} [{}]", if *streaming { "Stream" } else { "Table" }, ids(&read))
        }
        Node::Values { columns: c, rows } => format!("Values [{}] rows={}", ids(c), rows.len()),
        Node::Filter { predicate } => format!("Filter {}", expr_text(predicate, columns)),
        Node::Project { columns: c } => format!("Project [{}]", defs(c)),
        Node::Watermark { column, spec } => {
            let mut text = format!("Watermark {} delay={}us", column_text(*column, columns), spec.delay.micros);
            if let Some(idle) = spec.idle_after {
                let _ = write!(text, " idle_after={idle}us");
            }
            if let Some(skew) = spec.max_skew {
                let _ = write!(text, " max_skew={skew}us");
            }
            text
        }
        Node::AssignWindows { time, start, size, slide, offset } => format!(
            "AssignWindows {} := hop({}, size={size}us, slide={slide}us, offset={offset}us)",
            column_text(*start, columns),
            column_text(*time, columns)
        ),
        Node::Aggregate { keys, aggs: a } => format!("Aggregate keys=[{}] aggs=[{}]", defs(keys), aggs(a)),
        Node::HopAggregate { start, slice, size, slide, offset, keys, aggs: a, .. } => format!(
            "HopAggregate {} := slices({}, size={size}us, slide={slide}us, offset={offset}us) keys=[{}] aggs=[{}]",
            column_text(*start, columns),
            column_text(*slice, columns),
            defs(keys),
            aggs(a)
        ),
        Node::Session { start, end, keys, aggs: a } => format!(
            "Session start={} end={} keys=[{}] aggs=[{}]",
            column_text(start.0, columns),
            column_text(end.0, columns),
            defs(keys),
            aggs(a)
        ),
        Node::Dedup { keys, kind } => format!(
            "Dedup{} keys=[{}]",
            match kind {
                DedupKind::Distinct => "",
                DedupKind::On => " on",
                DedupKind::WithinWatermark => " within_watermark",
            },
            ids(keys)
        ),
        Node::Join { kind, on, flag } => {
            let mut text = format!("Join {}", kind_text(*kind));
            if let Some(flag) = flag {
                let _ = write!(text, " flag={}", column_text(*flag, columns));
            }
            if let Some(on) = on {
                let _ = write!(text, " on={}", expr_text(on, columns));
            }
            text
        }
        Node::Union { columns: c, sources } => {
            let sources: Vec<String> = sources.iter().map(|s| format!("[{}]", ids(s))).collect();
            format!("Union [{}] of {}", ids(c), sources.join(", "))
        }
        Node::Sort { keys } => format!("Sort {}", order(keys)),
        Node::Limit { limit, offset } => {
            let limit = limit.map_or("all".to_string(), |l| l.to_string());
            format!("Limit {limit} offset={offset}")
        }
        Node::Expand { columns: c, projections } => {
            let rows: Vec<String> = projections.iter().map(|p| format!("({})", exprs(p))).collect();
            format!("Expand [{}] of {}", ids(c), rows.join(", "))
        }
        Node::Generate { generator, args, outputs, outer } => {
            format!("Generate{} [{}] := {generator}({})", if *outer { " outer" } else { "" }, ids(outputs), exprs(args))
        }
        Node::WindowFunction { partition, order: keys, calls } => {
            let calls: Vec<String> = calls
                .iter()
                .map(|(id, c)| format!("{} := {}", column_text(*id, columns), agg_text(&c.call, columns)))
                .collect();
            format!(
                "WindowFunction partition=[{}] order=[{}] calls=[{}]",
                exprs(partition),
                order(keys),
                calls.join(", ")
            )
        }
    }
}

fn kind_text(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "inner",
        JoinKind::Left => "left",
        JoinKind::Right => "right",
        JoinKind::Full => "full",
        JoinKind::LeftSemi => "left_semi",
        JoinKind::LeftAnti => "left_anti",
        JoinKind::NullAwareAnti => "null_aware_anti",
        JoinKind::Existence => "existence",
    }
}

fn column_text(id: ColumnId, columns: &Columns) -> String {
    match (id as usize) < columns.len() {
        true => format!("{}#{id}", columns.get(id).name),
        false => format!("#{id}"),
    }
}

fn agg_text(a: &AggExpr, columns: &Columns) -> String {
    let args: Vec<String> = a.args.iter().map(|e| expr_text(e, columns)).collect();
    let args = if args.is_empty() { "*".to_string() } else { args.join(", ") };
    let mut text = format!("{}({}{args})", a.function, if a.distinct { "DISTINCT " } else { "" });
    if a.ignore_nulls {
        text.push_str(" IGNORE NULLS");
    }
    if let Some(f) = &a.filter {
        let _ = write!(text, " FILTER {}", expr_text(f, columns));
    }
    text
}

/// An expression of a logical plan.
pub(crate) fn expr_text(e: &Expr, columns: &Columns) -> String {
    let list = |es: &[Expr]| es.iter().map(|e| expr_text(e, columns)).collect::<Vec<_>>().join(", ");
    match &e.kind {
        ExprKind::Column(id) => column_text(*id, columns),
        ExprKind::Literal(l) => literal_text(l, &e.data_type),
        ExprKind::Call { function, args } => {
            let infix =
                !function.starts_with(|c: char| c.is_ascii_alphabetic()) && args.len() == 2 && &**function != "[]";
            match infix {
                true => format!("({} {function} {})", expr_text(&args[0], columns), expr_text(&args[1], columns)),
                false => format!("{function}({})", list(args)),
            }
        }
        ExprKind::Cast { input, mode } => {
            let word = if *mode == CastMode::Try { "try_cast" } else { "cast" };
            format!("{word}({} AS {})", expr_text(input, columns), e.data_type)
        }
        ExprKind::And(a, b) => format!("({} AND {})", expr_text(a, columns), expr_text(b, columns)),
        ExprKind::Or(a, b) => format!("({} OR {})", expr_text(a, columns), expr_text(b, columns)),
        ExprKind::Case { branches, otherwise } => {
            let mut text = String::from("CASE");
            for (c, v) in branches {
                let _ = write!(text, " WHEN {} THEN {}", expr_text(c, columns), expr_text(v, columns));
            }
            if let Some(o) = otherwise {
                let _ = write!(text, " ELSE {}", expr_text(o, columns));
            }
            text + " END"
        }
        ExprKind::Coalesce(es) => format!("coalesce({})", list(es)),
        ExprKind::Lambda { params, body } => {
            let names: Vec<String> = params.iter().map(|p| format!("{}@{}", p.name, p.id)).collect();
            format!("({}) -> {}", names.join(", "), expr_text(body, columns))
        }
        ExprKind::LambdaVariable(id) => format!("@{id}"),
        ExprKind::ScalarSubquery(n) => format!("subquery({n})"),
    }
}

fn literal_text(l: &Literal, t: &ssql_ir::DataType) -> String {
    match l {
        Literal::Null => "NULL".to_string(),
        Literal::Boolean(b) => b.to_string(),
        Literal::Int(n) if t.is_integer() => n.to_string(),
        Literal::Int(n) => format!("{t} {n}"),
        Literal::Float(f) => format!("{f:?}"),
        Literal::Decimal(d) => format!("{t} {d}"),
        Literal::String(s) => format!("'{}'", s.replace('\\', "\\\\").replace('\'', "\\'")),
        Literal::Binary(b) => format!("X'{}'", b.iter().map(|x| format!("{x:02X}")).collect::<String>()),
    }
}

/// What bounds the state of one stateful operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateBound {
    /// The operator, for people: `aggregation`, `session windows`, `deduplication`, `join`.
    pub operator: &'static str,
    /// `delay + window`, `keys`, or `unbounded because ...`.
    pub bound: String,
    /// Whether the state grows without end.
    pub unbounded: bool,
    /// Where the operator was written.
    pub span: Span,
}

/// The bounds of all stateful operators of a streaming query, inputs first.
pub fn state_bounds(query: &Query, mode: EmitMode) -> Vec<StateBound> {
    let mut out = vec![];
    let columns = &query.columns;
    query.plan.walk(&mut |p| {
        if !p.streaming() {
            return;
        }
        let timed = |ids: &[ColumnId]| {
            crate::stream_join::has_watermark(p) && ids.iter().any(|id| columns.get(*id).event_time.is_some())
        };
        let mut push = |operator: &'static str, bound: &str, unbounded: bool| {
            out.push(StateBound { operator, bound: bound.to_string(), unbounded, span: p.span });
        };
        match &p.node {
            Node::Aggregate { keys, .. } if keys.is_empty() => push("aggregation", "one group", false),
            Node::Aggregate { keys, .. } => {
                let ids: Vec<ColumnId> = keys.iter().map(|(id, _)| *id).collect();
                match (mode, timed(&ids)) {
                    (EmitMode::Complete, _) => push("aggregation", "keys: COMPLETE keeps every group", false),
                    (_, true) => push("aggregation", "delay + window", false),
                    (_, false) => push("aggregation", "keys: no key is event time under a watermark", false),
                }
            }
            Node::HopAggregate { start, .. } => match (mode, timed(&[*start])) {
                (EmitMode::Complete, _) => push("aggregation", "keys: COMPLETE keeps every group", false),
                (_, true) => push("aggregation", "delay + window", false),
                (_, false) => push("aggregation", "keys: no key is event time under a watermark", false),
            },
            Node::Session { end, .. } => match timed(&[end.0]) && mode != EmitMode::Complete {
                true => push("session windows", "delay + session length", false),
                false => push("session windows", "keys: COMPLETE keeps every session", false),
            },
            Node::Dedup { keys, kind } => match kind {
                DedupKind::WithinWatermark => push("deduplication", "delay", false),
                _ if timed(keys) => push("deduplication", "delay", false),
                _ => push(
                    "deduplication",
                    "unbounded because no key is event time under a watermark: every key is remembered",
                    true,
                ),
            },
            Node::Join { on, .. } if p.inputs.iter().all(Plan::streaming) => {
                let parts = parts(on.as_ref(), &p.inputs[0], &p.inputs[1]);
                match expiries(&parts, &p.inputs[0], &p.inputs[1], columns) {
                    (Some(_), Some(_)) => push("join", "delay + range", false),
                    (left, right) => {
                        let side = match (left.is_some(), right.is_some()) {
                            (false, false) => "rows of both sides",
                            (false, true) => "rows of the left side",
                            _ => "rows of the right side",
                        };
                        let why = match event_columns(p, columns).is_empty() {
                            true => "there is no watermark",
                            false => "no condition on event time ends them",
                        };
                        push("join", &format!("unbounded because {side} are kept for ever: {why}"), true);
                    }
                }
            }
            _ => {}
        }
    });
    out.reverse();
    out
}

/// The bounds as lines for EXPLAIN.
pub fn state_text(bounds: &[StateBound]) -> String {
    bounds.iter().map(|b| format!("State {}: {}\n", b.operator, b.bound)).collect()
}
