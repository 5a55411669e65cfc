//! What a run needs of its server, so that it is known which runs one server can serve.

use crate::cell::{Cell, Limits};
use crate::host::HostSpec;
use crate::link::Link;
use crate::options::{OptionValues, Options};
use crate::record::Deployment;
use crate::setting::FreshServer;

/// All that a server is started with, and what lies before it: runs whose needs are
/// equal can be served by one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerNeed {
    system: String,
    /// All of the system's options, the deployment among them.
    options: Options,
    limits: Limits,
    durable: bool,
    processors: Vec<usize>,
    host: HostSpec,
    link: Option<Link>,
}

impl Deployment {
    /// Notes that its server may serve several runs, and had served so many before.
    pub fn note_shared(&mut self, served: u32) {
        (self.fresh, self.served) = (Some(FreshServer::Cell.word().into()), Some(served));
    }
}

impl ServerNeed {
    /// What a run of this cell needs. None where no other run may have its server: there
    /// is none, it was there already, it stands on another host, or parts of the run fail.
    pub fn of(cell: &Cell) -> Option<ServerNeed> {
        let is_started = cell.system.broker() && cell.options.text("endpoint").is_none();
        let is_here = cell.placement.server.reach.is_empty();
        let fails = !cell.faults.is_empty() || cell.link.is_some_and(|link| link.mttf_ns.is_some());
        (is_started && is_here && !fails).then(|| ServerNeed {
            system: cell.system.name.clone(),
            options: cell.options.clone(),
            limits: cell.limits,
            durable: cell.workload.durable,
            processors: cell.workload.pin.of_server().to_vec(),
            host: cell.placement.server.clone(),
            link: cell.link,
        })
    }

    /// Whether a run of `cell` finds the server that the run of `before` had, as far as
    /// that one is valid.
    pub fn is_met(fresh: FreshServer, before: Option<&Cell>, cell: &Cell) -> bool {
        let need = ServerNeed::of(cell).filter(|_| fresh == FreshServer::Cell);
        need.is_some() && before.and_then(ServerNeed::of) == need
    }
}
