use super::*;
use pubmark_model::header::Header;
use pubmark_model::setting::Settings;
use serde_json::{Map, Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// The test gives up after this many end markers.
const MARKERS: u32 = 1_000;

/// Makes the only client of its role, which receives from the only one of the other role.
fn client(role: &str, socket: impl Socket + 'static) -> ClientThread {
    let client = json!({"role": role, "id": 0, "hears_first": 0, "hears_count": 1});
    ClientThread {
        client: serde_json::from_value(client).unwrap(),
        socket: Box::new(socket),
        counter: Arc::default(),
        cpus: Vec::new(),
        spin_cores: 0.0,
    }
}

/// A socket that always has a message: probes, and end markers once the run is started.
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
                control.drain(Totals::new(&[]), Ns::MAX);
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

/// End markers arrive as fast as a socket is read: the subscriber still checks its flags.
#[test]
fn a_subscriber_has_drained_at_its_first_end_marker() {
    let workload = Workload::resolve(&Settings::default()).unwrap();
    let (marker, ends) = (Marker::new(&workload, 0), Arc::new(AtomicU32::new(0)));
    let context = Arc::new(ThreadContext { workload, control: Control::default(), ahead_ns: 0 });
    let (sender, reports) = channel();
    let socket = Endless { marker, context: context.clone(), reports, ends: ends.clone() };
    let client_thread = client("subscriber", socket);
    client_thread.run(&context, &sender);
    let ends = ends.load(Ordering::Relaxed);
    assert!(ends <= 3, "it took {ends} end markers");
}

/// Calls made on a socket.
#[derive(Default)]
struct Seen {
    data: AtomicU32,
    ends: AtomicU32,
    crashes: AtomicU32,
}

/// A socket that takes everything.
struct Taking(Arc<Seen>);

impl Socket for Taking {
    fn endpoint(&self) -> Option<&str> {
        None
    }
    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        match Header::read(message).unwrap().sequence {
            END => self.0.ends.fetch_add(1, Ordering::Relaxed),
            PROBE => 0,
            _ => self.0.data.fetch_add(1, Ordering::Relaxed),
        };
        Ok(Sent::Accepted)
    }
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        self.0.data.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }
    fn applied(&self) -> Map<String, Value> {
        Map::new()
    }
    fn crash(self: Box<Self>) {
        self.0.crashes.fetch_add(1, Ordering::Relaxed);
    }
}

/// A socket that refuses each seventh message, and keeps the numbers of those taken.
struct Balking(Arc<Mutex<Vec<u32>>>, u32);

impl Socket for Balking {
    fn endpoint(&self) -> Option<&str> {
        None
    }
    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        self.1 += 1;
        if self.1.is_multiple_of(7) {
            return Ok(Sent::Full);
        }
        let sequence = Header::read(message).unwrap().sequence;
        self.0.lock().unwrap().extend((sequence < END).then_some(sequence));
        Ok(Sent::Accepted)
    }
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        Ok(None)
    }
    fn applied(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// At the maximum rate, messages are sent together between two readings of the clock: 64
/// of 64 B.
#[test]
fn what_goes_together_is_numbered_without_a_gap_though_some_are_refused() {
    let workload = Workload::of([("rate", "max"), ("count", "1000"), ("warmup", "0s"), ("payload", "64B")]).unwrap();
    let context = Arc::new(ThreadContext { workload, control: Control::default(), ahead_ns: 0 });
    let (taken, (sender, reports)) = (Arc::new(Mutex::new(Vec::new())), channel());
    let client_thread = client("publisher", Balking(taken.clone(), 0));
    context.control.start(clock::now());
    let theirs = context.clone();
    let thread = thread::spawn(move || client_thread.run(&theirs, &sender));
    let total = loop {
        match reports.recv().unwrap() {
            ThreadReport::Ready => {}
            ThreadReport::Sent(totals) => break totals[0],
            _ => panic!("it said something else"),
        }
    };
    context.control.stop();
    thread.join().unwrap();
    assert_eq!((total.sent, total.window_first, total.window_end, total.offered), (1_000, 0, 1_000, 1_000));
    assert_eq!(*taken.lock().unwrap(), (0..1_000).collect::<Vec<u32>>());
}

#[test]
fn who_is_killed_uses_no_socket_any_more_and_answers_all_the_same() {
    let workload = Workload::of([("rate", "1000"), ("warmup", "0s"), ("duration", "10m")]).unwrap();
    for role in ["publisher", "subscriber"] {
        let context = Arc::new(ThreadContext { workload: workload.clone(), control: Control::default(), ahead_ns: 0 });
        let (seen, (sender, reports)) = (Arc::new(Seen::default()), channel());
        let client_thread = client(role, Taking(seen.clone()));
        let theirs = context.clone();
        let thread = thread::spawn(move || client_thread.run(&theirs, &sender));
        context.control.start(clock::now());
        while seen.data.load(Ordering::Relaxed) < 20 {
            thread::yield_now();
        }
        context.control.crash();
        context.control.drain(Totals::new(&[]), Ns::MAX);
        let answer = loop {
            match reports.recv().unwrap() {
                ThreadReport::Ready => {}
                answer => break answer,
            }
        };
        let (data, crashes) = (seen.data.load(Ordering::Relaxed), seen.crashes.load(Ordering::Relaxed));
        assert_eq!(crashes, 1, "{role}");
        match answer {
            ThreadReport::Sent(totals) => {
                assert_eq!((role, totals[0].sent), ("publisher", u64::from(data)));
                assert!((totals[0].sent..600_000).contains(&totals[0].offered), "{totals:?}");
            }
            ThreadReport::Drained => assert_eq!(role, "subscriber"),
            _ => panic!("{role} said something else"),
        }
        context.control.stop();
        thread.join().unwrap();
        assert_eq!(seen.data.load(Ordering::Relaxed), data, "{role}");
        assert_eq!((seen.ends.load(Ordering::Relaxed), seen.crashes.load(Ordering::Relaxed)), (0, 1), "{role}");
    }
}

/// A socket that sends back what it is given, and keeps the headers.
struct Mirror {
    last: Option<Vec<u8>>,
    sent: Arc<std::sync::Mutex<Vec<Header>>>,
}

impl Socket for Mirror {
    fn endpoint(&self) -> Option<&str> {
        None
    }
    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        self.last = Some(message.to_vec());
        self.sent.lock().unwrap().extend(Header::read(message).filter(|header| header.sequence < END));
        Ok(Sent::Accepted)
    }
    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        Ok(self.last.as_deref())
    }
    fn applied(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// This holds for publishers that wait for answers as well: subscribers on other hosts
/// read their instants.
#[test]
fn instants_are_of_the_clock_that_all_share_in_every_pattern() {
    const AHEAD: i64 = 3_600_000_000_000;
    for (pattern, role) in [("pairs", "publisher"), ("fan-out-echo", "publisher"), ("request-reply", "requester")] {
        let settings = [("pattern", pattern), ("rate", "1000"), ("warmup", "0s"), ("count", "3"), ("drain", "1s")];
        let workload = Workload::of(settings).unwrap();
        let context = Arc::new(ThreadContext { workload, control: Control::default(), ahead_ns: AHEAD });
        let (sent, (sender, reports)) = (Arc::default(), channel());
        let client_thread = client(role, Mirror { last: None, sent: Arc::clone(&sent) });
        let theirs = context.clone();
        let thread = thread::spawn(move || client_thread.run(&theirs, &sender));
        assert!(matches!(reports.recv(), Ok(ThreadReport::Ready)), "{pattern}");
        let start_ns = clock::now();
        context.control.start(start_ns);
        while !matches!(reports.recv(), Ok(ThreadReport::Sent(_))) {}
        context.control.drain(Totals::new(&[]), Ns::MAX);
        context.control.stop();
        thread.join().unwrap();
        let due: Vec<Ns> = sent.lock().unwrap().iter().map(|header| header.intended_ns).collect();
        let shared = start_ns.saturating_add_signed(AHEAD);
        assert_eq!(due, [0, 1_000_000, 2_000_000].map(|at| shared + at), "{pattern}");
    }
}
