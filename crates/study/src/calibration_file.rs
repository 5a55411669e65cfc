//! The calibration of this machine: the file that `pubmark calibrate` writes.

use pubmark_files::{self as files, Links, TEXT_BYTES_MAX};
use pubmark_host::{cache, machine};
use pubmark_judge::calibration::{Calibration, Identity, SCHEMA};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the identity of this machine and this program.
pub fn here() -> Identity {
    Identity {
        processor: machine::processor(),
        cores: machine::cores(),
        kernel: machine::line("/proc/sys/kernel/osrelease"),
        pubmark: env!("CARGO_PKG_VERSION").into(),
    }
}

/// Writes a calibration to [`path`], where later runs read it. Returns the path.
pub fn save(calibration: &Calibration) -> std::io::Result<PathBuf> {
    let path = path();
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let text = serde_json::to_string_pretty(calibration)? + "\n";
    files::replace(&path, |out| out.write_all(text.as_bytes()))?;
    Ok(path)
}

/// Returns the path of the calibration: `$XDG_CACHE_HOME/pubmark/calibration.json`, by default below `~/.cache`.
pub fn path() -> PathBuf {
    cache::base().join("calibration.json")
}

/// Returns the calibration of this machine, if there is one, or why its file cannot be read. The file is read once per
/// process.
fn loaded() -> &'static Result<Option<Calibration>, String> {
    static LOADED: OnceLock<Result<Option<Calibration>, String>> = OnceLock::new();
    LOADED.get_or_init(|| read(&path(), &here()))
}

/// Reads a calibration. One of another machine, kernel or version is ignored.
fn read(path: &Path, here: &Identity) -> Result<Option<Calibration>, String> {
    let cannot = |error: String| format!("the calibration {} cannot be read ({error}): make it again", path.display());
    let text = match files::read(path, TEXT_BYTES_MAX, Links::Follow) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error.to_string())),
    };
    let value: Value = serde_json::from_slice(&text).map_err(|error| cannot(error.to_string()))?;
    let theirs = value.get("machine").and_then(|machine| Identity::deserialize(machine).ok());
    if value.get("schema") != Some(&json!(SCHEMA)) || theirs.as_ref() != Some(here) {
        let whole = value.get("schema").is_some_and(Value::is_u64) && theirs.is_some();
        return if whole { Ok(None) } else { Err(cannot("it is not a calibration".into())) };
    }
    serde_json::from_value(value).map(Some).map_err(|error| cannot(error.to_string()))
}

/// Returns the calibration of this machine, if there is one that can be read.
pub fn of_this_machine() -> Option<&'static Calibration> {
    loaded().as_ref().ok()?.as_ref()
}

/// Returns why the calibration file cannot be used, if so.
pub fn remark() -> Option<String> {
    loaded().as_ref().err().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_calibration_of_this_machine_and_version_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calibration.json");
        let here = Identity { cores: 2, kernel: Some("6".into()), pubmark: "1".into(), ..Identity::default() };
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path, &here), Ok(None), "none is there");
        let mine = Calibration { schema: SCHEMA, machine: here.clone(), ..Calibration::default() };
        write(&serde_json::to_string(&mine).unwrap());
        assert_eq!(read(&path, &here), Ok(Some(mine.clone())));
        for other in [
            Identity { cores: 3, ..here.clone() },
            Identity { kernel: None, ..here.clone() },
            Identity { pubmark: "2".into(), ..here.clone() },
        ] {
            assert_eq!(read(&path, &other), Ok(None), "{other:?}");
        }
        write(&serde_json::to_string(&Calibration { schema: SCHEMA + 1, ..mine }).unwrap());
        assert_eq!(read(&path, &here), Ok(None), "an older or newer layout is none");
        for broken in ["", "{}", "{\"schema\": 1", "[1]"] {
            write(broken);
            let error = read(&path, &here).unwrap_err();
            assert!(error.contains("calibration.json"), "{error}");
        }
    }
}
