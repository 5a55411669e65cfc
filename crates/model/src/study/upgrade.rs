//! Converts studies that earlier versions wrote into results folders.

use std::borrow::Cow;

/// Old names of figures in objectives, and their current names.
const FIGURES: [(&str, &str); 3] =
    [("delivered", "delivered_ratio"), ("cpu", "server_cpu"), ("memory", "server_memory_max")];

/// Keys whose texts name figures.
const WITH_FIGURES: [&str; 4] = ["until", "objective", "require", "within"];

/// Returns the study with current names: `[run] until` becomes `stop`, and objectives use
/// `delivered_ratio`, `server_cpu` and `server_memory_max`. The rest of the text is unchanged.
pub(super) fn in_words_of_today(text: &str) -> Cow<'_, str> {
    let mut changed = false;
    let lines = text.split_inclusive('\n').map(|line| match renewed(line) {
        Some(line) => {
            changed = true;
            line.into()
        }
        None => Cow::Borrowed(line),
    });
    let renewed: String = lines.collect();
    if changed { Cow::Owned(renewed) } else { Cow::Borrowed(text) }
}

fn renewed(line: &str) -> Option<String> {
    let (key, value) = line.split_once('=')?;
    if key.trim() == "until" && ["\"repeats\"", "\"decided\""].contains(&value.trim()) {
        return Some(format!("stop ={value}"));
    }
    if !WITH_FIGURES.contains(&key.trim()) {
        return None;
    }
    let mut renewed = value.to_owned();
    for (before, today) in FIGURES {
        for start in ["\"", " ", ","] {
            for end in [" ", "<", ">", "="] {
                renewed = renewed.replace(&format!("{start}{before}{end}"), &format!("{start}{today}{end}"));
            }
        }
    }
    (renewed != value).then(|| format!("{key}={renewed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_another_name_today_is_renamed_and_nothing_else() {
        let before = "[run]\nuntil = \"decided\"\n[capacity]\nuntil = \"p99 < 5ms and delivered >= 99%\"\n\
            [[claims]]\nsays = \"cpu = 1\"\nrequire = \"cpu < 1.5 and memory<1GB\"\n";
        let today = "[run]\nstop = \"decided\"\n[capacity]\nuntil = \"p99 < 5ms and delivered_ratio >= 99%\"\n\
            [[claims]]\nsays = \"cpu = 1\"\nrequire = \"server_cpu < 1.5 and server_memory_max<1GB\"\n";
        assert_eq!(in_words_of_today(before), today);
        assert!(matches!(in_words_of_today(today), Cow::Borrowed(_)));
    }
}
