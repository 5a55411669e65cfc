//! Keeps a server between runs, if a study allows that one serves several.

use pubmark_host::standing::StandingServer;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::server_need::ServerNeed;
use pubmark_model::setting::FreshServer;

/// A server that has served runs, and may serve others with the same needs.
pub struct ServerAtHand {
    pub(crate) need: ServerNeed,
    pub(crate) server: StandingServer,
    /// Endpoints to which clients connect.
    pub(crate) endpoints: ServerEndpoints,
    /// Number of runs it has served.
    pub(crate) served: u32,
    /// Position of the run whose log has its output.
    pub(crate) position: u64,
}

/// At most one server, which no run uses at present. It ends when this is dropped, or when a run comes that needs
/// another.
#[derive(Default)]
pub struct Servers {
    is_shared: bool,
    at_hand: Option<ServerAtHand>,
}

impl Servers {
    /// Returns an empty holder.
    pub fn new(fresh: FreshServer) -> Servers {
        Servers { is_shared: fresh == FreshServer::Cell, at_hand: None }
    }

    /// Returns whether a server may serve several runs.
    pub fn are_shared(&self) -> bool {
        self.is_shared
    }

    /// Prepares for a run: ends a server that the run cannot use, before anything of the run exists.
    pub fn make_room(&mut self, need: Option<&ServerNeed>) {
        self.at_hand.take_if(|one| need != Some(&one.need) || !one.server.is_well());
    }

    /// Takes the server for the run, if there is one.
    pub fn take(&mut self) -> Option<ServerAtHand> {
        self.at_hand.take()
    }

    /// Keeps the server that a run has left, if any.
    pub fn put(&mut self, left: Option<ServerAtHand>) {
        if left.is_some() {
            self.at_hand = left;
        }
    }

    /// Ends the server.
    pub fn end(&mut self) {
        self.at_hand = None;
    }
}
