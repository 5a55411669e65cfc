//! From what the agents and hosts of a run reported to its record and its
//! verdict. Everything is handed in, the machine's calibration too: there is no
//! file, no clock and no process here.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod assemble;
pub mod blank;
pub mod calibration;
pub mod usage;
pub mod verdict;
