//! The null sink: the server's side of MQTT, reduced to what clients need. It discards
//! messages and sends only required answers.

mod guest;

use guest::SinkClient;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, setsockopt, socket, sockopt};
use pubmark_load::clock;
use pubmark_model::units::{MILLISECOND, Ns, SECOND};
use rustix::event::{PollFd, PollFlags, epoll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// Events taken at once.
const EVENTS: usize = 512;
/// Connections accepted before others have their turn.
const ACCEPTS: usize = 256;
/// Time for which a client may leave its answers unread.
const PATIENCE: Ns = 10 * SECOND;
/// Time for which the sink continues to read after the end of its input, if clients go on
/// sending.
const LAST: Ns = SECOND;
/// Pause after a connection could not be accepted.
const PAUSE: Ns = 10 * MILLISECOND;
/// Numbers of descriptors that are not connections.
const LISTENER: u64 = u64::MAX;
const INPUT: u64 = u64::MAX - 1;

/// The first message of a sink.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listening {
    /// Its endpoint: `mqtt://127.0.0.1:PORT`.
    pub endpoint: String,
}

/// Counts of what a sink took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkCounts {
    /// Connections that were opened to it.
    pub connections: u64,
    /// Bytes, including handshakes.
    pub bytes: u64,
    /// Complete messages.
    pub messages: u64,
    /// Number of times that no connection could be accepted for want of files or memory.
    pub refused: u64,
    /// Connections that were ended because their client violated the protocol, or left
    /// its answers unread.
    pub broken: u64,
}

impl SinkCounts {
    /// Adds the counts of another process of the sink.
    pub fn add(&mut self, other: &SinkCounts) {
        self.connections += other.connections;
        self.bytes += other.bytes;
        self.messages += other.messages;
        self.refused += other.refused;
        self.broken += other.broken;
    }
}

/// Makes a socket on loopback that shares its port with others of its kind; port 0 is any
/// free port. It does not listen yet.
pub fn reserve(port: u16) -> io::Result<(OwnedFd, u16)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, port))?;
    let bound: SockaddrIn = nix::sys::socket::getsockname(socket.as_raw_fd())?;
    Ok((socket, bound.port()))
}

/// Listens on a port of loopback.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let (socket, _) = reserve(port)?;
    nix::sys::socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(TcpListener::from(socket))
}

/// Returns the endpoint of a sink that listens at `address`.
pub fn endpoint(address: SocketAddr) -> String {
    format!("mqtt://{address}")
}

struct Sink {
    epoll: OwnedFd,
    listener: TcpListener,
    /// Indexed by the number of their descriptor.
    guests: Vec<Option<SinkClient>>,
    buffer: Vec<u8>,
    answers: Vec<u8>,
    taken: SinkCounts,
}

/// Takes what arrives until `input` ends; what had arrived by then is counted.
pub fn serve(listener: TcpListener, input: impl AsFd) -> io::Result<SinkCounts> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    epoll::add(&epoll, &input, epoll::EventData::new_u64(INPUT), epoll::EventFlags::IN)?;
    let mut sink = Sink {
        epoll,
        listener,
        guests: Vec::new(),
        buffer: vec![0; READ_BYTES],
        answers: Vec::new(),
        taken: SinkCounts::default(),
    };
    let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
    loop {
        events.clear();
        // Without a deadline: the input ends with the process that uses the sink.
        match epoll::wait(&sink.epoll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            match event.data.u64() {
                LISTENER => sink.accept(),
                INPUT if ended(&input) => return Ok(sink.finish()),
                INPUT => {}
                guest => {
                    sink.read(guest as usize);
                }
            }
        }
    }
}

fn ended(input: &impl AsFd) -> bool {
    !matches!(rustix::io::read(input, &mut [0u8; 64]), Ok(1..) | Err(Errno::INTR | Errno::AGAIN))
}

impl Sink {
    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    // The kernel reports the connection again at once: without a pause this
                    // would be a busy loop.
                    self.taken.refused += 1;
                    clock::sleep_until(clock::now() + PAUSE);
                    return;
                }
            };
            // Answers are small, and should not be delayed.
            let ready = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
            let index = stream.as_raw_fd() as usize;
            let data = epoll::EventData::new_u64(index as u64);
            if ready.is_err() || epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN).is_err() {
                self.taken.refused += 1;
                continue;
            }
            if self.guests.len() <= index {
                self.guests.resize_with(index + 1, || None);
            }
            self.guests[index] = Some(SinkClient::new(stream.into()));
            self.taken.connections += 1;
        }
    }

    /// Reads once from a connection. Returns whether there may be more.
    fn read(&mut self, index: usize) -> bool {
        let Some(guest) = self.guests.get_mut(index).and_then(Option::as_mut) else { return false };
        let read = match rustix::io::read(guest.socket(), &mut *self.buffer) {
            Ok(read @ 1..) => read,
            Err(Errno::AGAIN) => return false,
            Err(Errno::INTR) => return true,
            Ok(0) | Err(_) => {
                self.guests[index] = None;
                return false;
            }
        };
        self.taken.bytes += read as u64;
        self.answers.clear();
        let took = guest.take(&self.buffer[..read], &mut self.answers);
        let answered = self.answers.is_empty() || answer(guest.socket(), &self.answers);
        match took {
            Ok(messages) => self.taken.messages += messages,
            Err(_) => self.taken.broken += 1,
        }
        self.taken.broken += u64::from(!answered);
        if took.is_err() || !answered || guest.over() {
            self.guests[index] = None;
            return false;
        }
        true
    }

    /// Reads what is there.
    fn finish(mut self) -> SinkCounts {
        let until = clock::now() + LAST;
        self.accept();
        for index in 0..self.guests.len() {
            while self.read(index) && clock::now() < until {}
        }
        self.taken
    }
}

/// Writes an answer. Returns false if the client does not read, or has disconnected.
fn answer(socket: &OwnedFd, mut bytes: &[u8]) -> bool {
    let deadline = clock::now() + PATIENCE;
    while !bytes.is_empty() {
        match rustix::io::write(socket, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = deadline.saturating_sub(clock::now());
                let timeout = clock::timespec(left);
                let waited = rustix::event::poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timeout));
                if left == 0 || waited.is_err_and(|error| error != Errno::INTR) {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
    true
}
