//! The study file: what it may say, and what each mistake is answered with.

use proptest::prelude::*;
use pubmark_model::cell::Cell;
use pubmark_model::claim::{Claim, Condition, Figure};
use pubmark_model::diagnostic::{Diagnostic, Diagnostics, line_column};
use pubmark_model::plan::{MAX_CELLS, Planned, cells, order};
use pubmark_model::study::{OptionSetting, Reading, Skip, Study};
use pubmark_model::system::System;
use pubmark_model::workload::{Extent, Rate};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

const ALPHA: &str = r#"
title = "Alpha"
about = "a library with every transport"
licence = "MIT"
driver = "alpha"
transports = ["inproc", "ipc", "tcp", "udp"]
patterns = ["pairs", "fan-out", "fan-in", "request-reply", "pipeline"]
[options.depth]
kind = "count"
default = 5
doc = "its own"
"#;

const BETA: &str = r#"
title = "Beta"
about = "a library with little"
licence = "MIT"
driver = "beta"
transports = ["inproc", "tcp"]
patterns = ["pairs", "fan-out"]
"#;

const SOLO: &str = r#"
title = "Solo"
about = "no transport to choose"
licence = "none"
driver = "mock"
transports = []
patterns = ["pairs"]
"#;

fn find(name: &str) -> Option<&'static System> {
    static SYSTEMS: OnceLock<Vec<System>> = OnceLock::new();
    let systems = SYSTEMS.get_or_init(|| {
        let parse =
            |(name, text): (&str, &str)| System::parse(name, name, text).unwrap_or_else(|errors| panic!("{errors}"));
        [("alpha", ALPHA), ("beta", BETA), ("solo", SOLO)].into_iter().map(parse).collect()
    });
    systems.iter().find(|system| system.name == name)
}

fn read(text: &str, reading: &Reading<'_>) -> Result<Study, Diagnostics> {
    Study::parse("study.toml", text, &find, reading)
}

#[track_caller]
fn good(text: &str) -> Study {
    read(text, &Reading::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A study of `alpha` over inproc, with more of the file.
fn with(more: &str) -> String {
    format!("title = \"t\"\n{more}\n[axes]\nsystem = [\"alpha\"]\n")
}

/// `LINE:COLUMN MESSAGE | HELP`; an error of the whole file has no place.
fn shown(errors: &Diagnostics) -> Vec<String> {
    let one = |error: &Diagnostic| {
        let place = error.offset.map(|offset| line_column(&errors.text, offset));
        let place = place.map(|(line, column)| format!("{line}:{column} ")).unwrap_or_default();
        let help = error.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        format!("{place}{}{help}", error.message)
    };
    errors.errors.iter().map(one).collect()
}

#[track_caller]
fn refused(text: &str, wanted: &[&str]) {
    refused_as(text, &Reading::default(), wanted);
}

#[track_caller]
fn refused_as(text: &str, reading: &Reading<'_>, wanted: &[&str]) {
    match read(text, reading) {
        Ok(study) => panic!("accepted: {study:?}"),
        Err(errors) => assert_eq!(shown(&errors), wanted),
    }
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[track_caller]
fn overridden(text: &str, set: &[(&str, &str)], only: &[(&str, &str)]) -> Study {
    let (set, only) = (pairs(set), pairs(only));
    read(text, &Reading { quick: false, set: &set, only: &only }).unwrap_or_else(|errors| panic!("{errors}"))
}

#[track_caller]
fn override_refused(text: &str, set: &[(&str, &str)], only: &[(&str, &str)], wanted: &[&str]) {
    let (set, only) = (pairs(set), pairs(only));
    refused_as(text, &Reading { quick: false, set: &set, only: &only }, wanted);
}

fn quick() -> Reading<'static> {
    Reading { quick: true, ..Reading::default() }
}

#[track_caller]
fn planned(text: &str) -> Vec<Cell> {
    cells(&good(text), &find).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[track_caller]
fn unplannable(text: &str, wanted: &[(&str, Option<&str>)]) {
    let errors = cells(&good(text), &find).expect_err("there is no plan");
    let errors: Vec<_> = errors.iter().map(|error| (error.message.as_str(), error.help.as_deref())).collect();
    assert_eq!(errors, wanted);
}

const LEAVE_OUT: Option<&str> = Some("leave it out with a [[skip]] entry, or choose another");

// ---- what a file says -----------------------------------------------------

#[test]
fn everything_in_a_file_is_read() {
    let study = good(
        r#"
title = "All of it"
question = "Which?"
[workload]
pattern = "fan-out"
transport = "tcp"
rate = 0.5
arrival = "burst:100"
warmup = "1.5s"
duration = "2m"
drain = "0"
pacing_quantum = "10us"
[limits]
cpus = 1.5
memory = "4GB"
[axes]
payload = [64, "1KB", "32KiB", "1.5MiB"]
system = ["alpha", "beta"]
options.tcp_nodelay = [true, false]
[run]
repeats = 4
order = "sequential"
seed = 18_446_744_073_709_551_615
[options]
queue_messages = 10
[options.alpha]
depth = 7
linger = "1m"
[[skip]]
system = "beta"
payload = ["1KB", 64]
why = "because"
[[claims]]
id = "A1"
says = "alpha wins"
figure = "latency_p99_ns"
best = ["alpha"]
among = ["alpha", "beta"]
share = 0.9
[claims.where]
payload = "<=32KiB"
"#,
    );
    assert_eq!((study.title.as_str(), study.question.as_str(), study.quick), ("All of it", "Which?", false));
    let settings: BTreeMap<&str, &Value> = study.settings.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let expected = json!({
        "pattern": "fan-out", "transport": "tcp", "rate": 0.5, "arrival": "burst:100", "warmup": "1500ms",
        "duration": "120s", "drain": "0s", "pacing_quantum": "10us", "cpus": 1.5, "memory": 4_000_000_000_u64,
        "repeats": 4, "order": "sequential", "seed": u64::MAX,
        "qos": 0, "connect_timeout": "30s", "pacing": "sleep", "verify": "header", "pin": "none", "max_send_lag": "1ms",
    });
    let expected: BTreeMap<&str, &Value> =
        expected.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value)).collect();
    assert_eq!(settings, expected);
    let axes: Vec<_> = study.axes.iter().map(|axis| (axis.name.as_str(), json!(axis.values))).collect();
    assert_eq!(
        axes,
        [
            ("system", json!(["alpha", "beta"])),
            ("payload", json!([64, 1_000, 32_768, 1_572_864])),
            ("options.tcp_nodelay", json!([true, false])),
        ]
    );
    assert_eq!((study.repeats(), study.seed(), study.interleaved()), (4, u64::MAX, false));
    let option = |system: Option<&str>, name: &str, text: &str| OptionSetting {
        system: system.map(str::to_owned),
        name: name.into(),
        text: text.into(),
    };
    let options = [
        option(None, "queue_messages", "10"),
        option(Some("alpha"), "depth", "7"),
        option(Some("alpha"), "linger", "1m"),
    ];
    assert_eq!(study.options, options);
    let one_of = |values: &[Value]| Condition::OneOf(values.to_vec());
    assert_eq!(
        study.skips,
        [Skip {
            conditions: vec![
                ("system".into(), one_of(&[json!("beta")])),
                ("payload".into(), one_of(&[json!(1_000), json!(64)])),
            ],
            why: "because".into(),
        }]
    );
    assert_eq!(
        study.claims,
        [Claim {
            id: "A1".into(),
            says: "alpha wins".into(),
            figure: Figure::LatencyP99,
            best: vec!["alpha".into()],
            among: vec!["alpha".into(), "beta".into()],
            conditions: vec![("payload".into(), Condition::AtMost(32_768.0))],
            share: 0.9,
        }]
    );
}

#[test]
fn what_is_not_said_has_its_default() {
    let study = good(&with(""));
    let text = |name: &str| study.settings[name].to_string();
    assert_eq!((text("duration"), text("rate"), text("payload")), ("\"5s\"".into(), "1000".into(), "1024".into()));
    assert_eq!((study.repeats(), study.seed(), study.interleaved()), (3, 1, true));
    let counted = good(&with("[workload]\ncount = 100"));
    assert_eq!(counted.settings.get("duration"), None, "a count takes the place of a duration");
}

#[test]
fn options_on_axes_and_in_conditions_may_be_written_with_a_dot_or_quoted() {
    let file = |option: &str| {
        format!(
            "title = \"t\"\n[axes]\nsystem = [\"alpha\"]\n{option} = [1, 2]\n[[skip]]\nwhy = \"w\"\n{option} = 2\n[[claims]]\n\
             id = \"c\"\nsays = \"s\"\nfigure = \"cpu_cores\"\nbest = \"alpha\"\n[claims.where]\n{option} = \">=2\"\n"
        )
    };
    let dotted = good(&file("options.depth"));
    assert_eq!(dotted, good(&file("\"options.depth\"")));
    assert_eq!(dotted.axes[1].values, [json!(1), json!(2)]);
    assert_eq!(dotted.skips[0].conditions, [("options.depth".to_owned(), Condition::OneOf(vec![json!(2)]))]);
    assert_eq!(dotted.claims[0].conditions, [("options.depth".to_owned(), Condition::AtLeast(2.0))]);
}

// ---- mistakes -------------------------------------------------------------

#[test]
fn every_mistake_of_a_file_is_reported_at_once_and_in_order() {
    refused(
        r#"titel = "t"
rate = 10
[workload]
pattern = "fanout"
payload = "1kb"
cpus = 2
warmpu = "1s"
[axes]
system = ["alpah"]
pyload = [1, 2]
duration = ["1s", "1000ms"]
[limts]
cpus = 1
[[skip]]
duration = "1s"
[options.gamma]
depth = 1
[[claims]]
id = "c"
"#,
        &[
            "1:1 unknown key `titel` in a study file | did you mean `title`?",
            "2:1 `rate` belongs into [workload]",
            "4:11 pattern: `fanout` is none of pairs, fan-out, fan-in, request-reply, pipeline: did you mean `fan-out`?",
            "5:11 payload: `1kb` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)",
            "6:1 `cpus` belongs into [limits], not [workload]",
            "7:1 unknown key `warmpu` in [workload] | did you mean `warmup`?",
            "9:11 unknown system `alpah` | `pubmark systems` lists them",
            "10:1 `pyload` cannot be an axis | did you mean `payload`?",
            "11:19 `1000ms` is twice on the axis `duration`",
            "12:2 unknown table [limts] | did you mean `limits`?",
            "14:1 a [[skip]] needs `why`: the report shows it",
            "16:10 unknown system `gamma` in [options.gamma] | `pubmark systems` lists them",
            "18:1 a [[claims]] entry needs `id`, `says`, `figure` and `best`",
            "`title` is missing",
        ],
    );
}

#[test]
fn the_report_shows_the_line_and_points_at_the_place() {
    let errors = read(&with("[workload]\nrat = 5\nqos = 3"), &Reading::default()).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "study.toml:3:1: unknown key `rat` in [workload]\n  3 | rat = 5\n    | ^\n  help: did you mean `rate`?\n\
         study.toml:4:7: qos: `3` is not a whole number from 0 to 2\n  4 | qos = 3\n    |       ^"
    );
}

#[test]
fn columns_count_characters() {
    refused(
        "title = \"t\"\n[axes]\nsystem = [\"alpha\", \"µµµ\", \"ß\"]\n",
        &[
            "3:20 unknown system `µµµ` | `pubmark systems` lists them",
            "3:27 unknown system `ß` | `pubmark systems` lists them",
        ],
    );
}

#[test]
fn sizes_times_counts_and_rates_are_strict() {
    let size =
        "is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)";
    let time = "is not a time: write a number and one of ns, us, ms, s, m, such as `250ms`";
    let rate = "is not a rate: write messages per second and publisher (0.001 to 1,000,000,000) or `max`";
    for (line, message) in [
        ("payload = \"32Kib\"", format!("payload: `32Kib` {size}")),
        (
            "payload = \"0.3B\"",
            "payload: `0.3B` is not a whole number of bytes, such as `1024`, `1KB` or `32KiB`".into(),
        ),
        ("payload = 15", "payload: `15` is outside the range of 16 to 1073741824 bytes".into()),
        ("payload = \"2GiB\"", "payload: `2GiB` is outside the range of 16 to 1073741824 bytes".into()),
        ("warmup = 5", format!("warmup: `5` {time}")),
        ("warmup = \"1h\"", format!("warmup: `1h` {time}")),
        (
            "warmup = \"0.5ns\"",
            "warmup: `0.5ns` is not a whole number of nanoseconds, such as `250ms` or `1.5s`".into(),
        ),
        ("warmup = \"43201m\"", "warmup: `43201m` is longer than the 30 days that a run may take".into()),
        ("rate = 0", format!("rate: `0` {rate}")),
        ("rate = -1", format!("rate: `-1` {rate}")),
        ("rate = \"10/s\"", format!("rate: `10/s` {rate}")),
        ("pairs = 0", "pairs: `0` is not a whole number from 1 to 1000000".into()),
        ("pairs = 1.5", "pairs: `1.5` is not a whole number from 1 to 1000000".into()),
        ("count = 4294967280", "count: `4294967280` is not a whole number from 1 to 4294967279".into()),
        (
            "arrival = \"burst:0\"",
            "arrival: `burst:0` is no arrival: write `uniform`, `poisson` or `burst:K` with K from 1 to 1,000,000"
                .into(),
        ),
        (
            "transport = \"quic\"",
            "transport: `quic` is none of inproc, ipc, tcp, udp: known: inproc, ipc, tcp, udp".into(),
        ),
    ] {
        let column = line.find('=').unwrap() + 3;
        refused(&with(&format!("[workload]\n{line}")), &[&format!("3:{column} {message}")]);
    }
    let cpus = "is not a number of processors from 0.01 to 4096, in steps of 0.001";
    for text in ["0", "4097", "1e1", "0.0105", "max"] {
        refused(&with(&format!("[limits]\ncpus = \"{text}\"")), &[&format!("3:8 cpus: `{text}` {cpus}")]);
    }
    refused(
        &with("[limits]\nmemory = \"1KiB\""),
        &["3:10 memory: `1KiB` is outside the range of 1048576 to 1125899906842624 bytes"],
    );
    refused(
        &with("[run]\norder = \"interleavd\"\nrepeats = 1001"),
        &[
            "3:9 order: `interleavd` is no order: did you mean `interleaved`?",
            "4:11 repeats: `1001` is not a whole number from 1 to 1000",
        ],
    );
}

#[test]
fn a_value_has_the_shape_that_its_key_takes() {
    let plain = "a text, a decimal number, true or false is wanted here";
    refused(
        &with("[workload]\nrate = [1, 2]"),
        &["3:1 `rate` takes one value, not a list | a list of values to compare belongs into [axes]"],
    );
    refused(
        &with("[workload]\nrate = 0x10\nqos = [[1]]\nwarmup = 2026-01-01\npyload = 1"),
        &[
            &format!("3:8 {plain}"),
            &format!("4:8 {plain}"),
            &format!("5:10 {plain}"),
            "6:1 unknown key `pyload` in [workload] | did you mean `payload`?",
        ],
    );
}

#[test]
fn a_table_is_written_as_a_table() {
    refused(
        "title = \"t\"\nlimits = 5\nskip = []\nworkload = \"x\"\n[axes]\nsystem = \"alpha\"\n",
        &[
            "2:1 `limits` is a table: write [limits]",
            "3:1 `skip` is a list of tables: write [[skip]]",
            "4:1 `workload` is a table: write [workload]",
        ],
    );
    refused(
        &with("[workload.more]\nrate = 1\n[run.a.b]\nc = 1"),
        &["2:11 unknown table [workload.more]", "4:6 unknown table [run.a]", "4:8 unknown table [run.a.b]"],
    );
    refused(
        &with("[[skip]]\nwhy = \"w\"\nsystem = [{ a = 1 }, 2]"),
        &["4:11 unknown table [skip.system]", "4:22 a list holds either tables or plain values, not both"],
    );
}

#[test]
fn sections_keep_to_their_keys() {
    refused(
        &with("[workload]\nrepeats = 2\n[limits]\nrate = 5\n[run]\nmemory = \"1GB\"\n[quick]\nrepeat = 1"),
        &[
            "3:1 `repeats` belongs into [run], not [workload]",
            "5:1 `rate` belongs into [workload], not [limits]",
            "7:1 `memory` belongs into [limits], not [run]",
            "9:1 unknown key `repeat` in [quick] | did you mean `repeats`?",
        ],
    );
    refused(
        &with("[run]\nwhatever_is_this = 1"),
        &["3:1 unknown key `whatever_is_this` in [run] | known: repeats, order, seed"],
    );
    refused(
        &with("[workload]\npacing-quantum = \"1us\""),
        &["3:1 unknown key `pacing-quantum` in [workload] | did you mean `pacing_quantum`?"],
    );
}

#[test]
fn axes_have_values_once_and_are_not_settings_too() {
    let axes = |lines: &str| format!("title = \"t\"\n[axes]\nsystem = [\"alpha\"]\n{lines}\n");
    refused(&axes("payload = [\"1KiB\", 64, 1024]"), &["4:24 `1024` is twice on the axis `payload`"]);
    refused(&axes("payload = []"), &["4:1 the axis `payload` has no value"]);
    refused(
        &axes("repeats = [1, 2]"),
        &["4:1 `repeats` cannot be an axis | KNOWN"]
            .map(|line| Box::leak(line.replace("KNOWN", &known_axes()).into_boxed_str()) as &str),
    );
    refused(&axes("rate = [1]\n[workload]\nrate = 2"), &["`rate` is set and is an axis too: leave one of them out"]);
    refused(&axes("options.depth = [1]\n\"options.depth\" = [2]"), &["`options.depth` is an axis twice"]);
    refused(
        "title = \"t\"\n",
        &["no system is named | write [axes] with system = [\"zeromq\", …]; `pubmark systems` lists them"],
    );
    let many: Vec<String> = (1..=1_001).map(|n| n.to_string()).collect();
    refused(&axes(&format!("pairs = [{}]", many.join(","))), &["4:1 the axis `pairs` has more than 1000 values"]);
}

/// The names that an axis can have, as a suggestion lists them.
fn known_axes() -> String {
    let keys = pubmark_model::setting::KEYS.iter();
    let names = keys.filter(|key| key.section.name() != "run").map(|key| key.name).chain(["system"]);
    format!("known: {}", names.collect::<Vec<_>>().join(", "))
}

#[test]
fn options_are_checked_against_their_systems() {
    refused(
        &with(
            "[options]\ntcp_nodely = true\nio_threads = \"many\"\n[options.alpha]\ndept = 3\ndepth = -1\n[options.beta]\ndepth = 1",
        ),
        &[
            "3:1 unknown option `tcp_nodely` | did you mean `tcp_nodelay`?",
            "4:14 io_threads: `many` is not a whole number from 0 to 4294967295",
            "6:1 unknown option `dept` | did you mean `depth`?",
            "7:9 depth: `-1` is not a whole number from 0 to 4294967295",
            "9:1 unknown option `depth` | known: io_threads, library, linger, queue_bytes, queue_messages, socket_buffer, tcp_nodelay",
        ],
    );
    refused(
        &with("[options.alpha]\nlinger = 5\nsocket_buffer = \"lots\"\ntcp_nodelay = 1"),
        &[
            "3:10 linger: `5` is not a time: write a number and one of ns, us, ms, s, m, such as `250ms`",
            "4:17 socket_buffer: `lots` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)",
            "5:15 tcp_nodelay: `1` is neither true nor false",
        ],
    );
    assert_eq!(good(&with("[options]\ndepth = 2")).options[0].name, "depth", "an option of a system of the study");
}

#[test]
fn skips_say_why_and_name_axes() {
    refused(
        &with(
            "[[skip]]\nsystem = \"alpha\"\n[[skip]]\nwhy = \"\"\n[[skip]]\nwhy = \"w\"\npayload = 64\npyload = 1\nrate = \"<=fast\"\npattern = \"<=pairs\"\nqos = []",
        ),
        &[
            "2:1 a [[skip]] needs `why`: the report shows it",
            "4:1 a [[skip]] needs `why`: the report shows it",
            "9:1 `pyload` cannot be an axis | did you mean `payload`?",
            "10:8 rate: `fast` is not a rate: write messages per second and publisher (0.001 to 1,000,000,000) or `max`",
            "11:11 `pattern` has no order: name its values",
            "12:1 `qos` names no value: the condition would never hold",
            "a condition names `payload`, which is no axis of this study | its axes: system",
        ],
    );
}

#[test]
fn claims_are_whole_and_about_known_things() {
    let claim = |lines: &str| with(&format!("[[claims]]\n{lines}"));
    let whole = "id = \"c\"\nsays = \"s\"\nfigure = \"jitter_ns\"\nbest = \"alpha\"\n";
    assert_eq!(good(&claim(whole)).claims[0].share, 1.0);
    for missing in ["id", "says", "figure", "best"] {
        let lines: Vec<&str> = whole.lines().filter(|line| !line.starts_with(missing)).collect();
        refused(&claim(&lines.join("\n")), &["2:1 a [[claims]] entry needs `id`, `says`, `figure` and `best`"]);
    }
    refused(
        &claim(&whole.replace("\"s\"", "\"\"").replace("\"alpha\"", "[]")),
        &["2:1 a [[claims]] entry needs `id`, `says`, `figure` and `best`"],
    );
    refused(
        &claim(&whole.replace("jitter_ns", "jiter_ns").replace("alpha", "alpah")),
        &[
            "5:10 `jiter_ns` is no figure: did you mean `jitter_ns`?",
            "6:8 unknown system `alpah` | `pubmark systems` lists them",
        ],
    );
    refused(
        &claim(&format!(
            "{whole}among = [\"alpha\", \"gamma\"]\nshare = 1.5\nshares = 1\nwho = 1\n[claims.where]\nrates = 1\nrate = 5"
        )),
        &[
            "7:19 unknown system `gamma` | `pubmark systems` lists them",
            "8:9 `share` is a number from 0 to 1",
            "9:1 unknown key `shares` in [[claims]] | did you mean `share`?",
            "10:1 unknown key `who` in [[claims]] | known: id, says, figure, best, among, share",
            "12:1 `rates` cannot be an axis | did you mean `rate`?",
            "a condition names `rate`, which is no axis of this study | its axes: system",
        ],
    );
}

#[test]
fn syntax_errors_stand_alone() {
    let errors = |text: &str| read(text, &Reading::default()).unwrap_err();
    let open = errors("title = \"t\n[axes]\nsystem = [\"alpha\"]\n");
    assert!(open.errors.iter().all(|error| error.offset.is_some()), "{open}");
    assert!(open.to_string().starts_with("study.toml:1:"), "{open}");
    let twice = errors("title = \"t\"\n[workload]\nrate = 1\nrate = 2\n");
    assert_eq!(twice.errors.len(), 1, "{twice}");
    assert!(twice.to_string().starts_with("study.toml:4:1: duplicate key"), "{twice}");
    let two = errors("title = \n[axes]\nsystem == \"alpha\"\n");
    let lines: BTreeSet<usize> =
        two.errors.iter().map(|error| line_column(&two.text, error.offset.unwrap()).0).collect();
    assert_eq!(lines, BTreeSet::from([1, 3]), "{two}");
    let deep = errors(&format!("title = \"t\"\n[{}]\nx = 1\n", vec!["a"; 20].join(".")));
    assert!(shown(&deep).contains(&"2:18 tables are nested too deeply".to_owned()), "{deep}");
    assert!(!errors(&"[".repeat(100_000)).errors.is_empty());
    assert!(!errors(&format!("a = {}", "[".repeat(100_000))).errors.is_empty());
    assert!(errors(&"= = =\n".repeat(1_000)).errors.len() <= 50);
}

// ---- overrides ------------------------------------------------------------

const CROSSED: &str = r#"title = "t"
[workload]
duration = "3s"
[axes]
system = ["alpha", "beta"]
payload = [64, "1KB", "4KB", "16KB", "64KB"]
options.queue_messages = [10, 20]
[options]
linger = "1s"
[options.alpha]
depth = 3
linger = "2s"
"#;

#[test]
fn set_replaces_what_the_file_says() {
    let study = overridden(
        CROSSED,
        &[
            ("payload", "32B"),
            ("workload.rate", "max"),
            ("run.repeats", "9"),
            ("limits.memory", "1GB"),
            ("pacing-quantum", "1us"),
            ("count", "50"),
            ("title", "other"),
            ("question", "why?"),
            ("system", "beta"),
            ("options.queue_messages", "7"),
            ("options.alpha.depth", "9"),
            ("options.linger", "3s"),
        ],
        &[],
    );
    let axes: Vec<_> = study.axes.iter().map(|axis| (axis.name.as_str(), json!(axis.values))).collect();
    assert_eq!(axes, [("system", json!(["beta"])), ("payload", json!([32])), ("options.queue_messages", json!([7]))]);
    let set = |name: &str| study.settings.get(name).cloned().unwrap_or_default();
    assert_eq!((set("rate"), set("repeats"), set("memory")), (json!("max"), json!(9), json!(1_000_000_000)));
    assert_eq!((set("count"), set("duration"), set("pacing_quantum")), (json!(50), Value::Null, json!("1us")));
    assert_eq!((study.title.as_str(), study.question.as_str()), ("other", "why?"));
    let options: Vec<_> =
        study.options.iter().map(|option| (option.system.as_deref(), &*option.name, &*option.text)).collect();
    assert_eq!(options, [(Some("alpha"), "depth", "9"), (None, "linger", "3s")], "set for all means for all");
    assert_eq!(overridden(CROSSED, &[("duration", "1s")], &[]).settings["duration"], "1s");
}

#[test]
fn a_wrong_set_is_refused_with_the_way_out() {
    for (name, text, wanted) in [
        ("pyload", "1", "there is no such key | did you mean `payload`?"),
        ("repeat", "1", "there is no such key | did you mean `repeats`?"),
        (
            "rate",
            "fast",
            "rate: `fast` is not a rate: write messages per second and publisher (0.001 to 1,000,000,000) or `max`",
        ),
        ("system", "gamma", "unknown system `gamma` | `pubmark systems` lists them"),
        ("options.linge", "1s", "unknown option `linge` | did you mean `linger`?"),
        ("options.alpha.depth", "x", "depth: `x` is not a whole number from 0 to 4294967295"),
        (
            "options.alpha.queue_messages",
            "5",
            "`options.queue_messages` is an axis, the same for all systems | --set options.queue_messages=5",
        ),
    ] {
        override_refused(CROSSED, &[(name, text)], &[], &[&format!("--set {name}={text}: {wanted}")]);
    }
    let errors = read(CROSSED, &Reading { set: &pairs(&[("rate", "x")]), ..Reading::default() }).unwrap_err();
    assert!(!errors.to_string().contains("help:"), "there is nothing more to say: {errors}");
}

#[test]
fn only_narrows_an_axis() {
    let study =
        overridden(CROSSED, &[], &[("payload", "64KB, 64,1000"), ("system", "beta"), ("options.queue_messages", "20")]);
    let axes: Vec<_> = study.axes.iter().map(|axis| json!(axis.values)).collect();
    assert_eq!(axes, [json!(["beta"]), json!([64, 1_000, 64_000]), json!([20])], "in the file's order");
    for (name, text, wanted) in [
        ("payload", "65", "65 is not on the axis; its values: 64, 1000, 4000, 16000, 64000"),
        (
            "payload",
            "1kb",
            "payload: `1kb` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)",
        ),
        ("rate", "5", "`rate` is no axis of this study; its axes: system, payload, options.queue_messages"),
        ("pyload", "5", "`pyload` cannot be an axis | did you mean `payload`?"),
        ("system", "solo", "solo is not on the axis; its values: alpha, beta"),
        ("system", "gamma", "unknown system `gamma` | `pubmark systems` lists them"),
    ] {
        override_refused(CROSSED, &[], &[(name, text)], &[&format!("--only {name}={text}: {wanted}")]);
    }
    let both = overridden(CROSSED, &[("payload", "32B")], &[("payload", "32")]);
    assert_eq!(both.axis("payload").unwrap().values, [json!(32)], "--only looks at what --set has left");
}

#[test]
fn quick_follows_the_files_own_table() {
    let file = format!(
        "{CROSSED}[quick]\nrepeats = 1\ncount = 10\n[quick.axes]\npayload = [64]\nrate = [1, 2]\noptions.queue_messages = [5]\n"
    );
    let whole = good(&file);
    assert_eq!((whole.repeats(), whole.axis("payload").unwrap().values.len(), whole.axis("rate")), (3, 5, None));
    let cut = read(&file, &quick()).unwrap();
    assert!(cut.quick);
    assert_eq!((cut.repeats(), cut.settings.get("count"), cut.settings.get("duration")), (1, Some(&json!(10)), None));
    assert_eq!(cut.axis("payload").unwrap().values, [json!(64)]);
    assert_eq!(cut.axis("rate").unwrap().values, [json!(1), json!(2)]);
    assert_eq!(cut.axis("options.queue_messages").unwrap().values, [json!(5)]);
    let set = pairs(&[("repeats", "7")]);
    assert_eq!(read(&file, &Reading { quick: true, set: &set, only: &[] }).unwrap().repeats(), 7, "--set comes last");
}

#[test]
fn quick_thins_a_file_that_does_not_say_how() {
    let cut = read(CROSSED, &quick()).unwrap();
    assert_eq!(json!(cut.axis("payload").unwrap().values), json!([64, 4_000, 64_000]), "first, middle, last");
    assert_eq!(cut.axis("system").unwrap().values.len(), 2);
    assert_eq!((cut.repeats(), &cut.settings["warmup"], &cut.settings["duration"]), (2, &json!("250ms"), &json!("1s")));
    let cut = |text: &str| read(text, &quick()).unwrap();
    let short = cut(&with("[workload]\nwarmup = \"10ms\"\nduration = \"500ms\"\n[run]\nrepeats = 1"));
    assert_eq!(
        (short.repeats(), &short.settings["warmup"], &short.settings["duration"]),
        (1, &json!("10ms"), &json!("500ms"))
    );
    let counted = cut(&with("[workload]\ncount = 100"));
    assert_eq!((counted.settings.get("count"), counted.settings.get("duration")), (Some(&json!(100)), None));
    for axis in ["duration = [\"2s\", \"4s\"]", "warmup = [\"1s\", \"2s\"]", "count = [10, 20]"] {
        let study = cut(&format!("title = \"t\"\n[axes]\nsystem = \"solo\"\n{axis}\n"));
        assert!(cells(&study, &find).is_ok(), "{axis}");
        assert_eq!(study.axes[1].values.len(), 2, "{axis}");
    }
}

// ---- from study to cells ----------------------------------------------------

#[test]
fn cells_are_the_product_of_the_axes_in_order() {
    let cells = planned(
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[limits]\ncpus = 0.5\nmemory = \"1GB\"\n[axes]\npairs = [1, 2]\nsystem = [\"alpha\", \"beta\"]\nrate = [10, \"max\"]\n\
         [options]\nqueue_messages = 5\n[options.alpha]\nqueue_messages = 6\n",
    );
    let labels: Vec<String> = cells.iter().map(Cell::label).collect();
    assert_eq!(
        labels,
        ["alpha", "beta"]
            .map(|system| [1, 2].map(|pairs| ["10", "max"].map(|rate| format!("{system} pairs={pairs} rate={rate}"))))
            .as_flattened()
            .as_flattened()
    );
    let last = cells.last().unwrap();
    assert_eq!((last.workload.publishers, last.workload.subscribers, last.workload.rate), (2, 2, Rate::Max));
    assert_eq!((last.limits.cpus, last.limits.memory_bytes), (Some(0.5), Some(1_000_000_000)));
    assert_eq!(last.options["queue_messages"], 5);
    assert_eq!(
        (&cells[0].options["queue_messages"], &cells[0].options["depth"]),
        (&json!(6), &json!(5)),
        "a system's own setting wins"
    );
    assert_eq!(cells[0].options["linger"], "10s", "defaults are filled in");
}

#[test]
fn conditions_skip_cells_by_value_and_by_bound() {
    let cells = planned(
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\npayload = [\"16B\", \"1KiB\", \"32KiB\"]\nrate = [1, \"max\"]\n\
         [[skip]]\nsystem = \"alpha\"\npayload = \"<=1KiB\"\nrate = [\"max\"]\nwhy = \"small\"\n\
         [[skip]]\npayload = \">= 32KiB\"\nsystem = [\"beta\"]\nrate = \"<=1\"\nwhy = \"large\"\n",
    );
    let skipped: Vec<_> = cells.iter().filter_map(|cell| Some((cell.label(), cell.skipped.clone()?))).collect();
    let expect = [("alpha 16B rate=max", "small"), ("alpha 1KiB rate=max", "small"), ("beta 32KiB rate=1", "large")];
    assert_eq!(skipped, expect.map(|(label, why)| (label.to_owned(), why.to_owned())));
}

#[test]
fn what_a_system_cannot_do_is_said_unless_it_is_skipped() {
    let file = |workload: &str, more: &str| {
        format!("title = \"t\"\n[workload]\n{workload}\n[axes]\nsystem = [\"alpha\", \"beta\"]\n{more}\n")
    };
    let plays = "beta does not play the pattern `request-reply`; it plays: pairs, fan-out";
    unplannable(&file("transport = \"tcp\"\npattern = \"request-reply\"", "rate = [1, 2]"), &[(plays, LEAVE_OUT)]);
    let skip = "[[skip]]\nsystem = \"beta\"\nwhy = \"it has none\"";
    assert_eq!(planned(&file("transport = \"tcp\"\npattern = \"request-reply\"", skip)).len(), 2);
    unplannable(&file("transport = \"ipc\"", ""), &[("beta has no transport `ipc`; it has: inproc, tcp", LEAVE_OUT)]);
    let set = Some("set `transport` in [workload], or with --transport");
    unplannable(
        &file("", ""),
        &[("alpha needs a transport: inproc, ipc, tcp, udp", set), ("beta needs a transport: inproc, tcp", set)],
    );
    unplannable(
        &file("transport = \"udp\"\npayload = \"64KiB\"", skip),
        &[("a UDP datagram carries at most 65,507 bytes", Some("use a smaller payload, or a [[skip]] entry"))],
    );
    assert_eq!(planned(&file("transport = \"udp\"\npayload = 65507", skip)).len(), 2);
    unplannable(
        &file("transport = \"tcp\"\nqos = 1", skip),
        &[("alpha has no quality of service above 0", Some("set qos = 0"))],
    );
    unplannable(
        &file("transport = \"tcp\"", "options.depth = [1, 2]"),
        &[(
            "beta has no option `depth`",
            Some("known: library, tcp_nodelay, queue_messages, queue_bytes, socket_buffer, linger, io_threads"),
        )],
    );
    unplannable(
        &file(
            "transport = \"tcp\"",
            &format!("options.depth = [1, \"x\"]\n{skip}").replace("options.depth = [1", "options.linger = [\"1s\""),
        ),
        &[("options.linger: `x` is not a time: write a number and one of ns, us, ms, s, m, such as `250ms`", None)],
    );
    assert_eq!(
        planned("title = \"t\"\n[axes]\nsystem = \"solo\"\n").len(),
        1,
        "no transport is needed where there is none"
    );
}

#[test]
fn contradictions_of_a_workload_are_all_said() {
    let file = |workload: &str| {
        format!("title = \"t\"\n[workload]\ntransport = \"tcp\"\n{workload}\n[axes]\nsystem = \"alpha\"\n")
    };
    unplannable(
        &file("pairs = 2\nsubscribers = 3\nduration = \"1s\"\ncount = 5\nrate = \"max\"\narrival = \"poisson\""),
        &[(
            "`subscribers` contradicts `pairs`: leave one of them out; \
             `duration` and `count` both say how long the window is: leave one of them out; \
             `arrival = \"poisson\"` has no meaning where `rate` is `max`",
            None,
        )],
    );
    for (workload, message) in [
        (
            "publishers = 2\nsubscribers = 3",
            "pattern `pairs` needs as many publishers as subscribers: write `pairs = N`",
        ),
        (
            "pattern = \"fan-in\"\npairs = 2",
            "`pairs` has no meaning in pattern `fan-in`: write `publishers` and `subscribers`",
        ),
        ("duration = \"0s\"", "`duration` is 0: nothing would be measured"),
        (
            "rate = 1000000\nduration = \"4300s\"",
            "a publisher would send more than the 4,294,967,279 messages that a run can number: lower `rate` or `duration`",
        ),
        (
            "rate = 0.001\ncount = 2593",
            "`count` messages at this `rate` take longer than the 30 days that a run may take",
        ),
    ] {
        unplannable(&file(workload), &[(message, None)]);
    }
    let longest = planned(&file("rate = 0.001\ncount = 2592"));
    assert_eq!(
        (longest[0].workload.extent, longest[0].workload.window_ns()),
        (Extent::Count(2_592), Some(2_592_000_000_000_000))
    );
}

#[test]
fn a_plan_is_bounded_and_not_empty() {
    let values: Vec<String> = (1..=400).map(|n| n.to_string()).collect();
    let file = |more: &str| {
        let values = values.join(",");
        format!(
            "title = \"t\"\n[workload]\npattern = \"fan-out\"\ntransport = \"tcp\"\n[axes]\nsystem = \"alpha\"\npublishers = [{values}]\nsubscribers = [{values}]\n{more}\n"
        )
    };
    unplannable(&file(""), &[(&format!("the axes cross to more than {MAX_CELLS} cells: use fewer values"), None)]);
    unplannable(
        "title = \"t\"\n[axes]\nsystem = \"solo\"\n[[skip]]\nwhy = \"w\"\n",
        &[("every cell is skipped: nothing would be measured", None)],
    );
    let only = pairs(&[("publishers", &values[..25].join(","))]);
    let study = read(&file(""), &Reading { only: &only, ..Reading::default() }).unwrap();
    let cells = cells(&study, &find).unwrap();
    assert_eq!((cells.len(), order(&study, &cells).len()), (10_000, 30_000));
}

// ---- from cells to runs -----------------------------------------------------

fn runs(run: &str) -> (Vec<Cell>, Vec<Planned>) {
    let study = good(&format!(
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[run]\n{run}\n[axes]\nsystem = [\"alpha\", \"beta\"]\npairs = [1, 2, 3, 4]\npayload = [64, 128]\n\
         [[skip]]\nsystem = \"beta\"\npairs = 3\nwhy = \"w\"\n"
    ));
    let cells = cells(&study, &find).unwrap();
    let runs = order(&study, &cells);
    (cells, runs)
}

#[test]
fn every_cell_runs_as_often_as_asked_and_skipped_ones_never() {
    for run in ["repeats = 3", "repeats = 3\norder = \"sequential\""] {
        let (cells, runs) = runs(run);
        let mut all: Vec<_> = runs.iter().map(|run| (run.cell, run.repeat)).collect();
        all.sort_unstable();
        let kept = (0..cells.len()).filter(|cell| cells[*cell].skipped.is_none());
        let expected: Vec<_> = kept.flat_map(|cell| (1..=3).map(move |repeat| (cell, repeat))).collect();
        assert_eq!((all.len(), all), (14 * 3, expected), "{run}");
    }
}

#[test]
fn interleaved_runs_set_the_systems_side_by_side() {
    let (cells, runs) = runs("repeats = 3");
    let point = |run: &Planned| {
        let axes = cells[run.cell].axes.iter().filter(|(name, _)| *name != "system");
        (run.repeat, axes.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "))
    };
    let points: Vec<_> = runs.iter().map(point).collect();
    let stretches: Vec<usize> = points.chunk_by(|one, other| one == other).map(<[_]>::len).collect();
    assert_eq!(stretches.len(), 3 * 8, "each point comes once in a repeat");
    assert_eq!(stretches.iter().filter(|length| **length == 2).count(), 3 * 6, "and its systems next to each other");
    assert!(runs.is_sorted_by_key(|run| run.repeat), "a repeat is done before the next begins");
    let first: BTreeSet<&str> = runs.iter().map(|run| cells[run.cell].system.as_str()).step_by(2).collect();
    assert_eq!(first.len(), 2, "neither system always comes first");
}

#[test]
fn the_seed_decides_the_order() {
    let order = |seed: u64| runs(&format!("seed = {seed}")).1;
    assert_eq!(order(1), order(1));
    let distinct: BTreeSet<Vec<usize>> = (0..20).map(|seed| order(seed).iter().map(|run| run.cell).collect()).collect();
    assert_eq!(distinct.len(), 20);
    let (first, second) = (order(1)[..14].to_vec(), order(1)[14..28].to_vec());
    assert_ne!(
        first.iter().map(|run| run.cell).collect::<Vec<_>>(),
        second.iter().map(|run| run.cell).collect::<Vec<_>>(),
        "each repeat has an order of its own"
    );
}

#[test]
fn sequential_runs_follow_the_file() {
    let (cells, runs) = runs("repeats = 2\norder = \"sequential\"\nseed = 7");
    let kept = (0..cells.len()).filter(|cell| cells[*cell].skipped.is_none());
    let expected: Vec<Planned> = kept.flat_map(|cell| [1, 2].map(|repeat| Planned { cell, repeat })).collect();
    assert_eq!(runs, expected);
}

// ---- what is written reads back ---------------------------------------------

#[track_caller]
fn reads_back(study: &Study) {
    let written = study.to_toml();
    let again = good(&written);
    assert_eq!(&Study { quick: study.quick, ..again.clone() }, study, "{written}");
    assert_eq!(again.to_toml(), written, "and is written the same");
}

#[test]
fn resolved_studies_of_every_kind_read_back() {
    reads_back(&good(&with("question = \"a \\\"quoted\\\" \\\\ line\\nand \\u0000 \\u007f \\ttab µ\"")));
    reads_back(&read(CROSSED, &quick()).unwrap());
    reads_back(&overridden(
        CROSSED,
        &[("options.alpha.library", "/a \"b\"/c.so"), ("count", "5")],
        &[("system", "alpha")],
    ));
    reads_back(&good(&format!("{}\"options.a b\" = [1, \"1.50\", true, \"x\", 18446744073709551615]\n", with(""))));
}

fn chosen(all: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(all, 0..=all.len()).prop_shuffle()
}

prop_compose! {
    fn a_study()(
        title in "[ -~µ\n\"\\\\]{1,20}",
        payloads in chosen(&["16B", "64", "1KB", "1KiB", "1.5MiB"]),
        rates in chosen(&["1", "0.001", "50_000", "max"]),
        durations in chosen(&["1ms", "1.5s", "30s", "2m"]),
        nodelay in chosen(&["true", "false"]),
        depth in proptest::option::of(0u32..9),
        memory in proptest::option::of(1u64 << 20..1 << 40),
        repeats in 1u32..9,
        seed: u64,
        bound in 16u64..1 << 30,
        share in 0u32..=100,
        below: bool,
        quick: bool,
    ) -> (String, bool) {
        let mut text = format!("title = {}\n[run]\nrepeats = {repeats}\nseed = {seed}\n", json!(title).to_string().replace("\\u007f", "\u{7f}"));
        if let Some(memory) = memory {
            text += &format!("[limits]\nmemory = {memory}\n");
        }
        text += "[axes]\nsystem = [\"beta\", \"alpha\"]\n";
        let lists = [("payload", &payloads), ("rate", &rates), ("duration", &durations), ("options.tcp_nodelay", &nodelay)];
        for (name, values) in lists.iter().filter(|(_, values)| !values.is_empty()) {
            text += &format!("{name} = {}\n", json!(values));
        }
        if let Some(depth) = depth {
            text += &format!("[options.alpha]\ndepth = {depth}\n");
        }
        let bound = format!("{}{bound}", if below { "<=" } else { ">=" });
        if !payloads.is_empty() {
            text += &format!("[[skip]]\nsystem = \"beta\"\npayload = \"{bound}\"\nwhy = \"{bound}\"\n");
        }
        text += &format!("[[claims]]\nid = \"c\"\nsays = \"s\"\nfigure = \"cpu_cores\"\nbest = [\"alpha\", \"beta\"]\nshare = {}\n", f64::from(share) / 100.0);
        if !rates.is_empty() {
            text += &format!("[claims.where]\nrate = {}\nsystem = [\"beta\"]\n", json!(rates));
        }
        (text, quick)
    }
}

proptest! {
    #[test]
    fn any_resolved_study_reads_back((text, quick) in a_study()) {
        let reading = Reading { quick, ..Reading::default() };
        match read(&text, &reading) {
            Ok(study) => reads_back(&study),
            Err(errors) => prop_assert!(false, "{errors}\n{text}"),
        }
    }

    #[test]
    fn no_text_does_harm(text in "[\\[\\]=\"',.{}#a-z0-9 \n]{0,200}") {
        let _ = read(&text, &Reading::default()).map_err(|errors| errors.to_string());
    }
}
