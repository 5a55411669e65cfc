//! Who publishes where, and who listens where, at a broker.

use crate::session::{ClientSpec, Session};
use pubmark_model::pattern::Topics;
use pubmark_model::protocol::Role;
use pubmark_model::topology::partition;
use pubmark_model::workload::Workload;

/// Devices of a subsystem, in the pattern `tree`.
const DEVICES: u32 = 100;
/// Parameters of a device: topics that its publisher takes in turn.
const PARAMETERS: u32 = 10;

/// Who a client is at a broker. Topics and names begin with the run's own name, so that
/// nothing left from another run, and no other user of the server, is heard.
///
/// - [`Topics::Own`]: a topic for each pair.
/// - [`Topics::Shared`]: one topic, which all publishers share.
/// - [`Topics::Tree`]: partition/subsystem/device/parameter; 100 devices a subsystem, 10
///   parameters a device; a publisher is a device, a subscriber listens to all
///   that is below its partition.
pub fn spec<S: Session>(workload: &Workload, run: &str, role: Role, id: u32) -> ClientSpec {
    let dot = S::SEPARATOR;
    let root = format!("pubmark{dot}{run}");
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
