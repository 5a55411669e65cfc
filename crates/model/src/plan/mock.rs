//! Faults of the mock system, which runs in virtual time: its server can be stopped once.

use crate::cell::Cell;
use crate::fault::{Act, Fault, Script, Target};
use crate::options::{OptionValues, Options};
use crate::units::format_time;

/// Options of the mock for a pause of its server: when, from the start of the load, and for how long.
const STALL_AT: &str = "stall_at";
const STALL_FOR: &str = "stall_for";

/// Checks that the mock can play these faults. The error is the fault that it cannot play, the reason and advice.
pub(super) fn can_stop<'a>(faults: &'a Script, options: &Options) -> Result<(), (&'a Fault, [&'static str; 2])> {
    let stops = |fault: &Fault| (fault.what, fault.who) == (Act::Stop, Target::Server);
    let mut others = faults.0.iter().enumerate().filter(|(place, fault)| *place > 0 || !stops(fault));
    if let Some((_, fault)) = others.next() {
        let help = "use one `stop server at … for …`, or its own options, such as lose_every";
        return Err((fault, ["it runs in virtual time", help]));
    }
    let is_stalled = [STALL_AT, STALL_FOR].into_iter().any(|name| options.time_ns(name) > 0);
    match faults.0.first().filter(|_| is_stalled) {
        Some(fault) => Err((fault, ["its options stop it already", "leave stall_at and stall_for out"])),
        None => Ok(()),
    }
}

impl Cell {
    /// Returns the options with which the mock system plays the pause of its server in virtual time; none without such
    /// a fault.
    pub fn stall_in_virtual_time(&self) -> Options {
        let mut stops = self.faults.on(Target::Server).filter_map(|fault| Some((fault.at_ns, fault.for_ns?)));
        let Some((at_ns, for_ns)) = stops.next() else { return Options::new() };
        let at_ns = self.workload.warmup_ns.saturating_add(at_ns);
        [(STALL_AT, at_ns), (STALL_FOR, for_ns)].map(|(name, ns)| (name.to_owned(), format_time(ns).into())).into()
    }
}
