//! Clients that are killed, and the books that they leave.

use crate::support::{Benched, Place, stdout};
use serde_json::Value;

/// Reasons that a killed side gives nobody.
const BLAMES: [&str; 5] = ["offered-rate-missed", "not-steady", "server-died", "messages-lost", "connections-missed"];

/// What holds of every run in which one side was killed at 500 ms.
fn assert_killed(bench: &Benched, side: &str) {
    assert_eq!(bench.error(), "");
    let event = &bench.record["fault_log"][0];
    assert_eq!([&event["what"], &event["who"]], ["kill", side], "{event}");
    let at_ns = event["at_ns"].as_u64().unwrap();
    assert!((500_000_000..2_000_000_000).contains(&at_ns) && event["until_ns"].is_null(), "{event}");
    assert_eq!(bench.record["window_ns"], 2_000_000_000_u64, "the window has its planned end");
    for reason in BLAMES {
        assert_eq!(bench.evidence(reason), None);
    }
    let notes = bench.record["verdict"]["notes"].as_array().unwrap();
    let says = format!("{side} were killed at ");
    assert!(notes.iter().any(|note| note["evidence"].as_str().unwrap().starts_with(&says)), "{notes:?}");
    assert!(!notes.iter().any(|note| note["part"] == "server" || note["part"] == "library"), "{notes:?}");
}

/// Two pairs for two seconds, 200 messages a second each.
fn kill(place: &Place, side: &str, system: &[&str]) -> Benched {
    let fault = format!("kill {side} at 500ms");
    place.bench(&[system, &["--pairs", "2", "--duration", "2s", "--fault", &fault]].concat())
}

/// What the server's log says of clients of one kind that went: those that took
/// leave, and those that did not.
fn farewells(place: &Place, kind: char) -> (usize, usize) {
    let log = std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap();
    let of_kind = |line: &&str| {
        let client = line.split_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("client")).nth(1);
        // pbRUNp0 and pbRUNs0.
        client.is_some_and(|name| name.trim_end_matches(|c: char| !c.is_alphabetic()).ends_with(kind))
    };
    let gone = |line: &&str| !line.contains("connected from") && !line.contains("connected as");
    let (polite, rude): (Vec<&str>, Vec<&str>) =
        log.lines().filter(of_kind).filter(gone).partition(|line| line.ends_with(" disconnected."));
    (polite.len(), rude.len())
}

#[test]
fn nothing_acknowledged_to_publishers_that_are_killed_is_lost() {
    let place = Place::new();
    let bench = kill(&place, "publishers", &["mosquitto", "--qos", "1"]);
    assert_killed(&bench, "publishers");
    let [offered, sent, acked, delivered] = ["offered", "sent", "acked", "delivered"].map(|name| bench.count(name));
    assert!(200 <= sent && sent <= offered && offered < 800, "{}", bench.record["counts"]);
    assert!(delivered >= acked && acked > 0, "{}", bench.record["counts"]);
    assert_eq!((bench.count("acked_lost"), bench.record["connections"]["lost"].as_u64()), (0, Some(0)));
    assert_eq!((farewells(&place, 'p'), farewells(&place, 's')), ((0, 2), (2, 0)));
    place.assert_swept();
}

#[test]
fn what_comes_for_subscribers_that_are_killed_is_shown_and_no_servers_loss() {
    let place = Place::new();
    let bench = kill(&place, "subscribers", &["mosquitto", "--qos", "1", "--durable"]);
    assert_killed(&bench, "subscribers");
    let [sent, acked, delivered] = ["sent", "acked", "delivered"].map(|name| bench.count(name));
    assert_eq!((sent, acked), (800, 800), "the others go on");
    assert!((100..800).contains(&delivered), "{}", bench.record["counts"]);
    assert_eq!(bench.count("acked_lost"), 800 - delivered, "it waits for somebody who does not come");
    let series = |name: &str| -> u64 {
        bench.record["series"][name].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
    };
    assert!(series("delivered") <= delivered && series("sent") <= 800);
    let first = bench.record["verdict"]["notes"][0]["evidence"].as_str().unwrap();
    assert!(first.contains("acknowledged messages were lost") && first.contains("nobody was there"), "{first}");
    let (polite, rude) = farewells(&place, 's');
    // What the server keeps for them is removed when all is over.
    assert!(rude == 2 && polite <= 2, "{polite} {rude}");
    let report = stdout(&place.run(&["report", "r"]));
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let says =
        format!("Where subscribers were killed, {} of 800 acknowledged messages did not arrive", 800 - delivered);
    assert!(words.contains(&says) && !words.contains("mosquitto lost"), "{words}");
    place.assert_swept();
}

#[test]
fn sockets_of_libraries_are_closed_as_well() {
    let over = |system: &str, transport: &str, side: &str| {
        let place = Place::new();
        let bench = kill(&place, side, &[system, "--transport", transport]);
        assert_killed(&bench, side);
        place.assert_swept();
        bench
    };
    for (system, transport) in
        [("kernel", "tcp"), ("kernel", "ipc"), ("kernel", "udp"), ("zeromq", "tcp"), ("nng", "ipc")]
    {
        let bench = over(system, transport, "publishers");
        let [sent, delivered] = ["sent", "delivered"].map(|name| bench.count(name));
        assert!((200..800).contains(&sent), "{system} {transport}: {}", bench.record["counts"]);
        // The kernel delivers what it was given; a library may have held back one of each.
        let held = if system == "kernel" { 0 } else { 2 };
        assert!(sent - delivered <= held, "{system} {transport}: {}", bench.record["counts"]);
    }
    for system in ["kernel", "zeromq", "nanomsg"] {
        let bench = over(system, "tcp", "subscribers");
        let [sent, delivered] = ["sent", "delivered"].map(|name| bench.count(name));
        assert!(sent == 800 && (100..800).contains(&delivered), "{system}: {}", bench.record["counts"]);
    }
}

#[test]
fn requesters_and_repliers_can_be_killed_too() {
    for side in ["publishers", "subscribers"] {
        let place = Place::new();
        let asks = ["kernel", "--transport", "tcp", "--pattern", "request-reply"];
        let bench = kill(&place, side, &asks);
        let notes: &Value = &bench.record["verdict"]["notes"];
        assert!(notes.to_string().contains(&format!("{side} were killed at ")), "{notes}");
        assert_eq!((bench.error(), bench.evidence("server-died")), ("", None));
        let delivered = bench.count("delivered");
        assert!((100..800).contains(&delivered), "{side}: {}", bench.record["counts"]);
    }
}
