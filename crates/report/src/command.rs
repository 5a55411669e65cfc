//! The command that repeats a cell.

use crate::axes::axis_value;
use pubmark_model::cell::Cell;
use pubmark_model::flow::FLOW;
use serde_json::Value;
use std::path::Path;

/// `pubmark run results/NAME/study.toml --only system=… …`, to be pasted into a
/// shell: the study as resolved, narrowed to the cell; with the folder's own system
/// files where some of them were `brought` by the user.
pub(crate) fn command(folder: &Path, cell: &Cell, brought: bool) -> String {
    let study = folder.join("study.toml");
    let mut words = vec!["pubmark run".to_owned(), quoted(&study.display().to_string())];
    // A flow alone would be another run: it is measured beside the others.
    for (axis, value) in cell.axes.iter().filter(|(axis, _)| *axis != FLOW) {
        words.push("--only".into());
        words.push(quoted(&format!("{axis}={}", typed(axis, value))));
    }
    if brought {
        words.extend(["--systems".into(), quoted(&folder.join("systems").display().to_string())]);
    }
    words.join(" ")
}

/// Returns the command that measures a whole study again, with this many runs of each
/// cell.
pub(crate) fn command_with_repeats(folder: &Path, repeats: u32, brought: bool) -> String {
    let study = quoted(&folder.join("study.toml").display().to_string());
    let systems = quoted(&folder.join("systems").display().to_string());
    let systems = if brought { format!(" --systems {systems}") } else { String::new() };
    format!("pubmark run {study} --repeats {repeats}{systems}")
}

/// Returns a value as it is typed on the command line.
fn typed(axis: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => axis_value(axis, other),
    }
}

/// A word for a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(safe) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_would_read_is_quoted() {
        let words = ["a=b", "", "a b", "it's", "$(reboot)", "x;y"].map(quoted);
        assert_eq!(words, ["a=b", "''", "'a b'", "'it'\\''s'", "'$(reboot)'", "'x;y'"]);
    }
}
