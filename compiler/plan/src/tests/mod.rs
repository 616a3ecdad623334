//! Whole statements through the planner: SQL text in, logical plan, pipeline or condition out.

mod mistakes;
mod queries;
mod refusals;
mod streams;

use ssql_grammar::{Diagnostic, SourceFile, parse_statement};
use ssql_ir::{ConnectorDesc, LocationRule, Op, OptionDesc, OptionKind, OptionScope, Pipeline, SchemaRule, SinkDesc};

use crate::{BatchPlan, Catalog, Planned, SinkTarget, StreamingPlan, plan_statement};

fn memory() -> ConnectorDesc {
    ConnectorDesc {
        name: "memory",
        summary: "Rows in memory.",
        stream_source: true,
        static_source: true,
        sink: Some(SinkDesc {
            append: true,
            update: true,
            complete: true,
            durable: false,
            partitioned: false,
            continuous: true,
        }),
        schema: SchemaRule::Declared,
        location: LocationRule::Refused,
        options: vec![],
    }
}

fn json() -> ConnectorDesc {
    let option = |name: &'static str, kind: OptionKind| OptionDesc {
        name,
        kind,
        required: false,
        default: None,
        applies: OptionScope::Both,
        doc: "",
    };
    ConnectorDesc {
        name: "json",
        summary: "JSON lines in files.",
        stream_source: true,
        static_source: true,
        sink: Some(SinkDesc {
            append: true,
            update: false,
            complete: false,
            durable: true,
            partitioned: true,
            continuous: false,
        }),
        schema: SchemaRule::Declared,
        location: LocationRule::Required,
        options: vec![
            option("maxFilesPerTrigger", OptionKind::Integer),
            option("mode", OptionKind::OneOf(&["PERMISSIVE", "DROPMALFORMED", "FAILFAST"])),
        ],
    }
}

/// A session: statements are planned and, if they create something, registered.
struct Session {
    catalog: Catalog,
}

impl Session {
    /// A session in which these statements have run.
    fn of(statements: &[&str]) -> Session {
        let mut catalog = Catalog::new();
        catalog.register_connector(memory());
        catalog.register_connector(json());
        let mut session = Session { catalog };
        for sql in statements {
            session.run(sql);
        }
        session
    }

    fn plan(&self, sql: &str) -> Result<Planned, Vec<Diagnostic>> {
        let file = SourceFile::new("test", sql);
        plan_statement(&parse_statement(&file)?, &self.catalog)
    }

    fn run(&mut self, sql: &str) -> Planned {
        let planned = self.plan(sql).unwrap_or_else(|d| panic!("{sql}: {d:#?}"));
        match &planned {
            Planned::CreateRelation(c) if !c.exists => self.catalog.register(c.relation.clone()),
            Planned::CreateFunction(Some(f)) => self.catalog.register_function((**f).clone()),
            Planned::Set { key, value } => self.catalog.settings.set(key, value.clone()),
            Planned::Query(q) => {
                if let SinkTarget::Named(sink) = &q.sink {
                    self.catalog.set_schema(sink, q.schema.clone());
                }
            }
            _ => {}
        }
        planned
    }

    fn stream(&self, sql: &str) -> StreamingPlan {
        match self.plan(sql) {
            Ok(Planned::Query(q)) => *q,
            other => panic!("{sql}: {other:#?}"),
        }
    }

    fn batch(&self, sql: &str) -> BatchPlan {
        match self.plan(sql) {
            Ok(Planned::Batch(b)) => *b,
            other => panic!("{sql}: {other:#?}"),
        }
    }

    /// Conditions that a statement is refused with.
    fn conditions(&self, sql: &str) -> Vec<String> {
        match self.plan(sql) {
            Ok(planned) => panic!("{sql} was taken: {planned:#?}"),
            Err(d) => d.into_iter().map(|d| d.condition.into_owned()).collect(),
        }
    }

    fn errors(&self, sql: &str) -> Vec<Diagnostic> {
        match self.plan(sql) {
            Ok(planned) => panic!("{sql} was taken: {planned:#?}"),
            Err(d) => d,
        }
    }
}

/// The operators of a pipeline by name, in order.
fn operators(pipeline: &Pipeline) -> Vec<&'static str> {
    pipeline
        .nodes
        .iter()
        .map(|n| match &n.op {
            Op::Source { .. } => "source",
            Op::Values { .. } => "values",
            Op::Map { .. } => "map",
            Op::Watermark { .. } => "watermark",
            Op::DropLate { .. } => "drop_late",
            Op::AssignWindows { .. } => "assign_windows",
            Op::Aggregate { .. } => "aggregate",
            Op::HopAggregate { .. } => "hop_aggregate",
            Op::SessionAggregate { .. } => "session",
            Op::Dedup { .. } => "dedup",
            Op::StreamJoin { .. } => "stream_join",
            Op::HashJoin { .. } => "hash_join",
            Op::Union => "union",
            Op::Sort { .. } => "sort",
            Op::Limit { .. } => "limit",
            Op::Expand { .. } => "expand",
            Op::Generate { .. } => "generate",
            Op::WindowFunction { .. } => "window_function",
            Op::Sink { .. } => "sink",
        })
        .collect()
}
