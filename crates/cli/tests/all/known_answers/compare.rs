//! What was reported, beside what the script says and what the peer did.
//!
//! No machine writes at the very instant that a script names, so the peer
//! keeps an account of its own: between which two instants it wrote each
//! message. What must be reported lies between the two, percentile by
//! percentile, and the distance from there is the error: the way through the
//! kernel and the instrument. Nothing is allowed for the waking of a reader.
//!
//! From p99 on a machine may take the processor from a process that runs. The
//! peer tells how much it does: it watches the clock before each release, and
//! notes how late it sees the instant. What is off by less is not held against
//! the instrument, and is marked.

use pubmark_model::units::Ns;
use pubmark_peer::truth::Truth;
use pubmark_stats::Histogram;
use serde_json::Value;

/// Percentiles that are compared: the name in a record, and the share.
pub const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// What is reported of these.
pub type Reported = [Ns; PERCENTILES.len()];

/// What one percentile says of the instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Right,
    /// Above what is allowed by no more than the machine, in the same seconds,
    /// took from another process that ran.
    Stolen,
    /// Above what is allowed: the instrument's doing, or the machine's.
    Late,
    /// Below what was done: no machine does that.
    Early,
}

/// One percentile.
#[derive(Clone, Debug)]
pub struct Compared {
    pub name: &'static str,
    pub found: Found,
    /// What it is off by, ns; 0 between the beginning and the end of the peer's writes.
    pub off_ns: i64,
    /// How much later than scripted the peer wrote, ns.
    pub peer_late_ns: i64,
    scripted_ns: Ns,
    written_ns: (Ns, Ns),
    reported_ns: Ns,
    allowed_ns: Ns,
    stolen_ns: Ns,
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (begun, ended) = self.written_ns;
        let Compared { name, found, off_ns, scripted_ns, reported_ns, allowed_ns, stolen_ns, .. } = self;
        write!(
            f,
            "{name}: {found:?}: reported {reported_ns} ns, off by {off_ns} ns of {allowed_ns} ns allowed; scripted \
             {scripted_ns} ns, the peer wrote from {begun} ns to {ended} ns and saw the instant {stolen_ns} ns late"
        )
    }
}

/// The peer's histogram of this name.
fn histogram(account: &Value, name: &str) -> Histogram {
    Histogram::decode(account[name].as_str().unwrap()).unwrap()
}

/// Compares all percentiles. What is off by no more than 1 % or 20 µs,
/// whichever is more, is right.
pub fn compare(reported: &Reported, account: &Value, truth: &Truth) -> Vec<Compared> {
    let (begun, ended) = (histogram(account, "begun_histogram"), histogram(account, "latency_histogram"));
    let one = |((name, share), reported_ns): ((&'static str, f64), &Ns)| {
        let scripted_ns = truth.quantile(share);
        let (begun_ns, ended_ns) = (begun.value_at(share), ended.value_at(share));
        assert!(begun_ns + begun_ns / 500 >= scripted_ns, "{name}: the peer was early: {begun_ns} of {scripted_ns} ns");
        let allowed_ns = (ended_ns / 100).max(20_000);
        let off_ns = match *reported_ns {
            early if early < begun_ns => early as i64 - begun_ns as i64,
            late => late.saturating_sub(ended_ns) as i64,
        };
        let stolen_ns = account["watch_error_ns"][name].as_u64().unwrap_or_default();
        let found = match off_ns {
            early if early < 0 && early.unsigned_abs() > allowed_ns => Found::Early,
            late if late > 0 && late.unsigned_abs() > allowed_ns => {
                let stolen = share >= 0.99 && late.unsigned_abs() <= allowed_ns + stolen_ns;
                if stolen { Found::Stolen } else { Found::Late }
            }
            _ => Found::Right,
        };
        Compared {
            name,
            found,
            off_ns,
            peer_late_ns: ended_ns as i64 - scripted_ns as i64,
            scripted_ns,
            written_ns: (begun_ns, ended_ns),
            reported_ns: *reported_ns,
            allowed_ns,
            stolen_ns,
        }
    };
    PERCENTILES.into_iter().zip(reported).map(one).collect()
}

/// A line of a table: by how many µs each percentile is off, an asterisk where
/// the machine explains it, and how late the peer wrote and saw the instant.
pub fn row(what: &str, compared: &[Compared]) -> String {
    let cell = |one: &Compared| {
        let us = |ns: f64| format!("{:+.1}", ns / 1e3);
        let mark = if one.found == Found::Stolen { "*" } else { "" };
        format!(" {}{mark} ({}, {}) |", us(one.off_ns as f64), us(one.peer_late_ns as f64), us(one.stolen_ns as f64))
    };
    format!("| {what} |{}", compared.iter().map(cell).collect::<String>())
}

/// A line of the table of several runs: the median of what each percentile is
/// off by, and the worst of it; at last, how late the peer saw 1 in 100 instants.
pub fn rows(what: &str, runs: &[Vec<Compared>]) -> String {
    let us = |ns: i64| format!("{:.1}", ns as f64 / 1e3);
    let spread = |mut all: Vec<i64>| {
        all.sort_unstable_by_key(|ns| ns.abs());
        format!(" {} ({}) |", us(all[all.len() / 2]), us(all[all.len() - 1]))
    };
    let column = |at: usize| spread(runs.iter().map(|run| run[at].off_ns).collect());
    let cells: String = (0..PERCENTILES.len()).map(column).collect();
    format!("| {what} |{cells}{}", spread(runs.iter().map(|run| run[2].stolen_ns as i64).collect()))
}
