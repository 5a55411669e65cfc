//! What clients have left at a server is removed, and what cannot be removed is reported.

use super::*;
use pubmark_model::leftovers::{Leftover, Leftovers, Removal};
use std::net::{SocketAddr, TcpListener};

fn leftovers(at: SocketAddr, workload: &Workload, set: &[(&str, &str)]) -> Leftovers {
    let mut options = options(Protocol::Mqtt, set);
    options.insert("endpoint".into(), format!("mqtt://{at}").into());
    let (driver, begun, workload) = ("mqtt".into(), String::new(), workload.clone());
    Leftovers { run: "t".into(), begun, driver, options, workload }
}

fn removed(leftovers: &Leftovers, at: SocketAddr, within: Ns) -> Removal {
    let dial = Dial::tcp(vec![at]);
    let endpoint = leftovers.endpoint().unwrap();
    super::super::remove::<Mqtt>(leftovers, &endpoint, dial, clock::now() + within)
}

/// Removes what a run has left at the broker.
pub fn remove_all(broker: &Broker, workload: &Workload, version: &str) {
    let leftovers = leftovers(broker.address, workload, &[("mqtt_version", version)]);
    let things = super::super::list::<Mqtt>(&leftovers, &leftovers.endpoint().unwrap()).unwrap();
    let found = removed(&leftovers, broker.address, 60 * SECOND);
    assert_eq!(found, Removal { removed: things.len() as u64, is_let_in: !things.is_empty(), ..Removal::default() });
}

fn names(kind: fn(String) -> Leftover, prefix: &str, count: usize) -> Vec<Leftover> {
    (0..count).map(|id| kind(format!("{prefix}{id}"))).collect()
}

#[test]
fn what_each_client_leaves_has_a_name() {
    let list = |workload: &[(&'static str, &'static str)], durable: bool, back: bool, retain: &str| {
        let workload = Workload::of(workload.iter().copied()).unwrap();
        let workload = Workload { durable, reconnect: back, ..workload };
        let leftovers = leftovers("127.0.0.1:1".parse().unwrap(), &workload, &[("retain", retain)]);
        super::super::list::<Mqtt>(&leftovers, &leftovers.endpoint().unwrap()).unwrap()
    };
    let pairs: &[_] = &[("pairs", "3"), ("qos", "1")];
    assert_eq!(list(pairs, false, false, "false"), []);
    assert_eq!(list(pairs, true, false, "false"), names(Leftover::Session, "pbts", 3));
    let both = [names(Leftover::Session, "pbtp", 3), names(Leftover::Session, "pbts", 3)].concat();
    assert_eq!(list(pairs, true, true, "false"), both);
    assert_eq!(list(&[("pairs", "3"), ("qos", "0")], false, true, "false"), [], "there is nothing to come back to");
    assert_eq!(list(pairs, false, false, "true"), names(Leftover::Retained, "pubmark/t/", 3));
    let fan_in: &[_] = &[("pattern", "fan-in"), ("publishers", "4"), ("subscribers", "1")];
    assert_eq!(list(fan_in, false, false, "true").len(), 1, "all publish to one topic");
    let tree: &[_] = &[("pattern", "tree"), ("publishers", "4"), ("subscribers", "1")];
    assert_eq!(list(tree, false, false, "true").len(), 40, "each to ten");
}

#[test]
fn thousands_of_sessions_are_removed_by_a_few_connections_in_turn() {
    let broker = Broker::start(Qos::AtLeastOnce, Script::default());
    let workload = Workload { publishers: 1, subscribers: 2_000, durable: true, ..workload(Qos::AtLeastOnce, false) };
    remove_all(&broker, &workload, "3.1.1");
    let world = broker.world();
    assert_eq!(world.accepted, 2_000);
    assert_eq!(world.parted.iter().collect::<BTreeSet<_>>().len(), 2_000, "each under its own name");
}

#[test]
fn a_server_that_refuses_to_remove_something_is_heard() {
    const NOT_AUTHORIZED: u8 = 0x87;
    let script = Script { keeps_retained: Some(NOT_AUTHORIZED), ..Script::default() };
    let broker = Broker::start(Qos::AtLeastOnce, script);
    let workload = workload(Qos::AtLeastOnce, false);
    let leftovers = leftovers(broker.address, &workload, &[("mqtt_version", "5"), ("retain", "true")]);
    let found = removed(&leftovers, broker.address, 60 * SECOND);
    assert_eq!((found.removed, found.left), (0, names(Leftover::Retained, "pubmark/t/", 1)));
    let why = found.why.unwrap();
    assert!(why.contains("0x87"), "its own words, and not that it did not answer: {why}");
}

#[test]
fn what_a_server_does_not_answer_is_told_by_name_when_the_time_is_over() {
    // It accepts connections, and never reads from them.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let workload = Workload { subscribers: 2, durable: true, ..workload(Qos::AtLeastOnce, false) };
    let found = removed(&leftovers(at, &workload, &[]), at, SECOND / 5);
    assert_eq!((found.removed, found.is_let_in), (0, false));
    assert_eq!(found.why.as_deref(), Some("the server did not answer in time"));
    assert_eq!(
        found.left.iter().cloned().collect::<BTreeSet<_>>(),
        names(Leftover::Session, "pbts", 2).into_iter().collect()
    );
}

#[test]
fn a_server_that_has_gone_is_not_tried_for_long() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let workload = Workload { subscribers: 1_000, durable: true, ..workload(Qos::AtLeastOnce, false) };
    let found = removed(&leftovers(at, &workload, &[]), at, 60 * SECOND);
    assert_eq!((found.removed, found.left.len()), (0, 1_000));
    assert!(found.why.unwrap().contains("refused"), "as the kernel says it");
}
