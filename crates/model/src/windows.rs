//! How long a window has to be for the figures that a study asks for, where it is
//! measured until its questions are decided.

use crate::asked::AskedQuestions;
use crate::capacity::AskedCapacity;
use crate::claim::{Claim, Statement};
use crate::figure::Figure;
use crate::study::Study;
use crate::units::{MILLISECOND, Ns, SECOND};
use crate::workload::{Extent, Rate, Workload};
use serde_json::{Map, Value};

/// Messages for a median: a tenth more than a verdict wants.
const P50_MESSAGES: u64 = 110;
/// The same for a 99th percentile.
const P99_MESSAGES: u64 = 1_100;

/// No window is made shorter, ns: it has 20 slices, by which a trend is seen.
pub const WINDOW_MIN: Ns = 2 * SECOND;

/// Messages that a window has to have, of all publishers together, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessagesAsked {
    /// How many.
    pub messages: u64,
    /// The figure that needs so many.
    pub figure: &'static str,
}

impl MessagesAsked {
    /// What a study asks of the cells of a point at a given rate: whichever system is at
    /// these places on the axes. `None` where a figure is asked for that a shorter window
    /// says less of, whatever the number of messages: a rate, a use, a maximum, that
    /// nothing is lost.
    pub fn of(study: &Study, axes: &Map<String, Value>) -> Option<MessagesAsked> {
        let part = axes.get("part").and_then(Value::as_str);
        let is_searched = |asked: &AskedCapacity| asked.searches(part);
        // A search for a load and a gate ask their own figures.
        if study.ab.is_some() || study.capacity.as_ref().is_some_and(|goal| goal.asked.as_ref().is_none_or(is_searched))
        {
            return None;
        }
        let is_about = |claim: &Claim| {
            let mut places = claim.conditions.iter().filter(|(axis, _)| axis != "system");
            places.all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
        };
        let AskedQuestions { best, claims, differ, within } = study.asks();
        // The figure that ranks, at a given rate.
        let mut figures: Vec<Figure> = differ.iter().map(|_| Figure::LATENCY_P50).collect();
        figures.extend(best.into_iter().map(|figure| figure.unwrap_or(Figure::LATENCY_P50)));
        for claim in study.claims.iter().filter(|claim| claims && is_about(claim)) {
            match &claim.statement {
                Statement::Best { figure, .. } => figures.push(*figure),
                Statement::Keeps(_) => return None,
                Statement::Says(expression) => expression.root.figures(&mut |figure| figures.push(figure)),
            }
        }
        figures.extend(within.iter().map(|precision| precision.figure(false)));
        let mut most = MessagesAsked { messages: P50_MESSAGES, figure: "p50" };
        for figure in figures {
            match figure {
                Figure::LATENCY_P50 => {}
                Figure::LATENCY_P99 => most = MessagesAsked { messages: P99_MESSAGES, figure: "p99" },
                _ => return None,
            }
        }
        Some(most)
    }

    /// Makes a window as short as these messages allow, and no longer than it is. One of a
    /// number of messages, or of as many as there may be, stays as it is.
    pub(crate) fn shorten(&self, workload: &mut Workload) {
        let (Extent::TimeNs(whole_ns), Rate::Due(profile)) = (workload.extent, workload.rate) else { return };
        let each = self.messages.div_ceil(u64::from(workload.publishers));
        let needed_ns = profile.due(each).next_multiple_of(MILLISECOND).max(WINDOW_MIN);
        workload.extent = Extent::TimeNs(whole_ns.min(needed_ns));
    }
}
