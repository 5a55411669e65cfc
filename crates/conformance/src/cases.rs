//! The cases, one file for each side of a conversation.

mod agreement;
mod blocked;
mod heard;
mod killed;
mod lag;
mod late;
mod met;
mod scripts;
mod sent;
mod usage;
mod words;

use crate::bench::Played;
use crate::case::Case;

/// Long scripts that do not depend on milliseconds, with the cases that check them. The rows are played in parallel
/// with the other cases, each row in sequence.
pub const LONG: [&[(&[&str], Played)]; 3] = [
    &[
        (&["send-stopped-long"], Played::Sends(&late::STOPPED_SENDER)),
        (&["send-stopped"], Played::Sends(&sent::STOPPED)),
        (&["send-echoed"], Played::Sends(&sent::ECHOED)),
    ],
    &[
        (&["receive-stopped-long"], Played::Hears(&late::STOPPED_RECEIVER)),
        (&["drain-deadline"], Played::Hears(&scripts::DEADLINE)),
        (&["receive-stopped"], Played::Hears(&scripts::STOPPED)),
    ],
    &[
        (&["receive-late", "receive-progress"], Played::Hears(&late::LATE)),
        (&["send-progress"], Played::Sends(&sent::SECONDS)),
        (&["receive-silence"], Played::Hears(&scripts::SILENT)),
        (&["receive-crash"], Played::Hears(&scripts::KILLED)),
    ],
];

/// Returns all cases in the order in which they are tried.
pub fn all() -> impl Iterator<Item = &'static Case> {
    [
        words::CASES,
        sent::CASES,
        usage::CASES,
        blocked::CASES,
        heard::CASES,
        late::CASES,
        agreement::CASES,
        met::CASES,
        killed::CASES,
    ]
    .into_iter()
    .flatten()
}
