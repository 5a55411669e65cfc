//! Clients that came and went: those that failed, and those that pubmark itself let come late.

use super::finding::words;
use pubmark_model::record::{Component, RunRecord};

/// Describes them.
pub fn noted(record: &RunRecord) -> Vec<(Component, String)> {
    let Some(churn) = &record.churn else { return Vec::new() };
    let (failed, due) = (churn.counts.failed, churn.counts.due);
    let first = churn.first_error.as_ref().map_or(String::new(), |error| format!("; the first: {error}"));
    let failed = (failed > 0).then(|| {
        (Component::Server, format!("{failed} of {due} clients that were to come and go could not connect{first}"))
    });
    let bound_ns = record.workload.max_send_lag_ns;
    let late_ns = churn.own_lag_ns.as_ref().map(|own| own.p99).filter(|p99| *p99 > bound_ns);
    let late = late_ns.map(|p99| {
        let (p99, bound) = (words(p99), words(bound_ns));
        let text = format!(
            "the generator delay of clients that come and go has a 99th percentile of {p99}, more than {bound} \
             (`max_send_lag`): their times do not contain it, but several of them came together"
        );
        (Component::Generator, text)
    });
    failed.into_iter().chain(late).collect()
}
