//! The questions of a study, which is measured until its records answer them.

use crate::figure::{Figure, FigureNameError};
use std::fmt;

/// Allowed precisions, as a share of the figure.
const SHARES: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// The word for the figure that the tables rank by.
pub const AUTO: &str = "auto";

/// The questions of a study: `[questions]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedQuestions {
    /// Figures for which the best system at each point is asked; `None` is the figure that the
    /// tables rank by.
    pub best: Vec<Option<Figure>>,
    /// True if the study asks whether its claims hold.
    pub claims: bool,
    /// Pairs of systems: which is better at each point, or are they equal?
    pub differ: Vec<[String; 2]>,
    /// Figures of each cell that must be known to a given precision.
    pub within: Vec<Precision>,
}

/// Default of a study: its claims, and the best system at each point.
impl Default for AskedQuestions {
    fn default() -> AskedQuestions {
        AskedQuestions { best: vec![None], claims: true, ..AskedQuestions::none() }
    }
}

impl AskedQuestions {
    /// Returns a set without questions.
    pub fn none() -> AskedQuestions {
        AskedQuestions { best: Vec::new(), claims: false, differ: Vec::new(), within: Vec::new() }
    }
}

/// Required precision of a figure: `p99 ±5%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// `None` is the figure that the tables rank by.
    figure: Option<Figure>,
    share: f64,
}

/// Reasons why a text is not a precision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrecisionError {
    /// The text has the wrong form.
    #[error("`{0}` says not how well a figure is to be known: write ±2%, or a figure before it, as in 'p99 ±5%'")]
    Form(String),
    /// The text names an unknown figure.
    #[error("`{text}`: {unknown}")]
    Figure {
        /// The whole text.
        text: String,
        /// The error of the name.
        unknown: FigureNameError,
    },
    /// The figure is a count, which has no noise.
    #[error(
        "`{0}`: what is counted is a fact of each run, and not known to within a share: ask for a time, a rate or a use"
    )]
    Counted(String),
    /// The precision is out of range.
    #[error("`{0}`: a figure is known to within ±0.1% to ±50%")]
    Range(String),
}

impl Precision {
    /// Reads a precision. `±` may be written `+-` or `+/-`.
    ///
    /// # Errors
    /// Says what is wrong with the text, and what could be written.
    pub fn parse(text: &str) -> Result<Precision, PrecisionError> {
        let form = || PrecisionError::Form(text.chars().take(100).collect());
        let signs = ["±", "+/-", "+-"];
        let (name, rest) = signs.iter().find_map(|sign| text.split_once(sign)).ok_or_else(form)?;
        let percent = rest.trim().strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        // Rounded to the fraction that is nearest to the text.
        let share = percent.map(|percent| (percent * 1e6).round() / 1e8).ok_or_else(form)?;
        if !SHARES.contains(&share) {
            return Err(PrecisionError::Range(text.to_owned()));
        }
        let figure = match name.trim() {
            "" => None,
            name => {
                let known = Figure::named(name);
                Some(known.map_err(|unknown| PrecisionError::Figure { text: text.to_owned(), unknown })?)
            }
        };
        if figure.is_some_and(Figure::is_fact) {
            return Err(PrecisionError::Counted(text.to_owned()));
        }
        Ok(Precision { figure, share })
    }

    /// Returns the largest distance from the figure to the ends of its interval, as a share of the
    /// figure.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Returns the figure. If none is named, this is the figure that the tables rank by at given
    /// rates or, if `unthrottled`, with messages sent as fast as possible.
    pub fn figure(&self, unthrottled: bool) -> Figure {
        self.figure.unwrap_or(if unthrottled { Figure::DELIVERED } else { Figure::LATENCY_P50 })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.figure.map_or_else(String::new, |figure| format!("{} ", figure.short_name()));
        write!(f, "{name}±{}%", (self.share * 1e8).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_read_as_people_write_it() {
        for (text, shown) in [
            ("±2%", "±2%"),
            ("p99 ±5%", "p99 ±5%"),
            ("p99+-5 %", "p99 ±5%"),
            (" service  p50 +/- 0.1%", "service p50 ±0.1%"),
            ("delivered_per_s ±50%", "delivered_per_s ±50%"),
        ] {
            let read = Precision::parse(text).unwrap();
            assert_eq!(read.to_string(), shown);
            assert_eq!(Precision::parse(shown).unwrap(), read);
        }
        let usual = Precision::parse("±7%").unwrap();
        assert_eq!(usual.share(), 0.07);
        assert_eq!((usual.figure(false), usual.figure(true)), (Figure::LATENCY_P50, Figure::DELIVERED));
    }

    #[test]
    fn what_cannot_be_known_so_is_refused() {
        for (text, why) in [
            ("2%", "says not how well"),
            ("p99 < 5ms", "says not how well"),
            ("±2", "says not how well"),
            ("±0%", "±0.1% to ±50%"),
            ("±51%", "±0.1% to ±50%"),
            ("±nan%", "±0.1% to ±50%"),
            ("p98 ±2%", "there is no figure `p98`"),
            ("lost ±2%", "a fact of each run"),
            ("delivered_ratio ±2%", "a fact of each run"),
            ("delivered ±2%", "could be delivered_per_s or delivered_ratio"),
        ] {
            let error = Precision::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
