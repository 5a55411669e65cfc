//! Expressions and their values in words.

use super::amount::{Amount, Change};
use crate::text;
use pubmark_model::claim::{AxisSummary, Dimension, NamedPlaces, Operator, Quantity};
use pubmark_model::objective::Relation;
use pubmark_model::setting::as_typed;

/// Longest list of places, characters.
const PLACES_CHARS: usize = 160;

/// A value in base units, as tables show it.
fn one(value: f64, dimension: Dimension) -> String {
    let signed = |shown: fn(f64) -> String, value: f64| match value < 0.0 {
        true => format!("-{}", shown(-value)),
        false => shown(value),
    };
    if value.is_infinite() {
        return "unknown".into();
    }
    match dimension {
        Dimension::TIME => signed(text::time, value * 1e9),
        Dimension::BYTES => signed(text::bytes, value),
        Dimension::COUNT => signed(text::count, value),
        Dimension::PER_S => format!("{}/s", signed(text::count, value)),
        Dimension::BYTES_PER_S => format!("{}/s", signed(text::bytes, value)),
        _ if value != 0.0 && value.abs() < 1e-3 => format!("{value:.3e}"),
        _ => signed(text::number, value),
    }
}

/// A value with its interval and the number of its runs.
pub(super) fn amount(amount: &Amount, dimension: Dimension) -> String {
    if let Amount::Never(why) = amount {
        return why.clone();
    }
    let Some((value, interval, runs)) = amount.shown() else { return "unknown".into() };
    let value = one(value, dimension);
    let interval = interval.map(|found| format!("{} to {}", one(found.lo, dimension), one(found.hi, dimension)));
    let runs = (runs > 0).then(|| text::counted(runs, "run"));
    let more: Vec<String> = interval.into_iter().chain(runs).collect();
    if more.is_empty() { value } else { format!("{value} ({})", more.join(", ")) }
}

/// A ratio with its interval.
pub(super) fn ratio(change: Change) -> String {
    let value = text::number(change.value);
    match change.interval {
        Some(found) => format!("{value} ({} to {})", text::number(found.lo), text::number(found.hi)),
        None => value,
    }
}

/// The system and the other places that are named.
pub(super) fn label_of(at: &NamedPlaces) -> String {
    let system = at.system().map(str::to_owned);
    let others = at.places.iter().filter(|(axis, _)| axis != "system");
    let others = others.map(|(axis, value)| format!("{axis}={}", as_typed(value)));
    let all: Vec<String> = system.into_iter().chain(others).collect();
    if all.is_empty() { "each system".into() } else { text::clean(&all.join(", "), PLACES_CHARS) }
}

/// A quantity as it is written, by the short names of its figures.
pub(super) fn quantity(quantity: &Quantity, dimension: Dimension) -> String {
    let places = |at: &NamedPlaces| if at.places.is_empty() { String::new() } else { label_of(at) };
    let comma = |at: &NamedPlaces| if at.places.is_empty() { String::new() } else { format!(", {}", label_of(at)) };
    match quantity {
        Quantity::Literal(value) if dimension == Dimension::NUMBER => value.to_string(),
        Quantity::Literal(value) => one(*value, dimension),
        Quantity::Figure(figure, at) if at.places.is_empty() => figure.short_name().to_owned(),
        Quantity::Figure(figure, at) => format!("{}({})", figure.short_name(), places(at)),
        Quantity::Along(along, figure, axis, at) => {
            let name = match along {
                AxisSummary::Growth => "growth",
                AxisSummary::Peak => "peak",
                AxisSummary::Slope => "slope",
                AxisSummary::Fixed => "fixed",
            };
            format!("{name}({}, {axis}{})", figure.short_name(), comma(at))
        }
        Quantity::Crossing { figure, systems: [first, second], axis, at } => {
            format!("crossing({}, {first}, {second}, {axis}{})", figure.short_name(), comma(at))
        }
        Quantity::Capacity { over, at } => format!("capacity({}, {over})", label_of(at)),
        Quantity::Arithmetic(operator, left, right) => {
            let own = |side: &Quantity| side.dimension().unwrap_or_default();
            let sign = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Multiply => "*",
                Operator::Divide => "/",
            };
            let side = |part: &Quantity| match part {
                Quantity::Arithmetic(..) => format!("({})", self::quantity(part, own(part))),
                part => self::quantity(part, own(part)),
            };
            format!("{} {sign} {}", side(left), side(right))
        }
    }
}

/// A relation as it is written.
pub(super) fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Below => "<",
        Relation::AtMost => "<=",
        Relation::Above => ">",
        Relation::AtLeast => ">=",
        Relation::Equal => "=",
    }
}
