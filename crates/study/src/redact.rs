//! Secrets are taken out of what a run leaves: its record and its logs.

use pubmark_model::record::RunRecord;
use pubmark_model::secret::Secrets;
use serde_json::{Map, Value};
use std::path::Path;

/// Takes the secrets out of every text of a record that others have written:
/// agents, servers, the system's own tools.
pub fn record(record: &mut RunRecord, secrets: &Secrets) {
    let hide = |text: &mut String| *text = secrets.hide(text);
    let hide_in = |map: &mut Map<String, Value>| map.values_mut().for_each(|value| secrets.hide_in(value));
    record.error.iter_mut().chain(&mut record.remarks).for_each(hide);
    for connections in record.connections.iter_mut() {
        connections.first_error.iter_mut().chain(&mut connections.first_loss).for_each(hide);
    }
    hide_in(&mut record.versions);
    hide_in(&mut record.applied);
    for agent in &mut record.agents {
        hide_in(&mut agent.applied);
        agent.made.values_mut().for_each(hide);
    }
    record.verdict.reasons.iter_mut().for_each(|reason| hide(&mut reason.evidence));
    record.verdict.notes.iter_mut().for_each(|note| hide(&mut note.evidence));
    if let Some(deployment) = &mut record.deployment {
        hide(&mut deployment.endpoint);
        deployment.command.iter_mut().chain(&mut deployment.applied.note).for_each(hide);
    }
    record.fault_log.iter_mut().filter_map(|event| event.note.as_mut()).for_each(hide);
}

/// Takes the secrets out of the logs of a run: what programs print is theirs
/// to choose.
pub fn logs(folder: &Path, position: u64, secrets: &Secrets) -> std::io::Result<()> {
    logs_of(folder, &format!("run-{position}-"), secrets)
}

/// The same for the logs of all runs: of one that was killed nobody else does it.
pub fn all_logs(folder: &Path, secrets: &Secrets) -> std::io::Result<()> {
    logs_of(folder, "run-", secrets)
}

fn logs_of(folder: &Path, prefix: &str, secrets: &Secrets) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let bytes = std::fs::read(entry.path())?;
        let text = String::from_utf8_lossy(&bytes);
        let hidden = secrets.hide(&text);
        if hidden != text {
            std::fs::write(entry.path(), hidden)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_judge::blank::blank;
    use pubmark_model::cell::{Cell, Limits};
    use pubmark_model::fault::Script;
    use pubmark_model::options::Options;
    use pubmark_model::plan::Place;
    use pubmark_model::record::{AgentShare, ConnectionFigures, Deployment};
    use pubmark_model::setting::Settings;
    use pubmark_model::workload::Workload;

    const SECRET: &str = "hid\"den word";

    fn secrets() -> Secrets {
        Secrets::of(&Options::from([("password".to_owned(), SECRET.into())]))
    }

    /// An agent in another language, a server or a tool may repeat what it was
    /// given, in any of its words.
    #[test]
    fn whoever_repeats_a_secret_it_is_not_in_the_record() {
        let cell = Cell {
            axes: Map::new(),
            system: "mqtt".into(),
            workload: Workload::resolve(&Settings::default()).unwrap(),
            options: Options::new(),
            set_options: Vec::new(),
            limits: Limits::default(),
            settings: pubmark_model::tuning::Use::default(),
            faults: Script::default(),
            link: None,
            placement: Default::default(),
            watch: None,
            skipped: None,
        };
        let place = Place { repeat: 1, position: 0 };
        let mut made = blank(&cell, None, place, String::new());
        let told = format!("login with {SECRET} at mqtt://me:pw@h failed");
        let map: Map<String, Value> = [("x".to_owned(), serde_json::json!([{"y": told}]))].into_iter().collect();
        made.error = Some(told.clone());
        made.remarks = vec![told.clone()];
        (made.versions, made.applied) = (map.clone(), map.clone());
        let (first_error, first_loss) = (Some(told.clone()), Some(told.clone()));
        made.connections = Some(ConnectionFigures { first_error, first_loss, ..ConnectionFigures::default() });
        made.agents =
            vec![AgentShare { applied: map, made: [("x".to_owned(), told.clone())].into(), ..AgentShare::default() }];
        made.verdict = pubmark_judge::verdict::failed(&told);
        made.deployment = Some(Deployment { command: vec![told.clone()], endpoint: told, ..Deployment::default() });
        record(&mut made, &secrets());
        let text = serde_json::to_string(&made).unwrap();
        assert_eq!(text.matches("login with *** at mqtt://***@h failed").count(), 11, "{text}");
        assert!(!text.contains("den word") && !text.contains("pw@"), "{text}");
    }

    #[test]
    fn the_logs_of_a_run_are_cleared_of_it() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
        write("run-1-server.log", &format!("said {SECRET}\nand more\n"));
        write("run-11-server.log", "another run's\n");
        logs(place.path(), 1, &secrets()).unwrap();
        assert_eq!(read("run-1-server.log"), "said ***\nand more\n");
        assert_eq!(read("run-11-server.log"), "another run's\n");
        // Without a secret of the run's own, a login that is printed is one all the same.
        write("run-1-server.log", "at mqtt://me:pw@h:1\n");
        write("run-2-server.log", "at mqtt://me:pw@h:2\n");
        logs(place.path(), 1, &Secrets::default()).unwrap();
        assert_eq!(read("run-1-server.log"), "at mqtt://***@h:1\n");
        assert_eq!(read("run-2-server.log"), "at mqtt://me:pw@h:2\n");
        all_logs(place.path(), &Secrets::default()).unwrap();
        assert_eq!(read("run-2-server.log"), "at mqtt://***@h:2\n");
    }
}
