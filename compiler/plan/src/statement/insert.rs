//! INSERT: rows into a table or memory stream, or a streaming query into a sink.

use ssql_grammar::sql::{self, SetExpr};
use ssql_grammar::{Diagnostic, Span, ast};
use ssql_ir::{CastMode, DataType, Expr, ExprKind, Field, Literal, Schema};

use super::{BatchPlan, Insert, Planned, query};
use crate::bind::{Binder, cast, same_type};
use crate::catalog::{Catalog, Relation, RelationKind, suggest};
use crate::diag::{Fallible, fail, fail_help};
use crate::logical::{Columns, Node, Plan, Query};

pub(super) fn insert(i: &ast::Insert, span: Span, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let relation = catalog.require(&i.target.dotted(), i.target.span).map_err(|d| vec![*d])?;
    match relation.kind {
        RelationKind::Sink => query::into_sink(i, relation, span, catalog),
        RelationKind::View => Err(vec![
            Diagnostic::error(
                "UNSUPPORTED_INSERT.NOT_ALLOWED",
                format!("`{}` is a view and holds no rows", relation.name),
            )
            .at(i.target.span)
            .with_help("Insert into the relation that it reads."),
        ]),
        RelationKind::Stream | RelationKind::Table => rows(i, relation, catalog),
    }
}

fn rows(i: &ast::Insert, relation: &Relation, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    if let Some(emit) = &i.emit {
        let what = relation.kind.noun();
        return Err(vec![
            Diagnostic::error(
                "UNSUPPORTED_INSERT.EMIT",
                format!("`{}` is a {what}, and EMIT writes to sinks", relation.name),
            )
            .at(emit.span)
            .with_help("Create a sink and insert into that, or leave EMIT out to add rows once."),
        ]);
    }
    if let Some(name) = &i.query_name {
        return Err(vec![
            Diagnostic::error("UNSUPPORTED_INSERT.QUERY_NAME", "only a streaming query into a sink has a name")
                .at(name.span),
        ]);
    }
    let memory = relation.connector.as_ref().is_none_or(|c| c.name == "memory");
    if !memory {
        let connector = relation.connector.as_ref().map_or("", |c| c.name.as_str());
        return Err(vec![
            Diagnostic::error(
                "UNSUPPORTED_INSERT.NOT_ALLOWED",
                format!("rows cannot be inserted into `{}`, which is read from {connector}", relation.name),
            )
            .at(i.target.span)
            .with_help("Only relations USING memory take INSERT; write to files with a sink."),
        ]);
    }
    let Some(schema) = &relation.schema else {
        return Err(vec![
            Diagnostic::error("UNABLE_TO_INFER_SCHEMA", "the columns of the target are not known").at(i.target.span),
        ]);
    };
    let targets = targets(i, relation, schema).map_err(|d| vec![*d])?;
    let values = match i.query.sql.body.as_ref() {
        SetExpr::Values(v)
            if i.query.sql.with.is_none() && i.query.sql.order_by.is_none() && i.query.sql.limit_clause.is_none() =>
        {
            Some(v)
        }
        _ => None,
    };
    let bound = match values {
        Some(values) => bind_rows(i, values, &targets, schema, catalog)?,
        None => bind_query(i, &targets, schema, catalog)?,
    };
    let plan = query::batch(bound, catalog);
    let plan = BatchPlan { schema: schema.clone(), ..plan };
    Ok(Planned::Insert(Box::new(Insert {
        relation: relation.name.clone(),
        stream: relation.kind == RelationKind::Stream,
        rows: plan,
    })))
}

/// For each column of the relation the place of its value in the inserted rows.
fn targets(i: &ast::Insert, relation: &Relation, schema: &Schema) -> Fallible<Vec<Option<usize>>> {
    if i.columns.is_empty() {
        return Ok((0..schema.len()).map(Some).collect());
    }
    let mut out = vec![None; schema.len()];
    for (place, name) in i.columns.iter().enumerate() {
        let known = || schema.fields.iter().map(|f| f.name.as_str());
        let Some(at) = schema.fields.iter().position(|f| f.name.eq_ignore_ascii_case(&name.value)) else {
            let message = format!("`{}` has no column `{}`", relation.name, name.value);
            let help = match suggest(&name.value, known()) {
                Some(near) => format!("Did you mean `{near}`?"),
                None => format!("Its columns are: {}.", known().collect::<Vec<_>>().join(", ")),
            };
            return fail_help("UNRESOLVED_COLUMN.WITH_SUGGESTION", message, name.span, help);
        };
        if out[at].replace(place).is_some() {
            return fail("COLUMN_ALREADY_EXISTS", format!("the column `{}` is named twice", name.value), name.span);
        }
    }
    Ok(out)
}

fn arity(given: usize, i: &ast::Insert, targets: &[Option<usize>], span: Span) -> Fallible<()> {
    let wanted = targets.iter().flatten().count();
    if given == wanted {
        return Ok(());
    }
    let condition = match given > wanted {
        true => "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
        false => "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS",
    };
    fail(condition, format!("`{}` takes {wanted} values here, not {given}", i.target.dotted()), span)
}

/// VALUES: each cell is coerced to its column for itself.
fn bind_rows(
    i: &ast::Insert,
    values: &sql::Values,
    targets: &[Option<usize>],
    schema: &Schema,
    catalog: &Catalog,
) -> Result<Query, Vec<Diagnostic>> {
    let mut binder = Binder::new(catalog, &i.query.clauses, i.query.span);
    let mut errors = vec![];
    let mut rows = vec![];
    for row in &values.rows {
        let cells = &row.content;
        let span = cells.first().map_or(i.query.span, |c| binder.span(c));
        if let Err(d) = arity(cells.len(), i, targets, span) {
            errors.push(*d);
            continue;
        }
        let mut bound = vec![];
        for (field, place) in schema.fields.iter().zip(targets) {
            let cell = match place {
                Some(place) => {
                    let at = binder.span(&cells[*place]);
                    binder.bind_constant(&cells[*place]).map(|e| (e, at))
                }
                None => Ok((Expr::literal(Literal::Null, DataType::Null), span)),
            };
            match cell.and_then(|(e, at)| assign(e, field, at)) {
                Ok(e) => bound.push(e),
                Err(d) => errors.push(*d),
            }
        }
        rows.push(bound);
    }
    errors.append(&mut binder.errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut columns = std::mem::take(&mut binder.columns);
    let ids: Vec<u32> = schema.fields.iter().map(|f| columns.add(&f.name, f.data_type.clone(), f.nullable)).collect();
    let output = ids.iter().zip(&schema.fields).map(|(id, f)| (*id, f.name.clone())).collect();
    let plan = Plan::leaf(Node::Values { columns: ids, rows }, i.query.span);
    let mut query =
        Query { plan, output, subqueries: std::mem::take(&mut binder.subqueries), columns, keep_late: false };
    crate::passes::run(crate::passes::BEFORE_CHECK, &mut query, catalog);
    Ok(query)
}

/// INSERT ... SELECT: the output columns become the relation's.
fn bind_query(
    i: &ast::Insert,
    targets: &[Option<usize>],
    schema: &Schema,
    catalog: &Catalog,
) -> Result<Query, Vec<Diagnostic>> {
    let mut query = query::bind(&i.query, catalog)?;
    if query.plan.streaming() {
        return Err(vec![
            Diagnostic::error(
                "UNSUPPORTED_INSERT.STREAMING_QUERY",
                "a streaming query writes to a sink, not to a table",
            )
            .at(i.query.span)
            .with_help("CREATE SINK first and INSERT INTO that sink."),
        ]);
    }
    arity(query.output.len(), i, targets, i.query.span).map_err(|d| vec![*d])?;
    let mut exprs = vec![];
    let mut errors = vec![];
    for (field, place) in schema.fields.iter().zip(targets) {
        let e = match place {
            Some(place) => query.columns.expr(query.output[*place].0),
            None => Expr::literal(Literal::Null, DataType::Null),
        };
        match assign(e, field, i.query.span) {
            Ok(e) => exprs.push((add(&mut query.columns, field), e)),
            Err(d) => errors.push(*d),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let output = exprs.iter().zip(&schema.fields).map(|((id, _), f)| (*id, f.name.clone())).collect();
    let span = query.plan.span;
    let input = std::mem::replace(&mut query.plan, Plan::leaf(Node::Limit { limit: None, offset: 0 }, span));
    query.plan = Plan::over(Node::Project { columns: exprs }, input, span);
    query.output = output;
    Ok(query)
}

fn add(columns: &mut Columns, field: &Field) -> u32 {
    columns.add(&field.name, field.data_type.clone(), field.nullable)
}

/// A value as one of the column's type.
fn assign(e: Expr, field: &Field, span: Span) -> Fallible<Expr> {
    if !field.nullable && matches!(e.kind, ExprKind::Literal(Literal::Null)) {
        return fail_help(
            "NOT_NULL_CONSTRAINT_VIOLATION",
            format!("the column `{}` is NOT NULL", field.name),
            span,
            "Give it a value.",
        );
    }
    if !same_type(&e.data_type, &field.data_type) && !ssql_stdlib::can_store_assign(&e.data_type, &field.data_type) {
        return fail(
            "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
            format!("{} cannot be stored in the column `{}`, which is {}", e.data_type, field.name, field.data_type),
            span,
        );
    }
    Ok(cast(e, &field.data_type, CastMode::Ansi))
}
