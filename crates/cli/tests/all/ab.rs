//! Two arms in turns with the whole program, in virtual time; gates with bounds; changes within a history.

use crate::support::{Place, stderr, stdout};
use serde_json::{Value, json};
use std::process::Output;

/// A short workload of the mock, with some noise.
const MOCK: [&str; 12] = [
    "mock",
    "--rate",
    "1000",
    "--warmup",
    "100ms",
    "--duration",
    "2s",
    "--payload",
    "64B",
    "--set",
    "options.jitter=20us",
    "-q",
];

fn ab(place: &Place, arguments: &[&str]) -> Output {
    let output = place.run(&[&["ab"], &MOCK[..], arguments].concat());
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    output
}

/// Returns the exit code, and the JSON object.
fn found(place: &Place, folder: &str, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = ab(place, &[arguments, &["--json", "--out", folder]].concat());
    let read = serde_json::from_str(&stdout(&output));
    (output.status.code(), read.unwrap_or_else(|_| panic!("{}{}", stdout(&output), stderr(&output))))
}

/// Writes into each record of a folder that others used the machine.
fn disturb(place: &Place, folder: &str) {
    let disturbed = |mut record: Value| {
        let figures = ["counts", "rates", "latency_p50", "latency_p99", "cost"];
        let reason = json!({"reason": "noisy-machine", "evidence": "others kept it busy", "figures": figures});
        record["verdict"] = json!({"valid": false, "reasons": [reason], "notes": []});
        record.to_string() + "\n"
    };
    let text: String = place.records(folder).into_iter().map(disturbed).collect();
    std::fs::write(place.path(&format!("{folder}/runs.jsonl")), text).unwrap();
}

/// The order within a repeat is random, so a disturbance affects both arms equally: it can hide a change but cannot
/// cause one.
#[test]
fn on_a_busy_machine_a_gate_can_be_broken_and_is_never_held() {
    let place = Place::new();
    for (folder, b, before, after) in [("slower", "120us", "broken", "broken"), ("equal", "100us", "held", "open")] {
        let b = format!("options.delay={b}");
        let arms = ["--a", "options.delay=100us", "--b", &b, "--fail-on", "p99 > +5%", "--out", folder];
        ab(&place, &arms);
        let says = |word: &str| {
            let text = stdout(&place.run(&["report", folder]));
            assert!(text.contains(&format!("`p99 > +5%`: {word}")), "{word}: {text}");
            text
        };
        says(before);
        disturb(&place, folder);
        assert!(says(after).contains("of them unreliable"));
    }
}

#[test]
fn a_slower_arm_breaks_the_gate_and_an_equal_one_holds_it() {
    let place = Place::new();
    let slower = ["--a", "options.delay=100us", "--b", "options.delay=120us", "--fail-on", "p99 > +5%"];
    let (code, answer) = found(&place, "r", &slower);
    assert_eq!((code, &answer["outcome"]), (Some(1), &"failed".into()), "{answer:#}");
    assert_eq!((&answer["a"], &answer["b"]), (&"options.delay=100us".into(), &"options.delay=120us".into()));
    // 100 and 120 µs, each with up to 20 µs of jitter: 140 over 120.
    let ratio = answer["comparisons"][0]["change"]["value"].as_f64().unwrap();
    assert!((ratio / (139.8 / 119.8) - 1.0).abs() < 0.01, "{ratio}");
    let blocks = answer["blocks"].as_u64().unwrap();
    assert!(blocks <= 4, "a clear change takes few blocks: {blocks}");
    let records = place.records("r");
    assert_eq!(records.len() as u64, 2 * blocks, "each run is a record");

    // Each repeat has both arms, and each arm is first in one of two.
    let first: Vec<&Value> = records.iter().step_by(2).map(|record| &record["cell"]["part"]).collect();
    assert_ne!(first[0], first[1]);
    for block in records.chunks(2) {
        assert_eq!(block[0]["repeat"], block[1]["repeat"]);
        assert_ne!(block[0]["cell"]["part"], block[1]["cell"]["part"]);
    }

    let equal = ["--b", "options.delay=100us", "--fail-on", "p99 > +5%, lost > 0", "--require", "p99 < 5ms, lost = 0"];
    let (code, answer) = found(&place, "equal", &equal);
    assert_eq!((code, &answer["outcome"]), (Some(0), &"passed".into()), "{answer:#}");
    assert_eq!(answer["gates"].as_array().unwrap().len(), 4);
    place.assert_swept();
}

#[test]
fn a_report_of_the_folder_says_the_same() {
    let place = Place::new();
    let arguments = ["--b", "options.delay=120us", "--fail-on", "p99 > +5%", "--out", "r"];
    let said = ab(&place, &arguments);
    assert_eq!(said.status.code(), Some(1), "{}", stderr(&said));
    let line = stdout(&said).lines().find(|line| line.starts_with("p99 > +5%")).unwrap().to_owned();
    assert!(line.contains("broken"), "{line}");
    let report = stdout(&place.run(&["report", "r"]));
    assert!(report.contains("`p99 > +5%`: broken: p99 120 µs → 140 µs, +17 %"), "{report}");
    assert!(std::fs::read_to_string(place.path("r/report.html")).unwrap().contains("broken: p99 120"));
    // The same seed makes the same runs, and so the same result.
    let other = Place::new();
    assert_eq!(stdout(&ab(&other, &arguments)), stdout(&said));
    let markdown = stdout(&ab(&Place::new(), &[&arguments[..], &["--markdown"]].concat()));
    assert!(
        markdown.starts_with("# mock: a gate is broken") && markdown.contains("| p99 &gt; +5% | broken |"),
        "{markdown}"
    );
    // Its two arms are cells like any others.
    let compared = place.run(&["compare", "r", "--across", "part=a,b", "--fail-on", "p99 > +5%"]);
    assert_eq!(compared.status.code(), Some(1), "{}{}", stdout(&compared), stderr(&compared));
}

#[test]
fn a_change_at_its_bound_is_undecided_and_goes_on_later() {
    let place = Place::new();
    // Without noise, and exactly at the bound.
    let at_bound = ["--set", "options.jitter=0s", "--b", "options.delay=110us", "--fail-on", "p50 > +10%"];
    let (code, answer) = found(&place, "r", &[&at_bound[..], &["--budget", "1ms"]].concat());
    assert_eq!((code, &answer["outcome"], &answer["more_blocks"]), (Some(3), &"too_noisy".into(), &Value::Null));
    let first = answer["blocks"].as_u64().unwrap();
    assert_eq!(first, 1, "the first block is always made, and no more than there is time for");
    let (code, answer) = found(&place, "r", &[&at_bound[..], &["--budget", "2s", "--resume"]].concat());
    assert_eq!(code, Some(3), "{answer:#}");
    let blocks = answer["blocks"].as_u64().unwrap();
    assert!(blocks > first);
    let repeats: Vec<u64> = place.records("r").iter().map(|record| record["repeat"].as_u64().unwrap()).collect();
    assert!(repeats.is_sorted() && *repeats.last().unwrap() == blocks, "{repeats:?}");
    let said = ab(&place, &[&at_bound[..], &["--budget", "1ms", "--resume", "--out", "nowhere"]].concat());
    assert_eq!(said.status.code(), Some(2));
}

#[test]
fn arms_that_never_run_end_with_the_reason() {
    let place = Place::new();
    // Each message is lost: there is no latency to compare.
    let lossy =
        ["--set", "options.lose_every=1", "--b", "options.delay=120us", "--fail-on", "p99 > +5%", "--budget", "1s"];
    let (code, answer) = found(&place, "r", &lossy);
    assert_eq!((code, &answer["outcome"]), (Some(3), &"undecided".into()), "{answer:#}");
    let why = answer["comparisons"][0]["why"].as_str().unwrap();
    assert!(why.contains("messages-lost") || why.contains("no run has p99"), "{why}");
    let one = ["--set", "options.lose_every=100", "--fail-on", "p99 > +50%", "--require", "lost = 0"];
    let (code, answer) = found(&place, "lost", &one);
    assert_eq!(code, Some(1), "{answer:#}");
    assert!(answer["gates"][1]["failed"][0].as_str().unwrap().contains("B: 20 in "), "{answer:#}");
}

#[test]
fn a_study_is_measured_with_both_arms_at_each_of_its_points() {
    let place = Place::new();
    let path = place.study(
        "title = \"t\"\nquestion = \"q\"\n[workload]\nwarmup = \"100ms\"\nduration = \"2s\"\nrate = 1000\n\
         [axes]\nsystem = [\"mock\"]\npayload = [\"64B\", \"128B\"]\n[options]\njitter = \"20us\"\n",
    );
    let study = path.to_str().unwrap();
    let arguments = ["ab", study, "--b", "options.delay=120us", "--fail-on", "p50 > +5%", "-q", "--json", "--out", "r"];
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let labels: Vec<&str> =
        answer["comparisons"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["mock payload=64B", "mock payload=128B"].map(|label| label.replace("payload=", "")));
    // An arm may set an axis of the study.
    let arguments =
        ["ab", study, "--a", "payload=64B", "--b", "payload=1KiB", "--fail-on", "p50 > +5%", "-q", "--out", "r2"];
    assert_eq!(place.run(&arguments).status.code(), Some(0));
    let one_sided = ["ab", study, "--b", "payload=1KiB", "--fail-on", "p50 > +5%", "-q", "--out", "r3"];
    let said = place.run(&one_sided);
    assert_eq!(said.status.code(), Some(2));
    assert!(stderr(&said).contains("--a has no `payload`"), "{}", stderr(&said));
}

#[test]
fn bad_usage_says_the_way_out() {
    let place = Place::new();
    for (arguments, wanted) in [
        (&["--b", "options.delay=1ms"][..], "--fail-on 'p99 > +10%'"),
        (&["--b", "options.dely=1ms", "--fail-on", "p99 > +1%"], "did you mean `delay`"),
        (&["--b", "seed=2", "--fail-on", "p99 > +1%"], "no key of which two settings"),
        (&["--b", "system=mosquito", "--fail-on", "p99 > +1%"], "mosquitto"),
        (&["--a", "rate=1000", "--b", "rate=1_000", "--fail-on", "p99 > +1%"], "the same"),
        (&["--b", "options.delay=1ms", "--fail-on", "p99 < 5ms"], "--require 'p99 < 5ms'"),
        (&["--b", "options.password=x", "--fail-on", "p99 > +1%"], "recorded"),
        (&["--b", "options.delay=1ms", "--fail-on", "p99 > +1%", "--budget", "long"], "--budget"),
    ] {
        let output = ab(&place, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?} should say {wanted}: {}", stderr(&output));
    }
}

/// Over many seeds of noise: equal arms raise an alarm in at most 5 of 100, a rise of 10 % over a bound of 5 % is found
/// each time.
#[test]
fn equal_arms_raise_no_alarm_and_ten_per_cent_are_found() {
    let place = Place::new();
    let mut alarms = 0;
    for seed in 1..=20 {
        let seed = format!("seed={seed}");
        let equal = [
            "--set",
            &seed,
            "--set",
            "options.jitter=100us",
            "--a",
            "options.delay=100us",
            "--b",
            "options.delay=100us",
        ];
        let (code, _) = found(&place, &seed, &[&equal[..], &["--fail-on", "p50 > +0%", "--budget", "500ms"]].concat());
        alarms += usize::from(code == Some(1));
    }
    assert!(alarms <= 3, "{alarms} of 20 (of 100: at most 5; 4 or more of 20 come once in 60 times)");
    for seed in ["seed=1", "seed=2", "seed=3"] {
        let slower =
            ["--set", seed, "--set", "options.jitter=2us", "--b", "options.delay=110us", "--fail-on", "p50 > +5%"];
        let (code, answer) = found(&place, &format!("slow-{seed}"), &slower);
        assert_eq!(code, Some(1), "{answer:#}");
    }
}

fn bench(place: &Place, folder: &str, more: &[&str]) -> Output {
    place.run(&[&["bench"], &MOCK[..], &["--repeats", "3", "--out", folder], more].concat())
}

#[test]
fn bounds_are_gates_of_a_bench_and_of_a_comparison() {
    let place = Place::new();
    let junit = place.path("j.xml");
    let junit = junit.to_str().unwrap();
    let kept = bench(&place, "a", &["--require", "p99 < 5ms and lost = 0", "--junit", junit]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"0\"") && xml.contains("name=\"p99 &lt; 5ms\"/>"), "{xml}");
    let broken = bench(&place, "b", &["--require", "p99 < 50us", "--junit", junit]);
    assert_eq!(broken.status.code(), Some(1), "{}", stderr(&broken));
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("<failure type=\"broken\""), "{xml}");
    for (gate, code) in [("p99 > 5ms", 0), ("p99 > 50us", 1), ("lost > 0", 0), ("p99 > +5%", 2), ("p99 < 5ms", 2)] {
        let folder = format!("f{}", gate.replace([' ', '>', '<', '%', '+'], ""));
        let found = bench(&place, &format!("{folder}{code}"), &["--fail-on", gate]);
        assert_eq!(found.status.code(), Some(code), "{gate}: {}", stderr(&found));
    }
    // The noise of one run is unknown, but counts are facts nevertheless.
    let single =
        place.run(&[&["bench"], &MOCK[..], &["--repeats", "1", "--out", "s", "--require", "p99 < 5ms"]].concat());
    assert_eq!(single.status.code(), Some(3), "{}", stderr(&single));
    let single =
        place.run(&[&["bench"], &MOCK[..], &["--repeats", "1", "--out", "s2", "--require", "lost = 0"]].concat());
    assert_eq!(single.status.code(), Some(0), "{}", stderr(&single));
    for (gate, code) in [("p99 < 5ms", 0), ("p99 < 50us", 1), ("lost >= 1%", 1)] {
        let found = place.run(&["compare", "a", "b", "--require", gate]);
        assert_eq!(found.status.code(), Some(code), "{gate}: {}{}", stdout(&found), stderr(&found));
    }
}

#[test]
fn a_change_within_a_history_has_a_date() {
    let place = Place::new();
    let folders: Vec<String> = (0..12).map(|day| format!("n{day}")).collect();
    for (day, folder) in folders.iter().enumerate() {
        let (seed, delay) = (format!("seed={}", day + 1), if day < 7 { "100us" } else { "115us" });
        let made = bench(&place, folder, &["--set", &seed, "--set", &format!("options.delay={delay}")]);
        assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    }
    // In any order: the time of their runs counts.
    let mut names: Vec<&str> = folders.iter().map(String::as_str).collect();
    names.reverse();
    let look = |names: &[&str], more: &[&str]| place.run(&[&["compare", "--history"], names, more].concat());
    let output = look(&names, &["--fail-on", "p50 > +5%", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let history: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&history["folders"][0]["name"], &history["series"][0]["since"]),
        (&"n0".into(), &7.into()),
        "{history:#}"
    );
    let said = stdout(&look(&names, &[]));
    assert!(said.contains("(n7)") && said.contains("+14 %"), "{said}");
    assert_eq!(look(&names[5..], &["--fail-on", "p50 > +5%"]).status.code(), Some(0), "before, nothing has changed");
    assert_eq!(look(&names[8..], &["--fail-on", "p50 > +5%"]).status.code(), Some(3), "too few to say anything");
}

#[test]
fn systems_of_one_folder_are_compared_across() {
    let place = Place::new();
    let study = "title = \"t\"\nquestion = \"q\"\n[workload]\nwarmup = \"100ms\"\nduration = \"2s\"\n[run]\nrepeats = 4\n\
                 [axes]\nsystem = [\"mock\"]\nrate = [500, 1000]\n[axes.options]\ndelay = [\"100us\", \"130us\"]\n\
                 [options]\njitter = \"10us\"\n";
    let path = place.study(study);
    let run = place.run(&["run", path.to_str().unwrap(), "--out", "r", "-q"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let across = |values: &str| place.run(&["compare", "r", "--across", values, "--fail-on", "p50 > +10%"]);
    let output = across("options.delay=100us,130us");
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    assert!(
        said.contains("mock rate=500") && said.contains("mock rate=1000") && !said.contains("one after the other"),
        "{said}"
    );
    assert_eq!(across("options.delay=130us,100us").status.code(), Some(0));
    for (values, wanted) in [
        ("options.delay=100us", "two different values"),
        ("options.delay=100us,100us", "two different values"),
        ("options.delay=100us,1ms", "no `1ms` on the axis"),
        ("nothing=1,2", "no axis `nothing`"),
    ] {
        let output = across(values);
        assert_eq!(output.status.code(), Some(2), "{values}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{values}: {}", stderr(&output));
    }
}
