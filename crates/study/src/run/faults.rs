//! Carries out the fault script of a run, each fault at its instant, and logs the effects.

use crate::context::{RunError, failed};
use crate::lead::assignment::AgentPlan;
use pubmark_host::clock;
use pubmark_host::deployment::MemberAnswer;
use pubmark_host::reach::Host;
use pubmark_host::server::keeper::{KeeperAnswer, KeeperOrder};
use pubmark_model::fault::{Act, Fault, Script, Target};
use pubmark_model::record::FaultEvent;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use std::collections::VecDeque;
use std::thread;
use std::time::Duration;

/// Interval of the checks whether a restarted server listens.
const LOOK: Ns = 2 * MILLISECOND;
/// Time limit after the window for the answers of keepers.
const ANSWER: Ns = 5 * SECOND;

/// The start or the end of a fault.
struct Step {
    at_ns: Ns,
    fault: usize,
    ends: bool,
}

/// A member of the server, and its host.
pub struct SeatedMember {
    /// Name of the member.
    pub name: String,
    /// Number of its host.
    pub host: usize,
}

/// The parts of a run that faults can affect.
pub struct Reach<'a, 'b> {
    /// Hosts of the run.
    pub hosts: &'a mut [Host<'b>],
    /// Members of the server.
    pub members: &'a [SeatedMember],
    /// By agent: its host, and its number there.
    pub seats: &'a [(usize, usize)],
    /// By agent: its plan.
    pub plans: &'a [AgentPlan],
    /// Number of the host with the link between them, if there is one.
    pub link: Option<usize>,
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

/// The faults of a run, carried out one after the other. Its instants are of CLOCK_MONOTONIC.
pub struct Faults {
    from_ns: Ns,
    steps: VecDeque<Step>,
    /// By fault of the script: its planned length, ns.
    lengths: Vec<Ns>,
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
            let Some(until_ns) = fault.until_ns() else { continue };
            steps.push(Step { at_ns: from_ns.saturating_add(fault.at_ns), fault: index, ends: false });
            steps.push(Step { at_ns: from_ns.saturating_add(until_ns), fault: index, ends: true });
        }
        // A stable sort: a fault without length begins before it ends.
        steps.sort_by_key(|step| step.at_ns);
        let event = |fault: &Fault| FaultEvent {
            what: fault.what,
            who: fault.who,
            host: fault.host.as_deref().map(str::to_owned),
            at_ns: None,
            until_ns: None,
            listens_ns: None,
            note: None,
        };
        let log = script.0.iter().map(event).collect();
        let lengths = script.0.iter().map(|fault| fault.for_ns.unwrap_or(0)).collect();
        Faults { from_ns, steps: steps.into(), lengths, log, awaited: VecDeque::new(), returning: None }
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
        let look = if self.returning.is_some() { clock::now() + LOOK } else { Ns::MAX };
        self.steps.front().map_or(look, |step| step.at_ns.min(look))
    }

    /// Does what is due, and reads the answers of keepers.
    ///
    /// # Errors
    /// If a link neither fails nor is repaired as it should.
    pub fn step(&mut self, reach: &mut Reach<'_, '_>) -> Result<(), RunError> {
        while self.steps.front().is_some_and(|step| step.at_ns <= clock::now()) {
            self.steps.pop_front().map_or(Ok(()), |step| self.take(&step, reach))?;
        }
        self.hear(reach)
    }

    fn take(&mut self, step: &Step, reach: &mut Reach<'_, '_>) -> Result<(), RunError> {
        let event = &mut self.log[step.fault];
        if event.who == Target::Server {
            let order = match (event.what == Act::Kill, step.ends) {
                (false, false) => KeeperOrder::Stop,
                (false, true) => KeeperOrder::Continue,
                (true, false) => KeeperOrder::Kill,
                (true, true) => KeeperOrder::Start,
            };
            for member in reach.members {
                reach.hosts[member.host].order(&member.name, order)?;
                let (member, fault, ends) = (member.name.clone(), step.fault, step.ends);
                self.awaited.push_back(Awaited { member, fault, ends });
            }
            return Ok(());
        }
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

    /// Reads keepers' answers: one for each order, in the same order. A fault has begun, and is over, when that is so
    /// for the last of its members.
    fn hear(&mut self, reach: &mut Reach<'_, '_>) -> Result<(), RunError> {
        if self.awaited.is_empty() && self.returning.is_none() {
            return Ok(());
        }
        let mut hosts: Vec<usize> = reach.members.iter().map(|member| member.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let (mut answers, mut listens) = (Vec::new(), true);
        for host in hosts {
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
            | KeeperAnswer::Restarted(at_ns, _)) = word
            else {
                continue;
            };
            let at = Some(at_ns.saturating_sub(self.from_ns));
            let event = &mut self.log[fault];
            let instant = if ends { &mut event.until_ns } else { &mut event.at_ns };
            *instant = at.max(*instant);
            if matches!(word, KeeperAnswer::Restarted(..)) {
                self.returning = Some(Returning { fault, since_ns: at_ns });
            }
        }
        if let Some(returning) = self.returning.take_if(|_| listens) {
            let listens_ns = clock::now();
            let took_ms = listens_ns.saturating_sub(returning.since_ns) as f64 / MILLISECOND as f64;
            let event = &mut self.log[returning.fault];
            event.note = Some(format!("it listened again {took_ms:.0} ms after it was started"));
            event.listens_ns = Some(listens_ns.saturating_sub(self.from_ns));
        }
        Ok(())
    }

    /// Ends the remaining faults at the window's end: no process stays stopped. A server that ended by itself has no
    /// more faults, and its end is reported elsewhere.
    ///
    /// # Errors
    /// If its keeper does not answer, because it is unknown what happened.
    pub fn finish(&mut self, mut reach: Reach<'_, '_>) -> Result<(), RunError> {
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
            self.log[returning.fault].note = Some("it did not listen again within the window".into());
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
