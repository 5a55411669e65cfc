//! Length of windows that the requested figures need, for studies that are measured until their
//! questions are decided.

use crate::capacity::AskedCapacity;
use crate::claim::{Claim, Statement};
use crate::figure::Figure;
use crate::question::AskedQuestions;
use crate::study::Study;
use crate::units::{MILLISECOND, Ns, SECOND};
use crate::workload::{Extent, Rate, Workload};
use serde_json::{Map, Value};

/// Messages for a median: a tenth more than a verdict requires.
const P50_MESSAGES: u64 = 110;
/// Messages for a 99th percentile: a tenth more than a verdict requires.
const P99_MESSAGES: u64 = 1_100;

/// Shortest window, ns: it has 20 slices, which show a trend.
pub const WINDOW_MIN: Ns = 2 * SECOND;

/// Messages that a window must have, of all publishers together, and the figure that needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessagesAsked {
    /// Number of messages.
    pub messages: u64,
    /// The figure that needs the most.
    pub figure: &'static str,
}

impl MessagesAsked {
    /// Returns the messages that a study needs in the cells of a point at a given rate, for any
    /// system at these places on the axes. `None` if a requested figure becomes less precise with a
    /// shorter window, whatever the number of messages: a rate, a usage, a maximum, or the absence
    /// of losses.
    pub fn of(study: &Study, axes: &Map<String, Value>) -> Option<MessagesAsked> {
        let part = axes.get("part").and_then(Value::as_str);
        let is_searched = |asked: &AskedCapacity| asked.searches(part);
        // A capacity search and a gate need figures of their own.
        if study.ab.is_some() || study.capacity.as_ref().is_some_and(|goal| goal.asked.as_ref().is_none_or(is_searched))
        {
            return None;
        }
        let is_about = |claim: &Claim| {
            let mut places = claim.conditions.iter().filter(|(axis, _)| axis != "system");
            places.all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
        };
        let AskedQuestions { best, claims, differ, within } = study.asks();
        // The figure that ranks at a given rate.
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

    /// Shortens a window as far as these messages allow. A window that is a number of messages, or
    /// at `max`, is unchanged.
    pub(crate) fn shorten(&self, workload: &mut Workload) {
        let (Extent::TimeNs(whole_ns), Rate::Due(profile)) = (workload.extent, &workload.rate) else { return };
        // A rate that changes has its own length, as the backlog of a slow or late subscriber and a part of the window have.
        let is_even = profile.is_constant() && !workload.arrival.pauses() && workload.span.is_whole();
        if !is_even || workload.lets_messages_wait() {
            return;
        }
        let each = self.messages.div_ceil(u64::from(workload.publishers));
        let needed_ns = profile.due(each).next_multiple_of(MILLISECOND).max(WINDOW_MIN);
        workload.extent = Extent::TimeNs(whole_ns.min(needed_ns));
    }
}
