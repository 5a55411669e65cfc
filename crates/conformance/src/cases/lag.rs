//! Delay of the agent's sends, computed from the messages.

use crate::figures::{counts, read};
use crate::sending::ScriptOutcome;
use crate::wrong::{CaseFailure, due};
use pubmark_model::header::Header;
use pubmark_model::protocol::PackedHistogram;
use pubmark_model::units::{Ns, format_time};

/// Returns the headers of the window's messages, as one subscriber of each publisher received them.
pub fn window(out: &ScriptOutcome) -> Vec<Header> {
    let of = |publisher| {
        let (_, window) = out.plan(publisher);
        let headers = out.messages(out.socket_of(publisher), publisher).into_iter().filter_map(|heard| heard.header);
        headers.filter(move |header| window.contains(&(header.sequence as usize)))
    };
    out.publishers().flat_map(of).collect()
}

/// Checks that `send_lag` agrees with the messages.
pub fn send_lag(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    lag(out, "send_lag", out.result.histograms.send_lag.as_ref(), |header| {
        Some(header.sent_ns?.saturating_sub(header.intended_ns))
    })
}

/// Checks that `own_lag` agrees with the messages.
pub fn own_lag(out: &ScriptOutcome) -> Result<(), CaseFailure> {
    lag(out, "own_lag", out.result.histograms.own_lag.as_ref(), |header| {
        Some(header.sent_ns?.saturating_sub(header.free_ns?))
    })
}

fn lag(
    out: &ScriptOutcome,
    name: &str,
    packed: Option<&PackedHistogram>,
    of: fn(&Header) -> Option<Ns>,
) -> Result<(), CaseFailure> {
    let histogram = read(name, packed)?;
    let mut truth: Vec<Ns> = window(out).iter().filter_map(of).collect();
    truth.sort_unstable();
    counts(name, &histogram, truth.len() as u64)?;
    for quantile in [0.0, 0.25, 0.5, 0.75, 0.9, 1.0] {
        let place = ((truth.len() as f64 * quantile) as usize).min(truth.len().saturating_sub(1));
        let wanted = truth.get(place).copied().unwrap_or_default();
        let said = histogram.value_at((place as f64 + 0.5) / truth.len() as f64);
        due(said.abs_diff(wanted) <= wanted / 400 + 2, || {
            format!(
                "p{} of `{name}` is {}; by the messages themselves it is {}",
                quantile * 100.0,
                format_time(said),
                format_time(wanted)
            )
        })?;
    }
    Ok(())
}
