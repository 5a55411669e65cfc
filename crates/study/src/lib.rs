//! The coordinator: it plans a study, drives agents, judges runs and appends
//! records. It opens no socket to a system (the proxy of a link is none) and
//! links no messaging library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod agent;
pub mod assemble;
pub mod awake;
pub mod calibration;
pub mod check;
pub mod conduct;
pub mod deploy;
pub mod doctor;
pub mod fit;
pub mod install;
pub mod link;
pub mod lock;
pub mod machine;
mod redact;
pub mod registry;
pub mod results;
pub mod run;
pub mod scratch;
pub mod server;
pub mod verdict;
