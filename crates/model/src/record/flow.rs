//! The flows of a record.

use super::churn::ChurnFigures;
use super::judgement::Verdict;
use super::last_will::WillFigures;
use super::rates::{Rates, Series};
use crate::catch_up::CatchUp;
use crate::counts::{Counts, RefusalCount};
use crate::protocol::{PacingFigures, Stalls};
use crate::rebalances::Rebalances;
use crate::times::{self, TimeFigures};
use crate::units::Ns;
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
    /// Its further figures; `None` if it is the only flow, whose figures are in the record itself.
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
    /// From its last send until the last of its messages arrived, ns, as in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_time_ns: Option<Ns>,
    /// The time in which its late subscribers caught up, as in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// Rebalances of its consumer group, as in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebalances: Option<Rebalances>,
    /// Silences of its subscribers.
    pub stalls: Option<Stalls>,
    /// The distributions of its times, as in the record.
    pub histograms: TimeFigures<Option<String>>,
    /// Its figures by time slice.
    pub series: Series,
    /// Its clients that came and went; `None` if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Box<ChurnFigures>>,
    /// The last wills of its publishers; `None` if they had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wills: Option<Box<WillFigures>>,
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
            drain_time_ns: None,
            catch_up: None,
            rebalances: None,
            stalls: None,
            histograms: TimeFigures::none(),
            series: Series::default(),
            churn: None,
            wills: None,
            verdict: Verdict::default(),
        }
    }
}
