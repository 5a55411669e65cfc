//! Words of records that a later pubmark wrote.

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The longest word, bytes: `resource-limit-hit` has 18.
const WORD_BYTES_MAX: usize = 64;
/// Maximum number of unknown words; each is kept until the program ends.
const WORDS_MAX: usize = 1_000;

/// An unknown word, kept as written: small letters, digits, `-` and `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LaterWord(&'static str);

/// Error for a text that no pubmark would use as a word.
#[derive(Debug, thiserror::Error)]
#[error("this is not a word of a record: {0:.80?}")]
struct NoWord(String);

impl LaterWord {
    fn of(text: String) -> Result<LaterWord, NoWord> {
        static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(word) = known.get(text.as_str()) {
            return Ok(LaterWord(word));
        }
        if text.is_empty() || text.len() > WORD_BYTES_MAX || !text.chars().all(plain) || known.len() >= WORDS_MAX {
            return Err(NoWord(text));
        }
        let word: &'static str = Box::leak(text.into_boxed_str());
        known.insert(word);
        Ok(LaterWord(word))
    }

    /// Returns the word.
    pub fn word(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for LaterWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de> Deserialize<'de> for LaterWord {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LaterWord, D::Error> {
        LaterWord::of(String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// Deserializes the known elements of a list, and leaves out those that only a later pubmark knows.
pub fn known<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all = Vec::<serde_json::Value>::deserialize(from)?;
    Ok(all.into_iter().filter_map(|one| serde_json::from_value(one).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once_and_what_is_none_is_refused() {
        let of = |text: &str| LaterWord::of(text.to_owned()).map(LaterWord::word).ok();
        let (first, again) = (of("seen-later").unwrap(), of("seen-later").unwrap());
        assert!(std::ptr::eq(first, again), "it is the same");
        assert_eq!((of(""), of("two words"), of("\u{1b}[2J"), of(&"x".repeat(65))), (None, None, None, None));
        for number in 0..2 * WORDS_MAX {
            let _ = of(&format!("word-{number}"));
        }
        assert_eq!((of("one-more"), of("seen-later")), (None, Some("seen-later")), "there is an end to it");
    }
}
