//! A user's pipeline under test (`ssql test pipeline.ssql --cases FILE`): what of it is run, and on what.
//!
//! Streams and sinks become relations in memory, so that cases can INSERT into the ones and SELECT from the others.
//! Static tables stay as they are. Queries are started without their checkpoints and advance only when a case says so.

use ssql_engine::Result;
use ssql_grammar::ast::StatementKind;
use ssql_grammar::{SourceFile, parse_script};
use ssql_plan::catalog::ConnectorUse;
use ssql_plan::{Relation, RelationKind};

use super::relations::{MEMORY, connector_name};
use super::{Failure, Session, user};

/// Keeps a stream's or sink's rows in memory instead of where the script says.
pub(super) fn replace(relation: &mut Relation) -> Result<()> {
    let moved = matches!(relation.kind, RelationKind::Stream | RelationKind::Sink) && relation.foreach_batch.is_none();
    if !moved || connector_name(relation) == MEMORY {
        return Ok(());
    }
    if relation.kind == RelationKind::Stream && relation.schema.is_none() {
        let message = format!("the columns of `{}` are carried by its data, which a test does not read", relation.name);
        return Err(user("UNABLE_TO_INFER_SCHEMA", message).with_help("Declare the columns in CREATE STREAM."));
    }
    relation.connector = Some(ConnectorUse { name: MEMORY.to_owned(), ..ConnectorUse::default() });
    Ok(())
}

impl Session {
    /// Runs the statements of a script that declare something or start a query, and passes over the others (SELECT,
    /// SHOW, AWAIT, STOP, ...): a test asks its own questions. Returns how many were passed over.
    ///
    /// # Errors
    /// The script does not parse, or a statement of it fails.
    pub fn rehearse(&mut self, file: &SourceFile) -> Result<usize, Failure> {
        let (script, diagnostics) = parse_script(file);
        if diagnostics.iter().any(ssql_grammar::Diagnostic::is_error) {
            return Err(Failure { file: file.clone(), diagnostics });
        }
        let mut passed_over = 0;
        for statement in &script.statements {
            let runs = match &statement.kind {
                StatementKind::CreateStream(_)
                | StatementKind::CreateTable(_)
                | StatementKind::CreateView(_)
                | StatementKind::CreateFunction(_)
                | StatementKind::CreateSink(_)
                | StatementKind::Insert(_)
                | StatementKind::Set(_)
                | StatementKind::Reset(_) => true,
                StatementKind::Query(query) => query.emit.is_some(),
                _ => false,
            };
            if !runs {
                passed_over += 1;
                continue;
            }
            let planned = self.plan(statement).map_err(|diagnostics| Failure { file: file.clone(), diagnostics })?;
            self.execute(file, statement, planned)?;
        }
        Ok(passed_over)
    }
}
