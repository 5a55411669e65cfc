//! ZeroMQ in Rust alone: the crate zeromq, on tokio.
//!
//! A client's thread runs the library's futures to their end itself; what the
//! library does besides (writing, handing out to subscribers, accepting) is on
//! the threads of one runtime, `io_threads` of them.
//!
//! What the library does with what it is asked:
//! - Its queues hold 100,000 messages and its TCP sockets ask the kernel for
//!   buffers of 4 MiB, both fixed. There is no linger.
//! - PUB never blocks: it drops for a subscriber whose queue is full.
//! - A send that is given up takes its peer out of the rotation, or its reply out
//!   of the conversation: none is, and one that waits for room ends no sooner.
//! - REQ sends no request while one is without its reply.

use crate::made;
use bytes::Bytes;
use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec, WAIT_MS};
use pubmark_load::drivers::{Kind, Others, bind_free, check_spec};
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::workload::Transport;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use zeromq::{
    DealerSocket, PubSocket, PullSocket, PushSocket, RepSocket, ReqSocket, RouterSocket, SocketOptions, SocketRecv,
    SocketSend, SubSocket, ZmqError, ZmqMessage,
};

/// The options that this driver knows.
pub const OPTIONS: &[&str] = &["io_threads", "tcp_nodelay", "request_reply"];

const OTHERS: Others = &[("request_reply", "dealer-router", Kind::Dealer, Kind::Router)];

const WAIT: Duration = Duration::from_millis(WAIT_MS as u64);

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

struct Pure {
    runtime: Arc<Runtime>,
    io_threads: usize,
}

/// Makes the driver.
pub fn load(options: &Options) -> Result<Box<dyn Driver>, DriverError> {
    if options.get("tcp_nodelay") == Some(&Value::Bool(false)) {
        return Err(DriverError::new(
            "zeromq: TCP_NODELAY is always on and the library cannot turn it off: leave tcp_nodelay at true",
        ));
    }
    let io_threads = options.get("io_threads").map_or(1, |_| options.number("io_threads") as usize);
    if io_threads == 0 {
        return Err(DriverError::new(
            "zeromq: io_threads is 0, which leaves no thread to move messages: set it to 1 or more",
        ));
    }
    let runtime = Builder::new_multi_thread().worker_threads(io_threads).enable_all().build();
    let runtime = runtime.map_err(|error| DriverError::new(format!("zeromq: cannot start its threads: {error}")))?;
    Ok(Box::new(Pure { runtime: Arc::new(runtime), io_threads }))
}

fn failed(what: &str, error: &ZmqError) -> DriverError {
    DriverError::new(format!("zeromq: cannot {what}: {error}"))
}

/// One that sends and receives.
trait Both: SocketSend + SocketRecv + Send {}
impl<S: SocketSend + SocketRecv + Send> Both for S {}

/// A socket of the library, by what it can do.
enum End {
    Sends(Box<dyn SocketSend + Send>),
    Receives(Box<dyn SocketRecv + Send>),
    Both(Box<dyn Both>),
}

impl Pure {
    /// Opens a socket of one type.
    fn socket<S: zeromq::Socket>(&self, spec: &SocketSpec<'_>) -> Result<(S, Option<String>), DriverError> {
        let mut options = SocketOptions::default();
        options.connect_timeout(CONNECT);
        let mut socket = S::with_options(options);
        let endpoint = match spec.bind {
            None => None,
            Some(endpoint) => {
                Some(bind_free(endpoint, |candidate| match self.runtime.block_on(socket.bind(candidate)) {
                    Ok(_) => Ok(true),
                    Err(ZmqError::Network(error)) if error.kind() == ErrorKind::AddrInUse => Ok(false),
                    Err(error) => Err(failed(&format!("bind {candidate}"), &error)),
                })?)
            }
        };
        for endpoint in spec.connect {
            self.runtime
                .block_on(socket.connect(endpoint))
                .map_err(|error| failed(&format!("connect to {endpoint}"), &error))?;
        }
        Ok((socket, endpoint))
    }

    fn sends<S: zeromq::Socket + SocketSend + 'static>(
        &self,
        spec: &SocketSpec<'_>,
    ) -> Result<(End, Option<String>), DriverError> {
        self.socket::<S>(spec).map(|(socket, endpoint)| (End::Sends(Box::new(socket)), endpoint))
    }

    fn both<S: zeromq::Socket + Both + 'static>(
        &self,
        spec: &SocketSpec<'_>,
    ) -> Result<(End, Option<String>), DriverError> {
        self.socket::<S>(spec).map(|(socket, endpoint)| (End::Both(Box::new(socket)), endpoint))
    }
}

impl Driver for Pure {
    fn versions(&self) -> Map<String, Value> {
        let mut versions = Map::new();
        versions.insert("library".into(), "zeromq (Rust)".into());
        versions.insert("version".into(), env!("ZEROMQ_VERSION").into());
        versions.insert("binding".into(), concat!("zeromq ", env!("ZEROMQ_VERSION")).into());
        versions.insert("tokio".into(), env!("TOKIO_VERSION").into());
        versions.insert("rust".into(), env!("RUST_VERSION").into());
        versions
    }

    fn made(&self) -> BTreeMap<String, String> {
        made(&[
            ("runtime", concat!("tokio ", env!("TOKIO_VERSION"))),
            ("binding", "none"),
            ("library", concat!("zeromq ", env!("ZEROMQ_VERSION"), " in Rust")),
            ("call", "async, each run to its end by the client's thread"),
            ("copies", "send: into memory of its own, and into the connection's buffer; receive: none"),
            ("memory", "reference counts"),
        ])
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        check_spec("zeromq", spec)?;
        if spec.transport == Transport::Inproc {
            return Err(DriverError::new("zeromq in Rust has no transport inproc: use ipc or tcp"));
        }
        let _entered = self.runtime.enter();
        let kind = Kind::of(spec, OTHERS)?;
        let (end, endpoint) = match kind {
            Kind::Pub => self.sends::<PubSocket>(spec)?,
            Kind::Push => self.sends::<PushSocket>(spec)?,
            Kind::Sub => {
                let (mut socket, endpoint) = self.socket::<SubSocket>(spec)?;
                let subscribed = self.runtime.block_on(socket.subscribe(""));
                subscribed.map_err(|error| failed("subscribe", &error))?;
                (End::Receives(Box::new(socket)), endpoint)
            }
            Kind::Pull => {
                let (socket, endpoint) = self.socket::<PullSocket>(spec)?;
                (End::Receives(Box::new(socket)), endpoint)
            }
            Kind::Req => self.both::<ReqSocket>(spec)?,
            Kind::Rep => self.both::<RepSocket>(spec)?,
            Kind::Dealer => self.both::<DealerSocket>(spec)?,
            Kind::Router => self.both::<RouterSocket>(spec)?,
            other => return Err(DriverError::new(format!("zeromq in Rust has no socket {other:?}"))),
        };
        let mut applied = Map::new();
        applied.insert("io_threads".into(), self.io_threads.into());
        if spec.transport == Transport::Tcp {
            applied.insert("tcp_nodelay".into(), true.into());
        }
        Ok(Box::new(PureSocket {
            runtime: self.runtime.clone(),
            end,
            kind,
            patience: Duration::from_millis(spec.receive_ms() as u64),
            asker: Bytes::new(),
            message: Bytes::new(),
            endpoint,
            applied,
        }))
    }
}

struct PureSocket {
    runtime: Arc<Runtime>,
    end: End,
    kind: Kind,
    /// How long `recv` waits.
    patience: Duration,
    /// Of a router: who asked last, and is replied to.
    asker: Bytes,
    /// The last message received.
    message: Bytes,
    endpoint: Option<String>,
    applied: Map<String, Value>,
}

impl PureSocket {
    /// Takes a message, if one comes in time.
    fn take(&mut self, patience: Duration) -> Result<bool, DriverError> {
        let receiving = async |receiver: &mut dyn SocketRecv| {
            let received = timeout(patience, receiver.recv()).await;
            if let Ok(Err(_)) = &received {
                // A connection has ended, or no reply is due: nothing can come at once.
                sleep(WAIT).await;
            }
            received
        };
        let received = match &mut self.end {
            End::Sends(_) => return Err(DriverError::new("zeromq: a publisher does not receive")),
            End::Receives(socket) => self.runtime.block_on(receiving(&mut **socket)),
            End::Both(socket) => self.runtime.block_on(receiving(&mut **socket)),
        };
        match received {
            Ok(Ok(message)) => {
                let mut frames = message.into_vecdeque();
                self.message = frames.pop_back().unwrap_or_default();
                self.asker = frames.pop_front().unwrap_or_default();
                Ok(true)
            }
            Err(_) | Ok(Err(ZmqError::Network(_) | ZmqError::Codec(_) | ZmqError::NoMessage | ZmqError::Other(_))) => {
                Ok(false)
            }
            Ok(Err(error)) => Err(failed("receive", &error)),
        }
    }
}

impl Socket for PureSocket {
    fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        let mut frames = ZmqMessage::from(Bytes::copy_from_slice(message));
        if self.kind == Kind::Router {
            frames.push_front(self.asker.clone());
        }
        let sent = match &mut self.end {
            End::Sends(socket) => self.runtime.block_on(socket.send(frames)),
            End::Both(socket) => self.runtime.block_on(socket.send(frames)),
            End::Receives(_) => return Err(DriverError::new("zeromq: a subscriber does not send")),
        };
        match sent {
            Ok(()) => Ok(Sent::Accepted),
            // Nobody is connected, or a reply is still due: it is thrown away when it comes.
            Err(ZmqError::ReturnToSender { .. }) => {
                match self.kind {
                    Kind::Req => drop(self.take(WAIT)?),
                    _ => std::thread::sleep(WAIT),
                }
                Ok(Sent::Full)
            }
            // Who asked has gone, and its reply with it.
            Err(_) if matches!(self.kind, Kind::Rep | Kind::Router) => Ok(Sent::Accepted),
            // A connection has ended under it.
            Err(ZmqError::Network(_) | ZmqError::Codec(_) | ZmqError::BufferFull(_)) => {
                std::thread::sleep(WAIT);
                Ok(Sent::Full)
            }
            Err(error) => Err(failed("send", &error)),
        }
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        Ok(self.take(self.patience)?.then_some(&self.message))
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }
}
