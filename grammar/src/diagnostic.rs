//! What the compiler has to say to a user: one [`Diagnostic`] per mistake, rendered with its source line and underline.
//!
//! ```text
//! error[PARSE_SYNTAX_ERROR]: expected `EMIT`, found `EMITT`
//!   --> alerts.ssql:3:1
//!    |
//!  3 | EMITT APPEND;
//!    | ^^^^^
//!    = help: Did you mean `EMIT`?
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::source::{SourceFile, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The script can not run.
    Error,
    /// It runs, but probably not as meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word before the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// A span and what to say under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// Printed behind the underline; may be empty.
    pub text: String,
}

/// One message with its place. The message has no full stop; help and notes are full sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Spark's error condition where there is one: `UNRESOLVED_COLUMN.WITH_SUGGESTION`.
    pub condition: Cow<'static, str>,
    /// What is wrong, in one line.
    pub message: String,
    /// Where; None when the mistake has no place in the script (a missing parameter, a whole-run failure).
    pub primary: Option<Label>,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// Actions that mend it.
    pub help: Vec<String>,
    /// Facts that explain it.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error without a place; add one with [`Diagnostic::at`].
    pub fn error(condition: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, condition, message)
    }

    /// A warning without a place.
    pub fn warning(condition: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, condition, message)
    }

    /// A diagnostic of this severity without a place.
    pub fn new(severity: Severity, condition: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Diagnostic {
        let mut message = message.into();
        // Texts of the standard library are sentences.
        if message.ends_with('.') && !message.ends_with("..") {
            message.pop();
        }
        Diagnostic {
            severity,
            condition: condition.into(),
            message,
            primary: None,
            secondary: Vec::new(),
            help: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the primary span, without text under it.
    pub fn at(self, span: Span) -> Diagnostic {
        self.at_with(span, "")
    }

    /// Sets the primary span and the text behind its underline.
    pub fn at_with(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.primary = Some(Label { span, text: text.into() });
        self
    }

    /// Adds a secondary span: "watermark declared here".
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds an action that mends it, a full sentence.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help.push(help.into());
        self
    }

    /// Adds an explaining fact, a full sentence.
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Whether it stops the script.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The primary span, or an empty one at the start.
    pub fn span(&self) -> Span {
        self.primary.as_ref().map(|l| l.span).unwrap_or_default()
    }

    /// The text form of the module comment, closed by a line end.
    pub fn render(&self, file: &SourceFile, style: Style) -> String {
        let mut out = String::new();
        let paint = Paint { style };
        let head = format!("{}[{}]", self.severity.as_str(), self.condition);
        out.push_str(&paint.severity(self.severity, &head));
        out.push_str(&paint.bold(&format!(": {}", self.message)));
        out.push('\n');

        let mut labels: Vec<(&Label, bool)> = self.primary.iter().map(|l| (l, true)).collect();
        labels.extend(self.secondary.iter().map(|l| (l, false)));
        let last_line = labels.iter().map(|(l, _)| end_line(file, l.span)).max().unwrap_or(1);
        let width = if labels.is_empty() { 1 } else { last_line.to_string().len() };
        let bar = format!("{} {}", " ".repeat(width + 1), paint.frame("|"));

        if let Some(primary) = &self.primary {
            let at = file.line_column(primary.span.start);
            let arrow = paint.frame("-->");
            let _ = writeln!(out, "{}{arrow} {}:{}:{}", " ".repeat(width + 1), file.name(), at.line, at.column);
            out.push_str(&bar);
            out.push('\n');
            let mut previous = None;
            for (label, is_primary) in labels {
                let excerpt = Excerpt { file, paint: &paint, width, severity: self.severity };
                excerpt.print(&mut out, label, is_primary, &mut previous);
            }
        }
        for (word, text) in self.notes.iter().map(|t| ("note", t)).chain(self.help.iter().map(|t| ("help", t))) {
            let equals = paint.frame("=");
            let head = paint.bold(&format!("{word}:"));
            let indent = " ".repeat(width + 2);
            let mut lines = text.lines();
            let _ = writeln!(out, "{indent}{equals} {head} {}", lines.next().unwrap_or(""));
            for line in lines {
                let _ = writeln!(out, "{indent}  {}{line}", " ".repeat(word.len() + 2));
            }
        }
        out
    }

    /// One JSON object on one line, without the line end. Places are 1-based lines and columns (characters) and byte offsets:
    /// `{"severity","condition","message","file","labels":[{"primary","text","start":{"line","column","byte"},"end":{...}}],"help":[],"notes":[]}`.
    pub fn to_json(&self, file: &SourceFile) -> String {
        let mut out = String::from("{\"severity\":");
        json_string(&mut out, self.severity.as_str());
        out.push_str(",\"condition\":");
        json_string(&mut out, &self.condition);
        out.push_str(",\"message\":");
        json_string(&mut out, &self.message);
        out.push_str(",\"file\":");
        json_string(&mut out, file.name());
        out.push_str(",\"labels\":[");
        let labels = self.primary.iter().map(|l| (l, true)).chain(self.secondary.iter().map(|l| (l, false)));
        for (i, (label, primary)) in labels.enumerate() {
            if i > 0 {
                out.push(',');
            }
            let _ = write!(out, "{{\"primary\":{primary},\"text\":");
            json_string(&mut out, &label.text);
            for (key, at) in [("start", label.span.start), ("end", label.span.end)] {
                let place = file.line_column(at);
                let _ = write!(out, ",\"{key}\":{{\"line\":{},\"column\":{},\"byte\":{at}}}", place.line, place.column);
            }
            out.push('}');
        }
        out.push_str("],\"help\":");
        json_strings(&mut out, &self.help);
        out.push_str(",\"notes\":");
        json_strings(&mut out, &self.notes);
        out.push('}');
        out
    }
}

/// A clause as a sentence: `use x` as `Use x.`, for the helps of crates that do not know diagnostics.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let mut out: String = chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars).collect();
    if !out.ends_with(['.', '?', '!']) {
        out.push('.');
    }
    out
}

/// Plain text or terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// No escape sequences.
    Plain,
    /// ANSI colours.
    Colour,
}

struct Paint {
    style: Style,
}

impl Paint {
    fn wrap(&self, code: &str, text: &str) -> String {
        match self.style {
            Style::Plain => text.to_string(),
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }

    fn severity(&self, severity: Severity, text: &str) -> String {
        let code = match severity {
            Severity::Error => "1;31",
            Severity::Warning => "1;33",
            Severity::Note => "1;36",
        };
        self.wrap(code, text)
    }

    fn bold(&self, text: &str) -> String {
        self.wrap("1", text)
    }

    fn frame(&self, text: &str) -> String {
        self.wrap("1;34", text)
    }
}

/// The line of a span's last character.
fn end_line(file: &SourceFile, span: Span) -> u32 {
    let last = if span.is_empty() { span.start } else { span.end - 1 };
    file.lines().line(last.min(file.text().len() as u32))
}

/// A span over more lines than this shows its first and last line only.
const MAX_EXCERPT_LINES: u32 = 6;

/// Columns of a terminal tab stop; tabs are printed as that many blanks so that underlines stand right.
const TAB: usize = 4;

struct Excerpt<'a> {
    file: &'a SourceFile,
    paint: &'a Paint,
    width: usize,
    severity: Severity,
}

impl Excerpt<'_> {
    fn print(&self, out: &mut String, label: &Label, primary: bool, previous: &mut Option<u32>) {
        let lines = self.file.lines();
        let text = self.file.text();
        let first = lines.line(label.span.start.min(text.len() as u32));
        let last = end_line(self.file, label.span);
        for line in first..=last {
            if last - first >= MAX_EXCERPT_LINES && line > first && line < last {
                if line == first + 1 {
                    let _ = writeln!(out, "{}{}", " ".repeat(self.width + 1), self.paint.frame("..."));
                }
                continue;
            }
            let span = lines.line_span(text, line);
            let source = self.file.slice(span);
            if *previous != Some(line) {
                let number = self.paint.frame(&format!(" {line:>w$} |", w = self.width));
                let _ = writeln!(out, "{number} {}", expand_tabs(source));
            }
            *previous = Some(line);
            let from = label.span.start.max(span.start).min(span.end);
            let to = label.span.end.max(from).min(span.end);
            // An indented continuation line is underlined from its first word on.
            let from = if line == first {
                from
            } else {
                let blanks = source.len() - source.trim_start().len();
                (span.start + blanks as u32).min(to)
            };
            let lead = columns(self.file.slice(Span::new(span.start, from)), 0);
            let marked = columns(self.file.slice(Span::new(from, to)), lead).max(1);
            let mark = if primary { "^" } else { "-" };
            let mut under = mark.repeat(marked);
            if line == last && !label.text.is_empty() {
                under = format!("{under} {}", label.text);
            }
            let under = match primary {
                true => self.paint.severity(self.severity, &under),
                false => self.paint.frame(&under),
            };
            let bar = self.paint.frame("|");
            let _ = writeln!(out, "{} {bar} {}{under}", " ".repeat(self.width + 1), " ".repeat(lead));
        }
    }
}

fn expand_tabs(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    for c in line.chars() {
        if c == '\t' {
            let n = TAB - at % TAB;
            out.push_str(&" ".repeat(n));
            at += n;
        } else {
            out.push(if c.is_control() { '\u{fffd}' } else { c });
            at += char_columns(c);
        }
    }
    out
}

/// Terminal columns of a text that begins at column `from`.
fn columns(text: &str, from: usize) -> usize {
    let mut at = from;
    for c in text.chars() {
        at += if c == '\t' { TAB - at % TAB } else { char_columns(c) };
    }
    at - from
}

/// Terminal columns of one character: combining marks take none, East Asian wide characters and emoji two.
fn char_columns(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

fn json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn json_strings(out: &mut String, texts: &[String]) {
    out.push('[');
    for (i, text) in texts.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        json_string(out, text);
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> SourceFile {
        SourceFile::new("a.ssql", "SELECT 'ßé', x\n\tFROM 数据\n  WHERE a;\n")
    }

    fn span_of(file: &SourceFile, text: &str) -> Span {
        let start = file.text().find(text).expect("text stands in the file") as u32;
        Span::new(start, start + text.len() as u32)
    }

    #[test]
    fn underline_counts_characters() {
        let file = file();
        let d = Diagnostic::error("X", "no column `x`").at_with(span_of(&file, "x"), "here").with_help("Name one.");
        assert_eq!(
            d.render(&file, Style::Plain),
            "error[X]: no column `x`\n  --> a.ssql:1:14\n   |\n 1 | SELECT 'ßé', x\n   |              ^ here\n   = help: Name one.\n"
        );
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_underline_in_place() {
        let file = file();
        let d = Diagnostic::error("X", "m").at(span_of(&file, "数据"));
        assert_eq!(
            d.render(&file, Style::Plain),
            "error[X]: m\n  --> a.ssql:2:7\n   |\n 2 |     FROM 数据\n   |          ^^^^\n"
        );
    }

    #[test]
    fn a_span_over_lines_underlines_each() {
        let file = file();
        let d = Diagnostic::warning("W", "m").at_with(span_of(&file, "FROM 数据\n  WHERE a"), "all");
        assert_eq!(
            d.render(&file, Style::Plain),
            "warning[W]: m\n  --> a.ssql:2:2\n   |\n 2 |     FROM 数据\n   |     ^^^^^^^^^\n 3 |   WHERE a;\n   |   ^^^^^^^ all\n"
        );
    }

    #[test]
    fn a_span_at_the_end_of_the_text_still_renders() {
        let file = SourceFile::new("t", "SELECT (1");
        let d = Diagnostic::error("P", "unfinished").at(Span::new(9, 9)).with_label(Span::new(7, 8), "opened here");
        assert_eq!(
            d.render(&file, Style::Plain),
            "error[P]: unfinished\n  --> t:1:10\n   |\n 1 | SELECT (1\n   |          ^\n   |        - opened here\n"
        );
    }

    #[test]
    fn json_is_one_escaped_line() {
        let file = file();
        let d = Diagnostic::error("X", "say \"a\"\n").at(span_of(&file, "x"));
        assert_eq!(
            d.to_json(&file),
            "{\"severity\":\"error\",\"condition\":\"X\",\"message\":\"say \\\"a\\\"\\n\",\"file\":\"a.ssql\",\"labels\":[{\"primary\":true,\"text\":\"\",\"start\":{\"line\":1,\"column\":14,\"byte\":15},\"end\":{\"line\":1,\"column\":15,\"byte\":16}}],\"help\":[],\"notes\":[]}"
        );
    }
}
