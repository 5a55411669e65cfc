//! A reference peer: a small broker on loopback, or a partner between the sockets of a library, with scripted delays
//! and faults, so that the correct result of a measurement is known beforehand.
//!
//! `script` describes what the peer does, `truth` computes what must be reported (a pure function), `dispatcher`
//! decides about each message (with the time passed in, without a socket), `routes` holds the subscriptions, `speech`
//! implements the protocols, `serve` is the event loop, and `watch` reports what clients do. With the instrument that
//! it calibrates it shares the codecs and the layout of the messages' header, nothing else.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod delay;
pub mod dispatcher;
pub mod routes;
pub mod script;
pub mod serve;
pub mod speech;
pub mod store;
pub mod tally;
pub mod truth;
pub mod watch;

pub use script::PeerScript;
pub use serve::{PeerProtocol, ServeError};
pub use tally::{PeerTally, Percentiles};
pub use watch::{ClientAct, ClientEvent};
