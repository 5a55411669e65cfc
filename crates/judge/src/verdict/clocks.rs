//! Clocks of different hosts: a latency from one to another is only as accurate as their comparison.

use super::bounds::CLOCK;
use super::finding::{FigureFinding, words};
use pubmark_model::host::LOCAL;
use pubmark_model::record::{FigureGroup, RunRecord};
use pubmark_model::units::Ns;
use pubmark_stats::Summary;

/// Finds latencies between hosts whose clocks may be too far apart for them, with the figures that this affects.
pub fn apart(record: &RunRecord) -> Option<FigureFinding> {
    let pair = record.widest_clocks()?;
    // Last wills cross from clock to clock as well, at rates without latencies too.
    let wills = record.wills.as_ref().and_then(|wills| wills.latency_ns.as_ref());
    let least = |of: fn(&Summary) -> Ns| record.times.latency.as_ref().into_iter().chain(wills).map(of).min();
    let beyond = |(_, figure): &(FigureGroup, Ns)| pair.bound_ns as f64 > CLOCK * *figure as f64;
    let touched: Vec<(FigureGroup, Ns)> =
        [(FigureGroup::LatencyP50, least(|times| times.p50)?), (FigureGroup::LatencyP99, least(|times| times.p99)?)]
            .into_iter()
            .filter(beyond)
            .collect();
    let part = if touched.first()?.0 == FigureGroup::LatencyP50 { "half" } else { "99 of 100" };
    let uneven = match pair.off_line_ns {
        0 => String::new(),
        off_ns => format!(" (within the window one was {} off the line between before and after)", words(off_ns)),
    };
    let evidence = format!(
        "messages go from host {} to host {}, whose clocks may be {} apart{uneven}: {part} of the latencies are below {}",
        named(&pair.from),
        named(&pair.to),
        words(pair.bound_ns),
        words(touched.first()?.1)
    );
    FigureFinding::if_any(touched.into_iter().map(|(group, _)| group).collect(), evidence)
}

/// Returns a host's display name: the local one has none in a record.
fn named(host: &str) -> &str {
    if host.is_empty() { LOCAL } else { host }
}
