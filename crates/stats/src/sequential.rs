//! Divides an error rate over repeated looks at figures.
//!
//! A test at level 0.05 after each block errs far more often than five times in a hundred. So the
//! 0.05 is divided over the looks: when a share `t` of all that will be measured is there,
//! `alpha · t` may have been spent (the linear member of the power family: Kim & DeMets 1987,
//! *Design and analysis of group sequential tests based on the type I error spending rate
//! function*, Biometrika 74(1); Lan & DeMets 1983, *Discrete sequential boundaries for clinical
//! trials*, Biometrika 70(3)). A look is tested at the level that was added since the look before
//! it. The levels add up to at most `alpha`, so the rate holds for any test, for any dependence
//! between looks and wherever one stops. The cost, compared with bounds made for one test alone, is
//! power at many looks, so looks should become rarer as blocks become more.

/// The spent part of an error rate.
#[derive(Debug, Clone, PartialEq)]
pub struct AlphaSpending {
    alpha: f64,
    spent: f64,
}

impl AlphaSpending {
    /// Creates an unspent error rate `alpha`, a probability.
    pub fn new(alpha: f64) -> AlphaSpending {
        AlphaSpending { alpha, spent: 0.0 }
    }

    /// Returns the level of a look that is taken when `share` (0 to 1) of all that will be measured
    /// is there: by time if a budget ends it, or by blocks. It is zero if an earlier look was taken
    /// at this share or a larger one.
    pub fn level_at(&mut self, share: f64) -> f64 {
        let due = self.alpha * share.clamp(0.0, 1.0);
        let level = (due - self.spent).max(0.0);
        self.spent = self.spent.max(due);
        level
    }
}

/// Share of the remaining error rate that each look spends if the number of looks is unknown. A
/// fifth loses little compared with a plan for the right number of looks, from 2 blocks to 50; also
/// tried were a quarter, a tenth of the whole for each look, and 1/(k (k+1)) for the k-th
/// (`tests/it/deciding.rs`).
const SPENT: f64 = 0.2;

/// Returns the number of blocks of the look after one at `blocks`: 2, 3, 4, 6, 8, 12, 16, 24 and so
/// on. Looks become rarer, because one more block adds less the more there are.
pub fn look_after(blocks: usize) -> usize {
    if blocks < 2 {
        return 2;
    }
    let power = 1 << blocks.ilog2();
    let (half, next) = (power + power / 2, power * 2);
    if blocks < half { half } else { next }
}

/// Returns the share of an error rate that the look at this many blocks may spend: 0 if there is no
/// such look. All looks together spend at most 1, whatever their number.
pub(crate) fn share_of_look(blocks: usize) -> f64 {
    let mut spending = AlphaSpending::new(1.0);
    let (mut look, mut left) = (look_after(0), 1.0 - SPENT);
    while look < blocks {
        spending.level_at(1.0 - left);
        (look, left) = (look_after(look), left * (1.0 - SPENT));
    }
    if look == blocks { spending.level_at(1.0 - left) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{AlphaSpending, look_after, share_of_look};

    #[test]
    fn looks_share_one_rate_however_they_are_placed() {
        for shares in
            [vec![1.0], vec![0.5, 1.0], (1..=50).map(|look| f64::from(look) / 50.0).collect(), vec![0.7, 0.2, 9.0]]
        {
            let mut spending = AlphaSpending::new(0.05);
            let levels: Vec<f64> = shares.iter().map(|share| spending.level_at(*share)).collect();
            assert!(levels.iter().all(|level| *level >= 0.0), "{levels:?}");
            assert!((levels.iter().sum::<f64>() - 0.05).abs() < 1e-12, "{shares:?}: {levels:?}");
        }
        let mut spending = AlphaSpending::new(0.05);
        assert_eq!(spending.level_at(0.5), 0.025);
        assert_eq!(spending.level_at(0.4), 0.0, "time does not run back");
    }

    #[test]
    fn looks_become_rarer_and_never_spend_more_than_there_is() {
        let looks: Vec<usize> = std::iter::successors(Some(2), |look| Some(look_after(*look))).take(12).collect();
        assert_eq!(looks, [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96]);
        let shares: Vec<f64> = looks.iter().map(|look| share_of_look(*look)).collect();
        assert!(shares.windows(2).all(|two| two[1] < two[0] && two[1] > 0.7 * two[0]), "{shares:?}");
        let all: f64 = (0..100_000).map(share_of_look).sum();
        assert!(all > 0.99 && all <= 1.0, "{all}");
        assert_eq!([1, 5, 7, 100].map(share_of_look), [0.0; 4]);
    }
}
