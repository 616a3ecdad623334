//! The canonical printer behind `ssql fmt`.
//!
//! Our clauses stand one to a line, keywords in upper case, forms of other dialects in ours (`CREATE SOURCE`, `WITH
//! ('connector' = ...)`, `EMIT FINAL`, `WATERMARK FOR ts AS ts - d`, ...). SQL text inside a statement is the author's,
//! with its clause words in upper case, blanks at line ends removed and its indentation moved as a whole; it is not laid
//! out anew, but forms of other dialects in it become ours too (`rewrite`). Comments are kept: inside SQL text in place, elsewhere at the
//! end of the line of the clause they follow, or on a line of their own if they had one.
//!
//! Printing what was printed changes nothing: `format(format(x)) == format(x)`.

use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::keyword::Keyword;
use crate::parse::parse_script;
use crate::source::{SourceFile, Span};
use crate::token::{TokenKind, lex};

/// Formats a script. A script with syntax errors is not formatted: its diagnostics come back.
pub fn format_script(file: &SourceFile) -> Result<String, Vec<Diagnostic>> {
    let (script, diagnostics) = parse_script(file);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    Ok(print_script(file, &script))
}

/// Prints one statement without its comments outside SQL text and without `;`. `file` is the script it was parsed from.
pub fn print_statement(file: &SourceFile, statement: &Statement) -> String {
    let mut printer = Printer { file, lines: Vec::new(), indent: 0 };
    printer.statement(statement);
    printer.lines.iter().map(Line::indented).collect::<Vec<_>>().join("\n")
}

/// Prints a parsed script with its comments.
pub fn print_script(file: &SourceFile, script: &Script) -> String {
    let mut out = String::new();
    let mut comments = script.comments.iter().peekable();
    let mut end = 0;
    let mut previous_tall = false;
    for statement in &script.statements {
        let mut printer = Printer { file, lines: Vec::new(), indent: 0 };
        printer.statement(statement);
        let runs = printer.lines.iter().flat_map(|l| l.runs.clone()).collect::<Vec<_>>();

        let mut before = Vec::new();
        let first = comments.peek().map_or(statement.span.start, |c| c.span.start.min(statement.span.start));
        while let Some(comment) = comments.next_if(|c| c.span.start < statement.span.start) {
            before.push(comment.text.clone());
        }
        let mut inside = Vec::new();
        while let Some(comment) =
            comments.next_if(|c| c.span.start < statement.span.end || same_line(file, statement.span.end, c.span.start))
        {
            if !runs.iter().any(|r| r.contains(comment.span)) {
                inside.push(comment);
            }
        }
        let lines = printer.finish(statement.span.end, &inside);
        let tall = !before.is_empty() || lines.len() > 1 || lines.iter().any(|l| l.contains('\n'));
        if !out.is_empty() && (tall || previous_tall || blank_line(file, end, first)) {
            out.push('\n');
        }
        for line in before.iter().chain(&lines) {
            out.push_str(line);
            out.push('\n');
        }
        previous_tall = tall;
        end = statement.span.end;
    }
    if comments.peek().is_some() && !out.is_empty() {
        out.push('\n');
    }
    for comment in comments {
        out.push_str(&comment.text);
        out.push('\n');
    }
    out
}

fn same_line(file: &SourceFile, from: u32, to: u32) -> bool {
    file.lines().line(from) == file.lines().line(to)
}

fn blank_line(file: &SourceFile, from: u32, to: u32) -> bool {
    file.lines().line(to) > file.lines().line(from) + 1
}

/// One clause.
struct Line {
    indent: usize,
    text: String,
    /// Script position of the clause: a comment belongs to the nearest clause before it.
    start: u32,
    /// SQL texts taken over whole, with the comments in them.
    runs: Vec<Span>,
}

impl Line {
    fn indented(&self) -> String {
        format!("{}{}", " ".repeat(self.indent), self.text)
    }
}

struct Printer<'a> {
    file: &'a SourceFile,
    lines: Vec<Line>,
    indent: usize,
}

impl Printer<'_> {
    /// The lines with the statement's `;` and its comments.
    fn finish(mut self, statement_end: u32, comments: &[&Comment]) -> Vec<String> {
        if let Some(last) = self.lines.last_mut() {
            last.text.push(';');
        }
        let mut suffixes: Vec<Vec<&Comment>> = self.lines.iter().map(|_| Vec::new()).collect();
        for comment in comments {
            let at = comment.span.start;
            let home = match at >= statement_end {
                true => self.lines.len().checked_sub(1),
                false => {
                    (0..self.lines.len()).filter(|i| self.lines[*i].start <= at).max_by_key(|i| self.lines[*i].start)
                }
            };
            if let Some(slot) = suffixes.get_mut(home.unwrap_or(0)) {
                slot.push(comment);
            }
        }
        let mut out = Vec::new();
        for (line, suffix) in self.lines.iter().zip(suffixes) {
            let mut text = line.indented();
            let mut own = Vec::new();
            let mut ended = false;
            for comment in suffix {
                let start =
                    self.file.lines().line_span(self.file.text(), self.file.lines().line(comment.span.start)).start;
                let alone = self.file.slice(Span::new(start, comment.span.start)).trim().is_empty();
                if (alone && comment.span.start < statement_end) || ended {
                    own.push(format!("{}{}", " ".repeat(line.indent), comment.text));
                    continue;
                }
                text.push(' ');
                text.push_str(&comment.text);
                ended = comment.text.starts_with("--");
            }
            out.push(text);
            out.extend(own);
        }
        out
    }

    fn line(&mut self, start: u32, text: impl Into<String>) {
        self.lines.push(Line { indent: self.indent, text: text.into(), start, runs: Vec::new() });
    }

    /// A line that ends in SQL text.
    fn line_with(&mut self, start: u32, text: impl Into<String>, runs: Vec<Span>) {
        self.lines.push(Line { indent: self.indent, text: text.into(), start, runs });
    }

    fn sql(&self, span: Span) -> String {
        sql_text(&crate::rewrite::rewrite(self.file.slice(span)), self.indent)
    }

    fn statement(&mut self, s: &Statement) {
        let start = s.span.start;
        match &s.kind {
            StatementKind::CreateStream(c) => self.relation("STREAM", start, c),
            StatementKind::CreateTable(c) => self.relation("TABLE", start, c),
            StatementKind::CreateView(v) => {
                let mut head = create("VIEW", v.or_replace, v.if_not_exists, &v.name);
                if !v.columns.is_empty() {
                    head.push_str(&format!(" ({})", names(&v.columns)));
                }
                if let Some(comment) = &v.comment {
                    head.push_str(&format!(" COMMENT {}", literal(comment)));
                }
                self.line(start, head + " AS");
                self.query(&v.query);
            }
            StatementKind::CreateFunction(f) => self.function(start, f),
            StatementKind::CreateSink(c) => {
                let head = create("SINK", c.or_replace, c.if_not_exists, &c.name);
                match &c.body {
                    SinkBody::Connector(connector) => {
                        self.line(start, head);
                        self.indent += 2;
                        self.connector(connector);
                        self.indent -= 2;
                        self.join_short(start);
                    }
                    SinkBody::ForeachBatch(statements) => {
                        self.line(start, head + " FOREACH BATCH AS");
                        self.line(start, "BEGIN");
                        self.indent += 2;
                        for statement in statements {
                            self.statement(statement);
                            if let Some(last) = self.lines.last_mut() {
                                last.text.push(';');
                            }
                        }
                        self.indent -= 2;
                        self.line(s.span.end.saturating_sub(3), "END");
                    }
                }
            }
            StatementKind::Drop(d) => {
                let exists = if d.if_exists { " IF EXISTS" } else { "" };
                self.line(start, format!("DROP {}{exists} {}", d.kind.keyword(), object_name(&d.name)));
            }
            StatementKind::Insert(i) => {
                if let Some(n) = &i.query_name {
                    self.line(start, format!("CREATE QUERY {} AS", name(n)));
                }
                let columns = if i.columns.is_empty() { String::new() } else { format!(" ({})", names(&i.columns)) };
                // The position that counts is the target's: CREATE QUERY's line is the statement's first.
                let at = if i.query_name.is_some() { i.target.span.start } else { start };
                self.line(at, format!("INSERT INTO {}{columns}", object_name(&i.target)));
                self.query(&i.query);
                self.emit(i.emit.as_ref());
            }
            StatementKind::Query(q) => {
                self.query(&q.query);
                self.emit(q.emit.as_ref());
            }
            StatementKind::Merge(m) => self.line_with(start, self.sql(m.span), vec![m.span]),
            StatementKind::Show(show) => self.line(start, show_text(show)),
            StatementKind::Describe(d) => {
                let extended = if d.extended { " EXTENDED" } else { "" };
                self.line(start, format!("DESCRIBE{extended} {}", object_name(&d.name)));
            }
            StatementKind::StopQuery(q) => {
                let drain = if q.drain { " WITH DRAIN" } else { "" };
                self.line(start, format!("STOP QUERY {}{drain}", name(&q.name)));
            }
            StatementKind::AwaitQuery(a) => {
                let which = a.name.as_ref().map_or("ANY QUERY".to_string(), |n| format!("QUERY {}", name(n)));
                let timeout = self.optional_interval(" TIMEOUT ", a.timeout.as_ref());
                self.line(start, format!("AWAIT {which}{timeout}"));
            }
            StatementKind::ProcessAllAvailable(q) => {
                let of = q.as_ref().map_or(String::new(), |n| format!(" FOR {}", name(n)));
                self.line(start, format!("PROCESS ALL AVAILABLE{of}"));
            }
            StatementKind::AdvanceClock(i) => self.line(start, format!("ADVANCE CLOCK {}", self.interval(i))),
            StatementKind::Explain(e) => {
                let stage = e.stage.map_or(String::new(), |s| format!(" {}", s.keyword()));
                self.line(start, format!("EXPLAIN{stage}"));
                self.statement(&e.statement);
            }
            StatementKind::Set(set) => {
                let mut text = "SET".to_string();
                if let Some(key) = &set.key {
                    text.push_str(&format!(" {}", option_key(&key.text, '`')));
                }
                if let Some(value) = &set.value {
                    // Text that is no single literal stands as the author wrote it.
                    let value = match (&value.value, self.file.slice(value.span)) {
                        (LiteralValue::String(s), source) if s == source => source.to_string(),
                        _ => literal(value),
                    };
                    text.push_str(&format!(" = {value}"));
                }
                let runs = set.value.iter().map(|v| v.span).collect();
                self.line_with(start, text, runs);
            }
            StatementKind::Reset(key) => {
                let key = key.as_ref().map_or(String::new(), |k| format!(" {}", option_key(&k.text, '`')));
                self.line(start, format!("RESET{key}"));
            }
        }
    }

    fn relation(&mut self, kind: &str, start: u32, c: &CreateRelation) {
        let head = create(kind, c.or_replace, c.if_not_exists, &c.name);
        let columns = c.columns.as_deref().unwrap_or_default();
        let listed = !columns.is_empty() || c.watermark.is_some();
        if listed {
            self.line(start, head + " (");
            self.indent += 2;
            let entries = columns.len() + usize::from(c.watermark.is_some());
            for (i, column) in columns.iter().enumerate() {
                let (text, runs) = self.column(column);
                self.line_with(column.span.start, text + if i + 1 < entries { "," } else { "" }, runs);
            }
            if let Some(w) = &c.watermark {
                let (text, runs) = self.watermark(w);
                self.line_with(w.span.start, text, runs);
            }
            self.indent -= 2;
            let list_end = c.watermark.as_ref().map(|w| w.span).into_iter().chain(columns.iter().map(|c| c.span));
            let list_end = list_end.map(|s| s.end).max().unwrap_or(start);
            self.line(self.closing_bracket(list_end), ")");
        } else {
            self.line(start, head);
        }
        self.indent += 2;
        self.connector(&c.connector);
        if let Some(n) = &c.identified_by {
            self.line(n.span.start, format!("IDENTIFIED BY {}", name(n)));
        }
        if let Some(n) = &c.rejects_to {
            self.line(n.span.start, format!("REJECTS TO {}", object_name(n)));
        }
        if let Some(l) = &c.comment {
            self.line(l.span.start, format!("COMMENT {}", literal(l)));
        }
        self.indent -= 2;
        self.join_short(start);
    }

    /// The position of the `)` of a column list, so that a comment behind the last column stays with it.
    fn closing_bracket(&self, from: u32) -> u32 {
        let rest = &self.file.text()[from as usize..];
        let tokens = lex(rest, &mut Vec::new()).tokens;
        tokens.first().map_or(from, |t| from + t.span.start)
    }

    /// Puts the clauses of a short statement behind its head: `CREATE SINK totals USING memory`.
    fn join_short(&mut self, start: u32) {
        const ONE_LINE: usize = 100;
        let Some(head) = self.lines.iter().rposition(|l| l.start == start && l.text.starts_with("CREATE")) else {
            return;
        };
        let head = self.lines[head..].iter().position(|l| l.text == ")").map_or(head, |close| head + close);
        let tail = &self.lines[head..];
        let width: usize = tail.iter().map(|l| l.text.len() + 1).sum();
        // A comment between the clauses needs their lines.
        let from = tail.first().map_or(0, |l| l.start);
        let to = tail.last().map_or(0, |l| l.start);
        let commented = lex(self.file.slice(Span::new(from.min(to), to)), &mut Vec::new()).comments.iter().len() > 0;
        if width > ONE_LINE || commented || tail.len() < 2 {
            return;
        }
        let joined = tail.iter().map(|l| l.text.as_str()).collect::<Vec<_>>().join(" ");
        self.lines.truncate(head + 1);
        self.lines[head].text = joined;
    }

    fn connector(&mut self, c: &Connector) {
        if let Some(using) = &c.using {
            self.line(using.span.start, format!("USING {}", name(using)));
        }
        if let Some(location) = &c.location {
            self.line(location.span.start, format!("LOCATION {}", literal(location)));
        }
        if let Some(first) = c.partitioned_by.first() {
            self.line(first.span.start, format!("PARTITIONED BY ({})", names(&c.partitioned_by)));
        }
        self.options(&c.options);
    }

    fn options(&mut self, options: &[OptionEntry]) {
        let Some(first) = options.first() else { return };
        let entries: Vec<String> =
            options.iter().map(|o| format!("{} {}", option_key(&o.key, '\''), literal(&o.value))).collect();
        self.line(first.key_span.start, format!("OPTIONS ({})", entries.join(", ")));
    }

    fn column(&self, c: &ColumnDef) -> (String, Vec<Span>) {
        let mut runs = vec![c.data_type.span];
        let mut text = format!("{} {}", name(&c.name), self.data_type(&c.data_type));
        if c.not_null.is_some() {
            text.push_str(" NOT NULL");
        }
        if let Some(default) = &c.default {
            text.push_str(&format!(" DEFAULT {}", self.sql(default.span)));
            runs.push(default.span);
        }
        if let Some(comment) = &c.comment {
            text.push_str(&format!(" COMMENT {}", literal(comment)));
        }
        (text, runs)
    }

    fn watermark(&self, w: &Watermark) -> (String, Vec<Span>) {
        let mut runs = vec![w.delay.span];
        let mut text = "WATERMARK FOR".to_string();
        if let Some(n) = &w.name {
            text.push_str(&format!(" {}", name(n)));
        }
        if let Some(e) = &w.expr {
            text.push_str(&format!(" AS {}", self.sql(e.span)));
            runs.push(e.span);
        }
        text.push_str(&format!(" DELAY OF {}", self.interval(&w.delay)));
        text.push_str(&self.optional_interval(" IDLE AFTER ", w.idle_after.as_ref()));
        text.push_str(&self.optional_interval(" MAX SKEW ", w.max_skew.as_ref()));
        runs.extend(w.idle_after.iter().chain(&w.max_skew).map(|e| e.span));
        (text, runs)
    }

    fn function(&mut self, start: u32, f: &CreateFunction) {
        let mut runs = vec![f.body.span];
        let mut params = Vec::new();
        for p in &f.params {
            let default = p.default.as_ref().map_or(String::new(), |d| format!(" DEFAULT {}", self.sql(d.span)));
            params.push(format!("{} {}{default}", name(&p.name), self.data_type(&p.data_type)));
            runs.push(p.data_type.span);
            runs.extend(p.default.iter().map(|d| d.span));
        }
        let returns = f.returns.as_ref().map_or(String::new(), |t| format!(" RETURNS {}", self.data_type(t)));
        runs.extend(f.returns.iter().map(|t| t.span));
        let head = create("FUNCTION", f.or_replace, f.if_not_exists, &f.name);
        self.line_with(start, format!("{head}({}){returns}", params.join(", ")), runs.clone());
        self.indent += 2;
        self.line_with(f.body.span.start, format!("RETURN {}", self.sql(f.body.span)), vec![f.body.span]);
        self.indent -= 2;
    }

    fn query(&mut self, q: &Query) {
        self.line_with(q.span.start, self.sql(q.span), vec![q.span]);
    }

    fn emit(&mut self, emit: Option<&Emit>) {
        let Some(e) = emit else { return };
        if let Some((mode, span)) = e.mode {
            self.line(span.start, format!("EMIT {}", mode.keyword()));
        }
        if let Some(sink) = &e.late_data_to {
            self.line(sink.span.start, format!("LATE DATA TO {}", object_name(sink)));
        }
        if let Some(t) = &e.trigger {
            let kind = match &t.kind {
                TriggerKind::ProcessingTime(i) => format!("PROCESSING TIME {}", self.interval(i)),
                TriggerKind::AvailableNow => "AVAILABLE NOW".to_string(),
                TriggerKind::Once => "ONCE".to_string(),
                TriggerKind::Continuous(i) => format!("CONTINUOUS {}", self.interval(i)),
            };
            self.line(t.span.start, format!("TRIGGER {kind}"));
        }
        if let Some(path) = &e.checkpoint_location {
            self.line(path.span.start, format!("CHECKPOINT LOCATION {}", literal(path)));
        }
        self.options(&e.options);
    }

    /// A simple type in upper case; a nested one as written, since it holds names.
    fn data_type(&self, t: &DataType) -> String {
        let text = self.sql(t.span);
        if text.contains(['<', '`', '"', '\n']) { text } else { text.to_ascii_uppercase() }
    }

    fn interval(&self, e: &Expr) -> String {
        let text = self.file.slice(e.span);
        let mut out = String::new();
        for token in lex(text, &mut Vec::new()).tokens {
            let piece = &text[token.span.range()];
            let glued = out.is_empty() || out.ends_with([':', '-', '(', '.']) || matches!(piece, ")" | "," | "." | "(");
            if !glued {
                out.push(' ');
            }
            match Keyword::lookup(piece).is_some() || crate::lift::UNITS.iter().any(|u| u.eq_ignore_ascii_case(piece)) {
                true if !out.ends_with(':') => out.push_str(&piece.to_ascii_uppercase()),
                _ => out.push_str(piece),
            }
        }
        out
    }

    fn optional_interval(&self, words: &str, e: Option<&Expr>) -> String {
        e.map_or(String::new(), |e| format!("{words}{}", self.interval(e)))
    }
}

fn create(kind: &str, or_replace: bool, if_not_exists: bool, name: &ObjectName) -> String {
    let replace = if or_replace { " OR REPLACE" } else { "" };
    let exists = if if_not_exists { " IF NOT EXISTS" } else { "" };
    format!("CREATE{replace} {kind}{exists} {}", object_name(name))
}

fn show_text(show: &Show) -> String {
    let head = show.name();
    match show {
        Show::QueryStatus(n) => format!("{head} {}", name(n)),
        Show::QueryProgress { query, last } => {
            let last = last.as_ref().map_or(String::new(), |l| format!(" LAST {}", literal(l)));
            format!("{head} {}{last}", name(query))
        }
        Show::Watermarks(Some(n)) => format!("{head} FOR {}", name(n)),
        _ => head.to_string(),
    }
}

/// A name as it can stand in a script.
pub fn name(n: &Name) -> String {
    if n.quoted || !is_word(&n.value) { format!("`{}`", n.value.replace('`', "``")) } else { n.value.clone() }
}

/// A dotted name as it can stand in a script.
pub fn object_name(n: &ObjectName) -> String {
    n.parts.iter().map(name).collect::<Vec<_>>().join(".")
}

fn names(list: &[Name]) -> String {
    list.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn is_word(text: &str) -> bool {
    let tokens = lex(text, &mut Vec::new()).tokens;
    matches!(&tokens[..], [t] if t.kind == TokenKind::Word && t.span.end as usize == text.len())
}

fn option_key(key: &str, quote: char) -> String {
    if key.split('.').all(is_word) {
        return key.to_string();
    }
    match quote {
        '`' => format!("`{}`", key.replace('`', "``")),
        _ => string(key),
    }
}

/// A literal as it can stand in a script.
pub fn literal(l: &Literal) -> String {
    match &l.value {
        LiteralValue::String(s) => string(s),
        LiteralValue::Number(n) => n.clone(),
        LiteralValue::Boolean(b) => b.to_string(),
        LiteralValue::Parameter(p) => format!(":{p}"),
    }
}

fn string(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\'' => out.push_str("''"),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Words of a query that no name can be taken for.
const UPPER: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "HAVING",
    "JOIN",
    "ON",
    "AND",
    "OR",
    "NOT",
    "AS",
    "IN",
    "IS",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "DISTINCT",
    "VALUES",
    "MERGE",
    "INTO",
    "LIMIT",
];

/// Words of a MERGE, beside those of a query.
const UPPER_IN_MERGE: &[&str] = &["USING", "MATCHED", "UPDATE", "SET", "INSERT", "DELETE"];

/// The author's SQL with clause words in upper case, no blanks at line ends, and all lines but the first indented so
/// that the least indented of them stands at `indent`, the others as far to the right of it as before. Lines that begin
/// inside a string or comment are left alone.
fn sql_text(text: &str, indent: usize) -> String {
    let lexed = lex(text, &mut Vec::new());
    let mut out = text.to_string();
    let merge = lexed.tokens.first().is_some_and(|t| text[t.span.range()].eq_ignore_ascii_case("MERGE"));
    let further = if merge { UPPER_IN_MERGE } else { &[] };
    for (i, token) in lexed.tokens.iter().enumerate() {
        let word = &text[token.span.range()];
        let neighbour = |at: Option<usize>, what: &[&str]| {
            at.and_then(|at| lexed.tokens.get(at))
                .is_some_and(|t| what.iter().any(|w| text[t.span.range()].eq_ignore_ascii_case(w)))
        };
        let by = ["GROUP", "ORDER", "PARTITION"];
        let clause = UPPER.iter().chain(further).any(|u| u.eq_ignore_ascii_case(word))
            || (by.iter().any(|u| u.eq_ignore_ascii_case(word)) && neighbour(Some(i + 1), &["BY"]))
            || (word.eq_ignore_ascii_case("BY") && neighbour(i.checked_sub(1), &by));
        let named = neighbour(i.checked_sub(1), &[".", "AS", ":"]) || neighbour(Some(i + 1), &[".", "=>"]);
        // Behind AS, behind or before a dot, and before `=>` stands a name, whatever its spelling.
        if token.kind == TokenKind::Word && clause && !named {
            out.replace_range(token.span.range(), &word.to_ascii_uppercase());
        }
    }
    let spans: Vec<Span> = lexed.tokens.iter().map(|t| t.span).chain(lexed.comments.iter().map(|c| c.span)).collect();
    let inside = |at: usize| spans.iter().any(|s| (s.start as usize) < at && at < s.end as usize);
    let mut lines: Vec<(bool, &str)> = Vec::new();
    let mut at = 0;
    for line in out.split('\n') {
        let end = at + line.len();
        // Blanks at the end count as text when the line ends inside a string.
        let trimmed = if inside(end) { line } else { line.trim_end() };
        lines.push((at > 0 && inside(at), trimmed));
        at = end + 1;
    }
    let blanks = |l: &str| l.len() - l.trim_start_matches([' ', '\t']).len();
    let least =
        lines.iter().skip(1).filter(|(inside, l)| !inside && !l.is_empty()).map(|(_, l)| blanks(l)).min().unwrap_or(0);
    let mut result = String::with_capacity(out.len());
    for (i, (inside, line)) in lines.iter().enumerate() {
        if i > 0 {
            result.push('\n');
        }
        if i > 0 && !inside && !line.is_empty() {
            let deep = blanks(line).saturating_sub(least) + indent;
            result.push_str(&" ".repeat(deep));
            result.push_str(line.trim_start_matches([' ', '\t']));
        } else {
            result.push_str(line);
        }
    }
    result
}
