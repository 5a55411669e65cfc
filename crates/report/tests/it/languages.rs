//! What a binding costs beyond its language.

use crate::lab::Lab;
use pubmark_model::figure::Figure;
use pubmark_model::protocol::{RuntimeFigures, RuntimePauses};
use pubmark_model::record::{AgentShare, FigureGroup, Finding, Reason, Verdict};
use pubmark_report::Report;

const SYSTEMS: &str = "[axes]\nsystem = [\"alpha\", \"bound\", \"floor\"]\n[run]\nrepeats = 3\n";

/// A figure to two digits: a histogram has three.
fn figure(report: &Report, system: &str, column: Figure) -> Option<f64> {
    let cell = report.cells().iter().find(|result| result.cell.system.name == system).unwrap();
    let two_digits = |value: f64| {
        let unit = 10_f64.powf(value.log10().floor() - 1.0);
        (value / unit).round() * unit
    };
    cell.figures.quotable(column).map(|estimate| two_digits(estimate.value).round())
}

/// Three systems of which each block was as much slower as the one before.
fn measured(study: &str, [alpha, bound, floor]: [[u64; 3]; 3]) -> Lab {
    let mut lab = Lab::new(study);
    for (system, each) in [("alpha", alpha), ("bound", bound), ("floor", floor)] {
        lab.latencies(system, &each);
    }
    lab
}

#[test]
fn what_is_beyond_the_floor_of_the_language_is_the_bindings_block_by_block() {
    let study = format!("baseline = \"alpha\"\n[workload]\nrate = 1000\n{SYSTEMS}");
    let lab = measured(&study, [[50_000, 60_000, 70_000], [100_000, 121_000, 139_000], [20_000, 21_000, 19_000]]);
    let report = lab.report();
    let of = |system, column| figure(&report, system, column);
    assert_eq!(of("bound", Figure::MESSAGE_TIME), Some(120_000.0));
    assert_eq!(of("bound", Figure::LANGUAGE_FLOOR), Some(20_000.0));
    // 80, 100 and 120 µs: not the difference of the medians.
    assert_eq!(of("bound", Figure::BINDING), Some(100_000.0));
    assert_eq!(of("bound", Figure::OVER_BASELINE), Some(2.0));
    assert_eq!((of("alpha", Figure::BINDING), of("alpha", Figure::OVER_BASELINE)), (None, Some(1.0)));
    let text = report.terminal(160, false);
    assert!(text.contains("Bindings (at given rates)") && text.contains("× baseline"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("bound ")).unwrap();
    assert!(row.contains("121 µs") && row.contains("100 µs") && row.contains("2.0"), "{row}");
    // The floor of a language is no rival.
    let floor = report.cells().iter().find(|result| result.cell.system.name == "floor").unwrap();
    assert!(floor.is_reference);
}

#[test]
fn a_round_trip_counts_half_and_a_rate_is_the_time_between_two_messages() {
    let study = format!("[workload]\npattern = \"request-reply\"\nrate = \"max\"\n{SYSTEMS}");
    let report = measured(&study, [[1; 3], [100_000; 3], [20_000; 3]]).report();
    assert_eq!(figure(&report, "bound", Figure::BINDING), Some(40_000.0));
    let mut lab = Lab::new(&format!("[workload]\nrate = \"max\"\n{SYSTEMS}"));
    lab.rates("bound", &[100_000.0; 3]);
    lab.rates("floor", &[1_000_000.0; 3]);
    assert_eq!(figure(&lab.report(), "bound", Figure::BINDING), Some(9_000.0));
}

#[test]
fn a_binding_is_withheld_where_its_language_scatters_by_more() {
    let study = format!("[workload]\nrate = 1000\n{SYSTEMS}");
    let binding = |floor| figure(&measured(&study, [[1; 3], [21_000; 3], floor]).report(), "bound", Figure::BINDING);
    assert_eq!(binding([20_000; 3]), Some(990.0));
    assert_eq!(binding([20_000, 19_000, 25_000]), None);
    assert_eq!(binding([22_000; 3]), None, "a floor above it is none");
    let mut lab = measured(&study, [[1; 3], [21_000; 3], [20_000; 3]]);
    for run in lab.records.runs.iter_mut().filter(|run| run.system == "floor") {
        let evidence = "own lag".to_owned();
        let finding =
            Finding { reason: Reason::GeneratorSaturated, evidence, figures: FigureGroup::all(), overload: false };
        run.verdict = Verdict { valid: false, reasons: vec![finding], notes: Vec::new() };
    }
    assert_eq!(figure(&lab.report(), "bound", Figure::BINDING), None, "what may not be quoted is not a floor");
}

/// The floor of a language is the same however messages travel; the kernel's is not.
#[test]
fn a_cell_is_shown_beside_the_kernel_at_its_point_and_the_floor_of_its_language() {
    let lab = Lab::new(
        "[workload]\nrate = 1000\n[axes]\nsystem = [\"kernel\", \"bound\", \"floor\"]\nqos = [0, 1]\n\
         [[skip]]\nsystem = \"floor\"\nqos = [1]\nwhy = \"once is enough\"\n",
    );
    let report = lab.report();
    let name = |cell: usize| {
        let cell = &report.cells()[cell].cell;
        format!("{} {}", cell.system.name, cell.axes["qos"])
    };
    let beside = report.beside();
    for (cell, due) in [
        ("bound 0", vec!["kernel 0", "floor 0"]),
        ("bound 1", vec!["kernel 1", "floor 0"]),
        ("kernel 0", vec![]),
        ("floor 0", vec![]),
    ] {
        let index = (0..report.cells().len()).find(|index| name(*index) == cell).unwrap();
        let names: Vec<String> = beside[index].iter().map(|other| name(*other)).collect();
        assert_eq!(names, due, "{cell}");
    }
}

#[test]
fn what_runtimes_say_and_how_they_are_made_is_shown() {
    let mut lab = Lab::new(&format!("[workload]\nrate = 1000\n{SYSTEMS}"));
    lab.latencies("bound", &[50_000; 3]);
    let pauses = |total_ns, longest_ns| Some(RuntimePauses { count: 2, total_ns, longest_ns, longest_at_ns: 0 });
    for run in lab.records.runs.iter_mut() {
        let agent = |pauses, allocated_bytes, call: &str| AgentShare {
            runtime: Some(RuntimeFigures { pauses, allocated_bytes, collections: None }),
            made: [("call".to_owned(), call.to_owned()), ("language".to_owned(), "L 1".to_owned())].into(),
            ..AgentShare::default()
        };
        run.agents =
            vec![agent(pauses(10_000_000, 6_000_000), Some(20_000), "async"), agent(None, Some(0), "blocking")];
    }
    let report = lab.report();
    let of = |column| report.cells()[1].figures.quotable(column).map(|estimate| estimate.value);
    assert_eq!(of(Figure::RUNTIME_PAUSED), Some(0.01));
    assert_eq!(of(Figure::RUNTIME_PAUSE_MAX), Some(6_000_000.0));
    assert_eq!(of(Figure::ALLOCATED), Some(1.0));
    let words: Vec<String> = report.terminal(200, false).split_whitespace().map(str::to_owned).collect();
    let text = words.join(" ");
    assert!(text.contains("How bound is made: call async; language L 1; call blocking."), "{text}");
    lab.records.runs.iter_mut().for_each(|run| run.agents[1].runtime = None);
    let of_one = lab.report().cells()[1].figures.quotable(Figure::ALLOCATED);
    assert_eq!(of_one, None, "what one of two allocated is not what a message costs");
}
