//! The state of a shard. Its behaviour is in the files beside this one.

mod away;
mod consumers;
mod inbound;
mod limits;
mod lingering;
mod outbound;
mod ramp;
mod rebalancing;
mod requests;
mod wills;

use super::connection::Connection;
use super::errors::ShardError;
use super::notifier::Notifier;
use crate::control::{Counter, ThreadContext, ThreadReport};
use crate::pacing::Pacer;
use crate::session::Session;
use crate::window::Window;
pub use away::{Absence, Away};
pub use consumers::Consumers;
pub use inbound::Inbound;
pub use limits::ReachedLimits;
pub use lingering::Lingering;
pub use outbound::{Outbound, ProbeRefusal};
use pubmark_model::protocol::Role;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
pub use ramp::Ramp;
use rustix::event::epoll;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
pub use wills::WillConnections;

/// An event loop and everything that it owns.
pub struct Shard<'a, S: Session> {
    pub workload: &'a Workload,
    pub context: &'a ThreadContext,
    pub reports: &'a Sender<ThreadReport>,
    pub role: Role,
    /// Numbers of its clients within their role.
    pub ids: Vec<u32>,
    /// Number of streams to be received by all its clients.
    pub streams: u64,
    pub run: String,
    /// Prefix of every topic.
    pub prefix: String,
    pub settings: S::Settings,
    pub connections: Vec<Connection<S>>,
    pub epoll: Arc<OwnedFd>,
    pub notifier: Notifier,
    pub events: Vec<epoll::Event>,
    pub buffer: Vec<u8>,
    /// Maximum length of a server's packet, bytes.
    pub longest_bytes: u64,
    pub answers: Vec<u8>,
    /// Connections that have more to read than their turn allowed.
    pub again: Vec<u32>,
    pub ramp: Ramp,
    pub outbound: Outbound,
    pub inbound: Inbound,
    /// Batches that its publishers collect.
    pub lingering: Lingering,
    /// The paces of its subscribers between start and drain, if they have a rate of their own.
    pub consumers: Option<Consumers>,
    pub window: Option<Window>,
    /// Pacing of its publishers, once there is a schedule.
    pub pacer: Option<Pacer>,
    pub spin_cores: f64,
    /// Instant at which messages were last sent together, ns.
    pub batch_ns: Ns,
    /// Instant of the last check for arrivals, ns.
    pub looked_ns: Ns,
    pub said_ready: bool,
    /// True if its subscribers start late, and have left until then.
    pub replays: bool,
    /// True if its clients have been killed.
    pub crashed: bool,
    /// Number of orders to cut clients that it has carried out.
    pub cuts: usize,
    pub alive_next: usize,
    pub alive_ns: Ns,
    /// Instant of the last turn of [`silence`](super::silence).
    pub silence_ns: Ns,
    pub server: Option<String>,
    /// Limits of its own that the server has reported.
    pub limits: ReachedLimits,
    /// Violations of the protocol by the server, by statement.
    pub violations: BTreeMap<&'static str, u64>,
    /// The reason why the run cannot begin, once it is known.
    pub failure: Option<ShardError>,
    pub away: Away,
    /// When sessions that rest go on: instant, and connection.
    pub rests: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Connections of its publishers, if they have last wills.
    pub wills: Option<WillConnections>,
    /// Remarks on the beginning of the run, for the verdict.
    pub remarks: Vec<String>,
    pub counter: Arc<Counter>,
}
