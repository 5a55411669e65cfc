//! A claim as an expression: its parts and their units.

use crate::capacity::CapacityLimit;
use crate::figure::{Figure, Unit};
use crate::objective::Relation;
use serde_json::Value;

/// An expression, as written and as parsed.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The text as written.
    pub text: String,
    /// The parsed text.
    pub root: Proposition,
}

/// Compares the texts, which determine the rest.
impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.text == other.text
    }
}

/// A proposition that records make true or false at a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposition {
    /// All of these hold.
    All(Vec<Proposition>),
    /// One of these holds.
    Any(Vec<Proposition>),
    /// This does not hold.
    Not(Box<Proposition>),
    /// The share of all points at which this holds meets a bound.
    Share {
        /// The proposition.
        of: Box<Proposition>,
        /// The relation of the share to the bound.
        relation: Relation,
        /// The bound, 0 to 1.
        bound: f64,
    },
    /// Systems in the order of their values.
    Order {
        /// The figure.
        figure: Figure,
        /// Cells to compare.
        at: NamedPlaces,
        /// Groups of systems that are equal, in the order of the claim.
        groups: Vec<Vec<String>>,
        /// The relation from each group to the next: true if the value grows.
        rises: Vec<bool>,
    },
    /// One of these systems is the best of all at the point.
    Best {
        /// The figure.
        figure: Figure,
        /// Cells to compare.
        at: NamedPlaces,
        /// The systems.
        systems: Vec<String>,
    },
    /// Two quantities meet a relation.
    Compare {
        /// Left side.
        left: Quantity,
        /// The relation.
        relation: Relation,
        /// Right side.
        right: Quantity,
    },
    /// Along an axis, the system first fails at a value between two bounds.
    FailsAt {
        /// The axis.
        axis: String,
        /// The bounds, in the units of the axis.
        within: [f64; 2],
        /// The system, and its place on other axes.
        at: NamedPlaces,
    },
    /// A search found that one of these parts reached its limit first.
    LimitedBy {
        /// The system, and its place on other axes.
        at: NamedPlaces,
        /// The parts.
        limits: Vec<CapacityLimit>,
    },
}

/// A number with a unit. Times are in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A literal.
    Literal(f64),
    /// A figure of a cell.
    Figure(Figure, NamedPlaces),
    /// A figure along an axis, all else equal.
    Along(AxisSummary, Figure, String, NamedPlaces),
    /// The point along an axis at which the better of two systems changes.
    Crossing {
        /// The figure.
        figure: Figure,
        /// The system that is better first, and the one that is better after the crossing.
        systems: [String; 2],
        /// The axis.
        axis: String,
        /// Places on the other axes.
        at: NamedPlaces,
    },
    /// The highest load, found by a capacity search.
    Capacity {
        /// The load that was varied.
        over: String,
        /// The system, and its place on other axes.
        at: NamedPlaces,
    },
    /// Two quantities and an operator.
    Arithmetic(Operator, Box<Quantity>, Box<Quantity>),
}

/// A value computed from the values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisSummary {
    /// The value at the largest place divided by that at the smallest.
    Growth,
    /// The largest of the values.
    Peak,
    /// The increase for each unit of the axis, by least squares.
    Slope,
    /// The value at 0, by least squares.
    Fixed,
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// The places on axes that an expression names; the other axes are free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedPlaces {
    /// Axis and value, each axis once.
    pub places: Vec<(String, Value)>,
}

impl NamedPlaces {
    /// Returns the value that is named for an axis.
    pub fn get(&self, axis: &str) -> Option<&Value> {
        self.places.iter().find(|(name, _)| name == axis).map(|(_, value)| value)
    }

    /// Returns the system that is named.
    pub fn system(&self) -> Option<&str> {
        self.get("system").and_then(Value::as_str)
    }

    /// Returns the places with this system in place of any other.
    #[must_use]
    pub fn of_system(&self, system: &str) -> NamedPlaces {
        let mut places = self.places.clone();
        places.retain(|(axis, _)| axis != "system");
        places.push(("system".into(), system.into()));
        NamedPlaces { places }
    }
}

/// Powers of the base units of a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    /// Power of seconds.
    pub time: i8,
    /// Power of bytes.
    pub bytes: i8,
    /// Power of messages, connections or clients.
    pub count: i8,
}

impl Dimension {
    /// A number without a unit.
    pub const NUMBER: Dimension = Dimension { time: 0, bytes: 0, count: 0 };
    /// A time.
    pub const TIME: Dimension = Dimension { time: 1, ..Dimension::NUMBER };
    /// A size.
    pub const BYTES: Dimension = Dimension { bytes: 1, ..Dimension::NUMBER };
    /// A number of messages or clients.
    pub const COUNT: Dimension = Dimension { count: 1, ..Dimension::NUMBER };
    /// Messages a second.
    pub const PER_S: Dimension = Dimension { count: 1, time: -1, ..Dimension::NUMBER };
    /// Bytes a second.
    pub const BYTES_PER_S: Dimension = Dimension { bytes: 1, time: -1, ..Dimension::NUMBER };

    /// Returns the dimension of a figure, and the size of its unit in base units.
    pub fn of_figure(figure: Figure) -> (Dimension, f64) {
        match figure.unit() {
            Unit::Ns => (Dimension::TIME, 1e-9),
            Unit::PerS => (Dimension::PER_S, 1.0),
            Unit::BytesPerS => (Dimension::BYTES_PER_S, 1.0),
            Unit::Bytes => (Dimension::BYTES, 1.0),
            Unit::Count => (Dimension::COUNT, 1.0),
            Unit::Share | Unit::PerMessage | Unit::Cores | Unit::Multiple => (Dimension::NUMBER, 1.0),
        }
    }

    /// Returns the dimension of the values of an axis.
    pub fn of_axis(axis: &str) -> Dimension {
        match axis {
            "payload" | "memory" => Dimension::BYTES,
            "rate" => Dimension::PER_S,
            "publishers" | "subscribers" | "pairs" | "count" => Dimension::COUNT,
            _ => Dimension::NUMBER,
        }
    }

    /// Returns the dimension of a product, or of a quotient if `sign` is `-1`; `None` if a power
    /// overflows.
    pub(super) fn with(self, other: Dimension, sign: i8) -> Option<Dimension> {
        let add = |one: i8, other: i8| one.checked_add(other.checked_mul(sign)?);
        Some(Dimension {
            time: add(self.time, other.time)?,
            bytes: add(self.bytes, other.bytes)?,
            count: add(self.count, other.count)?,
        })
    }

    /// Describes the dimension, with an example.
    pub fn words(self) -> &'static str {
        match self {
            Dimension::TIME => "a time, such as 20ms",
            Dimension::BYTES => "a size, such as 64KiB",
            Dimension::COUNT => "a number of messages or clients, such as 100",
            Dimension::PER_S => "messages a second, such as 5000/s",
            Dimension::BYTES_PER_S => "bytes a second, such as 2.9GB/s",
            Dimension::NUMBER => "a number or share without a unit, such as 1.5 or 6.3%",
            _ => "a compound unit",
        }
    }

    /// True if a number without a unit may have this dimension.
    pub(super) fn takes_bare_numbers(self) -> bool {
        [Dimension::NUMBER, Dimension::COUNT, Dimension::PER_S].contains(&self)
    }
}

impl Quantity {
    /// Returns the dimension; `None` for a literal, which takes that of its context.
    pub fn dimension(&self) -> Option<Dimension> {
        Some(match self {
            Quantity::Literal(_) => return None,
            Quantity::Figure(figure, _) => Dimension::of_figure(*figure).0,
            Quantity::Along(AxisSummary::Growth, ..) => Dimension::NUMBER,
            Quantity::Along(AxisSummary::Slope, figure, axis, _) => {
                Dimension::of_figure(*figure).0.with(Dimension::of_axis(axis), -1)?
            }
            Quantity::Along(AxisSummary::Peak | AxisSummary::Fixed, figure, ..) => Dimension::of_figure(*figure).0,
            Quantity::Crossing { axis, .. } => Dimension::of_axis(axis),
            Quantity::Capacity { over, .. } => Dimension::of_axis(over),
            Quantity::Arithmetic(operator, left, right) => {
                let (left, right) = (left.dimension(), right.dimension());
                match operator {
                    Operator::Add | Operator::Subtract => left.or(right)?,
                    Operator::Multiply => left.unwrap_or_default().with(right.unwrap_or_default(), 1)?,
                    Operator::Divide => left.unwrap_or_default().with(right.unwrap_or_default(), -1)?,
                }
            }
        })
    }

    /// Calls `visit` with the figures that it reads.
    fn figures(&self, visit: &mut impl FnMut(Figure)) {
        match self {
            Quantity::Figure(figure, _) | Quantity::Along(_, figure, ..) | Quantity::Crossing { figure, .. } => {
                visit(*figure);
            }
            Quantity::Arithmetic(_, left, right) => {
                left.figures(visit);
                right.figures(visit);
            }
            Quantity::Literal(_) | Quantity::Capacity { .. } => {}
        }
    }

    fn searches<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Quantity::Capacity { over, .. } => visit(over),
            Quantity::Arithmetic(_, left, right) => {
                left.searches(visit);
                right.searches(visit);
            }
            Quantity::Literal(_) | Quantity::Figure(..) | Quantity::Along(..) | Quantity::Crossing { .. } => {}
        }
    }

    fn places<'a>(&'a self, visit: &mut impl FnMut(&'a str, Option<&'a Value>)) {
        let mut all = |at: &'a NamedPlaces| at.places.iter().for_each(|(axis, value)| visit(axis, Some(value)));
        match self {
            Quantity::Literal(_) => {}
            Quantity::Figure(_, at) | Quantity::Capacity { at, .. } => all(at),
            Quantity::Along(_, _, axis, at) | Quantity::Crossing { axis, at, .. } => {
                all(at);
                visit(axis, None);
            }
            Quantity::Arithmetic(_, left, right) => {
                left.places(visit);
                right.places(visit);
            }
        }
    }
}

impl Proposition {
    /// Calls `visit` with the figures that systems are ranked by.
    pub(super) fn ranked(&self, visit: &mut impl FnMut(Figure)) {
        match self {
            Proposition::All(each) | Proposition::Any(each) => each.iter().for_each(|one| one.ranked(visit)),
            Proposition::Not(of) | Proposition::Share { of, .. } => of.ranked(visit),
            Proposition::Order { figure, .. } | Proposition::Best { figure, .. } => visit(*figure),
            Proposition::Compare { left, right, .. } => [left, right].into_iter().for_each(|side| {
                if let Quantity::Crossing { figure, .. } = side {
                    visit(*figure);
                }
            }),
            Proposition::FailsAt { .. } | Proposition::LimitedBy { .. } => {}
        }
    }

    /// Calls `visit` with each figure that it reads.
    pub fn figures(&self, visit: &mut impl FnMut(Figure)) {
        match self {
            Proposition::All(each) | Proposition::Any(each) => each.iter().for_each(|one| one.figures(visit)),
            Proposition::Not(of) | Proposition::Share { of, .. } => of.figures(visit),
            Proposition::Order { figure, .. } | Proposition::Best { figure, .. } => visit(*figure),
            Proposition::Compare { left, right, .. } => {
                left.figures(visit);
                right.figures(visit);
            }
            Proposition::FailsAt { .. } | Proposition::LimitedBy { .. } => {}
        }
    }

    /// Calls `visit` with the key that each needed capacity search varies; an empty one if any key
    /// will do.
    pub fn searches<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Proposition::All(each) | Proposition::Any(each) => each.iter().for_each(|one| one.searches(visit)),
            Proposition::Not(of) | Proposition::Share { of, .. } => of.searches(visit),
            Proposition::Compare { left, right, .. } => {
                left.searches(visit);
                right.searches(visit);
            }
            Proposition::LimitedBy { .. } => visit(""),
            Proposition::Order { .. } | Proposition::Best { .. } | Proposition::FailsAt { .. } => {}
        }
    }

    /// Calls `visit` with each axis that it names, and the value if it names one.
    pub fn places<'a>(&'a self, visit: &mut impl FnMut(&'a str, Option<&'a Value>)) {
        match self {
            Proposition::All(each) | Proposition::Any(each) => each.iter().for_each(|one| one.places(visit)),
            Proposition::Not(of) | Proposition::Share { of, .. } => of.places(visit),
            Proposition::Compare { left, right, .. } => {
                left.places(visit);
                right.places(visit);
            }
            Proposition::Order { at, .. } | Proposition::Best { at, .. } | Proposition::LimitedBy { at, .. } => {
                at.places.iter().for_each(|(axis, value)| visit(axis, Some(value)));
            }
            Proposition::FailsAt { axis, at, .. } => {
                at.places.iter().for_each(|(axis, value)| visit(axis, Some(value)));
                visit(axis, None);
            }
        }
    }
}
