//! Cells that were not to be run: how many, and why.

use crate::analysis::{CellResult, Status};
use crate::document::Rows;
use crate::text::{clean, counted};
use crate::words::SKIPPED;

/// Reasons that are told where nobody asks for all; those of most cells come first.
const REASONS_MAX: usize = 4;
/// Systems that are named with a reason.
const SYSTEMS_MAX: usize = 4;
/// Stands for the name of whichever system a reason is about.
const ANY: &str = "NAME";
/// Longest reason, characters.
const REASON_CHARS: usize = 160;
/// Longest name of a system, characters.
const NAME_CHARS: usize = 64;

/// Cells with the same reason.
struct Group<'a> {
    /// The reason, with [`ANY`] in place of the system that it names.
    of_any: String,
    /// The reason of the first of them, as it is.
    why: &'a str,
    cells: usize,
    systems: Vec<&'a str>,
}

/// Says beneath a table how many of its cells have no row.
pub(crate) fn without_row(cells: usize) -> Option<String> {
    match cells {
        0 => None,
        1 => Some(format!("1 cell is {SKIPPED} and has no row here: the reason is at the end")),
        _ => Some(format!("{cells} cells are {SKIPPED} and have no row here: the reasons are at the end")),
    }
}

/// Why cells were not run, a line for each reason.
pub(crate) fn lines(cells: &[CellResult], rows: Rows) -> Vec<String> {
    let mut groups = groups(cells);
    let most = if rows == Rows::All { groups.len() } else { REASONS_MAX };
    // The order of reasons with as many cells is the study's.
    groups.sort_by_key(|group| std::cmp::Reverse(group.cells));
    let rest = groups.split_off(most.min(groups.len()));
    let systems_max = if rows == Rows::All { usize::MAX } else { SYSTEMS_MAX };
    let mut lines: Vec<String> = groups.iter().map(|group| group.line(systems_max)).collect();
    if !rest.is_empty() {
        let left: usize = rest.iter().map(|group| group.cells).sum();
        let reasons = counted(rest.len(), "other reason");
        lines.push(format!(
            "Skipped, {} for {reasons}: `pubmark report` with --all has them.",
            counted(left, "more cell")
        ));
    }
    lines
}

fn groups(cells: &[CellResult]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for result in cells.iter().filter(|result| result.status == Status::Skipped) {
        let Some(why) = result.cell.skipped.as_deref() else { continue };
        let system = result.cell.system.name.as_str();
        let of_any = of_any(why, system);
        match groups.iter_mut().find(|group| group.of_any == of_any) {
            None => groups.push(Group { of_any, why, cells: 1, systems: vec![system] }),
            Some(group) => {
                group.cells += 1;
                if !group.systems.contains(&system) {
                    group.systems.push(system);
                }
            }
        }
    }
    groups
}

impl Group<'_> {
    fn line(&self, systems_max: usize) -> String {
        let named = self.systems.iter().take(systems_max).map(|name| clean(name, NAME_CHARS));
        let mut systems = named.collect::<Vec<_>>().join(", ");
        if self.systems.len() > systems_max {
            systems.push_str(&format!(" and {} more", self.systems.len() - systems_max));
        }
        let why = if self.systems.len() == 1 { self.why } else { &self.of_any };
        format!("Skipped, {} ({systems}): {}", counted(self.cells, "cell"), clean(why, REASON_CHARS))
    }
}

/// A reason without the name of the system that it is about, so that systems that
/// lack the same have the same reason.
fn of_any(why: &str, system: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let mut out = String::with_capacity(why.len());
    let mut rest = why;
    while let Some(at) = rest.find(system).filter(|_| !system.is_empty()) {
        let end = at + system.len();
        let stands_alone = !rest[..at].ends_with(is_of_name) && !rest[end..].starts_with(is_of_name);
        out.push_str(&rest[..at]);
        out.push_str(if stands_alone { ANY } else { &rest[at..end] });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::of_any;

    #[test]
    fn a_reason_is_the_same_for_systems_that_lack_the_same() {
        let lacks = |name: &str| format!("{name} is not installed: `pubmark systems {name} --install` brings it");
        let of_go = of_any(&lacks("zeromq-go"), "zeromq-go");
        assert_eq!(of_go, "NAME is not installed: `pubmark systems NAME --install` brings it");
        assert_eq!(of_any(&lacks("nats"), "nats"), of_go);
    }

    #[test]
    fn a_name_within_another_is_not_the_systems() {
        assert_eq!(of_any("zeromq-go and gozeromq beside zeromq", "zeromq"), "zeromq-go and gozeromq beside NAME");
        assert_eq!(of_any("é", ""), "é");
        assert_eq!(of_any("cache/redis.toml of redis.", "redis"), "cache/NAME.toml of NAME.");
    }
}
