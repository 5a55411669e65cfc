//! Why the text of a setting or of an option is no value of it.

use crate::fault::FaultError;
use crate::pin::UnknownPin;
use crate::tuning::UnknownUse;
use crate::units::{UnitError, format_time};
use crate::watch::UnknownWatch;
use crate::words::UnknownWord;
use crate::workload::UnknownArrival;

/// Why a text is no value of a key or of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is no size, time or rate.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// It is none of the words that are known.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// It binds nothing to a processor.
    #[error(transparent)]
    Pin(#[from] UnknownPin),
    /// It names nothing to watch.
    #[error(transparent)]
    Watch(#[from] UnknownWatch),
    /// It is no arrival.
    #[error(transparent)]
    Arrival(#[from] UnknownArrival),
    /// It is no script of faults.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// It does not say whose defaults.
    #[error(transparent)]
    Use(#[from] UnknownUse),
    /// It is no count, or one out of range.
    #[error("`{text}` is not a whole number from {least} to {most}")]
    Count {
        /// As typed.
        text: String,
        /// The least that is allowed.
        least: u64,
        /// The most.
        most: u64,
    },
    /// It is a size out of range.
    #[error("`{text}` is outside the range of {least} to {most} bytes")]
    Size {
        /// As typed.
        text: String,
        /// The least that is allowed, bytes.
        least: u64,
        /// The most.
        most: u64,
    },
    /// It is neither true nor false.
    #[error("`{0}` is neither true nor false")]
    Flag(String),
    /// It is a time that is too short.
    #[error("`{text}` is less than {}", format_time(*.least_ns))]
    Short {
        /// As typed.
        text: String,
        /// The least that is allowed, ns.
        least_ns: u64,
    },
    /// It is no delay that a link can have.
    #[error("`{0}` is no delay of whole milliseconds, 60 s at most")]
    Delay(String),
    /// It is no loss that a link can have.
    #[error(
        "`{0}` cannot be lost on a link: it stands between a server and its clients, whose connections of TCP send again \
         what a network loses (set `link_delay` and `link_jitter` for what that does to them). Where datagrams are \
         measured, let the network of a host lose them (`loss = \"1%\"` in its table, see `pubmark run --hosts`)"
    )]
    Loss(String),
    /// It is no bandwidth that a link can have.
    #[error("`{0}` is no bandwidth in whole kB a second, 1 kB to 1 TB")]
    Bandwidth(String),
    /// It is no number of processors.
    #[error("`{0}` is not a number of processors from 0.01 to 4096, in steps of 0.001")]
    Cpus(String),
    /// It asks for what is done wherever it can be.
    #[error("`spread` needs no word: did you mean `together`? Pairs are spread over all hosts of clients")]
    Spread,
    /// It is a pattern's, and not a place's.
    #[error(
        "`round-trip` is no place: did you mean pattern = \"request-reply\" (or \"fan-out-echo\")? Each measures there and back on one clock"
    )]
    RoundTrip,
    /// It is no bound below which differences do not matter.
    #[error("`{0}` is no share: write a percentage from 0.1 to 50, such as `5%`")]
    Share(String),
}
