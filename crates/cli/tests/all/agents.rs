//! Agents that are not pubmark's own: their messages are read, and what they do not support is named at once.

use crate::support::{Place, stderr, stdout};
use pubmark_load::agent::BUILT_IN;
use pubmark_model::protocol::AgentHello;
use pubmark_study::registry;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Writes a program of these lines of shell.
fn program(place: &Place, name: &str, script: &str) -> PathBuf {
    let path = place.path(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Returns shell code that sends a hello with these drivers and the current clock, and then writes down its input.
fn greeting(protocol: u32, drivers: &[&str]) -> String {
    greeting_that_knows(protocol, drivers, json!({}))
}

/// Returns shell code that sends such a hello with these known options.
pub fn greeting_that_knows(protocol: u32, drivers: &[&str], options: Value) -> String {
    let hello = json!({
        "type": "hello", "protocol": protocol, "name": "shell", "version": "7.1", "pid": 1, "drivers": drivers,
        "options": options,
    });
    let hello = hello.to_string();
    let open = hello.strip_suffix('}').unwrap();
    format!(
        "read line\nread up idle </proc/uptime\nprintf '%s,\"clock_ns\":%s0000000}}\\n' '{open}' \"$(echo $up | tr -d .)\"\n\
         cat >>\"$(dirname \"$0\")/told\""
    )
}

fn check(place: &Place, script: &str, flags: &[&str]) -> (Option<i32>, String) {
    let agent = program(place, "agent.sh", script);
    let output = place.run(&[&["agent-check"], flags, &[agent.to_str().unwrap()]].concat());
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn an_agent_that_talks_nonsense_is_found_out() {
    let place = Place::new();
    for (script, wanted) in
        [("echo hello there; cat >/dev/null", "not an event of the protocol"), ("read line; exit 7", "exit status: 7")]
    {
        let (code, said) = check(&place, script, &[]);
        assert_eq!(code, Some(1), "{script}");
        assert!(said.contains("FAIL  hello") && said.contains(wanted), "{script}: {said}");
    }
    let (code, said) = check(&place, &greeting(9, &["d"]), &["--only", "hello"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("it speaks version 9"), "{said}");
}

#[test]
fn nobody_passes_by_the_mock_or_by_a_driver_that_he_has_not() {
    let place = Place::new();
    for (drivers, flags, wanted) in [
        (&["mock"][..], &[][..], "not checked: it has no driver but mock"),
        (&["mqtt"], &["--driver", "zeromq"], "shell 7.1 has no driver `zeromq`; it has: mqtt"),
    ] {
        let (code, said) = check(&place, &greeting(2, drivers), flags);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(wanted), "{drivers:?}: {said}");
        // It may have been ended before it could write down that it received nothing more.
        assert_eq!(std::fs::read_to_string(place.path("told")).unwrap_or_default(), "");
    }
}

#[test]
fn a_script_that_may_not_be_run_is_told_with_what_runs_it() {
    let place = Place::new();
    let path = place.path("agent.py");
    std::fs::write(&path, "print()\n").unwrap();
    let output = place.run(&["agent-check", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("Permission denied") && said.contains("`python3 agent.py`"), "{said}");
}

#[test]
fn a_bare_command_is_checked_by_what_comes_with_pubmark_and_not_by_files_that_lie_about() {
    let place = Place::new();
    // First in the alphabet, with another transport and an option of its own.
    let file = "title = \"A\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"kernel\"\ntransports = [\"udp\"]\n\
                patterns = [\"fan-out\"]\n";
    place.system("a", file);
    let cases = |flags: &[&str], agent: &[&str]| {
        let all = [&["agent-check", "--json", "--only", "drain-complete"], flags, agent].concat();
        let output = place.run(&all);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let cases = said["cases"].as_array().unwrap().iter();
        cases.filter_map(|case| case["case"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let program = env!("CARGO_BIN_EXE_pubmark");
    let bare = cases(&["--driver", "kernel"], &[program, "agent"]);
    assert_eq!(bare, ["ipc/drain-complete", "tcp/drain-complete", "udp/drain-complete"]);
    assert_eq!(cases(&["--system", "a"], &[]), ["udp/drain-complete"], "it is asked for");
}

#[test]
fn a_check_in_which_no_message_was_seen_says_so() {
    let place = Place::new();
    // pubmark's own agent with the name of a library for which pubmark has no sockets.
    let agent = "sed -u 's/\"driver\":\"mylib\"/\"driver\":\"kernel\"/' | \"$PUBMARK\" agent | \
                 sed -u 's/\"drivers\":\\[/\"drivers\":[\"mylib\",/'";
    let agent = program(&place, "agent.sh", agent);
    let mut command = place.command(&["agent-check", "--driver", "mylib", "--only", "hello,send"]);
    let output = command.arg(agent).env("PUBMARK", env!("CARGO_BIN_EXE_pubmark")).output().unwrap();
    let said = stdout(&output);
    assert!(said.contains("this pubmark has no sockets of `mylib`"), "{said}");
    assert!(said.ends_with("Its messages were not seen: no time was compared.\n"), "{said}");
}

#[test]
fn a_study_is_refused_by_what_its_agent_says_before_anything_is_begun() {
    for (protocol, drivers, wanted) in [
        (
            9,
            &["zenoh"][..],
            "the agent shell 7.1 speaks version 9 of the agent protocol, and this pubmark version 2: \
             update pubmark, or take the agent's release for this version",
        ),
        (
            1,
            &["zenoh"],
            "the agent shell 7.1 speaks version 1 of the agent protocol, and this pubmark version 2: \
             update the agent, or take its release for this version",
        ),
        (2, &["mqtt"], "the agent shell 7.1 has no driver `zenoh`; it has: mqtt"),
    ] {
        let place = Place::new();
        // Its system's router is the same program: it would log that it was started.
        let script = format!(
            "[ \"$1\" = --version ] && exec echo 'crate zenoh 1'\n[ \"$1\" = router ] && : >started\n{}",
            greeting(protocol, drivers)
        );
        program(&place, "pubmark-zenoh", &script);
        let path = format!("{}:{}", place.0.path().display(), std::env::var("PATH").unwrap());
        let mut command = place.command(&["bench", "zenoh-library", "--repeats", "1", "--out", "r", "-q"]);
        let output = command.env("PATH", path).env("XDG_CACHE_HOME", place.path("cache")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("zenoh-library cannot be played: {wanted}")), "{}", stderr(&output));
        assert!(!place.path("started").exists() && !place.path("r").exists(), "nothing was begun");
        place.assert_swept();
    }
}

#[test]
fn a_record_names_the_program_that_played() {
    let place = Place::new();
    let bench = place.bench(&["kernel", "--transport", "tcp"]);
    let agents = bench.record["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 2);
    for agent in agents {
        assert_eq!(agent["agent"], json!({"name": "pubmark", "version": env!("CARGO_PKG_VERSION")}));
        assert_eq!(agent["made"]["language"], "Rust");
    }
}

#[test]
fn a_run_whose_agent_missed_the_start_is_made_again_and_says_so() {
    let place = Place::new();
    // The first agent that is told to start reads it when the start has passed.
    let script = format!(
        "while IFS= read -r line; do\n\
         case $line in *'\"type\":\"start\"'*) if mkdir \"$(dirname \"$0\")/late\" 2>&-; then\n\
         at=${{line#*at_ns??}} at=${{at%%[!0-9]*}}\n\
         until read up idle </proc/uptime && [ \"$(echo $up | tr -d .)0000000\" -gt $at ]; do :; done\n\
         fi;; esac\n\
         printf '%s\\n' \"$line\"\n\
         done | '{}' agent",
        env!("CARGO_BIN_EXE_pubmark")
    );
    program(&place, "late.sh", &script);
    let system = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\nhomepage = \"h\"\ndriver = \"kernel\"\n\
                  agent = [\"{here}/late.sh\"]\ntransports = [\"tcp\"]\npatterns = [\"pairs\"]\n";
    std::fs::write(place.path("late.toml"), system).unwrap();
    let bench = place.bench(&["late.toml"]);
    assert_eq!(bench.error(), "");
    assert!(place.path("late").exists());
    let remarks = bench.record["remarks"].as_array().unwrap();
    let said = |remark: &&Value| remark.as_str().unwrap().contains("missed the start");
    assert_eq!(remarks.iter().filter(said).count(), 1, "{remarks:?}");
    place.assert_swept();
}

#[test]
fn what_comes_with_pubmark_asks_no_option_of_its_agent_that_this_does_not_know() {
    let hello = AgentHello { options: BUILT_IN.options(), ..AgentHello::default() };
    for system in registry::Registry::default().systems().into_iter().filter(|system| system.agent.built_in()) {
        let options = system.defaults();
        let asked = system.asks_of_clients(&options, &[]);
        let known = hello.knows_options(&system.driver, asked).map_err(|unknown| unknown.to_string());
        assert_eq!(known, Ok(()), "{}", system.name);
        assert!(hello.tells_options(&system.driver), "{}", system.driver);
    }
}
