//! Conversations with agents on both sides: through a server, or if the other side has no sockets.

use crate::bare::{AllowedDelay, BarePair};
use crate::course::{LEAD, Stop, only, pause, until};
use crate::figures::STOP;
use crate::order::{clients, places, prepare, workload};
use crate::process::waited_ns;
use crate::server::{TestServer, scripted};
use crate::subject::TestedAgent;
use crate::wrong::{CaseFailure, due};
use pubmark_host::clock;
use pubmark_host::conversation::AgentConversation;
use pubmark_model::host::LOOPBACK;
use pubmark_model::protocol::{FlowResult, Prepare, PublisherTotal, Role};
use pubmark_model::topology::bind_answers_at;
use pubmark_model::units::{Ns, SECOND};
use pubmark_model::workload::{Transport, Workload};

/// Agents of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideAgents {
    /// The tested agent plays both.
    Both,
    /// It sends, and pubmark's own agent receives.
    Sender,
    /// It receives, and pubmark's own agent sends.
    Receiver,
}

/// Outcome of a meeting.
pub struct MeetingOutcome {
    /// Workload of both sides.
    pub workload: Workload,
    /// Totals that the publishers report.
    pub totals: Vec<PublisherTotal>,
    /// Result of the sending side.
    pub sender: FlowResult,
    /// Result of the receiving side; the sender's own in `request-reply`.
    pub receiver: FlowResult,
    /// Allowed delay of a message, from the bare messages of that time.
    pub late: AllowedDelay,
}

/// Side that is stopped (SIGSTOP) a third into the window, for [`STOP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Neither side.
    Nobody,
    /// The sending side.
    Sender,
    /// The receiving side.
    Receiver,
}

impl Stopped {
    /// Stops it, if it is this side. The schedule begins at `start_ns`.
    fn stop(self, talk: &AgentConversation, side: Stopped, workload: &Workload, start_ns: Ns) {
        if self == side && side != Stopped::Nobody {
            // In the middle between two due times, so that no call is in progress.
            let a_second = workload.rate.profile().map_or(1_000, |rate| rate.per_ks().start() / 1_000);
            let third = workload.window_ns().unwrap_or(0) / 3 + SECOND / a_second.max(1) / 2;
            let _ = pause(talk, start_ns + workload.warmup_ns, Stop { at_ns: third, length: STOP });
        }
    }
}

/// Lets two agents meet; a server, if there is one, follows the script.
pub fn meet(
    bench: &TestedAgent<'_>,
    settings: &[(&str, &str)],
    sides: SideAgents,
    script: &str,
) -> Result<MeetingOutcome, CaseFailure> {
    meet_stopped(bench, settings, sides, script, Stopped::Nobody)
}

/// Lets two agents meet, and stops one side for a while.
pub fn meet_stopped(
    bench: &TestedAgent<'_>,
    settings: &[(&str, &str)],
    sides: SideAgents,
    script: &str,
    stopped: Stopped,
) -> Result<MeetingOutcome, CaseFailure> {
    let workload = workload(bench, settings)?;
    if !bench.patterns.is_empty() && !bench.patterns.contains(&workload.pattern) {
        return Err(CaseFailure::NotTried(format!("its system has no `{}`", workload.pattern)));
    }
    if workload.competing() && bench.system.is_some() && scripted(bench.driver) {
        return Err(CaseFailure::NotTried("the reference peer has no subscribers that compete".into()));
    }
    let server = bench.system.map(|system| TestServer::start(bench.driver, system, script)).transpose()?;
    let (sends, hears) = match workload.pattern.requests() {
        true => (Role::Requester, Role::Replier),
        false => (Role::Publisher, Role::Subscriber),
    };
    if bench.transport == Some(Transport::Inproc) {
        due(sides == SideAgents::Both, || "within a process there is one agent".into())?;
        return within(bench, &workload, sends, hears, stopped);
    }
    let (sending, hearing) = match sides {
        SideAgents::Both => (bench.sending, bench.receiving),
        SideAgents::Sender => (bench.sending, bench.built_in),
        SideAgents::Receiver => (bench.built_in, bench.receiving),
    };
    let (mut sender, mut hearer) = (AgentConversation::greeted(sending)?, AgentConversation::greeted(hearing)?);
    let at = |prepare: Prepare| Prepare { server: server.as_ref().map(TestServer::address), ..prepare };
    // The side that binds is prepared first; with a server, the side that subscribes.
    let hears_first = server.is_some() || hears == Role::Replier;
    let order = |talk: &AgentConversation, role: Role, met: &[String], back: Option<&str>, binds: bool| {
        let count = if role.sends() { workload.publishers } else { workload.subscribers };
        let bind = match binds && server.is_none() {
            true => places(bench, &talk.scratch, count),
            false => Vec::new(),
        };
        let mut clients = clients(&workload, role, &bind, met);
        let answers = match role {
            Role::Publisher => bind_answers_at(&workload, talk.scratch.path(), LOOPBACK),
            _ => back.map(str::to_owned),
        };
        clients.iter_mut().take(1).for_each(|client| client.answers = answers.clone());
        at(prepare(bench, &workload, clients, &talk.scratch))
    };
    if hears_first {
        let bound = hearer.prepare(order(&hearer, hears, &[], None, true))?;
        sender.prepare(order(&sender, sends, &bound, None, false))?;
    } else {
        let bound = sender.prepare(order(&sender, sends, &[], None, true))?;
        let back = sender.answers.clone();
        hearer.prepare(order(&hearer, hears, &bound, back.as_deref(), false))?;
    }
    hearer.ready()?;
    sender.ready()?;
    let waited_before = waited_ns(sender.pid()) + waited_ns(hearer.pid());
    let (start_ns, bare) = (clock::now() + LEAD, BarePair::start());
    sender.begin(start_ns);
    hearer.begin(start_ns);
    stopped.stop(&sender, Stopped::Sender, &workload, start_ns);
    stopped.stop(&hearer, Stopped::Receiver, &workload, start_ns);
    let over = start_ns + workload.warmup_ns + workload.window_ns().unwrap_or(0);
    let totals = sender.sent(until(over).as_nanos() as Ns + workload.drain_ns)?;
    sender.drain(totals.clone(), workload.drain_ns)?;
    hearer.drain(totals.clone(), workload.drain_ns)?;
    let waited = (waited_ns(sender.pid()) + waited_ns(hearer.pid())).saturating_sub(waited_before);
    let (sent, heard) = (only(&sender.stop()?)?, only(&hearer.stop()?)?);
    sender.exit()?;
    hearer.exit()?;
    let receiver = if hears == Role::Replier { sent.clone() } else { heard };
    Ok(MeetingOutcome { workload, totals, sender: sent, receiver, late: bare.between(start_ns, over, waited) })
}

/// Lets all clients meet in one agent, as between threads of a process.
fn within(
    bench: &TestedAgent<'_>,
    workload: &Workload,
    sends: Role,
    hears: Role,
    stopped: Stopped,
) -> Result<MeetingOutcome, CaseFailure> {
    let mut talk = AgentConversation::greeted(bench.sending)?;
    let binds = if sends == Role::Requester { hears } else { sends };
    let connects = if binds == sends { hears } else { sends };
    let count = if binds.sends() { workload.publishers } else { workload.subscribers };
    let bound = places(bench, &talk.scratch, count);
    // In the harder order: a requester comes before its replier.
    let mut all = clients(workload, connects, &[], &bound);
    all.extend(clients(workload, binds, &bound, &[]));
    if let Some(answers) = bind_answers_at(workload, talk.scratch.path(), LOOPBACK) {
        all.iter_mut().filter(|client| client.id == 0).for_each(|client| client.answers = Some(answers.clone()));
    }
    let order = prepare(bench, workload, all, &talk.scratch);
    talk.prepare(order)?;
    talk.ready()?;
    let waited_before = waited_ns(talk.pid());
    let (start_ns, bare) = (clock::now() + LEAD, BarePair::start());
    talk.begin(start_ns);
    stopped.stop(&talk, stopped, workload, start_ns);
    let totals = talk.sent(workload.warmup_ns + workload.window_ns().unwrap_or(0) + workload.drain_ns)?;
    talk.drain(totals.clone(), workload.drain_ns)?;
    let late = bare.between(start_ns, clock::now(), waited_ns(talk.pid()).saturating_sub(waited_before));
    let result = only(&talk.stop()?)?;
    talk.exit()?;
    Ok(MeetingOutcome { workload: workload.clone(), totals, sender: result.clone(), receiver: result, late })
}
