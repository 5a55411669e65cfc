//! Killed clients, and the counts of their runs.

use crate::left_out::is_long;
use crate::support::{Benched, Place, free_port, stderr, stdout, wait_for};
use crate::tls::{Authority, serve};
use serde_json::Value;
use std::process::Command;

/// Reasons that a killed side must not cause.
const BLAMES: [&str; 5] = ["offered-rate-missed", "not-steady", "server-died", "messages-lost", "connections-missed"];

/// Checks what is true of every run in which one side was killed at 500 ms.
fn assert_killed(bench: &Benched, side: &str) {
    assert_eq!(bench.error(), "");
    let event = &bench.record["fault_log"][0];
    assert_eq!([&event["what"], &event["who"]], ["kill", side], "{event}");
    let at_ns = event["at_ns"].as_u64().unwrap();
    let window_ns = bench.record["workload"]["extent"]["time_ns"].as_u64().unwrap();
    assert!((500_000_000..window_ns).contains(&at_ns) && event["until_ns"].is_null(), "{event}");
    assert_eq!(bench.record["window_ns"], window_ns, "the window has its planned end");
    for reason in BLAMES {
        assert_eq!(bench.evidence(reason), None);
    }
    let notes = bench.record["verdict"]["notes"].as_array().unwrap();
    let says = format!("{side} were killed at ");
    assert!(notes.iter().any(|note| note["evidence"].as_str().unwrap().starts_with(&says)), "{notes:?}");
    // The ticks of a busy machine's scheduler may look like a timer, and are no fault.
    let blames = |note: &&Value| {
        let is_timer = note["evidence"].as_str().unwrap().contains("as where a timer of that period");
        (note["part"] == "server" || note["part"] == "library") && !is_timer
    };
    assert!(!notes.iter().any(|note| blames(&note)), "{notes:?}");
}

/// Runs two pairs for two seconds at 200 messages per second each. It has no warm-up: a busy machine could deliver
/// messages of the warm-up within the window.
fn kill(place: &Place, side: &str, system: &[&str]) -> Benched {
    let fault = format!("kill {side} at 500ms");
    place.bench(&[system, &["--pairs", "2", "--duration", "2s", "--warmup", "0s", "--fault", &fault]].concat())
}

/// Runs two pairs for a second, at a server that exists already.
fn kill_at(place: &Place, side: &str, server: &[&str]) -> Benched {
    let fault = format!("kill {side} at 500ms");
    let bench = place.bench(&[server, &["--pairs", "2", "--qos", "1", "--fault", &fault]].concat());
    std::fs::remove_dir_all(place.path("r")).unwrap();
    assert_killed(&bench, side);
    place.assert_swept();
    bench
}

/// Checks that the counts are exact after publishers were killed: the messages that the server had acknowledged
/// arrived, and no message arrived that was not sent.
fn assert_owed(bench: &Benched) {
    let [offered, sent, acked, delivered] = ["offered", "sent", "acked", "delivered"].map(|name| bench.count(name));
    assert!(100 <= acked && acked <= delivered && delivered <= sent, "{}", bench.record["counts"]);
    assert!(sent <= offered && offered < 400, "{}", bench.record["counts"]);
    assert_eq!((bench.count("acked_lost"), bench.count("corrupted"), bench.count("reordered")), (0, 0, 0));
    assert_eq!(bench.record["connections"]["lost"], 0);
}

/// Checks that, after subscribers were killed, all was sent and acknowledged, and that missing messages are shown, and
/// not counted as anyone's loss.
fn assert_shown(bench: &Benched) {
    let [sent, acked, delivered] = ["sent", "acked", "delivered"].map(|name| bench.count(name));
    assert_eq!((sent, acked), (400, 400), "the others go on");
    assert!((50..400).contains(&delivered), "{}", bench.record["counts"]);
    assert_eq!(bench.count("acked_lost"), 400 - delivered);
    assert_eq!(bench.record["connections"]["lost"], 0);
    let first = bench.record["verdict"]["notes"][0]["evidence"].as_str().unwrap();
    assert!(first.contains("acknowledged messages were lost") && first.contains("no subscriber could take"), "{first}");
}

/// Returns, from the server's log, the numbers of gone clients of one kind: with a disconnect message, and without.
fn farewells(place: &Place, kind: char) -> (usize, usize) {
    farewells_in(&std::fs::read_to_string(place.path("r/logs/run-0-server.log")).unwrap(), kind)
}

fn farewells_in(log: &str, kind: char) -> (usize, usize) {
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
    assert!(100 <= sent && sent <= offered && offered < 800, "{}", bench.record["counts"]);
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
    let [sent_in_series, delivered_in_series] = ["sent", "delivered"].map(series);
    assert!(delivered_in_series <= delivered, "{delivered_in_series} of {}", bench.record["counts"]);
    assert!(sent_in_series <= 800, "{sent_in_series}: {}", bench.record["series"]);
    let first = bench.record["verdict"]["notes"][0]["evidence"].as_str().unwrap();
    assert!(first.contains("acknowledged messages were lost") && first.contains("no subscriber could take"), "{first}");
    let (polite, rude) = farewells(&place, 's');
    // The server's state for them is removed at the end.
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
    if !is_long("sockets_of_libraries_are_closed_as_well") {
        return;
    }
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
        // They are killed after half a second, and a busy machine may have kept them from sending the last messages
        // that were due.
        assert!((100..800).contains(&sent), "{system} {transport}: {}", bench.record["counts"]);
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
    if !is_long("requesters_and_repliers_can_be_killed_too") {
        return;
    }
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

#[test]
fn over_tls_the_books_are_as_exact() {
    if !is_long("over_tls_the_books_are_as_exact") {
        return;
    }
    let authority = Authority::new();
    let serving = serve(&authority.mosquitto("good"));
    let (url, ca) =
        (format!("mqtts://localhost:{}", serving.port()), format!("options.tls_ca={}", authority.path("ca.pem")));
    let place = Place::new();
    assert_owed(&kill_at(&place, "publishers", &[&url, "--set", &ca]));
    assert_eq!((farewells_in(&serving.log(), 'p'), farewells_in(&serving.log(), 's')), ((0, 2), (2, 0)));
    assert_shown(&kill_at(&place, "subscribers", &[&url, "--set", &ca, "--durable"]));
    // Two of the run before; and two that connect once more, so that nothing is kept for them.
    assert_eq!(farewells_in(&serving.log(), 's'), (2 + 2, 2));
}

/// As fast as the server takes it, so that TLS holds back data when its publisher dies: those messages were not sent.
#[test]
fn what_tls_held_back_was_not_sent() {
    let authority = Authority::new();
    let serving = serve(&authority.mosquitto("good"));
    let (url, ca) =
        (format!("mqtts://localhost:{}", serving.port()), format!("options.tls_ca={}", authority.path("ca.pem")));
    let place = Place::new();
    // The kernel takes less than one write at a time.
    let narrow = ["--set", &ca, "--set", "options.socket_buffer=16KiB"];
    let flood = ["--pairs", "3", "--rate", "max", "--payload", "10KiB", "--fault", "kill publishers at 500ms"];
    let bench = place.bench(&[&[&*url], &narrow[..], &flood].concat());
    assert_eq!(bench.error(), "");
    let [sent, delivered] = ["sent", "delivered"].map(|name| bench.count(name));
    assert!(sent > 100 && delivered == sent, "{}", bench.record["counts"]);
    place.assert_swept();
}

/// Returns the queues of a RabbitMQ server.
fn queues(home: &Place, dist: u16, epmd: u16) -> String {
    let mut ctl = Command::new("/usr/lib/rabbitmq/bin/rabbitmqctl");
    ctl.args(["--quiet", "--node", &format!("pubmark-{dist}@localhost"), "list_queues", "--no-table-headers", "name"]);
    ctl.env("HOME", home.path("server")).env("ERL_EPMD_PORT", epmd.to_string());
    let output = ctl.env("RABBITMQ_CONF_ENV_FILE", home.path("none")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// One server for both, because it takes seconds to start.
#[test]
fn over_amqp_the_books_are_as_exact() {
    if !is_long("over_amqp_the_books_are_as_exact") {
        return;
    }
    let (place, home) = (Place::new(), Place::new());
    let [port, dist, epmd] = [(); 3].map(|()| free_port());
    let ports = vec![(String::new(), port), ("dist".into(), dist), ("epmd".into(), epmd)];
    let server = home.serve_system("rabbitmq-amqp", ports);
    let url = format!("amqp://127.0.0.1:{port}");
    let log = || std::fs::read_to_string(home.path("server.log")).unwrap();
    let rude = |wanted: usize| {
        let count = || log().matches("client unexpectedly closed TCP connection").count();
        wait_for("the server's word on who took no leave", || (count() >= wanted).then_some(()));
        assert_eq!(count(), wanted, "{}", log());
    };
    assert_owed(&kill_at(&place, "publishers", &[&url]));
    rude(2);
    assert_shown(&kill_at(&place, "subscribers", &[&url]));
    rude(4);
    assert_shown(&kill_at(&place, "subscribers", &[&url, "--durable"]));
    rude(6);
    assert_eq!(queues(&home, dist, epmd), "", "nothing stays at a server that was there already");
    server.stop();
}
