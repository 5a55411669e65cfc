//! The logins of URLs, which no text shows.

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// What is before the host in a URL, or before its login.
const SCHEME_END: &str = "://";

/// A text without what stands before the `@` of the URLs in it. Nothing says
/// where a URL that is written wrongly ends: up to the last `@` of its line, or
/// up to the last one before another URL begins.
pub fn without_logins(text: &str) -> String {
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
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
