use super::*;
use pubmark_model::record::RefusalCount;

fn refusal(reason: &str, count: u64, limit: bool) -> RefusalCount {
    RefusalCount { reason: reason.into(), count, limit }
}

/// Changes a run: a tenth is refused, for two reasons of each kind.
fn refused(record: &mut RunRecord) {
    record.refusals = vec![
        refusal("quota exceeded (code 0x97)", 300, true),
        refusal("not authorised (code 0x87)", 500, false),
        refusal("basic.nack", 200, true),
    ];
    let counts = &mut record.counts;
    (counts.refused, counts.acked, counts.expected, counts.delivered) = (1_000, 9_000, 9_000, 9_000);
    // Refused messages are no backlog.
    (record.series.sent, record.series.delivered) = (vec![1_000; 10], vec![900; 10]);
}

#[test]
fn refusals_for_a_limit_stand_apart_from_the_others_and_none_is_a_loss() {
    let verdict = judged("none", refused);
    assert_eq!(reasons(&verdict), [Reason::ResourceLimitHit, Reason::MessagesRefused]);
    let evidence = |at: usize| verdict.reasons[at].evidence.as_str();
    let limits = "the server refused 500 of 10000 messages: quota exceeded (code 0x97) (300); basic.nack (200)";
    assert_eq!(evidence(0), limits);
    assert_eq!(evidence(1), "the server refused 500 of 10000 messages: not authorised (code 0x87)");
    assert_eq!(verdict.reasons[0].figures, [Counts, LatencyP99], "as with losses of 5 %");
    // With a fault it is a result.
    let verdict = judged("kill server at 5s for 1s", refused);
    assert!(verdict.valid, "{:?}", verdict.reasons);
    assert!(verdict.notes.iter().any(|note| note.evidence == limits), "{:?}", verdict.notes);
}

#[test]
fn a_limit_that_the_server_names_is_a_reason_with_its_words() {
    let words = "the server took no messages for 0.500 s and said why: low on memory";
    let verdict = judged("none", |record| record.limits_reached = vec![words.into()]);
    assert_eq!(found(&verdict), [(Reason::ResourceLimitHit, FigureGroup::all())]);
    assert_eq!(verdict.reasons[0].evidence, format!("the server reached a limit of its own: {words}"));
    let line = "[warning] memory resource limit alarm set on node x";
    let verdict = judged("none", |record| {
        record.deployment = Some(Deployment { limit_reached: Some(line.into()), ..Deployment::default() });
    });
    let says = format!("the server reached a limit of its own: its log says: {line}");
    assert_eq!((reasons(&verdict), &verdict.reasons[0].evidence), (vec![Reason::ResourceLimitHit], &says));
}
