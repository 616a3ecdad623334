//! What TRIGGER CONTINUOUS takes: map-like queries from sources that give rows one by one, into sinks that take them so.
//! The operators are those of Spark's `UnsupportedOperationChecker.checkForContinuous`.

use ssql_grammar::{Diagnostic, Span};
use ssql_ir::{ConnectorDesc, Expr, ExprKind};

use crate::catalog::{Catalog, Relation};
use crate::logical::{Node, Plan};

/// Connectors whose rows can be taken one by one.
const SOURCES: &[&str] = &["rate", "memory", "socket", "kafka"];

const CONDITION: &str = "UNSUPPORTED_CONTINUOUS_PROCESSING";

/// What stands against it.
pub(super) fn check(plan: &Plan, sink: Option<&Relation>, at: Span, catalog: &Catalog) -> Vec<Diagnostic> {
    let mut found = vec![];
    plan.walk(&mut |p| found.extend(operator(p, at, catalog)));
    if let Some(connector) = sink.and_then(|s| s.connector.as_ref())
        && let Some(desc) = catalog.connector(&connector.name)
        && !takes_rows(desc)
    {
        let message = format!("continuous processing does not support the sink {}", connector.name);
        let others: Vec<&str> = catalog.connectors().filter(|c| takes_rows(c)).map(|c| c.name).collect();
        let help = format!("Sinks that take rows one by one: {}. Or use TRIGGER PROCESSING TIME.", others.join(", "));
        found.push(Diagnostic::error(CONDITION, message).at(at).with_help(help));
    }
    found
}

/// Whether a sink delivers a row without a transaction around it.
fn takes_rows(connector: &ConnectorDesc) -> bool {
    connector.sink.is_some_and(|s| s.continuous)
}

fn operator(p: &Plan, at: Span, catalog: &Catalog) -> Option<Diagnostic> {
    let name = match &p.node {
        Node::Filter { predicate } => return clock([predicate].into_iter(), at),
        Node::Project { columns } => return clock(columns.iter().map(|(_, e)| e), at),
        Node::Source { relation, streaming: true, .. } => {
            let connector = catalog.relation(relation).and_then(|r| r.connector.as_ref())?;
            if SOURCES.contains(&connector.name.as_str()) {
                return None;
            }
            let message = format!("continuous processing does not support the source {}", connector.name);
            let help = format!("Sources of single rows: {}. Or use TRIGGER PROCESSING TIME.", SOURCES.join(", "));
            return Some(Diagnostic::error(CONDITION, message).at(at).with_help(help));
        }
        Node::Source { .. } | Node::Values { .. } => "static relation",
        Node::Watermark { .. } => "watermark",
        Node::AssignWindows { .. } => "window",
        Node::Aggregate { .. } | Node::HopAggregate { .. } | Node::Session { .. } => "aggregate",
        Node::Dedup { .. } => "deduplication",
        Node::Join { .. } => "join",
        Node::Union { .. } => "union",
        Node::Sort { .. } => "sort",
        Node::Limit { .. } => "limit",
        Node::Expand { .. } => "grouping set",
        Node::Generate { .. } => "generator",
        Node::WindowFunction { .. } => "window function",
    };
    let d = Diagnostic::error(CONDITION, format!("continuous processing does not support {name} operations")).at(at);
    let d = if p.span.is_empty() { d } else { d.with_label(p.span, "this one") };
    Some(d.with_help("It takes selections and projections of one stream. Use TRIGGER PROCESSING TIME for the rest."))
}

/// The time of a micro-batch has no meaning where there are none.
fn clock<'a>(exprs: impl Iterator<Item = &'a Expr>, at: Span) -> Option<Diagnostic> {
    const CLOCKS: &[&str] = &["current_timestamp", "now", "localtimestamp", "current_date", "curdate"];
    let mut asks = false;
    for e in exprs {
        e.walk(&mut |e| {
            if let ExprKind::Call { function, .. } = &e.kind {
                asks |= CLOCKS.contains(&&**function);
            }
        });
    }
    asks.then(|| {
        Diagnostic::error(CONDITION, "continuous processing does not support current time operations")
            .at(at)
            .with_help("Take the time from the source, or use TRIGGER PROCESSING TIME.")
    })
}
