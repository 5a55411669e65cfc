//! The server of those drivers that need one: the reference peer, which does to
//! messages what its script says.

use crate::case::Wrong;
use nix::unistd::pipe;
use pubmark_model::protocol::ServerAddress;
use pubmark_peer::{Listen, PeerScript, serve};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long the peer may take until it listens.
const LISTENING: Duration = Duration::from_secs(5);

/// A peer that serves until it is dropped.
pub struct Server {
    /// Where it listens.
    endpoint: String,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// What the peer speaks for a driver; none where it does not.
fn speaks(driver: &str) -> Option<Listen> {
    match driver {
        "mqtt" => Some(Listen::Mqtt),
        "nats" => Some(Listen::Nats),
        "redis" => Some(Listen::Redis),
        "amqp" => Some(Listen::Amqp),
        _ => None,
    }
}

impl Server {
    /// Starts one with this script.
    pub fn start(driver: &str, script: &str) -> Result<Server, Wrong> {
        let protocol =
            speaks(driver).ok_or_else(|| Wrong::NotTried(format!("there is no server for `{driver}` to meet at")))?;
        let not_here = |error: String| Wrong::NotTried(format!("there is no server to meet at: {error}"));
        let script = PeerScript::parse(script).map_err(not_here)?;
        let (stopped, stop) = pipe().map_err(|error| not_here(error.to_string()))?;
        let (tell, told) = channel();
        let run = move || {
            let listening = tell.clone();
            let served =
                serve(protocol, 0, script, stopped.as_fd(), |endpoint| drop(listening.send(Ok(endpoint.to_owned()))));
            // Nobody waits for it any more once it has listened.
            let _ = tell.send(Err(served.err().map(|error| error.to_string()).unwrap_or_default()));
        };
        let thread =
            thread::Builder::new().name("peer".into()).spawn(run).map_err(|error| not_here(error.to_string()))?;
        let endpoint = told.recv_timeout(LISTENING).map_err(|error| not_here(error.to_string()))?.map_err(not_here)?;
        Ok(Server { endpoint, stop: Some(stop), thread: Some(thread) })
    }

    /// What an agent is told of it.
    pub fn address(&self) -> ServerAddress {
        let (endpoint, run) = (self.endpoint.clone(), "conformance".to_owned());
        ServerAddress { endpoint, run, sources: Vec::new(), connect_per_s: 1_000 }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
