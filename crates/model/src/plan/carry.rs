//! What messages carry, and what only some protocols have.

use crate::diagnostic::Diagnostic;
use crate::kafka_partition::PartitionBy;
use crate::options::{OptionValues, Options};
use crate::system::System;
use crate::units::SECOND;
use crate::wire_protocol::{MOST_PARTITIONS, Protocol};
use crate::workload::Workload;

/// Options of MQTT 5.
const MQTT_5: [&str; 3] = ["topic_alias", "session_expiry", "message_expiry"];
/// Options of MQTT 5 that are whole seconds, 4,294,967,295 at most.
const EXPIRIES: [&str; 2] = ["session_expiry", "message_expiry"];

/// Checks that a system has what these flows' messages need: topics and headers.
pub(super) fn can_carry(system: &System, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    let name = &system.name;
    let refuse = |what: &str, why: &str| {
        let help = format!("leave `{what}` out, or leave the cell out with a [[skip]] entry");
        Err(Diagnostic::whole(format!("{name} has no `{what}`: {why}")).help(help))
    };
    let protocol = system.protocol();
    if workload.topics.is_some() && protocol.is_none() {
        return refuse("topics", "it has no server that routes by them");
    }
    let is_stream = protocol == Some(Protocol::Kafka) || (protocol == Some(Protocol::Redis) && workload.qos > 0);
    if is_stream && !workload.churn.is_none() {
        return refuse("churn", "each client that comes would make a topic or stream that stays");
    }
    match protocol {
        Some(Protocol::Kafka) if workload.topics.is_some() => {
            return refuse("topics", "a producer or consumer of pubmark has one topic of Kafka");
        }
        Some(Protocol::Kafka) => {
            has_partitions(workload, options)?;
            PartitionBy::read(options)?;
        }
        Some(Protocol::Amqp1) if workload.topics.is_some() => {
            return refuse("topics", "a client of pubmark has one address of AMQP 1.0");
        }
        Some(Protocol::Redis) if workload.topics.is_some() && workload.qos > 0 => {
            return refuse("topics", "a subscriber of pubmark reads one stream");
        }
        _ => {}
    }
    if workload.headers.is_none() {
        return Ok(());
    }
    match protocol {
        None => refuse("headers", "its messages have nothing beside their payload"),
        Some(Protocol::Redis) => refuse("headers", "a message to a channel of Redis is its payload alone"),
        Some(Protocol::Kafka | Protocol::Zenoh | Protocol::Amqp1) => {
            refuse("headers", "pubmark sends none over its protocol")
        }
        Some(Protocol::Mqtt) if !is_mqtt_5(options) => {
            refuse("headers", "MQTT 3.1.1 has none; options.mqtt_version = 5 has (user properties)")
        }
        Some(_) => Ok(()),
    }
}

/// Checks that each member of a group has a partition of its own.
fn has_partitions(workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    let (partitions, subscribers) = (options.number("partitions"), workload.subscribers);
    if !(1..=MOST_PARTITIONS).contains(&partitions) {
        let what = format!("options.partitions = {partitions}: a topic of pubmark has 1 to {MOST_PARTITIONS}");
        return Err(Diagnostic::whole(what).help("write a number in this range"));
    }
    if workload.competing() && partitions < subscribers.into() {
        let what = format!(
            "options.partitions = {partitions}: the {subscribers} subscribers of `{}` share out the partitions, and some \
             would have none",
            workload.pattern
        );
        return Err(Diagnostic::whole(what)
            .help(format!("set options.partitions to {subscribers} or more, or write fewer subscribers")));
    }
    Ok(())
}

/// Checks the options that only MQTT 5 has.
pub(super) fn has_expiries_and_aliases(
    system: &System,
    workload: &Workload,
    options: &Options,
) -> Result<(), Diagnostic> {
    if system.protocol() != Some(Protocol::Mqtt) {
        return Ok(());
    }
    let is_set = |name: &&str| options.get(*name).is_some_and(|value| *value != 0);
    if let Some(name) = MQTT_5.iter().copied().find(|name| is_set(name) && !is_mqtt_5(options)) {
        return Err(Diagnostic::whole(format!("options.{name}: MQTT 3.1.1 has nothing like it"))
            .help("leave it out, or set mqtt_version = \"5\""));
    }
    if options.number("topic_alias") > u64::from(u16::MAX) {
        return Err(Diagnostic::whole("options.topic_alias: MQTT numbers 65,535 aliases at most").help("write fewer"));
    }
    let is_wrong = |name: &&str| {
        let ns = options.time_ns(name);
        is_set(name) && (ns == 0 || !ns.is_multiple_of(SECOND) || ns / SECOND > u64::from(u32::MAX))
    };
    if let Some(name) = EXPIRIES.iter().copied().find(is_wrong) {
        return Err(Diagnostic::whole(format!("options.{name}: write whole seconds, from 1s to 4294967295s")));
    }
    if is_set(&"session_expiry") && !workload.durable && !workload.reconnect {
        return Err(Diagnostic::whole("options.session_expiry: no session of this run outlives its connection")
            .help("leave it out, or set durable = true"));
    }
    Ok(())
}

fn is_mqtt_5(options: &Options) -> bool {
    options.text("mqtt_version") == Some("5")
}
