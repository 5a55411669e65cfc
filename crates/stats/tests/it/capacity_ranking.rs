//! Systems ranked by their capacities: the results for clear cases, and the error rate for equal
//! ones.

use pubmark_stats::{CapacityStanding, KnownCapacity, Random, rank_capacities};

fn known(estimate: f64, share: f64) -> Option<KnownCapacity> {
    Some(KnownCapacity { lo: estimate / (1.0 + share), estimate, hi: Some(estimate * (1.0 + share)) })
}

fn one(point: Vec<Option<KnownCapacity>>) -> Vec<Option<CapacityStanding>> {
    rank_capacities(&[point], 0.05).remove(0)
}

#[test]
fn intervals_apart_have_a_winner_and_narrow_ones_together_tie() {
    use CapacityStanding::{Alone, Behind, Tie, Undecided, Winner};
    assert_eq!(one(vec![known(2_000.0, 0.03), known(1_000.0, 0.03), None]), [Some(Winner), Some(Behind), None]);
    assert_eq!(one(vec![known(1_000.0, 0.01), known(1_002.0, 0.01)]), [Some(Tie); 2]);
    assert_eq!(one(vec![known(1_000.0, 0.2), known(1_030.0, 0.2)]), [Some(Undecided); 2]);
    assert_eq!(one(vec![known(1_000.0, 0.05), None]), [Some(Alone), None]);
    // The two leading systems tie, and the third is behind both.
    let three = one(vec![known(1_000.0, 0.01), known(500.0, 0.01), known(1_002.0, 0.01)]);
    assert_eq!(three, [Some(Tie), Some(Behind), Some(Tie)]);
}

#[test]
fn a_lower_bound_may_beat_and_is_not_beaten() {
    use CapacityStanding::{Behind, Undecided, Winner};
    let bound = |lo: f64| Some(KnownCapacity { lo, estimate: lo, hi: None });
    assert_eq!(one(vec![bound(2_000.0), known(1_000.0, 0.03)]), [Some(Winner), Some(Behind)]);
    assert_eq!(one(vec![bound(500.0), known(1_000.0, 0.03)]), [Some(Undecided); 2]);
}

#[test]
fn what_a_pair_shows_alone_a_large_table_need_not_show() {
    let pair = vec![known(1_000.0, 0.03), known(1_060.0, 0.03)];
    assert_eq!(one(pair.clone())[1], Some(CapacityStanding::Winner));
    let table = vec![pair; 100];
    assert!(rank_capacities(&table, 0.05).iter().flatten().all(|stands| *stands == Some(CapacityStanding::Undecided)));
}

/// Tables of 6 points and 3 equal systems, with errors of the estimates that follow their
/// intervals.
#[test]
fn equal_systems_have_a_winner_in_at_most_five_of_a_hundred_tables() {
    let mut random = Random(7);
    let normal = |random: &mut Random| {
        let mut uniform = || random.unit();
        (-2.0 * (1.0 - uniform()).ln()).sqrt() * (2.0 * std::f64::consts::PI * uniform()).cos()
    };
    let (tables, width) = (4_000, 0.03_f64);
    let wrong = (0..tables)
        .filter(|_| {
            let mut system = || {
                let estimate = 1_000.0 * (normal(&mut random) * width / 1.644_853_6).exp();
                Some(KnownCapacity { lo: estimate * (-width).exp(), estimate, hi: Some(estimate * width.exp()) })
            };
            let points: Vec<Vec<_>> = (0..6).map(|_| (0..3).map(|_| system()).collect()).collect();
            let said = rank_capacities(&points, 0.05);
            said.iter()
                .flatten()
                .any(|stands| matches!(stands, Some(CapacityStanding::Winner | CapacityStanding::Behind)))
        })
        .count();
    // Plus two standard errors for this number of tables.
    assert!(wrong * 1_000 <= 57 * tables, "{wrong} of {tables}");
}
