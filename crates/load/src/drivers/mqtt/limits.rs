//! Compares the limits in a server's CONNACK (MQTT 5, 3.2.2.3) with the needs of a run.

use super::settings::MqttSettings;
use crate::session::ClientSpec;
use pubmark_model::protocol::Role;
use pubmark_wire::mqtt::{Connack, encode};

/// A client's needs of its server.
#[derive(Clone, Copy)]
pub struct SessionNeeds {
    wildcards: bool,
    shared: bool,
    /// True if it needs a session that outlives its connection.
    session: bool,
    /// Length of the largest packet that it sends, without the properties of requests, bytes; 0 for a subscriber.
    packet_bytes: u64,
}

impl SessionNeeds {
    pub fn of(settings: &MqttSettings, spec: &ClientSpec) -> SessionNeeds {
        let topic_bytes = spec.longest_bytes();
        SessionNeeds {
            wildcards: spec.wild,
            shared: spec.group.is_some(),
            session: settings.remembers(spec),
            packet_bytes: match spec.role {
                Role::Subscriber => 0,
                _ => {
                    let alias_bytes = if settings.topic_aliases > 0 { 3 } else { 0 };
                    let properties_bytes = alias_bytes + settings.properties.len();
                    let (version, qos, payload_bytes) = (settings.version, settings.qos, settings.payload_bytes);
                    encode::publish_bytes(version, qos, topic_bytes, properties_bytes, payload_bytes)
                }
            },
        }
    }

    /// True if it publishes.
    pub fn publishes(self) -> bool {
        self.packet_bytes > 0
    }

    /// Reports which limit the run exceeds, and by how much. The server's receive maximum is not
    /// checked, because the client keeps to it.
    pub fn check(self, settings: &MqttSettings, connack: &Connack<'_>) -> Result<(), String> {
        let (carried, wanted) = (connack.maximum_qos as u8, settings.qos as u8);
        if carried < wanted {
            return Err(format!("the server carries QoS {carried} at most, and QoS {wanted} is asked for"));
        }
        if settings.retain && !connack.retain_available {
            return Err("the server keeps no retained messages: set retain = false".into());
        }
        if self.wildcards && !connack.wildcards_available {
            return Err("the server takes no wildcards in subscriptions, which this pattern needs".into());
        }
        if self.shared && !connack.shared_available {
            return Err("the server takes no shared subscriptions, which this pattern needs".into());
        }
        if self.session && connack.session_expiry_s == Some(0) {
            return Err("the server keeps no session after its connection has ended (session expiry interval 0), and \
                    this run needs it to"
                .into());
        }
        self.packet(settings, connack)?;
        keep_alive(settings, connack)
    }

    fn packet(self, settings: &MqttSettings, connack: &Connack<'_>) -> Result<(), String> {
        let bytes = self.packet_bytes;
        match connack.maximum_packet_bytes.map(u64::from).filter(|most| bytes > *most) {
            None => Ok(()),
            Some(most) => Err(format!(
                "the server takes packets of {most} bytes at most, and a message of this run makes one of {bytes}: \
                 raise the server's maximum packet size, or set a payload below {} bytes",
                settings.payload_bytes
            )),
        }
    }
}

/// Checks the keep-alive time. The client sends a PINGREQ after half of the time that it
/// offered; a server waits one and a half times the time that it demands.
fn keep_alive(settings: &MqttSettings, connack: &Connack<'_>) -> Result<(), String> {
    let offered_s = if settings.keep_alive_s == 0 { u16::MAX } else { settings.keep_alive_s };
    match connack.keep_alive_s.filter(|demanded_s| *demanded_s > 0 && offered_s / 2 > *demanded_s) {
        None => Ok(()),
        Some(demanded_s) => {
            Err(format!("the server wants a sign of life every {demanded_s} s: set keep_alive = {demanded_s}s"))
        }
    }
}
