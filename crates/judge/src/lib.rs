//! Turns the reports of a run's agents and hosts into its record and its verdict. All inputs are passed in, including
//! the machine's calibration: the crate uses no file, no clock and no process.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod assemble;
pub mod calibration;
pub mod empty_record;
pub mod usage;
pub mod verdict;
