//! Scripted faults of a run: which part is stopped, killed or cut, when, for how long.

use crate::diagnostic::suggestion;
use crate::later::LaterWord;
use crate::units::{Ns, UnitError, format_time, parse_time};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The script without a fault.
pub const NONE: &str = "none";

/// The form of a fault, for messages.
const SHAPE: &str = "`stop server at 5s for 1s`, `kill server at 10s for 2s`, `restart server at 5s`, `kill publishers at 5s`, `cut link at 5s for 2s`, \
     `cut 50% of clients at 5s`, `cut link 1-2 at 5s for 2s`, `cut power of server at 5s for 3s` or `fill disk of server at 5s for 3s`";

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

/// Reasons why a text is not a script of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The text does not have the form of a fault.
    #[error("`{0}` is not a fault: write {SHAPE}")]
    Shape(String),
    /// The kind of fault is unknown.
    #[error("`{text}`: `{act}` is not a fault: {help}")]
    Act {
        /// The fault as typed.
        text: String,
        /// The unknown word.
        act: String,
        /// Advice.
        help: String,
    },
    /// The part of a run is unknown.
    #[error("`{text}`: `{target}` is not a part of a run: {help}")]
    Target {
        /// The fault as typed.
        text: String,
        /// The unknown word.
        target: String,
        /// Advice.
        help: String,
    },
    /// The words after `server` name no member, or not one that can be affected so.
    #[error(
        "`{0}`: write `server leader`, `server 2` (a member's number, from 1), or `restart server rolling`, before `at`"
    )]
    Member(String),
    /// The words after `link` name no two members.
    #[error(
        "`{0}`: write `cut link 1-2 at … for …` with the numbers of two members, from 1, or `cut link leader at … for …`"
    )]
    Between(String),
    /// Only a server is restarted, and that takes the time that it takes.
    #[error("`{0}`: write `restart server at 5s`, `restart server leader at 5s` or `restart server rolling at 5s`")]
    Restart(String),
    /// Only links and clients can be cut.
    #[error(
        "`{0}`: a server is not cut: write `cut link at … for …`, `cut clients at …`, or `cut power of server at … for …`"
    )]
    Cut(String),
    /// Only a server has a power supply that can be cut.
    #[error("`{0}`: only a server's power can be cut: write `cut power of server at … for …`")]
    Power(String),
    /// Only a server has a disk that can be filled.
    #[error("`{0}`: only a server's disk can be filled: write `fill disk of server at … for …`")]
    Disk(String),
    /// A cut is the only fault of a link and of clients of both sides.
    #[error("`{0}`: nothing else than a cut can be done to it: write `{1}`")]
    OnlyCut(String, &'static str),
    /// The share of clients is invalid, or the fault affects no share.
    #[error("`{0}`: write `cut N% of clients at …` with a whole number from 1 to 100")]
    Share(String),
    /// The script says when killed or cut clients come back.
    #[error(
        "`{text}`: whoever is killed stays away for the rest of the run, and whoever is cut comes back at once: write \
         `{act} {side} at …`, or `cut link at … for …`, after which clients come back"
    )]
    Return {
        /// The fault as typed.
        text: String,
        /// The kind of fault.
        act: &'static str,
        /// The clients that it affects.
        side: &'static str,
    },
    /// The length is missing.
    #[error("`{0}` does not say for how long: write {SHAPE}")]
    NoLength(String),
    /// A time is invalid.
    #[error("`{text}`: {source}")]
    Time {
        /// The fault as typed.
        text: String,
        /// The error of the time.
        source: UnitError,
    },
    /// The fault has length 0.
    #[error("`{0}` lasts no time: nothing would happen")]
    NoTime(String),
    /// Two faults of one part overlap.
    #[error("`{next}` begins before `{fault}` is over")]
    Overlap {
        /// The first fault.
        fault: Box<Fault>,
        /// The fault that begins too early.
        next: Box<Fault>,
    },
    /// The fault affects clients that have been killed before.
    #[error("`{next}`: nobody is there any more after `{fault}`")]
    Gone {
        /// The fault that killed them.
        fault: Box<Fault>,
        /// The fault that comes after it.
        next: Box<Fault>,
    },
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
    /// The share of the clients that are cut, percent; `None` for all.
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
        (self.what == Act::Kill && self.who.is_clients()).then_some(self.who)
    }

    /// Returns the share of the clients that this fault disconnects, percent, if it cuts clients.
    pub fn cut_percent(&self) -> Option<u8> {
        (self.what == Act::Cut && self.who.is_clients()).then(|| self.percent.unwrap_or(100))
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
        let percent = percent.map(|share| share_of(share).filter(|_| is_cut).ok_or_else(|| FaultError::Share(whole())));
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
            let [fault, next] = [fault, next].map(|fault| Box::new(fault.clone()));
            match fault.until_ns() {
                None if fault.killed_side().is_some() => return Err(FaultError::Gone { fault, next }),
                None if next.at_ns <= fault.at_ns => return Err(FaultError::Overlap { fault, next }),
                None => {}
                Some(until_ns) if next.at_ns <= until_ns => return Err(FaultError::Overlap { fault, next }),
                Some(_) => {}
            }
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
mod tests {
    use super::*;
    use crate::units::SECOND;

    #[test]
    fn a_script_reads_back_in_the_order_of_its_times() {
        let script = Script::parse("kill  server at 10s for 2000ms,stop publishers at 500ms for 1.5s").unwrap();
        assert_eq!(script.to_string(), "stop publishers at 500ms for 1500ms, kill server at 10s for 2s");
        assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
        assert!(script.breaks_connections());
        assert_eq!(script.on(Target::Server).count(), 1);
        assert_eq!(script.0[0].until_ns(), Some(2 * SECOND));
        assert_eq!(Script::parse("none").unwrap().to_string(), "none");
        assert_eq!(script.outlasts(12 * SECOND), None);
        assert_eq!(script.outlasts(12 * SECOND - 1), Some(&script.0[1]));
    }

    #[test]
    fn clients_that_are_killed_stay_away() {
        let script = Script::parse("kill subscribers at 5s,kill publishers at 1500ms").unwrap();
        assert_eq!(script.to_string(), "kill publishers at 1500ms, kill subscribers at 5s");
        assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
        let sides: Vec<_> = script.killed_sides().collect();
        assert_eq!(sides, [(1_500_000_000, Target::Publishers), (5 * SECOND, Target::Subscribers)]);
        assert!(!script.breaks_connections(), "nobody comes back, so nobody need be able to");
        assert_eq!((script.0[0].until_ns(), script.outlasts(5 * SECOND + 1)), (None, None));
        assert_eq!(script.outlasts(5 * SECOND), Some(&script.0[1]), "it would happen when all is over");
        let json = serde_json::to_string(&script).unwrap();
        assert!(!json.contains("for_ns"), "{json}");
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        let killed_server = Script::parse("kill server at 1s for 0s").unwrap();
        assert_eq!((killed_server.killed_sides().count(), killed_server.0[0].until_ns()), (0, Some(SECOND)));
    }

    #[test]
    fn a_share_of_the_clients_is_cut_at_an_instant_and_may_be_cut_again() {
        let script =
            Script::parse("cut clients at 3s, cut 50% of clients at 1s, cut 10% of subscribers at 1s").unwrap();
        assert_eq!(script.to_string(), "cut 10% of subscribers at 1s, cut 50% of clients at 1s, cut clients at 3s");
        assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
        let percents: Vec<_> = script.0.iter().map(Fault::cut_percent).collect();
        assert_eq!(percents, [Some(10), Some(50), Some(100)]);
        assert!(script.breaks_connections() && script.killed_sides().next().is_none());
        assert_eq!((script.outlasts(3 * SECOND), script.outlasts(3 * SECOND + 1)), (Some(&script.0[2]), None));
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        for (count, percent, cut) in [(10, 50, 5), (10, 100, 10), (3, 50, 1), (1, 50, 0), (7, 1, 0), (1_000, 1, 10)] {
            assert_eq!((0..count).filter(|id| is_cut(*id, percent)).count(), cut, "{percent}% of {count}");
        }
    }

    #[test]
    fn a_disk_is_filled_for_a_while_and_everybody_goes_on() {
        for text in ["fill disk of server at 5s for 3s", "fill disk of server leader at 5s for 3s"] {
            let script = Script::parse(text).unwrap();
            assert_eq!(script.to_string(), text);
            assert!(script.needs_disk() && !script.cuts_power() && script.breaks_connections());
            let json = serde_json::to_string(&script).unwrap();
            assert!(json.contains("\"fill_disk\""), "{json}");
            assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        }
    }

    #[test]
    fn the_publishers_end_with_the_servers_power() {
        let script = Script::parse("cut power of server at 5s for 3s").unwrap();
        assert_eq!(script.to_string(), "cut power of server at 5s for 3s, kill publishers at 5s");
        assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
        assert!(script.cuts_power() && script.breaks_connections() && script.0[0].ends_server());
        let json = serde_json::to_string(&script).unwrap();
        assert!(json.contains("\"cut_power\""), "{json}");
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        let before = "kill publishers at 4s, cut power of server at 5s for 0s";
        assert_eq!(Script::parse(before).unwrap().to_string(), before);
        assert!(!Script::parse("kill server at 5s for 3s").unwrap().cuts_power());
        let member = "cut power of server 2 at 5s for 3s";
        assert_eq!(Script::parse(member).unwrap().to_string(), member, "the others go on");
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_way_out() {
        for (text, says) in [
            ("", "write `stop server at 5s for 1s`"),
            ("stop server", "write `stop server at 5s for 1s`"),
            ("stpo server at 5s for 1s", "did you mean `stop`?"),
            ("stop severs at 5s for 1s", "did you mean `server`?"),
            ("stop server at 5s", "for how long"),
            ("stop server at 5 for 1s", "`5` is not a time"),
            ("stop server at 5s for 1s please", "is not a fault"),
            ("stop server at 5s for 0s", "no time"),
            ("kill server at 5s", "for how long"),
            ("kill publishers", "write `stop server at 5s for 1s`"),
            ("kill publishers at 5s for 2s", "stays away for the rest of the run"),
            ("kill subscribers at 5s for 1s", "`cut link at … for …`, after which clients come back"),
            ("kill publishers at 5s, kill publishers at 6s", "nobody is there any more after `kill publishers at 5s`"),
            ("stop subscribers at 4s for 2s, kill subscribers at 5s", "before `stop subscribers at 4s for 2s` is over"),
            ("stop server at 5s for 1s,", "is not a fault"),
            ("cut server at 5s for 1s", "`cut link at … for …`"),
            ("cut power of link at 5s for 1s", "write `cut power of server at … for …`"),
            ("cut power of server at 5s", "for how long"),
            ("fill disk of publishers at 5s for 1s", "write `fill disk of server at … for …`"),
            ("fill disk of server at 5s", "for how long"),
            ("fill disk of server at 5s for 0s", "no time"),
            ("cut power of server at 5s for 1s, stop publishers at 6s for 1s", "nobody is there any more"),
            ("kill link at 5s for 1s", "`cut link at … for …`"),
            ("cut link at 5s for 0s", "no time"),
            ("cut clients at 5s for 1s", "comes back at once: write `cut clients at …`"),
            ("kill clients at 5s", "write `cut clients at …`"),
            ("cut 0% of clients at 5s", "a whole number from 1 to 100"),
            ("cut half of clients at 5s", "a whole number from 1 to 100"),
            ("kill 50% of publishers at 5s", "write `cut N% of clients at …`"),
            ("cut clients at 5s, cut 10% of clients at 5s", "before `cut clients at 5s` is over"),
            ("stop server at 5s for 1s, stop server at 5500ms for 1s", "before `stop server at 5s for 1s` is over"),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(Script::parse("stop server at 5s for 1s, stop publishers at 5s for 1s").is_ok());
    }

    #[test]
    fn a_fault_names_a_member_or_its_role() {
        let script =
            Script::parse("kill server leader at 1s for 2s, stop server 2 at 4s for 1s, kill server 3 at 9s").unwrap();
        let text = "kill server leader at 1s for 2s, stop server 2 at 4s for 1s, kill server 3 at 9s";
        assert_eq!(script.to_string(), text);
        let members: Vec<_> = script.0.iter().map(|fault| fault.member).collect();
        assert_eq!(members, [Some(Members::Leader), Some(Members::Number(2)), Some(Members::Number(3))]);
        assert!(script.0.iter().all(Fault::breaks_connections), "leaders move, and clients follow");
        assert_eq!((script.0[2].until_ns(), script.0[2].killed_side()), (None, None), "it stays away");
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        for text in ["restart server at 1s", "restart server rolling at 1s", "restart server leader at 1s"] {
            let script = Script::parse(text).unwrap();
            assert_eq!((script.to_string().as_str(), script.0[0].until_ns()), (text, None));
            assert!(script.breaks_connections());
        }
        for (text, says) in [
            ("kill server rolling at 1s for 1s", "write `server leader`"),
            ("kill server 0 at 1s for 1s", "write `server leader`"),
            ("stop server follower at 1s for 1s", "write `server leader`"),
            ("stop server leader at 1s", "for how long"),
            ("restart server at 1s for 2s", "write `restart server at 5s`"),
            ("restart subscribers at 1s", "write `restart server at 5s`"),
            ("kill server leader at 1s for 3s, stop server 2 at 2s for 1s", "is over"),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn links_between_members_are_cut_by_their_numbers() {
        let text = "cut link 1-2 at 1s for 3s, cut link 1-3 at 1s for 3s, cut link leader at 5s for 1s, cut link 3 at 7s for 1s";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.to_string(), text);
        let members: Vec<_> = script.0.iter().map(|fault| fault.member.unwrap()).collect();
        assert_eq!(members, [Members::Pair(1, 2), Members::Pair(1, 3), Members::Leader, Members::Number(3)]);
        assert!(script.cuts_members() && script.breaks_connections() && script.on(Target::Link).next().is_none());
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
        assert_eq!(Script::parse("cut link 2-1 at 1s for 1s").unwrap().to_string(), "cut link 1-2 at 1s for 1s");
        for (text, says) in [
            ("cut link 1-1 at 1s for 1s", "two members"),
            ("cut link 0-1 at 1s for 1s", "two members"),
            ("cut link 0 at 1s for 1s", "two members"),
            ("cut link 1-2 at 1s", "for how long"),
            ("cut link 1-2 at 1s for 3s, cut link 2-1 at 2s for 1s", "is over"),
            ("cut link 1-2 at 1s for 3s, cut link leader at 2s for 1s", "is over"),
        ] {
            let error = Script::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_host_has_a_link_of_its_own() {
        let script =
            Script::parse("cut link b1 at 10s for 5s, cut link b2 at 11s for 1s, cut link at 12s for 1s").unwrap();
        assert_eq!(script.to_string(), "cut link b1 at 10s for 5s, cut link b2 at 11s for 1s, cut link at 12s for 1s");
        assert_eq!(Script::parse(&script.to_string()), Ok(script.clone()));
        let hosts: Vec<Option<&str>> = script.0.iter().map(|fault| fault.host.as_deref()).collect();
        assert_eq!(hosts, [Some("b1"), Some("b2"), None]);
        assert_eq!(script.on(Target::Link).count(), 1, "only that one is a proxy's");
        assert!(script.breaks_connections());
        let twice = Script::parse("cut link b1 at 1s for 2s, cut link b1 at 2s for 1s").unwrap_err().to_string();
        assert!(twice.contains("before `cut link b1 at 1s for 2s` is over"), "{twice}");
    }
}
