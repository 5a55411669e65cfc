//! Settings that all MQTT clients of a run share.

use crate::drivers::option_file::Logins;
use crate::session::{ClientSettings, ClientSpec, SettingsError};
use crate::topics::{self, PrefixRules};
use pubmark_model::header::{Header, WILL, WILL_LEN};
use pubmark_model::message_headers::MessageHeaders;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::Role;
use pubmark_wire::mqtt::server::{ConnectPacket, Will};
use pubmark_wire::mqtt::{Qos, Version, encode};

/// Default expiry of an MQTT 5 session that outlives its connection, s: a day.
const REMEMBERED_S: u32 = 86_400;
/// Topics with a dollar belong to the server. Together with what follows the prefix, a topic has
/// 65,535 bytes at most.
const PREFIX: PrefixRules = PrefixRules { what: "a topic", forbidden: "+#", first: "$", most_bytes: 65_000 };
const NS_PER_S: u64 = 1_000_000_000;

/// The settings of all clients.
pub struct MqttSettings {
    pub(super) version: Version,
    pub(super) qos: Qos,
    pub(super) durable: bool,
    /// True if clients resume their sessions; at QoS 0 a session is empty.
    pub(super) resumes: bool,
    pub(super) retain: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// Users and passwords of single clients.
    pub(super) logins: Option<Logins>,
    /// Keep-alive time, s; 0 turns it off.
    pub(super) keep_alive_s: u16,
    pub(super) inflight: u16,
    pub(super) payload_bytes: u64,
    /// Most aliases of topics; 0 for none.
    pub(super) topic_aliases: u16,
    /// Properties of each message, encoded.
    pub(super) properties: Vec<u8>,
    /// Time for which the server keeps a session without a connection, s.
    session_expiry_s: u32,
}

impl MqttSettings {
    pub(super) fn read(terms: &ClientSettings<'_>) -> Result<MqttSettings, SettingsError> {
        let options = terms.options;
        let version = match options.text("mqtt_version") {
            None | Some("3.1.1") => Version::V3_1_1,
            Some("5") => Version::V5,
            Some(other) => return Err(format!("mqtt_version is `{other}`: write 3.1.1 or 5").into()),
        };
        let qos = Qos::from_number(terms.qos).ok_or_else(|| format!("qos is {}: MQTT knows 0, 1 and 2", terms.qos))?;
        let keep_alive_ns = options.time_ns("keep_alive");
        let keep_alive_s =
            u16::try_from(keep_alive_ns / NS_PER_S).ok().filter(|_| keep_alive_ns.is_multiple_of(NS_PER_S));
        let keep_alive_s = keep_alive_s.ok_or("keep_alive: write whole seconds, from 0s (off) to 65535s")?;
        let inflight = u16::try_from(options.number("inflight")).unwrap_or(u16::MAX);
        if inflight == 0 && qos > Qos::AtMostOnce {
            return Err("inflight is 0, so nothing could be sent: write 1 to 65535".into());
        }
        // `mqtt://:password@host` has no user name.
        let given = |by_url: &Option<String>, name| {
            let by_url = by_url.as_deref().filter(|text| !text.is_empty());
            by_url.or_else(|| options.text(name)).map(str::to_owned)
        };
        let user = given(&terms.endpoint.user, "username");
        let password = given(&terms.endpoint.password, "password");
        if password.is_some() && user.is_none() && version == Version::V3_1_1 {
            return Err("a password needs a user name in MQTT 3.1.1: set username as well".into());
        }
        if [&user, &password].into_iter().flatten().any(|text| text.len() > usize::from(u16::MAX)) {
            return Err("user names and passwords of MQTT have 65,535 bytes at most".into());
        }
        topics::check_prefix(options.text("prefix").unwrap_or_default(), &PREFIX)?;
        let (durable, retain) = (terms.durable, options.flag("retain"));
        if retain && terms.answer_ns.is_some() {
            return Err(
                "a request that the server retains would be answered again and again: set retain = false".into()
            );
        }
        let resumes = terms.reconnect && qos > Qos::AtMostOnce;
        let payload_bytes = terms.payload_bytes;
        let properties = properties(terms)?;
        // The plan has checked that they are for MQTT 5.
        let topic_aliases = u16::try_from(options.number("topic_alias")).unwrap_or(u16::MAX);
        let session_expiry_s = seconds(options, "session_expiry").unwrap_or(REMEMBERED_S);
        Ok(MqttSettings {
            version,
            qos,
            durable,
            resumes,
            retain,
            user,
            password,
            logins: Logins::of(terms)?,
            keep_alive_s,
            inflight,
            payload_bytes,
            topic_aliases,
            properties,
            session_expiry_s,
        })
    }

    /// Appends a CONNECT. A last will goes to `topic`, which is that of the client's probes, so that the same
    /// subscribers get it.
    pub(super) fn connect(&self, spec: &ClientSpec, remembered: bool, topic: &str, out: &mut Vec<u8>) {
        let own = self.logins.as_ref().and_then(|logins| logins.row(spec.row));
        let (user, password) = match own {
            Some((user, password)) => (Some(user), Some(password)),
            None => (self.user.as_deref(), self.password.as_deref()),
        };
        let mut payload = [0; WILL_LEN];
        let will = spec.last_will.map(|connection| {
            let (intended_ns, publisher, sequence) = (connection.into(), spec.id, WILL);
            let header = Header { intended_ns, publisher, sequence, sent_ns: None, free_ns: None };
            let _ = header.write(&mut payload);
            Will { topic, payload: &payload, qos: self.qos, retain: false }
        });
        let connect = ConnectPacket {
            client_id: &spec.name,
            clean_start: !remembered,
            keep_alive_s: self.keep_alive_s,
            user,
            password: password.map(str::as_bytes),
            will,
            session_expiry_s: if remembered { self.session_expiry_s } else { 0 },
            receive_maximum: u16::MAX,
        };
        // Names are short, and the settings have been checked: it fits.
        let _ = encode::connect(out, self.version, &connect);
    }

    /// True if the server has to keep the client's session across connections.
    pub(super) fn remembers(&self, spec: &ClientSpec) -> bool {
        self.resumes || (self.durable && spec.role == Role::Subscriber)
    }
}

/// Returns a time in seconds, if the option is set.
fn seconds(options: &Options, name: &str) -> Option<u32> {
    options.text(name)?;
    u32::try_from(options.time_ns(name) / NS_PER_S).ok()
}

/// Returns the properties of each message of MQTT 5, encoded.
fn properties(terms: &ClientSettings<'_>) -> Result<Vec<u8>, SettingsError> {
    let mut properties = Vec::new();
    if let Some(expiry_s) = seconds(terms.options, "message_expiry") {
        encode::message_expiry(&mut properties, expiry_s);
    }
    for (name, value) in terms.headers.into_iter().flat_map(MessageHeaders::list) {
        encode::user_property(&mut properties, name, value).map_err(|error| error.to_string())?;
    }
    Ok(properties)
}
