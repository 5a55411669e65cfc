//! Two sweeps of one study as one result, in virtual time: a publisher of a system
//! whose sends take 1 ms goes along up to 1,000 messages a second.

use crate::support::{Place, stderr, stdout};
use serde_json::Value;

/// The mock system by another name: as a reference it has no knee.
fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("systems")).unwrap();
    std::fs::write(place.path("systems/swift.toml"), include_str!("../../../../systems/mock.toml")).unwrap();
    place
}

fn sweep(place: &Place, rates: &str, out: &str, more: &[&str]) {
    let common = ["bench", "swift", "--set", "options.send_cost=1ms", "--repeats", "2", "--duration", "10s", "-q"];
    let output = place.run(&[&common[..], &["--rate", rates, "--out", out], more].concat());
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
}

fn rows(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let output = place.run(&[&["report", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn two_sweeps_of_rates_are_one_result_with_one_knee() {
    let place = place();
    sweep(&place, "100,400", "slow", &[]);
    sweep(&place, "400,800,1600,3200", "fast", &[]);
    let alone = rows(&place, &["slow"]);
    assert!(alone.iter().all(|row| row["knee"] == 400), "{alone:#?}");
    let joined = rows(&place, &["slow", "fast", "--join"]);
    let rates: Vec<f64> = joined.iter().map(|row| row["rate"].as_f64().unwrap()).collect();
    assert_eq!(rates, [100.0, 400.0, 800.0, 1600.0, 3200.0], "one table, in the order of the loads");
    let runs: Vec<u64> = joined.iter().map(|row| row["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [2, 4, 2, 2, 2], "what both have measured has the repeats of both");
    let knees: Vec<Option<f64>> = joined.iter().map(|row| row["knee"].as_f64()).collect();
    assert_eq!(knees, [Some(800.0); 5]);
    let said = stdout(&place.run(&["report", "slow", "fast", "--join", "--all"]));
    assert_eq!(said.matches("Load that is sustained").count(), 1, "{said}");
    assert!(place.path("slow/joined.html").exists());
    // The other way round it is the same.
    let turned: Vec<Value> = rows(&place, &["fast", "slow", "--join"]);
    assert_eq!(
        turned.iter().map(|row| &row["knee"]).collect::<Vec<_>>(),
        joined.iter().map(|row| &row["knee"]).collect::<Vec<_>>()
    );
}

#[test]
fn what_is_no_second_sweep_is_not_joined() {
    let place = place();
    sweep(&place, "100,200", "one", &[]);
    sweep(&place, "400,800", "larger", &["--payload", "2KiB"]);
    sweep(&place, "400,800", "slower", &["--set", "options.delay=3ms"]);
    for (other, words) in [("larger", "the values of `"), ("slower", "more than the values of an axis")] {
        let refused = place.run(&["report", "one", other, "--join"]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(words) && stderr(&refused).contains("--join"), "{}", stderr(&refused));
    }
    // Beside each other they may stand.
    assert_eq!(place.run(&["report", "one", "larger"]).status.code(), Some(0));
}
