//! Makes texts from other programs safe to show: they may hold control characters for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True if a terminal would obey this character, or reorder a text, instead of showing it. Line
/// ends and tabs are harmless.
pub fn unprintable(c: char) -> bool {
    let ordering = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || ordering
}

/// Formats bytes with two digits each.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a text in which such characters are replaced by their numbers: `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(unprintable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match unprintable(c) {
            true => drop(write!(shown, "{}", c.escape_unicode())),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_by_its_number() {
        assert_eq!(printable("\u{1b}[2Jx\u{7f}\u{9b}1m\r"), "\\u{1b}[2Jx\\u{7f}\\u{9b}1m\\u{d}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b", "an order of its own");
        assert!(matches!(printable("µs, 中,\ttwo\nlines"), Cow::Borrowed(_)));
    }
}
