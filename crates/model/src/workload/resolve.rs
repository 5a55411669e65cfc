//! Resolves settings to a workload.

use super::{Arrival, Extent, ONE_REQUEST, Pattern, Rate, TREE_DEVICES, TREE_PARAMETERS, Verify, Workload};
use crate::header::MAX_SEQUENCE;
use crate::pattern::Topics;
use crate::payload::{Payload, PayloadSizes, SizeFiles};
use crate::setting::{SettingError, Settings, WINDOW};
use crate::topology::copies;
use crate::units::{LONGEST, format_time};
use std::fmt;

/// Publishers of a partition of the pattern `tree`, if the number of subscribers is not set.
const PARTITION: u32 = 1_000;

/// Reasons why settings do not describe a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// A value is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The number of pairs is set twice.
    #[error("`{0}` contradicts `pairs`: leave one of them out")]
    Contradiction(&'static str),
    /// A client has no partner.
    #[error("pattern `{0}` needs as many publishers as subscribers: write `pairs = N`")]
    Unpaired(Pattern),
    /// The pattern has no pairs.
    #[error("`pairs` has no meaning in pattern `{0}`: write `publishers` and `subscribers`")]
    NoPairs(Pattern),
    /// Partitions would differ in size.
    #[error(
        "pattern `{0}` needs a whole number of publishers for each partition: let `publishers` be a multiple of \
         `subscribers`"
    )]
    Partitions(Pattern),
    /// The pattern has no tree.
    #[error("`{0}` has no meaning in pattern `{1}`: leave it out, or write `pattern = \"tree\"`")]
    NoTree(&'static str, Pattern),
    /// The echoing subscriber would have several publishers to echo to.
    #[error("pattern `{0}` has one publisher: leave `publishers` at 1")]
    OnePublisher(Pattern),
    /// The window has two lengths.
    #[error("`duration` and `count` both say how long the window is: leave one of them out")]
    TwoWindows,
    /// The window has no length.
    #[error("`duration` is 0: nothing would be measured")]
    NoWindow,
    /// The shortest warm-up exceeds the longest.
    #[error("`warmup_max` is shorter than `warmup`, which is {0}")]
    WarmupMax(String),
    /// Subscribers answer.
    #[error("`consume` has no meaning in pattern `{0}`, in which subscribers answer: leave it out")]
    ConsumesAndAnswers(Pattern),
    /// There are no requests.
    #[error("`outstanding` has no meaning in pattern `{0}`: leave it out, or write `pattern = \"request-reply\"`")]
    NoRequests(Pattern),
    /// Answers that nobody waits for any more would be kept.
    #[error("`durable` has no meaning in pattern `{0}`: leave it out")]
    DurableRequests(Pattern),
    /// The window's end is not known beforehand.
    #[error("`churn` needs a window of known length: write `duration` in place of `count`, or leave `churn` out")]
    ChurnWithoutEnd,
    /// The file of sizes was not read.
    #[error("`payload = \"{0}\"`: only a study with its file can name a file of sizes")]
    NoSizes(Payload),
    /// There are no due times.
    #[error("`arrival = \"{0}\"` has no meaning where `rate` is `max`")]
    ArrivalAtMax(Arrival),
    /// The header has no number for the last message.
    #[error(
        "a publisher would send more than the 4,294,967,279 messages that a run can number: lower `rate` or \
         `duration`"
    )]
    TooMany,
    /// The run would take longer than allowed.
    #[error("`count` messages at this `rate` take longer than the 30 days that a run may take")]
    TooLong,
}

/// All errors of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadErrors(pub Vec<WorkloadError>);

impl std::error::Error for WorkloadErrors {}

impl fmt::Display for WorkloadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.0.iter().map(WorkloadError::to_string).collect();
        f.write_str(&errors.join("; "))
    }
}

impl From<SettingError> for WorkloadErrors {
    fn from(error: SettingError) -> Self {
        WorkloadErrors(vec![error.into()])
    }
}

impl Workload {
    /// Creates the workload of these keys and texts.
    pub fn of<N: AsRef<str>, T: AsRef<str>>(
        texts: impl IntoIterator<Item = (N, T)>,
    ) -> Result<Workload, WorkloadErrors> {
        Workload::resolve(&Settings::of(texts)?)
    }

    /// Resolves settings, with defaults for those that are unset; returns all errors at once.
    pub fn resolve(settings: &Settings) -> Result<Workload, WorkloadErrors> {
        Workload::resolve_with(settings, &SizeFiles::new())
    }

    /// Resolves settings, like [`Workload::resolve`], whose payload may name one of these files of sizes.
    pub fn resolve_with(settings: &Settings, files: &SizeFiles) -> Result<Workload, WorkloadErrors> {
        let mut errors = Vec::new();
        let (publishers, subscribers) = clients(settings, &mut errors);
        let (tree_devices, tree_parameters) = tree(settings, &mut errors);
        let (rate, arrival) = (settings.rate(), settings.arrival());
        let extent = match (settings.duration, settings.count) {
            (Some(_), Some(count)) => {
                errors.push(WorkloadError::TwoWindows);
                Extent::Count(count.0)
            }
            (None, Some(count)) => Extent::Count(count.0),
            (Some(duration), None) => Extent::TimeNs(duration.0),
            (None, None) => Extent::TimeNs(WINDOW.0),
        };
        if extent == Extent::TimeNs(0) {
            errors.push(WorkloadError::NoWindow);
        }
        if rate == Rate::Max && arrival != Arrival::Uniform {
            errors.push(WorkloadError::ArrivalAtMax(arrival));
        }
        if settings.consume() != Rate::Max && settings.pattern().round_trip() {
            errors.push(WorkloadError::ConsumesAndAnswers(settings.pattern()));
        }
        if settings.outstanding().0 != ONE_REQUEST && !settings.pattern().requests() {
            errors.push(WorkloadError::NoRequests(settings.pattern()));
        }
        if settings.durable() && settings.pattern().requests() {
            errors.push(WorkloadError::DurableRequests(settings.pattern()));
        }
        if !settings.churn().is_none() && matches!((rate, extent), (Rate::Max, Extent::Count(_))) {
            errors.push(WorkloadError::ChurnWithoutEnd);
        }
        let payload = settings.payload();
        let payload_sizes = payload.sizes(files);
        let most_bytes = payload_sizes.as_ref().map(PayloadSizes::most_bytes).or(payload.most_bytes());
        let payload_bytes = most_bytes.unwrap_or_else(|| {
            errors.push(WorkloadError::NoSizes(payload));
            0
        });
        let workload = Workload {
            pattern: settings.pattern(),
            transport: settings.transport,
            publishers,
            subscribers,
            tree_devices,
            tree_parameters,
            rate,
            arrival,
            consume: settings.consume(),
            outstanding: settings.outstanding().0,
            churn: settings.churn(),
            payload_bytes,
            payload_sizes,
            qos: settings.qos().0,
            durable: settings.durable(),
            tls: settings.tls(),
            reconnect: false,
            connect_rate: settings.connect_rate().0,
            warmup_ns: settings.warmup().0,
            warmup_max_ns: settings.warmup_max.map(|most| most.0),
            extent,
            drain_ns: settings.drain().0,
            connect_timeout_ns: settings.connect_timeout().0,
            pacing: settings.pacing(),
            pacing_quantum_ns: settings.pacing_quantum().0,
            receive: settings.receive(),
            verify: Verify::Header,
            header_checksum: false,
            agents: settings.agents.map_or(1, |agents| agents.0),
            pin: settings.pin(),
            max_send_lag_ns: settings.max_send_lag().0,
            late_after_ns: settings.late_after().0,
            seed: settings.seed().0,
        };
        if workload.warmup_max_ns.is_some_and(|most_ns| most_ns < workload.warmup_ns) {
            errors.push(WorkloadError::WarmupMax(format_time(workload.warmup_ns)));
        }
        errors.extend(workload.out_of_range());
        if !errors.is_empty() {
            return Err(WorkloadErrors(errors));
        }
        let verify = settings.verify.unwrap_or_else(|| workload.affordable());
        Ok(Workload { verify, ..workload })
    }

    /// Returns errors for more messages than can be numbered, and for more time than a run may
    /// take.
    fn out_of_range(&self) -> impl Iterator<Item = WorkloadError> {
        let Some(profile) = self.rate.profile() else { return [None, None].into_iter().flatten() };
        let warmup_ns = self.warmup_max_ns.unwrap_or(self.warmup_ns);
        let sent = match self.extent {
            Extent::TimeNs(ns) => profile.due_before(warmup_ns + ns),
            Extent::Count(count) => profile.due_before(warmup_ns).saturating_add(count),
        };
        let piloted = self.pilot_ns().map_or(0, |ns| profile.due_before(ns));
        let too_many = sent.max(piloted) > u64::from(MAX_SEQUENCE);
        let too_long = self.window_ns().is_some_and(|window_ns| window_ns > LONGEST);
        [too_many.then_some(WorkloadError::TooMany), too_long.then_some(WorkloadError::TooLong)].into_iter().flatten()
    }

    /// Returns the default verification: bodies too, if that takes under 2 % of one event loop's
    /// time even if that loop receives for all subscribers.
    fn affordable(&self) -> Verify {
        /// Cost of a CRC-32C: per message, and per byte of one that is no longer in a near cache,
        /// in thousandths of a ns (measured: up to 12 ns and 0.04 to 0.09 ns).
        const MESSAGE: u128 = 20_000;
        const BYTE: u128 = 100;
        /// A fiftieth of a second, in thousandths of a ns.
        const MOST_A_SECOND: u128 = 20_000_000_000;
        let Some(profile) = self.rate.profile() else { return Verify::Header };
        let copies = u128::from(self.publishers) * u128::from(copies(self));
        let arrivals_per_ks = u128::from(*profile.per_ks().end()) * copies;
        let each = MESSAGE + BYTE * self.mean_payload_bytes().ceil() as u128;
        if arrivals_per_ks * each < MOST_A_SECOND * 1_000 { Verify::Full } else { Verify::Header }
    }
}

/// Returns the devices of a subsystem of the tree, and the parameters of a device.
fn tree(settings: &Settings, errors: &mut Vec<WorkloadError>) -> (u32, u32) {
    let pattern = settings.pattern();
    let given = [(settings.tree_devices, "tree_devices"), (settings.tree_parameters, "tree_parameters")];
    if pattern.topics() != Topics::Tree {
        let stray = given.iter().filter(|(count, _)| count.is_some());
        errors.extend(stray.map(|(_, name)| WorkloadError::NoTree(name, pattern)));
    }
    let [devices, parameters] = given.map(|(count, _)| count.map(|count| count.0));
    (devices.unwrap_or(TREE_DEVICES), parameters.unwrap_or(TREE_PARAMETERS))
}

/// Returns the number of publishers and subscribers: one of each by default.
fn clients(settings: &Settings, errors: &mut Vec<WorkloadError>) -> (u32, u32) {
    let pattern = settings.pattern();
    let [publishers, subscribers, pairs] =
        [settings.publishers, settings.subscribers, settings.pairs].map(|given| given.map(|count| count.0));
    if pattern.paired() {
        let count = pairs.or(publishers).or(subscribers).unwrap_or(1);
        let differs = |given: Option<u32>| given.is_some_and(|given| given != count);
        match pairs {
            Some(_) => {
                let named = [(publishers, "publishers"), (subscribers, "subscribers")].into_iter();
                let wrong = named.filter(|(given, _)| differs(*given));
                errors.extend(wrong.map(|(_, name)| WorkloadError::Contradiction(name)));
            }
            None if differs(subscribers) => errors.push(WorkloadError::Unpaired(pattern)),
            None => {}
        }
        return (count, count);
    }
    if pairs.is_some() {
        errors.push(WorkloadError::NoPairs(pattern));
    }
    let publishers = publishers.unwrap_or(1);
    if pattern.echoed() && publishers != 1 {
        errors.push(WorkloadError::OnePublisher(pattern));
    }
    if pattern.topics() != Topics::Tree {
        return (publishers, subscribers.unwrap_or(1));
    }
    let partitions = subscribers.unwrap_or_else(|| publishers.div_ceil(PARTITION));
    if !publishers.is_multiple_of(partitions) {
        errors.push(WorkloadError::Partitions(pattern));
    }
    (publishers, partitions)
}
