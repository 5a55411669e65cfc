//! Event loops at their limit. Each agent is judged by its own loops, whatever number another agent has.

use super::bounds::{BUSY, IN_TIME};
use super::finding::FigureFinding;
use super::machine::quiet;
use crate::calibration::{Calibration, HighestRate};
use pubmark_model::record::{AgentShare, FigureGroup, RunRecord};
use pubmark_model::workload::{Pacing, Rate, Receive};

/// Returns whether an agent has clients that send by the schedule.
pub fn sends(agent: &AgentShare) -> bool {
    agent.roles.iter().any(|role| role.sends())
}

/// Returns whether an agent has clients that receive.
pub fn receives(agent: &AgentShare) -> bool {
    agent.roles.iter().any(|role| !role.sends())
}

/// An agent whose loops had no time left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BusyAgent<'a> {
    agent: &'a AgentShare,
    /// Processor time of each of its loops over the window, 0 to slightly above 1.
    share: f64,
}

impl BusyAgent<'_> {
    /// Describes the agent and its load.
    pub fn words(&self) -> String {
        let AgentShare { name, loops, .. } = self.agent;
        let each = match loops {
            1 => "in its event loop".to_owned(),
            loops => format!("in each of its {loops} event loops"),
        };
        format!("the agent `{name}` computed for {:.0} % of the window {each}", self.share * 100.0)
    }
}

/// Returns the agents whose event loops were at their limit. Judges only clients of a broker, because a library's
/// threads belong to the library; only agents that report their number of loops; and none that is busy waiting, because
/// its work cannot be separated from that.
pub fn at_limit(record: &RunRecord) -> Vec<BusyAgent<'_>> {
    if record.connections.is_none() {
        return Vec::new();
    }
    let unlimited = record.workload.rate == Rate::Max;
    let waits_awake = |agent: &AgentShare| {
        sends(agent) && record.workload.pacing == Pacing::Spin && !unlimited
            || receives(agent) && record.workload.receive == Receive::Spin
    };
    // Busy waiting of all publishers, divided evenly among their agents.
    let senders = record.agents.iter().filter(|agent| sends(agent)).count().max(1) as f64;
    let awake_cores = record.pacing.map_or(0.0, |pacing| pacing.spent_cores) / senders;
    let busy = |agent: &&AgentShare| agent.loops > 0 && !waits_awake(agent);
    let share = |agent| {
        let waited = if sends(agent) { awake_cores } else { 0.0 };
        BusyAgent { agent, share: (agent.usage.cpu_cores - waited) / f64::from(agent.loops) }
    };
    record.agents.iter().filter(busy).map(share).filter(|busy| busy.share >= BUSY).collect()
}

/// Returns why the generator was at its limit, from its processor time and from the calibration of this machine.
pub fn saturated(record: &RunRecord, calibration: Option<&Calibration>) -> Option<FigureFinding> {
    // A calibration on a disturbed machine does not show what an undisturbed one can do.
    let most = || calibration.filter(|calibration| quiet(&calibration.load)).map(|calibration| &calibration.most);
    let busiest = at_limit(record).into_iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let found = |evidence: String| FigureFinding::of(FigureGroup::LATENCY, evidence);
    let busy = busiest.map(|busy| format!("{}: it had no time left", busy.words()));
    busy.or_else(|| beyond(record, most()?)).map(found)
}

/// Describes a rate beyond the calibrated one, of messages that cost no less: QoS 0 is the cheapest quality, the
/// smallest message the cheapest message. Judges only scheduled sends to a broker, by loops that sleep.
fn beyond(record: &RunRecord, most: &HighestRate) -> Option<String> {
    record.connections.as_ref()?;
    let workload = &record.workload;
    let profile = workload.rate.profile()?;
    let comparable = workload.pacing != Pacing::Spin && workload.least_payload_bytes() >= most.payload_bytes;
    let senders: Vec<&AgentShare> = record.agents.iter().filter(|agent| sends(agent)).collect();
    // Publishers are assigned evenly: the agent with the fewest loops has most to do.
    let loops = senders.iter().map(|agent| agent.loops.max(1)).min().unwrap_or(1);
    let limit = most.per_s / f64::from(most.shards.max(1)) * f64::from(loops);
    if !comparable || limit <= 0.0 || most.missed_per_s.is_none() {
        return None;
    }
    let in_time = IN_TIME * workload.max_send_lag_ns as f64;
    if record.times.own_lag.as_ref().is_some_and(|own| own.p99 as f64 <= in_time) {
        return None;
    }
    let asked = profile.fastest_per_s() * f64::from(workload.publishers) / senders.len().max(1) as f64;
    (asked > limit).then(|| {
        format!(
            "an agent was asked for {asked:.0} messages/s, and `pubmark calibrate` found {limit:.0}/s to be the most that one offers in time on this machine"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::empty_record::blank;
    use pubmark_model::cell::{Cell, Limits};
    use pubmark_model::plan::Place;
    use pubmark_model::protocol::{PacingFigures, Role};
    use pubmark_model::record::{ConnectionFigures, Usage};
    use pubmark_model::workload::Workload;

    /// Returns a record of agents, each given as: sends, number of loops, processors used.
    fn record(rate: &str, agents: &[(bool, u32, f64)]) -> RunRecord {
        let cell = Cell {
            axes: serde_json::Map::new(),
            system: pubmark_model::system::System::unknown("mqtt"),
            workload: Workload::of([("pairs", "1000"), ("rate", rate)]).unwrap(),
            flows: Vec::new(),
            limits: Limits::default(),
            faults: Default::default(),
            power: pubmark_model::power::Power::Disk,
            link: None,
            placement: Default::default(),
            watch: None,
            settings: Default::default(),
            options: pubmark_model::options::Options::new(),
            set_options: Vec::new(),
            skipped: None,
        };
        let mut record = blank(&cell, None, Place { repeat: 1, position: 0 }, String::new());
        record.connections = Some(ConnectionFigures::default());
        let share = |(index, (sends, loops, cores)): (usize, &(bool, u32, f64))| AgentShare {
            // The roles decide, not the name.
            name: format!("agent-{index}"),
            roles: vec![if *sends { Role::Publisher } else { Role::Subscriber }],
            loops: *loops,
            usage: Usage { cpu_cores: *cores, ..Usage::default() },
            ..AgentShare::default()
        };
        record.agents = agents.iter().enumerate().map(share).collect();
        record
    }

    fn most(per_s: f64) -> HighestRate {
        HighestRate { per_s, missed_per_s: Some(per_s * 1.1), payload_bytes: 64, shards: 1, ..HighestRate::default() }
    }

    const TWO: [(bool, u32, f64); 3] = [(false, 1, 0.1), (true, 1, 0.1), (true, 1, 0.1)];

    #[test]
    fn an_agent_that_is_asked_for_more_than_the_most_is_saturated_and_both_figures_are_said() {
        let evidence = beyond(&record("300", &TWO), &most(100_000.0)).unwrap();
        assert!(evidence.contains("150000") && evidence.contains("100000"), "{evidence}");
        assert_eq!(beyond(&record("200", &TWO), &most(100_000.0)), None, "exactly the most is no more than it");
        assert_eq!(beyond(&record("max", &TWO), &most(100_000.0)), None);
        let unbounded = HighestRate { missed_per_s: None, ..most(1.0) };
        assert_eq!(beyond(&record("300", &TWO), &unbounded), None, "a search that met no end found no most");
        let mut wider = record("300", &TWO);
        wider.agents[0].loops = 2;
        assert!(beyond(&wider, &most(100_000.0)).is_some(), "the loops of subscribers offer nothing");
        wider.agents[1].loops = 2;
        assert!(beyond(&wider, &most(100_000.0)).is_some(), "the other publishers have one loop");
        wider.agents[2].loops = 2;
        assert_eq!(beyond(&wider, &most(100_000.0)), None, "two event loops offer twice as much");
        let mut in_time = record("300", &TWO);
        let mut lag = pubmark_stats::Histogram::latency();
        lag.record(90_000);
        in_time.times.own_lag = lag.summary();
        assert_eq!(beyond(&in_time, &most(100_000.0)), None, "the run itself shows that it can be done");
        lag.record(500_000);
        in_time.times.own_lag = lag.summary();
        assert!(beyond(&in_time, &most(100_000.0)).is_some(), "half the bound is no such proof");
        let mut library = record("300", &TWO);
        library.connections = None;
        assert_eq!(beyond(&library, &most(1.0)), None);
    }

    fn limited(record: &RunRecord) -> Vec<String> {
        at_limit(record).iter().map(BusyAgent::words).collect()
    }

    #[test]
    fn an_agent_without_a_moment_left_is_saturated_unless_it_spins() {
        let found = limited(&record("1", &[(false, 1, 0.2), (true, 1, 0.99)]));
        assert_eq!(found, ["the agent `agent-1` computed for 99 % of the window in its event loop"]);
        assert_eq!(limited(&record("1", &[(false, 1, 0.2), (true, 1, 0.9)])), [""; 0]);
        let mut spinning = record("1", &[(false, 1, 0.99), (true, 1, 0.99)]);
        spinning.workload.pacing = Pacing::Spin;
        assert_eq!(limited(&spinning).len(), 1, "publishers that spin are busy by design, subscribers are not");
        spinning.workload.receive = Receive::Spin;
        assert_eq!(limited(&spinning), [""; 0]);
        let mut hybrid = record("1", &[(false, 1, 0.2), (true, 1, 0.99)]);
        hybrid.pacing = Some(PacingFigures { spent_cores: 0.2, ..PacingFigures::default() });
        assert_eq!(limited(&hybrid), [""; 0], "a fifth of it was waiting awake");
    }

    #[test]
    fn each_agent_is_judged_by_its_own_loops() {
        // One of eight processors in eight loops is little; a whole one in a single loop is the limit.
        assert_eq!(limited(&record("1", &[(false, 8, 1.0), (true, 1, 0.2)])), [""; 0]);
        let found = limited(&record("1", &[(false, 1, 1.0), (true, 8, 2.0)]));
        assert_eq!(found, ["the agent `agent-0` computed for 100 % of the window in its event loop"]);
        let found = limited(&record("1", &[(false, 8, 7.9), (true, 1, 0.2)]));
        assert_eq!(found, ["the agent `agent-0` computed for 99 % of the window in each of its 8 event loops"]);
        assert_eq!(limited(&record("1", &[(false, 0, 1.0)])), [""; 0], "it does not say how many it has");
    }
}
