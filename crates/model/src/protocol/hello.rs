//! An agent's identity and features.

use crate::fault::Fault;
use crate::profile::Profile;
use crate::rows;
use crate::units::Ns;
use crate::workload::{Arrival, Pacing, Rate, Verify, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An agent's `hello`: its identity and features.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentHello {
    /// Its protocol version.
    pub protocol: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process ID.
    pub pid: u32,
    /// Its drivers.
    pub drivers: Vec<String>,
    /// Current time of its CLOCK_MONOTONIC, ns.
    pub clock_ns: Ns,
    /// Versions of its runtime and of the libraries known before a driver is opened, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Known options by driver. A driver that is not listed here accepts any option.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    /// Its features.
    #[serde(default)]
    pub features: Features,
}

/// Features of an agent, in the words of a workload. An omitted feature has the minimum that every
/// agent supports, which a run needs if nothing else is requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Patterns. Minimum: `pairs`, `fan-out`, `fan-in`.
    pub patterns: Vec<String>,
    /// Transports of libraries. Minimum: `tcp`.
    pub transports: Vec<String>,
    /// Arrivals: `uniform`, `poisson`, `burst`, `on-off`. Minimum: `uniform`.
    pub arrivals: Vec<String>,
    /// Parts of a message that it can check. Minimum: `header`, `full`.
    pub verification: Vec<String>,
    /// Waiting methods of its publishers. Minimum: `sleep` and `hybrid`, which only limits busy
    /// waiting to a budget, and may use none of it.
    pub pacing: Vec<String>,
    /// Rates: `constant`, `varying`, `sine`, `trace`, and `max`, as fast as the system permits. Minimum: `constant`.
    pub profiles: Vec<String>,
    /// Reactions to faults: `reconnect`, with which clients of a broker come back with their
    /// session, and `cut`, with which they close their connections when they are told to. Minimum: none.
    pub faults: Vec<String>,
    /// Largest number of simultaneous flows. Minimum: 1.
    pub flows: u32,
    /// True if it detects that it was paused. Minimum: false.
    pub pauses: bool,
    /// True if its clients can lose their connections at once and stay away, while it keeps its
    /// ledgers. Minimum: false.
    pub crash: bool,
    /// True if it adds `clock_offset_ns` to the instants that it writes into messages, and
    /// subtracts it from those that it reads. Minimum: false.
    pub clock_offset: bool,
    /// True if its messages carry the checksum of their header, and it checks those of others.
    /// Minimum: false.
    pub header_checksum: bool,
    /// True if the end markers of publishers, or the deadline, end its drain, and not the number of
    /// received messages. Minimum: false.
    pub drains_by_markers: bool,
    /// True if its topics of the pattern `tree` follow `tree_devices` and `tree_parameters`.
    /// Minimum: false, with 100 and 10.
    pub tree_sizes: bool,
    /// True if its subscribers take messages at the rate `consume`. Minimum: false.
    pub consume: bool,
    /// True if its messages are due only in the part `span` of the window. Minimum: false.
    pub span: bool,
    /// True if its subscribers connect at `subscribers_start_ns` and read from the beginning of their streams. Minimum:
    /// false.
    pub subscribers_start: bool,
    /// True if its requesters at a broker send `outstanding` requests before they have an answer.
    /// Minimum: false.
    pub outstanding: bool,
    /// True if its requesters wait for an answer as long as `timeout_ns`, and count those that come
    /// later. Minimum: false, with `drain_ns`.
    pub timeout: bool,
    /// True if its repliers write their times into answers, and its requesters read them. Minimum:
    /// false.
    pub reply_times: bool,
    /// True if its messages have the sizes of `payload_sizes`. Minimum: false.
    pub payload_sizes: bool,
    /// True if it draws the topic of each message from `topics`, and subscribes as that says. Minimum: false.
    pub topics: bool,
    /// True if its messages carry `headers`. Minimum: false.
    pub headers: bool,
    /// True if bodies are those of `payload_bodies`. Minimum: false.
    pub payload_bodies: bool,
    /// True if bodies follow `payload_content`. Minimum: false.
    pub payload_content: bool,
    /// True if the agent with subscriber 0 plays the clients of `churn` as well. Minimum: false.
    pub churn: bool,
    /// True if its publishers leave last wills with the server, and its subscribers time them. Minimum: false.
    pub last_will: bool,
    /// Maximum size of the rows of an agent that leaves its figures to pubmark, bytes. `None` if
    /// the agent computes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_bytes: Option<u64>,
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

impl Default for Features {
    fn default() -> Features {
        Features {
            patterns: words(&["pairs", "fan-out", "fan-in"]),
            transports: words(&["tcp"]),
            arrivals: words(&["uniform"]),
            verification: words(&[Verify::Header.word(), Verify::Full.word()]),
            pacing: words(&[Pacing::Sleep.word(), Pacing::Hybrid.word()]),
            profiles: words(&[CONSTANT]),
            faults: Vec::new(),
            flows: 1,
            pauses: false,
            crash: false,
            clock_offset: false,
            header_checksum: false,
            drains_by_markers: false,
            tree_sizes: false,
            consume: false,
            span: false,
            subscribers_start: false,
            outstanding: false,
            timeout: false,
            reply_times: false,
            payload_sizes: false,
            topics: false,
            headers: false,
            payload_bodies: false,
            payload_content: false,
            churn: false,
            last_will: false,
            row_bytes: None,
        }
    }
}

/// A constant rate.
pub const CONSTANT: &str = "constant";
/// A rate that changes over time.
pub const VARYING: &str = "varying";
/// A rate that is a sine over time.
pub const SINE: &str = "sine";
/// A rate that is the one of a trace.
pub const TRACE: &str = "trace";
/// As fast as the system permits.
pub const MAX: &str = "max";
/// Clients of a broker reconnect when their connection ends.
pub const RECONNECT: &str = "reconnect";
/// Sizes of a tree other than the default ones.
const TREE_SIZES: &str = "tree_sizes";
/// Subscribers take messages at a rate of their own.
const CONSUME: &str = "consume";
/// Messages are due in a part of the window.
const SPAN: &str = "span";
/// Subscribers start within the window.
const SUBSCRIBERS_START: &str = "subscribers_start";
/// Requesters send more requests before they have an answer.
const OUTSTANDING: &str = "outstanding";
/// Requesters have a time limit for answers that is not the drain.
const TIMEOUT: &str = "timeout";
/// Messages have different sizes.
const PAYLOAD_SIZES: &str = "payload_sizes";
/// Each message has one of several topics.
const TOPICS: &str = "topics";
/// Messages have headers.
const HEADERS: &str = "headers";
/// Bodies are lines of a file, or a template.
const PAYLOAD_BODIES: &str = "payload_bodies";
/// Bodies are not random.
const PAYLOAD_CONTENT: &str = "payload_content";
/// Clients come and go.
const CHURN: &str = "churn";
/// Publishers have last wills.
const LAST_WILL: &str = "last_will";
/// Clients close their connections when they are told to, and reconnect.
pub const CUT: &str = "cut";
/// Clients reconnect when their server is silent.
pub const CLIENT_TIMEOUT: &str = "client_timeout";
/// Clients can be killed, and the agent keeps their ledgers.
const CRASH: &str = "crash";
/// The reason for [`RECONNECT`], [`CUT`] and [`CRASH`] in errors.
const FAULTS: &str = "what a run with faults needs,";

/// Error: an agent lacks a feature that a workload needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot play {what} `{wanted}`; it has: {}", if has.is_empty() { "none".to_owned() } else { has.join(", ") })]
pub struct MissingFeature {
    /// The kind of feature.
    pub what: &'static str,
    /// The required value.
    pub wanted: String,
    /// The agent's values.
    pub has: Vec<String>,
}

/// Returns the word of an arrival, without its number.
fn arrival(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Uniform => "uniform",
        Arrival::Poisson => "poisson",
        Arrival::Burst(_) => "burst",
        Arrival::OnOff { .. } => "on-off",
    }
}

impl Features {
    /// Returns the first feature that the flows of a run need and the agent lacks.
    pub fn lack(&self, flows: &[&Workload]) -> Option<MissingFeature> {
        let too_many = flows.len() as u64 > u64::from(self.flows);
        let (wanted, has) = (flows.len().to_string(), vec![self.flows.to_string()]);
        let lack = too_many.then_some(MissingFeature { what: "so many flows:", wanted, has });
        let lack = lack.or_else(|| flows.iter().find_map(|workload| self.lack_of_one(workload)));
        lack.or_else(|| flows.iter().find_map(|workload| self.lack_of_room(workload)))
    }

    /// Returns the feature that an agent needs to carry out a fault on its own clients, if it lacks it.
    pub fn lack_of_fault(&self, fault: &Fault) -> Option<MissingFeature> {
        let cuts = self.faults.iter().any(|word| word == CUT);
        let lack = || MissingFeature { what: FAULTS, wanted: CUT.to_owned(), has: self.faults.clone() };
        if fault.cut_percent().is_some() { (!cuts).then(lack) } else { self.lack_of_crash() }
    }

    /// Returns the feature that an agent needs if its clients are killed, if it lacks it.
    pub fn lack_of_crash(&self) -> Option<MissingFeature> {
        (!self.crash).then(|| MissingFeature { what: FAULTS, wanted: CRASH.to_owned(), has: self.faults.clone() })
    }

    /// Returns an error if the rows of a run exceed `row_bytes`.
    fn lack_of_room(&self, workload: &Workload) -> Option<MissingFeature> {
        let most = self.row_bytes?;
        let bytes = rows::bytes(workload);
        let (what, has) = ("a run whose rows take", vec![format!("{} MiB", most >> 20)]);
        (bytes > most).then(|| MissingFeature { what, wanted: format!("{} MiB", bytes.div_ceil(1 << 20)), has })
    }

    fn lack_of_one(&self, workload: &Workload) -> Option<MissingFeature> {
        let rate = match &workload.rate {
            Rate::Max => MAX,
            Rate::Due(Profile::Trace(_)) => TRACE,
            Rate::Due(Profile::Varying(course)) if course.is_sine() => SINE,
            Rate::Due(profile) if profile.is_constant() => CONSTANT,
            Rate::Due(_) => VARYING,
        };
        let transport = workload.transport.map(|transport| transport.word());
        let flag = |has: bool, word| if has { words(&[word]) } else { Vec::new() };
        let (tree_sizes, consume) = (flag(self.tree_sizes, TREE_SIZES), flag(self.consume, CONSUME));
        let (span, outstanding) = (flag(self.span, SPAN), flag(self.outstanding, OUTSTANDING));
        let timeout = flag(self.timeout, TIMEOUT);
        let is_part = !workload.span.is_whole();
        let starts_late = workload.subscribers_start_ns.is_some();
        let subscribers_start = flag(self.subscribers_start, SUBSCRIBERS_START);
        let (payload_sizes, churn) = (flag(self.payload_sizes, PAYLOAD_SIZES), flag(self.churn, CHURN));
        let (topics, headers) = (flag(self.topics, TOPICS), flag(self.headers, HEADERS));
        let payload_content = flag(self.payload_content, PAYLOAD_CONTENT);
        let last_will = flag(self.last_will, LAST_WILL);
        let payload_bodies = flag(self.payload_bodies, PAYLOAD_BODIES);
        let written = workload.payload_bodies.is_some();
        let (headed, filled) = (workload.headers.is_some(), !workload.payload_content.is_random());
        let (varies, draws) = (workload.sizes_vary(), workload.topics.is_some());
        let needs: [(&'static str, Option<&str>, &Vec<String>); 21] = [
            ("the pattern", Some(workload.pattern.word()), &self.patterns),
            ("the transport", transport, &self.transports),
            ("the arrival", Some(arrival(workload.arrival)), &self.arrivals),
            ("the verification", Some(workload.verify.word()), &self.verification),
            ("the pacing", Some(workload.pacing.word()), &self.pacing),
            ("the rate", Some(rate), &self.profiles),
            (FAULTS, workload.reconnect.then_some(RECONNECT), &self.faults),
            (
                "clients that give up a silent server:",
                workload.client_timeout_ns.and(Some(CLIENT_TIMEOUT)),
                &self.faults,
            ),
            ("a tree of other sizes than 100 and 10:", workload.sizes_tree().then_some(TREE_SIZES), &tree_sizes),
            ("subscribers with a rate of their own:", workload.consumes_slowly().then_some(CONSUME), &consume),
            ("messages in a part of the window:", is_part.then_some(SPAN), &span),
            ("subscribers that start late:", starts_late.then_some(SUBSCRIBERS_START), &subscribers_start),
            ("several requests at a time:", workload.asks_ahead().then_some(OUTSTANDING), &outstanding),
            ("requests with a time limit:", workload.timeout_ns.and(Some(TIMEOUT)), &timeout),
            ("`payload_file` or `payload_template`:", written.then_some(PAYLOAD_BODIES), &payload_bodies),
            ("messages whose sizes vary:", varies.then_some(PAYLOAD_SIZES), &payload_sizes),
            ("messages to several topics:", draws.then_some(TOPICS), &topics),
            ("messages with headers:", headed.then_some(HEADERS), &headers),
            ("bodies that are not random:", filled.then_some(PAYLOAD_CONTENT), &payload_content),
            ("clients that come and go:", (!workload.churn.is_none()).then_some(CHURN), &churn),
            ("publishers with last wills:", workload.last_will.then_some(LAST_WILL), &last_will),
        ];
        needs.into_iter().find_map(|(what, wanted, has)| {
            let wanted = wanted.filter(|wanted| !has.iter().any(|word| word == wanted))?;
            Some(MissingFeature { what, wanted: wanted.to_owned(), has: has.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;
    use crate::setting::Settings;

    fn workload(settings: &[(&str, &str)]) -> Workload {
        Workload::resolve(&Settings::of(settings.iter().copied()).unwrap()).unwrap()
    }

    #[test]
    fn what_an_agent_leaves_out_is_the_least() {
        let hello = r#"{"protocol":2,"name":"a","version":"1","pid":1,"drivers":["d"],"clock_ns":5,"colour":"red"}"#;
        let hello: AgentHello = serde_json::from_str(hello).unwrap();
        assert_eq!(hello.features, Features::default());
        let some: Features = serde_json::from_str(r#"{"patterns":["tree"],"later":true}"#).unwrap();
        assert_eq!(some, Features { patterns: words(&["tree"]), ..Features::default() });
    }

    #[test]
    fn what_a_run_needs_and_an_agent_has_not_is_named() {
        let least = Features::default();
        for (settings, what, wanted) in [
            (&[("pattern", "pipeline")][..], "the pattern", "pipeline"),
            (&[("transport", "ipc")], "the transport", "ipc"),
            (&[("arrival", "burst:7")], "the arrival", "burst"),
            (&[("arrival", "poisson")], "the arrival", "poisson"),
            (&[("arrival", "on-off:1s/2s")], "the arrival", "on-off"),
            (&[("pacing", "spin")], "the pacing", "spin"),
            (&[("rate", "max")], "the rate", "max"),
            (&[("rate", "ramp 1 to 2 in 5s")], "the rate", "varying"),
            (&[("rate", "sine 1 to 2 each 5s")], "the rate", "sine"),
        ] {
            let lack = least.lack(&[&workload(settings)]).unwrap();
            assert_eq!((lack.what, lack.wanted.as_str()), (what, wanted));
        }
        assert_eq!(least.lack(&[&workload(&[("pacing", "hybrid"), ("transport", "tcp")])]), None);
        let fast = workload(&[("rate", "1000000"), ("warmup", "1s"), ("duration", "9s")]);
        assert_eq!(least.lack(&[&fast]), None, "it keeps its figures itself");
        let writes_rows = Features { row_bytes: Some(rows::MOST_BYTES), ..Features::default() };
        assert_eq!(
            writes_rows.lack(&[&fast]).unwrap().to_string(),
            "cannot play a run whose rows take `668 MiB`; it has: 512 MiB"
        );
        let back = Workload { reconnect: true, ..workload(&[]) };
        assert_eq!(
            least.lack(&[&back]).unwrap().to_string(),
            "cannot play what a run with faults needs, `reconnect`; it has: none"
        );
        for (text, word) in [("kill publishers at 1s", "crash"), ("cut 5% of clients at 1s", "cut")] {
            let fault = &Script::parse(text).unwrap().0[0];
            let lack = least.lack_of_fault(fault).unwrap().to_string();
            assert_eq!(lack, format!("cannot play what a run with faults needs, `{word}`; it has: none"));
            let has = Features { crash: word == "crash", faults: words(&[word]), ..Features::default() };
            assert_eq!(has.lack_of_fault(fault), None);
        }
        let churn = least.lack(&[&workload(&[("churn", "5/s")])]).unwrap().to_string();
        assert_eq!(churn, "cannot play clients that come and go: `churn`; it has: none");
        assert_eq!(Features { churn: true, ..Features::default() }.lack(&[&workload(&[("churn", "5/s")])]), None);
        let header = Features { verification: words(&["header"]), ..Features::default() };
        assert_eq!(header.lack(&[&workload(&[("verify", "full")])]).map(|lack| lack.what), Some("the verification"));
        let tree = least.lack(&[&workload(&[("pattern", "tree")])]).unwrap().to_string();
        let trees = Features { patterns: words(&["tree"]), ..Features::default() };
        let sized = workload(&[("pattern", "tree"), ("tree_parameters", "3")]);
        assert_eq!(trees.lack(&[&sized]).map(|lack| lack.wanted), Some("tree_sizes".to_owned()));
        assert_eq!(Features { tree_sizes: true, ..trees }.lack(&[&sized]), None);
        let slow = workload(&[("consume", "100")]);
        assert_eq!(least.lack(&[&slow]).map(|lack| lack.wanted), Some("consume".to_owned()));
        assert_eq!(Features { consume: true, ..Features::default() }.lack(&[&slow]), None);
        let part = workload(&[("start", "1s"), ("end", "2s")]);
        assert_eq!(least.lack(&[&part]).map(|lack| lack.wanted), Some("span".to_owned()));
        assert_eq!(Features { span: true, ..Features::default() }.lack(&[&part]), None);
        let late = workload(&[("subscribers_start", "1s")]);
        assert_eq!(least.lack(&[&late]).map(|lack| lack.wanted), Some("subscribers_start".to_owned()));
        assert_eq!(Features { subscribers_start: true, ..Features::default() }.lack(&[&late]), None);
        let varied = workload(&[("payload", "uniform 64B to 4KiB")]);
        let sizes = least.lack(&[&varied]).unwrap().to_string();
        assert_eq!(sizes, "cannot play messages whose sizes vary: `payload_sizes`; it has: none");
        assert_eq!(Features { payload_sizes: true, ..Features::default() }.lack(&[&varied]), None);
        let many = workload(&[("topics", "10")]);
        assert_eq!(least.lack(&[&many]).map(|lack| lack.wanted), Some("topics".to_owned()));
        assert_eq!(Features { topics: true, ..Features::default() }.lack(&[&many]), None);
        let timed = workload(&[("pattern", "request-reply"), ("timeout", "1s")]);
        let asks = Features { patterns: words(&["request-reply"]), ..Features::default() };
        assert_eq!(asks.lack(&[&timed]).map(|lack| lack.wanted), Some("timeout".to_owned()));
        assert_eq!(Features { timeout: true, ..asks }.lack(&[&timed]), None);
        let filled = workload(&[("payload_template", "{key}")]);
        assert_eq!(least.lack(&[&filled]).map(|lack| lack.wanted), Some("payload_bodies".to_owned()));
        for (key, value) in [("headers", "a: b"), ("payload_content", "zeros"), ("last_will", "true")] {
            assert_eq!(least.lack(&[&workload(&[(key, value)])]).map(|lack| lack.wanted), Some(key.to_owned()));
        }
        let two = least.lack(&[&workload(&[]), &workload(&[])]).unwrap().to_string();
        assert_eq!(two, "cannot play so many flows: `2`; it has: 1");
        assert_eq!(tree, "cannot play the pattern `tree`; it has: pairs, fan-out, fan-in");
    }
}
