//! The agent protocol, version 2: JSON lines between coordinator and agent.
//!
//! `docs/agent-protocol.md` explains it with an example conversation.

mod answer;
mod churn;
mod hello;
mod histograms;
mod last_will;
mod ranges;
mod result;
mod sequences;

pub use crate::counts::{LedgerCounts, PublisherTotal};
pub use crate::last_will::ConnectionEnd;
use crate::options::Options;
pub use crate::role::Role;
use crate::units::Ns;
use crate::workload::Workload;
pub use answer::{NoSuchDriver, UnknownOption};
pub use churn::ChurnResult;
pub use hello::{
    AgentHello, CLIENT_TIMEOUT, CONSTANT, CUT, Features, MAX, MissingFeature, RECONNECT, SINE, TRACE, VARYING,
};
pub use histograms::{PackedError, PackedHistogram};
pub use last_will::WillResult;
pub use ranges::{MOST_RANGES, Ranges, Sequences};
pub use result::{
    AgentResult, AgentUsage, BadHistogram, ClientProcessors, Connections, FlowHistograms, FlowResult, OWN_FIGURES_MAX,
    PacingFigures, ResultHistograms, RuntimeFigures, RuntimePauses, SliceSeries, Stalls, SubscriberFigures,
};
pub use sequences::SeenBits;
use serde::{Deserialize, Serialize, Serializer};

/// The protocol version of this crate.
pub const VERSION: u32 = 2;

/// The protocol version of agents that write rows; `pubmark rows` translates it.
pub const ROWS_VERSION: u32 = 3;

/// Advice for an agent of an older version, or one that answers `hello` with an error.
pub const UPDATE_AGENT: &str = "update the agent, or take its release for this version";

/// Longest line that either side reads, bytes: room for a million clients of one agent, and for
/// [`MOST_RANGES`] of both kinds.
pub const MAX_LINE: usize = 256 << 20;

/// Longest `hello` of an agent, which is its first line, bytes.
pub const MAX_HELLO: usize = 1 << 20;

/// Commands of the coordinator. Unknown fields are ignored, so a new one breaks no agent; a run
/// checks the agent's [`Features`] for what it needs. An unknown command is an error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Opens the conversation.
    Hello {
        /// The coordinator's protocol version.
        protocol: u32,
    },
    /// Lists the clients to play. The agent binds, answers `bound`, connects, and answers `ready`
    /// when every client is connected and has received a probe from each publisher that it receives
    /// from.
    Prepare(Box<Prepare>),
    /// Sets the instant at which the schedule starts.
    Start {
        /// The instant on the agent's CLOCK_MONOTONIC, ns.
        at_ns: Ns,
    },
    /// Reports that all publishers have sent everything. The agent answers `drained` when its
    /// subscribers have everything, or know the rest to be lost, or at the deadline.
    Drain {
        /// Totals of each publisher that the agent plays or receives from.
        publishers: Vec<PublisherTotal>,
        /// Connections of these publishers that ended without a goodbye, if they have last wills.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ends: Vec<ConnectionEnd>,
        /// Deadline on the agent's clock, ns.
        deadline_ns: Ns,
    },
    /// Closes every connection without a goodbye; the agent sends nothing more, reads nothing more,
    /// and keeps its ledgers, like the clients of a killed process. Sent only to agents that have
    /// [`Features::crash`]; publishers then answer `sent`.
    Crash {},
    /// Closes the connections of a share of its clients at once, without a goodbye; they come back. Sent only to
    /// agents with the word [`CUT`] in [`Features::faults`].
    Cut {
        /// The share, percent: see [`is_cut`](crate::fault::is_cut).
        percent: u8,
    },
    /// Ends the load; the agent answers `result`.
    Stop {},
    /// Closes everything; the agent exits with status 0.
    Exit {},
}

/// The clients that one agent plays in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The driver.
    pub driver: String,
    /// All its options.
    pub options: Options,
    /// The flows, the same for all agents of a run.
    pub flows: Vec<Flow>,
    /// The clients.
    pub clients: Vec<Client>,
    /// A folder of this run for socket files; the coordinator removes it.
    pub scratch: String,
    /// The server, if clients use one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerAddress>,
    /// The processors that this agent's publishers may use for busy waiting (`pacing = "hybrid"`),
    /// 0 or more.
    #[serde(default)]
    pub spin_cores: f64,
    /// Offset of the instants in messages from this agent's clock, ns, so that agents on several
    /// hosts agree on them; 0 on one host.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_offset_ns: i64,
    /// Processors for publishers' and requesters' threads; empty leaves it to the kernel.
    pub publisher_cpus: Vec<usize>,
    /// Processors for subscribers' and repliers' threads; empty leaves it to the kernel.
    pub subscriber_cpus: Vec<usize>,
}

/// A separate stream of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its workload, without the keys that only the coordinator needs.
    #[serde(serialize_with = "for_agents")]
    pub workload: Workload,
}

impl Flow {
    /// Name of a run's only flow.
    pub const ALONE: &str = "main";

    /// Creates the only flow of a run.
    pub fn alone(workload: Workload) -> Flow {
        Flow { name: Flow::ALONE.to_owned(), workload }
    }
}

/// Keys of a workload that agents do not need.
const NOT_FOR_AGENTS: [&str; 5] = ["agents", "pin", "max_send_lag_ns", "late_after_ns", "tls"];

fn for_agents<S: Serializer>(workload: &Workload, to: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(workload).map_err(serde::ser::Error::custom)?;
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|key, _| !NOT_FOR_AGENTS.contains(&key.as_str()));
    }
    value.serialize(to)
}

/// Address of a broker, and the connection settings of this agent's clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// Its URL, with user and password if it needs them: never logged.
    pub endpoint: String,
    /// URLs of all members, if it is a cluster of several; `endpoint` is the first of them. Client number `i` begins
    /// with member `i` modulo their number, and goes to the next if a connection fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
    /// URLs at which clients ask which member leads, each time that they connect; empty if they try the members. Client
    /// number `i` begins with service `i` modulo their number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discovery: Vec<String>,
    /// The run's own name, 0-9 and a-z: topics and client names begin with it.
    pub run: String,
    /// Source addresses for connections, in turn; empty leaves it to the kernel.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Connections that this agent opens per second.
    pub connect_per_s: u32,
}

/// One client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Its role.
    pub role: Role,
    /// Its number within its role, over all flows: publishers and requesters share one numbering,
    /// subscribers and repliers another.
    pub id: u32,
    /// The flow that it belongs to: its index in `flows`.
    #[serde(default, skip_serializing_if = "is_first")]
    pub flow: u32,
    /// The endpoint that it binds, such as `tcp://127.0.0.1:0` (any free port).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// The endpoints that it connects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<String>,
    /// In `fan-out-echo`, the endpoint for answers: the publisher binds it, the answering
    /// subscriber connects to it. `None` if the publisher named none: answers then go back the way
    /// the messages came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// The first publisher that it receives from (subscribers and repliers).
    #[serde(default)]
    pub hears_first: u32,
    /// The number of publishers that it receives from, counted from `hears_first`.
    #[serde(default)]
    pub hears_count: u32,
}

fn is_zero(ns: &i64) -> bool {
    *ns == 0
}

fn is_first(flow: &u32) -> bool {
    *flow == 0
}

/// Events of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// Answers `hello`.
    Hello(Box<AgentHello>),
    /// Reports that every endpoint is bound; for clients of a broker: every client is connected and
    /// subscribed.
    Bound {
        /// The endpoints by client, as others can connect to them.
        endpoints: Vec<BoundEndpoint>,
    },
    /// Reports that every client is connected and has received from every publisher that it should
    /// receive from.
    Ready {},
    /// Reports counters, once a second while the load runs.
    Progress(Progress),
    /// Reports that every publisher of this agent has sent all its messages.
    Sent {
        /// Totals of each of them.
        publishers: Vec<PublisherTotal>,
        /// Their connections that ended without a goodbye, if they have last wills.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ends: Vec<ConnectionEnd>,
    },
    /// Answers `drain`.
    Drained {},
    /// Answers `stop`.
    Result(Box<AgentResult>),
    /// Reports an error.
    Error {
        /// The error, its place, and advice.
        message: String,
        /// True if the run cannot continue.
        fatal: bool,
        /// True if the start had passed when the agent read `start`: the run can be made again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        too_late: bool,
    },
}

/// Environment variable for an agent from its first moment: the folder that its coordinator would
/// leave behind, later the `scratch` of `prepare`.
pub const SCRATCH: &str = "PUBMARK_SCRATCH";

/// The file in a folder of pubmark's whose lock marks the folder as in use. A folder `scratch`
/// without this file belongs to another program.
pub const LOCK: &str = "lock";

/// An endpoint that a client bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundEndpoint {
    /// The client's role.
    pub role: Role,
    /// The client's number.
    pub id: u32,
    /// The endpoint to connect to.
    pub endpoint: String,
    /// The endpoint for answers, if it is a different one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
}

/// Counters so far, for the live display only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Messages sent.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Largest generator delay of the messages sent since the last `progress`, ns. `None` if
    /// nothing was sent, or nothing was due (`max`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_lag_max_ns: Option<Ns>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::MAX_SEQUENCE;
    use crate::setting::{MOST_CLIENTS, Settings};

    #[test]
    fn agents_are_told_nothing_that_only_the_coordinator_needs() {
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let told = |workload: &Workload| {
            let prepare = Prepare {
                driver: "mock".into(),
                options: Options::new(),
                flows: vec![Flow::alone(workload.clone())],
                clients: Vec::new(),
                scratch: String::new(),
                server: None,
                spin_cores: 0.0,
                clock_offset_ns: 0,
                publisher_cpus: Vec::new(),
                subscriber_cpus: Vec::new(),
            };
            serde_json::to_string(&prepare).unwrap()
        };
        let text = told(&workload);
        assert!(NOT_FOR_AGENTS.iter().all(|key| !text.contains(&format!("\"{key}\""))), "{text}");
        assert_eq!(serde_json::from_str::<Prepare>(&text).unwrap().flows[0].workload, workload);
        let pin = crate::workload::Pin::Roles;
        let pinned = Workload { agents: 3, pin, max_send_lag_ns: 5, late_after_ns: 7, ..workload };
        assert_eq!(told(&pinned), text, "whatever it is");
    }

    #[test]
    fn a_million_clients_and_all_ranges_fit_into_a_line() {
        let length = |text: serde_json::Result<String>| text.unwrap().len() + 1;
        let (publisher, most) = (MOST_CLIENTS as u32 - 1, u64::from(MAX_SEQUENCE));
        let client = Client {
            role: Role::Subscriber,
            id: publisher,
            flow: publisher,
            bind: None,
            connect: Vec::new(),
            answers: None,
            hears_first: publisher,
            hears_count: publisher,
        };
        let total = PublisherTotal { publisher, sent: most, window_first: most, window_end: most, offered: most };
        let range = Sequences { publisher, first: most, end: most };
        let totals = length(serde_json::to_string(&total)) * MOST_CLIENTS as usize;
        let ranges = length(serde_json::to_string(&range)) * MOST_RANGES;
        let clients = length(serde_json::to_string(&client)) * MOST_CLIENTS as usize;
        // The rest of a result is histograms and series.
        let rest = 16 << 20;
        assert!(clients + rest < MAX_LINE, "prepare: {clients}");
        assert!(totals + 2 * ranges + rest < MAX_LINE, "result: {totals} and twice {ranges}");
    }

    #[test]
    fn unknown_fields_are_passed_over_and_unknown_commands_are_not() {
        let start = serde_json::from_str::<Command>(r#"{"type":"start","at_ns":5,"soon":1}"#).unwrap();
        assert_eq!(start, Command::Start { at_ns: 5 });
        let hello = serde_json::from_str::<Command>(r#"{"type":"hello","protocol":2,"tongue":"de"}"#).unwrap();
        assert_eq!(hello, Command::Hello { protocol: 2 });
        assert!(serde_json::from_str::<Command>(r#"{"type":"begin"}"#).is_err());
        assert!(serde_json::from_str::<Command>(r#"{"type":"start"}"#).is_err(), "what is needed is needed");
        let workload = Workload::resolve(&Settings::default()).unwrap();
        let mut flow = serde_json::to_value(Flow::alone(workload.clone())).unwrap();
        flow["workload"]["weather"] = "fine".into();
        flow["colour"] = "red".into();
        let client = serde_json::json!({"role": "publisher", "id": 3, "hat": true});
        let prepare = serde_json::json!({
            "type": "prepare", "driver": "d", "options": {}, "flows": [flow], "clients": [client], "scratch": "",
            "publisher_cpus": [], "subscriber_cpus": [], "mood": 1,
        });
        let Command::Prepare(prepare) = serde_json::from_value::<Command>(prepare).unwrap() else { panic!() };
        assert_eq!((prepare.flows[0].workload.clone(), prepare.clients[0].flow), (workload, 0));
        assert_eq!(serde_json::to_string(&Command::Stop {}).unwrap(), r#"{"type":"stop"}"#);
        assert_eq!(serde_json::to_string(&Command::Crash {}).unwrap(), r#"{"type":"crash"}"#);
    }
}
