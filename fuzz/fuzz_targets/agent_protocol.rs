//! A line of the agent protocol: what is understood is written and reads back
//! to the same line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::protocol::{Command, Event};

fuzz_target!(|line: &[u8]| {
    if let Ok(command) = serde_json::from_slice::<Command>(line) {
        let written = serde_json::to_string(&command).unwrap();
        assert!(!written.contains('\n'), "a line is a line");
        // What agents have no use for is not written: what was read loses it once.
        let again = serde_json::from_str::<Command>(&written).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), written);
    }
    if let Ok(event) = serde_json::from_slice::<Event>(line) {
        let written = serde_json::to_string(&event).unwrap();
        assert!(!written.contains('\n'), "a line is a line");
        assert_eq!(serde_json::from_str::<Event>(&written).unwrap(), event, "{written}");
    }
});
