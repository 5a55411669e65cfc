//! Many topics: shares of subscribers, and what stays of what is retained.

use super::*;
use crate::session::TopicShare;
use pubmark_model::draw::Choice;
use pubmark_model::topic_set::{Subscriptions, TopicSet};

#[test]
fn a_share_of_topics_is_subscribed_to_in_packets_of_a_hundred() {
    for version in [V3, V5] {
        let leaves = SubTopics::Share(TopicShare { first: 0, step: 2, count: 298 });
        let mut client = Client::new(settings(version, 1), ClientSpec { leaves, ..spec(Role::Subscriber) });
        client.hear(|out| encode::connack(out, version, &Connack::new(0)).unwrap());
        client.out.clear();
        client.session.subscribe(&client.settings, &client.spec, &mut client.out);
        let sent = client.sent();
        assert_eq!(sent.len(), 2);
        assert!(sent[0].starts_with(r#"SUBSCRIBE 1 [("a/b/markers", AtLeastOnce), ("a/b/0", AtLeastOnce), ("a/b/2","#));
        assert!(sent[1].ends_with(r#"("a/b/296", AtLeastOnce)]"#), "{}", sent[1]);
        let mut answer = |id, codes: &[u8]| client.hear(|out| encode::suback(out, version, id, codes, None).unwrap());
        assert_eq!(answer(2, &[1; 50]), [], "one answer is missing");
        assert_eq!(answer(1, &[1; 100]), [Said::Subscribed]);

        let leaves = SubTopics::Share(TopicShare { first: 0, step: 1, count: 2 });
        let mut client = Client::new(settings(version, 1), ClientSpec { leaves, ..spec(Role::Subscriber) });
        client.hear(|out| encode::connack(out, version, &Connack::new(0)).unwrap());
        client.session.subscribe(&client.settings, &client.spec, &mut client.out);
        let refused = client.fault(|out| encode::suback(out, version, 1, &[1, 0x80, 1], None).unwrap());
        assert!(refused.to_string().contains("refuses the subscription"), "{refused}");
    }
}

#[test]
fn each_drawn_topic_may_keep_a_retained_message() {
    let retains = try_settings("mqtt://h", 0, false, &[("retain", "true")]).unwrap();
    let draw = TopicSet::new(3, Choice::Uniform, Subscriptions::Wildcard).of_publisher(1, 0);
    let leaves = |is_first| SubTopics::Drawn { draw: draw.clone(), is_first };
    let of = |is_first| Mqtt::leaves(&retains, &ClientSpec { leaves: leaves(is_first), ..spec(Role::Publisher) });
    let topics = ["a/b/0", "a/b/1", "a/b/2", "a/b/markers"].map(|topic| Leftover::Retained(topic.into()));
    assert_eq!((of(true), of(false)), (topics.to_vec(), vec![]));
}
