//! Where a coordinator can share out partitions among the members of a group, and where clients can be killed.

use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Script, Target};
use crate::kafka_group::GroupSettings;
use crate::options::{OptionValues, Options};
use crate::system::System;
use crate::wire_protocol::Protocol;
use crate::workload::Workload;

/// Checks that a share of the subscribers is killed only where the others compete with it for messages, and publishers
/// only where what they have not sent are their last messages.
pub(super) fn can_kill(faults: &Script, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    let is_keyed = options.text("partition_by") == Some("key");
    if let Some(fault) = faults.0.iter().find(|fault| is_keyed && fault.killed_side() == Some(Target::Publishers)) {
        return Err(Diagnostic::whole(format!(
            "`{fault}`: of messages with keys, what a killed publisher had collected cannot be told from what it had sent"
        ))
        .help("set options.partition_by = \"round-robin\", or leave the fault out"));
    }
    match faults.0.iter().find(|fault| fault.what == Act::Kill && fault.percent.is_some()) {
        Some(fault) if !workload.competing() => Err(Diagnostic::whole(format!(
            "`{fault}`: nobody takes over what the killed subscribers of `{}` receive",
            workload.pattern
        ))
        .help("set pattern = \"pipeline\", or write `kill subscribers at …`")),
        _ => Ok(()),
    }
}

/// Checks that the subscribers are a group, and that nothing is set that has no effect.
pub(super) fn can_coordinate(system: &System, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    if system.protocol() != Some(Protocol::Kafka) {
        return Ok(());
    }
    if GroupSettings::read(options)?.is_none() {
        return Ok(());
    }
    let refuse = |what: String, help: &str| Err(Diagnostic::whole(what).help(help.to_owned()));
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
    Ok(())
}
