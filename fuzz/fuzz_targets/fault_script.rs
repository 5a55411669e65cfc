//! A script of faults: what is read is written and reads back to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::fault::Script;

fuzz_target!(|text: &str| {
    match Script::parse(text) {
        Ok(script) => {
            let written = script.to_string();
            assert_eq!(Script::parse(&written).as_ref(), Ok(&script), "{written}");
            assert!(script.0.iter().all(|fault| fault.until_ns().is_none_or(|until| until >= fault.at_ns)), "{written}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
