//! Replays the rows of an agent through the state machines of pubmark's own agent. Lost,
//! late and out of order mean the same for every agent, because the same code decides.

use crate::occupancy::Occupied;
use crate::outcome::ThreadOutcome;
use crate::publisher::{Next, Outgoing, SendRecorder, give_up_ns};
use crate::rows::{
    ArrivalRow, BODY_DIFFERS, ClientSections, LENGTH_DIFFERS, RowError, RowFile, RunRow, SentRow, WAS_IDLE,
};
use crate::seal::is_sealed;
use crate::subscriber::{Subscriber, Totals, ledger_capacity};
use crate::usage::note_gap;
use crate::window::{Window, measures_latency};
use pubmark_model::header::{Header, body_at};
use pubmark_model::protocol::{Client, PacingFigures, PublisherTotal, Role, Stalls};
use pubmark_model::units::Ns;
use pubmark_model::workload::{Pacing, Workload};

/// Figures that an agent reports for a client in addition to its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// Number of rows of its arrivals.
    pub received_rows: u64,
    /// True if a probe of each of its publishers has arrived.
    pub has_heard: bool,
    /// Time that it waited awake before due times within the window, ns.
    pub spent_ns: Ns,
    /// Last margin by which it woke up before a due time, ns.
    pub margin_ns: Ns,
}

/// Replays the rows of one agent's clients.
pub struct Replay<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The window of the run.
    pub window: Window,
    /// The rows.
    pub file: &'a RowFile,
    /// Instant at which the clients were killed, if they were, ns.
    pub killed_ns: Option<Ns>,
    /// A receiving call of the agent that takes longer than this has waited, ns.
    pub waited_ns: Ns,
    /// Processors that each publisher may keep awake.
    pub spin_cores: f64,
}

/// A publisher whose rows were replayed.
pub struct PlayedPublisher {
    outgoing: Outgoing,
    recorder: SendRecorder,
}

impl PlayedPublisher {
    /// Returns how much it sent.
    pub fn total(&self) -> PublisherTotal {
        self.outgoing.total()
    }
}

impl Replay<'_> {
    /// Replays the sends of publisher (or requester) `id`.
    ///
    /// # Errors
    /// If the rows contradict the schedule or each other.
    pub fn publisher(&self, id: u32, sections: &ClientSections, rows: u64) -> Result<PlayedPublisher, RowError> {
        let (workload, window) = (self.workload, &self.window);
        let mut outgoing = Outgoing::new(workload, id, ledger_capacity(workload));
        let mut recorder = SendRecorder::new(workload, *window);
        let give_up = give_up_ns(workload, window);
        let is_scheduled = workload.rate.profile().is_some();
        self.file.each(sections.sent, rows, |number, row: SentRow| {
            let SentRow { due_ns, ready_ns, sent_ns, count } = row;
            let wanted_ns = if is_scheduled { outgoing.due_ns(window) } else { sent_ns };
            if due_ns != wanted_ns {
                return Err(RowError::Due { row: number, due_ns, wanted_ns });
            }
            if outgoing.next(window, give_up, sent_ns) != Next::Send {
                return Err(RowError::NotToSend { row: number, sent_ns });
            }
            if ready_ns < due_ns || ready_ns > sent_ns {
                return Err(RowError::Ready { row: number, due_ns, ready_ns, sent_ns });
            }
            let most = outgoing.at_once(window);
            if count == 0 || count > most {
                return Err(RowError::Count { row: number, count, most });
            }
            outgoing.refused(ready_ns);
            outgoing.accepted_together(&mut recorder, count, sent_ns, sent_ns);
            Ok(())
        })?;
        outgoing.finish_at(window, self.killed_ns.unwrap_or(Ns::MAX));
        Ok(PlayedPublisher { outgoing, recorder })
    }

    /// Replays the arrivals of a client; `None` if it receives nothing that counts.
    ///
    /// # Errors
    /// If the rows contradict each other.
    pub fn subscriber(
        &self,
        client: &Client,
        sections: &ClientSections,
        rows: u64,
    ) -> Result<Option<Subscriber>, RowError> {
        let workload = self.workload;
        let mut subscriber = match client.role {
            Role::Subscriber => Subscriber::new(workload, client.hears_first..client.hears_first + client.hears_count),
            Role::Requester => Subscriber::new(workload, client.id..client.id + 1),
            Role::Publisher if workload.pattern.echoed() => Subscriber::of_answers(workload, client.id),
            Role::Publisher | Role::Replier => return Ok(None),
        };
        subscriber.start(self.window);
        let mut before_ns = 0;
        let mut in_order = |row: u64, at_ns: Ns| {
            let before_ns = std::mem::replace(&mut before_ns, at_ns);
            if at_ns < before_ns { Err(RowError::Backwards { row, at_ns, before_ns }) } else { Ok(()) }
        };
        if measures_latency(workload) {
            let mut occupied = Occupied::new(self.waited_ns);
            occupied.idle();
            let hears_only = client.role == Role::Subscriber;
            let head_len = body_at(workload.payload_bytes as usize);
            self.file.each(sections.received, rows, |number, row: ArrivalRow| {
                in_order(number, row.arrived_ns)?;
                if row.flags & WAS_IDLE != 0 {
                    occupied.idle();
                }
                occupied.listens(row.asked_ns);
                let listened_ns = occupied.since(row.arrived_ns);
                if hears_only {
                    subscriber.listened(listened_ns);
                }
                let is_whole = row.flags & LENGTH_DIFFERS == 0 && (!workload.header_checksum || is_sealed(&row.head));
                let header = Header::read(&row.head[..head_len]).filter(|_| is_whole);
                subscriber.take(header, row.arrived_ns, row.flags & BODY_DIFFERS == 0);
                Ok(())
            })?;
        } else {
            self.file.each(sections.received, rows, |number, row: RunRow| {
                in_order(number, row.arrived_ns)?;
                let RunRow { due_ns: intended_ns, publisher, sequence, .. } = row;
                for later in 0..row.count {
                    let sequence = sequence.wrapping_add(later);
                    let header = Header { intended_ns, publisher, sequence, sent_ns: None, free_ns: None };
                    let header = Some(header).filter(|_| row.flags & LENGTH_DIFFERS == 0);
                    subscriber.take(header, row.arrived_ns, row.flags & BODY_DIFFERS == 0);
                }
                Ok(())
            })?;
        }
        if let Some(at_ns) = self.killed_ns {
            subscriber.crashed(at_ns);
        }
        Ok(Some(subscriber))
    }

    /// Returns what a client measured: its sends, if it has any, and its arrivals.
    ///
    /// # Errors
    /// If the rows contradict each other.
    pub fn outcome(
        &self,
        client: &Client,
        sections: &ClientSections,
        sends: Option<PlayedPublisher>,
        facts: &ClientFacts,
        totals: &Totals,
    ) -> Result<ThreadOutcome, RowError> {
        let received = self.subscriber(client, sections, facts.received_rows)?;
        let own = sends.as_ref().map(|sends| Totals::new(&[sends.total()]));
        let mut outcome = match sends {
            Some(PlayedPublisher { outgoing, mut recorder }) => {
                recorder.paced(self.pacing(facts));
                ThreadOutcome::of_outgoing(&[outgoing], recorder)
            }
            None => ThreadOutcome::default(),
        };
        if let Some(subscriber) = received {
            let totals = own.as_ref().unwrap_or(totals);
            outcome = outcome.with(ThreadOutcome::of_subscriber(subscriber, totals, self.workload));
            if !facts.has_heard {
                outcome.remarks.push(format!("client {} never heard all whom it should hear", client.id));
            }
        }
        Ok(outcome)
    }

    fn pacing(&self, facts: &ClientFacts) -> PacingFigures {
        let window_ns = self.window.to_ns.map_or(0, |to| to - self.window.from_ns).max(1);
        PacingFigures {
            budget_cores: self.spin_cores,
            spent_cores: facts.spent_ns as f64 / window_ns as f64,
            margin_ns: if self.workload.pacing == Pacing::Spin { 0 } else { facts.margin_ns },
        }
    }

    /// Computes the gaps in which the agent did not run from the instants at which it was
    /// awake.
    ///
    /// # Errors
    /// If the instants are not in ascending order.
    pub fn pauses(&self, count: u64) -> Result<Stalls, RowError> {
        let mut pauses = Stalls::default();
        let mut before_ns = None;
        self.file.each(self.file.plan.ticks, count, |row, at_ns: Ns| {
            let before = before_ns.replace(at_ns).unwrap_or(at_ns);
            if at_ns < before {
                return Err(RowError::Backwards { row, at_ns, before_ns: before });
            }
            note_gap(&mut pauses, &self.window, before, at_ns);
            Ok(())
        })?;
        Ok(pauses)
    }
}

#[cfg(test)]
mod tests;
