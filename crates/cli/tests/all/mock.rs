//! Injected faults are found, counted exactly and named; nothing else is.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// Runs the mock for 1 s of warm-up and 2 s of window at 1000 msg/s, so that the messages numbered 1001 to 3000 are
/// measured.
fn bench(options: &[&str]) -> Value {
    let place = Place::new();
    let mut arguments =
        vec!["bench", "mock", "--rate", "1000", "--warmup", "1s", "--duration", "2s", "--repeats", "1", "--json", "-q"];
    arguments.extend(["--payload", "64B", "--set", "verify=full", "--out", "r"]);
    for option in options {
        arguments.extend(["--set", option]);
    }
    let output = place.run(&arguments);
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let valid = json["runs"][0]["verdict"]["valid"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(if valid { 0 } else { 3 }), "an invalid run shows in the exit code");
    json["runs"][0].clone()
}

fn multiples(of: u64) -> u64 {
    (1001..=3000u64).filter(|n| n.is_multiple_of(of)).count() as u64
}

fn reasons(record: &Value) -> Vec<&str> {
    record["verdict"]["reasons"].as_array().unwrap().iter().map(|finding| finding["reason"].as_str().unwrap()).collect()
}

fn counts(record: &Value) -> [u64; 8] {
    ["offered", "sent", "expected", "delivered", "lost", "duplicated", "reordered", "corrupted"]
        .map(|name| record["counts"][name].as_u64().unwrap_or_default())
}

#[test]
fn a_faultless_run_is_valid_and_complete() {
    let record = bench(&[]);
    assert_eq!(counts(&record), [2000, 2000, 2000, 2000, 0, 0, 0, 0]);
    assert!(reasons(&record).is_empty());
    assert_eq!(record["latency_ns"]["count"], 2000);
    let p50 = record["latency_ns"]["p50"].as_f64().unwrap();
    assert!((p50 / 100_000.0 - 1.0).abs() < 0.001, "the mock's delay is 100 µs, reported {p50} ns");
    assert_eq!(record["rates"]["offered_per_s"], 1000.0);
    assert_eq!(record["jitter_ns"], 0.0);
}

#[test]
fn each_fault_is_counted_exactly_and_named_alone() {
    let cases: [(&str, [u64; 8], &str); 4] = [
        ("lose_every=7", [2000, 2000, 2000, 2000 - multiples(7), multiples(7), 0, 0, 0], "messages-lost"),
        ("duplicate_every=11", [2000, 2000, 2000, 2000, 0, multiples(11), 0, 0], "duplicates"),
        ("reorder_every=13", [2000, 2000, 2000, 2000, 0, 0, multiples(13), 0], "reordered"),
        ("corrupt_every=17", [2000, 2000, 2000, 2000, 0, 0, 0, multiples(17)], "corrupted"),
    ];
    for (fault, expected, reason) in cases {
        let record = bench(&[&format!("options.{fault}")]);
        assert_eq!(counts(&record), expected, "{fault}");
        assert_eq!(reasons(&record), [reason], "{fault}");
    }
}

#[test]
fn faults_mix_without_hiding_each_other() {
    let record = bench(&["options.lose_every=7", "options.duplicate_every=11", "options.corrupt_every=17"]);
    let n =
        |of: u64, but: u64| (1001..=3000u64).filter(|n| n.is_multiple_of(of) && !n.is_multiple_of(but)).count() as u64;
    assert_eq!(counts(&record), [2000, 2000, 2000, 2000 - multiples(7), multiples(7), n(11, 7), 0, n(17, 7)]);
    assert_eq!(reasons(&record), ["messages-lost", "duplicates", "corrupted"]);
}

#[test]
fn a_stall_is_named_with_its_length_and_shows_in_the_latency_from_intended_time() {
    let record = bench(&["options.stall_at=1500ms", "options.stall_for=1s"]);
    assert_eq!(counts(&record), [2000, 2000, 2000, 2000, 0, 0, 0, 0], "a stall loses nothing");
    assert!(reasons(&record).is_empty(), "the system stalled, the run did not: {:?}", reasons(&record));
    assert_eq!(record["verdict"]["valid"], true);
    // The waits in the last 10 ms of the second are too short to count.
    assert!((985..=992).contains(&record["counts"]["late"].as_u64().unwrap()), "{}", record["counts"]);
    assert_eq!(record["stalls"]["count"], 1);
    let longest = record["stalls"]["longest_ns"].as_f64().unwrap() / 1e9;
    assert!((longest - 1.0).abs() < 0.002, "{longest}");
    // 1000 of 2000 messages waited, evenly up to 1 s: p50 is about 0, p90 0.8 s.
    let p90 = record["latency_ns"]["p90"].as_f64().unwrap() / 1e9;
    assert!((p90 - 0.8).abs() < 0.01, "{p90}");
    let notes = record["verdict"]["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(notes[0]["part"], "library");
    let evidence = notes[0]["evidence"].as_str().unwrap();
    assert!(evidence.contains("the library delivered nothing to a subscriber for 1.00"), "{evidence}");
    assert!(evidence.contains("while all agents ran"), "{evidence}");
}

#[test]
fn a_slow_sender_misses_the_offered_rate() {
    let record = bench(&["options.send_cost=2ms", "drain=500ms"]);
    let [offered, sent, expected, delivered, ..] = counts(&record);
    assert_eq!(offered, 2000, "what is due does not depend on what can be sent");
    assert!(sent < offered && expected == sent && delivered == sent);
    assert_eq!(record["counts"]["not_sent"], offered - sent);
    assert!(reasons(&record).contains(&"offered-rate-missed"), "{:?}", reasons(&record));
}

#[test]
fn patterns_expect_the_right_number_of_copies() {
    let cases = [
        (vec!["pattern=fan-out", "subscribers=3"], 2000, 6000),
        (vec!["pattern=fan-in", "publishers=3"], 6000, 6000),
        (vec!["pattern=pairs", "pairs=3"], 6000, 6000),
        (vec!["pattern=pipeline", "publishers=2", "subscribers=3"], 4000, 4000),
        (vec!["pattern=request-reply", "pairs=2"], 4000, 4000),
    ];
    for (options, sent, expected) in cases {
        let record = bench(&options);
        assert_eq!(counts(&record), [sent, sent, expected, expected, 0, 0, 0, 0], "{options:?}");
        assert!(reasons(&record).is_empty(), "{options:?}: {:?}", reasons(&record));
    }
}

#[test]
fn competing_subscribers_share_one_ledger() {
    let record = bench(&["pattern=pipeline", "subscribers=3", "options.lose_every=7", "options.duplicate_every=11"]);
    let n =
        |of: u64, but: u64| (1001..=3000u64).filter(|n| n.is_multiple_of(of) && !n.is_multiple_of(but)).count() as u64;
    assert_eq!(counts(&record)[2..6], [2000, 2000 - multiples(7), multiples(7), n(11, 7)]);
}

#[test]
fn a_round_trip_is_twice_the_way() {
    let record = bench(&["pattern=request-reply"]);
    let p50 = record["latency_ns"]["p50"].as_f64().unwrap();
    assert!((p50 / 200_000.0 - 1.0).abs() < 0.001, "{p50}");
}

/// A message that all three lost has no echo either; an echo may be lost by itself.
#[test]
fn an_echo_is_counted_apart_from_what_all_heard() {
    let echo = ["pattern=fan-out-echo", "subscribers=3", "drain=500us", "options.lose_every=7"];
    let record = bench(&[&echo[..], &["options.lose_answer_every=11"]].concat());
    let lost = 3 * multiples(7);
    assert_eq!(counts(&record), [2000, 2000, 6000, 6000 - lost, lost, 0, 0, 0]);
    let unanswered = multiples(7) + multiples(11) - multiples(77);
    assert_eq!(record["counts"]["unanswered"], unanswered);
    assert_eq!(record["latency_ns"]["count"], 2000 - unanswered);
    assert_eq!(reasons(&record), ["messages-lost"]);
    let p50 = record["latency_ns"]["p50"].as_f64().unwrap();
    assert!((p50 / 200_000.0 - 1.0).abs() < 0.001, "there and back: {p50}");
}

#[test]
fn unthrottled_reports_throughput_and_no_latency() {
    let record = bench(&["rate=max", "options.send_cost=10us"]);
    assert!(
        record["latency_ns"].is_null() && record["service_latency_ns"].is_null() && record["send_lag_ns"].is_null()
    );
    assert_eq!(record["rates"]["delivered_per_s"], 100_000.0);
    assert!(reasons(&record).is_empty());
}

#[test]
fn too_few_samples_are_named() {
    let record = bench(&["rate=10"]);
    assert_eq!(reasons(&record), ["too-few-samples"]);
    assert_eq!(counts(&record)[0], 20);
}

#[test]
fn arrivals_follow_the_schedule() {
    for arrival in ["uniform", "burst:100"] {
        assert_eq!(counts(&bench(&[&format!("arrival={arrival}")]))[0], 2000, "{arrival}");
    }
    let poisson = counts(&bench(&["arrival=poisson"]))[0];
    assert!((1800..2200).contains(&poisson), "{poisson}: 2000 with a standard deviation of 45");
}

/// Random arrivals depend on the repeat: all systems get the same, and each repeat others.
#[test]
fn arrivals_by_chance_are_the_systems_in_common_and_each_repeats_own() {
    let place = Place::new();
    let mine = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mock\"\n";
    std::fs::write(place.path("mine.toml"), format!("{mine}patterns = [\"pairs\"]\ntransports = [\"inproc\"]\n"))
        .unwrap();
    place.study(
        "title = \"t\"\nquestion = \"\"\n[workload]\nrate = 1000\narrival = \"poisson\"\nduration = \"10s\"\n\
         [axes]\nsystem = [\"mock\", \"./mine.toml\"]\n[run]\nrepeats = 3\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    let records = place.records("r");
    assert_eq!(records.len(), 6, "{}", stderr(&output));
    let arrivals = |system: &str| -> Vec<&Value> {
        let mut mine: Vec<&Value> = records.iter().filter(|record| record["system"] == system).collect();
        mine.sort_by_key(|record| record["repeat"].as_u64());
        mine.iter().map(|record| &record["series"]["sent"]).collect()
    };
    let [one, other] = ["mock", "mine"].map(arrivals);
    assert_eq!(one, other);
    assert!(one.len() == 3 && one[0].as_array().unwrap().len() >= 10, "{one:?}");
    assert!(one[0] != one[1] && one[1] != one[2] && one[0] != one[2], "{one:?}");
}

/// A publisher that takes 1 ms per message, with 500 ms of transit: when the window of 1,000 messages begins, 500 of
/// the warm-up's are still to come.
#[test]
fn the_window_of_a_count_is_that_of_its_messages() {
    let place = Place::new();
    let mut arguments = vec!["bench", "mock", "--rate", "max", "--warmup", "700ms", "--count", "1000", "--out", "r"];
    arguments.extend(["--repeats", "1", "--json", "-q", "--set", "options.delay=500ms"]);
    arguments.extend(["--set", "options.send_cost=1ms"]);
    let json: Value = serde_json::from_str(&stdout(&place.run(&arguments))).unwrap();
    let record = &json["runs"][0];
    // The first is sent at once, the last 999 ms later, and arrives after 500 ms.
    assert_eq!(record["window_ns"], 1_499_000_000_u64);
    assert_eq!(counts(record)[..5], [1_000, 1_000, 1_000, 1_000, 0]);
    let per_s = 1_000.0 / 1.499;
    for rate in ["offered_per_s", "sent_per_s", "delivered_per_s"] {
        assert!((record["rates"][rate].as_f64().unwrap() - per_s).abs() < 1e-6, "{}", record["rates"]);
    }
    let delivered = record["series"]["delivered"].as_array().unwrap();
    assert_eq!(delivered.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), 1_000);
}
