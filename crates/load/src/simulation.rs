//! The mock system: clients and a network in virtual time, with faults at given message
//! numbers. Tests run whole studies on it, quickly and deterministically.

use crate::consume::ConsumePace;
use crate::outcome::ThreadOutcome;
use crate::publisher::{Next, Publisher};
use crate::subscriber::{Subscriber, Totals, ledger_capacity};
use crate::window::Window;
use pubmark_model::header::body_at;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::protocol::{Client, PublisherTotal, Role};
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::Workload;
use pubmark_stats::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Options that the mock knows in addition to those of every library.
pub const OPTIONS: &[&str] = &[
    "lose_every",
    "lose_answer_every",
    "duplicate_every",
    "reorder_every",
    "corrupt_every",
    "delay",
    "jitter",
    "stall_at",
    "stall_for",
    "send_cost",
    "service_rate",
    "rate_after_stall",
];

/// Faults that the mock applies to messages; `n` counts a publisher's messages from 1.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    lose_every: u64,
    lose_answer_every: u64,
    duplicate_every: u64,
    reorder_every: u64,
    corrupt_every: u64,
    delay_ns: Ns,
    jitter_ns: Ns,
    stall_at_ns: Ns,
    stall_for_ns: Ns,
    send_cost_ns: Ns,
    /// Time that the server takes for a copy, ns; 0 without a server.
    service_ns: Ns,
    /// The same after the stall, ns.
    service_after_ns: Ns,
}

impl Faults {
    fn new(options: &Options) -> Faults {
        let each_ns = |name: &str| SECOND.checked_div(options.number(name)).map(|each_ns| each_ns.max(1));
        let service_ns = each_ns("service_rate").unwrap_or(0);
        Faults {
            lose_every: options.number("lose_every"),
            lose_answer_every: options.number("lose_answer_every"),
            duplicate_every: options.number("duplicate_every"),
            reorder_every: options.number("reorder_every"),
            corrupt_every: options.number("corrupt_every"),
            delay_ns: options.time_ns("delay"),
            jitter_ns: options.time_ns("jitter"),
            stall_at_ns: options.time_ns("stall_at"),
            stall_for_ns: options.time_ns("stall_for"),
            send_cost_ns: options.time_ns("send_cost").max(1),
            service_ns,
            service_after_ns: each_ns("rate_after_stall").unwrap_or(service_ns),
        }
    }
}

fn every(number: u64, period: u64) -> bool {
    period > 0 && number.is_multiple_of(period)
}

/// An event at an instant; events of equal instants keep the order in which they were
/// made.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A publisher acts.
    Turn(usize),
    /// A message reaches a subscriber (a requester or an echo's publisher, as a reply).
    Arrival(usize, Vec<u8>),
}

/// The link from one publisher to one subscriber.
#[derive(Default)]
struct Link {
    last_ns: Ns,
    held_back: Option<Vec<u8>>,
}

struct World {
    faults: Faults,
    random: Random,
    start_ns: Ns,
    /// Instant from which the server is idle, ns.
    idle_ns: Ns,
    agenda: BinaryHeap<Reverse<(Ns, u64, Happening)>>,
    made: u64,
    links: Vec<Vec<Link>>,
    /// The pace of each subscriber, if it has a rate of its own.
    paces: Vec<Option<ConsumePace>>,
    /// End of the window, from which on subscribers take what comes.
    end_ns: Ns,
}

impl World {
    fn plan(&mut self, at_ns: Ns, happening: Happening) {
        self.made += 1;
        self.agenda.push(Reverse((at_ns, self.made, happening)));
    }

    /// Returns the beginning and the end of the stall.
    fn stall_ns(&self) -> (Ns, Ns) {
        let from_ns = self.start_ns.saturating_add(self.faults.stall_at_ns);
        (from_ns, from_ns.saturating_add(self.faults.stall_for_ns))
    }

    /// Returns the instant, or the end of the stall if it lies within that.
    fn after_stall(&self, at_ns: Ns) -> Ns {
        let (from_ns, to_ns) = self.stall_ns();
        if (from_ns..to_ns).contains(&at_ns) { to_ns } else { at_ns }
    }

    /// Sends one copy over a link, with the faults that are due.
    fn carry(&mut self, from: usize, to: usize, number: u64, mut message: Vec<u8>, now: Ns, hops: u64) -> Option<Ns> {
        let faults = self.faults;
        if every(number, faults.lose_every) {
            return None;
        }
        if every(number, faults.corrupt_every) {
            let place = if message.len() > body_at(message.len()) { message.len() - 1 } else { 11 };
            message[place] ^= 0x40;
        }
        let jitter = if faults.jitter_ns > 0 { (self.random.unit() * faults.jitter_ns as f64) as Ns } else { 0 };
        let mut at = now + (faults.delay_ns + jitter) * hops;
        // A server takes one copy after the other.
        if faults.service_ns > 0 {
            let begins_ns = self.after_stall(at.max(self.idle_ns));
            let is_after = faults.stall_for_ns > 0 && begins_ns >= self.stall_ns().1;
            at = begins_ns + if is_after { faults.service_after_ns } else { faults.service_ns };
            self.idle_ns = self.after_stall(at);
        }
        at = self.after_stall(at);
        let link = &mut self.links[from][to];
        at = at.max(link.last_ns);
        link.last_ns = at;
        if let Some(pace) = &mut self.paces[to] {
            let taken_ns = at.max(pace.next_ns());
            pace.took(taken_ns);
            at = taken_ns.min(self.end_ns.max(at));
        }
        if every(number, faults.reorder_every) && link.held_back.is_none() {
            link.held_back = Some(message);
            return Some(at);
        }
        let held_back = link.held_back.take();
        let copy = every(number, faults.duplicate_every).then(|| message.clone());
        self.plan(at, Happening::Arrival(to, message));
        for later in copy.into_iter().chain(held_back) {
            self.plan(at, Happening::Arrival(to, later));
        }
        Some(at)
    }
}

/// Runs all clients of a workload from the start to the end of the drain.
pub fn run(workload: &Workload, clients: &[Client], options: &Options, start_ns: Ns) -> Vec<ThreadOutcome> {
    let window = Window::new(workload, start_ns);
    let closed_loop = clients.iter().any(|client| client.role == Role::Requester);
    let mut publishers: Vec<Publisher> = Vec::new();
    let mut subscribers: Vec<Subscriber> = Vec::new();
    let mut answered = None;
    for client in clients {
        if client.role.sends() {
            publishers.push(Publisher::new(workload, client.id, window, ledger_capacity(workload)));
        }
        let hears = match client.role {
            Role::Subscriber => client.hears_first..client.hears_first + client.hears_count,
            Role::Requester => client.id..client.id + 1,
            Role::Publisher if workload.pattern.echoed() => {
                answered = Some(subscribers.len());
                subscribers.push(Subscriber::of_answers(workload, client.id));
                continue;
            }
            Role::Publisher | Role::Replier => continue,
        };
        subscribers.push(Subscriber::new(workload, hears));
    }
    for subscriber in &mut subscribers {
        subscriber.start(window);
    }
    let hearers: Vec<Vec<usize>> = publishers
        .iter()
        .map(|publisher| {
            let id = publisher.total().publisher;
            let hears = |index: &usize| answered != Some(*index) && subscribers[*index].incoming().hears(id);
            (0..subscribers.len()).filter(hears).collect()
        })
        .collect();
    let mut world = World {
        faults: Faults::new(options),
        random: Random(workload.seed),
        start_ns,
        idle_ns: start_ns,
        agenda: BinaryHeap::new(),
        made: 0,
        links: publishers.iter().map(|_| subscribers.iter().map(|_| Link::default()).collect()).collect(),
        paces: subscribers.iter().map(|_| ConsumePace::new(workload, start_ns)).collect(),
        end_ns: window.to_ns.unwrap_or(Ns::MAX),
    };
    for index in 0..publishers.len() {
        world.plan(start_ns, Happening::Turn(index));
    }
    while let Some(Reverse((now, _, happening))) = world.agenda.pop() {
        match happening {
            Happening::Arrival(to, message) => subscribers[to].arrived(&message, now),
            Happening::Turn(index) => {
                let way = Way { from: index, hearers: &hearers[index], answered, closed_loop };
                if let Some(again) = turn(&mut world, &mut publishers[index], &way, workload, now) {
                    world.plan(again, Happening::Turn(index));
                }
            }
        }
    }
    let mut late: Vec<(usize, Ns, Vec<u8>)> = Vec::new();
    for links in &mut world.links {
        for (to, link) in links.iter_mut().enumerate() {
            late.extend(link.held_back.take().map(|message| (to, link.last_ns, message)));
        }
    }
    for (to, at, message) in late {
        subscribers[to].arrived(&message, at);
    }
    let totals: Vec<PublisherTotal> = publishers.iter().map(Publisher::total).collect();
    let totals = Totals::new(&totals);
    let publishers = publishers.into_iter().map(ThreadOutcome::of_publisher);
    let of_subscriber = |(id, subscriber): (u32, Subscriber)| {
        let outcome = ThreadOutcome::of_subscriber(subscriber, &totals, workload);
        ThreadOutcome { subscriber: Some(id).filter(|_| !closed_loop && answered.is_none()), ..outcome }
    };
    let subscribers = (0..).zip(subscribers).map(of_subscriber);
    publishers.chain(subscribers).collect()
}

/// The route of a publisher's messages.
struct Way<'a> {
    from: usize,
    hearers: &'a [usize],
    /// Index of the subscriber at which echoes arrive, in `fan-out-echo`.
    answered: Option<usize>,
    /// True if the messages are requests.
    closed_loop: bool,
}

/// Plays one turn of a publisher and returns the instant of its next one.
fn turn(world: &mut World, publisher: &mut Publisher, way: &Way<'_>, workload: &Workload, now: Ns) -> Option<Ns> {
    let Way { from, hearers, answered, closed_loop } = *way;
    match publisher.next(now) {
        Next::Done => None,
        Next::Wait(until) => Some(until),
        Next::Send => {
            let message = publisher.message(now).to_vec();
            let number = publisher.sent() + 1;
            let free = now + world.faults.send_cost_ns;
            publisher.accepted(now, free);
            if closed_loop {
                let reply = hearers.iter().find_map(|to| world.carry(from, *to, number, message.clone(), now, 2));
                let give_up_ns = now + workload.answer_ns();
                let again = reply.unwrap_or(give_up_ns).min(give_up_ns).max(free);
                publisher.refused(again);
                return Some(again);
            }
            let share = (number as usize - 1) % hearers.len().max(1);
            for (place, to) in hearers.iter().enumerate() {
                if !workload.competing() || place == share {
                    world.carry(from, *to, number, message.clone(), now, 1);
                }
            }
            let Some(back) = answered else { return Some(free) };
            // The first subscriber has the message, unless it was lost on the way to it.
            let lost = every(number, world.faults.lose_answer_every);
            let answer = (!lost).then(|| world.carry(from, back, number, message, now, 2)).flatten();
            let again = answer.unwrap_or(now + workload.drain_ns).max(free);
            publisher.refused(again);
            Some(again)
        }
    }
}
