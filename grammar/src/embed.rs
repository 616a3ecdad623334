//! The border to sqlparser: spans of its nodes, and the look-ups that tie streaming clauses to its tree.
//!
//! sqlparser is fed our own tokens, never text, and each token's location is `(line 1, column = byte offset + 1)` of
//! the script. So its locations are script positions already, and this file is the only one that knows so.

use sqlparser::ast::Spanned;
use sqlparser::tokenizer::{Location, Span as SqlSpan};

use crate::ast::{StreamClauses, TableArgument, Watermark};
use crate::source::Span;
use crate::sql;

/// The script position as a sqlparser location.
pub(crate) fn to_location(at: u32) -> Location {
    Location::new(1, u64::from(at) + 1)
}

/// A script span as a sqlparser span.
pub(crate) fn to_sql_span(span: Span) -> SqlSpan {
    SqlSpan::new(to_location(span.start), to_location(span.end))
}

/// A sqlparser span as a script span; None for sqlparser's "unknown".
pub fn script_span(span: SqlSpan) -> Option<Span> {
    if span.start.line == 0 || span.end.line == 0 {
        return None;
    }
    let at = |l: Location| u32::try_from(l.column.saturating_sub(1)).unwrap_or(u32::MAX);
    Some(Span::new(at(span.start), at(span.end)))
}

/// The script span of any sqlparser node: `span_of(&expr)`. None where sqlparser records none (a lambda, `*` in a call,
/// some statements): fall back to the enclosing node's, at last to [`crate::ast::Embedded::span`].
///
/// sqlparser's spans cover the identifiers and literals of a node, not always its brackets and keywords: a call's span
/// begins at its name and may end before its `)`.
pub fn span_of<T: Spanned>(node: &T) -> Option<Span> {
    script_span(node.span())
}

/// The span of one identifier.
pub fn ident_span(ident: &sql::Ident) -> Option<Span> {
    script_span(ident.span)
}

/// The span of a relation in FROM without its alias: the key of [`StreamClauses::watermark`].
pub fn factor_span(factor: &sql::TableFactor) -> Option<Span> {
    match factor {
        sql::TableFactor::Table { name, .. } => span_of(name),
        sql::TableFactor::Derived { subquery, .. } => span_of(subquery.as_ref()),
        sql::TableFactor::TableFunction { expr, .. } => span_of(expr),
        sql::TableFactor::Function { name, .. } => span_of(name),
        other => span_of(other),
    }
}

impl StreamClauses {
    /// The WATERMARK clause that follows this relation.
    pub fn watermark(&self, factor: &sql::TableFactor) -> Option<&Watermark> {
        if self.watermarks.is_empty() {
            return None;
        }
        let key = factor_span(factor)?;
        self.watermarks.iter().find(|w| w.relation == key).map(|w| &w.watermark)
    }

    /// The words `WITHIN WATERMARK` after this SELECT's DISTINCT ON.
    pub fn within_watermark(&self, select: &sql::Select) -> Option<Span> {
        let start = script_span(select.select_token.0.span)?.start;
        self.within_watermarks.iter().find(|w| w.select_start == start).map(|w| w.span)
    }

    /// The `TABLE` argument that this expression is: `TUMBLE(TABLE s, ...)` has the identifier `s` as its argument's
    /// expression, `TUMBLE(TABLE (SELECT ...), ...)` the subquery.
    pub fn table_argument(&self, argument: &sql::Expr) -> Option<&TableArgument> {
        let start = span_of(argument)?.start;
        self.table_arguments.iter().find(|t| t.start == start)
    }

    /// The word STREAM before this relation.
    pub fn stream_read(&self, factor: &sql::TableFactor) -> Option<Span> {
        let start = factor_span(factor)?.start;
        self.stream_reads.iter().find(|s| s.start == start).map(|s| s.span)
    }
}
