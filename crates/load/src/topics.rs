//! Topics of publishers and subscribers at a broker.

use crate::session::{ClientSpec, Session, SettingsError};
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
        leaves: 1,
        group: None,
        reply: None,
        // It logs in as one of the subscribers.
        row: workload.publishers.saturating_add((number % u64::from(workload.subscribers.max(1))) as u32),
    }
}

/// Returns a client's identity at a broker. Topics and names begin with the run's own name,
/// so that clients receive nothing left from another run or sent by another user of the
/// server. The user's own prefix precedes each topic unchanged.
///
/// - [`Topics::Own`]: a topic for each pair.
/// - [`Topics::Shared`]: one topic, which all publishers share.
/// - [`Topics::Tree`]: partition/subsystem/device/parameter, in the sizes of the workload;
///   a publisher is a device, and a subscriber receives everything below its partition.
pub fn spec<S: Session>(workload: &Workload, prefix: &str, run: &str, role: Role, id: u32) -> ClientSpec {
    let dot = S::SEPARATOR;
    let root = format!("{prefix}pubmark{dot}{run}");
    let sending = role.sends();
    let (topic, wild, leaves) = match workload.pattern.topics() {
        Topics::Own => (format!("{root}{dot}{id}"), false, 1),
        Topics::Shared => (format!("{root}{dot}all"), false, 1),
        Topics::Tree if sending => {
            let partition = partition(workload);
            let (system, device) = (id / partition, id % partition);
            let devices = workload.tree_devices.max(1);
            let topic = format!("{root}{dot}s{system}{dot}u{}{dot}d{}", device / devices, device % devices);
            (topic, false, workload.tree_parameters)
        }
        Topics::Tree => (format!("{root}{dot}s{id}{dot}{}", S::REST), true, 1),
    };
    ClientSpec {
        role,
        id,
        name: format!("pb{run}{}{id}", if sending { 'p' } else { 's' }),
        topic,
        wild,
        leaves,
        group: workload.competing().then(|| format!("pb{run}")),
        reply: workload.pattern.requests().then(|| format!("{}{root}{dot}{id}{dot}reply", S::INBOX)),
        row: if sending { id } else { workload.publishers.saturating_add(id) },
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
        assert_eq!(topic(&[]), ("pubmark.r.s1.u1.d33".into(), 10));
        assert_eq!(topic(&[("tree_devices", "20"), ("tree_parameters", "3")]), ("pubmark.r.s1.u6.d13".into(), 3));
    }
}
