//! A system file of any bytes: every error can be shown, and every default
//! reads back as the value that it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::printable::unprintable;
use pubmark_model::system::System;
use serde_json::Value;

fn typed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fuzz_target!(|text: &str| {
    match System::parse("some", "systems/some.toml", text) {
        Err(errors) => {
            let said = errors.to_string();
            assert!(!errors.errors.is_empty() && !said.is_empty());
            assert!(!said.contains(unprintable), "a terminal would obey {said:?}");
        }
        Ok(system) => {
            assert_eq!(system.agent.sending.is_empty(), system.agent.receiving.is_empty());
            assert!(!system.title.is_empty() && !system.driver.is_empty() && !system.patterns.is_empty());
            for option in &system.options {
                assert_eq!(system.option(&option.name), Some(option), "an option is there once");
                if let Some(default) = &option.default {
                    assert_eq!(option.kind.read(&typed(default)).as_ref(), Ok(default));
                }
            }
        }
    }
});
