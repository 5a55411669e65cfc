//! Quantities, their units and ranges.

use super::{Parsed, Parser};
use crate::claim::expression::{AxisSummary, Dimension, Operator, Quantity};
use crate::claim::lexer::Token;
use crate::units::{parse_size, parse_time};

/// A quantity, with what is needed to check its unit.
pub(super) struct Typed {
    pub(super) quantity: Quantity,
    /// None of a number without a unit, which takes the unit of what it is compared with.
    pub(super) dimension: Option<Dimension>,
    pub(super) at: usize,
}

impl Parser<'_> {
    /// `LO..HI`, in base units.
    pub(super) fn range(&mut self, dimension: Option<Dimension>) -> Parsed<[f64; 2]> {
        let (lo, at) = (self.literal()?, self.at());
        self.expect("..")?;
        let hi = self.literal()?;
        let left = Typed { quantity: Quantity::Literal(0.0), dimension, at };
        // `1..10ms` has one unit for both.
        for end in [&lo, &hi] {
            if !(end.dimension.is_none() && matches!(end.quantity, Quantity::Literal(0.0))) {
                self.same(&left, end);
            }
        }
        let (Quantity::Literal(lo), Quantity::Literal(hi)) = (lo.quantity, hi.quantity) else { return Ok([0.0; 2]) };
        if lo > hi {
            self.error(at, "the range is empty: its first end is above its last".into(), None);
        }
        Ok([lo, hi])
    }

    /// Two quantities have one unit; a number without a unit may stand for a count.
    pub(super) fn same(&mut self, left: &Typed, right: &Typed) -> Option<Dimension> {
        // Of a number that could not be read an error is told already.
        if [left, right].into_iter().any(|side| matches!(side.quantity, Quantity::Literal(value) if value.is_nan())) {
            return left.dimension.or(right.dimension);
        }
        let zero = |side: &Typed| matches!(side.quantity, Quantity::Literal(value) if value == 0.0);
        let (known, other) = match (left.dimension, right.dimension) {
            (Some(one), Some(other)) if one == other => return Some(one),
            (Some(one), Some(other)) => (one, Some(other)),
            (Some(known), None) | (None, Some(known)) if known.takes_bare_numbers() => return Some(known),
            (Some(known), None) if zero(right) => return Some(known),
            (None, Some(known)) if zero(left) => return Some(known),
            (Some(known), None) | (None, Some(known)) => (known, None),
            (None, None) => return None,
        };
        let found = other.map_or("a number without a unit", Dimension::words);
        let message = format!("the units differ: {} against {found}", known.words());
        let help = (known == Dimension::COUNT && other == Some(Dimension::NUMBER))
            .then(|| "a share of messages is lost_ratio or delivered_ratio".to_owned());
        self.error(right.at, message, help);
        Some(known)
    }

    pub(super) fn sum(&mut self) -> Parsed<Typed> {
        let mut left = self.product()?;
        loop {
            let operator = match self.token() {
                Token::Sign("+") => Operator::Add,
                Token::Sign("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.take();
            let right = self.product()?;
            let dimension = self.same(&left, &right);
            left = joined(operator, left, right, dimension);
        }
    }

    pub(super) fn product(&mut self) -> Parsed<Typed> {
        let mut left = self.value()?;
        loop {
            let (operator, sign) = match self.token() {
                Token::Sign("*") => (Operator::Multiply, 1),
                Token::Sign("/") => (Operator::Divide, -1),
                _ => return Ok(left),
            };
            self.take();
            let right = self.value()?;
            let dimension = match (left.dimension, right.dimension) {
                (None, None) => None,
                (one, other) => match one.unwrap_or_default().with(other.unwrap_or_default(), sign) {
                    Some(dimension) => Some(dimension),
                    None => {
                        self.error(right.at, "the unit has too high a power".into(), None);
                        None
                    }
                },
            };
            left = joined(operator, left, right, dimension);
        }
    }

    pub(super) fn value(&mut self) -> Parsed<Typed> {
        let at = self.at();
        match self.token().clone() {
            Token::Sign("(") => {
                self.take();
                let inner = self.deeper(Self::sum)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Number(_) => self.literal(),
            Token::Name(name) => {
                let quantity = match name.as_str() {
                    "growth" => self.along(AxisSummary::Growth)?,
                    "peak" => self.along(AxisSummary::Peak)?,
                    "slope" => self.along(AxisSummary::Slope)?,
                    "fixed" => self.along(AxisSummary::Fixed)?,
                    "crossing" => self.crossing()?,
                    "capacity" => self.capacity()?,
                    _ => self.figure()?,
                };
                Ok(Typed { dimension: quantity.dimension(), quantity, at })
            }
            _ => self.stop("a figure, a number or a function"),
        }
    }

    pub(super) fn literal(&mut self) -> Parsed<Typed> {
        let at = self.at();
        let Token::Number(text) = self.token().clone() else { return self.stop("a number with its unit") };
        self.take();
        match literal(&text) {
            Ok((value, dimension)) => Ok(Typed { quantity: Quantity::Literal(value), dimension, at }),
            Err(message) => {
                self.error(at, message, Some("units: ns us ms s m h, B KB MB GB KiB MiB GiB, %, /s".into()));
                Ok(Typed { quantity: Quantity::Literal(f64::NAN), dimension: None, at })
            }
        }
    }

    pub(super) fn along(&mut self, along: AxisSummary) -> Parsed<Quantity> {
        self.take();
        self.expect("(")?;
        let figure = self.figure_name()?;
        self.expect(",")?;
        let axis = self.axis()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        Ok(Quantity::Along(along, figure, axis, at))
    }

    pub(super) fn crossing(&mut self) -> Parsed<Quantity> {
        self.take();
        self.expect("(")?;
        let figure = self.ranking()?;
        self.expect(",")?;
        let first = self.system()?;
        self.expect(",")?;
        let second = self.system()?;
        self.expect(",")?;
        let axis = self.axis()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        Ok(Quantity::Crossing { figure, systems: [first, second], axis, at })
    }

    pub(super) fn capacity(&mut self) -> Parsed<Quantity> {
        self.take();
        self.expect("(")?;
        let system = self.system()?;
        self.expect(",")?;
        let over = self.axis()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        Ok(Quantity::Capacity { over, at: at.of_system(&system) })
    }
}

fn joined(operator: Operator, left: Typed, right: Typed, dimension: Option<Dimension>) -> Typed {
    let at = left.at;
    let quantity = match (&left.quantity, &right.quantity) {
        (Quantity::Literal(one), Quantity::Literal(other)) => Quantity::Literal(operator.of(*one, *other)),
        _ => Quantity::Arithmetic(operator, Box::new(left.quantity), Box::new(right.quantity)),
    };
    Typed { quantity, dimension, at }
}

impl Operator {
    /// The result for two numbers.
    pub fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
        }
    }
}

/// A number in base units, and its dimension if it is written with a unit.
fn literal(text: &str) -> Result<(f64, Option<Dimension>), String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let number = || {
        let value = digits.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite());
        value.ok_or_else(|| format!("`{text}` is not a number"))
    };
    Ok(match unit {
        "" => (number()?, None),
        "%" => ((number()? * 1e6).round() / 1e8, Some(Dimension::NUMBER)),
        "/s" => (number()?, Some(Dimension::PER_S)),
        unit => match (unit.strip_suffix("/s"), parse_time(text)) {
            (Some(_), _) => {
                let size = parse_size(text.strip_suffix("/s").unwrap_or(text)).map_err(|error| error.to_string())?;
                (size as f64, Some(Dimension::BYTES_PER_S))
            }
            (None, Ok(ns)) => (ns as f64 * 1e-9, Some(Dimension::TIME)),
            (None, Err(_)) => match parse_size(text) {
                Ok(bytes) => (bytes as f64, Some(Dimension::BYTES)),
                Err(_) => return Err(format!("`{text}` is not a number with a unit that is known here")),
            },
        },
    })
}
