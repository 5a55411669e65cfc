//! YAML with the place of each value.
//!
//! The parser is saphyr-parser. This file builds values from its events, so that depth, aliases and repeated keys are
//! checked before anything is built from them.

use pubmark_model::diagnostic::Diagnostic;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 100;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlNode {
    /// Byte offset in the file.
    pub offset: usize,
    /// The value.
    pub value: YamlValue,
}

/// A value, by the core schema of YAML 1.2.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum YamlValue {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<YamlNode>),
    /// A table.
    Table(Vec<YamlEntry>),
}

/// A key of a table with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct YamlEntry {
    /// The key.
    pub key: String,
    /// Byte offset of the key.
    pub offset: usize,
    /// The value.
    pub node: YamlNode,
}

impl YamlNode {
    /// Returns the value of a key of a table.
    pub fn get(&self, key: &str) -> Option<&YamlNode> {
        let YamlValue::Table(entries) = &self.value else { return None };
        entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

impl YamlValue {
    /// Returns what it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self {
            YamlValue::Null => "nothing",
            YamlValue::Flag(_) => "true or false",
            YamlValue::Integer(_) => "a whole number",
            YamlValue::Float(_) => "a number with a fraction",
            YamlValue::Text(_) => "a text",
            YamlValue::List(_) => "a list",
            YamlValue::Table(_) => "a table",
        }
    }
}

/// Parses a file of one document.
pub(crate) fn parse(text: &str) -> Result<YamlNode, Diagnostic> {
    let bytes: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(text.len());
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span): (Event<'_>, Span) = event
            .map_err(|error| Diagnostic::at(byte(error.marker().index()), format!("not YAML: {}", error.info())))?;
        builder.take(event, byte(span.start.index()))?;
    }
    let empty = || Diagnostic::whole("the file is empty");
    builder.root.filter(|root| root.value != YamlValue::Null).ok_or_else(empty)
}

/// A list or table that is not closed.
enum Open {
    List(usize, Vec<YamlNode>),
    Table { offset: usize, entries: Vec<YamlEntry>, key: Option<(String, usize)> },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<YamlNode>,
    documents: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, offset: usize) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Diagnostic::at(offset, "a second document begins here. Write one document a file"));
                }
            }
            Event::Alias(_) => {
                return Err(Diagnostic::at(offset, "aliases are not supported. Write the value itself"));
            }
            Event::Scalar(text, style, ..) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => YamlValue::Text(text.into_owned()),
                };
                return self.close(YamlNode { offset, value });
            }
            Event::SequenceStart(..) => self.begin(Open::List(offset, Vec::new()), offset)?,
            Event::MappingStart(..) => {
                self.begin(Open::Table { offset, entries: Vec::new(), key: None }, offset)?;
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List(offset, items)) => {
                    return self.close(YamlNode { offset, value: YamlValue::List(items) });
                }
                Some(Open::Table { offset, entries, .. }) => {
                    return self.close(YamlNode { offset, value: YamlValue::Table(entries) });
                }
                None => {}
            },
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, offset: usize) -> Result<(), Diagnostic> {
        if self.open.len() == DEPTH_MAX {
            return Err(Diagnostic::at(offset, format!("nested more than {DEPTH_MAX} levels deep")));
        }
        self.open.push(open);
        Ok(())
    }

    /// Adds a whole value to what is open.
    fn close(&mut self, node: YamlNode) -> Result<(), Diagnostic> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List(_, items)) => items.push(node),
            Some(Open::Table { entries, key, .. }) => match key.take() {
                Some((key, offset)) => entries.push(YamlEntry { key, offset, node }),
                None => {
                    let name = name(&node)?;
                    if entries.iter().any(|entry| entry.key == name) {
                        return Err(Diagnostic::at(node.offset, format!("the key `{name}` is here twice")));
                    }
                    *key = Some((name, node.offset));
                }
            },
        }
        Ok(())
    }
}

/// Returns the name that a value stands for as a key.
fn name(node: &YamlNode) -> Result<String, Diagnostic> {
    match &node.value {
        YamlValue::Text(text) => Ok(text.clone()),
        YamlValue::Integer(number) => Ok(number.to_string()),
        YamlValue::Float(number) => Ok(number.to_string()),
        YamlValue::Flag(flag) => Ok(flag.to_string()),
        other => Err(Diagnostic::at(node.offset, format!("a key must be a text, but is {}", other.kind()))),
    }
}

/// Returns the value of a scalar without quotes.
fn plain(text: &str) -> YamlValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return YamlValue::Null,
        "true" | "True" | "TRUE" => return YamlValue::Flag(true),
        "false" | "False" | "FALSE" => return YamlValue::Flag(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let first = digits.trim_start_matches('.').chars().next();
    if !first.is_some_and(|first| first.is_ascii_digit()) {
        return YamlValue::Text(text.to_owned());
    }
    let number = text.parse().map(YamlValue::Integer).or_else(|_| text.parse().map(YamlValue::Float));
    number.unwrap_or_else(|_| YamlValue::Text(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text).unwrap_err().message
    }

    #[test]
    fn values_have_their_types_and_places() {
        let text = "# é\na: 1\nb : [x, \"2\", -3, 1.5, ~, true]\nc:\n  d: ${n:-15}\n\"e\": 'f'\n";
        let root = parse(text).unwrap();
        let YamlValue::Table(entries) = &root.value else { panic!("{root:?}") };
        let keys: Vec<(&str, usize)> = entries.iter().map(|entry| (entry.key.as_str(), entry.offset)).collect();
        let at = |part: &str| text.find(part).unwrap();
        assert_eq!(keys, [("a", at("a: 1")), ("b", at("b :")), ("c", at("c:")), ("e", at("\"e\""))]);
        let YamlValue::List(items) = &root.get("b").unwrap().value else { panic!("{root:?}") };
        let items: Vec<&YamlValue> = items.iter().map(|item| &item.value).collect();
        let text_of = |text: &str| YamlValue::Text(text.to_owned());
        let wanted = [text_of("x"), text_of("2"), YamlValue::Integer(-3), YamlValue::Float(1.5), YamlValue::Null];
        assert!(items.iter().copied().eq(wanted.iter().chain([&YamlValue::Flag(true)])), "{items:?}");
        assert_eq!(root.get("c").unwrap().get("d").unwrap().value, text_of("${n:-15}"));
        let json = parse("{\"a\": {\"b\": [1, 2]}}").unwrap();
        assert!(matches!(&json.get("a").unwrap().get("b").unwrap().value, YamlValue::List(two) if two.len() == 2));
    }

    #[test]
    fn what_is_not_one_plain_document_is_refused() {
        for (text, wanted) in [
            ("", "the file is empty"),
            ("# only a remark\n", "the file is empty"),
            ("a: [1, 2", "not YAML"),
            ("a: 1\na: 2\n", "the key `a` is here twice"),
            ("a: &x 1\nb: *x\n", "aliases"),
            ("a: 1\n---\nb: 2\n", "a second document"),
            ("[a]: 1\n", "a key must be a text"),
        ] {
            assert!(message(text).contains(wanted), "{text:?}: {}", message(text));
        }
        for deep in ["[", "{a: ", "- ", "? "] {
            let deep = deep.repeat(100_000);
            assert!(parse(&deep).is_err());
        }
    }
}
