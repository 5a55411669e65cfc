//! Studies that are measured until their questions are decided, in virtual time: their questions, results, output and
//! resuming.

use crate::support::{Place, stderr, stdout};
use crate::terminal::Terminal;
use jiff::Timestamp;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Output;

/// Returns a place with systems in virtual time, each with its own delay.
fn place(systems: &[(&str, &str)]) -> Place {
    let place = Place::new();
    let mock = include_str!("../../../../systems/mock.toml");
    for (name, delay) in systems {
        let text = mock.replace("default = \"100us\"", &format!("default = \"{delay}\""));
        assert!(text.contains(&format!("default = \"{delay}\"")));
        place.system(name, &text);
    }
    place
}

/// Writes a study of these systems at two rates; a run has a second of messages.
fn study(place: &Place, systems: &str, more: &str) {
    place.study(&format!(
        "title = \"t\"\nquestion = \"q\"\n[workload]\npattern = \"pairs\"\nwarmup = \"100ms\"\nduration = \"1s\"\n\
         [axes]\nsystem = [{systems}]\nrate = [1000, 2000]\n{more}"
    ));
}

fn run(place: &Place, arguments: &[&str]) -> Output {
    let all = [&["run", "study.toml", "--out", "r"], arguments].concat();
    place.command(&all).env("XDG_CONFIG_HOME", place.path("config")).output().unwrap()
}

/// Returns the number of runs of each system.
fn runs(records: &[Value]) -> HashMap<String, usize> {
    let mut runs: HashMap<String, usize> = HashMap::new();
    for record in records {
        *runs.entry(record["system"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    runs
}

/// Returns the time from the start of the first of these runs to that of the last, s.
fn span_s(records: &[Value]) -> f64 {
    let began = |record: &Value| record["started"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let (first, last) = (began(records.first().unwrap()), began(records.last().unwrap()));
    last.duration_since(first).as_secs_f64()
}

/// Returns the system and the verdict of each cell in a folder's summary, as `pubmark report` prints it.
fn places(place: &Place) -> Vec<(String, String)> {
    let output = place.run(&["report", "r", "--json"]);
    let said: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cells = said["summary"].as_array().unwrap();
    let of = |cell: &Value| {
        let text = |name: &str| cell[name].as_str().unwrap_or_default().to_owned();
        (text("system"), text("verdict"))
    };
    cells.iter().map(of).collect()
}

#[test]
fn blocks_are_made_until_all_is_decided_and_no_longer() {
    let place = place(&[("swift", "100us"), ("steady", "200us"), ("slow", "900us")]);
    let claim = "[[claims]]\nid = \"1\"\nsays = \"swift is best\"\nfigure = \"latency_p50_ns\"\nbest = [\"swift\"]\n";
    study(&place, "\"swift\", \"steady\", \"slow\"", &format!("{claim}[options]\njitter = \"20us\"\n"));
    let output = run(&place, &["--budget", "10m"]);
    let (said, noted) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}\n{noted}");
    assert!(said.contains("3 of 3 questions decided") && said.contains("nothing is open"), "{said}");
    assert!(said.contains("claim 1: swift is best: holds (2 won, 0 lost, 0 open of 2)"), "{said}");
    assert!(said.contains("best by median latency at rate=1000: swift"), "{said}");
    assert!(noted.contains("questions: 0 decided, 3 open;"), "{noted}");
    // Decided and open questions are printed whenever they change.
    let said_of = |word: &str, text: &str| noted.lines().any(|line| line.trim_start() == format!("{word}: {text}"));
    assert!(said_of("decided", "best by median latency at rate=1000: swift"), "{noted}");
    assert!(said_of("decided", "claim 1: swift is best: holds (2 won, 0 lost, 0 open of 2)"), "{noted}");
    assert!(said_of("open", "best by median latency at rate=1000; cannot estimate the time still needed"), "{noted}");
    let last = noted.lines().rfind(|line| line.starts_with("questions: ")).unwrap();
    assert!(last.starts_with("questions: 3 decided, 0 open;"), "{noted}");
    let records = place.records("r");
    assert!((12..=60).contains(&records.len()), "two blocks at least, and not many: {}", records.len());
    // The folder's report equals the output of the run.
    let places = places(&place);
    let winners: Vec<&str> =
        places.iter().filter(|(_, verdict)| verdict == "winner").map(|(system, _)| system.as_str()).collect();
    assert_eq!(winners, ["swift", "swift"], "{places:?}");
    let study = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(study.contains("stop = \"decided\""), "{study}");

    // The output is the same without a reader: nothing is left to measure.
    let again = run(&place, &["--budget", "10m", "--resume", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(stdout(&again), stdout(&place.run(&["report", "r", "--json"])), "the folder alone says it");
    let said: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(said["summary"].as_array().unwrap().len(), 6, "a row a cell");
    let claim = &said["questions"][0];
    let all = json!({
        "text": "claim 1: swift is best", "kind": "claim", "state": "decided",
        "answer": "holds (2 won, 0 lost, 0 open of 2)", "why": null, "blocks_more": null,
    });
    assert_eq!(claim, &all);
    let best = &said["questions"][1];
    assert_eq!(
        (&best["kind"], &best["text"], &best["answer"]),
        (&"best".into(), &"best by median latency at rate=1000".into(), &"swift".into(),)
    );
}

#[test]
fn what_is_behind_is_not_measured_again_and_the_time_is_kept() {
    // Medians of 100 messages spread by a tenth: two are too close to each other for a few hundred runs, and one is far
    // behind.
    let place = place(&[("one", "100us"), ("other", "2665us"), ("slow", "90ms")]);
    study(&place, "\"one\", \"other\", \"slow\"", "[options.one]\njitter = \"5ms\"\n");
    let few = ["--set", "rate=100", "--budget"];
    let output = run(&place, &[&few[..], &["2s"]].concat());
    let (said, noted) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(3), "what is open has no answer: {said}\n{noted}");
    assert!(said.contains("0 of 1 questions decided") && said.contains("the time is over"), "{said}");
    assert!(said.contains("the differences are within the noise"), "{said}");
    assert!(noted.contains("to go on: the same command and --out r --resume, with any --budget"), "{noted}");
    let first = place.records("r");
    assert!(span_s(&first) <= 2.0, "no run is begun when the time is over: {}", span_s(&first));
    let by_system = runs(&first);
    assert!(by_system["slow"] < by_system["one"], "{by_system:?}");
    assert!(by_system["one"].abs_diff(by_system["other"]) <= 2, "blocks stay whole: {by_system:?}");

    let said: Value = serde_json::from_str(&stdout(&place.run(&["report", "r", "--json"]))).unwrap();
    let question = &said["questions"][0];
    assert_eq!((&question["state"], &question["answer"]), (&"open".into(), &Value::Null), "{said}");
    assert!(question["why"].as_str().unwrap().contains("the differences are within the noise"), "{question}");
    let blocks_more = &question["blocks_more"];
    assert!(blocks_more.is_null() || blocks_more.as_u64() > Some(0), "{question}");

    // It continues with the existing runs; none is made twice.
    let output = run(&place, &[&few[..], &["1s", "--resume"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let records = place.records("r");
    assert_eq!(records[..first.len()], first[..]);
    assert!(records.len() > first.len());
    assert!(span_s(&records[first.len()..]) <= 1.0, "{}", span_s(&records[first.len()..]));
    let mut made: Vec<String> =
        records.iter().map(|record| format!("{} {}", record["cell"], record["repeat"])).collect();
    let all = made.len();
    made.sort_unstable();
    made.dedup();
    assert_eq!(made.len(), all);

    // A fixed number of repeats and a number that depends on results are not of one study.
    let fixed = ["--set", "rate=100", "--resume"];
    let refused = run(&place, &fixed);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("with other settings"), "{}", stderr(&refused));
}

#[test]
fn what_is_decided_and_what_is_open_stands_in_the_live_table_and_an_interrupted_study_goes_on() {
    let place = place(&[("one", "100us"), ("other", "2665us"), ("slow", "90ms")]);
    let claim = "[[claims]]\nid = \"1\"\nsays = \"slow is best\"\nfigure = \"latency_p50_ns\"\nbest = [\"slow\"]\ngate = true\n";
    study(&place, "\"one\", \"other\", \"slow\"", &format!("{claim}[options.one]\njitter = \"5ms\"\n"));
    let all = ["run", "study.toml", "--out", "r", "--set", "rate=100", "--budget"];
    let config = place.path("config").display().to_string();
    let terminal = Terminal::start(&place, 120, 30, &[&all[..], &["10m"]].concat(), &[("XDG_CONFIG_HOME", &config)]);
    terminal.wait("what is decided, and what is open with its time", |lines| {
        let has = |start: &str, rest: &str| {
            lines.iter().any(|line| {
                line.split_once(start).is_some_and(|(before, after)| before.is_empty() && after.contains(rest))
            })
        };
        let is_told = has("open  best by median latency", " more") && has("done  claim 1: slow is best: ", "fails");
        (is_told && lines.iter().any(|line| line.contains("1 decided, 1 open;"))).then_some(())
    });
    terminal.signal(Signal::SIGINT);
    let (code, last, _) = terminal.end();
    let text = last.join("\n");
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("1 of 2 questions decided") && text.contains(": interrupted"), "{text}");
    let first = place.records("r");

    let output = run(&place, &["--set", "rate=100", "--budget", "1s", "--resume"]);
    let (said, noted) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{said}\n{noted}");
    assert!(
        said.contains("the time is over") && noted.contains("decided: claim 1: slow is best: fails"),
        "{said}\n{noted}"
    );
    let records = place.records("r");
    assert_eq!(records[..first.len()], first[..], "what was there is kept");
    assert!(records.len() > first.len(), "and it goes on");
    assert!(span_s(&records[first.len()..]) <= 1.0);
}

#[test]
fn systems_that_are_the_same_tie() {
    let place = place(&[("one", "100us"), ("other", "101us")]);
    study(&place, "\"one\", \"other\"", "[options]\njitter = \"10us\"\n");
    let output = run(&place, &["--budget", "10m"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("2 of 2 questions decided") && said.contains(": tie: "), "{said}");
}

#[test]
fn runs_that_do_not_count_are_made_again_and_not_for_ever() {
    let place = place(&[("one", "100us"), ("lossy", "200us")]);
    study(&place, "\"one\", \"lossy\"", "[options.lossy]\nlose_every = 7\n");
    let output = run(&place, &["--budget", "10m"]);
    let said = stdout(&output);
    let records = place.records("r");
    let by_system = runs(&records);
    // Eight consecutive runs of each of its two cells, two of three of them repeated.
    assert_eq!(by_system["lossy"], 16, "{by_system:?}, {said}");
    assert_eq!(by_system["one"], 6, "once a block: {by_system:?}");
    assert!(said.contains("10 of them repeated because the one before was unreliable or failed"), "{said}");
    assert!(said.contains("unreliable runs (lossy rate=1000: messages-lost)"), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    // It is a fact of the folder: a report and a resumed call print it.
    let report = stdout(&place.run(&["report", "r", "--all"]));
    assert!(report.contains("10 repeated, because the one before was unreliable or failed"), "{report}");
    let again = stdout(&run(&place, &["--budget", "10m", "--resume"]));
    assert_eq!(runs(&place.records("r"))["lossy"], 32, "as often once more");
    assert!(again.contains("20 of them repeated"), "those of the first call among them: {again}");
}

#[test]
fn what_is_asked_can_be_seen_before_and_what_asks_nothing_is_refused() {
    let place = place(&[("one", "100us"), ("other", "300us")]);
    study(&place, "\"one\", \"other\"", "");
    let output = run(&place, &["--budget", "5m", "--dry-run"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0));
    for line in
        ["best by median latency at rate=1000\n", "best by median latency at rate=2000\n", "2 questions; one block"]
    {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!place.path("r").exists());

    let refused = |arguments: &[&str], says: &str| {
        let output = run(&place, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    };
    refused(&["--budget", "5m", "--only", "system=one"], "there is nothing to decide");
    refused(&["--budget", "soon"], "--budget");
    refused(&["--budget", "0s"], "--budget");
    refused(&["--budget", "5m", "--set", "order=sequential"], "order");
    refused(&["--set", "stop=decided"], "--budget 30m");
    refused(&["--budget", "5m", "--repeats", "3"], "cannot be used with");
}

/// Windows are as short as the questions allow; the folder records that, and resumes so.
#[test]
fn windows_are_as_short_as_the_figures_allow_that_are_asked_for() {
    let place = place(&[("one", "100us"), ("other", "300us")]);
    let study = |more: &str| {
        place.study(&format!(
            "title = \"t\"\nquestion = \"q\"\n[workload]\npattern = \"pairs\"\nwarmup = \"100ms\"\nduration = \"30s\"\n\
             [options]\njitter = \"10us\"\n[axes]\nsystem = [\"one\", \"other\"]\nrate = [20, 100, 1000]\n{more}"
        ));
    };
    let windows = |folder: &str| {
        let mut windows: Vec<(u64, u64)> = place
            .records(folder)
            .iter()
            .map(|record| (record["cell"]["rate"].as_u64().unwrap(), record["window_ns"].as_u64().unwrap() / 1_000_000))
            .collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    };
    study("");
    let said = stdout(&run(&place, &["--budget", "10m", "--dry-run"]));
    assert!(said.contains("windows of 5500ms instead of 30s in 2 cells: 110 messages for p50"), "{said}");
    assert!(said.contains("windows of 2s instead of 30s in 4 cells: no window is shorter"), "{said}");
    let output = run(&place, &["--budget", "10m"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(windows("r"), [(20, 5_500), (100, 2_000), (1_000, 2_000)]);
    let resolved = std::fs::read_to_string(place.path("r/study.toml")).unwrap();
    assert!(resolved.contains("windows = \"asked\"") && resolved.contains("duration = \"30s\""), "{resolved}");
    let refused = run(&place, &["--budget", "10m", "--resume", "--set", "windows=whole"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("with other settings"), "{}", stderr(&refused));

    // A 99th percentile needs more, and counts over the window need the whole of it.
    study("[questions]\nbest = [\"auto\", \"latency_p99_ns\"]\n");
    let said = stdout(&run(&place, &["--budget", "10m", "--dry-run"]));
    assert!(said.contains("windows of 11s instead of 30s in 2 cells: 1100 messages for p99"), "{said}");
    // At `max` the number of messages in the time counts.
    let said = stdout(&run(&place, &["--budget", "10m", "--dry-run", "--set", "rate=100,max"]));
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("windows of")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains(" in 2 cells: "), "{said}");
    // Questions about some points leave the windows of the others short.
    study(
        "[[claims]]\nid = \"1\"\nsays = \"s\"\nfigure = \"delivered_per_s\"\nbest = [\"one\"]\n[claims.where]\nrate = 100\n",
    );
    let said = stdout(&run(&place, &["--budget", "10m", "--dry-run"]));
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("windows of")).collect();
    assert!(
        matches!(lines[..], [at_1000, at_20] if at_1000.contains("of 2s instead of 30s in 2 cells")
        && at_20.contains("of 5500ms instead of 30s in 2 cells")),
        "{said}"
    );
    for whole in ["[questions]\nbest = [\"delivered_ratio\"]\n", "[run]\nwindows = \"whole\"\n"] {
        study(whole);
        let said = stdout(&run(&place, &["--budget", "10m", "--dry-run"]));
        assert!(!said.contains("windows of"), "{whole}: {said}");
    }
}

#[test]
fn a_figure_is_measured_until_it_is_known() {
    let place = Place::new();
    let bench = |more: &[&str]| {
        let usual = ["bench", "mock", "--duration", "1s", "--set", "options.jitter=20us"];
        place.run(&[&usual, more].concat())
    };
    let output = bench(&["--precision", "±20%", "--out", "r"]);
    let (said, noted) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{said}\n{noted}");
    assert!(said.contains("1 of 1 questions decided"), "{said}");
    assert!(said.contains("p50 to within ±20% of mock") && said.contains(" to "), "{said}");
    assert!((2..=24).contains(&place.records("r").len()), "{}", place.records("r").len());
    let again = stdout(&place.run(&["report", "r"]));
    assert!(again.contains("mock"), "{again}");

    let output = bench(&["--rate", "500,1000", "--precision", "p50 +- 20%", "--json", "--out", "s"]);
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cells = told["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{told}");
    for (cell, rate) in cells.iter().zip([500, 1_000]) {
        assert_eq!((&cell["cell"]["rate"], &cell["summary"]["rate"]), (&rate.into(), &rate.into()), "{cell}");
        assert!(cell["runs"].as_array().unwrap().len() >= 2, "{cell}");
    }
    assert!(stderr(&output).contains("2 of 2 questions decided"), "{}", stderr(&output));
}

#[test]
fn how_well_a_figure_is_to_be_known_is_checked_before_anything_runs() {
    let place = Place::new();
    for (arguments, wanted) in [
        (&["--precision", "2%"][..], "--precision: `2%` says not how well a figure is to be known"),
        (&["--precision", "p98 ±2%"], "there is no figure `p98`"),
        (&["--precision", "±2%", "--repeats", "3"], "--repeats"),
        (&["--budget", "5m"], "--precision"),
    ] {
        let output = place.run(&[&["bench", "mock", "--out", "r"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
        assert!(!place.path("r").exists());
    }
}
