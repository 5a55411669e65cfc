//! Where clients can give up a silent server.

use crate::diagnostic::Diagnostic;
use crate::system::System;
use crate::units::format_time;
use crate::workload::Workload;

/// Checks that there is a server, and that its silence is its own.
pub(super) fn can_give_up(system: &System, workload: &Workload) -> Result<(), Diagnostic> {
    let Some(timeout_ns) = workload.client_timeout_ns else { return Ok(()) };
    let refuse = |why: &str, help: &str| {
        let what = format!("{} cannot have `client_timeout = \"{}\"`: {why}", system.name, format_time(timeout_ns));
        Err(Diagnostic::whole(what).help(help))
    };
    if !system.broker() {
        return refuse("it has no server", "leave `client_timeout` out, or leave the cell out with a [[skip]] entry");
    }
    if workload.consumes_slowly() {
        let why = "its subscribers read as seldom as `consume` says, so they hear nothing in between";
        return refuse(why, "leave out `client_timeout` or `consume`");
    }
    Ok(())
}
