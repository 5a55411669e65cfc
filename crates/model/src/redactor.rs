//! Removes secrets from a text that arrives in pieces.

use crate::secret::{HIDDEN, Secrets};

/// Length above which a line is shown in parts, bytes.
const LINE_BYTES: usize = 64 << 10;

/// Length before a cut in a line that is searched for the beginning of a login, bytes.
const LOGIN_BYTES: usize = 4 << 10;

/// Removes secrets from a text that arrives in pieces, including those that are split between
/// pieces. Keeps back the possible beginning of a secret: in a text of lines, the last, unfinished
/// line.
pub struct Redactor {
    secrets: Secrets,
    pending: Vec<u8>,
}

impl Redactor {
    /// Creates a redactor for these secrets.
    pub fn new(secrets: Secrets) -> Redactor {
        Redactor { secrets, pending: Vec::new() }
    }

    /// Adds a piece; returns the text that can be shown now.
    pub fn push(&mut self, piece: &[u8]) -> String {
        self.pending.extend_from_slice(piece);
        let line = self.last_line();
        match self.pending.len() - line > LINE_BYTES + self.secrets.longest() {
            true => self.show_long(line),
            false => self.show(self.before_secret(line)),
        }
    }

    /// Returns the part of the unfinished line that is not the beginning of a secret. Call it when
    /// no more text arrived for a while.
    pub fn rest(&mut self) -> String {
        let line = self.last_line();
        let tail = &self.pending[line..];
        let url = find(tail, b"://").map(|at| word(tail, at));
        let last = word(tail, tail.len());
        let word = tail[last..].contains(&b':').then_some(last);
        let cut = line + url.into_iter().chain(word).min().unwrap_or(tail.len());
        self.show(self.before_secret(cut))
    }

    /// Returns all remaining text. Call it at the end of the text.
    pub fn finish(&mut self) -> String {
        self.show(self.pending.len())
    }

    /// True if some text is kept back.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Returns the offset of the unfinished line.
    fn last_line(&self) -> usize {
        self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
    }

    /// Returns a part of a line that is too long to wait for its end.
    fn show_long(&mut self, line: usize) -> String {
        // A character has at most 4 bytes.
        let most = self.pending.len() - self.secrets.longest().max(4);
        let near = line.max(most.saturating_sub(LOGIN_BYTES));
        let mut cut = near + word(&self.pending[near..most], most - near);
        if cut == near {
            cut = most;
        }
        if let Some(at) = find(&self.pending[near..cut], b"://") {
            let begins = near + word(&self.pending[near..cut], at);
            cut = if begins > near { begins } else { cut };
        }
        while cut > line && self.pending[cut] & 0xc0 == 0x80 {
            cut -= 1;
        }
        match self.before_secret(cut) {
            0 => {
                // The text may be one secret after another.
                self.pending.drain(..most);
                HIDDEN.to_owned()
            }
            cut => self.show(cut),
        }
    }

    /// Returns the last offset up to `cut` at which no secret is split.
    fn before_secret(&self, mut cut: usize) -> usize {
        let pending = &self.pending;
        let begins_before = |cut: usize| {
            let of = |form: &[u8]| {
                let begins = |at: &usize| form.starts_with(&pending[*at..pending.len().min(at + form.len())]);
                (cut.saturating_sub(form.len() - 1)..cut).find(begins)
            };
            self.secrets.forms().iter().filter_map(|form| of(form.as_bytes())).min()
        };
        while let Some(before) = begins_before(cut) {
            cut = before;
        }
        cut
    }

    fn show(&mut self, to: usize) -> String {
        let shown = self.secrets.hide(&String::from_utf8_lossy(&self.pending[..to]));
        self.pending.drain(..to);
        shown
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// Returns the offset of the word that ends at `to`.
fn word(text: &[u8], to: usize) -> usize {
    text[..to].iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use proptest::prelude::*;

    fn secrets(password: &str) -> Secrets {
        Secrets::of(&Options::from([("password".to_owned(), password.into())]))
    }

    fn in_pieces(secrets: &Secrets, text: &[u8], piece: usize) -> String {
        let mut redactor = Redactor::new(secrets.clone());
        let mut shown: String = text.chunks(piece).map(|piece| redactor.push(piece)).collect();
        shown.push_str(&redactor.finish());
        shown
    }

    #[test]
    fn what_is_no_secret_is_shown_line_by_line() {
        let mut redactor = Redactor::new(secrets("hidden-word"));
        assert_eq!(redactor.push(b"up at hidden-word\nlist"), "up at ***\n");
        assert_eq!(redactor.push(b"ens\n"), "listens\n");
        assert!(!redactor.is_pending());
        // A prompt without an end is shown when nothing follows, except the possible beginning of a
        // secret.
        assert_eq!(redactor.push(b"waiting for hidd"), "");
        assert_eq!(redactor.rest(), "waiting for ");
        assert_eq!(redactor.push(b"en-word"), "");
        assert_eq!(redactor.finish(), "***");
        redactor.push(b"connect to mqtt://me:pw");
        assert_eq!(redactor.rest(), "connect to ");
        assert_eq!(redactor.push(b"@h\n"), "mqtt://***@h\n");
    }

    #[test]
    fn a_line_without_an_end_is_not_kept() {
        for text in [vec![b'x'; 1 << 20], b"\xc3\xa4".repeat(1 << 19), b"mqtt://a:b ".repeat(1 << 17)] {
            let mut redactor = Redactor::new(secrets("xxxxxxxx"));
            for piece in text.chunks(10_000) {
                redactor.push(piece);
                assert!(redactor.pending.len() < 2 * LINE_BYTES, "{}", redactor.pending.len());
            }
        }
        let text = [vec![b'y'; 100_000], b" mqtt://me:hid den@h".to_vec(), vec![b'y'; 100_000]].concat();
        for piece in [1 << 10, 65_537, 99_991, 100_015] {
            let shown = in_pieces(&Secrets::default(), &text, piece);
            assert!(shown.contains("mqtt://***@h") && !shown.contains("den@"), "{piece}");
        }
        // Characters of two bytes stay whole.
        let text = "ä".repeat(200_000);
        assert!(in_pieces(&Secrets::default(), text.as_bytes(), 9_999) == text);
    }

    proptest! {
        /// However a text is split, no secret remains, including one of several lines.
        #[test]
        fn no_cut_shows_a_secret(
            secret in "[a-c][a-c\\n]{5,11}", around in "[a-c \\n]{0,40}", many in 1_usize..4, piece in 1_usize..30,
        ) {
            let secrets = secrets(&secret);
            let text = format!("{around}{secret}{around}").repeat(many);
            let shown = in_pieces(&secrets, text.as_bytes(), piece);
            prop_assert!(!shown.contains(&secret), "{shown}");
            prop_assert_eq!(shown.matches(HIDDEN).count(), secrets.hide(&text).matches(HIDDEN).count());
        }

        /// Lines that are too long to wait for their end show no secret either.
        #[test]
        fn no_cut_of_a_long_line_shows_a_secret(secret in "[a-z]{6,12}", before in 65_000_usize..66_000, piece in 1_000_usize..70_000) {
            let text = [vec![b'0'; before], secret.clone().into_bytes(), vec![b'0'; before]].concat();
            let shown = in_pieces(&secrets(&secret), &text, piece);
            prop_assert_eq!(shown, format!("{}***{}", "0".repeat(before), "0".repeat(before)));
        }
    }
}
