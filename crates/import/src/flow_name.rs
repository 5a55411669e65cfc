//! Names of flows.

use pubmark_model::flow::why_no_name;

/// Longest name of a flow.
const NAME_MAX: usize = 32;

/// Returns a name for the flow of a channel or topic that no other flow has: its letters and digits, or `usual` if it
/// has none.
pub(crate) fn flow_name(topic: &str, usual: &str, taken: &[String]) -> String {
    let mut name = String::new();
    for char in topic.chars() {
        match char {
            char if char.is_ascii_uppercase() => {
                if !name.is_empty() && !name.ends_with('-') {
                    name.push('-');
                }
                name.push(char.to_ascii_lowercase());
            }
            char if char.is_ascii_lowercase() || char.is_ascii_digit() => name.push(char),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.truncate(NAME_MAX - 3);
    let mut name = name.trim_matches('-').to_owned();
    if why_no_name(&name).is_some() {
        name = usual.into();
    }
    let is_free = |name: &String| !taken.contains(name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}
