//! Producers whose messages have keys.

use super::*;
use pubmark_model::draw::Choice;
use pubmark_model::header::{END, PROBE};
use pubmark_model::topic_set::{Subscriptions, TopicSet};
use pubmark_wire::kafka::partition_of;
use std::collections::BTreeMap;

fn keyed(qos: u8, more: &[(&str, &str)]) -> KafkaSettings {
    given(qos, &[&[("partitions", "4"), ("partition_by", "key"), ("keyspace", "50")][..], more].concat())
}

/// Returns the key of a message, and its partition.
fn expected(sequence: u32) -> (u32, u32) {
    let key = TopicSet::new(50, Choice::Uniform, Subscriptions::Wildcard).of_publisher(7, 0).at(sequence);
    (key, partition_of(key.to_string().as_bytes(), 4))
}

/// Returns these messages by partition.
fn by_partition(sequences: std::ops::Range<u32>) -> BTreeMap<u32, Vec<u32>> {
    let mut all: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    sequences.for_each(|sequence| all.entry(expected(sequence).1).or_default().push(sequence));
    all
}

/// Describes a batch with these messages.
fn batch(front: &str, sequences: &[u32]) -> String {
    let (_, partition) = expected(sequences[0]);
    let to = if partition > 0 { format!(" to {partition}") } else { String::new() };
    let messages: Vec<String> =
        sequences.iter().map(|sequence| format!("{}=m{sequence}", expected(*sequence).0)).collect();
    format!("{front}{to}: {}", messages.join(" "))
}

fn publish(client: &mut Conversation<'_, Kafka>, sequences: std::ops::Range<u32>) {
    sequences.for_each(|sequence| assert!(client.publish(format!("m{sequence}").as_bytes(), sequence)));
}

fn keyed_producer(settings: &KafkaSettings) -> Conversation<'_, Kafka> {
    let mut client = client(settings, Role::Publisher);
    connect(&mut client);
    client
}

fn connect(client: &mut Conversation<'_, Kafka>) {
    client.say(&versions()).unwrap();
    client.say(&metadata_of(NO_ERROR, 4)).unwrap();
    if client.settings.is_idempotent() && said(client).pop().unwrap() == "InitProducerId" {
        client.say(&answer(KafkaResponse::InitProducerId(CreatedId { error: 0, id: 7, epoch: 1 }), 0)).unwrap();
    }
    client.said();
    client.heard();
}

#[test]
fn a_batch_is_collected_for_each_partition_while_the_window_is_full() {
    let settings = keyed(1, &[("inflight", "1")]);
    let mut client = keyed_producer(&settings);
    publish(&mut client, 0..20);
    assert_eq!(said(&mut client), [batch("1 produce -1", &[0])]);
    assert_eq!((client.session.held(), client.session.unacknowledged()), (19, 20));
    let mut left = by_partition(1..20);
    assert!(left.len() == 4 && left.values().all(|messages| messages.len() > 1), "{left:?}");
    let mut flown = vec![0];
    for correlation in 1..6 {
        client.say(&produced(correlation, NO_ERROR)).unwrap();
        assert_eq!(client.heard(), flown.iter().copied().map(HeardEvent::Acknowledged).collect::<Vec<_>>());
        let all = said(&mut client);
        let front = format!("{} produce -1", correlation + 1);
        let sent = left.iter().find(|(_, messages)| all == [batch(&front, messages)]).map(|(partition, _)| *partition);
        assert_eq!((sent.is_some(), all.len()), (correlation < 5, usize::from(correlation < 5)), "{all:?}");
        flown = sent.and_then(|partition| left.remove(&partition)).unwrap_or_default();
    }
    assert_eq!((left.len(), client.session.unacknowledged()), (0, 0));
}

#[test]
fn each_partition_has_a_batch_of_its_own_to_collect_for_a_while() {
    let settings = keyed(0, &[("linger", "5ms")]);
    let mut client = keyed_producer(&settings);
    publish(&mut client, 0..20);
    assert_eq!((said(&mut client), client.session.collects(&settings, 40, true)), (vec![], 0));
    let mut begun: Vec<Vec<u32>> = by_partition(0..20).into_values().collect();
    begun.sort();
    for number in 1..5 {
        assert_eq!(client.session.begun(), Some(number));
    }
    assert_eq!(client.session.begun(), None);
    for number in [2, 1, 1, 9, 4, 3] {
        client.session.flush(&settings, number, &mut client.out);
        let wanted = begun.get_mut(number as usize - 1).map(std::mem::take).filter(|messages| !messages.is_empty());
        let wanted: Vec<String> = wanted.iter().map(|messages| batch("1 produce 0", messages)).collect();
        assert_eq!(said(&mut client), wanted, "{number}");
    }
    assert_eq!(client.session.held(), 0);
}

#[test]
fn batches_with_keys_are_sent_again_as_they_were() {
    let settings = keyed(2, &[("inflight", "3")]);
    let mut client = keyed_producer(&settings);
    publish(&mut client, 0..20);
    let mut wanted = said(&mut client);
    let spec = client.spec.clone();
    client.session.resume(&settings, &spec);
    client.session.open(&settings, &spec, &mut client.out);
    connect(&mut client);
    let mut all = Vec::new();
    for correlation in 4.. {
        while client.session.resend(&settings, &mut Numbers(String::new()), &mut client.out) {}
        all.append(&mut said(&mut client));
        if client.session.unacknowledged() == 0 {
            break;
        }
        client.say(&produced(correlation, NO_ERROR)).unwrap();
    }
    let mut next = [0; 4];
    wanted.truncate(3);
    let messages: Vec<u32> = (0..3).collect();
    let rest = by_partition(3..20);
    let mut batches: Vec<Vec<u32>> = messages.into_iter().map(|message| vec![message]).collect();
    batches.extend(
        all.iter()
            .skip(3)
            .filter_map(|said| rest.values().find(|messages| said.ends_with(&batch("", messages))).cloned()),
    );
    assert_eq!(batches.len(), 3 + rest.len(), "{all:?}");
    for (correlation, (messages, said)) in (4..).zip(batches.iter().zip(&all)) {
        let number = &mut next[expected(messages[0]).1 as usize];
        assert_eq!(*said, batch(&format!("{correlation} produce -1 as 7/1 from {number}"), messages));
        *number += messages.len();
    }
    let bare = |said: &String| said.split_once(' ').unwrap().1.to_owned();
    assert_eq!(all[..3].iter().map(bare).collect::<Vec<_>>(), wanted.iter().map(bare).collect::<Vec<_>>());
    let heard = client.heard();
    assert!((0..20).all(|sequence| heard.contains(&HeardEvent::Acknowledged(sequence))) && heard.len() == 20);
}

/// Nothing else may be collected with a probe or an end marker, whose sequences follow on no other.
#[test]
fn markers_have_no_key_and_go_to_the_partitions_in_turn() {
    let settings = keyed(1, &[("inflight", "1")]);
    let mut client = keyed_producer(&settings);
    let taken = (0..6).take_while(|_| client.publish(b"p", PROBE)).count();
    assert_eq!(taken, 5, "one is in flight, and each partition has one that waits");
    for correlation in 1..6 {
        client.say(&produced(correlation, NO_ERROR)).unwrap();
    }
    let mut to: Vec<String> = said(&mut client).iter().map(|said| said.split_once(' ').unwrap().1.to_owned()).collect();
    to.sort();
    assert_eq!(
        to,
        ["produce -1 to 1: p", "produce -1 to 1: p", "produce -1 to 2: p", "produce -1 to 3: p", "produce -1: p"]
    );
    publish(&mut client, 0..1);
    (0..4).for_each(|_| assert!(client.publish(b"e", END)));
    assert!(!client.publish(b"m1", 1), "an end marker of its partition has to leave first");
    client.say(&produced(6, NO_ERROR)).unwrap();
    assert_eq!(client.heard().pop(), Some(HeardEvent::Acknowledged(0)));
}

#[test]
fn a_message_waits_for_room_in_the_batch_of_its_partition() {
    let settings = keyed(1, &[("inflight", "1"), ("batch", "85B")]);
    let mut client = keyed_producer(&settings);
    publish(&mut client, 0..1);
    let taken =
        (1..20).take_while(|sequence| client.publish(format!("m{sequence}").as_bytes(), *sequence)).count() as u32;
    let next = expected(taken + 1).1;
    let waiting = by_partition(1..taken + 1);
    assert_eq!(waiting[&next].len(), 2, "{waiting:?}: 85 bytes hold two");
    assert!(waiting.values().all(|messages| messages.len() <= 2));
    assert_eq!(client.session.held(), u64::from(taken));
}
