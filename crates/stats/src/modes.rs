//! Finds runs that fall into two groups which noise does not explain.

use crate::estimate::median;

/// Fewest values in which two groups can be distinguished.
const VALUES_MIN: usize = 5;
/// Fewest values of a group, and its least share of all, one in this many: smaller groups are
/// outliers.
const GROUP_MIN: usize = 2;
const GROUP_SHARE: usize = 5;
/// Groups closer than this factor are not distinguished.
const FACTOR_MIN: f64 = 1.2;
/// The gap between two groups is at least this many times the width of the wider one.
const GAP: f64 = 1.5;
/// Below this number of values the gap must be wider, in proportion: few values hardly show the
/// width of a group.
const GAP_VALUES: f64 = 20.0;

/// Two groups of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Modes {
    /// Indices of the values of the lower group, ascending by value.
    pub lower: Vec<usize>,
    /// Indices of the values of the upper group, ascending by value.
    pub upper: Vec<usize>,
    /// The median of the lower group.
    pub lower_median: f64,
    /// The median of the upper group.
    pub upper_median: f64,
}

/// Finds two groups, each of at least two values and a fifth of all, with a gap between them that
/// is wide compared with both: at least a factor of 1.2, and 1.5 times the wider group on a
/// logarithmic scale (more below 20 values). `step` is the smallest difference that the measurement
/// can show.
///
/// Of values with one mode, normal, heavy-tailed or uniform, at most 2 in 100 cells are reported as
/// two groups (`tests/it/modes.rs`). `None` for fewer than five values, or if one is not above 0.
pub fn modes(values: &[f64], step: f64) -> Option<Modes> {
    let count = values.len();
    if count < VALUES_MIN || values.iter().any(|value| !(value.is_finite() && *value > 0.0)) {
        return None;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let log = |place: usize| values[order[place]].ln();
    let needed = GAP.max(GAP * GAP_VALUES / count as f64);
    let gap = |split: &usize| log(*split) - log(split - 1);
    let least = GROUP_MIN.max(count / GROUP_SHARE);
    let split = (least..=count - least).max_by(|one, other| gap(one).total_cmp(&gap(other)))?;
    let resolution = step / values[order[split - 1]];
    let width = (log(split - 1) - log(0)).max(log(count - 1) - log(split)).max(resolution);
    if gap(&split) < FACTOR_MIN.ln() || gap(&split) < needed * width {
        return None;
    }
    let (lower, upper) = order.split_at(split);
    let of = |group: &[usize]| median(&group.iter().map(|place| values[*place]).collect::<Vec<f64>>());
    Some(Modes { lower_median: of(lower)?, upper_median: of(upper)?, lower: lower.to_vec(), upper: upper.to_vec() })
}
