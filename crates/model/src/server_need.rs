//! A run's requirements on its server, which determine the runs that one server can serve.

use crate::cell::{Cell, Limits};
use crate::host::HostSpec;
use crate::link::Link;
use crate::options::{OptionValues, Options};
use crate::record::Deployment;
use crate::setting::FreshServer;

/// All settings with which a server is started, and the link before it. One server can serve all
/// runs with equal needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerNeed {
    system: String,
    /// All of the system's options, including the deployment.
    options: Options,
    limits: Limits,
    durable: bool,
    tls: bool,
    processors: Vec<usize>,
    host: HostSpec,
    link: Option<Link>,
}

impl Deployment {
    /// Records that the server may serve several runs, and the number it has served before.
    pub fn note_shared(&mut self, served: u32) {
        (self.fresh, self.served) = (Some(FreshServer::Cell.word().into()), Some(served));
    }
}

impl ServerNeed {
    /// Returns the need of a run of this cell. `None` if no other run may use its server: there is
    /// none, it was already running, it is on another host, or parts of the run fail.
    pub fn of(cell: &Cell) -> Option<ServerNeed> {
        let is_started = cell.system.broker() && cell.options.text("endpoint").is_none();
        let is_here = cell.placement.serves_here() && cell.placement.other_members.is_empty();
        let fails = !cell.faults.is_empty() || cell.link.is_some_and(|link| link.mttf_ns.is_some());
        (is_started && is_here && !fails).then(|| ServerNeed {
            system: cell.system.name.clone(),
            options: cell.options.clone(),
            limits: cell.limits,
            durable: cell.workload.durable,
            tls: cell.workload.tls,
            processors: cell.workload.pin.of_server().to_vec(),
            host: cell.placement.server.clone(),
            link: cell.link,
        })
    }

    /// True if a run of `cell` can use the server of the run of `before`, provided that that run is
    /// valid.
    pub fn is_met(fresh: FreshServer, before: Option<&Cell>, cell: &Cell) -> bool {
        let need = ServerNeed::of(cell).filter(|_| fresh == FreshServer::Cell);
        need.is_some() && before.and_then(ServerNeed::of) == need
    }
}
