//! The load generator: schedule, recorder, ledger, drivers, and the built-in agent that
//! runs clients. It knows nothing of studies.
#![deny(missing_docs)]

pub mod agent;
mod consume;
pub mod control;
pub mod drivers;
pub mod ledger;
mod occupancy;
pub mod outcome;
pub mod pacing;
mod placement;
pub mod publisher;
pub mod refusals;
pub mod replay;
mod reply_times;
pub mod rows;
pub mod seal;
pub mod session;
pub mod shard;
pub mod simulation;
mod spare;
pub mod subscriber;
pub mod threads;
pub mod topics;
pub mod translator;
pub mod usage;
pub mod window;

pub use pubmark_clock as clock;
