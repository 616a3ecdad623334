//! Session settings: their names, aliases of Spark, and how a value is checked.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use ssql_grammar::{Diagnostic, Span};

use crate::catalog::suggest;
use crate::diag::Fallible;

/// How the values of a setting look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    TimeZone,
    Positive,
    Word(&'static [&'static str]),
    Boolean,
    Text,
}

/// A setting with its aliases and default.
struct Spec {
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    default: &'static str,
    doc: &'static str,
}

const SPECS: &[Spec] = &[
    Spec {
        name: "time_zone",
        aliases: &["spark.sql.session.timeZone"],
        kind: Kind::TimeZone,
        default: "UTC",
        doc: "The session's time zone: how timestamps are shown and read.",
    },
    Spec {
        name: "parallelism",
        aliases: &["spark.default.parallelism"],
        kind: Kind::Positive,
        default: "",
        doc: "Worker threads; as many as cores when empty.",
    },
    Spec {
        name: "state.partitions",
        aliases: &["spark.sql.shuffle.partitions"],
        kind: Kind::Positive,
        default: "",
        doc: "Parts of the state that are worked on at the same time; as many as workers when empty.",
    },
    Spec {
        name: "state.store",
        aliases: &["spark.sql.streaming.stateStore.providerClass"],
        kind: Kind::Word(&["memory", "rocksdb"]),
        default: "memory",
        doc: "Where state is kept. Only `memory` is there yet.",
    },
    Spec {
        name: "watermark.policy",
        aliases: &["spark.sql.streaming.multipleWatermarkPolicy"],
        kind: Kind::Word(&["min", "max"]),
        default: "min",
        doc: "The query's watermark is the smallest or the largest of its inputs'.",
    },
    Spec {
        name: "checkpoint.root",
        aliases: &["spark.sql.streaming.checkpointLocation"],
        kind: Kind::Text,
        default: "",
        doc: "Directory below which queries without CHECKPOINT LOCATION keep their checkpoints, each under its name.",
    },
    Spec {
        name: "jit",
        aliases: &[],
        kind: Kind::Word(&["on", "off", "verify"]),
        default: "on",
        doc: "Expressions run as machine code (`on`), interpreted (`off`), or both ways and compared (`verify`).",
    },
    Spec {
        name: "deny.unbounded.state",
        aliases: &[],
        kind: Kind::Boolean,
        default: "false",
        doc: "Refuses queries whose state grows without end, instead of warning.",
    },
    Spec {
        name: "checkpoint.retain",
        aliases: &["spark.sql.streaming.minBatchesToRetain"],
        kind: Kind::Positive,
        default: "100",
        doc: "Batches behind the newest whose offsets, commits, source entries and state stay readable.",
    },
    Spec {
        name: "state.snapshot.bytes",
        aliases: &[],
        kind: Kind::Positive,
        default: "16777216",
        doc: "Least bytes of state changes that are worth a snapshot.",
    },
];

/// The settings as a Markdown table, for `spec/language.md`.
pub fn settings_markdown() -> String {
    let mut out = String::from("| setting | values | default | aliases | meaning |\n|---|---|---|---|---|\n");
    for s in SPECS {
        let values = match s.kind {
            Kind::TimeZone => "a zone".to_string(),
            Kind::Positive => "a number from 1".to_string(),
            Kind::Word(words) => words.join(", "),
            Kind::Boolean => "true, false".to_string(),
            Kind::Text => "text".to_string(),
        };
        let aliases: Vec<String> = s.aliases.iter().map(|a| format!("`{a}`")).collect();
        out.push_str(&format!("| `{}` | {values} | {} | {} | {} |\n", s.name, s.default, aliases.join(", "), s.doc));
    }
    out
}

/// The settings in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Checks a key and a value: the canonical key and the value as it is stored.
    pub fn check(key: &str, value: &str, key_span: Span, value_span: Span) -> Fallible<(&'static str, String)> {
        let spec = spec(key, key_span)?;
        let bad = |what: &str| {
            Diagnostic::error("INVALID_CONF_VALUE", format!("`{value}` is no value of `{}`", spec.name))
                .at(value_span)
                .with_help(what.to_string())
        };
        let box_bad = |what: &str| Box::new(bad(what));
        let value = value.trim();
        let lower = value.to_ascii_lowercase();
        let stored = match spec.kind {
            Kind::TimeZone => {
                time_zone(value).ok_or_else(|| {
                    let mut d = box_bad("Give a zone such as `UTC`, `Europe/Berlin` or `+02:00`.");
                    d.condition = "INVALID_CONF_VALUE.TIME_ZONE".into();
                    d
                })?;
                value.to_string()
            }
            Kind::Positive => match value.parse::<u32>() {
                Ok(n) if n > 0 => value.to_string(),
                _ => return Err(box_bad("Give a whole number above zero.")),
            },
            Kind::Word(words) => {
                match words.iter().find(|w| lower == **w || (key.contains("provider") && lower.contains(*w))) {
                    Some(word) => word.to_string(),
                    // Spark names its memory store after the file system that it is kept on.
                    None if key.contains("provider") && lower.contains("hdfs") => "memory".to_string(),
                    None => return Err(box_bad(&format!("Give one of: {}.", words.join(", ")))),
                }
            }
            Kind::Boolean => match lower.as_str() {
                "true" | "false" => lower,
                _ => return Err(box_bad("Give true or false.")),
            },
            Kind::Text => value.to_string(),
        };
        Ok((spec.name, stored))
    }

    /// Sets a canonical key that [`Settings::check`] gave.
    pub fn set(&mut self, key: &'static str, value: String) {
        self.values.insert(key, value);
    }

    /// Takes a key, or all of them, back to the default.
    pub fn reset(&mut self, key: Option<&str>) {
        match key {
            Some(key) => self.values.retain(|k, _| *k != key),
            None => self.values.clear(),
        }
    }

    /// The value of a canonical key, its default included; empty when it has neither.
    pub fn get(&self, key: &str) -> &str {
        match self.values.get(key) {
            Some(value) => value,
            None => SPECS.iter().find(|s| s.name == key).map(|s| s.default).unwrap_or(""),
        }
    }

    /// All settings with their values, by name.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let mut all: Vec<_> = SPECS.iter().map(|s| (s.name, self.get(s.name).to_string())).collect();
        all.sort();
        all
    }

    /// The canonical name of a key.
    pub fn canonical(key: &str, span: Span) -> Fallible<&'static str> {
        Ok(spec(key, span)?.name)
    }

    /// The session's time zone.
    pub fn time_zone(&self) -> TimeZone {
        time_zone(self.get("time_zone")).unwrap_or(TimeZone::UTC)
    }

    /// Whether unbounded state is refused.
    pub fn deny_unbounded_state(&self) -> bool {
        self.get("deny.unbounded.state") == "true"
    }
}

fn spec(key: &str, span: Span) -> Fallible<&'static Spec> {
    let found = SPECS
        .iter()
        .find(|s| s.name.eq_ignore_ascii_case(key) || s.aliases.iter().any(|a| a.eq_ignore_ascii_case(key)));
    found.ok_or_else(|| {
        let known = SPECS.iter().flat_map(|s| s.aliases.iter().copied().chain([s.name]));
        let d = Diagnostic::error("UNKNOWN_SETTING", format!("there is no setting `{key}`")).at(span);
        Box::new(match suggest(key, known) {
            Some(near) => d.with_help(format!("Did you mean `{near}`?")),
            None => d.with_help(format!("Known: {}.", SPECS.iter().map(|s| s.name).collect::<Vec<_>>().join(", "))),
        })
    })
}

fn time_zone(text: &str) -> Option<TimeZone> {
    if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") {
        return Some(TimeZone::UTC);
    }
    if let Ok(zone) = TimeZone::get(text) {
        return Some(zone);
    }
    // Fixed offsets: `+02:00`, `-5`.
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes) = (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?);
    if !(0..=18).contains(&hours) || !(0..60).contains(&minutes) {
        return None;
    }
    let offset = jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()?;
    Some(offset.to_time_zone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(key: &str, value: &str) -> Fallible<(&'static str, String)> {
        Settings::check(key, value, Span::default(), Span::default())
    }

    #[test]
    fn sparks_names_are_aliases() {
        assert_eq!(check("spark.sql.session.timeZone", "Europe/Berlin").unwrap().0, "time_zone");
        assert_eq!(
            check("spark.sql.streaming.multipleWatermarkPolicy", "MAX").unwrap(),
            ("watermark.policy", "max".into())
        );
    }

    #[test]
    fn unknown_settings_and_values_are_refused_with_a_hint() {
        assert_eq!(check("time_zon", "UTC").unwrap_err().help, ["Did you mean `time_zone`?"]);
        assert_eq!(check("jit", "maybe").unwrap_err().condition, "INVALID_CONF_VALUE");
        assert_eq!(check("parallelism", "0").unwrap_err().condition, "INVALID_CONF_VALUE");
    }
}
