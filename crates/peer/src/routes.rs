//! Subscriptions by topic.

use std::collections::HashMap;

/// Filter of a subscription: a topic, or all topics with a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter<'a> {
    /// This topic.
    Exact(&'a [u8]),
    /// All topics that begin with this, and are longer.
    Below(&'a [u8]),
}

impl Filter<'_> {
    /// True if messages to this topic pass it.
    pub fn holds(&self, topic: &[u8]) -> bool {
        match *self {
            Filter::Exact(exact) => topic == exact,
            Filter::Below(prefix) => topic.len() > prefix.len() && topic.starts_with(prefix),
        }
    }
}

/// Where a message goes, and where its answer is to go: empty if it is no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// Topic of the message.
    pub topic: &'a [u8],
    /// Topic of its answer.
    pub reply: &'a [u8],
}

impl<'a> Address<'a> {
    /// Returns the address of a message that asks for no answer.
    pub fn of(topic: &'a [u8]) -> Address<'a> {
        Address { topic, reply: b"" }
    }

    /// Returns a copy for a message that is kept.
    pub fn kept(self) -> KeptAddress {
        KeptAddress { topic: self.topic.into(), reply: self.reply.into() }
    }
}

/// Address of a message that is kept.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptAddress {
    topic: Box<[u8]>,
    reply: Box<[u8]>,
}

impl KeptAddress {
    /// Returns the address.
    pub fn get(&self) -> Address<'_> {
        Address { topic: &self.topic, reply: &self.reply }
    }
}

/// A subscription of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Number of the client.
    pub client: usize,
    /// Number of the subscription within the client's connection.
    pub token: u32,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub struct Routes {
    exact: HashMap<Box<[u8]>, Vec<Subscription>>,
    below: Vec<(Box<[u8]>, Subscription)>,
}

impl Routes {
    /// Adds a subscription; an equal one is replaced.
    pub fn add(&mut self, filter: Filter<'_>, listener: Subscription) {
        self.remove(filter, listener);
        match filter {
            Filter::Exact(topic) => self.exact.entry(topic.into()).or_default().push(listener),
            Filter::Below(prefix) => self.below.push((prefix.into(), listener)),
        }
    }

    /// Ends a subscription.
    pub fn remove(&mut self, filter: Filter<'_>, listener: Subscription) {
        match filter {
            Filter::Exact(topic) => {
                if let Some(listeners) = self.exact.get_mut(topic) {
                    listeners.retain(|other| *other != listener);
                }
            }
            Filter::Below(prefix) => {
                self.below.retain(|(other, held)| **other != *prefix || *held != listener);
            }
        }
    }

    /// Ends all subscriptions of a client, in time linear in the number of all subscriptions.
    pub fn forget(&mut self, client: usize) {
        self.exact.retain(|_, listeners| {
            listeners.retain(|listener| listener.client != client);
            !listeners.is_empty()
        });
        self.below.retain(|(_, listener)| listener.client != client);
    }

    /// Returns all subscriptions to a topic.
    #[inline]
    pub fn of(&self, topic: &[u8]) -> impl Iterator<Item = Subscription> {
        let below = self.below.iter().filter(|(prefix, _)| topic.len() > prefix.len() && topic.starts_with(prefix));
        self.exact.get(topic).into_iter().flatten().copied().chain(below.map(|(_, listener)| *listener))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_find_their_listeners() {
        let mut routes = Routes::default();
        let listener = |client| Subscription { client, token: 0 };
        routes.add(Filter::Exact(b"a/b"), listener(1));
        routes.add(Filter::Exact(b"a/b"), listener(1));
        routes.add(Filter::Below(b"a/"), listener(2));
        let of = |routes: &Routes, topic: &[u8]| routes.of(topic).map(|listener| listener.client).collect::<Vec<_>>();
        assert_eq!(of(&routes, b"a/b"), [1, 2]);
        assert_eq!(of(&routes, b"a/c"), [2]);
        assert!(of(&routes, b"a/").is_empty() && of(&routes, b"b").is_empty());
        routes.remove(Filter::Below(b"a/"), listener(2));
        assert_eq!(of(&routes, b"a/b"), [1]);
        routes.forget(1);
        assert!(of(&routes, b"a/b").is_empty());
    }
}
