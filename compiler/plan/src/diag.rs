//! Shorthands for diagnostics.

use ssql_grammar::{Diagnostic, Span};

/// A step of planning: what it gives, or the first mistake that stops it.
pub type Fallible<T> = Result<T, Box<Diagnostic>>;

/// A failed step.
pub(crate) fn fail<T>(condition: &'static str, message: impl Into<String>, span: Span) -> Fallible<T> {
    Err(Box::new(Diagnostic::error(condition, message).at(span)))
}

/// A failed step with a way to mend it.
pub(crate) fn fail_help<T>(
    condition: &'static str,
    message: impl Into<String>,
    span: Span,
    help: impl Into<String>,
) -> Fallible<T> {
    Err(Box::new(Diagnostic::error(condition, message).at(span).with_help(help)))
}
