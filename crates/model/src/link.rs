//! The link between clients and their server: its effect on bytes, and its failures.

mod resolve;

use crate::fault::{Act, Fault, Target};
use crate::protocol::Role;
use crate::units::{MILLISECOND, Ns, format_time};
use crate::words::words;
use pubmark_stats::Random;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Upper bound of a run's link failures.
pub const MAX_FAILURES: u64 = 10_000;

words! {
    /// The clients whose connections use the link.
    Side {
        /// Subscribers, as if devices received over the link.
        Subscribers = "subscribers",
        /// Publishers, as if devices reported over the link.
        Publishers = "publishers",
        /// All clients.
        Both = "both",
    }
}

impl Side {
    /// True if clients of this role use the link.
    pub fn holds(self, role: Role) -> bool {
        match self {
            Side::Both => true,
            Side::Publishers => role.sends(),
            Side::Subscribers => !role.sends(),
        }
    }
}

/// Reasons why settings do not describe a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The length of failures is missing.
    #[error("`mttf` says when the link fails, and nothing says for how long: set `mttr`")]
    NoRepair,
    /// The frequency of failures is missing.
    #[error("`mttr` says how long the link fails, and nothing says how often: set `mttf`")]
    NoFailure,
    /// The link fails both by the script and by chance.
    #[error("the script cuts the link, and `mttf` has it fail by chance: leave one of them out")]
    FailsTwice,
    /// The jitter exceeds the delay.
    #[error("`link_jitter` is how far `link_delay` varies: it cannot be more than that")]
    Jitter,
    /// The link has no effect.
    #[error(
        "`link = \"{side}\"` says who goes over a link, and nothing says what it does: set `mttf` and \
         `mttr`, `link_delay` or `link_bandwidth` (`link_delay = \"0s\"` for the link alone)"
    )]
    DoesNothing {
        /// The clients that use it.
        side: Side,
    },
}

/// A link, fully resolved. Without one, clients reach the server directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The clients whose connections use it.
    pub side: Side,
    /// Delay of all bytes, one way, in each direction, ns.
    pub delay_ns: Ns,
    /// Random variation of the delay in both directions, uniform, ns; at most the delay.
    #[serde(default, skip_serializing_if = "is_none")]
    pub jitter_ns: Ns,
    /// Bytes a second of each connection, in each direction; `None` for no limit.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// Mean time from the window's beginning or a repair to a failure, ns; `None` if it fails by
    /// the script alone.
    pub mttf_ns: Option<Ns>,
    /// Mean time from a failure to its repair, ns.
    pub mttr_ns: Option<Ns>,
}

fn is_none(jitter_ns: &Ns) -> bool {
    *jitter_ns == 0
}

impl Link {
    /// Draws the failures of a window: times to failure and to repair are exponential and drawn in
    /// turn. A failure that would outlast the window ends with it.
    pub fn failures(&self, window_ns: Ns, seed: u64) -> Vec<Fault> {
        let (Some(mttf_ns), Some(mttr_ns)) = (self.mttf_ns, self.mttr_ns) else { return Vec::new() };
        let mut random = Random(seed);
        let mut exponential = |mean: Ns| (-(1.0 - random.unit()).ln() * mean as f64).ceil() as Ns;
        let mut found = Vec::new();
        let mut at_ns = exponential(mttf_ns);
        // A failure within the last millisecond could not be executed any more.
        while at_ns + MILLISECOND < window_ns && (found.len() as u64) < MAX_FAILURES {
            let for_ns = exponential(mttr_ns).max(MILLISECOND).min(window_ns - at_ns);
            found.push(Fault {
                what: Act::Cut,
                who: Target::Link,
                host: None,
                member: None,
                percent: None,
                at_ns,
                for_ns: Some(for_ns),
            });
            at_ns += for_ns + exponential(mttf_ns).max(1);
        }
        found
    }

    /// Returns an error if too many failures are expected in a window.
    pub fn fails_too_often(&self, window_ns: Ns) -> Option<String> {
        let (mttf_ns, mttr_ns) = (self.mttf_ns?, self.mttr_ns?);
        // Half of the bound, so that chance does not reach it.
        (window_ns / (mttf_ns + mttr_ns).max(1) > MAX_FAILURES / 2).then(|| {
            let (window, mttf) = (format_time(window_ns), format_time(mttf_ns));
            format!(
                "a mean of {mttf} to a failure in a window of {window} makes more than {} of them",
                MAX_FAILURES / 2
            )
        })
    }
}

/// Returns the seed of a run's failures. It depends on study, repeat and place on the axes, but not
/// on the system, so that compared systems have the same failures.
pub fn seed(study: u64, repeat: u32, axes: &serde_json::Map<String, Value>) -> u64 {
    let place = axes.iter().filter(|(name, _)| *name != "system").map(|(name, value)| format!("{name}={value}\n"));
    // FNV-1a: the same in every build and on every machine.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let text = format!("{study}\n{repeat}\n{}", place.collect::<String>());
    text.bytes().fold(0xcbf2_9ce4_8422_2325, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Script;
    use crate::setting::Settings;
    use crate::units::SECOND;

    fn resolve(pairs: &[(&str, &str)], script: &str) -> Result<Option<Link>, LinkError> {
        Link::resolve(&Settings::of(pairs.iter().copied()).unwrap(), &Script::parse(script).unwrap())
    }

    #[test]
    fn there_is_a_link_where_something_is_said_of_it() {
        assert_eq!(resolve(&[], "kill server at 1s for 1s"), Ok(None));
        let link = resolve(&[("mttf", "30s"), ("mttr", "5s")], "none").unwrap().unwrap();
        assert_eq!((link.side, link.delay_ns, link.mttf_ns), (Side::Subscribers, 0, Some(30 * SECOND)));
        assert_eq!(resolve(&[], "cut link at 1s for 1s").unwrap().unwrap().mttf_ns, None);
        assert_eq!(resolve(&[("link_delay", "0s"), ("link", "both")], "none").unwrap().unwrap().side, Side::Both);
        let link = resolve(&[("link_delay", "5ms"), ("link_jitter", "2ms")], "none").unwrap().unwrap();
        assert_eq!((link.delay_ns, link.jitter_ns), (5 * MILLISECOND, 2 * MILLISECOND));
        let link = resolve(&[("link_bandwidth", "1MB")], "none").unwrap().unwrap();
        assert_eq!(link.bandwidth_bytes_per_s, Some(1_000_000));
        assert!(Side::Both.holds(Role::Publisher) && Side::Publishers.holds(Role::Requester));
        assert!(!Side::Subscribers.holds(Role::Publisher) && Side::Subscribers.holds(Role::Replier));
    }

    #[test]
    fn half_a_link_is_refused_with_the_way_out() {
        for (pairs, script, says) in [
            (&[("mttf", "30s")][..], "none", "set `mttr`"),
            (&[("mttr", "30s")], "none", "set `mttf`"),
            (&[("mttf", "30s"), ("mttr", "1s")], "cut link at 1s for 1s", "leave one of them out"),
            (&[("link", "both")], "none", "link_delay = \"0s\""),
            (&[("link_jitter", "2ms")], "none", "cannot be more than that"),
            (&[("link_delay", "1ms"), ("link_jitter", "2ms")], "none", "cannot be more than that"),
        ] {
            let error = resolve(pairs, script).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    /// A link loss would need a network of its own, so the setting is refused, not ignored.
    #[test]
    fn loss_is_refused_by_name() {
        let error = Settings::of([("link_loss", "1%")]).unwrap_err().to_string();
        assert!(error.contains("`1%` cannot be lost on a link") && error.contains("`loss = \"1%\"`"), "{error}");
        assert_eq!(resolve(&[("link_loss", "0%")], "none"), Ok(None));
    }

    #[test]
    fn failures_have_the_means_that_were_asked_for_and_fit_the_window() {
        let link = resolve(&[("mttf", "3s"), ("mttr", "1s")], "none").unwrap().unwrap();
        let window_ns = 8_000 * SECOND;
        let failures = link.failures(window_ns, 7);
        assert_eq!(failures, link.failures(window_ns, 7));
        assert_ne!(failures, link.failures(window_ns, 8));
        assert_eq!(Script::parse(&Script(failures.clone()).to_string()), Ok(Script(failures.clone())), "none overlap");
        assert_eq!(Script(failures.clone()).outlasts(window_ns), None);
        // About 2,000 of each: their mean is nearly always within 10 %, and the seed is fixed.
        let mean = |sum: u64| sum as f64 / failures.len() as f64 / SECOND as f64;
        let down: u64 = failures.iter().filter_map(|fault| fault.for_ns).sum();
        let up = failures.last().unwrap().at_ns - down + failures.last().unwrap().for_ns.unwrap();
        assert!((0.9..1.1).contains(&mean(down)) && (2.7..3.3).contains(&mean(up)), "{} {}", mean(down), mean(up));
        // A share of 1 − 1/e of an exponential distribution is below the mean.
        let below = failures.iter().filter(|fault| fault.for_ns < Some(SECOND)).count() as f64 / failures.len() as f64;
        assert!((0.59..0.67).contains(&below), "{below}");
        assert!(link.fails_too_often(window_ns).is_none() && link.fails_too_often(100 * window_ns).is_some());
    }

    #[test]
    fn every_repeat_and_place_has_its_own_failures_and_every_system_the_same() {
        let axes = |system: &str, qos: u64| {
            [("system".to_owned(), Value::from(system)), ("qos".to_owned(), qos.into())].into_iter().collect()
        };
        let base = seed(1, 1, &axes("mosquitto", 1));
        assert_eq!(base, seed(1, 1, &axes("hivemq", 1)));
        for other in [seed(2, 1, &axes("mosquitto", 1)), seed(1, 2, &axes("mosquitto", 1)), seed(1, 1, &axes("m", 2))] {
            assert_ne!(base, other);
        }
    }
}
