//! Creates the orders that an agent plays.

use crate::subject::TestedAgent;
use crate::wrong::CaseFailure;
use pubmark_host::scratch::Scratch;
use pubmark_model::host::LOOPBACK;
use pubmark_model::protocol::{Client, Flow, Prepare, Role};
use pubmark_model::schedule::Schedule;
use pubmark_model::setting::Settings;
use pubmark_model::topology::{bind_at, heard_by};
use pubmark_model::units::Ns;
use pubmark_model::workload::{Extent, Workload};
use std::ops::Range;

/// Default settings beside those of each case: short and small.
const USUAL: &[(&str, &str)] =
    &[("rate", "500"), ("payload", "64B"), ("warmup", "100ms"), ("duration", "400ms"), ("drain", "2s"), ("seed", "7")];

/// Returns the usual short workload with these settings.
pub fn workload(bench: &TestedAgent<'_>, more: &[(&str, &str)]) -> Result<Workload, CaseFailure> {
    let transport = bench.transport.map(|transport| ("transport", transport.word()));
    let counted = more.iter().any(|(name, _)| *name == "count");
    let usual = USUAL.iter().copied().filter(|(name, _)| !(counted && *name == "duration"));
    let settings = Settings::of(usual.chain(more.iter().copied()).chain(transport));
    let settings = settings.map_err(|error| CaseFailure::NotTried(error.to_string()))?;
    let workload = Workload::resolve(&settings).map_err(|errors| CaseFailure::NotTried(errors.to_string()))?;
    match bench.features.lack(&[&workload]) {
        None => Ok(workload),
        Some(lack) => Err(CaseFailure::NotTried(format!("by its `hello` it {lack}"))),
    }
}

/// Returns the endpoints at which clients bind.
pub fn places(bench: &TestedAgent<'_>, scratch: &Scratch, count: u32) -> Vec<String> {
    (0..count).map(|number| bind_at(bench.transport, scratch.path(), LOOPBACK, number)).collect()
}

/// Returns the clients of one role, each with its endpoint or those that it connects to.
pub fn clients(workload: &Workload, role: Role, bind: &[String], connect: &[String]) -> Vec<Client> {
    let sends = role.sends();
    let count = if sends { workload.publishers } else { workload.subscribers };
    let one = |id: u32| {
        let heard = if sends { 0..0 } else { heard_by(workload, id) };
        // With its partner, if it has one; else with all of them.
        let partner = |all: &[String]| match workload.pattern.paired() {
            true => all.get(id as usize).cloned().into_iter().collect(),
            false => all.to_vec(),
        };
        Client {
            role,
            id,
            flow: 0,
            bind: bind.get(id as usize).cloned(),
            connect: partner(connect),
            answers: None,
            hears_first: heard.start,
            hears_count: heard.end - heard.start,
        }
    };
    (0..count).map(one).collect()
}

/// Returns the order.
pub fn prepare(bench: &TestedAgent<'_>, workload: &Workload, clients: Vec<Client>, scratch: &Scratch) -> Prepare {
    Prepare {
        driver: bench.driver.to_owned(),
        options: bench.options.clone(),
        flows: vec![Flow::alone(workload.clone())],
        clients,
        scratch: scratch.path().display().to_string(),
        server: None,
        spin_cores: 0.0,
        clock_offset_ns: 0,
        publisher_cpus: Vec::new(),
        subscriber_cpus: Vec::new(),
    }
}

/// Returns the due times of a publisher's messages until the window's end, ns from the start, and the range of those
/// that belong to the window.
pub fn planned(workload: &Workload, publisher: u32) -> (Vec<Ns>, Range<usize>) {
    let Some(profile) = workload.rate.profile() else { return (Vec::new(), 0..0) };
    let mut schedule = Schedule::of(workload, profile, publisher);
    let (mut dues, mut first) = (Vec::new(), 0);
    loop {
        let at = schedule.due();
        if at < workload.warmup_ns {
            first = dues.len() + 1;
        }
        let done = match workload.extent {
            Extent::TimeNs(length) => at >= workload.warmup_ns + length,
            Extent::Count(count) => dues.len() as u64 >= first as u64 + count,
        };
        if done {
            let end = dues.len();
            return (dues, first..end);
        }
        dues.push(at);
        schedule.advance();
    }
}
