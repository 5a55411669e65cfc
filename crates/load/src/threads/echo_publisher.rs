//! A publisher whose messages all subscribers receive and the first of them answers.

use super::{ClientThread, marker_every};
use crate::clock;
use crate::control::{ThreadContext, ThreadReport};
use crate::drivers::socket::DriverError;
use crate::outcome::ThreadOutcome;
use crate::publisher::Marker;
use crate::subscriber::{Subscriber, Totals};
use pubmark_model::header::{END, PROBE};
use pubmark_model::units::Ns;
use std::sync::mpsc::Sender;
use std::thread;

impl ClientThread {
    /// Publishes, and waits for the answer to each message before the next one.
    pub(super) fn publish_and_hear(
        &mut self,
        context: &ThreadContext,
        reports: &Sender<ThreadReport>,
    ) -> Result<ThreadOutcome, DriverError> {
        let (workload, control) = (&context.workload, &context.control);
        let mut marker = Marker::new(workload, self.client.id);
        let mut answers = Subscriber::of_answers(workload, self.client.id);
        let pause = marker_every(workload);
        let (mut ready, mut probe_ns) = (false, 0);
        let start_ns = loop {
            if control.stopped() {
                return Ok(ThreadOutcome::default());
            }
            if let Some(start_ns) = control.started() {
                break start_ns;
            }
            let now = clock::now();
            if now >= probe_ns {
                probe_ns = now + pause.as_nanos() as Ns;
                self.socket.send(marker.message(PROBE, now))?;
            }
            if let Some(answer) = self.socket.recv()? {
                answers.arrived(answer, clock::now());
            }
            if !ready && answers.heard_all() {
                ready = true;
                let _ = reports.send(ThreadReport::Ready);
            }
        };
        let publisher = self.ask_in_turn(context, start_ns, &mut answers)?;
        let _ = reports.send(ThreadReport::Sent(vec![publisher.total()]));
        while !control.silenced() {
            self.socket.send(marker.message(END, clock::now()))?;
            thread::park_timeout(pause);
        }
        self.outlive(control, None);
        let totals = Totals::new(&[publisher.total()]);
        let sending = ThreadOutcome::of_publisher(publisher);
        Ok(sending.with(ThreadOutcome::of_subscriber(answers, &totals, workload)))
    }
}
