//! A rate over time that is the one of a trace: each message is due when a row says.

mod rows;

use super::course::KILOSECOND;
use crate::units::{Ns, parse_thousandths, thousandths};
pub use rows::{TRACE_ROW_LEN, TraceRows};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Due time of messages that the trace does not have, ns: beyond every run.
const NEVER: Ns = Ns::MAX / 2;

/// The speed of the trace itself, thousandths.
pub(crate) const ONCE: u64 = 1_000;

/// Returns the file in a run's folder from which agents read the rows of a flow; `flow` is its index.
pub fn trace_file(folder: &str, flow: usize) -> String {
    format!("{folder}/trace-{flow}")
}

/// Traces that a study names, by the name.
pub type TraceFiles = BTreeMap<String, TraceFile>;

/// A trace that a study names.
#[derive(Clone, Debug, Default)]
pub struct TraceFile {
    /// Hash of the file, hexadecimal.
    pub sha256: String,
    /// Its rows, and those of each of its flows that the study names; empty if only the hash is known.
    pub rows: Vec<Arc<TraceRows>>,
}

/// A trace is the same if its file is.
impl PartialEq for TraceFile {
    fn eq(&self, other: &TraceFile) -> bool {
        self.sha256 == other.sha256
    }
}

impl TraceFile {
    /// Returns the rows of a flow, or all rows; `None` if others were read. If none were read, the rows are not loaded.
    pub(crate) fn rows_of(&self, name: &str, flow: Option<&str>) -> Option<Arc<TraceRows>> {
        if self.rows.is_empty() {
            let mut rows = TraceRows::new(name, flow);
            rows.set_sha256(&self.sha256);
            return Some(Arc::new(rows));
        }
        self.rows.iter().find(|rows| rows.flow() == flow).cloned()
    }
}

/// The rows of a trace that one of several publishers replays: row `i` is message `i / publishers` of publisher
/// `i mod publishers`. Copies share the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRate {
    rows: Arc<TraceRows>,
    speed: u64,
    publishers: u32,
    publisher: u32,
    /// True if messages have the sizes of the rows.
    sized: bool,
    /// The file of the rows, for agents.
    file: Option<Arc<str>>,
}

/// The form in records and between processes.
#[derive(Serialize, Deserialize)]
struct Told {
    trace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    sha256: String,
    speed: Value,
    publishers: u32,
    sized: bool,
    least_bytes: u64,
    most_bytes: u64,
    mean_bytes: f64,
    busiest: u64,
    gap_ns: Ns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl TraceRate {
    /// Creates the rate of the first of `publishers` that share the rows. `speed` is in thousandths: 2,000 replays
    /// them twice as fast. If it is `sized`, messages have the sizes of the rows.
    pub fn new(rows: Arc<TraceRows>, speed: u64, publishers: u32, sized: bool) -> TraceRate {
        TraceRate { rows, speed: speed.max(1), publishers: publishers.max(1), publisher: 0, sized, file: None }
    }

    /// Returns the rate of another publisher.
    #[must_use]
    pub fn of_publisher(&self, publisher: u32) -> TraceRate {
        TraceRate { publisher: publisher % self.publishers, ..self.clone() }
    }

    /// Returns the rows of all publishers.
    pub fn rows(&self) -> &TraceRows {
        &self.rows
    }

    /// True if messages have the sizes of the rows.
    pub fn is_sized(&self) -> bool {
        self.sized
    }

    /// Returns how many times as fast as recorded the rows are replayed.
    pub fn speed(&self) -> f64 {
        self.speed as f64 / ONCE as f64
    }

    /// Returns the file from which an agent reads the rows.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the rate with rows that agents read from this file.
    #[must_use]
    pub fn in_file(&self, file: &str) -> TraceRate {
        TraceRate { file: Some(file.into()), ..self.clone() }
    }

    /// Returns the rate with these rows, which were read from its file.
    #[must_use]
    pub fn with_rows(&self, rows: TraceRows) -> TraceRate {
        TraceRate { rows: Arc::new(rows), file: None, ..self.clone() }
    }

    /// Returns an instant of the trace in the replay, ns from the first row.
    #[inline]
    fn replayed(&self, at_ns: Ns) -> Ns {
        match at_ns.checked_mul(ONCE) {
            Some(product) => product / self.speed,
            None => (u128::from(at_ns) * u128::from(ONCE) / u128::from(self.speed)).min(u128::from(NEVER)) as Ns,
        }
    }

    /// Returns the row of a message.
    #[inline]
    fn row(&self, publisher: u32, index: u64) -> usize {
        let row = index.saturating_mul(u64::from(self.publishers)).saturating_add(u64::from(publisher));
        usize::try_from(row).unwrap_or(usize::MAX)
    }

    /// See [`super::Profile::due`]. A message that the trace does not have is never due.
    #[inline]
    pub(super) fn due(&self, index: u64) -> Ns {
        self.rows.time_ns(self.row(self.publisher, index)).map_or(NEVER, |at_ns| self.replayed(at_ns))
    }

    /// Returns the number of rows of all publishers that are due before an instant, ns from the first row.
    pub fn rows_before(&self, at_ns: Ns) -> u64 {
        self.rows.times_ns().partition_point(|row_ns| self.replayed(*row_ns) < at_ns) as u64
    }

    /// Returns when the last row is due, ns from the first; 0 if there are none.
    pub fn last_ns(&self) -> Ns {
        self.rows.times_ns().last().map_or(0, |at_ns| self.replayed(*at_ns))
    }

    /// True if rows that are due before an instant are too many to be kept.
    pub fn is_cut_before(&self, at_ns: Ns) -> bool {
        self.rows.cut_ns().is_some_and(|cut_ns| self.replayed(cut_ns) < at_ns)
    }

    /// See [`super::Profile::due_before`].
    pub(super) fn due_before(&self, at_ns: Ns) -> u64 {
        self.rows_before(at_ns).saturating_sub(u64::from(self.publisher)).div_ceil(u64::from(self.publishers))
    }

    /// See [`super::Profile::after`].
    pub(super) fn after(&self, at_ns: f64, messages: f64) -> f64 {
        self.due((self.due_before(at_ns as Ns) as f64 + messages) as u64) as f64
    }

    /// See [`super::Profile::per_ks`]. The highest is that of the busiest second, and the lowest that of the longest
    /// gap between rows.
    pub(super) fn per_ks(&self) -> RangeInclusive<u64> {
        let publishers = u64::from(self.publishers);
        let each = self.rows.busiest().saturating_mul(self.speed.div_ceil(ONCE)).div_ceil(publishers).max(1);
        let most = each.saturating_mul(1_000).min(KILOSECOND);
        let gap_ns = self.replayed(self.rows.gap_ns()).saturating_mul(publishers);
        (KILOSECOND / gap_ns.max(1)).clamp(1, most)..=most
    }

    /// Returns the size of a message of a publisher, bytes.
    #[inline]
    pub(crate) fn bytes(&self, publisher: u32, sequence: u32) -> usize {
        let bytes = self.rows.bytes(self.row(publisher, u64::from(sequence)));
        bytes.unwrap_or(self.rows.least_bytes()) as usize
    }
}

impl fmt::Display for TraceRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {}", self.rows.name())?;
        self.rows.flow().map_or(Ok(()), |flow| write!(f, ", flow {flow}"))?;
        if self.speed == ONCE { Ok(()) } else { write!(f, ", {}x", self.speed()) }
    }
}

impl From<&TraceRate> for Value {
    fn from(rate: &TraceRate) -> Value {
        let rows = &*rate.rows;
        let told = Told {
            trace: rows.name().to_owned(),
            flow: rows.flow().map(str::to_owned),
            sha256: rows.sha256().to_owned(),
            speed: thousandths(rate.speed),
            publishers: rate.publishers,
            sized: rate.sized,
            least_bytes: rows.least_bytes(),
            most_bytes: rows.most_bytes(),
            mean_bytes: rows.mean_bytes(),
            busiest: rows.busiest(),
            gap_ns: rows.gap_ns(),
            file: rate.file.as_deref().map(str::to_owned),
        };
        serde_json::to_value(told).unwrap_or_default()
    }
}

impl TraceRate {
    /// Reads the form of records and of agents: without the rows.
    pub(super) fn told(value: Value) -> Option<TraceRate> {
        let told: Told = serde_json::from_value(value).ok()?;
        let speed = parse_thousandths(&told.speed.to_string()).filter(|speed| *speed > 0)?;
        let mut rows = TraceRows::new(&told.trace, told.flow.as_deref());
        rows.set_sha256(&told.sha256);
        rows.set_summary([told.least_bytes, told.most_bytes, told.busiest, told.gap_ns], told.mean_bytes);
        let rate = TraceRate::new(Arc::new(rows), speed, told.publishers, told.sized);
        Some(TraceRate { file: told.file.map(Into::into), ..rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Profile, Rate};

    /// A trace with a burst of 100 rows at 250 ms, among rows each 100 ms for 2 s.
    fn rows() -> Arc<TraceRows> {
        let mut rows = TraceRows::new("t.csv", None);
        for tenth in 0..20_u64 {
            rows.push(tenth * 100_000_000, 64 + tenth as u32, tenth + 2);
            if tenth == 2 {
                (0..100).for_each(|_| rows.push(250_000_000, 32, 9));
            }
        }
        Arc::new(rows)
    }

    #[test]
    fn each_row_is_due_once_when_it_says() {
        for publishers in [1_u32, 3, 7, 200] {
            let rate = TraceRate::new(rows(), 1_000, publishers, true);
            let mut dues: Vec<(Ns, usize)> = Vec::new();
            for publisher in 0..publishers {
                let own = rate.of_publisher(publisher);
                let count = own.due_before(Ns::MAX / 4);
                dues.extend((0..count).map(|index| (own.due(index), rate.bytes(publisher, index as u32))));
                assert_eq!(own.due(count), NEVER);
                for at_ns in [0, 1, 250_000_000, 250_000_001, 1_900_000_000, 1_900_000_001] {
                    let by_hand = (0..count).filter(|index| own.due(*index) < at_ns).count() as u64;
                    assert_eq!(own.due_before(at_ns), by_hand, "{publishers} {publisher} {at_ns}");
                }
            }
            dues.sort_unstable();
            let mut wanted: Vec<(Ns, usize)> =
                (0..20).map(|tenth| (tenth * 100_000_000, 64 + tenth as usize)).collect();
            wanted.extend([(250_000_000, 32); 100]);
            wanted.sort_unstable();
            assert_eq!(dues, wanted, "{publishers}");
        }
    }

    #[test]
    fn its_speed_divides_times_and_its_rates_are_bounds() {
        let twice = TraceRate::new(rows(), 2_000, 1, true);
        assert_eq!([0, 3, 103, 119].map(|index| twice.due(index)), [0, 125_000_000, 150_000_000, 950_000_000]);
        assert_eq!((twice.rows_before(125_000_000), twice.rows_before(125_000_001)), (3, 103));
        // 110 rows in one second of the trace, and gaps of 100 ms.
        assert_eq!(TraceRate::new(rows(), 1_000, 1, true).per_ks(), 10_000..=110_000);
        assert_eq!(TraceRate::new(rows(), 1_000, 10, true).per_ks(), 1_000..=11_000);
        assert_eq!(twice.per_ks(), 20_000..=220_000);
        assert!((rows().mean_bytes() - (100.0 * 32.0 + 20.0 * 73.5) / 120.0).abs() < 1e-9);
        assert_eq!((rows().least_bytes(), rows().most_bytes()), (32, 83));
        assert_eq!(twice.to_string(), "trace t.csv, 2x");
    }

    #[test]
    fn agents_and_records_are_told_of_it_and_agents_read_its_rows() {
        let rate = TraceRate::new(rows(), 500, 4, true).in_file("/x/trace-0");
        let text = serde_json::to_string(&Rate::Due(Profile::Trace(rate.clone()))).unwrap();
        let told: Rate = serde_json::from_str(&text).unwrap();
        let told = told.trace().unwrap();
        assert_eq!((told.file(), told.per_ks(), told.speed()), (Some("/x/trace-0"), rate.per_ks(), 0.5));
        assert!(!told.rows().is_loaded());
        let mut read = TraceRows::new("t.csv", None);
        rate.rows().encoded().for_each(|row| read.push_encoded(row));
        let read = told.with_rows(read);
        assert_eq!(read.rows().times_ns(), rate.rows().times_ns());
        assert!((0..30).all(|index| read.bytes(3, index) == rate.bytes(3, index)));
        assert!(serde_json::from_str::<Rate>("{\"trace\":1}").is_err());
    }
}
