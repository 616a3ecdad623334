//! Connectors of CREATE statements: names, LOCATION and OPTIONS checked against the registered descriptions.

use ssql_grammar::{Diagnostic, Span, ast};
use ssql_ir::{ConnectorDesc, LocationRule, OptionDesc, OptionKind, OptionScope};

use crate::catalog::{Catalog, ConnectorUse, OptionValue, suggest};
use crate::diag::{Fallible, fail, fail_help};

/// What a relation does with its connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Stream,
    Static,
    Sink,
}

/// The connector of a CREATE statement; an absent USING is `memory`. Mistakes in options are collected.
pub(crate) fn connector<'c>(
    c: &ast::Connector,
    direction: Direction,
    statement: Span,
    catalog: &'c Catalog,
    errors: &mut Vec<Diagnostic>,
) -> Fallible<(ConnectorUse, &'c ConnectorDesc)> {
    let (name, span) = match &c.using {
        Some(using) => (using.value.to_ascii_lowercase(), using.span),
        None => ("memory".to_string(), statement),
    };
    let Some(desc) = catalog.connector(&name) else {
        let known: Vec<&str> = catalog.connectors().map(|d| d.name).collect();
        let help = match suggest(&name, known.iter().copied()) {
            _ if name == "kafka" => {
                "This build is without it: cargo build --release -p ssql --features kafka.".to_owned()
            }
            Some(near) => format!("Did you mean `{near}`?"),
            None => format!("Connectors are: {}.", known.join(", ")),
        };
        return fail_help("DATA_SOURCE_NOT_FOUND", format!("there is no connector `{name}`"), span, help);
    };
    let (able, what) = match direction {
        Direction::Stream => (desc.stream_source, "read as a stream"),
        Direction::Static => (desc.static_source, "read as a table"),
        Direction::Sink => (desc.sink.is_some(), "used as a sink"),
    };
    if !able {
        return fail("UNSUPPORTED_DATA_SOURCE_DIRECTION", format!("the connector `{name}` cannot be {what}"), span);
    }
    let location = match (&c.location, desc.location) {
        (Some(l), LocationRule::Refused) => {
            return fail_help(
                "UNSUPPORTED_FEATURE.LOCATION",
                format!("the connector `{name}` takes no LOCATION"),
                l.span,
                "Leave LOCATION out.",
            );
        }
        (Some(l), LocationRule::Required) => Some(catalog.literal_text(l)?),
        (None, LocationRule::Required) => {
            let by_option = c.options.iter().find(|o| o.key.eq_ignore_ascii_case("path"));
            match by_option {
                Some(o) => Some(catalog.literal_text(&o.value)?),
                None => {
                    return fail_help(
                        "MISSING_LOCATION",
                        format!("the connector `{name}` needs a LOCATION"),
                        span,
                        format!("Add LOCATION '/path/to/{name}/'."),
                    );
                }
            }
        }
        (None, LocationRule::Refused) => None,
    };
    let mut options: Vec<OptionValue> = vec![];
    for entry in &c.options {
        if entry.key.eq_ignore_ascii_case("path") && desc.location == LocationRule::Required {
            continue;
        }
        match option(entry, direction, desc, catalog) {
            Ok(o) => {
                if options.iter().any(|other| other.key.eq_ignore_ascii_case(&o.key)) {
                    let message = format!("the option `{}` is given twice", o.key);
                    errors.push(Diagnostic::error("DUPLICATE_OPTION", message).at(entry.key_span));
                }
                options.push(o);
            }
            Err(d) => errors.push(*d),
        }
    }
    for needed in desc.options.iter().filter(|o| o.required && applies(o, direction)) {
        if !options.iter().any(|o| o.key == needed.name) {
            let message = format!("the connector `{name}` needs the option `{}`", needed.name);
            let d = Diagnostic::error("MISSING_OPTION", message).at(span);
            errors.push(d.with_help(format!("Add OPTIONS ({} '...'): {}", needed.name, needed.doc)));
        }
    }
    let partitioned_by: Vec<String> = c.partitioned_by.iter().map(|n| n.value.clone()).collect();
    if let (Some(first), Some(sink)) = (c.partitioned_by.first(), desc.sink)
        && direction == Direction::Sink
        && !sink.partitioned
    {
        return fail(
            "UNSUPPORTED_FEATURE.PARTITIONED_BY",
            format!("the sink `{name}` takes no PARTITIONED BY"),
            first.span,
        );
    }
    Ok((ConnectorUse { name, location, options, partitioned_by }, desc))
}

fn applies(o: &OptionDesc, direction: Direction) -> bool {
    match o.applies {
        OptionScope::Both => true,
        OptionScope::Stream => direction == Direction::Stream,
        OptionScope::Read => direction != Direction::Sink,
        OptionScope::Write => direction == Direction::Sink,
    }
}

fn option(
    entry: &ast::OptionEntry,
    direction: Direction,
    desc: &ConnectorDesc,
    catalog: &Catalog,
) -> Fallible<OptionValue> {
    let matches = |o: &&OptionDesc| match o.name.strip_suffix('*') {
        Some(prefix) => entry.key.to_ascii_lowercase().starts_with(&prefix.to_ascii_lowercase()),
        None => o.name.eq_ignore_ascii_case(&entry.key),
    };
    let known = || desc.options.iter().filter(|o| applies(o, direction));
    let Some(spec) = known().find(matches) else {
        if desc.options.iter().any(|o| matches(&o)) {
            let message = format!("the option `{}` of `{}` does not apply here", entry.key, desc.name);
            return fail("UNKNOWN_OPTION", message, entry.key_span);
        }
        let message = format!("the connector `{}` has no option `{}`", desc.name, entry.key);
        let help = match suggest(&entry.key, known().map(|o| o.name)) {
            Some(near) => format!("Did you mean `{near}`?"),
            None if known().next().is_none() => "It takes no options here.".to_string(),
            None => format!("Its options are: {}.", known().map(|o| o.name).collect::<Vec<_>>().join(", ")),
        };
        return fail_help("UNKNOWN_OPTION", message, entry.key_span, help);
    };
    let value = catalog.literal_text(&entry.value)?;
    let bad = |what: String| {
        fail_help(
            "INVALID_OPTION_VALUE",
            format!("`{value}` is no value of the option `{}`", spec.name),
            entry.value.span,
            what,
        )
    };
    match &spec.kind {
        OptionKind::Boolean if !matches!(value.to_ascii_lowercase().as_str(), "true" | "false") => {
            return bad("Give true or false.".to_string());
        }
        OptionKind::Integer if value.trim().parse::<u64>().is_err() => return bad("Give a whole number.".to_string()),
        OptionKind::Bytes if !is_size(&value) => return bad("Give a size such as 64m or 1g.".to_string()),
        OptionKind::Duration if crate::bind::interval_of(&text_expr(&value)).is_none() => {
            return bad("Give an interval such as 7d or '10 minutes'.".to_string());
        }
        OptionKind::OneOf(words) if !words.iter().any(|w| w.eq_ignore_ascii_case(&value)) => {
            return match suggest(&value, words.iter().copied()) {
                Some(near) => bad(format!("Did you mean '{near}'?")),
                None => bad(format!("Give one of: {}.", words.join(", "))),
            };
        }
        _ => {}
    }
    let key = if spec.name.ends_with('*') { entry.key.clone() } else { spec.name.to_string() };
    Ok(OptionValue { key, value, span: entry.key_span })
}

fn text_expr(text: &str) -> ssql_ir::Expr {
    // `7d` and `12h` are Spark's short forms of file options.
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "d" => " days",
        "h" => " hours",
        "m" | "min" => " minutes",
        "s" => " seconds",
        "ms" => " milliseconds",
        other => other,
    };
    let literal = ssql_ir::Literal::String(format!("{digits}{unit}"));
    ssql_ir::Expr::literal(literal, ssql_ir::DataType::String)
}

fn is_size(text: &str) -> bool {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &lower[digits.len()..];
    digits.parse::<u64>().is_ok() && matches!(unit, "" | "b" | "k" | "kb" | "m" | "mb" | "g" | "gb" | "t" | "tb")
}
