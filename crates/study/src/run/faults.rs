//! Carries out the fault script of a run, each fault at its instant, and logs the effects.

use crate::context::{RunError, failed};
use crate::lead::assignment::AgentPlan;
use pubmark_host::clock;
use pubmark_host::deployment::MemberAnswer;
use pubmark_host::reach::Host;
use pubmark_host::server::orders::{KeeperAnswer, KeeperOrder};
use pubmark_model::fault::{Act, Fault, Members, Script, Target};
use pubmark_model::record::FaultEvent;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

/// Interval of the checks whether a restarted server listens.
const LOOK: Ns = 2 * MILLISECOND;
/// Interval of the checks whether a restarted member has joined.
const JOINING: Ns = 50 * MILLISECOND;
/// Time limit for a leader to be known.
const LEADER: Ns = 5 * SECOND;
/// Time limit after the window for the answers of keepers.
const ANSWER: Ns = 25 * SECOND;

/// The start or the end of a fault.
struct Step {
    at_ns: Ns,
    fault: usize,
    ends: bool,
}

/// A member of the server, and its host.
pub struct PlacedMember {
    /// Name of the member.
    pub name: String,
    /// Number of its host.
    pub host: usize,
}

/// The parts of a run that faults can affect.
pub struct FaultTargets<'a, 'b> {
    /// Hosts of the run.
    pub hosts: &'a mut [Host<'b>],
    /// Members of the server.
    pub members: &'a [PlacedMember],
    /// By agent: its host, and its number there.
    pub seats: &'a [(usize, usize)],
    /// By agent: its plan.
    pub plans: &'a [AgentPlan],
    /// Number of the host with the link between them, if there is one.
    pub link: Option<usize>,
}

impl FaultTargets<'_, '_> {
    /// Returns the hosts of the server's members, each once.
    fn of_members(&self) -> Vec<usize> {
        let mut hosts: Vec<usize> = self.members.iter().map(|member| member.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// Returns the number of the member that leads, as the first host says whose members know.
    fn leader(&mut self) -> Result<u32, String> {
        let mut why = "the server has no members".to_owned();
        for host in self.of_members() {
            match self.hosts[host].leader() {
                Ok(number) => return Ok(number),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

/// An order to a member's keeper: the start or the end of a fault.
struct Awaited {
    member: String,
    fault: usize,
    ends: bool,
}

/// A server that was restarted.
struct Returning {
    fault: usize,
    since_ns: Ns,
}

/// Members that are being restarted.
struct Restart {
    fault: usize,
    /// Numbers, from 0, of those whose turn comes later.
    waiting: VecDeque<usize>,
    /// Orders that were not answered with a start.
    unstarted: usize,
    /// Instant of the next check whether they have joined.
    look_ns: Ns,
}

/// The faults of a run, carried out one after the other. Its instants are of CLOCK_MONOTONIC.
pub struct Faults {
    from_ns: Ns,
    steps: VecDeque<Step>,
    /// By fault of the script: its planned length, ns.
    lengths: Vec<Ns>,
    /// By fault of the script: the members of the server that it names.
    named: Vec<Option<Members>>,
    /// By fault of the script: numbers, from 0, of the members that it affected.
    affected: Vec<Vec<usize>>,
    /// Members that are being restarted: no other fault begins meanwhile.
    restart: Option<Restart>,
    /// By fault of the script: its log.
    log: Vec<FaultEvent>,
    /// Orders that keepers have not answered, the oldest first.
    awaited: VecDeque<Awaited>,
    returning: Option<Returning>,
}

impl Faults {
    /// Returns the faults of a script for a run whose window begins at `from_ns`.
    pub fn new(script: &Script, from_ns: Ns) -> Faults {
        let mut steps: Vec<Step> = Vec::new();
        for (index, fault) in script.0.iter().enumerate() {
            // `Leader` tells the agents what happens to their clients.
            if fault.is_of_agents() {
                continue;
            }
            steps.push(Step { at_ns: from_ns.saturating_add(fault.at_ns), fault: index, ends: false });
            let Some(until_ns) = fault.until_ns() else { continue };
            steps.push(Step { at_ns: from_ns.saturating_add(until_ns), fault: index, ends: true });
        }
        // A stable sort: a fault without length begins before it ends.
        steps.sort_by_key(|step| step.at_ns);
        let event = |fault: &Fault| FaultEvent {
            what: fault.what,
            who: fault.who,
            host: fault.host.as_deref().map(str::to_owned),
            member: None,
            at_ns: None,
            until_ns: None,
            peer: None,
            listens_ns: None,
            note: None,
        };
        let log = script.0.iter().map(event).collect();
        let named = script.0.iter().map(|fault| fault.member).collect();
        let affected = vec![Vec::new(); script.0.len()];
        let lengths = script.0.iter().map(|fault| fault.for_ns.unwrap_or(0)).collect();
        let (awaited, returning, restart) = (VecDeque::new(), None, None);
        Faults { from_ns, steps: steps.into(), lengths, named, affected, restart, log, awaited, returning }
    }

    /// Notes that agents carried out the fault at this place in the script at this instant. Killed clients stay away;
    /// those that are cut may come back at once.
    pub fn struck(&mut self, place: usize, at_ns: Ns) {
        let Some(event) = self.log.get_mut(place) else { return };
        event.at_ns = Some(at_ns.saturating_sub(self.from_ns));
        event.until_ns = event.at_ns.filter(|_| event.what == Act::Cut);
    }

    /// Returns the latest instant at which [`Faults::step`] must be called.
    pub fn next_ns(&self) -> Ns {
        let look = if self.returning.is_some() || self.restart.is_some() { clock::now() + LOOK } else { Ns::MAX };
        self.steps.front().map_or(look, |step| step.at_ns.min(look))
    }

    /// Does what is due, and reads the answers of keepers.
    ///
    /// # Errors
    /// If a link neither fails nor is repaired as it should.
    pub fn step(&mut self, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        while self.restart.is_none() && self.steps.front().is_some_and(|step| step.at_ns <= clock::now()) {
            self.steps.pop_front().map_or(Ok(()), |step| self.take(&step, reach))?;
        }
        self.hear(reach)
    }

    fn take(&mut self, step: &Step, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        match self.log[step.fault].who {
            Target::Server => return self.take_of_server(step, reach),
            Target::Members => return self.set_links(step, reach),
            _ => {}
        }
        let event = &mut self.log[step.fault];
        if event.who == Target::Host {
            let host = reach.hosts.iter_mut().find(|host| Some(&host.spec.name) == event.host.as_ref());
            let Some(host) = host else { return Err(failed("a host that takes no part cannot be cut off")) };
            if step.ends {
                let (from_ns, to_ns) = host.network_back()?;
                event.at_ns = Some(from_ns.saturating_sub(self.from_ns));
                event.until_ns = Some(to_ns.saturating_sub(self.from_ns));
                return Ok(());
            }
            return Ok(host.cut_network(self.lengths[step.fault])?);
        }
        let (began_ns, done_ns) = match (event.who, reach.link) {
            (Target::Link, Some(host)) => reach.hosts[host].open_link(step.ends)?,
            _ => {
                let began_ns = clock::now();
                let side = reach.seats.iter().zip(reach.plans).filter(|(_, plan)| plan.is_of(event.who));
                for ((host, agent), _) in side {
                    reach.hosts[*host].signal(*agent, !step.ends)?;
                }
                (began_ns, clock::now())
            }
        };
        if step.ends {
            event.until_ns = Some(began_ns.saturating_sub(self.from_ns));
        } else {
            event.at_ns = Some(done_ns.saturating_sub(self.from_ns));
        }
        Ok(())
    }

    /// Cuts links between members, or repairs those that it had cut.
    fn set_links(&mut self, step: &Step, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        let Step { fault, ends, .. } = *step;
        if !ends {
            self.affected[fault] = self.choose(fault, reach)?;
        }
        let pairs: Vec<(usize, usize)> = match self.affected[fault][..] {
            [one, other] => vec![(one, other)],
            [one] => (0..reach.members.len()).filter(|other| *other != one).map(|other| (one, other)).collect(),
            _ => Vec::new(),
        };
        let pairs: Vec<(u32, u32)> = pairs.into_iter().map(|(one, other)| (one as u32 + 1, other as u32 + 1)).collect();
        let first = reach.members.first().ok_or_else(|| failed("the server has no members"))?.host;
        let (began_ns, done_ns) = reach.hosts[first].set_member_links(&pairs, ends)?;
        let event = &mut self.log[fault];
        let (instant, at_ns) = if ends { (&mut event.until_ns, began_ns) } else { (&mut event.at_ns, done_ns) };
        *instant = Some(at_ns.saturating_sub(self.from_ns));
        Ok(())
    }

    fn take_of_server(&mut self, step: &Step, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        let Step { fault, ends, .. } = *step;
        let what = self.log[fault].what;
        if !ends {
            self.affected[fault] = self.choose(fault, reach)?;
        }
        let members = self.affected[fault].clone();
        if what == Act::Restart {
            let mut waiting: VecDeque<usize> = members.into();
            let first = if self.named[fault] == Some(Members::Rolling) { 1 } else { waiting.len() };
            let first: Vec<usize> = waiting.drain(..first.min(waiting.len())).collect();
            self.restart = Some(Restart { fault, waiting, unstarted: first.len(), look_ns: 0 });
            return first.into_iter().try_for_each(|member| self.restart_member(fault, member, reach));
        }
        let order = match (what, ends) {
            (Act::Kill, false) => KeeperOrder::Kill,
            (Act::CutPower, false) => KeeperOrder::CutPower,
            (Act::Kill | Act::CutPower, true) => KeeperOrder::Start,
            (Act::FillDisk, false) => KeeperOrder::FillDisk,
            (Act::FillDisk, true) => KeeperOrder::FreeDisk,
            (_, false) => KeeperOrder::Stop,
            (_, true) => KeeperOrder::Continue,
        };
        members.into_iter().try_for_each(|member| self.order(member, order, (fault, ends), reach))
    }

    fn order(
        &mut self,
        member: usize,
        order: KeeperOrder,
        (fault, ends): (usize, bool),
        reach: &mut FaultTargets<'_, '_>,
    ) -> Result<(), RunError> {
        let PlacedMember { name, host } = &reach.members[member];
        reach.hosts[*host].order(name, order)?;
        self.awaited.push_back(Awaited { member: name.clone(), fault, ends });
        Ok(())
    }

    fn restart_member(
        &mut self,
        fault: usize,
        member: usize,
        reach: &mut FaultTargets<'_, '_>,
    ) -> Result<(), RunError> {
        self.order(member, KeeperOrder::Terminate, (fault, false), reach)?;
        self.order(member, KeeperOrder::Start, (fault, true), reach)
    }

    /// Returns the members that a fault affects, by number from 0. The leader is asked for now.
    fn choose(&mut self, fault: usize, reach: &mut FaultTargets<'_, '_>) -> Result<Vec<usize>, RunError> {
        let number = match self.named[fault] {
            None | Some(Members::Rolling) => return Ok((0..reach.members.len()).collect()),
            Some(Members::Number(number)) => number,
            Some(Members::Pair(one, other)) => {
                (self.log[fault].member, self.log[fault].peer) = (Some(one), Some(other));
                return [one, other].into_iter().map(|number| place_of(number, reach)).collect();
            }
            Some(Members::Leader) => {
                let deadline = clock::now() + LEADER;
                loop {
                    match reach.leader() {
                        Ok(number) => break number,
                        Err(why) if clock::now() >= deadline => {
                            return Err(failed(format!("nobody says which member leads: {why}")));
                        }
                        Err(_) => thread::park_timeout(Duration::from_nanos(JOINING)),
                    }
                }
            }
        };
        self.log[fault].member = Some(number);
        Ok(vec![place_of(number, reach)?])
    }

    /// Restarts the next member when those before have joined again; notes when all have.
    fn go_on(&mut self, listens: bool, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        let Some(restart) = self.restart.as_mut().filter(|restart| restart.unstarted == 0 && listens) else {
            return Ok(());
        };
        if clock::now() < restart.look_ns {
            return Ok(());
        }
        restart.look_ns = clock::now() + JOINING;
        for host in reach.of_members() {
            if !reach.hosts[host].has_joined()? {
                return Ok(());
            }
        }
        let fault = restart.fault;
        if let Some(next) = restart.waiting.pop_front() {
            restart.unstarted = 1;
            return self.restart_member(fault, next, reach);
        }
        self.restart = None;
        let event = &mut self.log[fault];
        let now = clock::now().saturating_sub(self.from_ns);
        let took_ms = now.saturating_sub(event.at_ns.unwrap_or(now)) as f64 / MILLISECOND as f64;
        (event.until_ns, event.listens_ns) = (Some(now), Some(now));
        event.note = Some(format!("all of it was back after {took_ms:.0} ms"));
        Ok(())
    }

    /// Reads keepers' answers: one for each order, in the same order. A fault has begun, and is over, when that is so
    /// for the last of its members.
    fn hear(&mut self, reach: &mut FaultTargets<'_, '_>) -> Result<(), RunError> {
        if self.awaited.is_empty() && self.returning.is_none() && self.restart.is_none() {
            return Ok(());
        }
        let (mut answers, mut listens) = (Vec::new(), true);
        for host in reach.of_members() {
            let happened = reach.hosts[host].happened()?;
            answers.extend(happened.answers);
            listens &= happened.listens;
        }
        for MemberAnswer { member, answer: word } in answers {
            let asked = self.awaited.iter().position(|awaited| awaited.member == member);
            let Some(Awaited { fault, ends, .. }) = asked.and_then(|place| self.awaited.remove(place)) else {
                continue;
            };
            let (KeeperAnswer::Stopped(at_ns)
            | KeeperAnswer::Continued(at_ns)
            | KeeperAnswer::Killed(at_ns)
            | KeeperAnswer::PowerCut(at_ns, ..)
            | KeeperAnswer::Filled(at_ns)
            | KeeperAnswer::Freed(at_ns)
            | KeeperAnswer::Restarted(at_ns, _)) = word
            else {
                continue;
            };
            let at = Some(at_ns.saturating_sub(self.from_ns));
            let event = &mut self.log[fault];
            if event.what == Act::Restart {
                event.at_ns = event.at_ns.or(at);
                if let (Some(restart), KeeperAnswer::Restarted(..)) = (&mut self.restart, &word) {
                    restart.unstarted = restart.unstarted.saturating_sub(1);
                    // `listens` may be older than the start.
                    listens = false;
                }
                continue;
            }
            let instant = if ends { &mut event.until_ns } else { &mut event.at_ns };
            *instant = at.max(*instant);
            if let KeeperAnswer::PowerCut(_, killed_ns, back_ns) = word {
                let after_ms = |then_ns: Ns| then_ns.saturating_sub(at_ns) as f64 / MILLISECOND as f64;
                event.note = Some(format!(
                    "its processes were killed within {:.1} ms, and its disk was back after {:.0} ms",
                    after_ms(killed_ns),
                    after_ms(back_ns)
                ));
            }
            if matches!(word, KeeperAnswer::Restarted(..)) {
                self.returning = Some(Returning { fault, since_ns: at_ns });
            }
        }
        self.go_on(listens, reach)?;
        if let Some(returning) = self.returning.take_if(|_| listens) {
            let listens_ns = clock::now();
            let took_ms = listens_ns.saturating_sub(returning.since_ns) as f64 / MILLISECOND as f64;
            let event = &mut self.log[returning.fault];
            note(event, format!("it listened again {took_ms:.0} ms after it was started"));
            event.listens_ns = Some(listens_ns.saturating_sub(self.from_ns));
        }
        Ok(())
    }

    /// Ends the remaining faults at the window's end: no process stays stopped. A server that ended by itself has no
    /// more faults, and its end is reported elsewhere.
    ///
    /// # Errors
    /// If its keeper does not answer, because it is unknown what happened.
    pub fn finish(&mut self, mut reach: FaultTargets<'_, '_>) -> Result<(), RunError> {
        if let Some(restart) = self.restart.take() {
            self.log[restart.fault].note = Some("it was not over at the end of the window".into());
        }
        for step in std::mem::take(&mut self.steps) {
            self.take(&step, &mut reach)?;
        }
        let deadline = clock::now() + ANSWER;
        self.hear(&mut reach)?;
        while let Some(awaited) = self.awaited.front() {
            let host = reach.members.iter().find(|member| member.name == awaited.member).map(|member| member.host);
            if host.is_none_or(|host| reach.hosts[host].server_exit().is_some()) {
                break;
            }
            if clock::now() >= deadline {
                let event = &self.log[awaited.fault];
                let (what, who) = (event.what.word(), event.who.word());
                return Err(failed(format!(
                    "nobody knows whether `{what} {who}` happened: its keeper does not answer"
                )));
            }
            thread::park_timeout(Duration::from_millis(1));
            self.hear(&mut reach)?;
        }
        if let Some(returning) = self.returning.take() {
            note(&mut self.log[returning.fault], "it did not listen again within the window".into());
        }
        Ok(())
    }

    /// Returns the log of a run in virtual time, in which each fault lasts exactly as long as planned.
    pub fn planned_log(self) -> Vec<FaultEvent> {
        let mut log = self.log;
        for step in self.steps {
            let event = &mut log[step.fault];
            let at_ns = Some(step.at_ns.saturating_sub(self.from_ns));
            *(if step.ends { &mut event.until_ns } else { &mut event.at_ns }) = at_ns;
        }
        log
    }

    /// Returns the log, in the script's order.
    pub fn log(self) -> Vec<FaultEvent> {
        self.log
    }
}

/// Returns the place of the member of a number, from 1.
fn place_of(number: u32, reach: &FaultTargets<'_, '_>) -> Result<usize, RunError> {
    let place = (number as usize).checked_sub(1).filter(|place| *place < reach.members.len());
    place.ok_or_else(|| failed(format!("the server has no member {number}")))
}

/// Adds to the note of a fault.
fn note(event: &mut FaultEvent, words: String) {
    event.note = Some(event.note.take().map_or_else(|| words.clone(), |before| format!("{before}; {words}")));
}
