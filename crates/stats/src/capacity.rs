//! The search for a capacity: the highest load at which something holds, found
//! by asking loads one after the other, where every answer may be wrong.
//!
//! The edge is a threshold of a psychometric function: at a load x a step
//! holds with the probability g + (1 − g − l) / (1 + exp((ln x − ln edge) / s)).
//! What is known is kept as a joint distribution over the edge, the slope s and
//! the lapse rate l (a step far below the edge that fails nevertheless); the
//! next load is the median of the edge, where an answer of either kind tells
//! most (Horstein 1963; Waeber, Frazier and Henderson, *Bisection search with
//! noisy responses*, SIAM J. Control Optim. 51, 2013). With slope and lapses as
//! nuisance parameters this is the Ψ method (Kontsevich and Tyler, Vision
//! Research 39, 1999) with a rule in place of its look ahead. So loads near the
//! edge are asked again, and a wrong answer early is outweighed by those that
//! follow. It was chosen by simulation: `tests/it/capacity.rs` plays it against
//! queues of known capacity.
//!
//! Before something has failed, the load doubles; before something has held, it
//! halves. No load is more than twice what has held, whatever the distribution
//! says: a step far beyond the edge hurts, and tells nothing.

/// Points of the grid for an octave: a step of 1 %.
const PER_OCTAVE: usize = 70;
/// How far below the start the edge may lie, octaves.
const BELOW: usize = 14;
/// How far above.
const ABOVE: usize = 24;
/// Widths s of the edge, in ln of the load, all as likely.
const SLOPES: [f64; 3] = [0.005, 0.015, 0.04];
/// Lapse rates with their weights: a quiet machine, and one with disturbances.
const LAPSES: [(f64, f64); 3] = [(0.02, 0.6), (0.10, 0.3), (0.25, 0.1)];
/// How often a step far beyond the edge holds nevertheless.
const GUESS: f64 = 0.01;
/// The odds with which a step at the edge holds, but for lapses. Of a queue the
/// percentile of a short window is below the true one more often than above it,
/// so that at even odds the edge would be found 2 % too high.
const EDGE_ODDS: f64 = 2.0;
/// The search is over when the ends of the interval are as far apart as so many
/// times what was asked for. (The estimate lies within, so that it is nearer to the
/// edge than either end most of the time.)
const SETTLED: f64 = 1.5;
/// How often a step that would have held does not, where others use the machine.
const DOUBT: f64 = 0.5;
/// How much less likely the edge is an octave farther from the start.
const DECAY: f64 = 0.6;
/// Loads that are asked lie on a grid: so many in the width that is asked for.
const ASKED_PER_WIDTH: f64 = 3.0;

/// A tail of what is known is asked by itself if it is so many times as long as the other.
const TAIL: f64 = 3.0;

/// How sure the interval of a capacity is.
pub const CAPACITY_LEVEL: f64 = 0.9;

/// Where the edge lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityInterval {
    /// Its lower end.
    pub lo: f64,
    /// The median.
    pub estimate: f64,
    /// Its upper end.
    pub hi: f64,
}

/// What is known of a capacity by the steps so far. The order of the steps does
/// not matter to it.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    start: f64,
    within: f64,
    /// The probability of each edge with each slope and each lapse rate, the
    /// edge slowest; sums to 1.
    cells: Vec<f64>,
    highest_held: Option<f64>,
    lowest_missed: Option<f64>,
    missed: usize,
}

/// The edges of the grid, as ln of the load over the start.
fn edges() -> impl Iterator<Item = f64> {
    let octave = std::f64::consts::LN_2 / PER_OCTAVE as f64;
    let from = -((BELOW * PER_OCTAVE) as f64);
    (0..=(BELOW + ABOVE) * PER_OCTAVE).map(move |at| (from + at as f64) * octave)
}

/// Slopes with lapse rates and the weight of both.
fn shapes() -> impl Iterator<Item = (f64, f64, f64)> {
    let each = |slope: f64| LAPSES.iter().map(move |(lapse, weight)| (slope, *lapse, *weight / SLOPES.len() as f64));
    SLOPES.into_iter().flat_map(each)
}

impl CapacitySearch {
    /// A search that begins at a load that is surely low, above 0, and is over
    /// when both ends are within this fraction of the estimate.
    pub fn new(start: f64, within: f64) -> CapacitySearch {
        let weights = edges().flat_map(|edge| {
            let far = (edge / std::f64::consts::LN_2).abs();
            shapes().map(move |(_, _, weight)| weight * DECAY.powf(far))
        });
        let cells = normalised(weights.collect());
        CapacitySearch { start, within, cells, highest_held: None, lowest_missed: None, missed: 0 }
    }

    /// A step at this load held, or did not.
    pub fn note(&mut self, load: f64, held: bool) {
        self.learn(load, held, 0.0);
    }

    /// A step at this load did not hold, and it may be that others are to blame.
    pub fn note_doubtful(&mut self, load: f64) {
        self.learn(load, false, DOUBT);
    }

    fn learn(&mut self, load: f64, held: bool, doubt: f64) {
        let at = (load / self.start).ln();
        let mut cells = std::mem::take(&mut self.cells);
        let shapes: Vec<_> = shapes().collect();
        for (edge, cells) in edges().zip(cells.chunks_exact_mut(shapes.len())) {
            for ((slope, lapse, _), cell) in shapes.iter().zip(cells) {
                let holds = GUESS + (1.0 - GUESS - lapse) * logistic((edge - at) / slope + EDGE_ODDS.ln());
                *cell *= if held { holds } else { 1.0 - holds * (1.0 - doubt) };
            }
        }
        self.cells = normalised(cells);
        match held {
            true => self.highest_held = Some(self.highest_held.map_or(load, |known| known.max(load))),
            false => self.lowest_missed = Some(self.lowest_missed.map_or(load, |known| known.min(load))),
        }
        self.missed += usize::from(!held);
    }

    /// The load to ask next.
    pub fn next(&self) -> f64 {
        let load = match (self.highest_held, self.lowest_missed) {
            (None, None) => return self.start,
            (Some(held), None) => return held * 2.0,
            (None, Some(missed)) => return missed / 2.0,
            // The first that fails ends the climb, and is asked again before it is believed.
            (Some(_), Some(missed)) if self.missed == 1 && self.highest_held < self.lowest_missed => return missed,
            (Some(held), Some(_)) => self.telling().min(held * 2.0),
        };
        let step = (1.0 + self.within / ASKED_PER_WIDTH).ln();
        self.start * (((load / self.start).ln() / step).round() * step).exp()
    }

    /// The load whose answer tells most: the median, or in the middle of a tail that
    /// is much longer than the other.
    fn telling(&self) -> f64 {
        let CapacityInterval { lo, estimate, hi } = self.ends();
        let [below, above] = [(estimate / lo).ln(), (hi / estimate).ln()];
        let short = (1.0 + self.within).ln();
        if above > TAIL * below.max(short) {
            (estimate * hi).sqrt()
        } else if below > TAIL * above.max(short) {
            (lo * estimate).sqrt()
        } else {
            estimate
        }
    }

    fn ends(&self) -> CapacityInterval {
        let beside = (1.0 - CAPACITY_LEVEL) / 2.0;
        let [lo, estimate, hi] = [beside, 0.5, 1.0 - beside].map(|share| self.quantile(share));
        CapacityInterval { lo, estimate, hi }
    }

    /// Where the edge lies; none where nothing has held yet, or nothing failed.
    pub fn interval(&self) -> Option<CapacityInterval> {
        self.highest_held.and(self.lowest_missed)?;
        Some(self.ends())
    }

    /// Whether both ends are as near to the estimate as was asked.
    pub fn settled(&self) -> bool {
        self.interval().is_some_and(|found| found.hi <= found.lo * (1.0 + self.within).powf(SETTLED))
    }

    /// The edge below which so much of the distribution lies.
    fn quantile(&self, share: f64) -> f64 {
        let shapes = shapes().count();
        let half = std::f64::consts::LN_2 / PER_OCTAVE as f64 / 2.0;
        let (mut below, mut last) = (0.0, 0.0);
        for (edge, cells) in edges().zip(self.cells.chunks_exact(shapes)) {
            let here: f64 = cells.iter().sum();
            if below + here >= share {
                // Within the cell it is spread evenly.
                let part = if here > 0.0 { (share - below) / here } else { 0.5 };
                return self.start * (edge + half * (2.0 * part - 1.0)).exp();
            }
            below += here;
            last = edge;
        }
        self.start * last.exp()
    }
}

/// Beyond 30 it is 0 or 1 to all digits that matter, and most of the grid is.
fn logistic(x: f64) -> f64 {
    match x {
        x if x > 30.0 => 1.0,
        x if x < -30.0 => 0.0,
        x => 1.0 / (1.0 + (-x).exp()),
    }
}

fn normalised(mut cells: Vec<f64>) -> Vec<f64> {
    let sum: f64 = cells.iter().sum();
    cells.iter_mut().for_each(|cell| *cell /= sum);
    cells
}
