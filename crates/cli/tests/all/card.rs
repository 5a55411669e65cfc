//! The guarantee card: exact counts of the mock system, and Mosquitto with and without its storage.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

fn card(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(&[&["card"], arguments, &["--json", "-q"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn rows<'a>(card: &'a Value, name: &str) -> Vec<&'a Value> {
    card["rows"].as_array().unwrap().iter().filter(|row| row["name"] == name).collect()
}

#[test]
fn scripted_losses_are_counted_exactly_and_what_cannot_be_done_is_named() {
    let place = Place::new();
    let set = ["--set", "options.lose_every=10", "--set", "options.duplicate_every=9", "--set", "qos=1"];
    let told = card(&place, &[&["mock", "--out", "r"][..], &set].concat());
    // Three publishers send 600 messages each; of message 90, 180 … no copy arrives.
    for name in ["undisturbed", "frozen", "slow"] {
        let own = rows(&told, name);
        assert_eq!(own.len(), 1, "{told:#}");
        let of = |key: &str| own[0][key].as_u64().unwrap_or_else(|| panic!("{key}: {told:#}"));
        assert_eq!((of("qos"), of("expected"), of("lost")), (1, 1_800, 180), "{name}");
        assert_eq!((of("duplicated"), of("reordered"), of("acked")), (180, 0, 0), "{name}");
    }
    assert!(rows(&told, "frozen")[0]["outage_ns"].as_u64().unwrap() > 1_000_000_000, "{told:#}");
    for name in ["killed", "cut-off", "power-cut"] {
        let why = rows(&told, name)[0]["not_measured"].as_str().unwrap();
        assert!(why.contains("cannot be done to mock") || name == "power-cut", "{name}: {why}");
    }
    assert_eq!(told["broken"].as_array().unwrap().len(), 3);
    let file = std::fs::read_to_string(place.path("r/card.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap(), told, "the card is in its folder");
    let page = || std::fs::read_to_string(place.path("r/report.html")).unwrap();
    let on_page = r#""card":{"rows":[{"what":"undisturbed","qos":1,"#;
    assert!(page().contains(on_page), "the page shows it");
    assert_eq!(place.run(&["report", "r", "-q"]).status.code(), Some(0));
    assert!(page().contains(on_page) && page().contains(r#""what":"killed","qos":null"#), "so does one made later");
    assert_eq!(told["broken"][0], "undisturbed, QoS 1: 180 of 1800 messages were lost, without an acknowledgement.");
    let whole = place.run(&["card", "mock", "-q", "--out", "s", "--set", "qos=0"]);
    let shown = stdout(&whole);
    assert!(shown.contains("what happened") && shown.contains("killed: not measured: "), "{shown}");
    assert!(shown.lines().count() < 24, "it fits one screen: {shown}");
}

#[test]
fn what_a_card_sets_itself_is_refused() {
    let place = Place::new();
    for (set, says) in [("fault=none", "--set fault"), ("consume=10", "--set consume"), ("rat=1", "rat")] {
        let output = place.run(&["card", "mock", "--set", set, "--out", "r"]);
        assert_eq!(output.status.code(), Some(2), "{set}");
        assert!(stderr(&output).contains(says), "{set}: {}", stderr(&output));
        assert!(!place.path("r").exists());
    }
}

#[test]
fn a_mosquitto_with_stored_sessions_loses_nothing_while_its_link_is_cut() {
    let place = Place::new();
    let load = ["--set", "qos=1", "--set", "pairs=1", "--set", "rate=200", "--set", "duration=4s"];
    let of = |row: &Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row:#}"));
    let volatile = card(&place, &[&["mosquitto", "--out", "r"][..], &load].concat());
    let stored = card(&place, &[&["mosquitto", "--out", "s", "--set", "durable=true"][..], &load].concat());
    for told in [&volatile, &stored] {
        for name in ["undisturbed", "frozen", "slow"] {
            assert_eq!((of(rows(told, name)[0], "acked_lost"), of(rows(told, name)[0], "acked")), (0, 800), "{told:#}");
        }
        for name in ["killed", "cut-off"] {
            let row = rows(told, name)[0];
            assert!(of(row, "outage_ns") > 900_000_000 && of(row, "acked_lost") <= of(row, "lost"), "{row:#}");
        }
        let broken = told["broken"].as_array().unwrap().len();
        let lost = told["rows"].as_array().unwrap().iter().filter(|row| row["lost"].as_u64() > Some(0)).count();
        assert_eq!(broken, lost, "a sentence for each row with a loss: {told:#}");
    }
    assert_eq!(of(rows(&stored, "cut-off")[0], "lost"), 0, "its sessions wait for their clients: {stored:#}");
    place.assert_swept();
}
