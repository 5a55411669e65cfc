//! Resolves settings to a workload.

use super::{Arrival, DueSpan, Extent, ONE_REQUEST, Pattern, Rate, TREE_DEVICES, TREE_PARAMETERS, Verify, Workload};
use crate::draw::Choice;
use crate::header::MAX_SEQUENCE;
use crate::pattern::Topics;
use crate::payload::{
    BodiesError, Payload, PayloadBodies, PayloadFiles, PayloadSizes, SizeClass, SizeFiles, SizesError,
};
use crate::profile::Profile;
use crate::profile::trace::{ONCE, TraceFiles, TraceRate};
use crate::setting::{SettingError, Settings, Speed, Text, Time, WINDOW};
use crate::topic_set::{Subscriptions, TopicSet};
use crate::topology::copies;
use crate::units::{LONGEST, MILLISECOND, Ns, format_time};
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
    /// There is no time that a part of the window could have.
    #[error("`start` and `end` have no meaning where {0}: leave them out")]
    NoSpan(&'static str),
    /// The pilot run would find when silent publishers are steady.
    #[error("`warmup_max` has no meaning with `start` or `end`: write `warmup`")]
    SpanAndPilot,
    /// The part of the window has no length, or lies beyond the window.
    #[error("{0}")]
    Span(String),
    /// Subscribers cannot start at this instant.
    #[error("`subscribers_start` {0}")]
    SubscribersStart(String),
    /// There are no requests.
    #[error("`{0}` has no meaning in pattern `{1}`: leave it out, or write `pattern = \"request-reply\"`")]
    NoRequests(&'static str, Pattern),
    /// The last answers would have less time than the others.
    #[error("`timeout` is longer than `drain`, which is {0}: write at most that, or a longer `drain`")]
    TimeoutBeyondDrain(String),
    /// Answers that nobody waits for any more would be kept.
    #[error("`durable` has no meaning in pattern `{0}`: leave it out")]
    DurableRequests(Pattern),
    /// The pattern does not draw topics.
    #[error("`topics` has no meaning in pattern `{0}`: leave it out, or choose pairs, fan-out, fan-in or pipeline")]
    NoTopics(Pattern),
    /// There are no topics to choose from.
    #[error("`{0}` has no meaning without `topics`: leave it out, or write `topics = N`")]
    OneTopic(&'static str),
    /// Subscribers compete for the messages of all topics.
    #[error(
        "`subscriptions = \"each\"` has no meaning in pattern `{0}`, whose subscribers share messages: leave it out"
    )]
    EachCompetes(Pattern),
    /// A subscriber would have no topic.
    #[error(
        "`subscriptions = \"each\"` gives each topic to one of {subscribers} subscribers, and there are {topics}: set more `topics`"
    )]
    FewTopics {
        /// Number of topics.
        topics: u32,
        /// Number of subscribers.
        subscribers: u32,
    },
    /// The window's end is not known beforehand.
    #[error("`churn` needs a window of known length: write `duration` in place of `count`, or leave `churn` out")]
    ChurnWithoutEnd,
    /// The file of sizes was not read.
    #[error("`payload = \"{0}\"`: only a study with its file can name a file of sizes")]
    NoSizes(Payload),
    /// A template cannot be sent.
    #[error("payload_template: {0}")]
    Template(#[from] BodiesError),
    /// The lines of a file have too many sizes.
    #[error("payload_file: {0}")]
    LineSizes(#[from] SizesError),
    /// The file of messages was not read.
    #[error("`payload_file = \"{0}\"`: only a study with its file can name a file of messages")]
    NoMessages(String),
    /// Two keys say which messages there are.
    #[error("`{0}` and `{1}` exclude each other: leave one of them out")]
    TwoPayloads(&'static str, &'static str),
    /// The trace was not read.
    #[error("`trace = \"{0}\"`: only a study with its file can name a trace")]
    NoTrace(String),
    /// There is no trace.
    #[error("`{0}` has no meaning without `trace`: leave it out")]
    WithoutTrace(&'static str),
    /// The trace says it.
    #[error("`trace` and `{0}` exclude each other: leave one of them out")]
    WithTrace(&'static str),
    /// The trace has no rows of this flow.
    #[error("`trace_flow = \"{flow}\"`: {file} has no row of this flow; it has: {known}")]
    TraceFlow {
        /// The trace.
        file: String,
        /// The flow.
        flow: String,
        /// The first flows that it has.
        known: String,
    },
    /// A row is too short.
    #[error(
        "{file}:{line}: the size is {bytes}, and each message has a header of {} bytes: set `payload` to send messages \
         of other sizes",
        crate::payload::LEAST_BYTES
    )]
    TraceSize {
        /// The trace.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The size, bytes.
        bytes: u32,
    },
    /// The window has no rows.
    #[error(
        "no message of `{trace}` is due in the window, from {from} to {to}: its last is due at {last}. Set `warmup` and `duration` to times of the trace"
    )]
    TraceWindow {
        /// The trace.
        trace: String,
        /// Start of the window.
        from: String,
        /// End of the window.
        to: String,
        /// The last due time.
        last: String,
    },
    /// The rows do not fit.
    #[error(
        "`{0}` has more than the 67,108,864 rows until the end of the window that a run can replay: shorten `duration`, or \
         name one of its flows with `trace_flow`"
    )]
    TraceLong(String),
    /// The window would have no known end.
    #[error("`count` and `arrival = \"{0}\"` exclude each other: write `duration` in place of `count`")]
    CountAndPauses(Arrival),
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

/// Contents of the files that settings may name.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadFiles<'a> {
    /// Files of sizes.
    pub sizes: &'a SizeFiles,
    /// Traces.
    pub traces: &'a TraceFiles,
    /// Files of messages.
    pub payloads: &'a PayloadFiles,
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
        let (sizes, traces, payloads) = (SizeFiles::new(), TraceFiles::new(), PayloadFiles::new());
        Workload::resolve_with(settings, WorkloadFiles { sizes: &sizes, traces: &traces, payloads: &payloads })
    }

    /// Resolves settings, like [`Workload::resolve`], which may name these files.
    pub fn resolve_with(settings: &Settings, files: WorkloadFiles<'_>) -> Result<Workload, WorkloadErrors> {
        let mut errors = Vec::new();
        let (publishers, subscribers) = clients(settings, &mut errors);
        let (tree_devices, tree_parameters) = tree(settings, &mut errors);
        let arrival = settings.arrival();
        let trace = trace_rate(settings, files.traces, publishers, &mut errors);
        let rate = trace.map_or_else(|| settings.rate(), |trace| Rate::Due(Profile::Trace(trace)));
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
        errors.extend(wrong_span(settings, extent).into_iter().chain(meaningless(settings)));
        errors.extend(wrong_start(settings, extent).map(WorkloadError::SubscribersStart));
        if arrival.pauses() && settings.count.is_some() {
            errors.push(WorkloadError::CountAndPauses(arrival));
        }
        if !settings.churn().is_none() && matches!((&rate, extent), (Rate::Max, Extent::Count(_))) {
            errors.push(WorkloadError::ChurnWithoutEnd);
        }
        let payload = settings.payload();
        let payload_bodies = bodies(settings, files.payloads, &mut errors);
        let (payload_sizes, of_bodies) = match &payload_bodies {
            Some(bodies) => sizes_of(bodies, &mut errors),
            None => (payload.sizes(files.sizes), None),
        };
        let sized = rate.trace().filter(|trace| trace.is_sized()).map(|trace| trace.rows().most_bytes());
        let most_bytes =
            of_bodies.or(sized).or(payload_sizes.as_ref().map(PayloadSizes::most_bytes)).or(payload.most_bytes());
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
            span: span(settings),
            subscribers_start_ns: settings.subscribers_start.map(|time| time.0),
            consume: settings.consume(),
            outstanding: settings.outstanding().0,
            timeout_ns: settings.timeout.map(|timeout| timeout.0),
            churn: settings.churn(),
            last_will: settings.last_will(),
            payload_bytes,
            payload_sizes,
            payload_content: settings.payload_content(),
            payload_bodies,
            headers: settings.headers.clone(),
            topics: topics(settings, subscribers, &mut errors),
            qos: settings.qos().0,
            durable: settings.durable(),
            tls: settings.tls(),
            reconnect: false,
            client_timeout_ns: settings.client_timeout.map(|timeout| timeout.0),
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
            reply_times: false,
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
        errors.extend(workload.without_messages());
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

    /// Returns an error if a trace has no message in the window, or too many until its end.
    fn without_messages(&self) -> Option<WorkloadError> {
        let trace = self.rate.trace().filter(|trace| trace.rows().is_loaded())?;
        let to_ns = self.warmup_ns.saturating_add(self.window_ns()?);
        if trace.is_cut_before(to_ns.max(self.pilot_ns().unwrap_or(0))) {
            return Some(WorkloadError::TraceLong(trace.to_string()));
        }
        let all = trace.rows_before(Ns::MAX);
        let is_empty = all > 0 && trace.rows_before(self.warmup_ns) == trace.rows_before(to_ns);
        is_empty.then(|| WorkloadError::TraceWindow {
            trace: trace.to_string(),
            from: format_time(self.warmup_ns),
            to: format_time(to_ns),
            last: format_time(trace.last_ns() / MILLISECOND * MILLISECOND),
        })
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

/// Returns the bodies of messages, if a file or a template says them.
fn bodies(settings: &Settings, files: &PayloadFiles, errors: &mut Vec<WorkloadError>) -> Option<PayloadBodies> {
    let (key, bodies) = match (&settings.payload_file, &settings.payload_template) {
        (None, None) => return None,
        (Some(_), Some(_)) => {
            errors.push(WorkloadError::TwoPayloads("payload_file", "payload_template"));
            return None;
        }
        (Some(Text(name)), None) => {
            let found = files.get(name).cloned();
            ("payload_file", found.ok_or_else(|| WorkloadError::NoMessages(name.clone())))
        }
        (None, Some(Text(text))) => {
            ("payload_template", PayloadBodies::of_template(text).map_err(WorkloadError::Template))
        }
    };
    let others =
        [(settings.payload.is_some(), "payload"), (settings.payload_content.is_some(), "payload_content")].into_iter();
    errors.extend(others.filter(|(is_set, _)| *is_set).map(|(_, other)| WorkloadError::TwoPayloads(key, other)));
    bodies.map_err(|error| errors.push(error)).ok()
}

/// Returns the sizes of messages with these bodies, if they differ, and the largest, bytes.
fn sizes_of(bodies: &PayloadBodies, errors: &mut Vec<WorkloadError>) -> (Option<PayloadSizes>, Option<u64>) {
    let mut counts = std::collections::BTreeMap::new();
    bodies.all_message_bytes().for_each(|bytes| *counts.entry(bytes).or_insert(0) += 1);
    let most_bytes = counts.keys().next_back().copied();
    if bodies.lines().is_none() {
        return (None, most_bytes);
    }
    let classes = counts.into_iter().map(|(bytes, weight)| SizeClass { weight, least: bytes, most: bytes });
    let sizes = PayloadSizes::new(bodies.text(), classes.collect());
    (sizes.map_err(|error| errors.push(error.into())).ok(), most_bytes)
}

/// Returns the trace that settings replay, if they do.
fn trace_rate(
    settings: &Settings,
    files: &TraceFiles,
    publishers: u32,
    errors: &mut Vec<WorkloadError>,
) -> Option<TraceRate> {
    let Some(Text(name)) = &settings.trace else {
        let stray = [(settings.trace_speed.is_some(), "trace_speed"), (settings.trace_flow.is_some(), "trace_flow")];
        errors.extend(stray.iter().filter(|(set, _)| *set).map(|(_, name)| WorkloadError::WithoutTrace(name)));
        return None;
    };
    let has_arrival = settings.arrival() != Arrival::Uniform;
    let others = [(settings.rate.is_some(), "rate"), (has_arrival, "arrival"), (settings.count.is_some(), "count")];
    let spans = [(settings.start.is_some(), "start"), (settings.end.is_some(), "end")];
    errors.extend(others.iter().chain(&spans).filter(|(set, _)| *set).map(|(_, name)| WorkloadError::WithTrace(name)));
    let flow = settings.trace_flow.as_ref().map(|Text(flow)| flow.as_str());
    let Some(rows) = files.get(name).and_then(|file| file.rows_of(name, flow)) else {
        errors.push(WorkloadError::NoTrace(name.clone()));
        return None;
    };
    if let Some(flow) = flow.filter(|_| rows.is_loaded() && rows.times_ns().is_empty()) {
        let (file, known) = (name.clone(), rows.flows().join(", "));
        errors.push(WorkloadError::TraceFlow { file, flow: flow.to_owned(), known });
    }
    let sized = settings.payload.is_none() && settings.payload_file.is_none() && settings.payload_template.is_none();
    if let Some((line, bytes)) = rows.short().filter(|_| sized) {
        errors.push(WorkloadError::TraceSize { file: name.clone(), line, bytes });
    }
    let speed = settings.trace_speed.map_or(ONCE, |Speed(speed)| speed);
    Some(TraceRate::new(rows, speed, publishers, sized))
}

/// Returns the settings that have no meaning with this pattern or rate.
fn meaningless(settings: &Settings) -> impl Iterator<Item = WorkloadError> {
    let (pattern, arrival) = (settings.pattern(), settings.arrival());
    let is_at_max = settings.rate() == Rate::Max && arrival != Arrival::Uniform;
    let consumes_and_answers = settings.consume() != Rate::Max && pattern.round_trip();
    let asks_ahead = settings.outstanding().0 != ONE_REQUEST && !pattern.requests();
    let is_durable = settings.durable() && pattern.requests();
    let drain_ns = settings.drain().0;
    let is_beyond = settings.timeout.is_some_and(|timeout| timeout.0 > drain_ns) && pattern.requests();
    let all = [
        (is_at_max, WorkloadError::ArrivalAtMax(arrival)),
        (consumes_and_answers, WorkloadError::ConsumesAndAnswers(pattern)),
        (asks_ahead, WorkloadError::NoRequests("outstanding", pattern)),
        (settings.timeout.is_some() && !pattern.requests(), WorkloadError::NoRequests("timeout", pattern)),
        (is_beyond, WorkloadError::TimeoutBeyondDrain(format_time(drain_ns))),
        (is_durable, WorkloadError::DurableRequests(pattern)),
    ];
    all.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, error)| error)
}

fn span(settings: &Settings) -> DueSpan {
    DueSpan { start_ns: settings.start.map(|time| time.0), end_ns: settings.end.map(|time| time.0) }
}

/// Returns why messages cannot be due in this part of the window alone.
fn wrong_span(settings: &Settings, extent: Extent) -> Option<WorkloadError> {
    let span = span(settings);
    if span.is_whole() {
        return None;
    }
    let Extent::TimeNs(window_ns) = extent else { return Some(WorkloadError::NoSpan("`count` ends the window")) };
    let (start_ns, end_ns) = (span.start_ns.unwrap_or(0), span.end_ns.unwrap_or(window_ns));
    let [start, end, window] = [start_ns, end_ns, window_ns].map(format_time);
    if settings.rate() == Rate::Max {
        Some(WorkloadError::NoSpan("`rate` is `max`"))
    } else if settings.warmup_max.is_some() {
        Some(WorkloadError::SpanAndPilot)
    } else if end_ns > window_ns {
        Some(WorkloadError::Span(format!("`end` is {end}, but the window lasts {window}: let it be within the window")))
    } else if start_ns >= end_ns {
        let last = if span.end_ns.is_some() { format!("`end` is {end}") } else { format!("the window lasts {window}") };
        Some(WorkloadError::Span(format!("`start` is {start}, but {last}: no message would be due")))
    } else {
        None
    }
}

/// Returns why subscribers cannot start in the window, if they are to.
fn wrong_start(settings: &Settings, extent: Extent) -> Option<String> {
    let Time(start_ns) = settings.subscribers_start?;
    let pattern = settings.pattern();
    let window_ns = match extent {
        Extent::TimeNs(window_ns) => window_ns,
        Extent::Count(_) => return Some("has no meaning where `count` ends the window: write `duration`".into()),
    };
    if pattern.round_trip() {
        Some(format!("has no meaning in pattern `{pattern}`, in which subscribers answer: leave it out"))
    } else if settings.rate() == Rate::Max && settings.trace.is_none() {
        Some("has no meaning where `rate` is `max`, because messages have no due time: write a rate".into())
    } else if settings.warmup_max.is_some() {
        Some("has no meaning with `warmup_max`: write `warmup`".into())
    } else if start_ns >= window_ns {
        let [start, window] = [start_ns, window_ns].map(format_time);
        Some(format!("is {start}, but the window lasts {window}: let it be within the window"))
    } else {
        None
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

/// Returns the topics of messages; `None` if all of a flow, or of a pair, have the same.
fn topics(settings: &Settings, subscribers: u32, errors: &mut Vec<WorkloadError>) -> Option<TopicSet> {
    let pattern = settings.pattern();
    let Some(count) = settings.topics.map(|count| count.0) else {
        let given =
            [(settings.topic_choice.is_some(), "topic_choice"), (settings.subscriptions.is_some(), "subscriptions")];
        let stray = given.into_iter().filter(|(is_given, _)| *is_given);
        errors.extend(stray.map(|(_, name)| WorkloadError::OneTopic(name)));
        return None;
    };
    if pattern.round_trip() || pattern.topics() == Topics::Tree {
        errors.push(WorkloadError::NoTopics(pattern));
    }
    let subscriptions = settings.subscriptions.unwrap_or(Subscriptions::Wildcard);
    if subscriptions == Subscriptions::Each && pattern.competing() {
        errors.push(WorkloadError::EachCompetes(pattern));
    } else if subscriptions == Subscriptions::Each && !pattern.paired() && count < subscribers {
        errors.push(WorkloadError::FewTopics { topics: count, subscribers });
    }
    Some(TopicSet::new(count, settings.topic_choice.unwrap_or(Choice::Uniform), subscriptions))
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
