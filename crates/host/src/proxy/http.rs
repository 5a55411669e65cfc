//! The few requests that the proxy of a link understands: HTTP/1.1 on loopback, with a
//! connection for each.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time limit of a request with its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of an answer, bytes.
const MAX_ANSWER: usize = 256 << 10;

/// The proxy's control interface.
pub struct Api {
    /// Its port on 127.0.0.1.
    pub port: u16,
}

/// The reason why a request to the proxy failed.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The proxy was not reached, or does not answer in time.
    #[error("its proxy: {0}")]
    Io(#[from] std::io::Error),
    /// The proxy refuses.
    #[error("its proxy answers {path} with `{answer}`")]
    Refused {
        /// Path of the request.
        path: String,
        /// The proxy's answer.
        answer: String,
    },
    /// Another process holds the port, so clients would not reach the proxy.
    #[error("port {0} is held by another process")]
    PortHeld(u16),
}

impl Api {
    /// Sends a document, as POST or PATCH. An error contains the proxy's answer.
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Result<(), ProxyError> {
        let answer = self.exchange(method, path, &body.to_string())?;
        match status(&answer) {
            Some(200..=299) => Ok(()),
            _ => {
                let answer = answer.trim().replace("\r\n", " ");
                Err(ProxyError::Refused { path: path.to_owned(), answer })
            }
        }
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<String> {
        let deadline = Instant::now() + PATIENCE;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        // The answer ends with the connection.
        while answer.len() < MAX_ANSWER {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut piece)? {
                0 => break,
                count => answer.extend_from_slice(&piece[..count]),
            }
            if Instant::now() >= deadline {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// Returns the status of an answer: the second word of its first line.
fn status(answer: &str) -> Option<u16> {
    let line = answer.lines().next()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Returns the result of a request to a server with this answer, and the request that
    /// the server received.
    fn answered(answer: &'static str) -> (Result<(), ProxyError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"{\"a\":1}") {
                let mut piece = [0; 64];
                let count = stream.read(&mut piece).unwrap();
                heard.extend_from_slice(&piece[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(heard).unwrap()
        });
        let result = Api { port }.send("POST", "/x", &serde_json::json!({ "a": 1 }));
        (result, server.join().unwrap())
    }

    #[test]
    fn an_answer_counts_by_its_status() {
        let (done, heard) = answered("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}");
        assert!(done.is_ok(), "{done:?}");
        assert!(heard.starts_with("POST /x HTTP/1.1\r\n") && heard.contains("Content-Length: 7\r\n"), "{heard}");
        let (refused, _) = answered("HTTP/1.1 409 Conflict\r\n\r\n{\"error\":\"proxy already exists\"}");
        assert!(matches!(refused, Err(ProxyError::Refused { answer, .. }) if answer.contains("already exists")));
        for garbage in ["", "SMTP ready\r\n", "HTTP/1.1\r\n"] {
            assert!(answered(garbage).0.is_err(), "{garbage:?}");
        }
    }

    #[test]
    fn nobody_there_is_an_error() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(Api { port }.send("POST", "/x", &Value::Null).is_err());
    }
}
