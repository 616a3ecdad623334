//! The whole front end from outside: what parses, where it stands, and that printing is stable.

use ssql_grammar::ast::{Emit, EmitMode, Insert, LiteralValue, Query, StatementKind, TriggerKind};
use ssql_grammar::{SourceFile, Style, dump, embed, parse_script, parse_statement, print, sql};

fn parse(text: &str) -> StatementKind {
    let file = SourceFile::new("t.ssql", text);
    match parse_statement(&file) {
        Ok(statement) => statement.kind,
        Err(d) => panic!("{}", d.iter().map(|d| d.render(&file, Style::Plain)).collect::<String>()),
    }
}

fn query(text: &str) -> Query {
    match parse(text) {
        StatementKind::Query(q) => q.query,
        other => panic!("{other:?}"),
    }
}

fn insert(text: &str) -> Insert {
    match parse(text) {
        StatementKind::Insert(i) => i,
        other => panic!("{other:?}"),
    }
}

fn emit(text: &str) -> Emit {
    insert(text).emit.expect("the text has EMIT clauses")
}

fn select(q: &Query) -> &sql::Select {
    match q.sql.body.as_ref() {
        sql::SetExpr::Select(s) => s,
        other => panic!("{other}"),
    }
}

#[test]
fn samples_parse_and_print_stably() {
    for (name, text) in
        [("queries", include_str!("data/queries.ssql")), ("statements", include_str!("data/statements.ssql"))]
    {
        let file = SourceFile::new(name, text);
        let (script, diagnostics) = parse_script(&file);
        let rendered: String = diagnostics.iter().map(|d| d.render(&file, Style::Plain)).collect();
        assert!(diagnostics.is_empty(), "{rendered}");
        assert!(script.statements.len() > 25);

        let once = SourceFile::new("once", print::format_script(&file).expect("it parsed"));
        let (again, diagnostics) = parse_script(&once);
        let rendered: String = diagnostics.iter().map(|d| d.render(&once, Style::Plain)).collect();
        assert!(diagnostics.is_empty(), "{rendered}");
        // Only the case of type names may differ, and forms of other dialects become ours.
        let tree = dump::dump_script(&script).to_lowercase();
        let tree = tree.replace("(data => s, timecol => descriptor(ts), size => ", "(s, descriptor(ts), ");
        assert_eq!(dump::dump_script(&again).to_lowercase(), tree);
        assert_eq!(again.comments.len(), script.comments.len());
        assert_eq!(print::format_script(&once).expect("it parsed"), once.text());
    }
}

#[test]
fn spans_are_script_spans_behind_characters_of_many_bytes() {
    let text =
        "SELECT 'ßé数' AS x,\n  größe + 1 FROM s WATERMARK ts DELAY OF INTERVAL 1 MINUTE AS tab WHERE tab.größe > 1";
    let file = SourceFile::new("t", text);
    let q = query(text);
    let select = select(&q);
    let sql::SelectItem::UnnamedExpr(sum) = &select.projection[1] else { panic!("an expression") };
    let span = embed::span_of(sum).expect("identifiers have spans");
    assert_eq!(file.slice(span), "größe + 1");
    let predicate = select.selection.as_ref().expect("there is a WHERE");
    assert_eq!(file.slice(embed::span_of(predicate).expect("it has a span")), "tab.größe > 1");
    assert_eq!(file.slice(q.clauses.watermarks[0].watermark.span), "WATERMARK ts DELAY OF INTERVAL 1 MINUTE");
}

#[test]
fn watermarks_belong_to_their_relation_only() {
    let q = query(
        "SELECT * FROM (SELECT * FROM (SELECT * FROM a) x) WATERMARK t DELAY OF '1 second' AS y \
         JOIN b WATERMARK u DELAY OF INTERVAL 2 SECONDS ON y.k = b.k JOIN c ON c.k = b.k",
    );
    let from = &select(&q).from[0];
    let outer = q.clauses.watermark(&from.relation).expect("the subquery has one");
    assert_eq!(outer.expr.as_ref().map(|e| e.sql.to_string()).as_deref(), Some("t"));
    let b = q.clauses.watermark(&from.joins[0].relation).expect("b has one");
    assert_eq!(b.delay.sql.to_string(), "INTERVAL 2 SECONDS");
    assert!(q.clauses.watermark(&from.joins[1].relation).is_none());
    let sql::TableFactor::Derived { subquery, alias, .. } = &from.relation else { panic!("a subquery") };
    assert_eq!(alias.as_ref().map(|a| a.name.value.as_str()), Some("y"));
    let sql::SetExpr::Select(inner) = subquery.body.as_ref() else { panic!("a select") };
    assert!(q.clauses.watermark(&inner.from[0].relation).is_none());
    let sql::TableFactor::Table { alias, .. } = &from.joins[0].relation else { panic!("a table") };
    assert!(alias.is_none(), "no alias was written");
}

#[test]
fn a_watermark_names_a_new_column_and_an_alias_may_stand_on_either_side() {
    let q = query(
        "SELECT * FROM s AS a WATERMARK CAST(t AS TIMESTAMP) AS ts DELAY OF '1 minute' IDLE AFTER '5 minutes' MAX SKEW :m, u b",
    );
    let from = &select(&q).from;
    let w = q.clauses.watermark(&from[0].relation).expect("s has one");
    assert_eq!(w.name.as_ref().map(|n| n.value.as_str()), Some("ts"));
    assert_eq!(w.expr.as_ref().map(|e| e.sql.to_string()).as_deref(), Some("CAST(t AS TIMESTAMP)"));
    assert_eq!(w.idle_after.as_ref().map(|e| e.sql.to_string()).as_deref(), Some("'5 minutes'"));
    assert_eq!(w.max_skew.as_ref().map(|e| e.sql.to_string()).as_deref(), Some(":m"));
    assert_eq!(from[0].relation.to_string(), "s AS a");
    assert_eq!(from[1].relation.to_string(), "u b");
}

#[test]
fn watermark_is_a_name_where_no_delay_follows() {
    assert_eq!(query("SELECT watermark FROM s watermark WHERE watermark.x > 1").clauses.watermarks.len(), 0);
}

#[test]
fn window_table_functions_take_relations() {
    for text in [
        "SELECT * FROM SESSION(TABLE s PARTITION BY k, f(a, b), DESCRIPTOR(ts), INTERVAL 2 MINUTES)",
        "SELECT * FROM TABLE(SESSION(DATA => TABLE s PARTITION BY (k, f(a, b)), TIMECOL => DESCRIPTOR(ts), GAP => '2 minutes'))",
    ] {
        let q = query(text);
        let sql::TableFactor::Table { name, args: Some(args), .. } = &select(&q).from[0].relation else {
            panic!("a call: {text}")
        };
        assert_eq!(name.to_string(), "SESSION");
        let (sql::FunctionArg::Unnamed(arg) | sql::FunctionArg::Named { arg, .. }) = &args.args[0] else {
            panic!("an argument: {text}")
        };
        let sql::FunctionArgExpr::Expr(relation) = arg else { panic!("an expression: {text}") };
        assert_eq!(relation.to_string(), "s");
        let table = q.clauses.table_argument(relation).expect("it is a TABLE argument");
        let keys: Vec<String> = table.partition_by.iter().map(|e| e.sql.to_string()).collect();
        assert_eq!(keys, ["k", "f(a, b)"], "{text}");
    }
    let q = query("SELECT * FROM TUMBLE(TABLE (SELECT * FROM s), DESCRIPTOR(ts), '1 minute')");
    assert_eq!(q.clauses.table_arguments.len(), 1);
}

#[test]
fn within_watermark_and_stream_are_found_from_their_nodes() {
    let q = query(
        "SELECT DISTINCT ON (k) WITHIN WATERMARK * FROM STREAM(s) WHERE x IN (SELECT DISTINCT ON (j) j FROM STREAM t)",
    );
    let s = select(&q);
    assert!(q.clauses.within_watermark(s).is_some());
    assert!(q.clauses.stream_read(&s.from[0].relation).is_some());
    assert_eq!((q.clauses.within_watermarks.len(), q.clauses.stream_reads.len()), (1, 2));
    assert_eq!(query("SELECT * FROM stream AS s").clauses.stream_reads.len(), 0);
}

#[test]
fn trailing_clauses_come_in_any_order() {
    let e = emit(
        "INSERT INTO out SELECT * FROM s CHECKPOINT LOCATION :dir EMIT ON WINDOW CLOSE OPTIONS (atEnd 'close') \
         LATE DATA TO late TRIGGER PROCESSING TIME '10 seconds'",
    );
    assert_eq!(e.mode.map(|m| m.0), Some(EmitMode::Append));
    assert!(matches!(e.trigger.expect("given").kind, TriggerKind::ProcessingTime(_)));
    assert_eq!(e.checkpoint_location.expect("given").value, LiteralValue::Parameter("dir".into()));
    assert_eq!(e.late_data_to.expect("given").dotted(), "late");
    assert_eq!(e.options[0].key, "atEnd");
    let e = emit("INSERT INTO out SELECT * FROM s TRIGGER AVAILABLE NOW");
    assert!(e.mode.is_none());
}

#[test]
fn words_of_ours_stay_names() {
    let i = insert("INSERT INTO stream VALUES (1)");
    assert_eq!(i.target.dotted(), "stream");
    let i = insert("INSERT INTO options (trigger, emit) SELECT emit, `emit`, t.emit FROM trigger EMIT CHANGES");
    assert_eq!(i.target.dotted(), "options");
    assert_eq!(i.columns.len(), 2);
    assert_eq!(i.emit.and_then(|e| e.mode).map(|m| m.0), Some(EmitMode::Update));
    parse("CREATE STREAM if (watermark INT, query STRING, using DATE) USING memory");
    parse("DROP TABLE exists");
    parse("DESCRIBE extended");
    parse("STOP QUERY with WITH DRAIN");
}

#[test]
fn ddl_watermarks_have_one_form() {
    for text in [
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts DELAY OF INTERVAL '10' MINUTE) USING memory",
        "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10' MINUTE) USING memory",
    ] {
        let file = SourceFile::new("t", text);
        let StatementKind::CreateStream(c) = parse(text) else { panic!("a stream") };
        let w = c.watermark.expect("given");
        assert!(w.expr.is_none());
        assert_eq!(file.slice(w.delay.span), "INTERVAL '10' MINUTE");
    }
}

#[test]
fn settings_take_any_text() {
    for (text, value) in [
        ("SET time_zone = 'UTC'", LiteralValue::String("UTC".into())),
        ("SET a.b = 10", LiteralValue::Number("10".into())),
        ("SET a.b = true", LiteralValue::Boolean(true)),
        ("SET a.b = :p", LiteralValue::Parameter("p".into())),
        ("SET a.b = org.apache.X + y z", LiteralValue::String("org.apache.X + y z".into())),
    ] {
        let StatementKind::Set(s) = parse(text) else { panic!("SET: {text}") };
        assert_eq!(s.value.expect("given").value, value);
    }
}

#[test]
fn connectors_of_other_dialects_become_using() {
    let StatementKind::CreateStream(c) = parse(
        "CREATE SOURCE s (a INT) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'json', 'x' = '1')",
    ) else {
        panic!("a stream")
    };
    assert_eq!(c.connector.using.expect("given").value, "json");
    assert_eq!(c.connector.location.expect("given").value, LiteralValue::String("/in".into()));
    assert_eq!(c.connector.options.len(), 1);
}

#[test]
fn spark_precedence_holds() {
    let shown = |text: &str| {
        let q = query(text);
        let sql::SelectItem::UnnamedExpr(e) = &select(&q).projection[0] else { panic!("an expression") };
        match e {
            sql::Expr::BinaryOp { op, .. } => op.to_string(),
            other => panic!("{other}"),
        }
    };
    assert_eq!(shown("SELECT 1 + 2 || 'a'"), "||");
    assert_eq!(shown("SELECT 1 + 4 DIV 2"), "+");
    assert_eq!(shown("SELECT a == b OR c"), "OR");
}

#[test]
fn schema_strings_parse() {
    let columns = ssql_grammar::parse_schema(&SourceFile::new("t", "a INT NOT NULL, b: ARRAY<STRUCT<x:INT,y:STRING>>"));
    let columns = columns.expect("it parses");
    assert_eq!(columns.len(), 2);
    assert!(columns[0].not_null.is_some());
    assert_eq!(columns[1].data_type.sql.to_string(), "ARRAY<STRUCT<x INT, y STRING>>");
}
