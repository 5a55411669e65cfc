//! Computes the cost of faults beyond their scripted time from a record's own figures.

use super::{BacklogOutlook, FaultEvent, Recovery, RunRecord, Series};
use crate::fault::{Act, Target};
use crate::units::{MILLISECOND, Ns, total};

/// A fault that disconnects clients from the server, ns from the window's beginning.
struct Outage {
    at_ns: Ns,
    until_ns: Ns,
    /// Scripted length, ns.
    asked_ns: Ns,
}

impl Recovery {
    /// Computes the recovery of a record; `None` if no fault of the server, a link or a host's
    /// network began and ended, or the run could not be made.
    pub fn of(record: &RunRecord) -> Option<Recovery> {
        let outages = outages(record);
        let (first, last) = (outages.first()?, outages.last()?);
        let silence_ns = silence(record, &outages);
        let end_ns = outages.iter().map(|outage| outage.until_ns).fold(last.until_ns, Ns::max);
        let watched_ns = record.times.latency.as_ref().map(|_| record.window_ns.saturating_sub(end_ns));
        let watched_ns = watched_ns.filter(|watched| *watched >= record.series.slice_ns.max(1));
        let connections = record.connections.as_ref();
        let not_back = connections.map(|all| all.lost.saturating_sub(all.reconnected));
        let away_ns = connections.and_then(|all| Some(all.reconnect_ns.as_ref()?.max));
        let alone = outages.len() == 1 && not_back == Some(0);
        let caught_up_after_ns = caught_up(record, &outages).filter(|_| watched_ns.is_some());
        let listened = record.fault_log.iter().filter_map(|event| event.listens_ns?.checked_sub(event.until_ns?));
        Some(Recovery {
            silence_ns: silence_ns.map(|(silence, _)| silence),
            beyond_ns: silence_ns.map(|(silence, asked)| silence.saturating_sub(asked)),
            caught_up_after_ns,
            watched_ns,
            prospect: watched_ns.filter(|_| caught_up_after_ns.is_none()).and_then(|_| prospect(record, end_ns)),
            listens_after_ns: listened.max(),
            clients_back_after_ns: away_ns
                .filter(|_| alone)
                .map(|away| away.saturating_sub(first.until_ns.saturating_sub(first.at_ns))),
            clients_not_back: not_back,
        })
    }
}

impl RunRecord {
    /// Returns the share of the window in which a fault separated clients from the server; `None` if
    /// no such fault began and ended.
    pub fn fault_ratio(&self) -> Option<f64> {
        let outages = outages(self);
        let (mut lasted_ns, mut done_ns) = (0, outages.first()?.at_ns);
        for outage in outages {
            let until_ns = outage.until_ns.min(self.window_ns);
            lasted_ns += until_ns.saturating_sub(outage.at_ns.max(done_ns));
            done_ns = done_ns.max(until_ns);
        }
        Some(lasted_ns as f64 / self.window_ns.max(1) as f64)
    }
}

/// Returns the faults that disconnected clients from the server and ended in the window, by their
/// beginnings. A cut of clients ends when it begins, and so does the kill of a member that stays away.
fn outages(record: &RunRecord) -> Vec<Outage> {
    if record.error.is_some() {
        return Vec::new();
    }
    let asked = |place: usize, event: &FaultEvent| {
        let fault = record.faults.0.get(place)?;
        fault.for_ns.filter(|_| (fault.what, fault.who) == (event.what, event.who))
    };
    let of_server = |event: &FaultEvent| {
        let stops = matches!(event.what, Act::Stop | Act::Kill | Act::CutPower | Act::FillDisk | Act::Restart)
            && event.who == Target::Server;
        stops || event.what == Act::Cut
    };
    let events = record.fault_log.iter().enumerate().filter(|(_, event)| of_server(event));
    let outage = |(place, event): (usize, &FaultEvent)| {
        let at_ns = event.at_ns?;
        // A member that stays away is a fault of an instant: the others go on without it.
        let until_ns = event.until_ns.or(event.member.map(|_| at_ns).filter(|_| event.what == Act::Kill))?;
        let asked_ns = asked(place, event).unwrap_or(until_ns.saturating_sub(at_ns));
        Some(Outage { at_ns, until_ns, asked_ns })
    };
    let mut outages: Vec<Outage> = events.filter_map(outage).collect();
    outages.sort_by_key(|outage| (outage.at_ns, outage.until_ns));
    outages
}

/// Returns the longest silence, if an outage lies in it, and the scripted length of these outages.
fn silence(record: &RunRecord, outages: &[Outage]) -> Option<(Ns, Ns)> {
    let stalls = record.stalls.filter(|stalls| stalls.count > 0)?;
    let (from_ns, to_ns) = (stalls.longest_at_ns, stalls.longest_at_ns.saturating_add(stalls.longest_ns));
    let within = || outages.iter().filter(|outage| outage.at_ns < to_ns && outage.until_ns > from_ns);
    within().next()?;
    Some((stalls.longest_ns, total(within().map(|outage| outage.asked_ns))))
}

/// Returns the longest time from the end of an outage until its backlog was gone, ns; `None` if
/// that of the last outage was not gone by the window's end.
fn caught_up(record: &RunRecord, outages: &[Outage]) -> Option<Ns> {
    let lasted_ns = outages.iter().map(|outage| outage.until_ns.saturating_sub(outage.at_ns)).max()?;
    let usual = UsualSlice::before(record, outages.first()?.at_ns, lasted_ns);
    let (mut longest_ns, mut end_ns) = (0, 0);
    for (place, outage) in outages.iter().enumerate() {
        end_ns = outage.until_ns.max(end_ns);
        let next_ns = outages.get(place + 1).map_or(record.window_ns, |next| next.at_ns.min(record.window_ns));
        match caught_up_at(&record.series, &usual, end_ns, next_ns) {
            Some(at_ns) => longest_ns = longest_ns.max(at_ns.saturating_sub(end_ns)),
            None if place + 1 < outages.len() => {}
            None => return None,
        }
    }
    let in_window = total(record.series.delivered.iter().copied());
    let later = record.counts.delivered.saturating_sub(in_window) as f64;
    usual.arrivals.is_none_or(|(_, most)| later <= most).then_some(longest_ns)
}

/// The whole slices before the first outage.
struct UsualSlice {
    /// Least and most arrivals in one of these slices; `None` without a slice, or if the rate changes.
    arrivals: Option<(f64, f64)>,
    /// Highest 99th percentile of latency, ns; `None` without a slice.
    latency_ns: Option<f64>,
    /// Latency above that up to which a slice is usual, ns: see [`HIGHER`], [`OF_OUTAGE`] and [`SLACK`].
    slack_ns: f64,
}

/// A slice has its usual latency if that is above the highest before the fault by no more than this
/// share of it …
const HIGHER: f64 = 0.25;
/// … or than this share of the outage: what then still waits takes no longer to deliver than this
/// share of the backlog …
const OF_OUTAGE: f64 = 0.01;
/// … or than this, which a restarted server's empty caches may cost, ns.
const SLACK: Ns = MILLISECOND;

impl UsualSlice {
    /// Returns the usual slice. The range of arrivals is widened by a tenth and three times the
    /// random scatter of a count.
    fn before(record: &RunRecord, before_ns: Ns, lasted_ns: Ns) -> UsualSlice {
        let series = &record.series;
        let whole = before_ns.checked_div(series.slice_ns).map_or(0, |whole| whole as usize);
        let before = |values: &[u64]| values.get(..whole.min(values.len())).unwrap_or_default().to_vec();
        let highest = before(&series.latency_p99_ns).into_iter().max().filter(|highest| *highest > 0);
        let arrivals = || {
            let rates = record.workload.rate.profile()?.per_ks();
            let is_even = !record.workload.arrival.pauses() && record.workload.span.is_whole();
            let slices = before(&series.delivered);
            let (least, most) = (*slices.iter().min()?, *slices.iter().max()?);
            let mean = total(slices.iter().copied()) as f64 / slices.len() as f64;
            let copies = record.counts.expected as f64 / record.counts.sent.max(1) as f64;
            let scatter = (0.1 * mean).max(3.0 * (mean * copies.max(1.0)).sqrt());
            (rates.start() == rates.end() && is_even).then_some((least as f64 - scatter, most as f64 + scatter))
        };
        let latency_ns = highest.map(|highest| highest as f64);
        let least_ns = (lasted_ns as f64 * OF_OUTAGE).max(SLACK as f64);
        UsualSlice { arrivals: arrivals(), latency_ns, slack_ns: (latency_ns.unwrap_or(0.0) * HIGHER).max(least_ns) }
    }

    /// Returns by how much the latency of a slice is higher than usual, ns.
    fn excess_ns(&self, series: &Series, slice: usize) -> f64 {
        let latency = series.latency_p99_ns.get(slice).map_or(0.0, |p99| *p99 as f64);
        self.latency_ns.map_or(0.0, |usual| (latency - usual).max(0.0))
    }
}

/// Returns the instant, from `end_ns` on and before `next_ns`, from which on no message arrives that
/// was due before `end_ns`, arrivals are normal, and latency is what it was before the outage.
///
/// The largest latency of a slice shows whether such a message arrived in it: it reaches from the
/// slice's beginning back beyond the outage's end. So none is missed, but a message due up to a
/// slice after that end may count as one.
///
/// In a queue that empties, latency falls along a line. Within the last slice of higher latency the
/// instant is where the line through that slice and the one before it meets the usual latency;
/// without two such slices it is the slice's end.
fn caught_up_at(series: &Series, usual: &UsualSlice, end_ns: Ns, next_ns: Ns) -> Option<Ns> {
    let slice_ns = series.slice_ns;
    let first = end_ns.checked_div(slice_ns)? as usize + 1;
    let slices = next_ns.div_ceil(slice_ns).min(series.delivered.len() as u64) as usize;
    let starts = |slice: usize| slice as Ns * slice_ns;
    let reaches_back =
        |slice: &usize| series.latency_max_ns.get(*slice).is_some_and(|max| *max > starts(*slice) - end_ns);
    let first_without = (first..slices).rev().find(reaches_back).map_or(first, |last| last + 1);
    let is_usual = |slice: &usize| {
        // A slice that is cut off by the window's end or by the next outage has fewer arrivals.
        let whole = starts(slice + 1) <= next_ns;
        let arrived = series.delivered[*slice] as f64;
        let as_many = usual.arrivals.is_none_or(|(least, most)| !whole || (least..=most).contains(&arrived));
        as_many && usual.excess_ns(series, *slice) <= usual.slack_ns
    };
    let slice = (first_without..slices).find(is_usual)?;
    let [before, last] = [slice.checked_sub(2), slice.checked_sub(1)]
        .map(|place| place.filter(|place| *place >= first).map_or(0.0, |place| usual.excess_ns(series, place)));
    // The rest of the last slice is above the line only if others of its messages were late.
    let part = if last > 0.0 && last < before { (last / (before - last)).min(1.0) } else { 1.0 };
    let within_ns = (slice_ns as f64 * (1.0 - part)) as Ns;
    Some((starts(slice) - within_ns).max(if slice > first { starts(slice - 1) } else { 0 }))
}

/// Returns what becomes of a backlog that was not gone when the window ended: the latency of the
/// first slice after the outage that has arrivals, against that of the last whole slice.
fn prospect(record: &RunRecord, end_ns: Ns) -> Option<BacklogOutlook> {
    let series = &record.series;
    let first = end_ns.checked_div(series.slice_ns)? as usize + 1;
    let whole = (record.window_ns / series.slice_ns) as usize;
    let p99 = |slice: &usize| series.latency_p99_ns.get(*slice).copied().unwrap_or_default();
    let last = whole.min(series.delivered.len()).checked_sub(1)?;
    let begins = (first..=last).find(|slice| p99(slice) > 0);
    let watched_ns = record.window_ns.saturating_sub(end_ns);
    let Some(begins) = begins.filter(|begins| *begins < last) else {
        return Some(BacklogOutlook::Shrinks { window_ns: record.window_ns.saturating_add(watched_ns) });
    };
    let (from, to) = (p99(&begins), p99(&last));
    if to >= from || to == 0 {
        return Some(BacklogOutlook::Lasts);
    }
    let fell_per_ns = (from - to) as f64 / ((last - begins) as Ns * series.slice_ns) as f64;
    let more_ns = (to as f64 / fell_per_ns) as Ns;
    // Two slices more show that it is over, and a tenth more is for chance.
    let window_ns =
        record.window_ns.saturating_add(2 * series.slice_ns).saturating_add(more_ns).saturating_mul(11) / 10;
    Some(BacklogOutlook::Shrinks { window_ns })
}

#[cfg(test)]
mod tests;
