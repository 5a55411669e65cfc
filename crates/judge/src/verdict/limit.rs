//! Decides which was the limit if there are reasons against both the generator and the system: a capacity search counts
//! its steps by this rule.

use pubmark_model::record::{Reason, RunRecord, Verdict};

/// Share of its processors from which a server has used all of them.
const BUSY: f64 = 0.9;

/// Returns a note if there was generator delay and the load was not taken, or a backlog grew. A load that the generator
/// did not offer in time did not test the system.
pub(super) fn noted(record: &RunRecord, verdict: &Verdict) -> Option<String> {
    let gave = |reason: Reason| verdict.reasons.iter().find(|finding| finding.reason == reason);
    let late = gave(Reason::GeneratorSaturated)?;
    let missed = gave(Reason::OfferedRateMissed).or_else(|| gave(Reason::NotSteady))?.reason;
    let server = record.server.as_ref().map(|server| {
        let limit = record.deployment.as_ref().and_then(|deployment| deployment.applied.cpus);
        let may = limit.unwrap_or(f64::from(record.machine.cores.max(1)));
        (server.cpu_cores >= BUSY * may, format!("the server used {:.2} of its {may} processors", server.cpu_cores))
    });
    let own = &late.evidence;
    Some(match server {
        _ if gave(Reason::NoisyMachine).is_some() => format!(
            "whether the system or the load generator was the limit is not known, as others used the machine: {missed} \
             says nothing of the system"
        ),
        Some((true, used)) => format!(
            "both the system and the load generator were at their limit ({used}; {own}): the system may carry more with \
             a generator that has processors of its own"
        ),
        Some((false, used)) => format!(
            "the load generator was the limit, and not the system ({own}; {used}): {missed} says nothing of the system"
        ),
        None => format!("the load generator was the limit, and not the system ({own}): {missed} says nothing of it"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{judged, reasons};
    use pubmark_model::record::{Deployment, Reason, RunRecord, Usage, Verdict};
    use pubmark_stats::Histogram;

    /// Judges a run in which a tenth of the load was not taken, and the generator delay was 50 ms; the server had one
    /// processor, and used this share of it.
    fn both(used: f64, change: impl FnOnce(&mut RunRecord)) -> Verdict {
        judged("none", |record| {
            let mut own = Histogram::latency();
            own.record_n(50_000_000, 9_000);
            record.times.own_lag = own.summary();
            (record.counts.sent, record.counts.expected, record.counts.delivered) = (9_000, 9_000, 9_000);
            record.machine.cores = 4;
            record.server = Some(Usage { cpu_cores: used, ..Usage::default() });
            let mut deployment = Deployment::default();
            deployment.applied.cpus = Some(1.0);
            record.deployment = Some(deployment);
            change(record);
        })
    }

    fn said(verdict: &Verdict) -> Vec<&str> {
        let notes = verdict.notes.iter().map(|note| note.evidence.as_str());
        notes.filter(|text| text.contains("limit")).collect()
    }

    #[test]
    fn where_both_say_so_a_sentence_says_which_was_the_limit() {
        let idle = both(0.3, |_| {});
        let found = reasons(&idle);
        assert!(found.contains(&Reason::GeneratorSaturated) && found.contains(&Reason::OfferedRateMissed), "{found:?}");
        let [told] = said(&idle)[..] else { panic!("{:?}", idle.notes) };
        assert!(told.starts_with("the load generator was the limit, and not the system"), "{told}");
        assert!(
            told.contains("0.30 of its 1 processors") && told.contains("offered-rate-missed says nothing"),
            "{told}"
        );
        let full = both(0.97, |_| {});
        let [told] = said(&full)[..] else { panic!("{:?}", full.notes) };
        assert!(told.starts_with("both the system and the load generator were at their limit"), "{told}");
        let noisy = both(0.3, |record| record.machine.foreign_cores = 3.0);
        let [told] = said(&noisy)[..] else { panic!("{:?}", noisy.notes) };
        assert!(told.contains("is not known, as others used the machine"), "{told}");
    }

    #[test]
    fn where_one_says_so_nothing_is_added() {
        let on_time = both(0.97, |record| record.times.own_lag = record.times.latency.clone());
        assert!(reasons(&on_time).contains(&Reason::OfferedRateMissed));
        assert_eq!(said(&on_time), [""; 0]);
        let late = both(0.3, |record| {
            let counts = &mut record.counts;
            (counts.sent, counts.expected, counts.delivered) = (10_000, 10_000, 10_000);
        });
        assert!(reasons(&late).contains(&Reason::GeneratorSaturated));
        assert_eq!(said(&late), [""; 0]);
    }
}
