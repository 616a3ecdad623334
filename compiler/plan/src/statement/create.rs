//! CREATE STREAM, TABLE, VIEW, FUNCTION, SINK.

use ssql_grammar::{Diagnostic, Span, ast};
use ssql_ir::{DataType, Field, Schema, SchemaRule};

use super::{CreateRelation, Planned, not_executed, query};
use crate::bind::Binder;
use crate::catalog::{Catalog, DeclaredWatermark, Relation, RelationKind, SqlFunction, View, suggest};
use crate::diag::{Fallible, fail, fail_help};
use crate::options::{Direction, connector};

type Statement = Result<Planned, Vec<Diagnostic>>;

/// Whether the name is free; Some(true) if IF NOT EXISTS makes the statement do nothing.
fn name_taken(name: &ast::ObjectName, or_replace: bool, if_not_exists: bool, catalog: &Catalog) -> Fallible<bool> {
    match catalog.relation(&name.dotted()) {
        None => Ok(false),
        Some(_) if if_not_exists => Ok(true),
        Some(_) if or_replace => Ok(false),
        Some(existing) => {
            let d = Diagnostic::error(
                "TABLE_OR_VIEW_ALREADY_EXISTS",
                format!("there is a {} `{}` already", existing.kind.noun(), existing.name),
            )
            .at(name.span)
            .with_help("Choose another name, or write CREATE OR REPLACE, or IF NOT EXISTS.");
            Err(Box::new(d))
        }
    }
}

fn done(relation: Relation, or_replace: bool, exists: bool, errors: Vec<Diagnostic>) -> Statement {
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(Planned::CreateRelation(Box::new(CreateRelation { relation, or_replace, exists })))
}

pub(super) fn relation(c: &ast::CreateRelation, kind: RelationKind, span: Span, catalog: &Catalog) -> Statement {
    let mut errors = vec![];
    let mut keep = |r: Fallible<()>| {
        if let Err(d) = r {
            errors.push(*d);
        }
    };
    let mut relation = Relation::new(c.name.dotted(), kind, None);
    relation.span = span;
    let mut exists = false;
    keep(name_taken(&c.name, c.or_replace, c.if_not_exists, catalog).map(|e| exists = e));
    let mut declared = None;
    let mut column_errors = vec![];
    if let Some(columns) = &c.columns {
        declared = fields(columns, catalog, &mut column_errors);
    }
    let direction = if kind == RelationKind::Stream { Direction::Stream } else { Direction::Static };
    let mut option_errors = vec![];
    match connector(&c.connector, direction, span, catalog, &mut option_errors) {
        Ok((used, desc)) => {
            // Columns that have a mistake of their own are not missing.
            if c.columns.is_none() || declared.is_some() {
                keep(schema(&desc.schema, declared.clone(), c, &used.name, span).map(|s| relation.schema = s));
            }
            relation.connector = Some(used);
        }
        Err(d) => {
            relation.schema = declared.map(Schema::new);
            errors.push(*d);
        }
    }
    errors.extend(column_errors);
    errors.extend(option_errors);
    if let Some(w) = &c.watermark
        && errors.is_empty()
    {
        match declared_watermark(w, relation.schema.as_ref(), catalog) {
            Ok(w) => relation.watermark = Some(w),
            Err(d) => errors.push(*d),
        }
    }
    relation.identified_by = c.identified_by.as_ref().map(|n| n.value.clone());
    if let Some(sink) = &c.rejects_to {
        match catalog.require(&sink.dotted(), sink.span) {
            Ok(r) if r.kind == RelationKind::Sink => relation.rejects_to = Some(r.name.clone()),
            Ok(r) => errors.push(
                Diagnostic::error(
                    "WRONG_COMMAND_FOR_OBJECT_TYPE",
                    format!("rejected records go to a sink, and `{}` is a {}", r.name, r.kind.noun()),
                )
                .at(sink.span),
            ),
            Err(d) => errors.push(*d),
        }
    }
    if let Some(comment) = &c.comment {
        match catalog.literal_text(comment) {
            Ok(text) => relation.comment = Some(text),
            Err(d) => errors.push(*d),
        }
    }
    done(relation, c.or_replace, exists, errors)
}

/// The declared columns; None if one of them has a mistake, all of which go to `errors`.
fn fields(columns: &[ast::ColumnDef], catalog: &Catalog, errors: &mut Vec<Diagnostic>) -> Option<Vec<Field>> {
    let before = errors.len();
    let mut out: Vec<Field> = vec![];
    for (i, c) in columns.iter().enumerate() {
        let same = |other: &&ast::ColumnDef| other.name.value.eq_ignore_ascii_case(&c.name.value);
        if let Some(first) = columns[..i].iter().find(same) {
            let message = format!("the column `{}` is declared twice", c.name.value);
            errors.push(
                Diagnostic::error("COLUMN_ALREADY_EXISTS", message)
                    .at(c.name.span)
                    .with_label(first.name.span, "first declared here")
                    .with_help("Give one of them another name."),
            );
        }
        if let Some(default) = &c.default {
            errors.push(not_executed("DEFAULT", default.span));
        }
        match Binder::new(catalog, &c.data_type.clauses, c.data_type.span).bind_type(&c.data_type.sql) {
            Ok(t) => out.push(Field::new(&c.name.value, t, c.not_null.is_none())),
            Err(d) => errors.push(*d),
        }
    }
    (errors.len() == before).then_some(out)
}

fn schema(
    rule: &SchemaRule,
    declared: Option<Vec<Field>>,
    c: &ast::CreateRelation,
    connector: &str,
    span: Span,
) -> Fallible<Option<Schema>> {
    match (rule, declared) {
        (SchemaRule::Declared, Some(fields)) if !fields.is_empty() => Ok(Some(Schema::new(fields))),
        (SchemaRule::Declared, _) => fail_help(
            "UNABLE_TO_INFER_SCHEMA",
            format!("`{}` needs its columns declared, for {connector} data carry no schema", c.name.dotted()),
            c.connector.using.as_ref().map_or(span, |u| u.span),
            "List them: CREATE STREAM s (ts TIMESTAMP, device STRING, ...) USING ...",
        ),
        (SchemaRule::Fixed(fixed), None) => Ok(Some(fixed.clone())),
        (SchemaRule::Fixed(fixed), Some(fields)) => {
            let same = fields.len() == fixed.len()
                && fields
                    .iter()
                    .zip(&fixed.fields)
                    .all(|(a, b)| a.name.eq_ignore_ascii_case(&b.name) && a.data_type == b.data_type);
            match same || fields.is_empty() {
                true => Ok(Some(fixed.clone())),
                false => {
                    let columns: Vec<String> =
                        fixed.fields.iter().map(|f| format!("{} {}", f.name, f.data_type)).collect();
                    fail_help(
                        "UNSUPPORTED_FEATURE.DECLARED_SCHEMA",
                        format!("the columns of {connector} are fixed"),
                        c.name.span,
                        format!("Leave the column list out; they are: {}.", columns.join(", ")),
                    )
                }
            }
        }
        (SchemaRule::Carried, declared) => Ok(declared.filter(|f| !f.is_empty()).map(Schema::new)),
    }
}

fn declared_watermark(w: &ast::Watermark, schema: Option<&Schema>, catalog: &Catalog) -> Fallible<DeclaredWatermark> {
    let mut binder = Binder::new(catalog, &w.delay.clauses, w.span);
    let spec = binder.watermark_spec(w)?;
    let Some(name) = &w.name else {
        return fail("PARSE_SYNTAX_ERROR", "WATERMARK FOR needs a column", w.span);
    };
    let Some(schema) = schema else {
        return fail_help(
            "UNABLE_TO_INFER_SCHEMA",
            "a watermark needs the columns declared",
            w.span,
            "List the columns, or write the watermark in FROM.",
        );
    };
    let timestamps: Vec<&str> =
        schema.fields.iter().filter(|f| f.data_type == DataType::Timestamp).map(|f| f.name.as_str()).collect();
    let serve = || format!("These columns could serve: {}.", timestamps.join(", "));
    let data_type = match &w.expr {
        Some(e) => {
            let mut binder = Binder::new(catalog, &e.clauses, e.span);
            binder.bind_over(&e.sql, &schema.fields)?.data_type
        }
        None => match schema.fields.iter().find(|f| f.name.eq_ignore_ascii_case(&name.value)) {
            Some(f) => f.data_type.clone(),
            None => {
                let known = schema.fields.iter().map(|f| f.name.as_str());
                let help = match suggest(&name.value, known) {
                    Some(near) => format!("Did you mean `{near}`?"),
                    None => serve(),
                };
                let message = format!("there is no column `{}`", name.value);
                return fail_help("UNRESOLVED_COLUMN.WITH_SUGGESTION", message, name.span, help);
            }
        },
    };
    if data_type != DataType::Timestamp {
        let message = format!("a watermark needs a TIMESTAMP column, and `{}` is {data_type}", name.value);
        let help = if timestamps.is_empty() {
            "Write WATERMARK FOR ts AS CAST(... AS TIMESTAMP) DELAY OF ...".to_string()
        } else {
            serve()
        };
        return fail_help("EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE", message, name.span, help);
    }
    Ok(DeclaredWatermark { column: name.value.clone(), expr: w.expr.clone(), spec })
}

pub(super) fn view(c: &ast::CreateView, span: Span, catalog: &Catalog) -> Statement {
    let mut errors = vec![];
    let mut relation = Relation::new(c.name.dotted(), RelationKind::View, None);
    relation.span = span;
    let exists = match name_taken(&c.name, c.or_replace, c.if_not_exists, catalog) {
        Ok(exists) => exists,
        Err(d) => {
            errors.push(*d);
            false
        }
    };
    match query::bind(&c.query, catalog) {
        Ok(bound) => {
            if !c.columns.is_empty() && c.columns.len() != bound.output.len() {
                errors.push(
                    Diagnostic::error(
                        "CREATE_VIEW_COLUMN_ARITY_MISMATCH",
                        format!(
                            "the query has {} columns, but {} names are given",
                            bound.output.len(),
                            c.columns.len()
                        ),
                    )
                    .at(c.columns[0].span),
                );
            }
        }
        Err(e) => errors.extend(e),
    }
    if let Some(comment) = &c.comment {
        match catalog.literal_text(comment) {
            Ok(text) => relation.comment = Some(text),
            Err(d) => errors.push(*d),
        }
    }
    let columns = c.columns.iter().map(|n| n.value.clone()).collect();
    relation.view = Some(View { columns, query: c.query.clone() });
    done(relation, c.or_replace, exists, errors)
}

pub(super) fn sink(c: &ast::CreateSink, span: Span, catalog: &Catalog) -> Statement {
    let mut errors = vec![];
    let mut relation = Relation::new(c.name.dotted(), RelationKind::Sink, None);
    relation.span = span;
    let exists = match name_taken(&c.name, c.or_replace, c.if_not_exists, catalog) {
        Ok(exists) => exists,
        Err(d) => {
            errors.push(*d);
            false
        }
    };
    match &c.body {
        ast::SinkBody::Connector(used) => match connector(used, Direction::Sink, span, catalog, &mut errors) {
            Ok((used, _)) => relation.connector = Some(used),
            Err(d) => errors.push(*d),
        },
        ast::SinkBody::ForeachBatch(statements) => relation.foreach_batch = Some(statements.clone()),
    }
    done(relation, c.or_replace, exists, errors)
}

pub(super) fn function(c: &ast::CreateFunction, _span: Span, catalog: &Catalog) -> Statement {
    let name = c.name.dotted();
    if catalog.function(&name).is_some() && !c.or_replace {
        if c.if_not_exists {
            return Ok(Planned::CreateFunction(None));
        }
        return Err(vec![
            Diagnostic::error("ROUTINE_ALREADY_EXISTS", format!("there is a function `{name}` already"))
                .at(c.name.span)
                .with_help("Choose another name, or write CREATE OR REPLACE FUNCTION."),
        ]);
    }
    plan_function(c, name, catalog).map(|f| Planned::CreateFunction(Some(Box::new(f)))).map_err(|d| vec![*d])
}

fn plan_function(c: &ast::CreateFunction, name: String, catalog: &Catalog) -> Fallible<SqlFunction> {
    let mut params = vec![];
    let mut fields = vec![];
    for p in &c.params {
        let t = Binder::new(catalog, &p.data_type.clauses, p.data_type.span).bind_type(&p.data_type.sql)?;
        if let Some(default) = &p.default {
            Binder::new(catalog, &default.clauses, default.span).bind_constant(&default.sql)?;
        }
        fields.push(Field::new(&p.name.value, t.clone(), true));
        params.push((p.name.value.clone(), t, p.default.clone()));
    }
    let returns = match &c.returns {
        Some(t) => Some(Binder::new(catalog, &t.clauses, t.span).bind_type(&t.sql)?),
        None => None,
    };
    let body = Binder::new(catalog, &c.body.clauses, c.body.span).bind_over(&c.body.sql, &fields)?;
    if let Some(returns) = &returns
        && !ssql_stdlib::can_cast(&body.data_type, returns)
    {
        return fail(
            "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION",
            format!("the body gives {}, which cannot be {returns}", body.data_type),
            c.body.span,
        );
    }
    Ok(SqlFunction { name, params, returns, body: c.body.clone() })
}
