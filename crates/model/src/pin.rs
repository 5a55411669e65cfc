//! Processor pinning of the parts of a run.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Highest processor number.
const CPU_MAX: usize = 1_023;

/// The processors to which agents and server are pinned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pin {
    /// The kernel places threads.
    #[default]
    None,
    /// Publishers on the first half of the usable processors (of the isolated ones, if there are
    /// two or more), subscribers on the rest.
    Roles,
    /// Each part on its own set; the kernel places a part without a set.
    Sets(PinSets),
}

/// Processors by number, ascending; empty if the kernel places that part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinSets {
    /// Processors of agents that send.
    pub publishers: Vec<usize>,
    /// Processors of agents that receive.
    pub subscribers: Vec<usize>,
    /// Processors of the server.
    pub server: Vec<usize>,
}

/// Error for a text that is not a pinning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a pinning: write `none`, `roles`, or sets such as `publishers 2, subscribers 3, server 0-1`, of processors \
     0 to {CPU_MAX}, each part once"
)]
pub struct UnknownPin(String);

impl PinSets {
    /// Returns the processors of every part with the part's name.
    pub fn parts(&self) -> [(&'static str, &[usize]); 3] {
        [("publishers", &self.publishers), ("subscribers", &self.subscribers), ("server", &self.server)]
    }
}

impl Pin {
    /// Returns the server's processors; empty if the kernel places it.
    pub fn of_server(&self) -> &[usize] {
        match self {
            Pin::Sets(sets) => &sets.server,
            Pin::None | Pin::Roles => &[],
        }
    }

    /// Places the server on half of these cores (the larger half), and all clients on the others;
    /// `None` if there is only one core.
    pub fn apart(cores: &[Vec<usize>]) -> Option<Pin> {
        let (clients, server) = cores.split_at(cores.len() / 2);
        let numbers = |cores: &[Vec<usize>]| {
            let mut numbers = cores.concat();
            numbers.sort_unstable();
            numbers
        };
        let (clients, server) = (numbers(clients), numbers(server));
        let sets = PinSets { publishers: clients.clone(), subscribers: clients, server };
        (!sets.publishers.is_empty()).then_some(Pin::Sets(sets))
    }

    /// Parses `none`, `roles`, or sets: `publishers 2, subscribers 3, server 0-1`.
    pub fn parse(text: &str) -> Result<Pin, UnknownPin> {
        match text {
            "none" => return Ok(Pin::None),
            "roles" => return Ok(Pin::Roles),
            _ => {}
        }
        let unknown = || UnknownPin(text.to_owned());
        let mut sets = PinSets::default();
        for part in text.split(',') {
            let (role, processors) = part.trim().split_once([' ', '=']).ok_or_else(unknown)?;
            let set = match role.trim() {
                "publishers" => &mut sets.publishers,
                "subscribers" => &mut sets.subscribers,
                "server" => &mut sets.server,
                _ => return Err(unknown()),
            };
            let read = parse_processors(processors.trim_start_matches([' ', '=']), '+').filter(|_| set.is_empty());
            *set = read.ok_or_else(unknown)?;
        }
        Ok(Pin::Sets(sets))
    }
}

/// Parses a list of processors in the kernel's format, `0-1,4`, with `between` between its ranges.
/// `None` if it is invalid or empty.
pub fn parse_processors(text: &str, between: char) -> Option<Vec<usize>> {
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu <= CPU_MAX);
    let mut found = Vec::new();
    for range in text.split(between) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        found.extend(first..=last);
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// Formats a list of processors: `0-1+4`.
fn ranges(processors: &[usize]) -> String {
    let ranges = processors.chunk_by(|one, next| one + 1 == *next).map(|range| match range {
        [only] => only.to_string(),
        range => format!("{}-{}", range[0], range[range.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join("+")
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pin::None => f.pad("none"),
            Pin::Roles => f.pad("roles"),
            Pin::Sets(sets) => {
                let parts = sets.parts().into_iter().filter(|(_, set)| !set.is_empty());
                let parts: Vec<String> = parts.map(|(role, set)| format!("{role} {}", ranges(set))).collect();
                f.pad(&parts.join(", "))
            }
        }
    }
}

impl TryFrom<String> for Pin {
    type Error = UnknownPin;
    fn try_from(text: String) -> Result<Self, UnknownPin> {
        Pin::parse(&text)
    }
}

impl From<Pin> for String {
    fn from(pin: Pin) -> String {
        pin.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_clients_share_no_core() {
        let apart = |cores: &[&[usize]]| {
            let cores: Vec<Vec<usize>> = cores.iter().map(|core| core.to_vec()).collect();
            Pin::apart(&cores).map(|pin| pin.to_string())
        };
        assert_eq!(apart(&[&[0], &[1]]).unwrap(), "publishers 0, subscribers 0, server 1");
        assert_eq!(apart(&[&[0, 2], &[1, 3]]).unwrap(), "publishers 0+2, subscribers 0+2, server 1+3");
        assert_eq!(apart(&[&[0], &[1], &[2]]).unwrap(), "publishers 0, subscribers 0, server 1-2");
        assert_eq!((apart(&[&[0, 1]]), apart(&[])), (None, None));
    }

    #[test]
    fn sets_of_processors_are_read_by_role_and_written_shortly() {
        let sets = |text: &str| match Pin::parse(text).unwrap() {
            Pin::Sets(sets) => sets,
            other => panic!("{other:?}"),
        };
        let all = sets("publishers = 2, subscribers 3+5-6, server 0-1");
        assert_eq!(
            (&all.publishers[..], &all.subscribers[..], &all.server[..]),
            (&[2][..], &[3, 5, 6][..], &[0, 1][..])
        );
        assert_eq!(Pin::Sets(all).to_string(), "publishers 2, subscribers 3+5-6, server 0-1");
        assert_eq!(Pin::parse("server 3+0-1+1").unwrap().of_server(), [0, 1, 3]);
        assert_eq!(sets("server 3").publishers, [0usize; 0]);
        assert_eq!((Pin::parse("none").unwrap(), Pin::parse("roles").unwrap()), (Pin::None, Pin::Roles));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["role", "", "server", "server x", "server 1-0", "server 1024", "broker 1", "server 1, server 2"] {
            let error = Pin::parse(text).unwrap_err().to_string();
            assert!(error.contains("`publishers 2, subscribers 3, server 0-1`"), "{error}");
        }
        // The kernel's own lists.
        assert_eq!(parse_processors("0-1,4", ','), Some(vec![0, 1, 4]));
        assert_eq!(parse_processors("", ','), None);
    }
}
