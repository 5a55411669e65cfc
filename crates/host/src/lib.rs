//! Everything that touches a machine: processes, ports, control groups, servers and their
//! keepers, containers, scratch folders, sampling, installation, and checks for causes of
//! bad measurements. It knows nothing of runs and studies.
#![deny(unsafe_code)]
#![deny(missing_docs)]

pub mod agent;
pub mod bootstrap;
pub mod cache;
pub mod conversation;
mod cut;
pub mod deployment;
mod devices;
pub mod doctor;
pub mod environment;
pub mod error;
mod exchange;
pub mod folder;
pub mod heartbeat;
pub mod http;
pub mod inbox;
pub mod install;
pub mod lanes;
pub mod ledger;
pub mod lines;
pub mod local;
pub mod lock;
pub mod log;
pub mod machine;
pub mod network;
pub mod programs;
pub mod proxy;
pub mod quota;
pub mod reach;
pub mod remote;
pub mod removal;
pub mod scratch;
pub mod serve;
pub mod server;
mod shape;
pub mod spinner;
pub mod standing;
pub mod system_file;
pub mod usage;

pub use pubmark_clock as clock;
