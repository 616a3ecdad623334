//! Text to tokens to syntax tree: the front of the ssql compiler.
//!
//! [`parse_script`] takes a [`SourceFile`] and gives an [`ast::Script`] with every mistake as a [`Diagnostic`]; it never
//! panics and never stops at the first mistake: it recovers at `;`. Knows no catalog, no types and no IO.
//!
//! 1. `token`: the text becomes tokens with byte spans (logos).
//! 2. `cut`: each statement's tokens are cut into words of ours and runs of SQL.
//! 3. `ssql.lalrpop`: the words become a statement, which holds the runs.
//! 4. `lift`: a run's streaming clauses are taken out, the rest becomes sqlparser's tokens.
//! 5. `embed`: sqlparser parses them under `dialect`; `check` ties the clauses to its tree.
//!
//! [`mod@print`] is `ssql fmt`, [`dump`] is `EXPLAIN AST`.
#![forbid(unsafe_code)]

pub mod ast;
mod check;
mod clauses;
mod cut;
pub mod diagnostic;
mod dialect;
pub mod dump;
pub mod embed;
pub mod extent;
mod hint;
pub mod keyword;
mod lift;
mod parse;
pub mod print;
mod rewrite;
pub mod source;
pub mod token;

/// sqlparser's syntax tree, re-exported so that no other crate names sqlparser.
pub use sqlparser::ast as sql;

pub use diagnostic::{Diagnostic, Label, Severity, Style};
pub use parse::{parse_data_type, parse_expression, parse_schema, parse_script, parse_statement};
pub use source::{LineColumn, LineIndex, SourceFile, Span};
