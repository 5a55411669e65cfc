//! The parts of an expression that read cells.

use pubmark_model::claim::{NamedPlaces, Proposition, Quantity};

/// A part of an expression that reads cells.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'a> {
    pub(super) at: &'a NamedPlaces,
    /// The axis along which it reads several.
    pub(super) over: Option<&'a str>,
    /// True if it reads all systems.
    pub(super) all_systems: bool,
}

pub(super) fn leaves<'a>(root: &'a Proposition, all: &mut Vec<Leaf<'a>>) {
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

pub(super) fn of_quantity<'a>(quantity: &'a Quantity, all: &mut Vec<Leaf<'a>>) {
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
