//! What `pubmark calibrate` measured of a machine and this generator.

use pubmark_model::record::MachineLoad;
use pubmark_model::units::Ns;
use pubmark_stats::{Summary, median};
use serde::{Deserialize, Serialize};

/// The version of the file's layout.
pub const SCHEMA: u32 = 1;

/// Which machine and which program a calibration is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Model of the processor, as the kernel names it.
    pub processor: Option<String>,
    /// Processors of the machine.
    pub cores: u32,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Version of pubmark.
    pub pubmark: String,
}

/// A figure of pubmark's own agents and of a bare loop that does the same,
/// measured in turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Of the agents, by run.
    pub ours: Vec<f64>,
    /// Of the bare loop, by run.
    pub bare: Vec<f64>,
    /// Median of `ours`.
    pub ours_median: f64,
    /// Median of `bare`.
    pub bare_median: f64,
    /// Median of the ratios, ours over bare, of the pairs: what a machine does
    /// slowly to both of them is in none of these.
    pub ratio: f64,
}

impl Compared {
    /// Compares what was measured in pairs; a median of nothing is 0, and so
    /// is a ratio to it.
    pub fn of(ours: Vec<f64>, bare: Vec<f64>) -> Compared {
        let (ours_median, bare_median) = (median(&ours).unwrap_or_default(), median(&bare).unwrap_or_default());
        let pairs = ours.iter().zip(&bare).filter(|(_, bare)| **bare > 0.0);
        let ratio = median(&pairs.map(|(ours, bare)| ours / bare).collect::<Vec<_>>()).unwrap_or_default();
        Compared { ours, bare, ours_median, bare_median, ratio }
    }
}

/// What a message costs through a relay, at a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Publishers, and subscribers, each with a connection.
    pub connections: u32,
    /// Messages a second of all publishers together.
    pub rate_per_s: f64,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Least time between two wake-ups of a sender, ns.
    pub quantum_ns: Ns,
    /// CPU seconds, user and system, for a million messages sent.
    pub send_cpu_s_per_million: Compared,
    /// CPU seconds for a million messages received.
    pub receive_cpu_s_per_million: Compared,
    /// How late the agents sent, ns.
    pub ours_lag_ns: Option<Summary>,
    /// How late the bare loop sent, ns.
    pub bare_lag_ns: Option<Summary>,
}

/// How much one sender pushes into the sink, unthrottled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unthrottled {
    /// Publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Whether sender and sink each had a processor of its own.
    pub pinned: bool,
    /// Messages a second.
    pub messages_per_s: Compared,
    /// Bytes of payload a second.
    pub bytes_per_s: Compared,
}

/// How late a sleeper wakes up, ns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wake {
    /// Of clock_nanosleep to an instant, timer slack 1 ns.
    pub nanosleep_ns: Option<Summary>,
    /// Of ppoll with a timeout, timer slack 1 ns.
    pub ppoll_ns: Option<Summary>,
    /// From a write to a loopback socket until its sleeping reader has it.
    pub reader_ns: Option<Summary>,
}

/// What idle connections cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// Connections that were wanted.
    pub wanted: u64,
    /// Connections that stood at the end.
    pub opened: u64,
    /// Agents that they were dealt out to.
    pub agents: u32,
    /// From the first attempt until the last was accepted, s.
    pub ramp_s: f64,
    /// Connections a second.
    pub per_s: f64,
    /// User memory of all agents, bytes: the medians of their unique set sizes.
    pub user_bytes: u64,
}

/// The most that one agent offers in time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Most {
    /// Publishers, each with a connection.
    pub connections: u32,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// Event loops of the agent.
    pub shards: u32,
    /// The generator's own p99 lag that counts as too late, ns.
    pub bound_ns: Ns,
    /// The highest rate that was kept, messages a second; 0 if none was.
    pub per_s: f64,
    /// The lowest rate that was not, if the search met one.
    pub missed_per_s: Option<f64>,
    /// Each attempt.
    pub attempts: Vec<Attempt>,
}

/// One rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Asked for, messages a second.
    pub asked_per_s: f64,
    /// Sent.
    pub sent_per_s: f64,
    /// The generator's own lag, 99th percentile, ns; none if nothing was sent.
    pub own_lag_p99_ns: Option<Ns>,
    /// Whether the rate was kept.
    pub kept: bool,
}

/// Everything that `pubmark calibrate` measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Version of this layout.
    pub schema: u32,
    /// Which machine and program.
    pub machine: Identity,
    /// When, UTC (RFC 3339).
    pub time: String,
    /// Whether it was cut down.
    pub quick: bool,
    /// What others did on the machine while it only waited for wake-ups.
    pub load: MachineLoad,
    /// What was between senders and receivers.
    pub relay: String,
    /// Cost of a message, by rate.
    pub cost: Vec<Cost>,
    /// Unthrottled senders, by size.
    pub unthrottled: Vec<Unthrottled>,
    /// Wake-ups.
    pub wake: Wake,
    /// Idle connections, from few to many.
    pub connections: Vec<Connected>,
    /// User memory that one more idle connection takes, bytes: the slope
    /// between the first two of `connections`.
    pub bytes_per_connection: f64,
    /// The most that can be offered.
    pub most: Most,
    /// What else is to be known.
    pub remarks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_pairs() {
        // The machine doubles its pace from the first pair to the last.
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
