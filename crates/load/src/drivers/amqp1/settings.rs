//! Settings that all AMQP 1.0 clients of a run share.

use crate::drivers::confirms::inflight;
use crate::drivers::option_file::Logins;
use crate::session::{ClientSettings, SettingsError};
use crate::topics::{self, PrefixRules};
use pubmark_model::options::OptionValues;
use std::borrow::Cow;

/// A star, a hash and an angle bracket have a meaning in brokers' patterns.
const PREFIX: PrefixRules = PrefixRules { what: "an address", forbidden: "*#>", first: "", most_bytes: 128 };
const NS_PER_S: u64 = 1_000_000_000;

/// The settings of all clients.
pub struct Amqp1Settings {
    pub(super) qos: u8,
    pub(super) durable: bool,
    /// Name of the server.
    pub(super) hostname: String,
    /// Time between signs of life, s.
    pub(super) heartbeat_s: u32,
    /// Messages that a subscriber may be sent beyond those that it has received.
    pub(super) credit: u32,
    /// Messages of one client that may be unacknowledged.
    pub(super) inflight: usize,
    /// User and password, each after a zero byte (RFC 4616); `None` without a user.
    login: Option<Vec<u8>>,
    /// Users and passwords of single clients.
    logins: Option<Logins>,
}

impl Amqp1Settings {
    pub(super) fn read(terms: &ClientSettings<'_>) -> Result<Amqp1Settings, SettingsError> {
        let (endpoint, options) = (terms.endpoint, terms.options);
        if terms.qos > 1 {
            return Err("pubmark speaks no exactly-once over AMQP 1.0: write qos = 1 or qos = 0".into());
        }
        if terms.answer_ns.is_some() {
            return Err("pubmark sends no requests over AMQP 1.0".into());
        }
        let heartbeat_ns = options.time_ns("heartbeat");
        if heartbeat_ns == 0 || heartbeat_ns % NS_PER_S != 0 {
            return Err("heartbeat: write whole seconds, 1 at least".into());
        }
        let most = 1 << 30;
        let credit = u32::try_from(options.number("credit")).ok().filter(|credit| (1..=most).contains(credit));
        topics::check_prefix(options.text("prefix").unwrap_or_default(), &PREFIX)?;
        let user = endpoint.user.as_deref().or(options.text("username"));
        let password = endpoint.password.as_deref().or(options.text("password")).unwrap_or_default();
        Ok(Amqp1Settings {
            qos: terms.qos,
            durable: terms.durable,
            hostname: endpoint.host.clone(),
            heartbeat_s: u32::try_from(heartbeat_ns / NS_PER_S).map_err(|_| "heartbeat: write less".to_owned())?,
            credit: credit.ok_or_else(|| format!("credit: write 1 to {most}"))?,
            inflight: inflight(options)?,
            login: user.map(|user| plain(user, password)),
            logins: Logins::of(terms)?,
        })
    }

    /// Returns user and password of the client with this line of `credentials_file`; `None` if it has none.
    pub(super) fn login(&self, row: u32) -> Option<Cow<'_, [u8]>> {
        let own = self.logins.as_ref().and_then(|logins| logins.row(row));
        let own = own.map(|(user, password)| Cow::Owned(plain(user, password)));
        own.or(self.login.as_deref().map(Cow::Borrowed))
    }
}

fn plain(user: &str, password: &str) -> Vec<u8> {
    format!("\0{user}\0{password}").into_bytes()
}
