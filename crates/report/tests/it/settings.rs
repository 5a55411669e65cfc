//! Which settings were not the makers', and what hangs on them.

use crate::lab::Lab;
use pubmark_model::record::FigureGroup;
use pubmark_model::tuning::{SettingDifference, Tuning, Use};

fn difference(name: &str, value: u64, stock: Option<u64>, moves: &[FigureGroup]) -> SettingDifference {
    let why = "half an hour would be lost".into();
    SettingDifference {
        name: name.into(),
        value: value.into(),
        stock: stock.map(Into::into),
        why,
        moves: moves.to_vec(),
    }
}

/// A run of one system at QoS 1, with these settings.
fn measured(asked: Use, differences: Vec<SettingDifference>) -> Lab {
    let mut lab = Lab::new("[workload]\nqos = 1\n[axes]\nsystem = [\"alpha\"]\n[run]\nrepeats = 1\n");
    lab.run("alpha", 1, |run| {
        (run.counts.sent, run.counts.acked, run.counts.acked_lost) = (20_000, 20_000, Some(0));
        run.settings = Some(Tuning { asked, differences });
    });
    lab
}

fn said(lab: &Lab) -> [String; 2] {
    let report = lab.report();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    [words(report.terminal(80, false)), words(report.markdown()).replace('\\', "")]
}

#[test]
fn a_zero_that_hangs_on_a_setting_of_ours_says_so() {
    let saved = difference("autosave_interval_s", 1, Some(1_800), &[FigureGroup::Counts]);
    let other = difference("backlog", 4_096, Some(128), &[]);
    let unknown = difference("flush", 1, None, &[]);
    for text in said(&measured(Use::Tuned, vec![saved, other, unknown])) {
        let zero = "None of 20000 acknowledged messages was lost. Depends on settings that differ from the vendor defaults: \
                    alpha autosave_interval_s=1 (default: 1800).";
        assert!(text.contains(zero), "{text}");
        assert!(text.contains(" · settings tuned · "), "{text}");
        let all = "Settings of alpha, tuned: autosave_interval_s=1 (default: 1800); backlog=4096 (default: 128); \
                   flush=1 (no vendor default).";
        assert!(text.contains(all), "{text}");
    }
}

#[test]
fn stock_is_named_and_says_what_stayed() {
    for text in said(&measured(Use::Stock, vec![difference("heap", 50, None, &[])])) {
        assert!(
            text.contains(" · settings stock · ") && text.contains("Settings of alpha, stock except: heap=50"),
            "{text}"
        );
        assert!(!text.contains("Depends on"), "{text}");
    }
    let [text, _] = said(&measured(Use::Stock, Vec::new()));
    assert!(text.contains(" · settings stock · ") && !text.contains("Settings of alpha"), "{text}");
    let [text, _] = said(&measured(Use::Tuned, Vec::new()));
    assert!(!text.contains("settings"), "a system without settings of ours has neither: {text}");
}

#[test]
fn a_winner_names_the_settings_that_its_figure_hangs_on() {
    let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n[run]\nrepeats = 5\n");
    lab.latencies("alpha", &[100_000, 101_000, 102_000, 100_500, 101_500]);
    lab.latencies("beta", &[200_000, 201_000, 199_000, 200_500, 202_000]);
    for run in &mut lab.records.runs {
        let moves: &[FigureGroup] =
            if run.system == "alpha" { &[FigureGroup::LatencyP50] } else { &[FigureGroup::Cost] };
        let differences = vec![difference("nodelay", 1, Some(0), moves)];
        run.settings = Some(Tuning { asked: Use::Tuned, differences });
    }
    for text in said(&lab) {
        let says =
            "a factor of 1.98. Depends on settings that differ from the vendor defaults: alpha nodelay=1 (default: 0).";
        assert!(text.contains(says), "{text}");
    }
}
