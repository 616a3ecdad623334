//! Text to tokens to syntax tree: the front of the ssql compiler.
//!
//! [`parse_script`] takes a [`SourceFile`] and gives an [`ast::Script`] with every mistake as a [`Diagnostic`]; it never
//! panics and never stops at the first mistake: it recovers at `;`. Knows no catalog, no types and no IO.
//!
//! 1. `token`: the text becomes tokens with byte spans (logos).
//! 2. `cut`: each statement's tokens are cut into words of ours and runs of SQL.
//! 3. `ssql.lalrpop`: our words become a statement, which holds the runs.
//! 4. `embed`: each run goes to sqlparser, its streaming clauses lifted out before.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
pub mod embed;
pub mod source;

/// sqlparser's syntax tree, re-exported so that no other crate names sqlparser.
pub use sqlparser::ast as sql;

pub use diagnostic::{Diagnostic, Label, Severity, Style};
pub use source::{LineColumn, LineIndex, SourceFile, Span};

/// Parses a whole script. Statements with a syntax error are left out of the script; each has at least one diagnostic.
pub fn parse_script(file: &SourceFile) -> (ast::Script, Vec<Diagnostic>) {
    let _ = file;
    (ast::Script::default(), Vec::new())
}

/// Parses exactly one statement (a closing `;` may stand).
pub fn parse_statement(file: &SourceFile) -> Result<ast::Statement, Vec<Diagnostic>> {
    let (mut script, diagnostics) = parse_script(file);
    match script.statements.pop() {
        Some(statement) if script.statements.is_empty() && diagnostics.is_empty() => Ok(statement),
        _ => Err(diagnostics),
    }
}
