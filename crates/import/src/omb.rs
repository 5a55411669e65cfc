//! Workload and driver files of OpenMessaging Benchmark (OMB).
//!
//! The keys are those of OMB's classes `Workload` and `DriverConfiguration`, and of the configuration of each driver.
//! Keys of forks of OMB are known, too.

mod clients;
mod driver;
mod kafka;
mod target;
mod workload;

use crate::toml_text::quoted;
use crate::{ImportedStudy, SourceText};
use pubmark_model::diagnostic::{Diagnostic, Diagnostics};
use pubmark_model::system::Systems;
use std::fmt::Write;
use target::OmbDriver;
use workload::OmbWorkload;

/// Number of different keys of messages, as in OMB.
const KEYS: u32 = 10_000;

/// Returns the study of a workload with a driver.
///
/// # Errors
/// All errors of both files: what is not a file of OMB, and what pubmark cannot keep.
pub fn study(
    workload: SourceText<'_>,
    driver: SourceText<'_>,
    systems: Systems<'_>,
) -> Result<ImportedStudy, Vec<Diagnostics>> {
    let mut remarks = Vec::new();
    let read_driver = driver::read(driver, &mut remarks);
    let system = read_driver.as_ref().ok().and_then(|read| systems(read.system));
    let read_workload = workload::read(workload, system.as_deref(), &mut remarks);
    match (read_workload, read_driver) {
        (Ok(read), Ok(of)) => Ok(ImportedStudy { text: text(&read, &of, (workload.file, driver.file)), remarks }),
        (read, of) => {
            let both = [read.err().map(|errors| (workload, errors)), of.err().map(|errors| (driver, errors))];
            Err(both.into_iter().flatten().map(|(source, errors)| diagnostics(source, errors)).collect())
        }
    }
}

fn diagnostics(source: SourceText<'_>, errors: Vec<Diagnostic>) -> Diagnostics {
    Diagnostics { file: source.file.to_owned(), text: source.text.to_owned(), errors }
}

/// Returns the text of the study.
fn text(workload: &OmbWorkload, driver: &OmbDriver, (workload_file, driver_file): (&str, &str)) -> String {
    let question = format!("OpenMessaging Benchmark: workload {workload_file}, driver {driver_file}");
    let (warmup_min, duration_min) = (workload.warmup_min, workload.duration_min);
    let mut out = format!("title = {}\nquestion = {}\n\n[workload]\n", quoted(&workload.name), quoted(&question));
    let clients = &workload.clients;
    if clients.flows == 1 {
        out += &clients.keys();
    }
    let _ = write!(
        out,
        "rate = {}\npayload = \"{}B\"\n{}qos = {}\ndurable = {}\nwarmup = \"{warmup_min}m\"\nduration = \"{duration_min}m\"\n",
        workload.rate, workload.bytes, workload.content, driver.qos, driver.durable
    );
    if clients.flows > 1 {
        for flow in 1..=clients.flows {
            let _ = write!(out, "\n[flows.topic-{flow}]\n{}", clients.keys());
        }
    }
    let _ = write!(out, "\n[axes]\nsystem = [\"{}\"]\n\n[run]\nrepeats = 1\n", driver.system);
    let endpoint = driver.endpoint.as_ref().map(|endpoint| ("endpoint", quoted(endpoint)));
    let mut options: Vec<_> = endpoint.into_iter().chain(driver.options.iter().cloned()).collect();
    if workload.partitions > 1 {
        options.push(("partitions", workload.partitions.to_string()));
        // Messages without a key take the partitions in turn, batch by batch.
        options.push(("partition_by", quoted(if workload.has_keys { "key" } else { "round-robin" })));
        if workload.has_keys {
            options.push(("keyspace", KEYS.to_string()));
        }
    }
    if !options.is_empty() {
        let _ = write!(out, "\n[options.{}]\n", driver.system);
        out.extend(options.iter().map(|(name, value)| format!("{name} = {value}\n")));
    }
    out
}
