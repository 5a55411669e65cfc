//! The rows of a trace, 12 bytes each.

use crate::header::MIN_LEN;
use crate::units::{Ns, SECOND};

/// Length of a row in the file that agents read: its time in ns and its size in bytes, both little-endian.
pub const TRACE_ROW_LEN: usize = 12;

/// Most rows that are kept: 768 MiB.
const ROWS_MAX: usize = 1 << 26;

/// Most names of flows that are kept for an error.
const NAMES_MAX: usize = 8;

/// The rows of a trace, or those of one of its flows: when each message is due, and its size.
#[derive(Debug)]
pub struct TraceRows {
    name: String,
    flow: Option<String>,
    /// Hash of the whole file.
    sha256: String,
    /// From the file's first row, ns; never falling.
    times_ns: Vec<Ns>,
    bytes: Vec<u32>,
    is_loaded: bool,
    /// First row that is shorter than a header: its line and its size.
    short: Option<(u64, u32)>,
    /// The first flows of the file.
    flows: Vec<String>,
    least_bytes: u64,
    most_bytes: u64,
    sum_bytes: u64,
    mean_bytes: f64,
    busiest: u64,
    /// Index of the first row of the last second.
    second_at: usize,
    gap_ns: Ns,
    /// Time of the first row that was not kept, ns.
    cut_ns: Option<Ns>,
}

/// Rows are those of a file, which has a hash.
impl PartialEq for TraceRows {
    fn eq(&self, other: &TraceRows) -> bool {
        (&self.name, &self.flow, &self.sha256) == (&other.name, &other.flow, &other.sha256)
    }
}

impl Eq for TraceRows {}

impl TraceRows {
    /// Creates the rows of a file, or those of one of its flows, without any.
    pub fn new(name: &str, flow: Option<&str>) -> TraceRows {
        TraceRows {
            name: name.to_owned(),
            flow: flow.map(str::to_owned),
            sha256: String::new(),
            times_ns: Vec::new(),
            bytes: Vec::new(),
            is_loaded: false,
            short: None,
            flows: Vec::new(),
            least_bytes: 0,
            most_bytes: 0,
            sum_bytes: 0,
            mean_bytes: 0.0,
            busiest: 0,
            second_at: 0,
            gap_ns: 0,
            cut_ns: None,
        }
    }

    /// Adds a row of a line of the file. Rows come in the order of their times. Those beyond 67,108,864 are not kept.
    pub fn push(&mut self, time_ns: Ns, bytes: u32, line: u64) {
        if self.times_ns.len() >= ROWS_MAX {
            self.cut_ns.get_or_insert(time_ns);
            return;
        }
        let last_ns = self.times_ns.last().copied().unwrap_or(0);
        self.gap_ns = self.gap_ns.max(time_ns.saturating_sub(last_ns));
        self.least_bytes = if self.times_ns.is_empty() { bytes.into() } else { self.least_bytes.min(bytes.into()) };
        self.most_bytes = self.most_bytes.max(bytes.into());
        self.sum_bytes = self.sum_bytes.saturating_add(bytes.into());
        if (bytes as usize) < MIN_LEN {
            self.short.get_or_insert((line, bytes));
        }
        self.times_ns.push(time_ns);
        self.bytes.push(bytes);
        while self.times_ns[self.second_at].saturating_add(SECOND) <= time_ns {
            self.second_at += 1;
        }
        self.busiest = self.busiest.max((self.times_ns.len() - self.second_at) as u64);
        self.mean_bytes = self.sum_bytes as f64 / self.times_ns.len() as f64;
        self.is_loaded = true;
    }

    /// Notes that the file has this flow.
    pub fn note_flow(&mut self, flow: &str) {
        if self.flows.len() < NAMES_MAX && !self.flows.iter().any(|known| known == flow) {
            self.flows.push(flow.to_owned());
        }
    }

    /// Ends reading: the hash of the file is known.
    pub fn set_sha256(&mut self, sha256: &str) {
        sha256.clone_into(&mut self.sha256);
    }

    /// Notes that the whole file was read, though it may have no row of the flow.
    pub fn set_loaded(&mut self) {
        self.is_loaded = true;
        self.times_ns.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }

    /// Sets the bounds of rows that were not read.
    pub(super) fn set_summary(&mut self, [least, most, busiest, gap_ns]: [u64; 4], mean_bytes: f64) {
        (self.least_bytes, self.most_bytes, self.busiest, self.gap_ns) = (least, most, busiest, gap_ns);
        self.mean_bytes = mean_bytes;
    }

    /// Returns each row in the form of the file that agents read.
    pub fn encoded(&self) -> impl Iterator<Item = [u8; TRACE_ROW_LEN]> + '_ {
        self.times_ns.iter().zip(&self.bytes).map(|(time_ns, bytes)| {
            let mut row = [0; TRACE_ROW_LEN];
            row[..8].copy_from_slice(&time_ns.to_le_bytes());
            row[8..].copy_from_slice(&bytes.to_le_bytes());
            row
        })
    }

    /// Adds a row of the file that agents read.
    pub fn push_encoded(&mut self, row: [u8; TRACE_ROW_LEN]) {
        let [a, b, c, d, e, f, g, h, bytes @ ..] = row;
        self.push(Ns::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes(bytes), 0);
    }

    /// Returns the file's name in the study.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the flow whose rows they are; `None` if they are all.
    pub fn flow(&self) -> Option<&str> {
        self.flow.as_deref()
    }

    /// Returns the hash of the file, hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// True if its rows are known, and not only what a record says of them.
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Returns the line and the size of the first row that is shorter than a header.
    pub fn short(&self) -> Option<(u64, u32)> {
        self.short
    }

    /// Returns the time of the first row that was not kept, ns; `None` if all were.
    pub(super) fn cut_ns(&self) -> Option<Ns> {
        self.cut_ns
    }

    /// Returns the first flows of the file.
    pub fn flows(&self) -> &[String] {
        &self.flows
    }

    /// Returns the times of the rows, ns from the first row of the file.
    pub fn times_ns(&self) -> &[Ns] {
        &self.times_ns
    }

    #[inline]
    pub(super) fn time_ns(&self, row: usize) -> Option<Ns> {
        self.times_ns.get(row).copied()
    }

    #[inline]
    pub(super) fn bytes(&self, row: usize) -> Option<u64> {
        self.bytes.get(row).map(|bytes| u64::from(*bytes))
    }

    /// Returns the smallest size, bytes.
    pub fn least_bytes(&self) -> u64 {
        self.least_bytes
    }

    /// Returns the largest size, bytes.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// Returns the mean size, bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.mean_bytes
    }

    /// Returns the most rows within a second.
    pub(super) fn busiest(&self) -> u64 {
        self.busiest
    }

    /// Returns the longest time between two rows, ns.
    pub(super) fn gap_ns(&self) -> Ns {
        self.gap_ns
    }
}
