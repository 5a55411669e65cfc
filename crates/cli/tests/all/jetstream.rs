//! JetStream on a real server.

use crate::support::Place;

/// Two subscribers are cut off while the server is killed: what it had acknowledged meanwhile is still there if streams
/// are in files, and gone if they are in memory.
#[test]
fn what_a_killed_server_had_acknowledged_is_lost_where_streams_are_in_memory() {
    let away = "cut link at 2200ms for 1800ms, kill server at 3200ms for 300ms";
    // A message that is on its way when the link is cut comes again after `ack_wait`: within the drain.
    let again = ["--set", "options.ack_wait=1s"];
    let load = ["nats-jetstream", "--pairs", "2", "--qos", "1", "--durable", "--duration", "4500ms"];
    let run = |storage: &str| {
        let option = format!("options.storage={storage}");
        Place::linked().bench(&[&load[..], &again, &["--set", &option, "--fault", away]].concat())
    };
    let (file, memory) = (run("file"), run("memory"));
    for bench in [&file, &memory] {
        assert_eq!((bench.error(), bench.count("offered")), ("", 1_800));
        assert_eq!(bench.evidence("server-died"), None);
        assert_eq!(bench.count("corrupted"), 0);
    }
    assert_eq!((file.count("lost"), file.count("acked_lost")), (0, 0), "{}", file.record["counts"]);
    // A second of 200 messages and two pairs; half of them, if the machine stutters.
    assert!(memory.count("acked_lost") >= 200, "{}", memory.record["counts"]);
}

/// Subscribers start two seconds late and read from the beginning: what is older than half a second is not there.
#[test]
fn what_is_too_old_is_removed_although_it_was_acknowledged() {
    let load = ["nats-jetstream", "--pairs", "2", "--rate", "200", "--qos", "1", "--duration", "3s"];
    let late = ["--set", "subscribers_start=2s", "--set", "options.max_age=500ms"];
    let bench = Place::new().bench(&[&load[..], &late].concat());
    let counts = &bench.record["counts"];
    assert_eq!((bench.error(), bench.count("acked")), ("", 1_200), "{counts}");
    assert_eq!(bench.count("lost"), bench.count("acked_lost"), "{counts}");
    // Those of the first second at least: the server looks for old ones now and then.
    assert!((400..1_200).contains(&bench.count("lost")), "{counts}");
}
