//! From settings to a workload with nothing left open.

use super::{Arrival, Extent, Pacing, Pattern, Pin, Rate, Receive, Transport, Verify, Workload, default_connect_rate};
use crate::header::MAX_SEQUENCE;
use crate::pattern::Topics;
use crate::setting::Settings;
use crate::topology::copies;
use crate::units::{LONGEST, SECOND, parse_time};
use serde_json::Value;

/// Publishers of a partition of the pattern `tree`, where the number of
/// subscribers does not say otherwise.
const PARTITION: u64 = 1_000;

impl Workload {
    /// Builds a workload from settings and defaults; all errors at once.
    pub fn resolve(settings: &Settings) -> Result<Workload, Vec<String>> {
        let mut errors = Vec::new();
        let word = |key: &str| settings.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |key: &str| settings.get(key).and_then(Value::as_u64);
        let time = |key: &str| parse_time(&word(key)).unwrap_or_default();
        let pattern = Pattern::parse(&word("pattern")).unwrap_or(Pattern::Pairs);
        let rate = settings.get("rate").and_then(|rate| Rate::try_from(rate.clone()).ok()).unwrap_or(Rate::Max);

        let (mut publishers, mut subscribers) = (number("publishers"), number("subscribers"));
        match (pattern.paired(), number("pairs")) {
            (true, Some(pairs)) => {
                for (given, name) in [(publishers, "publishers"), (subscribers, "subscribers")] {
                    if given.is_some_and(|given| given != pairs) {
                        errors.push(format!("`{name}` contradicts `pairs`: leave one of them out"));
                    }
                }
                (publishers, subscribers) = (Some(pairs), Some(pairs));
            }
            (true, None) => {
                let pairs = publishers.or(subscribers).unwrap_or(1);
                if subscribers.is_some_and(|subscribers| subscribers != pairs) {
                    errors.push(format!(
                        "pattern `{pattern}` needs as many publishers as subscribers: write `pairs = N`"
                    ));
                }
                (publishers, subscribers) = (Some(pairs), Some(pairs));
            }
            (false, Some(_)) => errors
                .push(format!("`pairs` has no meaning in pattern `{pattern}`: write `publishers` and `subscribers`")),
            (false, None) => {}
        }
        let is_tree = pattern.topics() == Topics::Tree;
        if is_tree && subscribers.is_none() {
            subscribers = Some(publishers.unwrap_or(1).div_ceil(PARTITION).max(1));
        }
        if is_tree
            && let (Some(publishers), Some(subscribers)) = (publishers.or(Some(1)), subscribers)
            && (publishers < subscribers || publishers % subscribers != 0)
        {
            errors.push(format!(
                "pattern `{pattern}` needs a whole number of publishers for each partition: let `publishers` be a multiple of `subscribers`"
            ));
        }
        let extent = match (settings.get("duration"), number("count")) {
            (Some(_), Some(_)) => {
                errors.push("`duration` and `count` both say how long the window is: leave one of them out".into());
                Extent::Count(1)
            }
            (None, Some(count)) => Extent::Count(count),
            (Some(_), None) => Extent::TimeNs(time("duration")),
            (None, None) => Extent::TimeNs(5 * SECOND),
        };
        if extent == Extent::TimeNs(0) {
            errors.push("`duration` is 0: nothing would be measured".into());
        }
        let arrival = Arrival::parse(&word("arrival")).unwrap_or(Arrival::Uniform);
        if rate == Rate::Max && arrival != Arrival::Uniform {
            errors.push(format!("`arrival = \"{arrival}\"` has no meaning where `rate` is `max`"));
        }
        let payload_bytes = number("payload").unwrap_or_default();
        if let Rate::PerKilosecond(rate) = rate {
            let per_run = u128::from(rate)
                * u128::from(
                    match extent {
                        Extent::TimeNs(ns) => ns,
                        Extent::Count(_) => 0,
                    } + time("warmup"),
                )
                / 1_000_000_000_000;
            let count = match extent {
                Extent::Count(count) => u128::from(count),
                Extent::TimeNs(_) => 0,
            };
            if per_run + count > u128::from(MAX_SEQUENCE) {
                errors.push("a publisher would send more than the 4,294,967,279 messages that a run can number: lower `rate` or `duration`".into());
            }
        }
        if let (Extent::Count(count), Rate::PerKilosecond(rate)) = (extent, rate)
            && u128::from(count) * 1_000_000_000_000 / u128::from(rate) > u128::from(LONGEST)
        {
            errors.push("`count` messages at this `rate` take longer than the 30 days that a run may take".into());
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let workload = Workload {
            pattern,
            transport: settings.get("transport").and_then(Value::as_str).and_then(|word| Transport::parse(word).ok()),
            publishers: publishers.unwrap_or(1) as u32,
            subscribers: subscribers.unwrap_or(1) as u32,
            rate,
            arrival,
            payload_bytes,
            qos: number("qos").unwrap_or_default() as u8,
            durable: settings.get("durable").and_then(Value::as_bool).unwrap_or_default(),
            reconnect: false,
            connect_rate: number("connect_rate").map_or_else(default_connect_rate, |rate| rate as u32),
            warmup_ns: time("warmup"),
            extent,
            drain_ns: time("drain"),
            connect_timeout_ns: time("connect_timeout"),
            pacing: Pacing::parse(&word("pacing")).unwrap_or(Pacing::Hybrid),
            pacing_quantum_ns: time("pacing_quantum"),
            receive: Receive::parse(&word("receive")).unwrap_or(Receive::Block),
            verify: Verify::Header,
            pin: Pin::parse(&word("pin")).unwrap_or(Pin::None),
            max_send_lag_ns: time("max_send_lag"),
            late_after_ns: time("late_after"),
            seed: number("seed").unwrap_or(1),
        };
        let verify = Verify::parse(&word("verify")).unwrap_or_else(|_| workload.affordable());
        Ok(Workload { verify, ..workload })
    }

    /// How much is checked where nobody says: bodies too, where that takes
    /// under 2 % of one event loop's time if that one hears all subscribers.
    fn affordable(&self) -> Verify {
        /// What a CRC-32C costs: a message, and a byte of one that is no longer
        /// in a near cache, 1,000th ns (measured: up to 12 ns and 0.04 to 0.09 ns).
        const MESSAGE: u128 = 20_000;
        const BYTE: u128 = 100;
        /// A fiftieth of a second, the same.
        const MOST_A_SECOND: u128 = 20_000_000_000;
        let Rate::PerKilosecond(rate) = self.rate else { return Verify::Header };
        let copies = u128::from(self.publishers) * u128::from(copies(self));
        let arrivals_per_ks = u128::from(rate) * copies;
        let each = MESSAGE + BYTE * u128::from(self.payload_bytes);
        if arrivals_per_ks * each < MOST_A_SECOND * 1_000 { Verify::Full } else { Verify::Header }
    }
}
