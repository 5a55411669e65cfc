//! Measurements of a machine and this generator by `pubmark calibrate`.

use pubmark_model::record::MachineLoad;
use pubmark_model::units::Ns;
use pubmark_stats::{Summary, median};
use serde::{Deserialize, Serialize};

/// Version of the file's layout.
pub const SCHEMA: u32 = 1;

/// Machine and program of a calibration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Model of the processor, as the kernel names it.
    pub processor: Option<String>,
    /// Number of processors of the machine.
    pub cores: u32,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Version of pubmark.
    pub pubmark: String,
}

/// A figure of pubmark's own agents and of a bare loop with the same work, measured in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Values of the agents, by run.
    pub ours: Vec<f64>,
    /// Values of the bare loop, by run.
    pub bare: Vec<f64>,
    /// Median of `ours`.
    pub ours_median: f64,
    /// Median of `bare`.
    pub bare_median: f64,
    /// Median of the ratios, ours over bare, of the pairs: a slowdown of the machine that affects both does not change
    /// it.
    pub ratio: f64,
}

impl Compared {
    /// Compares pairs of values. The median of no values is 0, and so is a ratio to it.
    pub fn of(ours: Vec<f64>, bare: Vec<f64>) -> Compared {
        let (ours_median, bare_median) = (median(&ours).unwrap_or_default(), median(&bare).unwrap_or_default());
        let pairs = ours.iter().zip(&bare).filter(|(_, bare)| **bare > 0.0);
        let ratio = median(&pairs.map(|(ours, bare)| ours / bare).collect::<Vec<_>>()).unwrap_or_default();
        Compared { ours, bare, ours_median, bare_median, ratio }
    }
}

/// Cost of a message through a relay at one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Number of publishers, and of subscribers, each with a connection.
    pub connections: u32,
    /// Messages per second of all publishers together.
    pub rate_per_s: f64,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Least time between two wake-ups of a sender, ns.
    pub quantum_ns: Ns,
    /// CPU seconds, user and system, per million messages sent.
    pub send_cpu_s_per_million: Compared,
    /// CPU seconds per million messages received.
    pub receive_cpu_s_per_million: Compared,
    /// Delay with which the agents sent, ns.
    pub ours_lag_ns: Option<Summary>,
    /// Delay with which the bare loop sent, ns.
    pub bare_lag_ns: Option<Summary>,
}

/// Unthrottled throughput of one sender into the sink.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnthrottledRate {
    /// Number of publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// True if sender and sink each had a processor of their own.
    pub pinned: bool,
    /// Messages per second.
    pub messages_per_s: Compared,
    /// Bytes of payload per second.
    pub bytes_per_s: Compared,
}

/// Delay with which a sleeping thread wakes up, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wake {
    /// Delay of clock_nanosleep to an instant, timer slack 1 ns.
    pub nanosleep_ns: Option<Summary>,
    /// Delay of ppoll with a timeout, timer slack 1 ns.
    pub ppoll_ns: Option<Summary>,
    /// Time from a write to a loopback socket until its sleeping reader has the data.
    pub reader_ns: Option<Summary>,
}

/// Cost of idle connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// Number of connections requested.
    pub wanted: u64,
    /// Number of connections open at the end.
    pub opened: u64,
    /// Number of agents that share them.
    pub agents: u32,
    /// Time from the first attempt until the last connection was accepted, s.
    pub ramp_s: f64,
    /// Connections per second.
    pub per_s: f64,
    /// User memory of all agents, bytes: the sum of the medians of their unique set sizes.
    pub user_bytes: u64,
}

/// Highest rate that one agent offers in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HighestRate {
    /// Number of publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Event loops of the agent.
    pub shards: u32,
    /// p99 of the generator delay from which sending counts as too late, ns.
    pub bound_ns: Ns,
    /// Highest rate that was kept, messages per second; 0 if none was.
    pub per_s: f64,
    /// Lowest rate that was not kept, if there was one.
    pub missed_per_s: Option<f64>,
    /// Attempts, in their order.
    pub attempts: Vec<Attempt>,
}

/// One rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Requested rate, messages per second.
    pub asked_per_s: f64,
    /// Rate of messages sent, per second.
    pub sent_per_s: f64,
    /// 99th percentile of the generator delay, ns; `None` if nothing was sent.
    pub own_lag_p99_ns: Option<Ns>,
    /// True if the rate was kept.
    pub kept: bool,
}

/// All measurements of `pubmark calibrate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of this layout.
    pub schema: u32,
    /// Machine and program.
    pub machine: Identity,
    /// Time of the calibration, UTC (RFC 3339).
    pub time: String,
    /// True if it was shortened.
    pub quick: bool,
    /// Load by other programs while it only waited for wake-ups.
    pub load: MachineLoad,
    /// Relay between senders and receivers.
    pub relay: String,
    /// Cost of a message, by rate.
    pub cost: Vec<Cost>,
    /// Unthrottled senders, by size.
    pub unthrottled: Vec<UnthrottledRate>,
    /// Wake-up delays.
    pub wake: Wake,
    /// Idle connections, from few to many.
    pub connections: Vec<Connected>,
    /// User memory of one more idle connection, bytes: the slope between the first two of `connections`.
    pub bytes_per_connection: f64,
    /// Highest rate that can be offered.
    pub most: HighestRate,
    /// Further remarks.
    pub remarks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_pairs() {
        // The machine doubles its speed from the first pair to the last.
        let compared = Compared::of(vec![9.0, 11.0, 18.0], vec![10.0, 12.0, 20.0]);
        assert_eq!((compared.ours_median, compared.bare_median, compared.ratio), (11.0, 12.0, 0.9));
        assert_eq!(Compared::of(vec![1.0], vec![0.0]).ratio, 0.0);
        assert_eq!(Compared::of(vec![], vec![]), Compared::default());
    }

    #[test]
    fn a_ratio_is_the_median_of_the_pairs() {
        let compared = Compared::of(vec![4.0, 2.0, 9.0], vec![1.0, 2.0, 3.0]);
        assert_eq!((compared.ours_median, compared.bare_median), (4.0, 2.0));
        assert!((compared.ratio - 3.0).abs() < 1e-12, "of 4, 1 and 3");
        assert_eq!(Compared::of(vec![1.0], Vec::new()).ratio, 0.0);
    }
}
