//! Bootstrap of another machine: if it does not have this very build, the program is sent
//! once over the streams that reach it, and checked there.

use crate::error::HostError;
use pubmark_model::printable::hexadecimal;
use std::fs;
use std::sync::{Arc, OnceLock};

/// Prefix of each line of the shell there; its other output is ignored.
pub const MARK: &str = "pubmark: ";

/// This program, as it is sent.
pub struct Program {
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    sha256: String,
}

/// A message of the shell there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeted {
    /// The program is there, and runs from now on.
    Here,
    /// The program is wanted, by a machine of this kind.
    Wanted(String),
    /// The program cannot be used there, with the reason.
    Not(String),
}

impl Greeted {
    /// Parses a line of the shell, if it has the prefix.
    pub fn read(line: &str) -> Option<Greeted> {
        let word = line.trim_end().strip_prefix(MARK)?;
        Some(match word.split_once(' ') {
            None if word == "here" => Greeted::Here,
            Some(("wanted", machine)) => Greeted::Wanted(machine.to_owned()),
            _ => Greeted::Not(word.to_owned()),
        })
    }
}

impl Program {
    /// Returns this very program, read once.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn own(path: &str) -> Result<&'static Program, HostError> {
        static OWN: OnceLock<Program> = OnceLock::new();
        if OWN.get().is_none() {
            let bytes = fs::read(path).map_err(HostError::io(format!("{path} cannot be read to be sent")))?;
            let digest = ring::digest::digest(&ring::digest::SHA256, &bytes);
            let _ = OWN.set(Program { bytes: bytes.into(), sha256: hexadecimal(digest.as_ref()) });
        }
        OWN.get().ok_or_else(|| HostError::Failed(format!("{path} cannot be read to be sent")))
    }

    /// Returns the command for a shell's standard input. It is one command, so that the
    /// shell reads it to its end before it runs: further input is for the program that it
    /// starts.
    pub fn greeting(&self) -> String {
        let (hash, length) = (&self.sha256, self.bytes.len());
        format!(
            r#"{{
home="${{HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}}"
cache="${{XDG_CACHE_HOME:-${{home:+$home/.cache}}}}"
folder="${{cache:-$(mktemp -d)}}/pubmark/builds/{hash}"
if ! [ -x "$folder/pubmark" ]; then
  mkdir -p "$folder" && new=$(mktemp "$folder/new.XXXXXX") || {{ echo "{MARK}no folder $folder can be made"; exit 1; }}
  echo "{MARK}wanted $(uname -sm)"
  head -c {length} >"$new"
  if [ "$(sha256sum <"$new" | cut -c 1-64)" != {hash} ]; then
    rm -f "$new"; echo "{MARK}the program did not arrive as it was sent"; exit 1
  fi
  chmod 755 "$new"
  if ! "$new" --version >/dev/null 2>&1; then
    rm -f "$new"; echo "{MARK}the program cannot run there: another C library, or a folder without programs ($folder)"; exit 1
  fi
  mv -f "$new" "$folder/pubmark"
  find "$folder/.." -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {{}} + 2>/dev/null
fi
echo "{MARK}here"
exec "$folder/pubmark" host
}}
"#
        )
    }
}

/// Returns this machine in the form of `uname -sm`.
pub fn this_machine() -> String {
    nix::sys::utsname::uname().map_or_else(
        |_| String::new(),
        |name| format!("{} {}", name.sysname().to_string_lossy(), name.machine().to_string_lossy()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    /// Makes a program of a few bytes that a shell can run.
    fn program(text: &str) -> Program {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        Program { bytes: text.as_bytes().into(), sha256: hexadecimal(digest.as_ref()) }
    }

    struct Shell {
        child: Child,
        said: BufReader<std::process::ChildStdout>,
    }

    impl Shell {
        fn new(home: &std::path::Path) -> Shell {
            let mut command = Command::new("sh");
            command.env("XDG_CACHE_HOME", home).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let said = BufReader::new(child.stdout.take().unwrap());
            Shell { child, said }
        }

        fn say(&mut self, bytes: &[u8]) {
            self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
        }

        fn line(&mut self) -> String {
            let mut line = String::new();
            self.said.read_line(&mut line).unwrap();
            line
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            drop(self.child.stdin.take());
            let _ = self.child.wait();
        }
    }

    #[test]
    fn it_travels_once_and_reads_what_follows_itself() {
        let home = tempfile::tempdir().unwrap();
        let program = program("#!/bin/sh\n[ \"$1\" = --version ] || { read line; echo \"$1 heard $line\"; }\n");
        for wanted in [true, false] {
            let mut shell = Shell::new(home.path());
            shell.say(program.greeting().as_bytes());
            if wanted {
                assert_eq!(Greeted::read(&shell.line()), Some(Greeted::Wanted(this_machine())));
                shell.say(&program.bytes);
            }
            assert_eq!(Greeted::read(&shell.line()), Some(Greeted::Here));
            shell.say(b"a line\n");
            assert_eq!(shell.line(), "host heard a line\n");
        }
        let builds = home.path().join("pubmark/builds").join(&program.sha256);
        assert_eq!(fs::read_dir(builds).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_is_damaged_or_cannot_run_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let cannot = program("#!/bin/sh\nexit 1\n");
        for (sent, said) in [(b"#!/bin/sh\nexit 0\n", "did not arrive"), (b"#!/bin/sh\nexit 1\n", "cannot run there")] {
            let mut shell = Shell::new(home.path());
            shell.say(cannot.greeting().as_bytes());
            assert!(matches!(Greeted::read(&shell.line()), Some(Greeted::Wanted(_))));
            shell.say(sent);
            let Some(Greeted::Not(why)) = Greeted::read(&shell.line()) else { panic!() };
            assert!(why.contains(said), "{why}");
        }
        let builds = home.path().join("pubmark/builds").join(&cannot.sha256);
        assert_eq!(fs::read_dir(builds).unwrap().count(), 0);
    }

    #[test]
    fn what_a_shell_prints_for_itself_is_passed_over() {
        assert_eq!(Greeted::read("Welcome to b1\n"), None);
        assert_eq!(Greeted::read("pubmark: here\n"), Some(Greeted::Here));
        assert_eq!(Greeted::read("pubmark: no folder /x\n"), Some(Greeted::Not("no folder /x".into())));
    }
}
