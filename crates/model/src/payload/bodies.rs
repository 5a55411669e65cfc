//! Bodies of messages that are not a pattern: the lines of a file in turn, or a template.
//!
//! The body follows the header and its checksum, so it begins at byte 36 of each message. Without a
//! checksum four zeros take its place.

use crate::header::{FREE_LEN, Header, SEALED_LEN};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Most bytes of a line or template.
const LINE_BYTES_MAX: usize = 1_000_000;
/// Most bytes of a file's lines together.
const FILE_BYTES_MAX: usize = 8 << 20;

/// The lines of the files that `payload_file` names, by the name.
pub type PayloadFiles = BTreeMap<String, PayloadBodies>;

/// Bodies of messages. Copies share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Told", into = "Told")]
pub struct PayloadBodies(Arc<Source>);

#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// Message i of each publisher has line i, and the first follows the last. There are none in a record.
    Lines {
        file: String,
        lines: Vec<String>,
    },
    Template {
        text: String,
        parts: Vec<Part>,
        bytes: usize,
    },
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(Field),
}

/// A field of a template, as it differs between messages; it always has the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Sequence,
    Time,
    Key,
}

impl Field {
    const ALL: [(&'static str, Field); 3] =
        [("{sequence}", Field::Sequence), ("{time}", Field::Time), ("{key}", Field::Key)];

    /// Returns its width, bytes: the most digits that it may need.
    fn bytes(self) -> usize {
        match self {
            Field::Sequence | Field::Key => 10,
            Field::Time => 20,
        }
    }

    fn text(self, header: &Header, into: &mut String) {
        let written = match self {
            Field::Sequence => write!(into, "{:>10}", header.sequence),
            Field::Time => write!(into, "{:>20}", header.sent_ns.unwrap_or(0)),
            Field::Key => write!(into, "{:010}", header.publisher),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
    }
}

/// The form in records and between processes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    Lines { file: String, lines: Vec<String> },
    Template(String),
}

/// Reasons why a file or a text cannot be the bodies of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodiesError {
    /// There are no lines.
    #[error("{0} is empty: write one message on each line")]
    Empty(String),
    /// A line is empty.
    #[error("{file}:{line}: the line is empty: write a message, or remove it")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// A line is too long.
    #[error("{file}:{line}: the line has {bytes} bytes, and {LINE_BYTES_MAX} are the most: shorten it")]
    Long {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// Its length, bytes.
        bytes: usize,
    },
    /// The lines are too many.
    #[error("{file}:{line}: the lines up to here have more than {FILE_BYTES_MAX} bytes: end the file before it")]
    Many {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
    },
    /// A template is too long.
    #[error("the template has {0} bytes, and {LINE_BYTES_MAX} are the most: shorten it")]
    LongTemplate(usize),
    /// A template is the same in each message.
    #[error("`{0}` has none of `{{sequence}}`, `{{time}}` and `{{key}}`: add one, or name a file with `payload_file`")]
    NoField(String),
}

impl PayloadBodies {
    /// Reads the lines of a file; `file` is its name in the study.
    ///
    /// # Errors
    /// If a line is empty or too long, or if there are none or too many.
    pub fn of_lines(file: &str, text: &str) -> Result<PayloadBodies, BodiesError> {
        let (mut lines, mut sum) = (Vec::new(), 0);
        for (number, text) in (1..).zip(text.lines()) {
            let (file, line, bytes) = (file.to_owned(), number, text.len());
            sum += bytes;
            match bytes {
                0 => return Err(BodiesError::Line { file, line }),
                _ if bytes > LINE_BYTES_MAX => return Err(BodiesError::Long { file, line, bytes }),
                _ if sum > FILE_BYTES_MAX => return Err(BodiesError::Many { file, line }),
                _ => lines.push(text.to_owned()),
            }
        }
        match lines.is_empty() {
            true => Err(BodiesError::Empty(file.to_owned())),
            false => Ok(PayloadBodies(Arc::new(Source::Lines { file: file.to_owned(), lines }))),
        }
    }

    /// Reads a template with one or more of `{sequence}`, `{time}` and `{key}`.
    ///
    /// # Errors
    /// If it has none of them, or is too long.
    pub fn of_template(text: &str) -> Result<PayloadBodies, BodiesError> {
        let bodies = PayloadBodies::template(text);
        match &*bodies.0 {
            Source::Template { bytes, .. } if *bytes > LINE_BYTES_MAX => Err(BodiesError::LongTemplate(*bytes)),
            Source::Template { parts, .. } if !parts.iter().any(|part| matches!(part, Part::Field(_))) => {
                Err(BodiesError::NoField(text.to_owned()))
            }
            _ => Ok(bodies),
        }
    }

    fn template(text: &str) -> PayloadBodies {
        let (mut parts, mut rest) = (Vec::new(), text);
        let next = |text: &str| {
            let found = Field::ALL.iter().filter_map(|(name, field)| Some((text.find(name)?, *name, *field)));
            found.min_by_key(|(at, ..)| *at)
        };
        while let Some((at, name, field)) = next(rest) {
            parts.extend([Part::Text(rest[..at].to_owned()), Part::Field(field)]);
            rest = &rest[at + name.len()..];
        }
        parts.push(Part::Text(rest.to_owned()));
        let len = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Field(field) => field.bytes(),
        };
        let bytes = parts.iter().map(len).sum();
        PayloadBodies(Arc::new(Source::Template { text: text.to_owned(), parts, bytes }))
    }

    /// Returns the lines; `None` if it is a template.
    pub fn lines(&self) -> Option<&[String]> {
        if let Source::Lines { lines, .. } = &*self.0 { Some(lines) } else { None }
    }

    /// Returns file and number of the longest line; `None` if it is a template.
    pub fn longest_line(&self) -> Option<String> {
        let Source::Lines { file, lines } = &*self.0 else { return None };
        let (number, _) = (1..).zip(lines).max_by_key(|(_, line)| line.len())?;
        Some(format!("{file}:{number}"))
    }

    /// Returns the setting that it comes from, as a user knows it.
    pub fn text(&self) -> String {
        match &*self.0 {
            Source::Lines { file, .. } => format!("payload_file {file}"),
            Source::Template { text, .. } => format!("payload_template {text}"),
        }
    }

    /// Returns the bodies as a record has them: without the lines of a file.
    #[must_use]
    pub fn recorded(&self) -> PayloadBodies {
        match &*self.0 {
            Source::Lines { file, .. } => {
                PayloadBodies(Arc::new(Source::Lines { file: file.clone(), lines: Vec::new() }))
            }
            Source::Template { .. } => self.clone(),
        }
    }

    /// Returns the length of a message with its header, bytes.
    #[inline]
    pub fn message_bytes(&self, sequence: u32) -> usize {
        SEALED_LEN
            + match &*self.0 {
                Source::Lines { lines, .. } => line(lines, sequence).len(),
                Source::Template { bytes, .. } => *bytes,
            }
    }

    /// Returns the lengths of all messages with their headers, bytes: one for each line, or one for all.
    pub fn all_message_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.lines().map_or(1, |lines| lines.len());
        (0..count).map(|number| self.message_bytes(number as u32) as u64)
    }

    /// Writes a message's body behind its header.
    #[inline]
    pub fn write(&self, header: &Header, message: &mut [u8]) {
        if let Some(front) = message.get_mut(FREE_LEN..SEALED_LEN) {
            front.fill(0);
        }
        let Some(body) = message.get_mut(SEALED_LEN..) else { return };
        self.with_body(header, |text| {
            body.iter_mut().zip(text).for_each(|(byte, wanted)| *byte = *wanted);
        });
    }

    /// True if a message has the body that its header says. `is_sealed` is true if the header has a checksum.
    #[inline]
    pub fn is_in(&self, header: &Header, message: &[u8], is_sealed: bool) -> bool {
        let front = message.get(FREE_LEN..SEALED_LEN);
        let Some(body) = message.get(SEALED_LEN..) else { return false };
        (is_sealed || front == Some(&[0; SEALED_LEN - FREE_LEN])) && self.with_body(header, |text| text == body)
    }

    #[inline]
    fn with_body<T>(&self, header: &Header, then: impl FnOnce(&[u8]) -> T) -> T {
        match &*self.0 {
            Source::Lines { lines, .. } => then(line(lines, header.sequence).as_bytes()),
            Source::Template { parts, bytes, .. } => {
                let mut text = String::with_capacity(*bytes);
                for part in parts {
                    match part {
                        Part::Text(part) => text.push_str(part),
                        Part::Field(field) => field.text(header, &mut text),
                    }
                }
                then(text.as_bytes())
            }
        }
    }
}

fn line(lines: &[String], sequence: u32) -> &str {
    lines.get(sequence as usize % lines.len().max(1)).map_or("", String::as_str)
}

impl From<Told> for PayloadBodies {
    fn from(told: Told) -> PayloadBodies {
        match told {
            Told::Lines { file, lines } => PayloadBodies(Arc::new(Source::Lines { file, lines })),
            Told::Template(text) => PayloadBodies::template(&text),
        }
    }
}

impl From<PayloadBodies> for Told {
    fn from(bodies: PayloadBodies) -> Told {
        match &*bodies.0 {
            Source::Lines { file, lines } => Told::Lines { file: file.clone(), lines: lines.clone() },
            Source::Template { text, .. } => Told::Template(text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u32) -> Header {
        Header { intended_ns: 1, publisher: 7, sequence, sent_ns: Some(123), free_ns: Some(1) }
    }

    fn message(bodies: &PayloadBodies, sequence: u32) -> Vec<u8> {
        let mut message = vec![0xff; bodies.message_bytes(sequence)];
        bodies.write(&header(sequence), &mut message);
        message
    }

    #[test]
    fn lines_come_in_turn_and_a_template_has_one_length() {
        let lines = PayloadBodies::of_lines("f", "one\nthree\r\n").unwrap();
        assert_eq!([0, 1, 2].map(|i| message(&lines, i)[36..].to_vec()), [&b"one"[..], b"three", b"one"]);
        assert_eq!(lines.all_message_bytes().collect::<Vec<_>>(), [39, 41]);
        let template =
            PayloadBodies::of_template(r#"{"id": {sequence}, "at": {time}, "key": "{key}", "{x}"}"#).unwrap();
        let wanted = r#"{"id":          5, "at":                  123, "key": "0000000007", "{x}"}"#;
        assert_eq!(message(&template, 5)[36..], *wanted.as_bytes());
        assert_eq!(message(&template, u32::MAX).len(), message(&template, 0).len());
        for bodies in [lines, template] {
            let told = serde_json::to_string(&bodies).unwrap();
            assert_eq!(serde_json::from_str::<PayloadBodies>(&told).unwrap(), bodies);
            let mut sound = message(&bodies, 3);
            for at in 32..sound.len() {
                sound[at] ^= 1;
                assert!(
                    !bodies.is_in(&header(3), &sound, false) && (at < 36) == bodies.is_in(&header(3), &sound, true)
                );
                sound[at] ^= 1;
            }
            assert!(bodies.is_in(&header(3), &sound, false) && !bodies.is_in(&header(4), &sound[..38], false));
        }
    }

    #[test]
    fn what_cannot_be_a_body_is_refused() {
        let file = "f".to_owned();
        assert_eq!(PayloadBodies::of_lines("f", ""), Err(BodiesError::Empty("f".into())));
        assert_eq!(PayloadBodies::of_lines("f", "a\n\nb"), Err(BodiesError::Line { file: file.clone(), line: 2 }));
        let long = format!("a\n{}", "x".repeat(1_000_001));
        let wanted = BodiesError::Long { file: file.clone(), line: 2, bytes: 1_000_001 };
        assert_eq!(PayloadBodies::of_lines("f", &long), Err(wanted));
        let many = format!("{}\n", "x".repeat(1_000_000)).repeat(9);
        assert_eq!(PayloadBodies::of_lines("f", &many), Err(BodiesError::Many { file, line: 9 }));
        assert_eq!(PayloadBodies::of_template("{id}"), Err(BodiesError::NoField("{id}".into())));
    }
}
