//! Enumerations whose values are words of files and flags.

use crate::diagnostic::suggestion;

/// Error for an unknown word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not one of {}: {}", known.join(", "), suggestion(text, known.iter().copied()))]
pub struct UnknownWord {
    /// The word as written.
    pub text: String,
    /// The known words.
    pub known: &'static [&'static str],
}

/// Defines an enumeration of words, as files and flags write them.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns its word in files and flags.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// Parses the word.
            pub fn parse(text: &str) -> Result<Self, $crate::words::UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::words::UnknownWord { text: text.to_owned(), known: &[$($word),+] }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.word()) }
        }
    };
}

pub(crate) use words;
