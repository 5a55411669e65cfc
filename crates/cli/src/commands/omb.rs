//! Files of OpenMessaging Benchmark, for `pubmark run --omb`.

use crate::failure::Failure;
use pubmark_files::{Links, read_text};
use pubmark_import::{ImportedStudy, SourceText, omb};
use pubmark_model::diagnostic::Diagnostics;
use pubmark_study::registry::Registry;
use std::path::Path;

/// Returns the study of a workload and a driver.
pub fn study((workload, driver): (&Path, &Path), registry: &Registry) -> Result<ImportedStudy, Failure> {
    let read = |flag: &str, path: &Path| {
        let cannot = |error: std::io::Error| {
            Failure::usage(format!("{flag} {}: {error}. Name a YAML file of OpenMessaging Benchmark.", path.display()))
        };
        read_text(path, Links::Follow).map_err(cannot)
    };
    let (workload_text, driver_text) = (read("--omb", workload)?, read("--driver", driver)?);
    let (workload, driver) = (workload.display().to_string(), driver.display().to_string());
    let workload = SourceText { file: &workload, text: &workload_text };
    let driver = SourceText { file: &driver, text: &driver_text };
    omb::study(workload, driver, &|name| registry.find(name)).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(Diagnostics::to_string).collect();
        Failure::usage(errors.join("\n"))
    })
}

/// Returns the name of a file without folder and ending.
pub fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "workload".into(), |stem| stem.to_string_lossy().into_owned())
}
