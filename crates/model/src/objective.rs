//! Objectives of a run, such as `p99 < 10ms and lost = 0`.
//!
//! Its figures are those of the table ([`Figure`]).

use crate::figure::{Figure, FigureNameError, Scope, Unit};
use crate::record::{FigureGroup, RunRecord};
use crate::units::{parse_size, parse_time};
use std::fmt;

/// Longest objective that is read, bytes.
const TEXT_MAX: usize = 500;

/// Terms, all of which must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    terms: Vec<ObjectiveTerm>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct ObjectiveTerm {
    /// As it is written, in its shortest form.
    text: String,
    figure: Figure,
    /// Whether the bound of a count is a share of all messages: `lost < 0.1%`.
    is_share: bool,
    relation: Relation,
    /// In the figure's unit, or a fraction.
    bound: f64,
}

/// What is written says all of it.
impl PartialEq for ObjectiveTerm {
    fn eq(&self, other: &ObjectiveTerm) -> bool {
        self.text == other.text
    }
}

/// How a figure has to lie to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `=`
    Equal,
}

/// Why a text is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// It has not the form of one.
    #[error("`{0}` is no objective: write FIGURE < BOUND, several with `and`, as in 'p99 < 10ms and lost = 0'")]
    Form(String),
    /// It names no figure.
    #[error("`{text}`: {unknown}")]
    Figure {
        /// The term.
        text: String,
        /// What is wrong with the name.
        unknown: FigureNameError,
    },
    /// No single run has the figure.
    #[error("`{text}`: {} is a figure of several runs and has no value in one", .figure.short_name())]
    SeveralRuns {
        /// The term.
        text: String,
        /// The figure.
        figure: Figure,
    },
    /// Its bound cannot be read, or does not have the unit of the figure.
    #[error("`{text}`: the bound `{bound}` is none for `{name}`: write {wanted}")]
    Bound {
        /// The term.
        text: String,
        /// The figure.
        name: String,
        /// What was written.
        bound: String,
        /// What could have been.
        wanted: &'static str,
    },
}

impl Objective {
    /// Reads terms with `and` between them.
    ///
    /// # Errors
    /// Which term is none, why, and what would be.
    pub fn parse(text: &str) -> Result<Objective, ObjectiveError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || text.len() > TEXT_MAX {
            return Err(ObjectiveError::Form(text.chars().take(TEXT_MAX).collect()));
        }
        let terms =
            words.split(|word| word.eq_ignore_ascii_case("and")).map(|words| ObjectiveTerm::parse(&words.join(" ")));
        Ok(Objective { terms: terms.collect::<Result<_, _>>()? })
    }

    /// What is asked for where nobody says.
    pub fn usual() -> Objective {
        Objective::parse("p99 < 10ms and lost = 0").unwrap_or(Objective { terms: Vec::new() })
    }

    /// Its terms.
    pub fn terms(&self) -> &[ObjectiveTerm] {
        &self.terms
    }

    /// The groups of the figures that it is about, each once.
    pub fn groups(&self) -> Vec<FigureGroup> {
        let mut groups: Vec<FigureGroup> = self.terms.iter().map(ObjectiveTerm::group).collect();
        groups.sort();
        groups.dedup();
        groups
    }

    /// The terms that a run does not meet: each with what it had instead. A figure
    /// that was not measured meets nothing.
    pub fn unmet<'a>(&'a self, record: &RunRecord) -> Vec<(&'a ObjectiveTerm, String)> {
        let unmet = |term: &'a ObjectiveTerm| {
            let value = term.value(record);
            let met = value.is_some_and(|value| term.relation.holds(value, term.bound));
            (!met).then(|| (term, value.map_or("not measured".to_owned(), |value| term.words(value))))
        };
        self.terms.iter().filter_map(unmet).collect()
    }

    /// Whether it held, or did not, however late the generator itself was; none where
    /// that may have made the difference, or where a term is about another time.
    ///
    /// Messages that are sent later leave a queue that serves them in their order no
    /// sooner, and later by no more than they were sent later. So a message that is
    /// sent when it is due takes no longer than from its due time to its arrival; and
    /// no less than its latency, less the longest that any message was late, and the
    /// longest that any may have waited for its receiver.
    pub fn despite_lag(&self, record: &RunRecord) -> Option<bool> {
        let times = &record.times;
        let late = times.own_lag.as_ref()?.max as f64 + times.receive_lag.as_ref().map_or(0.0, |lag| lag.max as f64);
        let (mut holds, mut fails) = (true, false);
        for term in &self.terms {
            match (term.figure.from_due(), term.figure.unit()) {
                (Some(from_due), _) => {
                    let value = term.value(record)?;
                    let ends = [(value - late).max(0.0), from_due.value(record)?];
                    holds &= ends.iter().all(|end| term.holds(*end));
                    fails |= ends.iter().all(|end| !term.holds(*end));
                }
                (None, Unit::Ns) => return None,
                (None, _) => holds &= term.value(record).is_some_and(|value| term.holds(value)),
            }
        }
        fails.then_some(false).or(holds.then_some(true))
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<&str> = self.terms.iter().map(|term| term.text.as_str()).collect();
        f.write_str(&terms.join(" and "))
    }
}

impl Relation {
    /// What holds where this does not; none of `=`, of which there are two.
    pub fn otherwise(self) -> Option<Relation> {
        Some(match self {
            Relation::Below => Relation::AtLeast,
            Relation::AtMost => Relation::Above,
            Relation::Above => Relation::AtMost,
            Relation::AtLeast => Relation::Below,
            Relation::Equal => return None,
        })
    }

    fn sign(self) -> &'static str {
        match self {
            Relation::Below => "<",
            Relation::AtMost => "<=",
            Relation::Above => ">",
            Relation::AtLeast => ">=",
            Relation::Equal => "=",
        }
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::Below => value < bound,
            Relation::AtMost => value <= bound,
            Relation::Above => value > bound,
            Relation::AtLeast => value >= bound,
            Relation::Equal => value == bound,
        }
    }
}

impl ObjectiveTerm {
    fn parse(text: &str) -> Result<ObjectiveTerm, ObjectiveError> {
        let form = || ObjectiveError::Form(text.to_owned());
        let at = text.find(['<', '>', '=']).ok_or_else(form)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let relations = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("==", Relation::Equal),
            ("<", Relation::Below),
            (">", Relation::Above),
            ("=", Relation::Equal),
        ];
        let found = relations.into_iter().find_map(|(sign, relation)| Some((sign, relation, rest.strip_prefix(sign)?)));
        let (sign, relation, bound) = found.ok_or_else(form)?;
        let bound = bound.trim();
        if name.is_empty() || bound.is_empty() {
            return Err(form());
        }
        let figure =
            Figure::named(name).map_err(|unknown| ObjectiveError::Figure { text: text.to_owned(), unknown })?;
        if !figure.is_of_run() {
            return Err(ObjectiveError::SeveralRuns { text: text.to_owned(), figure });
        }
        let (is_share, value) = read_bound(figure, bound).map_err(|wanted| ObjectiveError::Bound {
            text: text.to_owned(),
            name: name.to_owned(),
            bound: bound.to_owned(),
            wanted,
        })?;
        let sign = if sign == "==" { "=" } else { sign };
        Ok(ObjectiveTerm { text: format!("{name} {sign} {bound}"), figure, is_share, relation, bound: value })
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its figure.
    pub fn figure(&self) -> Figure {
        self.figure
    }

    /// The group of its figure.
    pub fn group(&self) -> FigureGroup {
        self.figure.group()
    }

    /// Whether it is about messages that do not arrive.
    pub fn about_losses(&self) -> bool {
        [Figure::LOST, Figure::ACKED_LOST, Figure::DELIVERED_RATIO].contains(&self.figure)
    }

    /// How its figure has to lie to its bound.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// Its bound, in the figure's unit.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// Whether a value keeps to it.
    pub fn holds(&self, value: f64) -> bool {
        self.relation.holds(value, self.bound)
    }

    /// The term that holds where this one does not.
    pub fn otherwise(&self) -> Option<ObjectiveTerm> {
        let relation = self.relation.otherwise()?;
        let at = self.text.find(['<', '>', '='])?;
        let (name, rest) = (self.text[..at].trim(), self.text[at..].trim_start_matches(['<', '>', '=']).trim());
        Some(ObjectiveTerm { text: format!("{name} {} {rest}", relation.sign()), relation, ..self.clone() })
    }

    /// Whether it is about a fact of each run: see [`Figure::is_fact`].
    pub fn is_fact(&self) -> bool {
        self.figure.is_fact()
    }

    /// Whether more of its figure is better.
    pub fn higher_is_better(&self) -> bool {
        self.figure.higher_is_better()
    }

    /// The terms that are written with commas or `and` between them.
    ///
    /// # Errors
    /// As of [`Objective::parse`].
    pub fn parse_all(text: &str) -> Result<Vec<ObjectiveTerm>, ObjectiveError> {
        let all = text.split(',').map(|part| Objective::parse(part).map(|objective| objective.terms));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The figure of a run; none where it was not measured.
    pub fn value(&self, record: &RunRecord) -> Option<f64> {
        let value = self.figure.value(record)?;
        if !self.is_share {
            return Some(value);
        }
        let all = if self.figure == Figure::NOT_SENT { record.counts.offered } else { record.counts.expected };
        Some(value / all.max(1) as f64)
    }

    /// A value of its figure in words.
    pub fn words(&self, value: f64) -> String {
        if self.is_share { in_words(Unit::Share, value) } else { self.figure.words(value) }
    }
}

impl Figure {
    /// A value in words, short enough for a sentence.
    pub fn words(self, value: f64) -> String {
        in_words(self.unit(), value)
    }
}

fn in_words(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Ns => short_time(value),
        Unit::Share => format!("{:.3} %", value * 100.0),
        Unit::Count => format!("{value:.0}"),
        Unit::PerS | Unit::Cores | Unit::PerMessage | Unit::Multiple => format!("{value:.2}"),
        Unit::Bytes => format!("{:.1} MB", value / 1e6),
        Unit::BytesPerS => format!("{:.1} MB/s", value / 1e6),
    }
}

/// A time with three digits, which is enough to be held against a bound.
fn short_time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "µs"),
        ns => (ns, "ns"),
    };
    let digits = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.digits$} {unit}")
}

/// Reads a bound in the unit of its figure, and whether it is a share of a count.
///
/// # Errors
/// What could be written instead.
pub fn read_bound(figure: Figure, text: &str) -> Result<(bool, f64), &'static str> {
    let number = |text: &str| {
        let plain = text.replace('_', "");
        plain.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
    };
    // The nearest fraction to what is written: 99.9 / 100 is above 0.999.
    let share = |text: &str| {
        let percent = number(text.strip_suffix('%')?.trim_end()).filter(|value| *value <= 100.0)?;
        Some((percent * 1e6).round() / 1e8)
    };
    let whole = |value: Option<f64>, wanted| value.map(|value| (false, value)).ok_or(wanted);
    match figure.unit() {
        Unit::Ns => whole(parse_time(text).ok().map(|ns| ns as f64), "a time, such as 10ms or 500us"),
        Unit::Bytes => whole(parse_size(text).ok().map(|bytes| bytes as f64), "a size, such as 500MB"),
        Unit::BytesPerS => {
            let size = parse_size(text.strip_suffix("/s").unwrap_or(text)).ok();
            whole(size.map(|bytes| bytes as f64), "bytes a second, such as 50MB/s")
        }
        Unit::Share => whole(share(text), "a share, such as 99.9%"),
        Unit::Count if figure.description().scope == Scope::Flow => match share(text) {
            Some(share) => Ok((true, share)),
            None => whole(number(text), "a number of messages, or a share such as 0.1%"),
        },
        Unit::Count | Unit::PerS | Unit::Cores | Unit::PerMessage | Unit::Multiple => {
            whole(number(text), "a number, 0 or more, without a unit")
        }
    }
}
