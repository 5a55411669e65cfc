//! An HTTP client for small documents: a connection for each request, and a time limit.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Maximum length of a reply, bytes. The rest is not read.
const REPLY_BYTES_MAX: usize = 256 << 10;
/// Bytes per write, so that a deadline is noticed.
const PIECE: usize = 64 << 10;

/// Maximum length of a document that is asked for, bytes.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// A reply.
#[derive(Debug)]
pub struct HttpReply {
    /// Its status code; `None` if it is not HTTP.
    pub status: Option<u16>,
    /// The whole reply, with its head.
    pub text: String,
}

impl HttpReply {
    /// Returns the text in one line, for an error.
    pub fn line(&self) -> String {
        self.text.trim().replace("\r\n", " ")
    }
}

/// A request with a JSON document as its body.
#[derive(Clone, Copy, Debug)]
pub struct JsonRequest<'a> {
    /// `POST`, `PATCH` or another method.
    pub method: &'a str,
    /// Value of the `Host` header.
    pub host: &'a str,
    /// The path, from the first `/`.
    pub path: &'a str,
    /// The document.
    pub body: &'a str,
}

impl JsonRequest<'_> {
    /// Sends the request, and reads the reply up to its end.
    ///
    /// # Errors
    /// The address is not reached, or the reply does not end within `patience`.
    pub fn send(&self, address: SocketAddr, patience: Duration) -> std::io::Result<HttpReply> {
        let JsonRequest { method, host, path, body } = self;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        let text = exchange(address, &(head + body), REPLY_BYTES_MAX, patience)?;
        Ok(HttpReply { status: status(&text), text })
    }
}

/// Returns the document at a URL `http://HOST:PORT/PATH`, whatever the status of the reply.
///
/// # Errors
/// The URL has another form, its host is not reached, or the reply does not end within `patience`.
pub fn get(url: &str, patience: Duration) -> std::io::Result<String> {
    let malformed = || Error::other("write http://HOST:PORT/PATH");
    let rest = url.strip_prefix("http://").ok_or_else(malformed)?;
    let (host, path) = rest.split_once('/').ok_or_else(malformed)?;
    let address = host.to_socket_addrs()?.next().ok_or_else(malformed)?;
    // A reply of HTTP 1.0 has no chunks.
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
    let reply = exchange(address, &request, DOCUMENT_BYTES_MAX, patience)?;
    let body = reply.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| Error::other("the reply has no end of its head"))
}

/// Sends a request, and returns at most so many bytes of the reply, which ends with the connection.
fn exchange(address: SocketAddr, request: &str, most_bytes: usize, patience: Duration) -> std::io::Result<String> {
    let deadline = Instant::now() + patience;
    let left = || match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(Error::from(ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    for piece in request.as_bytes().chunks(PIECE) {
        stream.set_write_timeout(Some(left()?))?;
        stream.write_all(piece)?;
    }
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    while reply.len() < most_bytes {
        let read = left().and_then(|left| {
            stream.set_read_timeout(Some(left))?;
            stream.read(&mut piece)
        });
        match read {
            Ok(0) => break,
            Ok(count) => reply.extend_from_slice(&piece[..count]),
            // Some servers keep the connection open.
            Err(_) if status(&String::from_utf8_lossy(&reply)).is_some() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&reply).into_owned())
}

/// Returns the status of a reply: the second word of its first line.
fn status(reply: &str) -> Option<u16> {
    let line = reply.lines().next()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}
