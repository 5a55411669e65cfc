//! Columns of the tables.

use crate::analysis::{CellResult, Status};
use crate::axes::NAME_CHARS;
use crate::document::{Entry, Mark};
use crate::figures::Sign;
use crate::points::{Point, headline};
use crate::ranking::{Distance, Placing, Ranked};
use crate::text;
use crate::words::{CellVerdict, UNRELIABLE};
use pubmark_model::figure::Figure;

/// Content of a column.
pub(crate) enum Show {
    /// The system's name.
    System,
    /// Nanoseconds.
    Time(Figure),
    /// Half of it, where the pattern is request-reply.
    HalfTime(Figure),
    /// Nanoseconds, in tables where the two latencies tell different stories.
    Beside(Figure),
    /// The same, a count.
    CountBeside(Figure),
    /// A count or a rate.
    Count(Figure),
    /// Rate of all publishers of a cell together, in tables of cells with several publishers, where
    /// `rate` is that of each.
    Offered,
    /// Counts of messages, exact: in tables of cells where delivery matters first, and there at
    /// every width.
    Delivery(Figure),
    /// A share.
    Percent(Figure),
    /// Bytes a second as MB/s.
    Megabytes(Figure),
    /// A bare number.
    Number(Figure),
    /// Bytes.
    Bytes(Figure),
    /// CPU time for a message, its best marked.
    Thrift,
    /// Runs, those that count first.
    Runs,
    /// Rank and validity.
    Verdict,
}

/// A column of a table.
pub(crate) struct Spec {
    /// Its heading.
    pub name: &'static str,
    /// Content of the column.
    pub show: Show,
    /// 0 stays whatever the width; of the others the greatest goes first.
    pub expendable: u8,
}

const fn spec(name: &'static str, show: Show, expendable: u8) -> Spec {
    Spec { name, show, expendable }
}

/// The name of the column that marks who uses least.
pub(crate) const THRIFT: &str = "CPU/msg";
/// The name of the column that shows half of a round trip.
pub(crate) const HALF: &str = "½ p50";

/// The name of the column that ranks systems at given rates.
pub(crate) const MEDIAN: &str = "p50";
/// The name of the column that ranks systems where there is no rate.
pub(crate) const RATE: &str = "msg/s";

/// The name of the column with the messages that were acknowledged and lost.
pub(crate) const ACKED_LOST: &str = "acked lost";

/// The name of the column with the messages that the server refused.
pub(crate) const REFUSED: &str = "refused";

/// The name of the column with the latency from actual send time.
pub(crate) const SERVICE: &str = "service p99";

/// Ratio and difference, ns, from which two latencies of a cell are both shown.
const APART: (f64, f64) = (2.0, 1e6);

/// True if a cell needs both latencies side by side: it has faults, or they differ much.
pub(crate) fn tells_two_stories(result: &CellResult) -> bool {
    let figure = |column| result.figures.get(column).map(|estimate| estimate.value);
    let pair = figure(Figure::LATENCY_P99).zip(figure(Figure::SERVICE_P99));
    let apart = |(latency, service): (f64, f64)| latency > APART.0 * service && latency > service + APART.1;
    !result.cell.faults.is_empty() || result.cell.link.is_some() || pair.is_some_and(apart)
}

/// Columns right after the system if delivery matters more than latency.
const DELIVERY: &[Spec] = &[
    spec("acked", Show::Delivery(Figure::ACKED), 0),
    spec(REFUSED, Show::Delivery(Figure::REFUSED), 0),
    spec(ACKED_LOST, Show::Delivery(Figure::ACKED_LOST), 0),
    spec("lost", Show::Delivery(Figure::LOST), 0),
    spec("duplicated", Show::Delivery(Figure::DUPLICATED), 0),
];

/// The columns of a table of these cells, in their order.
pub(crate) fn columns<'a>(specs: &'a [Spec], shown: &[&CellResult]) -> Vec<&'a Spec> {
    let two_stories = shown.iter().any(|result| tells_two_stories(result));
    let has_several = shown.iter().any(|result| result.cell.workload.publishers > 1);
    let kept = specs.iter().filter(|spec| match spec.show {
        Show::Offered => has_several,
        _ => two_stories || !spec.show.is_second_story(),
    });
    let mut columns: Vec<&Spec> = kept.collect();
    let refuses =
        |result: &&CellResult| result.figures.get(Figure::REFUSED).is_some_and(|estimate| estimate.value > 0.0);
    let has_refused = shown.iter().any(refuses);
    if has_refused || shown.iter().any(|result| result.cell.delivery_first()) {
        let behind_system = columns.iter().position(|spec| matches!(spec.show, Show::System)).map_or(0, |at| at + 1);
        let is_known = |column| shown.iter().any(|result| result.figures.get(column).is_some());
        let delivery = DELIVERY.iter().filter(|spec| match spec.show {
            Show::Delivery(Figure::REFUSED) => has_refused,
            Show::Delivery(column) => is_known(column),
            _ => true,
        });
        columns.splice(behind_system..behind_system, delivery);
    }
    columns
}

/// Returns how early a column is dropped if there is too little room. If delivery comes first, the
/// other figures are dropped before it, and the throughput before the share that belongs to it.
pub(crate) fn expendable(spec: &Spec, columns: &[&Spec]) -> u8 {
    let delivery_first = columns.iter().any(|spec| matches!(spec.show, Show::Delivery(_)));
    // At a given rate it follows from the share that was delivered.
    let has_rate = columns.iter().any(|spec| spec.name == MEDIAN && spec.expendable == 0);
    match (spec.expendable, &spec.show) {
        (0, Show::System | Show::Verdict | Show::Delivery(_)) => 0,
        (0, Show::Offered) => LAST,
        (0, Show::Count(_)) if delivery_first => LAST + 1,
        (0, _) if delivery_first => LAST,
        (0, Show::Count(_)) if has_rate => LAST,
        (0, _) => 0,
        (more, _) => more + LAST,
    }
}

/// A column that goes only after the intervals.
pub(crate) const LAST: u8 = 1;

/// The name of the column with the bytes that interfaces carried for a message.
const ON_WIRE: &str = "wire/msg";
/// The name of the column with the bytes that the server wrote to storage.
const WRITTEN: &str = "written/msg";
/// The name of the column with the time until all had heard each other.
const MET: &str = "discovery";

/// The name of the column with the load of all publishers together.
pub(crate) const OFFERED: &str = "offered/s";

/// Columns for cells with a given rate.
pub(crate) const LATENCY: &[Spec] = &[
    spec("system", Show::System, 0),
    spec(MEDIAN, Show::Time(Figure::LATENCY_P50), 0),
    spec(HALF, Show::HalfTime(Figure::LATENCY_P50), 1),
    spec("p99", Show::Time(Figure::LATENCY_P99), 0),
    spec(SERVICE, Show::Beside(Figure::SERVICE_P99), 1),
    spec("late", Show::CountBeside(Figure::LATE), 1),
    spec("p99.9", Show::Time(Figure::LATENCY_P999), 4),
    spec("max", Show::Time(Figure::LATENCY_MAX), 6),
    spec("× floor", Show::Number(Figure::FLOOR_LATENCY), 2),
    spec(OFFERED, Show::Offered, 0),
    spec("msg/s", Show::Count(Figure::DELIVERED), 0),
    spec("delivered", Show::Percent(Figure::DELIVERED_RATIO), 0),
    spec("MB/s", Show::Megabytes(Figure::DELIVERED_BYTES), 9),
    spec(THRIFT, Show::Thrift, 3),
    spec("server cores", Show::Number(Figure::SERVER_CPU), 1),
    spec("server memory", Show::Bytes(Figure::SERVER_MEMORY), 1),
    spec(WRITTEN, Show::Bytes(Figure::SERVER_WRITTEN_PER_MESSAGE), 11),
    spec("CPU cores", Show::Number(Figure::CPU_CORES), 5),
    spec("memory", Show::Bytes(Figure::MEMORY_MAX), 7),
    spec("connect p99", Show::Time(Figure::CONNECT_P99), 9),
    spec(ON_WIRE, Show::Bytes(Figure::WIRE_BYTES), 11),
    spec(MET, Show::Time(Figure::DISCOVERY), 12),
    spec("jitter", Show::Time(Figure::JITTER), 8),
    spec("generator delay p99", Show::Time(Figure::OWN_LAG_P99), 10),
    spec("runs", Show::Runs, 13),
    spec("verdict", Show::Verdict, 0),
];

/// Columns for cells with `rate = "max"`.
pub(crate) const THROUGHPUT: &[Spec] = &[
    spec("system", Show::System, 0),
    spec(RATE, Show::Count(Figure::DELIVERED), 0),
    spec("delivered", Show::Percent(Figure::DELIVERED_RATIO), 0),
    spec("MB/s", Show::Megabytes(Figure::DELIVERED_BYTES), 1),
    spec("× floor", Show::Number(Figure::FLOOR_DELIVERED), 2),
    spec("p50", Show::Time(Figure::LATENCY_P50), 4),
    spec(HALF, Show::HalfTime(Figure::LATENCY_P50), 5),
    spec(THRIFT, Show::Thrift, 3),
    spec("server cores", Show::Number(Figure::SERVER_CPU), 1),
    spec("server memory", Show::Bytes(Figure::SERVER_MEMORY), 1),
    spec(WRITTEN, Show::Bytes(Figure::SERVER_WRITTEN_PER_MESSAGE), 10),
    spec("CPU cores", Show::Number(Figure::CPU_CORES), 6),
    spec("memory", Show::Bytes(Figure::MEMORY_MAX), 7),
    spec("switches/msg", Show::Number(Figure::SWITCHES), 9),
    spec("sent/s", Show::Count(Figure::SENT), 8),
    spec(ON_WIRE, Show::Bytes(Figure::WIRE_BYTES), 10),
    spec("runs", Show::Runs, 11),
    spec("verdict", Show::Verdict, 0),
];

/// The name of the column with the time of a message.
pub(crate) const MESSAGE_TIME: &str = "a message";
/// The name of the column with what of it is the binding.
pub(crate) const BINDING: &str = "binding";

/// Columns that tell a binding from its language.
pub(crate) const LANGUAGES: &[Spec] = &[
    spec("system", Show::System, 0),
    spec(MESSAGE_TIME, Show::Time(Figure::MESSAGE_TIME), 0),
    spec("language", Show::Time(Figure::LANGUAGE_FLOOR), 1),
    spec(BINDING, Show::Time(Figure::BINDING), 1),
    spec("× baseline", Show::Number(Figure::OVER_BASELINE), 1),
    spec(THRIFT, Show::Thrift, 3),
    spec("paused", Show::Percent(Figure::RUNTIME_PAUSED), 4),
    spec("longest pause", Show::Time(Figure::RUNTIME_PAUSE_MAX), 5),
    spec("allocated/msg", Show::Bytes(Figure::ALLOCATED), 6),
    spec("memory", Show::Bytes(Figure::MEMORY_OWN), 2),
    spec(ON_WIRE, Show::Bytes(Figure::WIRE_BYTES), 7),
    spec(MET, Show::Time(Figure::DISCOVERY), 8),
    spec("until steady", Show::Time(Figure::STEADY_AFTER), 9),
    spec("runs", Show::Runs, 10),
    spec("verdict", Show::Verdict, 0),
];

impl Show {
    /// True if it contains text and not numbers.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Show::System | Show::Verdict)
    }

    /// True if it is omitted unless a cell needs both latencies.
    pub(crate) fn is_second_story(&self) -> bool {
        matches!(self, Show::Beside(_) | Show::CountBeside(_))
    }

    /// Returns what stands before a figure: that it is unreliable, and that it is a bound.
    fn signs(&self, result: &CellResult, column: Figure) -> String {
        let is_spoiled = !result.figures.may_be_quoted(column)
            && match result.status {
                Status::Partly => true,
                // Counts of messages are facts of the runs, even if other figures are unreliable.
                Status::Invalid => !matches!(self, Show::Delivery(_)),
                _ => false,
            };
        let sign = match result.figures.sign(column) {
            Sign::Equal => "",
            Sign::AtLeast => AT_LEAST,
            Sign::AtMost => "≤ ",
        };
        format!("{}{sign}", if is_spoiled { NOT_QUOTED } else { "" })
    }

    /// Returns the entry of a cell.
    pub(crate) fn entry(&self, result: &CellResult, point: &Point) -> Entry {
        let figure = |column: Figure, text: &dyn Fn(f64) -> String| {
            let estimate = result.figures.get(column);
            let clock = result.figures.clock_bound(column);
            let clock = clock.map_or_else(String::new, |bound| format!(" ± {}{CLOCK}", text(bound)));
            estimate.map_or_else(Entry::none, |estimate| Entry {
                text: format!("{}{}{clock}", self.signs(result, column), text(estimate.value)),
                spread: text::spread(estimate),
            })
        };
        let is_round_trip = result.cell.workload.pattern.round_trip();
        match self {
            Show::System => Entry::plain(text::clean(&result.cell.system.name, NAME_CHARS)),
            Show::Time(column) | Show::Beside(column) => figure(*column, &text::time),
            Show::HalfTime(column) if is_round_trip => figure(*column, &|ns| text::time(ns / 2.0)).without_spread(),
            Show::HalfTime(_) => Entry::none(),
            Show::Count(column) | Show::CountBeside(column) => figure(*column, &text::count).without_zero_spread(),
            Show::Offered => figure(Figure::OFFERED, &text::count).without_spread(),
            Show::Delivery(column) => figure(*column, &text::whole).without_spread(),
            Show::Percent(column) => figure(*column, &text::percent).without_zero_spread(),
            Show::Megabytes(column) => figure(*column, &|bytes| text::number(bytes / 1e6)),
            Show::Number(column) => figure(*column, &text::number),
            Show::Bytes(column) => figure(*column, &text::bytes).without_spread(),
            Show::Thrift => {
                let mut entry = figure(Figure::CPU_PER_MESSAGE, &text::time);
                entry.text.insert_str(0, thrift_mark(result, point));
                entry
            }
            Show::Runs if result.runs == 0 => Entry::none(),
            Show::Runs => Entry::plain(result.runs.to_string()),
            Show::Verdict => Entry::plain(verdict(result, point).1),
        }
    }
}

/// Stands before a figure that may not be quoted, beside others that may.
pub(crate) const NOT_QUOTED: &str = "! ";
/// Stands behind what clocks of two hosts may be wrong by.
pub(crate) const CLOCK: &str = " (clock)";
/// Stands before a figure that is a lower bound.
pub(crate) const AT_LEAST: &str = "≥ ";

fn thrift_mark(result: &CellResult, point: &Point) -> &'static str {
    let system = &result.cell.system.name;
    match point.thriftiest().map(|ranked| &ranked.placing) {
        Some(Placing::Winner(name)) if name == system => "* ",
        Some(Placing::Tie(names)) if names.contains(system) => "= ",
        _ => "",
    }
}

/// Returns the mark of a row and its verdict. If some runs do not count for the ranked figure, the
/// verdict has the number that do.
pub(crate) fn verdict(result: &CellResult, point: &Point) -> (Mark, String) {
    let word = CellVerdict::of(result, point);
    let mark = match word {
        CellVerdict::Winner => Mark::Good,
        CellVerdict::Invalid | CellVerdict::Failed => Mark::Bad,
        CellVerdict::Missing | CellVerdict::Skipped | CellVerdict::Reference | CellVerdict::LeftOut => Mark::Muted,
        CellVerdict::Tie
        | CellVerdict::Behind
        | CellVerdict::Candidate
        | CellVerdict::Unranked
        | CellVerdict::Alone
        | CellVerdict::Valid => Mark::Plain,
    };
    let mut text = word.text().to_owned();
    if let Some(factor) = distance(word, result, point).and_then(|distance| factor(word, distance)) {
        text.push_str(&format!(" {factor}"));
    }
    let counted = result.runs_for(headline(point.unthrottled).group());
    if counted == 0 && word.is_ranked() {
        text.push_str(&format!(", {UNRELIABLE}"));
    } else if counted > 0 && counted < result.runs {
        text.push_str(&format!(" ({counted}/{})", result.runs));
    }
    (mark, text)
}

/// Returns how far a cell is from the best one of its point, where that is said.
pub(crate) fn distance(word: CellVerdict, result: &CellResult, point: &Point) -> Option<Distance> {
    let is_said = matches!(word, CellVerdict::Candidate | CellVerdict::Behind);
    point.best().filter(|_| is_said)?.distance(&result.cell.system.name)
}

/// Returns a distance as tables show it: of a candidate the most, of others the least.
fn factor(word: CellVerdict, Distance { at_least, at_most }: Distance) -> Option<String> {
    match word {
        CellVerdict::Candidate => at_most.map(|most| format!("≤ {}×", text::factor_up(most))),
        _ => Some(at_least).filter(|least| *least > 1.0).map(|least| format!("≥ {}×", text::factor_down(least))),
    }
}

/// About how many more repeats would tell where several may be the best.
pub(crate) fn repeats_more(word: CellVerdict, point: &Point) -> Option<u32> {
    if word == CellVerdict::Candidate { point.best().and_then(Ranked::repeats_more) } else { None }
}
