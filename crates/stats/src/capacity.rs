//! The search for a capacity: the highest load at which something holds, found by testing one load
//! after the other, where every answer may be wrong.
//!
//! The edge is a threshold of a psychometric function: at a load x a step holds with the
//! probability g + (1 − g − l) / (1 + exp((ln x − ln edge) / s)). The search keeps a joint
//! distribution over the edge, the slope s and the lapse rate l (the rate at which a step far below
//! the edge fails nevertheless). The next load is the median of the edge, where either answer is
//! most informative (Horstein 1963; Waeber, Frazier and Henderson, *Bisection search with noisy
//! responses*, SIAM J. Control Optim. 51, 2013). With slope and lapses as nuisance parameters this
//! is the Ψ method (Kontsevich and Tyler, Vision Research 39, 1999) with a rule in place of its
//! look ahead. So loads near the edge are tested again, and later answers outweigh an early wrong
//! one. The method was chosen by simulation: `tests/it/capacity.rs` plays it against queues of
//! known capacity.
//!
//! Before something has failed, the load doubles; before something has held, it halves. No load is
//! more than twice the highest that held, whatever the distribution: a step far beyond the edge
//! does harm and gives no information.

/// Points of the grid per octave: a step of 1 %.
const PER_OCTAVE: usize = 70;
/// Distance of the grid's lower end below the start, octaves.
const BELOW: usize = 14;
/// Distance of the grid's upper end above the start, octaves.
const ABOVE: usize = 24;
/// Widths s of the edge, in ln of the load, equally likely.
const SLOPES: [f64; 3] = [0.005, 0.015, 0.04];
/// Lapse rates with their weights: a quiet machine, and one with disturbances.
const LAPSES: [(f64, f64); 3] = [(0.02, 0.6), (0.10, 0.3), (0.25, 0.1)];
/// Probability with which a step far beyond the edge holds nevertheless.
const GUESS: f64 = 0.01;
/// The odds with which a step at the edge holds, apart from lapses. In a queue, the percentile of a
/// short window is more often below the true one than above it, so at even odds the edge would be
/// found 2 % too high.
const EDGE_ODDS: f64 = 2.0;
/// The search is over when the ends of the interval are at most this many times the target width
/// apart. (The estimate lies within, so it is usually nearer to the edge than either end.)
const SETTLED: f64 = 1.5;
/// Probability with which other programs on the machine make a step fail that would have held.
const DOUBT: f64 = 0.5;
/// Prior factor by which the edge is less likely for each octave from the start.
const DECAY: f64 = 0.6;
/// Tested loads lie on a grid with this many points in the target width.
const ASKED_PER_WIDTH: f64 = 3.0;

/// A tail of the distribution is tested separately if it is this many times as long as the other.
const TAIL: f64 = 3.0;

/// Confidence level of a capacity's interval.
pub const CAPACITY_LEVEL: f64 = 0.9;

/// Interval of the edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityInterval {
    /// Its lower end.
    pub lo: f64,
    /// The median.
    pub estimate: f64,
    /// Its upper end.
    pub hi: f64,
}

/// Knowledge about a capacity from the steps so far. The order of the steps does not matter.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    start: f64,
    within: f64,
    /// The probability of each edge with each slope and each lapse rate, with the edge as the
    /// slowest index; sums to 1.
    cells: Vec<f64>,
    highest_held: Option<f64>,
    lowest_missed: Option<f64>,
    missed: usize,
}

/// Returns the edges of the grid, as ln of the load over the start.
fn edges() -> impl Iterator<Item = f64> {
    let octave = std::f64::consts::LN_2 / PER_OCTAVE as f64;
    let from = -((BELOW * PER_OCTAVE) as f64);
    (0..=(BELOW + ABOVE) * PER_OCTAVE).map(move |at| (from + at as f64) * octave)
}

/// Returns slopes and lapse rates with the weight of both.
fn shapes() -> impl Iterator<Item = (f64, f64, f64)> {
    let each = |slope: f64| LAPSES.iter().map(move |(lapse, weight)| (slope, *lapse, *weight / SLOPES.len() as f64));
    SLOPES.into_iter().flat_map(each)
}

impl CapacitySearch {
    /// Creates a search that begins at a load above 0 that is surely low, and ends when both ends
    /// are within this fraction of the estimate.
    pub fn new(start: f64, within: f64) -> CapacitySearch {
        let weights = edges().flat_map(|edge| {
            let far = (edge / std::f64::consts::LN_2).abs();
            shapes().map(move |(_, _, weight)| weight * DECAY.powf(far))
        });
        let cells = normalised(weights.collect());
        CapacitySearch { start, within, cells, highest_held: None, lowest_missed: None, missed: 0 }
    }

    /// Adds a step at this load: true if it held.
    pub fn note(&mut self, load: f64, held: bool) {
        self.learn(load, held, 0.0);
    }

    /// Adds a step at this load that failed, possibly because of other programs on the machine.
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

    /// Returns the load to test next.
    pub fn next(&self) -> f64 {
        let load = match (self.highest_held, self.lowest_missed) {
            (None, None) => return self.start,
            (Some(held), None) => return held * 2.0,
            (None, Some(missed)) => return missed / 2.0,
            // The first failure ends the doubling, and is repeated before it counts.
            (Some(_), Some(missed)) if self.missed == 1 && self.highest_held < self.lowest_missed => return missed,
            (Some(held), Some(_)) => self.telling().min(held * 2.0),
        };
        let step = (1.0 + self.within / ASKED_PER_WIDTH).ln();
        self.start * (((load / self.start).ln() / step).round() * step).exp()
    }

    /// Returns the load whose answer is most informative: the median, or the middle of a tail that
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

    /// Returns the interval of the edge; `None` if nothing has held yet, or nothing has failed.
    pub fn interval(&self) -> Option<CapacityInterval> {
        self.highest_held.and(self.lowest_missed)?;
        Some(self.ends())
    }

    /// True if both ends are as near to the estimate as requested.
    pub fn settled(&self) -> bool {
        self.interval().is_some_and(|found| found.hi <= found.lo * (1.0 + self.within).powf(SETTLED))
    }

    /// Returns the edge below which this share of the distribution lies.
    fn quantile(&self, share: f64) -> f64 {
        let shapes = shapes().count();
        let half = std::f64::consts::LN_2 / PER_OCTAVE as f64 / 2.0;
        let (mut below, mut last) = (0.0, 0.0);
        for (edge, cells) in edges().zip(self.cells.chunks_exact(shapes)) {
            let here: f64 = cells.iter().sum();
            if below + here >= share {
                // The distribution is uniform within the cell.
                let part = if here > 0.0 { (share - below) / here } else { 0.5 };
                return self.start * (edge + half * (2.0 * part - 1.0)).exp();
            }
            below += here;
            last = edge;
        }
        self.start * last.exp()
    }
}

/// Returns the logistic function. Beyond 30 it is 0 or 1 to all digits that matter, which holds for
/// most of the grid.
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
