//! What a load has to keep to: `p99 < 10ms and lost = 0`. Read once, and held
//! against the record of a run.
//!
//! A new figure is a line in `QUANTITIES`; times of messages are named by
//! their own table ([`TimeFigures::NAMES`]) and need none.

use crate::counts::Counts;
use crate::diagnostic::suggestion;
use crate::record::{FigureGroup, RunRecord};
use crate::times::TimeFigures;
use crate::units::{parse_size, parse_time};
use pubmark_stats::Summary;
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
    figure: ObjectiveFigure,
    relation: Relation,
    /// In the figure's unit: ns, messages, a fraction, messages a second, processors, bytes.
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

/// A figure of a run, by the name that objectives have for it: `p99`, `service p99`,
/// `delivered_per_s`.
#[derive(Clone, Copy, Debug)]
pub struct ObjectiveFigure(Figured);

#[derive(Clone, Copy, Debug)]
enum Figured {
    /// Which time of messages, by its place among them, and which figure of it.
    Time(usize, &'static Percentile),
    Quantity(&'static Quantity),
    /// A count as a share of what it is counted of.
    Share(&'static Quantity),
}

/// A figure of a distribution.
#[derive(Debug)]
struct Percentile {
    name: &'static str,
    group: FigureGroup,
    of: fn(&Summary) -> f64,
}

const PERCENTILES: &[Percentile] = &[
    Percentile { name: "min", group: FigureGroup::LatencyP50, of: |all| all.min as f64 },
    Percentile { name: "p50", group: FigureGroup::LatencyP50, of: |all| all.p50 as f64 },
    Percentile { name: "mean", group: FigureGroup::LatencyP99, of: |all| all.mean },
    Percentile { name: "p90", group: FigureGroup::LatencyP99, of: |all| all.p90 as f64 },
    Percentile { name: "p95", group: FigureGroup::LatencyP99, of: |all| all.p95 as f64 },
    Percentile { name: "p99", group: FigureGroup::LatencyP99, of: |all| all.p99 as f64 },
    Percentile { name: "p999", group: FigureGroup::LatencyP99, of: |all| all.p999 as f64 },
    Percentile { name: "max", group: FigureGroup::LatencyP99, of: |all| all.max as f64 },
];

/// What a bound is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Time,
    /// A whole number; with % a share of what was expected, or was due.
    Messages,
    Share,
    Number,
    Size,
}

/// A figure that is no time of messages.
#[derive(Debug)]
struct Quantity {
    name: &'static str,
    unit: Unit,
    group: FigureGroup,
    of: fn(&RunRecord) -> Option<f64>,
}

fn counted(record: &RunRecord, pick: impl Fn(&Counts) -> u64) -> Option<f64> {
    Some(pick(&record.counts) as f64)
}

const QUANTITIES: &[Quantity] = &[
    Quantity { name: "lost", unit: Unit::Messages, group: FigureGroup::Counts, of: |run| counted(run, |all| all.lost) },
    Quantity {
        name: "refused",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| counted(run, |all| all.refused),
    },
    Quantity {
        name: "not_sent",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| counted(run, |all| all.not_sent),
    },
    Quantity {
        name: "duplicated",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| counted(run, |all| all.duplicated),
    },
    Quantity {
        name: "reordered",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| counted(run, |all| all.reordered),
    },
    Quantity {
        name: "corrupted",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| run.counts.corrupted.map(|count| count as f64),
    },
    Quantity {
        name: "acked_lost",
        unit: Unit::Messages,
        group: FigureGroup::Counts,
        of: |run| run.counts.acked_lost.map(|count| count as f64),
    },
    Quantity { name: "late", unit: Unit::Messages, group: FigureGroup::Counts, of: |run| counted(run, |all| all.late) },
    Quantity {
        name: "delivered",
        unit: Unit::Share,
        group: FigureGroup::Counts,
        of: |run| run.counts.delivered_ratio(),
    },
    Quantity { name: "backlog", unit: Unit::Share, group: FigureGroup::Rates, of: |run| Some(backlog(run)) },
    Quantity {
        name: "delivered_per_s",
        unit: Unit::Number,
        group: FigureGroup::Rates,
        of: |run| Some(run.rates.delivered_per_s),
    },
    Quantity {
        name: "sent_per_s",
        unit: Unit::Number,
        group: FigureGroup::Rates,
        of: |run| Some(run.rates.sent_per_s),
    },
    Quantity { name: "jitter", unit: Unit::Time, group: FigureGroup::LatencyP99, of: |run| run.jitter_ns },
    Quantity {
        name: "cpu",
        unit: Unit::Number,
        group: FigureGroup::Cost,
        of: |run| run.server.as_ref().map(|used| used.cpu_cores),
    },
    Quantity {
        name: "memory",
        unit: Unit::Size,
        group: FigureGroup::Cost,
        of: |run| run.server.as_ref().map(|used| used.rss_bytes_max as f64),
    },
];

/// How much of what was sent in the window is owed to subscribers at its end, more
/// than at its beginning, 0 to 1. What is lost for good is not owed.
pub fn backlog(record: &RunRecord) -> f64 {
    let (counts, series) = (&record.counts, &record.series);
    let sent: u64 = series.sent.iter().sum();
    if counts.sent == 0 || sent == 0 {
        return 0.0;
    }
    let copies = sent as f64 * counts.expected as f64 / counts.sent as f64;
    let arrived = series.delivered.iter().sum::<u64>() as f64;
    ((copies - arrived - counts.lost as f64) / copies.max(1.0)).max(0.0)
}

/// A name that no figure has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure `{name}`: {help}")]
pub struct NoSuchFigure {
    name: String,
    /// What it might have been, or which there are.
    help: String,
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
        /// What was taken for a name.
        unknown: NoSuchFigure,
    },
    /// Its bound cannot be read, or can never be met.
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
        let (longest, late) = (times.intended_latency.as_ref()?, times.own_lag.as_ref()?.max);
        let late = late as f64 + times.receive_lag.as_ref().map_or(0.0, |lag| lag.max as f64);
        let (mut holds, mut fails) = (true, false);
        for term in &self.terms {
            match term.figure.0 {
                Figured::Time(time, percentile) if Some(time) == time_of("latency") => {
                    let value = term.value(record)?;
                    let ends = [(value - late).max(0.0), (percentile.of)(longest)];
                    holds &= ends.iter().all(|end| term.holds(*end));
                    fails |= ends.iter().all(|end| !term.holds(*end));
                }
                Figured::Time(..) | Figured::Quantity(Quantity { unit: Unit::Time, .. }) => return None,
                Figured::Quantity(_) | Figured::Share(_) => {
                    holds &= term.value(record).is_some_and(|value| term.holds(value));
                }
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

/// The time of this name: `acked` for `acked_latency`, `service` for `service_latency`.
fn time_of(word: &str) -> Option<usize> {
    let word = word.replace('-', "_");
    let named = |name: &str| name == word || name.strip_prefix(&*word).is_some_and(|rest| rest.starts_with('_'));
    TimeFigures::NAMES.into_array().into_iter().position(named)
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
        let ObjectiveFigure(figure) = ObjectiveFigure::parse(name)
            .map_err(|unknown| ObjectiveError::Figure { text: text.to_owned(), unknown })?;
        let (figure, value) = read(figure, bound).map_err(|wanted| ObjectiveError::Bound {
            text: text.to_owned(),
            name: name.to_owned(),
            bound: bound.to_owned(),
            wanted,
        })?;
        let sign = if sign == "==" { "=" } else { sign };
        Ok(ObjectiveTerm {
            text: format!("{name} {sign} {bound}"),
            figure: ObjectiveFigure(figure),
            relation,
            bound: value,
        })
    }

    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The group of its figure.
    pub fn group(&self) -> FigureGroup {
        self.figure.group()
    }

    /// Whether it is about messages that do not arrive.
    pub fn about_losses(&self) -> bool {
        let names = ["lost", "acked_lost", "delivered"];
        matches!(self.figure.0, Figured::Quantity(of) | Figured::Share(of) if names.contains(&of.name))
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

    /// Whether it is a count of what happened: see [`ObjectiveFigure::counts`].
    pub fn counts(&self) -> bool {
        self.figure.counts()
    }

    /// Whether more of its figure is better.
    pub fn higher_is_better(&self) -> bool {
        let names = ["delivered", "delivered_per_s", "sent_per_s"];
        matches!(self.figure.0, Figured::Quantity(of) if names.contains(&of.name))
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
        self.figure.value(record)
    }

    /// A value of its figure in words.
    pub fn words(&self, value: f64) -> String {
        self.figure.words(value)
    }
}

impl ObjectiveFigure {
    /// The figure of this name.
    ///
    /// # Errors
    /// What it might have been, or which there are.
    pub fn parse(name: &str) -> Result<ObjectiveFigure, NoSuchFigure> {
        figure(name).map(ObjectiveFigure).map_err(|help| NoSuchFigure { name: name.to_owned(), help })
    }

    /// Its group.
    pub fn group(self) -> FigureGroup {
        match self.0 {
            Figured::Time(_, percentile) => percentile.group,
            Figured::Quantity(quantity) | Figured::Share(quantity) => quantity.group,
        }
    }

    /// Whether it is a count of what happened, or a share of it: a fact of each run,
    /// and no measurement with noise.
    pub fn counts(self) -> bool {
        match self.0 {
            Figured::Time(..) => false,
            Figured::Quantity(quantity) => {
                quantity.unit == Unit::Messages || quantity.group == FigureGroup::Counts && quantity.unit == Unit::Share
            }
            Figured::Share(_) => true,
        }
    }

    /// The figure of a run; none where it was not measured.
    pub fn value(self, record: &RunRecord) -> Option<f64> {
        match self.0 {
            Figured::Time(time, percentile) => {
                record.times.as_ref().into_array()[time].as_ref().map(|all| (percentile.of)(all))
            }
            Figured::Quantity(quantity) => (quantity.of)(record),
            Figured::Share(quantity) => {
                let all = if quantity.name == "not_sent" { record.counts.offered } else { record.counts.expected };
                (quantity.of)(record).map(|count| count / all.max(1) as f64)
            }
        }
    }

    /// A value of its figure in words.
    pub fn words(self, value: f64) -> String {
        let unit = match self.0 {
            Figured::Time(..) => Unit::Time,
            Figured::Quantity(quantity) => quantity.unit,
            Figured::Share(_) => Unit::Share,
        };
        match unit {
            Unit::Time => short_time(value),
            Unit::Share => format!("{:.3} %", value * 100.0),
            Unit::Messages => format!("{value:.0}"),
            Unit::Number => format!("{value:.2}"),
            Unit::Size => format!("{:.1} MB", value / 1e6),
        }
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

fn figure(name: &str) -> Result<Figured, String> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let percentile =
        |word: &str| PERCENTILES.iter().find(|known| known.name == word || word == "p99.9" && known.name == "p999");
    let percentiles = || PERCENTILES.iter().map(|known| known.name);
    match words.as_slice() {
        [one] => {
            let quantity = QUANTITIES.iter().find(|known| known.name == one.replace('-', "_"));
            let latency = percentile(one).and_then(|found| Some(Figured::Time(time_of("latency")?, found)));
            quantity.map(Figured::Quantity).or(latency).ok_or_else(|| {
                let names: Vec<&str> = percentiles().chain(QUANTITIES.iter().map(|known| known.name)).collect();
                suggestion(one, names)
            })
        }
        [time, of] => {
            let time = time_of(time)
                .ok_or_else(|| format!("the times of messages are {}", TimeFigures::NAMES.into_array().join(", ")))?;
            let of = percentile(of).ok_or_else(|| suggestion(of, percentiles().collect::<Vec<_>>()))?;
            Ok(Figured::Time(time, of))
        }
        _ => Err("a figure has one word, or two as in `service p99`".into()),
    }
}

/// A bound in the unit of its figure.
fn read(figure: Figured, text: &str) -> Result<(Figured, f64), &'static str> {
    let number = |text: &str| {
        let plain = text.replace('_', "");
        plain.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
    };
    // The nearest fraction to what is written: 99.9 / 100 is above 0.999.
    let share = |text: &str| {
        let percent = number(text.strip_suffix('%')?.trim_end()).filter(|value| *value <= 100.0)?;
        Some((percent * 1e6).round() / 1e8)
    };
    match figure {
        Figured::Time(..) | Figured::Quantity(Quantity { unit: Unit::Time, .. }) => {
            Ok((figure, parse_time(text).map_err(|_| "a time, such as 10ms or 500us")? as f64))
        }
        Figured::Quantity(of @ Quantity { unit: Unit::Messages, .. }) => match share(text) {
            Some(share) => Ok((Figured::Share(of), share)),
            None => Ok((figure, number(text).ok_or("a number of messages, or a share such as 0.1%")?)),
        },
        Figured::Quantity(Quantity { unit: Unit::Share, .. }) | Figured::Share(_) => {
            Ok((figure, share(text).ok_or("a share, such as 99.9%")?))
        }
        Figured::Quantity(Quantity { unit: Unit::Size, .. }) => {
            Ok((figure, parse_size(text).map_err(|_| "a size, such as 500MB")? as f64))
        }
        Figured::Quantity(_) => Ok((figure, number(text).ok_or("a number, 0 or more")?)),
    }
}
