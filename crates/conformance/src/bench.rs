//! What an agent has played so far: several cases look at one conversation.

use crate::receiving::{Playback, Received};
use crate::sending::{Sending, SentOut};
use crate::subject::Subject;
use crate::wrong::Wrong;
use pubmark_model::protocol::FlowResult;
use pubmark_model::workload::Workload;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Scope;

/// Something to be played.
#[derive(Clone, Copy, Debug)]
pub enum Played {
    /// The agent sends it.
    Sends(&'static Sending),
    /// The agent hears it.
    Hears(&'static Playback),
}

/// Plays something with a subject, and hands it on.
type Play = Box<dyn FnOnce(&Subject<'_>) + Send>;

/// An agent on one transport, with what it has played there.
pub struct Bench<'a> {
    subject: Subject<'a>,
    sent: Once<SentOut>,
    received: Once<Received>,
}

impl<'a> Deref for Bench<'a> {
    type Target = Subject<'a>;
    fn deref(&self) -> &Subject<'a> {
        &self.subject
    }
}

impl<'a> Bench<'a> {
    /// One that has played nothing yet.
    pub fn new(subject: Subject<'a>) -> Bench<'a> {
        Bench { subject, sent: Once::default(), received: Once::default() }
    }

    /// Begins to play these, one after the other, on a thread of its own and by way of a
    /// subject of its own.
    pub fn begin<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
        played: Vec<Played>,
        subject: impl Fn() -> Subject<'s> + Send + 's,
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

    /// What the agent sent when it was told this; it is told once.
    pub fn sends(&self, sending: &'static Sending) -> Result<Rc<SentOut>, Wrong> {
        self.sent.get(sending.name, || sending.play(self))
    }

    /// What the agent made of this script; it hears it once.
    pub fn receives(&self, script: &'static Playback) -> Result<Rc<Received>, Wrong> {
        self.received.get(script.name, || script.play(self))
    }

    /// Looks at each result so far, with the name of what was played.
    pub fn results(&self, look: impl Fn(&str, &FlowResult, &Workload) -> Result<(), Wrong>) -> Result<(), Wrong> {
        for (name, played) in self.sent.kept.borrow().iter() {
            played.iter().try_for_each(|out| look(name, &out.result, &out.workload))?;
        }
        for (name, played) in self.received.kept.borrow().iter() {
            played.iter().try_for_each(|received| look(name, &received.result, &received.workload))?;
        }
        Ok(())
    }
}

/// What was played, and what is being played, by name.
struct Once<T> {
    kept: RefCell<BTreeMap<&'static str, Result<Rc<T>, Wrong>>>,
    begun: RefCell<BTreeMap<&'static str, Receiver<Result<T, Wrong>>>>,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Once { kept: RefCell::default(), begun: RefCell::default() }
    }
}

impl<T: Send + 'static> Once<T> {
    /// Plays something elsewhere, and keeps it here.
    fn begun(&self, name: &'static str, play: impl Fn(&Subject<'_>) -> Result<T, Wrong> + Send + 'static) -> Play {
        let (played, comes) = channel();
        self.begun.borrow_mut().insert(name, comes);
        // Nobody waits for it any more where the suite has ended.
        Box::new(move |subject| drop(played.send(play(subject))))
    }

    /// The first who asks is told what went wrong; the others that it did.
    fn get(&self, name: &'static str, play: impl FnOnce() -> Result<T, Wrong>) -> Result<Rc<T>, Wrong> {
        if let Some(known) = self.kept.borrow().get(name) {
            return known.clone().map_err(|wrong| match wrong {
                Wrong::Did(_) => {
                    Wrong::NotTried(format!("the conversation `{name}` did not come to its end, see above"))
                }
                other => other,
            });
        }
        let begun = self.begun.borrow_mut().remove(name);
        // One whose thread has failed is played again here.
        let begun = begun.and_then(|comes| comes.recv().ok());
        let played = begun.unwrap_or_else(play).map(Rc::new);
        self.kept.borrow_mut().insert(name, played.clone());
        played
    }
}
