//! Notes of tests that are left out, whose number `make test` prints at its end: the output of a passing test is
//! hidden.

use pubmark_host::install;
use pubmark_study::registry;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// File that `make test` reads.
const FILE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/left-out.txt");

/// Notes that this test was left out, and why.
pub fn leave_out(test: &str, why: &str) {
    note(Path::new(FILE), test, why);
}

/// Returns whether to play a test that repeats, for another protocol or agent, what `make test` plays for one: `make
/// long` plays them all. If not, notes that it was left out.
pub fn is_long(test: &str) -> bool {
    let wanted = std::env::var_os("PUBMARK_TEST_LONG").is_some();
    if !wanted {
        leave_out(test, "`make long` plays it");
    }
    wanted
}

/// Returns whether the agents of these systems can be used here. Notes the test as left out if not.
pub fn has_agents(test: &str, systems: &[&str]) -> bool {
    let missing = systems.iter().find_map(|name| install::agent_missing(&registry::built_in(name).unwrap()));
    if let Some(why) = &missing {
        leave_out(test, why);
    }
    missing.is_none()
}

/// Returns the cases of a test that `make test` plays: the first few, where each is the same of another protocol or
/// setting. `make long` plays them all.
pub fn first<'a, T>(count: usize, cases: &'a [T], test: &str) -> &'a [T] {
    if is_long(&format!("{test} (all but {count} of {} cases)", cases.len())) { cases } else { &cases[..count] }
}

/// Writes in one piece, so that tests that run in parallel do not mix their lines.
fn note(file: &Path, test: &str, why: &str) {
    let mut out = OpenOptions::new().create(true).append(true).open(file).unwrap();
    out.write_all(format!("{test}: {why}\n").as_bytes()).unwrap();
}

/// Returns what `make test` prints at its end for such a file.
fn said(file: &Path) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let variable = format!("LEFT_OUT={}", file.display());
    let output = Command::new("make").args(["--no-print-directory", "-s", "-C", root, "left-out", &variable]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_is_said_once_with_its_reason_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left-out.txt");
    assert_eq!(said(&file), "no test left itself out\n");
    note(&file, "b", "no cgroup is mounted");
    note(&file, "a", "there is no Go");
    note(&file, "b", "no cgroup is mounted");
    let expected = "2 tests left themselves out:\n  a: there is no Go\n  b: no cgroup is mounted\n";
    assert_eq!(said(&file), expected);
}
