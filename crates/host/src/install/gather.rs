//! The folder of a system's pinned packages.

use super::{execute, plan};
use crate::cache::cache_folder;
use crate::error::HostError;
use pubmark_model::system::System;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// True if the cache folder contains exactly what the file pins.
pub fn is_whole(system: &System) -> bool {
    holds(&cache_folder(system), system)
}

fn holds(folder: &Path, system: &System) -> bool {
    std::fs::read_to_string(folder.join(plan::STAMP)).is_ok_and(|stamp| stamp == plan::stamp(system))
}

/// Fetches what is pinned into a separate folder, which replaces the target when it is
/// complete: an interrupted installation does not count.
pub fn gather(system: &System, say: &dyn Fn(&str)) -> Result<(), HostError> {
    let target = cache_folder(system);
    sweep(&target);
    let part = Part(part_of(&target, std::process::id()));
    write(&part.0.join("pom.xml"), &plan::pom(&system.install)).map_err(at(&part.0))?;
    for step in plan::fetch(system, &part.0) {
        say(&step.command.join(" "));
        execute::run(&step.command, step.folder.as_deref(), step.limit)?;
    }
    relocate(&part.0, &target).map_err(at(&part.0))?;
    place(system, &part.0, &target).map_err(at(&target))
}

/// Maximum size of a script whose first line is read, bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;

/// Adapts the programs of a Python environment to the folder's new place, because they
/// contain the interpreter's absolute path.
fn relocate(part: &Path, target: &Path) -> Result<(), Error> {
    let (from, to) = (part.display().to_string(), target.display().to_string());
    let programs = match std::fs::read_dir(part.join(plan::ENVIRONMENT).join("bin")) {
        Ok(programs) => programs,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in programs {
        let path = entry?.path();
        let is_script =
            std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= SCRIPT_BYTES_MAX);
        if !is_script {
            continue;
        }
        // A program that is not text contains no such path.
        if let Ok(text) = String::from_utf8(std::fs::read(&path)?)
            && text.contains(&from)
        {
            std::fs::write(&path, text.replace(&from, &to))?;
        }
    }
    Ok(())
}

/// A folder that is removed unless it has been moved to its place.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn at(path: &Path) -> impl FnOnce(Error) -> HostError {
    HostError::io(path.display().to_string())
}

/// Returns the folder in which the process `pid` gathers an installation.
fn part_of(target: &Path, pid: u32) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}-{pid}"))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}

/// Marks an installation as complete and moves it to its place.
fn place(system: &System, part: &Path, target: &Path) -> Result<(), Error> {
    write(&part.join(plan::STAMP), &plan::stamp(system))?;
    match std::fs::remove_dir_all(target) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => std::fs::rename(part, target),
    }
}

/// Removes the remains of interrupted installations of this system.
fn sweep(target: &Path) {
    let Some((folder, name)) = target.parent().zip(target.file_name()) else { return };
    let prefix = format!(".{}-", name.to_string_lossy());
    let gone = |pid| nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(&prefix)?.parse::<i32>().ok());
        if pid.is_some_and(|pid| pid > 0 && gone(pid)) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(version: u32) -> System {
        let text = format!(
            "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n[install]\npip = [\"x=={version}\"]"
        );
        System::parse("t", "t.toml", &text).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn a_whole_installation_takes_the_place_of_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("t");
        for version in [1, 2] {
            let part = Part(part_of(&target, std::process::id()));
            write(&part.0.join(format!("file-{version}")), "").unwrap();
            assert!(!holds(&target, &system(version)), "not before it is in its place");
            place(&system(version), &part.0, &target).unwrap();
            assert!(holds(&target, &system(version)));
        }
        assert!(!holds(&target, &system(1)) && !target.join("file-1").exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn the_programs_of_an_environment_know_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (part, target) = (folder.path().join(".t-1"), folder.path().join("t"));
        let script = part.join("python/bin/broker");
        write(&script, &format!("#!{}/python/bin/python\nimport broker\n", part.display())).unwrap();
        std::fs::write(part.join("python/bin/python"), [0xff, 0xfe]).unwrap();
        relocate(&part, &target).unwrap();
        let text = std::fs::read_to_string(&script).unwrap();
        assert_eq!(text, format!("#!{}/python/bin/python\nimport broker\n", target.display()));
        assert_eq!(std::fs::read(part.join("python/bin/python")).unwrap(), [0xff, 0xfe]);
        relocate(folder.path(), &target).unwrap();
    }

    #[test]
    fn parts_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("t");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let [dead, living, other] = [
            part_of(&target, child.id()),
            part_of(&target, std::process::id()),
            part_of(&folder.path().join("u"), child.id()),
        ];
        for part in [&dead, &living, &other] {
            std::fs::create_dir(part).unwrap();
        }
        sweep(&target);
        assert!(!dead.exists() && living.exists() && other.exists());
    }
}
