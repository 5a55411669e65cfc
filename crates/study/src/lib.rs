//! The coordinator: it plans a study, leads agents and hosts, and appends records. It opens no socket to a system and
//! links no messaging library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod ask;
pub mod budget;
pub mod calibration_file;
pub mod capacity;
pub mod context;
pub mod credentials;
pub mod fit;
pub mod lead;
pub mod live;
mod pilot;
pub mod plan;
pub mod probe;
mod redact;
pub mod registry;
pub mod repeats;
pub mod results;
pub mod run;
pub mod runner;
pub mod searches;
pub mod servers;

pub mod strategy;
pub mod study_files;
pub mod survey;
pub mod turns;
