//! The logins and secret parameters of URLs, which no text shows.

use crate::secret_name::{is_secret_name, is_switch};

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// What is before the host in a URL, or before its login.
const SCHEME_END: &str = "://";

/// Paths that servers have in common, and that hold no secret.
const PLAIN_PATHS: [&str; 6] = ["", "mqtt", "ws", "websocket", "%2F", "%2f"];

/// Whether the path of a URL, without its first slash, can be shown: it is a common
/// one, or the number of a database. Any other may hold a token.
pub fn is_plain_path(path: &str) -> bool {
    PLAIN_PATHS.contains(&path) || path.len() < 3 && path.bytes().all(|byte| byte.is_ascii_digit())
}

/// A text without what stands before the `@` of the URLs in it, and without the values
/// of their parameters with secret names. Nothing says where a URL that is written
/// wrongly ends: up to the last `@` of its line, or up to the last one before another
/// URL begins.
pub fn without_logins(text: &str) -> String {
    text.split('\n').map(|text| without_parameters(line(text))).collect::<Vec<_>>().join("\n")
}

/// A line without the values of `?name=value&…` whose names are secret.
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

/// Where a URL ends at the latest: at the word with which another begins, if
/// there is an `@` before it.
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

/// Adds words without the logins that no `://` is before: `user:password@host`,
/// but no path with an `@` in it.
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
