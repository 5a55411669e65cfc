//! Planning: a study to cells, cells to runs, and a study back to a file.

use crate::support::*;
use proptest::prelude::*;
use pubmark_model::cell::Cell;
use pubmark_model::plan::{MAX_CELLS, Planned, cells, order};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::units::SECOND;
use pubmark_model::workload::{Extent, Rate, Transport};
use serde_json::json;
use std::collections::BTreeSet;

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
    assert_eq!((last.workload.publishers, last.workload.subscribers, last.workload.rate.clone()), (2, 2, Rate::Max));
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

/// The same holds for a recorded study: such a part is not missing, and not requested.
#[test]
fn a_part_for_those_with_another_machine_is_left_out_where_there_is_none() {
    let text = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"alpha\"]\n\
                [parts.here]\npairs = 1\n[parts.there]\nplacement = \"server-apart\"\n";
    for recorded in [false, true] {
        let study = read(text, &ReadOptions { recorded, ..ReadOptions::default() }).unwrap();
        let skipped: Vec<_> = cells(&study).unwrap().into_iter().map(|cell| cell.skipped).collect();
        let why = "placement: `server-apart` needs two hosts, and none is named".to_owned();
        assert_eq!(skipped, [None, Some(why)], "recorded: {recorded}");
    }
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
    let set = Some("set `transport` in [workload], its own in [transports], or --transport");
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
        &[(
            "alpha has no quality of service 1; it has: 0",
            Some("leave it out with a [[skip]] entry, or choose another"),
        )],
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
        &[("options.linger: `x` is not a time: write a number and one of ns, us, ms, s, m, h, such as `250ms`", None)],
    );
    assert_eq!(
        planned("title = \"t\"\n[axes]\nsystem = \"solo\"\n").len(),
        1,
        "no transport is needed where there is none"
    );
}

#[test]
fn a_side_has_as_many_agents_as_the_study_says_or_else_the_systems_file() {
    let file = |workload: &str, axes: &str| {
        format!("title = \"t\"\n[workload]\n{workload}\n[axes]\nsystem = [\"alpha\", \"jit\"]\n{axes}\n")
    };
    let agents = |text: &str| planned(text).iter().map(|cell| cell.workload.agents).collect::<Vec<_>>();
    let tcp = "transport = \"tcp\"\npairs = 4";
    assert_eq!(agents(&file(tcp, "")), [1, 2], "the file's");
    assert_eq!(agents(&file("transport = \"inproc\"", "")), [1, 1], "there is one process");
    assert_eq!(agents(&file(&format!("{tcp}\nagents = 3"), "")), [3, 3]);
    let crossed = planned(&file(tcp, "agents = [1, 4]"));
    assert_eq!(crossed.iter().map(|cell| cell.workload.agents).collect::<Vec<_>>(), [1, 4, 1, 4]);
    assert_eq!(crossed[3].label(), "jit agents=4");
    let cannot = |system: &str, why: &str| format!("{system} cannot have 3 agents a side: {why}");
    let within = "over `inproc` one process plays all clients";
    let leave_out = Some("leave it out with a [[skip]] entry, or choose another `transport`");
    unplannable(
        &file("transport = \"inproc\"\nagents = 3", ""),
        &[(&cannot("alpha", within), leave_out), (&cannot("jit", within), leave_out)],
    );
    let few = "no side has more than 2 clients";
    let more = Some("set fewer `agents`, or more clients");
    unplannable(
        &file("transport = \"tcp\"\npairs = 2\nagents = 3", ""),
        &[(&cannot("alpha", few), more), (&cannot("jit", few), more)],
    );
    let one = "pattern = \"fan-out\"\nsubscribers = 3\ntransport = \"tcp\"\nagents = 3";
    assert_eq!(agents(&file(one, "")), [3, 3], "one side is enough");
    let skip = "[[skip]]\nsystem = \"alpha\"\nagents = 3\nwhy = \"w\"";
    assert_eq!(planned(&file(tcp, &format!("agents = [1, 3]\n{skip}"))).len(), 4);
    let mock = "title = \"t\"\n[workload]\nagents = 3\n[axes]\nsystem = \"solo\"\n";
    let virtual_time = cannot("solo", "it runs in virtual time, in one process");
    unplannable(mock, &[(&virtual_time, Some("leave it out with a [[skip]] entry"))]);
}

#[test]
fn a_system_is_as_long_in_getting_warm_as_its_file_says_unless_the_study_does() {
    let file = |workload: &str, axes: &str| {
        format!(
            "title = \"t\"\n[workload]\ntransport = \"tcp\"\n{workload}\n[axes]\nsystem = [\"alpha\", \"jit\"]\n{axes}\n"
        )
    };
    let seconds = |text: &str| planned(text).iter().map(|cell| cell.workload.warmup_ns / SECOND).collect::<Vec<_>>();
    assert_eq!(seconds(&file("", "")), [1, 5]);
    assert_eq!(seconds(&file("warmup = \"2s\"", "")), [2, 2]);
    assert_eq!(seconds(&file("", "warmup = [\"3s\", \"4s\"]")), [3, 4, 3, 4]);
    assert_eq!(seconds(&file("", "[parts.a]\nwarmup = \"7s\"\n[parts.b]\nrate = 5")), [7, 7, 1, 5]);
    let bounds = |text: &str| {
        let of = |cell: &Cell| cell.workload.warmup_max_ns.map(|most_ns| most_ns / SECOND);
        planned(text).iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(bounds(&file("", "")), [None, Some(9)]);
    assert_eq!(bounds(&file("warmup = \"2s\"", "")), [None, None], "what a study says needs no pilot run");
    let study = file("warmup_max = \"4s\"", "");
    assert_eq!((bounds(&study), seconds(&study)), (vec![Some(4), Some(4)], vec![1, 1]));
    // The resolved study parses to the same study.
    let study = good(&file("", ""));
    assert_eq!(good(&study.to_toml()), study);
    assert_eq!(seconds(&study.to_toml()), [1, 5]);
    let alone = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = \"alpha\"\n";
    assert!(good(alone).to_toml().contains("warmup = \"1s\""), "filled in where it is the same for all");
    let quick = ReadOptions { quick: true, ..ReadOptions::default() };
    let study = read(&file("", ""), &quick).unwrap();
    let cells = cells(&study).unwrap();
    let quick = |cell: &Cell| (cell.workload.warmup_ns, cell.workload.warmup_max_ns) == (SECOND / 4, None);
    assert!(cells.iter().all(quick), "what is quick is quick");
}

#[test]
fn faults_that_cannot_be_are_refused_with_the_way_out() {
    let file = |system: &str, workload: &str, fault: &str| {
        format!("title = \"t\"\n[workload]\n{workload}\n[faults]\nfault = \"{fault}\"\n[axes]\nsystem = \"{system}\"\n")
    };
    let tcp = "transport = \"tcp\"\nduration = \"6s\"";
    let cells = planned(&file("alpha", tcp, "stop subscribers at 5s for 1s"));
    assert_eq!((cells[0].faults.0.len(), cells[0].workload.reconnect), (1, false));
    let skip = LEAVE_OUT.map(|_| "leave it out with a [[skip]] entry, or set `fault` to none");
    unplannable(
        &file("alpha", tcp, "kill server at 1s for 1s"),
        &[("`kill server at 1s for 1s` cannot be done to alpha: it is a library and has no server", skip)],
    );
    let cut = LEAVE_OUT.map(|_| "use `cut link at … for …` or `cut clients at …`, or set `fault` to none");
    unplannable(
        &file("broker", "duration = \"6s\"", "stop server at 1s for 1s"),
        &[("`stop server at 1s for 1s` cannot be done to broker: its server was not started by pubmark", cut)],
    );
    unplannable(
        &file("alpha", tcp, "stop publishers at 5500ms for 1s"),
        &[(
            "`stop publishers at 5500ms for 1s` cannot be done to alpha: it is over 6500ms into a window of 6s",
            Some("let it end within the window: a longer `duration`, or an earlier fault"),
        )],
    );
    unplannable(
        &file("alpha", "transport = \"tcp\"\nrate = \"max\"\ncount = 5", "stop publishers at 1s for 1s"),
        &[(
            "`stop publishers at 1s for 1s` cannot be done to alpha: a count of messages at `max` has no known end",
            Some("set `duration` instead of `count`"),
        )],
    );
    unplannable(
        &file("alpha", "transport = \"inproc\"", "stop publishers at 1s for 1s"),
        &[(
            "`stop publishers at 1s for 1s` cannot be done to alpha: over `inproc` publishers and subscribers are one process",
            Some("choose another `transport`"),
        )],
    );
    unplannable(
        &file("alpha", "transport = \"inproc\"", "kill subscribers at 1s"),
        &[(
            "`kill subscribers at 1s` cannot be done to alpha: over `inproc` publishers and subscribers are one process",
            Some("choose another `transport`"),
        )],
    );
    unplannable(
        &file("alpha", tcp, "kill publishers at 6s"),
        &[(
            "`kill publishers at 6s` cannot be done to alpha: it happens 6s into a window of 6s",
            Some("let it end within the window: a longer `duration`, or an earlier fault"),
        )],
    );
    let cells = planned(&file("alpha", tcp, "kill publishers at 5s"));
    assert_eq!((cells[0].faults.to_string().as_str(), cells[0].workload.reconnect), ("kill publishers at 5s", false));
    unplannable(
        &file("solo", "", "stop publishers at 1s for 1s"),
        &[(
            "`stop publishers at 1s for 1s` cannot be done to solo: it runs in virtual time",
            Some("use one `stop server at … for …`, or its own options, such as lose_every"),
        )],
    );
    let axis = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = \"alpha\"\n\
                fault = [\"none\", \"stop publishers at 1s for 1s\"]\n";
    let cells = planned(axis);
    assert_eq!(cells.iter().map(|cell| cell.faults.0.len()).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(cells[1].label(), "alpha fault=stop publishers at 1s for 1s");
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
    let study = read(&file(""), &ReadOptions { only: &only, ..ReadOptions::default() }).unwrap();
    let cells = cells(&study).unwrap();
    assert_eq!((cells.len(), order(&study, &cells).len()), (10_000, 30_000));
}

// ---- cells to runs --------------------------------------------------------

fn runs(run: &str) -> (Vec<Cell>, Vec<Planned>) {
    let study = good(&format!(
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[run]\n{run}\n[axes]\nsystem = [\"alpha\", \"beta\"]\npairs = [1, 2, 3, 4]\npayload = [64, 128]\n\
         [[skip]]\nsystem = \"beta\"\npairs = 3\nwhy = \"w\"\n"
    ));
    let cells = cells(&study).unwrap();
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
    let first: BTreeSet<&str> = runs.iter().map(|run| cells[run.cell].system.name.as_str()).step_by(2).collect();
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

// ---- written studies parse to the same study ------------------------------

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
        let reading = ReadOptions { quick, ..ReadOptions::default() };
        match read(&text, &reading) {
            Ok(study) => reads_back(&study),
            Err(errors) => prop_assert!(false, "{errors}\n{text}"),
        }
    }

    #[test]
    fn no_text_does_harm(text in "[\\[\\]=\"',.{}#a-z0-9 \n]{0,200}") {
        let _ = read(&text, &ReadOptions::default()).map_err(|errors| errors.to_string());
    }
}

const PARTS: &str = "title = \"t\"\n[workload]\ntransport = \"tcp\"\nduration = \"5s\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n\
     [parts.latency]\npairs = 10\npayload = [\"1KiB\", \"1MiB\"]\n\
     [parts.fan]\npattern = \"fan-out\"\nsubscribers = [1, 2, 3]\ncount = 100\n\
     [[skip]]\npart = \"fan\"\nsystem = \"beta\"\nsubscribers = \">=2\"\nwhy = \"w\"\n\
     [[skip]]\npart = \"latency\"\npayload = \">=2MiB\"\nwhy = \"w\"\n\
     [quick.parts.fan]\nsubscribers = 4\n";

#[test]
fn parts_have_cells_of_their_own_beside_each_other() {
    let cells = planned(PARTS);
    let labels: Vec<String> = cells.iter().map(Cell::label).collect();
    assert_eq!(
        labels[..4],
        [
            "alpha part=latency pairs=10 1KiB",
            "alpha part=latency pairs=10 1MiB",
            "beta part=latency pairs=10 1KiB",
            "beta part=latency pairs=10 1MiB"
        ]
    );
    assert_eq!(cells.len(), 4 + 6);
    assert_eq!(cells.iter().filter(|cell| cell.skipped.is_some()).count(), 2);
    assert_eq!(cells[0].workload.extent, Extent::TimeNs(5_000_000_000));
    assert_eq!(cells[4].workload.extent, Extent::Count(100), "a part may count where the study sets a time");
}

#[test]
fn flows_have_their_own_keys_and_share_the_others() {
    let study = good(
        "title = \"t\"\n[workload]\ntransport = \"tcp\"\npairs = 4\nrate = 10\nduration = \"2s\"\n[flows.one]\n\
         [flows.other]\npattern = \"fan-out\"\nsubscribers = 3\nrate = 5\npayload = \"64B\"\n[axes]\nsystem = \"alpha\"\n",
    );
    assert_eq!(good(&study.to_toml()), study);
    let cells_of = |study: &Study| cells(study).unwrap();
    let [cell] = cells_of(&study).try_into().unwrap();
    assert_eq!((cell.workload.publishers, cell.workload.subscribers), (5, 7), "all together");
    let flows = cell.flows();
    let told = |index: usize| {
        let workload = &flows[index].workload;
        (flows[index].name.as_str(), workload.publishers, workload.subscribers, workload.payload_bytes)
    };
    assert_eq!([told(0), told(1)], [("one", 4, 4, 1_024), ("other", 1, 3, 64)]);
    assert!(flows.iter().all(|flow| flow.workload.window_ns() == Some(2 * SECOND)));
    assert!(flows.iter().all(|flow| flow.workload.transport == Some(Transport::Tcp)));
    assert_ne!(flows[0].workload.seed, flows[1].workload.seed, "each draws its own gaps");
    let labels: Vec<String> = cells_of(&study.by_flow()).iter().map(Cell::label).collect();
    assert_eq!(labels, ["alpha flow=one", "alpha flow=other", "alpha flow=all"]);
}

#[test]
fn a_flow_can_play_by_itself() {
    let text = |playing: &str| {
        format!(
            "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[flows.one]\npairs = 2\n[flows.other]\npairs = 3\n\
             [axes]\nsystem = \"alpha\"\nplaying = [{playing}]\n"
        )
    };
    let study = good(&text("\"all\", \"one\""));
    assert_eq!(good(&study.to_toml()), study);
    let played = |cell: &Cell| -> Vec<String> { cell.flows().into_iter().map(|flow| flow.name).collect() };
    let [both, alone] = cells(&study).unwrap().try_into().unwrap();
    assert_eq!((played(&both), played(&alone)), (vec!["one".into(), "other".into()], vec!["one".into()]));
    assert_eq!((both.workload.publishers, alone.workload.publishers), (5, 2));
    let labels: Vec<String> = cells(&study.by_flow()).unwrap().iter().map(Cell::label).collect();
    let together = ["alpha playing=all flow=one", "alpha playing=all flow=other", "alpha playing=all flow=all"];
    let by_itself = ["alpha playing=one flow=one", "alpha playing=one flow=all"];
    assert_eq!(labels, [&together[..], &by_itself[..]].concat());
    let errors = read(&text("\"three\""), &ReadOptions::default()).unwrap_err().to_string();
    assert!(errors.contains("its flows: one, other, all"), "{errors}");
    let none = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = \"alpha\"\nplaying = \"all\"\n";
    let errors = read(none, &ReadOptions::default()).unwrap_err().to_string();
    assert!(errors.contains("write [flows.NAME] tables"), "{errors}");
}

#[test]
fn a_study_with_parts_is_written_as_it_was_read_and_can_be_narrowed() {
    for quick in [false, true] {
        let study =
            read(PARTS, &ReadOptions { quick, ..ReadOptions::default() }).unwrap_or_else(|errors| panic!("{errors}"));
        let again = good(&study.to_toml());
        assert_eq!(Study { quick, ..again }, study);
    }
    let only = [("part".to_owned(), "fan".to_owned())];
    let narrowed =
        read(PARTS, &ReadOptions { only: &only, ..ReadOptions::default() }).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(narrowed.parts.len(), 1);
    assert_eq!(narrowed.skips.len(), 1, "what is about parts that are left out goes with them");
    good(&narrowed.to_toml());
    assert_eq!(cells(&narrowed).unwrap().len(), 6);
    let only = [("payload".to_owned(), "1MiB".to_owned())];
    let narrowed =
        read(PARTS, &ReadOptions { only: &only, ..ReadOptions::default() }).unwrap_or_else(|errors| panic!("{errors}"));
    let left: Vec<String> = cells(&narrowed).unwrap().iter().map(Cell::label).collect();
    assert!(
        left.contains(&"alpha part=latency pairs=10 1MiB".to_owned()) && left.iter().all(|cell| !cell.contains("1KiB"))
    );
    let set = [("pairs".to_owned(), "7".to_owned())];
    let set =
        read(PARTS, &ReadOptions { set: &set, ..ReadOptions::default() }).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(cells(&set).unwrap()[0].label().contains("pairs=7"));
}

#[test]
fn what_a_part_cannot_be_is_said() {
    let bad = |text: &str| read(text, &ReadOptions::default()).unwrap_err().to_string();
    let head = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"alpha\"]\nrate = [1, 2]\n";
    assert!(bad(&format!("{head}[parts.a]\nrate = 5\n")).contains("part `a` cannot set `rate`"));
    assert!(bad(&format!("{head}[parts]\npayload = 5\n")).contains("write [parts.NAME]"));
    assert!(bad(&format!("{head}[parts.a]\nqos = 0\n[quick.parts.b]\nqos = 0\n")).contains("there is no part `b`"));
    assert!(
        bad(&format!("{head}[parts.a]\nqos = 0\n[quick.axes]\npart = \"b\"\n"))
            .contains("the part \"b\": there is none")
    );
}

#[test]
fn a_quick_look_may_leave_parts_out() {
    let text = PARTS.replace("[quick.parts.fan]\nsubscribers = 4", "[quick.axes]\npart = \"latency\"");
    let parts = |quick| -> Vec<String> {
        let study = read(&text, &ReadOptions { quick, ..ReadOptions::default() });
        study.unwrap_or_else(|errors| panic!("{errors}")).parts.into_iter().map(|part| part.name).collect()
    };
    assert_eq!((parts(false), parts(true)), (vec!["latency".to_owned(), "fan".into()], vec!["latency".to_owned()]));
}

#[test]
fn a_baseline_is_a_system_that_is_known_and_is_written_again() {
    let study = good(&format!("baseline = \"beta\"\n{PARTS}"));
    assert_eq!(study.baseline.as_deref(), Some("beta"));
    assert_eq!(good(&study.to_toml()).baseline, study.baseline);
    let unknown = read(&format!("baseline = \"betta\"\n{PARTS}"), &ReadOptions::default()).unwrap_err().to_string();
    assert!(unknown.contains("unknown system `betta`"), "{unknown}");
}

#[test]
fn a_part_may_set_options_and_what_is_left_out_need_not_have_them() {
    let text = "title = \"t\"\n[workload]\ntransport = \"tcp\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n\
                [parts.usual]\n[parts.deep]\nqos = 0\noptions.depth = [7, 9]\n\
                [[skip]]\npart = \"deep\"\nsystem = \"beta\"\nwhy = \"it has no depth\"\n";
    let cells = planned(text);
    let depth = |cell: &Cell| cell.options.get("depth").and_then(serde_json::Value::as_u64);
    let made: Vec<(Option<u64>, bool)> = cells.iter().map(|cell| (depth(cell), cell.skipped.is_some())).collect();
    let (alpha, beta) = (|depth| (Some(depth), false), |skipped| (None, skipped));
    assert_eq!(made, [alpha(5), beta(false), alpha(7), alpha(9), beta(true), beta(true)]);
    let study = good(text);
    assert_eq!(good(&study.to_toml()), study);
    let error = cells_of(&text.replace("system = \"beta\"\n", "system = \"alpha\"\n")).unwrap_err();
    assert!(error[0].message.contains("beta has no option `depth`"), "{error:?}");
}

fn cells_of(text: &str) -> Result<Vec<Cell>, Vec<pubmark_model::diagnostic::Diagnostic>> {
    cells(&good(text))
}

#[test]
fn links_are_for_servers_and_clients_over_failing_ones_come_back() {
    let file = |system: &str, workload: &str, faults: &str| {
        format!("title = \"t\"\n[workload]\n{workload}\n[faults]\n{faults}\n[axes]\nsystem = \"{system}\"\n")
    };
    let chance = "mttf = \"2s\"\nmttr = \"1s\"";
    let cell = planned(&file("broker", "duration = \"60s\"", chance)).remove(0);
    assert!(cell.workload.reconnect && cell.faults.is_empty());
    let [first, again, second] = [1, 1, 2].map(|repeat| cell.script(repeat));
    assert!(first == again && first != second && !first.is_empty());
    assert!(first.breaks_connections() && first.outlasts(60_000_000_000).is_none());
    let delayed = planned(&file("broker", "duration = \"6s\"", "link_delay = \"5ms\"")).remove(0);
    assert!(delayed.link.is_some() && !delayed.workload.reconnect && delayed.script(1).is_empty());
    let cut = planned(&file("broker", "duration = \"6s\"", "fault = \"cut link at 1s for 1s\"")).remove(0);
    assert!(cut.workload.reconnect && cut.script(3) == cut.faults);
    for (system, workload, faults, says) in [
        ("alpha", "transport = \"tcp\"", "link_delay = \"5ms\"", "no link can be put before alpha"),
        ("broker", "rate = \"max\"\ncount = 5", chance, "no known end"),
        ("broker", "duration = \"5000s\"", "mttf = \"100ms\"\nmttr = \"10ms\"", "more than 5000 of them"),
        ("broker", "", "mttf = \"2s\"", "set `mttr`"),
    ] {
        let error = cells_of(&file(system, workload, faults)).unwrap_err();
        assert!(error[0].message.contains(says), "{error:?}");
    }
}

#[test]
fn systems_may_have_transports_of_their_own() {
    let text =
        "title = \"t\"\n[transports]\nalpha = \"tcp\"\nbeta = \"inproc\"\n[axes]\nsystem = [\"alpha\", \"beta\"]\n";
    let transports: Vec<_> = planned(text).iter().map(|cell| cell.workload.transport).collect();
    assert_eq!(transports, [Some(Transport::Tcp), Some(Transport::Inproc)]);
    let study = good(text);
    assert_eq!(good(&study.to_toml()), study);
    let bad = |text: &str| read(text, &ReadOptions::default()).unwrap_err().to_string();
    assert!(bad(&text.replace("beta =", "betta =")).contains("unknown system `betta`"));
    assert!(bad(&text.replace("\"inproc\"", "\"ipx\"")).contains("ipx"));
    // A transport for all systems takes precedence.
    let all = planned(&text.replace("[axes]", "[workload]\ntransport = \"tcp\"\n[axes]"));
    assert!(all.iter().all(|cell| cell.workload.transport == Some(Transport::Tcp)));
}
