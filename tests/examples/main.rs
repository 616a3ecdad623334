//! Every example is run by the binary, or checked where it needs a world that a test has not.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            if path.file_name().unwrap() != "out" {
                copy(&path, &target);
            }
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn the_main_example_prints_its_alerts_twice_the_same() {
    let dir = tempfile::tempdir().unwrap();
    copy(&examples(), dir.path());
    let run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_ssql"))
            .arg("run")
            .arg(dir.path().join("temperature_alerts.ssql"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let first = run();
    assert!(first.contains("| window_start") && first.contains("EWR"), "{first}");
    assert_eq!(run(), first);
}

/// The running alert stream: started, fed, stopped with SIGINT, exit code 0, rows there.
#[test]
fn the_alert_stream_runs_until_it_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let incoming = dir.path().join("in");
    std::fs::create_dir(&incoming).unwrap();
    let reading = |minute: u32, t: f64| {
        format!("{{\"event_time\":\"2024-01-15T10:{minute:02}:00Z\",\"device_id\":\"d1\",\"temperature\":{t}}}\n")
    };
    std::fs::write(incoming.join("a.json"), reading(0, 36.0) + &reading(4, 37.0) + &reading(40, 20.0)).unwrap();
    let param = |name: &str, path: &str| format!("{name}={}", dir.path().join(path).display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_ssql"))
        .args(["run", "--quiet"])
        .arg(examples().join("sensor_alerts.ssql"))
        .args(["--param", &param("incoming", "in"), "--param", &param("warehouse", "out")])
        .args(["--param", &param("checkpoint", "cp")])
        .spawn()
        .unwrap();
    // The first batch runs at once; its end shows as a commit record.
    let commits = dir.path().join("cp/commits");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let committed =
        || std::fs::read_dir(&commits).is_ok_and(|d| d.flatten().any(|e| e.metadata().is_ok_and(|m| m.len() > 8)));
    while !committed() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(committed(), "no batch was committed");
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert!(child.wait().unwrap().success());
}
