//! The disk of a server whose power is cut in the run.

use crate::context::{RunError, failed};
use crate::run::faults::PlacedMember;
use pubmark_host::clock;
use pubmark_host::reach::Host;
use pubmark_host::server::orders::{KeeperAnswer, KeeperOrder};
use pubmark_model::units::{Ns, SECOND};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Time limit for a sync of all disks.
const SETTLING: Ns = 60 * SECOND;
/// Interval at which answers are looked for.
const LOOK: Duration = Duration::from_millis(2);

/// Syncs the disks of all members, so that what was set up before the load survives the power cut.
///
/// # Errors
/// If a disk cannot be synced in time.
pub fn settle(hosts: &mut [Host<'_>], members: &[PlacedMember], interrupt: &AtomicBool) -> Result<(), RunError> {
    for member in members {
        hosts[member.host].order(&member.name, KeeperOrder::Settle)?;
    }
    let deadline_ns = clock::now() + SETTLING;
    let mut settled = 0;
    while settled < members.len() {
        if interrupt.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        for host in hosts.iter_mut() {
            let answers = host.happened()?.answers;
            settled += answers.iter().filter(|said| matches!(said.answer, KeeperAnswer::Settled(_))).count();
            host.server_exit().map_or(Ok(()), |why| Err(failed(why)))?;
        }
        if clock::now() >= deadline_ns {
            return Err(failed("the server's disk was not synced within 60 s before the load: use a faster disk"));
        }
        thread::park_timeout(LOOK);
    }
    Ok(())
}
