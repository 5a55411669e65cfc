//! The requests to a host and their replies: a call where it is this machine, a
//! JSON line each where it is another. A host knows no run: agents have names,
//! what they say is passed on unread.

use crate::deployed::{DeployPlan, MemberAnswer};
use crate::doctor::Checkup;
use crate::error::HostError;
use crate::folder::FolderOnItsWay;
use crate::install::Presence;
use crate::machine::Ticks;
use crate::network::NetworkLook;
use crate::quota::Quota;
use crate::server::keeper::KeeperOrder;
use crate::shape::Shape;
use crate::system_file::SystemFile;
use crate::usage::AgentUsed;
use pubmark_model::host::ClockSighting;
use pubmark_model::leftovers::{Leftovers, Removal};
use pubmark_model::link::Link;
use pubmark_model::record::UsageSeries;
use pubmark_model::reported::{LinkReport, ServerReport};
use pubmark_model::server::ServerEndpoints;
use pubmark_model::units::Ns;
use pubmark_model::watch::Watchee;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A request to a host, and the type of its reply. Instants are on the host's clock.
pub trait Request: Serialize + DeserializeOwned {
    /// Its name in a line.
    const NAME: &'static str;
    /// What a host replies.
    type Reply: Serialize + DeserializeOwned;
    /// The time that a host on another machine has for the reply.
    const PATIENCE: Duration = Duration::from_secs(10);
}

/// The time to look for a system.
const SEARCH: Duration = Duration::from_secs(60);
/// The time to send a folder or a program.
pub const TRANSFER: Duration = Duration::from_secs(300);
/// The time to start a server or to end one.
const LONG: Duration = Duration::from_secs(900);
/// The time to install a system.
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
    /// Tells the time to whoever asks at this address of the host's. Replies where.
    ServeClock { /** The address. */ address: IpAddr } -> SocketAddr;
    /// Compares the clock that answers at `with` to the host's own.
    CompareClock {
        /// An address of the host's.
        address: IpAddr,
        /// Where the other answers.
        with: SocketAddr,
    } -> ClockSighting;
    /// Looks at the clock that answers at `with`, about once a second of a window.
    WatchClock {
        /// An address of the host's.
        address: IpAddr,
        /// Where the other answers.
        with: SocketAddr,
        /// The beginning of the window, ns.
        from_ns: Ns,
        /// Its length, ns; none where a count ends it.
        length_ns: Option<Ns>,
    } -> ();
    /// Ends the watch of the clock that answers at `with`. Replies what was seen.
    EndClockWatch { /** Where it answers. */ with: SocketAddr } -> Vec<ClockSighting>;
    /// Lists what there would spoil a measurement.
    Examine {} -> Vec<Checkup>;
    /// Says of each system, in this order, whether it can be used there.
    FindSystems { /** The systems. */ systems: Vec<SystemFile> } -> Vec<Presence>, within LONG;
    /// Says why a system cannot play its part there.
    FindMissing {
        /// The system.
        system: SystemFile,
        /// How its server is to be started there; none where it is not.
        deployment: Option<String>,
        /// Whether its clients are to play there.
        plays: bool,
    } -> Option<String>, within SEARCH;
    /// Installs a system, unless it is there.
    Install { /** The system. */ system: SystemFile } -> (), within INSTALLATION;
    /// Says whether a folder of this digest is there.
    HasFolder { /** The digest. */ digest: String } -> bool;
    /// Keeps a folder.
    KeepFolder { /** The folder. */ folder: FolderOnItsWay } -> (), within TRANSFER;
    /// Starts an agent: the next number is its own.
    StartAgent {
        /// Its name.
        name: String,
        /// The system whose own agent it is; none for the one that is built in.
        system: Option<SystemFile>,
        /// Whether it plays the side that sends.
        sends: bool,
        /// The name of its log.
        log: String,
    } -> ();
    /// Makes the folder of the run.
    MakeFolder {} -> ();
    /// Passes lines on to agents.
    Tell { /** The lines. */ words: Vec<Told> } -> ();
    /// Stops an agent and what it has started, or lets it go on.
    SignalAgent {
        /// Its number.
        agent: usize,
        /// Stop it.
        stop: bool,
    } -> ();
    /// Says how an agent ended.
    GetExitReason { /** Its number. */ agent: usize } -> Option<String>;
    /// Starts a server. Replies where clients connect to, as seen from there.
    Deploy { /** What is started, and how. */ plan: DeployPlan } -> ServerEndpoints, within LONG;
    /// Attaches to a server that is there.
    Attach {
        /// Its URL.
        endpoint: String,
        /// Its processes, where they are named.
        watch: Option<Watchee>,
    } -> ();
    /// Puts a link before a server. Replies where clients connect to.
    PutLink {
        /// What it does.
        link: Link,
        /// The server's URL.
        server: String,
        /// The host's address at which clients find the link.
        address: String,
        /// The name of the log.
        log: String,
    } -> String, within LONG;
    /// Lets connections go over the link, or ends them all and refuses new ones.
    /// Replies between which instants that happened, ns.
    OpenLink { /** Lets them go. */ open: bool } -> (Ns, Ns);
    /// Says why the link's proxy ended, if it has.
    GetLinkExit {} -> Option<String>;
    /// Reports the link; none where there is none.
    GetLinkReport {} -> Option<LinkReport>;
    /// Takes down the network that has an address of the host's.
    CutNetwork {
        /// The address.
        address: String,
        /// For how long, ns.
        for_ns: Ns,
    } -> ();
    /// Says from when to when the network was down, ns: to be asked when it should be
    /// back.
    EndNetworkCut {} -> (Ns, Ns);
    /// Changes the network that has an address of the host's, as long as it serves.
    ShapeNetwork {
        /// The address.
        address: String,
        /// How.
        shape: Shape,
    } -> ();
    /// Keeps the processors awake.
    KeepAwake {} -> ();
    /// Looks at the interface that has an address, and watches it with the rest; none
    /// where no interface has it.
    WatchNetwork { /** The address. */ address: String } -> Option<NetworkLook>;
    /// Ends the watch of that interface. Replies the bytes that it sent; none where
    /// nothing was seen.
    EndNetworkWatch {
        /// From when, ns.
        from_ns: Ns,
        /// Until when, ns.
        to_ns: Ns,
    } -> Option<u64>;
    /// Watches what server and agents use.
    Watch { /** What is watched, and when. */ window: WatchSpan } -> ();
    /// Says what the machine has done so far.
    TakeSnapshot {} -> Look;
    /// Ends the watch of server and agents.
    EndWatch {} -> Option<UsageSeries>;
    /// Says what the server and the link used between two instants, or in the window.
    GetServerUsage {
        /// From when to when, where the window's end was not known.
        window: Option<(Ns, Ns)>,
    } -> ServerUsed;
    /// Has a member of the server stopped, continued, killed or started.
    OrderServer {
        /// Its name.
        member: String,
        /// What it is to do.
        order: KeeperOrder,
    } -> ();
    /// Says what came of orders since the last time.
    TakeServerEvents {} -> Happened;
    /// Says why the server ended, if it has.
    GetServerExit {} -> Option<String>;
    /// Finds the line of the server's log that names a limit which it has reached.
    GetServerLimit {} -> Option<String>;
    /// Reports the server.
    GetServerReport {} -> Option<ServerReport>;
    /// Ends the agents: told to exit where they listen, ended where they do not.
    EndAgents { /** Whether they are told. */ told: bool } -> (), within LONG;
    /// Removes what the clients of a run have left at a server.
    RemoveLeftovers { /** What they left. */ leftovers: Leftovers } -> Removal, within LONG;
    /// Ends whatever stands. Replies the logs: names and texts.
    TearDown {} -> Vec<(String, String)>, within LONG;
}

/// A line of a coordinator's.
#[derive(Debug, Serialize, Deserialize)]
pub struct RequestLine<T> {
    /// The name of the request.
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

/// A line, and who is told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Agents, by number.
    pub agents: Vec<usize>,
    /// The line.
    pub line: String,
}

/// What is watched, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpan {
    /// The start of the schedule, ns.
    pub start_ns: Ns,
    /// The beginning of the window, ns.
    pub from_ns: Ns,
    /// Its length, ns; none where a count ends it.
    pub length_ns: Option<Ns>,
    /// Length of a slice, ns.
    pub slice_ns: Ns,
}

/// What a host is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its clock, ns.
    pub clock_ns: Ns,
    /// The folder of the run.
    pub scratch: String,
    /// Processors that may be used, by number.
    pub cpus: Vec<usize>,
    /// Processors that the kernel keeps free of everything that is not bound to
    /// them, by number.
    pub isolated: Vec<usize>,
    /// Connections that one process may hold.
    pub connections: usize,
    /// Files that one process may open.
    pub files: usize,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Connections that one address may make to another.
    pub ports: usize,
    /// The machine, as long as it runs; hosts of one may be in namespaces of it.
    pub machine: String,
    /// Its network: hosts of one are one.
    pub network: String,
}

/// What a machine had done up to an instant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The instant, ns.
    pub at_ns: Ns,
    /// The machine's processors.
    pub ticks: Ticks,
    /// CPU time of what pubmark itself keeps there, ns.
    pub own_cpu_ns: Ns,
    /// The CPU quota that pubmark is under there; none where there is none.
    pub quota: Option<Quota>,
    /// By number of an agent: what it had used; none once it has ended.
    pub agents: Vec<Option<AgentUsed>>,
}

/// What came of orders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// Answers of the members' keepers.
    pub answers: Vec<MemberAnswer>,
    /// Whether all members listen.
    pub listens: bool,
}

/// What a server used, and a link before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerUsed {
    /// CPU time, ns.
    pub cpu_ns: Ns,
    /// How late an edge of the window was looked at, at worst, ns.
    pub late_ns: Ns,
}

/// A line of a host's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHost {
    /// The answer to the oldest request that has none.
    Reply(Value),
    /// The same, where it could not be done.
    Failed {
        /// Why.
        why: String,
    },
    /// An agent has said something, or, without a line, its output has ended.
    Agent {
        /// Its number.
        agent: usize,
        /// What it said.
        line: Option<String>,
    },
}

impl From<Result<Value, HostError>> for FromHost {
    fn from(answer: Result<Value, HostError>) -> FromHost {
        answer.map_or_else(|error| FromHost::Failed { why: error.to_string() }, FromHost::Reply)
    }
}
