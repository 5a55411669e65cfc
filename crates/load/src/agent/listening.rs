//! Hears what clients publish at a server, outside a run.

use super::tasks::{OpenError, reach};
use crate::drivers::{DriverKind, REGISTRY};
use crate::shard::{ListenError, ListenTerms, ListenerHandler};
use pubmark_model::endpoint::{Endpoint, EndpointError};
use pubmark_model::options::Options;
use pubmark_model::protocol::ServerAddress;
use std::sync::atomic::AtomicBool;

/// The reason why nothing can be heard.
#[derive(Debug, thiserror::Error)]
pub enum OverhearError {
    /// The built-in agent has no sessions of this protocol.
    #[error("pubmark does not speak {0} itself. Record at an endpoint of MQTT, NATS, Redis or AMQP")]
    Protocol(String),
    /// The endpoint is malformed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The server cannot be found.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server refuses, or has ended the connection.
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl OverhearError {
    /// True if the server was asked, and refused or has gone.
    pub fn is_of_server(&self) -> bool {
        matches!(self, OverhearError::Listen(ListenError::Lost { .. } | ListenError::Silent(_)))
    }
}

/// Subscribes at an endpoint with the options of its protocol and these, and passes on what arrives.
///
/// # Errors
/// See [`OverhearError`].
pub fn overhear(
    url: &str,
    more: &Options,
    (name, topic, duration_ns): (&str, Option<&str>, Option<u64>),
    stop: &AtomicBool,
    hear: &mut ListenerHandler<'_>,
) -> Result<(), OverhearError> {
    let protocol = Endpoint::parse(url)?.protocol;
    let driver = protocol.word();
    let found = REGISTRY.iter().find(|(known, _)| *known == driver);
    let Some((_, DriverKind::Sessions(driver))) = found else {
        return Err(OverhearError::Protocol(driver.to_owned()));
    };
    let defaults = protocol.options().into_iter().filter_map(|option| Some((option.name, option.default?)));
    let mut options: Options = defaults.collect();
    options.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    let server = ServerAddress {
        endpoint: url.to_owned(),
        members: Vec::new(),
        discovery: Vec::new(),
        run: name.to_owned(),
        sources: Vec::new(),
        connect_per_s: 1,
    };
    let (endpoint, dial) = reach(&server, &options, 1)?;
    let options = endpoint.applied_to(&options);
    let listening = ListenTerms { endpoint: &endpoint, options: &options, name, topic, duration_ns, stop };
    Ok((driver.listen)(&listening, dial, hear)?)
}
