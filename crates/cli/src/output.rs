//! What goes to the screen: standard output, colours, width.

use pubmark_model::secret::without_logins;
use std::io::{IsTerminal, Write};

/// Whether colours are wanted there: a terminal, and no NO_COLOR.
pub fn colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether standard output takes colours.
pub fn colour() -> bool {
    colours(std::io::stdout().is_terminal())
}

/// Columns of the terminal; 120 where there is none, `COLUMNS` where it is set.
pub fn width() -> usize {
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|columns| (20..=1_000).contains(columns));
    set.or_else(|| terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0))).unwrap_or(120)
}

/// Prints to standard output. A reader that has gone away, as `head` does, is
/// no error.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
        .and_then(|()| out.flush());
}

/// Says something on standard error. What the user typed may be in it: no
/// login of an endpoint is repeated.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", without_logins(text));
}

/// Says what went wrong.
pub fn error(text: &str) {
    let label = if colours(std::io::stderr().is_terminal()) { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
    note(&format!("{label} {text}"));
}

/// How much to say.
#[derive(Clone, Copy)]
pub struct Voice {
    /// Only what was asked for.
    pub quiet: bool,
    /// More.
    pub verbose: bool,
}

impl Voice {
    /// Says something that was not asked for.
    pub fn note(self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }
}
