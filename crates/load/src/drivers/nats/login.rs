//! Authentication of NATS clients: by a token, by user and password, or by signing the
//! server's nonce (an nkey, or a file of credentials with a token that its account has
//! signed).

use crate::drivers::option_file::read_file;
use crate::session::SettingsError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::{OptionValues, Options};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::Value;

/// Maximum length of a key file that is read, bytes.
const MOST_BYTES: u64 = 64 << 10;
/// Prefix in the first five bits of a seed.
const SEED: u8 = 18 << 3;
/// Type in the next eight bits of a seed: a user.
const USER: u8 = 20 << 3;
/// Bytes of a seed: two of prefix, 32 of the key, and a checksum at the end.
const SEED_BYTES: usize = 36;

/// A signing key, and the field of CONNECT that identifies it.
pub struct Signer {
    key: Ed25519KeyPair,
    field: &'static str,
    name: String,
}

/// Writes the credentials that do not depend on the server into `connect`. Returns the
/// signer if the server has to speak first.
pub fn read(endpoint: &Endpoint, options: &Options, connect: &mut Value) -> Result<Option<Signer>, SettingsError> {
    let password = endpoint.password.as_deref().or(options.text("password"));
    let (user, token) = match (endpoint.user.as_deref().filter(|user| !user.is_empty()), password) {
        // As in all NATS clients, a single value before the host is a token.
        (Some(token), None) => (None, Some(token)),
        (user, _) => (user.or(options.text("username")), options.text("token")),
    };
    let [nkey, creds] = ["nkey", "creds"].map(|name| options.text(name));
    let named = [("a token", token), ("a user name", user), ("nkey", nkey), ("creds", creds)];
    let mut given = named.iter().filter(|(_, given)| given.is_some()).map(|(name, _)| *name);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(format!("both {one} and {other} are given: write either").into());
    }
    if let Some(token) = token {
        connect["auth_token"] = token.into();
    } else if let Some(user) = user {
        connect["user"] = user.into();
        connect["pass"] = password.unwrap_or_default().into();
    } else if password.is_some() {
        return Err("a password needs a user name: write nats://USER:PASSWORD@HOST, or set username".into());
    }
    match (nkey, creds) {
        (Some(path), _) => of_seed(path).map(Some),
        (_, Some(path)) => of_credentials(path).map(Some),
        _ => Ok(None),
    }
}

impl Signer {
    /// Adds the client's identity and its signature of `nonce` to CONNECT.
    pub fn sign(&self, nonce: &str, connect: &mut Value) {
        connect[self.field] = self.name.as_str().into();
        connect["sig"] = URL_SAFE_NO_PAD.encode(self.key.sign(nonce.as_bytes())).into();
    }
}

/// Reads a file with a seed on its own line.
fn of_seed(path: &str) -> Result<Signer, SettingsError> {
    let text = read_file("nkey", path, MOST_BYTES)?;
    let lines = || text.lines().map(str::trim);
    let seed = lines().find(|line| line.starts_with('S')).ok_or_else(|| {
        let hint = if lines().any(|line| line.starts_with('U')) { " It holds the public key." } else { "" };
        format!(
            "nkey: {path} holds no seed: it should have a line that begins with SU, as `nk -gen user` makes it.{hint}"
        )
    })?;
    let key = key_of(seed).map_err(|why| format!("nkey: {path}: {why}"))?;
    let name = public_name(key.public_key().as_ref());
    Ok(Signer { key, field: "nkey", name })
}

/// Reads a file as `nsc generate creds` makes it: a token and a seed, each between
/// markers.
fn of_credentials(path: &str) -> Result<Signer, SettingsError> {
    let text = read_file("creds", path, MOST_BYTES)?;
    let section = |mark: &str| {
        let mut lines = text.lines().map(str::trim).skip_while(|line| !(line.contains("BEGIN") && line.contains(mark)));
        lines.next()?;
        lines.find(|line| !line.is_empty()).filter(|line| !line.starts_with('-'))
    };
    let lacks =
        |what: &str| format!("creds: {path} holds no {what}: it should be a file as `nsc generate creds` makes it");
    let name = section("USER JWT").ok_or_else(|| lacks("user JWT"))?.to_owned();
    let seed = section("USER NKEY SEED").ok_or_else(|| lacks("seed of a user"))?;
    let key = key_of(seed).map_err(|why| format!("creds: {path}: {why}"))?;
    Ok(Signer { key, field: "jwt", name })
}

/// Returns the key of a user's seed. The error does not repeat any part of it.
fn key_of(seed: &str) -> Result<Ed25519KeyPair, &'static str> {
    const BROKEN: &str = "its seed is broken: copy it again";
    let bytes = from_base32(seed).filter(|bytes| bytes.len() == SEED_BYTES).ok_or(BROKEN)?;
    let (content, checksum) = bytes.split_at(SEED_BYTES - 2);
    if checksum != crc16(content).to_le_bytes() {
        return Err(BROKEN);
    }
    let (is_seed, whose) = (content[0] & 0xf8, (content[0] & 7) << 5 | (content[1] & 0xf8) >> 3);
    match (is_seed, whose) {
        (SEED, USER) => Ed25519KeyPair::from_seed_unchecked(&content[2..]).map_err(|_| BROKEN),
        (SEED, _) => Err("its seed is not a user's: one of a user begins with SU"),
        _ => Err(BROKEN),
    }
}

/// Returns a user's public key in the form that the server uses.
fn public_name(key: &[u8]) -> String {
    let mut bytes = vec![USER];
    bytes.extend_from_slice(key);
    let checksum = crc16(&bytes).to_le_bytes();
    bytes.extend_from_slice(&checksum);
    to_base32(&bytes)
}

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Encodes in base 32 without padding (RFC 4648, section 6).
fn to_base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in bytes {
        (held, bits) = (held << 8 | u32::from(*byte), bits + 8);
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(ALPHABET[(held >> bits) as usize & 31]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        out.push(char::from(ALPHABET[(held << (5 - bits)) as usize & 31]));
    }
    out
}

pub fn from_base32(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)? as u32;
        (held, bits) = (held << 5 | value, bits + 5);
        if bits >= 8 {
            bits -= 8;
            out.push((held >> bits) as u8);
        }
        held &= (1 << bits) - 1;
    }
    Some(out)
}

/// Computes CRC-16/XMODEM, the checksum of nkeys.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| if crc & 0x8000 > 0 { crc << 1 ^ 0x1021 } else { crc << 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key pair of NATS's own documentation.
    const DOCUMENTED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn a_seed_gives_the_public_key_that_its_makers_print() {
        assert_eq!(public_name(key_of(DOCUMENTED).unwrap().public_key().as_ref()), PUBLIC);
        assert_eq!(to_base32(&from_base32(PUBLIC).unwrap()), PUBLIC);
        // The check value of CRC-16/XMODEM.
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn what_is_no_users_seed_is_refused_and_not_repeated() {
        let changed = DOCUMENTED.replace("CSSL", "CSSM");
        for (seed, says) in [(&*changed, "broken"), ("SU", "broken"), (PUBLIC, "broken"), ("S!", "broken")] {
            let why = key_of(seed).err().unwrap();
            assert!(why.contains(says) && !why.contains(seed), "{seed}: {why}");
        }
        let mut bytes = from_base32(DOCUMENTED).unwrap();
        // The prefix of an account, with its checksum.
        bytes[..2].copy_from_slice(&[SEED, 0]);
        let checksum = crc16(&bytes[..34]).to_le_bytes();
        bytes[34..].copy_from_slice(&checksum);
        assert!(key_of(&to_base32(&bytes)).err().unwrap().contains("not a user's"));
    }
}
