//! SHOW and DESCRIBE.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use ssql_engine::{EngineError, Result};
use ssql_grammar::ast::{LiteralValue, Show};
use ssql_plan::{Relation, RelationKind};

use super::relations::connector_name;
use super::{Outcome, Session};

impl Session {
    pub(super) fn show(&self, show: &Show) -> Result<Outcome> {
        let of_kind = |kind: RelationKind| {
            let (names, connectors) = self
                .catalog
                .relations()
                .filter(|r| r.kind == kind)
                .map(|r| (r.name.clone(), if r.view.is_some() { String::new() } else { connector_name(r).to_owned() }))
                .unzip();
            strings(&["name", "connector"], vec![names, connectors])
        };
        Ok(match show {
            Show::Streams => of_kind(RelationKind::Stream),
            Show::Tables => of_kind(RelationKind::Table),
            Show::Views => of_kind(RelationKind::View),
            Show::Sinks => of_kind(RelationKind::Sink),
            Show::Functions => {
                let mut names: Vec<String> = ssql_stdlib::function_names().map(str::to_owned).collect();
                names.extend(self.catalog.functions().map(|f| f.name.clone()));
                names.extend(self.catalog.natives.names().map(str::to_owned));
                names.sort();
                strings(&["function"], vec![names])
            }
            Show::Queries => {
                let mut columns = vec![Vec::new(); 6];
                for handle in self.handles() {
                    let cells = [
                        handle.name().to_owned(),
                        handle.id().to_owned(),
                        handle.run_id().to_owned(),
                        handle.is_active().to_string(),
                        handle.status().message,
                        handle.error().map_or(String::new(), |e| e.condition.clone()),
                    ];
                    columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
                }
                strings(&["name", "id", "run_id", "active", "status", "exception"], columns)
            }
            Show::QueryStatus(name) => {
                let status = self.handle(&name.value)?.status();
                Outcome::Text(status.pretty_json())
            }
            Show::QueryProgress { query, last } => {
                let n = match last.as_ref().map(|l| &l.value) {
                    None => 1,
                    Some(LiteralValue::Number(n)) => n.parse().unwrap_or(1),
                    Some(LiteralValue::Parameter(p)) => {
                        self.catalog.parameter(p).and_then(|v| v.parse().ok()).unwrap_or(1)
                    }
                    Some(_) => return Err(EngineError::internal("LAST takes a number")),
                };
                let progress = self.handle(&query.value)?.recent_progress(n);
                let texts: Vec<String> = progress.iter().map(|p| p.pretty_json()).collect();
                Outcome::Text(texts.join("\n"))
            }
            Show::Watermarks(name) => {
                let handles = match name {
                    Some(name) => vec![self.handle(&name.value)?],
                    None => self.handles(),
                };
                let zone = self.time_zone();
                let time = |micros: i64| {
                    let mut text = String::new();
                    ssql_stdlib::text::write_timestamp(ssql_stdlib::time::to_local(&zone, micros), &mut text);
                    text
                };
                let mut columns = vec![Vec::new(); 6];
                for handle in handles {
                    for line in handle.watermarks() {
                        let cells = [
                            Some(handle.name().to_owned()),
                            Some(line.place),
                            line.watermark.map(time),
                            Some(line.note).filter(|n| !n.is_empty()),
                            line.open.map(|n| n.to_string()),
                            line.next_close.map(time),
                        ];
                        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
                    }
                }
                texts(&["query", "place", "watermark", "note", "open", "next_close"], columns)
            }
        })
    }

    pub(super) fn describe(&self, relation: &Relation, extended: bool) -> Outcome {
        let mut columns = vec![Vec::new(); 3];
        let mut row = |cells: [String; 3]| columns.iter_mut().zip(cells).for_each(|(c, cell)| c.push(cell));
        for field in relation.schema.iter().flat_map(|s| &s.fields) {
            let nullable = if field.nullable { "" } else { "NOT NULL" };
            row([field.name.clone(), field.data_type.to_string(), nullable.to_owned()]);
        }
        if extended {
            let fact = |name: &str, value: &str| [format!("# {name}"), value.to_owned(), String::new()];
            row(fact("kind", relation.kind.noun()));
            if let Some(used) = &relation.connector {
                row(fact("connector", &used.name));
                if let Some(location) = &used.location {
                    row(fact("location", &self.place(location)));
                }
                for option in &used.options {
                    row(fact(&option.key, &option.value));
                }
            }
            if let Some(watermark) = &relation.watermark {
                row(fact("watermark", &format!("{} delay {} us", watermark.column, watermark.spec.delay.micros)));
            }
        }
        strings(&["column", "type", "note"], columns)
    }
}

/// Rows of text columns.
pub fn strings(names: &[&str], columns: Vec<Vec<String>>) -> Outcome {
    texts(names, columns.into_iter().map(|column| column.into_iter().map(Some).collect()).collect())
}

/// Rows of text columns that may hold NULL.
fn texts(names: &[&str], columns: Vec<Vec<Option<String>>>) -> Outcome {
    let fields: Vec<Field> = names.iter().map(|n| Field::new(*n, DataType::Utf8View, true)).collect();
    let arrays = columns.into_iter().map(|c| Arc::new(StringViewArray::from_iter(c)) as ArrayRef).collect();
    let batch =
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length, one per field");
    Outcome::Rows { names: names.iter().map(|n| (*n).to_owned()).collect(), batches: vec![batch] }
}
