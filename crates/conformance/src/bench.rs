//! What an agent has played so far: several cases look at one conversation.

use crate::receiving::{Playback, Received};
use crate::sending::{Sending, SentOut};
use crate::subject::Subject;
use crate::wrong::Wrong;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

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

    /// What the agent sent when it was told this; it is told once.
    pub fn sends(&self, sending: &'static Sending) -> Result<Rc<SentOut>, Wrong> {
        once(&self.sent, sending.name, || sending.play(self))
    }

    /// What the agent made of this script; it hears it once.
    pub fn receives(&self, script: &'static Playback) -> Result<Rc<Received>, Wrong> {
        once(&self.received, script.name, || script.play(self))
    }
}

type Once<T> = RefCell<BTreeMap<&'static str, Result<Rc<T>, Wrong>>>;

/// The first who asks is told what went wrong; the others that it did.
fn once<T>(kept: &Once<T>, name: &'static str, play: impl FnOnce() -> Result<T, Wrong>) -> Result<Rc<T>, Wrong> {
    if let Some(known) = kept.borrow().get(name) {
        return known.clone().map_err(|wrong| match wrong {
            Wrong::Did(_) => Wrong::NotTried(format!("the conversation `{name}` did not come to its end, see above")),
            other => other,
        });
    }
    let played = play().map(Rc::new);
    kept.borrow_mut().insert(name, played.clone());
    played
}
