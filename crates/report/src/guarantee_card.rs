//! The guarantee card: what a system's acknowledgements are worth when something happens to it.

mod delivery;

use crate::document::{Document, Entry, Head, Mark, Note, Row, Table};
use crate::figures::against_counts;
use crate::report::Report;
use crate::text::{NONE, clean, time, whole};
use crate::{markdown, terminal};
use delivery::{DeliveryRow, DeliveryRowView};
use pubmark_files::{Links, read_text};
use pubmark_model::record::RunRecord;
use pubmark_model::setting::as_typed;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Longest reason and name that are shown, characters.
const TEXT_CHARS: usize = 200;

/// Why counts are unreliable if messages still arrived when the drain ended.
const LATE: &str = "messages still arrived when the drain ended, so those that are missing may only be late: use a longer \
    --set drain";

/// Name of the file of a card in its results folder.
pub const CARD: &str = "card.json";

/// An event of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CardEvent {
    /// Name of the part of the study that has its runs.
    pub name: &'static str,
    /// Name in the table.
    pub what: &'static str,
    /// Script of the fault, if it is one.
    pub fault: Option<&'static str>,
    /// True if subscribers take half of what is sent to them.
    #[serde(skip)]
    pub is_slow: bool,
    /// True if the messages that wait for a subscriber are bounded, as the system's file says.
    #[serde(skip)]
    pub is_bounded: bool,
}

impl CardEvent {
    const fn new(name: &'static str, what: &'static str) -> CardEvent {
        CardEvent { name, what, fault: None, is_slow: false, is_bounded: false }
    }

    const fn by(self, fault: &'static str) -> CardEvent {
        CardEvent { fault: Some(fault), ..self }
    }
}

/// The events of the card, in the order of its rows.
pub const CARD_EVENTS: [CardEvent; 8] = [
    CardEvent::new("undisturbed", "undisturbed"),
    CardEvent::new("killed", "killed").by("kill server at 2s for 1s"),
    CardEvent::new("frozen", "frozen").by("stop server at 2s for 1s"),
    CardEvent::new("cut-off", "cut off").by("cut link at 2s for 1s"),
    // Messages must wait at the server, or nothing could be lost.
    CardEvent { is_slow: true, ..CardEvent::new("power-cut", "power cut") }.by("cut power of server at 2s for 1s"),
    CardEvent::new("full-disk", "full disk").by("fill disk of server at 2s for 1s"),
    CardEvent { is_slow: true, ..CardEvent::new("slow", "slow subscribers") },
    CardEvent { is_slow: true, is_bounded: true, ..CardEvent::new("full-queue", "full queue") },
];

/// An event that cannot be played.
#[derive(Clone, Debug, PartialEq)]
pub struct NotMeasured {
    /// The event.
    pub event: CardEvent,
    /// Reason.
    pub why: String,
}

/// A row of the card. Counts are those of all runs of its cell.
#[derive(Clone, Debug, Serialize)]
struct CardRow {
    #[serde(flatten)]
    event: CardEvent,
    /// Quality of service; `None` if the event was not measured at all.
    qos: Option<u64>,
    /// Reason why there are no counts.
    not_measured: Option<String>,
    /// Reason why the counts are unreliable.
    unreliable: Option<String>,
    /// Options that bound the messages that wait for a subscriber.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<String>,
    #[serde(flatten)]
    counts: Option<CardCounts>,
    /// Violations of the protocol by the server, by statement.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    violations: BTreeMap<String, u64>,
    #[serde(skip)]
    broken: Option<String>,
}

/// Counts of a row: copies of messages, except `acked` and `refused`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct CardCounts {
    /// Runs that were counted.
    runs: u64,
    /// Copies that should have arrived.
    expected: u64,
    /// Messages that the server acknowledged.
    acked: u64,
    /// Acknowledged messages that a subscriber did not receive; `None` if that is not known.
    acked_lost: Option<u64>,
    /// Messages that the server refused; they are in no other count.
    refused: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    /// Longest silence of a subscriber with the fault in it, ns; `None` without a fault, and if no silence was seen.
    outage_ns: Option<u64>,
}

/// The card as the page shows it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "GuaranteeCard"))]
pub(crate) struct CardView {
    rows: Vec<CardRowView>,
    /// Counts over all runs.
    delivery: Vec<DeliveryRowView>,
}

/// A row of it: counts of copies of messages, null where there is none.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "GuaranteeRow"))]
struct CardRowView {
    /// What happened.
    what: &'static str,
    /// Null if the event was not measured at all.
    qos: Option<u64>,
    runs: Option<u64>,
    /// Messages that the server acknowledged.
    acked: Option<u64>,
    /// Acknowledged messages that a subscriber did not receive.
    acked_lost: Option<u64>,
    /// Messages that the server refused.
    refused: Option<u64>,
    lost: Option<u64>,
    duplicated: Option<u64>,
    reordered: Option<u64>,
    /// Longest silence of a subscriber with the fault in it, ns.
    outage_ns: Option<u64>,
    /// What was lost or broken, why there are no counts, and why they are unreliable.
    remarks: Vec<String>,
}

/// The card of a system.
#[derive(Clone, Debug)]
pub struct GuaranteeCard {
    system: String,
    title: String,
    rows: Vec<CardRow>,
    delivery: Vec<DeliveryRow>,
}

impl GuaranteeCard {
    /// Returns the card that a report's runs say, with the events that were not played.
    pub fn of(report: &Report, refused: Vec<NotMeasured>) -> GuaranteeCard {
        let first = report.cells().first();
        let system = first.and_then(|result| result.cell.axes.get("system")?.as_str().map(str::to_owned));
        let system = system.unwrap_or_default();
        let mut rows = Vec::new();
        for event in CARD_EVENTS {
            let is_own = |index: &usize| is_of(report, event, *index);
            let own: Vec<usize> = (0..report.cells().len()).filter(is_own).collect();
            let not_played = || format!("no run here has it: `pubmark card {system}` measures it");
            let why = refused.iter().find(|row| row.event == event).map(|row| row.why.clone());
            if let Some(why) = why.or_else(|| own.is_empty().then(not_played)) {
                let not_measured = Some(clean(&why, TEXT_CHARS));
                rows.push(CardRow { not_measured, ..CardRow::new(event, None) });
                continue;
            }
            rows.extend(own.into_iter().map(|index| CardRow::of(report, event, index)));
        }
        let is_counted = |index: usize| CARD_EVENTS.iter().any(|event| is_of(report, *event, index));
        let runs = report.runs().iter().zip(report.cells_of_runs());
        let counted = runs.filter(|(run, cell)| run.error.is_none() && is_counted(**cell)).map(|(run, _)| run);
        let delivery = delivery::rows(report, counted);
        GuaranteeCard { system, title: clean(&report.study().title, TEXT_CHARS), rows, delivery }
    }

    /// Returns the card of a results folder; `None` if it was not measured as one.
    pub(crate) fn of_folder(report: &Report) -> Option<GuaranteeCard> {
        let text = read_text(&report.folder().join(CARD), Links::Refuse).ok()?;
        let card: Value = serde_json::from_str(&text).ok()?;
        // Counts are those of the records; only they do not have the events that could not be played.
        let not_played = |event: CardEvent| {
            let mut rows = card["rows"].as_array()?.iter();
            let row = rows.find(|row| row["name"] == event.name && row["qos"].is_null())?;
            Some(NotMeasured { event, why: row["not_measured"].as_str()?.to_owned() })
        };
        Some(GuaranteeCard::of(report, CARD_EVENTS.into_iter().filter_map(not_played).collect()))
    }

    /// Returns the card as the page shows it.
    pub(crate) fn view(&self) -> CardView {
        let row = |row: &CardRow| {
            // Without acknowledgements, none can be broken.
            let acked = row.counts.filter(|counts| counts.acked > 0);
            CardRowView {
                what: row.event.what,
                qos: row.qos,
                runs: row.counts.map(|counts| counts.runs),
                acked: acked.map(|counts| counts.acked),
                acked_lost: acked.and_then(|counts| counts.acked_lost),
                refused: row.counts.map(|counts| counts.refused),
                lost: row.counts.map(|counts| counts.lost),
                duplicated: row.counts.map(|counts| counts.duplicated),
                reordered: row.counts.map(|counts| counts.reordered),
                outage_ns: row.counts.and_then(|counts| counts.outage_ns),
                remarks: row.remarks().collect(),
            }
        };
        CardView { rows: self.rows.iter().map(row).collect(), delivery: delivery::view(&self.delivery) }
    }

    /// True if a row was measured.
    pub fn has_a_row(&self) -> bool {
        self.rows.iter().any(|row| row.counts.is_some())
    }

    /// Returns the card as JSON.
    pub fn json(&self) -> Value {
        json!({"system": self.system, "rows": self.rows, "delivery": self.delivery, "broken": self.broken()})
    }

    /// Returns the card for a terminal of this many columns.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        terminal::render(&self.document(), width, colour).trim_end().to_owned()
    }

    /// Returns the card as GitHub Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(&self.document())
    }

    /// Returns a sentence for each row in which something was lost or broken.
    fn broken(&self) -> Vec<&String> {
        self.rows.iter().filter_map(|row| row.broken.as_ref()).collect()
    }

    fn document(&self) -> Document {
        let mut closing: Vec<String> = self.broken().into_iter().cloned().collect();
        let kept = || self.rows.iter().filter_map(|row| row.counts).filter(|counts| counts.acked > 0);
        if kept().count() > 0 && kept().all(|counts| counts.acked_lost == Some(0)) {
            closing.push("No acknowledged message was lost.".into());
        }
        Document {
            title: self.title.clone(),
            question: String::new(),
            constants: String::new(),
            answers: Vec::new(),
            tables: std::iter::once(self.table()).chain(delivery::table(&self.delivery)).collect(),
            claims: None,
            closing,
        }
    }

    fn table(&self) -> Table {
        let mut heads = vec![Head::new("what happened", false, 0), Head::new("QoS", true, 0)];
        let figures = ["runs", "acknowledged", "of these lost", "refused", "lost", "twice", "out of order", "outage"];
        heads.extend(figures.map(|name| Head::new(name, true, 0)));
        let measured = self.rows.iter().filter_map(|row| Some((row, row.counts?)));
        let rows = measured.map(|(row, counts)| {
            let number = |amount: u64| Entry::plain(whole(amount as f64));
            let qos = row.qos.map_or_else(|| NONE.to_owned(), |qos| qos.to_string());
            let mut entries = vec![Entry::plain(row.event.what.to_owned()), Entry::plain(qos), number(counts.runs)];
            // Without acknowledgements, none can be broken.
            entries.extend(match counts.acked {
                0 => [Entry::none(), Entry::none()],
                acked => [number(acked), counts.acked_lost.map_or_else(Entry::none, number)],
            });
            entries.extend([counts.refused, counts.lost, counts.duplicated, counts.reordered].map(number));
            entries.push(counts.outage_ns.map_or_else(Entry::none, |ns| Entry::plain(time(ns as f64))));
            Row { entries, mark: if row.broken.is_some() { Mark::Muted } else { Mark::Plain }, bar: None }
        });
        let mut notes = vec!["outage: the longest silence of a subscriber with the fault in it".to_owned()];
        let unmeasured = self.rows.iter().filter_map(|row| Some((row, row.not_measured.as_ref()?)));
        notes.extend(unmeasured.map(|(row, why)| format!("{}: not measured: {why}", row.name())));
        notes.extend(self.rows.iter().find_map(|row| Some(format!("{}: {}", row.event.what, row.bound.as_ref()?))));
        notes.extend(self.rows.iter().filter_map(|row| Some(format!("{}: {}", row.name(), row.overflow()?))));
        notes.extend(self.rows.iter().flat_map(|row| row.violated().map(|what| format!("{}: {what}", row.name()))));
        let mut unreliable = self.rows.iter().filter_map(|row| Some((row, row.unreliable.as_ref()?)));
        if let Some((row, why)) = unreliable.next() {
            let more = match unreliable.count() {
                0 => String::new(),
                more => format!(", and so are {more} others (--json)"),
            };
            notes.push(format!("{}: unreliable{more}: {why}", row.name()));
        }
        Table {
            title: "What happened, and what became of the messages".into(),
            heads,
            groups: vec![rows.collect()],
            notes: notes.into_iter().map(Note::on_rows).collect(),
            ends_in_prose: false,
            whole: "--json",
            bars: None,
        }
    }
}

/// True if the runs of a cell are those of an event.
fn is_of(report: &Report, event: CardEvent, cell: usize) -> bool {
    report.cells()[cell].cell.axes.get("part").is_some_and(|part| part.as_str() == Some(event.name))
}

impl CardRow {
    fn new(event: CardEvent, qos: Option<u64>) -> CardRow {
        let violations = BTreeMap::new();
        let (not_measured, unreliable, bound, counts, broken) = (None, None, None, None, None);
        CardRow { event, qos, not_measured, unreliable, bound, counts, violations, broken }
    }

    fn of(report: &Report, event: CardEvent, index: usize) -> CardRow {
        let result = &report.cells()[index];
        let qos = u64::from(result.cell.workload.qos);
        let runs = report.runs().iter().zip(report.cells_of_runs()).filter(|(_, cell)| **cell == index);
        let made: Vec<&RunRecord> = runs.map(|(run, _)| run).filter(|run| run.error.is_none()).collect();
        let mut row = CardRow::new(event, Some(qos));
        if made.is_empty() {
            let why = result.error.as_deref().or(result.cell.skipped.as_deref()).unwrap_or("there was no run");
            row.not_measured = Some(clean(why, TEXT_CHARS));
            return row;
        }
        let options = result.cell.axes.iter().filter(|(name, _)| event.is_bounded && name.starts_with("options."));
        let options: Vec<String> = options.map(|(name, value)| format!("{name} = {}", as_typed(value))).collect();
        row.bound = event.is_bounded.then(|| clean(&options.join(", "), TEXT_CHARS));
        let mut against = made.iter().flat_map(|run| against_counts(run));
        let late = || made.iter().any(|run| run.was_arriving()).then(|| LATE.to_owned());
        row.unreliable = against.next().map(|finding| clean(&finding.evidence, TEXT_CHARS)).or_else(late);
        let mut counts = CardCounts::default();
        for run in made {
            for (statement, count) in &run.violations {
                let known = row.violations.entry(clean(statement, TEXT_CHARS)).or_default();
                *known = known.saturating_add(*count);
            }
            let own = &run.counts;
            counts.runs += 1;
            counts.refused = counts.refused.saturating_add(own.refused);
            counts.expected = counts.expected.saturating_add(own.expected);
            counts.acked = counts.acked.saturating_add(own.acked);
            let lost = own.acked_lost.map(|lost| lost.saturating_add(counts.acked_lost.unwrap_or(0)));
            counts.acked_lost = lost.or(counts.acked_lost);
            counts.lost = counts.lost.saturating_add(own.lost);
            counts.duplicated = counts.duplicated.saturating_add(own.duplicated);
            counts.reordered = counts.reordered.saturating_add(own.reordered);
            counts.outage_ns = counts.outage_ns.max(run.recovery.and_then(|recovery| recovery.silence_ns));
        }
        row.counts = Some(counts);
        row.broken = row.sentence(&counts);
        row
    }

    /// Says which statements of its protocol the server broke.
    fn violated(&self) -> impl Iterator<Item = String> {
        let times = |count: u64| if count == 1 { "once".to_owned() } else { format!("{count} times") };
        let broken = self.violations.iter();
        broken.map(move |(statement, count)| format!("the server broke its protocol, {}: {statement}", times(*count)))
    }

    /// Says what the server refused, or that a bound was not passed.
    fn overflow(&self) -> Option<String> {
        let counts = self.counts?;
        match (counts.refused, counts.lost) {
            (0, 0) if self.event.is_bounded => Some("nothing was lost or refused: the queue was never full".into()),
            (0, _) => None,
            (1, _) => Some("1 message was refused".into()),
            (refused, _) => Some(format!("{} messages were refused", whole(refused as f64))),
        }
    }

    /// Returns what is to be known of it beside its counts.
    fn remarks(&self) -> impl Iterator<Item = String> {
        let unreliable = self.unreliable.iter().map(|why| format!("unreliable: {why}"));
        let not_measured = self.not_measured.iter().map(|why| format!("not measured: {why}"));
        let bound = self.bound.iter().map(|options| format!("bounded by {options}"));
        let said = self.broken.iter().cloned().chain(self.overflow()).chain(bound);
        said.chain(not_measured).chain(unreliable).chain(self.violated())
    }

    /// Returns its name in a sentence.
    fn name(&self) -> String {
        self.qos.map_or_else(|| self.event.what.to_owned(), |qos| format!("{}, QoS {qos}", self.event.what))
    }

    /// Says what was lost, and what arrived twice although each message should arrive once.
    fn sentence(&self, counts: &CardCounts) -> Option<String> {
        let number = |amount: u64| whole(amount as f64);
        let were = |amount: u64| if amount == 1 { "was" } else { "were" };
        let mut said = Vec::new();
        if let Some(lost) = counts.acked_lost.filter(|lost| *lost > 0) {
            let (amount, acked) = (number(lost), number(counts.acked));
            said.push(format!("{amount} of {acked} acknowledged messages {} lost", were(lost)));
        } else if counts.lost > 0 {
            let (lost, expected) = (number(counts.lost), number(counts.expected));
            let none = if counts.acked > 0 { "none of them acknowledged" } else { "without an acknowledgement" };
            said.push(format!("{lost} of {expected} messages {} lost, {none}", were(counts.lost)));
        }
        if counts.duplicated > 0 && self.qos == Some(2) {
            said.push(format!("{} came twice, which QoS 2 rules out", number(counts.duplicated)));
        }
        (!said.is_empty()).then(|| format!("{}: {}.", self.name(), said.join("; ")))
    }
}
