//! Error rate and power of a ranking, by simulation. `docs/ranking.md` has the table, and is
//! checked here.

use pubmark_stats::{
    Better, Blocks, Looks, PointInput, PointOutcome, RankingInput, SAME_WITHIN, SystemOutcome, rank_table,
};

use crate::noise::{Kind, Noise, STEP, five_percent_at_most};

/// Noise of a table. In each scene, all systems of a block drift together.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Noise of one kind and size everywhere.
    Of(Kind),
    /// Lognormal; each system at each point has a size of its own (log-normal about 3 %, two in
    /// three of them between 1.3 and 6.7 %).
    EachItsOwn,
    /// Lognormal; each point has a size of its own.
    PointItsOwn,
    /// Lognormal; the first system has 15 %, all others 2 %.
    OneNoisy,
    /// Each system has its own size, and one run in ten is half as slow again.
    EachItsOwnDisturbed,
}

const SCENES: [Scene; 8] = [
    Scene::Of(Kind::Lognormal),
    Scene::Of(Kind::HeavyBothWays),
    Scene::Of(Kind::HeavySlow),
    Scene::Of(Kind::Disturbed),
    Scene::EachItsOwn,
    Scene::PointItsOwn,
    Scene::OneNoisy,
    Scene::EachItsOwnDisturbed,
];

/// Numbers of points, of systems per point, and of blocks.
#[derive(Clone, Copy, Debug)]
struct Shape {
    points: usize,
    systems: usize,
    blocks: usize,
}

/// Draws a size of noise.
fn size(noise: &mut Noise) -> f64 {
    0.03 * (0.8 * noise.normal()).exp()
}

/// Creates a table whose systems have these typical values at every point, rotated by a random
/// number of places, so that no place is special.
fn table(noise: &mut Noise, scene: Scene, shape: Shape, typical: impl Fn(usize) -> f64) -> RankingInput {
    turned_table(noise, scene, shape, typical).0
}

/// Creates such a table, and returns also the rotation of each point.
fn turned_table(
    noise: &mut Noise,
    scene: Scene,
    shape: Shape,
    typical: impl Fn(usize) -> f64,
) -> (RankingInput, Vec<usize>) {
    let turns: Vec<usize> = (0..shape.points).map(|_| (noise.uniform() * shape.systems as f64) as usize).collect();
    let points = turns.iter().map(|turn| {
        let of_point = size(noise);
        let mut level = 0.0;
        let drift: Vec<f64> = (0..shape.blocks)
            .map(|_| {
                level += 0.1 * noise.normal();
                f64::exp(level)
            })
            .collect();
        let systems = (0..shape.systems).map(|system| {
            let own = size(noise);
            let run = |drift: &f64| {
                let factor = match scene {
                    Scene::Of(kind) => noise.factor(kind),
                    Scene::EachItsOwn => (own * noise.normal()).exp(),
                    Scene::PointItsOwn => (of_point * noise.normal()).exp(),
                    Scene::OneNoisy => (if system == 0 { 0.15 } else { 0.02 } * noise.normal()).exp(),
                    Scene::EachItsOwnDisturbed => {
                        let is_disturbed = noise.uniform() < 0.1;
                        (own * noise.normal()).exp() * if is_disturbed { 1.5 } else { 1.0 }
                    }
                };
                Some(typical((system + turn) % shape.systems) * drift * factor)
            };
            Blocks { values: drift.iter().map(run).collect(), sessions: Vec::new(), step: STEP }
        });
        PointInput { systems: systems.collect(), better: Better::Lower }
    });
    let table = RankingInput { points: points.collect(), bound: SAME_WITHIN, alpha: 0.05, looks: Looks::Once };
    (table, turns)
}

/// Returns the number of tables that name a winner, and of those that call any system worse than
/// another, at one point or more.
fn false_alarms(noise: &mut Noise, scene: Scene, shape: Shape, tables: usize) -> (usize, usize) {
    let (mut winners, mut behind) = (0, 0);
    for _ in 0..tables {
        let ranked = rank_table(&table(noise, scene, shape, |_| 1.0));
        winners += usize::from(ranked.points.iter().any(|point| matches!(point.placing, PointOutcome::Winner(_))));
        behind += usize::from(ranked.points.iter().any(|point| point.standings.contains(&SystemOutcome::Behind)));
    }
    (winners, behind)
}

/// Returns the shapes of tables.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for blocks in [2, 3, 5, 20] {
        for (points, systems) in [(1, 2), (2, 2), (5, 3), (12, 2)] {
            shapes.push(Shape { points, systems, blocks });
        }
    }
    for (points, systems, blocks) in [(1, 8, 2), (1, 8, 3), (24, 4, 3), (60, 2, 2), (60, 2, 3)] {
        shapes.push(Shape { points, systems, blocks });
    }
    shapes
}

#[test]
fn of_equal_systems_at_most_five_tables_in_a_hundred_name_a_winner() {
    const TABLES: usize = 400;
    let mut noise = Noise(1);
    for scene in SCENES {
        let (mut all, mut all_winners, mut all_behind) = (0, 0, 0);
        for shape in shapes() {
            let (winners, behind) = false_alarms(&mut noise, scene, shape, TABLES);
            let rate = winners.max(behind) as f64 / TABLES as f64;
            assert!(rate <= five_percent_at_most(TABLES), "{scene:?}, {shape:?}: {winners}, {behind} of {TABLES}");
            (all, all_winners, all_behind) = (all + TABLES, all_winners + winners, all_behind + behind);
        }
        println!("{scene:?}: of {all} tables {all_winners} name a winner, {all_behind} call one worse");
        assert!(all_behind as f64 / all as f64 <= 0.05, "{scene:?}: {all_behind} of {all}");
    }
}

#[test]
fn a_large_table_names_no_winner_of_equals_either() {
    const TABLES: usize = 400;
    let mut noise = Noise(2);
    let (scene, shape) = (Scene::Of(Kind::Disturbed), Shape { points: 60, systems: 8, blocks: 3 });
    let (winners, behind) = false_alarms(&mut noise, scene, shape, TABLES);
    assert!(winners.max(behind) as f64 / TABLES as f64 <= five_percent_at_most(TABLES), "{winners}, {behind}");
}

/// Two systems are equal and best, all others far behind: the correction may become smaller for
/// what is shown, but not so far that one of the two wins.
#[test]
fn of_two_equal_leaders_none_wins() {
    const TABLES: usize = 400;
    let mut noise = Noise(3);
    for blocks in [3, 5, 10] {
        for (points, systems) in [(1, 3), (6, 3), (6, 4)] {
            let shape = Shape { points, systems, blocks };
            let wrong = (0..TABLES).filter(|_| {
                let leaders = |place: usize| if place < 2 { 1.0 } else { 2.0 };
                let ranked = rank_table(&table(&mut noise, Scene::Of(Kind::Lognormal), shape, leaders));
                ranked.points.iter().any(|point| matches!(point.placing, PointOutcome::Winner(_)))
            });
            let wrong = wrong.count();
            println!("{shape:?}: {wrong} of {TABLES}");
            assert!(wrong as f64 / TABLES as f64 <= five_percent_at_most(TABLES), "{shape:?}: {wrong}");
        }
    }
}

/// Systems that differ by the bound are not the same.
#[test]
fn what_differs_by_the_bound_is_no_tie() {
    const TABLES: usize = 400;
    let mut noise = Noise(4);
    for scene in
        [Scene::Of(Kind::Lognormal), Scene::Of(Kind::HeavyBothWays), Scene::Of(Kind::Disturbed), Scene::EachItsOwn]
    {
        for blocks in [2, 3, 5, 20] {
            for (points, systems) in [(1, 2), (6, 3), (12, 2)] {
                let shape = Shape { points, systems, blocks };
                let wrong = (0..TABLES).filter(|_| {
                    let apart = |place: usize| (1.0 + SAME_WITHIN).powi(place as i32);
                    let ranked = rank_table(&table(&mut noise, scene, shape, apart));
                    ranked.points.iter().any(|point| matches!(point.placing, PointOutcome::Tie(_)))
                });
                let wrong = wrong.count();
                assert!(wrong as f64 / TABLES as f64 <= five_percent_at_most(TABLES), "{scene:?}, {shape:?}: {wrong}");
            }
        }
    }
}

/// Returns true if the best system of each point is a candidate there; true if the distance of each
/// system to it lies within its bounds; and the number of candidates.
fn right(table: &RankingInput, typical: impl Fn(usize, usize) -> f64) -> (bool, bool, usize) {
    let ranked = rank_table(table);
    let (mut is_kept, mut is_within, mut candidates) = (true, true, 0);
    for (number, point) in ranked.points.iter().enumerate() {
        let systems = table.points[number].systems.len();
        let best = (0..systems).min_by(|one, other| typical(number, *one).total_cmp(&typical(number, *other)));
        let Some(best) = best else { continue };
        let may_be_best: Vec<usize> =
            (0..systems).filter(|system| (0..systems).all(|other| !point.beats(other, *system))).collect();
        is_kept &= may_be_best.contains(&best);
        candidates += may_be_best.len();
        for system in (0..systems).filter(|system| *system != best) {
            let truth = typical(number, system) / typical(number, best);
            let bounds = point.bounds(system, best);
            is_within &= bounds.lo <= truth * (1.0 + 1e-9) && truth <= bounds.hi * (1.0 + 1e-9);
        }
    }
    (is_kept, is_within, candidates)
}

#[test]
fn the_best_is_a_candidate_and_every_bound_holds_in_95_of_100_tables() {
    const TABLES: usize = 300;
    let mut noise = Noise(8);
    for scene in SCENES {
        let (mut all, mut lost, mut beyond) = (0, 0, 0);
        for shape in shapes() {
            let (mut of_shape, mut systems) = ((0, 0, 0), 0);
            for _ in 0..TABLES {
                // Every system has a random place: some are equal, some far apart.
                let steps: Vec<f64> = (0..shape.systems).map(|_| (noise.uniform() * 4.0).floor()).collect();
                let far = 0.3 * noise.uniform();
                let values: Vec<f64> = steps.iter().map(|step| (far * step).exp()).collect();
                let (table, turns) = turned_table(&mut noise, scene, shape, |place| values[place]);
                let of = |point: usize, system: usize| values[(system + turns[point]) % shape.systems];
                let (is_kept, is_within, candidates) = right(&table, of);
                of_shape.0 += usize::from(!is_kept);
                of_shape.1 += usize::from(!is_within);
                of_shape.2 += candidates;
                systems += shape.systems * shape.points;
            }
            let (wrong, outside, candidates) = of_shape;
            let rate = wrong.max(outside) as f64 / TABLES as f64;
            assert!(rate <= five_percent_at_most(TABLES), "{scene:?}, {shape:?}: {wrong}, {outside} of {TABLES}");
            println!("{scene:?}, {shape:?}: {candidates} of {systems} are candidates");
            (all, lost, beyond) = (all + TABLES, lost + wrong, beyond + outside);
        }
        println!("{scene:?}: of {all} tables {lost} lose the best, {beyond} have a bound that does not hold");
        assert!(lost.max(beyond) as f64 / all as f64 <= 0.05, "{scene:?}: {lost}, {beyond} of {all}");
    }
}

/// The differences in the table of docs/ranking.md.
const DIFFERENCES: [f64; 7] = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0];

/// Returns the share of points that name the one system that is better than all others by this
/// fraction; for equal systems, the share of ties.
fn found(noise: &mut Noise, shape: Shape, difference: f64, size: f64) -> f64 {
    let tables = 1_200_usize.div_ceil(shape.points);
    let mut named = 0;
    for _ in 0..tables {
        let typical = |place: usize| if place == 0 { 1.0 } else { 1.0 + difference };
        let mut table = table(noise, Scene::Of(Kind::Lognormal), shape, typical);
        // Lognormal noise has a size of 5 %; a power converts it to another size.
        let runs = table.points.iter_mut().flat_map(|point| &mut point.systems).flat_map(|system| &mut system.values);
        if difference == 0.0 {
            runs.flatten().for_each(|value| *value = value.powf(size / 0.05));
        }
        let is_right = |placing: &PointOutcome| match placing {
            PointOutcome::Winner(_) => difference > 0.0,
            PointOutcome::Tie(_) => difference == 0.0,
            PointOutcome::Undecided { .. } => false,
        };
        named += rank_table(&table).points.iter().filter(|point| is_right(&point.placing)).count();
    }
    named as f64 / (tables * shape.points) as f64
}

const SHAPES: [(usize, usize); 4] = [(1, 2), (6, 3), (12, 2), (24, 4)];

#[test]
fn the_page_says_which_difference_is_found() {
    let mut noise = Noise(5);
    let mut page = String::from("| points × systems | repeats |");
    for difference in DIFFERENCES {
        page.push_str(&format!(" +{:.0} % |", difference * 100.0));
    }
    page.push_str(&format!(" found 80 times in 100 |\n|---|---:|{}---|\n", "---:|".repeat(DIFFERENCES.len())));
    for (points, systems) in SHAPES {
        for blocks in [2, 3, 5, 10] {
            let rates =
                DIFFERENCES.map(|difference| found(&mut noise, Shape { points, systems, blocks }, difference, 0.05));
            page.push_str(&format!("| {points} × {systems} | {blocks} |"));
            for rate in rates {
                page.push_str(&format!(" {:.0} % |", rate * 100.0));
            }
            let enough = DIFFERENCES.iter().zip(rates).find(|(_, rate)| *rate >= 0.795);
            let enough =
                enough.map_or("none of these".into(), |(difference, _)| format!("+{:.0} %", difference * 100.0));
            page.push_str(&format!(" {enough} |\n"));
        }
    }
    assert_on_page(&page);
}

#[test]
fn the_page_says_when_equals_are_called_a_tie() {
    let mut noise = Noise(6);
    let mut page = String::from(
        "| points × systems | repeats | noise 0.5 % | 1 % | 2 % | 5 % |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (points, systems) in SHAPES {
        for blocks in [3, 5, 10] {
            page.push_str(&format!("| {points} × {systems} | {blocks} |"));
            for size in [0.005, 0.01, 0.02, 0.05] {
                let rate = found(&mut noise, Shape { points, systems, blocks }, 0.0, size);
                page.push_str(&format!(" {:.0} % |", rate * 100.0));
            }
            page.push('\n');
        }
    }
    assert_on_page(&page);
}

/// The true factors of a point's systems to its best one.
const FACTORS: [f64; 4] = [1.0, 1.05, 1.5, 3.0];

#[test]
fn the_page_says_how_many_candidates_are_left() {
    let mut noise = Noise(9);
    let mut page = String::from(
        "| points × systems | repeats | candidates | 1.05 × as much: at most | 1.5 ×: at least | 3 ×: at least |\n\
         |---|---:|---:|---:|---:|---:|\n",
    );
    for points in [1, 6, 24] {
        for blocks in [2, 3, 5, 10, 20] {
            let shape = Shape { points, systems: FACTORS.len(), blocks };
            let tables = 240_usize.div_ceil(points);
            let (mut candidates, mut bounds) = (0, vec![Vec::new(); FACTORS.len()]);
            for _ in 0..tables {
                let (table, turns) =
                    turned_table(&mut noise, Scene::Of(Kind::Lognormal), shape, |place| FACTORS[place]);
                let ranked = rank_table(&table);
                for (point, turn) in ranked.points.iter().zip(turns) {
                    let at = |place: usize| (place + FACTORS.len() - turn) % FACTORS.len();
                    let beaten = |system: usize| (0..FACTORS.len()).any(|other| point.beats(other, system));
                    candidates += (0..FACTORS.len()).filter(|system| !beaten(*system)).count();
                    bounds[1].push(point.bounds(at(1), at(0)).hi);
                    (2..FACTORS.len()).for_each(|place| bounds[place].push(point.bounds(at(place), at(0)).lo));
                }
            }
            let mut median = |place: usize| {
                let of: &mut Vec<f64> = &mut bounds[place];
                of.sort_by(f64::total_cmp);
                match of[of.len() / 2] {
                    bound if bound.is_infinite() => "–".into(),
                    bound if bound >= 99.5 => format!("{bound:.0} ×"),
                    bound => format!("{:.2} ×", if place > 1 { bound.max(1.0) } else { bound }),
                }
            };
            let mean = candidates as f64 / (tables * points) as f64;
            page.push_str(&format!(
                "| {points} × 4 | {blocks} | {mean:.1} | {} | {} | {} |\n",
                median(1),
                median(2),
                median(3)
            ));
        }
    }
    assert_on_page(&page);
}

fn assert_on_page(table: &str) {
    println!("{table}");
    let page = include_str!("../../../../docs/ranking.md");
    assert!(page.contains(table), "docs/ranking.md should have this table:\n{table}");
}

/// Points that are undecided at three blocks are mostly decided with the estimated number of
/// additional ones.
#[test]
fn about_so_many_more_repeats_tell() {
    let mut noise = Noise(7);
    let shape = |blocks| Shape { points: 6, systems: 3, blocks };
    let typical = |place: usize| if place == 0 { 1.0 } else { 1.1 };
    let mut asked: Vec<u32> = Vec::new();
    for _ in 0..200 {
        let ranked = rank_table(&table(&mut noise, Scene::Of(Kind::Lognormal), shape(3), typical));
        for point in ranked.points {
            match point.placing {
                PointOutcome::Undecided { repeats_more: Some(more), .. } => asked.push(more),
                PointOutcome::Undecided { repeats_more: None, .. } => asked.push(u32::MAX),
                _ => {}
            }
        }
    }
    asked.sort_unstable();
    let median = asked[asked.len() / 2];
    let mut named = 0;
    for _ in 0..100 {
        let ranked = rank_table(&table(&mut noise, Scene::Of(Kind::Lognormal), shape(3 + median as usize), typical));
        named += ranked.points.iter().filter(|point| matches!(point.placing, PointOutcome::Winner(_))).count();
    }
    println!("three and {median} more blocks name {named} of 600");
    assert!((300..=590).contains(&named), "three and {median} more blocks name {named} of 600");
}
