//! The server of drivers that need one: the reference peer, which treats messages as its script says, or the system's
//! own.

use crate::wrong::CaseFailure;
use nix::unistd::pipe;
use pubmark_host::cache::cache_folder;
use pubmark_host::scratch::Scratch;
use pubmark_host::server::{GRACE_MS, Server, StartPlan};
use pubmark_model::cell::Limits;
use pubmark_model::protocol::ServerAddress;
use pubmark_model::secret::Secrets;
use pubmark_model::server::Places;
use pubmark_model::system::System;
use pubmark_model::wire_protocol::Protocol;
use pubmark_peer::{ClientEvent, PeerProtocol, PeerScript};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time limit for the peer to listen.
const LISTENING: Duration = Duration::from_secs(5);

/// A server that serves until it is dropped.
pub struct TestServer {
    endpoint: String,
    // Dropping these ends them; the folder last.
    _peer: Option<Peer>,
    _server: Option<Box<Server>>,
    _scratch: Option<Scratch>,
}

struct Peer {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// Returns the protocol that the peer uses with the clients of this driver; `None` if it does not support it, and for
/// libraries, which need no server.
fn speaks(driver: &str) -> Option<PeerProtocol> {
    Protocol::of_driver(driver).and_then(|_| PeerProtocol::of_driver(driver))
}

/// Returns whether the peer can be scripted for this driver.
pub fn scripted(driver: &str) -> bool {
    speaks(driver).is_some()
}

fn not_here(error: impl std::fmt::Display) -> CaseFailure {
    CaseFailure::NotTried(format!("there is no server to meet at: {error}"))
}

impl TestServer {
    /// Starts the peer with this script or, if it does not support the driver's protocol, the system's own server,
    /// which follows no script.
    pub fn start(driver: &str, system: &System, script: &str) -> Result<TestServer, CaseFailure> {
        match speaks(driver) {
            Some(protocol) => TestServer::peer(protocol, script, None),
            None if script.is_empty() => TestServer::started(system),
            None => Err(not_here(format!("that of `{driver}` obeys no script"))),
        }
    }

    /// Starts the peer with this script. Returns also the events of its clients.
    pub fn watched(driver: &str, script: &str) -> Result<(TestServer, Receiver<ClientEvent>), CaseFailure> {
        let protocol = speaks(driver).ok_or_else(|| not_here(format!("that of `{driver}` obeys no script")))?;
        let (watch, seen) = channel();
        Ok((TestServer::peer(protocol, script, Some(watch))?, seen))
    }

    fn peer(
        protocol: PeerProtocol,
        script: &str,
        watch: Option<Sender<ClientEvent>>,
    ) -> Result<TestServer, CaseFailure> {
        let script = PeerScript::parse(script).map_err(not_here)?;
        let (stopped, stop) = pipe().map_err(not_here)?;
        let (tell, told) = channel();
        let run = move || {
            let listening = tell.clone();
            let listens = |endpoint: &str| drop(listening.send(Ok(endpoint.to_owned())));
            let served = protocol.serve(watch, (Ipv4Addr::LOCALHOST, 0).into(), script, stopped.as_fd(), listens);
            // The receiver is gone once the peer has listened.
            let _ = tell.send(Err(served.err().map(|error| error.to_string()).unwrap_or_default()));
        };
        let thread = thread::Builder::new().name("peer".into()).spawn(run).map_err(not_here)?;
        let endpoint = told.recv_timeout(LISTENING).map_err(not_here)?.map_err(not_here)?;
        let peer = Peer { stop: Some(stop), thread: Some(thread) };
        Ok(TestServer { endpoint, _peer: Some(peer), _server: None, _scratch: None })
    }

    fn started(system: &System) -> Result<TestServer, CaseFailure> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let spec = system.server.as_ref().ok_or_else(|| not_here("the system has none"))?;
        let scratch = Scratch::create().map_err(not_here)?;
        let places = Places {
            cache: cache_folder(system).display().to_string(),
            here: system.here.clone(),
            cpus: 1,
            memory_mb: 512,
            options: system.defaults(),
            ..Places::default()
        };
        let plan = StartPlan {
            system: &system.name,
            spec,
            deployment: "native",
            places,
            certificates: None,
            dir: scratch.path().join("server"),
            log: scratch.path().join("server.log"),
            processors: &[],
            disk: None,
            mesh: None,
            limits: Limits::default(),
            program: std::env::current_exe().map_err(not_here)?,
            remove: vec![scratch.path().to_owned()],
            secrets: Secrets::default(),
            grace_ms: GRACE_MS,
            interrupt: &NEVER,
        };
        let server = Server::start(&plan).map_err(not_here)?;
        let endpoint = server.endpoint().to_owned();
        Ok(TestServer { endpoint, _peer: None, _server: Some(Box::new(server)), _scratch: Some(scratch) })
    }

    /// Returns the address for agents.
    pub fn address(&self) -> ServerAddress {
        let (endpoint, run) = (self.endpoint.clone(), "conformance".to_owned());
        ServerAddress {
            endpoint,
            members: Vec::new(),
            discovery: Vec::new(),
            run,
            sources: Vec::new(),
            connect_per_s: 1_000,
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The end of its input ends it.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
