use crate::lab::{Lab, overload, spoil};
use pubmark_model::claim::Condition;
use pubmark_model::record::Reason;
use pubmark_report::{ClaimOutcome, ClaimResult};

/// A study over three systems and three qualities of service with these claims.
fn lab(claims: &str) -> Lab {
    Lab::new(&format!("[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\nqos = [0, 1, 2]\n{claims}"))
}

fn claim(rest: &str) -> String {
    format!("[[claims]]\nid = \"c\"\nsays = \"alpha is fastest\"\nfigure = \"latency_p50_ns\"\n{rest}\n")
}

/// Runs of these µs that differ by less than 2 %, in another order for each
/// system.
fn around(us: u64, shift: usize) -> Vec<u64> {
    let noise = [1_000, 1_007, 994, 1_003, 998];
    (0..noise.len()).map(|run| us * noise[(run + shift) % noise.len()]).collect()
}

/// Five runs of each system at a point.
fn point(lab: &mut Lab, qos: u8, times: [u64; 3]) {
    for (shift, (system, us)) in ["alpha", "beta", "gamma"].iter().zip(times).enumerate() {
        lab.latencies(&format!("{system} qos={qos}"), &around(us, shift));
    }
}

fn counts(claim: &ClaimResult) -> (usize, usize, usize) {
    (claim.won(), claim.lost(), claim.open())
}

fn decided(lab: &Lab) -> (ClaimOutcome, (usize, usize, usize)) {
    let report = lab.report();
    assert_eq!(report.claims().len(), 1);
    (report.claims()[0].outcome, counts(&report.claims()[0]))
}

#[test]
fn a_claim_holds_where_its_system_wins_everywhere() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    (0..3).for_each(|qos| point(&mut lab, qos, [10, 20, 30]));
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (3, 0, 0)));
    let report = lab.report();
    assert_eq!(report.claims()[0].evidence(), "3 won, 0 lost, 0 open of 3");
}

#[test]
fn one_loss_fails_a_claim_about_all_points() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    point(&mut lab, 0, [10, 20, 30]);
    point(&mut lab, 1, [30, 20, 10]);
    assert_eq!(decided(&lab), (ClaimOutcome::Fails, (1, 1, 1)));
}

#[test]
fn a_tie_with_a_rival_contradicts_it() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    point(&mut lab, 0, [10, 10, 30]);
    assert_eq!(decided(&lab), (ClaimOutcome::Fails, (0, 1, 2)));
}

#[test]
fn missing_and_single_runs_leave_it_open() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    for system in ["alpha", "beta", "gamma"] {
        lab.latencies(&format!("{system} qos=1"), &[10]);
    }
    assert_eq!(decided(&lab), (ClaimOutcome::Open, (0, 0, 3)));
}

#[test]
fn an_invalid_rival_leaves_a_victory_open_but_not_a_defeat() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    point(&mut lab, 0, [10, 20, 30]);
    point(&mut lab, 1, [30, 10, 20]);
    point(&mut lab, 2, [30, 20, 10]);
    for run in &mut lab.records.runs {
        if run.system == "gamma" {
            spoil(run, Reason::MessagesLost, "7 lost");
        }
    }
    assert_eq!(decided(&lab), (ClaimOutcome::Fails, (0, 2, 1)));
}

#[test]
fn an_overloaded_system_is_behind_by_its_figure_and_never_best() {
    let mut lab = lab(&claim("best = [\"alpha\"]"));
    let overloads = |lab: &mut Lab, name: &str| {
        lab.records.runs.iter_mut().filter(|run| run.system == name).for_each(overload);
    };
    (0..3).for_each(|qos| point(&mut lab, qos, [10, 20, 30]));
    overloads(&mut lab, "gamma");
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (3, 0, 0)), "gamma takes at least 30");
    overloads(&mut lab, "alpha");
    assert_eq!(decided(&lab), (ClaimOutcome::Open, (0, 0, 3)), "alpha may take longer than 10");
}

#[test]
fn any_of_the_best_may_win_even_in_a_tie_with_each_other() {
    let mut lab = lab(&claim("best = [\"alpha\", \"beta\"]"));
    point(&mut lab, 0, [10, 10, 30]);
    point(&mut lab, 1, [40, 10, 30]);
    point(&mut lab, 2, [40, 20, 10]);
    assert_eq!(decided(&lab), (ClaimOutcome::Fails, (2, 1, 0)));
}

#[test]
fn only_those_among_are_rivals() {
    let mut lab = lab(&claim("best = [\"alpha\"]\namong = [\"alpha\", \"beta\"]"));
    (0..3).for_each(|qos| point(&mut lab, qos, [10, 20, 5]));
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (3, 0, 0)));
}

#[test]
fn conditions_choose_the_points() {
    let mut lab = lab(&claim("best = [\"alpha\"]\n[claims.where]\nqos = \"<=1\""));
    point(&mut lab, 0, [10, 20, 30]);
    point(&mut lab, 1, [10, 20, 30]);
    point(&mut lab, 2, [30, 20, 10]);
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (2, 0, 0)));
}

#[test]
fn a_claim_about_no_point_is_not_measured() {
    let mut lab = lab(&claim("best = [\"alpha\"]\n[claims.where]\nqos = \"<=1\""));
    lab.study.claims[0].conditions[0].1 = Condition::AtLeast(3.0);
    assert_eq!(decided(&lab), (ClaimOutcome::Untested, (0, 0, 0)));
    assert_eq!(lab.report().claims()[0].evidence(), "not measured");
}

#[test]
fn a_share_may_be_enough_and_open_points_may_yet_reach_it() {
    for (share, wins, losses, expected) in [
        ("0.6", 2, 0, ClaimOutcome::Holds),
        ("0.6", 1, 1, ClaimOutcome::Open),
        ("0.6", 0, 2, ClaimOutcome::Fails),
        ("0.6", 1, 2, ClaimOutcome::Fails),
        ("0.0", 0, 3, ClaimOutcome::Holds),
    ] {
        let mut lab = lab(&claim(&format!("best = [\"alpha\"]\nshare = {share}")));
        (0..wins).for_each(|qos| point(&mut lab, qos, [10, 20, 30]));
        (wins..wins + losses).for_each(|qos| point(&mut lab, qos, [30, 20, 10]));
        let (outcome, found) = decided(&lab);
        assert_eq!((found.0, found.1), (usize::from(wins), usize::from(losses)));
        assert_eq!(outcome, expected, "{share} {wins} {losses}");
    }
}

#[test]
fn a_share_that_is_met_exactly_is_met() {
    // In binary 0.28 × 25 is above 7.
    let axis: Vec<String> = (1..=25).map(|rate| rate.to_string()).collect();
    let mut lab = Lab::new(&format!(
        "[axes]\nsystem = [\"alpha\", \"beta\"]\nrate = [{}]\n{}",
        axis.join(", "),
        claim("best = [\"alpha\"]\nshare = 0.28")
    ));
    for rate in 1..=25 {
        let (alpha, beta) = if rate <= 7 { (10, 20) } else { (20, 10) };
        lab.latencies(&format!("alpha rate={rate}"), &around(alpha, 0));
        lab.latencies(&format!("beta rate={rate}"), &around(beta, 1));
    }
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (7, 18, 0)));
}

#[test]
fn parts_of_one_claim_are_decided_together() {
    let part = |best: &str, qos: u8| claim(&format!("best = [\"{best}\"]\n[claims.where]\nqos = {qos}"));
    for (times, expected) in [
        ([[10, 20, 30], [20, 10, 30]], ClaimOutcome::Holds),
        ([[10, 20, 30], [10, 20, 30]], ClaimOutcome::Fails),
        ([[10, 20, 30], [20, 20, 30]], ClaimOutcome::Fails),
    ] {
        let mut lab = lab(&(part("alpha", 0) + &part("beta", 1)));
        point(&mut lab, 0, times[0]);
        point(&mut lab, 1, times[1]);
        assert_eq!(decided(&lab).0, expected, "{times:?}");
        assert_eq!(lab.report().claims()[0].parts.len(), 2);
    }
    let mut lab = lab(&(part("alpha", 0) + &part("beta", 1)));
    point(&mut lab, 0, [10, 20, 30]);
    assert_eq!(decided(&lab).0, ClaimOutcome::Open, "the second part has no runs");
}

#[test]
fn what_the_study_skips_is_not_in_question() {
    let skip = "[[skip]]\nsystem = \"gamma\"\nqos = 1\nwhy = \"cannot\"\n\
                [[skip]]\nqos = 2\nwhy = \"too slow\"\n";
    let mut lab = lab(&(skip.to_owned() + &claim("best = [\"alpha\"]")));
    point(&mut lab, 0, [10, 20, 30]);
    lab.latencies("alpha qos=1", &around(10, 0));
    lab.latencies("beta qos=1", &around(20, 1));
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (2, 0, 0)));
}

#[test]
fn a_named_system_that_was_not_measured_leaves_it_open() {
    let mut lab = Lab::new(&format!(
        "[axes]\nsystem = [\"alpha\", \"beta\"]\n{}",
        claim("best = [\"alpha\"]\namong = [\"alpha\", \"beta\", \"gamma\"]")
    ));
    lab.latencies("alpha", &around(10, 0));
    lab.latencies("beta", &around(20, 1));
    assert_eq!(decided(&lab), (ClaimOutcome::Open, (0, 0, 1)));
}

#[test]
fn more_is_better_where_the_figure_says_so() {
    let text = claim("best = [\"beta\"]").replace("latency_p50_ns", "delivered_per_s");
    let mut lab = Lab::new(&format!("[axes]\nsystem = [\"alpha\", \"beta\"]\n{text}"));
    let rates = |us, shift| -> Vec<f64> { around(us, shift).into_iter().map(|rate| rate as f64).collect() };
    lab.rates("alpha", &rates(10, 0));
    lab.rates("beta", &rates(20, 1));
    assert_eq!(decided(&lab), (ClaimOutcome::Holds, (1, 0, 0)));
}
