//! A consumer: its position, and the answer that is arriving.

use super::names::{ClientNames, EXPECTED, GREETING};
use super::refusal::refused;
use super::settings::KafkaSettings;
use crate::drivers::foreign_peer::foreign;
use crate::session::{SessionError, SessionEvent};
use pubmark_wire::kafka::{FetchItem, FetchReader, KafkaRequest, NO_ERROR, RequestFrame};

/// The consumer of one partition.
#[derive(Default)]
pub(super) struct Consumer {
    reader: FetchReader,
    /// Offset of the next record; `None` before the first position is known.
    next: Option<i64>,
}

impl Consumer {
    /// Begins at an offset, unless there is a position already.
    pub(super) fn begin(&mut self, offset: i64) {
        self.next.get_or_insert(offset);
    }

    /// Forgets the connection.
    pub(super) fn resume(&mut self) {
        self.reader = FetchReader::default();
    }

    pub(super) fn announced(&self, rest: &[u8]) -> u64 {
        self.reader.announced(rest)
    }

    /// Appends the next fetch.
    pub(super) fn fetch(&self, settings: &KafkaSettings, names: &ClientNames, out: &mut Vec<u8>) {
        let KafkaSettings { max_wait_ms, min_bytes, max_bytes, .. } = *settings;
        let (topic, partition, offset) = (names.topic.as_bytes(), 0, self.next.unwrap_or(0));
        let request = KafkaRequest::Fetch { max_wait_ms, min_bytes, max_bytes, topic, partition, offset };
        RequestFrame { correlation: GREETING, client: names.client.as_bytes(), request }.put(out);
    }

    /// Reads answers to fetches, and asks again at the end of each. Returns the consumed bytes.
    pub(super) fn input(
        &mut self,
        settings: &KafkaSettings,
        names: &ClientNames,
        bytes: &[u8],
        out: &mut Vec<u8>,
        heard: &mut dyn FnMut(SessionEvent<'_>),
    ) -> Result<usize, SessionError> {
        let mut taken = 0;
        // Only listeners, which are given their topic, need its name.
        let topic = if names.is_given { names.topic.as_bytes() } else { b"" };
        loop {
            let rest = &bytes[taken..];
            let (used, item) = self.reader.next(rest).map_err(|why| foreign(EXPECTED, rest, &why.0))?;
            taken += used;
            match item {
                None => return Ok(taken),
                Some(FetchItem::Head(head)) => {
                    if head.correlation != GREETING {
                        return Err(foreign(EXPECTED, rest, "the answer is to a fetch that was not made"));
                    }
                    if head.error != NO_ERROR {
                        return Err(refused("a fetch", head.error, None));
                    }
                }
                Some(FetchItem::Record(offset, record)) => {
                    // A batch may begin before the position.
                    if self.next.is_none_or(|next| offset >= next) {
                        self.next = Some(offset.saturating_add(1));
                        let payload = record.value.unwrap_or_default();
                        heard(SessionEvent::Message { topic, payload, is_retained: false });
                    }
                }
                Some(FetchItem::Passed(next)) => self.next = self.next.max(Some(next)),
                Some(FetchItem::End) => self.fetch(settings, names, out),
            }
        }
    }
}
