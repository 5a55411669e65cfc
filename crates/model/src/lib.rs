//! pubmark's vocabulary as types: study file, plan, agent protocol, message header, run record.
//! Nothing here does I/O or reads a clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod ab;
pub mod arms;
pub mod capacity;
pub mod cell;
pub mod churn;
pub mod claim;
pub mod counts;
pub mod credentials;
pub mod diagnostic;
pub mod endpoint;
pub mod fault;
pub mod figure;
pub mod flow;
pub mod header;
pub mod host;
pub mod hosts;
pub mod leftovers;
pub mod line;
pub mod link;
pub mod objective;
pub mod options;
pub mod pattern;
pub mod payload;
pub mod pin;
pub mod plan;
pub mod printable;
pub mod profile;
pub mod protocol;
pub mod question;
pub mod record;
pub mod redactor;
pub mod reference;
pub mod relations;
pub mod role;
pub mod rows;
pub mod schedule;
pub mod secret;
pub mod server;
pub mod server_need;
pub mod server_reports;
pub mod setting;
pub mod study;
pub mod system;
pub mod times;
mod toml_values;
pub mod topology;
pub mod tuning;
pub mod units;
pub mod value;
pub mod watch;
pub mod window_usage;
pub mod windows;
pub mod wire_protocol;
pub mod words;
pub mod workload;

mod document;
mod figure_group;
mod later;
mod login;
mod secret_name;
