//! Which way a figure is better.

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As with latency, loss, memory.
    Lower,
    /// As with throughput.
    Higher,
}
