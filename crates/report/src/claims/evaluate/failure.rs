//! From which value of an axis a system fails.

use super::{Evaluation, Found, Said, WHY_CHARS};
use crate::claims::amount::Amount;
use crate::claims::outcome::ClaimOutcome;
use crate::claims::words::{amount, label_of};
use crate::text::clean;
use pubmark_model::claim::{Dimension, NamedPlaces};
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use serde_json::{Map, Value};

impl Evaluation<'_> {
    pub(super) fn fails(
        &self,
        axis: &str,
        within: [f64; 2],
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Said> {
        let places = self.places(axis, at, point)?;
        let (mut works, mut first, mut unknown) = (None, None, Vec::new());
        let mut evidence = String::new();
        for (place, cell) in &places {
            match self.collapsed(*cell, works.is_some()) {
                Some(Some(why)) => {
                    (first, evidence) = (Some(*place), why);
                    break;
                }
                Some(None) if unknown.is_empty() => works = Some(*place),
                Some(None) => {}
                None => unknown.push(*cell),
            }
        }
        let shown = |place: f64| amount(&Amount::Exact(place), Dimension::of_axis(axis));
        let what = label_of(at);
        let inside = |place: f64| (within[0]..=within[1]).contains(&place);
        let (outcome, words) = match (works, first) {
            (_, Some(first)) if unknown.is_empty() && inside(first) => {
                (ClaimOutcome::Holds, format!("{what} fails at {axis} {}: {evidence}", shown(first)))
            }
            (Some(works), _) if works >= within[1] => {
                (ClaimOutcome::Fails, format!("{what} works at {axis} {}", shown(works)))
            }
            (_, Some(first)) if first < within[0] => {
                (ClaimOutcome::Fails, format!("{what} fails at {axis} {}: {evidence}", shown(first)))
            }
            (Some(works), Some(first)) if unknown.is_empty() => (
                ClaimOutcome::Untested,
                format!("{what} works at {axis} {} and fails at {}; none between was run", shown(works), shown(first)),
            ),
            (Some(works), None) if unknown.is_empty() => {
                (ClaimOutcome::Untested, format!("{what} works at {axis} {}, the most that was run", shown(works)))
            }
            _ => (ClaimOutcome::Open, format!("whether {what} works is not known at each {axis}")),
        };
        let mut said = Said::new(outcome, words);
        said.cells = unknown;
        said.groups = vec![FigureGroup::Counts];
        Ok(said)
    }

    /// Returns whether all runs of a cell failed because of the server, with the reason; `None` if
    /// unknown.
    fn collapsed(&self, cell: usize, worked_before: bool) -> Option<Option<String>> {
        const OF_SERVER: [Reason; 5] = [
            Reason::ServerDied,
            Reason::ResourceLimitHit,
            Reason::ConnectionsMissed,
            Reason::MessagesRefused,
            Reason::OfferedRateMissed,
        ];
        /// A share that is delivered by no server that keeps up.
        const DELIVERED_MIN: f64 = 0.99;
        let of_run = |run: &&RunRecord| {
            if let Some(error) = &run.error {
                return worked_before.then(|| Some(error.clone()));
            }
            let mut found = run.verdict.reasons.iter();
            if let Some(finding) = found.find(|finding| OF_SERVER.contains(&finding.reason)) {
                return Some(Some(format!("{}, {}", finding.reason, finding.evidence)));
            }
            match run.counts.delivered_ratio() {
                _ if run.verdict.reasons.iter().any(|finding| finding.reason == Reason::GeneratorSaturated) => None,
                Some(ratio) if ratio < DELIVERED_MIN => Some(Some(format!("{:.1} % delivered", ratio * 100.0))),
                Some(_) => Some(None),
                None => None,
            }
        };
        let all: Vec<Option<Option<String>>> = self.runs_of[cell].iter().map(of_run).collect();
        let first = all.first()?.clone()?;
        let alike = all.iter().all(|one| one.as_ref().is_some_and(|one| one.is_some() == first.is_some()));
        alike.then(|| first.map(|why| clean(&why, WHY_CHARS)))
    }
}
