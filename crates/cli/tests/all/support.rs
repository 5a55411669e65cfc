//! What the tests share: a place of their own, and the program in it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No test waits longer than this for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub fn pubmark() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pubmark"));
    command.stdin(Stdio::null()).env_remove("COLUMNS").env_remove("NO_COLOR");
    command
}

/// A folder of a test's own, and the program run in it. The program's own
/// temporary folder lies within, so that what it leaves behind can be seen.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let place = Place(tempfile::Builder::new().prefix("pm").tempdir().unwrap());
        std::fs::create_dir(place.tmp()).unwrap();
        place
    }

    pub fn tmp(&self) -> PathBuf {
        self.0.path().join("t")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pubmark();
        command.args(arguments).current_dir(self.0.path()).env("TMPDIR", self.tmp());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A study file in the place.
    pub fn study(&self, text: &str) -> PathBuf {
        let path = self.path("study.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The records of a results folder, in the order of their lines.
    pub fn records(&self, folder: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(folder).join("runs.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Nothing is left in the program's temporary folder.
    pub fn assert_swept(&self) {
        let left: Vec<_> = std::fs::read_dir(self.tmp()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until something holds, looking often; fails after [`PATIENCE`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// The living children of a process, by command line.
pub fn children(parent: u32) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, ppid) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        if ppid == parent.to_string() && state != "Z" {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ");
            found.push((pid, line));
        }
    }
    found
}

/// Whether a process lives (a zombie does not).
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
