//! The drivers: each client is a Zenoh session of its own, over TCP. Those of
//! `zenoh` are in mode client, and connect to one router; those of `zenoh-peer`
//! are in mode peer, and connect to each other.
//!
//! What the library does with what it is asked:
//! - With congestion control `block`, a publisher waits where its link takes no
//!   more, and so does the router for a slow subscriber; whoever has waited for
//!   5 s closes the link. With `drop`, either waits for 1 ms and drops. A put
//!   that waits cannot be told to come back sooner.
//! - Messages of one session travel in batches; `express` sends each by itself.
//! - A session that has lost its router connects again by itself, and what is
//!   published meanwhile is gone without an error. A run must not go on like
//!   that: the driver looks for the router ten times a second.
//! - A message that came in several fragments is copied once more, to be one
//!   piece of memory.
//! - All sessions of a process share the library's threads, six of them where
//!   the environment variable ZENOH_RUNTIME says nothing else.

use crate::ZENOH_VERSION;
use crate::settings::{Settings, config, reason};
use pubmark_load::clock;
use pubmark_load::drivers::bind_free;
use pubmark_load::drivers::socket::{Driver, DriverError, Sent, Socket, SocketSpec, WAIT_MS};
use pubmark_model::options::Options;
use pubmark_model::protocol::Role;
use pubmark_model::units::{MILLISECOND, Ns};
use pubmark_model::workload::{Pattern, Transport};
use serde_json::{Map, Value};
use std::time::Duration;
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::sample::Sample;
use zenoh::{Session, Wait};

/// How long a lost router or peer may go unnoticed, ns.
const LOOK_EVERY: Ns = 100 * MILLISECOND;

/// Makes the driver whose clients meet at a router.
pub fn load(_: &Options) -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(Zenoh { mode: Mode::Client }))
}

/// Makes the driver whose clients meet each other.
pub fn load_peers(_: &Options) -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(Zenoh { mode: Mode::Peer }))
}

/// A driver.
struct Zenoh {
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Client,
    Peer,
}

/// The session of a client at a router, and the router.
fn at_router(spec: &SocketSpec<'_>, settings: &Settings) -> Result<(Session, String), DriverError> {
    let endpoint = router_of(spec)?;
    let locator = settings.locator(endpoint).map_err(DriverError::new)?;
    let config =
        config(&[("mode", "client".into()), ("connect/endpoints", vec![locator].into())]).map_err(DriverError::new)?;
    let session = zenoh::open(config)
        .wait()
        .map_err(|error| DriverError::new(format!("zenoh: cannot connect to {endpoint}: {}", reason(error))))?;
    Ok((session, endpoint.to_owned()))
}

/// The session of a peer, and the endpoint that it is bound to, if it is: it
/// listens there alone, and connects to those that are named, again and again
/// until they are there.
fn among_peers(spec: &SocketSpec<'_>, settings: &Settings) -> Result<(Session, Option<String>), DriverError> {
    if spec.transport != Transport::Tcp {
        return Err(DriverError::new(format!("zenoh-peer: there is no transport {}: use tcp", spec.transport)));
    }
    let open = |listen: Vec<String>, connect: Vec<String>| {
        let own = [("mode", "peer".into()), ("listen/endpoints", listen.into()), ("connect/endpoints", connect.into())];
        let config = config(&own).map_err(DriverError::new)?;
        Ok::<_, DriverError>(zenoh::open(config).wait().map_err(reason))
    };
    let failed = |error: String| DriverError::new(format!("zenoh-peer: cannot open a session: {error}"));
    let connect: Vec<String> = spec.connect.iter().map(|endpoint| settings.peer(endpoint)).collect();
    let Some(bind) = spec.bind else { return Ok((open(Vec::new(), connect)?.map_err(failed)?, None)) };
    let mut session = None;
    let bound = bind_free(bind, |candidate| match open(vec![settings.peer(candidate)], connect.clone())? {
        Ok(opened) => {
            session = Some(opened);
            Ok(true)
        }
        Err(error) if error.contains("in use") => Ok(false),
        Err(error) => Err(failed(error)),
    })?;
    let session = session.ok_or_else(|| DriverError::new("zenoh-peer: there is no session"))?;
    Ok((session, Some(bound)))
}

/// The router that a client connects to.
fn router_of<'a>(spec: &SocketSpec<'a>) -> Result<&'a str, DriverError> {
    match (spec.bind, spec.connect) {
        (None, [endpoint]) => Ok(endpoint),
        (Some(_), _) => Err(DriverError::new("zenoh: a client connects to a router, and binds nothing")),
        (None, endpoints) => {
            Err(DriverError::new(format!("zenoh: a client connects to one router, and {} are named", endpoints.len())))
        }
    }
}

impl Driver for Zenoh {
    fn versions(&self) -> Map<String, Value> {
        let mut versions = Map::new();
        versions.insert("library".into(), "zenoh".into());
        versions.insert("version".into(), ZENOH_VERSION.into());
        // It is part of this program.
        if let Ok(path) = std::env::current_exe() {
            versions.insert("path".into(), path.display().to_string().into());
        }
        versions
    }

    fn open(&mut self, spec: &SocketSpec<'_>) -> Result<Box<dyn Socket>, DriverError> {
        let settings = Settings::read(spec.options, spec.payload_bytes).map_err(DriverError::new)?;
        let key = key(&settings.prefix, spec.pattern, spec.run, spec.id).map_err(DriverError::new)?;
        let (session, router, bound) = match self.mode {
            Mode::Client => at_router(spec, &settings).map(|(session, router)| (session, Some(router), None))?,
            Mode::Peer => among_peers(spec, &settings).map(|(session, bound)| (session, None, bound))?,
        };
        let failed = |what: &str, error| DriverError::new(format!("zenoh: {what} {key} failed: {}", reason(error)));
        let end = match spec.role {
            Role::Publisher => session
                .declare_publisher(key.clone())
                .congestion_control(settings.congestion)
                .express(settings.express)
                .wait()
                .map(End::Publisher)
                .map_err(|error| failed("publishing to", error))?,
            Role::Subscriber => session
                .declare_subscriber(key.clone())
                .with(FifoChannel::new(settings.queue_messages))
                .wait()
                .map(End::Subscriber)
                .map_err(|error| failed("subscribing to", error))?,
            other => return Err(DriverError::new(format!("zenoh: this driver plays no {other:?}").to_lowercase())),
        };
        Ok(Box::new(ZenohSocket {
            session,
            end,
            router,
            bound,
            met: false,
            look_at_ns: 0,
            sample: None,
            joined: Vec::new(),
            applied: settings.applied(),
        }))
    }
}

/// The key expression that a client publishes or subscribes to. Outside a study
/// there may be no name of a run to put into it.
fn key(prefix: &str, pattern: Pattern, run: &str, id: u32) -> Result<String, String> {
    let run = if run.is_empty() { "run" } else { run };
    match pattern {
        Pattern::Pairs => Ok(format!("{prefix}pubmark/{run}/{id}")),
        Pattern::FanOut | Pattern::FanIn => Ok(format!("{prefix}pubmark/{run}/all")),
        other => Err(format!("zenoh: this driver does not play pattern {other}: use pairs, fan-out or fan-in")),
    }
}

enum End {
    Publisher(Publisher<'static>),
    Subscriber(Subscriber<FifoChannelHandler<Sample>>),
}

struct ZenohSocket {
    session: Session,
    end: End,
    /// The router, if it is connected to one.
    router: Option<String>,
    /// Where it listens, if it does.
    bound: Option<String>,
    /// Whether a subscriber has met a peer.
    met: bool,
    /// When to look for the router or a peer again.
    look_at_ns: Ns,
    /// The last message received, on loan to the caller.
    sample: Option<Sample>,
    /// Its bytes, where they came in pieces.
    joined: Vec<u8>,
    applied: Map<String, Value>,
}

impl ZenohSocket {
    /// Looks for the router, if that is due: without one, what is sent is lost
    /// and what should arrive does not. A peer that subscribes looks for the last
    /// of those that it has met.
    fn look(&mut self) -> Result<(), DriverError> {
        let now = clock::now();
        if now < self.look_at_ns {
            return Ok(());
        }
        self.look_at_ns = now + LOOK_EVERY;
        let Some(router) = &self.router else {
            let alone = self.session.info().peers_zid().wait().next().is_none();
            let lost = alone && self.met && matches!(self.end, End::Subscriber(_));
            self.met |= !alone;
            return match lost {
                true => Err(DriverError::new("zenoh-peer: the connections to all peers are lost")),
                false => Ok(()),
            };
        };
        match self.session.info().routers_zid().wait().next() {
            Some(_) => Ok(()),
            None => Err(DriverError::new(format!(
                "zenoh: the connection to the router at {router} is lost: it ended, or closed a link that was full \
                 for 5 s"
            ))),
        }
    }
}

impl Socket for ZenohSocket {
    fn endpoint(&self) -> Option<&str> {
        self.bound.as_deref()
    }

    fn send(&mut self, message: &[u8]) -> Result<Sent, DriverError> {
        self.look()?;
        match &self.end {
            End::Publisher(publisher) => publisher
                .put(message)
                .wait()
                .map(|()| Sent::Accepted)
                .map_err(|error| DriverError::new(format!("zenoh: a put failed: {}", reason(error)))),
            End::Subscriber(_) => Err(DriverError::new("zenoh: a subscriber does not send")),
        }
    }

    fn recv(&mut self) -> Result<Option<&[u8]>, DriverError> {
        let End::Subscriber(subscriber) = &self.end else {
            return Err(DriverError::new("zenoh: a publisher does not receive"));
        };
        // What was read before is let go before the next one is waited for.
        self.sample = None;
        let received = subscriber
            .recv_timeout(Duration::from_millis(WAIT_MS as u64))
            .map_err(|error| DriverError::new(format!("zenoh: the subscription ended: {}", reason(error))))?;
        let Some(sample) = received else {
            self.look()?;
            return Ok(None);
        };
        let mut pieces = self.sample.insert(sample).payload().slices();
        let first = pieces.next().unwrap_or_default();
        let Some(second) = pieces.next() else {
            return Ok(Some(first));
        };
        self.joined.clear();
        [first, second].into_iter().chain(pieces).for_each(|piece| self.joined.extend_from_slice(piece));
        Ok(Some(&self.joined))
    }

    fn applied(&self) -> Map<String, Value> {
        self.applied.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_have_a_key_each_and_fans_share_one() {
        assert_ne!(key("", Pattern::Pairs, "r", 1).unwrap(), key("", Pattern::Pairs, "r", 2).unwrap());
        assert_eq!(key("", Pattern::FanOut, "r", 1).unwrap(), key("", Pattern::FanOut, "r", 2).unwrap());
        assert_eq!(key("", Pattern::FanIn, "r", 0).unwrap(), key("", Pattern::FanOut, "r", 7).unwrap());
        assert!(key("", Pattern::Pipeline, "r", 0).unwrap_err().contains("use pairs, fan-out or fan-in"));
        assert_eq!(key("bench/", Pattern::Pairs, "r", 1).unwrap(), "bench/pubmark/r/1");
    }
}
