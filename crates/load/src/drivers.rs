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

use crate::shard::{self, RunShard};
use pubmark_model::options::Options;
use socket::{Driver, DriverError};

/// Makes a driver with the options of a run (`library` names a path to load).
pub type LoadDriver = fn(&Options) -> Result<Box<dyn Driver>, DriverError>;

/// How a driver runs clients.
#[derive(Clone, Copy, Debug)]
pub enum DriverKind {
    /// Sockets that block: a thread a client.
    Sockets(LoadDriver),
    /// Conversations without a socket: thousands of them in an event loop.
    Sessions(RunShard),
}

/// Every driver of the built-in agent, by name; the mock comes on top.
pub const REGISTRY: &[(&str, DriverKind)] = &[
    ("amqp", DriverKind::Sessions(shard::run::<amqp::Amqp>)),
    ("kernel", DriverKind::Sockets(kernel::load)),
    ("mqtt", DriverKind::Sessions(shard::run::<mqtt::Mqtt>)),
    ("nanomsg", DriverKind::Sockets(nanomsg::load)),
    ("nats", DriverKind::Sessions(shard::run::<nats::Nats>)),
    ("nng", DriverKind::Sockets(nng::load)),
    ("redis", DriverKind::Sessions(shard::run::<redis::Redis>)),
    ("zeromq", DriverKind::Sockets(zeromq::load)),
];

/// Finds a driver with sockets.
pub fn find(name: &str) -> Option<LoadDriver> {
    REGISTRY.iter().find_map(|(known, kind)| match kind {
        DriverKind::Sockets(load) if *known == name => Some(*load),
        _ => None,
    })
}
