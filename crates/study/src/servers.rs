//! The server that stands between runs, where a study allows that one serves several.

use pubmark_host::standing::StandingServer;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::server_need::ServerNeed;
use pubmark_model::setting::FreshServer;

/// A server that has served runs, and may serve others of the same need.
pub struct ServerAtHand {
    pub(crate) need: ServerNeed,
    pub(crate) server: StandingServer,
    /// Where clients connect to.
    pub(crate) endpoints: ServerEndpoints,
    /// How many runs it has served.
    pub(crate) served: u32,
    /// Which run's log has what it prints.
    pub(crate) position: u64,
}

/// At most one server, which no run has at present. It ends when this is dropped, or
/// when a run comes that needs another.
#[derive(Default)]
pub struct Servers {
    is_shared: bool,
    at_hand: Option<ServerAtHand>,
}

impl Servers {
    /// None yet.
    pub fn new(fresh: FreshServer) -> Servers {
        Servers { is_shared: fresh == FreshServer::Cell, at_hand: None }
    }

    /// Whether a server may serve several runs.
    pub fn are_shared(&self) -> bool {
        self.is_shared
    }

    /// A run is about to begin: a server that is of no use to it ends before anything of
    /// the run is there.
    pub fn make_room(&mut self, need: Option<&ServerNeed>) {
        self.at_hand.take_if(|one| need != Some(&one.need) || !one.server.is_well());
    }

    /// The server for the run, if there is one.
    pub fn take(&mut self) -> Option<ServerAtHand> {
        self.at_hand.take()
    }

    /// Keeps the server at hand that a run has left, if it has left one.
    pub fn put(&mut self, left: Option<ServerAtHand>) {
        if left.is_some() {
            self.at_hand = left;
        }
    }

    /// Ends the server at hand.
    pub fn end(&mut self) {
        self.at_hand = None;
    }
}
