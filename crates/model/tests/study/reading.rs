//! Reading a study file, and every mistake in it.

use crate::support::*;
use pubmark_model::claim::{Claim, Condition, Statement};
use pubmark_model::diagnostic::line_column;
use pubmark_model::fault::{Script, Target};
use pubmark_model::figure::Figure;
use pubmark_model::objective::Objective;
use pubmark_model::plan::cells;
use pubmark_model::question::{AskedQuestions, Precision};
use pubmark_model::setting::KEYS;
use pubmark_model::study::{OptionSetting, ReadOptions, Skip};
use pubmark_model::units::SECOND;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

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
[faults]
fault = "stop publishers at 90s for 1s,  stop subscribers at 1m for 500ms"
[axes]
payload = [64, "1KB", "32KiB", "1.5MiB"]
system = ["alpha", "beta"]
options.tcp_nodelay = [true, false]
[run]
repeats = 4
order = "sequential"
tie = "7.5%"
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
    let set = KEYS.iter().filter_map(|key| Some((key.name.to_owned(), study.settings.get(key.name)?)));
    let settings: Value = set.collect::<Map<String, Value>>().into();
    let expected = json!({
        "pattern": "fan-out", "transport": "tcp", "rate": 0.5, "arrival": "burst:100", "warmup": "1500ms",
        "duration": "120s", "drain": "0s", "pacing_quantum": "10us", "cpus": 1.5, "memory": 4_000_000_000_u64,
        "repeats": 4, "order": "sequential", "tie": "7.5%", "seed": u64::MAX,
        "qos": 0, "outstanding": 1, "churn": "none", "last_will": false, "payload_content": "random", "durable": false, "tls": false, "connect_timeout": "30s", "connect_rate": 1000, "pacing": "hybrid", "receive": "block", "awake": false, "pin": "none", "max_send_lag": "1ms",
        "late_after": "10ms", "consume": "max", "fault": "stop subscribers at 60s for 500ms, stop publishers at 90s for 1s",
    });
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
        secret: false,
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
            statement: Statement::Best {
                figure: Figure::LATENCY_P99,
                best: vec!["alpha".into()],
                among: vec!["alpha".into(), "beta".into()],
            },
            conditions: vec![("payload".into(), Condition::AtMost(32_768.0))],
            share: 0.9,
            restates: None,
            gate: false,
            narrowed: false,
        }]
    );
}

#[test]
fn what_is_not_said_has_its_default() {
    let study = good(&with(""));
    let text = |name: &str| study.settings.get(name).unwrap().to_string();
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
            "4:11 pattern: `fanout` is not one of pairs, fan-out, fan-in, request-reply, fan-out-echo, pipeline, tree: did you mean `fan-out`?",
            "5:11 payload: `1kb` is not a size: write a number and one of B, KB, MB, GB (powers of 1000) or KiB, MiB, GiB (powers of 1024)",
            "6:1 `cpus` belongs into [limits], not [workload]",
            "7:1 unknown key `warmpu` in [workload] | did you mean `warmup`?",
            "9:11 unknown system `alpah` | `pubmark systems` lists them",
            "10:1 `pyload` cannot be an axis | did you mean `payload`?",
            "11:19 `1000ms` is twice on the axis `duration`",
            "12:2 unknown table [limts] | did you mean `limits`?",
            "14:1 a [[skip]] needs `why`: the report shows it",
            "16:10 unknown system `gamma` in [options.gamma] | `pubmark systems` lists them",
            "18:1 a [[claims]] entry needs `id`, `says`, and `expr`, or `figure` and `best`, or `require`",
            "`title` is missing",
        ],
    );
}

#[test]
fn the_line_is_shown_without_the_value_of_a_key_that_is_not_known() {
    let errors = read(&with("[workload]\nrat = 5\nqos = 3"), &ReadOptions::default()).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "study.toml:3:1: unknown key `rat` in [workload]\n  3 | rat = …\n    | ^\n  help: did you mean `rate`?\n\
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
    let time = "is not a time: write a number and one of ns, us, ms, s, m, h, such as `250ms`";
    let rate = "is not a rate: write messages per second and publisher (0.001 to 1,000,000,000), `max`, `ramp 100 to 5000 in 60s`, `steps 100 500 1000 each 10s` or `sine 100 to 500 each 60s`";
    for (line, message) in [
        ("payload = \"32Kib\"", format!("payload: `32Kib` {size}")),
        (
            "payload = \"0.3B\"",
            "payload: `0.3B` is not a whole number of bytes, such as `1024`, `1KB` or `32KiB`".into(),
        ),
        (
            "payload = 15",
            "payload: `15` is outside the range of 16 to 1073741824 bytes: each message has a header of 16 bytes"
                .into(),
        ),
        (
            "payload = \"2GiB\"",
            "payload: `2GiB` is outside the range of 16 to 1073741824 bytes: each message has a header of 16 bytes"
                .into(),
        ),
        ("warmup = 5", format!("warmup: `5` {time}")),
        ("warmup = \"1d\"", format!("warmup: `1d` {time}")),
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
            "arrival: `burst:0` is not an arrival: write `uniform`, `poisson`, `burst:K` with K from 1 to 1,000,000, or `on-off:T/T` with means from 1ms to 1h, such as `on-off:2s/8s`"
                .into(),
        ),
        (
            "transport = \"quic\"",
            "transport: `quic` is not one of inproc, ipc, tcp, udp: known: inproc, ipc, tcp, udp".into(),
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
            "3:9 order: `interleavd` is not one of interleaved, sequential: did you mean `interleaved`?",
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
        &[
            "3:1 unknown key `whatever_is_this` in [run] | known: repeats, stop, windows, order, tie, promise, fresh, awake, headroom, seed",
        ],
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

/// Returns the names that an axis can have, as a suggestion lists them.
fn known_axes() -> String {
    let keys = KEYS.iter();
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
            "3:10 linger: `5` is not a time: write a number and one of ns, us, ms, s, m, h, such as `250ms`",
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
            "10:8 rate: `fast` is not a rate: write messages per second and publisher (0.001 to 1,000,000,000), `max`, `ramp 100 to 5000 in 60s`, `steps 100 500 1000 each 10s` or `sine 100 to 500 each 60s`",
            "11:11 `pattern` has no order: name its values",
            "12:1 `qos` names no value: the condition would never hold",
            "a condition names `payload`, which is not an axis of this study | its axes: system",
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
        refused(
            &claim(&lines.join("\n")),
            &["2:1 a [[claims]] entry needs `id`, `says`, and `expr`, or `figure` and `best`, or `require`"],
        );
    }
    refused(
        &claim(&whole.replace("\"s\"", "\"\"").replace("\"alpha\"", "[]")),
        &["2:1 a [[claims]] entry needs `id`, `says`, and `expr`, or `figure` and `best`, or `require`"],
    );
    refused(
        &claim(&whole.replace("jitter_ns", "jiter_ns").replace("alpha", "alpah")),
        &[
            "5:10 there is no figure `jiter_ns`: did you mean `jitter_ns`?",
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
            "10:1 unknown key `who` in [[claims]] | known: id, says, expr, figure, best, among, require, share, restates, gate, narrowed",
            "12:1 `rates` cannot be an axis | did you mean `rate`?",
            "a condition names `rate`, which is not an axis of this study | its axes: system",
        ],
    );
}

#[test]
fn a_claim_may_be_a_bound() {
    let text = with("[[claims]]\nid = \"c\"\nsays = \"s\"\nrequire = \"p99 < 5ms and lost = 0\"\nshare = 0.5\n");
    let study = good(&text);
    let statement = Statement::Keeps(Objective::parse("p99 < 5ms and lost = 0").unwrap());
    assert_eq!((&study.claims[0].statement, study.claims[0].share), (&statement, 0.5));
    assert_eq!(good(&study.to_toml()), study);
    refused(
        &text.replace("share = 0.5", "best = \"alpha\""),
        &[
            "2:1 a [[claims]] entry has one statement: `expr`, or `require`, or `figure` and `best` | write an entry for each, with the same `id`",
        ],
    );
    let errors = read(&text.replace("5ms", "5"), &ReadOptions::default()).unwrap_err();
    assert!(errors.to_string().contains("the bound `5` is none for `p99`"), "{errors}");
}

#[test]
fn what_is_asked_is_read_and_written() {
    let study = good(&with(
        "[questions]\nbest = [\"auto\", \"latency_p99_ns\"]\nclaims = true\ndiffer = [\"alpha, beta\"]\n\
         within = [\"±2%\", \"p99 +- 5%\"]\n",
    ));
    let asked = AskedQuestions {
        best: vec![None, Some(Figure::LATENCY_P99)],
        claims: true,
        differ: vec![["alpha".into(), "beta".into()]],
        within: vec![Precision::parse("±2%").unwrap(), Precision::parse("p99 ±5%").unwrap()],
    };
    assert_eq!(study.asks(), asked);
    assert_eq!(good(&study.to_toml()), study);
    assert_eq!(good(&with("")).asks(), AskedQuestions::default(), "who says nothing asks the usual");
    assert_eq!(good(&with("[questions]")).asks(), AskedQuestions::none(), "who names questions asks those alone");
    refused(
        &with(
            "[questions]\nbest = [\"p98\"]\nclaims = \"yes\"\ndiffer = [\"alpha\", \"alpha, gamma\"]\n\
             within = [\"2%\"]\nworst = 1\n",
        ),
        &[
            "3:9 there is no figure `p98`: did you mean `p90`?, or \"auto\"",
            "4:10 `claims` is true or false",
            "5:11 `differ` has two systems each: differ = [\"mosquitto, nats\"]",
            "5:20 unknown system `gamma` | `pubmark systems` lists them",
            "6:11 `2%` says not how well a figure is to be known: write ±2%, or a figure before it, as in 'p99 ±5%'",
            "7:1 unknown key `worst` in [questions] | known: best, claims, differ, within",
        ],
    );
}

#[test]
fn syntax_errors_stand_alone() {
    let errors = |text: &str| read(text, &ReadOptions::default()).unwrap_err();
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

const LATER: &str = "throttle disk at 1500ms for 2s, kill publishers at 5s, freeze core-7 of b1 at 6s";

#[test]
fn faults_that_only_a_later_version_knows_are_kept_and_cannot_be_asked_for() {
    assert!(Script::parse(LATER).unwrap_err().to_string().contains("`throttle` is not a fault"));
    let script = Script::recorded(LATER).unwrap();
    assert_eq!(script.to_string(), LATER, "its place on an axis stays the same");
    assert_eq!(script.killed_sides().collect::<Vec<_>>(), [(5 * SECOND, Target::Publishers)]);
    let json = serde_json::to_string(&script).unwrap();
    assert!(json.contains(r#""what":"throttle","who":"disk""#), "{json}");
    assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    assert_eq!(Script::recorded("none"), Ok(Script::default()));
    for none in ["throttle disk", "throttle at 5s", "throttle disk at noon", "\u{1b}[2J disk at 5s", ""] {
        assert!(Script::recorded(none).is_err(), "{none}");
    }
}

#[test]
fn a_study_with_faults_of_a_later_version_can_be_told_of_and_not_run() {
    let recorded = ReadOptions { recorded: true, ..ReadOptions::default() };
    let set = format!("title = \"T\"\n[faults]\nfault = \"{LATER}\"\n[axes]\nsystem = [\"alpha\"]\n");
    let crossed = format!("title = \"T\"\n[axes]\nsystem = [\"alpha\"]\nfault = [\"none\", \"{LATER}\"]\n");
    for (text, place) in [(set, 0), (crossed, 1)] {
        let study = read(&text, &recorded).unwrap_or_else(|errors| panic!("{errors}"));
        let cells = cells(&study).unwrap();
        assert_eq!(cells[place].faults.to_string(), LATER);
        assert!(place == 0 || cells[place].axes["fault"] == LATER);
        let errors = read(&text, &ReadOptions::default()).unwrap_err().to_string();
        assert!(errors.contains("`throttle` is not a fault"), "{errors}");
    }
}
