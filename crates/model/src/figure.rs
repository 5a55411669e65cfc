//! The table of figures: each figure of a run has one row, with its names, its unit, its better
//! direction and the function that reads it from a record.
//!
//! Claims, questions, objectives, gates, rankings, comparisons, CSV, JSON, metrics and the page
//! look figures up here. A new figure of a single run needs a row in `figure/table.rs` and nothing
//! else.

mod name;
mod row;
mod table;

pub use name::FigureNameError;
pub use row::{Figure, FigureDescription, Scope, Unit};
pub use table::backlog;

use crate::figure_group::FigureGroup;
use crate::record::RunRecord;
use crate::times::TimeFigures;
use pubmark_stats::Better;
use row::{Percentile, Source};
use serde::{Serialize, Serializer};
use std::fmt;
use table::TABLE;

impl Figure {
    /// Returns every figure, in the order of the table.
    pub fn all() -> impl DoubleEndedIterator<Item = Figure> + Clone {
        (0..TABLE.len()).map(|index| Figure(index as u8))
    }

    /// Returns the figures that are columns of files. The others are further percentiles of times,
    /// which objectives and gates can name.
    pub fn columns() -> impl Iterator<Item = Figure> + Clone {
        Figure::all().filter(|figure| figure.is_column())
    }

    /// The figures by which every report ranks systems.
    pub const RANKED: [Figure; 12] = [
        Figure::LATENCY_P50,
        Figure::LATENCY_P99,
        Figure::LATENCY_MEAN,
        Figure::LATENCY_MAX,
        Figure::DELIVERED,
        Figure::CPU_CORES,
        Figure::CPU_PER_MESSAGE,
        Figure::JITTER,
        Figure::MEMORY_OWN,
        Figure::SERVER_CPU,
        Figure::SERVER_MEMORY,
        Figure::DELIVERED_RATIO,
    ];

    /// Returns its position in the table, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// Returns its row.
    pub fn description(self) -> &'static FigureDescription {
        &TABLE[self.index()]
    }

    /// Returns its name in files.
    pub fn key(self) -> &'static str {
        self.description().key
    }

    /// Returns the name that people type and that texts show.
    pub fn short_name(self) -> &'static str {
        self.description().short.first().copied().unwrap_or(self.key())
    }

    /// Returns its unit.
    pub fn unit(self) -> Unit {
        self.description().unit
    }

    /// Returns the group of figures that become unusable together with it.
    pub fn group(self) -> FigureGroup {
        self.description().group
    }

    /// Returns the better direction if messages are sent at given rates or, if `unthrottled`, as
    /// fast as possible; `None` if neither direction is better. Busy processors are a cost at a
    /// given rate. Unthrottled, they may be the price of more messages.
    pub fn better(self, unthrottled: bool) -> Option<Better> {
        match self.description().better? {
            _ if unthrottled && self.unit() == Unit::Cores => None,
            "higher" => Some(Better::Higher),
            _ => Some(Better::Lower),
        }
    }

    /// True if more is better.
    pub fn higher_is_better(self) -> bool {
        self.better(false) == Some(Better::Higher)
    }

    /// True if it is a column of files.
    pub fn is_column(self) -> bool {
        match self.description().source {
            Source::Time(time, percentile) => {
                time == table::LATENCY || matches!(percentile, Percentile::P50 | Percentile::P99)
            }
            Source::Number(_) | Source::Block | Source::Cells => true,
        }
    }

    /// True if it measures times that begin at a sender and end at a receiver, which may have
    /// different clocks.
    pub fn is_one_way(self) -> bool {
        matches!(self.description().source, Source::Time(time, _) if TimeFigures::<()>::ONE_WAY.into_array()[time])
    }

    /// True if it is a count of messages or connections, or a share of them: a fact of each run,
    /// without noise of a clock or of sampling.
    pub fn is_fact(self) -> bool {
        self.group() == FigureGroup::Counts && matches!(self.unit(), Unit::Count | Unit::Share) || self == Figure::LATE
    }

    /// True if a single run has it.
    pub fn is_of_run(self) -> bool {
        matches!(self.description().source, Source::Number(_) | Source::Time(..))
    }

    /// True if each run has a value of it, so that runs can be compared.
    pub fn is_comparable(self) -> bool {
        !matches!(self.description().source, Source::Cells)
    }

    /// Returns the same percentile of the latency from the due time, if it is a figure of latency.
    pub fn from_due(self) -> Option<Figure> {
        match self.description().source {
            Source::Time(table::LATENCY, _) => Some(Figure(self.0 + Percentile::COUNT as u8)),
            _ => None,
        }
    }

    /// Returns its value in a run; `None` if it was not measured.
    pub fn value(self, run: &RunRecord) -> Option<f64> {
        match self.description().source {
            Source::Number(read) => read(run),
            Source::Time(time, percentile) => {
                run.times.as_ref().into_array()[time].as_ref().map(|times| percentile.of(times))
            }
            Source::Block | Source::Cells => None,
        }
    }

    /// Returns the fewest messages of a run with which it is shown: 1,000 for a 99th percentile,
    /// 10,000 for a 99.9th.
    pub fn samples_min(self) -> u64 {
        match self.description().source {
            Source::Time(_, percentile) => percentile.samples_min(),
            Source::Number(_) | Source::Block | Source::Cells => 1,
        }
    }

    /// Returns its value in a run that has enough messages for it.
    pub fn sampled(self, run: &RunRecord) -> Option<f64> {
        if let Source::Time(time, _) = self.description().source {
            let count = run.times.as_ref().into_array()[time].as_ref()?.count;
            if count < self.samples_min() {
                return None;
            }
        }
        self.value(run)
    }

    /// Returns the smallest difference that a run can show, in its unit: a message, a page of
    /// memory, a nanosecond. Counts of random events scatter by their square root.
    pub fn step(self, run: &RunRecord) -> f64 {
        let FigureDescription { unit, step, better, .. } = self.description();
        let a_second = 1e9 / run.window_ns.max(1) as f64;
        match (step, unit) {
            (Some(step), _) => step(run),
            (None, Unit::PerS) => a_second,
            (None, Unit::BytesPerS) => a_second * run.workload.mean_payload_bytes(),
            (None, Unit::Share) => 1.0 / run.counts.expected.max(1) as f64,
            (None, Unit::Count) if *better == Some("lower") => self.value(run).unwrap_or(0.0).max(0.0).sqrt(),
            (None, Unit::Cores | Unit::PerMessage | Unit::Multiple) => 0.0,
            (None, Unit::Count | Unit::Ns | Unit::Bytes) => 1.0,
        }
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the row of the documentation.
    fn row(figure: Figure) -> String {
        let FigureDescription { key, short, better, about, .. } = figure.description();
        let short = short.first().map_or(String::new(), |short| format!("`{short}`"));
        let unit = match figure.unit() {
            Unit::Ns => "ns",
            Unit::PerS => "messages/s",
            Unit::BytesPerS => "bytes/s",
            Unit::Bytes => "bytes",
            Unit::Share => "0 to 1",
            Unit::Count => "count",
            Unit::PerMessage => "per message",
            Unit::Cores => "processors",
            Unit::Multiple => "times",
        };
        let mark = match (figure.is_of_run(), figure.is_comparable()) {
            (_, false) => " ××",
            (false, true) => " ×",
            (true, true) => "",
        };
        format!("| `{key}`{mark} | {short} | {unit} | {} | {about} |", better.unwrap_or_default())
    }

    #[test]
    fn the_documentation_lists_every_figure() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figures.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let head = "| figure | also | unit | better | meaning |\n|---|---|---|---|---|\n";
        let (before, _) = page.split_once(head).unwrap();
        let rows: String = Figure::columns().map(|figure| row(figure) + "\n").collect();
        let wanted = format!("{before}{head}{rows}");
        if std::env::var_os("PUBMARK_WRITE_DOCS").is_some() {
            std::fs::write(&path, &wanted).unwrap();
        }
        assert!(page == wanted, "docs/figures.md is not the table: write it anew with PUBMARK_WRITE_DOCS=1");
    }

    #[test]
    fn no_two_figures_have_a_name_in_common() {
        let mut seen = std::collections::HashMap::new();
        for figure in Figure::all() {
            for name in figure.names() {
                assert_eq!(seen.insert(name, figure), None, "{name}");
                assert_eq!(Figure::named(name), Ok(figure), "{name}");
                assert_eq!(Figure::named(&name.replace('_', "-")), Ok(figure), "{name}");
            }
        }
        assert_eq!(seen.len(), Figure::all().flat_map(Figure::names).count());
    }

    #[test]
    fn percentiles_are_found_by_any_form_of_their_name() {
        for (name, figure) in [
            ("p99.9", Figure::LATENCY_P999),
            ("latency p99", Figure::LATENCY_P99),
            ("latency_p99", Figure::LATENCY_P99),
            ("service p99", Figure::SERVICE_P99),
            ("service-latency-p99", Figure::SERVICE_P99),
            ("intended p50", Figure::INTENDED_P50),
            ("own_lag p99", Figure::OWN_LAG_P99),
            ("connect_p99", Figure::CONNECT_P99),
        ] {
            assert_eq!(Figure::named(name), Ok(figure), "{name}");
        }
        assert_eq!(Figure::named("service p90").unwrap().key(), "service_latency_p90_ns");
        assert_eq!(Figure::LATENCY_P999.from_due().unwrap().key(), "intended_latency_p999_ns");
        assert_eq!(Figure::SERVICE_P99.from_due(), None);
    }

    #[test]
    fn a_name_of_none_or_of_several_says_what_there_is() {
        for (name, said) in [
            ("delivered", "could be delivered_per_s or delivered_ratio"),
            ("cpu", "could be cpu_per_message, cpu_cores or server_cpu"),
            ("p98", "did you mean `p9"),
            ("jiter", "did you mean `jitter`"),
            ("service", "there is no figure"),
        ] {
            let error = Figure::named(name).unwrap_err().to_string();
            assert!(error.contains(said), "{name}: {error}");
        }
        assert!(Figure::named(&"x".repeat(1 << 20)).unwrap_err().to_string().len() < 200);
        assert!(Figure::ranking("acked").unwrap_err().to_string().contains("neither more nor less"));
        assert!(Figure::ranking("floor_latency").unwrap_err().to_string().contains("whole cells"));
        assert_eq!(Figure::ranking("binding"), Ok(Figure::BINDING));
    }

    #[test]
    fn figures_of_times_have_the_names_that_records_have() {
        for (place, name) in TimeFigures::NAMES.into_array().into_iter().enumerate() {
            let figure = Figure((place * Percentile::COUNT) as u8);
            assert_eq!(figure.key(), format!("{name}_min_ns"));
        }
    }
}
