//! Errors of values of settings and options.

use crate::churn::ChurnError;
use crate::draw::UnknownChoice;
use crate::fault::FaultError;
use crate::message_headers::HeadersError;
use crate::payload::PayloadError;
use crate::payload_content::UnknownContent;
use crate::pin::UnknownPin;
use crate::tuning::UnknownUse;
use crate::units::{UnitError, format_time};
use crate::watch::UnknownWatch;
use crate::words::UnknownWord;
use crate::workload::UnknownArrival;

/// Reasons why a text is not a value of a key or of an option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The size, time or rate is invalid.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The word is unknown.
    #[error(transparent)]
    Word(#[from] UnknownWord),
    /// The pinning is invalid.
    #[error(transparent)]
    Pin(#[from] UnknownPin),
    /// The processes to watch are invalid.
    #[error(transparent)]
    Watch(#[from] UnknownWatch),
    /// The arrival is invalid.
    #[error(transparent)]
    Arrival(#[from] UnknownArrival),
    /// The choice of topics is invalid.
    #[error(transparent)]
    Choice(#[from] UnknownChoice),
    /// The rate of clients that come and go is invalid.
    #[error(transparent)]
    Churn(#[from] ChurnError),
    /// The size of messages is invalid.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The content of messages is invalid.
    #[error(transparent)]
    Content(#[from] UnknownContent),
    /// The headers of messages are invalid.
    #[error(transparent)]
    Headers(#[from] HeadersError),
    /// The script of faults is invalid.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The server configuration is unknown.
    #[error(transparent)]
    Use(#[from] UnknownUse),
    /// The count is invalid or out of range.
    #[error("`{text}` is not a whole number from {least} to {most}")]
    Count {
        /// The text as typed.
        text: String,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
    },
    /// The size is out of range.
    #[error("`{text}` is outside the range of {least} to {most} bytes")]
    Size {
        /// The text as typed.
        text: String,
        /// The smallest valid value, bytes.
        least: u64,
        /// The largest valid value, bytes.
        most: u64,
    },
    /// The text is neither true nor false.
    #[error("`{0}` is neither true nor false")]
    Flag(String),
    /// The time is too short.
    #[error("`{text}` is less than {}", format_time(*.least_ns))]
    Short {
        /// The text as typed.
        text: String,
        /// The smallest valid value, ns.
        least_ns: u64,
    },
    /// The delay is not possible for a link.
    #[error("`{0}` is not a delay of whole milliseconds, 60 s at most")]
    Delay(String),
    /// The loss is not possible for a link.
    #[error(
        "`{0}` cannot be lost on a link: it stands between a server and its clients, whose connections of TCP send again \
         what a network loses (set `link_delay` and `link_jitter` for what that does to them). Where datagrams are \
         measured, let the network of a host lose them (`loss = \"1%\"` in its table, see `pubmark run --hosts`)"
    )]
    Loss(String),
    /// The bandwidth is not possible for a link.
    #[error("`{0}` is not a bandwidth in whole kB a second, 1 kB to 1 TB")]
    Bandwidth(String),
    /// The number of processors is invalid.
    #[error("`{0}` is not a number of processors from 0.01 to 4096, in steps of 0.001")]
    Cpus(String),
    /// There is no text.
    #[error("it is empty: write a name")]
    NoText,
    /// The speed of a replay is invalid.
    #[error("`{0}` is not a speed: write a number from 0.001 to 1000 with at most three decimals, such as `2`")]
    Speed(String),
    /// The word requests the default behaviour.
    #[error("`spread` needs no word: did you mean `together`? Pairs are spread over all hosts of clients")]
    Spread,
    /// The word names a pattern, not a placement.
    #[error(
        "`round-trip` is not a place: did you mean pattern = \"request-reply\" (or \"fan-out-echo\")? Each measures there and back on one clock"
    )]
    RoundTrip,
    /// The bound of a tie is invalid.
    #[error("`{0}` is not a share: write a percentage from 0.1 to 50, such as `5%`")]
    Share(String),
}
