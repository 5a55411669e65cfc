//! File system below the folder of a server whose power can be cut: a disk, or a ledger.

use super::disk::{self, Disk, DiskCounts, DiskError};
use super::ledger_disk::{self, LedgerDisk};
use pubmark_model::power::Power;
use pubmark_model::units::Ns;
use std::path::Path;

/// Returns why no server's power can be cut in this way on this machine, and what to do; `None` if it can.
pub fn missing(power: Power) -> Option<String> {
    if power.is_ledger() { ledger_disk::missing() } else { disk::missing(power) }
}

/// Returns the loop device of a disk's file and the number of its attachment, with its counts so far; of a ledger, its
/// store and the number of its mount.
pub fn counts(image: &Path) -> Option<((String, String), DiskCounts)> {
    if !image.is_dir() {
        return disk::counts(image);
    }
    let (mount, syncs) = ledger_disk::counts(image)?;
    Some(((image.display().to_string(), mount.to_string()), DiskCounts::of_syncs(syncs)))
}

/// File system below the folder of a server whose power can be cut.
#[derive(Debug)]
pub enum ServerDisk {
    /// A loop device.
    Loop(Disk),
    /// A ledger.
    Ledger(LedgerDisk),
}

impl ServerDisk {
    /// Makes one in the place of `folder`, with what that contains. From now on the calling thread and the processes that
    /// it starts may see other mounts than the rest of the machine.
    pub fn make(power: Power, folder: &Path) -> Result<ServerDisk, DiskError> {
        match power {
            Power::Disk | Power::Xfs => Disk::make(power, folder).map(ServerDisk::Loop),
            Power::Ledger | Power::StrictLedger => {
                LedgerDisk::make(folder, power == Power::StrictLedger).map(ServerDisk::Ledger)
            }
        }
    }

    /// Returns the process that serves it, if one does.
    pub fn process(&self) -> Option<i32> {
        if let ServerDisk::Ledger(ledger) = self { Some(ledger.process()) } else { None }
    }

    /// Writes everything to it, as if it had been there for long. Returns when this was done.
    pub fn settle(&mut self) -> Result<Ns, DiskError> {
        match self {
            ServerDisk::Loop(disk) => disk.settle(),
            ServerDisk::Ledger(ledger) => ledger.settle(),
        }
    }

    /// Cuts the power: what was not synced is gone, and reads and writes fail. Returns the instant.
    pub fn fail(&mut self) -> Result<Ns, DiskError> {
        match self {
            ServerDisk::Loop(disk) => disk.fail(),
            ServerDisk::Ledger(ledger) => ledger.fail(),
        }
    }

    /// Takes all room on it, without writing to it. Returns when that was done.
    pub fn fill(&mut self) -> Result<Ns, DiskError> {
        match self {
            ServerDisk::Loop(disk) => disk.fill(),
            ServerDisk::Ledger(_) => Err(DiskError::Endless),
        }
    }

    /// Gives the room back that [`ServerDisk::fill`] took. Returns when that began.
    pub fn free(&mut self) -> Result<Ns, DiskError> {
        match self {
            ServerDisk::Loop(disk) => disk.free(),
            ServerDisk::Ledger(_) => Err(DiskError::Endless),
        }
    }

    /// Mounts it again after a power cut, when no process uses it any more. Returns when this was done.
    pub fn replay(&mut self) -> Result<Ns, DiskError> {
        match self {
            ServerDisk::Loop(disk) => disk.replay(),
            ServerDisk::Ledger(ledger) => ledger.replay(),
        }
    }

    /// Unmounts it, even if a process uses it.
    pub fn remove(self) {
        match self {
            ServerDisk::Loop(disk) => disk.remove(),
            ServerDisk::Ledger(ledger) => ledger.remove(),
        }
    }
}
