//! Compares reported figures with the script and with what the peer did.
//!
//! No machine writes at the exact instant that a script names, so the peer records its own counts: between which two
//! instants it wrote each message. The correct report lies between the two, percentile by percentile, and the distance
//! from there is the error: the path through the kernel and the instrument. There is no allowance for waking a reader.
//!
//! A machine may take the processor from a running process. The share of the time is known from the kernel (waiting for
//! a processor, steal), and from the peer, which polls the clock before each release and notes how late it sees the
//! instant. A percentile may be as large as one that lies higher by this share. If that is nearer to the maximum than
//! to the percentile, a few of its messages decide: they may be late by all the time that was taken. An error that only
//! this explains is marked, and does not count against the instrument.

use super::taken::Taken;
use pubmark_model::units::Ns;
use pubmark_peer::truth::Truth;
use pubmark_stats::Histogram;
use serde_json::Value;

/// Error that is always allowed, ns; 1 % if that is more.
const LEAST_NS: Ns = 20_000;

/// Percentiles that are compared: the name in a record, and the share.
pub const PERCENTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// Reported values of these.
pub type Reported = [Ns; PERCENTILES.len()];

/// Conclusion from one percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Right,
    /// Above the allowed error by no more than the machine's time explains.
    Stolen,
    /// Above the allowed error: by the instrument, or by the machine.
    Late,
    /// Below what was done: no machine does that.
    Early,
}

/// Comparison of one percentile.
#[derive(Clone, Debug)]
pub struct Compared {
    pub name: &'static str,
    pub found: Found,
    /// Error, ns; 0 between the start and the end of the peer's writes.
    pub off_ns: i64,
    /// Delay of the peer's write against the script, ns.
    pub peer_late_ns: i64,
    scripted_ns: Ns,
    written_ns: (Ns, Ns),
    reported_ns: Ns,
    allowed_ns: Ns,
    explained_ns: Ns,
    /// Share of the time that the machine took.
    pub taken: f64,
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (begun, ended) = self.written_ns;
        let Compared { name, found, off_ns, scripted_ns, reported_ns, allowed_ns, explained_ns, taken, .. } = self;
        write!(
            f,
            "{name}: {found:?}: reported {reported_ns} ns, off by {off_ns} ns of {allowed_ns} ns allowed; scripted \
             {scripted_ns} ns, the peer wrote from {begun} ns to {ended} ns; {:.1} % of the time was taken by the \
             machine, which explains {explained_ns} ns",
            taken * 100.0
        )
    }
}

impl Compared {
    /// Returns whether the peer did what the script says, and no sooner, except for the width of a histogram's bucket.
    pub fn is_by_script(&self) -> bool {
        self.written_ns.0 + self.written_ns.0 / 500 >= self.scripted_ns
    }
}

/// Returns the peer's histogram of this name.
fn histogram(account: &Value, name: &str) -> Histogram {
    Histogram::decode(account[name].as_str().unwrap()).unwrap()
}

/// Compares all percentiles. An error of no more than 1 % or 20 µs, whichever is more, is right.
pub fn compare(reported: &Reported, account: &Value, taken: Taken, truth: &Truth) -> Vec<Compared> {
    let (begun, ended) = (histogram(account, "begun_histogram"), histogram(account, "latency_histogram"));
    let watched = histogram(account, "watch_error_histogram");
    let late: u64 = watched.nonzero().filter(|(ns, _)| *ns > LEAST_NS).map(|(_, count)| count).sum();
    let share_taken = taken.share + late as f64 / watched.count() as f64;
    let one = |((name, share), reported_ns): ((&'static str, f64), &Ns)| {
        let scripted_ns = truth.quantile(share);
        let (begun_ns, ended_ns) = (begun.value_at(share), ended.value_at(share));
        let allowed_ns = (ended_ns / 100).max(LEAST_NS);
        let explained_ns = if share_taken <= (1.0 - share) / 2.0 {
            ended.value_at(share + share_taken) - ended_ns
        } else {
            ended.max() - ended_ns + taken.ns + watched.max()
        };
        let off_ns = match *reported_ns {
            early if early < begun_ns => early as i64 - begun_ns as i64,
            late => late.saturating_sub(ended_ns) as i64,
        };
        let found = match off_ns {
            early if early < 0 && early.unsigned_abs() > allowed_ns => Found::Early,
            late if late <= 0 || late.unsigned_abs() <= allowed_ns => Found::Right,
            late if late.unsigned_abs() <= allowed_ns + explained_ns => Found::Stolen,
            _ => Found::Late,
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
            explained_ns,
            taken: share_taken,
        }
    };
    PERCENTILES.into_iter().zip(reported).map(one).collect()
}

/// Returns a line of a table: the error of each percentile in µs, an asterisk if only the machine explains it, and the
/// peer's delay; at last the share of the time that the machine took.
pub fn row(what: &str, compared: &[Compared]) -> String {
    let cell = |one: &Compared| {
        let us = |ns: i64| format!("{:+.1}", ns as f64 / 1e3);
        let mark = if one.found == Found::Stolen { "*" } else { "" };
        format!(" {}{mark} ({}) |", us(one.off_ns), us(one.peer_late_ns))
    };
    format!("| {what} |{} {:.1} % |", compared.iter().map(cell).collect::<String>(), compared[0].taken * 100.0)
}

/// Returns a line of the table of several runs: the median error of each percentile, and the worst; at last the share
/// that the machine took.
pub fn rows(what: &str, runs: &[Vec<Compared>]) -> String {
    let spread = |mut all: Vec<f64>, unit: &str| {
        all.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
        format!(" {:.1} ({:.1}){unit} |", all[all.len() / 2], all[all.len() - 1])
    };
    let column = |at: usize| spread(runs.iter().map(|run| run[at].off_ns as f64 / 1e3).collect(), "");
    let cells: String = (0..PERCENTILES.len()).map(column).collect();
    format!("| {what} |{cells}{}", spread(runs.iter().map(|run| run[0].taken * 100.0).collect(), " %"))
}
