//! The streaming check: one table of rules over the logical plan, each with its condition, what it says, how to mend
//! it, and an example. `spec/semantics.md` is rendered from it.

use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{EmitMode, ExprKind, JoinKind};

use crate::logical::{AggExpr, ColumnId, Columns, DedupKind, Node, Plan, Query};
use crate::stream_join::{event_columns, has_watermark, is_taken, parts};

/// What a rule sees.
pub struct Context<'q> {
    query: &'q Query,
    mode: EmitMode,
}

/// A rule of the streaming check.
pub struct Rule {
    /// Name, kebab-case, unique.
    pub name: &'static str,
    /// Spark's error condition where it has a public one.
    pub condition: &'static str,
    /// What is refused; the message.
    pub message: &'static str,
    /// How to mend it.
    pub help: &'static str,
    /// A query that is refused by it.
    pub example: &'static str,
    find: fn(&Context<'_>) -> Vec<Found>,
}

/// A place that a rule refuses, with the places that explain it.
struct Found {
    span: Span,
    labels: Vec<(Span, &'static str)>,
}

impl From<Span> for Found {
    fn from(span: Span) -> Found {
        Found { span, labels: vec![] }
    }
}

const MODE: &str = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION";

/// All rules, in the order in which they are tried.
pub const RULES: &[Rule] = &[
    Rule {
        name: "append-needs-watermark",
        condition: MODE,
        message: "APPEND cannot emit groups that may still change: no grouping key is event time under a watermark",
        help: "Add WATERMARK ts DELAY OF INTERVAL 10 MINUTES after the stream and group by TUMBLE(ts, ...) or by ts, or use EMIT UPDATE.",
        example: "SELECT k, count(*) FROM s GROUP BY k EMIT APPEND",
        find: |c| {
            let open = |p: &Plan| match &p.node {
                Node::Aggregate { keys, .. } => !c.timed(p, keys.iter().map(|(id, _)| *id)),
                Node::Session { end, .. } => !c.timed(p, [end.0]),
                _ => false,
            };
            c.labelled_nodes(
                |p| c.mode == EmitMode::Append && open(p),
                |p| {
                    let unused = |(span, _)| (span, "this watermark's column is in no grouping key");
                    watermarks(p).into_iter().map(unused).collect()
                },
            )
        },
    },
    Rule {
        name: "session-not-in-update",
        condition: MODE,
        message: "session windows cannot be emitted in UPDATE, for a session may take in an earlier one",
        help: "Use EMIT APPEND with a watermark, or EMIT COMPLETE.",
        example: "SELECT k, count(*) FROM s GROUP BY SESSION(ts, INTERVAL 5 SECONDS), k EMIT UPDATE",
        find: |c| c.streaming_nodes(|p| matches!(p.node, Node::Session { .. }) && c.mode == EmitMode::Update),
    },
    Rule {
        name: "session-needs-key",
        condition: "UNSUPPORTED_STREAMING_OPERATION.SESSION_WITHOUT_KEY",
        message: "a session window on a stream needs a further grouping key",
        help: "Add a key to GROUP BY, for example the device or the user.",
        example: "SELECT count(*) FROM s GROUP BY SESSION(ts, INTERVAL 5 SECONDS) EMIT COMPLETE",
        find: |c| c.streaming_nodes(|p| matches!(&p.node, Node::Session { keys, .. } if keys.is_empty())),
    },
    Rule {
        name: "complete-needs-aggregation",
        condition: MODE,
        message: "COMPLETE needs an aggregation of the stream: without one the whole result would grow for ever",
        help: "Use EMIT APPEND, or aggregate.",
        example: "SELECT k, v FROM s EMIT COMPLETE",
        find: |c| {
            if c.mode == EmitMode::Complete && c.streaming_nodes(is_aggregation).is_empty() {
                vec![c.query.plan.span.into()]
            } else {
                vec![]
            }
        },
    },
    Rule {
        name: "distinct-aggregate",
        condition: "UNSUPPORTED_STREAMING_OPERATION.DISTINCT_AGGREGATE",
        message: "DISTINCT inside an aggregate is not supported on a stream",
        help: "Use approx_count_distinct(...) or size(collect_set(...)), or deduplicate with SELECT DISTINCT before.",
        example: "SELECT k, count(DISTINCT v) FROM s GROUP BY k EMIT UPDATE",
        find: |c| {
            let mut spans = vec![];
            c.each_streaming(|p| {
                if let Node::Aggregate { aggs, .. } | Node::Session { aggs, .. } = &p.node {
                    spans.extend(
                        aggs.iter().filter(|(_, a)| a.distinct).map(|(_, a): &(_, AggExpr)| Found::from(a.span)),
                    );
                }
            });
            spans
        },
    },
    Rule {
        name: "chained-stateful",
        condition: MODE,
        message: "a stateful operation over an aggregation can run in APPEND only",
        help: "Use EMIT APPEND with windows under a watermark, or split the script into two queries.",
        example: "SELECT k, max(n) FROM (SELECT k, d, count(*) AS n FROM s GROUP BY k, d) GROUP BY k EMIT UPDATE",
        find: |c| {
            if c.mode == EmitMode::Append {
                return vec![];
            }
            let inner = |p: &Plan| -> Vec<(Span, &'static str)> {
                let mut spans = vec![];
                p.inputs.iter().for_each(|i| {
                    i.walk(&mut |q| {
                        if is_aggregation(q) && q.streaming() {
                            spans.push((q.span, "this aggregation is the first stateful operation"));
                        }
                    });
                });
                spans
            };
            c.labelled_nodes(|p| is_stateful(p) && !inner(p).is_empty(), inner)
        },
    },
    Rule {
        name: "stream-join-mode",
        condition: MODE,
        message: "this join of two streams cannot run in this output mode",
        help: "Inner and left semi joins of streams run in APPEND and UPDATE, outer joins in APPEND only.",
        example: "SELECT lv, rv FROM l LEFT JOIN r ON l.k = r.k AND lt = rt EMIT UPDATE",
        find: |c| {
            c.stream_joins(|kind, _| match c.mode {
                EmitMode::Append => false,
                EmitMode::Update => !matches!(kind, JoinKind::Inner | JoinKind::LeftSemi),
                EmitMode::Complete => true,
            })
        },
    },
    Rule {
        name: "stream-join-anti",
        condition: "UNSUPPORTED_STREAMING_OPERATION.ANTI_JOIN",
        message: "an anti join of two streams is not supported",
        help: "Use a LEFT JOIN with a range on event time and keep the rows without a match.",
        example: "SELECT lt FROM l LEFT ANTI JOIN r ON l.k = r.k AND lt = rt EMIT APPEND",
        find: |c| {
            c.stream_joins(|kind, _| matches!(kind, JoinKind::LeftAnti | JoinKind::NullAwareAnti | JoinKind::Existence))
        },
    },
    Rule {
        name: "stream-join-equality",
        condition: "UNSUPPORTED_STREAMING_OPERATION.JOIN_WITHOUT_EQUALITY",
        message: "a join of two streams needs an equality between their columns",
        help: "Add ON l.key = r.key; further conditions may stand beside it.",
        example: "SELECT lv, rv FROM l JOIN r ON l.k < r.k EMIT APPEND",
        find: |c| {
            c.stream_joins(|_, p| match &p.node {
                Node::Join { on, .. } => parts(on.as_ref(), &p.inputs[0], &p.inputs[1]).keys.is_empty(),
                _ => false,
            })
        },
    },
    Rule {
        name: "stream-join-unbounded",
        condition: "UNSUPPORTED_STREAMING_OPERATION.UNBOUNDED_JOIN",
        message: "this join of two streams could wait for ever before it shows a row",
        help: "Put watermarks on both streams and an equality or range of event time into ON: rt BETWEEN lt AND lt + INTERVAL 5 SECONDS.",
        example: "SELECT lt, rt FROM l LEFT JOIN r ON l.k = r.k EMIT APPEND",
        find: |c| {
            let unbounded = |p: &Plan| {
                let Node::Join { kind, on, .. } = &p.node else { return false };
                let parts = parts(on.as_ref(), &p.inputs[0], &p.inputs[1]);
                !is_taken(*kind, &parts, &p.inputs[0], &p.inputs[1], &c.query.columns)
            };
            c.labelled_nodes(|p| p.inputs.iter().all(Plan::streaming) && unbounded(p), sides)
        },
    },
    Rule {
        name: "stream-static-outer",
        condition: "UNSUPPORTED_STREAMING_OPERATION.STREAM_STATIC_OUTER_JOIN",
        message: "this join would have to show table rows that no stream row ever matches",
        help: "Put the stream on the side whose rows are all shown: stream LEFT JOIN table.",
        example: "SELECT s.v, n FROM d LEFT JOIN s ON s.k = d.k EMIT APPEND",
        find: |c| {
            c.streaming_nodes(|p| match &p.node {
                Node::Join { kind, .. } => match (p.inputs[0].streaming(), p.inputs[1].streaming()) {
                    (true, false) => matches!(kind, JoinKind::Right | JoinKind::Full),
                    (false, true) => !matches!(kind, JoinKind::Inner | JoinKind::Right),
                    _ => false,
                },
                _ => false,
            })
        },
    },
    Rule {
        name: "sort",
        condition: MODE,
        message: "a stream can be sorted only over an aggregation, in COMPLETE",
        help: "Leave ORDER BY out, or use EMIT COMPLETE over an aggregation.",
        example: "SELECT k, v FROM s ORDER BY v EMIT APPEND",
        find: |c| {
            c.streaming_nodes(|p| {
                matches!(p.node, Node::Sort { .. })
                    && (c.mode != EmitMode::Complete
                        || !contains(&p.inputs[0], &|q| is_aggregation(q) && q.streaming()))
            })
        },
    },
    Rule {
        name: "limit-in-update",
        condition: MODE,
        message: "LIMIT cannot run in UPDATE",
        help: "Use EMIT APPEND (a total over the query's life) or EMIT COMPLETE.",
        example: "SELECT k, v FROM s LIMIT 3 EMIT UPDATE",
        find: |c| c.streaming_nodes(|p| matches!(p.node, Node::Limit { .. }) && c.mode == EmitMode::Update),
    },
    Rule {
        name: "offset",
        condition: "UNSUPPORTED_STREAMING_OPERATION.OFFSET",
        message: "OFFSET is not supported on a stream",
        help: "Leave OFFSET out, or read the result with a batch query.",
        example: "SELECT k, v FROM s OFFSET 1 EMIT APPEND",
        find: |c| c.streaming_nodes(|p| matches!(p.node, Node::Limit { offset, .. } if offset > 0)),
    },
    Rule {
        name: "union-with-table",
        condition: "UNSUPPORTED_STREAMING_OPERATION.UNION_WITH_TABLE",
        message: "UNION ALL of a stream with a table is not supported",
        help: "Make both sides streams, or write two queries into the sink.",
        example: "SELECT k, v FROM s UNION ALL SELECT k, v FROM d EMIT APPEND",
        find: |c| {
            c.streaming_nodes(|p| matches!(p.node, Node::Union { .. }) && p.inputs.iter().any(|i| !i.streaming()))
        },
    },
    Rule {
        name: "set-operation",
        condition: "UNSUPPORTED_STREAMING_OPERATION.SET_OPERATION",
        message: "INTERSECT with a stream and EXCEPT of a stream are not supported",
        help: "Use LEFT SEMI JOIN or LEFT ANTI JOIN with a table.",
        example: "SELECT k FROM d EXCEPT SELECT k FROM s EMIT APPEND",
        // The binder asks for this one: below it, a set operation is a join like any other.
        find: |_| vec![],
    },
    Rule {
        name: "analytic-functions",
        condition: "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
        message: "analytic functions (OVER) are not supported on a stream",
        help: "Group by a time window: TUMBLE, HOP or SESSION.",
        example: "SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts) FROM s EMIT APPEND",
        find: |c| c.streaming_nodes(|p| matches!(p.node, Node::WindowFunction { .. })),
    },
    Rule {
        name: "row-ids",
        condition: "UNSUPPORTED_STREAMING_OPERATION.MONOTONICALLY_INCREASING_ID",
        message: "monotonically_increasing_id() is not supported on a stream",
        help: "Use uuid(), or a column of the source.",
        example: "SELECT k, monotonically_increasing_id() AS id FROM s EMIT APPEND",
        find: |c| {
            let mut spans = vec![];
            c.each_streaming(|p| {
                p.expressions(&mut |e| {
                    e.walk(&mut |x| {
                        if let ExprKind::Call { function, .. } = &x.kind
                            && &**function == "monotonically_increasing_id"
                        {
                            spans.push(Found::from(x.origin.span.map(|(s, t)| Span::new(s, t)).unwrap_or(p.span)));
                        }
                    });
                });
            });
            spans
        },
    },
    Rule {
        name: "within-watermark",
        condition: "UNSUPPORTED_STREAMING_OPERATION.DEDUPLICATE_WITHIN_WATERMARK",
        message: "WITHIN WATERMARK needs a watermark on the stream",
        help: "Add WATERMARK ts DELAY OF INTERVAL 10 MINUTES after the stream.",
        example: "SELECT DISTINCT ON (k) WITHIN WATERMARK k FROM s EMIT APPEND",
        find: |c| {
            c.streaming_nodes(|p| match &p.node {
                Node::Dedup { kind: DedupKind::WithinWatermark, .. } => {
                    event_columns(&p.inputs[0], &c.query.columns).is_empty()
                }
                _ => false,
            })
        },
    },
    Rule {
        name: "multiple-event-times",
        condition: "MULTIPLE_EVENT_TIME_COLUMNS",
        message: "the input of this stateful operation has more than one event-time column",
        help: "Leave one out, or cast it: CAST(ts AS STRING).",
        example: "SELECT DISTINCT k, ta, tb FROM ab EMIT APPEND",
        find: |c| {
            let several = |p: &Plan| match &p.node {
                Node::Dedup { .. } => event_columns(&p.inputs[0], &c.query.columns).len() > 1,
                Node::Join { .. } if p.inputs.iter().all(Plan::streaming) => {
                    p.inputs.iter().any(|i| event_columns(i, &c.query.columns).len() > 1)
                }
                Node::Aggregate { keys, .. } => {
                    let mut groups: Vec<u32> = keys
                        .iter()
                        .filter_map(|(id, _)| c.query.columns.get(*id).event_time.map(|t| t.group))
                        .collect();
                    groups.sort_unstable();
                    groups.dedup();
                    has_watermark(p) && groups.len() > 1
                }
                _ => false,
            };
            c.labelled_nodes(several, watermarks)
        },
    },
    Rule {
        name: "second-watermark",
        condition: "UNSUPPORTED_STREAMING_OPERATION.SECOND_WATERMARK",
        message: "this stream has a watermark already",
        help: "Leave one of the two WATERMARK clauses out.",
        example: "SELECT ts FROM (SELECT * FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE) WATERMARK ts DELAY OF INTERVAL 2 MINUTES EMIT APPEND",
        find: |c| {
            c.labelled_nodes(
                |p| matches!(p.node, Node::Watermark { .. }) && has_watermark(&p.inputs[0]),
                |p| watermarks(&p.inputs[0]).into_iter().map(|(span, _)| (span, "first declared here")).collect(),
            )
        },
    },
    Rule {
        name: "stream-in-subquery",
        condition: "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY",
        message: "a subquery in an expression cannot read a stream",
        help: "Join the stream in FROM instead.",
        example: "SELECT k FROM s WHERE v = (SELECT max(v) FROM s) EMIT APPEND",
        // The binder asks for this one: a subquery is no node of the plan.
        find: |_| vec![],
    },
    Rule {
        name: "needs-stream",
        condition: "WRITE_STREAM_NOT_ALLOWED",
        message: "EMIT needs a stream, and this query reads tables only",
        help: "Leave EMIT out to run it as a batch query.",
        example: "SELECT k, v FROM d EMIT APPEND",
        // The statement asks for this one: the check sees streaming queries only.
        find: |_| vec![],
    },
];

/// Applies all rules to a streaming query. Only the first rule that finds something at a place speaks there.
pub(crate) fn check(query: &Query, mode: EmitMode) -> Vec<Diagnostic> {
    let context = Context { query, mode };
    let mut out: Vec<Diagnostic> = vec![];
    for rule in RULES {
        for found in (rule.find)(&context) {
            if !out.iter().any(|d| d.span() == found.span) {
                let labelled = |d: Diagnostic, (span, text): (Span, &str)| match span == found.span {
                    true => d,
                    false => d.with_label(span, text),
                };
                out.push(found.labels.iter().copied().fold(rule.diagnostic(found.span), labelled));
            }
        }
    }
    out
}

/// The rule of that name.
pub(crate) fn rule(name: &str) -> &'static Rule {
    RULES.iter().find(|r| r.name == name).expect("rules are named in this crate only")
}

/// The rules as a Markdown table.
pub fn rules_markdown() -> String {
    let mut out = String::from("| rule | condition | refused | way out | example |\n|---|---|---|---|---|\n");
    for r in RULES {
        let example = r.example.replace('|', "\\|");
        out.push_str(&format!("| {} | `{}` | {} | {} | `{}` |\n", r.name, r.condition, r.message, r.help, example));
    }
    out
}

impl Rule {
    /// What the rule says at a place.
    pub(crate) fn diagnostic(&self, span: Span) -> Diagnostic {
        Diagnostic::error(self.condition, self.message).at(span).with_help(self.help)
    }
}

impl Context<'_> {
    fn each_streaming<'s>(&'s self, mut visit: impl FnMut(&'s Plan)) {
        self.query.plan.walk(&mut |p| {
            if p.streaming() {
                visit(p);
            }
        });
    }

    fn streaming_nodes(&self, refused: impl Fn(&Plan) -> bool) -> Vec<Found> {
        self.labelled_nodes(refused, |_| vec![])
    }

    /// The refused nodes, each with the places that explain it.
    fn labelled_nodes(
        &self,
        refused: impl Fn(&Plan) -> bool,
        labels: impl Fn(&Plan) -> Vec<(Span, &'static str)>,
    ) -> Vec<Found> {
        let mut found = vec![];
        self.each_streaming(|p| {
            if refused(p) {
                found.push(Found { span: p.span, labels: labels(p) });
            }
        });
        found
    }

    fn stream_joins(&self, refused: impl Fn(JoinKind, &Plan) -> bool) -> Vec<Found> {
        self.streaming_nodes(|p| match &p.node {
            Node::Join { kind, .. } => p.inputs.iter().all(Plan::streaming) && refused(*kind, p),
            _ => false,
        })
    }

    /// Whether one of the columns is event time under a watermark.
    fn timed(&self, p: &Plan, ids: impl IntoIterator<Item = ColumnId>) -> bool {
        let columns: &Columns = &self.query.columns;
        has_watermark(p) && ids.into_iter().any(|id| columns.get(id).event_time.is_some())
    }
}

/// Where the watermarks below a node are declared.
fn watermarks(p: &Plan) -> Vec<(Span, &'static str)> {
    let mut spans = vec![];
    p.walk(&mut |q| {
        if matches!(q.node, Node::Watermark { .. }) {
            spans.push((q.span, "watermark declared here"));
        }
    });
    spans
}

/// Per side of a join: where its watermark is declared, or where it has none.
fn sides(p: &Plan) -> Vec<(Span, &'static str)> {
    let one = |side: &Plan| match watermarks(side).first() {
        Some(first) => *first,
        None => (side.span, "this stream has no watermark"),
    };
    p.inputs.iter().map(one).collect()
}

fn is_aggregation(p: &Plan) -> bool {
    matches!(p.node, Node::Aggregate { .. } | Node::HopAggregate { .. } | Node::Session { .. })
}

fn is_stateful(p: &Plan) -> bool {
    match &p.node {
        Node::Aggregate { .. } | Node::HopAggregate { .. } | Node::Session { .. } | Node::Dedup { .. } => true,
        Node::Join { .. } => p.inputs.iter().all(Plan::streaming),
        _ => false,
    }
}

fn contains(p: &Plan, test: &dyn Fn(&Plan) -> bool) -> bool {
    test(p) || p.inputs.iter().any(|i| contains(i, test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_each_rule_once() {
        let text = rules_markdown();
        for r in RULES {
            assert_eq!(RULES.iter().filter(|o| o.name == r.name).count(), 1);
            assert!(text.contains(r.example.split('|').next().unwrap_or_default()));
        }
    }
}
