//! Takes a host's network down for a while.
//!
//! A separate process brings it up again, and nothing of pubmark ends that process:
//! whatever happens to the run, its coordinator and this host, the network is back when
//! its time is over.

use crate::clock;
use crate::error::HostError;
use crate::network;
use pubmark_model::units::{Ns, SECOND};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Waits a moment, so that the answer to the order is sent, and restores routes that are
/// lost with the interface. It continues even if nobody reads its output.
const SCRIPT: &str = r#"trap '' HUP INT TERM PIPE
sleep 0.05
routes=$(ip route show dev "$1" | grep -v 'proto kernel')
ip link set "$1" down || exit 1
echo down
sleep "$2"
ip link set "$1" up
echo "$routes" | while read -r route; do [ -z "$route" ] || ip route add $route dev "$1"; done
echo up
"#;
/// Maximum delay with which the network may be back.
const LATE: Duration = Duration::from_secs(5);

/// A network that is going down, or is down.
pub struct NetworkCut {
    child: Child,
    for_ns: Ns,
    /// Instants at which it went down, and at which it was back.
    seen: Receiver<Ns>,
}

impl NetworkCut {
    /// Takes down the interface that has this address, for `for_ns`.
    ///
    /// # Errors
    /// If there is no such interface, or only this machine can be reached by it.
    pub fn start(address: &str, for_ns: Ns) -> Result<NetworkCut, HostError> {
        let look = network::look(address).ok_or_else(|| format!("no network interface has the address {address}"))?;
        if look.interface == "lo" {
            return Err(format!("{address} is on the loopback, which is not cut").into());
        }
        let seconds = format!("{:.3}", for_ns as f64 / SECOND as f64);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", &look.interface, &seconds]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(HostError::io("nothing to cut a network with"))?;
        let (tell, seen) = channel();
        let said = child.stdout.take();
        let hear = move || {
            for line in said.into_iter().flat_map(|said| BufReader::new(said).lines()) {
                if line.is_err() || tell.send(clock::now()).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("cut".into()).spawn(hear).map_err(HostError::io("no thread for a cut"))?;
        Ok(NetworkCut { child, for_ns, seen })
    }

    /// Waits until the network is back. Returns when it went down and when it was back.
    ///
    /// # Errors
    /// If it never went down, with the reason, or is not back in time.
    pub fn back(mut self) -> Result<(Ns, Ns), HostError> {
        let patience = Duration::from_nanos(self.for_ns) + LATE;
        let both = self.seen.recv_timeout(patience).and_then(|down| Ok((down, self.seen.recv_timeout(patience)?)));
        both.map_err(|_| {
            let mut said = String::new();
            if let Ok(Some(status)) = self.child.try_wait() {
                if let Some(signal) = status.signal() {
                    return HostError::Failed(format!("what cuts its network was killed by signal {signal}"));
                }
                let _ = self.child.stderr.take().map(|errors| errors.take(1 << 10).read_to_string(&mut said));
            }
            let why = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it is not back in time").to_owned();
            HostError::Failed(format!("its network cannot be cut, which takes root: {why}"))
        })
    }
}

impl Drop for NetworkCut {
    /// Nothing needs to be stopped: the process ends by itself, within its time.
    fn drop(&mut self) {
        let _ = self.child.wait();
    }
}
