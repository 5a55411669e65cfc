//! Where subscribers can start late.

use crate::diagnostic::Diagnostic;
use crate::options::{OptionValues, Options};
use crate::system::System;
use crate::wire_protocol::Protocol;
use crate::workload::Workload;

/// Checks that late subscribers can read what was sent before: only then is it known what they are to receive.
pub(super) fn can_start_late(system: &System, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    if workload.subscribers_start_ns.is_none() {
        return Ok(());
    }
    let refuse = |why: &str, help: &str| {
        Err(Diagnostic::whole(format!("{} cannot have `subscribers_start`: {why}", system.name)).help(help))
    };
    let leave_out = "leave `subscribers_start` out, or leave the cell out with a [[skip]] entry";
    match system.protocol() {
        Some(Protocol::Kafka | Protocol::Nats | Protocol::Redis) if workload.qos > 0 => Ok(()),
        Some(Protocol::Amqp) if workload.qos > 0 && options.text("queue_type") == Some("stream") => Ok(()),
        Some(Protocol::Amqp) => {
            let why = "only its streams keep messages for new consumers";
            refuse(why, "set options.queue_type = \"stream\", durable = true and qos = 1")
        }
        Some(Protocol::Kafka | Protocol::Nats | Protocol::Redis) => {
            refuse("messages are stored and acknowledged at qos = 1", "set qos = 1, or leave `subscribers_start` out")
        }
        Some(Protocol::Mqtt | Protocol::Amqp1 | Protocol::Zenoh) => {
            refuse("it has no stream that a new subscriber reads from its beginning", leave_out)
        }
        None => refuse("it has no server that keeps messages", leave_out),
    }
}
