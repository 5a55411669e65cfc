//! Objectives of a run, such as `p99 < 10ms and lost = 0`.
//!
//! The figures are those of the table ([`Figure`]).

use crate::figure::{Figure, FigureNameError, Scope, Unit};
use crate::flow::{ALL, split_name};
use crate::record::{FigureGroup, RunRecord};
use crate::units::{parse_size, parse_time};
use std::borrow::Cow;
use std::fmt;

/// Longest objective that is parsed, bytes.
const TEXT_MAX: usize = 500;

/// Terms, all of which must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    terms: Vec<ObjectiveTerm>,
}

/// A term of an objective.
#[derive(Clone, Debug)]
pub struct ObjectiveTerm {
    /// The term in its shortest form.
    text: String,
    figure: Figure,
    /// The flow whose figure it is; `None` for the whole run.
    flow: Option<String>,
    /// True if the bound of a count is a share of all messages: `lost < 0.1%`.
    is_share: bool,
    relation: Relation,
    /// In the figure's unit, or a fraction.
    bound: f64,
}

/// Compares the texts, which determine the rest.
impl PartialEq for ObjectiveTerm {
    fn eq(&self, other: &ObjectiveTerm) -> bool {
        self.text == other.text
    }
}

/// Relation of a figure to its bound.
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

/// Reasons why a text is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// The text has the wrong form.
    #[error("`{0}` is not an objective: write FIGURE < BOUND, several with `and`, as in 'p99 < 10ms and lost = 0'")]
    Form(String),
    /// A term names a flow where there are none.
    #[error("`{0}`: a flow has no place here: leave the brackets out")]
    Flow(String),
    /// A term names an unknown figure.
    #[error("`{text}`: {unknown}")]
    Figure {
        /// The term.
        text: String,
        /// The error of the name.
        unknown: FigureNameError,
    },
    /// The figure has no value in a single run.
    #[error("`{text}`: {} is a figure of several runs and has no value in one", .figure.short_name())]
    SeveralRuns {
        /// The term.
        text: String,
        /// The figure.
        figure: Figure,
    },
    /// The bound cannot be read, or has the wrong unit.
    #[error("`{text}`: the bound `{bound}` is none for `{name}`: write {wanted}")]
    Bound {
        /// The term.
        text: String,
        /// The figure's name.
        name: String,
        /// The bound as written.
        bound: String,
        /// Valid bounds.
        wanted: &'static str,
    },
}

impl Objective {
    /// Parses terms with `and` between them.
    ///
    /// # Errors
    /// Says which term is wrong, why, and what could be written.
    pub fn parse(text: &str) -> Result<Objective, ObjectiveError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() || text.len() > TEXT_MAX {
            return Err(ObjectiveError::Form(text.chars().take(TEXT_MAX).collect()));
        }
        let terms =
            words.split(|word| word.eq_ignore_ascii_case("and")).map(|words| ObjectiveTerm::parse(&words.join(" ")));
        Ok(Objective { terms: terms.collect::<Result<_, _>>()? })
    }

    /// Returns the flows that it names.
    pub fn flows(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().filter_map(|term| term.flow.as_deref())
    }

    /// Returns the objective if it names no flow.
    ///
    /// # Errors
    /// The first term that names one.
    pub fn of_whole_runs(self) -> Result<Objective, ObjectiveError> {
        let named = self.terms.iter().find(|term| term.flow.is_some()).map(|term| term.text.clone());
        named.map_or(Ok(self), |text| Err(ObjectiveError::Flow(text)))
    }

    /// Returns the default objective.
    pub fn usual() -> Objective {
        Objective::parse("p99 < 10ms and lost = 0").unwrap_or(Objective { terms: Vec::new() })
    }

    /// Returns its terms.
    pub fn terms(&self) -> &[ObjectiveTerm] {
        &self.terms
    }

    /// Returns the groups of its figures, each once.
    pub fn groups(&self) -> Vec<FigureGroup> {
        let mut groups: Vec<FigureGroup> = self.terms.iter().map(ObjectiveTerm::group).collect();
        groups.sort();
        groups.dedup();
        groups
    }

    /// Returns the terms that a run does not meet, each with its actual value. A figure that was
    /// not measured meets nothing.
    pub fn unmet<'a>(&'a self, record: &RunRecord) -> Vec<(&'a ObjectiveTerm, String)> {
        let unmet = |term: &'a ObjectiveTerm| {
            let value = term.value(record);
            let met = value.is_some_and(|value| term.relation.holds(value, term.bound));
            (!met).then(|| (term, value.map_or("not measured".to_owned(), |value| term.words(value))))
        };
        self.terms.iter().filter_map(unmet).collect()
    }

    /// Returns whether the objective was met regardless of the generator delay; `None` if the delay
    /// may have made the difference, or if a term is about another time.
    ///
    /// In a first-in, first-out queue, messages that are sent later do not leave sooner, and leave
    /// later by at most the delay of their send. So the latency of a message sent when due is at
    /// most the time from its due time to its arrival, and at least its latency less the longest
    /// generator delay of any message and the longest time that any may have waited for its
    /// receiver.
    pub fn despite_lag(&self, record: &RunRecord) -> Option<bool> {
        let (mut holds, mut fails) = (true, false);
        for term in &self.terms {
            match (term.figure.from_due(), term.figure.unit()) {
                (from_due, _) if from_due.is_some() || term.figure == Figure::CAUGHT_UP => {
                    let of = term.record(record)?;
                    let received = of.times.receive_lag.as_ref().map_or(0.0, |lag| lag.max as f64);
                    let late = of.times.own_lag.as_ref()?.max as f64 + received;
                    let value = term.value(record)?;
                    // The last message of a backlog is delivered later by no more than it was sent.
                    let most = from_due.map_or(Some(value + late), |from_due| from_due.value(&of))?;
                    let ends = [(value - late).max(0.0), most];
                    holds &= ends.iter().all(|end| term.holds(*end));
                    fails |= ends.iter().all(|end| !term.holds(*end));
                }
                (_, Unit::Ns) => return None,
                _ => holds &= term.value(record).is_some_and(|value| term.holds(value)),
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
    /// Returns the opposite relation; `None` for `=`, which has two.
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
        let (name, flow) = split_name(name);
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
        let of = flow.map_or_else(String::new, |flow| format!("({flow})"));
        let text = format!("{name}{of} {sign} {bound}");
        Ok(ObjectiveTerm { text, figure, flow: flow.map(str::to_owned), is_share, relation, bound: value })
    }

    /// Splits off the flow that it names: `p99(alarms) < 20ms` is `p99 < 20ms` of `alarms`.
    pub fn split_flow(self) -> (Option<String>, ObjectiveTerm) {
        let of = self.flow.as_ref().map_or_else(String::new, |flow| format!("({flow})"));
        let text = self.text.replacen(&of, "", 1);
        (self.flow.clone(), ObjectiveTerm { text, flow: None, ..self })
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns its figure.
    pub fn figure(&self) -> Figure {
        self.figure
    }

    /// Returns the group of its figure.
    pub fn group(&self) -> FigureGroup {
        self.figure.group()
    }

    /// True if its figure counts messages that do not arrive.
    pub fn about_losses(&self) -> bool {
        [Figure::LOST, Figure::ACKED_LOST, Figure::DELIVERED_RATIO].contains(&self.figure)
    }

    /// Returns the required relation of figure and bound.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// Returns its bound, in the figure's unit.
    pub fn bound(&self) -> f64 {
        self.bound
    }

    /// True if a value meets the bound.
    pub fn holds(&self, value: f64) -> bool {
        self.relation.holds(value, self.bound)
    }

    /// Returns the term that holds if this one does not.
    pub fn otherwise(&self) -> Option<ObjectiveTerm> {
        let relation = self.relation.otherwise()?;
        let at = self.text.find(['<', '>', '='])?;
        let (name, rest) = (self.text[..at].trim(), self.text[at..].trim_start_matches(['<', '>', '=']).trim());
        Some(ObjectiveTerm { text: format!("{name} {} {rest}", relation.sign()), relation, ..self.clone() })
    }

    /// True if its figure is a fact of each run: see [`Figure::is_fact`].
    pub fn is_fact(&self) -> bool {
        self.figure.is_fact()
    }

    /// True if more of its figure is better.
    pub fn higher_is_better(&self) -> bool {
        self.figure.higher_is_better()
    }

    /// Parses terms with commas or `and` between them.
    ///
    /// # Errors
    /// Those of [`Objective::parse`].
    pub fn parse_all(text: &str) -> Result<Vec<ObjectiveTerm>, ObjectiveError> {
        let all = text.split(',').map(|part| Objective::parse(part).map(|objective| objective.terms));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Returns the record that has its figure: that of the flow, if it names one.
    fn record<'r>(&self, record: &'r RunRecord) -> Option<Cow<'r, RunRecord>> {
        match self.flow.as_deref() {
            None | Some(ALL) => Some(Cow::Borrowed(record)),
            Some(flow) => {
                let flow = record.flows.iter().find(|known| known.name == flow)?;
                record.of_flow(flow.clone()).map(Cow::Owned)
            }
        }
    }

    /// Returns the figure of a run; `None` if it was not measured.
    pub fn value(&self, record: &RunRecord) -> Option<f64> {
        let of = self.record(record)?;
        let value = self.figure.value(&of)?;
        if !self.is_share {
            return Some(value);
        }
        let all = if self.figure == Figure::NOT_SENT { of.counts.offered } else { of.counts.expected };
        Some(value / all.max(1) as f64)
    }

    /// Formats a value of its figure.
    pub fn words(&self, value: f64) -> String {
        if self.is_share { in_words(Unit::Share, value) } else { self.figure.words(value) }
    }
}

impl Figure {
    /// Formats a value, short enough for a sentence.
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

/// Formats a time with three digits, which is enough to compare it with a bound.
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

/// Parses a bound in the unit of its figure. Returns also whether it is a share of a count.
///
/// # Errors
/// Says what could be written instead.
pub fn read_bound(figure: Figure, text: &str) -> Result<(bool, f64), &'static str> {
    let number = |text: &str| {
        let plain = text.replace('_', "");
        plain.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
    };
    // Rounded to the fraction that is nearest to the text: 99.9 / 100 is above 0.999.
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
