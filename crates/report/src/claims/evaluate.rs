//! Whether an expression holds at each point of a study.

use super::amount::{Amount, Certainty, Compared, Ends};
use super::outcome::{ClaimOutcome, Evidence, best_outcome, wanted};
use super::words::{amount, label_of, quantity, sign};
use crate::analysis::{CellResult, Status, by_cell};
use crate::bounded_runs::speaks_of;
use crate::capacity::CapacityResult;
use crate::figures::{Observation, Sign, is_counted, observed};
use crate::ranking::Ranked;
use crate::text::clean;
use crate::words::{FAILED, SKIPPED, UNRELIABLE};
use pubmark_model::cell::label;
use pubmark_model::claim::{Along, Claim, Dimension, Expression, NamedPlaces, Operator, Proposition, Quantity};
use pubmark_model::figure::Figure;
use pubmark_model::objective::Relation;
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::setting::as_typed;
use pubmark_model::units::parse_time;
use serde_json::{Map, Value};

/// Most points at which an expression is looked at.
const POINTS_MAX: usize = 10_000;
/// Longest reason that is quoted, characters.
const WHY_CHARS: usize = 200;

/// What is said of an expression at a point.
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
    /// Whether further runs may give one; else it is not tested here.
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

/// A part of an expression that reads cells.
#[derive(Clone, Copy)]
struct Leaf<'a> {
    at: &'a NamedPlaces,
    /// The axis along which it reads several.
    over: Option<&'a str>,
    /// Whether it reads all systems.
    all_systems: bool,
}

/// An expression with what it is held against.
struct Evaluation<'a> {
    claim: &'a Claim,
    evidence: Evidence<'a>,
    runs_of: Vec<Vec<&'a RunRecord>>,
    certainty: Certainty,
}

/// What is said of an expression at each of its points, with their places.
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

/// Whether all of it has to hold.
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

fn leaves<'a>(root: &'a Proposition, all: &mut Vec<Leaf<'a>>) {
    let plain = |at| Leaf { at, over: None, all_systems: false };
    match root {
        Proposition::All(each) | Proposition::Any(each) => each.iter().for_each(|one| leaves(one, all)),
        Proposition::Not(of) => leaves(of, all),
        // Its points are its own.
        Proposition::Share { .. } => {}
        Proposition::Order { at, .. } | Proposition::Best { at, .. } => {
            all.push(Leaf { all_systems: true, ..plain(at) });
        }
        Proposition::Compare { left, right, .. } => {
            of_quantity(left, all);
            of_quantity(right, all);
        }
        Proposition::FailsAt { axis, at, .. } => all.push(Leaf { over: Some(axis), ..plain(at) }),
        Proposition::LimitedBy { at, .. } => all.push(Leaf { over: Some(""), ..plain(at) }),
    }
}

fn of_quantity<'a>(quantity: &'a Quantity, all: &mut Vec<Leaf<'a>>) {
    match quantity {
        Quantity::Literal(_) => {}
        Quantity::Figure(_, at) => all.push(Leaf { at, over: None, all_systems: false }),
        Quantity::Along(_, _, axis, at) => all.push(Leaf { at, over: Some(axis), all_systems: false }),
        Quantity::Crossing { axis, at, .. } => all.push(Leaf { at, over: Some(axis), all_systems: true }),
        Quantity::Capacity { over, at } => all.push(Leaf { at, over: Some(over), all_systems: false }),
        Quantity::Arithmetic(_, left, right) => {
            of_quantity(left, all);
            of_quantity(right, all);
        }
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

    /// Whether a leaf leaves an axis free. What a part that it names sets to one value
    /// comes with that part.
    fn is_free<'b>(&'b self, leaf: Leaf<'b>) -> impl Fn(&str) -> bool + 'b {
        let over = leaf.over.map(|over| if over.is_empty() { self.searched() } else { over });
        let part = leaf.at.get("part").and_then(Value::as_str);
        let of_part = self.evidence.study.parts.iter().find(|known| Some(known.name.as_str()) == part);
        move |axis: &str| {
            let comes_with_part =
                of_part.is_some_and(|part| part.axes.iter().any(|own| own.name == axis && own.values.len() == 1));
            leaf.at.get(axis).is_none()
                && Some(axis) != over
                && !(axis == "system" && leaf.all_systems)
                && !comes_with_part
        }
    }

    /// The place of a cell on the axes that a leaf leaves free.
    fn free(&self, leaf: Leaf<'_>, axes: &Map<String, Value>) -> Map<String, Value> {
        let is_free = self.is_free(leaf);
        axes.iter().filter(|(axis, _)| is_free(axis)).map(|(axis, value)| (axis.clone(), value.clone())).collect()
    }

    fn searched(&self) -> &'a str {
        self.evidence.study.capacity.as_ref().map_or("", |goal| goal.over.key())
    }

    /// Whether a cell is one that a leaf reads at a point, skipped or not.
    fn is_read(&self, leaf: Leaf<'_>, point: &Map<String, Value>, index: usize) -> bool {
        let result = self.cell(index);
        let axes = &result.cell.axes;
        let conditions = &self.claim.conditions;
        let names_system =
            |name: &str| conditions.iter().any(|(axis, condition)| axis == "system" && condition.holds(&name.into()));
        let is_free = self.is_free(leaf);
        let is_reference = result.is_reference && leaf.at.system().is_none() && !names_system(&result.cell.system.name);
        !is_reference
            && leaf.at.places.iter().all(|(axis, value)| axes.get(axis) == Some(value))
            && conditions
                .iter()
                .filter(|(axis, _)| leaf.at.get(axis).is_none())
                .all(|(axis, condition)| axes.get(axis).is_some_and(|value| condition.holds(value)))
            && axes.iter().all(|(axis, value)| point.get(axis).is_none_or(|known| known == value) || !is_free(axis))
    }

    fn matching(&self, leaf: Leaf<'_>, point: &Map<String, Value>) -> Vec<usize> {
        let cells = 0..self.evidence.cells.len();
        cells.filter(|index| self.cell(*index).status != Status::Skipped && self.is_read(leaf, point, *index)).collect()
    }

    /// The same, or why there are none.
    fn cells_at(&self, leaf: Leaf<'_>, point: &Map<String, Value>) -> Found<Vec<usize>> {
        let found = self.matching(leaf, point);
        if !found.is_empty() {
            return Ok(found);
        }
        let mut skipped = (0..self.evidence.cells.len()).filter(|index| self.is_read(leaf, point, *index));
        let what = label_of(leaf.at);
        Err(Gap::untested(match skipped.next().and_then(|index| self.cell(index).cell.skipped.clone()) {
            Some(why) => format!("{what} is {SKIPPED}: {}", clean(&why, WHY_CHARS)),
            None => format!("{what} was not run here"),
        }))
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

    /// What several say together, of which one decides if it is `decisive`.
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
            // Of several that are open, the one that takes longest.
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
                said.words.push("systems tie there: more runs change nothing".into());
            }
        }
        Ok(said)
    }

    /// Whether two cells are shown to differ by more than the bound of a tie.
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
        // What is claimed may be a reference, or left out of the conditions.
        cells.extend(own.into_iter().filter(|cell| !cells.contains(cell)).collect::<Vec<_>>());
        let systems: Vec<&str> = cells.iter().map(name).collect();
        let outcome = best_outcome(best, &systems, ranks);
        let shown: Vec<String> = cells.iter().map(|cell| self.shown(figure, name(cell), *cell)).collect();
        let mut said = Said { outcome, ..Said::new(outcome, shown.join(", ")) };
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
                one.with(*operator, other).ok_or_else(|| Gap {
                    is_open: true,
                    why: "it divides by what may be 0".into(),
                    cells: Vec::new(),
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
        // Of what was made and says nothing, more of the same says no more.
        let cells = if is_open || result.runs == 0 { vec![cell] } else { Vec::new() };
        Gap { is_open, why, cells }
    }

    /// Returns the cells with their values on an axis in base units, ascending.
    fn places(&self, axis: &str, at: &NamedPlaces, point: &Map<String, Value>) -> Found<Vec<(f64, usize)>> {
        let cells = self.cells_at(Leaf { at, over: Some(axis), all_systems: false }, point)?;
        let place = |cell| Some((self.cell(cell).cell.axes.get(axis).and_then(on_axis)?, cell));
        let mut places: Vec<(f64, usize)> = cells.into_iter().filter_map(place).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(places)
    }

    /// Returns the same where there is one cell for each value, and two values or more.
    fn along_axis(&self, axis: &str, at: &NamedPlaces, point: &Map<String, Value>) -> Found<Vec<(f64, usize)>> {
        let places = self.places(axis, at, point)?;
        if places.windows(2).any(|two| two[0].0 == two[1].0) {
            let why = format!("{} is several cells along {axis}: name a place on each other axis", label_of(at));
            return Err(Gap::untested(why));
        }
        if places.len() < 2 {
            return Err(Gap::untested(format!("{} was run at fewer than two values of {axis}", label_of(at))));
        }
        Ok(places)
    }

    fn along(
        &self,
        along: Along,
        figure: Figure,
        axis: &str,
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Amount> {
        let places = self.along_axis(axis, at, point)?;
        let read = |(place, cell): &(f64, usize)| Ok((*place, self.reading(figure, *cell)?));
        let nothing = || Gap { is_open: true, why: "its values are not numbers".into(), cells: Vec::new() };
        if along == Along::Growth {
            let ((_, least), (_, most)) = (read(&places[0])?, read(&places[places.len() - 1])?);
            return most.with(Operator::Divide, least).ok_or_else(nothing);
        }
        let read: Vec<(f64, Amount)> = places.iter().map(read).collect::<Found<_>>()?;
        let mut by_repeat: Vec<(f64, &[Observation])> = Vec::new();
        let mut bounded = Ends::default();
        for (place, amount) in &read {
            let Amount::Runs { values, ends } = amount else { return Err(nothing()) };
            bounded = bounded.and(*ends);
            by_repeat.push((*place, values));
        }
        let repeats = by_repeat[0].1.iter().map(|one| one.repeat);
        let of = |values: &[Observation], repeat| values.iter().find(|one| one.repeat == repeat).copied();
        let values = repeats.filter_map(|repeat| {
            let each: Option<Vec<(f64, Observation)>> =
                by_repeat.iter().map(|(place, values)| Some((*place, of(values, repeat)?))).collect();
            folded(along, &each?)
        });
        let values: Vec<Observation> = values.collect();
        if values.is_empty() {
            let why = format!("{} has no repeat that is reliable at each value of {axis}", label_of(at));
            return Err(Gap { is_open: true, why, cells: places.iter().map(|(_, cell)| *cell).collect() });
        }
        // A bound on one value bounds a line on neither side.
        let ends = match along {
            Along::Slope | Along::Fixed if bounded != Ends::default() => Ends { may_be_more: true, may_be_less: true },
            _ => bounded,
        };
        Ok(Amount::Runs { values, ends })
    }

    fn crossing(
        &self,
        figure: Figure,
        [first, second]: &[String; 2],
        axis: &str,
        at: &NamedPlaces,
        point: &Map<String, Value>,
    ) -> Found<Amount> {
        let places = self.along_axis(axis, &at.of_system(first), point)?;
        self.along_axis(axis, &at.of_system(second), point)?;
        // 1 where the first is better, -1 where the second is, 0 where neither is shown.
        let mut better: Vec<(f64, i8)> = Vec::new();
        let mut unknown = Vec::new();
        for (place, cell) in &places {
            let here = self.evidence.points.iter().find(|point| point.members.contains(cell));
            let Some((here, ranks)) = here.and_then(|here| Some((here, here.by(figure)?))) else { continue };
            let members = here.members.iter().map(|index| (self.cell(*index), *index));
            let Some((_, other)) = members.clone().find(|(result, _)| result.cell.system.name == *second) else {
                continue;
            };
            let shown = i8::from(ranks.beats(first, second)) - i8::from(ranks.beats(second, first));
            if shown == 0 && ranks.is_open(first, second) {
                unknown.extend([*cell, other]);
            }
            better.push((*place, shown));
        }
        let shown = |place: f64| amount(&Amount::Exact(place), Dimension::of_axis(axis));
        let of = |wanted: i8| better.iter().filter(move |(_, shown)| *shown == wanted).map(|(place, _)| *place);
        let (last, next) = (of(1).next_back(), of(-1).next());
        let ends = format!("{} to {}", shown(places[0].0), shown(places[places.len() - 1].0));
        match (last, next) {
            (Some(last), Some(next)) if last < next => Ok(Amount::Between { value: next, lo: last, hi: next }),
            (Some(last), Some(next)) => Ok(Amount::Never(format!(
                "{second} is better at {} and {first} at {}: no crossing from {first} to {second}",
                shown(next),
                shown(last)
            ))),
            (Some(_), None) if unknown.is_empty() => {
                Ok(Amount::Never(format!("{second} is better at no value of {axis} ({ends}): no crossing")))
            }
            (None, Some(_)) if unknown.is_empty() => {
                Ok(Amount::Never(format!("{first} is better at no value of {axis} ({ends}): no crossing")))
            }
            _ => Err(Gap {
                is_open: true,
                why: format!("where {first} and {second} cross along {axis} is not shown ({ends})"),
                cells: unknown,
            }),
        }
    }

    fn fails(&self, axis: &str, within: [f64; 2], at: &NamedPlaces, point: &Map<String, Value>) -> Found<Said> {
        let places = self.places(axis, at, point)?;
        let (mut works, mut first, mut unknown) = (None, None, Vec::new());
        let mut evidence = String::new();
        for (place, cell) in &places {
            match self.collapsed(*cell, works.is_some()) {
                Some(Some(why)) => {
                    (first, evidence) = (Some(*place), why);
                    break;
                }
                Some(None) if unknown.is_empty() => works = Some(*place),
                Some(None) => {}
                None => unknown.push(*cell),
            }
        }
        let shown = |place: f64| amount(&Amount::Exact(place), Dimension::of_axis(axis));
        let what = label_of(at);
        let inside = |place: f64| (within[0]..=within[1]).contains(&place);
        let (outcome, words) = match (works, first) {
            (_, Some(first)) if unknown.is_empty() && inside(first) => {
                (ClaimOutcome::Holds, format!("{what} fails at {axis} {}: {evidence}", shown(first)))
            }
            (Some(works), _) if works >= within[1] => {
                (ClaimOutcome::Fails, format!("{what} works at {axis} {}", shown(works)))
            }
            (_, Some(first)) if first < within[0] => {
                (ClaimOutcome::Fails, format!("{what} fails at {axis} {}: {evidence}", shown(first)))
            }
            (Some(works), Some(first)) if unknown.is_empty() => (
                ClaimOutcome::Untested,
                format!("{what} works at {axis} {} and fails at {}; none between was run", shown(works), shown(first)),
            ),
            (Some(works), None) if unknown.is_empty() => {
                (ClaimOutcome::Untested, format!("{what} works at {axis} {}, the most that was run", shown(works)))
            }
            _ => (ClaimOutcome::Open, format!("whether {what} works is not known at each {axis}")),
        };
        let mut said = Said::new(outcome, words);
        said.cells = unknown;
        said.groups = vec![FigureGroup::Counts];
        Ok(said)
    }

    /// Whether all runs of a cell failed by the server's doing, and why; none where it is
    /// not known.
    fn collapsed(&self, cell: usize, worked_before: bool) -> Option<Option<String>> {
        const OF_SERVER: [Reason; 5] = [
            Reason::ServerDied,
            Reason::ResourceLimitHit,
            Reason::ConnectionsMissed,
            Reason::MessagesRefused,
            Reason::OfferedRateMissed,
        ];
        /// A share that is delivered by no server that keeps up.
        const DELIVERED_MIN: f64 = 0.99;
        let of_run = |run: &&RunRecord| {
            if let Some(error) = &run.error {
                return worked_before.then(|| Some(error.clone()));
            }
            let mut found = run.verdict.reasons.iter();
            if let Some(finding) = found.find(|finding| OF_SERVER.contains(&finding.reason)) {
                return Some(Some(format!("{}, {}", finding.reason, finding.evidence)));
            }
            match run.counts.delivered_ratio() {
                _ if run.verdict.reasons.iter().any(|finding| finding.reason == Reason::GeneratorSaturated) => None,
                Some(ratio) if ratio < DELIVERED_MIN => Some(Some(format!("{:.1} % delivered", ratio * 100.0))),
                Some(_) => Some(None),
                None => None,
            }
        };
        let all: Vec<Option<Option<String>>> = self.runs_of[cell].iter().map(of_run).collect();
        let first = all.first()?.clone()?;
        let alike = all.iter().all(|one| one.as_ref().is_some_and(|one| one.is_some() == first.is_some()));
        alike.then(|| first.map(|why| clean(&why, WHY_CHARS)))
    }

    /// The search of a system at a point.
    fn search(&self, at: &NamedPlaces, point: &Map<String, Value>) -> Found<&'a CapacityResult> {
        let cells = self.cells_at(Leaf { at, over: Some(self.searched()), all_systems: false }, point)?;
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

    /// A system with its figure, for a sentence.
    fn shown(&self, figure: Figure, system: &str, cell: usize) -> String {
        match self.reading(figure, cell) {
            Ok(found) => format!("{system} {}", amount(&found, Dimension::of_figure(figure).0)),
            Err(_) => format!("{system} unknown"),
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

/// A place on an axis as a number in base units.
fn on_axis(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| parse_time(&as_typed(value)).ok().map(|ns| ns as f64 * 1e-9))
}

/// The values along an axis of one repeat, made one.
fn folded(along: Along, each: &[(f64, Observation)]) -> Option<Observation> {
    let (_, first) = each.first()?;
    let most = |of: fn(&Observation) -> f64| each.iter().map(|(_, one)| of(one)).fold(0.0, f64::max);
    let of = |value: f64, share: f64| Observation {
        value,
        step: most(|one| one.step) * share,
        clock: most(|one| one.clock) * share,
        repeat: first.repeat,
    };
    if along == Along::Peak {
        return Some(of(each.iter().map(|(_, one)| one.value).fold(f64::NEG_INFINITY, f64::max), 1.0));
    }
    let n = each.len() as f64;
    let middle = each.iter().map(|(place, _)| place).sum::<f64>() / n;
    let mean = each.iter().map(|(_, one)| one.value).sum::<f64>() / n;
    let squares: f64 = each.iter().map(|(place, _)| (place - middle).powi(2)).sum();
    let slope = each.iter().map(|(place, one)| (place - middle) * (one.value - mean)).sum::<f64>() / squares;
    let found = match along {
        // A step at the far end moves the line by so much.
        Along::Slope => of(slope, 1.0 / squares.sqrt()),
        _ => of(mean - slope * middle, 1.0),
    };
    found.value.is_finite().then_some(found)
}
