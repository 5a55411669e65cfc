//! The flows of a record.

use super::{Counts, Rates, Recovery, RefusalCount, RunRecord, Series, Verdict};
use crate::flow::{ALL, FLOW};
use crate::protocol::{PacingFigures, Stalls};
use crate::times::{self, TimeFigures};
use crate::workload::Workload;
use pubmark_stats::Summary;
use serde::{Deserialize, Serialize};

/// The figures of one flow over the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its name.
    pub name: String,
    /// Its counts.
    pub counts: Counts,
    /// Its rates.
    pub rates: Rates,
    /// Its times.
    #[serde(flatten, with = "times::in_ns")]
    pub times: TimeFigures<Option<Summary>>,
    /// Mean |l_i − l_(i−1)| within one stream, ns (RFC 3393).
    pub jitter_ns: Option<f64>,
    /// What a run with a single flow has in the record itself; `None` there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<OwnFigures>>,
}

/// Further figures of one of several flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OwnFigures {
    /// Its workload.
    pub workload: Workload,
    /// Messages that the system refused, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<RefusalCount>,
    /// Waiting figures of its publishers.
    pub pacing: Option<PacingFigures>,
    /// Silences of its subscribers.
    pub stalls: Option<Stalls>,
    /// The distributions of its times, as in the record.
    pub histograms: TimeFigures<Option<String>>,
    /// Its figures by time slice.
    pub series: Series,
    /// Judgement of its figures.
    pub verdict: Verdict,
}

impl OwnFigures {
    /// Returns the figures of a flow of which nothing is measured.
    pub fn blank(workload: Workload) -> OwnFigures {
        OwnFigures {
            workload,
            refusals: Vec::new(),
            pacing: None,
            stalls: None,
            histograms: TimeFigures::none(),
            series: Series::default(),
            verdict: Verdict::default(),
        }
    }
}

impl RunRecord {
    /// Splits a run of several flows: into one record for each flow, and one for all flows together, which alone has
    /// the usage of server, generator and network. They differ on the axis `flow`. A run with one flow stays as it is.
    pub fn by_flow(mut self) -> Vec<RunRecord> {
        if self.flows.iter().all(|flow| flow.own.is_none()) {
            return vec![self];
        }
        let flows = std::mem::take(&mut self.flows);
        let without_usage =
            |record: RunRecord| RunRecord { server: None, generator: None, wire: None, usage_series: None, ..record };
        let mut all: Vec<RunRecord> =
            flows.into_iter().filter_map(|flow| self.of_flow(flow)).map(without_usage).collect();
        self.cell.insert(FLOW.into(), ALL.into());
        all.push(self);
        all
    }

    /// Returns the record of one of its several flows, with the usage of all of them.
    pub fn of_flow(&self, flow: FlowRecord) -> Option<RunRecord> {
        let FlowRecord { name, counts, rates, times, jitter_ns, own } = flow;
        let OwnFigures { workload, refusals, pacing, stalls, histograms, series, verdict } = *own?;
        let mut cell = self.cell.clone();
        let agents = self.agents.iter().filter(|agent| agent.flow == name).cloned().collect();
        cell.insert(FLOW.into(), name.into());
        let mut record = RunRecord {
            cell,
            workload,
            counts,
            refusals,
            rates,
            times,
            pacing,
            jitter_ns,
            stalls,
            histograms,
            series,
            verdict,
            agents,
            flows: Vec::new(),
            ..self.clone()
        };
        record.recovery = Recovery::of(&record);
        Some(record)
    }
}
