//! The text of a histogram, from an agent that anybody wrote: as text, as the
//! compressed part, and as the payload within it. What decodes is encoded and
//! decodes to the same histogram.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;
use pubmark_stats::Histogram;
use std::io::Write;

const COOKIE: u32 = 0x1c84_9314;
const PAYLOAD_COOKIE: u32 = 0x1c84_9313;
const HOUR_NS: u64 = 3_600_000_000_000;

fn envelope(compressed: &[u8]) -> String {
    let mut bytes = COOKIE.to_be_bytes().to_vec();
    bytes.extend((compressed.len() as u32).to_be_bytes());
    bytes.extend(compressed);
    STANDARD.encode(bytes)
}

fn compressed(payload: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(payload).unwrap();
    encoder.finish().unwrap()
}

/// A payload with a header that is in order before these counts.
fn payload(digits: u32, counts: &[u8]) -> Vec<u8> {
    let mut bytes = PAYLOAD_COOKIE.to_be_bytes().to_vec();
    bytes.extend((counts.len() as u32).to_be_bytes());
    bytes.extend(0u32.to_be_bytes());
    bytes.extend(digits.to_be_bytes());
    bytes.extend(1u64.to_be_bytes());
    bytes.extend(HOUR_NS.to_be_bytes());
    bytes.extend(1.0f64.to_be_bytes());
    bytes.extend(counts);
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else { return };
    let text = match kind {
        b'1' => envelope(rest),
        b'2' => envelope(&compressed(rest)),
        b'3' => envelope(&compressed(&payload(3, rest))),
        b'4' => envelope(&compressed(&payload(2, rest))),
        _ => String::from_utf8_lossy(rest).into_owned(),
    };
    let Ok(histogram) = Histogram::decode(&text) else { return };
    assert_eq!(histogram.nonzero().map(|(_, count)| count).sum::<u64>(), histogram.count());
    assert!(histogram.min() <= histogram.value_at(0.5) && histogram.value_at(0.5) <= histogram.max());
    let again = Histogram::decode(&histogram.encode()).expect("what is written reads back");
    assert_eq!(again, histogram);
    let mut twice = histogram.clone();
    if twice.merge(&again).is_ok() {
        assert_eq!(twice.count(), 2 * histogram.count());
    }
});
