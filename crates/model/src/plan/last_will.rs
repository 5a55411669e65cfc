//! Where publishers can have last wills.

use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Fault, Script, Target};
use crate::link::{Link, Side};
use crate::system::System;
use crate::wire_protocol::Protocol;
use crate::workload::Workload;

/// Checks that a server publishes last wills, and that it is known which of them each subscriber should get.
pub(super) fn can_leave_wills(
    system: &System,
    workload: &Workload,
    faults: &Script,
    link: Option<&Link>,
) -> Result<(), Diagnostic> {
    if !workload.last_will {
        return Ok(());
    }
    let refuse = |why: &str, help: &str| {
        Err(Diagnostic::whole(format!("{} cannot have `last_will`: {why}", system.name)).help(help))
    };
    let leave_out = "leave `last_will` out, or leave the cell out with a [[skip]] entry";
    match system.protocol() {
        Some(Protocol::Mqtt) => {}
        Some(_) => return refuse("only MQTT has last wills", leave_out),
        None => return refuse("it has no server that publishes them", leave_out),
    }
    let pattern = workload.pattern;
    if pattern.round_trip() {
        return refuse(&format!("in the pattern `{pattern}` subscribers answer, and a will has no answer"), leave_out);
    }
    if workload.competing() {
        return refuse(&format!("in the pattern `{pattern}` a will goes to one of the subscribers"), leave_out);
    }
    if let Some(fault) = faults.0.iter().find(|fault| !ends_publishers(fault)) {
        let why =
            format!("`{fault}` does not end connections of publishers alone, so nobody knows which wills are due");
        return refuse(
            &why,
            "use `kill publishers`, `cut publishers`, `cut clients` or `cut link`, or leave `last_will` out",
        );
    }
    let holds_subscribers = link.is_some_and(|link| link.side != Side::Publishers);
    let fails = link.is_some_and(|link| link.mttf_ns.is_some());
    let cuts = |fault: &&Fault| fault.who == Target::Clients || fault.who == Target::Link && holds_subscribers;
    let cut = faults.0.iter().find(cuts).map(Fault::to_string);
    let cut = cut.or_else(|| (fails && holds_subscribers).then(|| "mttf".to_owned()));
    match cut.filter(|_| workload.qos == 0) {
        Some(cut) => refuse(
            &format!("`{cut}` also ends connections of subscribers, which miss wills at qos = 0"),
            "set qos = 1, or let publishers alone lose their connections (`cut publishers`, `link = \"publishers\"`)",
        ),
        None => Ok(()),
    }
}

/// True if the fault ends connections of publishers, and of nobody who stays away.
fn ends_publishers(fault: &Fault) -> bool {
    match fault.what {
        Act::Kill => fault.who == Target::Publishers,
        Act::Cut => matches!(fault.who, Target::Publishers | Target::Clients | Target::Link),
        _ => false,
    }
}
