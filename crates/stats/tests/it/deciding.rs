//! Studies that are evaluated after every block, and measured further only at open points: their
//! error rate, and the time they save.

use pubmark_stats::{
    Better, Blocks, Looks, PairedBound, PairedOutcome, PairedReading, PairedTest, PointInput, PointOutcome,
    RankedPoint, RankedTable, RankingInput, SAME_WITHIN, SystemOutcome, rank_table,
};

use crate::noise::{Kind, Noise, STEP, five_percent_at_most};

/// Noise between runs. The systems of a block drift together.
#[derive(Clone, Copy, Debug)]
enum Scene {
    /// Noise of one kind and size everywhere.
    Of(Kind),
    /// Lognormal; each system at each point has a size of its own.
    EachItsOwn,
}

/// The scenes in which ranking is tested.
const SCENES: [Scene; 5] = [
    Scene::Of(Kind::Lognormal),
    Scene::EachItsOwn,
    Scene::Of(Kind::HeavyBothWays),
    Scene::Of(Kind::HeavySlow),
    Scene::Of(Kind::Disturbed),
];

/// A growing study.
struct Study<'a> {
    noise: &'a mut Noise,
    scene: Scene,
    /// Values of runs without noise, by point and system.
    typical: Vec<Vec<f64>>,
    sizes: Vec<Vec<f64>>,
    drift: Vec<f64>,
    table: RankingInput,
    runs: usize,
}

impl<'a> Study<'a> {
    fn new(noise: &'a mut Noise, scene: Scene, typical: Vec<Vec<f64>>, looks: bool) -> Study<'a> {
        let sizes = typical.iter().map(|of| of.iter().map(|_| 0.03 * (0.8 * noise.normal()).exp()).collect()).collect();
        let system = || Blocks { values: Vec::new(), sessions: Vec::new(), step: STEP };
        let point =
            |of: &Vec<f64>| PointInput { systems: of.iter().map(|_| system()).collect(), better: Better::Lower };
        let pairs = typical.iter().map(|of| of.len() * (of.len() - 1) / 2).sum();
        let rivals = typical.iter().map(|systems| systems.len().saturating_sub(1)).sum();
        let looks = if looks { Looks::Many { pairs, rivals } } else { Looks::Once };
        let table =
            RankingInput { points: typical.iter().map(point).collect(), bound: SAME_WITHIN, alpha: 0.05, looks };
        let drift = vec![0.0; typical.len()];
        Study { noise, scene, typical, sizes, drift, table, runs: 0 }
    }

    /// Adds one block of a point: one run of each of its systems that are selected.
    fn block(&mut self, point: usize, asked: impl Fn(usize) -> bool) {
        self.drift[point] += 0.1 * self.noise.normal();
        let drift = self.drift[point].exp();
        for system in 0..self.typical[point].len() {
            let factor = match self.scene {
                Scene::Of(kind) => self.noise.factor(kind),
                Scene::EachItsOwn => (self.sizes[point][system] * self.noise.normal()).exp(),
            };
            let value = asked(system).then_some(self.typical[point][system] * drift * factor);
            self.runs += usize::from(value.is_some());
            self.table.points[point].systems[system].values.push(value);
        }
    }

    /// Adds blocks until all is decided or the budget of runs is spent; calls `seen` after each
    /// block with the ranking and the number of runs.
    fn decide(&mut self, budget: usize, mut seen: impl FnMut(&RankedTable, usize)) {
        let systems: Vec<usize> = self.typical.iter().map(Vec::len).collect();
        let mut asked: Vec<Vec<bool>> = systems.iter().map(|systems| vec![true; *systems]).collect();
        for block in 1.. {
            for (point, wanted) in asked.clone().into_iter().enumerate() {
                if wanted.contains(&true) && self.runs + wanted.iter().filter(|is| **is).count() <= budget {
                    self.block(point, |system| wanted[system]);
                }
            }
            let ends = self.runs + 2 > budget || block > 2_000;
            if !is_look(block) && !ends {
                continue;
            }
            let ranked = rank_table(&self.table);
            seen(&ranked, self.runs);
            for (asked, point) in asked.iter_mut().zip(&ranked.points) {
                let is_open = matches!(point.placing, PointOutcome::Undecided { .. });
                let open = |standing: &SystemOutcome| is_open && *standing != SystemOutcome::Behind;
                *asked = point.standings.iter().map(open).collect();
            }
            if ends || asked.iter().all(|of| !of.contains(&true)) {
                return;
            }
            let least = asked.iter().map(|of| of.iter().filter(|is| **is).count()).filter(|runs| *runs > 0).min();
            if self.runs + least.unwrap_or(0) > budget {
                return;
            }
        }
    }
}

/// True if the result can have changed: pairs are tested after these blocks alone.
fn is_look(block: usize) -> bool {
    block == 1 || block.is_power_of_two() || (block.is_multiple_of(3) && (block / 3).is_power_of_two())
}

fn winners(ranked: &RankedTable) -> usize {
    ranked.points.iter().filter(|point| matches!(point.placing, PointOutcome::Winner(_))).count()
}

fn ties(ranked: &RankedTable) -> usize {
    ranked.points.iter().filter(|point| matches!(point.placing, PointOutcome::Tie(_))).count()
}

fn decided(ranked: &RankedTable) -> usize {
    ranked.points.iter().filter(|point| !matches!(point.placing, PointOutcome::Undecided { .. })).count()
}

/// Returns the number of studies in which a statement is made at any look.
fn ever(
    noise: &mut Noise,
    scene: Scene,
    typical: &[Vec<f64>],
    (studies, blocks): (usize, usize),
    said: impl Fn(&RankedTable) -> bool,
) -> usize {
    let runs = blocks * typical.iter().map(Vec::len).sum::<usize>();
    let one = |_: &usize| {
        let mut once = false;
        Study::new(noise, scene, typical.to_vec(), true).decide(runs, |ranked, _| once |= said(ranked));
        once
    };
    (0..studies).filter(one).count()
}

#[test]
fn of_equal_systems_at_most_five_studies_in_a_hundred_name_a_winner_at_any_look() {
    const STUDIES: usize = 100;
    let mut noise = Noise(11);
    for scene in SCENES {
        let (mut all, mut all_wrong) = (0, 0);
        for (points, systems) in [(1, 2), (6, 3), (12, 2), (24, 4)] {
            for blocks in [2, 3, 5, 10, 50] {
                let studies = if points * systems * blocks > 1_000 { STUDIES / 5 } else { STUDIES };
                let wrong = ever(&mut noise, scene, &vec![vec![1.0; systems]; points], (studies, blocks), |ranked| {
                    winners(ranked) > 0
                });
                let rate = wrong as f64 / studies as f64;
                assert!(rate <= five_percent_at_most(studies), "{scene:?}, {points} x {systems}, {blocks}: {rate}");
                (all, all_wrong) = (all + studies, all_wrong + wrong);
            }
        }
        println!("{scene:?}: of {all} studies {all_wrong} name a winner");
        assert!(all_wrong as f64 / all as f64 <= 0.05, "{scene:?}: {all_wrong} of {all}");
    }
}

/// Systems that differ exactly by the bound of a tie are called a tie in at most 5 studies of 100,
/// at any look. Each has this distance to the next.
#[test]
fn of_systems_at_the_bound_at_most_five_studies_in_a_hundred_name_a_tie_at_any_look() {
    const STUDIES: usize = 100;
    let mut noise = Noise(13);
    for scene in SCENES {
        let (mut all, mut all_wrong) = (0, 0);
        for (points, systems) in [(1, 2), (6, 2), (12, 2), (4, 3)] {
            for blocks in [3, 10, 50] {
                let studies = if points * systems * blocks > 500 { STUDIES / 5 } else { STUDIES };
                let typical: Vec<f64> = (0..systems).map(|place| (1.0 + SAME_WITHIN).powi(place as i32)).collect();
                let wrong =
                    ever(&mut noise, scene, &vec![typical; points], (studies, blocks), |ranked| ties(ranked) > 0);
                let rate = wrong as f64 / studies as f64;
                assert!(rate <= five_percent_at_most(studies), "{scene:?}, {points} x {systems}, {blocks}: {rate}");
                (all, all_wrong) = (all + studies, all_wrong + wrong);
            }
        }
        println!("{scene:?}: of {all} studies {all_wrong} name a tie");
        assert!(all_wrong as f64 / all as f64 <= 0.05, "{scene:?}: {all_wrong} of {all}");
    }
}

/// A claim that one system is best holds if each rival is shown to be behind it, and fails if it is
/// shown to be behind one. For equal systems at most 5 studies in 100 decide either at any point,
/// whatever is claimed and whatever is measured further.
#[test]
fn of_equal_systems_at_most_five_studies_in_a_hundred_decide_a_claim_at_any_look() {
    const STUDIES: usize = 100;
    let mut noise = Noise(14);
    let (mut all, mut all_wrong) = (0, 0);
    for scene in SCENES {
        for (points, systems, blocks) in [(1, 2, 50), (6, 3, 10), (12, 2, 10)] {
            let wrong = ever(&mut noise, scene, &vec![vec![1.0; systems]; points], (STUDIES, blocks), |ranked| {
                // The claim is that the first is best of all.
                let said = |point: &RankedPoint| {
                    let holds = (1..systems).all(|rival| point.beats(0, rival));
                    holds || (1..systems).any(|rival| point.beats(rival, 0))
                };
                ranked.points.iter().any(said)
            });
            let rate = wrong as f64 / STUDIES as f64;
            assert!(rate <= five_percent_at_most(STUDIES), "{scene:?}, {points} x {systems}, {blocks}: {rate}");
            (all, all_wrong) = (all + STUDIES, all_wrong + wrong);
        }
    }
    println!("of {all} studies {all_wrong} decide a claim about equal systems");
    assert!(all_wrong as f64 / all as f64 <= 0.05, "{all_wrong} of {all}");
}

/// Bounds claimed for a family of cells (`p99 < 5ms`), tested after each run: if each cell lies
/// exactly at its bound, at most 5 studies in 100 ever say that any is broken, and at most 5 that
/// all are met. If some runs are much slower and none is faster, mean and median of runs differ:
/// the test for a broken bound is then about the (geometric) mean, and that for a met one about the
/// median.
#[test]
fn of_cells_at_their_bounds_at_most_five_studies_in_a_hundred_decide_a_claim_at_any_look() {
    const STUDIES: usize = 200;
    const RUNS: usize = 50;
    const DRAWN: usize = 200_001;
    let mut noise = Noise(15);
    for kind in [Kind::Lognormal, Kind::HeavyBothWays, Kind::HeavySlow, Kind::Disturbed] {
        let mut drawn = noise.runs(kind, 1.0, DRAWN);
        drawn.sort_by(f64::total_cmp);
        let mean = (drawn.iter().map(|value| value.ln()).sum::<f64>() / DRAWN as f64).exp();
        let median = drawn[DRAWN / 2];
        for cells in [1, 4, 24] {
            let test = PairedTest::new(cells);
            let mut said = |bound: f64| -> Vec<PairedOutcome> {
                let reading = |b: f64| PairedReading { a: bound, b, step_a: 0.0, step_b: b * STEP };
                let of_cell = |_| {
                    let runs: Vec<PairedReading> = noise.runs(kind, 1.0, RUNS).into_iter().map(reading).collect();
                    // The first look that decides is final.
                    test.decide(&runs, PairedBound { rise: true, by: 0.0, relative: true }).unwrap().outcome
                };
                (0..cells).map(of_cell).collect()
            };
            let (mut broken, mut kept) = (0, 0);
            for _ in 0..STUDIES {
                broken += usize::from(said(mean).contains(&PairedOutcome::Beyond));
                kept += usize::from(said(median).iter().all(|outcome| *outcome == PairedOutcome::Within));
            }
            println!("{kind:?}, {cells} cells: of {STUDIES} studies {broken} broken, {kept} kept");
            for wrong in [broken, kept] {
                let rate = wrong as f64 / STUDIES as f64;
                assert!(rate <= five_percent_at_most(STUDIES), "{kind:?}, {cells} cells: {rate}");
            }
        }
    }
}

/// Distances between the systems of a study's points.
#[derive(Clone, Copy, Debug)]
enum Apart {
    /// 6 points of 2 systems, 10 % apart.
    Close,
    /// 12 points of 3 systems, from 5 to 100 % apart, evenly on a logarithmic scale.
    Mixed,
    /// 24 points of 4 systems: 50 % apart at half of the points, and two equal systems at the
    /// others.
    Gross,
}

impl Apart {
    fn typical(self, noise: &mut Noise) -> Vec<Vec<f64>> {
        match self {
            Apart::Close => vec![vec![1.0, 1.1]; 6],
            Apart::Mixed => (0..12)
                .map(|_| {
                    let step = 0.05 * 20f64.powf(noise.uniform());
                    vec![1.0, 1.0 + step, (1.0 + step).powi(2)]
                })
                .collect(),
            Apart::Gross => (0..24)
                .map(|point| if point % 2 == 0 { vec![1.0, 1.5, 1.5, 2.0] } else { vec![1.0, 1.0, 1.5, 2.0] })
                .collect(),
        }
    }
}

/// Returns the number of questions decided with a fixed number of repeats; the number decided in
/// the same time with a look after each block; and the share of the time in which the latter decide
/// as many as the former.
fn beside_fixed(noise: &mut Noise, apart: Apart, repeats: usize) -> [f64; 3] {
    const STUDIES: usize = 40;
    let (mut shares, mut questions, mut of_fixed, mut of_same_time) = (Vec::new(), 0, 0, 0);
    for _ in 0..STUDIES {
        let typical = apart.typical(noise);
        questions += typical.len();
        let mut fixed = Study::new(noise, Scene::Of(Kind::Lognormal), typical.clone(), false);
        for _ in 0..repeats {
            (0..typical.len()).for_each(|point| fixed.block(point, |_| true));
        }
        let (runs, found) = (fixed.runs, decided(&rank_table(&fixed.table)));
        let mut study = Study::new(noise, Scene::Of(Kind::Lognormal), typical, true);
        let (mut reached, mut same_time) = (None, 0);
        study.decide(8 * runs, |ranked, made| {
            if made <= runs {
                same_time = decided(ranked);
            }
            if decided(ranked) >= found && reached.is_none() {
                reached = Some(made);
            }
        });
        (of_fixed, of_same_time) = (of_fixed + found, of_same_time + same_time);
        if found > 0 {
            shares.push(reached.unwrap_or(8 * runs) as f64 / runs as f64);
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    [of_fixed as f64 / questions as f64, of_same_time as f64 / questions as f64, mean]
}

/// A budget decides at least as much as twenty repeats of everything, in about half the time.
#[test]
fn a_budget_saves_time() {
    let mut noise = Noise(12);
    for apart in [Apart::Close, Apart::Mixed, Apart::Gross] {
        for repeats in [3, 5, 10, 20] {
            let [fixed, same_time, share] = beside_fixed(&mut noise, apart, repeats);
            println!(
                "{apart:?}, {repeats} repeats: {fixed:.2} decided, {same_time:.2} in the same time, {share:.1} of it"
            );
            // Half the time, if a fixed number of repeats is more than enough.
            let is_plenty = repeats == 20 || matches!(apart, Apart::Gross) && repeats >= 5;
            assert!(!is_plenty || share < 0.55, "{apart:?}, {repeats} repeats: {share}");
            if repeats == 20 {
                assert!(same_time >= fixed - 0.01, "{apart:?}: {same_time}, {fixed}");
            }
        }
    }
}
