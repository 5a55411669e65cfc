//! Frames of AMQP: what is understood is written and reads back to the same
//! frame; tables are searched, whatever is in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::amqp::{Frame, Method, FieldTable};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((frame, taken))) = Frame::decode(rest) {
        assert!((1..=rest.len()).contains(&taken));
        assert_eq!(Frame::decode(&rest[..taken]), Ok(Some((frame, taken))));
        assert_eq!(Frame::decode(&rest[..taken - 1]), Ok(None));
        let mut written = Vec::new();
        frame.put(&mut written);
        assert_eq!(Frame::decode(&written), Ok(Some((frame, written.len()))));
        if let Frame::Method(_, Method::Start { properties, .. }) = frame {
            let _ = properties.text("product");
        }
        rest = &rest[taken..];
    }
    let _ = FieldTable(bytes).find("product");
});
