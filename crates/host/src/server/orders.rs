//! What coordinator and keeper say to each other: a plan, orders and answers, each a line of JSON.

use super::disk::DiskError;
use pubmark_model::power::Power;
use pubmark_model::secret::Secrets;
use pubmark_model::units::Ns;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The first line of a keeper's standard input. A plan without a command comes before it,
/// and lists what is to be removed if no other plan follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeepPlan {
    /// Value of `PUBMARK_SERVER` that identifies the server's processes.
    pub marker: String,
    /// The server's program and arguments.
    pub command: Vec<String>,
    /// Program and arguments of a process that runs beside it; empty if there is none.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Commands that run to their end before it, in order, without limits.
    pub prepare: Vec<Vec<String>>,
    /// Commands of the engine for orders, if the server is in a container: signals would
    /// only reach the engine's client.
    pub engine: Option<EngineOrders>,
    /// Commands that run at the end; with an engine, before anything is signalled.
    pub clean_up: Vec<Vec<String>>,
    /// Environment variables in addition to the keeper's own.
    pub environment: Vec<(String, String)>,
    /// Working folder.
    pub folder: PathBuf,
    /// File for everything that they print; appended.
    pub log: PathBuf,
    /// Secrets that are removed from the log.
    #[serde(default)]
    pub secrets: Secrets,
    /// Control groups that the server joins; removed at the end.
    pub groups: Vec<PathBuf>,
    /// Processors that the server is bound to; all if empty.
    pub cpus: Vec<usize>,
    /// File system below the working folder, if its power can be cut.
    #[serde(default)]
    pub disk: Option<Power>,
    /// True if keeper and server have a network of their own.
    #[serde(default)]
    pub own_network: bool,
    /// Folders that are removed at the end.
    pub remove: Vec<PathBuf>,
    /// Time from SIGTERM to SIGKILL, ms.
    pub grace_ms: u64,
}

/// Commands of a container's engine, one for each order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineOrders {
    /// Stops all its processes.
    pub stop: Vec<String>,
    /// Continues them.
    pub go_on: Vec<String>,
    /// Kills them.
    pub kill: Vec<String>,
    /// Returns when the container has ended.
    pub wait: Vec<String>,
    /// Starts it again.
    pub start: Vec<String>,
    /// Runs in the place of the server after a restart; a word [`NOW`](EngineOrders::NOW)
    /// is replaced by the time before that.
    pub follow: Vec<String>,
}

impl EngineOrders {
    /// Placeholder for the time of day, seconds since 1970.
    pub const NOW: &str = "{now}";
}

/// The orders that follow a plan, a line each. The keeper ends what it keeps at any other
/// line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperOrder {
    /// Send SIGSTOP to every process of the server.
    Stop,
    /// Send SIGCONT to them.
    Continue,
    /// Send SIGKILL to them; the end of the server by it is not reported as its own.
    Kill,
    /// Send SIGTERM to them, and SIGKILL to those that are left after a while; answered like
    /// [`KeeperOrder::Kill`], with the instant of the SIGTERM.
    Terminate,
    /// Start the killed server again.
    Start,
    /// Write everything on the server's disk that is not on it yet.
    Settle,
    /// Cut the power of the server's disk, and kill the server as by [`KeeperOrder::Kill`].
    CutPower,
    /// Leave no room on the server's disk.
    FillDisk,
    /// Give the room back.
    FreeDisk,
}

/// The answers of a keeper, a line of its standard output each. Instants are of
/// CLOCK_MONOTONIC, ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeeperAnswer {
    /// All processes of the server have been sent SIGSTOP.
    Stopped(Ns),
    /// They are being sent SIGCONT.
    Continued(Ns),
    /// All have been sent SIGKILL, and are gone.
    Killed(Ns),
    /// Everything on the server's disk is synced.
    Settled(Ns),
    /// The power was cut: the instant, that at which all processes had been sent SIGKILL, and that at which the disk
    /// could be used again.
    PowerCut(Ns, Ns, Ns),
    /// There is no room on the server's disk any more.
    Filled(Ns),
    /// The room is being given back.
    Freed(Ns),
    /// The server has been started again: when, and its process.
    Restarted(Ns, i32),
    /// The server has been started: its process.
    Pid(i32),
    /// The ledger is mounted: the process that serves it.
    Mounted(i32),
    /// The server has ended: how.
    Exited(String),
    /// The server was not started: why.
    Failed(String),
}

impl From<DiskError> for KeeperAnswer {
    fn from(error: DiskError) -> KeeperAnswer {
        KeeperAnswer::Failed(error.to_string())
    }
}
