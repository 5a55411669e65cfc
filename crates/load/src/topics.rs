//! Who publishes where, and who listens where, at a broker.

use crate::session::{ClientSpec, Session, SettingsError};
use pubmark_model::pattern::Topics;
use pubmark_model::protocol::Role;
use pubmark_model::topology::partition;
use pubmark_model::workload::Workload;

/// Devices of a subsystem, in the pattern `tree`.
const DEVICES: u32 = 100;
/// Parameters of a device: topics that its publisher takes in turn.
const PARAMETERS: u32 = 10;

/// What a protocol allows before its topics.
pub struct PrefixRules {
    /// What it stands before, in the protocol's words.
    pub what: &'static str,
    /// Characters that it may not hold, beside control characters.
    pub forbidden: &'static str,
    /// Characters with which it may not begin.
    pub first: &'static str,
    /// Its longest, bytes.
    pub most_bytes: usize,
}

/// Refuses what the option `prefix` cannot be, in words.
///
/// # Errors
/// Where the protocol would refuse the topics, or take them for something else.
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

/// Who a client is at a broker. Topics and names begin with the run's own name, so that
/// nothing left from another run, and no other user of the server, is heard. Before a
/// topic stands the user's own prefix, as it is.
///
/// - [`Topics::Own`]: a topic for each pair.
/// - [`Topics::Shared`]: one topic, which all publishers share.
/// - [`Topics::Tree`]: partition/subsystem/device/parameter; 100 devices a subsystem, 10
///   parameters a device; a publisher is a device, a subscriber listens to all
///   that is below its partition.
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
            let subsystem = device / DEVICES;
            (format!("{root}{dot}s{system}{dot}u{subsystem}{dot}d{}", device % DEVICES), false, PARAMETERS)
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
    }
}
