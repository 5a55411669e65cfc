//! Coordinated omission: messages that wait while a part of a run stands still count as late, by the schedule's
//! arithmetic, and the verdict names the part. If the publishers stood still, the wait is in the latency from the due
//! time and not in the headline: the system did not cause it.

use crate::left_out::{is_long, leave_out};
use crate::support::{Benched, Place};
use pubmark_host::programs::find_program;
use pubmark_stats::Histogram;
use pubmark_study::registry;
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// Messages per second of all ten publishers.
const RATE: f64 = 1_000.0;
const SECOND: f64 = 1e9;
/// Maximum number of runs on a machine that others use.
const ATTEMPTS: u32 = 3;

/// Returns a window long enough for reliable figures, or a short one.
fn window() -> (&'static str, f64, &'static str) {
    match std::env::var_os("PUBMARK_TEST_LONG") {
        Some(_) => ("20s", 20.0, "at 5s for 1s"),
        None => ("5s", 5.0, "at 2s for 1s"),
    }
}

/// A run in which one part stands still for a second.
struct Stall {
    bench: Benched,
    window_s: f64,
    /// Actual length of the standstill, s.
    length_s: f64,
    /// Latency that contains the wait, as the record names it.
    seen_by: &'static str,
    what: String,
}

impl Stall {
    /// Makes a run that can be judged: one whose late messages may be due to the machine is repeated. If others take
    /// the processors while the backlog of the stall is worked off, a record cannot distinguish that from a slow
    /// server.
    fn of(part: &str, target: &[&str]) -> Stall {
        let mut stall = Stall::once(part, target);
        for _ in 1..ATTEMPTS {
            if stall.is_explained() && !stall.has_another_stop() {
                break;
            }
            stall = Stall::once(part, target);
        }
        stall
    }

    fn once(part: &str, target: &[&str]) -> Stall {
        /// Runs in parallel would disturb each other.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::new();
        let (duration, window_s, when) = window();
        let fault = format!("stop {part} {when}");
        let mut arguments = target.to_vec();
        arguments.extend(["--pairs", "10", "--rate", "100", "--duration", duration, "--payload", "1KiB"]);
        // The machine's effect on the generator beside the fault is not tested here.
        arguments.extend(["--set", "max_send_lag=100ms", "--fault", &fault]);
        let bench = place.bench(&arguments);
        let what = format!("{} {fault}: {}", target[0], bench.record["fault_log"]);
        assert_eq!(bench.error(), "", "{what}");
        let event = &bench.record["fault_log"][0];
        let (at, until) = (event["at_ns"].as_f64().unwrap(), event["until_ns"].as_f64().unwrap());
        let asked = bench.record["faults"][0]["at_ns"].as_f64().unwrap();
        let length_s = (until - at) / SECOND;
        assert!(at >= asked && at - asked < SECOND / 4.0 && (0.8..1.25).contains(&length_s), "{what}");
        place.assert_swept();
        let seen_by = if part == "publishers" { "intended_latency" } else { "latency" };
        Stall { bench, window_s, length_s, seen_by, what }
    }

    fn ns(&self, field: &str, quantile: &str) -> f64 {
        self.bench.record[field][quantile].as_f64().unwrap()
    }

    /// Checks what is true whichever part stood still.
    fn assert_arithmetic(&self) {
        let (what, bench) = (&self.what, &self.bench);
        assert_eq!(bench.count("offered") as f64, RATE * self.window_s, "{what}");
        assert_eq!(bench.count("lost") + bench.count("duplicated") + bench.count("not_sent"), 0, "{what}");
        let (late, expected, noise) = (self.late(), self.expected_late(), self.noise());
        assert!(late >= 0.97 * expected, "{late} late, {expected} expected: {what}");
        assert!(self.is_explained(), "{late} late, {expected} expected, {noise} by the machine: {what}");
        // One message in a hundred is RATE * window / 100 messages: they waited longest.
        let p99 = self.length_s - self.window_s / 100.0;
        let found = self.ns(&format!("{}_ns", self.seen_by), "p99") / SECOND;
        // All waiting messages are delivered before the rest: on a busy machine that takes as long as its slowest slice
        // outside the stall shows.
        let most = 1.10 * p99 + self.slowest_apart() / SECOND;
        assert!(0.97 * p99 <= found && found <= most, "p99 {found} s, {p99} s expected, {most} s at most: {what}");
    }

    /// Returns the number of messages later than 10 ms, by the latency that contains the wait.
    fn late(&self) -> f64 {
        let text = self.bench.record["histograms"][self.seen_by].as_str().unwrap();
        let late = |(ns, _): &(u64, u64)| *ns as f64 > 0.010 * SECOND;
        Histogram::decode(text).unwrap().nonzero().filter(late).map(|(_, count)| count).sum::<u64>() as f64
    }

    /// Returns the number of messages due in the stall, without those of its last 10 ms.
    fn expected_late(&self) -> f64 {
        (self.length_s - 0.010) * RATE
    }

    /// Returns whether no more were late than the stall and the machine explain.
    fn is_explained(&self) -> bool {
        self.late() <= 1.05 * self.expected_late() + self.noise()
    }

    /// Returns true if an agent stood still that the script did not stop.
    fn has_another_stop(&self) -> bool {
        let evidence = self.bench.evidence("generator-saturated");
        evidence.is_some_and(|evidence| evidence.contains("it was stopped, or the machine was"))
    }

    /// Returns the number of messages that may have been late because of the machine: all of slices outside the stall
    /// with a late one, and as many within its own slices.
    fn noise(&self) -> f64 {
        let (slices, apart) = self.slices_apart();
        let late: f64 = apart.iter().filter(|(_, longest)| *longest > 0.010 * SECOND).map(|(count, _)| count).sum();
        late * slices as f64 / apart.len() as f64
    }

    /// Returns the longest latency outside the stall, ns.
    fn slowest_apart(&self) -> f64 {
        self.slices_apart().1.into_iter().map(|(_, longest)| longest).fold(0.0, f64::max)
    }

    /// Returns the number of slices, and the deliveries and the longest latency of each slice outside the stall.
    fn slices_apart(&self) -> (usize, Vec<(f64, f64)>) {
        let (series, event) = (&self.bench.record["series"], &self.bench.record["fault_log"][0]);
        let slice_ns = series["slice_ns"].as_f64().unwrap();
        let slices = |name: &str| -> Vec<f64> {
            series[name].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
        };
        let (delivered, longest) = (slices("delivered"), slices("latency_max_ns"));
        let slice_of = |field: &str| (event[field].as_f64().unwrap() / slice_ns) as usize;
        // Delayed messages are delivered in the slice after it, at the latest.
        let stall = slice_of("at_ns")..=slice_of("until_ns") + 1;
        let apart = (0..longest.len()).filter(|slice| !stall.contains(slice));
        (longest.len(), apart.map(|slice| (delivered[slice], longest[slice])).collect())
    }

    fn reasons(&self) -> Vec<&str> {
        let reasons = self.bench.record["verdict"]["reasons"].as_array().unwrap();
        let named = reasons.iter().map(|finding| finding["reason"].as_str().unwrap());
        // Others share this machine, and may slow the generator without stopping it.
        let is_slow = self.bench.evidence("generator-saturated").is_some_and(|words| !words.contains("did not run"));
        let is_noisy = self.bench.evidence("noisy-machine").is_some();
        named
            .filter(|reason| match *reason {
                "noisy-machine" => false,
                "generator-saturated" => !(is_noisy && is_slow),
                _ => true,
            })
            .collect()
    }

    fn note(&self, part: &str, says: &str) -> Option<&Value> {
        let notes = self.bench.record["verdict"]["notes"].as_array().unwrap();
        notes.iter().find(|note| note["part"] == part && note["evidence"].as_str().unwrap().contains(says))
    }

    /// Returns another latency as a share of the one from the due time.
    fn share(&self, field: &str) -> f64 {
        self.ns(field, "p99") / self.ns("intended_latency_ns", "p99")
    }
}

/// The server stood still: messages to it waited, by all latencies. That is a note about the server, and no reason
/// against the run.
fn server_stops(target: &[&str]) {
    let stall = Stall::of("server", target);
    stall.assert_arithmetic();
    let (what, verdict) = (&stall.what, &stall.bench.record["verdict"]);
    assert!(stall.share("service_latency_ns") > 0.9 && stall.share("latency_ns") > 0.9, "{what}");
    assert!(stall.reasons().is_empty(), "{verdict}: {what}");
    assert!(stall.note("server", "stopped by the script").is_some(), "{verdict}: {what}");
    assert!(stall.note("server", "while all agents ran").is_some(), "{verdict}: {what}");
}

/// The generator stood still: the run is unreliable, and its reason names the agent.
fn side_stops(side: &str, target: &[&str]) {
    let stall = Stall::of(side, target);
    stall.assert_arithmetic();
    let what = &stall.what;
    let shares = ["latency_ns", "service_latency_ns"].map(|field| stall.share(field));
    match side {
        // Sent late and delivered at once: the system caused none of that.
        "publishers" => assert!(shares.iter().all(|share| *share < 0.2), "{shares:?}: {what}"),
        _ => assert!(shares.iter().all(|share| *share > 0.9), "{shares:?}: {what}"),
    }
    assert_eq!(stall.bench.code, 3, "{what}");
    let evidence = stall.bench.evidence("generator-saturated").unwrap_or_default();
    assert!(evidence.contains(&format!("`{side}` did not run")), "{evidence}: {what}");
    assert!(evidence.contains("the script stopped it"), "{evidence}: {what}");
    assert!(stall.reasons().iter().all(|reason| *reason == "generator-saturated"), "{:?}: {what}", stall.reasons());
    assert!(stall.note("server", "").or(stall.note("library", "")).is_none(), "{what}");
}

#[test]
fn omission_is_seen_over_mqtt() {
    server_stops(&["mosquitto"]);
    side_stops("subscribers", &["mosquitto"]);
    side_stops("publishers", &["mosquitto"]);
}

#[test]
fn omission_is_seen_over_nats() {
    if is_long("omission_is_seen_over_nats") {
        server_stops(&["nats"]);
        side_stops("subscribers", &["nats"]);
        side_stops("publishers", &["nats"]);
    }
}

#[test]
fn omission_is_seen_over_redis() {
    if is_long("omission_is_seen_over_redis") {
        server_stops(&["redis"]);
        side_stops("subscribers", &["redis"]);
        side_stops("publishers", &["redis"]);
    }
}

/// Its server takes seconds to start.
#[test]
fn omission_is_seen_over_amqp() {
    if !is_long("omission_is_seen_over_amqp") {
        return;
    }
    server_stops(&["rabbitmq-amqp"]);
}

#[test]
fn omission_is_seen_over_zeromq() {
    if !is_long("omission_is_seen_over_zeromq") {
        return;
    }
    side_stops("subscribers", &["zeromq", "--transport", "tcp"]);
    side_stops("publishers", &["zeromq", "--transport", "tcp"]);
}

#[test]
fn omission_is_seen_over_zenoh_where_it_is_installed() {
    let agent = registry::built_in("zenoh-library").and_then(|system| system.agent.sending.first().cloned());
    if agent.and_then(|agent| find_program(&agent)).is_none() {
        leave_out("omission_is_seen_over_zenoh_where_it_is_installed", "`make zenoh` builds its agent");
        return;
    }
    for system in ["zenoh", "zenoh-library"] {
        server_stops(&[system]);
        side_stops("subscribers", &[system]);
        side_stops("publishers", &[system]);
    }
}
