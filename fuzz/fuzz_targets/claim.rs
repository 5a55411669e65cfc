//! An expression of a claim of any bytes: it is read or refused with places within it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pubmark_model::claim::{Expression, Names};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let system = |name: &str| match name.starts_with('x') {
        true => Err(("unknown system".to_owned(), None)),
        false => Ok(name.to_owned()),
    };
    let value = |_: &str, text: &str| Ok(Value::from(text));
    match Expression::parse(text, &Names { system: &system, is_flow: &|name| name.starts_with('f'), value: &value }) {
        Ok(read) => {
            read.root.figures(&mut |figure| assert!(!figure.key().is_empty()));
            read.root.places(&mut |axis, _| assert!(!axis.is_empty()));
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            assert!(errors.iter().all(|error| error.at <= text.len() && !error.message.is_empty()));
        }
    }
});
