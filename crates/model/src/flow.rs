//! Flows: separate streams of traffic of one run, each with its own pattern, clients, rate and messages.

use crate::cell::Cell;
use crate::protocol::Flow;
use crate::setting::{Key, SettingError, Settings, key};
use crate::workload::resolve::{WorkloadErrors, WorkloadFiles};
use crate::workload::{Verify, Workload};
use serde_json::{Map, Value};

/// The axis by which the results of a run's flows are told apart.
pub const FLOW: &str = "flow";

/// Its value for all flows of a run together.
pub const ALL: &str = "all";

/// The axis of the flows that a run plays: one of them by itself, or all of them.
pub const PLAYING: &str = "playing";

/// True if a run with these values on axes plays a flow of this name. `all` stands for what it plays.
pub fn plays(axes: &Map<String, Value>, name: &str) -> bool {
    axes.get(PLAYING).is_none_or(|playing| playing == ALL || playing == name || name == ALL)
}

/// True if these values on axes stand for a whole run: all its flows together, or the only one.
pub fn is_whole(axes: &Map<String, Value>) -> bool {
    axes.get(FLOW).is_none_or(|flow| flow == ALL)
}

/// The most flows of a study.
pub const MOST_FLOWS: usize = 16;

/// Keys that each flow can set for itself; the others are the same for all flows of a run.
pub const OWN_KEYS: [&str; 31] = [
    "pattern",
    "publishers",
    "subscribers",
    "pairs",
    "tree_devices",
    "tree_parameters",
    "rate",
    "trace",
    "trace_speed",
    "trace_flow",
    "arrival",
    "start",
    "end",
    "subscribers_start",
    "consume",
    "outstanding",
    "timeout",
    "churn",
    "last_will",
    "payload",
    "payload_content",
    "payload_file",
    "payload_template",
    "headers",
    "topics",
    "topic_choice",
    "subscriptions",
    "qos",
    "durable",
    "verify",
    "late_after",
];

/// Splits a place like `flows.alarms.rate` into the flow and what is of it.
pub(crate) fn split_place(place: &str) -> Option<(&str, &str)> {
    place.strip_prefix("flows.")?.split_once('.')
}

/// Splits a name like `p99(alarms)` into the figure and the flow, if it names one.
pub fn split_name(name: &str) -> (&str, Option<&str>) {
    match name.trim_end().strip_suffix(')').and_then(|name| name.split_once('(')) {
        Some((figure, flow)) => (figure.trim(), Some(flow.trim())),
        None => (name, None),
    }
}

/// Returns the flow and the key of an axis like `flows.alarms.rate`.
pub(crate) fn key_of_flow(axis: &str) -> Option<(&str, &'static Key)> {
    let (flow, name) = split_place(axis)?;
    OWN_KEYS.contains(&name).then(|| key(name)).flatten().map(|key| (flow, key))
}

/// Keys of the number of clients: a flow that sets one of them, or its pattern, has none of the study's.
const CLIENT_KEYS: [&str; 3] = ["publishers", "subscribers", "pairs"];

/// A flow of a study: `[flows.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFlow {
    /// Its name.
    pub name: String,
    /// Keys that it sets; it has the others from `[workload]`.
    pub settings: Settings,
}

impl StudyFlow {
    /// Creates a flow that sets nothing.
    pub fn new(name: &str) -> StudyFlow {
        StudyFlow { name: name.to_owned(), settings: Settings::default() }
    }

    /// Returns the flow of these settings of a cell.
    pub(crate) fn resolve(&self, shared: &Settings, files: WorkloadFiles<'_>) -> Result<Flow, WorkloadErrors> {
        let mut shared = shared.clone();
        if ["pattern"].iter().chain(&CLIENT_KEYS).any(|name| self.settings.get(name).is_some()) {
            CLIENT_KEYS.iter().filter_map(|name| key(name)).for_each(|key| drop(key.take(&mut shared)));
        }
        // What says when messages are due replaces what the study says.
        if self.settings.trace.is_some() {
            (shared.rate, shared.arrival) = (None, None);
        } else if self.settings.rate.is_some() {
            (shared.trace, shared.trace_speed, shared.trace_flow) = (None, None, None);
        }
        // So does what says which messages there are.
        if ["payload_file", "payload_template"].iter().any(|name| self.settings.get(name).is_some()) {
            (shared.payload, shared.payload_content) = (None, None);
            (shared.payload_file, shared.payload_template) = (None, None);
        } else if self.settings.payload.is_some() || self.settings.payload_content.is_some() {
            (shared.payload_file, shared.payload_template) = (None, None);
        }
        let workload = Workload::resolve_with(&shared.overridden_by(self.settings.clone()), files)?;
        Ok(Flow { name: self.name.clone(), workload })
    }

    /// Sets a key from its text.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        self.settings.set(name, text)
    }
}

/// Returns why a text is not the name of a flow, if it is not.
pub fn why_no_name(name: &str) -> Option<String> {
    let is_word = |name: &str| {
        let mut chars = name.chars();
        chars.next().is_some_and(|first| first.is_ascii_lowercase())
            && chars.all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-' || char == '_')
    };
    match name {
        ALL => Some("`all` stands for all flows together: give the flow another name".into()),
        _ if !is_word(name) || name.len() > 32 => {
            Some(format!("`{name}` is not a name of a flow: write at most 32 of a-z, 0-9, `-` and `_`, a letter first"))
        }
        _ => None,
    }
}

/// Returns what all flows of a run are together: the clients of all, with the pattern and the messages of the first.
pub(crate) fn whole(flows: &[Flow]) -> Option<Workload> {
    let (first, others) = flows.split_first()?;
    let mut whole = first.workload.clone();
    for Flow { workload, .. } in others {
        whole.publishers = whole.publishers.saturating_add(workload.publishers);
        whole.subscribers = whole.subscribers.saturating_add(workload.subscribers);
        whole.qos = whole.qos.max(workload.qos);
        whole.durable |= workload.durable;
        whole.late_after_ns = whole.late_after_ns.max(workload.late_after_ns);
        if workload.verify == Verify::Header {
            whole.verify = Verify::Header;
        }
    }
    Some(whole)
}

impl Cell {
    /// Returns the flows of a run: at least one.
    pub fn flows(&self) -> Vec<Flow> {
        if self.flows.is_empty() {
            return vec![Flow::alone(self.workload.clone())];
        }
        let shared = &self.workload;
        let flow = |(index, flow): (usize, &Flow)| Flow {
            name: flow.name.clone(),
            workload: Workload {
                pattern: flow.workload.pattern,
                publishers: flow.workload.publishers,
                subscribers: flow.workload.subscribers,
                tree_devices: flow.workload.tree_devices,
                tree_parameters: flow.workload.tree_parameters,
                rate: flow.workload.rate.clone(),
                arrival: flow.workload.arrival,
                span: flow.workload.span,
                subscribers_start_ns: flow.workload.subscribers_start_ns,
                consume: flow.workload.consume.clone(),
                outstanding: flow.workload.outstanding,
                timeout_ns: flow.workload.timeout_ns,
                churn: flow.workload.churn.clone(),
                last_will: flow.workload.last_will,
                payload_bytes: flow.workload.payload_bytes,
                payload_sizes: flow.workload.payload_sizes.clone(),
                payload_content: flow.workload.payload_content,
                payload_bodies: flow.workload.payload_bodies.clone(),
                headers: flow.workload.headers.clone(),
                topics: flow.workload.topics.clone(),
                qos: flow.workload.qos,
                durable: flow.workload.durable,
                verify: flow.workload.verify,
                late_after_ns: flow.workload.late_after_ns,
                // Each draws its own gaps.
                seed: shared.seed ^ (index as u64).rotate_right(8),
                ..shared.clone()
            },
        };
        self.flows.iter().enumerate().map(flow).collect()
    }
}
