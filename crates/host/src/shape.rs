//! What a host sends on its network, held to so many bytes a second, by the kernel's
//! token bucket (tc-tbf).
//!
//! What takes it off again is a process of its own, which does so when this one has no
//! more use for it or is no more, whatever ended it.

use crate::error::HostError;
use crate::network;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// `add` refuses where somebody else has put something there.
const SCRIPT: &str = r#"trap '' HUP INT TERM PIPE
tc qdisc add dev "$1" root tbf rate "$2"bps burst "$3" latency 50ms || exit 1
echo set
while read -r line; do :; done
tc qdisc del dev "$1" root
"#;
/// How long the kernel may take.
const ANSWER: Duration = Duration::from_secs(5);
/// What may go out at once: what is due in this part of a second …
const BURSTS_PER_S: u64 = 1_000;
/// … and at least so much, bytes: a segment that a card would cut up.
const BURST_MIN: u64 = 64 << 10;

/// An interface that is held to a bandwidth. Dropped, it is so no longer.
pub struct Shaped {
    child: Child,
}

impl Shaped {
    /// Holds the interface that has this address to so many bytes a second, which it
    /// sends at most.
    ///
    /// # Errors
    /// If there is none, if it is the loopback, or if the kernel will not: then nothing is set.
    pub fn start(address: &str, bytes_per_s: u64) -> Result<Shaped, HostError> {
        let look = network::look(address).ok_or_else(|| format!("no network interface has the address {address}"))?;
        if look.interface == "lo" {
            return Err(format!("{address} is on the loopback, whose bandwidth is not held").into());
        }
        let burst = (bytes_per_s / BURSTS_PER_S).max(BURST_MIN);
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", &look.interface, &bytes_per_s.to_string(), &burst.to_string()]);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(HostError::io("nothing to hold a bandwidth with"))?;
        let (said, errors) = (child.stdout.take(), child.stderr.take());
        let mut shaped = Shaped { child };
        let (tell, told) = channel();
        let hear = move || {
            let line = said.and_then(|said| BufReader::new(said.take(1 << 10)).lines().next());
            let _ = tell.send(line.is_some_and(|line| line.is_ok_and(|line| line == "set")));
        };
        thread::Builder::new().name("shape".into()).spawn(hear).map_err(HostError::io("no thread for a bandwidth"))?;
        match told.recv_timeout(ANSWER) {
            Ok(true) => return Ok(shaped),
            Ok(false) => {}
            Err(_) => {
                let _ = shaped.child.kill();
                return Err(format!("tc did not answer within {} s", ANSWER.as_secs()).into());
            }
        }
        let mut complaint = String::new();
        let _ = errors.map(|errors| errors.take(1 << 10).read_to_string(&mut complaint));
        let why = complaint.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("tc said nothing").trim();
        Err(HostError::Failed(format!(
            "the bandwidth of {} cannot be held, which takes root, tc, tbf in the kernel, and no other queueing \
             discipline there: {why}",
            look.interface
        )))
    }
}

impl Drop for Shaped {
    fn drop(&mut self) {
        // By the end of its input it knows that nobody wants it any more.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
