//! The published figures of studies.

use crate::support::{Place, stderr, stdout};
use pubmark_model::figure::Figure;
use pubmark_model::plan::cells;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_report::{Reference, ReferenceRow};
use pubmark_study::registry::{self, IncludedStudy, STUDIES};
use serde_json::{Value, json};
use std::path::Path;

fn study(included: &IncludedStudy) -> Study {
    Study::parse(included.name, included.text, &registry::built_in, &ReadOptions::default()).unwrap()
}

fn rows(included: &IncludedStudy) -> Vec<ReferenceRow> {
    let text = included.reference.unwrap_or_default();
    Reference::check("reference.csv", text, &registry::built_in, &study(included))
        .unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_published_figure_is_of_one_cell_of_its_study_and_of_a_sane_size() {
    for included in STUDIES {
        let study = study(included);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies").join(included.name);
        assert_eq!(study.reference.is_some(), included.reference.is_some(), "{}", included.name);
        assert_eq!(folder.join("reference.csv").exists(), included.reference.is_some(), "{}", included.name);
        if included.reference.is_none() {
            continue;
        }
        let cells = cells(&study).unwrap();
        for row in rows(included) {
            let about = cells.iter().filter(|cell| row.is_about(&cell.axes)).count();
            assert_eq!(about, 1, "{}: {row:?}", included.name);
            let (least, most) = match row.figure {
                Figure::DELIVERED => (1.0, 2e7),
                Figure::DELIVERED_RATIO => (0.0, 1.0),
                Figure::SERVER_CPU => (0.001, 4.1),
                Figure::JITTER => (50.0, 1e8),
                column if column.key().ends_with("_ns") => (1e3, 1e10),
                column => panic!("{}: nothing is known of {}", included.name, column.key()),
            };
            assert!((least..=most).contains(&row.value), "{}: {row:?}", included.name);
        }
    }
}

/// Returns the published value of a figure at a place.
fn published(name: &str, place: &Value, figure: Figure) -> Option<f64> {
    let included = STUDIES.iter().find(|included| included.name == name).unwrap();
    let place = place.as_object().unwrap();
    let rows = rows(included).into_iter().filter(|row| row.figure == figure && row.axes == *place);
    let values: Vec<f64> = rows.map(|row| row.value).collect();
    assert!(values.len() < 2);
    values.first().copied()
}

/// Computed by hand from the rows of each study's `published.csv`.
#[test]
fn figures_are_converted_as_the_studies_say() {
    let at = json!({"system": "zeromq", "transport": "tcp", "payload": 32_000, "subscribers": 4, "rate": 1000});
    // zeromq,tcp,32000,4,1000: mean 83.986 µs, p99 105.184 µs, jitter 5.067 µs
    assert_eq!(published("brokerless", &at, Figure::LATENCY_MEAN), Some(83_986.0));
    assert_eq!(published("brokerless", &at, Figure::SERVICE_P99), Some(105_184.0));
    assert_eq!(published("brokerless", &at, Figure::JITTER), Some(5_067.0));
    // zeromq,tcp,512000,1,0: 5723.03 messages/s; 256000 to 2: 5658.79 to each
    let at = json!({"system": "zeromq", "transport": "tcp", "payload": 256_000, "subscribers": 2, "rate": "max"});
    assert_eq!(published("brokerless", &at, Figure::DELIVERED), Some(2.0 * 5_658.79));
    let nagle = json!({"system": "nanomsg", "transport": "tcp", "payload": 1_000, "subscribers": 1, "rate": 1000});
    assert_eq!(published("brokerless", &nagle, Figure::LATENCY_MEAN), None);
    // latency,nats,1024: p50 0.209 ms; pairs,zenoh,4 processors,4000: 208.73 %
    let at = json!({"part": "latency", "system": "nats", "pairs": 10, "payload": 1_024});
    assert_eq!(published("iot-edge", &at, Figure::LATENCY_P50), Some(209_000.0));
    let at = json!({"part": "pairs-4", "system": "zenoh", "pairs": 4_000});
    assert_eq!(published("iot-edge", &at, Figure::SERVER_CPU), Some(2.08727059));
    let crowded = json!({"part": "pairs-4", "system": "mosquitto", "pairs": 4_000});
    assert_eq!(published("iot-edge", &crowded, Figure::LATENCY_P50), None, "a queue that grows has no latency");
    // Node.js, 64 B: half of a round trip is 85.689 µs.
    let at = json!({"system": "zeromq-node", "part": "round-trip", "transport": "tcp", "payload": 64});
    assert_eq!(published("bindings", &at, Figure::LATENCY_MEAN), Some(171_378.0));
    let at = json!({"system": "hivemq", "qos": 2});
    assert_eq!(published("faults", &at, Figure::LATENCY_P50), Some(3_530_000.0));
    let at = json!({"part": "qos-0", "system": "mosquitto", "publishers": 60_000});
    assert_eq!(published("multi-publisher", &at, Figure::DELIVERED), Some(60_000.0));
}

#[test]
fn the_published_figures_go_with_the_results_and_a_bad_file_is_refused() {
    let place = Place::new();
    let text = "title = \"t\"\n[workload]\nduration = \"1s\"\n[run]\nrepeats = 1\n[axes]\nsystem = [\"mock\"]\n\
                [reference]\nsource = \"A, 2020\"\nmachine = \"M\"\n";
    let file = place.study(text);
    let file = file.to_str().unwrap();
    let figures = "system,figure,value\nmock,latency_p50_ns,5\n";
    std::fs::write(place.path("reference.csv"), figures).unwrap();
    place.run(&["run", file, "--out", "r"]);
    assert_eq!(std::fs::read_to_string(place.path("r/reference.csv")).unwrap(), figures);
    assert!(std::fs::read_to_string(place.path("r/study.toml")).unwrap().contains("source = \"A, 2020\""));
    assert_eq!(place.records("r").len(), 1);

    std::fs::write(file, text.replace("A, 2020", "A, 2021")).unwrap();
    let again = place.run(&["run", file, "--out", "r", "--resume"]);
    assert!(!stderr(&again).contains("another study"), "{}", stderr(&again));

    std::fs::write(place.path("reference.csv"), "sistem,figure,value\nmock,speed,fast\n").unwrap();
    let refused = place.run(&["run", file, "--out", "s"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    for part in
        ["reference.csv:1:1", "did you mean `system`?", "reference.csv:2:1", "`speed` is not a figure", "`fast`"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!place.path("s").exists());

    std::fs::remove_file(place.path("reference.csv")).unwrap();
    let without = place.run(&["run", file, "--out", "s"]);
    assert!(stderr(&without).contains("there is no"), "{}", stderr(&without));
    assert_eq!(place.records("s").len(), 1);
}

#[test]
fn a_listing_says_which_studies_have_published_figures() {
    let place = Place::new();
    let list = stdout(&place.run(&["studies"]));
    assert_eq!(list.matches("published figures").count(), 5, "{list}");
    let file = stdout(&place.run(&["studies", "faults"]));
    assert!(file.contains("# compared with 37 published figures"), "{file}");
    std::fs::write(place.path("own.toml"), file).unwrap();
    let own = place.run(&["run", "own.toml", "--dry-run"]);
    assert_eq!(own.status.code(), Some(0), "a study to start from: {}", stderr(&own));
}
