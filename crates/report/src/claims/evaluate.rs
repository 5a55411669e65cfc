//! Evaluates an expression at each point of a study.

mod along;
mod cells;
mod failure;
mod leaf;

use super::amount::{Amount, Certainty, Compared, Ends};
use super::outcome::{ClaimOutcome, Evidence, best_outcome, is_tie, wanted};
use super::words::{amount, label_of, quantity, sign};
use crate::analysis::{CellResult, by_cell};
use crate::bound_check::speaks_of;
use crate::capacity::CapacityResult;
use crate::figures::{Observation, Sign, is_counted, observed};
use crate::ranking::Ranked;
use crate::text::clean;
use crate::words::{FAILED, UNRELIABLE};
use leaf::{Leaf, leaves, of_quantity};
use pubmark_model::cell::label;
use pubmark_model::claim::{Claim, Dimension, Expression, NamedPlaces, Operator, Proposition, Quantity};
use pubmark_model::figure::Figure;
use pubmark_model::objective::Relation;
use pubmark_model::record::{FigureGroup, RunRecord};
use serde_json::{Map, Value};

/// Most points at which an expression is looked at.
const POINTS_MAX: usize = 10_000;
/// Longest reason that is quoted, characters.
const WHY_CHARS: usize = 200;

/// Result of an expression at a point.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub outcome: ClaimOutcome,
    /// The figures that it rests on, or what is missing.
    pub words: Vec<String>,
    /// The cells that have to be measured where it is open; none where more runs tell nothing.
    pub cells: Vec<usize>,
    /// The figures that runs have to be quotable for.
    pub groups: Vec<FigureGroup>,
    /// About how many more repeats would tell.
    pub more: Option<u32>,
    /// Runs of each side that it rests on, at least.
    pub runs: Option<usize>,
}

impl Said {
    fn new(outcome: ClaimOutcome, words: String) -> Said {
        Said { outcome, words: vec![words], cells: Vec::new(), groups: Vec::new(), more: None, runs: None }
    }

    fn of(outcome: Option<bool>, words: String) -> Said {
        Said::new(
            match outcome {
                Some(true) => ClaimOutcome::Holds,
                Some(false) => ClaimOutcome::Fails,
                None => ClaimOutcome::Open,
            },
            words,
        )
    }
}

/// Why there is no value.
struct Gap {
    /// True if further runs may decide it; otherwise it is not tested here.
    is_open: bool,
    why: String,
    cells: Vec<usize>,
}

impl Gap {
    fn untested(why: String) -> Gap {
        Gap { is_open: false, why, cells: Vec::new() }
    }
}

type Found<T> = Result<T, Gap>;

/// An expression with what it is held against.
struct Evaluation<'a> {
    claim: &'a Claim,
    evidence: Evidence<'a>,
    runs_of: Vec<Vec<&'a RunRecord>>,
    certainty: Certainty,
}

/// Evaluates an expression at each of its points, and returns the results with their points.
pub(crate) fn at_points(claim: &Claim, expression: &Expression, evidence: Evidence<'_>) -> Vec<(String, Said)> {
    let (runs, of) = evidence.runs;
    let mut evaluation = Evaluation {
        claim,
        evidence,
        runs_of: by_cell(evidence.cells.len(), of.iter().copied().zip(runs)),
        certainty: Certainty::new(1, true, false),
    };
    let points = evaluation.points(&expression.root);
    let inner = inner_points(&expression.root, &evaluation);
    let comparisons = comparisons(&expression.root).saturating_mul(points.len().max(inner));
    let all_have_to_hold = claim.share >= 1.0 && is_conjunction(&expression.root);
    evaluation.certainty = Certainty::new(comparisons, all_have_to_hold, evidence.rules.until_decided);
    points.into_iter().map(|point| (label(&point), evaluation.at(&expression.root, &point))).collect()
}

/// True if all terms have to hold.
fn is_conjunction(root: &Proposition) -> bool {
    match root {
        Proposition::All(each) => each.iter().all(is_conjunction),
        Proposition::Any(_) | Proposition::Not(_) | Proposition::Share { .. } => false,
        _ => true,
    }
}

fn comparisons(root: &Proposition) -> usize {
    match root {
        Proposition::All(each) | Proposition::Any(each) => each.iter().map(comparisons).sum(),
        Proposition::Not(of) | Proposition::Share { of, .. } => comparisons(of),
        _ => 1,
    }
}

fn inner_points(root: &Proposition, evaluation: &Evaluation<'_>) -> usize {
    match root {
        Proposition::All(each) | Proposition::Any(each) => {
            each.iter().map(|one| inner_points(one, evaluation)).max().unwrap_or(0)
        }
        Proposition::Not(of) => inner_points(of, evaluation),
        Proposition::Share { of, .. } => evaluation.points(of).len(),
        _ => 0,
    }
}

impl<'a> Evaluation<'a> {
    fn cell(&self, index: usize) -> &'a CellResult {
        &self.evidence.cells[index]
    }

    /// The places at which an expression is looked at: all that its leaves leave free.
    fn points(&self, root: &Proposition) -> Vec<Map<String, Value>> {
        let mut all = Vec::new();
        leaves(root, &mut all);
        let mut points = vec![Map::new()];
        for leaf in all {
            let mut places: Vec<Map<String, Value>> = Vec::new();
            for index in self.matching(leaf, &Map::new()) {
                let place = self.free(leaf, &self.cell(index).cell.axes);
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            let mut next = Vec::new();
            for point in points {
                let agrees = |place: &&Map<String, Value>| {
                    place.iter().all(|(axis, value)| point.get(axis).is_none_or(|known| known == value))
                };
                let mut more = places.iter().filter(agrees).peekable();
                if more.peek().is_none() {
                    next.push(point.clone());
                    continue;
                }
                for place in more.take(POINTS_MAX.saturating_sub(next.len())) {
                    let mut joined = point.clone();
                    joined.extend(place.clone());
                    if !next.contains(&joined) {
                        next.push(joined);
                    }
                }
            }
            points = next;
        }
        points
    }

    fn at(&self, root: &Proposition, point: &Map<String, Value>) -> Said {
        match root {
            Proposition::All(each) => self.together(each, point, ClaimOutcome::Fails, ClaimOutcome::Holds),
            Proposition::Any(each) => self.together(each, point, ClaimOutcome::Holds, ClaimOutcome::Fails),
            Proposition::Not(of) => {
                let said = self.at(of, point);
                let outcome = match said.outcome {
                    ClaimOutcome::Holds => ClaimOutcome::Fails,
                    ClaimOutcome::Fails => ClaimOutcome::Holds,
                    other => other,
                };
                Said { outcome, ..said }
            }
            Proposition::Share { of, relation, bound } => self.share(of, *relation, *bound),
            Proposition::Order { figure, at, groups, rises } => {
                self.order(*figure, at, groups, rises, point).unwrap_or_else(|gap| gap.said(&[*figure]))
            }
            Proposition::Best { figure, at, systems } => {
                self.best(*figure, at, systems, point).unwrap_or_else(|gap| gap.said(&[*figure]))
            }
            Proposition::Compare { left, relation, right } => self.compare(left, *relation, right, point),
            Proposition::FailsAt { axis, within, at } => {
                self.fails(axis, *within, at, point).unwrap_or_else(|gap| gap.said(&[]))
            }
            Proposition::LimitedBy { at, limits } => {
                let found = self.search(at, point).and_then(|result| {
                    let answer = result.answer();
                    let limit = answer
                        .limited_by
                        .ok_or_else(|| Gap::untested(format!("the search of {} found no limit", label_of(at))))?;
                    let why = clean(answer.evidence.as_deref().unwrap_or_default(), WHY_CHARS);
                    let words = format!("{}: limited by {limit} ({why})", label_of(at));
                    Ok(Said::of(Some(limits.contains(&limit)), words))
                });
                found.unwrap_or_else(|gap| gap.said(&[]))
            }
        }
    }

    /// Combines several results, of which one decides if it is `decisive`.
    fn together(
        &self,
        each: &[Proposition],
        point: &Map<String, Value>,
        decisive: ClaimOutcome,
        otherwise: ClaimOutcome,
    ) -> Said {
        let said: Vec<Said> = each.iter().map(|one| self.at(one, point)).collect();
        let any = |outcome| said.iter().any(|one| one.outcome == outcome);
        let outcome = if any(decisive) {
            decisive
        } else if any(ClaimOutcome::Open) {
            ClaimOutcome::Open
        } else if any(ClaimOutcome::Untested) {
            ClaimOutcome::Untested
        } else {
            otherwise
        };
        let mut whole = Said { words: Vec::new(), more: Some(0), ..Said::new(outcome, String::new()) };
        for one in said {
            // Of several open results, the one that takes longest counts.
            if one.outcome == ClaimOutcome::Open {
                whole.more = whole.more.zip(one.more).map(|(one, other)| one.max(other));
            }
            whole.runs = match (whole.runs, one.runs) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            whole.words.extend(one.words.into_iter().filter(|words| !whole.words.contains(words)).collect::<Vec<_>>());
            whole.cells.extend(one.cells);
            whole.groups.extend(one.groups);
        }
        whole.more = whole.more.filter(|more| *more > 0 && outcome == ClaimOutcome::Open);
        whole
    }

    fn share(&self, of: &Proposition, relation: Relation, bound: f64) -> Said {
        let said: Vec<Said> = self.points(of).iter().map(|point| self.at(of, point)).collect();
        let count = |wanted| said.iter().filter(|one| one.outcome == wanted).count();
        let (won, lost) = (count(ClaimOutcome::Holds), count(ClaimOutcome::Fails));
        let total = said.len();
        let words = format!("at {won} of {total} points, and not at {lost}");
        if total == 0 {
            return Said::new(ClaimOutcome::Untested, "none of its points was run here".into());
        }
        // Shares are decimal fractions: 0.6 of 5 points is 3, whatever the binary
        // rounding of the product.
        let [least, most] = [won, total - lost].map(|points| points as f64 / total as f64);
        let holds = |share: f64| match relation {
            Relation::Below => share < bound - 1e-9,
            Relation::AtMost => share <= bound + 1e-9,
            Relation::Above => share > bound + 1e-9,
            Relation::AtLeast => share >= bound - 1e-9,
            Relation::Equal => (share - bound).abs() < 1e-9,
        };
        let outcome = match (holds(least), holds(most)) {
            (true, true) => ClaimOutcome::Holds,
            (false, false) if relation != Relation::Equal || least == most => ClaimOutcome::Fails,
            _ if count(ClaimOutcome::Open) > 0 => ClaimOutcome::Open,
            _ => ClaimOutcome::Untested,
        };
        let mut whole = Said::new(outcome, words);
        for one in said.into_iter().filter(|one| one.outcome == ClaimOutcome::Open) {
            whole.more = whole.more.max(one.more);
            whole.cells.extend(one.cells);
            whole.groups.extend(one.groups);
        }
        whole
    }

    /// The cell of each of these systems, and their ranking.
    fn ranked(
        &self,
        figure: Figure,
        at: &NamedPlaces,
        systems: &[&str],
        point: &Map<String, Value>,
    ) -> Found<(Vec<usize>, &'a Ranked)> {
        let mut cells = Vec::new();
        for system in systems {
            let own = at.of_system(system);
            let leaf = Leaf { at: &own, over: None, all_systems: false };
            let [cell] = self.cells_at(leaf, point)?[..] else {
                return Err(Gap::untested(format!("{} is several cells: name a place on each axis", label_of(&own))));
            };
            cells.push(cell);
        }
        let together = self.evidence.points.iter().find(|point| cells.iter().all(|cell| point.members.contains(cell)));
        let Some(ranks) = together.and_then(|point| point.by(figure)) else {
            return Err(Gap::untested(format!("{} are not compared at one point", systems.join(", "))));
        };
        Ok((cells, ranks))
    }

    fn order(
        &self,
        figure: Figure,
        at: &NamedPlaces,
        groups: &[Vec<String>],
        rises: &[bool],
        point: &Map<String, Value>,
    ) -> Found<Said> {
        let systems: Vec<&str> = groups.iter().flatten().map(String::as_str).collect();
        let (cells, ranks) = self.ranked(figure, at, &systems, point)?;
        let place = |name: &str| systems.iter().position(|known| *known == name).map_or(cells[0], |place| cells[place]);
        if let Some(name) = systems.iter().find(|name| !ranks.has(name)) {
            return Err(self.without_value(figure, place(name)));
        }
        let lower_is_better = !figure.higher_is_better();
        let mut outcomes: Vec<(Option<bool>, &str, &str)> = Vec::new();
        for group in groups {
            for (index, one) in group.iter().enumerate() {
                outcomes.extend(group[index + 1..].iter().map(|other| {
                    let equal = if ranks.same(one, other) {
                        Some(true)
                    } else if ranks.beats(one, other) || ranks.beats(other, one) {
                        self.differs(figure, place(one), place(other)).then_some(false)
                    } else {
                        None
                    };
                    (equal, one.as_str(), other.as_str())
                }));
            }
        }
        for (pair, rises) in groups.windows(2).zip(rises) {
            for (one, other) in pair[0].iter().flat_map(|one| pair[1].iter().map(move |other| (one, other))) {
                let (first, then) = if *rises == lower_is_better { (one, other) } else { (other, one) };
                let ordered =
                    if ranks.beats(first, then) { Some(true) } else { ranks.beats(then, first).then_some(false) };
                outcomes.push((ordered, one, other));
            }
        }
        let outcome = if outcomes.iter().any(|(outcome, ..)| *outcome == Some(false)) {
            Some(false)
        } else {
            outcomes.iter().all(|(outcome, ..)| *outcome == Some(true)).then_some(true)
        };
        let shown: Vec<String> = systems.iter().map(|name| self.shown(figure, name, place(name))).collect();
        let mut said = Said::of(outcome, shown.join(", "));
        said.runs = cells.iter().map(|cell| self.cell(*cell).runs_for(figure.group())).min();
        if outcome.is_none() {
            let open = outcomes.iter().filter(|(outcome, one, other)| outcome.is_none() && ranks.is_open(one, other));
            said.cells = open.flat_map(|(_, one, other)| [place(one), place(other)]).collect();
            said.groups = vec![figure.group()];
            said.more = ranks.repeats_more().filter(|_| !said.cells.is_empty());
            if said.cells.is_empty() {
                let why = outcomes.iter().find_map(|(_, one, other)| ranks.hindrance(one, other));
                said.words.push(why.unwrap_or_else(|| "systems tie there: more runs change nothing".into()));
            }
        }
        Ok(said)
    }

    /// True if two cells are shown to differ by more than the bound of a tie.
    fn differs(&self, figure: Figure, one: usize, other: usize) -> bool {
        let (Ok(one), Ok(other)) = (self.reading(figure, one), self.reading(figure, other)) else { return false };
        let Some(ratio) = one.with(Operator::Divide, other) else { return false };
        let bound = 1.0 + self.evidence.rules.tie;
        let beyond = |relation, bound| ratio.compare(relation, &Amount::Exact(bound), &self.certainty).outcome;
        beyond(Relation::Above, bound) == Some(true) || beyond(Relation::Below, 1.0 / bound) == Some(true)
    }

    fn best(&self, figure: Figure, at: &NamedPlaces, best: &[String], point: &Map<String, Value>) -> Found<Said> {
        let named: Vec<&str> = best.iter().map(String::as_str).collect();
        let (own, ranks) = self.ranked(figure, at, &named, point)?;
        let mut cells = self.cells_at(Leaf { at, over: None, all_systems: true }, point)?;
        let name = |cell: &usize| self.cell(*cell).cell.system.name.as_str();
        // A claimed system may be a reference, or be excluded by the conditions.
        cells.extend(own.into_iter().filter(|cell| !cells.contains(cell)).collect::<Vec<_>>());
        let systems: Vec<&str> = cells.iter().map(name).collect();
        let outcome = best_outcome(best, &systems, ranks);
        let mut shown: Vec<String> = cells.iter().map(|cell| self.shown(figure, name(cell), *cell)).collect();
        let (claimed, rivals): (Vec<&str>, Vec<&str>) = systems.iter().partition(|system| named.contains(system));
        for one in claimed {
            let ties = rivals.iter().filter(|other| is_tie(ranks, one, other));
            shown.extend(ties.map(|other| format!("{one} and {other} are equal")));
        }
        let mut said = Said::new(outcome, shown.join(", "));
        said.runs = cells.iter().map(|cell| self.cell(*cell).runs_for(figure.group())).min();
        if outcome == ClaimOutcome::Open {
            let wanted = wanted(best, &systems, ranks);
            said.cells = cells.iter().filter(|cell| wanted.contains(&name(cell))).copied().collect();
            said.groups = vec![figure.group()];
            said.more = ranks.repeats_more();
        }
        Ok(said)
    }

    fn compare(&self, left: &Quantity, relation: Relation, right: &Quantity, point: &Map<String, Value>) -> Said {
        let mut figures = Vec::new();
        let mut cells = Vec::new();
        for side in [left, right] {
            let mut all = Vec::new();
            of_quantity(side, &mut all);
            cells.extend(all.into_iter().flat_map(|leaf| self.matching(leaf, point)));
            figures_of(side, &mut figures);
        }
        let (one, other) = match (self.quantity(left, point), self.quantity(right, point)) {
            (Ok(one), Ok(other)) => (one, other),
            (Err(gap), _) | (_, Err(gap)) => return gap.said(&figures),
        };
        let Compared { outcome, change, more, repeats } = one.compare(relation, &other, &self.certainty);
        let dimension = left.dimension().or(right.dimension()).unwrap_or_default();
        let mut words: Vec<String> = Vec::new();
        for (side, found) in [(left, &one), (right, &other)] {
            match found {
                Amount::Exact(_) => {}
                Amount::Never(why) => words.push(why.clone()),
                found => words.push(format!("{} {}", quantity(side, dimension), amount(found, dimension))),
            }
        }
        let wanted = match (&one, &other) {
            (_, Amount::Exact(bound)) => {
                format!("wanted {} {}", sign(relation), amount(&Amount::Exact(*bound), dimension))
            }
            _ => {
                let change = change.filter(|change| change.is_ratio).map(super::words::ratio);
                change.map_or_else(
                    || format!("wanted the first {} the second", sign(relation)),
                    |change| format!("ratio {change}, wanted {} 1", sign(relation)),
                )
            }
        };
        words.push(wanted);
        let mut said = Said { words, ..Said::of(outcome, String::new()) };
        said.runs = (repeats > 0).then_some(repeats);
        if outcome.is_none() {
            said.cells = cells;
            said.groups = figures.iter().map(|figure| figure.group()).collect();
            said.more = more;
        }
        said
    }

    fn quantity(&self, quantity: &Quantity, point: &Map<String, Value>) -> Found<Amount> {
        match quantity {
            Quantity::Literal(value) => Ok(Amount::Exact(*value)),
            Quantity::Figure(figure, at) => {
                let leaf = Leaf { at, over: None, all_systems: false };
                match self.cells_at(leaf, point)?[..] {
                    [cell] => self.reading(*figure, cell),
                    _ => Err(Gap::untested(format!("{} is several cells: name a place on each axis", label_of(at)))),
                }
            }
            Quantity::Along(along, figure, axis, at) => self.along(*along, *figure, axis, at, point),
            Quantity::Crossing { figure, systems, axis, at } => self.crossing(*figure, systems, axis, at, point),
            Quantity::Capacity { at, .. } => {
                let result = self.search(at, point)?;
                let answer = result.answer();
                let (lo, hi) = (answer.lo.unwrap_or(0.0), answer.hi.unwrap_or(f64::INFINITY));
                match answer.estimate.or(answer.lo).or(answer.hi) {
                    Some(value) => Ok(Amount::Between { value, lo, hi }),
                    None => Err(Gap::untested(format!("the search of {} found no load", label_of(at)))),
                }
            }
            Quantity::Arithmetic(operator, left, right) => {
                let (one, other) = (self.quantity(left, point)?, self.quantity(right, point)?);
                one.with(*operator, other).ok_or_else(|| {
                    // Of one run, nothing is known about its range.
                    let mut leaves = Vec::new();
                    of_quantity(right, &mut leaves);
                    let cells = leaves.into_iter().flat_map(|leaf| self.matching(leaf, point)).collect();
                    Gap { is_open: true, why: "it divides by what may be 0".into(), cells }
                })
            }
        }
    }

    /// A figure of a cell by repeat, in base units.
    fn reading(&self, figure: Figure, cell: usize) -> Found<Amount> {
        let result = self.cell(cell);
        let mut values: Vec<Observation> = if figure.is_fact() {
            let counts = self.runs_of[cell].iter().filter(|run| speaks_of(figure, run));
            counts.filter_map(|run| observed(figure, run)).collect()
        } else {
            result.figures.each(figure).to_vec()
        };
        values.sort_by_key(|one| one.repeat);
        if is_counted(figure) {
            values.iter_mut().for_each(|one| one.step = 0.0);
        }
        if values.is_empty() {
            // A figure that joins runs of several cells has an estimate alone.
            if let Some(found) = result.quotable(figure).and_then(|found| Some((found.value, found.interval?))) {
                let scale = Dimension::of_figure(figure).1;
                let (value, interval) = found;
                return Ok(Amount::Between { value, lo: interval.lo, hi: interval.hi }.scaled(scale));
            }
            return Err(self.without_value(figure, cell));
        }
        let ends = match result.figures.sign(figure) {
            Sign::Equal => Ends::default(),
            Sign::AtLeast => Ends { may_be_more: true, may_be_less: false },
            Sign::AtMost => Ends { may_be_more: false, may_be_less: true },
        };
        Ok(Amount::Runs { values, ends }.scaled(Dimension::of_figure(figure).1))
    }

    /// Why a cell has no value of a figure.
    fn without_value(&self, figure: Figure, cell: usize) -> Gap {
        let result = self.cell(cell);
        let what = clean(&result.cell.label(), WHY_CHARS);
        let reasons: Vec<String> = result.all_reasons().iter().map(|count| count.reason.to_string()).collect();
        let (is_open, why) = match (result.runs, result.failed_runs) {
            (0, _) => (false, format!("{what} was not run")),
            (runs, failed) if runs == failed => {
                let error = clean(result.error.as_deref().unwrap_or_default(), WHY_CHARS);
                (false, format!("all runs of {what} {FAILED}: {error}"))
            }
            _ if result.runs_for(figure.group()) > 0 => {
                (false, format!("{} of {what} was not measured", figure.short_name()))
            }
            _ => (true, format!("{} of {what} is {UNRELIABLE}: {}", figure.short_name(), reasons.join(", "))),
        };
        // More runs of a cell without a reliable figure do not help.
        let cells = if is_open || result.runs == 0 { vec![cell] } else { Vec::new() };
        Gap { is_open, why, cells }
    }

    /// The search of a system at a point.
    fn search(&self, at: &NamedPlaces, point: &Map<String, Value>) -> Found<&'a CapacityResult> {
        let cells = self.cells_at(Leaf { at, over: Some(""), all_systems: false }, point)?;
        let agrees = |axes: &Map<String, Value>, own: &Map<String, Value>| {
            own.iter().all(|(axis, value)| axes.get(axis).is_none_or(|known| known == value))
        };
        let mut searches = self.evidence.capacities.iter();
        let of_cell = |found: &&CapacityResult| {
            cells.iter().any(|cell| {
                let own = &self.cell(*cell).cell;
                found.system() == own.system.name && agrees(&own.axes, &found.axes)
            })
        };
        searches
            .find(of_cell)
            .ok_or_else(|| Gap::untested(format!("the capacity of {} was not searched", label_of(at))))
    }

    /// A system with its figure, for a sentence. Runs that other users of the machine disturbed decide comparisons,
    /// although their figures are unreliable.
    fn shown(&self, figure: Figure, system: &str, cell: usize) -> String {
        let (dimension, scale) = Dimension::of_figure(figure);
        let in_words = |found: &Amount| format!("{system} {}", amount(found, dimension));
        match self.reading(figure, cell) {
            Ok(found) => in_words(&found),
            Err(_) => match self.cell(cell).figures.comparable(figure) {
                [] => format!("{system} unknown"),
                values => {
                    let found = Amount::Runs { values: values.to_vec(), ends: Ends::default() };
                    format!("{}, {UNRELIABLE}", in_words(&found.scaled(scale)))
                }
            },
        }
    }
}

impl Gap {
    fn said(self, figures: &[Figure]) -> Said {
        let outcome = if self.is_open { ClaimOutcome::Open } else { ClaimOutcome::Untested };
        let groups = figures.iter().map(|figure| figure.group()).collect();
        Said { cells: self.cells, groups, ..Said::new(outcome, self.why) }
    }
}

fn figures_of(quantity: &Quantity, all: &mut Vec<Figure>) {
    match quantity {
        Quantity::Figure(figure, _) | Quantity::Along(_, figure, ..) | Quantity::Crossing { figure, .. } => {
            all.push(*figure);
        }
        Quantity::Arithmetic(_, left, right) => {
            figures_of(left, all);
            figures_of(right, all);
        }
        Quantity::Literal(_) | Quantity::Capacity { .. } => {}
    }
}
