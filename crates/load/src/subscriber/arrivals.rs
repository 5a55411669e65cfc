//! What arrivals were like: the histograms of a receiving thread.
//!
//! A histogram takes up to a quarter of a megabyte, which between two arrivals
//! has left the nearer caches for what kernel and server need. Times are
//! therefore put aside, one behind the other, and some dozens of them are
//! entered together: then the processor waits for many lines at once.

use pubmark_model::units::Ns;
use pubmark_stats::Histogram;

/// Arrivals that are entered together: few enough that it delays none by more
/// than a microsecond or two.
const TOGETHER: usize = 64;

/// Stands for a time that is not known.
const NONE: Ns = Ns::MAX;

/// The times of one arrival.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalTimes {
    /// The headline, ns.
    pub latency: Ns,
    /// From the due time, ns.
    pub intended: Ns,
    /// From the actual send time, ns.
    pub service: Option<Ns>,
    /// How long it can have waited for the receiving loop, ns.
    pub receive_lag: Option<Ns>,
    /// The slice of the window that it came in.
    pub slice: Option<usize>,
}

/// The same, put aside.
#[derive(Clone, Copy, Default)]
struct Aside {
    latency: Ns,
    intended: Ns,
    service: Ns,
    receive_lag: Ns,
    slice: usize,
}

/// The histograms.
pub struct Arrivals {
    latency: Histogram,
    intended: Histogram,
    service: Histogram,
    receive_lag: Histogram,
    slices: Vec<Histogram>,
    aside: [Aside; TOGETHER],
    aside_count: usize,
}

impl Arrivals {
    /// Nothing has arrived.
    pub fn new() -> Arrivals {
        Arrivals {
            latency: Histogram::latency(),
            intended: Histogram::latency(),
            service: Histogram::latency(),
            receive_lag: Histogram::latency(),
            slices: Vec::new(),
            aside: [Aside::default(); TOGETHER],
            aside_count: 0,
        }
    }

    /// From now on there are so many slices.
    pub fn slice(&mut self, count: usize) {
        self.slices = (0..count).map(|_| Histogram::coarse()).collect();
    }

    /// Counts an arrival.
    #[inline]
    pub fn record(&mut self, arrival: ArrivalTimes) {
        let place = self.aside_count % TOGETHER;
        self.aside[place] = Aside {
            latency: arrival.latency,
            intended: arrival.intended,
            service: arrival.service.unwrap_or(NONE),
            receive_lag: arrival.receive_lag.unwrap_or(NONE),
            slice: arrival.slice.unwrap_or(usize::MAX),
        };
        self.aside_count = place + 1;
        if self.aside_count == TOGETHER {
            self.enter();
        }
    }

    /// Enters what was put aside.
    #[inline(never)]
    fn enter(&mut self) {
        let aside = &self.aside[..std::mem::take(&mut self.aside_count)];
        aside.iter().for_each(|one| self.latency.record(one.latency));
        aside.iter().for_each(|one| self.intended.record(one.intended));
        let known = |time: &Ns| *time != NONE;
        aside.iter().map(|one| one.service).filter(known).for_each(|service| self.service.record(service));
        aside.iter().map(|one| one.receive_lag).filter(known).for_each(|lag| self.receive_lag.record(lag));
        for one in aside {
            if let Some(slice) = self.slices.get_mut(one.slice) {
                slice.record(one.latency);
            }
        }
    }

    /// Latencies: the headline, from the due time, and from the actual send time.
    pub fn latencies(&mut self) -> [&Histogram; 3] {
        self.enter();
        [&self.latency, &self.intended, &self.service]
    }

    /// How long messages can have waited for the receiving loop.
    pub fn receive_lag(&mut self) -> &Histogram {
        self.enter();
        &self.receive_lag
    }

    /// The headline by slice of the window.
    pub fn slices(&mut self) -> &[Histogram] {
        self.enter();
        &self.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_that_is_put_aside_is_lost(
            times in proptest::collection::vec((0u64..5_000_000, proptest::option::of(0u64..9_000), 0usize..5), 0..300),
        ) {
            let mut arrivals = Arrivals::new();
            arrivals.slice(3);
            let wanted = || (Histogram::latency(), [Histogram::coarse(), Histogram::coarse(), Histogram::coarse()]);
            let ((mut latency, mut slices), (mut intended, _)) = (wanted(), wanted());
            let ((mut service, _), (mut lag, _)) = (wanted(), wanted());
            for (time, more, slice) in times {
                let slice = Some(slice).filter(|slice| *slice < 4);
                let (longer, receive_lag) = (time + more.unwrap_or(1), more.map(|more| more / 2));
                arrivals.record(ArrivalTimes { latency: time, intended: longer, service: more, receive_lag, slice });
                latency.record(time);
                intended.record(longer);
                more.iter().for_each(|more| service.record(*more));
                receive_lag.iter().for_each(|late| lag.record(*late));
                slice.and_then(|slice| slices.get_mut(slice)).into_iter().for_each(|slice| slice.record(time));
            }
            prop_assert!(arrivals.latencies() == [&latency, &intended, &service]);
            prop_assert!(arrivals.receive_lag() == &lag);
            prop_assert!(arrivals.slices() == slices);
        }
    }
}
