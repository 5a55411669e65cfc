//! Who an agent is, and what it can play.

use crate::rows;
use crate::units::Ns;
use crate::workload::{Arrival, Pacing, Rate, Verify, Workload};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Who the agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentHello {
    /// The protocol version that it speaks.
    pub protocol: u32,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The drivers that it has.
    pub drivers: Vec<String>,
    /// Its CLOCK_MONOTONIC now, ns.
    pub clock_ns: Ns,
    /// The versions of its runtime and of the libraries that it knows of before
    /// a driver is opened, by name.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// By driver, the options that it knows. Of a driver that is not here it
    /// does not say: whatever there is may be given to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    /// What it can play.
    #[serde(default)]
    pub features: Features,
}

/// What an agent can play, in the words of a workload. What it leaves out is
/// the least that an agent can do: what a run needs where nothing else is asked
/// for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    /// Patterns. Least: `pairs`, `fan-out`, `fan-in`.
    pub patterns: Vec<String>,
    /// Transports of libraries. Least: `tcp`.
    pub transports: Vec<String>,
    /// Arrivals: `uniform`, `poisson`, `burst`. Least: `uniform`.
    pub arrivals: Vec<String>,
    /// How much of a message it can check. Least: `header`, `full`.
    pub verification: Vec<String>,
    /// How its publishers can wait. Least: `sleep` and `hybrid`, which asks no
    /// more than to keep within a budget, and may spend nothing of it.
    pub pacing: Vec<String>,
    /// Rates: `constant`, and `max`, as fast as the system takes it. Least: `constant`.
    pub profiles: Vec<String>,
    /// What it can do about faults: `reconnect`, clients of a broker come back
    /// with their session. Least: nothing.
    pub faults: Vec<String>,
    /// Most flows that it plays at once. Least: 1.
    pub flows: u32,
    /// Whether it notices when it did not run. Least: no.
    pub pauses: bool,
    /// Whether its clients can lose their connections at once and stay away,
    /// while it keeps the books. Least: no.
    pub crash: bool,
    /// Whether it adds `clock_offset_ns` to the instants that it writes into messages, and
    /// takes it from those that it reads. Least: no.
    pub clock_offset: bool,
    /// Whether its messages carry the checksum of their header, and it looks at those of
    /// others. Least: no.
    pub header_checksum: bool,
    /// Whether the end markers of publishers, or the deadline, end its drain, and not the
    /// number of messages that have come. Least: no.
    pub drains_by_markers: bool,
    /// Whether its topics of the pattern `tree` follow `tree_devices` and `tree_parameters`.
    /// Least: no, 100 and 10.
    pub tree_sizes: bool,
    /// The most that the rows of an agent may take that leaves its figures to pubmark, bytes.
    /// None where it keeps them itself.
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
            row_bytes: None,
        }
    }
}

/// So many messages a second, always.
pub const CONSTANT: &str = "constant";
/// As fast as the system takes them.
pub const MAX: &str = "max";
/// Clients of a broker whose connection ends come back.
pub const RECONNECT: &str = "reconnect";
/// Other sizes of a tree than the usual ones.
const TREE_SIZES: &str = "tree_sizes";
/// Clients that are killed, and leave their books.
const CRASH: &str = "crash";
/// What [`RECONNECT`] and [`CRASH`] are needed for.
const FAULTS: &str = "what a run with faults needs,";

/// What a workload needs and an agent has not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot play {what} `{wanted}`; it has: {}", if has.is_empty() { "none".to_owned() } else { has.join(", ") })]
pub struct Lack {
    /// Of which kind.
    pub what: &'static str,
    /// What is needed.
    pub wanted: String,
    /// What there is.
    pub has: Vec<String>,
}

/// The word of an arrival, whatever its number.
fn arrival(arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Uniform => "uniform",
        Arrival::Poisson => "poisson",
        Arrival::Burst(_) => "burst",
    }
}

impl Features {
    /// What the flows of a run need that is not here: the first of it.
    pub fn lack(&self, flows: &[&Workload]) -> Option<Lack> {
        let too_many = flows.len() as u64 > u64::from(self.flows);
        let (wanted, has) = (flows.len().to_string(), vec![self.flows.to_string()]);
        let lack = too_many.then_some(Lack { what: "so many flows:", wanted, has });
        let lack = lack.or_else(|| flows.iter().find_map(|workload| self.lack_of_one(workload)));
        lack.or_else(|| flows.iter().find_map(|workload| self.lack_of_room(workload)))
    }

    /// What an agent needs whose clients are killed, where that is not here.
    pub fn lack_of_crash(&self) -> Option<Lack> {
        (!self.crash).then(|| Lack { what: FAULTS, wanted: CRASH.to_owned(), has: self.faults.clone() })
    }

    /// The rows of a run, where there is no room for them.
    fn lack_of_room(&self, workload: &Workload) -> Option<Lack> {
        let most = self.row_bytes?;
        let bytes = rows::bytes(workload);
        let (what, has) = ("a run whose rows take", vec![format!("{} MiB", most >> 20)]);
        (bytes > most).then(|| Lack { what, wanted: format!("{} MiB", bytes.div_ceil(1 << 20)), has })
    }

    fn lack_of_one(&self, workload: &Workload) -> Option<Lack> {
        let rate = if workload.rate == Rate::Max { MAX } else { CONSTANT };
        let transport = workload.transport.map(|transport| transport.word());
        let tree_sizes = if self.tree_sizes { words(&[TREE_SIZES]) } else { Vec::new() };
        let needs: [(&'static str, Option<&str>, &Vec<String>); 8] = [
            ("the pattern", Some(workload.pattern.word()), &self.patterns),
            ("the transport", transport, &self.transports),
            ("the arrival", Some(arrival(workload.arrival)), &self.arrivals),
            ("the verification", Some(workload.verify.word()), &self.verification),
            ("the pacing", Some(workload.pacing.word()), &self.pacing),
            ("the rate", Some(rate), &self.profiles),
            (FAULTS, workload.reconnect.then_some(RECONNECT), &self.faults),
            ("a tree of other sizes than 100 and 10:", workload.sizes_tree().then_some(TREE_SIZES), &tree_sizes),
        ];
        needs.into_iter().find_map(|(what, wanted, has)| {
            let wanted = wanted.filter(|wanted| !has.iter().any(|word| word == wanted))?;
            Some(Lack { what, wanted: wanted.to_owned(), has: has.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            (&[("pacing", "spin")], "the pacing", "spin"),
            (&[("rate", "max")], "the rate", "max"),
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
        let crash = least.lack_of_crash().unwrap().to_string();
        assert_eq!(crash, "cannot play what a run with faults needs, `crash`; it has: none");
        assert_eq!(Features { crash: true, ..Features::default() }.lack_of_crash(), None);
        let header = Features { verification: words(&["header"]), ..Features::default() };
        assert_eq!(header.lack(&[&workload(&[("verify", "full")])]).map(|lack| lack.what), Some("the verification"));
        let tree = least.lack(&[&workload(&[("pattern", "tree")])]).unwrap().to_string();
        let trees = Features { patterns: words(&["tree"]), ..Features::default() };
        let sized = workload(&[("pattern", "tree"), ("tree_parameters", "3")]);
        assert_eq!(trees.lack(&[&sized]).map(|lack| lack.wanted), Some("tree_sizes".to_owned()));
        assert_eq!(Features { tree_sizes: true, ..trees }.lack(&[&sized]), None);
        let two = least.lack(&[&workload(&[]), &workload(&[])]).unwrap().to_string();
        assert_eq!(two, "cannot play so many flows: `2`; it has: 1");
        assert_eq!(tree, "cannot play the pattern `tree`; it has: pairs, fan-out, fan-in");
    }
}
