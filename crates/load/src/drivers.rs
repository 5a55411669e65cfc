//! Drivers: the code that speaks to a system, one file each, and their registry.

pub mod amqp;
#[cfg(test)]
pub(crate) mod conversation;
mod foreign;
mod kernel;
mod leaves;
pub mod mqtt;
mod nanomsg;
pub mod nats;
mod nng;
pub mod port;
pub mod redis;
mod shared_library;
pub mod socket;
mod zeromq;

use crate::shard::{self, Play};
use pubmark_model::options::Options;
use socket::{Driver, DriverError};

/// Makes a driver with the options of a run (`library` names a path to load).
pub type Load = fn(&Options) -> Result<Box<dyn Driver>, DriverError>;

/// How a driver plays clients.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Sockets that block: a thread a client.
    Sockets(Load),
    /// Conversations without a socket: thousands of them in an event loop.
    Sessions(Play),
}

/// Every driver of the built-in agent, by name; the mock comes on top.
pub const REGISTRY: &[(&str, Kind)] = &[
    ("amqp", Kind::Sessions(shard::play::<amqp::Amqp>)),
    ("kernel", Kind::Sockets(kernel::load)),
    ("mqtt", Kind::Sessions(shard::play::<mqtt::Mqtt>)),
    ("nanomsg", Kind::Sockets(nanomsg::load)),
    ("nats", Kind::Sessions(shard::play::<nats::Nats>)),
    ("nng", Kind::Sockets(nng::load)),
    ("redis", Kind::Sessions(shard::play::<redis::Redis>)),
    ("zeromq", Kind::Sockets(zeromq::load)),
];

/// Finds a driver with sockets.
pub fn find(name: &str) -> Option<Load> {
    REGISTRY.iter().find_map(|(known, kind)| match kind {
        Kind::Sockets(load) if *known == name => Some(*load),
        _ => None,
    })
}
