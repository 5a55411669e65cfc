//! The conformance suite fails agents that measure wrongly, each by the case that names its fault, and passes correct
//! ones.

mod wrong;

use crate::book::page::root;
use crate::left_out::is_long;
use crate::support::{Place, pubmark, stdout};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use wrong::{WRONG, WRONG_AT_A_SERVER, WRONG_IN_NODE, WRONG_LATE, WRONG_RELAYED, Wrong};

const BUILT_IN: &str = env!("CARGO_BIN_EXE_pubmark");

/// Returns the agent that docs/add-a-language.md explains.
pub fn of_the_page() -> String {
    std::fs::read_to_string(root().join("docs/examples/agent.py")).unwrap()
}

/// Returns the output of `agent-check --json` for an agent.
fn cases(flags: &[&str], agent: &[&str]) -> Vec<Value> {
    let place = Place::new();
    let output = place.run(&[&["agent-check", "--json"], flags, &["--"], agent].concat());
    let said: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let cases = said["cases"].as_array().unwrap().clone();
    let wrong = cases.iter().filter(|case| case["outcome"] == "otherwise").count();
    let tried = cases.iter().filter(|case| case["outcome"] != "not_tried").count();
    assert_eq!(said["tried"], tried);
    assert_eq!(output.status.code(), Some(i32::from(wrong > 0 || tried == 0)));
    cases
}

/// Checks that all cases pass. Returns how many were tried.
fn passes(flags: &[&str], agent: &[&str]) -> usize {
    let cases = cases(flags, agent);
    let wrong: Vec<&Value> = cases.iter().filter(|case| case["outcome"] == "otherwise").collect();
    assert!(wrong.is_empty(), "{flags:?} {agent:?}: {wrong:#?}");
    cases.iter().filter(|case| case["outcome"] == "as_due").count()
}

#[test]
fn the_built_in_agent_passes_on_every_transport() {
    if !is_long("the_built_in_agent_passes_on_every_transport") {
        return;
    }
    // Inproc has only the meetings, udp may lose fast messages. In parallel, because most of it is waiting.
    let on = |transport| passes(&["--driver", "kernel", "--transport", transport], &[BUILT_IN, "agent"]);
    thread::scope(|scope| {
        let tries = ["inproc", "ipc", "tcp", "udp"].map(|transport| (transport, scope.spawn(move || on(transport))));
        for (transport, tried) in tries {
            let (tried, least) = (tried.join().unwrap(), if transport == "inproc" { 19 } else { 80 });
            assert!(tried >= least, "{transport}: {tried} cases were tried");
        }
    });
}

#[test]
fn the_built_in_agent_passes_over_every_protocol_of_a_broker() {
    if !is_long("the_built_in_agent_passes_over_every_protocol_of_a_broker") {
        return;
    }
    for driver in ["mqtt", "nats", "redis", "amqp", "amqp1", "kafka"] {
        let tried = passes(&["--driver", driver], &[BUILT_IN, "agent"]);
        assert!(tried >= 20, "{driver}: {tried} cases were tried");
    }
}

const IN_NODE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/conformance/agent.mjs");

#[test]
fn an_agent_in_node_passes() {
    if !is_long("an_agent_in_node_passes") {
        return;
    }
    let tried = passes(&["--transport", "tcp"], &["node", IN_NODE]);
    assert!(tried >= 60, "{tried} cases were tried");
}

const RELAYED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/conformance/relayed.mjs");

/// Returns the cases of these faults, each once.
fn cases_of(faults: &[Wrong]) -> Vec<&'static str> {
    let mut cases: Vec<_> = faults.iter().map(|fault| fault.case).collect();
    cases.sort_unstable();
    cases.dedup();
    cases
}

#[test]
fn an_agent_behind_a_relay_is_right_before_it_is_made_wrong() {
    if !is_long("an_agent_behind_a_relay_is_right_before_it_is_made_wrong") {
        return;
    }
    for (faults, flags) in
        [(WRONG_RELAYED, &["--driver", "kernel", "--transport", "tcp"][..]), (WRONG_AT_A_SERVER, &["--driver", "mqtt"])]
    {
        let cases = cases_of(faults);
        let names = cases.join(",");
        let only = [flags, &["--only", &names]].concat();
        assert_eq!(passes(&only, &["node", RELAYED, BUILT_IN]), cases.len());
    }
}

/// Returns the number of lines of code in an agent's text.
fn lines_of_code(text: &str, comment: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(comment)).count()
}

#[test]
fn an_agent_of_sockets_takes_fewer_than_320_lines() {
    for (text, comment) in [(of_the_page(), "#"), (std::fs::read_to_string(IN_NODE).unwrap(), "//")] {
        let lines = lines_of_code(&text, comment);
        assert!(lines < 320, "{lines} lines, the first of them {:?}", text.lines().next());
    }
}

/// A correct agent: its program, its text, the arguments after it, and what it must play.
#[derive(Clone, Copy)]
struct Right<'a> {
    program: &'a str,
    text: &'a str,
    follows: &'a [&'a str],
    flags: [&'a str; 2],
}

/// Runs one agent with one fault. Returns an error unless the named case fails.
fn refused(place: &Place, agent: Right<'_>, number: usize, fault: &Wrong) -> Option<String> {
    let Wrong { what, case, right, wrong } = fault;
    let Right { program, text, follows, flags } = agent;
    let times = text.matches(right).count();
    if times != 1 {
        return Some(format!("{what}: the agent has {right:?} {times} times"));
    }
    // Node takes only files with this extension as modules.
    let path = place.path(&format!("wrong-{number}.mjs"));
    std::fs::write(&path, text.replace(right, wrong)).unwrap();
    let mut command = pubmark();
    command.arg("agent-check").args(flags).args(["--json", "--only", case, "--", program]).arg(&path).args(follows);
    let output = command.env("TMPDIR", place.tmp()).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let found = said["cases"]
        .as_array()
        .and_then(|cases| cases.iter().find(|found| found["case"].as_str().is_some_and(|name| name.ends_with(case))));
    let outcome = found.map_or(&Value::Null, |found| &found["outcome"]);
    (outcome != "otherwise" || output.status.code() != Some(1)).then(|| format!("{what}: {case} says {said}"))
}

#[test]
fn every_wrong_agent_is_refused_by_the_case_that_names_its_fault() {
    assert!(WRONG.len() >= 40);
    let (page, in_node) = (of_the_page(), std::fs::read_to_string(IN_NODE).unwrap());
    let relayed = std::fs::read_to_string(RELAYED).unwrap();
    let tcp = ["--transport", "tcp"];
    let in_node = Right { program: "node", text: &in_node, follows: &[], flags: tcp };
    let kinds = [
        (WRONG, Right { program: "python3", text: &page, ..in_node }),
        (WRONG_LATE, Right { program: "python3", text: &page, ..in_node }),
        (WRONG_IN_NODE, in_node),
        (WRONG_RELAYED, Right { text: &relayed, follows: &[BUILT_IN], ..in_node }),
        (WRONG_AT_A_SERVER, Right { text: &relayed, follows: &[BUILT_IN], flags: ["--driver", "mqtt"], ..in_node }),
    ];
    let step = if is_long("every_wrong_agent_is_refused_by_the_case_that_names_its_fault (the other nine of ten)") {
        1
    } else {
        10
    };
    let all: Vec<_> = kinds
        .iter()
        .flat_map(|(faults, agent)| faults.iter().step_by(step).map(move |fault| (*agent, fault)))
        .collect();
    let place = Place::new();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((agent, fault)) = all.get(number) else { return };
            // Computed before the lock is taken, or they would wait for each other. What a case allows grows with what
            // bare sockets need at that moment, so a busy machine may hide a fault once.
            let told = (0..3).map_while(|_| refused(&place, *agent, number, fault)).nth(2);
            missed.lock().unwrap().extend(told);
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{} of {} were missed:\n{}", missed.len(), all.len(), missed.join("\n"));
    place.assert_swept();
}

/// Mutants of the Python agent that is measured, and the case that fails each.
const MUTANTS: [(&str, &str); 6] = [
    ("latency-plus-2ms", "receive-apart"),
    ("hist-highest-1s-clamped", "receive-late"),
    ("late-above-1s-skipped", "send-stopped-long"),
    ("poisson-seed-without-publisher", "send-poisson"),
    ("refusal-is-own-lag", "send-blocked"),
    ("usage-cpu-of-one-thread", "send-usage"),
];

#[test]
fn mutants_of_a_binding_are_refused_and_itself_is_not() {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/mutants.py");
    let mutants = |arguments: &[&str]| {
        let place = Place::new();
        let mut command = std::process::Command::new("python3");
        command.arg("-B").arg(&script).args(["--pubmark", BUILT_IN]).args(arguments).env("TMPDIR", place.tmp());
        let output = command.output().unwrap();
        (output.status.code(), stdout(&output))
    };
    // Each mutation still applies.
    let (code, said) = mutants(&["--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    if !crate::bindings::here("mutants_of_a_binding_are_refused_and_itself_is_not", &["zeromq-python"]) {
        return;
    }
    let long = is_long("conformance::mutants_of_a_binding_are_refused_and_itself_is_not (the other four of six)");
    let tried = &MUTANTS[..if long { MUTANTS.len() } else { 2 }];
    for (name, case) in tried {
        let (_, said) = mutants(&["--only", case, name]);
        let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.ends_with(&format!("tcp/{case}")), "{name}: {said}");
    }
    let cases = tried.iter().map(|(_, case)| *case).collect::<Vec<_>>().join(",");
    let (_, said) = mutants(&["--only", &cases, "right"]);
    assert!(said.contains("the right agent passes"), "{said}");
}

#[test]
fn cases_are_named_with_what_is_sent_and_what_is_due() {
    let place = Place::new();
    let listed = stdout(&place.run(&["agent-check", "--list"]));
    let cases: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    let all = [WRONG, WRONG_LATE, WRONG_IN_NODE, WRONG_RELAYED, WRONG_AT_A_SERVER];
    let tried: Vec<&str> = all.into_iter().flatten().map(|wrong| wrong.case).collect();
    let unknown: Vec<_> = tried.iter().filter(|name| !cases.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?} are no cases");
    let untried: Vec<_> = cases.iter().filter(|name| !tried.contains(name)).collect();
    assert!(untried.is_empty(), "{untried:?}: no wrong agent is refused by these cases");
    let output = place.run(&["agent-check", "--only", "no-such-case", "--", BUILT_IN, "agent"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(crate::support::stderr(&output).contains("there is no case `no-such-case`"));
}
