//! Last wills: combines the results of all agents.

use super::merge::merge;
use pubmark_model::last_will::WillCounts;
use pubmark_model::protocol::{FlowResult, PackedHistogram};
use pubmark_model::record::WillFigures;
use pubmark_model::units::total;
use pubmark_stats::Histogram;
use std::collections::BTreeSet;

/// Returns the figures of a flow for a record; `None` if no agent reports last wills.
pub fn united(results: &[&FlowResult], remarks: &mut Vec<String>) -> Option<Box<WillFigures>> {
    let wills = || results.iter().filter_map(|result| result.wills.as_deref());
    wills().next()?;
    // A subscriber cannot know of connections that ended after their publisher had sent everything: the server may
    // publish their wills, before the run is over or not.
    let ends = results.iter().flat_map(|result| &result.ends);
    let ends: BTreeSet<(u32, u64)> = ends.map(|end| (end.publisher, u64::from(end.connection))).collect();
    let unexpected = wills().flat_map(|result| &result.unexpected);
    let undue = unexpected.filter(|will| !ends.contains(&(will.publisher, will.connection)));
    let counts = WillCounts {
        due: total(wills().map(|result| result.due)),
        received: total(wills().map(|result| result.received)),
        undue: total(undue.map(|will| will.count)),
    };
    let latency = merge(PackedHistogram::DIGITS, wills().filter_map(|result| result.latency.as_ref()), remarks);
    Some(Box::new(WillFigures { counts, latency_ns: latency.as_ref().and_then(Histogram::summary) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_model::last_will::UnexpectedWill;
    use pubmark_model::protocol::{ConnectionEnd, WillResult};

    /// Two agents have subscribers, and a third one publishers: connection 3 of publisher 1 ended after `sent`.
    #[test]
    fn a_will_of_a_connection_that_ended_late_is_neither_due_nor_undue() {
        let wills = |unexpected: &[(u32, u64, u64)]| {
            let unexpected = unexpected.iter().copied();
            let will = |(publisher, connection, count)| UnexpectedWill { publisher, connection, count };
            let wills = WillResult { due: 3, received: 2, unexpected: unexpected.map(will).collect(), latency: None };
            FlowResult { wills: Some(Box::new(wills)), ..FlowResult::default() }
        };
        let (one, two) = (wills(&[(1, 3, 2), (1, 2, 1), (2, 3, 4)]), wills(&[(1, 3, 5)]));
        let ends = vec![ConnectionEnd { publisher: 1, connection: 3, at_ns: Some(7) }];
        let publishers = FlowResult { ends, ..FlowResult::default() };
        let counts = |results: &[&FlowResult]| united(results, &mut Vec::new()).map(|figures| figures.counts);
        assert_eq!(counts(&[&publishers, &one, &two]), Some(WillCounts { due: 6, received: 4, undue: 5 }));
        assert_eq!(counts(&[&one, &two]), Some(WillCounts { due: 6, received: 4, undue: 12 }));
        assert_eq!(counts(&[&publishers]), None);
    }
}
