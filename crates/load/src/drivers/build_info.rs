//! Build info of drivers in Rust, for the record.

use std::collections::BTreeMap;

/// Returns the build info that all drivers in Rust share, with `texts` in addition.
pub fn in_rust(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    let build = if cfg!(debug_assertions) { "cargo, debug" } else { "cargo, release" };
    let all = [("language", "Rust"), ("runtime", "none"), ("memory", "ownership"), ("build", build)];
    all.iter().chain(texts).map(|(what, how)| ((*what).to_owned(), (*how).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_says_itself_counts() {
        let made = in_rust(&[("call", "async"), ("runtime", "tokio 1")]);
        assert_eq!((made["call"].as_str(), made["runtime"].as_str()), ("async", "tokio 1"));
        assert_eq!(made["build"], if cfg!(debug_assertions) { "cargo, debug" } else { "cargo, release" });
    }
}
