//! Systems for the tests, and studies that are read with them.

use pubmark_model::cell::Cell;
use pubmark_model::diagnostic::{Diagnostic, Diagnostics, line_column};
use pubmark_model::plan::cells;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;
use std::sync::{Arc, OnceLock};

pub const ALPHA: &str = r#"
title = "Alpha"
about = "a library with every transport"
licence = "MIT"
driver = "alpha"
transports = ["inproc", "ipc", "tcp", "udp"]
patterns = ["pairs", "fan-out", "fan-in", "request-reply", "pipeline"]
[options.depth]
kind = "count"
default = 5
doc = "its own"
"#;

pub const BETA: &str = r#"
title = "Beta"
about = "a library with little"
licence = "MIT"
driver = "beta"
transports = ["inproc", "tcp"]
patterns = ["pairs", "fan-out"]
"#;

pub const SOLO: &str = r#"
title = "Solo"
about = "no transport to choose"
licence = "none"
driver = "mock"
transports = []
patterns = ["pairs"]
"#;

pub const JIT: &str = r#"
title = "Jit"
about = "a library with an agent of its own that is slow to get warm"
licence = "none"
driver = "jit"
agent = "jit-agent"
agents = 2
warmup = "5s"
warmup_max = "9s"
transports = ["inproc", "tcp"]
patterns = ["pairs", "fan-out"]
"#;

pub const BROKER: &str = r#"
title = "Broker"
about = "a broker that runs already"
licence = "none"
driver = "mqtt"
patterns = ["pairs"]
[install]
manual = "start it by hand"
"#;

pub fn find(name: &str) -> Option<Arc<System>> {
    static SYSTEMS: OnceLock<Vec<Arc<System>>> = OnceLock::new();
    let systems = SYSTEMS.get_or_init(|| {
        let parse = |(name, text): (&str, &str)| {
            Arc::new(System::parse(name, name, text).unwrap_or_else(|errors| panic!("{errors}")))
        };
        [("alpha", ALPHA), ("beta", BETA), ("solo", SOLO), ("jit", JIT), ("broker", BROKER)]
            .into_iter()
            .map(parse)
            .collect()
    });
    systems.iter().find(|system| system.name == name).cloned()
}

pub fn read(text: &str, reading: &ReadOptions<'_>) -> Result<Study, Diagnostics> {
    Study::parse("study.toml", text, &find, reading)
}

#[track_caller]
pub fn good(text: &str) -> Study {
    read(text, &ReadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns a study of `alpha` over inproc, with more of the file.
pub fn with(more: &str) -> String {
    format!("title = \"t\"\n{more}\n[axes]\nsystem = [\"alpha\"]\n")
}

/// Formats errors as `LINE:COLUMN MESSAGE | HELP`; an error of the whole file has no place.
pub fn shown(errors: &Diagnostics) -> Vec<String> {
    let one = |error: &Diagnostic| {
        let place = error.offset.map(|offset| line_column(&errors.text, offset));
        let place = place.map(|(line, column)| format!("{line}:{column} ")).unwrap_or_default();
        let help = error.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        format!("{place}{}{help}", error.message)
    };
    errors.errors.iter().map(one).collect()
}

#[track_caller]
pub fn refused(text: &str, wanted: &[&str]) {
    refused_as(text, &ReadOptions::default(), wanted);
}

#[track_caller]
pub fn refused_as(text: &str, reading: &ReadOptions<'_>, wanted: &[&str]) {
    match read(text, reading) {
        Ok(study) => panic!("accepted: {study:?}"),
        Err(errors) => assert_eq!(shown(&errors), wanted),
    }
}

pub fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
pub fn overridden(text: &str, set: &[(&str, &str)], only: &[(&str, &str)]) -> Study {
    let (set, only) = (pairs(set), pairs(only));
    read(text, &ReadOptions { quick: false, set: &set, only: &only, ..ReadOptions::default() })
        .unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
pub fn override_refused(text: &str, set: &[(&str, &str)], only: &[(&str, &str)], wanted: &[&str]) {
    let (set, only) = (pairs(set), pairs(only));
    refused_as(text, &ReadOptions { quick: false, set: &set, only: &only, ..ReadOptions::default() }, wanted);
}

pub fn quick() -> ReadOptions<'static> {
    ReadOptions { quick: true, ..ReadOptions::default() }
}

#[track_caller]
pub fn planned(text: &str) -> Vec<Cell> {
    cells(&good(text)).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[track_caller]
pub fn unplannable(text: &str, wanted: &[(&str, Option<&str>)]) {
    let errors = cells(&good(text)).expect_err("there is no plan");
    let errors: Vec<_> = errors.iter().map(|error| (error.message.as_str(), error.help.as_deref())).collect();
    assert_eq!(errors, wanted);
}

pub const LEAVE_OUT: Option<&str> = Some("leave it out with a [[skip]] entry, or choose another");

pub const CROSSED: &str = r#"title = "t"
[workload]
duration = "3s"
[axes]
system = ["alpha", "beta"]
payload = [64, "1KB", "4KB", "16KB", "64KB"]
options.queue_messages = [10, 20]
[options]
linger = "1s"
[options.alpha]
depth = 3
linger = "2s"
"#;
