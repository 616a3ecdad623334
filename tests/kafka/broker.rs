//! A broker for one test, and a folder in which it runs the binary.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

fn service() -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(root.join("tests/services/kafka"));
    // Where the build is, the broker's files are.
    let target = Path::new(env!("CARGO_BIN_EXE_ssql")).parent().and_then(Path::parent).unwrap();
    command.env("CARGO_TARGET_DIR", target);
    command
}

fn checked(command: &mut Command) -> String {
    let output = command.stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

/// One broker at a time: a test machine has few cores.
static TURN: Mutex<()> = Mutex::new(());

pub struct Broker {
    dir: tempfile::TempDir,
    address: String,
    /// Given up after the broker's end.
    _turn: MutexGuard<'static, ()>,
}

impl fmt::Display for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

impl Broker {
    pub fn start() -> Broker {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().unwrap();
        let address = checked(service().arg("start").arg(dir.path()));
        Broker { dir, address, _turn: turn }
    }

    /// `how` is "kill" for a stop without warning, or empty.
    pub fn stop(&mut self, how: &str) {
        let mut command = service();
        command.arg("stop").arg(self.dir.path());
        if !how.is_empty() {
            command.arg(how);
        }
        checked(&mut command);
    }

    /// Started again with what it had.
    pub fn again(&mut self) {
        assert_eq!(checked(service().arg("start").arg(self.dir.path())), self.address);
    }

    pub fn tool(&self, class: &str, arguments: &[&str]) {
        checked(service().args(["tool", class, "--bootstrap-server", &self.address]).args(arguments));
    }

    pub fn create(&self, topic: &str, partitions: u32, config: &[&str]) {
        let partitions = partitions.to_string();
        let mut arguments = vec!["--create", "--topic", topic, "--partitions", &partitions];
        for entry in config {
            arguments.extend(["--config", entry]);
        }
        self.tool("org.apache.kafka.tools.TopicCommand", &arguments);
    }

    pub fn delete_before(&self, topic: &str, partition: u32, offset: u64) {
        let file = self.dir.path().join("delete.json");
        let json = format!(
            r#"{{"version":1,"partitions":[{{"topic":"{topic}","partition":{partition},"offset":{offset}}}]}}"#
        );
        std::fs::write(&file, json).unwrap();
        self.tool("org.apache.kafka.tools.DeleteRecordsCommand", &["--offset-json-file", file.to_str().unwrap()]);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = service().arg("stop").arg(self.dir.path()).arg("kill").output();
    }
}

/// A folder for scripts, their inputs and outputs.
pub struct Dir(tempfile::TempDir);

impl Dir {
    pub fn new() -> Dir {
        Dir(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn forget(&self, name: &str) {
        for name in [name.to_string(), format!("{name}_checkpoint")] {
            let _ = std::fs::remove_dir_all(self.path(&name));
        }
    }

    fn command(&self, script: &str) -> Command {
        std::fs::write(self.path("job.ssql"), script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ssql"));
        command.args(["run", "--quiet", "job.ssql"]).current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    pub fn run(&self, script: &str, arguments: &[&str]) -> Output {
        self.command(script).args(arguments).output().unwrap()
    }

    pub fn spawn(&self, script: &str) -> Child {
        self.command(script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The lines of all JSON files in the folder of a sink.
    pub fn lines(&self, folder: &str) -> Vec<String> {
        let files = std::fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        files
            .filter(|f| f.path().extension().is_some_and(|e| e == "json"))
            .flat_map(|f| {
                std::fs::read_to_string(f.path()).unwrap_or_default().lines().map(str::to_string).collect::<Vec<_>>()
            })
            .collect()
    }

    pub fn wait(&self, mut done: impl FnMut() -> bool, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(90);
        while !done() {
            assert!(Instant::now() < deadline, "{what} did not come");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
