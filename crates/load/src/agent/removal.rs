//! Lists and removes what runs leave at servers.

use super::tasks::{OpenError, reach};
use crate::clock;
use crate::drivers::{DriverKind, REGISTRY, SessionDriver};
use crate::session::SettingsError;
use pubmark_model::endpoint::{Endpoint, EndpointError};
use pubmark_model::leftovers::{Leftover, Leftovers, Removal};
use pubmark_model::options::OptionValues;
use pubmark_model::protocol::ServerAddress;
use pubmark_model::units::Ns;

/// The reason why the leftovers of a run cannot be listed or removed.
#[derive(Debug, thiserror::Error)]
pub enum LeftoversError {
    /// The built-in agent has no such driver, or the driver leaves nothing.
    #[error("the driver `{0}` is not pubmark's own: it removes what it makes by itself")]
    Driver(String),
    /// The endpoint is malformed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The options are not valid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The server cannot be found or reached.
    #[error(transparent)]
    Open(#[from] OpenError),
}

fn driver(leftovers: &Leftovers) -> Result<SessionDriver, LeftoversError> {
    let found = REGISTRY.iter().find(|(name, _)| *name == leftovers.driver);
    match found {
        Some((_, DriverKind::Sessions(driver))) => Ok(*driver),
        _ => Err(LeftoversError::Driver(leftovers.driver.clone())),
    }
}

fn endpoint(leftovers: &Leftovers) -> &str {
    leftovers.options.text("endpoint").unwrap_or_default()
}

/// Lists what a run leaves at its server if nobody removes it.
///
/// # Errors
/// If the driver is not built in, or its options are not valid.
pub fn list(leftovers: &Leftovers) -> Result<Vec<Leftover>, LeftoversError> {
    let endpoint = Endpoint::parse(endpoint(leftovers))?;
    Ok((driver(leftovers)?.list)(leftovers, &endpoint)?)
}

/// Removes what a run has left at its server, within the given time.
///
/// # Errors
/// If the driver is not built in, or its server cannot be found.
pub fn remove(leftovers: &Leftovers) -> Result<Removal, LeftoversError> {
    let server = ServerAddress {
        members: Vec::new(),
        discovery: Vec::new(),
        endpoint: endpoint(leftovers).to_owned(),
        run: leftovers.run.clone(),
        sources: Vec::new(),
        connect_per_s: 1,
    };
    let (endpoint, dial) = reach(&server, &leftovers.options, 1)?;
    let until_ns = clock::now() + leftovers.patience().as_nanos() as Ns;
    Ok((driver(leftovers)?.remove)(leftovers, &endpoint, dial, until_ns))
}
