//! The requests to a host and their replies. On this machine they are calls; on another
//! machine each is a line of JSON. A host knows nothing of runs: agents have names, and
//! their lines are passed on unread.

use crate::deployment::{DeployPlan, MemberAnswer};
use crate::doctor::DoctorCheck;
use crate::error::HostError;
use crate::folder::PackedFolder;
use crate::install::Availability;
use crate::machine::Ticks;
use crate::network::NetworkLook;
use crate::quota::Quota;
use crate::server::orders::KeeperOrder;
use crate::shape::Shape;
use crate::system_file::SystemFile;
use crate::usage::AgentUsed;
use pubmark_model::host::ClockReading;
use pubmark_model::leftovers::{Leftovers, Removal};
use pubmark_model::link::Link;
use pubmark_model::record::UsageSeries;
use pubmark_model::server::ServerEndpoints;
use pubmark_model::server_reports::{LinkReport, ServerReport};
use pubmark_model::units::Ns;
use pubmark_model::watch::ProcessSelector;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A request to a host, and the type of its reply. Instants are on the host's clock.
pub trait Request: Serialize + DeserializeOwned {
    /// Name of the request in a line.
    const NAME: &'static str;
    /// The host's reply.
    type Reply: Serialize + DeserializeOwned;
    /// Time that a host on another machine has for the reply.
    const PATIENCE: Duration = Duration::from_secs(10);
}

/// Time limit for finding a system.
const SEARCH: Duration = Duration::from_secs(60);
/// Time limit for sending a folder or a program.
pub const TRANSFER: Duration = Duration::from_secs(300);
/// Time limit for starting or ending a server.
const LONG: Duration = Duration::from_secs(900);
/// Time limit for installing a system.
const INSTALLATION: Duration = Duration::from_secs(3_600);

/// Defines requests: `Name { fields } -> Reply within PATIENCE;`.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty),* $(,)? } -> $reply:ty
       $(, within $patience:expr)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$of])* pub $field: $type),* }

        impl Request for $name {
            const NAME: &'static str = stringify!($name);
            type Reply = $reply;
            $(const PATIENCE: Duration = $patience;)?
        }
    )+};
}

requests! {
    /// Describes the host, and reads its clock.
    GetFacts {} -> Facts;
    /// Fails unless this address is one of the host's own.
    CheckAddress { /** The address. */ address: String } -> ();
    /// Answers clock questions at this address of the host. Replies the socket's address.
    ServeClock { /** The address. */ address: IpAddr } -> SocketAddr;
    /// Compares the clock that answers at `with` to the host's own.
    CompareClock {
        /// An address of the host.
        address: IpAddr,
        /// Address at which the other clock answers.
        with: SocketAddr,
    } -> ClockReading;
    /// Compares the clock that answers at `with`, about once a second of a window.
    WatchClock {
        /// An address of the host.
        address: IpAddr,
        /// Address at which the other clock answers.
        with: SocketAddr,
        /// Beginning of the window, ns.
        from_ns: Ns,
        /// Length of the window, ns; `None` if a message count ends it.
        length_ns: Option<Ns>,
    } -> ();
    /// Ends the comparisons with the clock that answers at `with`. Replies the sightings.
    EndClockWatch { /** Where it answers. */ with: SocketAddr } -> Vec<ClockReading>;
    /// Checks the host for causes of bad measurements.
    Examine {} -> Vec<DoctorCheck>;
    /// Checks for each system whether it can be used there. Replies in the same order.
    FindSystems { /** The systems. */ systems: Vec<SystemFile> } -> Vec<Availability>, within LONG;
    /// Replies why a system cannot be used there.
    FindMissing {
        /// The system.
        system: SystemFile,
        /// Deployment of its server there; `None` if its server is not started there.
        deployment: Option<String>,
        /// True if its clients are to play there.
        plays: bool,
    } -> Option<String>, within SEARCH;
    /// Installs a system, unless it is there.
    Install { /** The system. */ system: SystemFile } -> (), within INSTALLATION;
    /// Replies whether a folder of this digest is there.
    HasFolder { /** The digest. */ digest: String } -> bool;
    /// Stores a folder.
    KeepFolder { /** The folder. */ folder: PackedFolder } -> (), within TRANSFER;
    /// Starts an agent, which gets the next number.
    StartAgent {
        /// Its name.
        name: String,
        /// The system whose own agent it is; `None` for the built-in agent.
        system: Option<SystemFile>,
        /// True if it plays the side that sends.
        sends: bool,
        /// Name of its log.
        log: String,
    } -> ();
    /// Makes the folder of the run.
    MakeFolder {} -> ();
    /// Passes lines on to agents.
    Tell { /** The lines. */ words: Vec<Told> } -> ();
    /// Stops an agent and the processes that it has started, or continues them.
    SignalAgent {
        /// Number of the agent.
        agent: usize,
        /// True to stop it.
        stop: bool,
    } -> ();
    /// Replies how an agent ended.
    GetExitReason { /** Its number. */ agent: usize } -> Option<String>;
    /// Reserves ports for members of a server there. Replies the ports of each, by name.
    ReservePorts {
        /// The system.
        system: SystemFile,
        /// Number of members.
        members: u32,
    } -> Vec<Vec<(String, u16)>>;
    /// Starts a server. Replies the endpoints for clients, as seen from there.
    Deploy { /** What is started, and how. */ plan: DeployPlan } -> ServerEndpoints, within LONG;
    /// Attaches to a running server.
    Attach {
        /// URL of the server.
        endpoint: String,
        /// Its processes, if they are named.
        watch: Option<ProcessSelector>,
    } -> ();
    /// Puts a link before a server. Replies the endpoint for clients.
    PutLink {
        /// Properties of the link.
        link: Link,
        /// URL of the server.
        server: String,
        /// The host's address at which clients find the link.
        address: String,
        /// Name of the log.
        log: String,
    } -> String, within LONG;
    /// Lets connections pass the link, or ends all of them and refuses new ones. Replies
    /// the two instants between which that happened, ns.
    OpenLink { /** Lets them go. */ open: bool } -> (Ns, Ns);
    /// Cuts the links between members of the server, or repairs them. Replies the two instants between which that
    /// happened, ns.
    SetMemberLinks {
        /// Pairs of members, by number from 1.
        pairs: Vec<(u32, u32)>,
        /// Repairs them.
        open: bool,
    } -> (Ns, Ns);
    /// Replies why the link's proxy ended, if it has.
    GetLinkExit {} -> Option<String>;
    /// Replies the report on the link; `None` without a link.
    GetLinkReport {} -> Option<LinkReport>;
    /// Takes down the network that has an address of the host.
    CutNetwork {
        /// The address.
        address: String,
        /// Duration, ns.
        for_ns: Ns,
    } -> ();
    /// Replies from when to when the network was down, ns. Send it when the network
    /// should be back.
    EndNetworkCut {} -> (Ns, Ns);
    /// Changes the network that has an address of the host, until the host ends.
    ShapeNetwork {
        /// The address.
        address: String,
        /// The change.
        shape: Shape,
    } -> ();
    /// Keeps the processors awake.
    KeepAwake {} -> ();
    /// Takes a snapshot of the interface that has an address, and samples it with the
    /// rest; `None` if no interface has it.
    WatchNetwork { /** The address. */ address: String } -> Option<NetworkLook>;
    /// Ends the sampling of that interface. Replies the bytes that it sent; `None` if
    /// there are no samples.
    EndNetworkWatch {
        /// Beginning, ns.
        from_ns: Ns,
        /// End, ns.
        to_ns: Ns,
    } -> Option<u64>;
    /// Samples the usage of server and agents.
    Watch { /** What is watched, and when. */ window: WatchSpan } -> ();
    /// Replies a snapshot of what the machine has done so far.
    TakeSnapshot {} -> MachineSnapshot;
    /// Ends the sampling of server and agents.
    EndWatch {} -> Option<UsageSeries>;
    /// Replies what the server and the link used between two instants, or in the window.
    GetServerUsage {
        /// Beginning and end, if the window's end was not known before.
        window: Option<(Ns, Ns)>,
    } -> ServerUsed;
    /// Stops, continues, kills or starts a member of the server.
    OrderServer {
        /// Name of the member.
        member: String,
        /// The order.
        order: KeeperOrder,
    } -> ();
    /// Replies the results of orders since the last time.
    TakeServerEvents {} -> OrderResults;
    /// Replies whether every member of the server has joined its cluster.
    HasJoined {} -> bool, within SEARCH;
    /// Finds the number of the member that leads, from 1.
    FindLeader {} -> u32, within SEARCH;
    /// Replies why the server ended, if it has.
    GetServerExit {} -> Option<String>;
    /// Finds the line of the server's log that reports a limit of the server itself.
    GetServerLimit {} -> Option<String>;
    /// Replies the report on the server.
    GetServerReport {} -> Option<ServerReport>;
    /// Ends the agents: `exit` for those that read their input, a kill for the others.
    EndAgents { /** Whether they are told. */ told: bool } -> (), within LONG;
    /// Removes what the clients of a run have left at a server.
    RemoveLeftovers { /** What they left. */ leftovers: Leftovers } -> Removal, within LONG;
    /// Ends everything. Replies the logs: names and texts.
    TearDown {} -> Vec<(String, String)>, within LONG;
}

/// A line of the coordinator.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestLine<T> {
    /// Name of the request.
    pub request: Cow<'static, str>,
    /// The request itself.
    pub parameters: T,
}

impl<'a, R: Request> RequestLine<&'a R> {
    /// Returns the line of a request.
    pub fn of(request: &'a R) -> RequestLine<&'a R> {
        RequestLine { request: R::NAME.into(), parameters: request }
    }
}

/// A line, and its receivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Agents, by number.
    pub agents: Vec<usize>,
    /// The line.
    pub line: String,
}

/// The time to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpan {
    /// Start of the schedule, ns.
    pub start_ns: Ns,
    /// Beginning of the window, ns.
    pub from_ns: Ns,
    /// Length of the window, ns; `None` if a message count ends it.
    pub length_ns: Option<Ns>,
    /// Length of a slice, ns.
    pub slice_ns: Ns,
}

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its clock, ns.
    pub clock_ns: Ns,
    /// Folder of the run.
    pub scratch: String,
    /// Processors that may be used, by number.
    pub cpus: Vec<usize>,
    /// Processors that the kernel keeps free of everything that is not bound to them, by
    /// number.
    pub isolated: Vec<usize>,
    /// Connections that one process may hold.
    pub connections: usize,
    /// Files that one process may open.
    pub files: usize,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Connections that one address may make to another.
    pub ports: usize,
    /// Identifier of the machine until its next start; hosts of one machine may be in
    /// namespaces of it.
    pub machine: String,
    /// Identifier of its network; it is equal for hosts in the same network namespace.
    pub network: String,
}

/// A snapshot of what a machine has done up to an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineSnapshot {
    /// The instant, ns.
    pub at_ns: Ns,
    /// Ticks of the machine's processors.
    pub ticks: Ticks,
    /// CPU time of pubmark's own processes there, ns.
    pub own_cpu_ns: Ns,
    /// The CPU quota of pubmark there; `None` without a quota.
    pub quota: Option<Quota>,
    /// Usage by number of the agent; `None` for an agent that has ended.
    pub agents: Vec<Option<AgentUsed>>,
}

/// Results of orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderResults {
    /// Answers of the members' keepers.
    pub answers: Vec<MemberAnswer>,
    /// True if all members listen.
    pub listens: bool,
}

/// Usage of a server and of a link before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsed {
    /// CPU time, ns.
    pub cpu_ns: Ns,
    /// Greatest delay with which an edge of the window was sampled, ns.
    pub late_ns: Ns,
}

/// A line of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHost {
    /// The reply to the oldest open request.
    Reply(Value),
    /// The failure of the oldest open request.
    Failed {
        /// The reason.
        why: String,
    },
    /// A line of an agent, or, without a line, the end of its output.
    Agent {
        /// Number of the agent.
        agent: usize,
        /// The line.
        line: Option<String>,
    },
}

impl From<Result<Value, HostError>> for FromHost {
    fn from(answer: Result<Value, HostError>) -> FromHost {
        answer.map_or_else(|error| FromHost::Failed { why: error.to_string() }, FromHost::Reply)
    }
}
