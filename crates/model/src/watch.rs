//! The processes of a server that pubmark did not start and is to measure.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The form of the value, for messages.
const SHAPE: &str = "`pid 4711`, `process mosquitto` or `container broker`, each with `on HOST` behind it where it is not \
                     the server's own host";

/// Identification of the processes of a running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessSelector {
    /// This process, and all its descendants.
    Pid(i32),
    /// All processes of this name, and all their descendants.
    Process(String),
    /// This container of docker or podman.
    Container(String),
}

/// The processes to measure, and their host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Their identification.
    pub what: ProcessSelector,
    /// Their host; `None` for the server's host.
    pub host: Option<String>,
}

/// Error for a text that names no processes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no process to watch: write {SHAPE}")]
pub struct UnknownWatch(String);

impl Watch {
    /// Parses `process NAME on HOST`.
    pub(crate) fn parse(text: &str) -> Result<Watch, UnknownWatch> {
        let unknown = || UnknownWatch(text.to_owned());
        let words: Vec<&str> = text.split_whitespace().collect();
        let (kind, name, host) = match words.as_slice() {
            [kind, name] => (*kind, *name, None),
            [kind, name, "on", host] => (*kind, *name, Some((*host).to_owned())),
            _ => return Err(unknown()),
        };
        // The name is passed to a container engine as a word of its own.
        if name.starts_with('-') {
            return Err(unknown());
        }
        let what = match kind {
            "pid" => ProcessSelector::Pid(name.parse().ok().filter(|pid| *pid > 1).ok_or_else(unknown)?),
            "process" => ProcessSelector::Process(name.to_owned()),
            "container" => ProcessSelector::Container(name.to_owned()),
            _ => return Err(unknown()),
        };
        Ok(Watch { what, host })
    }
}

impl fmt::Display for ProcessSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessSelector::Pid(pid) => write!(f, "pid {pid}"),
            ProcessSelector::Process(name) => write!(f, "process {name}"),
            ProcessSelector::Container(name) => write!(f, "container {name}"),
        }
    }
}

impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, " on {host}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_watched_reads_as_it_is_written() {
        for text in ["pid 4711", "process mosquitto", "container broker-1 on b1", "pid 2 on local"] {
            assert_eq!(Watch::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "pid", "pid 1", "pid x", "process", "server a", "process a b", "process a on", "container -f"]
        {
            let error = Watch::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` names no process to watch: write `pid 4711`")), "{error}");
        }
    }
}
