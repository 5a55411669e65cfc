//! What a server's folder lies on while its power is cut.

use crate::words::words;

words! {
    /// What a server's folder lies on, which decides what a power cut loses.
    Power {
        /// An ext4 file system on a loop device: the kernel writes to it when it likes.
        Disk = "disk",
        /// The same with xfs.
        Xfs = "xfs",
        /// A file system of pubmark's own, from which a cut takes everything that was not synced. A sync of any file
        /// makes all names durable, as in a journal.
        Ledger = "ledger",
        /// The same, but only a sync of its folder makes a name durable.
        StrictLedger = "ledger-strict",
    }
}

impl Power {
    /// True if it is a file system of pubmark's own.
    pub fn is_ledger(self) -> bool {
        matches!(self, Power::Ledger | Power::StrictLedger)
    }
}
