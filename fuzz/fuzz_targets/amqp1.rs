//! Frames of AMQP 1.0: what is understood is written and reads back to the same frame; bodies are found in any message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_wire::amqp1::{Amqp1Frame, Performative, body};

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    while let Ok(Some((frame, taken))) = Amqp1Frame::decode(rest) {
        assert!((1..=rest.len()).contains(&taken));
        assert_eq!(Amqp1Frame::decode(&rest[..taken]), Ok(Some((frame, taken))));
        assert_eq!(Amqp1Frame::decode(&rest[..taken - 1]), Ok(None));
        let mut written = Vec::new();
        frame.put(&mut written);
        assert_eq!(Amqp1Frame::decode(&written), Ok(Some((frame, written.len()))));
        if let Amqp1Frame::Performative(performative, message) = frame {
            if let Performative::Mechanisms { mechanisms } = performative {
                assert!(mechanisms.names().count() <= bytes.len());
            }
            let _ = body(message);
        }
        rest = &rest[taken..];
    }
    let _ = body(bytes);
});
