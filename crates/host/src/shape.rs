//! Shapes a host's network during a run: the kernel's token bucket (tc-tbf) limits the
//! bytes a second that it sends, and the kernel's packet filter drops some of what it
//! receives.
//!
//! A separate process removes either again when this one is done or dead, whatever ended
//! it.

use crate::error::HostError;
use crate::network;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv6Addr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// `add` fails if another program has set something there.
const BANDWIDTH: &str = r#"trap '' HUP INT TERM PIPE
tc qdisc add dev "$1" root tbf rate "$2"bps burst "$3" latency 50ms || exit 1
echo set
while read -r line; do :; done
tc qdisc del dev "$1" root
"#;
/// One separate rule, which `-D` finds by its arguments.
const LOSS: &str = r#"trap '' HUP INT TERM PIPE
rule() { "$3" -w 4 "$1" INPUT -i "$2" -m statistic --mode random --probability "$4" -j DROP; }
rule -I "$@" || exit 1
echo set
while read -r line; do :; done
rule -D "$@"
"#;
/// Time limit for the kernel.
const ANSWER: Duration = Duration::from_secs(5);
/// Bursts a second: the bytes of one such part of a second may be sent at once.
const BURSTS_PER_S: u64 = 1_000;
/// Minimum of bytes that may be sent at once: a segment that a network card would split.
const BURST_MIN: u64 = 64 << 10;

/// A change of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It sends at most this many bytes a second.
    Bandwidth(u64),
    /// It loses this many of a million incoming packets, at random.
    Loss(u64),
}

impl Shape {
    /// Returns the script that sets and removes the change, and its arguments after the
    /// interface.
    fn script(self, address: &str) -> (&'static str, [String; 2]) {
        match self {
            Shape::Bandwidth(bytes_per_s) => {
                let burst = (bytes_per_s / BURSTS_PER_S).max(BURST_MIN);
                (BANDWIDTH, [bytes_per_s, burst].map(|number| number.to_string()))
            }
            Shape::Loss(per_million) => {
                let filter = if address.parse::<Ipv6Addr>().is_ok() { "ip6tables" } else { "iptables" };
                (LOSS, [filter.to_owned(), format!("{:.6}", per_million as f64 / 1e6)])
            }
        }
    }

    /// Describes the failure, and what is needed.
    fn in_vain(self, interface: &str) -> String {
        match self {
            Shape::Bandwidth(_) => format!(
                "the bandwidth of {interface} cannot be held, which takes root, tc, tbf in the kernel, and no other \
                 queueing discipline there"
            ),
            Shape::Loss(_) => format!(
                "no packet can be made to be lost at {interface}, which takes root, iptables (`apt-get install \
                 iptables`), and its match `statistic` in the kernel"
            ),
        }
    }
}

/// A changed interface. It is restored on drop.
pub struct Shaped {
    child: Child,
}

impl Shaped {
    /// Changes the interface that has this address.
    ///
    /// # Errors
    /// If there is none, if it is the loopback, or if the kernel refuses: then nothing is
    /// changed.
    pub fn start(address: &str, shape: Shape) -> Result<Shaped, HostError> {
        let look = network::look(address).ok_or_else(|| format!("no network interface has the address {address}"))?;
        if look.interface == "lo" {
            return Err(format!("{address} is on the loopback, which is left as it is: no bandwidth, no loss").into());
        }
        let (script, told) = shape.script(address);
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", &look.interface]).args(told);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(HostError::io("no shell to change a network with"))?;
        let (said, errors) = (child.stdout.take(), child.stderr.take());
        let mut shaped = Shaped { child };
        let (tell, told) = channel();
        let hear = move || {
            let line = said.and_then(|said| BufReader::new(said.take(1 << 10)).lines().next());
            let _ = tell.send(line.is_some_and(|line| line.is_ok_and(|line| line == "set")));
        };
        thread::Builder::new().name("shape".into()).spawn(hear).map_err(HostError::io("no thread for a network"))?;
        match told.recv_timeout(ANSWER) {
            Ok(true) => return Ok(shaped),
            Ok(false) => {}
            Err(_) => {
                let _ = shaped.child.kill();
                let seconds = ANSWER.as_secs();
                return Err(format!("{}: no answer within {seconds} s", shape.in_vain(&look.interface)).into());
            }
        }
        let mut complaint = String::new();
        let _ = errors.map(|errors| errors.take(1 << 10).read_to_string(&mut complaint));
        let why = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing was said").trim();
        Err(HostError::Failed(format!("{}: {why}", shape.in_vain(&look.interface))))
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        // The end of its input tells the process to restore the interface.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
