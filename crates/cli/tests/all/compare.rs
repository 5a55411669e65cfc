//! Comparison of two results folders with the whole program.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Makes three runs of the mock into a folder, with these options.
fn bench(place: &Place, folder: &str, repeats: &str, options: &[&str]) {
    let mut arguments = vec!["bench", "mock", "--rate", "1000", "--warmup", "1s", "--duration", "2s", "-q"];
    arguments.extend(["--payload", "64B", "--set", "options.jitter=20us", "--repeats", repeats, "--out", folder]);
    for option in options {
        arguments.extend(["--set", option]);
    }
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Returns the exit code and the output.
fn compare(place: &Place, arguments: &[&str]) -> (i32, String) {
    let mut all = vec!["compare"];
    all.extend(arguments);
    let output = place.run(&all);
    let said = stderr(&output);
    assert!(!said.contains("panicked"), "{said}");
    (output.status.code().unwrap(), stdout(&output) + &said)
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    serde_json::from_str(&compare(place, &all).1).unwrap()
}

#[test]
fn what_has_not_changed_passes_every_gate() {
    let place = Place::new();
    bench(&place, "a", "3", &[]);
    bench(&place, "b", "3", &["seed=2"]);
    let (code, said) =
        compare(&place, &["a", "b", "--fail-on", "p50 > +3%, p99 > +3%, delivered_per_s < -1%, lost > 0"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("were measured one after the other"), "{said}");
    // No measurement shows that nothing at all has changed.
    let (code, said) = compare(&place, &["a", "b", "--fail-on", "p50 > +0%"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("too noisy to see it") && said.contains("the smallest rise"), "{said}");
    assert_eq!(compare(&place, &["a", "b", "--fail-on", "p50 > +0%", "--allow-noisy"]).0, 0);
    assert!(said.contains("0 worse, 0 better"), "{said}");
    assert!(said.contains("workload.seed"), "another seed is another setting: {said}");
    assert!(!said.contains("with itself"), "{said}");
    let (code, said) = compare(&place, &["a", "./a"]);
    assert!(code == 0 && said.contains("a is compared with itself"), "{said}");
    let found = json(&place, &["a", "b"]);
    assert_eq!((&found["a"], &found["b"]), (&"a".into(), &"b".into()));
    assert_eq!(found["tally"]["undecided"], 0);
    assert!(found["tally"]["no_difference"].as_u64().unwrap() >= 5, "{found}");
    assert_ne!(found["same"][0]["changes"][0]["ratio"]["value"], 1.0, "two seeds are two measurements");
}

#[test]
fn a_delay_is_found_and_fails_the_gate() {
    let place = Place::new();
    bench(&place, "a", "3", &[]);
    bench(&place, "b", "3", &["options.delay=120us"]);
    let (code, said) = compare(&place, &["a", "b", "--fail-on", "p99 > +5%"]);
    assert_eq!(code, 1, "{said}");
    for text in ["worse", "options.delay", "100us", "120us", "+17 %"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    // 120 µs more than 100 µs, each with up to 20 µs of jitter.
    let found = json(&place, &["a", "b"]);
    let ratio = found["same"][0]["changes"][0]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio / (130.0 / 110.0) - 1.0).abs() < 0.005, "{ratio}");

    assert_eq!(compare(&place, &["a", "b"]).0, 0, "without a gate nothing fails");
    assert_eq!(compare(&place, &["a", "b", "--fail-on", "p99 > +50%"]).0, 0);
    assert_eq!(compare(&place, &["b", "a", "--fail-on", "p99 > +5%"]).0, 0, "it became better");
    let (code, said) =
        compare(&place, &["a", "b", "--fail-on", "delivered_per_s < -2%", "--fail-on", "p50>+5%", "--markdown"]);
    assert_eq!(code, 1);
    assert!(said.starts_with("**2 worse, 0 better"), "{said}");
    assert!(said.find("| p50 |").unwrap() < said.find("<details>").unwrap(), "{said}");
}

#[test]
fn single_runs_decide_no_gate() {
    let place = Place::new();
    bench(&place, "a", "1", &[]);
    bench(&place, "b", "1", &["options.delay=500us"]);
    let (code, said) = compare(&place, &["a", "b", "--fail-on", "p99 > +5%"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("A and B: one reliable run"), "{said}");
    assert_eq!(compare(&place, &["a", "b"]).0, 0, "nobody asked for a decision");
}

#[test]
fn bad_usage_is_told_from_a_failed_gate() {
    let place = Place::new();
    bench(&place, "a", "2", &[]);
    bench(&place, "other", "2", &["payload=1KiB"]);
    for (arguments, wanted) in [
        (vec!["a", "a", "--fail-on", "p98 > +5%"], "there is no figure `p98`: did you mean `p9"),
        (vec!["a", "a", "--fail-on", "latency_p99_n > +5%"], "did you mean `latency_p99_ns`?"),
        (vec!["a", "a", "--fail-on", "p99 > -5%"], "+0 or more"),
        (vec!["a", "nowhere"], "nowhere is not a results folder"),
        (vec!["a", "other"], "): compare results of one study\n"),
        (vec!["a", "a", "--only", "payload=1KiB"], "no `1KiB` on the axis `payload`"),
        (vec!["a", "a", "--only", "paylod=64B"], "did you mean `payload`?"),
        (vec!["a", "a", "--only", "payload"], "--only KEY=VALUE"),
        (vec!["a", "a", "--json", "--markdown"], "cannot be used with"),
        (vec!["a"], "required"),
    ] {
        let (code, said) = compare(&place, &arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?} should say {wanted:?}: {said}");
    }
}

/// Two folders of a study, one changed by hand in every string that a stranger may have written.
#[test]
fn a_stranger_s_folder_does_nothing_to_the_screen() {
    let place = Place::new();
    bench(&place, "a", "2", &[]);
    bench(&place, "b", "2", &[]);
    let path = place.path("b").join("study.toml");
    let study = std::fs::read_to_string(&path).unwrap();
    let titled = study.lines().map(|line| match line.starts_with("title") {
        true => r#"title = "</script><img src=x>\u001b[2J\n| # `""#.to_owned(),
        false => line.to_owned(),
    });
    std::fs::write(&path, titled.collect::<Vec<_>>().join("\n")).unwrap();
    let environment = serde_json::json!({
        "kernel": format!("<script>\u{1b}]0;x\u{7}{}", "x".repeat(1 << 20)),
        "</details>\u{1b}[2J": "\u{202e}",
    });
    std::fs::write(place.path("b").join("environment.json"), environment.to_string()).unwrap();
    for arguments in [vec!["a", "b"], vec!["a", "b", "--markdown"], vec!["a", "b", "--json"]] {
        let (code, said) = compare(&place, &arguments);
        assert_eq!(code, 0, "{said}");
        assert!(said.len() < 100_000, "{}", said.len());
        assert!(!said.contains('\u{1b}') && !said.contains('\u{7}') && !said.contains('\u{202e}'), "{said}");
    }
    let (_, markdown) = compare(&place, &["a", "b", "--markdown"]);
    assert!(!markdown.contains("<script") && !markdown.contains("<img"), "{markdown}");
    assert_eq!(markdown.matches("</details>").count(), 1, "{markdown}");
}
