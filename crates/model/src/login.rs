//! Removes the logins and secret parameters of URLs from texts.

use crate::secret_name::{is_secret_name, is_switch};

/// Replacement for a secret.
pub const HIDDEN: &str = "***";

/// The separator before the host, or before the login, of a URL.
const SCHEME_END: &str = "://";

/// Common paths of servers that hold no secret.
const PLAIN_PATHS: [&str; 6] = ["", "mqtt", "ws", "websocket", "%2F", "%2f"];

/// True if the path of a URL, without its first slash, may be shown: it is a common one, or the
/// number of a database. Any other may hold a token.
pub fn is_plain_path(path: &str) -> bool {
    PLAIN_PATHS.contains(&path) || path.len() < 3 && path.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a text without the logins of its URLs, and without the values of their parameters with
/// secret names. The end of a wrongly written URL is unknown: it is taken to be the last `@` of its
/// line, or the last one before another URL begins.
pub fn without_logins(text: &str) -> String {
    text.split('\n').map(|text| without_parameters(line(text))).collect::<Vec<_>>().join("\n")
}

/// Removes the values of `?name=value&…` whose names are secret from a line.
fn without_parameters(line: String) -> String {
    if !line.contains(['?', '&']) {
        return line;
    }
    let ends = |c: char| splits(c) || "&#".contains(c);
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(at) = rest.find(['?', '&']) {
        let (before, parameter) = rest.split_at(at + 1);
        out.push_str(before);
        let name = parameter.find(|c| ends(c) || c == '=' || c == '?').unwrap_or(parameter.len());
        rest = parameter;
        if let Some(value) = parameter[name..].strip_prefix('=').filter(|_| is_secret_name(&parameter[..name])) {
            let end = value.find(ends).unwrap_or(value.len());
            out.push_str(&parameter[..=name]);
            out.push_str(if is_switch(&value[..end]) { &value[..end] } else { HIDDEN });
            rest = &value[end..];
        }
    }
    out + rest
}

fn line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((scheme, url)) = rest.split_once(SCHEME_END) {
        words(scheme, &mut out);
        out.push_str(SCHEME_END);
        rest = url;
        if let Some(at) = rest[..end(rest)].rfind('@') {
            out.push_str(HIDDEN);
            rest = &rest[at..];
        }
    }
    words(rest, &mut out);
    out
}

/// Returns the latest end of a URL: the word with which another URL begins, if an `@` precedes it.
fn end(url: &str) -> usize {
    let begins = |(at, _): (usize, &str)| {
        let before = url[..at].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c));
        (before.contains('@') && before.ends_with(|c| splits(c) || c == '=')).then_some(before.len())
    };
    url.match_indices(SCHEME_END).find_map(begins).unwrap_or(url.len())
}

fn splits(c: char) -> bool {
    c.is_whitespace() || "`'\"".contains(c)
}

/// Appends words without the logins that lack a `://`: `user:password@host`. A path with an `@` in
/// it is unchanged.
fn words(text: &str, out: &mut String) {
    for word in text.split_inclusive(splits) {
        let login = word.rfind('@').map(|at| &word[..at]).filter(|login| !login.starts_with(['/', '.', '~']));
        match login.and_then(|login| Some((login, login.find(':')?))) {
            Some((login, colon)) => {
                let key = login[..colon].rfind('=').map_or(0, |at| at + 1);
                out.push_str(&word[..key]);
                out.push_str(HIDDEN);
                out.push_str(&word[login.len()..]);
            }
            None => out.push_str(word),
        }
    }
}
