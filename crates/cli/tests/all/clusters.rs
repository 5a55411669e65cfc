//! Servers with several members: what clients lose when the leader fails, and what is refused.

use crate::heavy::wanted;
use crate::support::{Benched, Place, stderr, stdout};
use serde_json::Value;

const NATS: [&str; 7] = ["nats-jetstream", "--qos", "1", "--durable", "--set", "options.members=3", "--set"];
/// A message that is on its way at a fault comes again after `ack_wait`: within the drain.
const AGAIN: [&str; 4] = ["--set", "options.ack_wait=1s", "--set", "drain=20s"];

/// Returns what the script did, as recorded: what, the member's number, and whether it has begun and ended.
fn faults(bench: &Benched) -> Vec<(String, Option<u64>, bool, bool)> {
    let text = |event: &Value| event["what"].as_str().unwrap().to_owned();
    let event =
        |event: &Value| (text(event), event["member"].as_u64(), event["at_ns"].is_u64(), event["until_ns"].is_u64());
    bench.record["fault_log"].as_array().unwrap().iter().map(event).collect()
}

/// Checks a run whose server has fail-over: what was acknowledged arrives, and nothing arrives that was not sent.
fn nothing_acknowledged_is_lost(bench: &Benched) {
    let counts = &bench.record["counts"];
    assert_eq!((bench.error(), bench.evidence("server-died")), ("", None));
    assert_eq!((bench.count("acked_lost"), bench.count("corrupted")), (0, 0), "{counts}");
    assert!(bench.count("acked") > 0 && bench.count("delivered") >= bench.count("acked"), "{counts}");
    assert_eq!(bench.count("expected"), bench.count("delivered") + bench.count("lost"), "{counts}");
}

fn member(bench: &Benched) -> u64 {
    faults(bench)[0].1.filter(|number| (1..=3).contains(number)).unwrap_or_else(|| panic!("{:?}", faults(bench)))
}

#[test]
fn a_cluster_without_faults_delivers_everything_once() {
    let bench = Place::new().bench(&[&NATS[..], &["options.replicas=3", "--pairs", "3", "--duration", "2s"]].concat());
    assert_eq!(bench.error(), "");
    let expected = bench.count("expected");
    assert!(expected > 0);
    for (name, count) in [("delivered", expected), ("lost", 0), ("duplicated", 0), ("acked", expected)] {
        assert_eq!(bench.count(name), count, "{name}: {}", bench.record["counts"]);
    }
    for agent in bench.record["agents"].as_array().unwrap() {
        let to = agent["applied"]["connected_to"].as_str().unwrap();
        assert_eq!(to.split(',').count(), 3, "all members are known: {to}");
    }
}

/// Three replicas outlive their leader. With one, what is sent after its end arrives nowhere.
#[test]
fn three_replicas_outlive_their_leader_and_one_does_not() {
    let kill = ["--pairs", "3", "--duration", "14s", "--fault", "kill server leader at 1s"];
    let run = |replicas: &str| Place::new().bench(&[&NATS[..], &[replicas], &AGAIN[..], &kill].concat());
    let three = run("options.replicas=3");
    nothing_acknowledged_is_lost(&three);
    let number = member(&three);
    assert_eq!(faults(&three), [("kill".to_owned(), Some(number), true, false)], "it stays away");
    assert!(three.record["stalls"]["longest_at_ns"].is_u64(), "the outage is recorded: {}", three.record["stalls"]);
    let one = run("options.replicas=1");
    assert_eq!(one.error(), "");
    // At least the pairs whose stream it kept are silent from then on.
    assert!(one.count("acked") < three.count("acked"), "{} {}", one.record["counts"], three.record["counts"]);
    assert!(one.count("delivered") < three.count("delivered"), "{}", one.record["counts"]);
}

#[test]
fn members_are_restarted_in_their_order_and_a_frozen_leader_goes_on() {
    let rolling = ["--pairs", "3", "--duration", "12s", "--fault", "restart server rolling at 1s"];
    let bench = Place::new().bench(&[&NATS[..], &["options.replicas=3"], &AGAIN[..], &rolling].concat());
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("restart".to_owned(), None, true, true)], "all were back within the window");
    let note = bench.record["fault_log"][0]["note"].as_str().unwrap();
    assert!(note.starts_with("all of it was back after "), "{note}");
    let stop = ["--pairs", "1", "--duration", "12s", "--fault", "stop server leader at 1s for 1s"];
    let bench = Place::new().bench(&[&NATS[..], &["options.replicas=3"], &AGAIN[..], &stop].concat());
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("stop".to_owned(), Some(member(&bench)), true, true)]);
}

#[test]
fn what_a_cluster_cannot_do_is_refused_before_anything_starts() {
    let refused = |arguments: &[&str], says: &[&str]| {
        let place = Place::new();
        let output = place.run(&[&["bench"], arguments, &["--out", "r"]].concat());
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}{error}", stdout(&output));
        assert!(says.iter().all(|text| error.contains(text)), "{arguments:?}: {error}");
        assert!(!place.path("r").exists());
    };
    let one = ["nats-jetstream", "--qos", "1", "--durable"];
    let with = |more: &[&'static str]| [&one[..], more].concat();
    refused(&with(&["--set", "options.replicas=3"]), &["too few for replicas = 3", "set members = 3"]);
    refused(&with(&["--fault", "kill server leader at 1s for 1s"]), &["its server has one member", "options.members"]);
    refused(&with(&["--set", "options.members=0"]), &["cannot have 0 members", "from 1 to 9"]);
    let three = with(&["--set", "options.members=3"]);
    let and = |more: &[&'static str]| [&three[..], more].concat();
    refused(&and(&["--fault", "kill server 4 at 1s for 1s"]), &["it has 3 members"]);
    refused(&and(&["--set", "options.deployment=container"]), &["only as processes"]);
    let partitions = ["kafka", "--qos", "1", "--set", "options.members=3", "--set", "options.partitions=4"];
    refused(&partitions, &["spreads the leaders of partitions", "partitions = 1"]);
    refused(&["mosquitto", "--set", "options.members=3"], &["members"]);
    refused(&["mosquitto", "--fault", "restart server rolling at 1s"], &["its server has one member"]);
}

fn heavy_run(system: &str, options: &[&str], fault: &str) -> Benched {
    let mut all = vec![system, "--qos", "1", "--durable", "--pairs", "2", "--duration", "30s", "--set", "drain=60s"];
    options.iter().for_each(|option| all.extend(["--set", option]));
    all.extend(["--fault", fault]);
    Place::new().bench(&all)
}

#[test]
fn kafka_elects_another_leader() {
    if !wanted("clusters::kafka_elects_another_leader") {
        return;
    }
    let options = [
        "options.members=3",
        "options.replicas=3",
        "options.min_insync=2",
        "options.session_timeout_ms=3000",
        "options.heartbeat_ms=500",
    ];
    let bench = heavy_run("kafka", &options, "kill server leader at 3s for 10s");
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("kill".to_owned(), Some(member(&bench)), true, true)]);
}

#[test]
fn rabbitmq_elects_another_leader_of_quorum_queues() {
    if !wanted("clusters::rabbitmq_elects_another_leader_of_quorum_queues") {
        return;
    }
    let options = ["options.members=3", "options.queue_type=quorum", "options.net_ticktime=5"];
    let bench = heavy_run("rabbitmq-amqp", &options, "kill server leader at 3s for 10s");
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("kill".to_owned(), Some(member(&bench)), true, true)]);
}
