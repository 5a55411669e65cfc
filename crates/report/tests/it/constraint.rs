//! Which systems meet constraints.

use crate::lab::{Lab, histogram, latency, spoil};
use pubmark_model::record::Reason;
use pubmark_report::{Constraints, Report};

/// alpha at 100 and 120 µs, beta at 200 and 500 µs, gamma with runs that do not count.
fn report() -> Report {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\nqos = [0, 1]\n");
    for (name, at) in [("alpha", [100_000, 120_000]), ("beta", [200_000, 500_000]), ("gamma", [50_000, 50_000])] {
        for (qos, ns) in at.into_iter().enumerate() {
            for repeat in 1..=4 {
                lab.run(&format!("{name} qos={qos}"), repeat, |run| {
                    latency(run, &[(ns + u64::from(repeat) * 100, 20_000)]);
                    if name == "gamma" {
                        spoil(run, Reason::ServerDied, "it ended");
                    }
                });
            }
        }
    }
    lab.report()
}

/// System and quality of service of each cell that is looked at, with its answer.
fn answers(text: &str) -> Vec<(String, u64, Option<bool>)> {
    let report = report();
    let found = report.fitting_json(&Constraints::parse(text, &report).unwrap());
    let cells = found["cells"].as_array().unwrap().iter();
    let one = |cell: &serde_json::Value| {
        let at = &cell["cell"];
        (at["system"].as_str().unwrap().to_owned(), at["qos"].as_u64().unwrap(), cell["meets"].as_bool())
    };
    cells.map(one).collect()
}

#[test]
fn a_cell_meets_constraints_if_its_runs_show_all_of_them() {
    let told = |system: &str, qos, meets| (system.to_owned(), qos, meets);
    assert_eq!(
        answers("p50 < 150us and lost = 0"),
        [
            told("alpha", 0, Some(true)),
            told("alpha", 1, Some(true)),
            told("beta", 0, Some(false)),
            told("beta", 1, Some(false)),
            told("gamma", 0, None),
            told("gamma", 1, None),
        ],
        "what was not measured validly is open"
    );
    let at_qos_1 = answers("qos = 1 and p50 < 300us");
    assert_eq!(at_qos_1, [told("alpha", 1, Some(true)), told("beta", 1, Some(false)), told("gamma", 1, None)]);
    assert!(answers("licence = no-such").iter().all(|(_, _, meets)| *meets == Some(false)));
    assert!(answers("language = C").iter().all(|(_, _, meets)| meets.is_none()), "their files do not say");
    assert_eq!(answers("p50 < 110us and system = alpha and qos = 0")[..1], [told("alpha", 0, Some(true))]);
}

/// Others only make a latency longer, a rate lower and losses more: what holds beside them holds without them, and what
/// does not hold may be their doing. A generator that was late counts its delay.
#[test]
fn a_bound_that_disturbed_runs_meet_holds() {
    let answer = |text: &str, reason: Reason, delay_ns: u64| {
        let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\n");
        for repeat in 1..=4 {
            lab.run("alpha", repeat, |run| {
                let ns = 100_000 + u64::from(repeat) * 100;
                latency(run, &[(ns, 20_000)]);
                run.times.intended_latency = histogram(&[(ns + delay_ns, 20_000)]).summary();
                spoil(run, reason, "busy");
            });
        }
        let report = lab.report();
        let found = report.fitting_json(&Constraints::parse(text, &report).unwrap());
        found["cells"][0]["meets"].as_bool()
    };
    let noisy = |text: &str| answer(text, Reason::NoisyMachine, 0);
    assert_eq!(noisy("p50 < 150us and lost = 0 and delivered_ratio >= 99.9%"), Some(true));
    assert_eq!(noisy("p50 < 90us"), None, "it may be shorter on a quiet machine");
    assert_eq!(noisy("p50 > 90us"), None);
    assert_eq!(noisy("server_memory < 1GB"), None);
    assert_eq!(answer("p50 < 150us", Reason::GeneratorSaturated, 20_000), Some(true));
    assert_eq!(
        answer("p50 < 150us", Reason::GeneratorSaturated, 80_000),
        None,
        "messages that are due count from then"
    );
    assert_eq!(answer("p50 < 150us", Reason::ServerDied, 0), None);
}

#[test]
fn constraints_that_mean_nothing_are_errors_with_a_way_out() {
    let report = report();
    let error = |text: &str| Constraints::parse(text, &report).unwrap_err().to_string();
    assert_eq!(error("qos = 2"), "no cell has qos = 2; it has 0, 1");
    assert!(error("p5 < 3ms").contains("did you mean `p50`?"));
    assert!(error("p50 < 3MB").contains("write a time"));
    assert!(error("").contains("is not an objective"));
    assert!(error("p50 < 1ms and").contains("is not an objective"));
}

#[test]
fn the_table_begins_with_who_meets_them() {
    let report = report();
    let text = report.fitting(&Constraints::parse("p50 < 150us", &report).unwrap(), 100, false);
    assert!(text.contains("alpha: 2 of 2 cells meet them.\nbeta: 0 of 2 cells meet them.\ngamma: 0 of 2"), "{text}");
    assert!(text.contains("p50 < 150us: 200 µs"), "{text}");
}
