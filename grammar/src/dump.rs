//! The syntax tree as text, for `EXPLAIN AST` and golden files: one node a line, two blanks for each level.
//!
//! SQL fragments print as sqlparser prints its own tree (so they show what was understood, not what was written), with
//! the streaming clauses that were lifted out of them below. No addresses, no positions.

use std::fmt::Write as _;

use crate::ast::*;
use crate::print::{literal, name, object_name};

/// The tree of a whole script.
pub fn dump_script(script: &Script) -> String {
    script.statements.iter().map(dump_statement).collect()
}

/// The tree of one statement, closed by a line end.
pub fn dump_statement(statement: &Statement) -> String {
    let mut dump = Dump { out: String::new(), level: 0 };
    dump.statement(statement);
    dump.out
}

struct Dump {
    out: String,
    level: usize,
}

impl Dump {
    fn line(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.out, "{}{}", "  ".repeat(self.level), text.as_ref());
    }

    fn nest(&mut self, body: impl FnOnce(&mut Self)) {
        self.level += 1;
        body(self);
        self.level -= 1;
    }

    fn sql<T: std::fmt::Display>(&mut self, label: &str, fragment: &Embedded<T>) {
        self.line(format!("{label} {}", fragment.sql));
        self.nest(|d| d.clauses(&fragment.clauses));
    }

    fn clauses(&mut self, c: &StreamClauses) {
        for w in &c.watermarks {
            self.line("relation-watermark");
            self.nest(|d| d.watermark(&w.watermark));
        }
        for _ in &c.within_watermarks {
            self.line("within-watermark");
        }
        for t in &c.table_arguments {
            self.line("table-argument");
            self.nest(|d| t.partition_by.iter().for_each(|e| d.sql("partition-by", e)));
        }
        for _ in &c.stream_reads {
            self.line("stream-read");
        }
    }

    fn watermark(&mut self, w: &Watermark) {
        if let Some(e) = &w.expr {
            self.sql("expr", e);
        }
        if let Some(n) = &w.name {
            self.line(format!("name {}", name(n)));
        }
        self.sql("delay", &w.delay);
        if let Some(e) = &w.idle_after {
            self.sql("idle-after", e);
        }
        if let Some(e) = &w.max_skew {
            self.sql("max-skew", e);
        }
    }

    fn head(&mut self, what: &str, or_replace: bool, if_not_exists: bool, n: &ObjectName) {
        let replace = if or_replace { " or-replace" } else { "" };
        let exists = if if_not_exists { " if-not-exists" } else { "" };
        self.line(format!("{what}{replace}{exists} {}", object_name(n)));
    }

    fn connector(&mut self, c: &Connector) {
        if let Some(n) = &c.using {
            self.line(format!("using {}", name(n)));
        }
        if let Some(l) = &c.location {
            self.line(format!("location {}", literal(l)));
        }
        for n in &c.partitioned_by {
            self.line(format!("partitioned-by {}", name(n)));
        }
        self.options(&c.options);
    }

    fn options(&mut self, options: &[OptionEntry]) {
        for o in options {
            self.line(format!("option {} = {}", o.key, literal(&o.value)));
        }
    }

    fn relation(&mut self, what: &str, c: &CreateRelation) {
        self.head(what, c.or_replace, c.if_not_exists, &c.name);
        self.nest(|d| {
            for column in c.columns.iter().flatten() {
                d.column(column);
            }
            if let Some(w) = &c.watermark {
                d.line("watermark");
                d.nest(|d| d.watermark(w));
            }
            d.connector(&c.connector);
            if let Some(n) = &c.identified_by {
                d.line(format!("identified-by {}", name(n)));
            }
            if let Some(n) = &c.rejects_to {
                d.line(format!("rejects-to {}", object_name(n)));
            }
            if let Some(l) = &c.comment {
                d.line(format!("comment {}", literal(l)));
            }
        });
    }

    fn column(&mut self, c: &ColumnDef) {
        let not_null = if c.not_null.is_some() { " not-null" } else { "" };
        self.line(format!("column {} {}{not_null}", name(&c.name), c.data_type.sql));
        self.nest(|d| {
            if let Some(e) = &c.default {
                d.sql("default", e);
            }
            if let Some(l) = &c.comment {
                d.line(format!("comment {}", literal(l)));
            }
        });
    }

    fn emit(&mut self, emit: Option<&Emit>) {
        let Some(e) = emit else { return };
        if let Some((mode, _)) = e.mode {
            self.line(format!("emit {}", mode.keyword()));
        }
        if let Some(n) = &e.late_data_to {
            self.line(format!("late-data-to {}", object_name(n)));
        }
        match e.trigger.as_ref().map(|t| &t.kind) {
            Some(TriggerKind::ProcessingTime(i)) => self.sql("trigger processing-time", i),
            Some(TriggerKind::AvailableNow) => self.line("trigger available-now"),
            Some(TriggerKind::Once) => self.line("trigger once"),
            Some(TriggerKind::Continuous(i)) => self.sql("trigger continuous", i),
            None => {}
        }
        if let Some(l) = &e.checkpoint_location {
            self.line(format!("checkpoint-location {}", literal(l)));
        }
        self.options(&e.options);
    }

    fn statement(&mut self, s: &Statement) {
        match &s.kind {
            StatementKind::CreateStream(c) => self.relation("create-stream", c),
            StatementKind::CreateTable(c) => self.relation("create-table", c),
            StatementKind::CreateView(v) => {
                self.head("create-view", v.or_replace, v.if_not_exists, &v.name);
                self.nest(|d| {
                    v.columns.iter().for_each(|n| d.line(format!("column {}", name(n))));
                    if let Some(l) = &v.comment {
                        d.line(format!("comment {}", literal(l)));
                    }
                    d.sql("query", &v.query);
                });
            }
            StatementKind::CreateFunction(f) => {
                self.head("create-function", f.or_replace, f.if_not_exists, &f.name);
                self.nest(|d| {
                    for p in &f.params {
                        d.line(format!("param {} {}", name(&p.name), p.data_type.sql));
                        d.nest(|d| p.default.iter().for_each(|e| d.sql("default", e)));
                    }
                    f.returns.iter().for_each(|t| d.sql("returns", t));
                    d.sql("return", &f.body);
                });
            }
            StatementKind::CreateSink(c) => {
                self.head("create-sink", c.or_replace, c.if_not_exists, &c.name);
                self.nest(|d| match &c.body {
                    SinkBody::Connector(connector) => d.connector(connector),
                    SinkBody::ForeachBatch(statements) => {
                        d.line("foreach-batch");
                        d.nest(|d| statements.iter().for_each(|s| d.statement(s)));
                    }
                });
            }
            StatementKind::Drop(x) => {
                let exists = if x.if_exists { " if-exists" } else { "" };
                let kind = x.kind.keyword().to_ascii_lowercase();
                self.line(format!("drop-{kind}{exists} {}", object_name(&x.name)));
            }
            StatementKind::Insert(i) => {
                self.line(format!("insert {}", object_name(&i.target)));
                self.nest(|d| {
                    i.query_name.iter().for_each(|n| d.line(format!("query-name {}", name(n))));
                    i.columns.iter().for_each(|n| d.line(format!("column {}", name(n))));
                    d.sql("query", &i.query);
                    d.emit(i.emit.as_ref());
                });
            }
            StatementKind::Query(q) => {
                self.sql("query", &q.query);
                self.nest(|d| d.emit(q.emit.as_ref()));
            }
            StatementKind::Merge(m) => self.sql("merge", m),
            StatementKind::Show(show) => {
                let rest = match show {
                    Show::QueryStatus(n) | Show::Watermarks(Some(n)) => format!(" {}", name(n)),
                    Show::QueryProgress { query, last } => {
                        let last = last.as_ref().map_or(String::new(), |l| format!(" last {}", literal(l)));
                        format!(" {}{last}", name(query))
                    }
                    _ => String::new(),
                };
                self.line(format!("{}{rest}", show.name().to_ascii_lowercase().replace(' ', "-")));
            }
            StatementKind::Describe(x) => {
                let extended = if x.extended { " extended" } else { "" };
                self.line(format!("describe{extended} {}", object_name(&x.name)));
            }
            StatementKind::StopQuery(q) => {
                let drain = if q.drain { " with-drain" } else { "" };
                self.line(format!("stop-query {}{drain}", name(&q.name)));
            }
            StatementKind::AwaitQuery(a) => {
                self.line(format!("await-query {}", a.name.as_ref().map_or("any".to_string(), name)));
                self.nest(|d| a.timeout.iter().for_each(|i| d.sql("timeout", i)));
            }
            StatementKind::ProcessAllAvailable(q) => {
                self.line(format!(
                    "process-all-available{}",
                    q.as_ref().map_or(String::new(), |n| format!(" {}", name(n)))
                ));
            }
            StatementKind::AdvanceClock(i) => self.sql("advance-clock", i),
            StatementKind::Explain(e) => {
                self.line(format!("explain {}", e.stage.map_or("", ExplainStage::keyword)).trim_end());
                self.nest(|d| d.statement(&e.statement));
            }
            StatementKind::Set(x) => {
                let key = x.key.as_ref().map_or(String::new(), |k| format!(" {}", k.text));
                let value = x.value.as_ref().map_or(String::new(), |v| format!(" = {}", literal(v)));
                self.line(format!("set{key}{value}"));
            }
            StatementKind::Reset(key) => {
                self.line(format!("reset{}", key.as_ref().map_or(String::new(), |k| format!(" {}", k.text))));
            }
        }
    }
}
