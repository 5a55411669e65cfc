//! Options of a run, as the library is told of them.

use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::{OptionValues, Options, queue_messages};
use pubmark_model::wire_protocol::Protocol;
use serde_json::{Map, Value};
use zenoh::Config;
use zenoh::qos::CongestionControl;

/// Messages that a subscriber's channel holds where no option says so.
const QUEUE_MESSAGES: u64 = 1_000;

/// What the library gathers into a batch, bytes, and the default of `coalesce`.
const BATCH_BYTES: u64 = 64 << 10;

/// The options that this driver knows: some of them with one value only.
pub const OPTIONS: &[&str] =
    &["congestion", "express", "queue_messages", "queue_bytes", "socket_buffer", "tcp_nodelay", "coalesce", "shards"];

/// A configuration of the library: its defaults, without scouting, and `settings`.
pub fn config(settings: &[(&str, Value)]) -> Result<Config, String> {
    let mut config = Config::default();
    let quiet = [("scouting/multicast/enabled", false.into()), ("scouting/gossip/enabled", false.into())];
    for (key, value) in quiet.iter().chain(settings) {
        config
            .insert_json5(key, &value.to_string())
            .map_err(|error| format!("zenoh does not take {value} for {key}: {}", reason(error)))?;
    }
    Ok(config)
}

/// An error of the library without the places in its source, which say nothing to a user.
pub fn reason(error: zenoh::Error) -> String {
    let text = error.to_string();
    let mut reason = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        if word == "at" && words.peek().is_some_and(|place| place.contains(".rs:")) {
            words.next();
            continue;
        }
        if !reason.is_empty() {
            reason.push(' ');
        }
        reason.push_str(word);
    }
    reason
}

/// The options of a run, resolved.
pub struct Settings {
    /// What a publisher does where its queue, or the router's, is full.
    pub congestion: CongestionControl,
    /// Whether each message goes out by itself rather than in a batch.
    pub express: bool,
    /// Messages that a subscriber's channel holds.
    pub queue_messages: usize,
    /// SO_SNDBUF and SO_RCVBUF, bytes; 0 leaves the kernel's.
    pub socket_buffer_bytes: u64,
    /// Stands before every key expression.
    pub prefix: String,
}

impl Settings {
    /// Reads the options. What this driver cannot do is an error.
    pub fn read(options: &Options, payload_bytes: u64) -> Result<Settings, String> {
        for name in ["username", "password", "tls_ca", "tls_cert", "tls_key", "sources"] {
            if options.text(name).is_some_and(|text| !text.is_empty()) {
                return Err(format!("zenoh: this driver speaks plain TCP without a login: leave `{name}` out"));
            }
        }
        if options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
            return Err(
                "zenoh: TCP_NODELAY is always on and the library cannot turn it off: leave tcp_nodelay at true".into(),
            );
        }
        if options.number("shards") > 0 {
            return Err(
                "zenoh: each client has a thread, and the library threads of its own: leave `shards` at 0".into()
            );
        }
        if options.get("coalesce").is_some() && options.number("coalesce") != BATCH_BYTES {
            return Err("zenoh: the library gathers messages by itself, up to 64 KiB: leave `coalesce` at that".into());
        }
        let prefix = options.text("prefix").unwrap_or_default();
        if prefix.starts_with('/')
            || prefix.contains("//")
            || prefix.contains(|c: char| "*$#?".contains(c) || c.is_control())
        {
            return Err(format!(
                "zenoh: `{prefix}` cannot begin a key expression: write chunks with one slash between them, without * $ # ?"
            ));
        }
        let congestion = match options.text("congestion").unwrap_or("block") {
            "block" => CongestionControl::Block,
            "drop" => CongestionControl::Drop,
            other => return Err(format!("zenoh: `{other}` is no congestion control: write `block` or `drop`")),
        };
        let queue_messages = match options.get("queue_messages") {
            None => QUEUE_MESSAGES,
            Some(_) if options.get("queue_bytes").is_none() => options.number("queue_messages").max(1),
            Some(_) => queue_messages(options, payload_bytes),
        };
        Ok(Settings {
            congestion,
            express: options.flag("express"),
            queue_messages: usize::try_from(queue_messages).unwrap_or(usize::MAX),
            socket_buffer_bytes: options.number("socket_buffer"),
            prefix: prefix.to_owned(),
        })
    }

    /// As they took effect, for the record.
    pub fn applied(&self) -> Map<String, Value> {
        let congestion = if self.congestion == CongestionControl::Block { "block" } else { "drop" };
        [
            ("congestion", congestion.into()),
            ("express", self.express.into()),
            ("queue_messages", self.queue_messages.into()),
            ("socket_buffer", self.socket_buffer_bytes.into()),
            ("tcp_nodelay", true.into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }

    /// What the library calls an endpoint: `tcp/HOST:PORT`, with what is to be
    /// set on the connection behind it.
    pub fn locator(&self, endpoint: &str) -> Result<String, String> {
        let endpoint = Endpoint::parse(endpoint).map_err(|error| error.to_string())?;
        if endpoint.protocol != Protocol::Zenoh {
            return Err(format!("zenoh: `{endpoint}` is no router: write zenoh://HOST:PORT"));
        }
        if endpoint.user.is_some() {
            return Err(format!("zenoh: write zenoh://{} alone: this driver has no login", endpoint.address()));
        }
        Ok(self.at(&endpoint.address()))
    }

    /// The same of a peer: `tcp://HOST:PORT`.
    pub fn peer(&self, endpoint: &str) -> String {
        self.at(endpoint.strip_prefix("tcp://").unwrap_or(endpoint))
    }

    fn at(&self, address: &str) -> String {
        match self.socket_buffer_bytes {
            0 => format!("tcp/{address}"),
            bytes => format!("tcp/{address}#so_sndbuf={bytes};so_rcvbuf={bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, Value)]) -> Options {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn refused(name: &str, value: Value) -> String {
        Settings::read(&options(&[(name, value)]), 64).err().unwrap_or_default()
    }

    #[test]
    fn without_options_publishers_block_and_batch() {
        let settings = Settings::read(&Options::new(), 64).unwrap();
        let applied = Value::from(settings.applied()).to_string();
        let expected =
            r#"{"congestion":"block","express":false,"queue_messages":1000,"socket_buffer":0,"tcp_nodelay":true}"#;
        assert_eq!(applied, expected);
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        assert!(refused("congestion", "shout".into()).contains("block` or `drop"));
        assert!(refused("tcp_nodelay", false.into()).contains("leave tcp_nodelay at true"));
        assert!(refused("tls_ca", "ca.pem".into()).contains("`tls_ca`"));
        assert!(refused("password", "secret".into()).contains("`password`"));
        assert!(!refused("password", "secret".into()).contains("secret"));
        assert!(refused("coalesce", 4_096.into()).contains("coalesce"));
        assert_eq!(refused("coalesce", 65_536.into()), "");
        assert!(refused("shards", 2.into()).contains("shards"));
    }

    #[test]
    fn a_channel_is_bounded_in_messages_and_in_bytes() {
        let settings = options(&[("queue_messages", 1_000.into()), ("queue_bytes", 65_536.into())]);
        assert_eq!(Settings::read(&settings, 16).unwrap().queue_messages, 1_000);
        assert_eq!(Settings::read(&settings, 1_024).unwrap().queue_messages, 64);
        assert_eq!(Settings::read(&settings, 1 << 20).unwrap().queue_messages, 1);
    }

    #[test]
    fn endpoints_become_locators() {
        let mut settings = Settings::read(&Options::new(), 64).unwrap();
        assert_eq!(settings.locator("zenoh://127.0.0.1:7000").unwrap(), "tcp/127.0.0.1:7000");
        assert_eq!(settings.locator("zenoh://[::1]").unwrap(), "tcp/[::1]:7447");
        assert!(settings.locator("mqtt://127.0.0.1").unwrap_err().contains("is no router"));
        let error = settings.locator("zenoh://me:secret@127.0.0.1").unwrap_err();
        assert!(error.contains("no login") && !error.contains("secret"), "{error}");
        settings.socket_buffer_bytes = 4096;
        assert_eq!(settings.locator("zenoh://a:1").unwrap(), "tcp/a:1#so_sndbuf=4096;so_rcvbuf=4096");
        assert_eq!(settings.peer("tcp://a:1"), "tcp/a:1#so_sndbuf=4096;so_rcvbuf=4096");
    }

    #[test]
    fn the_library_knows_the_settings() {
        assert!(config(&[("transport/unicast/max_sessions", 5.into())]).is_ok());
        assert!(
            config(&[("transport/unicast/max_session", 5.into())]).err().unwrap_or_default().contains("max_session")
        );
    }
}
