//! Results in the formats of other tools, read by the parsers of these formats.

use crate::support::{Place, stderr, stdout};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;

/// Returns what `report --format` prints of the folder `r`.
fn formatted(place: &Place, format: &str) -> String {
    let output = place.run(&["report", "r", "--format", format]);
    assert_eq!(output.status.code(), Some(0), "{format}: {}", stderr(&output));
    stdout(&output)
}

fn measured(rate: &str) -> Place {
    let place = Place::new();
    let bench = ["bench", "mock", "--rate", rate, "--payload", "64B,1KiB", "--repeats", "2", "--out", "r"];
    let output = place.run(
        &[&bench[..], &["--duration", "2s", "--set", "options.delay=2ms", "--set", "options.jitter=500us"]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    place
}

#[test]
fn trackers_of_benchmarks_get_each_cells_figures() {
    let place = measured("1000");
    let rows: Value = serde_json::from_str(&stdout(&place.run(&["report", "r", "--json"]))).unwrap();
    let bencher: Value = serde_json::from_str(&formatted(&place, "bencher")).unwrap();
    assert_eq!(bencher.as_object().unwrap().len(), 2, "{bencher}");
    for (row, (label, measures)) in rows.as_array().unwrap().iter().zip(bencher.as_object().unwrap()) {
        let p50 = &measures["latency-p50-ns"];
        assert_eq!(p50["value"].as_f64(), row["latency_p50_ns"].as_f64(), "{label}");
        let [low, value, high] = ["lower_value", "value", "upper_value"].map(|key| p50[key].as_f64().unwrap());
        assert!(low <= value && value <= high && value > 0.0, "{label}: {p50}");
        assert!(measures["delivered-per-s"]["value"].as_f64().unwrap() > 900.0, "{label}: {measures}");
    }
    let github: Value = serde_json::from_str(&formatted(&place, "github-benchmark")).unwrap();
    for entry in github.as_array().unwrap() {
        assert!(entry["name"].is_string() && entry["unit"] == "ns" && entry["value"].is_number(), "{entry}");
    }
    let names = |end: &str| {
        let all = github.as_array().unwrap().iter();
        all.filter(|entry| entry["name"].as_str().unwrap().ends_with(end)).count()
    };
    assert_eq!([names(" p50"), names(" p99"), names(" time per message")], [2, 2, 0], "{github}");

    let github: Value = serde_json::from_str(&formatted(&measured("max"), "github-benchmark")).unwrap();
    let each = github.as_array().unwrap().iter().find(|entry| entry["name"].as_str().unwrap().ends_with("per message"));
    assert!(each.unwrap()["value"].as_f64().unwrap() > 0.0, "{github}");
}

#[test]
fn histograms_are_read_by_hdrhistograms_own_parser() {
    let place = measured("1000");
    let log = formatted(&place, "hlog");
    let mut read = Deserializer::new();
    let mut runs = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram());
            let histogram: Histogram<u64> = read.deserialize(&mut bytes.unwrap().as_slice()).unwrap();
            assert!((interval.max() / (histogram.max() as f64 / 1e6) - 1.0).abs() < 0.002, "{log}");
            runs.push((interval.tag().unwrap().as_str().to_owned(), interval.duration().as_secs(), histogram));
        }
    }
    let records = place.records("r");
    assert_eq!(runs.len(), records.len());
    for ((tag, seconds, histogram), record) in runs.iter().zip(&records) {
        assert_eq!((*seconds, histogram.len()), (2, record["latency_ns"]["count"].as_u64().unwrap()), "{tag}");
        assert!(!tag.contains(' ') && tag.starts_with("mock"), "{tag}");
    }
    // The percentiles of a cell are those of its runs together.
    let tables = formatted(&place, "hgrm");
    assert_eq!(tables.matches("# mock").count(), 2, "{tables}");
    let mut first = Histogram::<u64>::new(3).unwrap();
    let tag = &runs[0].0;
    runs.iter().filter(|(other, ..)| other == tag).for_each(|(.., histogram)| first.add(histogram).unwrap());
    let table = tables.split("# mock").nth(1).unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let half = rows.into_iter().find(|row| row.get(1) == Some(&"0.500000000000")).unwrap();
    let wanted_us = first.value_at_quantile(0.5) as f64 / 1e3;
    assert!((half[0].parse::<f64>().unwrap() / wanted_us - 1.0).abs() < 0.003, "{half:?}: {wanted_us}\n{table}");
}

#[test]
fn what_has_no_distribution_is_told() {
    let place = measured("max");
    let output = place.run(&["report", "r", "--format", "hgrm"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("no run has a latency"), "{}", stderr(&output));
    let output = place.run(&["report", "r", "r", "--format", "bencher"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
