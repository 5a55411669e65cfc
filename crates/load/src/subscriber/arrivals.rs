//! The histograms of a receiving thread.
//!
//! A histogram takes up to a quarter of a megabyte. Between two arrivals it leaves the
//! nearer caches, because kernel and server need them. Times are therefore queued, and
//! some dozens of them are entered together: then the processor waits for many cache
//! lines at once.

use pubmark_model::role::Role;
use pubmark_model::times::{TIMES, TimeFigures};
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;

/// Arrivals that are entered together: few enough to delay none by more than a
/// microsecond or two.
const TOGETHER: usize = 64;

/// Placeholder for an unknown time.
const NONE: Ns = Ns::MAX;

/// The queued times of one arrival.
#[derive(Clone, Copy)]
struct Aside {
    times: [Ns; TIMES],
    headline: Ns,
    slice: usize,
}

/// The histograms and the queue.
pub struct Arrivals {
    times: TimeFigures<Option<Histogram>>,
    /// Histograms of the headline latency by slice of the window.
    slices: Vec<Histogram>,
    aside: [Aside; TOGETHER],
    aside_count: usize,
}

impl Arrivals {
    /// Makes a queue without histograms.
    pub fn new() -> Arrivals {
        Arrivals {
            times: TimeFigures::none(),
            slices: Vec::new(),
            aside: [Aside { times: [NONE; TIMES], headline: NONE, slice: 0 }; TOGETHER],
            aside_count: 0,
        }
    }

    /// Makes the histograms, and one for each slice of the window: times count from now on. Those of the legs of a round
    /// trip are made only if repliers report their times.
    pub fn begin(&mut self, slices: usize, has_legs: bool) {
        self.times = TimeFigures::of(Role::Subscriber);
        if !has_legs {
            (self.times.request_latency, self.times.reply_latency, self.times.replier_time) = (None, None, None);
        }
        self.slices = (0..slices).map(|_| Histogram::coarse()).collect();
    }

    /// Counts an arrival: its times, as far as they are known, and the slice of the
    /// window in which it came.
    #[inline]
    pub fn record(&mut self, times: TimeFigures<Option<Ns>>, slice: Option<usize>) {
        let place = self.aside_count % TOGETHER;
        let times = times.map(|time| time.unwrap_or(NONE));
        let (headline, slice) = (times.latency, slice.unwrap_or(usize::MAX));
        self.aside[place] = Aside { times: times.into_array(), headline, slice };
        self.aside_count = place + 1;
        if self.aside_count == TOGETHER {
            self.enter();
        }
    }

    /// Enters the queued times.
    #[inline(never)]
    fn enter(&mut self) {
        let aside = &self.aside[..std::mem::take(&mut self.aside_count)];
        for (place, histogram) in self.times.as_mut().into_array().into_iter().enumerate() {
            let Some(histogram) = histogram else { continue };
            let known = aside.iter().map(|one| one.times[place]).filter(|time| *time != NONE);
            known.for_each(|time| histogram.record(time));
        }
        for one in aside.iter().filter(|one| one.headline != NONE) {
            if let Some(slice) = self.slices.get_mut(one.slice) {
                slice.record(one.headline);
            }
        }
    }

    /// Returns the times of all arrivals.
    pub fn times(&mut self) -> &TimeFigures<Option<Histogram>> {
        self.enter();
        &self.times
    }

    /// Returns the headline latency by slice of the window.
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
            arrivals.begin(3, true);
            let mut wanted = TimeFigures::of(Role::Subscriber);
            let mut slices = [Histogram::coarse(), Histogram::coarse(), Histogram::coarse()];
            for (time, more, slice) in times {
                let slice = Some(slice).filter(|slice| *slice < 4);
                let one = TimeFigures {
                    latency: Some(time),
                    intended_latency: Some(time + more.unwrap_or(1)),
                    service_latency: more,
                    receive_lag: more.map(|more| more / 2),
                    ..TimeFigures::none()
                };
                arrivals.record(one, slice);
                for (histogram, time) in wanted.as_mut().zip(one).into_array() {
                    histogram.iter_mut().zip(time).for_each(|(histogram, time)| histogram.record(time));
                }
                slice.and_then(|slice| slices.get_mut(slice)).into_iter().for_each(|slice| slice.record(time));
            }
            prop_assert!(*arrivals.times() == wanted);
            prop_assert!(arrivals.slices() == slices);
        }
    }
}
