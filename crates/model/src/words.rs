//! Enumerations whose values are words of files and flags.

/// An enumeration of words, as files and flags write them.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word for it in files and flags.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// Reads the word.
            pub fn parse(text: &str) -> Result<Self, String> {
                match text { $($word => Ok($name::$variant),)+ _ => {
                    let words = [$($word),+];
                    Err(format!("`{text}` is none of {}: {}", words.join(", "),
                        crate::diagnostic::suggestion(text, words)))
                } }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.word()) }
        }
    };
}

pub(crate) use words;
