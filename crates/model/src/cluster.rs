//! The members of a server: their number, whether they have joined, and who leads.

use crate::options::{OptionValues, Options};
use serde_json::Value;

/// Name of the option that says how many members a server has.
pub const MEMBERS: &str = "members";
/// Maximum number of members.
pub const MEMBERS_MAX: u32 = 9;

/// A cluster as a system file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSpec {
    /// Questions to every member. All must have the expected answers before a run begins.
    pub joined: Vec<ClusterProbe>,
    /// Question to any member for the names of those that lead; `None` if that cannot be asked.
    pub leader: Option<ClusterProbe>,
    /// The name by which a member is called in that answer: `n{member}`.
    pub name: String,
    /// The option that says how many members keep each message; empty if there is none.
    pub replicas: String,
    /// Program and arguments of a process that runs beside each member; empty if there is none.
    pub beside: Vec<String>,
    /// Endpoint of the service beside each member at which clients ask who leads, each time that they connect; empty
    /// if they connect to the members.
    pub discovery: String,
    /// Text in the log of a member that is ready to take over, and until then listens for no client; empty if all
    /// members listen.
    pub standby_log: String,
    /// True if members reach each other by `{address}` and `<address>` alone, so that links between them can be cut.
    pub cut_links: bool,
}

impl ClusterSpec {
    /// Returns every text that can contain placeholders and ports.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        let probes = self.joined.iter().chain(&self.leader).flat_map(ClusterProbe::texts);
        probes.chain(&self.beside).chain([&self.discovery])
    }
}

/// A question to a member, with placeholders: one HTTP GET, or one command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterProbe {
    /// URL of an HTTP GET that replies JSON; empty for a command.
    pub http: String,
    /// Program and arguments. Its output is JSON if there is a `path`, and otherwise one value a line.
    pub command: Vec<String>,
    /// Path of the values in the JSON: names and `*` (every element), separated by dots.
    pub path: String,
    /// Text that each value must have; empty for any.
    pub is: String,
    /// Number of values that there must be; empty for at least one.
    pub count: String,
}

impl ClusterProbe {
    /// Returns every text that can contain placeholders.
    fn texts(&self) -> impl Iterator<Item = &String> {
        self.command.iter().chain([&self.http, &self.is, &self.count])
    }

    /// Returns the values in an answer, as text.
    ///
    /// # Errors
    /// The answer should be JSON and is not.
    pub fn values(&self, answer: &str) -> Result<Vec<String>, serde_json::Error> {
        if self.path.is_empty() {
            return Ok(answer.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect());
        }
        let answer: Value = serde_json::from_str(answer)?;
        let mut found = vec![&answer];
        for name in self.path.split('.') {
            found = found.into_iter().flat_map(|value| below(value, name)).collect();
        }
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(found.into_iter().map(text).collect())
    }
}

/// Returns the values of this name, or all for `*`.
fn below<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    match (value, name) {
        (Value::Array(all), "*") => all.iter().collect(),
        (Value::Object(all), "*") => all.values().collect(),
        (Value::Object(all), name) => all.get(name).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns how many members the server of a run with these options has: 1 unless they say otherwise.
pub fn members_of(options: &Options) -> u32 {
    if options.contains_key(MEMBERS) { options.number(MEMBERS).try_into().unwrap_or(u32::MAX) } else { 1 }
}

/// Returns which of several names occurs most often: its place in `names`. The first of equals wins; `None` if no
/// value is a name.
pub fn most_named(names: &[String], values: &[String]) -> Option<usize> {
    let count = |name: &String| values.iter().filter(|value| *value == name).count();
    let counts = names.iter().map(count).enumerate().filter(|(_, count)| *count > 0);
    counts.max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place))).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_path_or_line() {
        let probe = |path: &str| ClusterProbe { path: path.into(), ..ClusterProbe::default() };
        let answer =
            r#"{"meta": {"size": 3}, "all": [{"leader": "n2"}, {"leader": "n1"}, {"idle": true}, {"leader": "n2"}]}"#;
        assert_eq!(probe("meta.size").values(answer).unwrap(), ["3"]);
        let leaders = probe("all.*.leader").values(answer).unwrap();
        assert_eq!(leaders, ["n2", "n1", "n2"]);
        assert_eq!(probe("meta.none").values(answer).unwrap(), [""; 0]);
        assert_eq!(probe("").values(" 1\n\n2 \n").unwrap(), ["1", "2"]);
        assert!(probe("a").values("<html>").is_err());
        let names = ["n1", "n2", "n3"].map(str::to_owned);
        assert_eq!(most_named(&names, &leaders), Some(1));
        assert_eq!(most_named(&names, &["n3".into(), "n1".into()]), Some(0));
        assert_eq!(most_named(&names, &["x".into()]), None);
    }

    #[test]
    fn one_member_is_the_default() {
        assert_eq!(members_of(&Options::new()), 1);
        assert_eq!(members_of(&[(MEMBERS.to_owned(), Value::from(3))].into_iter().collect()), 3);
    }
}
