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
