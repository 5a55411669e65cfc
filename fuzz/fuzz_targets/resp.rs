//! Values of RESP: whatever is understood is whole, bounded, and the same
//! without what is behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::resp::{RespCommand, Item, MAX_DEPTH, MAX_VALUES};

/// Counts the values within an item, down to the last.
fn count(item: &Item<'_>, depth: usize) -> u64 {
    assert!(depth <= MAX_DEPTH);
    item.values().into_iter().flatten().map(|value| 1 + count(&value, depth + 1)).sum()
}

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((item, taken))) = Item::decode(rest) {
        assert!((1..=rest.len()).contains(&taken));
        assert_eq!(Item::decode(&rest[..taken]), Ok(Some((item, taken))));
        assert_eq!(Item::decode(&rest[..taken - 1]), Ok(None));
        assert!(count(&item, 0) <= MAX_VALUES);
        let _ = RespCommand::of(&item);
        rest = &rest[taken..];
    }
});
