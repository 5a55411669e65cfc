//! Kafka: topics of one partition. A topic is there once its client has asked to create it. A consumer's records are
//! those that were passed on since it asked for the end of the partition; nothing older is kept.

use super::protocol::{Ask, Hub, PublisherAnswer, Speech};
use crate::routes::{Address, Filter};
use crate::script::PeerScript;
use pubmark_wire::Malformed;
use pubmark_wire::kafka::{
    BATCH_BYTES, CreatedId, FetchHead, KafkaRecord, KafkaRequest, KafkaResponse, MetadataAnswer, NO_ERROR, NO_PRODUCER,
    POLICY_VIOLATION, PartitionAnswer, RecordBatch, RequestFrame, SASL_AUTHENTICATION_FAILED, TopicAnswer,
    UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, begin_batch, end_batch, put_fetch_head, put_record,
};
use std::collections::VecDeque;
use std::rc::Rc;

/// Text of a refused batch if the script has none.
const REFUSAL: &str = "the policy of the peer refuses it";

/// A fetch that waits for records.
struct OpenFetch {
    correlation: i32,
    offset: i64,
    max_bytes: usize,
}

/// A connection.
pub struct KafkaServer {
    denied: bool,
    script: Rc<PeerScript>,
    /// Messages received on the connection.
    published: u64,
    has_created: bool,
    /// The topic that it reads.
    topic: Box<[u8]>,
    fetch: Option<OpenFetch>,
    kept: VecDeque<Box<[u8]>>,
    kept_bytes: usize,
}

impl Speech for KafkaServer {
    const SCHEME: &'static str = "kafka";

    fn new(denied: bool) -> Self {
        KafkaServer {
            denied,
            script: Rc::default(),
            published: 0,
            has_created: false,
            topic: Box::default(),
            fetch: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    fn obey(&mut self, script: &Rc<PeerScript>) {
        self.script = script.clone();
    }

    /// The client speaks first.
    fn greet(&mut self, _: &mut Vec<u8>) -> bool {
        false
    }

    fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>, hub: &mut Hub<'_>) -> Result<usize, Malformed> {
        let mut done = 0;
        while let Some((frame, used)) = RequestFrame::decode(&bytes[done..])? {
            if let Some(response) = self.request(&frame, out, hub)? {
                response.put(frame.correlation, out);
            }
            done += used;
        }
        Ok(done)
    }

    fn deliver(&mut self, _: u32, _: Address<'_>, payload: &[u8], _: u8, out: &mut Vec<u8>) {
        self.kept_bytes += payload.len();
        self.kept.push_back(payload.into());
        self.serve(out);
    }

    fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }
}

impl KafkaServer {
    /// Carries out a request. Returns its answer; `None` if there is none, or not yet.
    fn request<'a>(
        &mut self,
        frame: &RequestFrame<'a>,
        out: &mut Vec<u8>,
        hub: &mut Hub<'_>,
    ) -> Result<Option<KafkaResponse<'a>>, Malformed> {
        Ok(Some(match frame.request {
            KafkaRequest::ApiVersions => {
                if self.denied {
                    hub(Ask::Close);
                }
                KafkaResponse::ApiVersions(if self.denied { UNKNOWN_SERVER_ERROR } else { NO_ERROR }, None)
            }
            KafkaRequest::Metadata { topic } => {
                let error = if self.has_created { NO_ERROR } else { UNKNOWN_TOPIC_OR_PARTITION };
                let partitions = u32::from(self.has_created);
                KafkaResponse::Metadata(MetadataAnswer { topic, error, partitions, brokers: 1 })
            }
            KafkaRequest::CreateTopics { topic, .. } => {
                self.has_created = true;
                KafkaResponse::CreateTopics(TopicAnswer { topic, error: NO_ERROR, words: None })
            }
            KafkaRequest::DeleteTopics { topic, .. } => {
                KafkaResponse::DeleteTopics(TopicAnswer { topic, error: NO_ERROR, words: None })
            }
            KafkaRequest::InitProducerId => {
                KafkaResponse::InitProducerId(CreatedId { error: NO_ERROR, id: 1, epoch: 0 })
            }
            KafkaRequest::SaslHandshake { .. } => KafkaResponse::SaslHandshake(NO_ERROR),
            KafkaRequest::SaslAuthenticate { .. } => KafkaResponse::SaslAuthenticate(SASL_AUTHENTICATION_FAILED, None),
            KafkaRequest::ListOffsets { topic, partition, .. } => {
                hub(Ask::Subscribe(Filter::Exact(topic), 0));
                self.topic = topic.into();
                KafkaResponse::ListOffsets(PartitionAnswer {
                    topic,
                    partition,
                    error: NO_ERROR,
                    offset: 0,
                    words: None,
                })
            }
            KafkaRequest::Fetch { offset, max_bytes, .. } => {
                let max_bytes = max_bytes.max(0) as usize;
                self.fetch = Some(OpenFetch { correlation: frame.correlation, offset, max_bytes });
                self.serve(out);
                return Ok(None);
            }
            KafkaRequest::Produce { acks, topic, partition, records, .. } => {
                let answer = self.produce(topic, records, if acks == 0 { 0 } else { 1 }, hub)?;
                let (error, words) = match answer {
                    PublisherAnswer::Acknowledged => (NO_ERROR, None),
                    PublisherAnswer::Refused => (POLICY_VIOLATION, Some(REFUSAL.as_bytes())),
                    PublisherAnswer::Nothing => return Ok(None),
                };
                if acks == 0 {
                    return Ok(None);
                }
                if let Some(words) = self.script.refuse.words.as_deref().filter(|_| error != NO_ERROR) {
                    let words = Some(words.as_bytes());
                    let refused = PartitionAnswer { topic, partition, error, offset: -1, words };
                    KafkaResponse::Produce(refused).put(frame.correlation, out);
                    return Ok(None);
                }
                KafkaResponse::Produce(PartitionAnswer { topic, partition, error, offset: 0, words })
            }
        }))
    }

    /// Passes on the records of a batch. Returns the answer to the whole batch: its worst one.
    fn produce(
        &mut self,
        topic: &[u8],
        records: &[u8],
        qos: u8,
        hub: &mut Hub<'_>,
    ) -> Result<PublisherAnswer, Malformed> {
        let short = || Malformed::new("a batch ends too early");
        let count = RecordBatch::decode(records)?.ok_or_else(short)?.count;
        let (mut at, mut worst) = (BATCH_BYTES, PublisherAnswer::Acknowledged);
        for _ in 0..count {
            let (record, used) = KafkaRecord::decode(&records[at..])?.ok_or_else(short)?;
            at += used;
            self.published += 1;
            if self.script.end.as_ref().is_some_and(|end| self.published >= end.after) {
                hub(Ask::Close);
                return Ok(PublisherAnswer::Nothing);
            }
            let payload = record.value.unwrap_or_default();
            let answer = hub(Ask::Publish { to: Address::of(topic), payload, qos }).answer;
            if answer != PublisherAnswer::Acknowledged && worst != PublisherAnswer::Nothing {
                worst = answer;
            }
        }
        Ok(worst)
    }

    /// Answers the fetch that waits, if there are records for it.
    fn serve(&mut self, out: &mut Vec<u8>) {
        if self.kept.is_empty() {
            return;
        }
        let Some(OpenFetch { correlation, offset, max_bytes }) = self.fetch.take() else { return };
        let mut records = Vec::new();
        let batch = begin_batch(&mut records, offset);
        let mut count = 0;
        while let Some(payload) = self.kept.front().filter(|_| count == 0 || records.len() < max_bytes) {
            put_record(&mut records, count, payload);
            self.kept_bytes -= payload.len();
            self.kept.pop_front();
            count += 1;
        }
        end_batch(&mut records, batch, count, NO_PRODUCER);
        let high_watermark = offset + i64::from(count);
        let records_bytes = records.len() as u32;
        let head =
            FetchHead { correlation, error: NO_ERROR, topic: &self.topic, partition: 0, high_watermark, records_bytes };
        put_fetch_head(&head, out);
        out.extend_from_slice(&records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::Handled;
    use pubmark_wire::kafka::{FetchItem, FetchReader, KafkaApi, ResponseFrame};

    const TOPIC: &[u8] = b"a.b";

    fn ask(kafka: &mut KafkaServer, request: KafkaRequest<'_>, answer: PublisherAnswer) -> (Vec<u8>, Vec<String>) {
        let (mut bytes, mut out, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        RequestFrame { correlation: 7, client: b"c", request }.put(&mut bytes);
        let hub = &mut |ask: Ask<'_>| {
            asked.push(match ask {
                Ask::Publish { payload, qos, .. } => format!("{qos} {}", payload.escape_ascii()),
                other => format!("{other:?}"),
            });
            Handled { answer, listeners: 0 }
        };
        assert_eq!(kafka.input(&bytes, &mut out, hub).unwrap(), bytes.len());
        (out, asked)
    }

    fn error(bytes: &[u8]) -> i16 {
        let (frame, _) = ResponseFrame::decode(bytes).unwrap().unwrap();
        let Ok(KafkaResponse::Produce(answer)) = KafkaResponse::decode(KafkaApi::Produce, frame.body) else {
            panic!("{bytes:?}")
        };
        answer.error
    }

    fn batch(values: &[&[u8]]) -> Vec<u8> {
        let mut records = Vec::new();
        let at = begin_batch(&mut records, 0);
        (0..).zip(values).for_each(|(index, value)| put_record(&mut records, index, value));
        end_batch(&mut records, at, values.len() as u32, NO_PRODUCER);
        records
    }

    #[test]
    fn a_batch_is_answered_as_its_worst_record_is() {
        let mut kafka = KafkaServer::new(false);
        let records = batch(&[b"x", b"y"]);
        let produce =
            |acks| KafkaRequest::Produce { acks, timeout_ms: 1, topic: TOPIC, partition: 0, records: &records };
        let (out, asked) = ask(&mut kafka, produce(-1), PublisherAnswer::Acknowledged);
        assert_eq!((error(&out), asked), (NO_ERROR, vec!["1 x".to_owned(), "1 y".to_owned()]));
        assert_eq!(error(&ask(&mut kafka, produce(1), PublisherAnswer::Refused).0), POLICY_VIOLATION);
        assert!(ask(&mut kafka, produce(1), PublisherAnswer::Nothing).0.is_empty());
        let (out, asked) = ask(&mut kafka, produce(0), PublisherAnswer::Acknowledged);
        assert!(out.is_empty() && asked == ["0 x", "0 y"]);
    }

    #[test]
    fn a_fetch_waits_for_records_and_records_for_a_fetch() {
        let mut kafka = KafkaServer::new(false);
        let ok = PublisherAnswer::Acknowledged;
        let (_, asked) = ask(&mut kafka, KafkaRequest::ListOffsets { topic: TOPIC, partition: 0, time: -1 }, ok);
        assert_eq!(asked.len(), 1);
        let fetch = |offset| KafkaRequest::Fetch {
            max_wait_ms: 1,
            min_bytes: 1,
            max_bytes: 75,
            topic: TOPIC,
            partition: 0,
            offset,
        };
        assert!(ask(&mut kafka, fetch(5), ok).0.is_empty());
        let mut out = Vec::new();
        for payload in [&b"first"[..], b"second", b"third", b"fourth"] {
            kafka.deliver(0, Address::of(TOPIC), payload, 0, &mut out);
        }
        assert_eq!(kafka.kept_bytes(), 17);
        out.extend(ask(&mut kafka, fetch(6), ok).0);
        let (mut reader, mut taken, mut read) = (FetchReader::default(), 0, Vec::new());
        while let (used, Some(item)) = reader.next(&out[taken..]).unwrap() {
            taken += used;
            if let FetchItem::Record(offset, record) = item {
                read.push((offset, record.value.unwrap().to_vec()));
            }
        }
        let wanted = [(5, &b"first"[..]), (6, b"second"), (7, b"third")];
        assert_eq!(read, wanted.map(|(offset, value)| (offset, value.to_vec())));
        assert_eq!(kafka.kept_bytes(), 6);
    }
}
