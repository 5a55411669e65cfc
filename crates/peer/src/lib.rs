//! A reference peer: a small broker on loopback, or a partner between the
//! sockets of a library, whose delays and faults are scripted, so that what a
//! measurement should report is known beforehand.
//!
//! `script` says what is to happen, `truth` what must then be reported (a pure
//! function), `dispatcher` decides about each message (told the time, without a
//! socket), `routes` knows who listens to what, `speech` speaks the protocols,
//! `serve` is the event loop, and `watch` tells what clients do. Of the instrument that it calibrates it
//! shares the codecs and the layout of the messages' header, nothing else.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod delay;
pub mod dispatcher;
pub mod routes;
pub mod script;
pub mod serve;
pub mod speech;
pub mod tally;
pub mod truth;
pub mod watch;

pub use script::PeerScript;
pub use serve::{PeerProtocol, ServeError};
pub use tally::{PeerTally, Percentiles};
pub use watch::{ClientAct, ClientEvent};
