//! Removes secrets from a run's record. Logs have none: see `pubmark_host::log`.

use pubmark_model::record::RunRecord;
use pubmark_model::secret::Secrets;
use serde_json::{Map, Value};

/// Removes the secrets from every text of a record that agents, servers or the system's own tools wrote.
pub fn record(record: &mut RunRecord, secrets: &Secrets) {
    let hide = |text: &mut String| *text = secrets.hide(text);
    let hide_in = |map: &mut Map<String, Value>| map.values_mut().for_each(|value| secrets.hide_in(value));
    record.error.iter_mut().chain(&mut record.remarks).for_each(hide);
    for connections in record.connections.iter_mut() {
        connections.first_error.iter_mut().chain(&mut connections.first_loss).for_each(hide);
    }
    for flow in &mut record.flows {
        let churn = flow.own.as_mut().and_then(|own| own.churn.as_mut());
        churn.and_then(|churn| churn.first_error.as_mut()).into_iter().for_each(hide);
    }
    record.churn.as_mut().and_then(|churn| churn.first_error.as_mut()).into_iter().for_each(hide);
    hide_in(&mut record.versions);
    hide_in(&mut record.applied);
    for agent in &mut record.agents {
        hide_in(&mut agent.applied);
        agent.made.values_mut().for_each(hide);
    }
    let of_flows = record.flows.iter_mut().filter_map(|flow| Some(&mut flow.own.as_mut()?.verdict));
    for verdict in of_flows.chain([&mut record.verdict]) {
        verdict.reasons.iter_mut().for_each(|reason| hide(&mut reason.evidence));
        verdict.notes.iter_mut().for_each(|note| hide(&mut note.evidence));
    }
    if let Some(deployment) = &mut record.deployment {
        hide(&mut deployment.endpoint);
        deployment.command.iter_mut().chain(&mut deployment.applied.note).for_each(hide);
    }
    record.fault_log.iter_mut().filter_map(|event| event.note.as_mut()).for_each(hide);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_judge::empty_record::blank;
    use pubmark_model::cell::{Cell, Limits};
    use pubmark_model::fault::Script;
    use pubmark_model::options::Options;
    use pubmark_model::plan::Place;
    use pubmark_model::record::{AgentShare, ChurnFigures, ConnectionFigures, Deployment};
    use pubmark_model::setting::Settings;
    use pubmark_model::workload::Workload;

    const SECRET: &str = "hid\"den word";

    fn secrets() -> Secrets {
        Secrets::of(&Options::from([("password".to_owned(), SECRET.into())]))
    }

    /// An agent in another language, a server or a tool may repeat what it was given, in any text.
    #[test]
    fn whoever_repeats_a_secret_it_is_not_in_the_record() {
        let cell = Cell {
            axes: Map::new(),
            system: crate::registry::built_in("mqtt").unwrap(),
            workload: Workload::resolve(&Settings::default()).unwrap(),
            flows: Vec::new(),
            options: Options::new(),
            set_options: Vec::new(),
            limits: Limits::default(),
            settings: pubmark_model::tuning::Use::default(),
            faults: Script::default(),
            power: pubmark_model::power::Power::Disk,
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
        made.churn = Some(Box::new(ChurnFigures { first_error: Some(told.clone()), ..ChurnFigures::default() }));
        made.agents =
            vec![AgentShare { applied: map, made: [("x".to_owned(), told.clone())].into(), ..AgentShare::default() }];
        made.verdict = pubmark_judge::verdict::failed(&told);
        made.deployment = Some(Deployment { command: vec![told.clone()], endpoint: told, ..Deployment::default() });
        record(&mut made, &secrets());
        let text = serde_json::to_string(&made).unwrap();
        assert_eq!(text.matches("login with *** at mqtt://***@h failed").count(), 12, "{text}");
        assert!(!text.contains("den word") && !text.contains("pw@"), "{text}");
    }
}
