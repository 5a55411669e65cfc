use crate::lab::{Lab, fail, histogram, latency, spoil, spoil_for, usage};
use pubmark_model::record::{Component, FigureGroup, Note, Reason};
use pubmark_report::CellVerdict;
use serde_json::{Value, json};

/// Two payloads, three competitors and the floor, of everything something.
fn lab() -> Lab {
    let mut lab = Lab::new(
        "[workload]\nrate = 1000\nduration = \"2s\"\n[run]\nrepeats = 4\n\
         [axes]\nsystem = [\"alpha\", \"beta\", \"gamma\", \"kernel\"]\npayload = [\"64B\", \"1KiB\"]\n\
         [[skip]]\nsystem = \"gamma\"\npayload = \"1KiB\"\nwhy = \"its frames are too small\"\n\
         [[claims]]\nid = \"paper-1\"\nsays = \"Alpha has the lowest median latency of all systems at every payload.\"\n\
         figure = \"latency_p50_ns\"\nbest = [\"alpha\"]\n",
    );
    for (label, times) in [
        ("alpha 64B", [12_000, 12_400, 12_200, 12_100]),
        ("beta 64B", [24_000, 25_000, 24_200, 24_600]),
        ("kernel 64B", [4_000, 4_000, 4_100, 4_000]),
        ("alpha 1KiB", [15_000, 17_000, 15_500, 16_200]),
        ("beta 1KiB", [16_900, 15_800, 16_400, 16_700]),
    ] {
        for (repeat, ns) in (1..).zip(times) {
            lab.run(label, repeat, |run| {
                latency(run, &[(ns, 9_800), (10 * ns, 200)]);
                if label == "alpha 64B" && repeat == 4 {
                    spoil_for(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
                }
                if label == "beta 1KiB" {
                    spoil_for(run, Reason::GeneratorSaturated, &[FigureGroup::LatencyP99]);
                }
                run.rates.delivered_per_s = 1_000.0;
                run.rates.delivered_bytes_per_s = 64_000.0;
                run.generator = Some(usage(0.1 + ns as f64 / 1e6));
                run.generator.as_mut().unwrap().rss_bytes_max = 8_400_000;
                run.jitter_ns = Some(150.0);
            });
        }
    }
    for repeat in [1, 2] {
        lab.run("gamma 64B", repeat, |run| {
            latency(run, &[(9_000, 9_000)]);
            run.rates.delivered_per_s = 900.0;
            run.counts.delivered = 18_000;
            run.counts.lost = 2_000;
            spoil(run, Reason::MessagesLost, "2,000 of 20,000 lost");
        });
    }
    lab.run("kernel 1KiB", 1, |run| fail(run, "the port was taken"));
    lab
}

#[test]
fn eighty_columns_hold_what_matters() {
    assert_eq!(lab().report().terminal(80, false), include_str!("expected/80.txt"));
}

#[test]
fn two_hundred_columns_hold_all() {
    assert_eq!(lab().report().terminal(200, false), include_str!("expected/200.txt"));
}

#[test]
fn markdown_has_the_same_tables() {
    assert_eq!(lab().report().markdown(), include_str!("expected/report.md"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let report = lab().report();
    for width in [72, 80, 100, 120, 160, 200] {
        for line in report.terminal(width, false).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let report = lab().report();
    let coloured = report.terminal(80, true);
    assert!(coloured.contains("\u{1b}[33m         gamma"), "{coloured}");
    assert!(coloured.contains("\u{1b}[32m64B      alpha"), "{coloured}");
    let mut plain = coloured;
    for code in ["1", "2", "32", "33", "0"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(plain, report.terminal(80, false));
}

#[test]
fn the_load_that_is_sustained_has_a_table_of_its_own() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\", \"kernel\"]\nrate = [500, 1000, 2000, \"max\"]\n");
    for system in ["alpha", "beta", "kernel"] {
        for rate in [500, 1_000, 2_000] {
            let late = system == "beta" && rate == 2_000;
            lab.latencies(&format!("{system} rate={rate}"), &[if late { 9_000_000 } else { 40_000 }; 3]);
        }
    }
    // The lowest may not be quoted: it ends nothing.
    for run in lab.records.runs.iter_mut().filter(|run| run.system == "alpha" && run.cell["rate"] == 500) {
        spoil_for(run, Reason::NotSteady, &[FigureGroup::LatencyP99]);
    }
    let report = lab.report();
    let text = report.terminal(100, false);
    let table = &text[text.find("Load that is sustained\n").unwrap()..];
    let row = |start: &str| {
        table.lines().find(|line| line.starts_with(start)).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("alpha"), "alpha ≥ 2.00k 40.0 µs 400 µs nothing that was measured");
    assert_eq!(row("beta"), "beta 1.00k 40.0 µs 400 µs p99 above the bound at 2.00k");
    assert!(!table.lines().any(|line| line.starts_with("kernel")), "{table}");
    assert!(table.contains("unreliable or missing: 500"), "{table}");
    assert!(report.markdown().contains("Load that is sustained"));
    let rows = report.summary_json();
    let of = |system: &str, rate: u64| {
        let row = rows.as_array().unwrap().iter().find(|row| row["system"] == system && row["rate"] == rate).unwrap();
        [&row["knee_axis"], &row["knee"], &row["knee_end"]].map(Clone::clone)
    };
    assert_eq!(of("beta", 2_000), [json!("rate"), json!(1_000), json!("p99 above the bound")]);
    assert_eq!(of("alpha", 500), [json!("rate"), json!(2_000), Value::Null]);
    assert_eq!(of("kernel", 500), [Value::Null, Value::Null, Value::Null]);
}

/// A rate is that of each publisher: what all of them owe together stands beside it.
#[test]
fn the_load_of_all_publishers_together_stands_in_the_table() {
    let of = |publishers: &str| {
        let mut lab = Lab::new(&format!(
            "[axes]\nsystem = [\"delta\"]\nrate = [500, 2000]\n[workload]\npattern = \"pairs\"\npublishers = {publishers}\n"
        ));
        for (label, rate) in [("delta rate=500", 500.0), ("delta rate=2000", 2_000.0)] {
            lab.latencies(label, &[40_000; 3]);
            lab.records.runs.iter_mut().filter(|run| run.cell["rate"] == rate as u64).for_each(|run| {
                run.rates.offered_per_s = 40.0 * rate;
                run.rates.delivered_per_s = 39.0 * rate;
            });
        }
        lab.report()
    };
    let many = of("40");
    for text in [many.terminal(80, false), many.terminal(160, false), many.markdown()] {
        assert!(text.contains("offered/s") && text.contains("20.0k") && text.contains("80.0k"), "{text}");
        assert!(text.contains("offered/s: target rate, all publishers together"), "{text}");
    }
    let one = of("1").terminal(160, false);
    assert!(!one.contains("offered/s"), "one publisher's rate says it: {one}");
}

/// Given rates and `max` in one study.
fn both() -> Lab {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"alpha\", \"beta\"]\nrate = [1000, \"max\"]\n\
         [workload]\npattern = \"request-reply\"\n",
    );
    lab.latencies("alpha rate=1000", &[40_000, 40_100, 40_000, 40_000]);
    lab.latencies("beta rate=1000", &[50_000, 50_000, 50_000, 50_100]);
    lab.rates("alpha rate=max", &[123_000.0, 124_000.0, 123_000.0, 123_000.0]);
    lab.rates("beta rate=max", &[2_500_000.0; 4]);
    for run in lab.records.runs.iter_mut().filter(|run| run.rates.delivered_per_s == 2_500_000.0) {
        run.rates.lower_bound = true;
    }
    lab
}

#[test]
fn given_rates_and_max_have_tables_of_their_own() {
    let text = both().report().terminal(80, false);
    let latency = text.find("Latency (at given rates), rate 1000\n").unwrap();
    let throughput = text.find("Throughput (unthrottled)\n").unwrap();
    let (rated, max) = text[latency..].split_at(throughput - latency);
    let row = |text: &str, start: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(start)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let expected = ["system", "p50", "½", "p50", "p99", "msg/s", "delivered", "verdict"];
    assert_eq!(row(rated, "system"), expected);
    let expected = "alpha 40.0 µs ±0.3% 20.0 µs 40.0 µs ±0.3% 20.0k 100 % winner";
    assert_eq!(row(rated, "alpha").join(" "), expected);
    assert!(rated.contains("full round trip; ½ p50 is half"), "{rated}");
    assert_eq!(row(max, "system")[..4], ["system", "msg/s", "0…2.50M", "delivered"], "bars, where there is room");
    assert!(!row(max, "system").contains(&"p50".to_owned()), "{max}");
    let line = row(max, "beta").join(" ");
    assert!(line.starts_with("beta ≥ 2.50M ██████") && line.contains("█ 100 %"), "{line}");
    assert!(line.ends_with("winner"), "{line}");
    assert!(max.contains("≥: the load generator was at its limit"), "{max}");
    let opening = &text[..latency];
    let said = opening.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("beta has the most messages delivered per second: beta ≥ 2.50M/s"), "{opening}");
    assert!(said.contains("100 % delivered"), "no throughput without its share: {opening}");
}

#[test]
fn a_point_that_is_skipped_altogether_has_no_rows_but_a_reason() {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"alpha\", \"beta\"]\nqos = [0, 1, 2]\n\
         [[skip]]\nqos = 2\nwhy = \"too slow\"\n",
    );
    lab.latencies("alpha qos=0", &[100]);
    let text = lab.report().terminal(80, false);
    assert_eq!(text.matches("missing\n").count(), 3, "{text}");
    assert!(!text.contains("skipped\n"), "{text}");
    let why = "Skipped, 2 cells (alpha, beta): too slow\n";
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("have no row here"), "no table lacks them: {text}");
}

/// Three systems of which two are not installed, a payload that one does not take, and
/// four more reasons of one cell each.
fn left_out() -> Lab {
    let skip = |system: &str, payload: &str, why: &str| {
        let payload = if payload.is_empty() { String::new() } else { format!("payload = \"{payload}\"\n") };
        format!("[[skip]]\nsystem = \"{system}\"\n{payload}why = \"{why}\"\n")
    };
    let lacks = |system: &str| {
        skip(system, "", &format!("{system} is not installed: `pubmark systems {system} --install` brings it"))
    };
    let mut lab = Lab::new(
        &[
            "[axes]\nsystem = [\"beta\", \"gamma\", \"alpha\", \"mock\"]\n\
             payload = [\"32B\", \"64B\", \"128B\", \"256B\", \"512B\"]\n"
                .to_owned(),
            skip("mock", "64B", "reason a"),
            skip("mock", "128B", "reason b"),
            skip("mock", "256B", "reason c"),
            skip("mock", "512B", "reason d"),
            lacks("beta"),
            lacks("gamma"),
        ]
        .concat(),
    );
    lab.latencies("alpha 32B", &[40_000, 40_100]);
    lab
}

#[test]
fn cells_that_were_not_run_are_counted_by_their_reasons_and_take_no_row() {
    let report = left_out().report();
    for text in [report.terminal(200, false), report.markdown().replace('\\', "")] {
        assert_eq!(text.matches("skipped").count(), 1, "in the note, and in no row: {text}");
        assert!(text.contains("14 cells are skipped and have no row here: the reasons are at the end"), "{text}");
        let told: Vec<&str> = text.lines().filter(|line| line.starts_with("Skipped, ")).collect();
        let expected = [
            "Skipped, 10 cells (beta, gamma): NAME is not installed: `pubmark systems NAME --install` brings it",
            "Skipped, 1 cell (mock): reason a",
            "Skipped, 1 cell (mock): reason b",
            "Skipped, 1 cell (mock): reason c",
            "Skipped, 1 more cell for 1 other reason: `pubmark report` with --all has them.",
        ];
        assert_eq!(told, expected, "{text}");
        // A cell that was to be run and has no run keeps its row.
        assert_eq!(text.matches("missing").count(), 5 + 1, "{text}");
    }
    for text in [report.terminal_whole(200, false), report.markdown_whole()] {
        assert_eq!(text.matches("skipped").count(), 14, "{text}");
        assert!(text.contains("reason d") && !text.contains("have no row here"), "{text}");
    }
}

#[test]
fn a_column_that_matters_stays_though_it_is_blank() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\n");
    lab.run("alpha", 1, |run| latency(run, &[(100, 10)]));
    let text = lab.report().terminal(200, false);
    assert!(text.contains("p99 "), "{text}");
    assert!(!text.contains("p99.9"), "{text}");
}

#[test]
fn single_runs_leave_every_system_a_candidate_and_it_says_why() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.latencies("alpha", &[100]);
    lab.latencies("beta", &[200]);
    let text = lab.report().terminal(80, false);
    assert_eq!(text.matches("candidate\n").count(), 2, "{text}");
    assert!(text.contains("open: fewer than two repeats have both systems (beta)"), "{text}");
    assert!(!text.contains('±'), "{text}");
}

/// The word at the end of a system's row.
fn verdict_of(text: &str, system: &str) -> String {
    let row = text
        .lines()
        .find(|line| line.starts_with(&format!("{system}  ")))
        .unwrap_or_else(|| panic!("no {system}: {text}"));
    row.rsplit("  ").next().unwrap().trim().to_owned()
}

#[test]
fn a_word_means_the_same_with_and_without_rivals() {
    let one = || Lab::new("[axes]\nsystem = [\"alpha\"]\n");
    let two = || Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    let shown = |mut lab: Lab| {
        lab.latencies("alpha", &[100_000, 101_000, 100_500]);
        lab.report().terminal(80, false)
    };
    assert_eq!(verdict_of(&shown(one()), "alpha"), "ok", "nobody to rank it with");
    assert_eq!(verdict_of(&shown(two()), "alpha"), "alone", "the rival was not measured");
    let mut lab = two();
    lab.latencies("beta", &[200_000, 201_000, 199_500]);
    lab.records.runs.iter_mut().for_each(|run| spoil(run, Reason::NoisyMachine, "busy"));
    let text = shown(lab);
    let busy = "The machine was busy in 3 of 6 runs: others used 0.0 of";
    assert!(text.contains(busy) && text.contains("Only large") && !text.contains("noisy-machine"), "{text}");
    let words = |text: &str| (verdict_of(text, "alpha"), verdict_of(text, "beta"));
    assert_eq!(words(&text), ("winner".into(), "behind ≥ 1.9×, unreliable".into()));
    let mut lab = two();
    lab.latencies("beta", &[200_000, 201_000, 199_500]);
    assert_eq!(words(&shown(lab)), ("winner".into(), "behind ≥ 1.9×".into()));
    let mut lab = two();
    lab.latencies("beta", &[200_000, 201_000, 199_500]);
    lab.records.runs.iter_mut().for_each(|run| spoil(run, Reason::ServerDied, "it ended"));
    assert_eq!(words(&shown(lab)), ("alone".into(), "unreliable".into()), "that is other work");
}

#[test]
fn shares_that_differ_leave_throughputs_unranked_and_the_opening_says_the_shares() {
    let mut lab = Lab::new("[workload]\nrate = \"max\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.rates("alpha", &[900_000.0, 901_000.0, 902_000.0]);
    lab.records.runs.iter_mut().for_each(|run| run.counts.delivered = 1_760);
    lab.rates("beta", &[200_000.0, 201_000.0, 199_500.0]);
    let text = lab.report().terminal(120, false);
    assert_eq!(
        (verdict_of(&text, "alpha").as_str(), verdict_of(&text, "beta").as_str()),
        ("not comparable", "not comparable")
    );
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let opening = "No ranking by throughput: the shares delivered differ. \
                   alpha 901k/s (899k/s to 903k/s, 8.8 % delivered); beta 200k/s";
    assert!(words.contains(opening), "{text}");
    assert!(words.contains("not comparable: the shares delivered differ (8.8 % to 100 %)"), "{text}");
}

/// The docs define the words as the program does.
#[test]
fn the_words_of_a_ranking_are_those_of_the_docs() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for word in CellVerdict::ALL {
        let row = format!("| `{}` | {} |", word.text(), word.meaning());
        assert!(docs.contains(&row), "docs/report.md lacks: {row}");
    }
}

#[test]
fn partly_valid_cells_say_how_many_runs_count() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    lab.latencies("alpha", &[100_000, 101_000, 102_000, 100_500, 101_500]);
    lab.latencies("beta", &[200_000, 201_000, 199_000, 200_500, 202_000]);
    spoil(&mut lab.records.runs[1], Reason::NotSteady, "falls by 12 %");
    let text = lab.report().terminal(80, false);
    assert!(text.contains("winner (4/5)\n"), "{text}");
    let note = "alpha: 1 of 5 runs unreliable: not-steady: falls by 12 %";
    assert!(text.contains(note), "{text}");
}

#[test]
fn where_axes_leave_little_room_the_intervals_go_last_and_it_says_so() {
    let mut lab = Lab::new(
        "[axes]\nsystem = [\"alpha\", \"beta\"]\narrival = [\"uniform\", \"poisson\"]\n\
         pairs = [1, 2]\npayload = [64, 1024]\n",
    );
    lab.latencies("alpha arrival=uniform pairs=1 64B", &[12_000, 12_400]);
    let text = lab.report().terminal(80, false);
    let words: Vec<&str> = text.split_whitespace().collect();
    let told = words.join(" ").contains("the intervals (±); summary.csv has all");
    assert!(told, "{text}");
    assert_eq!(text.matches('±').count(), 1, "{text}");
    assert!(text.contains("figures: the median over the runs"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    for word in ["12.2 µs", "msg/s", "delivered", "verdict"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let wide = lab.report().terminal(200, false);
    assert!(wide.contains("12.2 µs ±23%"), "{wide}");
}

#[test]
fn signs_are_explained_where_they_stand() {
    let report = lab().report();
    let explained = |text: &str| text.contains("* least, = tie for least");
    assert!(!explained(&report.terminal(80, false)));
    assert!(explained(&report.terminal(200, false)));
    assert!(report.markdown().contains("CPU/msg: \\* least"));
}

#[test]
fn hostile_records_are_harmless() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
    let evil = "\u{1b}]0;owned\u{7}\n| a | <script>\u{202e}".to_owned() + &"x".repeat(1 << 20);
    lab.latencies("alpha", &[100, 101]);
    for run in &mut lab.records.runs {
        spoil(run, Reason::Clock, &evil);
    }
    lab.run("beta", 1, |run| fail(run, &evil));
    let report = lab.report();
    let (terminal, markdown) = (report.terminal(80, false), report.markdown());
    for text in [&terminal, &markdown] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
        assert!(!text.contains('\u{202e}'));
        assert!(text.len() < 10_000, "{}", text.len());
    }
    assert!(markdown.contains("clock (2×): \u{fffd}\\]0;owned\u{fffd} \\| a \\| &lt;script&gt;"));
    assert!(markdown.contains("beta: 1 of 1 run failed: \u{fffd}\\]0;owned"));
}

#[test]
fn a_hostile_study_keeps_the_shape_of_a_markdown_table() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\"]\noptions.library = [\"a|b\", \"c\\nd\"]\n");
    lab.study.title = "# <b>\n## b".into();
    let text = lab.report().markdown();
    assert!(text.starts_with("# \\# &lt;b&gt; \\#\\# b\n\n"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert!(rows[2].starts_with("| a\\|b | alpha |"), "{text}");
    assert!(rows[3].starts_with("| c d | alpha |"), "{text}");
}

#[test]
fn a_throughput_never_stands_without_its_delivered_ratio() {
    for (report, width) in [(lab(), 72), (lab(), 300), (both(), 72), (both(), 300)] {
        let text = report.report().terminal(width, false);
        let heads: Vec<&str> = text.lines().filter(|line| line.contains("msg/s  ")).collect();
        // A table too narrow for both leaves out the throughput.
        assert!(!heads.is_empty() || width == 72, "{text}");
        assert!(heads.iter().all(|head| head.contains("delivered")), "{text}");
    }
}

/// A stall of one of two systems, which only the latency from the intended time shows.
fn stalled(service_ns: u64) -> Lab {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n[workload]\nrate = 1000\n");
    lab.latencies("alpha", &[100_000, 100_000]);
    for repeat in [1, 2] {
        lab.run("beta", repeat, |run| {
            latency(run, &[(100_000, 19_000), (800_000_000, 1_000)]);
            run.times.service_latency = histogram(&[(100_000, 19_000), (service_ns, 1_000)]).summary();
            run.counts.late = 1_000;
            let evidence = "the server delivered nothing for a while".into();
            run.verdict.notes.push(Note { part: Component::Server, evidence });
        });
    }
    lab
}

#[test]
fn both_latencies_stand_side_by_side_where_they_differ_much() {
    let text = stalled(200_000).report().terminal(120, false);
    let head = text.lines().find(|line| line.starts_with("system")).unwrap();
    assert!(head.contains("service p99") && head.contains("late"), "{head}");
    let row = text.lines().find(|line| line.starts_with("beta")).unwrap();
    assert!(row.contains("800 ms") && row.contains("200 µs") && row.contains("1.00k"), "{row}");
    assert!(text.contains("service p99 from when it was sent"), "{text}");
    let alike = stalled(800_000_000).report().terminal(120, false);
    assert!(!alike.contains("service p99"), "{alike}");
}

#[test]
fn what_runs_found_is_told_and_makes_none_of_them_invalid() {
    let text = stalled(200_000).report().terminal(120, false);
    assert!(text.contains("beta: noted in 2 of 2 runs, the first: the server delivered nothing for a while"), "{text}");
    assert!(text.contains("4 ok, 0 unreliable"), "{text}");
}

/// What a limit holds down is shown wherever there is a limit, however narrow the screen.
#[test]
fn the_memory_of_a_limited_server_is_never_left_out() {
    for (limits, shown) in [("[limits]\nmemory = \"64MB\"\n", true), ("", false)] {
        let mut lab = Lab::new(&format!(
            "{limits}[axes]\nsystem = [\"alpha\", \"beta\"]\narrival = [\"uniform\", \"poisson\"]\n\
             pairs = [1, 2]\npayload = [64, 1024]\n"
        ));
        for label in ["alpha arrival=uniform pairs=1 64B", "beta arrival=uniform pairs=1 64B"] {
            for repeat in 1..=2 {
                lab.run(label, repeat, |run| {
                    latency(run, &[(12_000, 20_000)]);
                    run.server = Some(usage(0.1));
                    run.server.as_mut().unwrap().rss_bytes_median = 8_400_000;
                });
            }
        }
        for width in [80, 120] {
            let text = lab.report().terminal(width, false);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(!shown || text.contains("8.4 MB") || words.contains("8.40 MB"), "{width}: {text}");
        }
    }
}
