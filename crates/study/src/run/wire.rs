//! Traffic on the network interfaces between the parts of a run.

use crate::context::RunError;
use pubmark_host::network::NetworkLook;
use pubmark_host::reach::Host;
use pubmark_model::cell::Cell;
use pubmark_model::host::LOCAL;
use pubmark_model::record::{InterfaceShare, WireFigures};
use pubmark_model::system::System;
use pubmark_model::units::{Ns, SECOND, total};
use pubmark_model::workload::Transport;
use std::collections::BTreeSet;

/// Traffic between clients on one machine uses this interface, whichever of the machine's addresses they use.
const LOOPBACK: &str = "127.0.0.1";

/// Interfaces of a run, by host; empty if the run's traffic cannot be separated from an interface's counters.
#[derive(Default)]
pub struct NetworkAccount(Vec<InterfaceAtRest>);

/// An interface before the clients of a run connect.
struct InterfaceAtRest {
    first: NetworkLook,
    last: NetworkLook,
}

/// Returns whether all traffic of clients crosses an interface exactly once.
fn crosses(cell: &Cell, system: &System) -> bool {
    let by_network = match cell.workload.transport {
        Some(transport) => matches!(transport, Transport::Tcp | Transport::Udp),
        None => system.broker(),
    };
    // With a link's proxy, each byte crosses twice.
    by_network && system.driver != "mock" && cell.link.is_none()
}

impl NetworkAccount {
    /// Takes a snapshot of the interfaces before the run uses them.
    pub fn begin(hosts: &mut [Host<'_>], cell: &Cell, system: &System) -> Result<NetworkAccount, RunError> {
        if !crosses(cell, system) {
            return Ok(NetworkAccount(Vec::new()));
        }
        let looks = looks(hosts)?;
        let apart: BTreeSet<&str> = looks.iter().flatten().map(|look| look.namespace.as_str()).collect();
        let all = looks.iter().all(Option::is_some) && apart.len() == hosts.len();
        let rest = |first: NetworkLook| InterfaceAtRest { last: first.clone(), first };
        Ok(NetworkAccount(if all { looks.into_iter().flatten().map(rest).collect() } else { Vec::new() }))
    }

    /// Takes another snapshot when agents have been started, and have no connection yet.
    pub fn rested(&mut self, hosts: &mut [Host<'_>]) -> Result<(), RunError> {
        if self.0.is_empty() {
            return Ok(());
        }
        for (interface, look) in self.0.iter_mut().zip(looks(hosts)?) {
            interface.last = look.unwrap_or_else(|| interface.last.clone());
        }
        Ok(())
    }

    /// Returns the traffic between two instants; `None` unless it is known for each interface.
    pub fn finish(&self, hosts: &mut [Host<'_>], from_ns: Ns, to_ns: Ns) -> Result<Option<WireFigures>, RunError> {
        let mut interfaces = Vec::new();
        for (interface, host) in self.0.iter().zip(hosts) {
            let Some(sent_bytes) = host.network_sent(from_ns, to_ns)? else { return Ok(None) };
            let InterfaceAtRest { first, last } = interface;
            let at_rest_ns = last.at_ns.saturating_sub(first.at_ns);
            let at_rest_bytes = last.sent_bytes.saturating_sub(first.sent_bytes);
            let at_rest_s = at_rest_ns as f64 / SECOND as f64;
            interfaces.push(InterfaceShare {
                host: if host.spec.name == LOCAL { String::new() } else { host.spec.name.clone() },
                name: last.interface.clone(),
                sent_bytes,
                at_rest_ns,
                at_rest_bytes_per_s: if at_rest_ns == 0 { 0.0 } else { at_rest_bytes as f64 / at_rest_s },
            });
        }
        let sent_bytes = total(interfaces.iter().map(|interface| interface.sent_bytes));
        Ok((!interfaces.is_empty()).then_some(WireFigures { sent_bytes, interfaces }))
    }
}

/// Returns a snapshot of each host's interface by which the others reach it.
fn looks(hosts: &mut [Host<'_>]) -> Result<Vec<Option<NetworkLook>>, RunError> {
    let alone = hosts.len() == 1;
    let look = |host: &mut Host<'_>| {
        let address = if alone { LOOPBACK.to_owned() } else { host.spec.address.clone() };
        host.network(&address)
    };
    Ok(hosts.iter_mut().map(look).collect::<Result<_, _>>()?)
}
