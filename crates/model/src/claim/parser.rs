//! Parses an expression: strict, bounded, and with all errors of names and units at once.

use super::expression::{Along, Dimension, Expression, NamedPlaces, Operator, Proposition, Quantity};
use super::lexer::{Placed, Token, words};
use crate::capacity::CapacityLimit;
use crate::diagnostic::suggestion;
use crate::figure::Figure;
use crate::objective::Relation;
use crate::units::{parse_size, parse_time};
use serde_json::Value;

/// Longest expression that is parsed, bytes.
const TEXT_MAX: usize = 2_000;
/// Maximum depth of nested brackets.
const DEPTH_MAX: usize = 32;
/// Maximum number of systems in an order or a list.
const SYSTEMS_MAX: usize = 32;

const FUNCTIONS: [&str; 11] =
    ["growth", "peak", "slope", "fixed", "crossing", "capacity", "fails", "limited_by", "best", "share", "not"];

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte offset in the expression.
    pub at: usize,
    /// The error message.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
}

/// The resolved name; or an error and advice.
pub type Lookup<T> = Result<T, (String, Option<String>)>;

/// Functions that look up the names in an expression.
pub struct Names<'a> {
    /// Returns the canonical name of a system.
    pub system: &'a dyn Fn(&str) -> Lookup<String>,
    /// Returns the canonical value on an axis.
    pub value: &'a dyn Fn(&str, &str) -> Lookup<Value>,
}

struct Parser<'a> {
    words: Vec<Placed>,
    next: usize,
    depth: usize,
    errors: Vec<ExpressionError>,
    names: &'a Names<'a>,
}

/// Marker that a syntax error has been reported; parsing cannot continue.
struct Stopped;

type Parsed<T> = Result<T, Stopped>;

/// A quantity, with its dimension for the unit check.
struct Typed {
    quantity: Quantity,
    /// `None` for a number without a unit, which takes the unit of the quantity it is compared
    /// with.
    dimension: Option<Dimension>,
    at: usize,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// Returns all errors, up to the first syntax error.
    pub fn parse(text: &str, names: &Names<'_>) -> Result<Expression, Vec<ExpressionError>> {
        let error = |at, message: String| vec![ExpressionError { at, message, help: None }];
        if text.len() > TEXT_MAX {
            return Err(error(0, format!("the expression has more than {TEXT_MAX} bytes")));
        }
        let words =
            words(text).map_err(|at| error(at, format!("`{}` begins no word of an expression", rest(text, at))))?;
        let mut parser = Parser { words, next: 0, depth: 0, errors: Vec::new(), names };
        let root = parser.any().and_then(|root| parser.end().map(|()| root));
        match (root, parser.errors.is_empty()) {
            (Ok(root), true) => Ok(Expression { text: text.to_owned(), root }),
            _ => Err(parser.errors),
        }
    }
}

fn rest(text: &str, at: usize) -> String {
    text[at..].chars().take(12).collect()
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        &self.words[self.next.min(self.words.len() - 1)].token
    }

    fn at(&self) -> usize {
        self.words[self.next.min(self.words.len() - 1)].at
    }

    fn take(&mut self) -> Token {
        let token = self.token().clone();
        self.next = (self.next + 1).min(self.words.len() - 1);
        token
    }

    fn error(&mut self, at: usize, message: String, help: Option<String>) {
        self.errors.push(ExpressionError { at, message, help });
    }

    fn stop<T>(&mut self, wanted: &str) -> Parsed<T> {
        let found = match self.token() {
            Token::Name(text) | Token::Number(text) => format!("`{text}`"),
            Token::Text(text) => format!("'{text}'"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        let at = self.at();
        self.error(at, format!("expected {wanted}, but found {found}"), None);
        Err(Stopped)
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.token(), Token::Sign(found) if *found == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token(), Token::Name(name) if name == word)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.stop(&format!("`{sign}`")) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.is_word(word) {
            self.take();
            return Ok(());
        }
        self.stop(&format!("`{word}`"))
    }

    fn end(&mut self) -> Parsed<()> {
        match self.token() {
            Token::End => Ok(()),
            _ => self.stop("`and`, `or` or the end"),
        }
    }

    /// Reads the content of one more level of brackets.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            let at = self.at();
            self.error(at, format!("more than {DEPTH_MAX} brackets are within each other"), None);
            return Err(Stopped);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Returns the sign after the bracket that closes the one at `open`.
    fn behind_bracket(&self, open: usize) -> Option<&Token> {
        let mut depth = 0;
        for (index, word) in self.words.iter().enumerate().skip(open) {
            match word.token {
                Token::Sign("(") => depth += 1,
                Token::Sign(")") if depth == 1 => return self.words.get(index + 1).map(|word| &word.token),
                Token::Sign(")") => depth -= 1,
                _ => {}
            }
        }
        None
    }

    fn any(&mut self) -> Parsed<Proposition> {
        let mut each = vec![self.all()?];
        while self.is_word("or") {
            self.take();
            each.push(self.all()?);
        }
        Ok(if each.len() == 1 { each.remove(0) } else { Proposition::Any(each) })
    }

    fn all(&mut self) -> Parsed<Proposition> {
        let mut each = vec![self.one()?];
        while self.is_word("and") {
            self.take();
            each.push(self.one()?);
        }
        Ok(if each.len() == 1 { each.remove(0) } else { Proposition::All(each) })
    }

    fn bracketed(&mut self) -> Parsed<Proposition> {
        self.expect("(")?;
        let inner = self.deeper(Self::any)?;
        self.expect(")")?;
        Ok(inner)
    }

    fn one(&mut self) -> Parsed<Proposition> {
        let follows_bracket = matches!(self.words.get(self.next + 1).map(|word| &word.token), Some(Token::Sign("(")));
        match self.token().clone() {
            Token::Sign("(") => {
                // The bracket is a quantity if an arithmetic operator or a comparison follows it.
                let is_quantity = match self.behind_bracket(self.next) {
                    Some(Token::Sign(sign)) => *sign != ")",
                    Some(Token::Name(word)) => word == "in",
                    _ => false,
                };
                if is_quantity { self.comparison() } else { self.bracketed() }
            }
            Token::Name(word) if word == "not" => {
                self.take();
                Ok(Proposition::Not(Box::new(self.bracketed()?)))
            }
            Token::Name(word) if follows_bracket && word == "share" => self.share(),
            Token::Name(word) if follows_bracket && word == "best" => self.best(),
            Token::Name(word) if follows_bracket && word == "fails" => self.fails(),
            Token::Name(word) if follows_bracket && word == "limited_by" => self.limited_by(),
            Token::Name(_) if self.begins_order() => self.order(),
            _ => self.comparison(),
        }
    }

    fn begins_order(&self) -> bool {
        match self.words.get(self.next + 1).map(|word| &word.token) {
            Some(Token::Sign(":")) => true,
            Some(Token::Sign("(")) => matches!(self.behind_bracket(self.next + 1), Some(Token::Sign(":"))),
            _ => false,
        }
    }

    fn share(&mut self) -> Parsed<Proposition> {
        self.take();
        let of = Box::new(self.bracketed()?);
        let at = self.at();
        let relation = self.relation()?;
        let bound = self.literal()?;
        match bound.quantity {
            Quantity::Literal(bound) if (0.0..=1.0).contains(&bound) => Ok(Proposition::Share { of, relation, bound }),
            _ => {
                self.error(at, "a share is from 0% to 100%".into(), None);
                Ok(Proposition::Share { of, relation, bound: 1.0 })
            }
        }
    }

    fn best(&mut self) -> Parsed<Proposition> {
        self.take();
        self.expect("(")?;
        let figure = self.ranking()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        if !self.eat("=") {
            return self.stop("`=` and a system");
        }
        Ok(Proposition::Best { figure, at, systems: self.systems()? })
    }

    /// Reads systems with `or` between them. The text after an `or` may be another statement.
    fn systems(&mut self) -> Parsed<Vec<String>> {
        let mut systems = vec![self.system()?];
        while self.is_word("or") && systems.len() < SYSTEMS_MAX {
            let names_one = matches!(self.words.get(self.next + 1).map(|word| &word.token), Some(Token::Name(name)) if name != "not")
                && !matches!(
                    self.words.get(self.next + 2).map(|word| &word.token),
                    Some(Token::Sign("(" | ":" | "<" | ">" | "<=" | ">=" | "=" | "+" | "-" | "*" | "/"))
                );
            if !names_one {
                break;
            }
            self.take();
            systems.push(self.system()?);
        }
        Ok(systems)
    }

    fn fails(&mut self) -> Parsed<Proposition> {
        self.take();
        self.expect("(")?;
        let at = self.with_system()?;
        self.expect(")")?;
        self.expect_word("at")?;
        let axis = self.axis()?;
        self.expect_word("in")?;
        let within = self.range(Some(Dimension::of_axis(&axis)))?;
        Ok(Proposition::FailsAt { axis, within, at })
    }

    fn limited_by(&mut self) -> Parsed<Proposition> {
        self.take();
        self.expect("(")?;
        let at = self.with_system()?;
        self.expect(")")?;
        self.expect("=")?;
        let mut limits = vec![self.limit()?];
        while self.is_word("or") && limits.len() < CapacityLimit::ALL.len() {
            let is_limit = |word: &Placed| matches!(&word.token, Token::Name(name) if limit(name).is_some());
            if !self.words.get(self.next + 1).is_some_and(is_limit) {
                break;
            }
            self.take();
            limits.push(self.limit()?);
        }
        Ok(Proposition::LimitedBy { at, limits })
    }

    fn limit(&mut self) -> Parsed<CapacityLimit> {
        let at = self.at();
        let Token::Name(name) = self.token().clone() else { return self.stop("what gave out, such as `thread`") };
        self.take();
        match limit(&name) {
            Some(limit) => Ok(limit),
            None => {
                let known = CapacityLimit::ALL.iter().map(|limit| limit.word());
                self.error(at, format!("`{name}` is nothing that can give out"), Some(suggestion(&name, known)));
                Ok(CapacityLimit::Server)
            }
        }
    }

    fn order(&mut self) -> Parsed<Proposition> {
        let figure = self.ranking()?;
        let mut at = NamedPlaces::default();
        if self.eat("(") {
            at = self.selection(true)?;
            self.expect(")")?;
        }
        self.expect(":")?;
        let (mut groups, mut rises) = (vec![vec![self.system()?]], Vec::new());
        let mut systems = 1;
        loop {
            let here = self.at();
            let Token::Sign(sign @ ("<" | ">" | "~")) = self.token().clone() else { break };
            self.take();
            systems += 1;
            if systems > SYSTEMS_MAX {
                self.error(here, format!("an order has more than {SYSTEMS_MAX} systems"), None);
                return Err(Stopped);
            }
            let system = self.system()?;
            match (sign, groups.last_mut()) {
                ("~", Some(group)) => group.push(system),
                _ => {
                    rises.push(sign == "<");
                    groups.push(vec![system]);
                }
            }
        }
        if systems == 1 {
            return self.stop("`<`, `>` or `~` and another system");
        }
        let mut names: Vec<&String> = groups.iter().flatten().collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("`{}` is twice in the order", pair[0]);
            let here = self.at();
            self.error(here, message, None);
        }
        Ok(Proposition::Order { figure, at, groups, rises })
    }

    fn relation(&mut self) -> Parsed<Relation> {
        let relation = match self.token() {
            Token::Sign("<") => Relation::Below,
            Token::Sign("<=") => Relation::AtMost,
            Token::Sign(">") => Relation::Above,
            Token::Sign(">=") => Relation::AtLeast,
            Token::Sign("=" | "==") => Relation::Equal,
            _ => return self.stop("a comparison (`<`, `<=`, `>`, `>=`, `=` or `in`)"),
        };
        self.take();
        Ok(relation)
    }

    fn comparison(&mut self) -> Parsed<Proposition> {
        let left = self.sum()?;
        if self.is_word("in") {
            self.take();
            let [lo, hi] = self.range(left.dimension)?;
            let bound = |relation, bound| Proposition::Compare {
                left: left.quantity.clone(),
                relation,
                right: Quantity::Literal(bound),
            };
            return Ok(Proposition::All(vec![bound(Relation::AtLeast, lo), bound(Relation::AtMost, hi)]));
        }
        let relation = self.relation()?;
        let right = self.sum()?;
        self.same(&left, &right);
        Ok(Proposition::Compare { left: left.quantity, relation, right: right.quantity })
    }

    /// Reads `LO..HI`, in base units.
    fn range(&mut self, dimension: Option<Dimension>) -> Parsed<[f64; 2]> {
        let (lo, at) = (self.literal()?, self.at());
        self.expect("..")?;
        let hi = self.literal()?;
        let left = Typed { quantity: Quantity::Literal(0.0), dimension, at };
        // In `1..10ms`, both numbers have the one unit.
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

    /// Checks that two quantities have the same unit; a number without a unit may be a count.
    fn same(&mut self, left: &Typed, right: &Typed) -> Option<Dimension> {
        // An unreadable number has already been reported.
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
            .then(|| "a share of messages is written with delivered_ratio: 1 - delivered_ratio(…)".to_owned());
        self.error(right.at, message, help);
        Some(known)
    }

    fn sum(&mut self) -> Parsed<Typed> {
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

    fn product(&mut self) -> Parsed<Typed> {
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

    fn value(&mut self) -> Parsed<Typed> {
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
                    "growth" => self.along(Along::Growth)?,
                    "peak" => self.along(Along::Peak)?,
                    "slope" => self.along(Along::Slope)?,
                    "fixed" => self.along(Along::Fixed)?,
                    "crossing" => self.crossing()?,
                    "capacity" => self.capacity()?,
                    _ => self.figure()?,
                };
                Ok(Typed { dimension: quantity.dimension(), quantity, at })
            }
            _ => self.stop("a figure, a number or a function"),
        }
    }

    fn literal(&mut self) -> Parsed<Typed> {
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

    fn along(&mut self, along: Along) -> Parsed<Quantity> {
        self.take();
        self.expect("(")?;
        let figure = self.figure_name()?;
        self.expect(",")?;
        let axis = self.axis()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        Ok(Quantity::Along(along, figure, axis, at))
    }

    fn crossing(&mut self) -> Parsed<Quantity> {
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

    fn capacity(&mut self) -> Parsed<Quantity> {
        self.take();
        self.expect("(")?;
        let system = self.system()?;
        self.expect(",")?;
        let over = self.axis()?;
        let at = self.selection(false)?;
        self.expect(")")?;
        Ok(Quantity::Capacity { over, at: at.of_system(&system) })
    }

    fn figure(&mut self) -> Parsed<Quantity> {
        let figure = self.figure_name()?;
        let mut at = NamedPlaces::default();
        if self.eat("(") {
            at = self.selection(true)?;
            self.expect(")")?;
        }
        Ok(Quantity::Figure(figure, at))
    }

    fn figure_name(&mut self) -> Parsed<Figure> {
        self.named(|name| Figure::named(name).map_err(|error| error.to_string()))
    }

    /// Reads a figure of which more or less is better.
    fn ranking(&mut self) -> Parsed<Figure> {
        self.named(|name| Figure::ranking(name).map_err(|error| error.to_string()))
    }

    fn named(&mut self, read: fn(&str) -> Result<Figure, String>) -> Parsed<Figure> {
        let at = self.at();
        let Token::Name(name) = self.token().clone() else { return self.stop("a figure") };
        self.take();
        Ok(read(&name).unwrap_or_else(|message| {
            let function =
                crate::diagnostic::nearest(&name, FUNCTIONS).map(|name| format!("did you mean `{name}(…)`?"));
            self.error(at, message, function);
            Figure::LATENCY_P50
        }))
    }

    fn system(&mut self) -> Parsed<String> {
        let at = self.at();
        let (Token::Name(name) | Token::Text(name)) = self.token().clone() else { return self.stop("a system") };
        self.take();
        Ok((self.names.system)(&name).unwrap_or_else(|(message, help)| {
            self.error(at, message, help);
            name
        }))
    }

    fn axis(&mut self) -> Parsed<String> {
        let at = self.at();
        let Token::Name(name) = self.token().clone() else { return self.stop("an axis") };
        self.take();
        if name == "system" || name == "part" || !crate::study::axis::known_axis(&name) {
            let known: Vec<&str> = crate::study::axis::axis_names().filter(|name| *name != "system").collect();
            self.error(at, format!("`{name}` is no axis with an order"), Some(suggestion(&name, known)));
        }
        Ok(name)
    }

    /// Reads `SYSTEM[, AXIS=VALUE…]`.
    fn with_system(&mut self) -> Parsed<NamedPlaces> {
        let at = self.at();
        let selection = self.selection(true)?;
        if selection.system().is_none() {
            self.error(at, "a system has to be named here".into(), None);
        }
        Ok(selection)
    }

    /// Reads the names before a closing bracket: a system, and places on axes. A comma comes before
    /// each, except the `first` in the bracket.
    fn selection(&mut self, mut first: bool) -> Parsed<NamedPlaces> {
        let mut selection = NamedPlaces::default();
        while !self.is(")") {
            if !first {
                self.expect(",")?;
            }
            first = false;
            let at = self.at();
            let is_place = matches!(self.words.get(self.next + 1).map(|word| &word.token), Some(Token::Sign("=")));
            let (axis, value) = if is_place { self.place()? } else { ("system".to_owned(), self.system()?.into()) };
            if selection.get(&axis).is_some() {
                self.error(at, format!("`{axis}` is named twice"), None);
            } else {
                selection.places.push((axis, value));
            }
        }
        Ok(selection)
    }

    fn place(&mut self) -> Parsed<(String, Value)> {
        let at = self.at();
        let Token::Name(axis) = self.take() else { return self.stop("an axis") };
        self.expect("=")?;
        let value_at = self.at();
        let (Token::Name(text) | Token::Number(text) | Token::Text(text)) = self.token().clone() else {
            return self.stop("a value");
        };
        self.take();
        if !crate::study::axis::known_axis(&axis) {
            let known: Vec<&str> = crate::study::axis::axis_names().collect();
            self.error(at, format!("`{axis}` is no axis"), Some(suggestion(&axis, known)));
            return Ok((axis, Value::Null));
        }
        let value = (self.names.value)(&axis, &text).unwrap_or_else(|(message, help)| {
            self.error(value_at, message, help);
            Value::Null
        });
        Ok((axis, value))
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
    /// Returns the result for two numbers.
    pub fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Operator::Add => left + right,
            Operator::Subtract => left - right,
            Operator::Multiply => left * right,
            Operator::Divide => left / right,
        }
    }
}

fn limit(word: &str) -> Option<CapacityLimit> {
    match word {
        "cpu" => Some(CapacityLimit::Processors),
        word => CapacityLimit::parse(word).ok(),
    }
}

/// Parses a number. Returns it in base units, and its dimension if it has a unit.
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
                Err(_) => return Err(format!("`{text}` is no number with a unit that is known here")),
            },
        },
    })
}
