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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    shared: Vec<SharedRoute>,
    /// Number of the message that is passed on, which says whose turn it is.
    turn: usize,
}

/// Subscriptions of a group, of which one gets each message.
#[derive(Debug)]
struct SharedRoute {
    group: Box<[u8]>,
    /// Beginning of the topics, or the only one.
    topic: Box<[u8]>,
    /// True if the topics are longer than that.
    is_below: bool,
    members: Vec<Subscription>,
}

impl SharedRoute {
    fn filter(&self) -> Filter<'_> {
        if self.is_below { Filter::Below(&self.topic) } else { Filter::Exact(&self.topic) }
    }
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

    /// Adds a subscription to those of a group; an equal one is replaced.
    pub fn share(&mut self, filter: Filter<'_>, group: &[u8], listener: Subscription) {
        self.remove(filter, listener);
        if let Some(known) = self.shared.iter_mut().find(|route| *route.group == *group && route.filter() == filter) {
            return known.members.push(listener);
        }
        let (topic, is_below) = match filter {
            Filter::Exact(topic) => (topic, false),
            Filter::Below(prefix) => (prefix, true),
        };
        self.shared.push(SharedRoute { group: group.into(), topic: topic.into(), is_below, members: vec![listener] });
    }

    /// Lets the next member of each group have its turn.
    pub fn take_turns(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Ends a subscription.
    pub fn remove(&mut self, filter: Filter<'_>, listener: Subscription) {
        for route in self.shared.iter_mut().filter(|route| route.filter() == filter) {
            route.members.retain(|other| *other != listener);
        }
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
        for route in &mut self.shared {
            route.members.retain(|listener| listener.client != client);
        }
        self.shared.retain(|route| !route.members.is_empty());
    }

    /// Returns the subscriptions of one client to a topic, whoever's turn it is.
    pub fn of_client(&self, topic: &[u8], client: usize) -> impl Iterator<Item = Subscription> {
        let shared = self.shared.iter().filter(move |route| route.filter().holds(topic));
        let members = shared.flat_map(|route| route.members.iter().copied());
        self.alone(topic).chain(members).filter(move |listener| listener.client == client)
    }

    /// Returns the subscriptions to a topic that get the message: all, and one of each group.
    #[inline]
    pub fn of(&self, topic: &[u8]) -> impl Iterator<Item = Subscription> {
        let shared = self.shared.iter().filter(move |route| route.filter().holds(topic));
        let turns = shared.filter_map(|route| {
            let turn = self.turn.checked_rem(route.members.len())?;
            route.members.get(turn).copied()
        });
        self.alone(topic).chain(turns)
    }

    /// Returns the subscriptions to a topic of clients without a group.
    #[inline]
    fn alone(&self, topic: &[u8]) -> impl Iterator<Item = Subscription> {
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

    #[test]
    fn members_of_a_group_take_turns() {
        let mut routes = Routes::default();
        let listener = |client| Subscription { client, token: 0 };
        for client in [1, 2, 2] {
            routes.share(Filter::Below(b"a/"), b"g", listener(client));
        }
        routes.share(Filter::Exact(b"a/b"), b"h", listener(3));
        routes.add(Filter::Exact(b"a/b"), listener(4));
        let next = |routes: &mut Routes| {
            routes.take_turns();
            let mut clients: Vec<_> = routes.of(b"a/b").map(|listener| listener.client).collect();
            clients.sort_unstable();
            clients
        };
        let (one, other) = (next(&mut routes), next(&mut routes));
        assert_eq!([one.as_slice(), &other].concat().iter().sum::<usize>(), 2 * (3 + 4) + 1 + 2);
        assert_eq!((one.len(), other.len()), (3, 3));
        assert_eq!(next(&mut routes), one);
        assert_eq!(routes.of_client(b"a/b", 1).count() + routes.of_client(b"a/b", 2).count(), 2);
        routes.forget(2);
        assert_eq!((next(&mut routes), next(&mut routes)), (vec![1, 3, 4], vec![1, 3, 4]));
        routes.remove(Filter::Below(b"a/"), listener(1));
        assert_eq!(next(&mut routes), [3, 4]);
    }
}
