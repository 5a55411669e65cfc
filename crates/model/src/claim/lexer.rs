//! Splits an expression into tokens, each with its place.

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name: of a figure, a system, an axis or a function.
    Name(String),
    /// A number with its unit, without a blank: `20ms`, `64KiB`, `6.3%`, `2.9GB/s`.
    Number(String),
    /// A text in single quotes.
    Text(String),
    /// An operator or a punctuation mark.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// A token with its byte offset.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    pub at: usize,
}

/// All signs, longer ones before their prefixes.
const SIGNS: [&str; 16] = ["..", "<=", ">=", "==", "<", ">", "=", "~", "+", "-", "*", "/", "(", ")", ",", ":"];

/// Splits an expression into its tokens.
///
/// # Errors
/// Returns the byte offset of the first character that begins no token.
pub(super) fn words(text: &str) -> Result<Vec<Placed>, usize> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (token, length) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() {
            let length = number(rest);
            (Token::Number(rest[..length].to_owned()), length)
        } else if first.is_alphabetic() || first == '_' {
            let length = name(rest);
            (Token::Name(rest[..length].to_owned()), length)
        } else if first == '\'' {
            let end = rest[1..].find('\'').ok_or(at)?;
            (Token::Text(rest[1..=end].to_owned()), end + 2)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign)).ok_or(at)?;
            (Token::Sign(sign), sign.len())
        };
        words.push(Placed { token, at });
        at += length;
    }
    words.push(Placed { token: Token::End, at: text.len() });
    Ok(words)
}

/// Returns the length of a name, bytes. A dash or a dot belongs to it if a letter or digit follows.
fn name(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, one)) = chars.next() {
        let joins = "-.".contains(one) && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !(one.is_alphanumeric() || one == '_' || joins) {
            return at;
        }
    }
    text.len()
}

/// Returns the length of a number with its unit, bytes. Two dots are a range and end the number.
fn number(text: &str) -> usize {
    let digits = |from: usize| {
        let end = text[from..].find(|c: char| !(c.is_ascii_digit() || c == '_'));
        end.map_or(text.len(), |end| from + end)
    };
    let mut end = digits(0);
    if text[end..].starts_with('.') && text[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
    }
    let unit = text[end..].find(|c: char| !(c.is_alphabetic() || c == '%')).map_or(text.len(), |unit| end + unit);
    let per_s =
        text[unit..].starts_with("/s") && !text[unit + 2..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    if per_s { unit + 2 } else { unit }
}
