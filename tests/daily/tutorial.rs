//! Runs docs/tutorial.md: files are written, commands run, outputs compared. `BLESS=1` writes the outputs (not under CI).

use std::path::Path;
use std::process::Command;

#[test]
fn the_tutorial_does_what_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/tutorial.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_ssql")).parent().unwrap();
    let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let (mut actual, mut commands) = (String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        actual += &format!("{line}\n");
        if let Some(name) = line.strip_prefix("```sql file=") {
            let body: Vec<&str> = std::iter::from_fn(|| lines.next_if(|l| *l != "```")).collect();
            std::fs::write(dir.path().join(name), body.join("\n") + "\n").unwrap();
            actual += &body.iter().map(|l| format!("{l}\n")).collect::<String>();
        } else if line == "```console" {
            while let Some(line) = lines.next_if(|l| *l != "```") {
                let Some(command) = line.strip_prefix("$ ") else { continue };
                let output = Command::new("bash")
                    .args(["-c", command])
                    .env("PATH", &search)
                    .current_dir(dir.path())
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
                actual += &format!("{line}\n{}", String::from_utf8(output.stdout).unwrap());
                commands += 1;
            }
        }
    }
    assert!(commands > 10);
    if actual != text && std::env::var_os("BLESS").is_some() && std::env::var_os("CI").is_none() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    assert!(actual == text, "docs/tutorial.md says otherwise (BLESS=1 rewrites it). What came:\n{actual}");
}
