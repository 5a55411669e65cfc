//! Where a coordinator can share out partitions among the members of a group, and where members can be killed.

use crate::cluster::members_of;
use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Script};
use crate::options::{OptionValues, Options};
use crate::system::System;
use crate::units::{Ns, SECOND};
use crate::wire_protocol::Protocol;
use crate::workload::Workload;

/// Option of Kafka that says who shares out partitions.
const GROUP: &str = "group";
/// Terms of its members.
const TERMS: [&str; 4] = ["group_assignor", "group_session", "group_heartbeat", "group_commit"];

/// Times of members, and their values if they are not set: those of Kafka's consumers. The session's is the longest.
const SESSION: (&str, Ns) = ("group_session", 45 * SECOND);
const HEARTBEAT: (&str, Ns) = ("group_heartbeat", 3 * SECOND);
const COMMIT: (&str, Ns) = ("group_commit", 5 * SECOND);
/// Time of which those of heartbeats and commits are multiples, ns.
const TICK: Ns = SECOND / 2;

/// Checks the terms of members.
fn are_sound(options: &Options) -> Result<(), Diagnostic> {
    let time_ns =
        |(name, default): (&str, Ns)| if options.contains_key(name) { options.time_ns(name) } else { default };
    let refuse = |what: String, help: &str| Err(Diagnostic::whole(what).help(help.to_owned()));
    if let Some(other) = options.text("group_assignor").filter(|name| !["range", "round-robin"].contains(name)) {
        return refuse(format!("options.group_assignor = \"{other}\""), "write \"range\" or \"round-robin\"");
    }
    let is_wrong = |time_ns: Ns| time_ns == 0 || !time_ns.is_multiple_of(TICK);
    if let Some((name, _)) = [HEARTBEAT, COMMIT].into_iter().find(|time| is_wrong(time_ns(*time))) {
        return refuse(format!("options.{name} is not a multiple of 500ms"), "write 500ms, 1s, 1500ms and so on");
    }
    if time_ns(SESSION) < time_ns(HEARTBEAT).saturating_mul(2) {
        let what = "options.group_session: it has to be at least twice `group_heartbeat`, or members die between two";
        return refuse(what.into(), "write a longer session, or a shorter heartbeat");
    }
    Ok(())
}

/// Checks that a share of the subscribers is killed only where the others compete with it for messages.
pub(super) fn can_kill_share(faults: &Script, workload: &Workload) -> Result<(), Diagnostic> {
    match faults.0.iter().find(|fault| fault.what == Act::Kill && fault.percent.is_some()) {
        Some(fault) if !workload.competing() => Err(Diagnostic::whole(format!(
            "`{fault}`: nobody takes over what the killed subscribers of `{}` receive",
            workload.pattern
        ))
        .help("set pattern = \"pipeline\", or write `kill subscribers at …`")),
        _ => Ok(()),
    }
}

/// Checks that the subscribers are a group, that one broker has both its topic and its coordinator, and that nothing is
/// set that has no effect.
pub(super) fn can_coordinate(system: &System, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    if system.protocol() != Some(Protocol::Kafka) {
        return Ok(());
    }
    let refuse = |what: String, help: &str| Err(Diagnostic::whole(what).help(help.to_owned()));
    match options.text(GROUP).unwrap_or("static") {
        "static" => {
            return match TERMS.iter().find(|name| options.contains_key(**name)) {
                Some(name) => refuse(
                    format!("options.{name}: only members of a group with a coordinator have it"),
                    "set options.group = \"coordinator\", or leave it out",
                ),
                None => Ok(()),
            };
        }
        "coordinator" => {}
        other => return refuse(format!("options.group = \"{other}\""), "write \"static\" or \"coordinator\""),
    }
    if !workload.competing() {
        return refuse(
            format!("options.group = \"coordinator\": subscribers of `{}` are no group", workload.pattern),
            "set pattern = \"pipeline\", or options.group = \"static\"",
        );
    }
    if workload.subscribers_start_ns.is_some() {
        return refuse(
            "options.group = \"coordinator\": late subscribers would wait for the members that they replace".into(),
            "leave `subscribers_start` out, or set options.group = \"static\"",
        );
    }
    if members_of(options) > 1 {
        return refuse(
            "options.group = \"coordinator\": the coordinator of a group may be another broker than the leader of its topic"
                .into(),
            "set members = 1, or options.group = \"static\"",
        );
    }
    are_sound(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::OptionKind;

    #[test]
    fn terms_that_no_member_could_keep_are_refused() {
        let said = |name: &str, value: &str| {
            let kind = if name == "group_assignor" { OptionKind::Text } else { OptionKind::Time };
            let options: Options = [(name.to_owned(), kind.read(value).unwrap())].into_iter().collect();
            are_sound(&options).err().map(|why| why.message)
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
