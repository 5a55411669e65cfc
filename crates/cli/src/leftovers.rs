//! Runs that were killed, and may have left something at servers that stay.

use pubmark_host::ledger::abandoned;
use std::collections::BTreeMap;

/// Maximum number of servers named at a start.
const NAMED: usize = 3;

/// Returns one line for each server at which runs may have left something, with the command that removes it.
pub fn mentions() -> Vec<String> {
    let mut servers: BTreeMap<String, usize> = BTreeMap::new();
    for run in abandoned() {
        *servers.entry(run.leftovers.command()).or_default() += 1;
    }
    let line = |(command, runs): (&String, &usize)| {
        let runs = if *runs == 1 { "a run that was".to_owned() } else { format!("{runs} runs that were") };
        format!("{runs} killed may have left something at a server; to remove it: {command}")
    };
    servers.iter().take(NAMED).map(line).collect()
}
