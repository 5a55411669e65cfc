//! The rows that an agent of protocol 3 writes: one for each message that it sent or
//! received, of fixed width, in shared memory that is allocated before the window begins.
//!
//! Numbers are little-endian. Instants are ns of the agent's own clock, except those of a
//! message's header, which are stored as received.

use crate::window::clock_stride;
use pubmark_model::header::{FREE_LEN, SEALED_LEN};
use pubmark_model::protocol::{Client, Prepare, Role};
use pubmark_model::rows::{
    ARRIVAL_WIDTH, DUE_WIDTH, MOST_BYTES, RUN_WIDTH, SENT_WIDTH, arrivals, due_count, rows_at_max,
};
use pubmark_model::schedule::Schedule;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use pubmark_model::workload::{Extent, Workload};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Alignment of sections, bytes.
const PAGE: u64 = 4_096;

/// Time between two ticks of an agent, ns.
pub const TICK: Ns = 50 * MILLISECOND;

/// Number of rows that are read at once.
const ROWS_AT_ONCE: usize = 8_192;

/// One send: `count` messages that were offered together; one message if there is a
/// schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentRow {
    /// Due time; at `max`, the instant at which the messages were offered.
    pub due_ns: Ns,
    /// Ready time: when the publisher could have sent them without any generator delay.
    pub ready_ns: Ns,
    /// Instant at which the messages were offered to the library.
    pub sent_ns: Ns,
    /// Number of messages that the library accepted.
    pub count: u32,
}

/// One arrival, if latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalRow {
    /// Instant at which the message was handed over.
    pub arrived_ns: Ns,
    /// Instant at which the receiving call began.
    pub asked_ns: Ns,
    /// First bytes of the message: its header, and the header's checksum if it has one.
    pub head: [u8; SEALED_LEN],
    /// Flags set by the agent: [`BODY_DIFFERS`], [`LENGTH_DIFFERS`], [`WAS_IDLE`].
    pub flags: u32,
}

/// Messages of one publisher with consecutive sequences, if no latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Last reading of the clock before they were handed over.
    pub arrived_ns: Ns,
    /// Their intended time, as received.
    pub due_ns: Ns,
    /// Their publisher.
    pub publisher: u32,
    /// Sequence of the first message.
    pub sequence: u32,
    /// Number of messages.
    pub count: u32,
    /// Flags, as in [`ArrivalRow::flags`].
    pub flags: u32,
}

/// Flag: the body of a message differs from the common body.
pub const BODY_DIFFERS: u32 = 1;
/// Flag: a message has the wrong length.
pub const LENGTH_DIFFERS: u32 = 2;
/// Flag: no message was there at the agent's previous reading of the clock.
pub const WAS_IDLE: u32 = 4;

/// A row of fixed width in a file.
pub trait FixedRow: Sized {
    /// Width, bytes.
    const WIDTH: usize;
    /// Reads a row.
    fn read(bytes: &[u8]) -> Self;
    /// Writes the row.
    fn write(&self, bytes: &mut [u8]);
}

/// Reads the fields of a row one after another.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        let first = *first;
        self.0 = rest;
        first
    }

    fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
}

/// Writes fields one after another.
fn put(bytes: &mut [u8], fields: &[&[u8]]) {
    let mut at = 0;
    for field in fields {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
}

impl FixedRow for SentRow {
    const WIDTH: usize = SENT_WIDTH as usize;

    fn read(bytes: &[u8]) -> SentRow {
        let mut fields = Fields(bytes);
        SentRow { due_ns: fields.long(), ready_ns: fields.long(), sent_ns: fields.long(), count: fields.word() }
    }

    fn write(&self, bytes: &mut [u8]) {
        let instants = [self.due_ns, self.ready_ns, self.sent_ns].map(u64::to_le_bytes);
        put(bytes, &[&instants[0], &instants[1], &instants[2], &self.count.to_le_bytes(), &[0; 4]]);
    }
}

impl FixedRow for ArrivalRow {
    const WIDTH: usize = ARRIVAL_WIDTH as usize;

    fn read(bytes: &[u8]) -> ArrivalRow {
        let mut fields = Fields(bytes);
        let (arrived_ns, asked_ns) = (fields.long(), fields.long());
        ArrivalRow { arrived_ns, asked_ns, head: fields.take(), flags: fields.word() }
    }

    fn write(&self, bytes: &mut [u8]) {
        let instants = [self.arrived_ns, self.asked_ns].map(u64::to_le_bytes);
        put(bytes, &[&instants[0], &instants[1], &self.head, &self.flags.to_le_bytes()]);
    }
}

impl FixedRow for RunRow {
    const WIDTH: usize = RUN_WIDTH as usize;

    fn read(bytes: &[u8]) -> RunRow {
        let mut fields = Fields(bytes);
        let (arrived_ns, due_ns) = (fields.long(), fields.long());
        let mut word = || fields.word();
        RunRow { arrived_ns, due_ns, publisher: word(), sequence: word(), count: word(), flags: word() }
    }

    fn write(&self, bytes: &mut [u8]) {
        let instants = [self.arrived_ns, self.due_ns].map(u64::to_le_bytes);
        let words = [self.publisher, self.sequence, self.count, self.flags].map(u32::to_le_bytes);
        put(bytes, &[&instants[0], &instants[1], &words[0], &words[1], &words[2], &words[3]]);
    }
}

impl FixedRow for Ns {
    const WIDTH: usize = DUE_WIDTH as usize;

    fn read(bytes: &[u8]) -> Ns {
        Fields(bytes).long()
    }

    fn write(&self, bytes: &mut [u8]) {
        put(bytes, &[&self.to_le_bytes()]);
    }
}

/// A part of the file with rows of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowSection {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Number of rows that it has room for.
    pub rows: u64,
}

/// The sections of one client. A section that the client does not need has no rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientSections {
    /// Its due times, ns from the start.
    pub due: RowSection,
    /// Its sends.
    pub sent: RowSection,
    /// Its arrivals.
    pub received: RowSection,
}

/// Layout of an agent's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowPlan {
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Instants at which an otherwise idle thread was awake.
    pub ticks: RowSection,
    /// Sections by client, in the order of `prepare`.
    pub clients: Vec<ClientSections>,
}

/// The rows need more memory than an agent may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the rows of this agent's clients would take {} MiB, and {} MiB is the most: make the window shorter, the rate \
     lower, or play fewer clients",
    bytes >> 20,
    MOST_BYTES >> 20
)]
pub struct TooManyRows {
    /// Memory that the rows would take, bytes.
    pub bytes: u64,
}

impl RowPlan {
    /// Plans the rows of these clients.
    ///
    /// # Errors
    /// If they take more than [`MOST_BYTES`].
    pub fn of(workload: &Workload, clients: &[Client]) -> Result<RowPlan, TooManyRows> {
        let mut plan = RowPlan::default();
        let awake_ns = workload.warmup_ns + workload.window_ns().unwrap_or(3_600 * SECOND) + workload.drain_ns;
        plan.ticks = plan.section(Ns::WIDTH, awake_ns / TICK + 1_200);
        let arrival_width = if workload.measures_latency() { ArrivalRow::WIDTH } else { RunRow::WIDTH };
        for client in clients {
            let due = |publisher| due_count(workload, publisher);
            let (mut sends, mut hears) = (None, 0);
            match client.role {
                Role::Publisher | Role::Requester => sends = Some(due(client.id)),
                Role::Replier => {}
                Role::Subscriber => {
                    let heard = client.hears_first..client.hears_first.saturating_add(client.hears_count);
                    hears = heard.map(|publisher| due(publisher).unwrap_or_else(|| rows_at_max(workload))).sum();
                }
            }
            let mut sections = ClientSections::default();
            if let Some(count) = sends {
                sections.due = plan.section(Ns::WIDTH, count.unwrap_or(0));
                let sent = count.unwrap_or_else(|| rows_at_max(workload));
                sections.sent = plan.section(SentRow::WIDTH, sent);
                let hears_answers = client.role == Role::Requester || workload.pattern.echoed();
                hears = if hears_answers { sent } else { 0 };
            }
            sections.received = plan.section(arrival_width, arrivals(hears));
            plan.clients.push(sections);
        }
        if plan.bytes > MOST_BYTES { Err(TooManyRows { bytes: plan.bytes }) } else { Ok(plan) }
    }

    fn section(&mut self, width: usize, rows: u64) -> RowSection {
        let offset = self.bytes;
        self.bytes = (offset.saturating_add(rows.saturating_mul(width as u64))).next_multiple_of(PAGE);
        RowSection { offset, rows }
    }
}

/// The file of an agent's rows.
#[derive(Debug)]
pub struct RowFile {
    file: File,
    /// Layout of the file.
    pub plan: RowPlan,
}

impl RowFile {
    /// Sets the length of a file and writes the due times into it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(file: File, plan: RowPlan, workload: &Workload, clients: &[Client]) -> io::Result<RowFile> {
        file.set_len(plan.bytes)?;
        let rows = RowFile { file, plan };
        for (client, sections) in clients.iter().zip(&rows.plan.clients) {
            let Some(profile) = workload.rate.profile().filter(|_| client.role.sends()) else { continue };
            let mut schedule = Schedule::of(workload, profile, client.id);
            let dues = (0..sections.due.rows).map(|_| {
                let due_ns = schedule.due();
                schedule.advance();
                due_ns
            });
            rows.write(sections.due, dues)?;
        }
        Ok(rows)
    }

    /// Writes rows from the beginning of a section.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write<R: FixedRow>(&self, section: RowSection, rows: impl Iterator<Item = R>) -> io::Result<()> {
        let mut bytes = vec![0; R::WIDTH * ROWS_AT_ONCE];
        let (mut rows, mut at) = (rows.peekable(), section.offset);
        while rows.peek().is_some() {
            let mut length = 0;
            for (row, place) in rows.by_ref().take(ROWS_AT_ONCE).zip(bytes.chunks_exact_mut(R::WIDTH)) {
                row.write(place);
                length += R::WIDTH;
            }
            self.file.write_all_at(&bytes[..length], at)?;
            at += length as u64;
        }
        Ok(())
    }

    /// Reads the first `count` rows of a section, a few at a time to save memory.
    ///
    /// # Errors
    /// The first error that `row` returns, or [`RowError::Missing`] if the file has fewer rows.
    pub fn each<R: FixedRow>(
        &self,
        section: RowSection,
        count: u64,
        mut row: impl FnMut(u64, R) -> Result<(), RowError>,
    ) -> Result<(), RowError> {
        if count > section.rows {
            return Err(RowError::Beyond { count, rows: section.rows });
        }
        let mut bytes = vec![0; R::WIDTH * ROWS_AT_ONCE];
        let mut number = 0;
        while number < count {
            let most = (count - number).min(ROWS_AT_ONCE as u64) as usize;
            let bytes = &mut bytes[..most * R::WIDTH];
            let read = self.file.read_exact_at(bytes, section.offset + number * R::WIDTH as u64);
            read.map_err(|error| RowError::Missing { row: number, error: error.to_string() })?;
            for one in bytes.chunks_exact(R::WIDTH) {
                row(number, R::read(one))?;
                number += 1;
            }
        }
        Ok(())
    }
}

/// The reason why the rows of an agent are rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The agent reports more rows than there is room for.
    #[error("it says that it wrote {count} rows, and there is room for {rows}")]
    Beyond {
        /// The reported count.
        count: u64,
        /// The room, in rows.
        rows: u64,
    },
    /// The file is shorter than it was.
    #[error("row {row} cannot be read: {error}")]
    Missing {
        /// The first row that cannot be read.
        row: u64,
        /// The system's error.
        error: String,
    },
    /// A message was not due at this time.
    #[error("row {row}: a message was due at {wanted_ns} ns, and the row says {due_ns} ns")]
    Due {
        /// Number of the row.
        row: u64,
        /// Due time in the row.
        due_ns: Ns,
        /// Due time in the schedule.
        wanted_ns: Ns,
    },
    /// No message was to be sent at this time.
    #[error("row {row}: nothing was to be sent at {sent_ns} ns")]
    NotToSend {
        /// Number of the row.
        row: u64,
        /// Send time in the row.
        sent_ns: Ns,
    },
    /// The ready time is not between the due time and the send time, or rows are out of order.
    #[error("row {row}: ready at {ready_ns} ns does not lie between due ({due_ns} ns) and sent ({sent_ns} ns)")]
    Ready {
        /// Number of the row.
        row: u64,
        /// Due time.
        due_ns: Ns,
        /// Ready time.
        ready_ns: Ns,
        /// Send time.
        sent_ns: Ns,
    },
    /// The count is zero, or higher than may be sent at once.
    #[error("row {row}: {count} messages, and it is 1 to {most}")]
    Count {
        /// Number of the row.
        row: u64,
        /// Count in the row.
        count: u32,
        /// Maximum count.
        most: u32,
    },
    /// A row is earlier than the one before it.
    #[error("row {row}: {at_ns} ns is earlier than the row before it, {before_ns} ns")]
    Backwards {
        /// Number of the row.
        row: u64,
        /// Instant in the row.
        at_ns: Ns,
        /// Instant in the row before it.
        before_ns: Ns,
    },
}

/// Additional fields of `prepare` for an agent of protocol 3, compared with protocol 2: the
/// file, and numbers that the agent would otherwise have to compute.
#[derive(Debug, Serialize)]
pub struct RowOrder<'a> {
    /// Path of the file.
    pub path: String,
    /// True if each arrival has its own row ([`ArrivalRow`]); otherwise rows are
    /// [`RunRow`]s.
    pub is_timed: bool,
    /// Messages between two readings of the clock.
    pub stride: u32,
    /// Layout of the file.
    #[serde(flatten)]
    pub plan: &'a RowPlan,
    /// Time between two probes of a publisher, ns.
    pub probe_ns: Ns,
    /// Time between two end markers of a publisher, ns.
    pub marker_ns: Ns,
    /// Copies of each probe and end marker that a publisher sends.
    pub marker_copies: u32,
    /// Longest time that a publisher may wait awake before a due time, ns.
    pub margin_ns: Ns,
    /// Messages of the window that each publisher sends, if the window is not limited by
    /// time.
    pub count: Option<u64>,
}

impl<'a> RowOrder<'a> {
    /// Computes the fields for this agent.
    pub fn of(prepare: &Prepare, workload: &Workload, path: String, plan: &'a RowPlan) -> RowOrder<'a> {
        let copies = if workload.competing() { workload.subscribers } else { 1 };
        let senders = prepare.clients.iter().filter(|client| client.role.sends()).count().max(1);
        let ns = |time: std::time::Duration| time.as_nanos() as Ns;
        RowOrder {
            path,
            is_timed: workload.measures_latency(),
            stride: clock_stride(workload),
            plan,
            probe_ns: ns(crate::threads::probe_every(workload, copies)),
            marker_ns: ns(crate::threads::marker_every(workload)),
            marker_copies: copies,
            margin_ns: crate::pacing::longest_margin_ns(workload, prepare.spin_cores / senders as f64),
            count: match workload.extent {
                Extent::Count(count) => Some(count),
                Extent::TimeNs(_) => None,
            },
        }
    }
}

const _: () = assert!(FREE_LEN < SEALED_LEN && ArrivalRow::WIDTH == 16 + SEALED_LEN + 4);
