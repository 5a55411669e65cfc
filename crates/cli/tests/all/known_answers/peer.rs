//! A running peer.

use super::agents::keep_off;
use crate::support::{PATIENCE, Place, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// A running peer. It ends when this is dropped.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Endpoint at which it listens.
    pub endpoint: String,
}

impl Peer {
    /// Starts a peer with a script.
    pub fn start(place: &Place, protocol: &str, script: &str) -> Peer {
        let path = place.path("script.toml");
        std::fs::write(&path, script).unwrap();
        let mut command = place.command(&["peer", "--protocol", protocol, "--script", path.to_str().unwrap()]);
        let peer = Peer::spawn(&mut command);
        keep_off(peer.child.id());
        peer
    }

    pub fn spawn(command: &mut Command) -> Peer {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).all(|line| say.send(line).is_ok()));
        let input = child.stdin.take();
        let mut peer = Peer { child, input, lines, endpoint: String::new() };
        peer.endpoint = peer.line()["endpoint"].as_str().unwrap().to_owned();
        peer
    }

    fn line(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// Closes its input. Returns its counts.
    pub fn end(mut self) -> Value {
        drop(self.input.take());
        let account = self.line();
        let status = wait_for("the peer's end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status}");
        account
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
