//! Messages of Kafka, from either side: what is understood is written and reads back to the same
//! message, the records of a fetch are the same wherever its answer is cut, and what a leader
//! assigns is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::Malformed;
use pubmark_wire::kafka::{
    FetchItem, FetchReader, KafkaApi, KafkaResponse, RequestFrame, ResponseFrame, assigned, put_assigned,
};

/// Reads answers to fetches up to the first error.
fn records(pieces: &[&[u8]]) -> (Vec<(i64, Vec<u8>)>, Option<Malformed>) {
    let (mut reader, mut pending, mut records) = (FetchReader::default(), Vec::new(), Vec::new());
    for piece in pieces {
        pending.extend_from_slice(piece);
        let mut taken = 0;
        loop {
            match reader.next(&pending[taken..]) {
                Err(why) => return (records, Some(why)),
                Ok((used, item)) => {
                    taken += used;
                    assert!(reader.announced(&pending[taken..]) >= 1 || taken == pending.len());
                    match item {
                        Some(FetchItem::Record(offset, record)) => {
                            records.push((offset, record.value.unwrap_or_default().to_vec()));
                        }
                        Some(_) => {}
                        None => break,
                    }
                }
            }
        }
        pending.drain(..taken);
    }
    (records, None)
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((request, taken))) = RequestFrame::decode(rest) {
        assert!((1..=rest.len()).contains(&taken));
        assert_eq!(RequestFrame::decode(&rest[..taken - 1]), Ok(None));
        let mut written = Vec::new();
        request.put(&mut written);
        assert_eq!(RequestFrame::decode(&written), Ok(Some((request, written.len()))));
        rest = &rest[taken..];
    }
    let mut rest = bytes;
    while let Ok(Some((frame, taken))) = ResponseFrame::decode(rest) {
        assert!((1..=rest.len()).contains(&taken));
        assert_eq!(ResponseFrame::decode(&rest[..taken - 1]), Ok(None));
        for api in KafkaApi::ALL {
            if let Ok(response) = KafkaResponse::decode(*api, frame.body) {
                let mut written = Vec::new();
                response.put(frame.correlation, &mut written);
                let again = ResponseFrame::decode(&written).unwrap().unwrap().0;
                assert_eq!(KafkaResponse::decode(*api, again.body), Ok(response));
            }
        }
        rest = &rest[taken..];
    }
    let topic = bytes.get(8..9).unwrap_or_default();
    if let Ok(partitions) = assigned(bytes, topic) {
        let mut written = Vec::new();
        put_assigned(&mut written, topic, partitions.iter().copied());
        assert_eq!(assigned(&written, topic), Ok(partitions));
    }
    let cut = bytes.first().map_or(0, |first| usize::from(*first)).min(bytes.len());
    assert_eq!(records(&[bytes]), records(&[&bytes[..cut], &bytes[cut..]]));
});
