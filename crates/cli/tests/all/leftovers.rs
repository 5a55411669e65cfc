//! Brokers that stay keep nothing of a run: sessions, queues, retained messages. The leftovers of a killed coordinator
//! are listed, and removed by one command.

use crate::heavy::wanted;
use crate::refusals::mosquitto;
use crate::support::{Place, bench_arguments, children, free_port, stderr, stdout, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::Server;
use pubmark_host::server::processes;
use pubmark_model::server::Places;
use pubmark_wire::amqp::{FieldTable, Frame, Method, PROTOCOL_HEADER, Short};
use pubmark_wire::mqtt::server::ConnectPacket;
use pubmark_wire::mqtt::{Packet, Qos, Version, decode, encode};
use pubmark_wire::resp::put_command;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

const V: Version = Version::V3_1_1;

/// End of a run.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Complete,
    Signal(Signal),
    /// Its agents are killed, so that it fails.
    Agents,
    /// Everything is killed, the coordinator first.
    Killed,
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn doctor(place: &Place, arguments: &[&str]) -> String {
    let output = command(place, &[&["doctor"], arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Makes a run that ends in this way once `midst` returns a value.
fn run<T>(place: &Place, arguments: &[&str], end: End, midst: impl FnMut() -> Option<T>) -> Output {
    let length = if matches!(end, End::Complete) { "300ms" } else { "600s" };
    let arguments = bench_arguments(&[arguments, &["--duration", length]].concat());
    let coordinator: Child = command(place, &arguments).spawn().unwrap();
    let pid = Pid::from_raw(coordinator.id() as i32);
    if !matches!(end, End::Complete) {
        wait_for("what a broker keeps of a run", midst);
    }
    let agents: Vec<i32> = children(coordinator.id()).into_iter().map(|(pid, _)| pid).collect();
    let kill_agents = || {
        for agent in &agents {
            let _ = kill(Pid::from_raw(*agent), Signal::SIGKILL);
        }
    };
    match end {
        End::Complete => {}
        End::Signal(signal) => kill(pid, signal).unwrap(),
        End::Agents => kill_agents(),
        End::Killed => {
            kill(pid, Signal::SIGKILL).unwrap();
            kill_agents();
        }
    }
    let output = coordinator.wait_with_output().unwrap();
    let _ = std::fs::remove_dir_all(place.path("r"));
    output
}

/// A connection of the test to an MQTT broker.
struct Client {
    stream: TcpStream,
    heard: Vec<u8>,
}

impl Client {
    fn connect(port: u16, name: &str, clean_start: bool) -> Client {
        let mut client = Client { stream: TcpStream::connect(("127.0.0.1", port)).unwrap(), heard: Vec::new() };
        let mut out = Vec::new();
        let connect = ConnectPacket {
            client_id: name,
            clean_start,
            keep_alive_s: 0,
            user: None,
            password: None,
            will: None,
            session_expiry_s: 0,
            receive_maximum: u16::MAX,
        };
        encode::connect(&mut out, V, &connect).unwrap();
        client.stream.write_all(&out).unwrap();
        client.until(|packet| matches!(packet, Packet::Connack(_)));
        client
    }

    /// Reads until a packet matches.
    fn until(&mut self, mut is_it: impl FnMut(&Packet<'_>) -> bool) {
        loop {
            let mut found = false;
            while let Some((packet, used)) = decode(&self.heard, V).unwrap() {
                found |= is_it(&packet);
                self.heard.drain(..used);
            }
            if found {
                return;
            }
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the broker hangs up");
            self.heard.extend_from_slice(&buffer[..count]);
        }
    }

    fn leave(mut self) {
        let mut out = Vec::new();
        encode::disconnect(&mut out, V, 0, None);
        self.stream.write_all(&out).unwrap();
        while matches!(self.stream.read(&mut [0; 64]), Ok(1..)) {}
    }
}

/// Returns the messages that are retained below a filter, by topic.
fn retained(port: u16, filter: &str) -> Vec<(String, Vec<u8>)> {
    let mut client = Client::connect(port, "look", true);
    let mut out = Vec::new();
    encode::subscribe(&mut out, V, 1, &[(filter, Qos::AtMostOnce)]).unwrap();
    encode::pingreq(&mut out);
    client.stream.write_all(&out).unwrap();
    let mut found = Vec::new();
    client.until(|packet| {
        if let Packet::Publish(publish) = packet
            && publish.retain
        {
            found.push((publish.topic.to_owned(), publish.payload.to_vec()));
        }
        matches!(packet, Packet::Pingresp)
    });
    client.leave();
    found
}

/// A broker that counts, and the number of sessions of the test that it keeps.
struct Broker {
    port: u16,
    marks: usize,
    _server: Server,
}

impl Broker {
    fn start(home: &Place) -> Broker {
        let settings = "allow_anonymous true\nsys_interval 1\nmax_queued_messages 0";
        let port = free_port();
        let places = Places { ports: vec![(String::new(), port)], ..Places::default() };
        Broker { port, marks: 0, _server: home.serve(&mosquitto(settings), places) }
    }

    fn url(&self) -> String {
        format!("mqtt://127.0.0.1:{}", self.port)
    }

    /// Waits until the broker counts the expected number of sessions of runs without a connection. It counts once per
    /// second: one more session of the test distinguishes a new count from an old one.
    fn assert_keeps(&mut self, sessions: usize, messages: usize) {
        self.marks += 1;
        Client::connect(self.port, &format!("mark{}", self.marks), false).leave();
        let wanted = (self.marks + sessions).to_string();
        wait_for(&format!("{wanted} sessions by the broker's count"), || {
            let told = retained(self.port, "$SYS/broker/clients/disconnected");
            told.first().is_some_and(|(_, count)| *count == wanted.as_bytes()).then_some(())
        });
        assert_eq!(retained(self.port, "pubmark/#").len(), messages);
    }
}

#[test]
fn a_broker_keeps_no_session_and_no_message_of_a_run_however_it_ends() {
    let home = Place::new();
    let mut broker = Broker::start(&home);
    let (url, port) = (broker.url(), broker.port);
    for version in ["options.mqtt_version=3.1.1", "options.mqtt_version=5"] {
        let arguments =
            [&url, "--pairs", "3", "--qos", "1", "--durable", "--set", "options.retain=true", "--set", version];
        for end in [End::Complete, End::Signal(Signal::SIGINT), End::Signal(Signal::SIGTERM), End::Agents] {
            let place = Place::new();
            let output = run(&place, &arguments, end, || (retained(port, "pubmark/#").len() == 3).then_some(()));
            assert!(!stderr(&output).contains("doctor"), "{end:?}: {}", stderr(&output));
            broker.assert_keeps(0, 0);
            assert!(doctor(&place, &[&url]).contains("nothing that is known"), "{end:?}");
        }
    }
}

#[test]
fn what_a_killed_coordinator_left_is_listed_and_removed_by_one_command() {
    let (home, place) = (Place::new(), Place::new());
    let mut broker = Broker::start(&home);
    let (url, port) = (broker.url(), broker.port);
    let there = || (retained(port, "pubmark/#").len() == 3).then_some(());
    let arguments = [&url, "--pairs", "3", "--qos", "1", "--durable", "--set", "options.retain=true"];
    run(&place, &arguments, End::Killed, there);
    broker.assert_keeps(3, 3);
    let listed = doctor(&place, &[&url]);
    let command = format!("pubmark doctor {url} --remove");
    assert!(listed.contains("3 sessions (pb") && listed.contains("3 retained messages (pubmark/"), "{listed}");
    assert!(listed.contains(&command), "{listed}");
    // The next run mentions it, and does not touch it.
    let output = run(&place, &[&url], End::Complete, there);
    assert!(stderr(&output).contains(&command), "{}", stderr(&output));
    broker.assert_keeps(3, 3);
    let removed = doctor(&place, &[&url, "--remove"]);
    assert!(removed.contains("6 removed"), "{removed}");
    broker.assert_keeps(0, 0);
    assert!(doctor(&place, &[&url]).contains("nothing that is known"));
}

/// Both sides have sessions if clients come back.
#[test]
fn clients_that_come_back_leave_no_session() {
    let home = Place::new();
    let mut broker = Broker::start(&home);
    let url = broker.url();
    for version in ["options.mqtt_version=3.1.1", "options.mqtt_version=5"] {
        let place = Place::new();
        let arguments = [&url, "--pairs", "2", "--qos", "2", "--set", "reconnect=true", "--set", version];
        run(&place, &arguments, End::Complete, || Some(()));
        broker.assert_keeps(0, 0);
    }
}

/// Returns whether a broker has a queue of this name.
fn has_queue(port: u16, name: &str) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut out = PROTOCOL_HEADER.to_vec();
    let words: [(u16, Method<'_>); 5] = [
        (
            0,
            Method::StartOk {
                properties: FieldTable(&[]),
                mechanism: "PLAIN".into(),
                response: b"\0guest\0guest",
                locale: "en_US".into(),
            },
        ),
        (0, Method::TuneOk { channel_max: 1, frame_bytes: 8192, heartbeat_s: 0 }),
        (0, Method::Open { vhost: "/".into(), reserved_1: "".into(), reserved_2: false }),
        (1, Method::ChannelOpen { reserved: "".into() }),
        // Passive: it is not created.
        (1, Method::QueueDeclare { reserved: 0, queue: Short::from(name), flags: 1, arguments: FieldTable(&[]) }),
    ];
    words.into_iter().for_each(|(channel, method)| Frame::Method(channel, method).put(&mut out));
    stream.write_all(&out).unwrap();
    let mut heard = Vec::new();
    loop {
        while let Some((frame, used)) = Frame::decode(&heard).unwrap() {
            match frame {
                Frame::Method(1, Method::QueueDeclareOk { .. }) => return true,
                Frame::Method(1, Method::ChannelClose { code: 404, .. }) => return false,
                _ => {}
            }
            heard.drain(..used);
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the broker hangs up");
        heard.extend_from_slice(&buffer[..count]);
    }
}

/// Returns the name of the current run, from its file in the user's state folder.
fn run_name(place: &Place) -> Option<String> {
    let file = std::fs::read_dir(place.path("state/pubmark/leftovers")).ok()?.flatten().next()?;
    Some(file.path().file_stem()?.to_str()?.to_owned())
}

/// Ends runs in each of these ways. One that is killed leaves this many things at the server, which one command removes;
/// the others leave none. `left` counts the things of the run of this name.
pub fn assert_nothing_stays(url: &str, load: &[&str], ends: &[End], count: usize, left: impl Fn(&str) -> usize) {
    for end in ends {
        let (place, mut name) = (Place::new(), String::new());
        run(&place, &[&[url], load].concat(), *end, || {
            name = run_name(&place)?;
            (left(&name) == count).then_some(())
        });
        if matches!(end, End::Killed) {
            assert_eq!(left(&name), count);
            let removed = doctor(&place, &[url, "--remove"]);
            assert!(removed.contains(&format!("{count} removed")), "{removed}");
        }
        assert_eq!(left(&name), 0, "{end:?}");
        assert!(doctor(&place, &[url]).contains("nothing that is known"), "{end:?}");
    }
}

/// Returns the processes of the members that a run in this place has started.
fn members(place: &Place, config: &str) -> Vec<i32> {
    let folder = place.tmp().display().to_string();
    let is_member = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains(&folder) && words.contains(config)
    };
    processes::all().into_iter().filter(is_member).collect()
}

/// Returns the processes that name the folder of a place, or have it in their environment.
fn left_of(place: &Place) -> Vec<i32> {
    let folder = place.tmp().display().to_string();
    let names = |pid: &i32| {
        ["cmdline", "environ"].into_iter().any(|file| {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).contains(&folder)
        })
    };
    processes::all().into_iter().filter(names).collect()
}

/// Each member's processes and folder end with the run, and so does the name service of RabbitMQ that they share.
fn assert_no_member_stays(load: &[&str], config: &str, ends: &[End]) {
    for end in ends {
        let place = Place::new();
        let mut count = 0;
        run(&place, load, *end, || {
            count = members(&place, config).len();
            (count >= 3).then_some(())
        });
        wait_for("all that the run has started to end", || left_of(&place).is_empty().then_some(()));
        wait_for("their folders to be removed", || {
            std::fs::read_dir(place.tmp()).is_ok_and(|mut left| left.next().is_none()).then_some(())
        });
    }
}

#[test]
fn no_member_of_a_cluster_stays_however_a_run_ends() {
    let load = ["nats-jetstream", "--qos", "1", "--durable", "--set", "options.members=3"];
    let signals = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL].map(End::Signal);
    let ends = [&signals[..], &[End::Complete, End::Agents]].concat();
    assert_no_member_stays(&load, "nats.conf", &ends);
}

#[test]
fn no_member_and_no_name_service_of_rabbitmq_stays() {
    if !wanted("leftovers::no_member_and_no_name_service_of_rabbitmq_stays") {
        return;
    }
    let load = ["rabbitmq-amqp", "--qos", "1", "--durable", "--set", "options.members=3"];
    let load = [&load[..], &["--set", "options.queue_type=quorum"]].concat();
    assert_no_member_stays(&load, "beam.smp", &[Signal::SIGTERM, Signal::SIGKILL].map(End::Signal));
}

#[test]
fn rabbitmq_keeps_no_queue_of_a_run_however_it_ends() {
    let (home, port) = (Place::new(), free_port());
    let _server = home.serve_system("rabbitmq-amqp", vec![(String::new(), port)]);
    let ends = [End::Signal(Signal::SIGINT), End::Signal(Signal::SIGTERM), End::Agents, End::Killed];
    let load = ["--pairs", "3", "--qos", "1", "--durable"];
    assert_nothing_stays(&format!("amqp://127.0.0.1:{port}"), &load, &ends, 3, |name| {
        (0..3).filter(|id| has_queue(port, &format!("pb{name}s{id}"))).count()
    });
}

/// Returns the number of streams of a NATS server.
fn streams(port: u16) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(b"CONNECT {\"verbose\":false}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.NAMES answer 0\r\n\r\n")
        .unwrap();
    let mut heard = Vec::new();
    loop {
        let mut buffer = [0; 4_096];
        let bytes = stream.read(&mut buffer).unwrap();
        assert!(bytes > 0, "{}", heard.escape_ascii());
        heard.extend_from_slice(&buffer[..bytes]);
        let text = String::from_utf8_lossy(&heard);
        if let Some((_, rest)) = text.split_once("\"total\":") {
            return rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        }
    }
}

#[test]
fn jetstream_keeps_no_stream_of_a_run_however_it_ends() {
    let (home, port) = (Place::new(), free_port());
    let _server = home.serve_system("nats-jetstream", vec![(String::new(), port)]);
    let ends = [End::Complete, End::Signal(Signal::SIGINT), End::Agents, End::Killed];
    let load = ["--pairs", "3", "--qos", "1"];
    assert_nothing_stays(&format!("nats://127.0.0.1:{port}"), &load, &ends, 1, |_| streams(port) as usize);
}

/// Returns the answer of a RESP server to a command.
fn redis_says(port: u16, words: &[&str]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut out = Vec::new();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    put_command(&mut out, &words);
    put_command(&mut out, &[b"QUIT"]);
    stream.write_all(&out).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn redis_keeps_no_key_and_no_channel_of_a_run() {
    let (home, port) = (Place::new(), free_port());
    let _server = home.serve_system("redis", vec![(String::new(), port)]);
    let url = format!("redis://127.0.0.1:{port}");
    let channels = || redis_says(port, &["PUBSUB", "CHANNELS"]);
    for end in [End::Complete, End::Signal(Signal::SIGINT), End::Agents] {
        let place = Place::new();
        run(&place, &[&url, "--pairs", "3"], end, || channels().starts_with("*3\r\n").then_some(()));
        wait_for("the end of all subscriptions", || channels().starts_with("*0\r\n").then_some(()));
        assert!(redis_says(port, &["DBSIZE"]).starts_with(":0\r\n"));
        assert_eq!(run_name(&place), None, "there is nothing to be remembered");
    }
}

#[test]
fn redis_keeps_no_stream_of_a_run_however_it_ends() {
    let (home, port) = (Place::new(), free_port());
    let _server = home.serve_system("redis-streams", vec![(String::new(), port)]);
    let ends = [End::Complete, End::Signal(Signal::SIGTERM), End::Agents, End::Killed];
    let keys = |_: &str| {
        let said = redis_says(port, &["DBSIZE"]);
        said.strip_prefix(':').and_then(|rest| rest.split("\r\n").next()).unwrap().parse().unwrap()
    };
    assert_nothing_stays(&format!("redis://127.0.0.1:{port}"), &["--pairs", "3", "--qos", "1"], &ends, 3, keys);
}

/// If no client could connect, nothing was made, and nothing is mentioned.
#[test]
fn a_server_that_lets_nobody_in_has_nothing_of_a_run() {
    let place = Place::new();
    let url = format!("mqtt://127.0.0.1:{}", free_port());
    let output = run(&place, &[&url, "--qos", "1", "--durable"], End::Complete, || Some(()));
    assert!(!stderr(&output).contains("doctor"), "{}", stderr(&output));
    assert!(doctor(&place, &[&url]).contains("nothing that is known"));
}
