//! Changes of a study by flags.

use crate::support::*;
use pubmark_model::cell::Cell;
use pubmark_model::plan::cells;
use pubmark_model::study::ReadOptions;
use serde_json::{Value, json};

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
    let set = |name: &str| study.settings.get(name).unwrap_or_default();
    assert_eq!((set("rate"), set("repeats"), set("memory")), (json!("max"), json!(9), json!(1_000_000_000)));
    assert_eq!((set("count"), set("duration"), set("pacing_quantum")), (json!(50), Value::Null, json!("1us")));
    assert_eq!((study.title.as_str(), study.question.as_str()), ("other", "why?"));
    let options: Vec<_> =
        study.options.iter().map(|option| (option.system.as_deref(), &*option.name, &*option.text)).collect();
    assert_eq!(options, [(Some("alpha"), "depth", "9"), (None, "linger", "3s")], "set for all means for all");
    assert_eq!(overridden(CROSSED, &[("duration", "1s")], &[]).settings.get("duration"), Some(json!("1s")));
}

/// Of three parts, one sets neither key.
#[test]
fn what_is_set_is_the_same_for_all_parts_whatever_some_of_them_say() {
    let parts =
        "\n[parts.a]\nduration = \"2s\"\n[parts.b]\noptions.depth = 3\nduration = [\"3s\", \"4s\"]\n[parts.c]\n";
    let file = format!("title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = \"alpha\"\n{parts}");
    let of = |set: &[(&str, &str)]| {
        let cells = cells(&overridden(&file, set, &[])).unwrap();
        let of_cell =
            |cell: &Cell| json!([cell.axes["part"], format!("{:?}", cell.workload.extent), cell.options["depth"]]);
        cells.iter().map(of_cell).collect::<Vec<_>>()
    };
    let plain = of(&[]);
    assert_eq!(plain.len(), 4, "{plain:?}");
    let extents = |cells: &[Value]| cells.iter().map(|cell| cell[1].clone()).collect::<Vec<_>>();
    let one = of(&[("duration", "7s")]);
    assert_eq!(one.len(), 3);
    assert!(extents(&one).iter().all(|extent| *extent == extents(&one)[0]), "{one:?}");
    assert!(!extents(&plain).contains(&extents(&one)[0]));
    assert_eq!(of(&[("duration", "7s,8s")]).len(), 6);
    let depths = of(&[("options.depth", "9")]);
    assert!(depths.len() == 4 && depths.iter().all(|cell| cell[2] == 9), "{depths:?}");
}

#[test]
fn a_list_makes_an_axis() {
    let axes = |set: &[(&str, &str)]| -> Vec<(String, Value)> {
        let study = overridden(CROSSED, set, &[]);
        study.axes.iter().map(|axis| (axis.name.clone(), json!(axis.values))).collect()
    };
    let of = |set: &[(&str, &str)], name: &str| {
        axes(set).into_iter().find(|(axis, _)| axis == name).map(|(_, values)| values)
    };
    assert_eq!(of(&[("rate", "500, 1000,max,500")], "rate"), Some(json!([500, 1_000, "max"])), "each once");
    assert_eq!(of(&[("payload", "1KiB,64B")], "payload"), Some(json!([1_024, 64])), "in place of what was there");
    assert_eq!(of(&[("system", "beta,alpha")], "system"), Some(json!(["beta", "alpha"])));
    assert_eq!(of(&[("rate", "500")], "rate"), None, "one value is a setting");
    let script = "stop server at 1s for 1s, stop server at 4s for 1s";
    assert_eq!(of(&[("fault", script)], "fault"), None, "whose value has commas of its own");
    let study = overridden(CROSSED, &[("rate", "500,1000")], &[]);
    assert_eq!(study.settings.get("rate"), None, "and no setting beside the axis");
    for (name, text, wanted) in [
        ("repeats", "3,5", "repeats"),
        ("rate", "500,fast", "rate: `fast` is not a rate"),
        ("rate", "500,", "rate: `` is not a rate"),
        ("system", "alpha,gamma", "unknown system `gamma`"),
        ("fault", "kill publishers at 1s, stop publishers at 2s for 1s", "nobody is there any more"),
    ] {
        let set = pairs(&[(name, text)]);
        let errors = read(CROSSED, &ReadOptions { set: &set, ..ReadOptions::default() }).unwrap_err();
        assert!(errors.to_string().contains(wanted), "{name}={text}: {errors}");
    }
}

/// A refusal hides a value, which may be a secret, unless its key is known.
#[test]
fn a_wrong_set_is_refused_with_the_way_out() {
    for (name, text, wanted) in [
        ("pyload", "1", "there is no such key | did you mean `payload`?"),
        ("repeat", "1", "there is no such key | did you mean `repeats`?"),
        (
            "rate",
            "fast",
            "rate: `fast` is not a rate: write messages per second and publisher (0.001 to 1,000,000,000), `max`, `ramp 100 to 5000 in 60s`, `steps 100 500 1000 each 10s` or `sine 100 to 500 each 60s`",
        ),
        ("system", "gamma", "unknown system `gamma` | `pubmark systems` lists them"),
        ("options.linge", "1s", "unknown option `linge` | did you mean `linger`?"),
        ("options.alpha.depth", "x", "depth: `x` is not a whole number from 0 to 4294967295"),
        (
            "options.alpha.queue_messages",
            "5",
            "`options.queue_messages` is an axis, the same for all systems | write --set options.queue_messages=VALUE",
        ),
    ] {
        override_refused(CROSSED, &[(name, text)], &[], &[&format!("--set {name}={text}: {wanted}")]);
    }
    let errors = read(CROSSED, &ReadOptions { set: &pairs(&[("rate", "x")]), ..ReadOptions::default() }).unwrap_err();
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
        ("rate", "5", "`rate` is not an axis of this study; its axes: system, payload, options.queue_messages"),
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
    assert_eq!((cut.repeats(), cut.settings.get("count"), cut.settings.get("duration")), (1, Some(json!(10)), None));
    assert_eq!(cut.axis("payload").unwrap().values, [json!(64)]);
    assert_eq!(cut.axis("rate").unwrap().values, [json!(1), json!(2)]);
    assert_eq!(cut.axis("options.queue_messages").unwrap().values, [json!(5)]);
    let set = pairs(&[("repeats", "7")]);
    assert_eq!(
        read(&file, &ReadOptions { quick: true, set: &set, only: &[], ..ReadOptions::default() }).unwrap().repeats(),
        7,
        "--set comes last"
    );
}

#[test]
fn quick_thins_a_file_that_does_not_say_how() {
    let cut = read(CROSSED, &quick()).unwrap();
    assert_eq!(json!(cut.axis("payload").unwrap().values), json!([64, 4_000, 64_000]), "first, middle, last");
    assert_eq!(cut.axis("system").unwrap().values.len(), 2);
    assert_eq!(
        (cut.repeats(), cut.settings.get("warmup"), cut.settings.get("duration")),
        (2, Some(json!("250ms")), Some(json!("1s")))
    );
    let cut = |text: &str| read(text, &quick()).unwrap();
    let short = cut(&with("[workload]\nwarmup = \"10ms\"\nduration = \"500ms\"\n[run]\nrepeats = 1"));
    assert_eq!(
        (short.repeats(), short.settings.get("warmup"), short.settings.get("duration")),
        (1, Some(json!("10ms")), Some(json!("500ms")))
    );
    let counted = cut(&with("[workload]\ncount = 100"));
    assert_eq!((counted.settings.get("count"), counted.settings.get("duration")), (Some(json!(100)), None));
    for axis in ["duration = [\"2s\", \"4s\"]", "warmup = [\"1s\", \"2s\"]", "count = [10, 20]"] {
        let study = cut(&format!("title = \"t\"\n[axes]\nsystem = \"solo\"\n{axis}\n"));
        assert!(cells(&study).is_ok(), "{axis}");
        assert_eq!(study.axes[1].values.len(), 2, "{axis}");
    }
}
