//! The workload file.

use super::clients::{Clients, Numbers};
use super::target::differs;
use crate::fields::Fields;
use crate::{Remark, SourceText, yaml};
use pubmark_model::diagnostic::Diagnostic;
use pubmark_model::header::MIN_LEN;
use pubmark_model::system::System;
use pubmark_model::wire_protocol::Protocol;

/// Fastest publisher, messages per 1,000 s.
const FASTEST_PER_KS: u128 = 1_000_000_000;

/// Largest message, bytes: 1 GiB.
const BYTES_MAX: u64 = 1 << 30;

/// Partitions of a topic at most.
const MOST_PARTITIONS: u64 = 64;

/// Longest phase, minutes: a day.
const MINUTES_MAX: u64 = 24 * 60;

/// Warm-up of a workload that does not set it, minutes.
const WARMUP_MIN: u64 = 1;

/// Content of messages.
const NO_CONTENT: &str = "bodies are random bytes, or the share of them in `randomBytesRatio`";

/// Keys of forks of OMB that change the traffic: the key, the value without effect, what it does, and the way out.
const FORK_KEYS: [(&str, u64, &str, &str); 2] = [
    (
        "producerIncrementRate",
        0,
        "the rate grows during the run",
        "Remove it, or write a study with rate = \"steps …\" (docs/study-file.md).",
    ),
    (
        "messageRateReceivedForSubscription",
        100,
        "subscriptions filter messages",
        "Remove it: every subscriber then receives every message.",
    ),
];

/// Keys of forks of OMB without effect here.
const FORK_KEYS_IGNORED: [(&str, &str); 6] = [
    ("producerStartRate", "the rate is constant, or as fast as possible"),
    ("producerIncrementSeconds", "the rate is constant"),
    ("acceptableBacklog", "the rate does not follow the backlog"),
    ("producerPauseBeforeDrain", "pubmark builds no backlog"),
    ("producerPauseDuringDrain", "pubmark builds no backlog"),
    ("ensureTopicsAreReady", "pubmark always waits until each subscriber hears its publishers"),
];

/// A workload that pubmark plays.
#[derive(Clone, Debug)]
pub(super) struct OmbWorkload {
    pub name: String,
    pub clients: Clients,
    /// Partitions of each topic.
    pub partitions: u64,
    /// True if the key of a message selects its partition.
    pub has_keys: bool,
    /// Line of a study for the content of messages; empty for random bytes.
    pub content: String,
    /// Rate of each publisher, as a value of a study.
    pub rate: String,
    pub bytes: u64,
    pub warmup_min: u64,
    pub duration_min: u64,
}

/// Reads a workload for a system, if the system is known.
pub(super) fn read(
    source: SourceText<'_>,
    system: Option<&System>,
    remarks: &mut Vec<Remark>,
) -> Result<OmbWorkload, Vec<Diagnostic>> {
    let root = yaml::parse(source.text).map_err(|error| vec![error])?;
    let mut fields = Fields::of(&root, "a workload", true).map_err(|error| vec![error])?;
    let name = fields.text("name").unwrap_or(source.file).to_owned();
    let (clients, partitions) = (clients(&mut fields, system), partitions(&mut fields, system));
    let (warmup_min, duration_min) = phases(&mut fields);
    let bytes = size(&mut fields);
    let content = contents(&mut fields, source.file, remarks);
    let has_keys = keys(&mut fields, source.file, partitions, remarks);
    backlog(&mut fields, source.file, remarks);
    of_forks(&mut fields, source.file, remarks);
    let rate = rate(&mut fields, clients, remarks);
    match (clients, rate) {
        (Some(clients), Some(rate)) if fields.is_right() => {
            let errors = fields.finish();
            let read =
                OmbWorkload { name, clients, partitions, has_keys, content, rate, bytes, warmup_min, duration_min };
            if errors.is_empty() { Ok(read) } else { Err(errors) }
        }
        _ => Err(fields.finish()),
    }
}

/// Returns a number that the file must have.
fn needed(fields: &mut Fields<'_>, key: &'static str, example: &str) -> Option<u64> {
    if !fields.has(key) {
        fields.wrong(key, format!("{key} is missing"), format!("Add {key}: {example}"));
        return None;
    }
    fields.count(key)
}

fn clients(fields: &mut Fields<'_>, system: Option<&System>) -> Option<Clients> {
    let topics = needed(fields, "topics", "1");
    let subscriptions = needed(fields, "subscriptionsPerTopic", "1");
    let producers = needed(fields, "producersPerTopic", "1");
    let consumers = needed(fields, "consumerPerSubscription", "1");
    let numbers =
        Numbers { topics: topics?, producers: producers?, subscriptions: subscriptions?, consumers: consumers? };
    let clients = numbers.clients();
    let clients = clients.map_err(|misfit| fields.wrong(misfit.key, misfit.message, misfit.help)).ok()?;
    if let Some(System { title, .. }) = system.filter(|system| !system.patterns.contains(&clients.pattern)) {
        fields.wrong(
            "consumerPerSubscription",
            format!("consumerPerSubscription is {}: pubmark's {title} has no competing subscribers", numbers.consumers),
            "Set consumerPerSubscription: 1.",
        );
    }
    Some(clients)
}

/// Returns the number of partitions of each topic, which only Kafka has.
fn partitions(fields: &mut Fields<'_>, system: Option<&System>) -> u64 {
    let partitions = needed(fields, "partitionsPerTopic", "1").unwrap_or(1);
    let most = if system.is_none_or(|system| system.protocol() == Some(Protocol::Kafka)) { MOST_PARTITIONS } else { 1 };
    if !(1..=most).contains(&partitions) {
        let (why, help) = match most {
            1 => ("topics of this system have no partitions", "Set partitionsPerTopic: 1.".into()),
            most => ("a topic of pubmark has 1 to 64", format!("Set partitionsPerTopic: {most} or fewer.")),
        };
        fields.wrong("partitionsPerTopic", format!("partitionsPerTopic is {partitions}: {why}"), help);
    }
    partitions
}

/// Returns the lengths of warm-up and window, minutes.
fn phases(fields: &mut Fields<'_>) -> (u64, u64) {
    let warmup_min = fields.count("warmupDurationMinutes").unwrap_or(WARMUP_MIN);
    let duration_min = needed(fields, "testDurationMinutes", "5").unwrap_or(1);
    if duration_min == 0 {
        let help = "Set the minutes to measure. pubmark has no run without an end.";
        fields.wrong("testDurationMinutes", "testDurationMinutes must be 1 or more, but is 0", help);
    }
    for (key, minutes) in [("warmupDurationMinutes", warmup_min), ("testDurationMinutes", duration_min)] {
        if minutes > MINUTES_MAX {
            let message = format!("{key} must be at most {MINUTES_MAX} (a day), but is {minutes}");
            fields.wrong(key, message, "Set fewer minutes.");
        }
    }
    (warmup_min, duration_min)
}

fn size(fields: &mut Fields<'_>) -> u64 {
    let bytes = needed(fields, "messageSize", "1024").unwrap_or(BYTES_MAX);
    let least = MIN_LEN as u64;
    if !(least..=BYTES_MAX).contains(&bytes) {
        fields.wrong(
            "messageSize",
            format!("messageSize must be {least} to {BYTES_MAX} bytes, but is {bytes}"),
            format!("A message of pubmark begins with a header of {least} bytes."),
        );
    }
    bytes
}

/// Reads the keys of the contents of messages. Returns the line of a study.
fn contents(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) -> String {
    if fields.text("payloadFile").is_some() {
        remarks.push(Remark::ignored(file, "payloadFile", NO_CONTENT));
    }
    if fields.has("randomizedPayloadPoolSize") {
        remarks.push(Remark::ignored(file, "randomizedPayloadPoolSize", "all messages have the same body"));
    }
    let random = fields.flag("useRandomizedPayloads") == Some(true);
    let ratio = fields.share("randomBytesRatio").filter(|_| random);
    match ratio.map(|ratio| 100 - (ratio * 100.0).round() as u64) {
        None | Some(0) => String::new(),
        Some(100) => "payload_content = \"zeros\"\n".into(),
        Some(zeros) => format!("payload_content = \"zeros {zeros}%\"\n"),
    }
}

/// Returns whether the keys of messages select partitions.
fn keys(fields: &mut Fields<'_>, file: &str, partitions: u64, remarks: &mut Vec<Remark>) -> bool {
    match fields.text("keyDistributor") {
        None | Some("NO_KEY") => return false,
        Some("KEY_ROUND_ROBIN" | "RANDOM_NANO") if partitions == 1 => {
            let why = "a key selects a partition, and each topic has only one";
            remarks.push(Remark::ignored(file, "keyDistributor", why));
            return false;
        }
        Some("KEY_ROUND_ROBIN") => {
            differs(remarks, "keys: OpenMessaging Benchmark takes its keys in turn; pubmark draws each at random");
        }
        Some("RANDOM_NANO") => {}
        Some(_) => {
            let help = "Use NO_KEY, KEY_ROUND_ROBIN or RANDOM_NANO.";
            fields.wrong("keyDistributor", "keyDistributor is not one of OpenMessaging Benchmark's", help);
        }
    }
    true
}

fn backlog(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) {
    if let Some(gigabytes) = fields.count("consumerBacklogSizeGB").filter(|gigabytes| *gigabytes > 0) {
        fields.wrong(
            "consumerBacklogSizeGB",
            format!("consumerBacklogSizeGB is {gigabytes}: pubmark does not fill a backlog of a given size"),
            "Set consumerBacklogSizeGB: 0. For a backlog over a given time, pause the subscribers: `consume` in a study \
             (docs/several-flows.md).",
        );
    }
    if fields.has("backlogDrainRatio") {
        remarks.push(Remark::ignored(file, "backlogDrainRatio", "pubmark builds no backlog"));
    }
}

fn of_forks(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) {
    for (key, without_effect, effect, help) in FORK_KEYS {
        if let Some(value) = fields.count(key).filter(|value| *value != without_effect) {
            fields.wrong(key, format!("{key} is {value}: {effect}, which pubmark cannot keep"), help);
        }
    }
    for (key, why) in FORK_KEYS_IGNORED {
        if fields.has(key) {
            remarks.push(Remark::ignored(file, key, why));
        }
    }
}

/// Returns the rate of each publisher: the file has the rate of all together.
fn rate(fields: &mut Fields<'_>, clients: Option<Clients>, remarks: &mut Vec<Remark>) -> Option<String> {
    let all = needed(fields, "producerRate", "1000")?;
    if all == 0 {
        remarks.push(Remark::Differs(
            "producerRate 0: OpenMessaging Benchmark searches the highest rate without a growing backlog; pubmark sends as \
             fast as the system accepts (rate = \"max\"), and `pubmark capacity` searches"
                .into(),
        ));
        return Some("\"max\"".into());
    }
    let publishers = u128::from(clients?.all_publishers());
    let all_per_ks = u128::from(all) * 1_000;
    let each_per_ks = (all_per_ks + publishers / 2) / publishers;
    if !(1..=FASTEST_PER_KS).contains(&each_per_ks) {
        fields.wrong(
            "producerRate",
            format!(
                "producerRate is {all} for {publishers} producer{}: a publisher of pubmark sends 0.001 to 1,000,000 \
                 messages/s",
                if publishers == 1 { "" } else { "s" }
            ),
            "Change producerRate or producersPerTopic, or set producerRate: 0 to send as fast as the system accepts.",
        );
        return None;
    }
    let each = match each_per_ks % 1_000 {
        0 => format!("{}", each_per_ks / 1_000),
        rest => format!("{}.{rest:03}", each_per_ks / 1_000),
    };
    if each_per_ks * publishers != all_per_ks {
        remarks.push(Remark::Differs(format!(
            "producerRate {all} over {publishers} producers is rounded to {each} messages/s each"
        )));
    }
    Some(each)
}
