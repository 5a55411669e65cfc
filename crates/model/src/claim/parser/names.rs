//! Names: figures, systems, and places on axes.

use super::{FUNCTIONS, Parsed, Parser};
use crate::claim::expression::{NamedPlaces, Quantity};
use crate::claim::lexer::Token;
use crate::diagnostic::suggestion;
use crate::figure::Figure;
use crate::flow::FLOW;
use serde_json::Value;

impl Parser<'_> {
    pub(super) fn figure(&mut self) -> Parsed<Quantity> {
        let figure = self.figure_name()?;
        let mut at = NamedPlaces::default();
        if self.eat("(") {
            at = self.selection(true)?;
            self.expect(")")?;
        }
        Ok(Quantity::Figure(figure, at))
    }

    pub(super) fn figure_name(&mut self) -> Parsed<Figure> {
        self.named(|name| Figure::named(name).map_err(|error| error.to_string()))
    }

    /// A figure of which more or less is better.
    pub(super) fn ranking(&mut self) -> Parsed<Figure> {
        self.named(|name| Figure::ranking(name).map_err(|error| error.to_string()))
    }

    pub(super) fn named(&mut self, read: fn(&str) -> Result<Figure, String>) -> Parsed<Figure> {
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

    pub(super) fn system(&mut self) -> Parsed<String> {
        let at = self.at();
        let (Token::Name(name) | Token::Text(name)) = self.token().clone() else { return self.stop("a system") };
        self.take();
        Ok((self.names.system)(&name).unwrap_or_else(|(message, help)| {
            self.error(at, message, help);
            name
        }))
    }

    pub(super) fn axis(&mut self) -> Parsed<String> {
        let at = self.at();
        let Token::Name(name) = self.token().clone() else { return self.stop("an axis") };
        self.take();
        if name == "system" || name == "part" || !crate::study::axis::known_axis(&name) {
            let known: Vec<&str> = crate::study::axis::axis_names().filter(|name| *name != "system").collect();
            self.error(at, format!("`{name}` is not an axis with an order"), Some(suggestion(&name, known)));
        }
        Ok(name)
    }

    /// `SYSTEM[, AXIS=VALUE…]`
    pub(super) fn with_system(&mut self) -> Parsed<NamedPlaces> {
        let at = self.at();
        let selection = self.selection(true)?;
        if selection.system().is_none() {
            self.error(at, "a system has to be named here".into(), None);
        }
        Ok(selection)
    }

    /// A place that is named by its value alone: a flow of the study, or a system.
    fn bare_place(&mut self) -> Parsed<(String, Value)> {
        if let Token::Name(name) = self.token().clone()
            && (self.names.is_flow)(&name)
        {
            self.take();
            return Ok((FLOW.to_owned(), name.into()));
        }
        Ok(("system".to_owned(), self.system()?.into()))
    }

    /// What stands before a closing bracket: systems or flows, and places on axes. Unless it is
    /// the `first` in the bracket, a comma comes before it.
    pub(super) fn selection(&mut self, mut first: bool) -> Parsed<NamedPlaces> {
        let mut selection = NamedPlaces::default();
        while !self.is(")") {
            if !first {
                self.expect(",")?;
            }
            first = false;
            let at = self.at();
            let is_place = matches!(self.words.get(self.next + 1).map(|word| &word.token), Some(Token::Sign("=")));
            let (axis, value) = if is_place { self.place()? } else { self.bare_place()? };
            if selection.get(&axis).is_some() {
                self.error(at, format!("`{axis}` is named twice"), None);
            } else {
                selection.places.push((axis, value));
            }
        }
        Ok(selection)
    }

    pub(super) fn place(&mut self) -> Parsed<(String, Value)> {
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
            self.error(at, format!("`{axis}` is not an axis"), Some(suggestion(&axis, known)));
            return Ok((axis, Value::Null));
        }
        let value = (self.names.value)(&axis, &text).unwrap_or_else(|(message, help)| {
            self.error(value_at, message, help);
            Value::Null
        });
        Ok((axis, value))
    }
}
