//! What was reported, beside what the script says and what the peer did.
//!
//! No machine writes at the very instant that a script names, so the peer
//! keeps an account of its own: between which two instants it wrote each
//! message. What must be reported lies between the two, percentile by
//! percentile, and the distance from there is the error: the way through the
//! kernel and the instrument. Nothing is allowed for the waking of a reader.

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
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (begun, ended) = self.written_ns;
        let Compared { name, found, off_ns, scripted_ns, reported_ns, allowed_ns, .. } = self;
        write!(
            f,
            "{name}: {found:?}: reported {reported_ns} ns, off by {off_ns} ns of {allowed_ns} ns allowed; scripted \
             {scripted_ns} ns, the peer wrote from {begun} ns to {ended} ns"
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
        let found = match off_ns {
            early if early < 0 && early.unsigned_abs() > allowed_ns => Found::Early,
            late if late > 0 && late.unsigned_abs() > allowed_ns => Found::Late,
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
        }
    };
    PERCENTILES.into_iter().zip(reported).map(one).collect()
}

/// A line of a table: by how many µs each percentile is off, and how late the peer was.
pub fn row(protocol: &str, script: &str, compared: &[Compared]) -> String {
    let us = |ns: i64| format!("{:+.1}", ns as f64 / 1e3);
    let cells = compared.iter().map(|one| format!(" {} ({}) |", us(one.off_ns), us(one.peer_late_ns)));
    format!("| {protocol} | {script} |{}", cells.collect::<String>())
}
