//! Runs all cases on all transports.

use crate::bench::{Bench, Played};
use crate::case::{Case, CaseNeeds, ObservedBehaviour, Outcome};
use crate::cases;
use crate::server;
use crate::subject::{CaseParameters, Known, TestedAgent};
use crate::tap;
use crate::wrong::CaseFailure;
use pubmark_host::agent::AgentCommand;
use pubmark_host::conversation::{ANSWER, AgentConversation};
use pubmark_model::protocol::AgentHello;
use pubmark_model::workload::Transport;
use std::cell::OnceCell;
use std::thread;

/// Driver that plays in virtual time: it opens no socket and reads no clock, so an agent that passes with it alone has
/// proved nothing about either.
const MOCK: &str = "mock";

/// Reason why no case could be tried.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// There is no case with this name.
    #[error("there is no case `{0}`: `pubmark agent-check --list` names them")]
    NoCase(String),
    /// The program cannot be started.
    #[error("{0}")]
    NotStarted(String),
    /// The agent sent no hello.
    #[error("{0}")]
    NoAnswer(String),
    /// Its drivers support nothing that can be tried here.
    #[error("not checked: {0}")]
    NoDriver(String),
}

/// Returns every case, with its input and its expected behaviour.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    cases::all().map(|case| (case.name, case.sent, case.due))
}

/// Maximum number of repeats of a case with unexpected behaviour.
const AGAIN: usize = 2;

/// Reason why a case that records messages was not tried.
const NO_SOCKETS: &str = "this pubmark has no sockets of";

/// Returns whether the agent's messages were not recorded: none of their times was checked.
pub fn unseen(outcomes: &[Outcome]) -> bool {
    outcomes
        .iter()
        .any(|outcome| matches!(&outcome.came, ObservedBehaviour::NotTried(why) if why.starts_with(NO_SOCKETS)))
}

/// Tests an agent; calls `tell` with each outcome.
pub fn check(
    (sending, receiving): (&AgentCommand, &AgentCommand),
    asked: &CaseParameters,
    known: &dyn Fn(&str) -> Option<Known>,
    tell: &mut dyn FnMut(&Outcome),
) -> Result<Vec<Outcome>, SuiteError> {
    // A full name selects that case; any other text, all cases that begin with it.
    let means = |name: &str, case: &Case| match cases::all().any(|case| case.name == name) {
        true => case.name == name,
        false => case.name.starts_with(name),
    };
    let wanted = |case: &Case| asked.only.is_empty() || asked.only.iter().any(|name| means(name, case));
    if let Some(name) = asked.only.iter().find(|name| !cases::all().any(|case| means(name, case))) {
        return Err(SuiteError::NoCase(name.clone()));
    }
    let mut talk = AgentConversation::start(sending).map_err(|error| SuiteError::NotStarted(error.to_string()))?;
    let greeted = talk.hello(ANSWER).map_err(CaseFailure::from);
    drop(talk);
    let hello = match greeted {
        Ok(hello) => hello,
        Err(wrong) => {
            // The case reports it, if it is selected.
            let case = cases::all().find(|case| case.name == "hello" && wanted(case));
            let Some(case) = case else { return Err(SuiteError::NoAnswer(wrong.to_string())) };
            let outcome = outcome(case, None, Err(wrong));
            tell(&outcome);
            return Ok(vec![outcome]);
        }
    };
    let driver = choose(&hello, asked.driver.as_deref(), known)?;
    let of_driver = known(&driver).unwrap_or_else(|| Known { transports: vec![Transport::Tcp], ..Known::default() });
    let transports: Vec<Option<Transport>> = match (asked.transport, of_driver.server.is_some()) {
        (_, true) => vec![None],
        (Some(transport), false) => vec![Some(transport)],
        (None, false) => {
            let claimed = |transport: &Transport| hello.features.transports.iter().any(|word| word == transport.word());
            of_driver.transports.iter().copied().filter(claimed).map(Some).collect()
        }
    };
    let mut outcomes = Vec::new();
    let mut take = |outcome: Outcome| {
        tell(&outcome);
        outcomes.push(outcome);
    };
    let subject = &|transport| TestedAgent {
        sending,
        receiving,
        driver: &driver,
        options: &of_driver.options,
        transport,
        patterns: &of_driver.patterns,
        system: of_driver.server.as_deref(),
        built_in: &asked.built_in,
        features: hello.features.clone(),
        relay: OnceCell::new(),
    };
    let across = |transport: &Option<Transport>| *transport != Some(Transport::Inproc);
    // Protocol messages are tried on a transport on which a publisher can bind alone.
    let alone = transports.iter().copied().find(across).or(transports.first().copied()).flatten();
    // A delay by the machine disappears in a repeat; a fault stays.
    let play = |case: &Case, bench: &Bench<'_>, transport| {
        (0..AGAIN).fold((case.run)(bench), |run, _| match run {
            Err(CaseFailure::Did(_)) => (case.run)(&Bench::new(subject(transport))),
            run => run,
        })
    };
    let words = Bench::new(subject(alone));
    for case in cases::all().filter(|case| case.needs == CaseNeeds::Words && wanted(case)) {
        take(outcome(case, None, play(case, &words, alone)));
    }
    for transport in transports {
        let seen = of_driver.server.is_none() && across(&transport) && tap::known(&driver);
        thread::scope(|scope| {
            let shared = Bench::new(subject(transport));
            for row in cases::LONG.iter().filter(|_| seen) {
                let asked = |names: &[&str]| cases::all().any(|case| names.contains(&case.name) && wanted(case));
                let row: Vec<Played> =
                    row.iter().filter(|(names, _)| asked(names)).map(|(_, played)| *played).collect();
                shared.begin(scope, row, move || subject(transport));
            }
            for case in cases::all().filter(|case| wanted(case)) {
                let served = of_driver.server.is_some();
                let run = match (case.needs, served, tap::known(&driver)) {
                    (CaseNeeds::Words, _, _) | (CaseNeeds::Sockets, true, _) | (CaseNeeds::Peer, false, _) => continue,
                    (CaseNeeds::Peer | CaseNeeds::BuiltIn, true, _) if !server::scripted(&driver) => continue,
                    (CaseNeeds::Sockets | CaseNeeds::BuiltIn, false, _) if !across(&transport) => continue,
                    (CaseNeeds::Sockets | CaseNeeds::BuiltIn, false, false) => {
                        Err(CaseFailure::NotTried(format!("{NO_SOCKETS} `{driver}` to be the other side")))
                    }
                    _ => play(case, &shared, transport),
                };
                take(outcome(case, transport, run));
            }
        });
    }
    Ok(outcomes)
}

fn outcome(case: &Case, transport: Option<Transport>, run: Result<(), CaseFailure>) -> Outcome {
    let came = match run {
        Ok(()) => ObservedBehaviour::AsDue,
        Err(CaseFailure::Did(what)) => ObservedBehaviour::Otherwise(what),
        Err(CaseFailure::NotTried(why)) => ObservedBehaviour::NotTried(why),
    };
    let name = transport.map_or(case.name.to_owned(), |transport| format!("{}/{}", transport.word(), case.name));
    Outcome { case: name, sent: case.sent, due: case.due, came }
}

/// Returns the driver to test: the requested one, or the agent's first other than the mock, without a server if
/// possible.
fn choose(
    hello: &AgentHello,
    asked: Option<&str>,
    known: &dyn Fn(&str) -> Option<Known>,
) -> Result<String, SuiteError> {
    if let Some(driver) = asked {
        hello.has_driver(driver).map_err(|lacking| SuiteError::NoDriver(lacking.to_string()))?;
        return Ok(driver.to_owned());
    }
    let real = hello.drivers.iter().filter(|name| *name != MOCK);
    let served = |name: &&String| known(name).is_some_and(|known| known.server.is_some());
    let (served, alone): (Vec<&String>, Vec<&String>) = real.partition(served);
    let first = alone.first().or(served.first()).map(|name| (*name).clone());
    let nothing = || format!("it has no driver but {MOCK}, which opens no socket and reads no clock");
    first.ok_or_else(|| SuiteError::NoDriver(nothing()))
}
