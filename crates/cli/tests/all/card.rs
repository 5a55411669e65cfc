//! The guarantee card: exact counts of the mock system, and Mosquitto with and without its storage.

use crate::heavy::wanted;
use crate::known_answers::Peer;
use crate::left_out::is_long;
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
    for name in ["killed", "cut-off", "power-cut", "full-disk"] {
        let why = rows(&told, name)[0]["not_measured"].as_str().unwrap();
        assert!(why.contains("cannot be done to mock") || name == "power-cut", "{name}: {why}");
    }
    let why = rows(&told, "full-queue")[0]["not_measured"].as_str().unwrap();
    assert!(why.contains("no option of mock bounds"), "{why}");
    // Over the three runs: order across publishers is in no ledger, and the mock has no protocol.
    let whole = |what: &str| told["delivery"].as_array().unwrap().iter().find(|row| row["what"] == what).unwrap();
    let again = whole("arrived again");
    assert_eq!([&again["qos"], &again["runs"], &again["delivered"], &again["count"]], [1, 3, 3 * 1_620, 3 * 180]);
    assert_eq!(whole("out of order within a publisher")["count"], 0);
    for what in ["out of order across publishers", "redelivered against its protocol"] {
        assert!(whole(what)["not_measured"].is_string() && whole(what)["count"].is_null(), "{told:#}");
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

/// A place with the system `bounded`: the scripted peer, whose option `refused` stands for the bound of a queue.
fn bounded(script: &str) -> Place {
    let place = Place::new();
    let server = format!(
        r#"
[server.files."script.toml"]
text = """
{script}
refuse = {{ at = [{{options.refused}}], code = 0x97 }}
"""

[full_queue]
refused = "[0, 300], [1, 300], [2, 301], [2, 302]"

[options.refused]
kind = "text"
default = ""
doc = "messages that are refused"
"#
    );
    let keys = "lossless = [\"pairs\"]\nqos = [1]\ndurable = true";
    place.peer_system("bounded", keys, ("", "--script {dir}/script.toml"), &server);
    place
}

#[test]
fn what_a_full_queue_refuses_and_what_slow_subscribers_miss_is_in_its_row() {
    if !is_long("card::what_a_full_queue_refuses_and_what_slow_subscribers_miss_is_in_its_row") {
        return;
    }
    // Sequences from 100 on are in the window: of each publisher 450 is swallowed, and 460 and 470 come twice.
    let place = bounded(
        "swallow = { at = [[0, 450], [1, 450], [2, 450]] }\n\
         duplicate = { at = [[0, 460], [1, 460], [2, 460], [0, 470], [1, 470], [2, 470]] }",
    );
    let set = ["--set", "warmup=1s", "--set", "duration=4s", "--set", "options.mqtt_version=5"];
    let told = card(&place, &[&["bounded", "--out", "r"][..], &set].concat());
    let of = |name: &str| {
        let row = rows(&told, name)[0];
        let keys = ["runs", "expected", "acked", "acked_lost", "refused", "lost", "duplicated", "reordered"];
        keys.map(|key| row[key].as_u64().unwrap_or_else(|| panic!("{name}, {key}: {row:#}")))
    };
    for name in ["undisturbed", "slow"] {
        assert_eq!(of(name), [1, 1_200, 1_200, 3, 0, 3, 6, 0], "{name}");
    }
    assert_eq!(of("full-queue"), [1, 1_196, 1_196, 3, 4, 3, 6, 0]);
    let bound = rows(&told, "full-queue")[0]["bound"].as_str().unwrap();
    assert!(bound.starts_with("options.refused = [0, 300]"), "{bound}");
    let page = std::fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("4 messages were refused"), "the page says it");
    // Both rows with slow subscribers test one promise, of two settings of the server.
    let output = place.run(&["report", "r", "--promise", "survives slow consumer", "--json", "-q"]);
    let promised: Value = serde_json::from_slice(&output.stdout).unwrap();
    let broken = promised["promise"]["broken"].as_array().unwrap().iter();
    let counts: Vec<(u64, u64)> =
        broken.map(|one| (one["acked_lost"].as_u64().unwrap(), one["acked"].as_u64().unwrap())).collect();
    // On a busy machine a run may have unreliable counts, which break no promise.
    assert!(!counts.is_empty() && counts.iter().all(|one| [(3, 1_200), (3, 1_196)].contains(one)), "{promised:#}");
    place.assert_swept();
}

#[test]
fn deliveries_again_are_counted_with_and_without_dup() {
    let place = Place::new();
    let script = "mqtt = { dup = { every = 19 }, redeliver = { every = 10 } }";
    let peer = Peer::start(&place, "mqtt", script);
    let set = ["--set", "qos=1", "--set", "pairs=1", "--set", "duration=4s", "--set", "warmup=1s"];
    let told = card(&place, &[&[&*peer.endpoint, "--out", "r"][..], &set].concat());
    let row = rows(&told, "undisturbed")[0];
    // 400 messages of the window of 500; violations are counted in the warm-up, too.
    assert_eq!((&row["duplicated"], &row["lost"], &row["acked_lost"]), (&40.into(), &0.into(), &0.into()), "{row:#}");
    let [without, with] = ["[MQTT-3.3.1-1] DUP was 0 on a redelivery", "[MQTT-3.3.1-3] DUP was 1 on a first delivery"];
    for name in ["undisturbed", "slow"] {
        let row = rows(&told, name)[0];
        assert_eq!((&row["duplicated"], &row["violations"][with]), (&40.into(), &26.into()), "{name}: {told:#}");
    }
    // A slow subscriber may have released the identifier before it takes the second copy.
    assert_eq!(row["violations"][without], 50, "{row:#}");
    // The link is cut as well where there is a proxy.
    let all = told["rows"].as_array().unwrap();
    let sum = |of: &dyn Fn(&Value) -> Option<u64>| all.iter().filter_map(of).sum::<u64>();
    let whole = |key: &str, value: &str| {
        let mut found = told["delivery"].as_array().unwrap().iter().filter(|row| row[key] == value);
        found.next().unwrap_or_else(|| panic!("{value}: {told:#}"))["count"].as_u64().unwrap()
    };
    for statement in [without, with] {
        assert_eq!(whole("statement", statement), sum(&|row| row["violations"][statement].as_u64()));
    }
    assert_eq!(whole("what", "arrived again"), sum(&|row| row["duplicated"].as_u64()));
}

/// With stored sessions, a cut link costs nothing. Mosquitto drops what passes the bound of a queue, although it has
/// acknowledged it.
#[test]
fn a_mosquitto_loses_what_a_bounded_queue_drops_and_nothing_of_stored_sessions_while_its_link_is_cut() {
    if !is_long(
        "card::a_mosquitto_loses_what_a_bounded_queue_drops_and_nothing_of_stored_sessions_while_its_link_is_cut",
    ) {
        return;
    }
    let place = Place::new();
    let load = ["--set", "qos=1", "--set", "pairs=1", "--set", "rate=200", "--set", "duration=4s"];
    let of = |row: &Value, key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row:#}"));
    let volatile = card(&place, &[&["mosquitto", "--out", "r"][..], &load].concat());
    let stored = card(&place, &[&["mosquitto", "--out", "s", "--set", "durable=true"][..], &load].concat());
    for told in [&volatile, &stored] {
        // Among them slow subscribers: a queue has no bound by itself.
        for name in ["undisturbed", "frozen", "slow"] {
            let row = rows(told, name)[0];
            assert_eq!((of(row, "acked_lost"), of(row, "lost"), of(row, "acked")), (0, 0, 800), "{told:#}");
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
    let full = rows(&volatile, "full-queue")[0];
    // Of 800 messages, 400 are taken in the window, and 70 may wait.
    assert!(of(full, "acked_lost") > 200, "{full:#}");
    assert_eq!(full["bound"], "options.max_queued_messages = 50, options.max_inflight_messages = 20");
    let records = place.records("r");
    let own = records.iter().find(|run| run["cell"]["part"] == "full-queue").unwrap();
    for key in ["acked", "acked_lost", "lost", "duplicated", "reordered", "expected"] {
        assert_eq!(own["counts"][key], full[key], "{key} of the ledger");
    }
    let sentence = format!("{} of 800 acknowledged messages were lost", of(full, "acked_lost"));
    assert!(volatile["broken"].to_string().contains(&sentence), "{volatile:#}");
    if rows(&volatile, "full-disk")[0]["not_measured"].is_null() {
        assert_eq!(rows(&volatile, "full-disk")[0]["runs"], 1, "{volatile:#}");
    }
    let promise = ["report", "r", "--promise", "survives slow consumer", "-q"];
    let said = stdout(&place.run(&promise));
    assert!(said.contains(&format!("({} of 800 acknowledged messages lost)", of(full, "acked_lost"))), "{said}");
    place.assert_swept();
}

/// These servers keep stored messages through each fault. Each drops messages beyond the bound of a queue, although it
/// has acknowledged them.
#[test]
fn cards_of_servers_that_store_say_what_a_bound_drops() {
    if !wanted("card::cards_of_servers_that_store_say_what_a_bound_drops") {
        return;
    }
    let load = ["--set", "qos=1", "--set", "pairs=1", "--set", "rate=200", "--set", "durable=true"];
    let times = ["--set", "duration=4s", "--set", "drain=40s", "--out", "r"];
    for system in ["redis-streams", "nats-jetstream", "rabbitmq-amqp"] {
        let place = Place::new();
        let told = card(&place, &[&[system], &load[..], &times].concat());
        let records = place.records("r");
        for row in told["rows"].as_array().unwrap().iter().filter(|row| row["not_measured"].is_null()) {
            let own = records.iter().find(|run| run["cell"]["part"] == row["name"]).unwrap();
            for key in ["acked", "acked_lost", "lost", "duplicated", "expected"] {
                assert_eq!(own["counts"][key], row[key], "{system}: {key} of the ledger: {row:#}");
            }
        }
        let lost = |name: &str| rows(&told, name)[0]["acked_lost"].as_u64().unwrap_or_else(|| panic!("{told:#}"));
        for name in ["undisturbed", "frozen", "killed", "cut-off", "slow"] {
            assert_eq!(lost(name), 0, "{system}, {name}: {:#}", rows(&told, name)[0]);
        }
        // Of 800 messages, 400 are taken in the window, and at most 200 may wait.
        assert!(lost("full-queue") > 100, "{system}: {:#}", rows(&told, "full-queue")[0]);
        place.assert_swept();
    }
}
