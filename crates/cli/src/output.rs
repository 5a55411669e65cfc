//! Output to the screen: standard output, colours, width.

use crate::failure::{Code, Failure};
use pubmark_model::printable::{printable, unprintable};
use pubmark_model::secret::Secrets;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::sync::{LazyLock, OnceLock};

/// Returns whether colours are wanted: on a terminal, and without NO_COLOR.
pub fn colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns whether standard output takes colours.
pub fn colour() -> bool {
    colours(std::io::stdout().is_terminal())
}

/// Returns the columns of the terminal, or `COLUMNS` if it is set; 120 without a terminal.
pub fn width() -> usize {
    let set = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|columns| (20..=1_000).contains(columns));
    set.or_else(|| terminal_size::terminal_size().map(|(columns, _)| usize::from(columns.0))).unwrap_or(120)
}

/// Prints to standard output. A failure is recorded for [`lost`], so that callers need not check it.
pub fn print(text: &str) {
    let text = obedient(text, colour());
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") })
        .and_then(|()| out.flush());
    note_lost(written);
}

/// The first error of standard output.
static LOST: OnceLock<std::io::Error> = OnceLock::new();

/// Records an error. A reader that has gone away, as `head` does, is not an error.
fn note_lost(written: std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

/// Returns why standard output is incomplete; `None` if it is complete, or if its reader has gone away.
pub fn lost() -> Option<Failure> {
    LOST.get().map(|error| Failure::run(format!("standard output cannot be written: {error}")))
}

/// Returns the secrets in this program's command line.
fn typed_secrets() -> &'static Secrets {
    static TYPED: LazyLock<Secrets> = LazyLock::new(|| {
        let typed = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        Secrets::of_arguments(typed)
    });
    &TYPED
}

/// Prints a note on standard error, without any secret that the user typed.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(&typed_secrets().hide(text)));
}

/// Prints an error.
pub fn error(text: &str) {
    let label = if colours(std::io::stderr().is_terminal()) { "\x1b[1;31merror:\x1b[0m" } else { "error:" };
    let _ = writeln!(std::io::stderr(), "{label} {}", printable(&typed_secrets().hide(text)));
}

/// Prints a message of clap: help, a version, or an error in the arguments. It may repeat what was typed, but without
/// secrets.
pub fn refusal(refusal: &clap::Error) -> Code {
    let code = if refusal.exit_code() == 0 { Code::Done } else { Code::Usage };
    let text = refusal.render().to_string();
    let hidden = typed_secrets().hide(&text);
    if !refusal.use_stderr() || hidden == text {
        note_lost(refusal.print());
    } else {
        let _ = write!(std::io::stderr(), "{}", printable(&hidden));
    }
    code
}

/// Returns a text whose only control sequences are colours, and these only if wanted: other programs may have written
/// it.
fn obedient(text: &str, colours: bool) -> Cow<'_, str> {
    if !text.contains(unprintable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b').filter(|_| colours) {
        shown.push_str(&printable(&rest[..at]));
        let sequence = colour_sequence(&rest[at..]).unwrap_or(1);
        match sequence {
            1 => shown.push_str(&printable("\x1b")),
            _ => shown.push_str(&rest[at..at + sequence]),
        }
        rest = &rest[at + sequence..];
    }
    shown.push_str(&printable(rest));
    Cow::Owned(shown)
}

/// Returns the length of the sequence that sets a colour, if the text begins with one.
fn colour_sequence(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\x1b[")?;
    let end = body.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
    body[end..].starts_with('m').then_some(end + 3)
}

/// Verbosity of the output.
#[derive(Clone, Copy)]
pub struct Voice {
    /// True to print only the requested output.
    pub quiet: bool,
    /// True to print more.
    pub verbose: bool,
}

impl Voice {
    /// Prints a note, unless the output is quiet.
    pub fn note(self, text: &str) {
        if !self.quiet {
            note(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_colours_alone_and_only_where_they_are_wanted() {
        let text = "\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;mine\x07\n\tµ";
        assert_eq!(obedient(text, true), "\x1b[1;31mred\x1b[0m \\u{1b}[2J\\u{1b}]0;mine\\u{7}\n\tµ");
        assert!(!obedient(text, false).contains('\x1b'));
        assert_eq!(obedient("\x1b[", true), "\\u{1b}[");
        assert_eq!(obedient("\x1b", true), "\\u{1b}");
        assert!(matches!(obedient("a\nb", true), Cow::Borrowed(_)));
    }
}
