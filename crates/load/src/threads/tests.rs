use super::*;
use pubmark_model::setting::Settings;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// After so many end markers it is in vain.
const MARKERS: u32 = 1_000;

/// Never without a message: probes, and end markers once the run is started.
struct Endless {
    marker: Marker,
    context: Arc<ThreadContext>,
    reports: Receiver<ThreadReport>,
    ends: Arc<AtomicU32>,
}

impl Socket for Endless {
    fn endpoint(&self) -> Option<&str> {
        None
    }
    fn send(&mut self, _: &[u8]) -> Result<Sent, DriverError> {
        Ok(Sent::Accepted)
    }
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        let control = &self.context.control;
        match self.reports.try_recv() {
            Ok(ThreadReport::Ready) => {
                control.start(clock::now());
                control.drain(Vec::new(), Ns::MAX);
            }
            Ok(ThreadReport::Drained) => control.stop(),
            _ => {}
        }
        if control.started().is_none() {
            return Ok(Some(self.marker.message(PROBE, clock::now())));
        }
        if self.ends.fetch_add(1, Ordering::Relaxed) > MARKERS {
            control.stop();
        }
        Ok(Some(self.marker.message(END, clock::now())))
    }
    fn applied(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// End markers come as fast as a socket is read: they are no load that would
/// keep a subscriber from looking about.
#[test]
fn a_subscriber_has_drained_at_its_first_end_marker() {
    let workload = Workload::resolve(&Settings::default()).unwrap();
    let (marker, ends) = (Marker::new(&workload, 0), Arc::new(AtomicU32::new(0)));
    let context = Arc::new(ThreadContext { workload, control: Control::default() });
    let (sender, reports) = channel();
    let socket = Endless { marker, context: context.clone(), reports, ends: ends.clone() };
    let client = json!({"role": "subscriber", "id": 0, "hears_first": 0, "hears_count": 1});
    let client_thread = ClientThread {
        client: serde_json::from_value(client).unwrap(),
        socket: Box::new(socket),
        counter: Arc::default(),
        cpus: Vec::new(),
        spin_cores: 0.0,
    };
    client_thread.run(&context, &sender);
    let ends = ends.load(Ordering::Relaxed);
    assert!(ends <= 3, "it took {ends} end markers");
}
