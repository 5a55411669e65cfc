//! Claims as expressions: valid expressions, and the error for each mistake.

use crate::support::{find, good, overridden, quick, read, refused, shown};
use pubmark_model::claim::{Expression, Names, Proposition, Statement};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_stats::Random;
use serde_json::Value;

/// Returns a study with a claim of this expression, on line 11.
fn file(expr: &str) -> String {
    format!(
        "title = \"t\"\n[axes]\nsystem = [\"broker\", \"alpha\"]\nrate = [100, 1000]\n\
         [parts.one]\npayload = [\"1KiB\", \"64KiB\"]\n[capacity]\nobjective = \"lost = 0\"\nover = \"pairs\"\n\
         [[claims]]\nexpr = \"{expr}\"\nid = \"1\"\nsays = \"s\"\n"
    )
}

#[track_caller]
fn expression(expr: &str) -> Proposition {
    let study = read(&file(expr), &ReadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"));
    match &study.claims[0].statement {
        Statement::Says(expression) => expression.root.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn wrong(expr: &str, wanted: &[&str]) {
    refused(&file(expr), wanted);
}

#[test]
fn each_kind_of_claim_is_read_and_written_back() {
    for expr in [
        "p50: alpha < broker",
        "p50(payload=1KiB, part=one): alpha ~ broker",
        "p99: broker > alpha",
        "p50(alpha) * 2 < p50(broker)",
        "p99(alpha, rate=1000) < 20ms",
        "p99 < 20ms and lost = 0",
        "server_rss_bytes_median(broker) / server_rss_bytes_median(alpha) in 10..50",
        "1 - delivered_ratio in 6.3%..6.6%",
        "peak(delivered_bytes_per_s, payload, alpha) in 2GB/s..4GB/s",
        "(p50(alpha) + p50(broker)) / 2 < 1ms",
        "growth(p50, payload, alpha) < growth(p50, payload, broker)",
        "slope(p50, payload, alpha) < slope(p50, payload, broker) and fixed(p50, payload, alpha) < 50us",
        "slope(p50, payload, alpha) < 1ns / 1B",
        "crossing(p50, alpha, broker, payload) in 1KiB..64KiB",
        "capacity(alpha, pairs) >= 100_000 or capacity(alpha, pairs) >= 2 * capacity(broker, pairs)",
        "fails(broker) at payload in 1KiB..64KiB",
        "limited_by(broker) = thread or cpu",
        "best(p50) = alpha or broker",
        "best(p50, rate=100) = alpha or best(p99) = broker or p50: alpha < broker",
        "share(best(p50) = alpha) >= 60%",
        "not (p50: alpha < broker) and (lost = 0 or p99 < 1s)",
        "delivered_per_s >= 5000 and delivered_per_s >= 5000/s",
        "service-p99.9 < 20ms",
    ] {
        let study = good(&file(expr));
        let again = read(&study.to_toml(), &ReadOptions::default()).unwrap_or_else(|errors| panic!("{expr}: {errors}"));
        assert_eq!(again, study, "{expr}");
        let (Statement::Says(one), Statement::Says(other)) = (&study.claims[0].statement, &again.claims[0].statement)
        else {
            panic!("{expr}")
        };
        assert_eq!(one.root, other.root, "{expr}");
    }
}

#[test]
fn and_binds_more_tightly_than_or() {
    let Proposition::Any(each) = expression("lost = 0 or lost = 1 and p50 < 1ms") else { panic!() };
    assert!(matches!(each.as_slice(), [Proposition::Compare { .. }, Proposition::All(_)]), "{each:?}");
    let Proposition::Any(each) = expression("best(p50) = alpha or broker or lost = 0") else { panic!() };
    assert!(matches!(each.as_slice(), [Proposition::Best { systems, .. }, _] if systems.len() == 2), "{each:?}");
}

#[test]
fn an_order_has_groups_of_equals() {
    let text = file("p50: alpha < broker ~ solo > jit");
    let study = good(&text);
    let Statement::Says(expression) = &study.claims[0].statement else { panic!() };
    let Proposition::Order { groups, rises, .. } = &expression.root else { panic!() };
    assert_eq!(groups, &[vec!["alpha"], vec!["broker", "solo"], vec!["jit"]]);
    assert_eq!(rises, &[true, false]);
}

#[test]
fn mistakes_have_a_place_and_a_suggestion_and_come_all_at_once() {
    let several = "p5(alhpa, payloed=1KiB) < 3ms and p99(alpha) < 3KiB";
    let Err(errors) = read(&file(several), &ReadOptions::default()) else { panic!() };
    let shown = shown(&errors);
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(shown[0].starts_with("11:9 there is no figure `p5`: did you mean"), "{shown:?}");
    assert!(shown[1].starts_with("11:12 unknown system `alhpa`"), "{shown:?}");
    assert_eq!(shown[2], "11:19 `payloed` is not an axis | did you mean `payload`?");
    assert_eq!(shown[3], "11:56 the units differ: a time, such as 20ms against a size, such as 64KiB");
}

#[test]
fn wrong_names_places_and_units_are_refused() {
    wrong("p50(alpha) < 3", &["11:22 the units differ: a time, such as 20ms against a number without a unit"]);
    wrong(
        "lost(alpha) < 3%",
        &["11:23 the units differ: a number of messages or clients, such as 100 against a number or share without a \
           unit, such as 1.5 or 6.3% | a share of messages is lost_ratio or delivered_ratio"],
    );
    wrong(
        "p50(alpha, payload=2KiB) < 3ms",
        &["11:20 claim 1: `2048` is not on the axis `payload` | its values: 1024, 65536"],
    );
    wrong(
        "p50(alpha, subscribers=2) < 3ms",
        &["11:20 claim 1: `subscribers` is not an axis of this study | known: system, rate, payload, part"],
    );
    wrong("p50(alpha, part=two) < 3ms", &["11:20 claim 1: `two` is not on the axis `part` | its values: one"]);
    wrong(
        "capacity(alpha, rate) > 3",
        &[
            "11:25 claim 1: it asks for a capacity over `rate`, and [capacity] searches over `pairs` | write capacity(SYSTEM, pairs)",
        ],
    );
    wrong("limited_by(broker) = tread", &["11:30 `tread` is nothing that can give out | did you mean `thread`?"]);
    let size = "the units differ: a size, such as 64KiB against a time, such as 20ms";
    let twice = [format!("11:50 {size}"), format!("11:55 {size}")];
    wrong("crossing(p50, alpha, broker, payload) in 3ms..4ms", &twice.each_ref().map(String::as_str));
}

#[test]
fn errors_of_syntax_say_what_was_expected() {
    wrong("p50(alpha)", &["11:19 expected a comparison (`<`, `<=`, `>`, `>=`, `=` or `in`), but found the end"]);
    wrong("p50(alpha) < ", &["11:22 expected a figure, a number or a function, but found the end"]);
    wrong("p50: alpha", &["11:19 expected `<`, `>` or `~` and another system, but found the end"]);
    wrong("p50(alpha) < 3ms p99", &["11:26 expected `and`, `or` or the end, but found `p99`"]);
    wrong("p50(alpha) § 3ms", &["11:20 `§ 3ms` begins no word of an expression"]);
    wrong(
        "p50(alpha) < 3parsec",
        &[
            "11:22 `3parsec` is not a number with a unit that is known here | units: ns us ms s m h, B KB MB GB KiB MiB GiB, %, /s",
        ],
    );
    wrong("p50: alpha < alpha", &["11:27 `alpha` is twice in the order"]);
    wrong("share(lost = 0) > 3", &["11:25 a share is from 0% to 100%"]);
}

#[test]
fn depth_and_length_are_bounded() {
    for deep in ["(".repeat(500), "not (".repeat(300), format!("{}1{}", "(".repeat(300), ")".repeat(300))] {
        assert!(read(&file(&deep), &ReadOptions::default()).is_err());
    }
    let long = vec!["lost = 0"; 400].join(" and ");
    refused(&file(&long), &["11:9 the expression has more than 2000 bytes"]);
}

#[test]
fn a_claim_has_one_statement() {
    let text = file("lost = 0").replace("id =", "require = \"lost = 0\"\nid =");
    let Err(errors) = read(&text, &ReadOptions::default()) else { panic!() };
    assert!(shown(&errors)[0].contains("has one statement"), "{errors}");
}

#[test]
fn a_claim_may_gate_and_restate() {
    let text = file("lost = 0").replace("id =", "gate = true\nrestates = \"It loses 17 a day.\"\nid =");
    let study = good(&text);
    let claim = &study.claims[0];
    assert_eq!((claim.gate, claim.restates.as_deref(), claim.narrowed), (true, Some("It loses 17 a day."), false));
    assert_eq!(read(&study.to_toml(), &ReadOptions::default()).as_ref(), Ok(&study));
}

/// A shortened study keeps its claims, although they are not tested there.
#[test]
fn places_that_are_left_out_are_no_mistake() {
    let text = file("p50(alpha, payload=64KiB) < 1s");
    let study = overridden(&text, &[], &[("payload", "1KiB")]);
    assert!(study.claims[0].narrowed);
    let again = read(&study.to_toml(), &ReadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again, study);
    let cut = text.replace("[[claims]]", "[quick.parts.one]\npayload = \"1KiB\"\n[[claims]]");
    assert!(read(&cut, &quick()).is_ok_and(|study: Study| study.claims[0].narrowed));
    assert!(!good(&cut).claims[0].narrowed);
}

/// A claim in a results folder that is no longer understood is left out.
#[test]
fn a_recorded_claim_that_is_not_understood_is_passed_over() {
    let recorded = ReadOptions { recorded: true, ..ReadOptions::default() };
    assert!(read(&file("glamour(alpha) < 3"), &recorded).is_ok_and(|study: Study| study.claims.is_empty()));
}

/// Words in any order are read or refused; the parser never fails otherwise.
#[test]
fn any_words_are_read_or_refused_with_places_within_them() {
    const WORDS: [&str; 44] = [
        "p50",
        "p99",
        "alpha",
        "broker",
        "(",
        ")",
        "(",
        ")",
        ",",
        ":",
        "<",
        ">",
        "<=",
        "~",
        "=",
        "+",
        "-",
        "*",
        "/",
        "..",
        "in",
        "and",
        "or",
        "not",
        "share",
        "best",
        "growth",
        "slope",
        "crossing",
        "capacity",
        "fails",
        "at",
        "limited_by",
        "thread",
        "payload",
        "payload=1KiB",
        "'x y'",
        "'",
        "20ms",
        "6.3%",
        "5",
        "1KiB",
        "§",
        "1..",
    ];
    let system = |name: &str| match find(name) {
        Some(known) => Ok(known.name.clone()),
        None => Err(("unknown system".to_owned(), None)),
    };
    let value = |_: &str, text: &str| Ok(Value::from(text));
    let mut random = Random(7);
    let mut understood = 0;
    for _ in 0..20_000 {
        let length = 1 + (random.unit() * 14.0) as usize;
        let words: Vec<&str> = (0..length).map(|_| WORDS[(random.unit() * WORDS.len() as f64) as usize]).collect();
        let text = words.join(if random.unit() < 0.5 { " " } else { "" });
        match Expression::parse(&text, &Names { system: &system, is_flow: &|_| false, value: &value }) {
            Ok(_) => understood += 1,
            Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|error| error.at <= text.len()), "{text}"),
        }
    }
    assert!(understood > 0);
}
