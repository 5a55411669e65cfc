//! Results of an agent so far: several cases check one conversation.

use crate::receiving::{Playback, Received};
use crate::sending::{ScriptOutcome, Sending};
use crate::subject::TestedAgent;
use crate::wrong::CaseFailure;
use pubmark_model::protocol::FlowResult;
use pubmark_model::workload::Workload;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Scope;

/// A script to be played.
#[derive(Clone, Copy, Debug)]
pub enum Played {
    /// The agent sends it.
    Sends(&'static Sending),
    /// The agent receives it.
    Hears(&'static Playback),
}

/// Plays a script with a subject, and passes the result on.
type Play = Box<dyn FnOnce(&TestedAgent<'_>) + Send>;

/// An agent on one transport, with the results of what it has played there.
pub struct Bench<'a> {
    subject: TestedAgent<'a>,
    sent: Once<ScriptOutcome>,
    received: Once<Received>,
}

impl<'a> Deref for Bench<'a> {
    type Target = TestedAgent<'a>;
    fn deref(&self) -> &TestedAgent<'a> {
        &self.subject
    }
}

impl<'a> Bench<'a> {
    /// Returns a bench without results.
    pub fn new(subject: TestedAgent<'a>) -> Bench<'a> {
        Bench { subject, sent: Once::default(), received: Once::default() }
    }

    /// Starts to play these scripts, one after the other, on a separate thread and with a separate subject.
    pub fn begin<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
        played: Vec<Played>,
        subject: impl Fn() -> TestedAgent<'s> + Send + 's,
    ) {
        let mut plays: Vec<Play> = Vec::new();
        for played in played {
            plays.push(match played {
                Played::Sends(sending) => self.sent.begun(sending.name, |subject| sending.play(subject)),
                Played::Hears(script) => self.received.begun(script.name, |subject| script.play(subject)),
            });
        }
        scope.spawn(move || {
            let subject = subject();
            plays.into_iter().for_each(|play| play(&subject));
        });
    }

    /// Returns what the agent sent for this script; it is played once.
    pub fn sends(&self, sending: &'static Sending) -> Result<Rc<ScriptOutcome>, CaseFailure> {
        self.sent.get(sending.name, || sending.play(self))
    }

    /// Returns the agent's result for this script; it is played once.
    pub fn receives(&self, script: &'static Playback) -> Result<Rc<Received>, CaseFailure> {
        self.received.get(script.name, || script.play(self))
    }

    /// Calls `look` with each result so far and the name of its script.
    pub fn results(
        &self,
        look: impl Fn(&str, &FlowResult, &Workload) -> Result<(), CaseFailure>,
    ) -> Result<(), CaseFailure> {
        for (name, played) in self.sent.kept.borrow().iter() {
            played.iter().try_for_each(|out| look(name, &out.result, &out.workload))?;
        }
        for (name, played) in self.received.kept.borrow().iter() {
            played.iter().try_for_each(|received| look(name, &received.result, &received.workload))?;
        }
        Ok(())
    }
}

/// Results by script name, finished and in progress.
struct Once<T> {
    kept: RefCell<BTreeMap<&'static str, Result<Rc<T>, CaseFailure>>>,
    begun: RefCell<BTreeMap<&'static str, Receiver<Result<T, CaseFailure>>>>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once { kept: RefCell::default(), begun: RefCell::default() }
    }
}

impl<T: Send + 'static> Once<T> {
    /// Prepares a script to be played elsewhere, and keeps its result here.
    fn begun(
        &self,
        name: &'static str,
        play: impl Fn(&TestedAgent<'_>) -> Result<T, CaseFailure> + Send + 'static,
    ) -> Play {
        let (played, comes) = channel();
        self.begun.borrow_mut().insert(name, comes);
        // The receiver is gone if the suite has ended.
        Box::new(move |subject| drop(played.send(play(subject))))
    }

    /// Returns the result of a script. The first call gets its error; later calls are told that it failed.
    fn get(&self, name: &'static str, play: impl FnOnce() -> Result<T, CaseFailure>) -> Result<Rc<T>, CaseFailure> {
        if let Some(known) = self.kept.borrow().get(name) {
            return known.clone().map_err(|wrong| match wrong {
                CaseFailure::Did(_) => {
                    CaseFailure::NotTried(format!("the conversation `{name}` did not come to its end, see above"))
                }
                other => other,
            });
        }
        let begun = self.begun.borrow_mut().remove(name);
        // If its thread has failed, the script is played again here.
        let begun = begun.and_then(|comes| comes.recv().ok());
        let played = begun.unwrap_or_else(play).map(Rc::new);
        self.kept.borrow_mut().insert(name, played.clone());
        played
    }
}
