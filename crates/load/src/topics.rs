//! Topics of publishers and subscribers at a broker.

use crate::session::{ClientSpec, Session, SettingsError, SubTopics, TopicShare};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::pattern::Topics;
use pubmark_model::protocol::Role;
use pubmark_model::topology::partition;
use pubmark_model::workload::Workload;

/// A protocol's rules for the prefix of its topics.
pub struct PrefixRules {
    /// The thing that the prefix precedes, in the protocol's terms.
    pub what: &'static str,
    /// Forbidden characters, in addition to control characters.
    pub forbidden: &'static str,
    /// Forbidden first characters.
    pub first: &'static str,
    /// Maximum length, bytes.
    pub most_bytes: usize,
}

/// Checks the option `prefix`.
///
/// # Errors
/// If the protocol would refuse the topics or misinterpret them.
pub fn check_prefix(prefix: &str, rules: &PrefixRules) -> Result<(), SettingsError> {
    let bad = |c: &char| rules.forbidden.contains(*c) || c.is_control();
    if let Some(bad) = prefix.chars().find(bad) {
        return Err(format!("prefix: {} that is published to cannot hold {bad:?}: leave it out", rules.what).into());
    }
    if prefix.starts_with(|c| rules.first.contains(c)) {
        return Err(format!("prefix: {} of a user's cannot begin with `{}`", rules.what, &prefix[..1]).into());
    }
    if prefix.len() > rules.most_bytes {
        return Err(format!("prefix: write {} bytes at most", rules.most_bytes).into());
    }
    Ok(())
}

/// Returns the user's prefix of topics.
pub fn prefix(options: &Options) -> String {
    options.text("prefix").unwrap_or_default().to_owned()
}

/// Returns the identity of a client that comes and goes. Nothing is published to its topic.
pub fn visitor<S: Session>(workload: &Workload, prefix: &str, run: &str, number: u64) -> ClientSpec {
    // Names are short. None is there for so long that another one has its number.
    let id = (number % 1_000_000) as u32;
    let dot = S::SEPARATOR;
    ClientSpec {
        role: Role::Subscriber,
        id,
        name: format!("pb{run}c{id}"),
        topic: format!("{prefix}pubmark{dot}{run}{dot}churn{dot}{id}"),
        wild: false,
        leaves: SubTopics::None,
        group: None,
        members: 0,
        replays: false,
        reply: None,
        // It logs in as one of the subscribers.
        row: workload.publishers.saturating_add((number % u64::from(workload.subscribers.max(1))) as u32),
        last_will: None,
    }
}

/// Returns a client's identity at a broker. Topics and names begin with the run's own name,
/// so that clients receive nothing left from another run or sent by another user of the
/// server. The user's own prefix precedes each topic unchanged.
///
/// - [`Topics::Own`]: a topic for each pair.
/// - [`Topics::Shared`]: one topic, which all publishers share.
/// - With [`Workload::topics`]: below the topic of the pair, or the shared one, those that are drawn for messages; a
///   subscriber receives everything below, or has some of them.
/// - [`Topics::Tree`]: partition/subsystem/device/parameter, in the sizes of the workload;
///   a publisher is a device, and a subscriber receives everything below its partition.
pub fn spec<S: Session>(workload: &Workload, prefix: &str, run: &str, role: Role, id: u32) -> ClientSpec {
    let dot = S::SEPARATOR;
    let root = format!("{prefix}pubmark{dot}{run}");
    let sending = role.sends();
    let (topic, wild, leaves) = match workload.pattern.topics() {
        Topics::Own => drawn::<S>(workload, format!("{root}{dot}{id}"), role, id),
        Topics::Shared => drawn::<S>(workload, format!("{root}{dot}all"), role, id),
        Topics::Tree if sending => {
            let partition = partition(workload);
            let (system, device) = (id / partition, id % partition);
            let devices = workload.tree_devices.max(1);
            let topic = format!("{root}{dot}s{system}{dot}u{}{dot}d{}", device / devices, device % devices);
            let leaves =
                Some(workload.tree_parameters).filter(|count| *count > 1).map_or(SubTopics::None, SubTopics::Turns);
            (topic, true, leaves)
        }
        Topics::Tree => (format!("{root}{dot}s{id}{dot}{}", S::REST), true, SubTopics::None),
    };
    ClientSpec {
        role,
        id,
        name: format!("pb{run}{}{id}", if sending { 'p' } else { 's' }),
        topic,
        wild,
        leaves,
        group: workload.competing().then(|| format!("pb{run}")),
        members: if workload.competing() { workload.subscribers } else { 0 },
        replays: false,
        reply: workload.pattern.requests().then(|| format!("{}{root}{dot}{id}{dot}reply", S::INBOX)),
        row: if sending { id } else { workload.publishers.saturating_add(id) },
        last_will: None,
    }
}

/// Returns a client's topic, whether subscribers use a wildcard, and its topics below if the workload draws them.
fn drawn<S: Session>(workload: &Workload, topic: String, role: Role, id: u32) -> (String, bool, SubTopics) {
    let Some(set) = &workload.topics else { return (topic, false, SubTopics::None) };
    let (wild, shared) = (!set.is_each(), workload.pattern.topics() == Topics::Shared);
    match role.sends() {
        true => {
            let draw = set.of_publisher(workload.seed, id);
            (topic, wild, SubTopics::Drawn { draw, is_first: !shared || id == 0 })
        }
        false if wild => (format!("{topic}{}{}", S::SEPARATOR, S::REST), true, SubTopics::None),
        false => {
            let (first, step) = if shared { (id, workload.subscribers) } else { (0, 1) };
            (topic, false, SubTopics::Share(TopicShare { first, step, count: set.count() }))
        }
    }
}

/// Returns the number of clients of a workload, each of which has a line of `credentials_file`.
pub fn clients(workload: &Workload) -> usize {
    workload.publishers as usize + workload.subscribers as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::nats::Nats;

    #[test]
    fn a_device_stands_below_its_subsystem_and_has_its_parameters() {
        let topic = |more: &[(&str, &str)]| {
            let tree = [("pattern", "tree"), ("publishers", "400"), ("subscribers", "2")];
            let workload = Workload::of(tree.into_iter().chain(more.iter().copied())).unwrap();
            let spec = spec::<Nats>(&workload, "", "r", Role::Publisher, 333);
            (spec.topic, spec.leaves)
        };
        assert_eq!(topic(&[]), ("pubmark.r.s1.u1.d33".into(), SubTopics::Turns(10)));
        assert_eq!(topic(&[("tree_parameters", "1")]).1, SubTopics::None);
        assert_eq!(
            topic(&[("tree_devices", "20"), ("tree_parameters", "3")]),
            ("pubmark.r.s1.u6.d13".into(), SubTopics::Turns(3))
        );
    }

    #[test]
    fn subscribers_share_drawn_topics_by_their_numbers_or_take_all_with_a_wildcard() {
        let spec = |more: &[(&str, &str)], role, id| {
            let workload = Workload::of(more.iter().copied()).unwrap();
            spec::<Nats>(&workload, "", "r", role, id)
        };
        let hears = |more: &[(&str, &str)], id| {
            let spec = spec(more, Role::Subscriber, id);
            let topics: Vec<String> = spec.hears('.').map(|topic| topic.into_owned()).collect();
            assert_eq!(topics.len(), spec.hears_count() as usize);
            topics
        };
        let each = [("topics", "5"), ("subscriptions", "each"), ("pattern", "fan-in"), ("subscribers", "2")];
        assert_eq!(hears(&each, 0), ["markers", "0", "2", "4"].map(|leaf| format!("pubmark.r.all.{leaf}")));
        assert_eq!(hears(&each, 1), ["markers", "1", "3"].map(|leaf| format!("pubmark.r.all.{leaf}")));
        assert_eq!(hears(&[("topics", "5")], 0), ["pubmark.r.0.>"]);
        assert_eq!(hears(&[("topics", "2"), ("subscriptions", "each"), ("pairs", "9")], 8)[2], "pubmark.r.8.1");
        for (id, is_first) in [(0, true), (1, false)] {
            let sender =
                spec(&[&each[..3], &[("publishers", "2"), ("subscribers", "2")]].concat(), Role::Publisher, id);
            assert!(
                matches!(sender.leaves, SubTopics::Drawn { is_first: first, .. } if first == is_first),
                "{sender:?}"
            );
            assert_eq!((sender.topic.as_str(), sender.wild), ("pubmark.r.all", false));
        }
    }
}
