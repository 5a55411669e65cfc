//! Scripted faults of a run: which part is stopped, killed or cut, when, for how long.

mod error;

use crate::diagnostic::suggestion;
use crate::later::LaterWord;
use crate::units::{Ns, SECOND, format_time, parse_time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use error::FaultError;

/// The script without a fault.
pub const NONE: &str = "none";

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// SIGSTOP, and SIGCONT at the end.
    Stop,
    /// Server: SIGKILL, then a restart at the end with the same command, on the same port, in the
    /// same folder, under the same limits. Publishers or subscribers: their clients lose all
    /// connections at once, like those of a killed process, and stay away; their agents keep their
    /// ledgers.
    Kill,
    /// Link: all connections are reset at once, and new ones are refused until the end. Clients: their connections
    /// are closed at once without a goodbye, and they come back.
    Cut,
    /// Server: everything that was not synced to its disk is gone at once, and all its processes are. At the end it is
    /// started again as after a kill. A script ends the publishers at the same instant: see [`Script::parse`].
    #[serde(rename = "cut_power")]
    CutPower,
    /// Server: no room is left on the disk that its folder lies on, until the end.
    #[serde(rename = "fill_disk")]
    FillDisk,
    /// Server: SIGTERM, and a start with the same command as soon as it has ended.
    Restart,
    /// A kind that only a later pubmark knows. It is read from records and cannot be requested.
    #[serde(untagged)]
    Later(LaterWord),
}

impl Act {
    /// Returns its word in a script.
    pub fn word(self) -> &'static str {
        match self {
            Act::Stop => "stop",
            Act::Kill => "kill",
            Act::Cut => "cut",
            Act::CutPower => "cut power of",
            Act::FillDisk => "fill disk of",
            Act::Restart => "restart",
            Act::Later(word) => word.word(),
        }
    }
}

/// The part of a run that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// The server with all its processes.
    Server,
    /// The agents that play publishers (or requesters).
    Publishers,
    /// The agents that play subscribers (or repliers).
    Subscribers,
    /// Publishers and subscribers.
    Clients,
    /// The link between clients and the server: see [`Link`](crate::link::Link).
    Link,
    /// The network interface of a host, which [`Fault::host`] names.
    Host,
    /// The links between members of the server, which [`Fault::member`] names.
    Members,
    /// A target that only a later pubmark knows.
    #[serde(untagged)]
    Later(LaterWord),
}

impl Target {
    /// Returns its word in a script.
    pub fn word(self) -> &'static str {
        match self {
            Target::Server => "server",
            Target::Publishers => "publishers",
            Target::Subscribers => "subscribers",
            Target::Clients => "clients",
            Target::Link | Target::Host | Target::Members => "link",
            Target::Later(word) => word.word(),
        }
    }

    /// True if it is a part of the clients, which their agents affect.
    pub fn is_clients(self) -> bool {
        matches!(self, Target::Publishers | Target::Subscribers | Target::Clients)
    }
}

/// The members of a server that a fault affects, if not all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Members {
    /// The member that leads at the instant of the fault.
    Leader,
    /// All, one after the other: each has joined again before the next is restarted.
    Rolling,
    /// The member of this number, from 1.
    Number(u32),
    /// The link between the members of these numbers, from 1, the smaller first.
    Pair(u32, u32),
}

impl Members {
    fn parse(word: &str) -> Option<Members> {
        match word {
            "leader" => Some(Members::Leader),
            "rolling" => Some(Members::Rolling),
            number => number.parse().ok().filter(|number| *number > 0).map(Members::Number),
        }
    }

    /// Reads the members whose links are cut: `leader`, `2` or `1-2`. `None` if the word names a host; an error if it names
    /// members that cannot be.
    fn parse_link(word: &str) -> Option<Result<Members, ()>> {
        let number = |word: &str| word.parse::<u32>().ok().filter(|number| *number > 0).ok_or(());
        let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        match word.split_once('-') {
            _ if word == "leader" => Some(Ok(Members::Leader)),
            _ if is_number(word) => Some(number(word).map(Members::Number)),
            Some((one, other)) if is_number(one) && is_number(other) => Some(match (number(one), number(other)) {
                (Ok(one), Ok(other)) if one != other => Ok(Members::Pair(one.min(other), one.max(other))),
                _ => Err(()),
            }),
            _ => None,
        }
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Members::Leader => f.write_str("leader"),
            Members::Rolling => f.write_str("rolling"),
            Members::Number(number) => write!(f, "{number}"),
            Members::Pair(one, other) => write!(f, "{one}-{other}"),
        }
    }
}

/// A fault of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of fault.
    pub what: Act,
    /// The part that it affects.
    pub who: Target,
    /// The host, if the fault affects a host's network. For a fault that only a later pubmark
    /// knows: the words between part and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Box<str>>,
    /// The members of the server that it affects; `None` for all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Members>,
    /// The share of the clients that are cut or killed, percent; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
    /// Start, ns from the window's beginning.
    pub at_ns: Ns,
    /// Length, ns; `None` if the fault is permanent, or happens at an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<Ns>,
}

impl Fault {
    /// Returns the end, ns from the window's beginning; `None` if it has no length.
    pub fn until_ns(&self) -> Option<Ns> {
        Some(self.at_ns + self.for_ns?)
    }

    /// Returns the side whose clients are killed, if this fault kills clients.
    pub fn killed_side(&self) -> Option<Target> {
        (self.what == Act::Kill && self.who.is_clients() && self.percent.is_none()).then_some(self.who)
    }

    /// Returns the share of the clients that this fault disconnects, percent, if it cuts clients or kills a share of
    /// them.
    pub fn cut_percent(&self) -> Option<u8> {
        let whole = (self.what == Act::Cut).then_some(100);
        self.percent.or(whole).filter(|_| matches!(self.what, Act::Cut | Act::Kill) && self.who.is_clients())
    }

    /// True if agents carry it out on their own clients, at an instant.
    pub fn is_of_agents(&self) -> bool {
        self.killed_side().is_some() || self.cut_percent().is_some()
    }

    /// True if clients lose their connections and come back.
    pub fn breaks_connections(&self) -> bool {
        matches!(self.what, Act::Cut | Act::Restart | Act::FillDisk)
            || self.ends_server()
            || self.who == Target::Server && self.member.is_some()
    }

    /// True if the server's processes end at once and are started again at the end of the fault.
    pub fn ends_server(&self) -> bool {
        matches!(self.what, Act::Kill | Act::CutPower) && self.who == Target::Server
    }

    /// True if it affects what another fault affects, so that one must be over before the other begins.
    fn is_of_same_part(&self, other: &Fault) -> bool {
        let are_apart = match (self.member, other.member) {
            (Some(Members::Pair(..)), Some(Members::Pair(..))) => self.member != other.member,
            _ => false,
        };
        (self.who, &self.host) == (other.who, &other.host) && !are_apart
    }

    fn parse(text: &str) -> Result<Fault, FaultError> {
        let whole = || text.to_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        let (what, percent, who, rest) = match words.as_slice() {
            ["cut", "power", "of", who, rest @ ..] => (&Act::CutPower.word(), None, who, rest),
            ["fill", "disk", "of", who, rest @ ..] => (&Act::FillDisk.word(), None, who, rest),
            [what, share, "of", who, rest @ ..] => (what, Some(*share), who, rest),
            [what, who, rest @ ..] => (what, None, who, rest),
            _ => return Err(FaultError::Shape(whole())),
        };
        let acts = [Act::Stop, Act::Kill, Act::Cut, Act::Restart, Act::CutPower, Act::FillDisk];
        let what = acts.into_iter().find(|act| act.word() == *what).ok_or_else(|| {
            let help = suggestion(what, acts.map(Act::word));
            FaultError::Act { text: whole(), act: (*what).to_owned(), help }
        })?;
        let targets = [Target::Server, Target::Publishers, Target::Subscribers, Target::Clients, Target::Link];
        let who = targets.into_iter().find(|target| target.word() == *who).ok_or_else(|| {
            let help = suggestion(who, targets.map(Target::word));
            FaultError::Target { text: whole(), target: (*who).to_owned(), help }
        })?;
        match (what, who) {
            (Act::Cut, Target::Server) => return Err(FaultError::Cut(whole())),
            (Act::CutPower, who) if who != Target::Server => return Err(FaultError::Power(whole())),
            (Act::FillDisk, who) if who != Target::Server => return Err(FaultError::Disk(whole())),
            (Act::Restart, who) if who != Target::Server => return Err(FaultError::Restart(whole())),
            (Act::Stop | Act::Kill, Target::Link | Target::Clients) => {
                let both = who == Target::Clients;
                return Err(FaultError::OnlyCut(
                    whole(),
                    if both { "cut clients at …" } else { "cut link at … for …" },
                ));
            }
            _ => {}
        }
        let is_cut = what == Act::Cut && who.is_clients();
        let has_share = is_cut || what == Act::Kill && who == Target::Subscribers;
        let percent =
            percent.map(|share| share_of(share).filter(|_| has_share).ok_or_else(|| FaultError::Share(whole())));
        let percent = percent.transpose()?;
        // `cut link b1 at …` cuts that host's network, and `cut link 1-2 at …` what is between two members.
        let mut between = None;
        let (who, host, rest) = match rest {
            [word, rest @ ..] if who == Target::Link && *word != "at" => match Members::parse_link(word) {
                Some(members) => {
                    between = Some(members.map_err(|()| FaultError::Between(whole()))?);
                    (Target::Members, None, rest)
                }
                None => (Target::Host, Some((*word).into()), rest),
            },
            rest => (who, None, rest),
        };
        let (member, rest) = match rest {
            rest if between.is_some() => (between, rest),
            [word, rest @ ..] if who == Target::Server && *word != "at" => {
                let member = Members::parse(word).filter(|member| *member != Members::Rolling || what == Act::Restart);
                (Some(member.ok_or_else(|| FaultError::Member(whole()))?), rest)
            }
            rest => (None, rest),
        };
        let is_open = what == Act::Restart || what == Act::Kill && member.is_some();
        let at_once = is_cut || what == Act::Kill && who != Target::Server;
        let (at, length) = match rest {
            ["at", _, "for", _] if what == Act::Restart => return Err(FaultError::Restart(whole())),
            ["at", at] if is_open => (*at, None),
            ["at", _, "for", _] if at_once => {
                return Err(FaultError::Return { text: whole(), act: what.word(), side: who.word() });
            }
            ["at", at, "for", length] => (*at, Some(*length)),
            ["at", at] if at_once => (*at, None),
            ["at", _] => return Err(FaultError::NoLength(whole())),
            _ => return Err(FaultError::Shape(whole())),
        };
        let time = |word: &str| parse_time(word).map_err(|source| FaultError::Time { text: whole(), source });
        let fault = Fault { what, who, host, member, percent, at_ns: time(at)?, for_ns: length.map(time).transpose()? };
        if fault.for_ns == Some(0) && !matches!(what, Act::Kill | Act::CutPower) {
            return Err(FaultError::NoTime(whole()));
        }
        Ok(fault)
    }

    /// Reads a text of the form `WHAT WHO … at TIME`, optionally with `for TIME`, whatever the
    /// words mean.
    fn of_a_later_version(text: &str) -> Option<Fault> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (before, times) = words.split_at(words.iter().position(|word| *word == "at")?);
        let [what, who, place @ ..] = before else { return None };
        let (at, length) = match times {
            [_, at] => (*at, None),
            [_, at, "for", length] => (*at, Some(parse_time(length).ok()?)),
            _ => return None,
        };
        Some(Fault {
            what: kept(what)?,
            who: kept(who)?,
            host: (!place.is_empty()).then(|| place.join(" ").into()),
            member: None,
            percent: None,
            at_ns: parse_time(at).ok()?,
            for_ns: length,
        })
    }
}

/// Reads a share like `50%`, in whole percent from 1 to 100.
fn share_of(text: &str) -> Option<u8> {
    text.strip_suffix('%')?.parse().ok().filter(|percent| (1..=100).contains(percent))
}

/// True if this client of a side belongs to the `percent` that are cut: in all, that share of them,
/// rounded down, evenly spread over their numbers.
pub fn is_cut(id: u32, percent: u8) -> bool {
    let before = |count: u64| count * u64::from(percent) / 100;
    before(u64::from(id) + 1) > before(u64::from(id))
}

/// Reads a word as a record has it; `None` if no pubmark would use it.
fn kept<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(word.into()).ok()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.what.word())?;
        self.percent.map_or(Ok(()), |percent| write!(f, "{percent}% of "))?;
        f.write_str(self.who.word())?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, " {host}"))?;
        self.member.as_ref().map_or(Ok(()), |member| write!(f, " {member}"))?;
        write!(f, " at {}", format_time(self.at_ns))?;
        self.for_ns.map_or(Ok(()), |length| write!(f, " for {}", format_time(length)))
    }
}

/// The faults of a run, in the order of their times; often empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script(pub Vec<Fault>);

impl Script {
    /// Parses faults, separated by commas, or `none`. Faults of one part must not overlap.
    ///
    /// Where the power of the whole server is cut, the publishers are killed at the same instant, unless they were before: they
    /// must not go on with a server that has forgotten what it acknowledged.
    pub fn parse(text: &str) -> Result<Script, FaultError> {
        if text.trim() == NONE {
            return Ok(Script::default());
        }
        let faults = text.split(',').map(|fault| Fault::parse(fault.trim())).collect::<Result<Vec<_>, _>>();
        let mut faults = faults?;
        // The other members of a cluster go on, and so do its publishers.
        let cuts_all = |fault: &&Fault| fault.what == Act::CutPower && fault.member.is_none();
        let cut_ns = faults.iter().filter(cuts_all).map(|fault| fault.at_ns).min();
        let ends = |fault: &Fault, at_ns| fault.killed_side() == Some(Target::Publishers) && fault.at_ns <= at_ns;
        if let Some(at_ns) = cut_ns.filter(|at_ns| !faults.iter().any(|fault| ends(fault, *at_ns))) {
            let (what, who) = (Act::Kill, Target::Publishers);
            faults.push(Fault { what, who, host: None, member: None, percent: None, at_ns, for_ns: None });
        }
        faults.sort_by_key(|fault| (fault.at_ns, fault.who));
        for (index, fault) in faults.iter().enumerate() {
            let Some(next) = faults[index + 1..].iter().find(|next| next.is_of_same_part(fault)) else { continue };
            let names = || [fault, next].map(Fault::to_string);
            if fault.until_ns().is_none() && fault.killed_side().is_some() {
                let [fault, next] = names();
                return Err(FaultError::Gone { fault, next });
            }
            if next.at_ns <= fault.until_ns().unwrap_or(fault.at_ns) {
                let [fault, next] = names();
                return Err(FaultError::Overlap { fault, next });
            }
        }
        let kills_share = |fault: &&Fault| fault.what == Act::Kill && fault.percent.is_some();
        if let (Some(fault), Some(other)) =
            (faults.iter().find(kills_share), faults.iter().find(|fault| fault.breaks_connections()))
        {
            return Err(FaultError::Back { fault: fault.to_string(), other: other.to_string() });
        }
        Ok(Script(faults))
    }

    /// Parses the faults of a results folder. Faults that only a later pubmark knows are kept as
    /// written if they have the form of a fault; they are never executed.
    ///
    /// # Errors
    /// The text does not have the form.
    pub fn recorded(text: &str) -> Result<Script, FaultError> {
        Script::parse(text).or_else(|error| {
            let faults: Option<Vec<Fault>> = text.split(',').map(Fault::of_a_later_version).collect();
            faults.map(Script).ok_or(error)
        })
    }

    /// True if there are no faults.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the faults of this part.
    pub fn on(&self, who: Target) -> impl Iterator<Item = &Fault> {
        self.0.iter().filter(move |fault| fault.who == who)
    }

    /// True if clients lose their connections by one of the faults.
    pub fn breaks_connections(&self) -> bool {
        self.0.iter().any(Fault::breaks_connections)
    }

    /// True if the server's power is cut.
    pub fn cuts_power(&self) -> bool {
        self.0.iter().any(|fault| fault.what == Act::CutPower)
    }

    /// True if the server's data lies on a disk of its own.
    pub fn needs_disk(&self) -> bool {
        self.cuts_power() || self.0.iter().any(|fault| fault.what == Act::FillDisk)
    }

    /// True if links between members of the server are cut, so that the members have networks of their own.
    pub fn cuts_members(&self) -> bool {
        self.on(Target::Members).next().is_some()
    }

    /// Returns the shortest window, ns, with all faults in it, and a second after the last; `None` without a fault.
    pub fn window_ns(&self) -> Option<Ns> {
        let end_ns = self.0.iter().map(|fault| fault.until_ns().unwrap_or(fault.at_ns)).max()?;
        Some(end_ns.saturating_add(SECOND))
    }

    /// Returns the first fault that does not lie within a window of this length.
    pub fn outlasts(&self, window_ns: Ns) -> Option<&Fault> {
        let fits = |fault: &Fault| fault.until_ns().map_or(fault.at_ns < window_ns, |until| until <= window_ns);
        self.0.iter().find(|fault| !fits(fault))
    }

    /// Returns the sides whose clients are killed, and when, ns from the window's beginning.
    pub fn killed_sides(&self) -> impl Iterator<Item = (Ns, Target)> {
        self.0.iter().filter_map(|fault| Some((fault.at_ns, fault.killed_side()?)))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str(NONE);
        }
        let faults: Vec<String> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&faults.join(", "))
    }
}

#[cfg(test)]
mod tests;
