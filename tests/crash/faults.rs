//! Torn, truncated and changed files, full and read-only disks, a clock that goes back, leftovers: the query goes on
//! rightly, or says what is wrong. It never gives wrong rows.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use rand::{Rng, SeedableRng};
use support::{Job, Work, assert_same, copy_folder, text};

/// All files that the query keeps: of the checkpoint and of the sink's log.
fn kept(job: &Job) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut todo = vec![job.path("checkpoint"), job.path("out/_ssql_log")];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            match entry.path().is_dir() {
                true => todo.push(entry.path()),
                false => all.push(entry.path()),
            }
        }
    }
    // Of a staged file only the size is known.
    all.retain(|p| !p.ends_with("lease") && p.extension().is_none_or(|e| e != "tmp"));
    all.sort();
    all
}

/// A query that was cut off in the middle of a batch, then damaged in one file, goes on rightly or is refused.
#[test]
fn damage_in_any_file_is_mended_or_told() {
    let mut rng = rand::rngs::StdRng::seed_from_u64(7);
    let job = Job::new(Work::Windows, 6, "SET checkpoint.retain = 2; SET state.snapshot.bytes = 3000;");
    assert!(job.dies_at("sink-before-rename:4"));
    let expected = job.expected();
    for name in ["checkpoint", "out"] {
        copy_folder(&job.path(name), &job.path(&format!("{name}.kept")));
    }
    let (mut mended, mut told) = (0, 0);
    for file in kept(&job) {
        let whole = std::fs::read(&file).unwrap();
        let mut damages: Vec<(&str, Vec<u8>)> = vec![("emptied", Vec::new())];
        for _ in 0..2 {
            let cut = rng.random_range(1..whole.len().max(2));
            damages.push(("cut off", whole[..whole.len() - cut.min(whole.len())].to_vec()));
            let mut changed = whole.clone();
            let at = rng.random_range(0..whole.len());
            changed[at] ^= 1 << rng.random_range(0..8);
            damages.push(("changed", changed));
        }
        for (how, bytes) in damages {
            for name in ["checkpoint", "out"] {
                std::fs::remove_dir_all(job.path(name)).unwrap();
                copy_folder(&job.path(&format!("{name}.kept")), &job.path(name));
            }
            std::fs::write(&file, bytes).unwrap();
            let what = format!("{how}: {}", file.display());
            let output = job.run();
            if output.status.success() {
                assert_same(&job.rows(), &expected, &what);
                mended += 1;
            } else {
                let said = text(&output);
                let known = ["CHECKPOINT_CORRUPT", "CHECKPOINT_VERSION", "SINK_LOG_CORRUPT"];
                assert!(known.iter().any(|k| said.contains(k)) && !said.contains("panicked"), "{what}: {said}");
                told += 1;
            }
        }
    }
    assert!(mended > 0 && told > 5, "{mended} mended, {told} told");
}

/// Whether this process may mount; the tests that need a disk of their own make one then.
fn mounted(at: &Path, options: &str) -> bool {
    let mount = |args: &[&str]| Command::new("mount").args(args).output().is_ok_and(|o| o.status.success());
    mount(&["-t", "tmpfs", "-o", options, "tmpfs", &at.display().to_string()])
}

fn unmount(at: &Path) {
    let _ = Command::new("umount").arg(at).output();
}

/// The disk is full: the query fails and says so, nothing half is visible, and it goes on once there is room.
#[test]
fn a_full_disk_fails_the_query_and_leaves_nothing_half() {
    for (place, size) in [("out", "size=20k"), ("checkpoint", "size=36k")] {
        let job = Job::new(Work::Windows, 30, "");
        let expected = job.expected();
        std::fs::create_dir(job.path(place)).unwrap();
        // Room for the first batches only. Without a disk of its own the size of each file is limited instead.
        let own_disk = mounted(&job.path(place), size);
        let output = if own_disk {
            job.run()
        } else {
            let limited = format!(
                "trap '' XFSZ; ulimit -f 1; exec {} run {}",
                env!("CARGO_BIN_EXE_ssql"),
                job.path("job.ssql").display()
            );
            Command::new("sh").args(["-c", &limited]).output().unwrap()
        };
        let said = text(&output);
        if own_disk {
            Command::new("mount").args(["-o", "remount,size=64m"]).arg(job.path(place)).output().unwrap();
        }
        let finished = job.run();
        let rows = job.rows();
        if own_disk {
            unmount(&job.path(place));
        }
        assert!(!output.status.success() && said.contains("FAILED_FILE_OPERATION"), "{place}: {said}");
        assert!(said.contains("The cause may pass") && !said.contains("panicked"), "{place}: {said}");
        assert!(finished.status.success(), "{place}: {}", text(&finished));
        assert_same(&rows, &expected, place);
    }
}

#[test]
fn a_read_only_directory_is_told() {
    for (place, condition) in [("checkpoint", "CHECKPOINT_UNUSABLE"), ("out", "FAILED_FILE_OPERATION")] {
        let job = Job::new(Work::Windows, 1, "");
        std::fs::create_dir(job.path(place)).unwrap();
        // Rights do not bind the superuser; a read-only disk does.
        let own_disk = mounted(&job.path(place), "ro,size=64k");
        if !own_disk {
            let mut rights = std::fs::metadata(job.path(place)).unwrap().permissions();
            rights.set_readonly(true);
            std::fs::set_permissions(job.path(place), rights).unwrap();
        }
        let said = text(&job.run());
        if own_disk {
            unmount(&job.path(place));
        }
        assert!(said.contains(condition) && !said.contains("panicked"), "{place}: {said}");
    }
}

/// A query that ran in the future goes on after the clock was set back: nothing of it hangs on the clock going forward.
#[test]
fn a_clock_that_goes_back_changes_nothing() {
    let job = Job::new(Work::Windows, 3, "");
    assert!(job.dies_at("sink-after-commit:2"));
    // As if those batches had been planned in the year 2100.
    let segments: Vec<_> = std::fs::read_dir(job.path("checkpoint/offsets")).unwrap().flatten().collect();
    let (mut log, records) = {
        let dir = job.path("checkpoint/offsets");
        let records = ssql_state::SegmentLog::read(&dir).unwrap();
        segments.iter().for_each(|s| std::fs::remove_file(s.path()).unwrap());
        (ssql_state::SegmentLog::open(&dir, "offsets").unwrap().0, records)
    };
    for record in records {
        let text = String::from_utf8(record.payload).unwrap();
        let at = text.find("\"timestamp\":").unwrap() + 12;
        let later = format!("{}4102444800000000{}", &text[..at], &text[at + text[at..].find('}').unwrap()..]);
        log.append(record.sequence, later.as_bytes()).unwrap();
    }
    log.sync().unwrap();
    job.finish();
    job.feed(2);
    job.finish();
    assert_same(&job.rows(), &job.expected(), "after the clock went back");
}

/// What a crash or a failed batch left in the staging folder is gone after the next start, and was never visible.
#[test]
fn leftovers_are_cleaned_and_never_visible() {
    let job = Job::new(Work::Windows, 5, "");
    assert!(job.dies_at("sink-staged:4"));
    let staging = job.path("out/_ssql_log/staging");
    assert!(std::fs::read_dir(&staging).unwrap().count() > 0, "nothing was staged");
    std::fs::write(staging.join("part-00000-other-0000000009-0.run.tmp"), b"{\"half\":").unwrap();
    job.rows();
    job.finish();
    job.assert_clean("after a restart");
    assert_same(&job.rows(), &job.expected(), "after a restart");
    let before = job.rows();
    job.feed(1);
    let output = job.command().env("SSQL_FAILPOINT", "sink-before-commit:1:error").output().unwrap();
    assert!(!output.status.success());
    assert_same(&job.rows(), &before, "after a failed batch");
}

/// A batch that was committed, and is half staged once more by a run that is killed, is not published again.
#[test]
fn what_a_killed_replay_has_staged_is_not_taken_for_the_promised() {
    let job = Job::new(Work::Windows, 5, "");
    assert!(job.dies_at("sink-after-commit:4"), "the sink has committed, the checkpoint not");
    assert!(job.dies_at("sink-file-before-sync:1"), "the replay has written its file");
    for entry in std::fs::read_dir(job.path("out/_ssql_log/staging")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        std::fs::write(entry.path(), &bytes[..bytes.len() / 2]).unwrap();
    }
    job.finish();
    assert_same(&job.rows(), &job.expected(), "after a killed replay");
}

/// A staged file that the log promises and that was cut off is damage: it is told, not published.
#[test]
fn a_promised_file_that_was_cut_off_is_not_published() {
    let job = Job::new(Work::Windows, 5, "");
    assert!(job.dies_at("sink-before-rename:1"));
    for entry in std::fs::read_dir(job.path("out/_ssql_log/staging")).unwrap().flatten() {
        std::fs::File::options().write(true).open(entry.path()).unwrap().set_len(10).unwrap();
    }
    let said = text(&job.run());
    assert!(said.contains("SINK_LOG_CORRUPT") && job.rows().is_empty(), "{said}");
}
