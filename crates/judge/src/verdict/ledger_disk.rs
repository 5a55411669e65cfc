//! A server whose folder lay on a ledger.

use super::finding::FigureFinding;
use pubmark_model::power::Power;
use pubmark_model::record::{FigureGroup, RunRecord};
use pubmark_model::workload::Rate;

/// Describes that the server's disk was none: its syncs take no time of a disk, and its writes take processor time that
/// they would not on a disk.
pub fn noted(record: &RunRecord) -> Option<FigureFinding> {
    record.deployment.as_ref()?.power.filter(|power| Power::is_ledger(*power))?;
    let mut figures = vec![FigureGroup::LatencyP50, FigureGroup::LatencyP99, FigureGroup::Cost];
    figures.extend((record.workload.rate == Rate::Max).then_some(FigureGroup::Rates));
    let evidence = "the server's folder lay on a ledger, which writes no disk: how long a sync takes is not known";
    Some(FigureFinding::of(&figures, evidence.into()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;
    use pubmark_model::power::Power;
    use pubmark_model::record::{FigureGroup, Reason};

    #[test]
    fn latencies_over_a_ledger_are_not_quoted_and_losses_are() {
        for (power, is_quoted) in [(None, true), (Some(Power::Disk), true), (Some(Power::Ledger), false)] {
            let verdict = judged("cut power of server at 5s for 1s", |record| {
                record.deployment = Some(Default::default());
                record.deployment.iter_mut().for_each(|deployment| deployment.power = power);
            });
            let found = verdict.reasons.iter().find(|finding| finding.reason == Reason::LedgerDisk);
            assert_eq!(found.is_none(), is_quoted, "{verdict:?}");
            for figures in [FigureGroup::LatencyP50, FigureGroup::LatencyP99, FigureGroup::Cost] {
                assert!(found.is_none_or(|found| found.figures.contains(&figures)), "{verdict:?}");
            }
            assert!(verdict.allows(FigureGroup::Counts), "{verdict:?}");
        }
    }
}
