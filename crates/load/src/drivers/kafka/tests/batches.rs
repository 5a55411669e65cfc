//! Numbers of messages that a producer collects.

use super::*;

/// A batch of 300 bytes holds five messages of 40.
#[test]
fn a_producer_knows_how_many_messages_it_only_collects() {
    let settings = given(1, &[("inflight", "1"), ("batch", "300B"), ("linger", "5ms")]);
    let mut client = producer(&settings);
    let collects = |client: &Conversation<'_, Kafka>, is_open| client.session.collects(&settings, 40, is_open);
    for (n, more) in (0..).zip([4, 3, 2, 1, 1]) {
        assert_eq!((collects(&client, true), collects(&client, false)), (more, 4), "it rather counts too few");
        assert!(client.publish(&[7; 40], n));
    }
    assert_eq!((collects(&client, true), client.said().len()), (0, 0));
    assert!(client.publish(&[7; 40], 5));
    assert!(!client.said().is_empty());
    assert_eq!(collects(&client, true), 0, "the batch that waits for an answer leaves when it is there");
    client.say(&produced(1, NO_ERROR)).unwrap();
    assert_eq!((collects(&client, true), client.session.held()), (3, 1));
    let at_once = given(1, &[("batch", "300B")]);
    assert_eq!(producer(&at_once).session.collects(&at_once, 40, false), 0);
}

/// The shard asks this, and sleeps past the due time of such a batch.
#[test]
fn a_batch_that_was_full_and_has_left_is_no_longer_collected() {
    let settings = given(1, &[("batch", "300B"), ("linger", "5ms")]);
    let mut client = producer(&settings);
    assert!((0..5).all(|n| client.publish(&[7; 40], n)));
    let first = client.session.begun().unwrap();
    assert!(client.session.is_collecting(first));
    assert!(client.publish(&[7; 40], 5));
    assert!(!client.said().is_empty(), "the sixth does not fit");
    let second = client.session.begun().unwrap();
    assert_eq!((client.session.is_collecting(first), client.session.is_collecting(second)), (false, true));
    client.session.flush(&settings, second, &mut client.out);
    assert!(!client.session.is_collecting(second));
}

#[test]
fn messages_without_acknowledgements_that_are_written_together_share_a_batch() {
    let settings = given(0, &[("inflight", "1"), ("batch", "80B")]);
    let mut client = producer(&settings);
    assert!((0..3).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
    assert_eq!(said(&mut client), ["1 produce 0: m0 m1", "1 produce 0: m2"], "until it is full");
    assert!(client.publish(b"m3", 3) && client.publish(b"end", u32::MAX));
    assert_eq!(said(&mut client), ["1 produce 0: m3", "1 produce 0: end"], "what is written is not added to");
    let spread = given(0, &[("partitions", "2"), ("partition_by", "round-robin"), ("batch", "80B")]);
    let mut client = Conversation::<Kafka>::new(&spread, spec(Role::Publisher, "pubmark.r.0"));
    client.say(&versions()).unwrap();
    client.say(&metadata_of(NO_ERROR, 2)).unwrap();
    client.said();
    assert!((0..4).all(|n| client.publish(format!("m{n}").as_bytes(), n)));
    assert_eq!(said(&mut client), ["1 produce 0: m0 m1", "1 produce 0 to 1: m2 m3"]);
}
