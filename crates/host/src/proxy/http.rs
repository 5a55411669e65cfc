//! The few requests that the proxy of a link understands: HTTP/1.1 on loopback, with a
//! connection for each.

use crate::http::{HttpReply, JsonRequest};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Time limit of a request with its answer.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let reply = self.exchange(method, path, &body.to_string())?;
        match reply.status {
            Some(200..=299) => Ok(()),
            _ => Err(ProxyError::Refused { path: path.to_owned(), answer: reply.line() }),
        }
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<HttpReply> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        JsonRequest { method, host: &address.to_string(), path, body }.send(address, PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
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
