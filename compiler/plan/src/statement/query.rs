//! Queries: batch, and streaming into a sink or onto the terminal.

use ssql_grammar::{Diagnostic, Span, ast};
use ssql_ir::{EmitMode, Op, Schema};

use super::{BatchPlan, Planned, SinkTarget, StreamingPlan, Trigger, duration, not_executed};
use crate::bind::Binder;
use crate::catalog::{Catalog, OptionValue, Relation, RelationKind, schema_of};
use crate::explain::{logical_text, state_bounds};
use crate::logical::{Node, Query};
use crate::passes;

/// Binds a query and runs the passes that go before the check. All mistakes are collected.
pub(super) fn bind(query: &ast::Query, catalog: &Catalog) -> Result<Query, Vec<Diagnostic>> {
    bind_stream(query, None, catalog)
}

/// As [`bind`], of a query that may keep its late rows.
fn bind_stream(query: &ast::Query, emit: Option<&ast::Emit>, catalog: &Catalog) -> Result<Query, Vec<Diagnostic>> {
    let mut binder = Binder::new(catalog, &query.clauses, query.span);
    let bound = binder.bind(query);
    let mut errors = std::mem::take(&mut binder.errors);
    match bound {
        Ok(mut bound) if errors.is_empty() => {
            bound.keep_late = emit.is_some_and(|e| e.late_data_to.is_some());
            passes::run(passes::BEFORE_CHECK, &mut bound, catalog);
            Ok(bound)
        }
        Ok(_) => Err(errors),
        Err(d) => {
            if !errors.contains(&d) {
                errors.push(*d);
            }
            errors.sort_by_key(|d| d.span());
            Err(errors)
        }
    }
}

/// Output columns of a query.
pub(super) fn schema(query: &Query) -> Schema {
    schema_of(query.output.iter().map(|(id, name)| {
        let info = query.columns.get(*id);
        (name.clone(), info.data_type.clone(), info.nullable)
    }))
}

/// A bound static query as a batch plan.
pub(super) fn batch(mut query: Query, catalog: &Catalog) -> BatchPlan {
    passes::run(passes::AFTER_CHECK, &mut query, catalog);
    let pipeline = crate::lower::lower(&query, "batch", EmitMode::Complete, None);
    let ordered = is_ordered(&query.plan);
    BatchPlan { schema: schema(&query), pipeline, ordered, logical: logical_text(&query) }
}

fn is_ordered(plan: &crate::logical::Plan) -> bool {
    match plan.node {
        Node::Sort { .. } => true,
        Node::Limit { .. } | Node::Project { .. } | Node::Filter { .. } => is_ordered(&plan.inputs[0]),
        _ => false,
    }
}

/// A bare query.
pub(super) fn query(q: &ast::QueryStatement, span: Span, catalog: &Catalog) -> Result<Planned, Vec<Diagnostic>> {
    let bound = bind_stream(&q.query, q.emit.as_ref(), catalog)?;
    match (&q.emit, bound.plan.streaming()) {
        (None, false) => Ok(Planned::Batch(Box::new(batch(bound, catalog)))),
        (Some(emit), true) => {
            let plan = streaming(bound, "console", SinkTarget::Console, Some(emit), None, catalog)?;
            Ok(Planned::Query(Box::new(plan)))
        }
        (None, true) => Err(vec![
            Diagnostic::error(
                "STREAMING_QUERY_WITHOUT_SINK",
                "this query reads a stream, so it never ends, and it says nothing of where its rows go",
            )
            .at(q.query.span)
            .with_help("Add EMIT APPEND to see its rows on the terminal.")
            .with_help("Or write them to a sink: INSERT INTO sink_name SELECT ... EMIT APPEND."),
        ]),
        (Some(emit), false) => Err(vec![static_emit(emit, span)]),
    }
}

/// The refusal of EMIT over static relations.
fn static_emit(emit: &ast::Emit, span: Span) -> Diagnostic {
    let at = if emit.span.is_empty() { span } else { emit.span };
    crate::check::rule("needs-stream").diagnostic(at)
}

/// INSERT INTO a sink.
pub(super) fn into_sink(
    i: &ast::Insert,
    sink: &Relation,
    span: Span,
    catalog: &Catalog,
) -> Result<Planned, Vec<Diagnostic>> {
    if sink.foreach_batch.is_some() {
        return Err(vec![not_executed("CREATE SINK ... FOREACH BATCH", span)]);
    }
    if let Some(column) = i.columns.first() {
        return Err(vec![
            Diagnostic::error("UNSUPPORTED_FEATURE.COLUMN_LIST", "a sink takes its columns from the query")
                .at(column.span)
                .with_help("Leave the column list out and name the columns with AS."),
        ]);
    }
    let bound = bind_stream(&i.query, i.emit.as_ref(), catalog)?;
    if !bound.plan.streaming() {
        return Err(vec![
            Diagnostic::error(
                "WRITE_STREAM_NOT_ALLOWED",
                format!("a query into the sink `{}` must read a stream, and this one reads tables only", sink.name),
            )
            .at(i.query.span)
            .with_help("Read a stream, or insert into a table."),
        ]);
    }
    let name = i.query_name.as_ref().map_or(sink.name.as_str(), |n| n.value.as_str()).to_string();
    let target = SinkTarget::Named(sink.name.clone());
    let plan = streaming(bound, &name, target, i.emit.as_ref(), Some((sink, i.target.span)), catalog)?;
    Ok(Planned::Query(Box::new(plan)))
}

fn streaming(
    mut query: Query,
    name: &str,
    target: SinkTarget,
    emit: Option<&ast::Emit>,
    sink: Option<(&Relation, Span)>,
    catalog: &Catalog,
) -> Result<StreamingPlan, Vec<Diagnostic>> {
    let mode = match emit.and_then(|e| e.mode) {
        None | Some((ast::EmitMode::Append, _)) => EmitMode::Append,
        Some((ast::EmitMode::Update, _)) => EmitMode::Update,
        Some((ast::EmitMode::Complete, _)) => EmitMode::Complete,
    };
    let mode_span = emit.and_then(|e| e.mode).map(|(_, s)| s);
    let mut errors: Vec<Diagnostic> = crate::check::check(&query, mode)
        .into_iter()
        .map(|d| match mode_span {
            Some(s) if d.condition.starts_with("STREAMING_OUTPUT_MODE") => d.with_label(s, "output mode said here"),
            _ => d,
        })
        .collect();
    if let Some((relation, at)) = sink {
        errors.extend(sink_mode(relation, at, mode, catalog));
    }
    let state = state_bounds(&query, mode);
    let mut warnings = vec![];
    for bound in state.iter().filter(|b| b.unbounded) {
        let message = format!("the state of this {} is {}", bound.operator, bound.bound);
        let help = "Add watermarks, and conditions on event time that end old rows.";
        if catalog.settings.deny_unbounded_state() {
            errors.push(Diagnostic::error("UNBOUNDED_STATE", message).at(bound.span).with_help(help));
        } else {
            warnings.push(Diagnostic::warning("UNBOUNDED_STATE", message).at(bound.span).with_help(help));
        }
    }
    let trigger = match emit.and_then(|e| e.trigger.as_ref()).map(|t| (&t.kind, t.span)) {
        None => Ok(Trigger::Default),
        Some((ast::TriggerKind::ProcessingTime(e), _)) => {
            duration(e, "the trigger's interval", catalog).map(|micros| Trigger::ProcessingTime { micros })
        }
        Some((ast::TriggerKind::AvailableNow, _)) => Ok(Trigger::AvailableNow),
        Some((ast::TriggerKind::Once, _)) => Ok(Trigger::Once),
        Some((ast::TriggerKind::Continuous(e), span)) => {
            errors.extend(super::continuous::check(&query.plan, sink.map(|(r, _)| r), span, catalog));
            duration(e, "the trigger's interval", catalog).map(|micros| Trigger::Continuous { micros })
        }
    };
    let trigger = trigger.unwrap_or_else(|mut e| {
        errors.append(&mut e);
        Trigger::Default
    });
    let mut options = vec![];
    for o in emit.map(|e| e.options.as_slice()).unwrap_or_default() {
        match query_option(o, catalog) {
            Ok(o) => options.push(o),
            Err(d) => errors.push(*d),
        }
    }
    if let Some(o) = options.iter().find(|o| o.key == "atEnd" && o.value.eq_ignore_ascii_case("close"))
        && !matches!(trigger, Trigger::AvailableNow | Trigger::Once)
    {
        let message = "`atEnd 'close'` needs a query that ends with its input";
        let help = "Add TRIGGER AVAILABLE NOW, or end the query with STOP QUERY name WITH DRAIN.";
        errors.push(Diagnostic::error("INVALID_OPTION_VALUE", message).at(o.span).with_help(help));
    }
    let checkpoint = match checkpoint(name, emit, sink, catalog) {
        Ok(c) => c,
        Err(d) => {
            errors.push(*d);
            None
        }
    };
    let late_data_to =
        emit.and_then(|e| e.late_data_to.as_ref()).and_then(|n| match catalog.require(&n.dotted(), n.span) {
            Ok(r) if matches!(&target, SinkTarget::Named(main) if *main == r.name) => {
                let message = "late rows and the result go to sinks of their own";
                let help = "Create another sink for the late rows.";
                errors.push(Diagnostic::error("SINK_USED_TWICE", message).at(n.span).with_help(help));
                None
            }
            Ok(r) if r.kind == RelationKind::Sink => {
                errors.extend(sink_mode(r, n.span, EmitMode::Append, catalog));
                if checkpoint.is_none() && sink.is_some() {
                    errors.extend(self::checkpoint(name, emit, Some((r, n.span)), catalog).err().map(|d| *d));
                }
                Some(r.name.clone())
            }
            Ok(r) => {
                let message = format!("late rows go to a sink, and `{}` is a {}", r.name, r.kind.noun());
                errors.push(Diagnostic::error("WRONG_COMMAND_FOR_OBJECT_TYPE", message).at(n.span));
                None
            }
            Err(d) => {
                errors.push(*d);
                None
            }
        });
    if !errors.is_empty() {
        return Err(errors);
    }
    passes::run(passes::AFTER_CHECK, &mut query, catalog);
    let symbol = match &target {
        SinkTarget::Named(sink) => Catalog::symbol(sink),
        SinkTarget::Console => Catalog::symbol("console"),
    };
    let pipeline = crate::lower::lower(&query, name, mode, Some(symbol));
    if let Some(late) = emit.and_then(|e| e.late_data_to.as_ref())
        && !pipeline.nodes.iter().any(has_late_filter)
    {
        let message = "no row of this query can be late: nothing in it goes by a watermark";
        let help =
            "Give the stream a WATERMARK and group, deduplicate or join by its event time, or leave LATE DATA TO out.";
        return Err(vec![Diagnostic::error("NO_LATE_DATA", message).at(late.span).with_help(help)]);
    }
    let mut sources: Vec<String> = vec![];
    query.plan.walk(&mut |p| {
        if let Node::Source { relation, streaming: true, .. } = &p.node
            && !sources.iter().any(|s| **s == **relation)
        {
            sources.push(relation.to_string());
        }
    });
    Ok(StreamingPlan {
        name: name.to_string(),
        sink: target,
        pipeline,
        schema: schema(&query),
        mode,
        trigger,
        checkpoint,
        options,
        late_data_to,
        sources,
        state,
        warnings,
        logical: logical_text(&query),
    })
}

/// Whether an operator drops late rows.
fn has_late_filter(node: &ssql_ir::Node) -> bool {
    match &node.op {
        Op::DropLate { .. } => true,
        Op::StreamJoin { left, right, .. } => left.late.is_some() || right.late.is_some(),
        _ => false,
    }
}

fn sink_mode(sink: &Relation, at: Span, mode: EmitMode, catalog: &Catalog) -> Option<Diagnostic> {
    let connector = sink.connector.as_ref()?;
    let desc = catalog.connector(&connector.name)?.sink?;
    let (taken, word) = match mode {
        EmitMode::Append => (desc.append, "APPEND"),
        EmitMode::Update => (desc.update, "UPDATE"),
        EmitMode::Complete => (desc.complete, "COMPLETE"),
    };
    if taken {
        return None;
    }
    let modes: Vec<&str> = [(desc.append, "APPEND"), (desc.update, "UPDATE"), (desc.complete, "COMPLETE")]
        .into_iter()
        .filter_map(|(yes, w)| yes.then_some(w))
        .collect();
    Some(
        Diagnostic::error(
            "STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE",
            format!("the sink `{}` ({}) does not take {word}", sink.name, connector.name),
        )
        .at(at)
        .with_help(format!("It takes {}.", modes.join(", "))),
    )
}

/// How the value of a query's option looks.
enum QueryOption {
    Text,
    Word(&'static [&'static str]),
    Positive,
    Span,
}

/// Options of a streaming query.
const QUERY_OPTIONS: &[(&str, QueryOption)] = &[
    ("atEnd", QueryOption::Word(&["hold", "close"])),
    ("checkpointLocation", QueryOption::Text),
    ("restart", QueryOption::Word(&["never", "on-failure"])),
    ("restart.maxAttempts", QueryOption::Positive),
    ("restart.delay", QueryOption::Span),
    ("restart.maxDelay", QueryOption::Span),
];

/// A span of time in an option, microseconds: `500ms`, `5s`, `2m`, `1h`, or an interval's text such as `10 seconds`.
pub fn option_span(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let micros = match unit.trim() {
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => {
            return ssql_stdlib::parse_interval(text).filter(|(months, us)| *months == 0 && *us >= 0).map(|(_, us)| us);
        }
    };
    number.parse::<i64>().ok()?.checked_mul(micros)
}

fn query_option(o: &ast::OptionEntry, catalog: &Catalog) -> crate::diag::Fallible<OptionValue> {
    let Some((key, kind)) = QUERY_OPTIONS.iter().find(|(k, _)| k.eq_ignore_ascii_case(&o.key)) else {
        let d = Diagnostic::error("UNKNOWN_OPTION", format!("a query has no option `{}`", o.key)).at(o.key_span);
        return Err(Box::new(match crate::catalog::suggest(&o.key, QUERY_OPTIONS.iter().map(|(k, _)| *k)) {
            Some(near) => d.with_help(format!("Did you mean `{near}`?")),
            None => {
                let names: Vec<&str> = QUERY_OPTIONS.iter().map(|(k, _)| *k).collect();
                d.with_help(format!("Its options are: {}.", names.join(", ")))
            }
        }));
    };
    let value = catalog.literal_text(&o.value)?;
    let expected = match kind {
        QueryOption::Text => None,
        QueryOption::Word(words) => {
            let known = words.iter().any(|w| w.eq_ignore_ascii_case(&value));
            (!known).then(|| format!("Give one of: {}.", words.join(", ")))
        }
        QueryOption::Positive => {
            let known = value.trim().parse::<u32>().is_ok_and(|n| n > 0);
            (!known).then(|| "Give a whole number above zero.".to_string())
        }
        QueryOption::Span => {
            let known = option_span(&value).is_some();
            (!known).then(|| "Give a span of time such as '500ms' or '10 seconds'.".to_string())
        }
    };
    if let Some(help) = expected {
        let message = format!("`{value}` is no value of the option `{key}`");
        return Err(Box::new(Diagnostic::error("INVALID_OPTION_VALUE", message).at(o.value.span).with_help(help)));
    }
    Ok(OptionValue { key: key.to_string(), value, span: o.key_span })
}

fn checkpoint(
    name: &str,
    emit: Option<&ast::Emit>,
    sink: Option<(&Relation, Span)>,
    catalog: &Catalog,
) -> crate::diag::Fallible<Option<String>> {
    if let Some(l) = emit.and_then(|e| e.checkpoint_location.as_ref()) {
        return catalog.literal_text(l).map(Some);
    }
    let option = emit.and_then(|e| e.options.iter().find(|o| o.key.eq_ignore_ascii_case("checkpointLocation")));
    if let Some(o) = option {
        return catalog.literal_text(&o.value).map(Some);
    }
    let durable = sink.and_then(|(r, _)| r.connector.as_ref()).and_then(|c| catalog.connector(&c.name));
    let durable = durable.and_then(|d| d.sink).is_some_and(|s| s.durable);
    let root = catalog.settings.get("checkpoint.root");
    if !root.is_empty() {
        return Ok(Some(format!("{}/{name}", root.trim_end_matches('/'))));
    }
    match sink {
        Some((relation, at)) if durable => Err(Box::new(
            Diagnostic::error(
                "MISSING_CHECKPOINT_LOCATION",
                format!("the sink `{}` keeps data, so the query needs a checkpoint", relation.name),
            )
            .at(at)
            .with_help("Add CHECKPOINT LOCATION 'path' after EMIT, or SET checkpoint.root = 'dir' once."),
        )),
        _ => Ok(None),
    }
}
