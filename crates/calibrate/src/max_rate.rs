//! The rate of one sender that only the kernel limits.

use crate::bare::{LoopResult, LoopStart, Ready};
use crate::calibrate::{Calibrator, PATIENCE, per_s};
use crate::cost::address;
use crate::ours::{AgentLoad, DRAIN};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use pubmark_host::{clock, machine};
use pubmark_judge::calibration::{Compared, UnthrottledRate};
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::Rate;
use pubmark_study::context::{RunError, failed};
use std::time::Duration;

/// Number of publishers: enough that one is writable while others are full.
const CONNECTIONS: u32 = 10;
/// Lengths of messages, bytes.
const PAYLOADS: [u64; 2] = [64, 1_000];
/// Window of a quick calibration too: the kernel can hold a connection for 200 ms (its
/// first retransmission), and a window within that time has no rate.
const WINDOW: Ns = 400 * MILLISECOND;
const WARMUP: Ns = 150 * MILLISECOND;
/// Runs for one rate, if nothing was sent in the window of those before.
const ATTEMPTS: usize = 3;
/// Time from the start command to the instant of the start.
const LEAD: Ns = 100 * MILLISECOND;
/// Pairs of runs, agents and bare loop one after the other: many short ones, because a
/// shared machine changes its speed from one second to the next.
const PAIRS: usize = 7;
/// Pairs of runs in a quick calibration.
const PAIRS_QUICK: usize = 3;

/// Binds this thread, and threads that it starts, to a processor until it is dropped.
struct Bound(Option<CpuSet>);

impl Bound {
    fn to(cpu: Option<usize>) -> Bound {
        let me = Pid::from_raw(0);
        let before = sched_getaffinity(me).ok();
        let bound = cpu.and_then(|cpu| {
            let mut one = CpuSet::new();
            one.set(cpu).and_then(|()| sched_setaffinity(me, &one)).ok()
        });
        Bound(bound.and(before))
    }

    fn holds(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

impl Calibrator<'_> {
    /// Measures agents and the bare loop, by length of the message.
    pub(crate) fn unthrottled(&mut self) -> Result<Vec<UnthrottledRate>, RunError> {
        let usable = machine::usable_cpus();
        let cpus = (usable.len() > 1).then(|| (usable[0], usable[usable.len() - 1]));
        let mut all = Vec::new();
        for payload_bytes in PAYLOADS {
            let pairs = if self.quick { PAIRS_QUICK } else { PAIRS };
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            let mut pinned = true;
            for number in 1..=pairs {
                (self.say)(&format!("unthrottled, {payload_bytes} B, {number} of {pairs}"));
                // The order alternates, so that neither always comes second.
                let agents_first = number % 2 == 1;
                for agents in [agents_first, !agents_first] {
                    let (per_s, bound) = self.push(payload_bytes, cpus, agents)?;
                    if agents {
                        ours.push(per_s)
                    } else {
                        bare.push(per_s)
                    }
                    pinned &= bound;
                }
            }
            let bytes = |figures: &[f64]| figures.iter().map(|per_s| per_s * payload_bytes as f64).collect();
            all.push(UnthrottledRate {
                connections: CONNECTIONS,
                payload_bytes,
                pinned,
                bytes_per_s: Compared::of(bytes(&ours), bytes(&bare)),
                messages_per_s: Compared::of(ours, bare),
            });
        }
        Ok(all)
    }

    /// Returns the messages a second into a separate sink, more than 0, and whether each
    /// side had a processor to itself.
    fn push(
        &mut self,
        payload_bytes: u64,
        cpus: Option<(usize, usize)>,
        agents: bool,
    ) -> Result<(f64, bool), RunError> {
        for _ in 0..ATTEMPTS {
            let (per_s, pinned) = self.push_once(payload_bytes, cpus, agents)?;
            if per_s > 0.0 {
                return Ok((per_s, pinned));
            }
            self.remarks
                .push(format!("unthrottled, {payload_bytes} B: nothing was sent in a window, which was repeated"));
        }
        let window_ms = WINDOW / MILLISECOND;
        Err(failed(format!(
            "no message of {payload_bytes} B was sent within {window_ms} ms, {ATTEMPTS} times in a row: \
             the machine is too busy to be calibrated; end other programs and try again"
        )))
    }

    fn push_once(
        &mut self,
        payload_bytes: u64,
        cpus: Option<(usize, usize)>,
        agents: bool,
    ) -> Result<(f64, bool), RunError> {
        let there = Bound::to(cpus.map(|cpus| cpus.1));
        let (sink, endpoint) = self.sink(u64::from(CONNECTIONS))?;
        let mut pinned = there.holds();
        drop(there);
        let here = Bound::to(cpus.map(|cpus| cpus.0));
        pinned &= here.holds();
        let per_s = if agents {
            self.push_agents(&endpoint, payload_bytes)?
        } else {
            self.push_bare(&endpoint, payload_bytes)?
        };
        drop(here);
        self.drained(sink)?;
        Ok((per_s, pinned))
    }

    fn push_agents(&mut self, endpoint: &str, payload_bytes: u64) -> Result<f64, RunError> {
        let load = AgentLoad {
            publishers: CONNECTIONS,
            subscribers: 0,
            rate: Rate::Max,
            payload_bytes,
            warmup_ns: WARMUP,
            window_ns: WINDOW,
            drain_ns: DRAIN,
        };
        Ok(self.run_agents(endpoint, &load)?.rates.sent_per_s)
    }

    fn push_bare(&mut self, endpoint: &str, payload_bytes: u64) -> Result<f64, RunError> {
        let mut arguments: Vec<String> = vec!["bare".into(), "flood".into(), "--to".into(), address(endpoint)?];
        for (flag, value) in [
            ("--connections", u64::from(CONNECTIONS)),
            ("--payload", payload_bytes),
            ("--warmup-ns", WARMUP),
            ("--window-ns", WINDOW),
        ] {
            arguments.extend([flag.into(), value.to_string()]);
        }
        let mut sender = self.helper(&arguments)?;
        let _: Ready = sender.hear(PATIENCE, self.interrupt)?;
        sender.tell(&LoopStart { start_ns: clock::now() + LEAD });
        let done: LoopResult = sender.hear(PATIENCE + Duration::from_nanos(WARMUP + WINDOW), self.interrupt)?;
        Ok(per_s(done.messages, done.wall_ns))
    }
}
