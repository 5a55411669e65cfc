//! Servers with several members: what clients lose when the leader fails, and what is refused.

use crate::heavy::wanted;
use crate::left_out::{is_long, leave_out};
use crate::power::can_cut_with;
use crate::support::{Benched, Place, bench_arguments, children, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::{mesh, processes};
use pubmark_model::power::Power;
use serde_json::Value;
use std::process::{Command, Stdio};

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
    if !is_long("clusters::members_are_restarted_in_their_order_and_a_frozen_leader_goes_on") {
        return;
    }
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
    refused(&["mosquitto", "--set", "options.members=3"], &["members"]);
    refused(&with(&["--fault", "cut link 1-2 at 1s for 1s"]), &["its server has one member", "options.members"]);
    refused(&and(&["--fault", "cut link 1-4 at 1s for 1s"]), &["it has 3 members"]);
    refused(&and(&["--fault", "cut link leader at 1s for 1s", "--tls"]), &["no certificates", "leave `tls` out"]);
    refused(&["mosquitto", "--fault", "cut link 1-2 at 1s for 1s"], &["pubmark starts no members of it"]);
    let rabbit = ["rabbitmq-amqp", "--set", "options.members=3", "--fault", "cut link leader at 1s for 1s"];
    refused(&rabbit, &["loopback interface only", "stop server leader"]);
    let redis = ["redis-streams", "--qos", "1", "--durable"];
    let redis_with = |more: &[&'static str]| [&redis[..], more].concat();
    refused(&redis_with(&["--set", "options.wait_replicas=1"]), &["has 0 replicas", "set members = 2"]);
    let three = ["--set", "options.members=3", "--set"];
    let redis_and = |option: &'static str| redis_with(&[&three[..], &[option]].concat());
    refused(&redis_and("options.wait_replicas=3"), &["has 2 replicas", "set members = 4"]);
    refused(&redis_and("options.quorum=4"), &["never agree"]);
    refused(&redis_and("options.resp=2"), &["set resp = 3"]);
    let spread = ["redis-cluster", "--set", "options.members=6", "--set"];
    refused(&[&spread[..], &["options.resp=2"]].concat(), &["set resp = 3"]);
    refused(&["redis", "--set", "options.wait_replicas=1"], &["has 0 replicas", "leave wait_replicas out"]);
    refused(&["mosquitto", "--fault", "restart server rolling at 1s"], &["its server has one member"]);
}

fn heavy_run(system: &str, options: &[&str], fault: &str) -> Benched {
    let mut all = vec![system, "--qos", "1", "--durable", "--pairs", "2", "--duration", "30s", "--set", "drain=60s"];
    options.iter().for_each(|option| all.extend(["--set", option]));
    all.extend(["--fault", fault]);
    Place::new().bench(&all)
}

const KAFKA: [&str; 5] = [
    "options.members=3",
    "options.replicas=3",
    "options.min_insync=2",
    "options.session_timeout_ms=3000",
    "options.heartbeat_ms=500",
];

#[test]
fn kafka_elects_another_leader() {
    if !wanted("clusters::kafka_elects_another_leader") {
        return;
    }
    let bench = heavy_run("kafka", &KAFKA, "kill server leader at 3s for 10s");
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("kill".to_owned(), Some(member(&bench)), true, true)]);
}

/// Plays two publishers whose batches go to eight partitions in turn, at several members.
fn spread_run(set: &[&str], fault: Option<&str>) -> Benched {
    const LOAD: [&str; 6] = [
        "publishers=2",
        "rate=200",
        "options.partitions=8",
        "options.partition_by=round-robin",
        "drain=60s",
        "warmup=2s",
    ];
    let mut all = vec!["kafka", "--durable", "--duration", if fault.is_some() { "20s" } else { "3s" }];
    KAFKA.iter().chain(&LOAD).chain(set).for_each(|set| all.extend(["--set", set]));
    fault.into_iter().for_each(|fault| all.extend(["--fault", fault]));
    Place::new().bench(&all)
}

#[test]
fn partitions_of_kafka_are_read_and_written_at_the_members_that_lead_them() {
    if !wanted("clusters::partitions_of_kafka_are_read_and_written_at_the_members_that_lead_them") {
        return;
    }
    for set in [
        &["pattern=fan-in", "qos=1"][..],
        &["pattern=pipeline", "subscribers=2", "qos=2"],
        &["pattern=pipeline", "subscribers=2", "qos=1", "options.group=coordinator"],
        &["pattern=pairs", "qos=1", "options.partition_by=publisher"],
    ] {
        let bench = spread_run(set, None);
        let names = ["expected", "acked", "delivered", "lost", "duplicated", "reordered"];
        let counts = names.map(|name| bench.count(name));
        assert_eq!((bench.error(), counts), ("", [1_200, 1_200, 1_200, 0, 0, 0]), "{set:?}");
    }
}

/// A third of the partitions has no leader for a while. What an idempotent producer had acknowledged arrives once, and in
/// its order.
#[test]
fn partitions_of_kafka_get_other_leaders() {
    if !wanted("clusters::partitions_of_kafka_get_other_leaders") {
        return;
    }
    let bench = spread_run(&["pattern=fan-in", "subscribers=1", "qos=2"], Some("kill server leader at 3s for 5s"));
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(["lost", "duplicated", "reordered"].map(|name| bench.count(name)), [0; 3]);
    assert_eq!(faults(&bench), [("kill".to_owned(), Some(member(&bench)), true, true)]);
    let restarted = spread_run(&["pattern=fan-in", "subscribers=1", "qos=1"], Some("restart server rolling at 2s"));
    nothing_acknowledged_is_lost(&restarted);
}

/// The group's coordinator is one of the members, each of which is restarted in turn.
#[test]
fn groups_of_kafka_find_their_coordinator_again() {
    if !wanted("clusters::groups_of_kafka_find_their_coordinator_again") {
        return;
    }
    let group = [
        "pattern=pipeline",
        "subscribers=2",
        "qos=1",
        "options.group=coordinator",
        "options.group_session=6s",
        "options.group_heartbeat=500ms",
    ];
    for fault in ["kill server leader at 3s for 5s", "restart server rolling at 2s"] {
        nothing_acknowledged_is_lost(&spread_run(&group, Some(fault)));
    }
}

#[test]
fn kafka_outlives_a_leader_that_is_cut_off() {
    let test = "clusters::kafka_outlives_a_leader_that_is_cut_off";
    if !wanted(test) || !can_part(test) {
        return;
    }
    let bench = heavy_run("kafka", &KAFKA, "cut link leader at 3s for 6s");
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("cut".to_owned(), Some(member(&bench)), true, true)]);
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
    // The members are asked with a file of theirs, which is on a disk of their own then.
    if can_cut_with(Power::Disk, "clusters::rabbitmq_elects_another_leader_of_quorum_queues, without power") {
        nothing_acknowledged_is_lost(&heavy_run("rabbitmq-amqp", &options, "cut power of server leader at 3s for 10s"));
    }
}

const REDIS: [&str; 7] = ["redis-streams", "--qos", "1", "--durable", "--set", "options.members=3", "--set"];

/// Returns false, and notes that the test was left out, if members cannot have networks of their own here.
fn can_part(test: &str) -> bool {
    mesh::missing().inspect(|why| leave_out(test, why)).is_none()
}

#[test]
fn replicas_of_redis_deliver_everything_once() {
    for wait in ["options.wait_replicas=0", "options.wait_replicas=2"] {
        let bench = Place::new().bench(&[&REDIS[..], &[wait, "--pairs", "3", "--duration", "2s"]].concat());
        assert_eq!(bench.error(), "");
        let expected = bench.count("expected");
        assert!(expected > 0);
        for (name, count) in [("delivered", expected), ("lost", 0), ("duplicated", 0), ("acked", expected)] {
            assert_eq!(bench.count(name), count, "{wait}: {name}: {}", bench.record["counts"]);
        }
    }
}

/// Runs Redis with fail-over after a second, with this fault and promise. Subscribers take 60 of 100 messages/s, so the
/// server holds some.
fn redis_under(fault: &str, wait: &str) -> Benched {
    let soon = ["--set", "options.down_after_ms=1000", "--set", "options.failover_timeout_ms=5000"];
    let load = ["--pairs", "1", "--rate", "100", "--set", "consume=60", "--duration", "24s", "--set", "drain=60s"];
    let bench = Place::new().bench(&[&REDIS[..], &[wait], &soon, &load, &["--fault", fault]].concat());
    let counts = &bench.record["counts"];
    assert_eq!((bench.error(), bench.evidence("server-died"), bench.count("corrupted")), ("", None, 0), "{counts}");
    assert_eq!(bench.count("expected"), bench.count("delivered") + bench.count("lost"), "{counts}");
    assert!(bench.count("acked_lost") <= bench.count("lost"), "{counts}");
    bench
}

/// The primary that is cut off takes messages until ten seconds after the link is back. Then it becomes a replica, and what
/// nobody had read is gone. If a replica must have each message, it acknowledges none of them.
#[test]
fn what_a_primary_acknowledges_while_it_is_cut_off_is_lost() {
    let test = "clusters::what_a_primary_acknowledges_while_it_is_cut_off_is_lost";
    if !wanted(test) || !can_part(test) {
        return;
    }
    let alone = redis_under("cut link leader at 2s for 6s", "options.wait_replicas=0");
    // 40 messages/s pile up there until then.
    assert!(alone.count("acked_lost") > 300, "{}", alone.record["counts"]);
    assert_eq!(faults(&alone), [("cut".to_owned(), Some(1), true, true)], "the first leads");
    let waited = redis_under("cut link leader at 2s for 6s", "options.wait_replicas=1");
    nothing_acknowledged_is_lost(&waited);
}

#[test]
fn clients_of_redis_follow_the_primary() {
    if !wanted("clusters::clients_of_redis_follow_the_primary") {
        return;
    }
    for fault in ["kill server leader at 2s for 8s", "kill server leader at 2s", "stop server leader at 2s for 8s"] {
        let bench = redis_under(fault, "options.wait_replicas=1");
        nothing_acknowledged_is_lost(&bench);
        assert_eq!(faults(&bench)[0].1, Some(1), "the first leads");
        let connections = &bench.record["connections"];
        assert!(connections["lost"].as_u64().unwrap() >= 2, "{connections}");
        assert_eq!(connections["lost"], connections["reconnected"], "{fault}: all of them came back");
    }
    // Replication is asynchronous: what the primary had acknowledged and not passed on may be lost, and little else.
    let bench = redis_under("kill server leader at 2s for 8s", "options.wait_replicas=0");
    assert!(bench.count("delivered") > 400, "{}", bench.record["counts"]);
    let rolling = redis_under("restart server rolling at 2s", "options.wait_replicas=1");
    nothing_acknowledged_is_lost(&rolling);
}

const REDIS_CLUSTER: [&str; 7] = ["redis-cluster", "--qos", "1", "--durable", "--set", "options.members=6", "--set"];

/// Each client goes to the primary that has its stream, wherever it connects first.
#[test]
fn streams_of_a_redis_cluster_are_read_and_written_at_their_primaries() {
    for (set, each) in [("options.wait_replicas=0", 1), ("options.wait_replicas=1", 1), ("pattern=fan-out", 3)] {
        let load: &[&str] = if each == 1 { &["--pairs", "6"] } else { &["--subscribers", "3"] };
        let bench = Place::new().bench(&[&REDIS_CLUSTER[..], &[set, "--duration", "2s"], load].concat());
        assert_eq!(bench.error(), "");
        let (expected, acked) = (bench.count("expected"), bench.count("acked"));
        assert!(acked > 0 && expected == acked * each, "{set}: {}", bench.record["counts"]);
        for (name, count) in [("delivered", expected), ("lost", 0), ("duplicated", 0)] {
            assert_eq!(bench.count(name), count, "{set}: {name}: {}", bench.record["counts"]);
        }
        let connections = &bench.record["connections"];
        assert_eq!(connections["lost"], 0, "no client learns of its primary by a lost message: {connections}");
    }
}

#[test]
fn replicas_of_a_redis_cluster_replace_a_primary() {
    if !wanted("clusters::replicas_of_a_redis_cluster_replace_a_primary") {
        return;
    }
    let load = ["options.wait_replicas=1", "--set", "options.node_timeout_ms=2000", "--pairs", "6", "--rate", "50"];
    let times = ["--duration", "20s", "--set", "drain=60s", "--fault"];
    for fault in ["kill server leader at 2s for 8s", "stop server leader at 2s for 8s", "restart server rolling at 2s"]
    {
        let bench = Place::new().bench(&[&REDIS_CLUSTER[..], &load, &times, &[fault]].concat());
        nothing_acknowledged_is_lost(&bench);
        let connections = &bench.record["connections"];
        assert!(connections["lost"].as_u64().unwrap() >= 2, "{fault}: {connections}");
        assert_eq!(connections["lost"], connections["reconnected"], "{fault}: all of them came back");
    }
}

/// The backup listens for clients only once the primary is gone.
#[test]
fn a_backup_of_artemis_takes_over() {
    if !wanted("clusters::a_backup_of_artemis_takes_over") {
        return;
    }
    let can_cut = can_cut_with(Power::Disk, "clusters::a_backup_of_artemis_takes_over, without power");
    let faults_of_leader = ["kill server leader at 3s for 10s", "kill server leader at 3s"];
    for fault in faults_of_leader.into_iter().chain(can_cut.then_some("cut power of server leader at 3s for 10s")) {
        let bench = heavy_run("artemis", &["options.members=2", "rate=50"], fault);
        nothing_acknowledged_is_lost(&bench);
        assert_eq!(faults(&bench)[0].1, Some(1), "the primary is the first");
        let connections = &bench.record["connections"];
        assert!(connections["lost"].as_u64().unwrap() >= 4, "{connections}");
        assert!(bench.count("acked") * 10 > bench.count("sent") * 9, "{}", bench.record["counts"]);
    }
    let three = heavy_run("artemis", &["options.members=3"], "kill server leader at 3s");
    assert!(three.error().contains("a primary has one backup"), "{}", three.error());
}

#[test]
fn three_replicas_outlive_a_leader_that_is_cut_off() {
    let test = "clusters::three_replicas_outlive_a_leader_that_is_cut_off";
    if !can_part(test) || !is_long(test) {
        return;
    }
    let cut = ["--pairs", "3", "--duration", "20s", "--fault", "cut link leader at 2s for 8s"];
    let bench = Place::new().bench(&[&NATS[..], &["options.replicas=3"], &AGAIN[..], &cut].concat());
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("cut".to_owned(), Some(member(&bench)), true, true)]);
    let pair = ["--pairs", "1", "--duration", "8s", "--fault", "cut link 1-3 at 2s for 2s"];
    let bench = Place::new().bench(&[&NATS[..], &["options.replicas=3"], &AGAIN[..], &pair].concat());
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(
        (&bench.record["fault_log"][0]["member"], &bench.record["fault_log"][0]["peer"]),
        (&1.into(), &3.into())
    );
}

/// Returns the names of this machine's interfaces to the members below a coordinator.
fn interfaces(coordinator: u32) -> Vec<String> {
    let address = |pid: i32| {
        let network = format!("--net=/proc/{pid}/ns/net");
        let said = Command::new("nsenter").args([&network, "ip", "-o", "-4", "addr", "show", "lo"]).output().unwrap();
        let said = stdout(&said);
        let address = said.split_whitespace().find_map(|word| word.strip_suffix("/32"))?.to_owned();
        let parts: Vec<u32> = address.split('.').filter_map(|part| part.parse().ok()).collect();
        let [198, second @ (18 | 19), third, fourth] = parts[..] else { return None };
        Some(format!("pm{}m", ((second - 18) << 16 | third << 8 | fourth) / 16))
    };
    let blocks: Vec<String> = processes::descendants(coordinator as i32).into_iter().filter_map(address).collect();
    let all = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| blocks.iter().any(|block| name.starts_with(block))).collect()
}

#[test]
fn no_network_stays_whatever_is_killed() {
    if !can_part("clusters::no_network_stays_whatever_is_killed") {
        return;
    }
    let place = Place::new();
    for everybody in [false, true] {
        let fault = ["options.replicas=1", "--duration", "60s", "--fault", "cut link leader at 500ms for 50s"];
        let mut run = place.command(&bench_arguments(&[&NATS[..], &fault].concat()));
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("its first process", || Some(()).filter(|()| !children(run.id()).is_empty()));
        let made = wait_for("three networks", || Some(interfaces(run.id())).filter(|all| all.len() == 3));
        let mut doomed = vec![run.id() as i32];
        if everybody {
            doomed.extend(processes::descendants(run.id() as i32));
        }
        for pid in doomed.iter() {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        run.wait().unwrap();
        let is_there = |name: &String| std::path::Path::new("/sys/class/net").join(name).exists();
        wait_for("the networks' end", || Some(()).filter(|()| !made.iter().any(is_there)));
        std::fs::remove_dir_all(place.path("r")).unwrap_or_default();
    }
}

#[test]
fn a_member_that_does_not_join_is_named_with_its_answer() {
    let place = Place::new();
    let server = r#"start_timeout = "3s"

[cluster]
[[cluster.joined]]
command = ["sh", "-c", "[ {member} = 2 ] && echo alone || echo joined"]
is = "joined"
"#;
    place.peer_system("loners", "qos = [0]", ("", ""), server);
    let bench = place.bench(&["loners", "--pairs", "1", "--duration", "1s", "--set", "options.members=3"]);
    assert!(bench.error().contains("member 2 did not join") && bench.error().contains("`alone`"), "{}", bench.error());
    place.assert_swept();
}

/// A member that waits to take over listens for no client: its log says that it is ready.
#[test]
fn a_member_that_waits_is_ready_without_a_port() {
    let place = Place::new();
    let waits = "[ {member} = 1 ] || { echo I wait; exec sleep 1000000; };";
    let server =
        "[cluster]\nstandby_log = \"I wait\"\n[[cluster.joined]]\ncommand = [\"echo\", \"yes\"]\nis = \"yes\"\n";
    place.peer_system("couple", "qos = [0, 1]", (waits, ""), server);
    let load = ["couple", "--qos", "1", "--pairs", "2", "--duration", "1s", "--set", "options.members=2"];
    let bench = place.bench(&load);
    assert_eq!(bench.error(), "");
    assert!(bench.count("acked") > 0 && bench.count("delivered") == bench.count("sent"), "{}", bench.record["counts"]);
    place.assert_swept();
}

#[test]
fn a_cluster_of_the_wrong_size_says_so_at_once() {
    let place = Place::new();
    let bench = place.bench(&["redis-cluster", "--qos", "1", "--pairs", "1", "--set", "options.members=3"]);
    assert!(bench.error().contains("fewer than three primaries: set options.members = 6"), "{}", bench.error());
    place.assert_swept();
}

/// A member whose power is cut comes back with what it had synced, and the others have the rest.
#[test]
fn a_power_cut_of_one_member_loses_nothing_that_was_acknowledged() {
    let test = "clusters::a_power_cut_of_one_member_loses_nothing_that_was_acknowledged";
    if !wanted(test) {
        return;
    }
    let synced = ["options.replicas=3", "--set", "options.sync_interval=always"];
    let cut =
        ["--pairs", "2", "--rate", "50", "--duration", "20s", "--fault", "cut power of server leader at 3s for 5s"];
    let bench = Place::new().bench(&[&NATS[..], &synced, &AGAIN[..], &cut].concat());
    nothing_acknowledged_is_lost(&bench);
    assert_eq!(faults(&bench), [("cut_power".to_owned(), Some(member(&bench)), true, true)]);
}

/// Runs JetStream with three replicas over ledgers: its subscribers take little before the cut, and everything after it.
fn cut_over_ledger(sync: &str, fault: &str, drain: &str) -> Benched {
    let (sync, drain) = (format!("options.sync_interval={sync}"), format!("drain={drain}"));
    let set = ["options.replicas=3", "--set", &sync, "--set", "power=ledger", "--set", "options.pull_batch=10"];
    let few = ["--set", "options.max_ack_pending=10", "--set", "consume=steps 5 1000 each 3s"];
    let load = ["--pairs", "1", "--rate", "50", "--duration", "4s", "--set", &drain, "--fault", fault];
    let bench = Place::new().bench(&[&NATS[..], &set, &few, &AGAIN[..2], &load].concat());
    assert_eq!((bench.error(), bench.evidence("server-died")), ("", None));
    assert!(bench.count("acked") > 20, "{}", bench.record["counts"]);
    bench
}

/// With its default, JetStream syncs every two minutes. One member that forgets is taught by the others.
#[test]
fn a_power_cut_of_one_member_over_a_ledger_loses_nothing_and_of_all_members_everything_since_the_sync() {
    const TEST: &str =
        "clusters::a_power_cut_of_one_member_over_a_ledger_loses_nothing_and_of_all_members_everything_since_the_sync";
    if !can_cut_with(Power::Ledger, TEST) {
        return;
    }
    let all = cut_over_ledger("2m", "cut power of server at 2s for 500ms", "4s");
    // What the subscribers had taken, and what was on its way to them, is not the server's to keep any more.
    let taken = all.count("delivered");
    let (acked, lost) = (all.count("acked"), all.count("acked_lost"));
    assert!(lost > 0 && lost <= acked && lost + taken >= acked, "{}", all.record["counts"]);
    assert!(taken < acked / 2, "{}", all.record["counts"]);
    let cuts = faults(&all);
    assert_eq!(cuts[0], ("cut_power".to_owned(), None, true, true), "{cuts:?}");
    if !wanted(TEST) {
        return;
    }
    for fault in ["cut power of server leader at 2s for 500ms", "cut power of server 2 at 2s for 500ms"] {
        let one = cut_over_ledger("2m", fault, "20s");
        nothing_acknowledged_is_lost(&one);
        assert_eq!(faults(&one), [("cut_power".to_owned(), Some(member(&one)), true, true)]);
    }
    let synced = cut_over_ledger("always", "cut power of server at 2s for 500ms", "20s");
    assert_eq!(synced.count("acked_lost"), 0, "{}", synced.record["counts"]);
}
