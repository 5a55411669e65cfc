//! Disturbs a study by seeded acts, and logs them.

use super::tree::{self, Member, Process, Role};
use nix::sys::signal::Signal;
use pubmark_host::clock;
use pubmark_host::server::processes;
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_stats::Random;
use std::time::Duration;

/// Time for which a killed server's agents are watched: while one of them lives, the coordinator has not checked yet
/// whether the server does.
const SURVIVED: Ns = 200 * MILLISECOND;
/// Maximum time of waiting for a moment.
const LONGEST: Ns = 2_000 * MILLISECOND;
/// Interval of the checks for a change.
const LOOK: Ns = 5 * MILLISECOND;

/// Random numbers from a seed.
pub struct Draws(Random);

impl Draws {
    pub fn of(random: Random) -> Draws {
        Draws(random)
    }

    /// Returns a number from `least` up to `most`, which is excluded.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.bits() % (most - least)
    }

    pub fn one_in(&mut self, of: u64) -> bool {
        self.0.bits().is_multiple_of(of)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Kill,
    Stop,
    Interrupt(Signal),
}

/// Phase of the run when something happened to it, as far as visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No process below the coordinator.
    Between,
    /// From the first process to the command `start`.
    Setup,
    /// Warm-up and window.
    Window,
    /// Drain, results, tear-down.
    After,
}

/// An act, its target and its time. Instants are of CLOCK_MONOTONIC, ns.
#[derive(Clone, Debug)]
pub struct Event {
    pub act: Act,
    pub role: Role,
    pub position: Option<u64>,
    pub phase: Phase,
    /// Latest possible start …
    pub at_ns: Ns,
    /// … and earliest possible end.
    pub until_ns: Ns,
    /// Instant of the command to start, and by how much later it may have been.
    pub told_ns: Option<(Ns, Ns)>,
    /// True if the coordinator must have noticed it.
    pub noticed: bool,
}

pub struct Disturber {
    pub random: Draws,
    pub log: Vec<Event>,
    /// Run whose window was last seen open.
    started: Option<u64>,
}

fn in_window(coordinator: Process) -> bool {
    tree::below(coordinator.pid).iter().any(|member| member.process.told_to_start().is_some())
}

/// Waits while `holds` is true and the coordinator lives, but not for long.
fn linger(coordinator: Process, holds: impl Fn() -> bool) {
    let give_up_ns = clock::now() + LONGEST;
    while coordinator.lives() && clock::now() < give_up_ns && holds() {
        pass(clock::now() + LOOK);
    }
}

/// Sleeps until this instant.
pub fn pass(until_ns: Ns) {
    while clock::now() < until_ns {
        std::thread::park_timeout(Duration::from_nanos(until_ns.saturating_sub(clock::now())));
    }
}

impl Disturber {
    pub fn new(seed: u64) -> Disturber {
        Disturber { random: Draws(Random(seed)), log: Vec::new(), started: None }
    }

    /// Waits for a random moment of a coordinator's life, and does something.
    pub fn disturb(&mut self, coordinator: Process) {
        let known: Vec<Process> = tree::below(coordinator.pid).iter().map(|member| member.process).collect();
        let same = || tree::below(coordinator.pid).iter().map(|member| member.process).eq(known.iter().copied());
        match self.random.between(0, 3) {
            // Just when something is started or has ended,
            0 => linger(coordinator, same),
            // when a window ends,
            1 => {
                linger(coordinator, || !in_window(coordinator));
                linger(coordinator, || in_window(coordinator));
            }
            // or at any time.
            _ => {
                let until_ns = clock::now() + self.random.between(20, 1_500) * MILLISECOND;
                linger(coordinator, || clock::now() < until_ns);
            }
        }
        pass(clock::now() + self.random.between(0, 60) * MILLISECOND);
        if coordinator.lives() {
            self.act(coordinator, None);
        }
    }

    /// Makes one act; while a process is stopped there may be another, on others.
    fn act(&mut self, coordinator: Process, stopped: Option<Role>) {
        let (act, role) = match self.random.between(0, 102) {
            100.. => return self.kill_all(coordinator),
            0..6 => (Act::Kill, Role::Coordinator),
            6..10 => (Act::Interrupt(Signal::SIGINT), Role::Coordinator),
            10..14 => (Act::Interrupt(Signal::SIGTERM), Role::Coordinator),
            14..28 => (Act::Kill, Role::Agent),
            28..36 => (Act::Kill, Role::Keeper),
            36..50 => (Act::Kill, Role::Server),
            50..62 => (Act::Stop, Role::Coordinator),
            62..83 => (Act::Stop, Role::Agent),
            83..91 => (Act::Stop, Role::Server),
            _ => (Act::Stop, Role::Keeper),
        };
        let members = tree::below(coordinator.pid);
        let those: Vec<&Member> = members.iter().filter(|member| member.role == role).collect();
        let target = match role {
            Role::Coordinator => Some(coordinator),
            _ if those.is_empty() => None,
            _ => Some(those[self.random.between(0, those.len() as u64) as usize].process),
        };
        let Some(target) = target.filter(|_| stopped.is_none_or(|stopped| stopped != role && act != Act::Stop)) else {
            return;
        };
        let position = members.iter().find_map(|member| member.position);
        let phase = self.phase(&members, position);
        match act {
            Act::Stop => self.stop(coordinator, target, role, position, phase),
            Act::Kill => {
                self.kill(&members, target, role, position, phase, stopped);
                if stopped.is_none() && self.random.one_in(5) {
                    self.act(coordinator, Some(role));
                }
            }
            Act::Interrupt(signal) => {
                send(target, signal);
                self.note(act, role, position, phase, clock::now());
                if self.random.one_in(3) {
                    // A second signal asks for an immediate end.
                    pass(clock::now() + self.random.between(0, 30) * MILLISECOND);
                    send(target, signal);
                    self.note(act, role, position, phase, clock::now());
                }
            }
        }
    }

    /// Kills all at once, as if the machine ran out of memory.
    fn kill_all(&mut self, coordinator: Process) {
        let members = tree::below(coordinator.pid);
        let position = members.iter().find_map(|member| member.position);
        let phase = self.phase(&members, position);
        let all = members.iter().map(|member| (member.process, member.role));
        for (process, role) in all.chain([(coordinator, Role::Coordinator)]) {
            send(process, Signal::SIGKILL);
            self.note(Act::Kill, role, position, phase, clock::now());
        }
    }

    fn phase(&mut self, members: &[Member], position: Option<u64>) -> Phase {
        if members.iter().any(|member| member.role == Role::Agent && member.process.told_to_start().is_some()) {
            self.started = position;
            return Phase::Window;
        }
        match position {
            None => Phase::Between,
            Some(_) if self.started == position => Phase::After,
            Some(_) => Phase::Setup,
        }
    }

    fn note(&mut self, act: Act, role: Role, position: Option<u64>, phase: Phase, at_ns: Ns) -> &mut Event {
        let event = Event { act, role, position, phase, at_ns, until_ns: at_ns, told_ns: None, noticed: false };
        self.log.push(event);
        self.log.last_mut().unwrap()
    }

    fn stop(&mut self, coordinator: Process, target: Process, role: Role, position: Option<u64>, phase: Phase) {
        send(target, Signal::SIGSTOP);
        let give_up_ns = clock::now() + 1_000 * MILLISECOND;
        while target.state().is_some_and(|state| !matches!(state, 'T' | 'Z' | 'X')) && clock::now() < give_up_ns {
            pass(clock::now() + MILLISECOND);
        }
        let at_ns = clock::now();
        let until_ns = at_ns + self.random.between(50, 1_500) * MILLISECOND;
        // A stopped process can be inspected.
        let told_ns = match role {
            Role::Coordinator => tree::below(target.pid).iter().find_map(|member| member.process.told_to_start()),
            _ => target.told_to_start(),
        };
        self.note(Act::Stop, role, position, phase, at_ns).told_ns = told_ns;
        let index = self.log.len() - 1;
        if self.random.one_in(4) {
            pass(at_ns + (until_ns - at_ns) / 2);
            self.act(coordinator, Some(role));
        }
        pass(until_ns);
        let stood = target.state() == Some('T');
        self.log[index].until_ns = if stood { clock::now() } else { self.log[index].at_ns };
        send(target, Signal::SIGCONT);
    }

    fn kill(
        &mut self,
        members: &[Member],
        target: Process,
        role: Role,
        position: Option<u64>,
        phase: Phase,
        stopped: Option<Role>,
    ) {
        let (lived, told_ns) = (target.lives(), target.told_to_start());
        send(target, Signal::SIGKILL);
        let at_ns = clock::now();
        self.note(Act::Kill, role, position, phase, at_ns).told_ns = told_ns;
        if role != Role::Server || !lived || stopped == Some(Role::Keeper) {
            return;
        }
        let last_ns = clock::now() + SURVIVED;
        let agents = || members.iter().filter(|member| member.role == Role::Agent);
        while clock::now() < last_ns && agents().any(|agent| agent.process.lives()) {
            pass(clock::now() + LOOK);
        }
        // The server is dead, and agents still live, so the coordinator will check it.
        let noticed = agents().any(|agent| agent.process.lives()) && !target.lives();
        self.log.last_mut().unwrap().noticed = noticed;
    }
}

/// Sends a signal to this process, and not to another that has its number now.
fn send(process: Process, signal: Signal) {
    if process.lives() {
        processes::signal(process.pid, signal);
    }
}
