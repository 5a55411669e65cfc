//! Measures the capabilities of this machine and this generator: a null sink that takes
//! everything and keeps nothing, bare loops that send and receive as a good C programmer
//! would write them, and pubmark's own agents measured beside them.
//!
//! The measured agents are the real ones, started and driven by the coordinator; sink and
//! loops are separate processes, so that the kernel's accounts of them contain nothing
//! else.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bare;
mod calibrate;
mod connections;
mod cost;
mod helper;
mod max_rate;
mod most;
mod ours;
pub mod sink;
mod wake;

pub use calibrate::{Calibrator, calibrate};
pub use helper::Helper;
