//! Settings that all AMQP clients of a run share.

use crate::drivers::confirms::inflight;
use crate::drivers::option_file::Logins;
use crate::session::{ClientSettings, SettingsError};
use crate::topics::{self, PrefixRules};
use pubmark_model::message_headers::MessageHeaders;
use pubmark_model::options::OptionValues;
use pubmark_model::units::MILLISECOND;
use pubmark_wire::amqp::{FieldTable, Frame, Method, headed, put_flag, put_integer, put_table, put_text};
use std::borrow::Cow;

/// The one channel of a session.
pub(super) const CHANNEL: u16 = 1;
/// Maximum length of a short text in a frame, bytes.
const SHORT_BYTES: usize = 255;
/// Together with what follows the prefix, a name has 255 bytes at most. A star and a hash have a
/// meaning in patterns.
const PREFIX: PrefixRules = PrefixRules { what: "a routing key", forbidden: "*#", first: "", most_bytes: 128 };
const NS_PER_S: u64 = 1_000_000_000;

/// The settings of all clients.
pub struct AmqpSettings {
    pub(super) qos: u8,
    pub(super) durable: bool,
    pub(super) vhost: String,
    /// Time between heartbeats, s; 0 for none.
    pub(super) heartbeat_s: u16,
    /// Messages that a consumer may hold unacknowledged; 0 for no limit.
    pub(super) prefetch: u16,
    /// Messages of one client that may be unconfirmed.
    pub(super) inflight: usize,
    /// The user's prefix of each name.
    pub(super) prefix: String,
    /// The run's own exchange, if there is a prefix.
    pub(super) exchange: Option<String>,
    /// Arguments of a queue, and of a consumer, as the bytes of a table.
    pub(super) queue_arguments: Vec<u8>,
    pub(super) consumer_arguments: Vec<u8>,
    /// Headers of each message, as the bytes of a table.
    pub(super) headers: Vec<u8>,
    /// The properties of each message that is no request or answer.
    pub(super) message_properties: Vec<u8>,
    /// True if a requester takes its answers from a queue of its own instead of RabbitMQ's direct reply-to.
    pub(super) own_reply_queue: bool,
    /// User and password, each after a zero byte (RFC 4616).
    login: Vec<u8>,
    /// Users and passwords of single clients.
    logins: Option<Logins>,
    /// The client's properties, as the bytes of a table.
    properties: Vec<u8>,
}

impl AmqpSettings {
    pub(super) fn read(terms: &ClientSettings<'_>) -> Result<AmqpSettings, SettingsError> {
        let (endpoint, options) = (terms.endpoint, terms.options);
        if terms.qos > 1 {
            return Err("AMQP 0-9-1 has nothing like QoS 2: write qos = 1 or qos = 0".into());
        }
        let heartbeat_s = options.time_ns("heartbeat") / NS_PER_S;
        if options.time_ns("heartbeat") % NS_PER_S != 0 {
            return Err("heartbeat: write whole seconds".into());
        }
        let heartbeat_s = u16::try_from(heartbeat_s).map_err(|_| format!("heartbeat: write {} s at most", u16::MAX))?;
        let prefetch =
            u16::try_from(options.number("prefetch")).map_err(|_| format!("prefetch: write {} at most", u16::MAX))?;
        let vhost = options.text("vhost").unwrap_or("/").to_owned();
        if vhost.len() > SHORT_BYTES {
            return Err(format!("vhost: write {SHORT_BYTES} bytes at most").into());
        }
        let prefix = options.text("prefix").unwrap_or_default().to_owned();
        topics::check_prefix(&prefix, &PREFIX)?;
        if prefix.starts_with("amq.") {
            return Err("prefix: names that begin with `amq.` are the server's own: write another".into());
        }
        let mut headers = Vec::new();
        for (name, value) in terms.headers.into_iter().flat_map(MessageHeaders::list) {
            put_text(&mut headers, name, value);
        }
        let user = endpoint.user.as_deref().or(options.text("username")).unwrap_or("guest");
        let password = endpoint.password.as_deref().or(options.text("password")).unwrap_or("guest");
        let (mut queue_arguments, mut consumer_arguments) = (Vec::new(), Vec::new());
        match options.text("queue_type") {
            None | Some("classic") => {}
            Some(kind @ ("quorum" | "stream")) => {
                put_text(&mut queue_arguments, "x-queue-type", kind);
                if kind == "stream" {
                    put_text(&mut consumer_arguments, "x-stream-offset", "first");
                }
            }
            Some(other) => return Err(format!("queue_type: write classic, quorum or stream, and not `{other}`").into()),
        }
        let max_length = options.number("max_length");
        let overflow = options.text("overflow").unwrap_or("drop-head");
        if !["drop-head", "reject-publish"].contains(&overflow) {
            return Err(format!("overflow: write drop-head or reject-publish, and not `{overflow}`").into());
        }
        let max_age_ms = options.time_ns("max_age").div_ceil(MILLISECOND);
        for (name, bound) in [("max_length", max_length), ("max_age", max_age_ms)] {
            if bound > 0 && options.text("queue_type") == Some("stream") {
                let text = format!("{name}: a stream has no such bound: leave it out, or choose another queue_type");
                return Err(text.into());
            }
        }
        if max_length > 0 {
            let length = i64::try_from(max_length).map_err(|_| format!("max_length: write {} at most", i64::MAX))?;
            put_integer(&mut queue_arguments, "x-max-length", length);
            put_text(&mut queue_arguments, "x-overflow", overflow);
        }
        if max_age_ms > 0 {
            put_integer(&mut queue_arguments, "x-message-ttl", max_age_ms as i64);
        }
        let own_reply_queue = match options.text("reply_queue") {
            None | Some("direct") => false,
            Some("exclusive") => true,
            Some(other) => return Err(format!("reply_queue: write direct or exclusive, and not `{other}`").into()),
        };
        Ok(AmqpSettings {
            own_reply_queue,
            qos: terms.qos,
            durable: terms.durable,
            vhost,
            heartbeat_s,
            prefetch,
            inflight: inflight(options)?,
            exchange: (!prefix.is_empty()).then(|| format!("{prefix}pubmark.{}", terms.run)),
            prefix,
            queue_arguments,
            consumer_arguments,
            message_properties: headed(FieldTable(&headers), terms.durable),
            headers,
            login: plain(user, password),
            logins: Logins::of(terms)?,
            properties: properties(),
        })
    }

    /// Returns user and password of the client with this line of `credentials_file`.
    pub(super) fn login(&self, row: u32) -> Cow<'_, [u8]> {
        let own = self.logins.as_ref().and_then(|logins| logins.row(row));
        own.map_or(Cow::Borrowed(&self.login), |(user, password)| Cow::Owned(plain(user, password)))
    }

    /// Appends the method that logs in with it.
    pub(super) fn log_in(&self, row: u32, out: &mut Vec<u8>) {
        let start_ok = Method::StartOk {
            properties: FieldTable(&self.properties),
            mechanism: "PLAIN".into(),
            response: &self.login(row),
            locale: "en_US".into(),
        };
        Frame::Method(0, start_ok).put(out);
    }

    /// Declares the run's own exchange, if there is one.
    pub(super) fn make_exchange(&self, kind: &str, out: &mut Vec<u8>) {
        if let Some(exchange) = self.exchange.as_deref() {
            let flags = if self.durable { Method::DURABLE } else { 0 };
            let (exchange, kind, arguments) = (exchange.into(), kind.into(), FieldTable(&[]));
            let declare = Method::ExchangeDeclare { reserved: 0, exchange, kind, flags, arguments };
            Frame::Method(CHANNEL, declare).put(out);
        }
    }

    /// Returns the method that opens the virtual host.
    pub(super) fn open(&self) -> Method<'_> {
        Method::Open { vhost: (&*self.vhost).into(), reserved_1: "".into(), reserved_2: false }
    }
}

fn plain(user: &str, password: &str) -> Vec<u8> {
    format!("\0{user}\0{password}").into_bytes()
}

fn properties() -> Vec<u8> {
    let mut capabilities = Vec::new();
    for (name, flag) in [
        // Without it, the server answers a wrong password by closing the connection
        // silently.
        ("authentication_failure_close", true),
        ("basic.nack", true),
        ("connection.blocked", true),
        ("consumer_cancel_notify", true),
        ("publisher_confirms", true),
    ] {
        put_flag(&mut capabilities, name, flag);
    }
    let mut table = Vec::new();
    put_text(&mut table, "product", "pubmark");
    put_text(&mut table, "version", env!("CARGO_PKG_VERSION"));
    put_table(&mut table, "capabilities", FieldTable(&capabilities));
    table
}
