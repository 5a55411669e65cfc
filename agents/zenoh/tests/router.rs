//! The driver against a router that is a process of its own.

use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec};
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::workload::{Pattern, Transport};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The longest that anything may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// Ports that were free a moment ago.
fn candidates() -> impl Iterator<Item = u16> {
    let free = |_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    (0..100).map(free)
}

/// `pubmark-zenoh router`, killed when dropped.
struct Router {
    process: Child,
    endpoint: String,
}

impl Router {
    fn start() -> Router {
        for port in candidates() {
            let mut process = Command::new(env!("CARGO_BIN_EXE_pubmark-zenoh"))
                .args(["router", "--listen", &format!("tcp/127.0.0.1:{port}")])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let output = process.stdout.take().unwrap();
            let (sender, receiver) = channel();
            std::thread::spawn(move || {
                let mut line = String::new();
                let _ = BufReader::new(output).read_line(&mut line);
                let _ = sender.send(line);
            });
            let said = receiver.recv_timeout(DEADLINE).unwrap_or_default();
            let router = Router { process, endpoint: format!("zenoh://127.0.0.1:{port}") };
            if said == format!("listening on tcp/127.0.0.1:{port}\n") {
                return router;
            }
        }
        panic!("no router came up");
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One client with the default options.
fn open(
    driver: &mut dyn Driver,
    role: Role,
    id: u32,
    pattern: Pattern,
    endpoint: &str,
) -> Result<Box<dyn Socket>, DriverError> {
    driver.open(&SocketSpec {
        role,
        id,
        pattern,
        transport: Transport::Tcp,
        payload_bytes: 64,
        unthrottled: false,
        spin: false,
        bind: None,
        answers: None,
        run: "test",
        connect: &[endpoint.to_owned()],
        options: &Options::new(),
    })
}

fn driver() -> Box<dyn Driver> {
    pubmark_zenoh::driver::load(&Options::new()).unwrap()
}

fn send(publisher: &mut dyn Socket, message: &[u8]) {
    let deadline = Instant::now() + DEADLINE;
    while publisher.send(message).unwrap() == Sent::Full {
        assert!(Instant::now() < deadline, "nothing is taken");
    }
}

/// Waits for a message.
fn receive(subscriber: &mut dyn Socket) -> Vec<u8> {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        if let Some(message) = subscriber.recv().unwrap() {
            return message.to_vec();
        }
    }
    panic!("nothing arrived");
}

/// Sends probes until one is heard, then one message more, and hears everything up to that.
fn join(publisher: &mut dyn Socket, subscriber: &mut dyn Socket, probe: &[u8]) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert!(Instant::now() < deadline, "no probe is heard");
        send(publisher, probe);
        if let Some(message) = subscriber.recv().unwrap() {
            assert_eq!(message, probe);
            break;
        }
    }
    let last = [probe, b" and that is all"].concat();
    send(publisher, &last);
    loop {
        let message = receive(subscriber);
        assert!(message == probe || message == last, "a message of somebody else");
        if message == last {
            return;
        }
    }
}

#[test]
fn a_thousand_messages_arrive_in_the_order_in_which_they_were_sent() {
    let router = Router::start();
    let mut driver = driver();
    let mut subscriber = open(driver.as_mut(), Role::Subscriber, 0, Pattern::Pairs, &router.endpoint).unwrap();
    let mut publisher = open(driver.as_mut(), Role::Publisher, 0, Pattern::Pairs, &router.endpoint).unwrap();
    join(publisher.as_mut(), subscriber.as_mut(), b"probe");
    std::thread::scope(|scope| {
        let publisher = &mut publisher;
        scope.spawn(move || (0..1_000_u32).for_each(|number| send(publisher.as_mut(), &number.to_le_bytes())));
        for number in 0..1_000_u32 {
            assert_eq!(receive(subscriber.as_mut()), number.to_le_bytes());
        }
    });
    assert!(subscriber.recv().unwrap().is_none(), "nothing comes twice");
}

#[test]
fn a_message_of_many_fragments_arrives_whole() {
    let router = Router::start();
    let mut driver = driver();
    let mut subscriber = open(driver.as_mut(), Role::Subscriber, 0, Pattern::FanOut, &router.endpoint).unwrap();
    let mut publisher = open(driver.as_mut(), Role::Publisher, 3, Pattern::FanOut, &router.endpoint).unwrap();
    join(publisher.as_mut(), subscriber.as_mut(), b"probe");
    let message: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    send(publisher.as_mut(), &message);
    assert!(receive(subscriber.as_mut()) == message, "a million bytes arrive as they were sent");
}

#[test]
fn two_hundred_pairs_hear_their_own_publisher_and_share_the_threads_of_the_library() {
    let router = Router::start();
    let mut driver = driver();
    let mut sockets = |role| -> Vec<Box<dyn Socket>> {
        (0..200).map(|id| open(driver.as_mut(), role, id, Pattern::Pairs, &router.endpoint).unwrap()).collect()
    };
    let (mut subscribers, mut publishers) = (sockets(Role::Subscriber), sockets(Role::Publisher));
    for (id, (subscriber, publisher)) in subscribers.iter_mut().zip(&mut publishers).enumerate() {
        join(publisher.as_mut(), subscriber.as_mut(), format!("pair {id}").as_bytes());
    }
    let threads = std::fs::read_dir("/proc/self/task").unwrap().count();
    assert!(threads < 100, "400 sessions brought the process to {threads} threads");
}

#[test]
fn a_router_that_dies_is_noticed_on_both_sides() {
    let mut router = Router::start();
    let mut driver = driver();
    let mut subscriber = open(driver.as_mut(), Role::Subscriber, 0, Pattern::FanIn, &router.endpoint).unwrap();
    let mut publisher = open(driver.as_mut(), Role::Publisher, 0, Pattern::FanIn, &router.endpoint).unwrap();
    join(publisher.as_mut(), subscriber.as_mut(), b"probe");
    router.kill();
    let deadline = Instant::now() + DEADLINE;
    let mut errors = Vec::new();
    while errors.is_empty() {
        assert!(Instant::now() < deadline, "the publisher goes on without its router");
        errors.extend(publisher.send(b"into the void").err());
    }
    while errors.len() < 2 {
        assert!(Instant::now() < deadline, "the subscriber goes on without its router");
        errors.extend(subscriber.recv().err());
    }
    for error in errors {
        let wanted = format!("the router at {} is lost", router.endpoint);
        assert!(error.to_string().contains(&wanted), "{error}");
    }
}

#[test]
fn without_a_router_the_error_names_its_endpoint() {
    let port = candidates().next().unwrap();
    let endpoint = format!("zenoh://127.0.0.1:{port}");
    let error = open(driver().as_mut(), Role::Publisher, 0, Pattern::Pairs, &endpoint).err().unwrap();
    let error = error.to_string();
    assert!(error.contains(&format!("cannot connect to {endpoint}")), "{error}");
    assert!(!error.contains(".rs:"), "places in the library's source say nothing: {error}");
}
