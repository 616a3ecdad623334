//! One walk over sqlparser's tree after parsing: puts watermark aliases back, and refuses what sqlparser lets pass but
//! Spark's parser does not.

use std::ops::ControlFlow;

use sqlparser::ast::{SetExpr, TableFactor, Value, VisitMut, VisitorMut};

use crate::ast::{RelationWatermark, StreamClauses};
use crate::diagnostic::Diagnostic;
use crate::embed::{factor_span, span_of};
use crate::lift::{Lifted, PendingWatermark, marker_number};
use crate::source::Span;
use crate::sql;
use crate::token::SYNTAX;

/// Ties the lifted watermarks to their relations and checks the tree. `whole` is the place of last resort.
pub(crate) fn check<T: VisitMut>(tree: &mut T, lifted: Lifted, whole: Span) -> Result<StreamClauses, Box<Diagnostic>> {
    let places: Vec<Span> = lifted.watermarks.iter().map(|w| w.watermark.span).collect();
    let mut checker = Checker {
        pending: lifted.watermarks.into_iter().map(Some).collect(),
        found: Vec::new(),
        factors: Vec::new(),
        whole,
    };
    if let ControlFlow::Break(error) = tree.visit(&mut checker) {
        return Err(error);
    }
    if let Some(i) = checker.pending.iter().position(Option::is_some) {
        return Err(Box::new(misplaced(places[i])));
    }
    let mut clauses = lifted.clauses;
    for watermark in &checker.found {
        if checker.factors.iter().filter(|f| **f == watermark.relation).count() > 1 {
            return Err(Box::new(misplaced(watermark.watermark.span)));
        }
    }
    checker.found.sort_by_key(|w| w.watermark.span.start);
    clauses.watermarks = checker.found;
    Ok(clauses)
}

fn misplaced(at: Span) -> Diagnostic {
    Diagnostic::error(SYNTAX, "`WATERMARK` must follow a relation of FROM")
        .at(at)
        .with_help("Put it behind a table, view or bracketed subquery, before its alias.")
}

struct Checker {
    pending: Vec<Option<PendingWatermark>>,
    found: Vec<RelationWatermark>,
    /// The span of every relation seen: a watermark's must be its alone.
    factors: Vec<Span>,
    whole: Span,
}

impl VisitorMut for Checker {
    type Break = Box<Diagnostic>;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        let span = factor_span(factor);
        self.factors.extend(span);
        let alias = match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. } => alias,
            _ => return ControlFlow::Continue(()),
        };
        let number = alias.as_ref().and_then(|a| marker_number(&a.name.value));
        let Some(pending) = number.and_then(|n| self.pending.get_mut(n)).and_then(Option::take) else {
            return ControlFlow::Continue(());
        };
        match (pending.alias, alias.as_mut()) {
            (Some(name), Some(alias)) => {
                alias.name = name;
                alias.explicit = pending.explicit;
            }
            _ => *alias = None,
        }
        match span {
            Some(relation) => {
                self.found.push(RelationWatermark { relation, watermark: pending.watermark });
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(Box::new(misplaced(pending.watermark.span))),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut sql::Expr) -> ControlFlow<Self::Break> {
        match expr {
            sql::Expr::Interval(interval) if interval.leading_field.is_none() => {
                let inside = matches!(interval.value.as_ref(),
                    sql::Expr::Value(v) if matches!(v.value, Value::SingleQuotedString(_) | Value::Placeholder(_)));
                if !inside {
                    let at = span_of(interval.value.as_ref()).unwrap_or(self.whole);
                    let diagnostic = Diagnostic::error(SYNTAX, "expected an interval unit behind the number")
                        .at(at)
                        .with_help("Write for example INTERVAL 10 MINUTES.");
                    return ControlFlow::Break(Box::new(diagnostic));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut sql::Query) -> ControlFlow<Self::Break> {
        let SetExpr::Values(values) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let width = values.rows.first().map_or(0, |r| r.content.len());
        for (i, row) in values.rows.iter().enumerate() {
            if row.content.len() != width {
                let at = row.content.iter().filter_map(span_of).reduce(Span::to).unwrap_or(self.whole);
                let message = format!(
                    "row {} of the inline table has {} columns, the first has {width}",
                    i + 1,
                    row.content.len()
                );
                let diagnostic = Diagnostic::error("INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH", message)
                    .at(at)
                    .with_help("Give every row the same number of values.");
                return ControlFlow::Break(Box::new(diagnostic));
            }
        }
        ControlFlow::Continue(())
    }
}
