//! The contract of every registered driver.

mod libraries;

use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec};
use pubmark_load::drivers::{REGISTRY, find};
use pubmark_model::options::{Options, common};
use pubmark_model::protocol::Role;
use pubmark_model::workload::{Pattern, Transport};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The drivers of C libraries.
const LIBRARIES: [&str; 4] = ["czmq", "nanomsg", "nng", "zeromq"];

/// Maximum wait of a test.
const DEADLINE: Duration = Duration::from_secs(60);

const SMALL: usize = 64;
const LARGE: usize = 512 << 10;

fn defaults() -> Options {
    common().into_iter().filter_map(|spec| Some((spec.name, spec.default?))).collect()
}

fn with(changes: &[(&str, Value)]) -> Options {
    let mut options = defaults();
    options.extend(changes.iter().map(|(name, value)| ((*name).to_string(), value.clone())));
    options
}

/// One driver over one transport.
struct Case {
    name: &'static str,
    transport: Transport,
    options: Options,
    payload: usize,
    folder: tempfile::TempDir,
}

impl Case {
    /// Loads the driver. `make deps` installs the libraries.
    fn load(&self) -> Box<dyn Driver> {
        let load = find(self.name).expect("registered");
        load(&self.options).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Returns an endpoint to bind that no other test uses.
    fn fresh(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        match self.transport {
            Transport::Inproc => format!("inproc://test-{number}"),
            Transport::Ipc => format!("ipc://{}/{number}", self.folder.path().display()),
            _ => "tcp://127.0.0.1:0".into(),
        }
    }

    fn open(
        &self,
        driver: &mut dyn Driver,
        role: Role,
        pattern: Pattern,
        bind: Option<&str>,
        connect: &[String],
    ) -> Result<Box<dyn Socket>, DriverError> {
        driver.open(&SocketSpec {
            role,
            id: 0,
            pattern,
            transport: self.transport,
            payload_bytes: self.payload as u64,
            spin: false,
            unthrottled: false,
            bind,
            connect,
            answers: None,
            run: "",
            options: &self.options,
        })
    }

    fn bind(&self, driver: &mut dyn Driver, role: Role, pattern: Pattern) -> (Box<dyn Socket>, String) {
        let socket = self
            .open(driver, role, pattern, Some(&self.fresh()), &[])
            .unwrap_or_else(|error| panic!("{self}: {error}"));
        let endpoint = socket.endpoint().expect("a bound socket tells its endpoint").to_string();
        (socket, endpoint)
    }

    fn connect(&self, driver: &mut dyn Driver, role: Role, pattern: Pattern, endpoint: &str) -> Box<dyn Socket> {
        self.open(driver, role, pattern, None, &[endpoint.to_string()])
            .unwrap_or_else(|error| panic!("{self}: {error}"))
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} over {}, {} bytes", self.name, self.transport, self.payload)
    }
}

/// Runs a test for each driver, transport and payload.
fn each(names: &[&'static str], payloads: &[usize], options: &Options, test: impl Fn(&Case, &mut dyn Driver)) {
    for &name in names {
        for transport in [Transport::Inproc, Transport::Ipc, Transport::Tcp] {
            for &payload in payloads {
                let folder = tempfile::tempdir().expect("a temporary folder");
                let case = Case { name, transport, options: options.clone(), payload, folder };
                let mut driver = case.load();
                test(&case, &mut *driver);
            }
        }
    }
}

fn registered() -> Vec<&'static str> {
    REGISTRY.iter().map(|(name, _)| *name).filter(|name| find(name).is_some()).collect()
}

/// Returns the bytes of message `number`: the number, then noise from an offset that
/// depends on it.
fn body(number: u32, length: usize) -> Vec<u8> {
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let words = std::iter::successors(Some(1_u64), |word| {
            Some(word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1))
        });
        words.take(LARGE).map(|word| (word >> 56) as u8).chain([0; 256]).collect()
    });
    let mut bytes = NOISE[number as usize % 256..][..length].to_vec();
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number_of(message: &[u8]) -> u32 {
    u32::from_le_bytes(message[..4].try_into().expect("four bytes"))
}

/// Repeats an attempt until it succeeds.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "{what}: nothing after {DEADLINE:?}");
    }
}

fn send(case: &Case, socket: &mut dyn Socket, message: &[u8]) {
    until(&format!("{case}: send"), || {
        (socket.send(message).unwrap_or_else(|error| panic!("{case}: {error}")) == Sent::Accepted).then_some(())
    });
}

fn receive(case: &Case, socket: &mut dyn Socket) -> Vec<u8> {
    until(&format!("{case}: receive"), || attempt(case, socket))
}

fn attempt(case: &Case, socket: &mut dyn Socket) -> Option<Vec<u8>> {
    socket.recv().unwrap_or_else(|error| panic!("{case}: {error}")).map(<[u8]>::to_vec)
}

/// Echoes until it is stopped, or the test that should stop it has failed.
fn echo(case: &Case, replier: &mut dyn Socket, stop: &AtomicBool) {
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) && start.elapsed() < DEADLINE {
        if let Some(message) = attempt(case, replier) {
            send(case, replier, &message);
        }
    }
}

/// Sends requests until there is an answer, if a request can be lost on its way.
fn probe(case: &Case, requester: &mut dyn Socket, replier: &mut dyn Socket) {
    if !requester.loses_requests() {
        return;
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| echo(case, replier, &stop));
        until(&format!("{case}: an answer"), || {
            send(case, requester, &body(u32::MAX, case.payload));
            (0..5).find_map(|_| attempt(case, requester))
        });
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn every_driver_says_how_it_is_made() {
    for name in registered() {
        let driver = find(name).expect("registered")(&defaults()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let made = driver.made();
        for what in ["language", "binding", "library", "call", "copies", "memory", "build"] {
            assert!(made.get(what).is_some_and(|how| !how.is_empty()), "{name} says nothing of its {what}: {made:?}");
        }
        if LIBRARIES.contains(&name) {
            let versions = driver.versions();
            let library = [&versions["library"], &versions["version"]].map(|text| text.as_str().unwrap_or_default());
            assert_eq!(made["library"], library.join(" "), "{name}");
        }
    }
}

#[test]
fn pushed_messages_arrive_once_in_order_and_whole() {
    each(&registered(), &[SMALL, LARGE], &defaults(), |case, driver| {
        for pusher_binds in [true, false] {
            let (mut push, mut pull);
            if pusher_binds {
                let (socket, endpoint) = case.bind(driver, Role::Publisher, Pattern::Pipeline);
                (push, pull) = (socket, case.connect(driver, Role::Subscriber, Pattern::Pipeline, &endpoint));
            } else {
                let (socket, endpoint) = case.bind(driver, Role::Subscriber, Pattern::Pipeline);
                (pull, push) = (socket, case.connect(driver, Role::Publisher, Pattern::Pipeline, &endpoint));
            }
            let count = if case.payload == SMALL { 3000 } else { 150 };
            std::thread::scope(|scope| {
                // The pusher outlives the reading: not every library lingers.
                let pusher = scope.spawn(|| {
                    for number in 0..count {
                        send(case, &mut *push, &body(number, case.payload));
                    }
                });
                for number in 0..count {
                    assert!(
                        receive(case, &mut *pull) == body(number, case.payload),
                        "{case}: message {number} is another"
                    );
                }
                pusher.join().expect("the pusher ends");
            });
            assert!(attempt(case, &mut *pull).is_none(), "{case}: more came than was sent");
        }
    });
}

#[test]
fn every_subscriber_hears_all_once_each_has_heard_a_probe() {
    each(&registered(), &[SMALL], &defaults(), |case, driver| all_hear(case, driver, Pattern::FanOut, 3));
}

fn all_hear(case: &Case, driver: &mut dyn Driver, pattern: Pattern, count: usize) {
    let (mut publisher, endpoint) = case.bind(driver, Role::Publisher, pattern);
    let mut subscribers: Vec<_> =
        (0..count).map(|_| case.connect(driver, Role::Subscriber, pattern, &endpoint)).collect();
    let mut heard = BTreeSet::new();
    until(&format!("{case}: probes"), || {
        send(case, &mut *publisher, &body(u32::MAX, case.payload));
        for (index, subscriber) in subscribers.iter_mut().enumerate() {
            heard.extend(attempt(case, &mut **subscriber).map(|_| index));
        }
        (heard.len() == subscribers.len()).then_some(())
    });
    for number in 0..200 {
        send(case, &mut *publisher, &body(number, case.payload));
        for subscriber in &mut subscribers {
            let message = until(&format!("{case}: message {number}"), || {
                attempt(case, &mut **subscriber).filter(|message| number_of(message) != u32::MAX)
            });
            assert!(message == body(number, case.payload), "{case}: message {number} is another");
        }
    }
}

#[test]
fn a_subscriber_hears_every_publisher_that_it_connects_to() {
    each(&registered(), &[SMALL], &defaults(), |case, driver| {
        let (mut publishers, endpoints): (Vec<_>, Vec<_>) =
            (0..3).map(|_| case.bind(driver, Role::Publisher, Pattern::FanIn)).unzip();
        let mut subscriber = case.open(driver, Role::Subscriber, Pattern::FanIn, None, &endpoints).expect("connects");
        let mut heard = BTreeSet::new();
        until(&format!("{case}: probes"), || {
            for (number, publisher) in publishers.iter_mut().enumerate() {
                send(case, &mut **publisher, &body(number as u32, case.payload));
            }
            // Read until empty each time, so that no probe waits for room behind others.
            heard.extend(std::iter::from_fn(|| attempt(case, &mut *subscriber)).map(|message| number_of(&message)));
            (heard.len() == publishers.len()).then_some(())
        });
    });
}

#[test]
fn a_replier_echoes() {
    each(&registered(), &[SMALL, LARGE], &defaults(), echoes);
}

fn echoes(case: &Case, driver: &mut dyn Driver) {
    let (mut replier, endpoint) = case.bind(driver, Role::Replier, Pattern::RequestReply);
    let mut requester = case.connect(driver, Role::Requester, Pattern::RequestReply, &endpoint);
    probe(case, &mut *requester, &mut *replier);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| echo(case, &mut *replier, &stop));
        for number in 0..50 {
            let request = body(number, case.payload);
            send(case, &mut *requester, &request);
            assert!(receive(case, &mut *requester) == request, "{case}: reply {number} is another");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_reply_may_take_longer_than_one_wait() {
    each(&registered(), &[SMALL], &defaults(), waits_for_a_reply);
}

fn waits_for_a_reply(case: &Case, driver: &mut dyn Driver) {
    let (mut replier, endpoint) = case.bind(driver, Role::Replier, Pattern::RequestReply);
    let mut requester = case.connect(driver, Role::Requester, Pattern::RequestReply, &endpoint);
    probe(case, &mut *requester, &mut *replier);
    let request = body(1, case.payload);
    send(case, &mut *requester, &request);
    assert!(receive(case, &mut *replier) == request);
    for _ in 0..4 {
        assert!(attempt(case, &mut *requester).is_none(), "{case}: a reply that was not sent");
    }
    send(case, &mut *replier, &request);
    assert!(receive(case, &mut *requester) == request, "{case}: the late reply is another");
}

/// The socket types that an option selects behave like the usual ones.
#[test]
fn other_sockets_play_the_same() {
    let asked = |name, option, word: &str, payloads: &[usize], play: &dyn Fn(&Case, &mut dyn Driver)| {
        each(&[name], payloads, &with(&[(option, word.into())]), play);
    };
    for (name, word) in [("zeromq", "dealer-router"), ("nanomsg", "survey"), ("nng", "survey")] {
        asked(name, "request_reply", word, &[SMALL, LARGE], &echoes);
        asked(name, "request_reply", word, &[SMALL], &waits_for_a_reply);
    }
    for name in ["nanomsg", "nng", "zeromq"] {
        asked(name, "pairs", "pair", &[SMALL], &|case, driver| all_hear(case, driver, Pattern::Pairs, 1));
    }
    for name in ["nanomsg", "nng"] {
        asked(name, "pairs", "bus", &[SMALL], &|case, driver| all_hear(case, driver, Pattern::Pairs, 1));
        asked(name, "fan_out", "bus", &[SMALL], &|case, driver| all_hear(case, driver, Pattern::FanOut, 3));
    }
}

#[test]
fn sockets_that_a_library_has_not_are_refused_with_those_that_it_has() {
    let options = with(&[("request_reply", "survey".into())]);
    each(&["zeromq"], &[SMALL], &options, |case, driver| {
        let Err(error) = case.open(driver, Role::Replier, Pattern::RequestReply, Some(&case.fresh()), &[]) else {
            panic!("{case}: it has no surveys");
        };
        assert!(error.to_string().contains("`survey`, which is not one of req-rep, dealer-router"), "{error}");
    });
}

#[test]
fn a_requester_goes_on_when_a_reply_does_not_come() {
    each(&registered(), &[SMALL], &defaults(), |case, driver| {
        let (mut replier, endpoint) = case.bind(driver, Role::Replier, Pattern::RequestReply);
        let mut requester = case.connect(driver, Role::Requester, Pattern::RequestReply, &endpoint);
        send(case, &mut *requester, &body(0, case.payload));
        let first = receive(case, &mut *replier);
        assert!(attempt(case, &mut *requester).is_none());
        let stop = AtomicBool::new(false);
        let mut number = 1;
        send(case, &mut *requester, &body(number, case.payload));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                send(case, &mut *replier, &first);
                echo(case, &mut *replier, &stop);
            });
            // The first reply may still arrive in place of a later one: its number shows
            // it.
            until(&format!("{case}: a reply to a later request"), || {
                let replied =
                    (0..5).any(|_| attempt(case, &mut *requester).is_some_and(|reply| number_of(&reply) == number));
                number += 1;
                send(case, &mut *requester, &body(number, case.payload));
                replied.then_some(())
            });
            stop.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn silence_is_none() {
    each(&registered(), &[SMALL], &defaults(), |case, driver| {
        for (role, pattern) in [
            (Role::Subscriber, Pattern::Pipeline),
            (Role::Subscriber, Pattern::FanOut),
            (Role::Replier, Pattern::RequestReply),
        ] {
            let (mut socket, _) = case.bind(driver, role, pattern);
            for _ in 0..3 {
                assert!(attempt(case, &mut *socket).is_none(), "{case}: a message from no one");
            }
        }
    });
}

#[test]
fn a_full_queue_says_so_and_all_that_it_took_arrives() {
    let options = with(&[("queue_messages", 10.into())]);
    each(&registered(), &[4096], &options, |case, driver| {
        let (mut push, endpoint) = case.bind(driver, Role::Publisher, Pattern::Pipeline);
        let mut accepted = 0;
        let mut fill = |times: u32| {
            let mut full = 0;
            until(&format!("{case}: a full queue"), || {
                match push.send(&body(accepted, case.payload)).unwrap_or_else(|error| panic!("{case}: {error}")) {
                    Sent::Accepted => (accepted, full) = (accepted + 1, 0),
                    Sent::Full => full += 1,
                }
                (full == times).then_some(accepted)
            })
        };
        let without_reader = fill(2);
        let mut pull = case.connect(driver, Role::Subscriber, Pattern::Pipeline, &endpoint);
        // The peer does not read, but the buffers in between take more once connected.
        until(&format!("{case}: a connection"), || (fill(3) > without_reader).then_some(()));
        for number in 0..accepted {
            // Without its own thread, a socket writes out what it holds only on request.
            push.flush().unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(receive(case, &mut *pull) == body(number, case.payload), "{case}: message {number} is another");
        }
        assert!(attempt(case, &mut *pull).is_none(), "{case}: more came than was accepted");
    });
}

#[test]
fn sockets_outlive_their_driver() {
    for name in registered() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Case { name, transport: Transport::Inproc, options: defaults(), payload: SMALL, folder };
        let mut driver = case.load();
        let (mut pull, endpoint) = case.bind(&mut *driver, Role::Subscriber, Pattern::Pipeline);
        let mut push = case.connect(&mut *driver, Role::Publisher, Pattern::Pipeline, &endpoint);
        drop(driver);
        send(&case, &mut *push, &body(7, SMALL));
        assert_eq!(receive(&case, &mut *pull), body(7, SMALL));
    }
}

#[test]
fn a_bound_port_is_free_and_below_the_ephemeral_range() {
    for name in registered() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Case { name, transport: Transport::Tcp, options: defaults(), payload: SMALL, folder };
        let mut driver = case.load();
        let sockets: Vec<_> = (0..20).map(|_| case.bind(&mut *driver, Role::Subscriber, Pattern::Pipeline)).collect();
        let ports: BTreeSet<u16> = sockets
            .iter()
            .map(|(_, endpoint)| {
                endpoint.strip_prefix("tcp://127.0.0.1:").and_then(|port| port.parse().ok()).expect("an address")
            })
            .collect();
        assert_eq!(ports.len(), sockets.len(), "{name}: two sockets on one port");
        assert!(ports.iter().all(|port| (1024..32768).contains(port)), "{name}: {ports:?}");
    }
}
