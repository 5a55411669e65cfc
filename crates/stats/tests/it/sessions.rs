//! Tables whose blocks were measured in several sessions, from one to the next of which systems
//! move by amounts of their own.

use crate::noise::{Noise, five_percent_at_most};
use pubmark_stats::{Better, Blocks, Looks, PointInput, RankingInput, SystemOutcome, rank_table};

/// The standard deviation of the logarithm of a run within a session.
const WITHIN: f64 = 0.05;
const TABLES: usize = 400;

/// How many points, systems a point, sessions, and blocks a session.
type Shape = (usize, usize, usize, usize);

/// A table in which each system of a point moves from session to session by a factor whose
/// logarithm has the standard deviation `between`.
fn table(noise: &mut Noise, shape: Shape, between: f64, typical: impl Fn(usize) -> f64) -> RankingInput {
    let (points, systems, sessions, blocks) = shape;
    let mut system = |number: usize| {
        let (mut values, mut of) = (Vec::new(), Vec::new());
        for session in 0..sessions as u32 {
            let moved = between * noise.normal();
            for _ in 0..blocks {
                values.push(Some(typical(number) * (moved + WITHIN * noise.normal()).exp()));
                of.push(session);
            }
        }
        Blocks { values, sessions: of, step: 0.0 }
    };
    let mut point = || PointInput { systems: (0..systems).map(&mut system).collect(), better: Better::Lower };
    RankingInput { points: (0..points).map(|_| point()).collect(), bound: 0.05, alpha: 0.05, looks: Looks::Once }
}

/// The tables that call a system worse than another at one point or more.
fn tables_with_losers(noise: &mut Noise, shape: Shape, between: f64, best: f64) -> usize {
    let behind = |_: &usize| {
        let ranked = rank_table(&table(noise, shape, between, |number| if number == 0 { best } else { 1.0 }));
        ranked.points.iter().any(|point| point.standings.contains(&SystemOutcome::Behind))
    };
    (0..TABLES).filter(behind).count()
}

#[test]
fn of_equal_systems_that_move_between_sessions_at_most_five_tables_in_a_hundred_name_a_loser() {
    let mut noise = Noise(61);
    for shape in [(1, 2, 2, 5), (1, 4, 2, 3), (3, 3, 2, 3), (12, 3, 2, 3), (12, 4, 3, 3), (24, 2, 4, 2)] {
        for between in [0.0, 0.5, 1.0, 2.0] {
            let found = tables_with_losers(&mut noise, shape, between * WITHIN, 1.0);
            // The few differences of a single point do not show how far systems move.
            if shape.0 > 1 || between <= 0.5 {
                assert!(found as f64 / TABLES as f64 <= five_percent_at_most(TABLES), "{shape:?} {between}: {found}");
            }
        }
    }
}

#[test]
fn a_second_session_shows_more_than_the_first_alone() {
    let mut noise = Noise(62);
    let found = |noise: &mut Noise, sessions| tables_with_losers(noise, (6, 3, sessions, 3), 0.25 * WITHIN, 0.85);
    let (one, two) = (found(&mut noise, 1), found(&mut noise, 2));
    assert!(two > one, "one session: {one}, two: {two} of {TABLES}");
}
