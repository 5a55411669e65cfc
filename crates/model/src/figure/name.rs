//! Looks up figures by the names that people type.

use super::row::{Figure, Source};
use crate::diagnostic::meant;
use crate::printable::printable;
use crate::times::TimeFigures;

/// Longest name that is looked up, bytes: suggestions for longer ones take too long.
const NAME_MAX: usize = 60;

/// Names that could mean several figures.
const AMBIGUOUS: [(&str, &[Figure]); 6] = [
    ("delivered", &[Figure::DELIVERED, Figure::DELIVERED_RATIO]),
    ("sent", &[Figure::SENT, Figure::NOT_SENT]),
    ("cpu", &[Figure::CPU_PER_MESSAGE, Figure::CPU_CORES, Figure::SERVER_CPU]),
    ("cores", &[Figure::CPU_CORES, Figure::SERVER_CPU]),
    ("memory", &[Figure::MEMORY_MAX, Figure::SERVER_MEMORY_MAX, Figure::SERVER_MEMORY]),
    ("rss", &[Figure::MEMORY_MAX, Figure::SERVER_MEMORY_MAX, Figure::SERVER_MEMORY]),
];

/// Reasons why a text names no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureNameError {
    /// The name could be several figures.
    #[error("`{name}` could be {}: write the one that you mean", or(.figures))]
    Ambiguous {
        /// The name as typed.
        name: String,
        /// The possible figures.
        figures: &'static [Figure],
    },
    /// Systems cannot be ranked by the figure.
    #[error("`{name}` ranks nothing: {why}")]
    Unranked {
        /// The name as typed.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// The figure is unknown.
    #[error("there is no figure `{name}`: {help}")]
    Unknown {
        /// The name as typed, cut off.
        name: String,
        /// The figure that was probably meant, or the known names.
        help: String,
    },
}

fn or(figures: &[Figure]) -> String {
    let names: Vec<&str> = figures.iter().map(|figure| figure.short_name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

impl Figure {
    /// Returns the figure of this name: the one in files (`latency_p99_ns`), a shorter one (`p99`),
    /// or a percentile of a time (`service p99.9`). `-`, `_` and a blank are equivalent.
    ///
    /// # Errors
    /// The name fits no figure or several; the error lists those that may have been meant.
    pub fn named(text: &str) -> Result<Figure, FigureNameError> {
        let name = text.split_whitespace().collect::<Vec<_>>().join("_").replace('-', "_");
        let named = |figure: &Figure| figure.names().any(|known| known.replace(' ', "_") == name);
        if let Some(found) = Figure::all().find(named) {
            return Ok(found);
        }
        if let Some((_, figures)) = AMBIGUOUS.into_iter().find(|(known, _)| *known == name) {
            return Err(FigureNameError::Ambiguous { name: text.trim().to_owned(), figures });
        }
        if let Some(found) = of_time(&name) {
            return Ok(found);
        }
        let mut shown: String = printable(text.trim()).chars().take(NAME_MAX).collect();
        let help = if text.len() > NAME_MAX {
            shown.push('…');
            "names are shorter".to_owned()
        } else {
            probably(&name)
        };
        Err(FigureNameError::Unknown { name: shown, help })
    }

    /// Returns the figure of this name, by which systems can be ranked.
    ///
    /// # Errors
    /// There is no such figure, or none of its values is better than another.
    pub fn ranking(text: &str) -> Result<Figure, FigureNameError> {
        let figure = Figure::named(text)?;
        let why = match figure.description().better {
            None => "neither more nor less of it is better",
            Some(_) if !figure.is_comparable() => "it is a figure of whole cells, and no single run has it",
            Some(_) => return Ok(figure),
        };
        Err(FigureNameError::Unranked { name: text.to_owned(), why })
    }

    /// Returns all its names.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        let row = self.description();
        row.short.iter().copied().chain(std::iter::once(row.key))
    }
}

/// Returns what was probably meant. There are too many figures to list.
fn probably(name: &str) -> String {
    match meant(name, Figure::columns().flat_map(Figure::names)) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "p50, p99, delivered_per_s, delivered_ratio, lost and others are in docs/figures.md".into(),
    }
}

/// Finds the figure of a time: `service p99.9`, `service_latency p99`, that is a time of messages
/// by its name or the first word of it, and a percentile.
fn of_time(name: &str) -> Option<Figure> {
    let (time, percentile) = match name.rsplit_once('_') {
        Some((time, percentile)) => (time, percentile),
        None => ("latency", name),
    };
    let percentile = if percentile == "p99.9" { "p999" } else { percentile };
    let is_meant = |known: &str| known == time || known.strip_suffix("_latency") == Some(time);
    let place = TimeFigures::NAMES.into_array().into_iter().position(is_meant)?;
    Figure::all().find(|figure| match figure.description().source {
        Source::Time(of, of_percentile) => of == place && of_percentile.word() == percentile,
        _ => false,
    })
}
