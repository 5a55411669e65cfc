//! Terms of the members of a Kafka group, whose coordinator is a broker.

use crate::diagnostic::Diagnostic;
use crate::options::{OptionValues, Options};
use crate::units::{MILLISECOND, Ns, SECOND};

/// Option that says who shares out partitions.
const GROUP: &str = "group";
/// Options of the terms. Those of times have the values of Kafka's consumers if they are not set.
const ASSIGNOR: &str = "group_assignor";
const SESSION: (&str, Ns) = ("group_session", 45 * SECOND);
const HEARTBEAT: (&str, Ns) = ("group_heartbeat", 3 * SECOND);
const COMMIT: (&str, Ns) = ("group_commit", 5 * SECOND);

/// Rule by which the leader of a group assigns partitions to members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignor {
    /// Each member gets neighbours.
    Range,
    /// One to each member, again and again.
    RoundRobin,
}

impl Assignor {
    /// Returns its name in Kafka.
    pub fn name(self) -> &'static [u8] {
        match self {
            Assignor::Range => b"range",
            Assignor::RoundRobin => b"roundrobin",
        }
    }

    /// Returns the share of the member at this place of `members`.
    pub fn share(self, partitions: u32, members: usize, place: usize) -> Vec<i32> {
        let (partitions, members) = (partitions as usize, members.max(1));
        let numbers = |range: &mut dyn Iterator<Item = usize>| range.map(|partition| partition as i32).collect();
        match self {
            Assignor::Range => {
                let (each, more) = (partitions / members, partitions % members);
                let first = place * each + place.min(more);
                numbers(&mut (first..first + each + usize::from(place < more)))
            }
            Assignor::RoundRobin => numbers(&mut (place..partitions).step_by(members)),
        }
    }
}

/// The terms of the members of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Rule that assigns partitions to members.
    pub assignor: Assignor,
    /// Silence after which the coordinator removes a member, ms.
    pub session_ms: i32,
    /// Multiples of [`GroupSettings::TICK`] after which a heartbeat is due.
    pub heartbeat_ticks: u32,
    /// Those after which a commit is due.
    pub commit_ticks: u32,
}

impl GroupSettings {
    /// Time of which those of heartbeats and commits are multiples, ns.
    pub const TICK: Ns = SECOND / 2;

    /// Reads the options of a system; `None` if no coordinator shares out partitions.
    ///
    /// # Errors
    /// The first term that no member could keep, or that would have no effect.
    pub fn read(options: &Options) -> Result<Option<GroupSettings>, Diagnostic> {
        match options.text(GROUP).unwrap_or("static") {
            "static" => {
                let terms = [ASSIGNOR, SESSION.0, HEARTBEAT.0, COMMIT.0];
                return match terms.iter().find(|name| options.contains_key(**name)) {
                    Some(name) => refuse(
                        format!("options.{name}: only members of a group with a coordinator have it"),
                        "set options.group = \"coordinator\", or leave it out",
                    ),
                    None => Ok(None),
                };
            }
            "coordinator" => {}
            other => return refuse(format!("options.group = \"{other}\""), "write \"static\" or \"coordinator\""),
        }
        let assignor = match options.text(ASSIGNOR).unwrap_or("range") {
            "range" => Assignor::Range,
            "round-robin" => Assignor::RoundRobin,
            other => {
                return refuse(format!("options.{ASSIGNOR} = \"{other}\""), "write \"range\" or \"round-robin\"");
            }
        };
        let (heartbeat_ticks, commit_ticks) = (ticks(HEARTBEAT, options)?, ticks(COMMIT, options)?);
        let session_ns = time_ns(SESSION, options);
        if session_ns < time_ns(HEARTBEAT, options).saturating_mul(2) {
            return refuse(
                "options.group_session: it has to be at least twice `group_heartbeat`, or members die between two"
                    .into(),
                "write a longer session, or a shorter heartbeat",
            );
        }
        let Ok(session_ms) = i32::try_from(session_ns / MILLISECOND) else {
            return refuse("options.group_session is too long".into(), "write less than 24 days");
        };
        Ok(Some(GroupSettings { assignor, session_ms, heartbeat_ticks, commit_ticks }))
    }
}

fn refuse<T>(what: String, help: &str) -> Result<T, Diagnostic> {
    Err(Diagnostic::whole(what).help(help.to_owned()))
}

fn time_ns((name, default): (&str, Ns), options: &Options) -> Ns {
    if options.contains_key(name) { options.time_ns(name) } else { default }
}

fn ticks(time: (&str, Ns), options: &Options) -> Result<u32, Diagnostic> {
    let time_ns = time_ns(time, options);
    match u32::try_from(time_ns / GroupSettings::TICK) {
        Ok(ticks) if ticks > 0 && time_ns.is_multiple_of(GroupSettings::TICK) => Ok(ticks),
        _ => refuse(format!("options.{} is not a multiple of 500ms", time.0), "write 500ms, 1s, 1500ms and so on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionKind;

    #[test]
    fn terms_that_no_member_could_keep_are_refused() {
        let said = |name: &str, value: &str| {
            let kind = if name == "group_assignor" { OptionKind::Text } else { OptionKind::Time };
            let group = (GROUP.to_owned(), OptionKind::Text.read("coordinator").unwrap());
            let options: Options = [group, (name.to_owned(), kind.read(value).unwrap())].into_iter().collect();
            GroupSettings::read(&options).err().map(|why| why.message)
        };
        assert_eq!(said("group_commit", "1500ms"), None);
        assert_eq!(said("group_assignor", "round-robin"), None);
        for (name, value, wanted) in [
            ("group_assignor", "sticky", "options.group_assignor = \"sticky\""),
            ("group_heartbeat", "700ms", "options.group_heartbeat is not a multiple of 500ms"),
            ("group_commit", "0s", "options.group_commit is not a multiple of 500ms"),
            ("group_session", "5s", "at least twice `group_heartbeat`"),
        ] {
            let said = said(name, value).unwrap_or_default();
            assert!(said.contains(wanted), "{name} = {value}: {said}");
        }
    }
}
