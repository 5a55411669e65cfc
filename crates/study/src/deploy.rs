//! The server of a run: attached to, or started for it.

use crate::run::{Place, RunError, Stage};
use crate::scratch::Scratch;
use pubmark_model::cell::Cell;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::{OptionValues, protocol_of};
use pubmark_model::record::{Deployment, Usage};
use pubmark_model::system::System;
use pubmark_model::units::Ns;

/// What a record says of the server.
pub struct ServerReport {
    /// How it came to run, and under which limits.
    pub deployment: Deployment,
    /// What it used in the window.
    pub usage: Option<Usage>,
    /// Why it ended before it was told to.
    pub obituary: Option<String>,
}

/// The server of a run.
pub enum Deployed {
    /// There is none: a library.
    Nothing,
    /// One that was there already.
    External {
        /// As the user named it.
        endpoint: String,
    },
}

impl Deployed {
    /// Sees to it that there is a server, if the system is one.
    pub fn begin(
        cell: &Cell,
        system: &System,
        _place: Place,
        _stage: &Stage<'_>,
        _scratch: &Scratch,
    ) -> Result<Deployed, RunError> {
        if protocol_of(&system.driver).is_none() {
            return Ok(Deployed::Nothing);
        }
        if let Some(endpoint) = cell.options.text("endpoint") {
            return Ok(Deployed::External { endpoint: endpoint.to_owned() });
        }
        Err(RunError::Failed(format!("{} cannot be started", system.name)))
    }

    /// Where clients connect to.
    pub fn endpoint(&self) -> Option<&str> {
        match self {
            Deployed::Nothing => None,
            Deployed::External { endpoint } => Some(endpoint),
        }
    }

    /// Watches what it uses, from the window's beginning to its end.
    pub fn watch(&mut self, _from_ns: Ns, _window_ns: Option<Ns>) {}

    /// CPU time that it used in the window, ns.
    pub fn cpu_ns(&mut self) -> Ns {
        0
    }

    /// Why it ended, if it has.
    pub fn obituary(&mut self) -> Option<String> {
        None
    }

    /// Ends it, and says what it was.
    pub fn end(self) -> Option<ServerReport> {
        let deployment = match self {
            Deployed::Nothing => return None,
            Deployed::External { endpoint } => {
                Deployment { kind: "external".into(), endpoint: shown(&endpoint), ..Deployment::default() }
            }
        };
        Some(ServerReport { deployment, usage: None, obituary: None })
    }
}

/// An endpoint without user and password.
pub fn shown(endpoint: &str) -> String {
    Endpoint::parse(endpoint).map_or_else(|_| String::new(), |endpoint| endpoint.to_string())
}

/// The program that plays the clients of a system.
pub fn agent_command(_system: &System, built_in: &[String]) -> Result<Vec<String>, String> {
    Ok(built_in.to_vec())
}
