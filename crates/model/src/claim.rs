//! Published statements as expressions that a study's records confirm or contradict.

mod expression;
mod lexer;
mod parser;

use crate::figure::Figure;
use crate::objective::Objective;
pub use expression::{AxisSummary, Dimension, Expression, NamedPlaces, Operator, Proposition, Quantity};
pub use parser::{ExpressionError, Lookup, Names};
use serde_json::Value;

/// One condition on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The axis has one of these values.
    OneOf(Vec<Value>),
    /// The axis is a number not above this.
    AtMost(f64),
    /// The axis is a number not below this.
    AtLeast(f64),
}

impl Condition {
    /// True if a cell's value on the axis meets the condition.
    pub fn holds(&self, value: &Value) -> bool {
        match self {
            Condition::OneOf(values) => values.contains(value),
            Condition::AtMost(most) => value.as_f64().is_some_and(|value| value <= *most),
            Condition::AtLeast(least) => value.as_f64().is_some_and(|value| value >= *least),
        }
    }
}

/// A part of a claim: a statement about the cells that meet the conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The published statement that it belongs to; several parts may share one.
    pub id: String,
    /// The statement in words.
    pub says: String,
    /// The statement as an expression.
    pub statement: Statement,
    /// The sentence of the document, if the claim restates it because the document's own value came
    /// from another machine.
    pub restates: Option<String>,
    /// True if a failed claim makes the exit code 1.
    pub gate: bool,
    /// True if the study skips a place that the claim names.
    pub narrowed: bool,
    /// Conditions on the cells, by axis.
    pub conditions: Vec<(String, Condition)>,
    /// The share of points, or of cells, at which it must hold, 0 to 1.
    pub share: f64,
}

/// A claim's statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// A system is best at each point.
    Best {
        /// The figure that is ranked.
        figure: Figure,
        /// The systems of which one must win each point.
        best: Vec<String>,
        /// The systems that are ranked; empty means all of the study.
        among: Vec<String>,
    },
    /// Each cell meets an objective.
    Keeps(Objective),
    /// The expression holds at each point.
    Says(Expression),
}

impl Statement {
    /// Returns the figures by which systems must be ranked to test the statement.
    pub fn ranked_figures(&self) -> Vec<Figure> {
        let mut figures = Vec::new();
        match self {
            Statement::Best { figure, .. } => figures.push(*figure),
            Statement::Keeps(_) => {}
            Statement::Says(expression) => expression.root.ranked(&mut |figure| figures.push(figure)),
        }
        figures
    }
}
