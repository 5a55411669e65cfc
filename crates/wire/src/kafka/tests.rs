use super::*;
use crate::Malformed;
use proptest::prelude::*;
use std::collections::BTreeMap;

mod group;

const TOPIC: &[u8] = b"pubmark.r.0";
const LONG: [u8; 200] = [b'x'; 200];
const IDENTITY: ProducerIdentity = ProducerIdentity { id: 4711, epoch: 3, sequence: 12 };

/// Returns the messages that Kafka's own classes wrote (`Vectors.java`), by name.
fn vectors() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = include_str!("vectors.txt").lines().map(|line| line.split_once(' ').unwrap());
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    lines.map(|(name, hex)| (name, hex.as_bytes().chunks(2).map(byte).collect())).collect()
}

fn batch(base_offset: i64, producer: ProducerIdentity, values: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = begin_batch(&mut out, base_offset);
    for (index, value) in (0..).zip(values) {
        let before = out.len();
        put_record(&mut out, index, value);
        assert_eq!(out.len() - before, record_bytes(index, None, value.len()));
    }
    end_batch(&mut out, at, values.len() as u32, producer);
    out
}

fn requests<'a>(vectors: &'a BTreeMap<&'static str, Vec<u8>>) -> Vec<(&'static str, KafkaRequest<'a>)> {
    let (timeout_ms, topic, partition) = (30_000, TOPIC, 0);
    let produce = |records| KafkaRequest::Produce { acks: -1, timeout_ms, topic, partition, records };
    vec![
        ("produce", produce(&vectors["batch"])),
        ("produce-idempotent", produce(&vectors["batch-idempotent"])),
        ("list-offsets", KafkaRequest::ListOffsets { topic, partition, time: LATEST }),
        ("metadata", KafkaRequest::Metadata { topic }),
        ("api-versions", KafkaRequest::ApiVersions),
        ("create-topics", KafkaRequest::CreateTopics { topic, partitions: 1, timeout_ms }),
        ("delete-topics", KafkaRequest::DeleteTopics { topic, timeout_ms }),
        ("init-producer-id", KafkaRequest::InitProducerId),
        ("sasl-handshake", KafkaRequest::SaslHandshake { mechanism: b"PLAIN" }),
        ("sasl-authenticate", KafkaRequest::SaslAuthenticate { login: b"\0u\0p" }),
    ]
}

fn responses() -> Vec<(&'static str, KafkaResponse<'static>)> {
    let (topic, partition) = (TOPIC, 0);
    let at = |error, offset, words| PartitionAnswer { topic, partition, error, offset, words };
    let of = |error, words| TopicAnswer { topic, error, words };
    vec![
        ("produce", KafkaResponse::Produce(at(NO_ERROR, 41, None))),
        ("produce-error", KafkaResponse::Produce(at(INVALID_RECORD, 41, Some(b"one is bad")))),
        ("list-offsets", KafkaResponse::ListOffsets(at(NO_ERROR, 41, None))),
        ("metadata", KafkaResponse::Metadata(MetadataAnswer { topic, error: NO_ERROR, partitions: 1, brokers: 1 })),
        ("api-versions", KafkaResponse::ApiVersions(NO_ERROR, Some(KafkaApi::CreateTopics))),
        ("create-topics", KafkaResponse::CreateTopics(of(TOPIC_ALREADY_EXISTS, Some(b"it exists")))),
        ("delete-topics", KafkaResponse::DeleteTopics(of(UNKNOWN_TOPIC_OR_PARTITION, None))),
        ("init-producer-id", KafkaResponse::InitProducerId(CreatedId { error: NO_ERROR, id: 4711, epoch: 3 })),
        ("sasl-handshake", KafkaResponse::SaslHandshake(UNSUPPORTED_SASL_MECHANISM)),
        ("sasl-authenticate", KafkaResponse::SaslAuthenticate(SASL_AUTHENTICATION_FAILED, Some(b"wrong"))),
    ]
}

fn api(name: &str) -> KafkaApi {
    let name = name.strip_suffix("-error").unwrap_or(name);
    requests(&vectors()).into_iter().find(|(other, _)| *other == name).map(|(_, request)| request.api()).unwrap()
}

#[test]
fn batches_are_those_of_kafka() {
    let vectors = vectors();
    assert_eq!(batch(0, NO_PRODUCER, &[b"hello", b"", &LONG]), vectors["batch"]);
    assert_eq!(batch(0, IDENTITY, &[b"hello"]), vectors["batch-idempotent"]);
    let head = RecordBatch::decode(&vectors["batch-idempotent"]).unwrap().unwrap();
    assert_eq!((head.producer, head.count, head.codec()), (IDENTITY, 1, None));
    assert_eq!(head.batch_bytes as usize, vectors["batch-idempotent"].len());
    let old = [&[0; 16][..], &[1]].concat();
    assert!(RecordBatch::decode(&old).is_err_and(|why| why.0.contains("format 1")));
}

#[test]
fn records_with_keys_are_those_of_kafka_and_are_read_back() {
    let vector = &vectors()["batch-keyed"];
    let records = [(&b"17"[..], &b"hello"[..]), (b"", b""), (&LONG, &LONG)];
    let mut out = Vec::new();
    let at = begin_batch(&mut out, 0);
    for (index, (key, value)) in (0..).zip(records) {
        let before = out.len();
        let (front, rest) = value.split_at(value.len() / 2);
        put_record_of(&mut out, index, Some(key), [front, rest]);
        assert_eq!(out.len() - before, record_bytes(index, Some(key), value.len()));
    }
    end_batch(&mut out, at, 3, NO_PRODUCER);
    assert_eq!(&out, vector);
    let mut rest = &vector[BATCH_BYTES..];
    for (key, value) in records {
        let (record, used) = KafkaRecord::decode(rest).unwrap().unwrap();
        assert_eq!((record.key, record.value), (Some(key), Some(value)));
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
}

/// The hashes are those of Kafka's own test (`UtilsTest.testMurmur2`), the partitions those of its class.
#[test]
fn keys_go_to_the_partitions_of_kafkas_default_partitioner() {
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ] {
        assert_eq!(partitioner::murmur2(key.as_bytes()) as i32, hash, "{key}");
    }
    for partitions in [1, 4, 64] {
        let found: Vec<u8> =
            (0..50).map(|key: u32| partition_of(key.to_string().as_bytes(), partitions) as u8).collect();
        assert_eq!(found, vectors()[&*format!("partitions-of-{partitions}")]);
    }
}

#[test]
fn requests_are_those_of_kafka_and_are_read_back() {
    let vectors = vectors();
    for (name, request) in requests(&vectors) {
        let wanted = &vectors[&*format!("{name}-request")];
        let whole = RequestFrame { correlation: 7, client: b"pbrp0", request };
        let mut out = Vec::new();
        whole.put(&mut out);
        assert_eq!(&out, wanted, "{name}");
        assert_eq!(RequestFrame::decode(wanted), Ok(Some((whole, wanted.len()))), "{name}");
        for cut in 0..wanted.len() {
            assert_eq!(RequestFrame::decode(&wanted[..cut]), Ok(None), "{name} cut at {cut}");
        }
    }
}

#[test]
fn a_fetch_of_one_or_several_partitions_is_written_and_read_back() {
    let limits = FetchLimits { max_wait_ms: 500, min_bytes: 1, max_bytes: 1 << 20 };
    for positions in [vec![(0, 41)], vec![(0, 41), (2, 0), (5, i64::MAX)]] {
        let mut out = Vec::new();
        put_fetch(&mut out, 7, b"pbrp0", limits, TOPIC, positions.iter().copied());
        if positions.len() == 1 {
            assert_eq!(out, vectors()["fetch-request"]);
        }
        let (frame, used) = RequestFrame::decode(&out).unwrap().unwrap();
        let KafkaRequest::Fetch { partitions, limits: read, topic } = frame.request else { panic!("{frame:?}") };
        assert_eq!((partitions.iter().collect::<Vec<_>>(), read, topic, used), (positions, limits, TOPIC, out.len()));
        let mut again = Vec::new();
        frame.put(&mut again);
        assert_eq!(again, out);
    }
}

#[test]
fn a_produce_request_is_written_in_place() {
    let mut out = b"before".to_vec();
    let start = begin_produce(&mut out, 7, b"pbrp0", (-1, 30_000), (TOPIC, 0));
    let at = begin_batch(&mut out, 0);
    put_record(&mut out, 0, b"hello");
    end_batch(&mut out, at, 1, IDENTITY);
    end_produce(&mut out, start);
    assert_eq!(out[6..], vectors()["produce-idempotent-request"]);
}

#[test]
fn answers_are_those_of_kafka() {
    let vectors = vectors();
    for (name, wanted) in responses() {
        let bytes = &vectors[&*format!("{name}-response")];
        let (frame, taken) = ResponseFrame::decode(bytes).unwrap().unwrap();
        assert_eq!((frame.correlation, taken), (7, bytes.len()), "{name}");
        assert_eq!(KafkaResponse::decode(api(name), frame.body), Ok(wanted), "{name}");
        assert_eq!(ResponseFrame::announced(&bytes[..4]), bytes.len() as u64, "{name}");
        let mut out = Vec::new();
        wanted.put(7, &mut out);
        let (again, _) = ResponseFrame::decode(&out).unwrap().unwrap();
        assert_eq!(KafkaResponse::decode(api(name), again.body), Ok(wanted), "{name} is read back");
        for cut in 0..frame.body.len() {
            assert!(KafkaResponse::decode(api(name), &frame.body[..cut]).is_err(), "{name} cut at {cut}");
        }
    }
    let whole = ["produce", "delete-topics", "init-producer-id", "sasl-authenticate"];
    for (name, wanted) in responses().into_iter().filter(|(name, _)| whole.contains(name)) {
        let mut out = Vec::new();
        wanted.put(7, &mut out);
        let bytes = &vectors[&*format!("{name}-response")];
        assert_eq!(out.len(), bytes.len(), "{name}");
    }
}

/// Errors of answers, records with their offsets, and the number of ends.
type ReadAnswers = (Vec<i16>, Vec<(i64, Vec<u8>)>, usize);

/// Reads answers to fetches that arrive in pieces of this many bytes.
fn read(bytes: &[u8], piece: usize) -> Result<ReadAnswers, Malformed> {
    let (mut reader, mut pending) = (FetchReader::default(), Vec::new());
    let (mut errors, mut records, mut ends) = (Vec::new(), Vec::new(), 0);
    let mut passed = None;
    for piece in bytes.chunks(piece.max(1)) {
        pending.extend_from_slice(piece);
        let mut taken = 0;
        loop {
            let (used, item) = reader.next(&pending[taken..])?;
            taken += used;
            match item {
                None => break,
                Some(FetchItem::Head(head)) => errors.extend((head.partitions == 0).then_some(head.error)),
                Some(FetchItem::Partition(partition)) => errors.push(partition.error),
                Some(FetchItem::Record(offset, record)) => {
                    records.push((offset, record.value.unwrap_or_default().to_vec()));
                }
                Some(FetchItem::Compressed(base_offset, compressed)) => {
                    let mut gzip = GzipReader::default();
                    let mut rest = gzip.decompress(compressed)?;
                    while let Some((record, used)) = KafkaRecord::decode(rest)? {
                        records.push((base_offset + record.offset_delta, record.value.unwrap_or_default().to_vec()));
                        rest = &rest[used..];
                    }
                }
                Some(FetchItem::Passed(next)) => passed = Some(next),
                Some(FetchItem::End) => ends += 1,
            }
        }
        pending.drain(..taken);
    }
    assert!(pending.is_empty(), "{} bytes are left", pending.len());
    assert_eq!(passed, (records.len() == 3 && records[0].0 == 40).then_some(44), "the mark of a transaction");
    Ok((errors, records, ends))
}

#[test]
fn records_of_an_answer_are_read_wherever_it_is_cut() {
    let vectors = vectors();
    let record = |offset, value: &[u8]| (offset, value.to_vec());
    let twice = [&vectors["fetch-response"][..], &vectors["fetch-error-response"], &vectors["fetch-empty-response"]];
    let bytes = twice.concat();
    for piece in 1..=bytes.len() {
        let (errors, records, ends) = read(&bytes, piece).unwrap();
        assert_eq!(errors, [NO_ERROR, OFFSET_OUT_OF_RANGE, NO_ERROR]);
        assert_eq!(records, [record(40, b"hello"), record(41, b"world"), record(42, b"!")], "pieces of {piece}");
        assert_eq!(ends, 3);
    }
    let (head, used, left) = FetchHead::decode(&vectors["fetch-response"]).unwrap().unwrap();
    assert_eq!(head, FetchHead { correlation: 7, error: NO_ERROR, topic: TOPIC, partitions: 1 });
    assert_eq!(used + left as usize, vectors["fetch-response"].len());
}

#[test]
fn damage_and_compression_are_named() {
    let vectors = vectors();
    let failed = |bytes: &[u8]| read(bytes, 100).unwrap_err().0;
    let mut lz4 = vectors["fetch-gzip-response"].clone();
    let gzip = read(&lz4, 100).unwrap();
    let attributes = lz4.windows(5).position(|five| five == [0x1f, 0x8b, 8, 0, 0]).unwrap() - BATCH_BYTES + 22;
    assert_eq!(std::mem::replace(&mut lz4[attributes], 3), 1);
    assert!(failed(&lz4).contains("lz4"));
    assert!(!gzip.1.is_empty() && (1..9).all(|piece| read(&vectors["fetch-gzip-response"], piece).unwrap() == gzip));
    let mut damaged = vectors["fetch-response"].clone();
    let at = damaged.windows(5).position(|five| five == b"world").unwrap();
    damaged[at] = b'W';
    assert!(failed(&damaged).contains("checksum"));
    let mut long = vectors["fetch-response"].clone();
    let at = long.windows(5).position(|five| five == b"hello").unwrap();
    long[at - 6] = 0x7e;
    assert!(failed(&long).contains("longer than its batch"));
    assert!(failed(&[0x7f, 0xff, 0xff, 0xff]).contains("bytes"));
}

#[test]
fn an_answer_that_says_it_is_shorter_is_refused() {
    for name in ["fetch-response", "fetch-error-response", "fetch-empty-response"] {
        let whole = &vectors()[name];
        for shorter in 0..whole.len() - 4 {
            let mut bytes = whole.clone();
            bytes[..4].copy_from_slice(&(shorter as u32).to_be_bytes());
            read(&bytes, bytes.len()).unwrap_err();
            bytes.truncate(shorter + 4);
            read(&bytes, bytes.len()).unwrap_err();
        }
    }
}

/// An answer that a scripted broker writes.
#[test]
fn an_answer_that_is_written_is_read() {
    let records = [batch(5, NO_PRODUCER, &[b"a", &LONG]), batch(7, IDENTITY, &[b"b"])].concat();
    let head = FetchHead { correlation: 9, error: NO_ERROR, topic: TOPIC, partitions: 3 };
    let mut out = Vec::new();
    let at = begin_fetched(&head, &mut out);
    let front_bytes = out.len();
    for (partition, error, records) in [(3, NO_ERROR, &records[..]), (1, UNKNOWN_SERVER_ERROR, b""), (0, 0, &records)] {
        let records_bytes = records.len() as u32;
        put_fetched(&FetchPartition { partition, error, high_watermark: 8, records_bytes }, &mut out);
        out.extend_from_slice(records);
    }
    end_fetched(&mut out, at);
    assert_eq!(FetchHead::decode(&out), Ok(Some((head, front_bytes, (out.len() - front_bytes) as u32))));
    let one = [(5, b"a".to_vec()), (6, LONG.to_vec()), (7, b"b".to_vec())];
    for piece in 1..out.len() {
        let (errors, read, ends) = read(&out, piece).unwrap();
        assert_eq!(
            (errors, read, ends),
            (vec![NO_ERROR, UNKNOWN_SERVER_ERROR, NO_ERROR], [&one[..], &one].concat(), 1)
        );
    }
    for shorter in 0..out.len() - 4 {
        let mut bytes = out[..shorter + 4].to_vec();
        bytes[..4].copy_from_slice(&(shorter as u32).to_be_bytes());
        read(&bytes, bytes.len()).unwrap_err();
    }
}

#[test]
fn compressed_records_are_read_back_and_damage_is_found() {
    let (mut writer, mut reader) = (GzipWriter::default(), GzipReader::default());
    let long: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for values in [&[&b"hello"[..]][..], &[&LONG[..]; 50], &[&long, b"", &long]] {
        let plain = batch(7, IDENTITY, values);
        let mut out = b"before".to_vec();
        let at = begin_batch(&mut out, 7);
        (0..).zip(values).for_each(|(index, value)| put_record(&mut out, index, value));
        writer.compress(&mut out, at);
        end_batch(&mut out, at, values.len() as u32, IDENTITY);
        let head = RecordBatch::decode(&out[at..]).unwrap().unwrap();
        assert!(head.is_gzip() && head.codec() == Some("gzip") && head.count as usize == values.len());
        assert_eq!(head.batch_bytes as usize, out.len() - at);
        let compressed = &out[at + BATCH_BYTES..];
        assert_eq!(reader.decompress(compressed).unwrap(), &plain[BATCH_BYTES..]);
        for cut in [0, 3, 12, compressed.len() - 1] {
            reader.decompress(&compressed[..cut]).unwrap_err();
        }
        for place in [0, 3, 15, compressed.len() - 1] {
            let mut damaged = compressed.to_vec();
            damaged[place] ^= 0x10;
            reader.decompress(&damaged).unwrap_err();
        }
    }
    let mut bomb = Vec::new();
    let at = begin_batch(&mut bomb, 0);
    bomb.resize(at + BATCH_BYTES + (17 << 20), 0);
    writer.compress(&mut bomb, at);
    let why = reader.decompress(&bomb[at + BATCH_BYTES..]).map(|records| records.len()).unwrap_err();
    assert!(why.0.contains("16 MiB"), "{why}");
}

#[test]
fn an_error_has_its_name_in_the_protocol() {
    assert_eq!(error_name(UNKNOWN_TOPIC_OR_PARTITION), "UNKNOWN_TOPIC_OR_PARTITION");
    assert!(error_name(9_999).contains("does not know"));
}

proptest! {
    #[test]
    fn numbers_of_variable_length_are_read_back(number: i64) {
        let mut out = Vec::new();
        read::put_varint(&mut out, number);
        prop_assert_eq!(out.len(), read::varint_bytes(number));
        prop_assert_eq!(read::varint(&out), Ok(Some((number, out.len()))));
        prop_assert_eq!(read::varint(&out[..out.len() - 1]), Ok(None));
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes: Vec<u8>, place in 0..vectors().len(), at: usize, byte: u8) {
        let mut vector = vectors().into_values().nth(place).unwrap();
        let at = at % vector.len();
        vector[at] = byte;
        for bytes in [&bytes, &vector] {
            let _ = RequestFrame::decode(bytes);
            let _ = RecordBatch::decode(bytes);
            for api in KafkaApi::ALL {
                let _ = KafkaResponse::decode(*api, bytes.get(8..).unwrap_or_default());
            }
            let (mut reader, mut taken) = (FetchReader::default(), 0);
            while let Ok((used, Some(_))) = reader.next(&bytes[taken..]) {
                taken += used;
            }
        }
    }
}
