//! The better direction of a figure.

/// The better direction of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower is better: latency, loss, memory.
    Lower,
    /// Higher is better: throughput.
    Higher,
}
