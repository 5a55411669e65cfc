//! Captures of tcpdump (classic pcap): the messages that clients publish over MQTT, NATS and RESP without TLS.

mod flow;
mod speech;

use super::row::{TraceError, TraceRow};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TcpSlice, TransportSlice};
use flow::ClientStream;
use speech::StreamEnd;
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr};

/// Longest packet that is read, bytes: the most that tcpdump records.
const PACKET_MAX: u32 = 1 << 18;
/// Most connections that are followed at a time.
const STREAMS_MAX: usize = 1 << 16;
/// Most bytes of incomplete messages and of segments that wait for others, over all connections.
const WAITING_MAX: usize = 256 << 20;

/// The two ends of a connection, its client first.
type Ends = (SocketAddr, SocketAddr);

/// The frame around a packet of IP.
#[derive(Clone, Copy, Debug)]
enum Link {
    Ethernet,
    /// A header of this length, then a packet of IP.
    Ip(usize),
    /// The type of the packet is at the first place, and the packet at the second.
    Typed(usize, usize),
}

impl Link {
    fn of(number: u32) -> Option<Link> {
        match number {
            0 | 108 => Some(Link::Ip(4)),
            1 => Some(Link::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Link::Ip(0)),
            113 => Some(Link::Typed(14, 16)),
            276 => Some(Link::Typed(0, 20)),
            _ => None,
        }
    }

    fn parse(self, frame: &[u8]) -> Option<LaxSlicedPacket<'_>> {
        match self {
            Link::Ethernet => LaxSlicedPacket::from_ethernet(frame).ok(),
            Link::Ip(header) => LaxSlicedPacket::from_ip(frame.get(header..)?).ok(),
            Link::Typed(at, header) => {
                let kind = EtherType(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
                Some(LaxSlicedPacket::from_ether_type(kind, frame.get(header..)?))
            }
        }
    }
}

/// Counts of what was read, and of what was not.
#[derive(Debug, Default)]
struct Tally {
    packets: u64,
    messages: u64,
    /// Connections whose beginning is not in the capture.
    begun_before: u64,
    /// Connections that lack packets, and the bytes from the first gap on.
    gaps: u64,
    lost_bytes: u64,
    encrypted: u64,
    /// Connections that speak none of the protocols.
    others: u64,
    /// Connections that spoke one of them and then sent something else.
    malformed: u64,
    /// Packets whose time is before that of the one before.
    back: u64,
}

/// Reads one capture.
pub struct PcapReader {
    file: String,
    streams: HashMap<Ends, ClientStream>,
    /// Ends of connections that are not followed, so that each counts once.
    unknown: HashSet<Ends>,
    waiting: usize,
    last_ns: u64,
    tally: Tally,
}

/// Byte order and unit of time of a capture.
struct Format {
    swapped: bool,
    tick_ns: u64,
}

impl Format {
    fn number(&self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }
}

impl PcapReader {
    /// Creates a reader of a file of this name.
    pub fn new(file: &str) -> PcapReader {
        PcapReader {
            file: file.to_owned(),
            streams: HashMap::new(),
            unknown: HashSet::new(),
            waiting: 0,
            last_ns: 0,
            tally: Tally::default(),
        }
    }

    fn error(&self, message: impl Into<String>) -> TraceError {
        TraceError { file: self.file.clone(), line: None, message: message.into() }
    }

    /// Reads all packets, and passes on each message that a client publishes. Its time is the one of the packet that
    /// completes it.
    ///
    /// # Errors
    /// If the file is not a capture, is damaged or has no messages, or a row is refused.
    pub fn read_all<E: From<TraceError>>(
        &mut self,
        mut input: impl Read,
        mut row: impl FnMut(&TraceRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut head = [0; 24];
        if !self.fill(&mut input, &mut head)? {
            return Err(self.error("the file is empty. Record with tcpdump -s 0 -w FILE").into());
        }
        let (format, link) = self.begin(&head)?;
        let (mut record, mut frame) = ([0; 16], Vec::new());
        while self.fill(&mut input, &mut record)? {
            self.tally.packets += 1;
            let length = format.number(&record, 8);
            if length > PACKET_MAX {
                let message = format!("packet {} has {length} bytes. The file is damaged there", self.tally.packets);
                return Err(self.error(message).into());
            }
            frame.resize(length as usize, 0);
            if !self.fill(&mut input, &mut frame)? && length > 0 {
                return Err(self.cut().into());
            }
            let seconds = u64::from(format.number(&record, 0)) * 1_000_000_000;
            let at_ns = seconds + u64::from(format.number(&record, 4)) * format.tick_ns;
            self.tally.back += u64::from(at_ns < self.last_ns);
            self.last_ns = self.last_ns.max(at_ns);
            if let Some(packet) = link.parse(&frame) {
                self.packet(&packet, &mut row)?;
            }
        }
        let streams: Vec<ClientStream> = self.streams.drain().map(|(_, stream)| stream).collect();
        streams.into_iter().for_each(|stream| self.close(stream));
        match self.tally.messages {
            0 => Err(self
                .error(format!("the capture has no messages of MQTT, NATS or Redis. {}", self.why_none()))
                .into()),
            _ => Ok(()),
        }
    }

    /// Fills a buffer; false at the end of the file.
    fn fill(&self, input: &mut impl Read, buffer: &mut [u8]) -> Result<bool, TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match input.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(self.cut()),
                Ok(length) => filled += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(format!("{error}. Name a capture of tcpdump"))),
            }
        }
        Ok(true)
    }

    fn cut(&self) -> TraceError {
        self.error(format!(
            "the file ends within packet {}. Let tcpdump end before you read it",
            self.tally.packets + 1
        ))
    }

    /// Reads the head of the file.
    fn begin(&self, head: &[u8]) -> Result<(Format, Link), TraceError> {
        let format = match head[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] => Format { swapped: false, tick_ns: 1_000 },
            [0x4d, 0x3c, 0xb2, 0xa1] => Format { swapped: false, tick_ns: 1 },
            [0xa1, 0xb2, 0xc3, 0xd4] => Format { swapped: true, tick_ns: 1_000 },
            [0xa1, 0xb2, 0x3c, 0x4d] => Format { swapped: true, tick_ns: 1 },
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                return Err(
                    self.error("a capture in pcapng. Convert it with editcap -F pcap IN OUT, or record with tcpdump")
                );
            }
            _ => return Err(self.error("not a capture of tcpdump. Record with tcpdump -s 0 -w FILE")),
        };
        let number = format.number(head, 20) & 0x0fff_ffff;
        let link = Link::of(number).ok_or_else(|| {
            self.error(format!(
                "the link type {number} is not supported. Record at an interface of Ethernet, or at `any`"
            ))
        })?;
        Ok((format, link))
    }

    fn packet<E>(
        &mut self,
        packet: &LaxSlicedPacket<'_>,
        row: &mut impl FnMut(&TraceRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some(net), Some(TransportSlice::Tcp(tcp))) = (&packet.net, &packet.transport) else { return Ok(()) };
        let Some((from, to)) = addresses(net) else { return Ok(()) };
        let ends = (SocketAddr::new(from, tcp.source_port()), SocketAddr::new(to, tcp.destination_port()));
        if tcp.syn() {
            return self.opened(ends, tcp);
        }
        let time_ns = self.last_ns;
        let Some(stream) = self.streams.get_mut(&ends) else {
            let known = (ends.1, ends.0);
            let is_answer = self.streams.contains_key(&known) || self.unknown.contains(&known);
            if !is_answer && !tcp.payload().is_empty() && self.unknown.len() < STREAMS_MAX {
                self.tally.begun_before += u64::from(self.unknown.insert(ends));
            }
            return Ok(());
        };
        let waited = stream.waiting();
        stream.segment(tcp.sequence_number(), tcp.payload());
        let mut heard = 0;
        let passed_on = stream.messages(&mut |topic, bytes| {
            heard += 1;
            row(&TraceRow { time_ns, flow: String::from_utf8_lossy(topic), bytes })
        });
        self.tally.messages += heard;
        self.waiting = self.waiting + stream.waiting() - waited;
        if self.waiting > WAITING_MAX {
            self.waiting -= stream.waiting();
            stream.give_up();
        }
        // What a lost packet had may come after the end.
        if (tcp.rst() || tcp.fin() && !stream.lacks_bytes())
            && let Some(stream) = self.streams.remove(&ends)
        {
            if self.unknown.len() < STREAMS_MAX {
                self.unknown.insert(ends);
            }
            self.close(stream);
        }
        passed_on
    }

    /// Notes the beginning of a connection: the client's packet has no acknowledgement.
    fn opened<E>(&mut self, ends: Ends, tcp: &TcpSlice<'_>) -> Result<(), E> {
        if tcp.ack() {
            return Ok(());
        }
        let first = tcp.sequence_number().wrapping_add(1);
        if self.streams.get(&ends).is_some_and(|stream| stream.begins_at(first)) {
            return Ok(());
        }
        if let Some(earlier) = self.streams.remove(&ends) {
            self.close(earlier);
        }
        self.unknown.remove(&ends);
        if self.streams.len() < STREAMS_MAX {
            self.streams.insert(ends, ClientStream::new(first));
        } else {
            self.tally.others += 1;
        }
        Ok(())
    }

    /// Counts how a connection ended.
    fn close(&mut self, stream: ClientStream) {
        self.waiting = self.waiting.saturating_sub(stream.waiting());
        let (ended, left) = stream.end();
        match ended {
            StreamEnd::Whole => {}
            StreamEnd::Gap => {
                self.tally.gaps += 1;
                self.tally.lost_bytes += left;
            }
            StreamEnd::Encrypted => self.tally.encrypted += 1,
            StreamEnd::Other => self.tally.others += 1,
            StreamEnd::Malformed => self.tally.malformed += 1,
        }
    }

    /// Returns what was not read, in words.
    pub fn remarks(&self) -> Vec<String> {
        let Tally { begun_before, gaps, lost_bytes, encrypted, others, malformed, back, .. } = &self.tally;
        let all = [
            (*begun_before, "connections began before the capture, and their messages are left out".to_owned()),
            (
                *gaps,
                format!(
                    "connections lack packets: their messages from the first gap on are left out ({lost_bytes} bytes)"
                ),
            ),
            (*encrypted, "connections are encrypted, and are left out".to_owned()),
            (*malformed, "connections ended in bytes that are no message, which are left out".to_owned()),
            (*others, "connections carry other protocols".to_owned()),
            (*back, "packets are earlier than the one before them, and have its time".to_owned()),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }

    fn why_none(&self) -> String {
        match self.remarks().join("; ") {
            none if none.is_empty() => format!("It has {} packets, and none of TCP", self.tally.packets),
            why => format!("{why}. Start the capture before the clients connect"),
        }
    }
}

/// Returns the addresses of a packet: of its sender and its receiver.
fn addresses(net: &LaxNetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            Some((header.source_addr().into(), header.destination_addr().into()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            Some((header.source_addr().into(), header.destination_addr().into()))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

#[cfg(test)]
mod tests;
