//! Times in a record: usage over time, and lengths of phases.

use crate::support::Place;
use serde_json::Value;

const SECOND: f64 = 1e9;

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// Returns the CPU time of the slices that lie within the window, s.
fn cpu_s_of_window(record: &Value, part: &str) -> f64 {
    let series = &record["usage_series"];
    let (start_ns, slice_ns) = (series["start_ns"].as_f64().unwrap(), series["slice_ns"].as_f64().unwrap());
    let window_ns = record["window_ns"].as_f64().unwrap();
    let cores = numbers(&series[part]["cpu_cores"]);
    let begin = |slice: usize| start_ns + slice as f64 * slice_ns;
    let inside = (0..cores.len()).filter(|slice| begin(*slice) >= 0.0 && begin(*slice) < window_ns);
    inside.map(|slice| cores[slice] * slice_ns / SECOND).sum()
}

#[test]
fn what_a_broker_and_its_clients_use_by_time_adds_up_to_what_they_used() {
    let place = Place::new();
    let run = place.bench(&["mosquitto", "--pairs", "4", "--rate", "2000", "--warmup", "500ms", "--duration", "2s"]);
    let record = &run.record;
    let series = &record["usage_series"];
    assert_eq!(series["slice_ns"], 100_000_000, "{series}");
    assert_eq!(series["start_ns"], -500_000_000);
    for part in ["server", "generator"] {
        let (seen, used) = (cpu_s_of_window(record, part), record[part]["cpu_s"].as_f64().unwrap());
        assert!((0.8..1.25).contains(&(seen / used)), "{part}: {seen} s by time, {used} s in all: {series}");
        let (cores, rss) = (numbers(&series[part]["cpu_cores"]), numbers(&series[part]["rss_bytes"]));
        assert!(cores.len() == rss.len() && cores.len() >= 25, "{series}");
        assert!(cores[1..5].iter().sum::<f64>() > 0.0, "the warm-up is seen: {series}");
        let median = record[part]["rss_bytes_median"].as_f64().unwrap();
        let last = rss[20];
        assert!((0.5..2.0).contains(&(last / median)), "{part}: {last} bytes by time, {median} in all");
    }
    let phases = &record["phases"];
    assert_eq!((&phases["warmup_ns"], &phases["window_ns"]), (&500_000_000.into(), &2_000_000_000.into()));
    let drain_ns = phases["drain_ns"].as_u64().unwrap();
    assert!(drain_ns <= record["workload"]["drain_ns"].as_u64().unwrap() + 1_000_000_000, "{phases}");
}

#[test]
fn a_library_has_no_server_and_one_that_was_there_already_is_found_by_its_socket() {
    let place = Place::new();
    let record = place.bench(&["kernel", "--transport", "tcp"]).record;
    assert!(record["usage_series"]["server"].is_null(), "{record}");
    assert!(cpu_s_of_window(&record, "generator") > 0.0);
    let server = place.serve_system("mosquitto", Vec::new());
    let attached = Place::new();
    let record = attached.bench(&[server.endpoint()]).record;
    assert_eq!(
        (&record["deployment"]["kind"], &record["deployment"]["attached"]),
        (&"external".into(), &"seen".into())
    );
    assert!(record["usage_series"]["server"].is_object() && record["usage_series"]["generator"].is_object());
}

#[test]
fn virtual_time_uses_nothing() {
    let record = Place::new().bench(&["mock"]).record;
    assert!(record.get("usage_series").is_none() && record.get("phases").is_none(), "{record}");
}
