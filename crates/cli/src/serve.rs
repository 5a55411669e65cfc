//! HTTP server for programs that watch a study while it runs.
//!
//! GET and HEAD only, one request per connection, nothing read from the disk. A client can neither delay the study nor
//! fill memory: heads are short, connections few, and each has a deadline. When all are in use, the one that has waited
//! longest for its request is closed, so that connections that send nothing lock nobody out. Between requests, the only
//! thread waits in `accept`.

pub mod live;
pub mod metrics;

use crate::failure::Failure;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum length of a request's head, bytes.
const HEAD_MAX: usize = 8 << 10;
/// Maximum number of its headers.
const HEADERS_MAX: usize = 64;
/// Time limit for a client to send its request …
const ASK: Duration = Duration::from_secs(2);
/// … and to read the response.
const ANSWER: Duration = Duration::from_secs(10);
/// Maximum number of connections. For a further one, the oldest without a request is closed; if all are being answered,
/// the new one is, unless one of them ends in time.
const CONNECTIONS_MAX: usize = 16;
/// Time for which a client that has its response may take to close its connection.
const LINGER: Duration = Duration::from_millis(200);
/// Bytes per write, so that a deadline is noticed.
const PIECE: usize = 64 << 10;

/// A request.
#[derive(Debug)]
pub struct HttpRequest {
    /// Its path, without a query.
    pub path: String,
    /// Version that the client has.
    pub if_none_match: Option<String>,
    /// Name by which the client reached this machine.
    pub host: Option<String>,
}

/// Returns whether a Host header names this machine: by the loopback interface, by the address that the client has
/// reached, or by the machine's own name. A web page may point a name of its own here, and must not read the response.
fn is_own(host: &str, reached: IpAddr, machine: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    ["127.0.0.1", "[::1]"].contains(&name)
        || name.eq_ignore_ascii_case("localhost")
        || (!name.is_empty() && name.eq_ignore_ascii_case(machine))
        || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == reached.to_canonical())
}

/// A response.
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Type of the body.
    pub content_type: &'static str,
    /// Version of the body, in quotes.
    pub etag: Option<String>,
    /// The body.
    pub body: Arc<[u8]>,
}

impl HttpResponse {
    /// Returns a body with status 200.
    pub fn ok(content_type: &'static str, body: impl Into<Arc<[u8]>>) -> HttpResponse {
        HttpResponse { status: 200, content_type, etag: None, body: body.into() }
    }

    /// Returns a status with its text.
    pub fn status(status: u16) -> HttpResponse {
        let text = format!("{}\n", reason(status));
        HttpResponse { status, ..HttpResponse::ok("text/plain; charset=utf-8", text.into_bytes()) }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Bad Request",
    }
}

/// Answers a request. It is called on threads of the server.
pub type Answer = dyn Fn(&HttpRequest) -> HttpResponse + Send + Sync;

/// A server that ends when it is dropped.
pub struct HttpServer {
    /// Address at which it listens.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Listens at an address; port 0 means any free one.
    pub fn start(flag: &str, address: SocketAddr, answer: Arc<Answer>) -> Result<HttpServer, Failure> {
        let refused = |error: std::io::Error| {
            let advice = match error.kind() {
                ErrorKind::AddrInUse => ": choose another port, or 0 for any that is free",
                ErrorKind::AddrNotAvailable => ": no interface of this machine has this address",
                ErrorKind::PermissionDenied => ": ports below 1024 need rights",
                _ => "",
            };
            Failure::usage(format!("{flag}: cannot listen at {address}: {error}{advice}"))
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::Builder::new().name("http".into()).spawn(move || accept(&listener, &told, &answer));
        Ok(HttpServer { address, stop, thread: Some(thread.map_err(refused)?) })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection wakes the thread that waits in `accept`.
        let mut knock = self.address;
        if knock.ip().is_unspecified() {
            knock.set_ip(if knock.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        let knocked = TcpStream::connect_timeout(&knock, ASK).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| knocked) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, stop: &AtomicBool, answer: &Arc<Answer>) {
    let open = Arc::new(Open::default());
    while !stop.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // No descriptors are left, or the connection is gone again.
            Err(_) => {
                thread::park_timeout(Duration::from_millis(100));
                continue;
            }
        };
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        let Some(place) = Open::enter(&open, &stream) else { continue };
        let answer = answer.clone();
        let _ = thread::Builder::new().name("http client".into()).spawn(move || {
            // A client that has gone is no error.
            let _ = serve(stream, &place, &*answer);
        });
    }
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Open {
    connections: Mutex<Vec<Connection>>,
    freed: Condvar,
}

struct Connection {
    number: u64,
    /// Stream to close, until the request has been read.
    unheard: Option<TcpStream>,
}

impl Connection {
    fn is_heard(&self) -> bool {
        self.unheard.is_none()
    }
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a connection. Returns `None` if all others are being answered, and none ends in time: a client
    /// that asks again at once may be faster than the end of its last connection.
    fn enter(open: &Arc<Open>, stream: &TcpStream) -> Option<Occupied> {
        let unheard = stream.try_clone().ok()?;
        let is_full = |all: &mut Vec<Connection>| all.len() >= CONNECTIONS_MAX && all.iter().all(Connection::is_heard);
        let waited = open.freed.wait_timeout_while(open.lock(), 2 * LINGER, is_full);
        let (mut connections, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if connections.len() >= CONNECTIONS_MAX {
            let oldest = connections.iter().position(|connection| connection.unheard.is_some())?;
            // Its thread notices the end, and finds that it is no longer in the list.
            if let Some(stream) = connections.remove(oldest).unheard {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        }
        let number = connections.last().map_or(0, |last| last.number + 1);
        connections.push(Connection { number, unheard: Some(unheard) });
        Some(Occupied { open: open.clone(), number })
    }
}

/// An open connection in the list.
struct Occupied {
    open: Arc<Open>,
    number: u64,
}

impl Occupied {
    /// Notes that its request has been read. Returns false if it was closed to make room.
    fn asked(&self) -> bool {
        let mut connections = self.open.lock();
        let mine = connections.iter_mut().find(|connection| connection.number == self.number);
        mine.map(|connection| connection.unheard = None).is_some()
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.open.lock().retain(|connection| connection.number != self.number);
        self.open.freed.notify_one();
    }
}

fn serve(mut stream: TcpStream, place: &Occupied, answer: &Answer) -> std::io::Result<()> {
    let asked = read_head(&mut stream, Instant::now() + ASK)?;
    if !place.asked() {
        return Ok(());
    }
    let reached = stream.local_addr()?.ip();
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let own = |request: &HttpRequest| request.host.as_deref().is_some_and(|host| is_own(host, reached, machine.trim()));
    let answered = |request: &HttpRequest| if own(request) { answer(request) } else { HttpResponse::status(403) };
    let (response, with_body) = match asked {
        Asked::Get(request) => (answered(&request), true),
        Asked::Head(request) => (answered(&request), false),
        Asked::Refused(status) => (HttpResponse::status(status), true),
    };
    let body: &[u8] = if with_body && response.status != 304 { &response.body } else { &[] };
    let etag = response.etag.map(|etag| format!("ETag: {etag}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{etag}Cache-Control: no-cache\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        response.status,
        reason(response.status),
        response.content_type,
        if response.status == 304 { 0 } else { response.body.len() },
    );
    let deadline = Instant::now() + ANSWER;
    for piece in std::iter::once(head.as_bytes()).chain(body.chunks(PIECE)) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        stream.write_all(piece)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // Closing with unread bytes would discard data that the client has not read.
    stream.set_read_timeout(Some(LINGER))?;
    let _ = stream.read(&mut [0; 1024]);
    Ok(())
}

/// Input of a client.
enum Asked {
    Get(HttpRequest),
    Head(HttpRequest),
    Refused(u16),
}

fn read_head(stream: &mut TcpStream, deadline: Instant) -> std::io::Result<Asked> {
    let mut bytes = vec![0; HEAD_MAX];
    let mut len = 0;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Asked::Refused(408));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[len..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => len += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(Asked::Refused(408));
            }
            Err(error) => return Err(error),
        }
        if let Some(head) = parse(&bytes[..len]) {
            return Ok(head);
        }
        if len == bytes.len() {
            return Ok(Asked::Refused(431));
        }
    }
}

/// Parses a head, if it is complete.
fn parse(bytes: &[u8]) -> Option<Asked> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Asked::Refused(431)),
        Err(_) => return Some(Asked::Refused(400)),
    }
    let header = |name: &str| {
        let mut found = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let value = found.next().and_then(|header| std::str::from_utf8(header.value).ok());
        // A header that occurs twice is ignored.
        value.filter(|_| found.next().is_none()).map(|value| value.trim().to_owned())
    };
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let asked = HttpRequest { path, if_none_match: header("if-none-match"), host: header("host") };
    Some(match request.method {
        Some("GET") => Asked::Get(asked),
        Some("HEAD") => Asked::Head(asked),
        _ => Asked::Refused(405),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> Option<u16> {
        match parse(bytes) {
            Some(Asked::Refused(status)) => Some(status),
            _ => None,
        }
    }

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        let whole = b"GET /a?b=c HTTP/1.1\r\nHOST:  localhost:9 \r\nIf-None-Match: \"1\"\r\n\r\n";
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_none(), "{cut}");
        }
        let Some(Asked::Get(request)) = parse(whole) else { panic!("no request") };
        assert_eq!((request.path.as_str(), request.host.as_deref()), ("/a", Some("localhost:9")));
        assert_eq!(request.if_none_match.as_deref(), Some("\"1\""));
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let own = |host: &str, reached: &str| is_own(host, reached.parse().unwrap(), "node1");
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:8080", "[::1]", "[::1]:9", "Node1:9"] {
            assert!(own(host, "127.0.0.1") && own(host, "10.0.0.1"), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil:1",
            "node1.evil",
            "",
            ":80",
            "a@127.0.0.1",
            "10.0.0.9",
        ] {
            assert!(!own(host, "127.0.0.1") && !own(host, "10.0.0.1"), "{host}");
        }
        // A scraper on another machine asks by the address.
        assert!(own("10.0.0.1:9", "10.0.0.1") && own("[fd00::1]:9", "fd00::1") && own("10.0.0.1", "::ffff:10.0.0.1"));
        assert!(!is_own(":9", "10.0.0.1".parse().unwrap(), ""));
    }

    /// Opens the maximum number of connections, none of which has sent a request.
    fn filled(listener: &TcpListener, open: &Arc<Open>) -> Vec<(TcpStream, Occupied)> {
        let connect = |_| {
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let place = Open::enter(open, &listener.accept().unwrap().0).unwrap();
            (client, place)
        };
        (0..CONNECTIONS_MAX).map(connect).collect()
    }

    #[test]
    fn the_oldest_that_has_not_asked_gives_way_and_none_that_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = Arc::new(Open::default());
        let clients = filled(&listener, &open);
        assert!(clients[0].1.asked());
        let mut late = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        let place = Open::enter(&open, &accepted).expect("the second gives way");
        assert!(!clients[1].1.asked() && clients[2].1.asked() && clients[0].1.asked());
        assert_eq!((&clients[1].0).read(&mut [0]).unwrap(), 0, "it is closed");
        assert!(clients[3..].iter().all(|(_, place)| place.asked()) && place.asked());
        assert!(Open::enter(&open, &accepted).is_none(), "all are being answered");
        drop(clients);
        assert_eq!(open.lock().len(), 1);
        drop((place, accepted));
        assert!(open.lock().is_empty());
        assert_eq!(late.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(refusal(b"POST / HTTP/1.1\r\n\r\n"), Some(405));
        assert_eq!(refusal(b"\x16\x03\x01\x02\x00\x01\x00"), Some(400));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(refusal(many.as_bytes()), Some(431));
        let Some(Asked::Get(twice)) = parse(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n") else {
            panic!("no request")
        };
        assert_eq!(twice.host, None, "two names are none");
    }
}
