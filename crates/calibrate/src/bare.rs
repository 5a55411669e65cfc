//! Bare loops: the least that a program can do to send or receive the
//! messages. They check nothing, number nothing and know one protocol; what
//! they cost is what the kernel costs, and the floor for a generator.

mod flood;
mod receive;
mod send;

pub use flood::flood;
pub use receive::receive;
pub use send::send;

use pubmark_load::clock;
use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use pubmark_wire::mqtt::server::Connect;
use pubmark_wire::mqtt::{Packet, Publish, Qos, Version, decode, encode, reason};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the server may take for each answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Digits of a connection's number in its topic, so that all topics are as long.
const DIGITS: usize = 6;

/// What a loop is to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server.
    pub to: SocketAddr,
    /// The first part of the topics, unique to the run.
    pub run: String,
    /// Connections, 1 to 1,000,000.
    pub connections: u32,
    /// Messages a second over all connections, at least 1.
    pub per_s: u64,
    /// Bytes of a message's payload.
    pub payload_bytes: usize,
    /// Least time between two wake-ups, ns.
    pub quantum_ns: Ns,
    /// From the start to the window, ns.
    pub warmup_ns: Ns,
    /// The window, ns.
    pub window_ns: Ns,
}

impl Plan {
    fn topic(&self, connection: u32) -> String {
        format!("pubmark/{}/{connection:0DIGITS$}", self.run)
    }

    /// Bytes of a message on the wire.
    pub fn message_bytes(&self) -> Result<usize, String> {
        Ok(Message::new(self)?.bytes.len())
    }
}

/// Says that all connections stand.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// How many.
    pub connections: u32,
}

/// Tells a loop when to begin.
#[derive(Debug, Serialize, Deserialize)]
pub struct Go {
    /// On the clock of this host, ns.
    pub start_ns: Ns,
}

/// Tells a receiver how many messages there are in all, so that it knows when it has them.
#[derive(Debug, Serialize, Deserialize)]
pub struct All {
    /// Messages.
    pub messages: u64,
}

/// What a loop did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// CPU time, user and system, of the window, ns.
    pub cpu_ns: Ns,
    /// The window as it was, ns.
    pub wall_ns: Ns,
    /// Messages of the window.
    pub messages: u64,
    /// Messages in all.
    pub total_messages: u64,
    /// Bytes in all: written by a sender, handshakes included; read by a
    /// receiver after them.
    pub total_bytes: u64,
    /// How late messages of the window were sent, as a histogram.
    pub lag: Option<String>,
}

/// Opens the connections. A receiver subscribes each to its topic. The bytes
/// that were written, too.
fn open(plan: &Plan, subscribe: bool) -> Result<(Vec<TcpStream>, u64), String> {
    let mut streams = Vec::with_capacity(plan.connections as usize);
    let mut written = 0;
    for connection in 0..plan.connections {
        let name = format!("{}{}{connection}", plan.run, if subscribe { 's' } else { 'p' });
        let topic = subscribe.then(|| plan.topic(connection));
        let opened = greet(plan.to, &name, topic.as_deref())
            .map_err(|error| format!("connection {connection} to {}: {error}", plan.to))?;
        written += opened.1;
        streams.push(opened.0);
    }
    Ok((streams, written))
}

fn greet(to: SocketAddr, name: &str, topic: Option<&str>) -> io::Result<(TcpStream, u64)> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let connect = Connect::clean(name);
    let mut said = Vec::new();
    encode::connect(&mut said, Version::V3_1_1, &connect).map_err(io::Error::other)?;
    stream.write_all(&said)?;
    let mut written = said.len() as u64;
    answered(&mut stream, |packet| matches!(packet, Packet::Connack(connack) if connack.code == 0))?;
    if let Some(topic) = topic {
        said.clear();
        encode::subscribe(&mut said, Version::V3_1_1, 1, &[(topic, Qos::AtMostOnce)]).map_err(io::Error::other)?;
        stream.write_all(&said)?;
        written += said.len() as u64;
        answered(&mut stream, |packet| matches!(packet, Packet::Suback { codes, .. } if codes[0] < reason::FAILURE))?;
    }
    stream.set_read_timeout(None)?;
    Ok((stream, written))
}

/// Reads one answer, to the byte.
fn answered(stream: &mut TcpStream, good: impl Fn(&Packet<'_>) -> bool) -> io::Result<()> {
    let mut heard = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        heard.push(byte[0]);
        match decode(&heard, Version::V3_1_1).map_err(io::Error::other)? {
            Some((packet, _)) if good(&packet) => return Ok(()),
            Some((packet, _)) => return Err(io::Error::other(format!("the server said no: {packet:?}"))),
            None => {}
        }
    }
}

/// A message that is ready to be sent; only its topic's number changes.
struct Message {
    bytes: Vec<u8>,
    digits: usize,
}

impl Message {
    fn new(plan: &Plan) -> Result<Message, String> {
        let topic = plan.topic(0);
        let payload = vec![0x5a; plan.payload_bytes];
        let publish = Publish {
            dup: false,
            qos: Qos::AtMostOnce,
            retain: false,
            topic: &topic,
            id: 0,
            alias: None,
            payload: &payload,
        };
        let mut bytes = Vec::new();
        encode::publish(&mut bytes, Version::V3_1_1, &publish).map_err(|error| error.to_string())?;
        let digits = bytes.len() - payload.len() - DIGITS;
        Ok(Message { bytes, digits })
    }

    #[inline]
    fn of(&mut self, mut connection: u32) -> &[u8] {
        for digit in self.bytes[self.digits..self.digits + DIGITS].iter_mut().rev() {
            *digit = b'0' + (connection % 10) as u8;
            connection /= 10;
        }
        &self.bytes
    }
}

/// CPU time at the edges of the window.
#[derive(Default)]
struct Edges {
    from: Option<(Ns, Ns)>,
    to: Option<(Ns, Ns)>,
}

impl Edges {
    /// Whether the instant `now` is the first in the window; takes the CPU time then.
    fn enter(&mut self, now: Ns, from_ns: Ns) -> bool {
        let enters = self.from.is_none() && now >= from_ns;
        if enters {
            self.from = Some((clock::now(), clock::process_cpu()));
        }
        enters
    }

    fn leave(&mut self) {
        self.to = Some((clock::now(), clock::process_cpu()));
    }

    fn done(&self) -> Done {
        let (Some(from), Some(to)) = (self.from, self.to) else { return Done::default() };
        Done { wall_ns: to.0 - from.0, cpu_ns: to.1 - from.1, ..Done::default() }
    }
}

fn lag_text(lag: &Histogram) -> Option<String> {
    (!lag.is_empty()).then(|| lag.encode())
}
