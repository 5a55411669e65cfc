//! Reasons why a text is not a script of faults.

use crate::units::UnitError;

/// The form of a fault, for messages.
const SHAPE: &str = "`stop server at 5s for 1s`, `kill server at 10s for 2s`, `restart server at 5s`, `kill publishers at 5s`, `cut link at 5s for 2s`, \
     `cut 50% of clients at 5s`, `cut link 1-2 at 5s for 2s`, `cut power of server at 5s for 3s` or `fill disk of server at 5s for 3s`";

/// Reasons why a text is not a script of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The text does not have the form of a fault.
    #[error("`{0}` is not a fault: write {SHAPE}")]
    Shape(String),
    /// The kind of fault is unknown.
    #[error("`{text}`: `{act}` is not a fault: {help}")]
    Act {
        /// The fault as typed.
        text: String,
        /// The unknown word.
        act: String,
        /// Advice.
        help: String,
    },
    /// The part of a run is unknown.
    #[error("`{text}`: `{target}` is not a part of a run: {help}")]
    Target {
        /// The fault as typed.
        text: String,
        /// The unknown word.
        target: String,
        /// Advice.
        help: String,
    },
    /// The words after `server` name no member, or not one that can be affected so.
    #[error(
        "`{0}`: write `server leader`, `server 2` (a member's number, from 1), or `restart server rolling`, before `at`"
    )]
    Member(String),
    /// The words after `link` name no two members.
    #[error(
        "`{0}`: write `cut link 1-2 at … for …` with the numbers of two members, from 1, or `cut link leader at … for …`"
    )]
    Between(String),
    /// Only a server is restarted, and that takes the time that it takes.
    #[error("`{0}`: write `restart server at 5s`, `restart server leader at 5s` or `restart server rolling at 5s`")]
    Restart(String),
    /// Only links and clients can be cut.
    #[error(
        "`{0}`: a server is not cut: write `cut link at … for …`, `cut clients at …`, or `cut power of server at … for …`"
    )]
    Cut(String),
    /// Only a server has a power supply that can be cut.
    #[error("`{0}`: only a server's power can be cut: write `cut power of server at … for …`")]
    Power(String),
    /// Only a server has a disk that can be filled.
    #[error("`{0}`: only a server's disk can be filled: write `fill disk of server at … for …`")]
    Disk(String),
    /// A cut is the only fault of a link and of clients of both sides.
    #[error("`{0}`: nothing else than a cut can be done to it: write `{1}`")]
    OnlyCut(String, &'static str),
    /// The share of clients is invalid, or the fault affects no share.
    #[error(
        "`{0}`: write `cut N% of clients at …`, or `kill N% of subscribers at …`, with a whole number from 1 to 100"
    )]
    Share(String),
    /// The script says when killed or cut clients come back.
    #[error(
        "`{text}`: whoever is killed stays away for the rest of the run, and whoever is cut comes back at once: write \
         `{act} {side} at …`, or `cut link at … for …`, after which clients come back"
    )]
    Return {
        /// The fault as typed.
        text: String,
        /// The kind of fault.
        act: &'static str,
        /// The clients that it affects.
        side: &'static str,
    },
    /// Some subscribers are to stay away, and another fault makes clients come back.
    #[error(
        "`{fault}` and `{other}`: after the second, clients come back, and those of the first are to stay away: use one"
    )]
    Back {
        /// The fault that kills a share of the subscribers.
        fault: String,
        /// The other one.
        other: String,
    },
    /// The length is missing.
    #[error("`{0}` does not say for how long: write {SHAPE}")]
    NoLength(String),
    /// A time is invalid.
    #[error("`{text}`: {source}")]
    Time {
        /// The fault as typed.
        text: String,
        /// The error of the time.
        source: UnitError,
    },
    /// The fault has length 0.
    #[error("`{0}` lasts no time: nothing would happen")]
    NoTime(String),
    /// Two faults of one part overlap.
    #[error("`{next}` begins before `{fault}` is over")]
    Overlap {
        /// The first fault.
        fault: String,
        /// The fault that begins too early.
        next: String,
    },
    /// The fault affects clients that have been killed before.
    #[error("`{next}`: nobody is there any more after `{fault}`")]
    Gone {
        /// The fault that killed them.
        fault: String,
        /// The fault that comes after it.
        next: String,
    },
}
