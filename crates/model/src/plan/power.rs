//! Where the power of a server can be cut, and its disk filled.

use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Script, Target};
use crate::host::Placement;
use crate::options::{OptionValues, Options};
use crate::power::Power;
use crate::system::System;

/// Checks that the server whose power is cut, or whose disk is filled, is on this machine, and that its data is in its own folder: that becomes
/// a disk.
pub fn can_cut_power(
    (faults, power): (&Script, Option<Power>),
    system: &System,
    placement: &Placement,
    options: &Options,
) -> Result<(), Diagnostic> {
    let mut of_server = faults.on(Target::Server);
    let Some(fault) = of_server.find(|fault| matches!(fault.what, Act::CutPower | Act::FillDisk)) else {
        return Ok(());
    };
    let refuse = |why: &str, help: &str| {
        Err(Diagnostic::whole(format!("`{fault}` cannot be done to {}: {why}", system.name)).help(help))
    };
    let is_ledger = power.is_some_and(Power::is_ledger);
    if let Some(fault) = faults.on(Target::Server).find(|fault| fault.what == Act::FillDisk && is_ledger) {
        let why = format!("`{fault}` cannot be done to a ledger, which has no size");
        return Err(Diagnostic::whole(why).help("leave `power` out, or leave that fault out"));
    }
    if !placement.serves_here() {
        let why = "its server is on another host, whose disks are not pubmark's";
        return refuse(why, "run pubmark on that host, or use `kill server at … for …`");
    }
    match options.text("deployment") {
        None | Some("native") => Ok(()),
        Some(_) => refuse(
            "its data lies in a container",
            "set options.deployment = \"native\", or use `kill server at … for …`",
        ),
    }
}
