//! Opens the hosts of a run, or of the survey before all runs.

use super::machines::twins;
use pubmark_host::error::HostError;
use pubmark_host::lanes::in_lanes;
use pubmark_host::lines::Facts;
use pubmark_host::reach::{Host, SharedRunSettings};
use pubmark_model::host::HostSpec;

/// Opens hosts, which are numbered in this order. If `addressed`, checks that each has the address in its description.
///
/// # Errors
/// If a host cannot be reached, differs from its description, or is the same machine as another.
pub fn open_all<'a>(
    specs: &[&HostSpec],
    addressed: bool,
    wanted: &SharedRunSettings<'a, '_>,
) -> Result<(Vec<Host<'a>>, Vec<Facts>), HostError> {
    let open = |(number, spec): (usize, &HostSpec)| -> Result<(Host<'a>, Facts), HostError> {
        let mut host = Host::open(spec, number, wanted)?;
        let facts = host.facts()?;
        if addressed {
            host.check_address()?;
        }
        host.shape()?;
        Ok((host, facts))
    };
    // Other remote hosts follow once the first one has the program: they may share its folder.
    let first = specs.iter().position(|spec| !spec.reach.is_empty()).map_or(specs.len(), |first| first + 1);
    let numbered: Vec<(usize, &HostSpec)> = specs.iter().copied().enumerate().collect();
    let mut opened = numbered[..first].iter().copied().map(open).collect::<Result<Vec<_>, _>>()?;
    let others = in_lanes(numbered[first..].to_vec(), open);
    opened.extend(others.into_iter().collect::<Result<Vec<_>, _>>()?);
    let (hosts, facts): (Vec<Host<'a>>, Vec<Facts>) = opened.into_iter().unzip();
    match twins(&facts) {
        Some(pair) => Err(HostError::Failed(of_twins(pair.map(|host| hosts[host].spec.name.as_str())))),
        None => Ok((hosts, facts)),
    }
}

/// Returns an error with advice: two hosts are the same machine.
pub fn of_twins([one, other]: [&str; 2]) -> String {
    format!(
        "hosts {one} and {other} are one machine: leave one of them out of the file of hosts, or let its `reach` lead elsewhere"
    )
}
