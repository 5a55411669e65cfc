//! TLS 1.2 and 1.3 over a non-blocking socket.

mod files;
mod offer;
mod trust;
mod words;

use super::errors::denied;
use crate::clock;
pub use files::TlsError;
pub use offer::Negotiated;
use pubmark_model::options::Options;
use pubmark_model::units::Ns;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use words::refusal;

/// Maximum length of a TLS record, bytes (RFC 8446, section 5.2).
const RECORD_BYTES: usize = (16 << 10) + 256;

/// Maximum plaintext in one record, bytes (section 5.1).
const FRAGMENT_BYTES: usize = 16 << 10;

/// TLS settings that all connections share.
#[derive(Clone, Debug)]
pub struct TlsDial {
    /// One for all clients, or one for each.
    configs: Arc<[Arc<ClientConfig>]>,
    name: ServerName<'static>,
    /// True if the server sends its first line in plain text and the handshake follows.
    pub after_first_line: bool,
}

impl TlsDial {
    /// Makes the settings for a server that must prove to be `host`, a name or an
    /// address, by a certificate signed by a CA of `tls_ca`; without that option, by a CA
    /// that the system trusts. A server that asks for a client certificate gets
    /// `tls_cert`, of which each of `clients` has its own if the path says so. Clients offer the version of `tls_version` and the cipher suite of
    /// `tls_cipher`; without these options, all that are known.
    ///
    /// Sessions are not resumed: clients of a benchmark represent separate clients, and
    /// each of them costs the server a full handshake.
    pub fn new(host: &str, options: &Options, clients: usize) -> Result<TlsDial, TlsError> {
        let versions = offer::versions(options)?;
        let mut provider = rustls::crypto::ring::default_provider();
        offer::restrict(&mut provider, &versions, options)?;
        let provider = Arc::new(provider);
        let trust = files::trust(options, &provider)?;
        let identities = files::identities(options, &provider, clients)?;
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
        let unshown =
            builder.map_err(TlsError::Versions)?.dangerous().with_custom_certificate_verifier(Arc::new(trust));
        let mut plain = unshown.with_no_client_auth();
        plain.resumption = Resumption::disabled();
        let shown = |identity| {
            let mut config = plain.clone();
            config.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
            Arc::new(config)
        };
        let mut configs: Vec<Arc<ClientConfig>> = identities.into_iter().map(shown).collect();
        if configs.is_empty() {
            configs.push(Arc::new(plain));
        }
        // The zone of an address has a meaning on this machine only.
        let name = host.split('%').next().unwrap_or_default().to_owned();
        let name = ServerName::try_from(name).map_err(|source| TlsError::Name { host: host.to_owned(), source })?;
        Ok(TlsDial { configs: configs.into(), name, after_first_line: false })
    }

    /// Returns the settings of the client with this number.
    fn config(&self, client: u32) -> Arc<ClientConfig> {
        self.configs[(client as usize).min(self.configs.len() - 1)].clone()
    }
}

/// TLS over one connection.
pub struct Tls {
    stream: TcpStream,
    connection: ClientConnection,
    /// True until the first line, in plain text, has arrived.
    awaits_line: bool,
    /// Plaintext accepted last, and bytes of its ciphertext that the kernel has taken.
    taken: usize,
    written: usize,
    /// Instant at which the handshake began, 0 before that, and its length, 0 until it is over, ns.
    began_ns: Ns,
    handshake_ns: Ns,
}

impl Tls {
    pub fn new(dial: &TlsDial, client: u32, stream: TcpStream) -> io::Result<Tls> {
        let connection = ClientConnection::new(dial.config(client), dial.name.clone())
            .map_err(|error| denied(format!("TLS cannot be spoken: {}", words::of(&error))))?;
        Ok(Tls {
            stream,
            connection,
            awaits_line: dial.after_first_line,
            taken: 0,
            written: 0,
            began_ns: 0,
            handshake_ns: 0,
        })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns version and cipher suite after the handshake.
    pub fn negotiated(&self) -> Option<Negotiated> {
        Negotiated::of(&self.connection)
    }

    /// Returns the length of the handshake, ns, from the first message of the client until the last one of the server
    /// is checked.
    pub fn handshake_ns(&self) -> Option<Ns> {
        Some(self.handshake_ns).filter(|ns| *ns > 0)
    }

    /// True if ciphertext waits for the kernel.
    pub fn is_behind(&self) -> bool {
        !self.awaits_line && self.connection.wants_write()
    }

    /// Writes ciphertext, as far as the kernel takes it.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.began_ns == 0 && self.is_behind() {
            self.began_ns = clock::now();
        }
        while self.is_behind() {
            match self.connection.write_tls(&mut self.stream) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Encrypts and writes. Before the end of the handshake, bytes are only kept.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.is_behind() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = self.connection.writer().write(bytes)?;
        (self.taken, self.written) = (count, 0);
        self.flush()?;
        if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    /// Returns the accepted plaintext whose records the kernel has not taken completely,
    /// bytes: the peer cannot read a part of a record. It discards what waits, so that
    /// the connection cannot be used any more.
    pub fn abandon(&mut self) -> usize {
        let mut waiting = Vec::new();
        while self.is_behind() && self.connection.write_tls(&mut waiting).is_ok_and(|count| count > 0) {}
        held_bytes(self.taken, self.written, waiting.len())
    }

    /// Reads and decrypts. Ciphertext goes to the end of `into`, plaintext, which is
    /// shorter, to its beginning: so a large message takes few system calls, and no extra
    /// buffer.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<(usize, bool)> {
        let room = into.len() / 2;
        // An incomplete record counts too: it takes room once it is complete.
        let (plain, cipher) = into.split_at_mut(room + RECORD_BYTES.min(room / 2));
        if !self.awaits_line {
            let left = self.take_plain(plain)?;
            if left > 0 || self.has_more()? {
                return Ok((left, left > 0));
            }
        }
        loop {
            let count = match self.stream.read(cipher) {
                Ok(0) => return self.ended().map(|()| (0, false)),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    self.ended()?;
                    return Err(error);
                }
                Err(error) => return Err(error),
            };
            if self.awaits_line {
                return self.first_line(&cipher[..count], plain);
            }
            let taken = self.decrypt(&cipher[..count], plain)?;
            let more = count == cipher.len() || self.has_more()?;
            match (taken, more) {
                (0, true) if self.has_more()? => return Ok((0, false)),
                (0, true) => {}
                (0, false) => return Err(ErrorKind::WouldBlock.into()),
                _ => return Ok((taken, more)),
            }
        }
    }

    /// True if plaintext is left, or an end that has not been reported.
    fn has_more(&mut self) -> io::Result<bool> {
        let state = self.connection.process_new_packets().map_err(|error| refusal(&error, false))?;
        Ok(state.peer_has_closed() || state.plaintext_bytes_to_read() > 0)
    }

    /// Checks whether the peer may close the connection now.
    fn ended(&self) -> io::Result<()> {
        if self.connection.is_handshaking() && !self.awaits_line {
            let text = "the server closed the connection during the TLS handshake; it may not speak TLS on this port";
            return Err(io::Error::new(ErrorKind::ConnectionAborted, text));
        }
        Ok(())
    }

    /// Passes on the first line unchanged; the handshake begins.
    fn first_line(&mut self, bytes: &[u8], plain: &mut [u8]) -> io::Result<(usize, bool)> {
        let line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1).min(plain.len());
        plain[..line].copy_from_slice(&bytes[..line]);
        if bytes[line - 1] != b'\n' {
            return Ok((line, true));
        }
        self.awaits_line = false;
        self.flush()?;
        let taken = self.decrypt(&bytes[line..], &mut plain[line..])?;
        Ok((line + taken, true))
    }

    /// Consumes all of `cipher`; returns as much of its plaintext as `plain` has room
    /// for.
    fn decrypt(&mut self, mut cipher: &[u8], plain: &mut [u8]) -> io::Result<usize> {
        let mut taken = 0;
        while !cipher.is_empty() {
            self.connection.read_tls(&mut cipher)?;
            self.process()?;
            taken += self.take_plain(&mut plain[taken..])?;
        }
        Ok(taken)
    }

    /// Takes the available plaintext.
    fn take_plain(&mut self, plain: &mut [u8]) -> io::Result<usize> {
        let mut taken = 0;
        while taken < plain.len() {
            match self.connection.reader().read(&mut plain[taken..]) {
                Ok(0) => break,
                Ok(count) => taken += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn process(&mut self) -> io::Result<()> {
        let handshaking = self.connection.is_handshaking();
        let processed = self.connection.process_new_packets();
        // Sends an alert after a failure; otherwise the next handshake message and the bytes that
        // waited for its end.
        let flushed = self.flush();
        if handshaking && !self.connection.is_handshaking() {
            self.handshake_ns = clock::now().saturating_sub(self.began_ns).max(1);
        }
        match processed {
            Ok(_) => flushed,
            Err(error) => Err(refusal(&error, handshaking)),
        }
    }

    /// Closes the writing side.
    pub fn finish(&mut self) -> io::Result<()> {
        self.connection.send_close_notify();
        self.flush()
    }
}

/// Returns how many of `taken` bytes of plaintext belong to incompletely written records,
/// if `written` bytes of their ciphertext are written and `waiting` bytes are not.
fn held_bytes(taken: usize, written: usize, waiting: usize) -> usize {
    let records = taken.div_ceil(FRAGMENT_BYTES).max(1);
    let overhead = (written + waiting).saturating_sub(taken) / records;
    let (mut left, mut held) = (waiting, 0);
    while left > 0 && held < taken {
        // The last record has the remainder.
        let plain = match (taken - held) % FRAGMENT_BYTES {
            0 => FRAGMENT_BYTES,
            rest => rest,
        };
        held += plain;
        left = left.saturating_sub(plain + overhead);
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TLS 1.3 adds 22 bytes to each record.
    #[test]
    fn a_record_of_which_a_byte_waits_waits_whole() {
        let whole = FRAGMENT_BYTES + 22;
        for (taken, waiting, held) in [
            (1_000, 0, 0),
            (1_000, 1, 1_000),
            (1_000, 1_022, 1_000),
            (FRAGMENT_BYTES, 1, FRAGMENT_BYTES),
            (2 * FRAGMENT_BYTES + 10, 32, 10),
            (2 * FRAGMENT_BYTES + 10, 33, FRAGMENT_BYTES + 10),
            (2 * FRAGMENT_BYTES + 10, whole + 32, FRAGMENT_BYTES + 10),
            (2 * FRAGMENT_BYTES + 10, 2 * whole + 32, 2 * FRAGMENT_BYTES + 10),
            // The waiting bytes may contain no plaintext at all.
            (0, 100, 0),
        ] {
            let all = taken + 22 * taken.div_ceil(FRAGMENT_BYTES);
            assert_eq!(held_bytes(taken, all.saturating_sub(waiting), waiting), held, "{taken} {waiting}");
        }
    }
}
