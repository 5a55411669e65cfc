//! The lines of NATS, from either side: what is understood is written and
//! reads back to the same item, and what is behind it does not matter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::nats::{FromClient, FromServer, MAX_LINE_BYTES};

macro_rules! check {
    ($type:ident, $bytes:expr) => {
        let mut rest: &[u8] = $bytes;
        while let Ok(Some((item, taken))) = $type::decode(rest) {
            assert!((1..=rest.len()).contains(&taken));
            assert_eq!($type::decode(&rest[..taken]), Ok(Some((item, taken))));
            assert_eq!($type::decode(&rest[..taken - 1]), Ok(None));
            // An error that comes without quotes is written with them: a line that
            // is almost too long would be too long.
            if taken < MAX_LINE_BYTES - 8 {
                let mut written = Vec::new();
                item.put(&mut written);
                assert_eq!($type::decode(&written), Ok(Some((item, written.len()))));
            }
            rest = &rest[taken..];
        }
    };
}

fuzz_target!(|bytes: &[u8]| {
    check!(FromServer, bytes);
    check!(FromClient, bytes);
});
