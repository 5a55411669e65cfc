//! What a host's network is made for as long as a run lasts: what it sends held to so
//! many bytes a second by the kernel's token bucket (tc-tbf), and some of what comes in
//! lost by the kernel's packet filter.
//!
//! What takes either off again is a process of its own, which does so when this one has
//! no more use for it or is no more, whatever ended it.

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

/// `add` refuses where somebody else has put something there.
const BANDWIDTH: &str = r#"trap '' HUP INT TERM PIPE
tc qdisc add dev "$1" root tbf rate "$2"bps burst "$3" latency 50ms || exit 1
echo set
while read -r line; do :; done
tc qdisc del dev "$1" root
"#;
/// One rule of its own, which `-D` finds by its words.
const LOSS: &str = r#"trap '' HUP INT TERM PIPE
rule() { "$3" -w 4 "$1" INPUT -i "$2" -m statistic --mode random --probability "$4" -j DROP; }
rule -I "$@" || exit 1
echo set
while read -r line; do :; done
rule -D "$@"
"#;
/// How long the kernel may take.
const ANSWER: Duration = Duration::from_secs(5);
/// What may go out at once: what is due in this part of a second …
const BURSTS_PER_S: u64 = 1_000;
/// … and at least so much, bytes: a segment that a card would cut up.
const BURST_MIN: u64 = 64 << 10;

/// What a network is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// It sends so many bytes a second at most.
    Bandwidth(u64),
    /// Of the packets that come in, it loses so many of a million, at random.
    Loss(u64),
}

impl Shape {
    /// What sets it and takes it off, and what that is told behind the interface.
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

    /// What has failed, and what it takes.
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

/// An interface that is not as it was. Dropped, it is so again.
pub struct Shaped {
    child: Child,
}

impl Shaped {
    /// Makes the interface that has this address so.
    ///
    /// # Errors
    /// If there is none, if it is the loopback, or if the kernel will not: then nothing is set.
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
        // By the end of its input it knows that nobody wants it any more.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
