//! What the front end says about wrong scripts, and that no text brings it down.

use ssql_grammar::{Diagnostic, SourceFile, Style, dump, parse_script, print, token};

fn errors(text: &str) -> Vec<Diagnostic> {
    parse_script(&SourceFile::new("t.ssql", text)).1
}

/// Condition, underlined text and message of the only error.
fn only(text: &str) -> (String, String, String) {
    let file = SourceFile::new("t.ssql", text);
    let (_, mut d) = parse_script(&file);
    assert_eq!(d.len(), 1, "{text}: {d:?}");
    let d = d.remove(0);
    (d.condition.to_string(), file.slice(d.span()).to_string(), d.message)
}

#[test]
fn messages_say_what_was_expected() {
    for (text, place, message) in [
        ("SELEC 1", "SELEC", "expected a statement, found `SELEC`"),
        ("SELECT (1", "", "expected `)`, found the end of the text"),
        ("SELECT 1 +", "", "expected an expression, found the end of the text"),
        ("SELECT a b c FROM t", "c", "expected the end of the query or a further clause, found `c`"),
        ("SELECT CAST(1 AS)", ")", "expected a data type name, found `)`"),
        ("SELECT INTERVAL 5 FORTNIGHTS", "5", "expected an interval unit behind the number"),
        ("SELECT 1.2.3", ".3", "expected the end of the query or a further clause, found `.3`"),
        (
            "SELECT * FROM s EMIT APEND",
            "APEND",
            "expected `APPEND`, `CHANGES`, `COMPLETE`, `FINAL`, `ON` or `UPDATE`, found `APEND`",
        ),
        ("DROP STREAM", "", "expected a name, found the end of the statement"),
        ("CREATE STREAM s (a) USING memory", ")", "expected a type, found `)`"),
        (
            "CREATE SINK s",
            "",
            "expected `COMMENT`, `FOREACH`, `IDENTIFIED`, `LOCATION`, `OPTIONS`, `PARTITIONED`, `REJECTS`, `USING` or `WITH`, found the end of the statement",
        ),
        ("SELECT * FROM s EMIT APPEND EMIT UPDATE", "EMIT UPDATE", "`EMIT` is given twice"),
        ("EXPLAIN EXPLAIN SELECT 1", "EXPLAIN", ""),
        (
            "CREATE TABLE t (a INT, WATERMARK FOR a DELAY OF '1 day')",
            "WATERMARK FOR a DELAY OF '1 day'",
            "`WATERMARK FOR` does not belong to `CREATE TABLE`",
        ),
        ("SELECT * FROM s WATERMARK ts DELAY INTERVAL 1 MINUTE", "", ""),
    ] {
        let (condition, at, said) = only(text);
        assert_eq!(condition, "PARSE_SYNTAX_ERROR", "{text}");
        if !message.is_empty() {
            assert_eq!((at.as_str(), said.as_str()), (place, message), "{text}");
        }
    }
}

#[test]
fn public_conditions_of_spark_are_kept() {
    assert_eq!(only("SELECT X'1G'").0, "INVALID_TYPED_LITERAL");
    assert_eq!(only("SELECT * FROM VALUES (1, 2), (3) AS t(a, b)").0, "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH");
}

#[test]
fn slips_get_a_suggestion() {
    for (text, help) in [
        ("SELEC 1", "Did you mean `SELECT`?"),
        ("CREATE STREM s (a INT)", "Did you mean `STREAM`?"),
        ("SELECT a FORM t", "Did you mean `FROM` for `FORM`?"),
        ("SELECT * FROM s EMITT APPEND", "Did you mean `EMIT` for `EMITT`?"),
        ("SELECT * FROM s EMIT APEND", "Did you mean `APPEND`?"),
        ("SELECT CASE WHEN true THEN 1", "Close it: CASE WHEN ... THEN ... ELSE ... END."),
    ] {
        let found = errors(text);
        assert!(found.iter().any(|d| d.help.iter().any(|h| h == help)), "{text}: {found:?}");
    }
}

#[test]
fn parsing_goes_on_behind_a_mistake() {
    let file = SourceFile::new("t", "SELEC 1; SELECT 2; CREATE STREAM; SELECT 'it''s; fine'; SELECT FROM;");
    let (script, diagnostics) = parse_script(&file);
    assert_eq!((script.statements.len(), diagnostics.len()), (2, 3));
    assert!(diagnostics.windows(2).all(|d| d[0].span().start <= d[1].span().start));
}

/// Runs on a stack as small as a test thread's: nothing may overflow it.
fn survives(text: &str) {
    let file = SourceFile::new("t", text);
    let (script, diagnostics) = parse_script(&file);
    for d in &diagnostics {
        let _ = d.render(&file, ssql_grammar::Style::Plain);
        let _ = d.to_json(&file);
    }
    let _ = dump::dump_script(&script);
    let _ = print::print_script(&file, &script);
    let _ = script.clone();
}

#[test]
fn depth_is_an_error() {
    let n = 5_000;
    for text in [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT {}true", "NOT ".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT true{}", " AND true".repeat(n)),
        format!("SELECT 1{}", " UNION ALL SELECT 1, 2".repeat(n)),
        format!("SELECT {} 1", "CASE WHEN ".repeat(n)),
        format!("SELECT CAST(a AS {}INT{})", "ARRAY<".repeat(n), ">".repeat(n)),
        format!("CREATE TABLE t (a {}INT{})", "ARRAY<".repeat(n), ">".repeat(n)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(n), ")".repeat(n)),
        format!("SELECT {} x", "x -> ".repeat(n)),
        format!("SELECT a{}", "::INT".repeat(n)),
        format!("{} SELECT 1", "EXPLAIN ".repeat(n)),
        format!("SELECT * FROM t {}", "PIVOT (sum(a) FOR b IN (1)) ".repeat(n)),
        format!("SELECT a{}", " IS NULL".repeat(n)),
        format!("SELECT {}1", "INTERVAL ".repeat(n)),
        format!("SELECT {}1", "INTERVAL 1 DAY ".repeat(n)),
    ] {
        let found = errors(&text);
        assert!(!found.is_empty(), "{}", &text[..60]);
        survives(&text);
    }
}

#[test]
fn what_is_just_allowed_is_walked_on_a_small_stack() {
    for text in [
        format!("SELECT 1{}", " + 1".repeat(590)),
        format!("SELECT {}1{}", "(".repeat(90), ")".repeat(90)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(64)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(90), ")".repeat(90)),
    ] {
        assert!(errors(&text).is_empty(), "{}: {:?}", &text[..40], errors(&text));
        survives(&text);
    }
}

#[test]
fn cut_off_scripts_never_panic() {
    for text in [include_str!("data/statements.ssql"), "SELECT 'ß\\u00e9' -- é\n/* x */ FROM `a``b` WATERMARK"] {
        for end in (0..=text.len()).filter(|i| text.is_char_boundary(*i)) {
            survives(&text[..end]);
        }
    }
}

#[test]
fn shuffled_tokens_never_panic() {
    let words: Vec<&str> = include_str!("data/statements.ssql").split_whitespace().collect();
    let extra = [
        "(",
        ")",
        "'",
        "`",
        ";",
        ",",
        "WATERMARK",
        "DELAY OF",
        "TABLE",
        "STREAM",
        ":",
        "é",
        "\\",
        "BEGIN",
        "END",
        "[",
        "]",
    ];
    // A small fixed generator: the same scripts every run.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    };
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..next(30) {
            text.push_str(if next(3) == 0 { extra[next(extra.len())] } else { words[next(words.len())] });
            text.push(' ');
        }
        survives(&text);
    }
}

/// Each statement of the samples with one token left out, doubled or exchanged with the next: whatever is said about it
/// can be shown.
#[test]
fn whatever_is_said_can_be_shown() {
    let samples =
        [include_str!("data/statements.ssql"), "SELECT größe\nSELECT 'ß' FROM 数据 WHERE größe > 5 MINUTEN\nEMIT ß;"];
    let mut told = 0;
    for text in samples {
        let tokens = token::lex(text, &mut Vec::new()).tokens;
        for (i, t) in tokens.iter().enumerate() {
            let (before, this, after) =
                (&text[..t.span.start as usize], &text[t.span.range()], &text[t.span.end as usize..]);
            let next = tokens.get(i + 1).map_or("", |n| &text[n.span.range()]);
            let behind = tokens.get(i + 1).map_or("", |n| &text[n.span.end as usize..]);
            for broken in [
                format!("{before}{after}"),
                format!("{before}{this} {this}{after}"),
                format!("{before}{next} {this}{behind}"),
            ] {
                // The statements around the broken one only cost time.
                let from = broken[..before.len()].rfind(';').map_or(0, |at| at + 1);
                let to =
                    broken[before.len()..].match_indices(';').nth(1).map_or(broken.len(), |(at, _)| before.len() + at);
                let file = SourceFile::new("broken", &broken[from..to]);
                for d in parse_script(&file).1 {
                    told += 1;
                    assert!(d.render(&file, Style::Plain).contains(&d.message), "{broken}");
                    assert!(!d.to_json(&file).is_empty());
                }
            }
        }
    }
    assert!(told > 500, "{told}");
}
