//! `ssql fmt` over everything that the repository holds: printing again changes nothing, and what is printed means the
//! same.

use ssql_grammar::print::format_script;
use ssql_grammar::{Diagnostic, SourceFile, dump, parse_script};
use ssql_tests::{files, root};

/// Every script, and the statements of every `.slt`, by where they stand.
fn scripts() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for path in files(&root(), "ssql") {
        all.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
    }
    for path in files(&root().join("tests/slt"), "slt") {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((i, line)) = lines.next() {
            if !(line.starts_with("statement ") || line.starts_with("query ")) {
                continue;
            }
            let mut statement = String::new();
            while let Some((_, line)) = lines.next_if(|(_, l)| !l.trim().is_empty() && *l != "----") {
                statement.push_str(line);
                statement.push('\n');
            }
            all.push((format!("{}:{}", path.display(), i + 1), statement));
        }
    }
    all
}

/// The forms that are rewritten inside queries: their trees differ by design, and `aliases_mean_the_same` compares plans.
fn has_aliases(text: &str) -> bool {
    let upper = text.to_uppercase();
    ["_START(", "_END(", "_ROWTIME("].iter().any(|w| upper.contains(w)) || upper.contains("=>")
}

#[test]
fn printing_again_changes_nothing_and_the_meaning_stays() {
    let (mut n, mut faults) = (0, Vec::new());
    for (place, text) in scripts() {
        let file = SourceFile::new(&place, text.clone());
        let (tree, found) = parse_script(&file);
        if found.iter().any(Diagnostic::is_error) {
            continue;
        }
        n += 1;
        let once = SourceFile::new(&place, format_script(&file).unwrap());
        match format_script(&once) {
            Ok(twice) if twice == once.text() => {}
            Ok(twice) => {
                faults.push(format!("{place}: printed again:\n{}", ssql_tests::difference(once.text(), &twice)))
            }
            Err(d) => faults.push(format!("{place}: what was printed does not parse: {d:?}")),
        }
        let (again, _) = parse_script(&once);
        let (before, after) = (dump::dump_script(&tree), dump::dump_script(&again));
        if before != after && !has_aliases(&text) {
            faults.push(format!("{place}: another tree:\n{}", ssql_tests::difference(&before, &after)));
        }
        if tree.comments.len() != again.comments.len() {
            faults.push(format!("{place}: {} comments became {}", tree.comments.len(), again.comments.len()));
        }
    }
    assert!(n > 1000, "only {n} scripts parsed");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn aliases_mean_the_same() {
    let relations = "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) USING memory;\n";
    for query in [
        "SELECT TUMBLE_START(ts, INTERVAL '5' MINUTE), count(*) AS n FROM s GROUP BY TUMBLE(ts, INTERVAL '5' MINUTE) EMIT CHANGES",
        "SELECT k, CAST(HOP_END(ts, '1 minute', '2 minutes') AS DATE) AS d FROM s GROUP BY k, HOP(ts, '1 minute', '2 minutes') EMIT UPDATE",
        "SELECT k FROM TABLE(TUMBLE(SIZE => INTERVAL 10 MINUTES, DATA => TABLE s, TIMECOL => DESCRIPTOR(ts))) AS w EMIT CHANGES",
        "SELECT k, SESSION_START(ts, '1 minute') AS b, count(*) AS n FROM s GROUP BY SESSION(ts, '1 minute'), k EMIT COMPLETE",
    ] {
        let script = format!("{relations}{query};\n");
        let printed = format_script(&SourceFile::new("alias", script.clone())).unwrap();
        assert_ne!(printed.lines().last(), script.lines().last(), "nothing was rewritten");
        let plan = |text: &str| ssql::golden("ir", text, &root()).unwrap();
        assert_eq!(plan(&script), plan(&printed), "{printed}");
    }
}
