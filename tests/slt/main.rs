//! Each `.slt` file below `tests/slt` is a test: its records run in a session of their own, in `jit = verify`.

use libtest_mimic::{Arguments, Trial};
use ssql::session::SessionConfig;
use ssql_tests::{files, root, short_name};

fn main() {
    let dir = root().join("tests/slt");
    let trials = files(&dir, "slt").into_iter().map(|path| {
        Trial::test(short_name(&path, &dir), move || {
            let config = SessionConfig { jit: Some("verify".to_owned()), ..SessionConfig::default() };
            let (_, mismatches) = ssql::slt::run_file(&path, &config)?;
            if mismatches.is_empty() {
                return Ok(());
            }
            let text: Vec<String> =
                mismatches.iter().map(|m| format!("{}:{}: {}\n{}", path.display(), m.line, m.sql, m.what)).collect();
            Err(text.join("\n\n").into())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
