//! Splits the record of a run of several flows.

use super::{FlowRecord, OwnFigures, Recovery, RunRecord};
use crate::flow::{ALL, FLOW};

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

    /// Returns what is of the flow in its record: the opposite of [`RunRecord::of_flow`].
    pub fn into_flow(self, name: &str) -> FlowRecord {
        let RunRecord { histograms, series, churn, wills, verdict, .. } = self;
        let RunRecord { workload, refusals, pacing, drain_time_ns, catch_up, rebalances, stalls, .. } = self;
        let own = OwnFigures {
            workload,
            refusals,
            pacing,
            drain_time_ns,
            catch_up,
            rebalances,
            stalls,
            histograms,
            series,
            churn,
            wills,
            verdict,
        };
        let (counts, rates, times, jitter_ns) = (self.counts, self.rates, self.times, self.jitter_ns);
        FlowRecord { name: name.to_owned(), counts, rates, times, jitter_ns, own: Some(Box::new(own)) }
    }

    /// Returns the record of one of its several flows, with the usage of all of them.
    pub fn of_flow(&self, flow: FlowRecord) -> Option<RunRecord> {
        let FlowRecord { name, counts, rates, times, jitter_ns, own } = flow;
        let OwnFigures {
            workload,
            refusals,
            pacing,
            drain_time_ns,
            catch_up,
            rebalances,
            stalls,
            histograms,
            series,
            churn,
            wills,
            verdict,
        } = *own?;
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
            drain_time_ns,
            catch_up,
            rebalances,
            stalls,
            histograms,
            series,
            churn,
            wills,
            verdict,
            agents,
            flows: Vec::new(),
            ..self.clone()
        };
        record.recovery = Recovery::of(&record);
        Some(record)
    }
}
