//! Lines for a terminal. The pieces of a line can be highlighted differently.

use crate::text::wrap;

/// Highlighting of a piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// No highlighting.
    Plain,
    /// A heading.
    Heading,
    /// The best of its column.
    Good,
    /// Unreliable, or a warning.
    Warning,
    /// Background, such as the floor.
    Muted,
}

impl Tone {
    /// Returns the parameter of its escape sequence (SGR).
    fn code(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Heading => Some("1"),
            Tone::Good => Some("32"),
            Tone::Warning => Some("33"),
            Tone::Muted => Some("2"),
        }
    }
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(String, Tone)>);

impl Line {
    /// Returns a line of one piece.
    pub fn of(text: impl Into<String>, tone: Tone) -> Line {
        Line(vec![(text.into(), tone)])
    }

    /// Appends a piece.
    pub fn push(&mut self, text: &str, tone: Tone) {
        if !text.is_empty() {
            self.0.push((text.to_owned(), tone));
        }
    }

    /// Appends the pieces of another line.
    pub fn append(&mut self, other: Line) {
        self.0.extend(other.0);
    }

    /// Appends blanks until the line is this wide.
    pub fn pad_to(&mut self, width: usize) {
        let missing = width.saturating_sub(self.width());
        self.push(&" ".repeat(missing), Tone::Plain);
    }

    /// Returns its width, in characters.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// Returns it as text without blanks at its end, highlighted if `colour`.
    pub fn render(&self, colour: bool) -> String {
        let plain: String = self.0.iter().map(|(text, _)| text.as_str()).collect();
        let mut left = plain.trim_end().len();
        let mut out = String::new();
        for (text, tone) in &self.0 {
            let text = &text[..text.len().min(left)];
            left -= text.len();
            match tone.code().filter(|_| colour && !text.trim().is_empty()) {
                Some(code) => out.push_str(&format!("\u{1b}[{code}m{text}\u{1b}[0m")),
                None => out.push_str(text),
            }
        }
        out
    }
}

/// Rules for breaking a text into lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wrapping {
    /// Width of a line, in characters.
    pub width: usize,
    /// Most lines; the last one ends with `…` if there is more text.
    pub lines_max: usize,
    /// Blanks before each line but the first.
    pub indent: usize,
}

impl Wrapping {
    /// Returns a text as lines of one tone.
    pub fn lines(self, text: &str, tone: Tone) -> Vec<Line> {
        let mut rows = wrap(text, self.width.saturating_sub(self.indent).max(1));
        if rows.len() > self.lines_max {
            rows.truncate(self.lines_max);
            if let Some(last) = rows.last_mut() {
                let cut = last.char_indices().nth(self.width.saturating_sub(self.indent + 2)).map(|(at, _)| at);
                last.truncate(cut.unwrap_or(last.len()));
                last.push_str(" …");
            }
        }
        let indent = |index: usize| if index == 0 { 0 } else { self.indent };
        rows.iter().enumerate().map(|(index, row)| Line::of(" ".repeat(indent(index)) + row, tone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_without_blanks_and_colour_adds_no_text() {
        let mut line = Line::of("zeromq", Tone::Plain);
        line.pad_to(9);
        line.push("3.6 µs", Tone::Warning);
        line.pad_to(20);
        assert_eq!(line.width(), 20);
        assert_eq!(line.render(false), "zeromq   3.6 µs");
        assert_eq!(line.render(true), "zeromq   \u{1b}[33m3.6 µs\u{1b}[0m");
        assert_eq!(Line::default().render(true), "");
    }

    #[test]
    fn text_that_is_cut_says_so_and_is_no_wider() {
        let wrapping = Wrapping { width: 12, lines_max: 2, indent: 2 };
        let text = |text: &str| -> Vec<String> {
            wrapping.lines(text, Tone::Plain).iter().map(|line| line.render(false)).collect()
        };
        assert_eq!(text("one two three"), ["one two", "  three"]);
        let cut = text("one two three four five six seven");
        assert_eq!(cut, ["one two", "  three fo …"]);
        assert!(cut.iter().all(|line| line.chars().count() <= 12));
    }
}
