//! The logins of URLs, which no text shows.

/// What stands in place of a secret.
pub const HIDDEN: &str = "***";

/// A text without what stands before the `@` of the URLs in it. Nothing says
/// where a URL that is written wrongly ends: up to the last `@` of its line.
pub fn without_logins(text: &str) -> String {
    const SCHEME_END: &str = "://";
    let line = |line: &str| {
        let start = line.find(SCHEME_END).map(|at| at + SCHEME_END.len()).or_else(|| schemeless(line))?;
        let at = line.rfind('@').filter(|at| *at > start)?;
        Some(format!("{}{HIDDEN}{}", &line[..start], &line[at..]))
    };
    text.split('\n').map(|text| line(text).unwrap_or_else(|| text.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Where a login may begin that no `://` is before: `user:password@host`, but
/// no path with an `@` in it.
fn schemeless(line: &str) -> Option<usize> {
    let at = line.rfind('@')?;
    let word = line[..at].rfind(|c: char| c.is_whitespace() || "`'\"".contains(c)).map_or(0, |before| before + 1);
    let first = line[word..].chars().next()?;
    (line[word..at].contains(':') && !"/.~".contains(first)).then_some(word)
}
