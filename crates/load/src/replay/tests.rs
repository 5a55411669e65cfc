use super::*;
use crate::outcome::merge;
use crate::rows::{FixedRow, RowPlan, RowSection};
use crate::seal::seal;
use crate::simulation;
use pubmark_model::header::{END, SEALED_LEN, pattern};
use pubmark_model::options::Options;
use pubmark_model::protocol::{FlowResult, PackedHistogram};
use pubmark_model::units::{MILLISECOND, SECOND};

const START: Ns = 1_000_000_000;
const FROM: Ns = START + SECOND;
/// Latency of a message that is due, ready and sent at the same instant.
const WAY: Ns = 100_000;

fn workload(more: &[(&str, &str)]) -> Workload {
    let all = [("pattern", "pairs"), ("rate", "1000"), ("payload", "64"), ("warmup", "1s"), ("duration", "1s")];
    Workload::of(all.iter().chain(more).copied()).unwrap()
}

fn client(role: Role, hears_count: u32) -> Client {
    Client { role, id: 0, flow: 0, bind: None, connect: Vec::new(), answers: None, hears_first: 0, hears_count }
}

/// A publisher, a subscriber that receives from it, and the file of their rows.
struct Script {
    workload: Workload,
    clients: Vec<Client>,
    file: RowFile,
}

impl Script {
    fn new(more: &[(&str, &str)]) -> Script {
        let workload = workload(more);
        let clients = match workload.pattern.round_trip() {
            true => vec![client(Role::Requester, 0)],
            false => vec![client(Role::Publisher, 0), client(Role::Subscriber, workload.publishers)],
        };
        let plan = RowPlan::of(&workload, &clients).unwrap();
        let file = RowFile::create(tempfile::tempfile().unwrap(), plan, &workload, &clients).unwrap();
        Script { workload, clients, file }
    }

    fn replay(&self) -> Replay<'_> {
        let window = Window::new(&self.workload, START);
        Replay {
            workload: &self.workload,
            window,
            file: &self.file,
            killed_ns: None,
            waited_ns: 5_000,
            spin_cores: 0.0,
        }
    }

    fn sent(&self, rows: &[SentRow]) -> Result<PlayedPublisher, RowError> {
        let sections = &self.file.plan.clients[0];
        self.file.write(sections.sent, rows.iter().copied()).unwrap();
        self.replay().publisher(0, sections, rows.len() as u64)
    }

    /// Returns the result of the whole run.
    fn flow<R: FixedRow + Copy>(&self, sent: &[SentRow], received: &[R]) -> FlowResult {
        let publisher = self.sent(sent).unwrap();
        let totals = Totals::new(&[publisher.total()]);
        let receiver = self.clients.len() - 1;
        let sections = &self.file.plan.clients[receiver];
        self.file.write(sections.received, received.iter().copied()).unwrap();
        let facts = ClientFacts { received_rows: received.len() as u64, has_heard: true, ..ClientFacts::default() };
        let replay = self.replay();
        let mut sends = Some(publisher);
        let outcomes =
            self.clients.iter().zip(&self.file.plan.clients).enumerate().map(|(place, (client, sections))| {
                let facts = if place == receiver { facts } else { ClientFacts::default() };
                replay.outcome(client, sections, sends.take(), &facts, &totals).unwrap()
            });
        merge(&self.workload, outcomes.collect()).flows.remove(0)
    }
}

/// Returns the rows of all due messages, sent in time.
fn all_sent(script: &Script) -> Vec<SentRow> {
    let mut rows = Vec::new();
    let due = script.file.plan.clients[0].due;
    let row = |_, due_ns: Ns| {
        let due_ns = START + due_ns;
        rows.push(SentRow { due_ns, ready_ns: due_ns, sent_ns: due_ns, count: 1 });
        Ok(())
    };
    script.file.each(due, due.rows, row).unwrap();
    rows
}

fn head(header: Header, has_checksum: bool) -> [u8; SEALED_LEN] {
    let mut message = pattern(64);
    assert!(header.write(&mut message));
    if has_checksum {
        seal(&mut message);
    }
    message[..SEALED_LEN].try_into().unwrap()
}

/// Returns the arrival of a message that was sent in time.
fn arrival(sequence: u32, due_ns: Ns, arrived_ns: Ns) -> ArrivalRow {
    let (sent_ns, free_ns) = (Some(due_ns), Some(due_ns));
    let header = Header { intended_ns: due_ns, publisher: 0, sequence, sent_ns, free_ns };
    ArrivalRow { arrived_ns, asked_ns: arrived_ns - WAY, head: head(header, false), flags: WAS_IDLE }
}

fn arrivals(sent: &[SentRow]) -> Vec<ArrivalRow> {
    let rows = sent.iter().enumerate();
    rows.map(|(sequence, row)| arrival(sequence as u32, row.due_ns, row.sent_ns + WAY)).collect()
}

#[test]
fn lost_doubled_reordered_and_damaged_messages_are_counted_exactly() {
    let script = Script::new(&[("verify", "full")]);
    let sent = all_sent(&script);
    let mut received = arrivals(&sent);
    assert_eq!(received.len(), 2_000);
    // Of the window: 1,100 and 1,101 are lost, 1,200 arrives twice, 1,301 overtakes 1,300, 1,400 has another
    // body, 1,500 another length; and one message is of a publisher without subscribers.
    let late_ns = received[1_301].arrived_ns;
    received[1_300] = arrival(1_301, sent[1_301].due_ns, late_ns);
    received[1_301] = arrival(1_300, sent[1_300].due_ns, late_ns + 1);
    received[1_400].flags |= BODY_DIFFERS;
    received[1_500].flags |= LENGTH_DIFFERS;
    let mut foreign = received[1_600];
    foreign.head[8] = 9;
    received.insert(1_601, foreign);
    let twice = received[1_200];
    received.insert(1_201, ArrivalRow { arrived_ns: twice.arrived_ns + 1, ..twice });
    received.drain(1_100..1_102);
    let flow = script.flow(&sent, &received);
    let ledger = flow.ledger;
    assert_eq!((ledger.expected, ledger.delivered), (1_000, 997), "1,100, 1,101 and 1,500 did not come");
    assert_eq!((ledger.duplicated, ledger.reordered), (1, 1));
    assert_eq!((ledger.corrupted, ledger.unidentified, ledger.negative), (3, 2, 0));
    assert_eq!(
        flow.histograms.latency.as_ref().unwrap().read(PackedHistogram::DIGITS).unwrap().count(),
        996,
        "one has another body"
    );
    // Messages that do not follow their predecessor: the first, 1,102, 1,301, 1,300, 1,302,
    // 1,401 and 1,501.
    assert_eq!(flow.jitter_pairs, 996 - 7);
    assert_eq!(flow.publishers[0].sent, 2_000);
}

#[test]
fn times_are_those_of_the_rows() {
    let script = Script::new(&[]);
    let mut sent = all_sent(&script);
    // A wake-up that is late by 300 us: it is generator delay, and so is the delay that it
    // causes.
    sent[1_500].sent_ns += 300_000;
    // The system made the publisher wait 200 us before it could send.
    (sent[1_700].ready_ns, sent[1_700].sent_ns) = (sent[1_700].due_ns + 200_000, sent[1_700].due_ns + 200_000);
    let mut received = arrivals(&sent);
    for at in [1_500, 1_700] {
        let SentRow { due_ns, ready_ns, sent_ns, .. } = sent[at];
        let (sent_ns, free_ns) = (Some(sent_ns), Some(ready_ns));
        let header = Header { intended_ns: due_ns, publisher: 0, sequence: at as u32, sent_ns, free_ns };
        received[at].head = head(header, false);
    }
    // 40 us later than the message before it.
    received[1_800].arrived_ns += 40_000;
    let flow = script.flow(&sent, &received);
    let read = |packed: &Option<PackedHistogram>| packed.as_ref().unwrap().read(PackedHistogram::DIGITS).unwrap();
    let near = |value: u64, wanted: u64| value.abs_diff(wanted) <= wanted / 500;
    let latency = read(&flow.histograms.latency);
    assert!(near(latency.value_at(0.5), WAY) && near(latency.max(), WAY + 200_000), "{}", latency.max());
    assert!(near(read(&flow.histograms.intended_latency).max(), WAY + 300_000));
    assert!(near(read(&flow.histograms.service_latency).max(), WAY + 40_000));
    assert!(near(read(&flow.histograms.own_lag).max(), 300_000));
    assert!(near(read(&flow.histograms.send_lag).max(), 300_000));
    assert_eq!((flow.jitter_sum_ns, flow.jitter_pairs), (2.0 * (200_000.0 + 40_000.0), 999));
    assert_eq!(flow.arrived, 1_000);
}

#[test]
fn a_run_length_is_as_many_messages_one_by_one() {
    let script = Script::new(&[("rate", "max"), ("pattern", "pipeline")]);
    let at = |number: u64| FROM + number * MILLISECOND;
    let sent: Vec<SentRow> =
        (0..10).map(|n| SentRow { due_ns: at(n), ready_ns: at(n), sent_ns: at(n), count: 64 }).collect();
    let run = |n: u64, first: u32, count| RunRow {
        arrived_ns: at(n) + WAY,
        due_ns: at(n),
        publisher: 0,
        sequence: 64 * n as u32 + first,
        count,
        flags: 0,
    };
    let received = [run(0, 0, 64), run(1, 0, 10), run(1, 12, 52), run(1, 12, 1), run(2, 0, 64)];
    let flow = script.flow(&sent, &received);
    assert_eq!((flow.publishers[0].offered, flow.publishers[0].window_end), (640, 640));
    assert_eq!((flow.arrived, flow.ledger.duplicated), (64 + 62 + 64, 1));
    assert_eq!(flow.seen.len(), 1);
    assert!(flow.histograms.latency.is_none());
}

#[test]
fn a_requester_has_both_sides() {
    let script = Script::new(&[("pattern", "request-reply"), ("rate", "max")]);
    let at = |number: u64| FROM + number * MILLISECOND;
    let sent: Vec<SentRow> =
        (0..100).map(|n| SentRow { due_ns: at(n), ready_ns: at(n), sent_ns: at(n), count: 1 }).collect();
    let received: Vec<ArrivalRow> = (0..100).map(|n| arrival(n as u32, at(n), at(n) + WAY)).collect();
    let flow = script.flow(&sent, &received);
    assert_eq!((flow.ledger.expected, flow.ledger.delivered, flow.arrived), (100, 100, 100));
    assert_eq!(flow.histograms.latency.as_ref().unwrap().read(PackedHistogram::DIGITS).unwrap().count(), 100);
    assert!(flow.histograms.receive_lag.is_none() && flow.histograms.own_lag.is_none());
}

/// The mock uses the same state machines: its result for a run without faults is equal to the result of
/// rows of the same run.
#[test]
fn rows_of_a_run_say_what_the_machines_said_while_it_ran() {
    let script = Script::new(&[("rate", "500"), ("arrival", "poisson")]);
    let sent = all_sent(&script);
    let from_rows = script.flow(&sent, &arrivals(&sent));
    let mut options = Options::new();
    options.insert("delay".into(), "100us".into());
    let played = merge(&script.workload, simulation::run(&script.workload, &script.clients, &options, START));
    let played = &played.flows[0];
    assert_eq!(from_rows.ledger, played.ledger);
    assert_eq!(from_rows.publishers, played.publishers);
    assert_eq!((from_rows.arrived, from_rows.jitter_pairs), (played.arrived, played.jitter_pairs));
    assert_eq!(from_rows.histograms.latency, played.histograms.latency);
    assert_eq!(from_rows.series, played.series);
    assert_eq!(from_rows.stalls, played.stalls);
}

#[test]
fn a_header_that_its_checksum_does_not_fit_names_no_message() {
    let mut script = Script::new(&[("verify", "full")]);
    script.workload.header_checksum = true;
    let sent = all_sent(&script);
    let mut received: Vec<ArrivalRow> = arrivals(&sent);
    for (sequence, row) in received.iter_mut().enumerate() {
        let (due_ns, sequence) = (sent[sequence].due_ns, sequence as u32);
        let (sent_ns, free_ns) = (Some(due_ns), Some(due_ns));
        row.head = head(Header { intended_ns: due_ns, publisher: 0, sequence, sent_ns, free_ns }, true);
    }
    received[1_500].head[20] ^= 1;
    let ledger = script.flow(&sent, &received).ledger;
    assert_eq!((ledger.delivered, ledger.corrupted, ledger.unidentified), (999, 1, 1));
}

#[test]
fn rows_that_contradict_the_schedule_or_each_other_are_refused_by_name() {
    let script = Script::new(&[]);
    let sent = all_sent(&script);
    let refused = |change: &dyn Fn(&mut Vec<SentRow>)| {
        let mut rows = sent.clone();
        change(&mut rows);
        script.sent(&rows).err()
    };
    assert_eq!(refused(&|_| {}), None);
    let due_ns = START + 5 * MILLISECOND;
    assert_eq!(
        refused(&|rows| rows[5].due_ns += 1),
        Some(RowError::Due { row: 5, due_ns: due_ns + 1, wanted_ns: due_ns })
    );
    assert_eq!(
        refused(&|rows| {
            rows.remove(5);
        }),
        Some(RowError::Due { row: 5, due_ns: due_ns + MILLISECOND, wanted_ns: due_ns })
    );
    let ready = RowError::Ready { row: 5, due_ns, ready_ns: due_ns + 1, sent_ns: due_ns };
    assert_eq!(refused(&|rows| rows[5].ready_ns += 1), Some(ready));
    assert_eq!(refused(&|rows| rows[5].sent_ns -= 1), Some(RowError::NotToSend { row: 5, sent_ns: due_ns - 1 }));
    assert_eq!(refused(&|rows| rows[5].count = 2), Some(RowError::Count { row: 5, count: 2, most: 1 }));
    assert_eq!(refused(&|rows| rows[5].count = 0), Some(RowError::Count { row: 5, count: 0, most: 1 }));
    let sections = &script.file.plan.clients[0];
    let most = sections.sent.rows;
    let beyond = script.replay().publisher(0, sections, most + 1).err();
    assert_eq!(beyond, Some(RowError::Beyond { count: most + 1, rows: most }));

    let receiver = (&script.clients[1], &script.file.plan.clients[1]);
    let mut rows = arrivals(&sent);
    rows.swap(7, 8);
    script.file.write(receiver.1.received, rows.iter().copied()).unwrap();
    let (at_ns, before_ns) = (rows[8].arrived_ns, rows[7].arrived_ns);
    let backwards = script.replay().subscriber(receiver.0, receiver.1, 2_000).err();
    assert_eq!(backwards, Some(RowError::Backwards { row: 8, at_ns, before_ns }));
}

#[test]
fn a_file_that_was_cut_off_is_refused_by_the_row_that_is_missing() {
    let workload = workload(&[]);
    let clients = vec![client(Role::Publisher, 0)];
    let plan = RowPlan::of(&workload, &clients).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let rows = RowFile::create(file.reopen().unwrap(), plan, &workload, &clients).unwrap();
    let script = Script { workload, clients, file: rows };
    let sent = all_sent(&script);
    let sections = script.file.plan.clients[0];
    file.as_file().set_len(sections.sent.offset + 10 * SentRow::WIDTH as u64 + 5).unwrap();
    let refused = script.replay().publisher(0, &sections, sent.len() as u64).err();
    assert!(matches!(refused, Some(RowError::Missing { row: 0, .. })), "{refused:?}");
}

#[test]
fn ticks_that_are_far_apart_have_a_pause_between_them() {
    let script = Script::new(&[]);
    let ticks = [0, 50, 100, 400, 450].map(|at| FROM + at * MILLISECOND);
    script.file.write(script.file.plan.ticks, ticks.into_iter()).unwrap();
    let pauses = script.replay().pauses(5).unwrap();
    let longest = (pauses.longest_ns / MILLISECOND, pauses.longest_at_ns / MILLISECOND);
    assert_eq!((pauses.count, longest), (1, (250, 100)));
    script.file.write(script.file.plan.ticks, [FROM + 1, FROM].into_iter()).unwrap();
    assert_eq!(script.replay().pauses(2), Err(RowError::Backwards { row: 1, at_ns: FROM, before_ns: FROM + 1 }));
}

#[test]
fn more_rows_than_there_is_memory_for_are_refused_with_the_number() {
    let clients = [client(Role::Publisher, 0), client(Role::Subscriber, 1)];
    let plan = |more: &[(&str, &str)]| RowPlan::of(&workload(more), &clients);
    // For each message: a due time (8), a send (32) and an arrival with a quarter to spare
    // (70).
    let bytes = plan(&[("rate", "20000"), ("duration", "9s")]).unwrap().bytes;
    assert!((200_000 * 110..200_000 * 115).contains(&bytes), "{bytes}");
    let refused = plan(&[("rate", "1000000"), ("duration", "9s")]).unwrap_err();
    assert_eq!(refused.bytes >> 20, 1_049);
    assert!(refused.to_string().contains("1049 MiB") && refused.to_string().contains("512 MiB"), "{refused}");
    // If no latency is measured, a row holds many messages.
    assert!(plan(&[("rate", "max"), ("pattern", "pipeline"), ("duration", "30s")]).is_ok());
}

#[test]
fn a_row_is_written_as_it_is_read() {
    let section = RowSection { offset: 4_096, rows: 3 };
    let file = tempfile::tempfile().unwrap();
    let rows = RowFile::create(file, RowPlan { bytes: 8_192, ..RowPlan::default() }, &workload(&[]), &[]).unwrap();
    let run = RunRow { arrived_ns: 1, due_ns: u64::MAX, publisher: 2, sequence: END, count: 4, flags: 5 };
    rows.write(section, [run; 3].into_iter()).unwrap();
    let mut count = 0;
    let each = rows.each(section, 3, |number, row: RunRow| {
        count = number + 1;
        assert_eq!(row, run);
        Ok(())
    });
    assert_eq!((each, count), (Ok(()), 3));
}
