//! What a script may name: relations, SQL functions, connectors, parameters and settings.
//!
//! The catalog is plain data. The planner only reads it: a CREATE statement is planned into a definition, which the
//! caller registers here once it has been carried out. Names are compared without regard to case.

use std::collections::BTreeMap;

use ssql_grammar::{Diagnostic, Span, ast};
use ssql_ir::{ConnectorDesc, DataType, Delay, Field, Schema, Symbol};
use ssql_stdlib::NativeFunctions;

use crate::diag::Fallible;
use crate::settings::Settings;

/// What kind of relation a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// Read micro-batch by micro-batch.
    Stream,
    /// Read whole.
    Table,
    /// A named query, bound anew wherever it is used.
    View,
    /// Written by a streaming query; a memory sink can be read as a table.
    Sink,
}

impl RelationKind {
    /// The keyword, lower case, for messages.
    pub fn noun(self) -> &'static str {
        match self {
            RelationKind::Stream => "stream",
            RelationKind::Table => "table",
            RelationKind::View => "view",
            RelationKind::Sink => "sink",
        }
    }
}

/// An option as given, validated against the connector's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// The connector's spelling of the key.
    pub key: String,
    /// The value as text.
    pub value: String,
    /// Where the key stands in the script.
    pub span: Span,
}

/// The connector of a relation with its options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectorUse {
    /// Lower-case name after USING; `memory` when the clause is absent.
    pub name: String,
    /// LOCATION.
    pub location: Option<String>,
    /// OPTIONS, in order, defaults not filled in.
    pub options: Vec<OptionValue>,
    /// PARTITIONED BY.
    pub partitioned_by: Vec<String>,
}

impl ConnectorUse {
    /// The value of an option; keys are compared without regard to case.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|o| o.key.eq_ignore_ascii_case(key)).map(|o| o.value.as_str())
    }
}

/// A watermark, declared on a stream or written after a relation.
#[derive(Debug, Clone, PartialEq)]
pub struct WatermarkSpec {
    /// Distance to the largest event time.
    pub delay: Delay,
    /// IDLE AFTER, microseconds of processing time.
    pub idle_after: Option<i64>,
    /// MAX SKEW, microseconds.
    pub max_skew: Option<i64>,
    /// The clause.
    pub span: Span,
}

/// A named relation.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Name as first written.
    pub name: String,
    /// What it is.
    pub kind: RelationKind,
    /// Columns; `None` while unknown: of a view, of a sink before its first query, of a connector whose data carry the
    /// schema before the caller has looked at them.
    pub schema: Option<Schema>,
    /// Where it lives; `None` for views and FOREACH BATCH sinks.
    pub connector: Option<ConnectorUse>,
    /// `WATERMARK FOR` of the column list: the column's position, an expression if one is given, and the clause.
    pub watermark: Option<DeclaredWatermark>,
    /// The query of a view.
    pub view: Option<View>,
    /// The statements of a FOREACH BATCH sink.
    pub foreach_batch: Option<Vec<ast::Statement>>,
    /// IDENTIFIED BY.
    pub identified_by: Option<String>,
    /// REJECTS TO.
    pub rejects_to: Option<String>,
    /// COMMENT.
    pub comment: Option<String>,
    /// Where it was created, for secondary labels.
    pub span: Span,
}

impl Relation {
    /// A relation of that kind with these columns and nothing else; for callers that make relations of their own.
    pub fn new(name: impl Into<String>, kind: RelationKind, schema: Option<Schema>) -> Relation {
        Relation {
            name: name.into(),
            kind,
            schema,
            connector: None,
            watermark: None,
            view: None,
            foreach_batch: None,
            identified_by: None,
            rejects_to: None,
            comment: None,
            span: Span::default(),
        }
    }
}

/// `WATERMARK FOR column [AS expr] DELAY OF ...` of CREATE STREAM.
#[derive(Debug, Clone)]
pub struct DeclaredWatermark {
    /// The column: one of the schema, or a new one if `expr` is given and no column has that name.
    pub column: String,
    /// The expression that gives the column.
    pub expr: Option<ast::Expr>,
    /// Delay and kin.
    pub spec: WatermarkSpec,
}

/// A view's query with the parameters already in place.
#[derive(Debug, Clone)]
pub struct View {
    /// Column names given after the view's name; empty when absent.
    pub columns: Vec<String>,
    /// The query.
    pub query: ast::Query,
}

/// A SQL scalar function.
#[derive(Debug, Clone)]
pub struct SqlFunction {
    /// Name as written.
    pub name: String,
    /// Parameters: name, type, default.
    pub params: Vec<(String, DataType, Option<ast::Expr>)>,
    /// Declared result type.
    pub returns: Option<DataType>,
    /// The body.
    pub body: ast::Expr,
}

/// The names in force where a statement is planned.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    relations: BTreeMap<String, Relation>,
    functions: BTreeMap<String, SqlFunction>,
    connectors: BTreeMap<String, ConnectorDesc>,
    parameters: BTreeMap<String, String>,
    /// Functions of the embedding program.
    pub natives: NativeFunctions,
    /// Settings in force (SET).
    pub settings: Settings,
}

impl Catalog {
    /// An empty catalog with default settings; it knows the `memory` connector only once that is registered.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// Makes a connector known.
    pub fn register_connector(&mut self, desc: ConnectorDesc) {
        self.connectors.insert(desc.name.to_ascii_lowercase(), desc);
    }

    /// The connector of that name.
    pub fn connector(&self, name: &str) -> Option<&ConnectorDesc> {
        self.connectors.get(&name.to_ascii_lowercase())
    }

    /// All connectors, by name.
    pub fn connectors(&self) -> impl Iterator<Item = &ConnectorDesc> {
        self.connectors.values()
    }

    /// Adds a relation, in place of any of that name.
    pub fn register(&mut self, relation: Relation) {
        self.relations.insert(relation.name.to_lowercase(), relation);
    }

    /// Takes a relation out.
    pub fn remove(&mut self, name: &str) -> Option<Relation> {
        self.relations.remove(&name.to_lowercase())
    }

    /// The relation of that name.
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.get(&name.to_lowercase())
    }

    /// All relations, by name.
    pub fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations.values()
    }

    /// Sets the columns of a relation that did not know them: a sink whose query starts, a table whose files have been
    /// looked at. Unknown names are passed over.
    pub fn set_schema(&mut self, name: &str, schema: Schema) {
        if let Some(relation) = self.relations.get_mut(&name.to_lowercase()) {
            relation.schema = Some(schema);
        }
    }

    /// Adds a SQL function, in place of any of that name.
    pub fn register_function(&mut self, function: SqlFunction) {
        self.functions.insert(function.name.to_lowercase(), function);
    }

    /// Takes a SQL function out.
    pub fn remove_function(&mut self, name: &str) -> Option<SqlFunction> {
        self.functions.remove(&name.to_lowercase())
    }

    /// The SQL function of that name.
    pub fn function(&self, name: &str) -> Option<&SqlFunction> {
        self.functions.get(&name.to_lowercase())
    }

    /// All SQL functions, by name.
    pub fn functions(&self) -> impl Iterator<Item = &SqlFunction> {
        self.functions.values()
    }

    /// Gives `:name` its value, as text: a whole number, a decimal number, `true`, `false` and NULL keep their kind,
    /// all else is a string.
    pub fn set_parameter(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.parameters.insert(name.into(), value.into());
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The interned name by which the IR refers to a relation: lower case.
    pub fn symbol(name: &str) -> Symbol {
        Symbol::from(name.to_lowercase())
    }

    /// The relation, or `TABLE_OR_VIEW_NOT_FOUND` with near names.
    pub fn require(&self, name: &str, span: Span) -> Fallible<&Relation> {
        self.relation(name).ok_or_else(|| {
            let known: Vec<&str> = self.relations.values().map(|r| r.name.as_str()).collect();
            let mut d = Diagnostic::error(
                "TABLE_OR_VIEW_NOT_FOUND",
                format!("there is no stream, table, view or sink `{name}`"),
            )
            .at(span);
            match suggest(name, known.iter().copied()) {
                Some(near) => d = d.with_help(format!("Did you mean `{near}`?")),
                None if known.is_empty() => {
                    d = d.with_help("Create it first, for example with CREATE STREAM or CREATE TABLE.");
                }
                None => d = d.with_help(format!("Known here: {}.", join_quoted(known.iter().copied()))),
            }
            Box::new(d)
        })
    }

    /// The value of a literal of OPTIONS, LOCATION, CHECKPOINT LOCATION or SET as text, parameters replaced.
    pub fn literal_text(&self, literal: &ast::Literal) -> Fallible<String> {
        Ok(match &literal.value {
            ast::LiteralValue::String(s) | ast::LiteralValue::Number(s) => s.clone(),
            ast::LiteralValue::Boolean(b) => b.to_string(),
            ast::LiteralValue::Parameter(name) => match self.parameter(name) {
                Some(value) => value.to_string(),
                None => return Err(Box::new(self.unbound_parameter(name, literal.span))),
            },
        })
    }

    /// `UNBOUND_SQL_PARAMETER`.
    pub fn unbound_parameter(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::error("UNBOUND_SQL_PARAMETER", format!("the parameter `:{name}` has no value")).at(span);
        match suggest(name, self.parameters.keys().map(String::as_str)) {
            Some(near) => d.with_help(format!("Did you mean `:{near}`?")),
            None => d.with_help(format!("Give it one: `--param {name}=...`.")),
        }
    }
}

/// The name nearest to `name`, if one is near enough to be a misspelling.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    // Any short name is near any other.
    const SHORTEST: usize = 3;
    let last = wanted.rsplit('.').next().unwrap_or_default();
    let long = |k: &str| last.chars().count() >= SHORTEST || k.eq_ignore_ascii_case(&wanted);
    known
        .into_iter()
        .filter(|k| long(k))
        .map(|k| (strsim::damerau_levenshtein(&wanted, &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= (wanted.chars().count().max(k.chars().count()) / 3).max(1))
        .min_by_key(|(distance, k)| (*distance, k.to_lowercase()))
        .map(|(_, k)| k)
}

/// "`a`, `b`, `c`", at most eight names.
pub(crate) fn join_quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = names.iter().take(MOST).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text.push_str(", ...");
    }
    text
}

/// The schema of a sink that a query with these output columns feeds.
pub fn schema_of(fields: impl IntoIterator<Item = (String, DataType, bool)>) -> Schema {
    Schema::new(fields.into_iter().map(|(n, t, nullable)| Field::new(n, t, nullable)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        assert_eq!(suggest("sensr_events", ["sensor_events", "devices"]), Some("sensor_events"));
        assert_eq!(suggest("idd", ["id", "name"]), Some("id"));
        assert_eq!(suggest("xyz", ["id", "name"]), None);
    }

    #[test]
    fn relations_are_found_without_regard_to_case() {
        let mut catalog = Catalog::new();
        catalog.register(Relation::new("Events", RelationKind::Stream, None));
        assert!(catalog.relation("EVENTS").is_some());
        assert_eq!(catalog.require("event", Span::default()).unwrap_err().help, ["Did you mean `Events`?"]);
    }
}
