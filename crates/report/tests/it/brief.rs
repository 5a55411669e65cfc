//! The short result, line by line: which system is marked, which figure is unreliable,
//! and that it fits a screen.

use crate::lab::{Lab, fail, histogram, latency, spoil, spoil_for, systems, usage};
use pubmark_model::record::{FigureGroup, Reason, RunRecord};
use pubmark_model::tuning::{SettingDifference, Tuning, Use};
use pubmark_report::{BRIEF_LINES_MAX, BriefPlaces, Report};

/// Compares with a file in `expected/`, or writes it if `PUBMARK_WRITE_EXPECTED` is set.
fn assert_expected(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/expected").join(name);
    if std::env::var_os("PUBMARK_WRITE_EXPECTED").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} is not as expected; it is:\n{text}");
}

fn places() -> BriefPlaces {
    BriefPlaces { page: "results/t/report.html".into(), folders: vec!["results/t".into()] }
}

/// The short result, which fits.
fn brief(report: &Report, width: usize) -> String {
    let text = report.brief(&places(), width, false);
    assert!(text.lines().count() <= BRIEF_LINES_MAX, "{} lines:\n{text}", text.lines().count());
    for line in text.lines() {
        let names_path = ["Page: ", "All figures: ", "More certain: "].iter().any(|start| line.starts_with(start));
        assert!(line.chars().count() <= width || names_path && width < 60, "{width}: {line}");
        assert_eq!(line, line.trim_end());
    }
    text
}

/// The line that begins so.
fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no line {start:?}:\n{text}"))
}

/// The lines from the one that begins so to the next blank one.
fn block<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().skip_while(|line| !line.starts_with(start)).take_while(|line| !line.is_empty()).collect()
}

/// Latencies of which one in fifty takes ten times as long.
fn spread(run: &mut RunRecord, ns: u64) {
    latency(run, &[(ns, 9_800), (10 * ns, 200)]);
}

/// Three systems and the floor, three payloads, 1,000 messages/s and full speed: a winner,
/// an open point and a tie; a lower bound, shares that differ, and a system that fails.
fn quickstart() -> Lab {
    let mut lab = Lab::new(
        "[workload]\nduration = \"1s\"\n[run]\nrepeats = 5\n\
         [axes]\nsystem = [\"kernel\", \"alpha\", \"beta\", \"gamma\"]\nrate = [1000, \"max\"]\n\
         payload = [\"64B\", \"1KiB\", \"32KiB\"]\n",
    );
    for (label, times) in [
        ("kernel rate=1000 64B", [4_000, 4_000, 4_010, 4_000, 4_000]),
        ("alpha rate=1000 64B", [12_000, 12_100, 12_200, 12_100, 12_000]),
        ("beta rate=1000 64B", [24_000, 24_500, 24_200, 24_600, 24_100]),
        ("gamma rate=1000 64B", [60_000, 61_000, 60_400, 60_500, 60_900]),
        ("kernel rate=1000 1KiB", [5_000, 5_000, 5_010, 5_000, 5_000]),
        ("alpha rate=1000 1KiB", [15_000, 17_000, 15_500, 16_200, 14_000]),
        ("beta rate=1000 1KiB", [16_900, 15_800, 16_400, 14_500, 16_700]),
        ("gamma rate=1000 1KiB", [70_000, 71_000, 70_400, 70_500, 70_900]),
        ("kernel rate=1000 32KiB", [9_000, 9_000, 9_010, 9_000, 9_000]),
        ("alpha rate=1000 32KiB", [100_000, 100_100, 100_000, 100_200, 100_100]),
        ("beta rate=1000 32KiB", [100_200, 100_000, 100_100, 100_100, 100_000]),
        ("gamma rate=1000 32KiB", [990_000, 991_000, 990_400, 990_500, 990_900]),
    ] {
        for (repeat, ns) in (1..).zip(times) {
            lab.run(label, repeat, |run| {
                spread(run, ns);
                if label == "gamma rate=1000 32KiB" {
                    spoil_for(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
                    run.times.own_lag = histogram(&[(1_500_000, 10_000)]).summary();
                }
            });
        }
    }
    for (label, rate, share) in [
        ("kernel rate=max 64B", 3e6, 1.0),
        ("alpha rate=max 64B", 900e3, 1.0),
        ("beta rate=max 64B", 1.2e6, 1.0),
        ("gamma rate=max 64B", 300e3, 1.0),
        ("kernel rate=max 1KiB", 2e6, 1.0),
        ("alpha rate=max 1KiB", 1.72e6, 0.24),
        ("beta rate=max 1KiB", 865e3, 0.97),
        ("gamma rate=max 1KiB", 277e3, 0.38),
        ("kernel rate=max 32KiB", 500e3, 1.0),
        ("alpha rate=max 32KiB", 80e3, 1.0),
        ("beta rate=max 32KiB", 40e3, 1.0),
    ] {
        for repeat in 1..=5 {
            lab.run(label, repeat, |run| {
                run.rates.delivered_per_s = rate * (1.0 + 0.002 * f64::from(repeat % 3));
                run.counts.delivered = (20_000.0 * share) as u64;
                run.rates.lower_bound = label == "beta rate=max 64B";
            });
        }
    }
    for repeat in 1..=5 {
        lab.run("gamma rate=max 32KiB", repeat, |run| fail(run, "the port was taken"));
    }
    for (index, run) in lab.records.runs.iter_mut().enumerate() {
        run.started = format!("2026-01-01T00:{:02}:{:02}.5Z", index / 60, index % 60);
    }
    let nodelay = SettingDifference {
        name: "tcp_nodelay".into(),
        value: true.into(),
        stock: Some(false.into()),
        why: "w".into(),
        moves: vec![FigureGroup::LatencyP50],
    };
    let first = lab.records.runs.iter_mut().find(|run| run.system == "beta").unwrap();
    first.settings = Some(Tuning { asked: Use::Tuned, differences: vec![nodelay] });
    lab
}

#[test]
fn a_study_of_two_questions_fits_a_screen_and_says_who_is_best() {
    let text = brief(&quickstart().report(), 100);
    assert_expected("brief-quickstart.txt", &text);
    let latency = block(&text, "LATENCY p50 / p99 at 1,000 messages/s");
    assert!(latency[0].ends_with("lower is better"), "{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = latency[1..6].iter().map(|line| words(line)).collect();
    assert_eq!(rows[0], "payload 64B 1KiB 32KiB");
    let alpha = "alpha 12.1 / 121 µs winner 15.5 / 155 µs candidate 100 µs / 1.00 ms tie";
    assert_eq!(rows[1], alpha);
    let beta = "beta 24.2 / 242 µs behind 16.4 / 164 µs candidate 100 µs / 1.00 ms tie";
    assert_eq!(rows[2], beta);
    let gamma = "gamma 60.5 / 605 µs behind 70.5 / 705 µs behind 991 µs / !9.91 ms behind";
    assert_eq!(rows[3], gamma, "p99 alone is unreliable");
    assert!(rows[4].starts_with("kernel (floor) 4.00 / 40.0 µs"), "the floor is last and has no mark: {text}");
    let says = words(&latency[6..].join(" "));
    assert!(says.starts_with("→ 64B: alpha wins: beta takes at least 1.9× as long, gamma 4.8×."), "{says}");
    assert!(says.contains("1KiB: alpha or beta may be best (about "), "{says}");
    assert!(says.contains("32KiB: alpha and beta tie, they differ by less than 5 %; gamma takes"), "{says}");

    let throughput = block(&text, "THROUGHPUT messages/s (share delivered)");
    assert!(throughput[0].ends_with("higher is better"), "{text}");
    let rows: Vec<String> = throughput[1..6].iter().map(|line| words(line)).collect();
    assert_eq!(rows[1], "alpha 902k (100 %) behind 1.72M (24.0 %) 80.2k (100 %) winner");
    assert_eq!(rows[2], "beta ≥1.20M (100 %) winner 867k (97.0 %) 40.1k (100 %) behind");
    assert_eq!(rows[3], "gamma 301k (100 %) behind 278k (38.0 %) behind failed");
    let says = words(&throughput[6..].join(" "));
    assert!(says.contains("64B: beta wins: alpha delivers at least 1.3× fewer, gamma"), "{says}");
    let shares = "1KiB: not comparable, because the delivered shares differ (24.0 % to 97.0 %).";
    assert!(says.contains(shares), "{says}");
    assert!(says.contains("32KiB: alpha wins: beta delivers at least 1.9× fewer."), "{says}");

    let trust = line(&text, "120 runs: ");
    assert!(trust.starts_with("120 runs: 110 ok, 5 unreliable, 5 failed"), "{trust}");
    assert!(words(&text).contains("p99 of 5 runs (generator-saturated, p99 delay 1.50 ms)"), "{text}");
    assert!(text.contains("\nfailed: gamma rate=max 32KiB: the port was taken\n"), "{text}");
    assert!(text.contains("\nSettings other than the vendor's: beta tcp_nodelay=true (default: false)\n"), "{text}");
    assert!(text.contains("\nPage: results/t/report.html\n"), "{text}");
    assert!(text.contains("\nAll figures: pubmark report results/t --all\n"), "{text}");
    assert!(line(&text, "alpha, beta, gamma · ").ends_with(" · 5 repeats · 3 min"), "{text}");
}

#[test]
fn a_narrow_screen_has_signs_for_words_and_fewer_columns() {
    let report = quickstart().report();
    let text = brief(&report, 72);
    let row = line(&text, "alpha  ").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(row.contains("12.1 / 121 µs ▲") && row.contains("15.5 / 155 µs △"), "{text}");
    assert!(line(&text, "! unreliable").contains("▲ winner   = tie   △ candidate   ▽ behind"), "{text}");
    let text = brief(&report, 60);
    assert!(text.contains("… and 1 more column: --all"), "{text}");
    assert!(text.contains("… and 1 more point: --all") || text.contains("… and 2 more points: --all"), "{text}");
    let text = brief(&report, 40);
    assert!(line(&text, "alpha  ").contains("12.1 / 121 µs"), "{text}");
    // Colours add nothing but colours.
    let mut coloured = report.brief(&places(), 100, true);
    assert!(coloured.contains("\u{1b}[32m12.1 / 121 µs"), "the winner is green: {coloured}");
    assert!(coloured.contains("\u{1b}[33m991 µs / !9.91 ms"), "what is unreliable is yellow: {coloured}");
    for code in ["0", "1", "2", "32", "33"] {
        coloured = coloured.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(coloured, brief(&report, 100));
}

#[test]
fn one_system_has_a_card_with_a_histogram() {
    let mut lab = Lab::new("[workload]\nrate = 1000\nduration = \"2s\"\n[axes]\nsystem = [\"delta\"]\n");
    for (repeat, ns) in [(1, 50_000), (2, 52_000), (3, 51_000)] {
        lab.run("delta", repeat, |run| {
            latency(run, &[(ns, 15_000), (2 * ns, 4_900), (40 * ns, 100)]);
            run.rates.delivered_per_s = 1_000.0;
            run.generator = Some(usage(0.2));
            run.server = Some(usage(0.1));
            run.generator.as_mut().unwrap().rss_bytes_max = 8_400_000;
            run.server.as_mut().unwrap().rss_bytes_max = 5_000_000;
        });
    }
    let text = brief(&lab.report(), 100);
    assert_expected("brief-one-system.txt", &text);
    let row = |start: &str| line(&text, start).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(row("latency ").contains("p50 51.0 µs"), "{text}");
    for name in ["p95 102 µs", "p99 102 µs", "max 2.04 ms"] {
        assert!(row("latency ").contains(name), "{name}: {text}");
    }
    assert!(row("delivered ").contains("1.00k/s") && row("delivered ").contains("100 % 0 lost"), "{text}");
    assert!(row("CPU ").contains("server 0.100") && row("CPU ").contains("all 0.300"), "{text}");
    assert!(row("memory ").contains("server 5.00 MB") && row("memory ").contains("all 13.4 MB"), "{text}");
    let bars = block(&text, "LATENCY at 1,000 messages/s, all ok runs");
    assert!((2..=11).contains(&bars.len()) && bars[1].contains(" µs to "), "{text}");
    assert!(bars[1].contains("75.0 %  ██████████"), "{text}");
    assert!(bars.last().unwrap().contains(" 0.5 %"), "{text}");
    // Without a rate there is no latency, and no histogram.
    let mut lab = Lab::new("[workload]\nrate = \"max\"\n[axes]\nsystem = [\"delta\"]\n");
    lab.rates("delta", &[9e5, 9.1e5]);
    lab.records.runs.iter_mut().for_each(|run| spoil(run, Reason::NotSteady, "falls by 12 %"));
    let text = brief(&lab.report(), 80);
    assert!(line(&text, "delivered ").contains("!905k/s") && !text.contains("LATENCY"), "{text}");
}

/// Two systems, one twice as slow, while others used the machine.
fn busy() -> Lab {
    let mut lab = Lab::new("[workload]\nrate = 1000\n[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.latencies("alpha", &[100_000, 101_000, 100_500]);
    lab.latencies("beta", &[200_000, 201_000, 199_500]);
    for run in &mut lab.records.runs {
        spoil(run, Reason::NoisyMachine, "busy");
        (run.machine.foreign_cores, run.machine.cores) = (1.0, 2);
    }
    lab
}

#[test]
fn a_busy_machine_comes_first_and_a_large_difference_is_shown_all_the_same() {
    let text = brief(&busy().report(), 100);
    assert_expected("brief-busy.txt", &text);
    let lines: Vec<&str> = text.lines().collect();
    let warning = lines.iter().position(|line| line.starts_with("⚠ ")).unwrap();
    let figures = lines.iter().position(|line| line.starts_with("LATENCY")).unwrap();
    assert!(warning < figures && lines[warning].contains("1.0 of 2 processors"), "{text}");
    let words = |start: &str| line(&text, start).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words("alpha  "), "alpha !101 / !101 µs winner");
    assert_eq!(words("beta  "), "beta !200 / !200 µs behind");
    assert_eq!(words("→"), "→ alpha wins: beta takes at least 1.9× as long.");
    assert!(line(&text, "6 runs: ").contains("0 ok, 6 unreliable"), "{text}");
    assert!(text.contains("\n! unreliable\n") && text.contains("pubmark doctor\n"), "{text}");
}

#[test]
fn where_no_run_is_ok_it_says_why_and_ranks_nobody() {
    let mut lab = Lab::new("[workload]\nrate = 1000\n[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\n");
    lab.latencies("alpha", &[100_000, 101_000, 100_500]);
    lab.records.runs.iter_mut().for_each(|run| spoil(run, Reason::ServerDied, "it ended"));
    for repeat in 1..=3 {
        lab.run("beta", repeat, |run| fail(run, "connection refused"));
    }
    let text = brief(&lab.report(), 100);
    assert_expected("brief-nothing-ok.txt", &text);
    let words = |start: &str| line(&text, start).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words("alpha  "), "alpha !101 / !101 µs", "shown, marked, and not ranked");
    assert_eq!((words("beta  "), words("gamma  ")), ("beta failed".into(), "gamma missing".into()));
    assert_eq!(words("→"), "→ not comparable, because no system has a reliable figure.");
    assert!(line(&text, "9 runs: ").contains("0 ok, 3 unreliable, 3 failed, 3 missing"), "{text}");
    assert!(text.contains("all figures of 3 runs (server-died)"), "{text}");
    assert!(text.contains("failed: beta: connection refused"), "{text}");
    // Nothing measured at all.
    let text = brief(&Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n").report(), 80);
    assert!(text.contains("→ not measured yet.") && text.contains("6 runs: 0 ok, 6 missing"), "{text}");
}

#[test]
fn of_many_points_the_first_of_each_question_fit_and_the_others_are_counted() {
    let mut lab = Lab::new(
        "[run]\nrepeats = 2\n[axes]\nsystem = [\"alpha\", \"beta\", \"gamma\"]\nrate = [1000, 2000, \"max\"]\n\
         payload = [\"64B\", \"128B\", \"256B\", \"1KiB\", \"4KiB\", \"32KiB\"]\nqos = [0, 1, 2]\n",
    );
    for (system, ns) in [("alpha", 40_000), ("beta", 60_000), ("gamma", 90_000)] {
        for payload in ["64B", "128B", "256B", "1KiB", "4KiB", "32KiB"] {
            for qos in 0..=2 {
                for rate in [1_000, 2_000] {
                    lab.latencies(&format!("{system} rate={rate} {payload} qos={qos}"), &[ns, ns + 100]);
                }
                let rate = 1e11 / ns as f64;
                lab.rates(&format!("{system} rate=max {payload} qos={qos}"), &[rate, 1.001 * rate]);
            }
        }
    }
    let report = lab.report();
    let text = brief(&report, 120);
    assert_expected("brief-many-points.txt", &text);
    assert!(text.contains("\nLATENCY p50 / p99 at 1,000 messages/s, QoS 0, lower is better\n"), "{text}");
    assert!(text.contains("\nTHROUGHPUT messages/s (share delivered), as fast as possible, QoS 0, higher"), "{text}");
    assert!(text.contains("→ everywhere: alpha wins: "), "{text}");
    let shown = text.matches("\npayload ").count();
    assert!(shown >= 2 && text.contains(&format!("… and {} more points: --all", (9 - shown) * 6)), "{shown}: {text}");
    let first = text.find("THROUGHPUT").unwrap();
    assert!(text.rfind("LATENCY").unwrap() < first, "in the order of the study: {text}");
    for width in [60, 72, 80, 100, 160, 200] {
        brief(&report, width);
    }
}

#[test]
fn of_many_systems_those_that_may_be_best_are_shown() {
    // Bindings by the dozen are known by name only: two of the lab's stand for them.
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\nrate = [100, 200, 400, 800, 1600, 3200, 6400]\n");
    for rate in [100, 200, 400, 800, 1_600, 3_200, 6_400] {
        lab.latencies(&format!("alpha rate={rate}"), &[40_000, 40_100, 40_000]);
        lab.latencies(&format!("beta rate={rate}"), &[80_000, 80_100, 80_000]);
    }
    let text = brief(&lab.report(), 100);
    assert!(line(&text, "rate ").contains("100/s"), "the rate is the axis where there is no other: {text}");
    assert!(line(&text, "LATENCY") == "LATENCY p50 / p99, lower is better", "{text}");
    assert!(text.contains("more columns: --all") && text.contains("more points: --all"), "{text}");
    assert!(text.contains("→ everywhere: alpha wins: beta takes at least "), "{text}");
}

/// What a folder says beyond its records: the machine before the runs, and how to repeat
/// the study more often.
#[test]
fn a_folder_says_what_spoils_figures_and_how_to_be_surer() {
    let mut lab = Lab::new("[workload]\nrate = 1000\n[run]\nrepeats = 3\n[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.latencies("alpha", &[100_000, 120_000, 101_000]);
    lab.latencies("beta", &[104_000, 108_000, 110_000]);
    let dir = tempfile::tempdir().unwrap();
    lab.write(dir.path(), "{\"schema\"");
    let environment = r#"{"quick": true, "doctor": [
        {"what": "load", "severity": "bad", "found": "1.86 over the last minute", "mend": "m"},
        {"what": "swap", "severity": "good", "found": "off", "mend": null}]}"#;
    std::fs::write(dir.path().join("environment.json"), environment).unwrap();
    let report = Report::load(dir.path(), &systems).unwrap();
    let text = report.brief(&places(), 200, false);
    assert!(line(&text, "⚠ ").contains("before the runs, load: 1.86 over the last minute"), "{text}");
    assert!(line(&text, "alpha, beta · ").ends_with(" · --quick: do not publish"), "{text}");
    assert!(text.contains("The last record is incomplete"), "{text}");
    let again = line(&text, "More certain: ");
    let study = dir.path().join("study.toml");
    assert!(again.starts_with(&format!("More certain: pubmark run {} --repeats ", study.display())), "{text}");
    let repeats: u32 = again.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((4..=50).contains(&repeats), "{text}");
}

#[test]
fn hostile_records_keep_the_shape() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    let evil = "\u{1b}]0;owned\u{7}\n| a | <script>\u{202e}".to_owned() + &"x".repeat(1 << 20);
    lab.study.title.clone_from(&evil);
    lab.latencies("alpha", &[100, 101]);
    lab.run("beta", 1, |run| fail(run, &evil));
    let text = brief(&lab.report(), 80);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n') && !text.contains('\u{202e}'), "{text}");
}
