//! The driver file of Kafka: texts with properties of Kafka's clients.

use super::target::{OmbDriver, differs, one_copy};
use crate::Remark;
use crate::fields::Fields;
use crate::toml_text::quoted;

/// Keys with properties.
const TEXTS: [&str; 4] = ["commonConfig", "producerConfig", "consumerConfig", "topicConfig"];

/// The use of a property.
enum Meaning {
    /// An option of pubmark, whose value is a number with this unit behind it, or with none.
    Number(&'static str, &'static str),
    /// Nothing, for this reason.
    Ignored(&'static str),
    /// It is read elsewhere.
    Read,
}

/// Reasons why a property has no effect.
const PATIENCE: &str = "pubmark has time limits of its own (connect_timeout, drain)";
const FROM_THE_END: &str = "consumers begin before the first message, and store no position";
const ONE_COPY: &str = "there is one copy";
const MEMORY: &str = "a producer keeps as many batches as `inflight` allows";

/// Known properties. An unknown one is an error.
const PROPERTIES: [(&str, Meaning); 22] = [
    ("acks", Meaning::Read),
    ("bootstrap.servers", Meaning::Read),
    ("compression.type", Meaning::Read),
    ("enable.idempotence", Meaning::Read),
    ("linger.ms", Meaning::Number("linger", "ms")),
    ("batch.size", Meaning::Number("batch", "B")),
    ("max.in.flight.requests.per.connection", Meaning::Number("inflight", "")),
    ("fetch.min.bytes", Meaning::Number("fetch_min", "B")),
    ("fetch.max.wait.ms", Meaning::Number("fetch_wait", "ms")),
    ("max.partition.fetch.bytes", Meaning::Number("fetch_max", "B")),
    ("fetch.max.bytes", Meaning::Ignored("one partition has `fetch_max`")),
    ("buffer.memory", Meaning::Ignored(MEMORY)),
    ("max.block.ms", Meaning::Ignored(PATIENCE)),
    ("retries", Meaning::Ignored(PATIENCE)),
    ("default.api.timeout.ms", Meaning::Ignored(PATIENCE)),
    ("request.timeout.ms", Meaning::Ignored(PATIENCE)),
    ("delivery.timeout.ms", Meaning::Ignored(PATIENCE)),
    ("session.timeout.ms", Meaning::Ignored(PATIENCE)),
    ("auto.offset.reset", Meaning::Ignored(FROM_THE_END)),
    ("enable.auto.commit", Meaning::Ignored(FROM_THE_END)),
    ("max.poll.records", Meaning::Ignored(FROM_THE_END)),
    ("min.insync.replicas", Meaning::Ignored(ONE_COPY)),
];

/// Reads the keys of the driver.
pub(super) fn kafka(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) -> OmbDriver {
    one_copy(fields);
    if fields.flag("reset").is_some() {
        remarks.push(Remark::ignored(file, "reset", "pubmark removes its own topics, and no others"));
    }
    let mut driver = OmbDriver { system: "kafka", endpoint: None, qos: 1, durable: false, options: Vec::new() };
    let mut idempotent = None;
    for key in TEXTS {
        let text = fields.text(key).unwrap_or_default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, value) = line.split_once('=').map_or((line, ""), |(name, value)| (name.trim(), value.trim()));
            property(fields, key, (name, value), file, &mut driver, remarks);
            if name == "enable.idempotence" {
                idempotent = Some(value == "true");
            }
        }
    }
    match idempotent {
        Some(true) if driver.qos > 0 => driver.qos = 2,
        None if driver.qos > 0 => differs(
            remarks,
            "producers of Kafka 3 and later are idempotent by default; pubmark's are only with enable.idempotence=true (QoS 2)",
        ),
        _ => {}
    }
    driver
}

/// Reads one property.
fn property(
    fields: &mut Fields<'_>,
    key: &'static str,
    (name, value): (&str, &str),
    file: &str,
    driver: &mut OmbDriver,
    remarks: &mut Vec<Remark>,
) {
    let Some((name, meaning)) = PROPERTIES.iter().find(|(known, _)| *known == name) else {
        // Its value can be a password.
        let message = format!("{key} has the property `{name}`, which pubmark cannot keep");
        fields.wrong(key, message, "Remove it, or set the option of the system in a study (pubmark systems kafka).");
        return;
    };
    let mut wrong = |what: &str, help: &str| fields.wrong(key, format!("{name} must be {what}"), help);
    match meaning {
        Meaning::Ignored(why) => remarks.push(Remark::ignored(file, name, why)),
        Meaning::Number(option, unit) if value.parse::<u64>().is_ok() => {
            let with_unit = || quoted(&format!("{value}{unit}"));
            driver.options.push((option, if unit.is_empty() { value.to_owned() } else { with_unit() }));
        }
        Meaning::Number(..) => wrong("a whole number", "Write the number itself."),
        Meaning::Read => match (*name, value) {
            ("bootstrap.servers", value) if value.contains(',') => {
                wrong("one server", "List one server, or remove the property: pubmark then starts one.");
            }
            ("bootstrap.servers", value) => driver.endpoint = Some(format!("kafka://{value}")),
            ("acks", "0") => driver.qos = 0,
            ("acks", "1") => driver.options.push(("acks", quoted("1"))),
            ("acks", "all" | "-1") | ("enable.idempotence", "true" | "false") | ("compression.type", "none") => {}
            ("compression.type", "gzip") => driver.options.push(("compression", quoted("gzip"))),
            ("compression.type", _) => wrong("none or gzip here", "Use gzip, or remove it."),
            ("acks", _) => wrong("0, 1 or all", "Use one of them."),
            _ => wrong("true or false", "Use one of them."),
        },
    }
}
