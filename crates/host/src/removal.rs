//! Removal of what a run has left at a server. A separate process does it, because the
//! coordinator never opens sockets to servers.

use crate::error::HostError;
use pubmark_model::leftovers::{Leftovers, Removal};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time that `pubmark remove` has for its report in addition to the removal itself.
const SPARE: Duration = Duration::from_secs(2);
/// Maximum length of its report, bytes.
const ANSWER_BYTES: u64 = 256 << 20;

/// Lets `pubmark remove` remove what a run has left, with a deadline.
///
/// # Errors
/// If that process cannot be started, or does not report in time.
pub fn remove(program: &Path, leftovers: &Leftovers) -> Result<Removal, HostError> {
    let mut command = Command::new(program);
    command.arg("remove").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Its own process group, so that Ctrl-C does not end it.
    let mut child = command.process_group(0).spawn().map_err(HostError::io("nothing could be removed"))?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let said = thread::spawn(move || {
        let mut text = Vec::new();
        output.map(|output| output.take(ANSWER_BYTES).read_to_end(&mut text));
        text
    });
    let text = serde_json::to_vec(leftovers)?;
    // A process that has ended already reports nothing, which is handled below.
    let _ = input.map(|mut input| input.write_all(&text));
    wait(&mut child, Instant::now() + leftovers.patience() + SPARE);
    let said = said.join().unwrap_or_default();
    serde_json::from_slice(&said).map_err(|_| HostError::Failed("the removal did not end in time".into()))
}

/// Waits for its end, and kills it at the deadline.
fn wait(child: &mut Child, deadline: Instant) {
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
}
