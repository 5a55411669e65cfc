use super::*;
use crate::strategy::tests::{Played, play, study};
use pubmark_model::capacity::LoadAxis;
use pubmark_model::objective::Objective;
use pubmark_model::workload::Rate;
use pubmark_stats::Histogram;

/// A system that delivers each message in 1 ms up to this rate of all publishers together, and in 100 ms beyond.
fn system(holds_per_s: f64) -> impl FnMut(&mut RunRecord) {
    move |record| {
        let each = match &record.workload.rate {
            Rate::Due(profile) => profile.fastest_per_s(),
            Rate::Max => f64::INFINITY,
        };
        let offered = each * f64::from(record.workload.publishers);
        let ms = if offered <= holds_per_s { 1 } else { 100 };
        let mut latency = Histogram::latency();
        latency.record(ms * MILLISECOND);
        record.times.latency = latency.summary();
        (record.counts.expected, record.counts.delivered, record.counts.sent) = (5_000, 5_000, 5_000);
        record.rates.delivered_per_s = offered;
        record.verdict.valid = true;
    }
}

fn goal() -> CapacityGoal {
    CapacityGoal {
        until: Objective::parse("p99 < 10ms").unwrap(),
        flow: None,
        over: LoadAxis::Rate,
        within: 0.05,
        start: 400.0,
        asked: None,
    }
}

fn request(study: &Study, budget_s: u64) -> CapacityRequest<'_> {
    CapacityRequest {
        study,
        step_ns: 4 * SECOND,
        full_ns: 10 * SECOND,
        budget_ns: budget_s * SECOND,
        ends_ns: None,
        enough_each_per_s: None,
    }
}

const CELLS: &str = "[axes]\nsystem = [\"mock\"]\npayload = [64, 128]\n";

#[test]
fn each_cell_is_searched_in_turn_until_its_capacity_is_known_and_confirmed() {
    let (study, goal) = (study(CELLS), goal());
    let request = request(&study, 1_000);
    let mut search = Search::new(&request, &goal).unwrap();
    let played = play(&mut search, &[], 5 * SECOND, &mut system(5_000.0));
    let outlook = search.outlook().unwrap();
    assert_eq!((outlook.decided.len(), outlook.open.len(), outlook.closed), (2, 0, 0));
    assert_eq!(played.iter().take(4).map(|run| run.row).collect::<Vec<_>>(), [0, 1, 0, 1]);
    for (row, search) in search.searches.iter().enumerate() {
        let answer = search.climb.answer();
        let (lo, hi) = (answer.lo.unwrap(), answer.hi.unwrap());
        assert!(lo <= 5_000.0 && 5_000.0 <= hi, "row {row}: {lo} to {hi}");
        assert!(answer.settled && answer.confirmed, "row {row}");
    }
    let last = played.last().unwrap();
    assert_eq!(last.finding.as_deref(), Some("held at full length"));
    assert!(played.iter().any(|run| run.finding.as_deref().is_some_and(|said| said.starts_with("failed: p99"))));
}

#[test]
fn a_search_goes_on_where_its_records_end() {
    let (study, goal) = (study(CELLS), goal());
    let request = request(&study, 1_000);
    let loads = |runs: &[Played]| runs.iter().map(|run| run.record.cell.clone()).collect::<Vec<_>>();
    let whole = play(&mut Search::new(&request, &goal).unwrap(), &[], 5 * SECOND, &mut system(5_000.0));
    for made in [2, 6, whole.len()] {
        let before: Vec<RunRecord> = whole[..made].iter().map(|run| run.record.clone()).collect();
        let later = play(&mut Search::new(&request, &goal).unwrap(), &before, 5 * SECOND, &mut system(5_000.0));
        assert_eq!(loads(&later), loads(&whole[made..]), "after {made}");
    }
    // Records of steps of another length, or of another study, are not taken in.
    let mut other = Search::new(&request, &goal).unwrap();
    let mut record = whole[0].record.clone();
    record.cell.insert("duration".into(), "3s".into());
    assert!(matches!(other.begin(&[record], 0), Err(StrategyError::OtherStudy)));
}

#[test]
fn a_search_ends_with_its_time_and_where_nothing_holds() {
    let (study, goal) = (study("[axes]\nsystem = [\"mock\"]\n"), goal());
    let short = request(&study, 21);
    let mut search = Search::new(&short, &goal).unwrap();
    let played = play(&mut search, &[], 5 * SECOND, &mut system(5_000.0));
    assert!(played.len() <= 4, "{}", played.len());
    let long = request(&study, 1_000);
    let mut search = Search::new(&long, &goal).unwrap();
    play(&mut search, &[], 5 * SECOND, &mut system(0.5));
    assert_eq!(search.given_up().len(), 1);
    assert_eq!(search.outlook().unwrap().closed, 1);
}
