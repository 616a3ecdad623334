//! Folds clauses that may come in any order, each once, into the structs of the tree. Called by the grammar's actions.

use lalrpop_util::ParseError;

use crate::ast::*;
use crate::cut::Tok;
use crate::diagnostic::Diagnostic;
use crate::parse::Context;
use crate::source::Span;
use crate::sql;
use crate::token::{SYNTAX, TokenKind};

/// What a grammar action returns when it refuses.
pub(crate) type ActionError = ParseError<u32, Tok, Box<Diagnostic>>;

/// A diagnostic as a grammar action's error.
pub(crate) fn user(error: Box<Diagnostic>) -> ActionError {
    ParseError::User { error }
}

/// A clause of CREATE STREAM, TABLE or SINK.
pub(crate) enum RelationClause {
    Using(Name, Span),
    Location(Literal, Span),
    Options(Vec<OptionEntry>, Span),
    /// `WITH ('connector' = ...)`.
    With(Vec<OptionEntry>, Span),
    PartitionedBy(Vec<Name>, Span),
    IdentifiedBy(Name, Span),
    RejectsTo(ObjectName, Span),
    Comment(Literal, Span),
}

/// A clause after a streaming query.
pub(crate) enum EmitClause {
    Mode(EmitMode, Span),
    LateData(ObjectName, Span),
    Trigger(Box<Trigger>),
    Checkpoint(Literal, Span),
    Options(Vec<OptionEntry>, Span),
}

/// An optional part of a watermark.
pub(crate) enum WatermarkExtra {
    IdleAfter(Expr, Span),
    MaxSkew(Expr, Span),
}

/// An entry of a column list.
pub(crate) enum ColumnItem {
    Column(Box<ColumnDef>),
    Watermark(Box<Watermark>),
}

/// What may follow a column's type.
pub(crate) enum ColumnConstraint {
    NotNull(Span),
    Default(Box<Expr>),
    Comment(Literal),
}

/// A clause's value and place, set once.
struct Once<T> {
    name: &'static str,
    value: Option<(T, Span)>,
}

impl<T> Once<T> {
    fn new(name: &'static str) -> Once<T> {
        Once { name, value: None }
    }

    fn set(&mut self, value: T, span: Span) -> Result<(), ActionError> {
        if let Some((_, first)) = &self.value {
            return Err(user(Box::new(
                Diagnostic::error(SYNTAX, format!("`{}` is given twice", self.name))
                    .at(span)
                    .with_label(*first, "first given here")
                    .with_help("Keep one of them."),
            )));
        }
        self.value = Some((value, span));
        Ok(())
    }

    fn take(self) -> Option<T> {
        self.value.map(|(v, _)| v)
    }

    /// Refuses the clause where it has no place.
    fn refuse(&self, statement: &str) -> Result<(), ActionError> {
        match &self.value {
            None => Ok(()),
            Some((_, span)) => {
                let d =
                    Diagnostic::error(SYNTAX, format!("`{}` does not belong to `{statement}`", self.name)).at(*span);
                Err(user(Box::new(match statement {
                    "CREATE TABLE" => d.with_help(
                        "A table is read whole, whenever it is read. Write CREATE STREAM for data that keep coming.",
                    ),
                    _ => d,
                })))
            }
        }
    }
}

struct RelationClauses {
    using: Once<Name>,
    location: Once<Literal>,
    options: Once<Vec<OptionEntry>>,
    with: Once<Vec<OptionEntry>>,
    partitioned_by: Once<Vec<Name>>,
    identified_by: Once<Name>,
    rejects_to: Once<ObjectName>,
    comment: Once<Literal>,
}

impl RelationClauses {
    fn collect(clauses: Vec<RelationClause>) -> Result<RelationClauses, ActionError> {
        let mut all = RelationClauses {
            using: Once::new("USING"),
            location: Once::new("LOCATION"),
            options: Once::new("OPTIONS"),
            with: Once::new("WITH"),
            partitioned_by: Once::new("PARTITIONED BY"),
            identified_by: Once::new("IDENTIFIED BY"),
            rejects_to: Once::new("REJECTS TO"),
            comment: Once::new("COMMENT"),
        };
        for clause in clauses {
            match clause {
                RelationClause::Using(v, s) => all.using.set(v, s)?,
                RelationClause::Location(v, s) => all.location.set(v, s)?,
                RelationClause::Options(v, s) => all.options.set(v, s)?,
                RelationClause::With(v, s) => all.with.set(v, s)?,
                RelationClause::PartitionedBy(v, s) => all.partitioned_by.set(v, s)?,
                RelationClause::IdentifiedBy(v, s) => all.identified_by.set(v, s)?,
                RelationClause::RejectsTo(v, s) => all.rejects_to.set(v, s)?,
                RelationClause::Comment(v, s) => all.comment.set(v, s)?,
            }
        }
        all.rewrite_with()?;
        Ok(all)
    }

    /// `WITH ('connector' = 'filesystem', 'path' = p, 'format' = f, ...)` as `USING f LOCATION p OPTIONS (...)`;
    /// any other connector's name as `USING connector`.
    fn rewrite_with(&mut self) -> Result<(), ActionError> {
        let Some((entries, span)) = self.with.value.take() else { return Ok(()) };
        let files = entries.iter().any(|e| {
            e.key.eq_ignore_ascii_case("connector")
                && matches!(&e.value.value, LiteralValue::String(s) if s.eq_ignore_ascii_case("filesystem"))
        });
        let mut rest = Vec::new();
        for entry in entries {
            let named = entry.key.to_ascii_lowercase();
            match named.as_str() {
                "connector" if files => {}
                "connector" => self.using.set(using_name(&entry)?, entry.key_span)?,
                "format" if files => self.using.set(using_name(&entry)?, entry.key_span)?,
                "path" => self.location.set(entry.value, entry.key_span)?,
                _ => rest.push(entry),
            }
        }
        if self.using.value.is_none() {
            let missing = if files { "format" } else { "connector" };
            return Err(user(Box::new(
                Diagnostic::error(SYNTAX, format!("`WITH` names no `{missing}`"))
                    .at(span)
                    .with_help("Write USING and OPTIONS (...) instead of WITH, or add the entry."),
            )));
        }
        if !rest.is_empty() {
            self.options.set(rest, span)?;
        }
        Ok(())
    }

    fn connector(self) -> Connector {
        Connector {
            using: self.using.take(),
            location: self.location.take(),
            options: self.options.take().unwrap_or_default(),
            partitioned_by: self.partitioned_by.take().unwrap_or_default(),
        }
    }
}

fn using_name(entry: &OptionEntry) -> Result<Name, ActionError> {
    match &entry.value.value {
        LiteralValue::String(value) => Ok(Name { value: value.clone(), quoted: false, span: entry.value.span }),
        _ => Err(user(Box::new(
            Diagnostic::error(SYNTAX, format!("`{}` takes a string", entry.key)).at(entry.value.span),
        ))),
    }
}

/// CREATE STREAM (`stream`) or CREATE TABLE.
pub(crate) fn relation(
    stream: bool,
    or_replace: bool,
    if_not_exists: bool,
    name: ObjectName,
    items: Option<Vec<ColumnItem>>,
    clauses: Vec<RelationClause>,
) -> Result<CreateRelation, ActionError> {
    let mut watermark = Once::new("WATERMARK FOR");
    let columns = match items {
        None => None,
        Some(items) => {
            let mut columns = Vec::new();
            for item in items {
                match item {
                    ColumnItem::Column(c) => columns.push(*c),
                    ColumnItem::Watermark(w) => {
                        let span = w.span;
                        watermark.set(*w, span)?;
                    }
                }
            }
            Some(columns)
        }
    };
    let mut all = RelationClauses::collect(clauses)?;
    if !stream {
        watermark.refuse("CREATE TABLE")?;
        all.rejects_to.refuse("CREATE TABLE")?;
        all.identified_by.refuse("CREATE TABLE")?;
    }
    // A list that holds a watermark alone declares no columns.
    let columns = columns.filter(|c: &Vec<ColumnDef>| !c.is_empty());
    Ok(CreateRelation {
        or_replace,
        if_not_exists,
        name,
        columns,
        watermark: watermark.take(),
        identified_by: all.identified_by.value.take().map(|(v, _)| v),
        rejects_to: all.rejects_to.value.take().map(|(v, _)| v),
        comment: all.comment.value.take().map(|(v, _)| v),
        connector: all.connector(),
    })
}

/// CREATE SINK with a connector.
pub(crate) fn sink(name: &ObjectName, clauses: Vec<RelationClause>) -> Result<Connector, ActionError> {
    let all = RelationClauses::collect(clauses)?;
    all.identified_by.refuse("CREATE SINK")?;
    all.rejects_to.refuse("CREATE SINK")?;
    all.comment.refuse("CREATE SINK")?;
    if all.using.value.is_none() {
        return Err(user(Box::new(
            Diagnostic::error(SYNTAX, format!("sink `{}` names no connector", name.dotted())).at(name.span).with_help(
                "Add USING with one of console, memory, parquet, json, csv, text, kafka, delta, iceberg, noop.",
            ),
        )));
    }
    Ok(all.connector())
}

/// A column definition.
pub(crate) fn column(
    name: Name,
    data_type: DataType,
    constraints: Vec<ColumnConstraint>,
    span: Span,
) -> Result<ColumnDef, ActionError> {
    let mut not_null = Once::new("NOT NULL");
    let mut default = Once::new("DEFAULT");
    let mut comment = Once::new("COMMENT");
    for constraint in constraints {
        match constraint {
            ColumnConstraint::NotNull(s) => not_null.set(s, s)?,
            ColumnConstraint::Default(e) => {
                let at = e.span;
                default.set(*e, at)?;
            }
            ColumnConstraint::Comment(c) => {
                let at = c.span;
                comment.set(c, at)?;
            }
        }
    }
    Ok(ColumnDef { name, data_type, not_null: not_null.take(), default: default.take(), comment: comment.take(), span })
}

/// A watermark with its optional parts.
pub(crate) fn watermark(
    expr: Option<Expr>,
    name: Option<Name>,
    delay: Expr,
    extras: Vec<WatermarkExtra>,
    span: Span,
) -> Result<Watermark, ActionError> {
    let mut idle_after = Once::new("IDLE AFTER");
    let mut max_skew = Once::new("MAX SKEW");
    for extra in extras {
        match extra {
            WatermarkExtra::IdleAfter(i, s) => idle_after.set(i, s)?,
            WatermarkExtra::MaxSkew(i, s) => max_skew.set(i, s)?,
        }
    }
    Ok(Watermark { expr, name, delay, idle_after: idle_after.take(), max_skew: max_skew.take(), span })
}

/// `WATERMARK FOR name [AS expr] [DELAY OF delay]`. Without DELAY the expression must be `name - delay`, the form of
/// other dialects.
pub(crate) fn ddl_watermark(
    cx: &Context<'_>,
    name: Name,
    expr: Option<Expr>,
    delay: Option<Expr>,
    extras: Vec<WatermarkExtra>,
    span: Span,
) -> Result<Watermark, ActionError> {
    if let Some(delay) = delay {
        return watermark(expr, Some(name), delay, extras, span);
    }
    let own = |e: &sql::Expr| matches!(e, sql::Expr::Identifier(i) if i.value.eq_ignore_ascii_case(&name.value));
    if let Some(e) = expr
        && let sql::Expr::BinaryOp { left, op: sql::BinaryOperator::Minus, right } = e.sql
        && own(&left)
    {
        // The delay's text begins behind the first minus sign, which is the operator's: a name stands before it.
        let minus = cx.tokens.iter().position(|t| t.kind == TokenKind::Minus && e.span.contains(t.span));
        let start = minus.and_then(|i| cx.tokens.get(i + 1)).map_or(e.span.start, |t| t.span.start);
        let delay = Embedded { sql: *right, clauses: e.clauses, span: Span::new(start, e.span.end) };
        return watermark(None, Some(name), delay, extras, span);
    }
    Err(user(Box::new(
        Diagnostic::error(SYNTAX, format!("the watermark on `{}` has no delay", name.value))
            .at(span)
            .with_help(format!("Write WATERMARK FOR {} DELAY OF INTERVAL 10 MINUTES.", name.value)),
    )))
}

/// EMIT and what follows it; None without any clause.
pub(crate) fn emit(clauses: Vec<EmitClause>) -> Result<Option<Emit>, ActionError> {
    let mut mode = Once::new("EMIT");
    let mut late = Once::new("LATE DATA TO");
    let mut trigger = Once::new("TRIGGER");
    let mut checkpoint = Once::new("CHECKPOINT LOCATION");
    let mut options = Once::new("OPTIONS");
    let mut whole: Option<Span> = None;
    for clause in clauses {
        let span = match clause {
            EmitClause::Mode(m, s) => mode.set((m, s), s).map(|()| s)?,
            EmitClause::LateData(n, s) => late.set(n, s).map(|()| s)?,
            EmitClause::Trigger(t) => {
                let s = t.span;
                trigger.set(*t, s).map(|()| s)?
            }
            EmitClause::Checkpoint(l, s) => checkpoint.set(l, s).map(|()| s)?,
            EmitClause::Options(o, s) => options.set(o, s).map(|()| s)?,
        };
        whole = Some(whole.map_or(span, |w| w.to(span)));
    }
    Ok(whole.map(|span| Emit {
        mode: mode.take(),
        late_data_to: late.take(),
        trigger: trigger.take(),
        checkpoint_location: checkpoint.take(),
        options: options.take().unwrap_or_default(),
        span,
    }))
}
