//! Checks that the figures of each result agree with each other.

use super::heard::all_times;
use super::scripts::KNOWN;
use super::sent::FAN_OUT;
use crate::case::{Case, of_sockets as case};
use crate::figures::agree;
use crate::wrong::CaseFailure;

pub const CASES: &[Case] = &[case(
    "figures-agree",
    "all of the above",
    "no figure of a result that contradicts another: counts, sums, and times of which one is a part of the other",
    |bench| {
        bench.sends(&FAN_OUT)?;
        all_times(&*bench.receives(&KNOWN)?, &KNOWN)?;
        bench.results(|name, flow, workload| {
            agree(flow, workload).map_err(|wrong| match wrong {
                CaseFailure::Did(what) => CaseFailure::Did(format!("in `{name}`: {what}")),
                other => other,
            })
        })
    },
)];
