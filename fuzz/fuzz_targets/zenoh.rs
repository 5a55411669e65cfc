//! Batches of Zenoh: each message that is understood is written, and reads back to the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::zenoh::{BatchReader, DEFAULT_RESOLUTION, FrameChannel, NetworkItem, TransportItem};

/// Returns the last message of a batch.
fn last(bytes: &[u8]) -> Option<TransportItem<'_>> {
    let (mut batch, taken) = BatchReader::decode(bytes).unwrap().unwrap();
    assert_eq!(taken, bytes.len());
    std::iter::from_fn(|| batch.next_item().unwrap()).last()
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((mut batch, taken))) = BatchReader::decode(rest) {
        assert!((3..=rest.len()).contains(&taken));
        assert!(BatchReader::decode(&rest[..taken - 1]).unwrap().is_none());
        while let Ok(Some(item)) = batch.next_item() {
            let mut written = Vec::new();
            item.put(&mut written);
            assert_eq!(last(&written), Some(item));
            if let TransportItem::Network(NetworkItem::Put { key, payload }) = item {
                written.clear();
                FrameChannel::new(true, DEFAULT_RESOLUTION).put_push(&mut written, key, 13, payload, 64 << 8);
                assert_eq!(last(&written), Some(item));
            }
        }
        rest = &rest[taken..];
    }
    let _ = NetworkItem::decode(bytes);
});
