//! Drivers and their registry. A driver is the code that speaks to one system, in one
//! file.

pub mod amqp;
pub mod amqp1;
pub mod build_info;
mod confirms;
#[cfg(test)]
pub(crate) mod conversation;
mod czmq;
mod foreign_peer;
mod interrupt;
pub mod kafka;
mod kernel;
pub mod mqtt;
mod nanomsg;
pub mod nats;
mod nng;
mod option_file;
mod port;
pub mod redis;
mod request_part;
mod shared_library;
pub mod socket;
mod topic_writer;
pub mod zenoh;
mod zeromq;

use crate::session::Session;
use crate::shard::{self, ListLeftovers, Listen, RemoveLeftovers, RunShard};
use pubmark_model::options::{Options, common};
use pubmark_model::wire_protocol::Protocol;
pub use shared_library::{Kind, Others, bind_free, check_spec, clamped, kernel_grants};
use socket::{Driver, DriverError};

/// Makes a driver from the options of a run (`library` names the path to load).
pub type LoadDriver = fn(&Options) -> Result<Box<dyn Driver>, DriverError>;

/// The way in which a driver runs clients.
#[derive(Clone, Copy, Debug)]
pub enum DriverKind {
    /// Blocking sockets, with one thread for each client.
    Sockets(LoadDriver),
    /// Sans-I/O sessions, thousands of them in one event loop.
    Sessions(SessionDriver),
}

/// Operations on the clients of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct SessionDriver {
    /// Runs clients in an event loop.
    pub run: RunShard,
    /// Runs clients that come and go.
    pub churn: RunShard,
    /// Lists what clients leave at a server.
    pub list: ListLeftovers,
    /// Removes what clients have left at a server.
    pub remove: RemoveLeftovers,
    /// Hears what clients publish, outside a run.
    pub listen: Listen,
}

const fn sessions<S: Session>() -> DriverKind {
    DriverKind::Sessions(SessionDriver {
        run: shard::run::<S>,
        churn: shard::churn::<S>,
        list: shard::list::<S>,
        remove: shard::remove::<S>,
        listen: shard::listen::<S>,
    })
}

/// Every driver of the built-in agent by name, except the mock.
pub const REGISTRY: &[(&str, DriverKind)] = &[
    ("amqp", sessions::<amqp::Amqp>()),
    ("amqp1", sessions::<amqp1::Amqp1>()),
    ("kafka", sessions::<kafka::Kafka>()),
    ("kernel", DriverKind::Sockets(kernel::load)),
    ("mqtt", sessions::<mqtt::Mqtt>()),
    ("nanomsg", DriverKind::Sockets(nanomsg::load)),
    ("nats", sessions::<nats::Nats>()),
    ("nng", DriverKind::Sockets(nng::load)),
    ("redis", sessions::<redis::Redis>()),
    ("zenoh", sessions::<zenoh::Zenoh>()),
    ("zeromq", DriverKind::Sockets(zeromq::load)),
    // The last one, because it is the driver before with another API.
    ("czmq", DriverKind::Sockets(czmq::load)),
];

/// Options that a driver knows in addition to those of its protocol or of every library.
const MORE_OPTIONS: &[(&str, &[&str])] = &[
    ("kernel", &["coalesce"]),
    ("zeromq", &["pairs", "request_reply", "nodrop"]),
    ("nanomsg", &["pairs", "fan_out", "request_reply"]),
    ("nng", &["pairs", "fan_out", "request_reply"]),
];

/// Returns the names of the options that a driver knows.
pub fn options(driver: &str) -> Vec<String> {
    let usual = Protocol::of_driver(driver).map_or_else(common, Protocol::options);
    let more = MORE_OPTIONS.iter().filter(|(name, _)| *name == driver).flat_map(|(_, more)| *more);
    usual.into_iter().map(|option| option.name).chain(more.map(|name| (*name).to_owned())).collect()
}

/// Finds a driver with blocking sockets.
pub fn find(name: &str) -> Option<LoadDriver> {
    REGISTRY.iter().find_map(|(known, kind)| match kind {
        DriverKind::Sockets(load) if *known == name => Some(*load),
        _ => None,
    })
}
