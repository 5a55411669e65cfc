use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use pubmark_stats::{Histogram, HistogramError, LATENCY_MAX_NS};

use crate::vectors::load;

fn empty(digits: u8) -> Histogram {
    if digits == 3 { Histogram::latency() } else { Histogram::coarse() }
}

#[test]
fn reads_what_others_wrote() {
    let cases = load().histograms;
    assert!(cases.len() > 10);
    for case in cases {
        let mut expected = empty(case.digits);
        for (value, count) in case.rule.counts() {
            expected.record_n(value, count);
        }
        let found = Histogram::decode(&case.text).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert_eq!(found, expected, "{}", case.name);
        assert_eq!(found.summary(), expected.summary(), "{}", case.name);
        assert_eq!(found.saturated(), expected.saturated(), "{}", case.name);
    }
}

#[test]
fn refuses_each_flaw_by_its_name() {
    let cases = load().hostile;
    assert!(cases.len() > 20);
    for (name, variant, text) in cases {
        let error = Histogram::decode(&text).expect_err(&name);
        let found = match error {
            HistogramError::TooLong { .. } => "TooLong",
            HistogramError::Base64(_) => "Base64",
            HistogramError::Inflate(_) => "Inflate",
            HistogramError::Malformed(_) => "Malformed",
            HistogramError::Bounds { .. } => "Bounds",
            HistogramError::TooManyValues => "TooManyValues",
            HistogramError::Precision { .. } => "Precision",
            HistogramError::Pair { .. } => "Pair",
        };
        assert_eq!(found, variant, "{name}: {error}");
    }
}

#[test]
fn refuses_long_text_unread() {
    let error = Histogram::decode(&"A".repeat(1 << 20)).expect_err("too long");
    assert!(matches!(error, HistogramError::TooLong { len: 1_048_576, .. }));
}

/// Every bucket in use, with counts that do not compress: the longest text that can be written must
/// still be read.
#[test]
fn reads_the_fullest_histogram() {
    let mut histogram = Histogram::latency();
    let mut mixed = 1_u64;
    let mut value = 0;
    while value <= LATENCY_MAX_NS {
        mixed = mixed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        histogram.record_n(value, (mixed >> 27) + 1);
        value += (value / 2_048).max(1);
    }
    assert!(histogram.nonzero().count() > 30_000);
    let text = histogram.encode();
    assert_eq!(Histogram::decode(&text).ok(), Some(histogram));
}

fn decoded_or_refused(text: &str) {
    if let Ok(histogram) = Histogram::decode(text) {
        // An accepted histogram must be usable without overflow.
        let _ = histogram.summary();
        let mut twice = histogram.clone();
        let _ = twice.merge(&histogram);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn round_trip(
        values in prop::collection::vec((0..LATENCY_MAX_NS, 1..1_u64 << 40), 0..200),
        digits in 2..=3_u8,
    ) {
        let mut histogram = empty(digits);
        for (value, count) in values {
            histogram.record_n(value, count);
        }
        let decoded = Histogram::decode(&histogram.encode()).expect("own text");
        prop_assert_eq!(decoded.digits(), digits);
        prop_assert_eq!(decoded, histogram);
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,100}") {
        decoded_or_refused(&text);
        decoded_or_refused(&STANDARD.encode(&bytes));
    }

    /// Garbage inside a valid envelope and zlib header reaches the decompressor, not only the first
    /// check.
    #[test]
    fn garbage_deflate_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut framed = vec![0x1c, 0x84, 0x93, 0x14];
        framed.extend((bytes.len() as u32 + 2).to_be_bytes());
        framed.extend([0x78, 0x9c]);
        framed.extend(bytes);
        decoded_or_refused(&STANDARD.encode(&framed));
    }

    /// Garbage that decompresses, in a stored block, reaches the payload's reader with any header
    /// and any numbers.
    #[test]
    fn garbage_payload_never_panics(
        header in any::<bool>(),
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut payload = Vec::new();
        if header {
            payload.extend(0x1c84_9313_u32.to_be_bytes());
            payload.extend((body.len() as u32).to_be_bytes());
            payload.extend([0, 0, 0, 0, 0, 0, 0, 3]);
            payload.extend(1_u64.to_be_bytes());
            payload.extend(LATENCY_MAX_NS.to_be_bytes());
            payload.extend(1_f64.to_be_bytes());
        }
        payload.extend(&body);
        decoded_or_refused(&STANDARD.encode(stored(&payload)));
    }

    #[test]
    fn one_flipped_bit_is_noticed(position in 0..10_000_usize, bit in 0..8_u8) {
        let mut histogram = Histogram::coarse();
        for value in 1..300 {
            histogram.record_n(value * value, value);
        }
        let mut bytes = STANDARD.decode(histogram.encode()).expect("own text");
        let position = position % bytes.len();
        bytes[position] ^= 1 << bit;
        if let Ok(found) = Histogram::decode(&STANDARD.encode(&bytes)) {
            prop_assert_eq!(found, histogram);
        }
    }
}

fn stored(payload: &[u8]) -> Vec<u8> {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in payload {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    let len = payload.len() as u16;
    let mut zlib = vec![0x78, 0x01, 1];
    zlib.extend(len.to_le_bytes());
    zlib.extend((!len).to_le_bytes());
    zlib.extend(payload);
    zlib.extend((b << 16 | a).to_be_bytes());
    let mut framed = vec![0x1c, 0x84, 0x93, 0x14];
    framed.extend((zlib.len() as u32).to_be_bytes());
    framed.extend(zlib);
    framed
}
