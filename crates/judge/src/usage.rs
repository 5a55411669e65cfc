//! Combines the usage of server and agents that several hosts measured.

use pubmark_model::record::{UsageOverTime, UsageSeries};
use std::collections::BTreeMap;

/// Joins the series of all hosts over the slices that each of them has. `None` if no host measured anything.
pub fn joined(seen: Vec<UsageSeries>) -> Option<UsageSeries> {
    if seen.len() < 2 {
        return seen.into_iter().next();
    }
    let slice_ns = seen.iter().map(|series| series.slice_ns).max().filter(|ns| *ns > 0)?;
    let of_slice = i64::try_from(slice_ns).ok()?;
    let first = |series: &UsageSeries| series.start_ns.div_euclid(of_slice);
    let count = |series: &UsageSeries| {
        let of = |used: &Option<UsageOverTime>| used.as_ref().map(|used| used.cpu_cores.len());
        of(&series.server).or(of(&series.generator)).unwrap_or(0) as i64
    };
    let from = seen.iter().map(first).max()?;
    let to = seen.iter().map(|series| first(series).saturating_add(count(series))).min()?;
    let sum = |pick: fn(&UsageSeries) -> &Option<UsageOverTime>| {
        let mut slices: BTreeMap<i64, (f64, u64, u64)> = BTreeMap::new();
        for series in &seen {
            let Some(used) = pick(series) else { continue };
            let threads = used.threads.iter().copied().chain(std::iter::repeat(0));
            let figures = used.cpu_cores.iter().zip(&used.rss_bytes).zip(threads);
            for (slice, ((cores, bytes), threads)) in
                (first(series)..).zip(figures).filter(|(slice, _)| (from..to).contains(slice))
            {
                let all = slices.entry(slice).or_default();
                *all = (all.0 + cores, all.1.saturating_add(*bytes), all.2.saturating_add(threads));
            }
        }
        let mut sum = UsageOverTime::default();
        for (cores, bytes, threads) in slices.into_values() {
            sum.cpu_cores.push(cores);
            sum.rss_bytes.push(bytes);
            sum.threads.push(threads);
        }
        Some(sum).filter(|used| !used.cpu_cores.is_empty())
    };
    let (server, generator) = (sum(|series| &series.server), sum(|series| &series.generator));
    let start_ns = from.saturating_mul(of_slice);
    (server.is_some() || generator.is_some()).then_some(UsageSeries { start_ns, slice_ns, server, generator })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hosts_saw_is_added_where_all_of_them_saw_it() {
        let used = |cores: &[f64], bytes: &[u64]| {
            Some(UsageOverTime { cpu_cores: cores.to_vec(), rss_bytes: bytes.to_vec(), threads: bytes.to_vec() })
        };
        let series = |start_ns, server, generator| UsageSeries { start_ns, slice_ns: 10, server, generator };
        let first = series(-20, None, used(&[1.0, 1.5, 2.0], &[1, 2, 3]));
        let second = series(-10, used(&[0.5, 0.25], &[10, 20]), used(&[0.5, 1.0], &[5, 5]));
        let all = joined(vec![first.clone(), second]).unwrap();
        assert_eq!(all, series(-10, used(&[0.5, 0.25], &[10, 20]), used(&[2.0, 3.0], &[7, 8])));
        assert_eq!(joined(vec![first.clone()]), Some(first));
        assert_eq!(joined(Vec::new()), None);
    }

    #[test]
    fn a_host_that_names_impossible_slices_overflows_nothing() {
        let used = Some(UsageOverTime { cpu_cores: vec![1.0], rss_bytes: vec![u64::MAX], threads: vec![u64::MAX] });
        let series =
            |start_ns, slice_ns| UsageSeries { start_ns, slice_ns, server: used.clone(), generator: used.clone() };
        assert_eq!(joined(vec![series(i64::MIN, u64::MAX), series(0, 10)]), None);
        assert_eq!(joined(vec![series(i64::MAX, 10), series(i64::MIN, 10)]), None);
        let all = joined(vec![series(i64::MIN, 3), series(i64::MIN, 3)]).unwrap();
        assert_eq!((all.start_ns, all.server.unwrap().rss_bytes), (i64::MIN, vec![u64::MAX]));
    }
}
