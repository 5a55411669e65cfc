//! What `pubmark calibrate` measured of this machine and this generator: the
//! file that it leaves, and what that file and a run's own processor time say
//! of a generator at its end.

use crate::{install, machine, verdict};
use pubmark_model::record::{AgentShare, MachineLoad, RunRecord};
use pubmark_model::units::Ns;
use pubmark_model::workload::{Pacing, Rate};
use pubmark_stats::{Summary, median};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The version of the file's layout.
pub const SCHEMA: u32 = 1;
/// A run whose own lag is below this share of its bound proves by itself that
/// its rate can be offered, whatever a calibration found on another day.
const IN_TIME: f64 = 0.1;
/// An event loop that computes for this share of the window keeps no schedule.
const BUSY: f64 = 0.97;

/// Which machine and which program a calibration is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Model of the processor, as the kernel names it.
    pub processor: Option<String>,
    /// Processors of the machine.
    pub cores: u32,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Version of pubmark.
    pub pubmark: String,
}

impl Identity {
    /// Of this machine and this program.
    pub fn here() -> Identity {
        Identity {
            processor: machine::processor(),
            cores: machine::cores(),
            kernel: machine::line("/proc/sys/kernel/osrelease"),
            pubmark: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// A figure of pubmark's own agents and of a bare loop that does the same,
/// measured in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Of the agents, by run.
    pub ours: Vec<f64>,
    /// Of the bare loop, by run.
    pub bare: Vec<f64>,
    /// Median of `ours`.
    pub ours_median: f64,
    /// Median of `bare`.
    pub bare_median: f64,
    /// Median of the ratios, ours over bare, of the pairs: what a machine does
    /// slowly to both of them is in none of these.
    pub ratio: f64,
}

impl Compared {
    /// Compares what was measured in pairs; a median of nothing is 0, and so
    /// is a ratio to it.
    pub fn of(ours: Vec<f64>, bare: Vec<f64>) -> Compared {
        let (ours_median, bare_median) = (median(&ours).unwrap_or_default(), median(&bare).unwrap_or_default());
        let pairs = ours.iter().zip(&bare).filter(|(_, bare)| **bare > 0.0);
        let ratio = median(&pairs.map(|(ours, bare)| ours / bare).collect::<Vec<_>>()).unwrap_or_default();
        Compared { ours, bare, ours_median, bare_median, ratio }
    }
}

/// What a message costs through a relay, at a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Publishers, and subscribers, each with a connection.
    pub connections: u32,
    /// Messages a second of all publishers together.
    pub rate_per_s: f64,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Least time between two wake-ups of a sender, ns.
    pub quantum_ns: Ns,
    /// CPU seconds, user and system, for a million messages sent.
    pub send_cpu_s_per_million: Compared,
    /// CPU seconds for a million messages received.
    pub receive_cpu_s_per_million: Compared,
    /// How late the agents sent, ns.
    pub ours_lag_ns: Option<Summary>,
    /// How late the bare loop sent, ns.
    pub bare_lag_ns: Option<Summary>,
}

/// How much one sender pushes into the sink, unthrottled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unthrottled {
    /// Publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Whether sender and sink each had a processor of its own.
    pub pinned: bool,
    /// Messages a second.
    pub messages_per_s: Compared,
    /// Bytes of payload a second.
    pub bytes_per_s: Compared,
}

/// How late a sleeper wakes up, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wake {
    /// Of clock_nanosleep to an instant, timer slack 1 ns.
    pub nanosleep_ns: Option<Summary>,
    /// Of ppoll with a timeout, timer slack 1 ns.
    pub ppoll_ns: Option<Summary>,
    /// From a write to a loopback socket until its sleeping reader has it.
    pub reader_ns: Option<Summary>,
}

/// What idle connections cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// Connections that were wanted.
    pub wanted: u64,
    /// Connections that stood at the end.
    pub opened: u64,
    /// Agents that they were dealt out to.
    pub agents: u32,
    /// From the first attempt until the last was accepted, s.
    pub ramp_s: f64,
    /// Connections a second.
    pub per_s: f64,
    /// User memory of all agents, bytes: the medians of their unique set sizes.
    pub user_bytes: u64,
}

/// The most that one agent offers in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Most {
    /// Publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Event loops of the agent.
    pub shards: u32,
    /// The generator's own p99 lag that counts as too late, ns.
    pub bound_ns: Ns,
    /// The highest rate that was kept, messages a second; 0 if none was.
    pub per_s: f64,
    /// The lowest rate that was not, if the search met one.
    pub missed_per_s: Option<f64>,
    /// Each attempt.
    pub attempts: Vec<Attempt>,
}

/// One rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Asked for, messages a second.
    pub asked_per_s: f64,
    /// Sent.
    pub sent_per_s: f64,
    /// The generator's own lag, 99th percentile, ns; none if nothing was sent.
    pub own_lag_p99_ns: Option<Ns>,
    /// Whether the rate was kept.
    pub kept: bool,
}

/// Everything that `pubmark calibrate` measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of this layout.
    pub schema: u32,
    /// Which machine and program.
    pub machine: Identity,
    /// When, UTC (RFC 3339).
    pub time: String,
    /// Whether it was cut down.
    pub quick: bool,
    /// What others did on the machine while it only waited for wake-ups.
    pub load: MachineLoad,
    /// What was between senders and receivers.
    pub relay: String,
    /// Cost of a message, by rate.
    pub cost: Vec<Cost>,
    /// Unthrottled senders, by size.
    pub unthrottled: Vec<Unthrottled>,
    /// Wake-ups.
    pub wake: Wake,
    /// Idle connections, from few to many.
    pub connections: Vec<Connected>,
    /// User memory that one more idle connection takes, bytes: the slope
    /// between the first two of `connections`.
    pub bytes_per_connection: f64,
    /// The most that can be offered.
    pub most: Most,
    /// What else is to be known.
    pub remarks: Vec<String>,
}

impl Calibration {
    /// Whether others left the machine alone, by the measure of a run's verdict.
    pub fn quiet(&self) -> bool {
        verdict::disturbed(&self.load).is_none()
    }

    /// Writes it where later runs look for it; the path.
    pub fn save(&self) -> std::io::Result<PathBuf> {
        let path = path();
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&fresh, serde_json::to_string_pretty(self)? + "\n")?;
        std::fs::rename(&fresh, &path)?;
        Ok(path)
    }
}

/// Where the calibration is kept: `$XDG_CACHE_HOME/pubmark/calibration.json`,
/// by default below `~/.cache`.
pub fn path() -> PathBuf {
    install::cache_base().join("calibration.json")
}

/// The calibration of this machine, if there is one; why a file that is there
/// cannot be read. Read once in the life of the process.
fn loaded() -> &'static Result<Option<Calibration>, String> {
    static LOADED: OnceLock<Result<Option<Calibration>, String>> = OnceLock::new();
    LOADED.get_or_init(|| read(&path(), &Identity::here()))
}

/// A calibration of another machine, kernel or version is none.
fn read(path: &Path, here: &Identity) -> Result<Option<Calibration>, String> {
    let cannot = |error: String| format!("the calibration {} cannot be read ({error}): make it again", path.display());
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error.to_string())),
    };
    let value: Value = serde_json::from_slice(&text).map_err(|error| cannot(error.to_string()))?;
    let theirs = value.get("machine").and_then(|machine| Identity::deserialize(machine).ok());
    if value.get("schema") != Some(&json!(SCHEMA)) || theirs.as_ref() != Some(here) {
        let whole = value.get("schema").is_some_and(Value::is_u64) && theirs.is_some();
        return if whole { Ok(None) } else { Err(cannot("it is no calibration".into())) };
    }
    serde_json::from_value(value).map(Some).map_err(|error| cannot(error.to_string()))
}

/// The calibration of this machine, if there is one that can be read.
pub fn of_this_machine() -> Option<&'static Calibration> {
    loaded().as_ref().ok()?.as_ref()
}

/// Why the calibration that is there says nothing.
pub fn remark() -> Option<String> {
    loaded().as_ref().err().cloned()
}

/// Why the generator was at its end, from its processor time and from what the
/// calibration found that it can do. Only what is sent by a schedule to a
/// broker is judged: a thread that watches the clock is busy by design, and
/// what a library's threads do is the library's.
pub fn saturated(record: &RunRecord) -> Option<String> {
    // What a disturbed machine could not do, an undisturbed one may.
    let most = || of_this_machine().filter(|calibration| calibration.quiet()).map(|calibration| &calibration.most);
    busy(record).or_else(|| beyond(record, most()?))
}

fn shards(record: &RunRecord) -> f64 {
    record.applied.get("shards").and_then(Value::as_u64).unwrap_or(1).max(1) as f64
}

fn publishes(agent: &AgentShare) -> bool {
    agent.name.starts_with("publishers")
}

fn busy(record: &RunRecord) -> Option<String> {
    record.connections.as_ref()?;
    let shards = shards(record);
    let spins = |agent: &AgentShare| publishes(agent) && record.workload.pacing == Pacing::Spin;
    let busiest = record
        .agents
        .iter()
        .filter(|agent| !spins(agent))
        .max_by(|a, b| a.usage.cpu_cores.total_cmp(&b.usage.cpu_cores))?;
    (busiest.usage.cpu_cores >= BUSY * shards).then(|| {
        format!(
            "the agent {} computed for {:.0} % of the window on each of its {shards} event loops: it had no time left",
            busiest.name,
            busiest.usage.cpu_cores / shards * 100.0
        )
    })
}

/// A rate beyond what was calibrated, of messages that cost no less: QoS 0 is
/// the cheapest quality, the smallest message the cheapest message.
fn beyond(record: &RunRecord, most: &Most) -> Option<String> {
    record.connections.as_ref()?;
    let workload = &record.workload;
    let Rate::PerKilosecond(rate) = workload.rate else { return None };
    let comparable = workload.pacing == Pacing::Sleep && workload.payload_bytes >= most.payload_bytes;
    let limit = most.per_s / f64::from(most.shards.max(1)) * shards(record);
    if !comparable || limit <= 0.0 || most.missed_per_s.is_none() {
        return None;
    }
    let in_time = IN_TIME * workload.max_send_lag_ns as f64;
    if record.own_lag_ns.as_ref().is_some_and(|own| own.p99 as f64 <= in_time) {
        return None;
    }
    let agents = record.agents.iter().filter(|agent| publishes(agent)).count().max(1);
    let asked = rate as f64 / 1e3 * f64::from(workload.publishers) / agents as f64;
    (asked > limit).then(|| {
        format!(
            "an agent was asked for {asked:.0} messages/s, and `pubmark calibrate` found {limit:.0}/s to be the most that one offers in time on this machine"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::blank;
    use crate::run::Place;
    use pubmark_model::cell::{Cell, Limits};
    use pubmark_model::record::{ConnectionFigures, Usage};
    use pubmark_model::setting::{Settings, key, with_defaults};
    use pubmark_model::workload::Workload;

    fn record(rate: &str, agents: &[(&str, f64)]) -> RunRecord {
        let mut settings = Settings::new();
        for (name, value) in [("pairs", "1000"), ("rate", rate)] {
            settings.insert(name.into(), key(name).unwrap().read(value).unwrap());
        }
        let cell = Cell {
            axes: serde_json::Map::new(),
            system: "mqtt".into(),
            workload: Workload::resolve(&with_defaults(settings)).unwrap(),
            limits: Limits::default(),
            faults: Default::default(),
            link: None,
            options: pubmark_model::options::Options::new(),
            skipped: None,
        };
        let mut record = blank(&cell, Place { repeat: 1, position: 0 }, String::new());
        record.connections = Some(ConnectionFigures::default());
        record.agents = agents
            .iter()
            .map(|(name, cores)| AgentShare {
                name: (*name).into(),
                usage: Usage { cpu_cores: *cores, ..Usage::default() },
                ..AgentShare::default()
            })
            .collect();
        record
    }

    fn most(per_s: f64) -> Most {
        Most { per_s, missed_per_s: Some(per_s * 1.1), payload_bytes: 64, shards: 1, ..Most::default() }
    }

    #[test]
    fn an_agent_that_is_asked_for_more_than_the_most_is_saturated_and_both_figures_are_said() {
        let two = [("subscribers", 0.1), ("publishers-1", 0.1), ("publishers-2", 0.1)];
        let evidence = beyond(&record("300", &two), &most(100_000.0)).unwrap();
        assert!(evidence.contains("150000") && evidence.contains("100000"), "{evidence}");
        assert_eq!(beyond(&record("200", &two), &most(100_000.0)), None, "exactly the most is no more than it");
        assert_eq!(beyond(&record("max", &two), &most(100_000.0)), None);
        let unbounded = Most { missed_per_s: None, ..most(1.0) };
        assert_eq!(beyond(&record("300", &two), &unbounded), None, "a search that met no end found no most");
        let mut wider = record("300", &two);
        wider.applied.insert("shards".into(), 2.into());
        assert_eq!(beyond(&wider, &most(100_000.0)), None, "two event loops offer twice as much");
        let mut in_time = record("300", &two);
        let mut lag = pubmark_stats::Histogram::latency();
        lag.record(90_000);
        in_time.own_lag_ns = lag.summary();
        assert_eq!(beyond(&in_time, &most(100_000.0)), None, "the run itself shows that it can be done");
        lag.record(500_000);
        in_time.own_lag_ns = lag.summary();
        assert!(beyond(&in_time, &most(100_000.0)).is_some(), "half the bound is no such proof");
        let mut library = record("300", &two);
        library.connections = None;
        assert_eq!(beyond(&library, &most(1.0)), None);
    }

    #[test]
    fn an_agent_without_a_moment_left_is_saturated_unless_it_spins() {
        let evidence = busy(&record("1", &[("subscribers", 0.2), ("publishers", 0.99)])).unwrap();
        assert!(evidence.contains("publishers") && evidence.contains("99 %"), "{evidence}");
        assert_eq!(busy(&record("1", &[("subscribers", 0.2), ("publishers", 0.9)])), None);
        let mut spinning = record("1", &[("subscribers", 0.2), ("publishers", 0.99)]);
        spinning.workload.pacing = Pacing::Spin;
        assert_eq!(busy(&spinning), None);
    }

    #[test]
    fn a_ratio_is_of_pairs() {
        // The machine doubles its pace from the first pair to the last.
        let compared = Compared::of(vec![9.0, 11.0, 18.0], vec![10.0, 12.0, 20.0]);
        assert_eq!((compared.ours_median, compared.bare_median, compared.ratio), (11.0, 12.0, 0.9));
        assert_eq!(Compared::of(vec![1.0], vec![0.0]).ratio, 0.0);
        assert_eq!(Compared::of(vec![], vec![]), Compared::default());
    }

    #[test]
    fn only_a_calibration_of_this_machine_and_version_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        let here = Identity { cores: 2, kernel: Some("6".into()), pubmark: "1".into(), ..Identity::default() };
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path, &here), Ok(None), "none is there");
        let mine = Calibration { schema: SCHEMA, machine: here.clone(), ..Calibration::default() };
        write(&serde_json::to_string(&mine).unwrap());
        assert_eq!(read(&path, &here), Ok(Some(mine.clone())));
        for other in [
            Identity { cores: 3, ..here.clone() },
            Identity { kernel: None, ..here.clone() },
            Identity { pubmark: "2".into(), ..here.clone() },
        ] {
            assert_eq!(read(&path, &other), Ok(None), "{other:?}");
        }
        write(&serde_json::to_string(&Calibration { schema: SCHEMA + 1, ..mine }).unwrap());
        assert_eq!(read(&path, &here), Ok(None), "an older or newer layout is none");
        for broken in ["", "{}", "{\"schema\": 1", "[1]"] {
            write(broken);
            let error = read(&path, &here).unwrap_err();
            assert!(error.contains("calibration.json"), "{error}");
        }
    }

    #[test]
    fn a_machine_that_others_use_is_not_quiet() {
        let with = |steal, foreign_cores| Calibration {
            load: MachineLoad { steal, foreign_cores, cores: 2, ..MachineLoad::default() },
            ..Calibration::default()
        };
        assert!(with(0.01, 0.19).quiet());
        assert!(!with(0.03, 0.0).quiet());
        assert!(!with(0.0, 0.21).quiet());
    }

    #[test]
    fn a_ratio_is_of_the_medians() {
        let compared = Compared::of(vec![4.0, 2.0, 9.0], vec![1.0, 2.0]);
        assert_eq!((compared.ours_median, compared.bare_median), (4.0, 1.5));
        assert!((compared.ratio - 4.0 / 1.5).abs() < 1e-12);
        assert_eq!(Compared::of(vec![1.0], Vec::new()).ratio, 0.0);
    }
}
