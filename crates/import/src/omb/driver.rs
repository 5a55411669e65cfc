//! The driver file: which system, and where it runs.

use super::kafka::kafka;
use super::target::{OmbDriver, differs, one_copy};
use crate::fields::Fields;
use crate::toml_text::quoted;
use crate::yaml::YamlValue;
use crate::{Remark, SourceText, yaml};
use pubmark_model::diagnostic::{Diagnostic, meant};
use pubmark_model::endpoint::Endpoint;
use std::fmt::Write;

/// Port of Redis if the file has none.
const REDIS_PORT: u64 = 6_379;

/// Reads a driver's own keys.
type Read = fn(&mut Fields<'_>, &str, &mut Vec<Remark>) -> OmbDriver;

/// The drivers, by the package of their class.
const DRIVERS: [(&str, Read); 5] =
    [("artemis", artemis), ("kafka", kafka), ("nats", nats), ("rabbitmq", rabbitmq), ("redis", redis)];

/// Reads a driver file.
pub(super) fn read(source: SourceText<'_>, remarks: &mut Vec<Remark>) -> Result<OmbDriver, Vec<Diagnostic>> {
    let root = yaml::parse(source.text).map_err(|error| vec![error])?;
    // Values can be passwords.
    let mut fields = Fields::of(&root, "a driver", false).map_err(|error| vec![error])?;
    fields.text("name");
    let class = match (fields.has("driverClass"), fields.text("driverClass")) {
        (false, _) => {
            let example = "io.openmessaging.benchmark.driver.nats.NatsBenchmarkDriver";
            fields.wrong("driverClass", "driverClass is missing", format!("Add driverClass: {example}"));
            return Err(only_wrong(fields));
        }
        (true, None) => return Err(only_wrong(fields)),
        (true, Some(class)) => class,
    };
    let package = class.split('.').skip_while(|word| *word != "driver").nth(1).unwrap_or(class);
    let known = DRIVERS.map(|(package, _)| package);
    let Some((_, read)) = DRIVERS.into_iter().find(|(known, _)| *known == package) else {
        let near = meant(package, known).map(|near| format!("Did you mean {near}? ")).unwrap_or_default();
        let message = format!("driverClass names the driver `{package}`, which is not supported yet");
        fields.wrong("driverClass", message, format!("{near}Use a driver of {}.", known.join(", ")));
        return Err(only_wrong(fields));
    };
    let driver = read(&mut fields, source.file, remarks);
    if let Some(Err(error)) = driver.endpoint.as_deref().map(Endpoint::parse) {
        let key = ADDRESS_KEYS.into_iter().find(|key| root.get(key).is_some()).unwrap_or_default();
        fields.wrong(key, format!("{key}: {error}"), "");
    }
    let errors = fields.finish();
    if !errors.is_empty() {
        return Err(errors);
    }
    remarks.push(Remark::Chosen(match &driver.endpoint {
        Some(_) => format!(
            "measures the running server that {} names; without its address, pubmark starts {} itself",
            source.file, driver.system
        ),
        None => format!("{} names no server: pubmark starts {} itself", source.file, driver.system),
    }));
    Ok(driver)
}

/// Keys with the address of a server.
const ADDRESS_KEYS: [&str; 5] = ["amqpUris", "brokerAddress", "commonConfig", "natsHostUrl", "redisHost"];

/// Returns the errors so far, without those of keys that were not read.
fn only_wrong(fields: Fields<'_>) -> Vec<Diagnostic> {
    let mut errors = fields.finish();
    errors.retain(|error| !error.message.starts_with("unknown key"));
    errors
}

fn artemis(fields: &mut Fields<'_>, _: &str, remarks: &mut Vec<Remark>) -> OmbDriver {
    differs(remarks, "OpenMessaging Benchmark speaks Artemis's own protocol; pubmark speaks MQTT, QoS 1");
    let address = fields.text("brokerAddress");
    let endpoint = address.map(|address| match address.split_once("://") {
        Some(("tcp", rest)) => format!("mqtt://{rest}"),
        Some(_) => address.to_owned(),
        None => format!("mqtt://{address}"),
    });
    OmbDriver { system: "artemis", endpoint, qos: 1, durable: true, options: Vec::new() }
}

fn nats(fields: &mut Fields<'_>, _: &str, _: &mut Vec<Remark>) -> OmbDriver {
    one_copy(fields);
    let with_scheme = |url: &str| if url.contains("://") { url.to_owned() } else { format!("nats://{url}") };
    let endpoint = fields.text("natsHostUrl").map(with_scheme);
    OmbDriver { system: "nats-jetstream", endpoint, qos: 1, durable: false, options: Vec::new() }
}

fn rabbitmq(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) -> OmbDriver {
    differs(
        remarks,
        "OpenMessaging Benchmark's consumers do not acknowledge; pubmark's do (QoS 1: confirms and acknowledgements)",
    );
    for key in
        ["producerCreationDelay", "producerCreationBatchSize", "consumerCreationDelay", "consumerCreationBatchSize"]
    {
        if fields.has(key) {
            remarks.push(Remark::ignored(file, key, "`connect_rate` limits how fast clients connect"));
        }
    }
    let mut durable = fields.flag("messagePersistence").unwrap_or(false);
    let mut options = Vec::new();
    match fields.text("queueType") {
        None | Some("CLASSIC") => {}
        Some(kind @ ("QUORUM" | "STREAM")) => {
            durable = true;
            options.push(("queue_type", quoted(&kind.to_lowercase())));
        }
        Some(_) => fields.wrong("queueType", "queueType is unknown", "Use CLASSIC, QUORUM or STREAM."),
    }
    let endpoint = match fields.node("amqpUris").map(|node| &node.value) {
        None => fields.text("brokerAddress").map(|address| format!("amqp://{address}")),
        Some(YamlValue::List(uris)) => match uris.as_slice() {
            [uri] => match &uri.value {
                YamlValue::Text(uri) => Some(uri.clone()),
                other => {
                    fields.wrong("amqpUris", format!("amqpUris must list texts, but has {}", other.kind()), "");
                    None
                }
            },
            several => {
                let message = format!("amqpUris has {} servers: pubmark measures one", several.len());
                fields.wrong("amqpUris", message, "List one server, or remove the key: pubmark then starts one.");
                None
            }
        },
        Some(other) => {
            fields.wrong(
                "amqpUris",
                format!("amqpUris must be a list, but is {}", other.kind()),
                "Write [amqp://HOST].",
            );
            None
        }
    };
    OmbDriver { system: "rabbitmq-amqp", endpoint, qos: 1, durable, options }
}

fn redis(fields: &mut Fields<'_>, file: &str, remarks: &mut Vec<Remark>) -> OmbDriver {
    differs(remarks, "OpenMessaging Benchmark's consumers do not acknowledge (XACK); pubmark's do");
    for key in ["jedisPoolMaxTotal", "jedisPoolMaxIdle"] {
        if fields.has(key) {
            remarks.push(Remark::ignored(file, key, "each client of pubmark has its own connection"));
        }
    }
    let (host, port) = (fields.text("redisHost"), fields.count("redisPort").unwrap_or(REDIS_PORT));
    let (user, password) = (fields.text("redisUser"), fields.text("redisPass"));
    let endpoint = host.map(|host| {
        let login = password.map(|password| format!("{}:{}@", escaped(user.unwrap_or_default()), escaped(password)));
        format!("redis://{}{host}:{port}", login.unwrap_or_default())
    });
    OmbDriver { system: "redis-streams", endpoint, qos: 1, durable: false, options: Vec::new() }
}

/// Returns a text for the login of a URL: everything but letters, digits and `-._~` is encoded.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}
