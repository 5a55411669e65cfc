//! Subscribers that start late and read their streams from the beginning: nothing that was sent before is lost, and how
//! long they take to catch up is known.

use crate::heavy::wanted;
use crate::known_answers::Peer;
use crate::support::{Place, count, stderr, stdout};
use serde_json::Value;

/// Protocols of the peer with streams. A batch of Kafka is one message here, so that each is acknowledged by itself.
const STREAMS: [&[&str]; 4] =
    [&["kafka", "--set", "options.batch=1B"], &["nats"], &["nats", "--set", "options.consumer=push"], &["redis"]];

fn counts(record: &Value) -> [u64; 4] {
    ["expected", "delivered", "lost", "duplicated"].map(|name| count(record, name))
}

fn catch_up(record: &Value, name: &str) -> u64 {
    record["catch_up"][name].as_u64().unwrap_or_else(|| panic!("{name}: {} {}", record["catch_up"], record["remarks"]))
}

fn series(record: &Value, name: &str) -> Vec<u64> {
    record["series"][name].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

fn notes(record: &Value) -> String {
    record["verdict"]["notes"].to_string()
}

/// Two pairs send 400 messages a second each, 80 in the warm-up and 160 in the window, which are all sent 400 ms before
/// the subscribers start. Then 480 messages wait, of which every seventh is lost and two come twice. The server stalls
/// when the subscribers connect.
#[test]
fn what_was_sent_before_a_subscriber_started_is_replayed_exactly() {
    const SCRIPT: &str = "keep = true\nswallow = { every = 7 }\nduplicate = { at = [[1, 140], [0, 100]] }\n\
                          [[stall]]\nfrom = \"950ms\"\nfor = \"100ms\"";
    for protocol in STREAMS {
        let place = Place::new();
        let peer = Peer::start(&place, protocol[0], SCRIPT);
        let load = [&peer.endpoint, "--qos", "1", "--pairs", "2", "--rate", "400", "--set", "end=400ms"];
        let late = ["--set", "subscribers_start=800ms"];
        let record = place.measure(&[&load[..], &late, &protocol[1..]].concat());
        // Of 160 sequences from 80 on, 23 end a seven in each pair.
        assert_eq!(counts(&record), [320, 274, 46, 2], "{protocol:?}");
        assert_eq!(count(&record, "acked_lost"), 46, "{protocol:?}");
        assert_eq!(series(&record, "lag").into_iter().max(), Some(480), "{protocol:?}: 800 messages/s for 600 ms");
        // Of 240 sequences, 34 end a seven in each pair.
        assert_eq!(catch_up(&record, "messages"), 412, "{protocol:?}");
        // The stall ends 1,050 ms after the start, which is 850 ms into the window.
        let (subscribed_ns, caught_up_ns) = (catch_up(&record, "subscribed_ns"), catch_up(&record, "caught_up_ns"));
        assert!(850_000_000 <= subscribed_ns && subscribed_ns <= caught_up_ns, "{protocol:?}: {}", record["catch_up"]);
        assert!(notes(&record).contains("subscribers started at 800ms of the window"), "{}", notes(&record));
        assert_eq!(record["connections"]["lost"], 0, "{protocol:?}: they left by themselves");
        assert!(record["stalls"]["longest_ns"].as_u64().unwrap() < 800_000_000, "{protocol:?}: silent as requested");
        drop(peer);
        place.assert_swept();
    }
}

/// Subscribers start while messages are sent. Before that, 200 messages/s of each of two publishers wait for 500 ms and
/// the warm-up of 200 ms; the lag is what was sent and has not been delivered.
#[test]
fn a_late_subscriber_catches_up_while_messages_are_sent() {
    for protocol in STREAMS {
        let place = Place::new();
        let peer = Peer::start(&place, protocol[0], "keep = true");
        let load = [&peer.endpoint, "--qos", "1", "--pairs", "2", "--rate", "200", "--payload", "64B"];
        let record = place.measure(&[&load[..], &["--set", "subscribers_start=500ms"], &protocol[1..]].concat());
        assert_eq!(counts(&record), [400, 400, 0, 0], "{protocol:?}");
        let [sent, delivered, lag] = ["sent", "delivered", "lag"].map(|name| series(&record, name));
        assert_eq!(delivered[..10], [0; 10], "{protocol:?}: slices of 50 ms");
        let mut waits = lag[0] - sent[0];
        assert!(waits <= 80, "{protocol:?}: {waits} of the messages of the warm-up were sent in time");
        for (slice, lag) in lag.iter().enumerate() {
            waits = waits + sent[slice] - delivered[slice];
            assert_eq!(*lag, waits, "{protocol:?}: {slice}");
        }
        assert!(catch_up(&record, "subscribed_ns") >= 500_000_000, "{protocol:?}");
        assert!((270..=480).contains(&catch_up(&record, "messages")), "{protocol:?}: {}", record["catch_up"]);
        let reasons = record["verdict"]["reasons"].to_string();
        assert!(!reasons.contains("not-steady") && !reasons.contains("overload"), "{protocol:?}: {reasons}");
        drop(peer);
        place.assert_swept();
    }
}

/// Of 100 messages that wait, a subscriber takes 500 a second, while 100 a second are sent.
#[test]
fn a_late_subscriber_that_is_slow_catches_up_at_its_own_rate() {
    let place = Place::new();
    let peer = Peer::start(&place, "nats", "keep = true");
    let load = [&peer.endpoint, "--qos", "1", "--rate", "100", "--payload", "64B", "--warmup", "500ms"];
    let late = ["--set", "subscribers_start=500ms", "--set", "consume=500"];
    let record = place.measure(&[&load[..], &late, &["--duration", "1500ms"]].concat());
    assert_eq!(counts(&record), [150, 150, 0, 0]);
    let (time_ns, messages) =
        (catch_up(&record, "caught_up_ns") - catch_up(&record, "subscribed_ns"), catch_up(&record, "messages"));
    // The first ones of a subscriber that was idle come at once.
    assert!(messages >= 95 && time_ns >= (messages - 7) * 2_000_000, "{}", record["catch_up"]);
    peer.end();
}

fn replays(system: &str, more: &[&str]) {
    let place = Place::new();
    let load = ["--qos", "1", "--durable", "--pairs", "2", "--rate", "200", "--payload", "256B"];
    let late = ["--set", "end=500ms", "--set", "subscribers_start=700ms"];
    let record = place.measure(&[&[system], &load[..], &late, more].concat());
    assert_eq!(counts(&record), [200, 200, 0, 0], "{system}");
    assert_eq!((catch_up(&record, "messages"), series(&record, "lag").into_iter().max()), (280, Some(280)), "{system}");
    assert_eq!(series(&record, "delivered").iter().take(14).sum::<u64>(), 0, "{system}");
    place.assert_swept();
}

#[test]
fn late_subscribers_of_real_systems_read_from_the_beginning() {
    replays("nats-jetstream", &[]);
    replays("nats-jetstream", &["--set", "options.consumer=push"]);
    replays("rabbitmq-amqp", &["--set", "options.queue_type=stream"]);
}

/// Its streams outlive their server only if they are written.
#[test]
fn late_subscribers_of_streams_of_redis_read_from_the_beginning() {
    replays("redis-streams", &[]);
}

#[test]
fn late_subscribers_of_kafka_read_from_the_beginning() {
    if wanted("late::late_subscribers_of_kafka_read_from_the_beginning") {
        replays("kafka", &["--warmup", "200ms", "--set", "options.partitions=3"]);
    }
}

/// For three seconds the consumer takes almost nothing, while Kafka removes what is older than half a second.
#[test]
fn a_consumer_that_kafkas_retention_has_overtaken_reads_on() {
    if !wanted("late::a_consumer_that_kafkas_retention_has_overtaken_reads_on") {
        return;
    }
    let load = ["kafka", "--qos", "1", "--rate", "500", "--payload", "1KiB", "--duration", "9s", "--warmup", "500ms"];
    let slow = ["--set", "consume=steps 1000000 0.001 1000000 each 3s", "--set", "options.fetch_max=20KiB"];
    let kept = ["--set", "options.retention_ms=500", "--set", "options.roll_ms=200"];
    let looks = ["--set", "options.retention_check_ms=100", "--set", "options.retention_first_ms=200"];
    let bench = Place::new().bench(&[&load[..], &slow, &kept, &looks].concat());
    let counts = &bench.record["counts"];
    assert_eq!((bench.error(), bench.count("acked"), bench.count("duplicated")), ("", 4_500, 0), "{counts}");
    assert_eq!(bench.record["connections"]["lost"], 0);
    assert!(bench.count("lost") > 0 && bench.count("lost") == bench.count("acked_lost"), "{counts}");
    // The first and the last three seconds are read as they come.
    assert!(bench.count("delivered") > 2_000, "{counts}");
}

#[test]
fn who_cannot_start_late_is_refused_before_the_run() {
    let place = Place::new();
    for (arguments, says) in [
        (&["nats-jetstream", "--qos", "1", "--set", "subscribers_start=1s"][..], "but the window lasts 1s"),
        (
            &["nats-jetstream", "--qos", "1", "--rate", "max"],
            "`subscribers_start` has no meaning where `rate` is `max`",
        ),
        (&["nats-jetstream", "--qos", "1", "--set", "warmup_max=1s"], "has no meaning with `warmup_max`"),
        (
            &["nats", "--pattern", "request-reply"],
            "has no meaning in pattern `request-reply`, in which subscribers answer",
        ),
        (&["nats"], "nats cannot have `subscribers_start`: messages are stored and acknowledged at qos = 1"),
        (&["kafka", "--qos", "0"], "kafka cannot have `subscribers_start`: messages are stored"),
        (&["mosquitto", "--qos", "1", "--durable"], "mosquitto cannot have `subscribers_start`: it has no stream"),
        (&["rabbitmq-amqp", "--qos", "1"], "rabbitmq-amqp cannot have `subscribers_start`: only its streams keep"),
        (&["zenoh"], "zenoh cannot have `subscribers_start`: it has no stream"),
        (&["mock"], "mock cannot have `subscribers_start`: it has no server"),
        (&["zeromq-python", "--transport", "tcp"], "zeromq-python cannot have `subscribers_start`: it has no server"),
        (&["nats-jetstream", "--set", "subscribers_start=soon"], "subscribers_start: `soon`"),
    ] {
        let has_start = arguments.iter().any(|argument| argument.starts_with("subscribers_start"));
        let start: &[&str] = if has_start { &[] } else { &["--set", "subscribers_start=500ms"] };
        let output = place.run(&[&["bench"], arguments, start, &["--duration", "1s", "--out", "r"]].concat());
        let said = stderr(&output) + &stdout(&output);
        assert!(!output.status.success() && said.contains(says), "{arguments:?}: {said}");
    }
    let count = ["nats-jetstream", "--qos", "1", "--count", "100", "--set", "subscribers_start=500ms"];
    let output = place.run(&[&["bench"], &count[..], &["--out", "r"]].concat());
    let said = stderr(&output);
    assert!(said.contains("`subscribers_start` has no meaning where `count` ends the window"), "{said}");
}
