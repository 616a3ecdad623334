//! The binary as a script uses it: statements from arguments and standard input, output formats, logs of progress,
//! metrics, pipelines under test.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn ssql(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ssql")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples")
}

#[test]
fn statements_come_from_arguments_files_and_standard_input() {
    assert_eq!(stdout(&ssql(&["-c", "SELECT 1 AS a", "--format", "csv"])), "a\n1\n");
    assert_eq!(
        stdout(&ssql(&["-c", "SELECT 1 AS a; SELECT 'x' AS b", "--format", "ndjson"])),
        "{\"a\":1}\n{\"b\":\"x\"}\n"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ssql");
    std::fs::write(&file, "SELECT :n AS n;").unwrap();
    let from_file = ssql(&["-f", file.to_str().unwrap(), "--param", "n=5", "--format", "json"]);
    assert_eq!(stdout(&from_file), "[\n{\"n\":5}\n]\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ssql"))
        .args(["--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"CREATE TABLE t (a INT); INSERT INTO t VALUES (7);\nSELECT a FROM t;")
        .unwrap();
    assert_eq!(stdout(&child.wait_with_output().unwrap()), "a\n7\n");
    let failed = ssql(&["-c", "SELECT 1 / 0"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("error[DIVIDE_BY_ZERO]"));
    assert_eq!(ssql(&["--format", "xml"]).status.code(), Some(2));
}

#[test]
fn progress_is_logged_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("progress.ndjson");
    let script = "CREATE STREAM m (v INT) USING memory; CREATE SINK o USING memory;
        INSERT INTO m VALUES (1), (2); INSERT INTO o SELECT v FROM m EMIT APPEND TRIGGER AVAILABLE NOW; AWAIT QUERY o;";
    stdout(&ssql(&["-c", script, "--progress-log", log.to_str().unwrap()]));
    let lines = std::fs::read_to_string(&log).unwrap();
    let progress: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(progress.len(), 1);
    assert_eq!((progress[0]["name"].as_str(), progress[0]["numInputRows"].as_u64()), (Some("o"), Some(2)));
}

/// The server answers while a query runs; SIGTERM ends the process well, and a log in JSON says where it listens.
#[test]
fn metrics_are_served() {
    let script = "CREATE STREAM m (v INT) USING memory; CREATE SINK o USING memory; INSERT INTO m VALUES (1), (2);
        INSERT INTO o SELECT v FROM m EMIT APPEND; PROCESS ALL AVAILABLE; SELECT 'ready' AS r;";
    let mut child = Command::new(env!("CARGO_BIN_EXE_ssql"))
        .args(["-c", script, "--metrics", "0", "--log-level", "info", "--log-format", "json", "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = Vec::new();
    let mut byte = [0];
    let out = child.stdout.as_mut().unwrap();
    while !seen.ends_with(b"ready\n") && out.read(&mut byte).unwrap() == 1 {
        seen.push(byte[0]);
    }
    let mut line = Vec::new();
    let err = child.stderr.as_mut().unwrap();
    while !line.ends_with(b"/metrics\"") && err.read(&mut byte).unwrap() == 1 {
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    let address = line.rsplit("http://").next().unwrap().trim_end_matches("/metrics\"").to_owned();
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("/metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for wanted in ["ssql_input_rows_total{query=\"o\"} 2\n", "ssql_batches_total{query=\"o\"} 1\n", "le=\"+Inf\"} 1\n"]
    {
        assert!(answer.contains(wanted), "{wanted} is missing:\n{answer}");
    }
    assert!(get("/").starts_with("HTTP/1.1 404"));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_pipeline_is_tried_with_rows_of_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let junit = dir.path().join("junit.xml");
    let pipeline = examples().join("sensor_alerts.ssql");
    let run = |cases: &Path| {
        ssql(&[
            "test",
            pipeline.to_str().unwrap(),
            "--cases",
            cases.to_str().unwrap(),
            "--junit",
            junit.to_str().unwrap(),
            "--param",
            "incoming=x",
            "--param",
            "warehouse=x",
            "--param",
            "checkpoint=x",
        ])
    };
    let passed = stdout(&run(&examples().join("sensor_alerts_cases.slt")));
    assert!(passed.ends_with("files: 1 passed, 0 failed\n9 passed, 0 failed\n"), "{passed}");
    assert!(std::fs::read_to_string(&junit).unwrap().contains("tests=\"9\" failures=\"0\""));

    let cases = dir.path().join("wrong.slt");
    std::fs::write(&cases, "query I\nSELECT count(*) FROM temp_alerts\n----\n1\n").unwrap();
    let failed = run(&cases);
    assert_eq!(failed.status.code(), Some(1));
    let text = String::from_utf8(failed.stdout).unwrap();
    assert!(text.contains("- 1\n") && text.contains("+ 0\n"), "{text}");
    assert!(std::fs::read_to_string(&junit).unwrap().contains("<failure>the rows differ"));
    assert!(!examples().join("x").exists());
}

#[test]
fn completions_and_the_manual_page_come_from_the_arguments() {
    assert!(stdout(&ssql(&["completions", "bash"])).contains("--progress-log"));
    assert!(stdout(&ssql(&["man"])).contains(".TH ssql 1"));
}

/// Starts a query whose first batch takes long, and waits until that batch runs.
fn in_a_long_batch(dir: &Path) -> Child {
    let checkpoint = dir.join("cp");
    let script = format!(
        "CREATE STREAM s USING rate OPTIONS (rowsPerSecond 1); CREATE SINK o USING memory;
         INSERT INTO o SELECT aggregate(sequence(1, 3000000 + value), 0L, (a, x) -> a + x) AS n FROM s EMIT APPEND
         CHECKPOINT LOCATION '{}';",
        checkpoint.display()
    );
    let file = dir.join("long.ssql");
    std::fs::write(&file, script).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ssql"))
        .args(["run", "--quiet", file.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        let planned = std::fs::read_dir(checkpoint.join("offsets")).is_ok_and(|mut d| d.next().is_some());
        if planned {
            return child;
        }
        assert!(child.try_wait().unwrap().is_none(), "it has ended early");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("no batch began");
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn the_first_signal_lets_the_batch_commit_and_the_second_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = in_a_long_batch(dir.path());
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let committed = std::fs::read_dir(dir.path().join("cp/commits")).unwrap().count();
    assert!(committed > 0, "the batch that ran has been committed");

    let dir = tempfile::tempdir().unwrap();
    let mut child = in_a_long_batch(dir.path());
    interrupt(&child);
    // The first signal has to have been taken in; two at once are one.
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    let code = child.wait().unwrap().code();
    assert_eq!(code, Some(130));
    let checkpoint = dir.path().join("cp");
    let verified = ssql(&["checkpoint", "verify", checkpoint.to_str().unwrap()]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}
