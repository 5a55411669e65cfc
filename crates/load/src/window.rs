//! The measured window and its slices.

use pubmark_model::units::Ns;
use pubmark_model::workload::{MAX_SLICES, Workload};

/// The measured window on the agent's clock.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Start of the schedule, ns.
    pub start_ns: Ns,
    /// Beginning of the window, ns.
    pub from_ns: Ns,
    /// End of the window (not included), ns; `None` for a count of messages at `max`.
    pub to_ns: Option<Ns>,
    /// Length of a slice of the series, ns.
    pub slice_ns: Ns,
    /// Number of slices that the series has room for.
    pub slices: usize,
    /// Offset of the clock used for instants in messages, relative to the agent's, ns.
    pub ahead_ns: i64,
}

impl Window {
    /// Makes the window of a workload that starts at `start_ns`.
    pub fn new(workload: &Workload, start_ns: Ns) -> Window {
        let length = workload.window_ns();
        let slice_ns = workload.slice_ns();
        let slices = length.map_or(MAX_SLICES, |length| length.div_ceil(slice_ns)).max(1) as usize;
        let from_ns = start_ns + workload.warmup_ns;
        Window { start_ns, from_ns, to_ns: length.map(|length| from_ns + length), slice_ns, slices, ahead_ns: 0 }
    }

    /// True if an instant lies in the window.
    #[inline]
    pub fn holds(&self, at_ns: Ns) -> bool {
        at_ns >= self.from_ns && self.to_ns.is_none_or(|to| at_ns < to)
    }

    /// Returns the slice of an instant within the window.
    #[inline]
    pub fn slice(&self, at_ns: Ns) -> Option<usize> {
        if !self.holds(at_ns) {
            return None;
        }
        Some((((at_ns - self.from_ns) / self.slice_ns) as usize).min(self.slices - 1))
    }
}

/// Finds the slices of ascending instants: with a division if a new slice begins, with
/// two comparisons otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Slicer {
    window: Window,
    index: usize,
    from_ns: Ns,
    to_ns: Ns,
}

impl Slicer {
    /// Makes a slicer for this window.
    pub fn new(window: Window) -> Slicer {
        Slicer { window, index: 0, from_ns: 0, to_ns: 0 }
    }

    /// Returns the window.
    #[inline]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the slice of an instant within the window, like [`Window::slice`].
    #[inline]
    pub fn slice(&mut self, at_ns: Ns) -> Option<usize> {
        if (self.from_ns..self.to_ns).contains(&at_ns) { Some(self.index) } else { self.find(at_ns) }
    }

    fn find(&mut self, at_ns: Ns) -> Option<usize> {
        let window = &self.window;
        let index = window.slice(at_ns)?;
        self.index = index;
        self.from_ns = window.from_ns + index as Ns * window.slice_ns;
        self.to_ns = (self.from_ns + window.slice_ns).min(window.to_ns.unwrap_or(Ns::MAX));
        Some(index)
    }
}

/// See [`Workload::measures_latency`].
pub fn measures_latency(workload: &Workload) -> bool {
    workload.measures_latency()
}

/// Returns how many messages may pass between two readings of the clock if latency is not
/// measured: 16 KiB worth, 64 at most.
pub fn clock_stride(workload: &Workload) -> u32 {
    if measures_latency(workload) {
        1
    } else {
        (16_384 / (workload.mean_payload_bytes() as u64).max(1)).clamp(1, 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_slicer_finds_what_the_window_says(
            slices in 1usize..9,
            rest in 1u64..100,
            open in any::<bool>(),
            instants in proptest::collection::vec(900u64..2_200, 0..200),
        ) {
            let to_ns = 1_000 + (slices as u64 - 1) * 100 + rest;
            let to_ns = if open { None } else { Some(to_ns) };
            let window = Window { start_ns: 900, from_ns: 1_000, to_ns, slice_ns: 100, slices, ahead_ns: 0 };
            let mut slicer = Slicer::new(window);
            for at in instants {
                prop_assert_eq!(slicer.slice(at), window.slice(at));
            }
        }
    }
}
