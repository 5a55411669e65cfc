//! What a host is asked and answers: by a call where it is this machine, as a
//! JSON line each where it is another. It knows no run: agents have names,
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
use pubmark_model::units::Ns;
use pubmark_model::watch::Watchee;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// What is wanted of a host. Instants are on its own clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRequest {
    /// What the host is; its clock.
    Facts,
    /// Whether this address is one of its own.
    Owns {
        /// The address.
        address: String,
    },
    /// Tell the time to whoever asks at this address of its own.
    TellTime {
        /// The address.
        address: IpAddr,
    },
    /// Compare its clock with the one that answers there.
    CompareClock {
        /// Its own address.
        address: IpAddr,
        /// Where the other answers.
        with: SocketAddr,
    },
    /// Look at the clock that answers there, about once a second of a window.
    WatchClock {
        /// Its own address.
        address: IpAddr,
        /// Where the other answers.
        with: SocketAddr,
        /// The beginning of the window, ns.
        from_ns: Ns,
        /// Its length, ns; none where a count ends it.
        length_ns: Option<Ns>,
    },
    /// What was seen of the clock that answers there. Ends its watch.
    ClockSeen {
        /// Where it answers.
        with: SocketAddr,
    },
    /// What there would spoil a measurement.
    Examine,
    /// Which of these systems can be used there.
    Systems(Vec<SystemFile>),
    /// Why a system cannot play its part there.
    Missing {
        /// The system.
        system: SystemFile,
        /// Whether, and how, its server is to be started there.
        deployment: Option<String>,
        /// Whether its clients are to play there.
        plays: bool,
    },
    /// Install a system, unless it is there.
    Install(SystemFile),
    /// Whether a folder of this digest is there.
    HasFolder {
        /// The digest.
        digest: String,
    },
    /// Keep a folder.
    KeepFolder(FolderOnItsWay),
    /// Start an agent: the next number is its own.
    Agent {
        /// Its name.
        name: String,
        /// The system whose own agent it is; none for the one that is built in.
        system: Option<SystemFile>,
        /// Whether it plays the side that sends.
        sends: bool,
        /// The name of its log.
        log: String,
    },
    /// Make the folder of the run.
    MakeFolder,
    /// Tell agents lines: all that one word of a coordinator's has for them.
    Tell {
        /// The lines.
        words: Vec<Told>,
    },
    /// Stop an agent and what it has started, or let it go on.
    Signal {
        /// Its number.
        agent: usize,
        /// Stop it.
        stop: bool,
    },
    /// How an agent ended.
    ExitReason {
        /// Its number.
        agent: usize,
    },
    /// Start a server.
    Deploy(Box<DeployPlan>),
    /// Attach to a server that is there.
    Attach {
        /// Its URL.
        endpoint: String,
        /// Its processes, where they are named.
        #[serde(default)]
        watch: Option<Watchee>,
    },
    /// Put a link before a server.
    PutLink {
        /// What it does.
        link: Link,
        /// The server's URL.
        server: String,
        /// The address of its own at which clients find the link.
        address: String,
        /// The name of the log.
        log: String,
    },
    /// Let connections go over the link, or end them all and refuse new ones.
    OpenLink(bool),
    /// Why the link's proxy ended, if it has.
    LinkExit,
    /// What is to be said of the link.
    LinkReport,
    /// Take the network down that has an address of its own, for so long.
    CutNetwork {
        /// The address.
        address: String,
        /// For how long, ns.
        for_ns: Ns,
    },
    /// When the network that was taken down was so: to be asked when it should be
    /// back.
    NetworkBack,
    /// Change the network that has an address of its own, as long as this host is one.
    Shape {
        /// The address.
        address: String,
        /// How.
        shape: Shape,
    },
    /// Keep the processors awake.
    Awake,
    /// Look at the interface that has an address; it is watched with the rest.
    Network {
        /// The address.
        address: String,
    },
    /// What that interface sent between two instants. Ends its watch.
    NetworkSent {
        /// From when, ns.
        from_ns: Ns,
        /// Until when, ns.
        to_ns: Ns,
    },
    /// Watch what server and agents use.
    Watch(WatchSpan),
    /// Look at what the machine has done so far.
    Look,
    /// The last look at server and agents.
    EndWatch,
    /// What the server and the link used between two instants, or in the window.
    ServerUsed {
        /// From when to when, where the window's end was not known.
        window: Option<(Ns, Ns)>,
    },
    /// Have a member of the server stopped, continued, killed, started.
    Order {
        /// Its name.
        member: String,
        /// What it is to do.
        order: KeeperOrder,
    },
    /// What came of orders.
    Happened,
    /// Why the server ended, if it has.
    ServerExit,
    /// What the server's log says of a limit that it has reached, if it has.
    ServerLimit,
    /// What is to be said of the server.
    Report,
    /// Agents may go: told to exit where they listen, ended where they do not.
    EndAgents {
        /// Whether they are told.
        told: bool,
    },
    /// Remove what the clients of a run have left at a server.
    Remove(Box<Leftovers>),
    /// End whatever stands, and hand in the logs.
    TearDown,
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
    #[serde(default)]
    pub isolated: Vec<usize>,
    /// Connections that one process may hold.
    pub connections: usize,
    /// Files that one process may open.
    #[serde(default)]
    pub files: usize,
    /// Memory, bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Connections that one address may make to another.
    #[serde(default)]
    pub ports: usize,
    /// The machine, as long as it runs; hosts of one may be in namespaces of it.
    #[serde(default)]
    pub machine: String,
    /// Its network: hosts of one are one.
    #[serde(default)]
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
    #[serde(default)]
    pub quota: Option<Quota>,
    /// By number of an agent: what it had used; none once it has ended.
    #[serde(default)]
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

/// A host's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostReply {
    /// It is done.
    Done,
    /// To `facts`.
    Facts(Facts),
    /// To `tell_time`: where it answers.
    At(SocketAddr),
    /// To `compare_clock`: the other's less its own.
    Clock(ClockSighting),
    /// To `clock_seen`.
    Sightings(Vec<ClockSighting>),
    /// To `systems`, each in its turn.
    Presences(Vec<Presence>),
    /// To `has_folder`.
    Has(bool),
    /// To `examine`.
    Checkups(Vec<Checkup>),
    /// To `agent`: its process.
    Process(i32),
    /// To `deploy` and `put_link`: where clients connect to, as seen from there.
    Endpoint(String),
    /// To `remove`.
    Removed(Removal),
    /// A reason, if there is one.
    Reason(Option<String>),
    /// To `look`.
    Look(Look),
    /// To `network`; none where no interface has the address.
    Network(Option<NetworkLook>),
    /// To `network_sent`: bytes; none where nothing was seen.
    Sent(Option<u64>),
    /// To `network_back`: from when to when it was down, ns.
    Down(Ns, Ns),
    /// To `open_link`: between which instants it happened, ns.
    Switched(Ns, Ns),
    /// To `link_report`; none where there is no link.
    Link(Option<LinkReport>),
    /// To `end_watch`.
    Series(Option<UsageSeries>),
    /// To `server_used`.
    Used(ServerUsed),
    /// To `happened`.
    Happened(Happened),
    /// To `report`.
    Report(Option<Box<ServerReport>>),
    /// To `tear_down`: names and texts.
    Logs(Vec<(String, String)>),
}

/// A line of a host's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromHost {
    /// The answer to the oldest request that has none.
    Reply(HostReply),
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

impl From<Result<HostReply, HostError>> for FromHost {
    fn from(answer: Result<HostReply, HostError>) -> FromHost {
        answer.map_or_else(|error| FromHost::Failed { why: error.to_string() }, FromHost::Reply)
    }
}
