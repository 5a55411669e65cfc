//! Messages in a file: what an acknowledgement of the peer is worth is known from its script.
//!
//! With a store, data messages are not passed on as they come: a subscriber gets those that the file held when the
//! server was started. So what a server loses when it is killed, or when its power is cut, is what the script says.

use crate::routes::{Filter, KeptAddress};
use pubmark_model::header::{Header, MAX_SEQUENCE};
use serde::Deserialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Bytes before a record's topic and payload: both lengths, the quality of service, and the checksum.
const HEAD: usize = 4 + 4 + 1 + 8;

/// When the file is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreSync {
    /// Before each message is acknowledged.
    Before,
    /// Never: the kernel writes it when it likes.
    Never,
    /// Before each message of a publisher is acknowledged whose number, from 1, is a multiple of this. At least 1.
    Every(u32),
}

/// The store of a script.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorePlan {
    /// The file; made if it is missing.
    pub file: PathBuf,
    /// When it is synced.
    pub sync: StoreSync,
}

/// A stored message.
#[derive(Debug)]
pub struct StoredMessage {
    /// Where it goes.
    pub to: KeptAddress,
    /// Its payload.
    pub payload: Box<[u8]>,
    /// Quality of service of its publisher.
    pub qos: u8,
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    file: File,
    sync: StoreSync,
    /// Messages that the file held when it was opened.
    found: Vec<StoredMessage>,
}

impl Store {
    /// Opens a store. What follows the last whole record is cut off.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(plan: &StorePlan) -> io::Result<Store> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&plan.file)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (mut found, mut done) = (Vec::new(), 0);
        while let Some((message, used)) = bytes.get(done..).and_then(read_record) {
            found.push(message);
            done += used;
        }
        file.set_len(done as u64)?;
        Ok(Store { file, sync: plan.sync, found })
    }

    /// Returns true if a message is stored and not passed on: only data is.
    pub fn takes(&self, payload: &[u8]) -> bool {
        Header::read(payload).is_some_and(|header| header.sequence < MAX_SEQUENCE)
    }

    /// Stores a message, and syncs the file if it is time.
    ///
    /// # Errors
    /// If it is not stored: it must not be acknowledged then.
    pub fn put(&mut self, topic: &[u8], payload: &[u8], qos: u8) -> io::Result<()> {
        self.file.write_all(&record(topic, payload, qos))?;
        let number = Header::read(payload).map_or(0, |header| u64::from(header.sequence) + 1);
        match self.sync {
            StoreSync::Never => Ok(()),
            StoreSync::Every(count) if !number.is_multiple_of(u64::from(count.max(1))) => Ok(()),
            StoreSync::Before | StoreSync::Every(_) => self.file.sync_data(),
        }
    }

    /// Returns the messages of an earlier life of the server that a subscriber with this filter gets.
    pub fn found<'a>(&'a self, filter: Filter<'a>) -> impl Iterator<Item = &'a StoredMessage> {
        self.found.iter().filter(move |message| filter.holds(message.to.get().topic))
    }
}

/// FNV-1a with 64 bits: damage is found, no attack is.
fn checksum(parts: [&[u8]; 3]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, mix)
}

fn record(topic: &[u8], payload: &[u8], qos: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + topic.len() + payload.len());
    out.extend((topic.len() as u32).to_le_bytes());
    out.extend((payload.len() as u32).to_le_bytes());
    out.push(qos);
    out.extend(checksum([&[qos], topic, payload]).to_le_bytes());
    out.extend(topic);
    out.extend(payload);
    out
}

/// Reads a record, and returns its length; `None` if there is no whole one.
fn read_record(bytes: &[u8]) -> Option<(StoredMessage, usize)> {
    let (topic_bytes, rest) = bytes.split_first_chunk::<4>()?;
    let (payload_bytes, rest) = rest.split_first_chunk::<4>()?;
    let (&qos, rest) = rest.split_first()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let (topic, rest) = rest.split_at_checked(u32::from_le_bytes(*topic_bytes) as usize)?;
    let payload = rest.get(..u32::from_le_bytes(*payload_bytes) as usize)?;
    let is_whole = checksum([&[qos], topic, payload]) == u64::from_le_bytes(*sum);
    let to = crate::routes::Address::of(topic).kept();
    is_whole.then(|| (StoredMessage { to, payload: payload.into(), qos }, HEAD + topic.len() + payload.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(store: &Store) -> Vec<&[u8]> {
        store.found(Filter::Below(b"t")).map(|message| message.to.get().topic).collect()
    }

    #[test]
    fn whole_records_are_found_again_and_what_is_torn_is_cut_off() {
        let place = tempfile::tempdir().unwrap();
        let plan = StorePlan { file: place.path().join("store"), sync: StoreSync::Every(2) };
        let mut store = Store::open(&plan).unwrap();
        assert!(topics(&store).is_empty());
        store.put(b"ta", b"payload", 1).unwrap();
        store.put(b"tb", b"", 2).unwrap();
        drop(store);
        let whole = std::fs::read(&plan.file).unwrap();
        let torn = record(b"tc", b"lost", 1);
        for tail in [&torn[..torn.len() - 1], &torn[..3], &[0; 64], &[255; 64]] {
            std::fs::write(&plan.file, [&whole[..], tail].concat()).unwrap();
            let store = Store::open(&plan).unwrap();
            assert_eq!(topics(&store), [b"ta", b"tb"]);
            assert_eq!(store.found(Filter::Exact(b"ta")).next().unwrap().payload[..], *b"payload");
            assert_eq!(std::fs::read(&plan.file).unwrap(), whole);
        }
    }
}
