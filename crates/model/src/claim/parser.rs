//! Parses an expression: strict, bounded, and with all errors of names and units at once.

mod names;
mod quantity;

use super::expression::{Dimension, Expression, NamedPlaces, Proposition, Quantity};
use super::lexer::{Placed, Token, words};
use crate::capacity::CapacityLimit;
use crate::diagnostic::suggestion;
use crate::objective::Relation;
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
    /// Returns whether the study has a flow of this name.
    pub is_flow: &'a dyn Fn(&str) -> bool,
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
}

fn limit(word: &str) -> Option<CapacityLimit> {
    match word {
        "cpu" => Some(CapacityLimit::Processors),
        word => CapacityLimit::parse(word).ok(),
    }
}
