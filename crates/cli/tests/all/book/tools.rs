//! Checks that `make` and `cargo` commands of a page name existing targets.

use super::page::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks a command.
pub fn check(words: &[String]) -> Result<(), String> {
    match words[0].as_str() {
        "make" => make(&words[1..]),
        "cargo" => cargo(&words[1..]),
        other => Err(format!("`{other}` is neither pubmark, make nor cargo")),
    }
}

fn make(arguments: &[String]) -> Result<(), String> {
    let output = Command::new("make").arg("-n").args(arguments).current_dir(root()).output();
    let output = output.map_err(|error| format!("make: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Arguments of cargo and of a test that take a value.
const VALUES: [&str; 9] =
    ["-p", "--package", "--test", "--bench", "--manifest-path", "--target", "--features", "--target-dir", "--root"];

fn cargo(arguments: &[String]) -> Result<(), String> {
    let (verb, rest) = arguments.split_first().ok_or("cargo does nothing alone")?;
    if !["bench", "build", "clippy", "fmt", "install", "run", "test"].contains(&verb.as_str()) {
        return Err(format!("`cargo {verb}` is not known here"));
    }
    let value = |names: &[&str]| {
        let at = rest.iter().position(|word| names.contains(&word.as_str()))?;
        rest.get(at + 1)
    };
    if let Some(manifest) = value(&["--manifest-path"]) {
        return if root().join(manifest).exists() { Ok(()) } else { Err(format!("no {manifest}")) };
    }
    if let Some(path) = value(&["--path"]) {
        return if root().join(path).join("Cargo.toml").exists() { Ok(()) } else { Err(format!("no package {path}")) };
    }
    let Some(package) = value(&["-p", "--package"]) else { return Ok(()) };
    let folder = package_folder(package).ok_or_else(|| format!("there is no package {package}"))?;
    if let Some(bench) = value(&["--bench"])
        && ![format!("benches/{bench}.rs"), format!("benches/{bench}/main.rs")]
            .iter()
            .any(|file| folder.join(file).exists())
    {
        return Err(format!("{package} has no bench {bench}"));
    }
    if verb != "test" {
        return Ok(());
    }
    let sources = match value(&["--test"]) {
        Some(test) => vec![folder.join(format!("tests/{test}")), folder.join(format!("tests/{test}.rs"))],
        None if rest.iter().any(|word| word == "--lib") => vec![folder.join("src")],
        None => vec![folder.join("src"), folder.join("tests")],
    };
    if !sources.iter().any(|source| source.exists()) {
        return Err(format!("{package} has no such tests"));
    }
    let mut names = Vec::new();
    sources.iter().for_each(|source| test_names(source, source, &mut names));
    match filters(rest).into_iter().find(|filter| !names.iter().any(|name| name.contains(*filter))) {
        Some(filter) => Err(format!("no test of {package} is named {filter}")),
        None => Ok(()),
    }
}

/// Returns the words that choose tests by name.
fn filters(words: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if VALUES.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            found.push(word.as_str());
        }
    }
    found
}

fn package_folder(name: &str) -> Option<PathBuf> {
    let crates = std::fs::read_dir(root().join("crates")).ok()?;
    crates.flatten().map(|entry| entry.path()).find(|folder| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line == format!("name = \"{name}\""))
    })
}

/// Collects the names of the tests in a file or folder, as the test program lists them.
fn test_names(base: &Path, path: &Path, names: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            test_names(base, &entry.path(), names);
        }
        return;
    }
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let inside = path.with_extension("");
    let modules = inside.strip_prefix(base).unwrap_or(Path::new(""));
    let modules: Vec<_> = modules.iter().filter_map(|part| part.to_str()).collect();
    let mut prefix = modules.into_iter().filter(|part| !["main", "lib"].contains(part)).collect::<Vec<_>>().join("::");
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("mod tests {") {
            prefix.push_str("::tests");
        }
        marked |= line.starts_with("#[test]");
        if let Some(rest) = line.strip_prefix("fn ").filter(|_| marked) {
            names.push(format!("{prefix}::{}", rest.split(['(', '<']).next().unwrap_or_default()));
            marked = false;
        }
    }
}

#[test]
fn what_exists_is_told_from_what_does_not() {
    let check = |text: &str| super::tools::check(&shlex::split(text).unwrap());
    assert_eq!(check("cargo test --locked -p pubmark --test all book::tools::what_exists"), Ok(()));
    assert_eq!(check("make fuzz FUZZ_SECONDS=1"), Ok(()));
    for wrong in [
        "make nothing-like-this",
        "cargo test -p pubmark --test all no_such_name_as_this",
        "cargo test -p pubmark-nothing",
        "cargo bench -p pubmark --bench nothing",
        "cargo frobnicate",
        "ls",
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
