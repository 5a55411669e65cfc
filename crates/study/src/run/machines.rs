//! Finds hosts that are on one machine, and combines their load.

use pubmark_host::lines::Facts;
use pubmark_model::record::{HostShare, MachineLoad};
use std::collections::BTreeMap;

/// Returns, by host, the first host on the same machine (hosts may be namespaces or containers of it); a host that does
/// not know its machine counts as its own.
pub fn machines(facts: &[Facts]) -> Vec<usize> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    facts
        .iter()
        .enumerate()
        .map(|(index, one)| if one.machine.is_empty() { index } else { *first.entry(&one.machine).or_insert(index) })
        .collect()
}

/// Returns two hosts that are one machine and one network, if there are any.
pub fn twins(facts: &[Facts]) -> Option<[usize; 2]> {
    let mut known: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let named = facts.iter().enumerate().filter(|(_, one)| !one.machine.is_empty());
    let mut found = named.filter_map(|(index, one)| Some([known.insert((&one.machine, &one.network), index)?, index]));
    found.next()
}

/// Returns the worst value of each figure.
pub fn worst(shares: &[HostShare]) -> MachineLoad {
    let share_of = |machine: &MachineLoad| machine.foreign_cores / f64::from(machine.cores.max(1));
    let busiest = shares.iter().map(|share| share.machine).max_by(|a, b| share_of(a).total_cmp(&share_of(b)));
    let Some(busiest) = busiest else { return MachineLoad::default() };
    MachineLoad {
        steal: shares.iter().map(|share| share.machine.steal).fold(0.0, f64::max),
        late_ns: shares.iter().map(|share| share.machine.late_ns).max().unwrap_or(0),
        throttle: shares.iter().filter_map(|share| share.machine.throttle).max_by_key(|throttle| throttle.waited_ns),
        ..busiest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_machine_are_found_and_those_of_one_network_are_twins() {
        let host = |machine: &str, network: &str| Facts {
            machine: machine.into(),
            network: network.into(),
            ..Facts::default()
        };
        let apart = [host("a", "1"), host("b", "1"), host("a", "2"), host("", "1"), host("", "1"), host("b", "2")];
        assert_eq!(machines(&apart), [0, 1, 0, 3, 4, 1]);
        assert_eq!(twins(&apart), None);
        let one = [&apart[..], &[host("a", "2")]].concat();
        assert_eq!(twins(&one), Some([2, 6]));
    }
}
