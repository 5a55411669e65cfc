use super::*;
use pubmark_judge::empty_record::blank;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::plan::{cells, order};
use pubmark_model::record::{FigureGroup, Finding, Reason, RunRecord, Verdict};
use pubmark_model::setting::FreshServer;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_study::live::{Figures, News};
use pubmark_study::registry;
use pubmark_study::runner::StudyStart;
use pubmark_study::strategy::{Decided, NextRun, Outlook, Undecided};

/// Returns the board of a study of two systems whose axis `payload` has this many values.
fn board(payloads: usize, repeats: u32, title: &str) -> Board {
    let study = study(payloads, repeats, title);
    let cells = cells(&study).unwrap();
    let left: Vec<usize> = order(&study, &cells).iter().map(|run| run.cell).collect();
    let mut board = Board::default();
    board.begin(&start(&study.title, &cells, &left));
    board
}

fn start<'a>(title: &'a str, rows: &'a [Cell], left: &'a [usize]) -> StudyStart<'a> {
    StudyStart { title, rows, left, records: &[], fresh: FreshServer::Run }
}

/// Begins a run of this row.
fn begin(board: &mut Board, row: usize, now_ns: Ns) {
    let cell = cells(&study(20, 1, "x")).unwrap().remove(row);
    board.run_begins(&run_of(row, &cell), now_ns);
}

fn run_of(row: usize, cell: &Cell) -> NextRun {
    NextRun { row, cell: cell.clone(), place: Place { repeat: 1, position: 0 }, grown: None }
}

fn study(payloads: usize, repeats: u32, title: &str) -> Study {
    let values: Vec<String> = (1..=payloads).map(|size| format!("\"{}B\"", 16 + size)).collect();
    let text = format!(
        "title = \"x\"\nquestion = \"\"\n[workload]\ntransport = \"tcp\"\nrate = 1000\nwarmup = \"1s\"\nduration = \"10s\"\n[axes]\n\
         system = [\"nng\", \"kernel\"]\npayload = [{}]\n[run]\nrepeats = {repeats}\n",
        values.join(", ")
    );
    let reading = ReadOptions { quick: false, set: &[], only: &[], ..ReadOptions::default() };
    let mut study = Study::parse("x", &text, &registry::built_in, &reading).unwrap();
    study.title = title.into();
    study
}

fn record(valid: bool, error: Option<&str>) -> RunRecord {
    let reasons = if valid {
        Vec::new()
    } else {
        vec![Finding {
            reason: Reason::MessagesLost,
            evidence: "x".into(),
            figures: FigureGroup::all(),
            overload: false,
        }]
    };
    let cell = &cells(&study(1, 1, "x")).unwrap()[0];
    let mut record = blank(cell, None, Place { repeat: 1, position: 0 }, String::new());
    record.verdict = Verdict { valid, reasons, ..Verdict::default() };
    record.error = error.map(str::to_owned);
    record
}

/// Makes the first runs of the order.
fn make(board: &mut Board, runs: &[(bool, Option<&str>)]) {
    for (number, (valid, error)) in runs.iter().enumerate() {
        begin(board, number, 0);
        board.run_ends(&record(*valid, *error), "said", SECOND);
    }
}

fn text(board: &Board, now_ns: Ns, columns: usize, rows: usize) -> String {
    lines(board, now_ns, columns, rows).iter().map(|line| format!("{}\n", line.text)).collect()
}

/// Returns the figures of a row.
fn figures(text: &str, name: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line[name.len()..].split_whitespace().map(str::to_owned).collect()
}

#[test]
fn systems_are_counted_where_there_are_many_cells() {
    let mut board = board(20, 1, "A title");
    make(&mut board, &[(true, None), (false, None), (false, Some("no"))]);
    begin(&mut board, 3, SECOND);
    let text = text(&board, SECOND, 80, 24);
    assert!(text.starts_with("A title ") && text.contains(" 3/40 runs, "), "{text}");
    let both: Vec<Vec<String>> = ["nng", "kernel"].iter().map(|name| figures(&text, name)).collect();
    let sum = |column: usize| both.iter().map(|row| row[column].parse::<usize>().unwrap()).sum::<usize>();
    assert_eq!((sum(0), sum(1), sum(2)), (3, 1, 36), "done, running, left: {text}");
    assert_eq!((sum(4), sum(5), sum(6)), (1, 1, 1), "ok, unreliable, failed: {text}");
    assert!(text.contains("last  ") && text.contains(": said"), "{text}");
}

/// Notes an evaluation of a study's questions: those decided, with a result, and those open, with the time that they
/// still take, s.
fn looked(board: &mut Board, decided: &[&str], open: &[(&str, Option<u64>)], wanted: &[usize]) {
    board.looked(&Outlook {
        asked: "questions",
        decided: decided.iter().map(|text| Decided { text: (*text).into(), answer: "nng".into() }).collect(),
        open: open
            .iter()
            .map(|(text, more_s)| Undecided {
                text: (*text).into(),
                known: String::new(),
                more_ns: more_s.map(|s| s * SECOND),
            })
            .collect(),
        closed: 0,
        wanted: wanted.iter().copied().collect(),
        ends_ns: 100 * SECOND,
    });
}

/// Returns the lines that begin with this word, without it.
fn lines_of<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
}

/// The number of runs is unknown: there are questions and a time.
#[test]
fn a_study_with_a_time_says_how_its_questions_stand() {
    let study = study(2, 1, "A title");
    let cells = cells(&study).unwrap();
    let mut board = Board::default();
    board.begin(&start("A title", &cells, &[]));
    looked(
        &mut board,
        &[],
        &[("claim 1", None), ("best at a", Some(90)), ("best at b", Some(20)), ("c", Some(300))],
        &[0, 1, 2, 3],
    );
    board.run_begins(&run_of(2, &cells[2]), SECOND);
    let begun = text(&board, 10 * SECOND, 80, 24);
    assert!(begun.contains("0 decided, 4 open; 0 runs, 1 min 30 s left"), "{begun}");
    assert!(begun.contains(&format!("now   {}", cells[2].label())), "{begun}");
    assert_eq!(
        lines_of(&begun, "open"),
        ["best at b; about 20 s more", "best at a; about 1 min 30 s more", "c; about 5 min 00 s more"],
        "the nearest first, and no more of them: {begun}"
    );
    assert!(lines_of(&begun, "done").is_empty(), "{begun}");
    board.run_ends(&record(true, None), "said", 20 * SECOND);
    looked(&mut board, &["best at a", "best at b", "c"], &[("claim 1", None)], &[0]);
    looked(&mut board, &["best at a", "best at b", "c"], &[("claim 1", None)], &[0]);
    let later = text(&board, 20 * SECOND, 80, 24);
    assert!(later.contains("3 decided, 1 open; 1 runs, 1 min 20 s left"), "{later}");
    assert_eq!(lines_of(&later, "open"), ["claim 1; cannot estimate the time still needed"], "{later}");
    assert_eq!(lines_of(&later, "done"), ["c: nng"], "what was decided last stays: {later}");
    assert!(lines_of(&text(&board, 20 * SECOND, 80, 8), "done").is_empty(), "the rows go before it");
    let row = |index: usize| figures(&later, &cells[index].label());
    assert_eq!((&row(0)[2][..], &row(2)[0][..], &row(2)[3][..]), ("1", "1", "1/1"), "{later}");
}

#[test]
fn few_cells_have_a_row_each_as_far_as_there_is_height() {
    let mut board = board(3, 2, "A title");
    make(&mut board, &[(true, None)]);
    let tall = text(&board, 0, 80, 24);
    assert_eq!(tall.lines().filter(|line| line.starts_with("nng ") || line.starts_with("kernel ")).count(), 6);
    let done: Vec<&str> = tall.lines().filter(|line| line.contains(" 1/2 ")).collect();
    assert_eq!(done.len(), 1, "{tall}");
    let short = text(&board, 0, 80, 9);
    assert_eq!(short.lines().filter(|line| line.starts_with("nng ") || line.starts_with("kernel ")).count(), 2);
    for rows in 1..12 {
        assert!(lines(&board, 0, 80, rows).len() <= rows.saturating_sub(1).max(1), "{rows}");
    }
}

#[test]
fn the_run_that_is_on_says_its_phase_and_its_rates() {
    let mut board = board(1, 1, "A title");
    begin(&mut board, 0, SECOND);
    assert!(text(&board, 3 * SECOND, 80, 24).contains("starting, 2.0 s"));
    board.news(News::Phase(Phase::Load { start_ns: 2 * SECOND, from_ns: 3 * SECOND, to_ns: Some(13 * SECOND) }));
    assert!(text(&board, 2 * SECOND + SECOND / 2, 80, 24).contains("warm-up 0.5 of 1.0 s"));
    board.news(News::Figures(Figures {
        sent: 4_000,
        received: 3_990,
        sent_per_s: 1_000.0,
        received_per_s: 998.0,
        own_lag_max_ns: Some(45_000),
    }));
    let window = text(&board, 7 * SECOND, 80, 24);
    assert!(window.contains("window 4.0 of 10.0 s"), "{window}");
    assert!(window.contains("sent 4.00k (1.00k/s)  received 3.99k (998/s)  generator delay ≤ 45.0 µs"), "{window}");
    assert_eq!(board.offered(7 * SECOND), Some(5_000), "what was due since the start");
    assert_eq!(board.offered(99 * SECOND), Some(11_000), "and no more beyond the window");
    assert!(text(&board, 14 * SECOND, 80, 24).contains("draining"));
}

#[test]
fn no_line_is_wider_than_the_screen_whatever_is_in_it() {
    let nasty = format!("漢字🎈\u{1b}[31m</script>\u{202e}{}", "x".repeat(100_000));
    let mut board = board(20, 1, &nasty);
    begin(&mut board, 1, 0);
    board.run_ends(&record(true, None), &nasty, SECOND);
    begin(&mut board, 0, 0);
    for columns in [1, 2, 10, 40, 80, 200] {
        for line in lines(&board, 0, columns, 24) {
            assert!(line.text.width() < columns.max(2), "{columns}: {:?}", line.text);
        }
    }
    assert!(
        [Some(&board.title), board.last.as_ref()]
            .into_iter()
            .flatten()
            .all(|text| !text.contains(['\u{1b}', '\u{202e}']))
    );
    assert_eq!(fit("漢字漢字", 4), "漢…", "a wide character is not cut in two");
}

#[test]
fn times_are_said_as_a_person_would() {
    assert_eq!(duration(0), "0 s");
    assert_eq!(duration(SECOND / 2), "1 s");
    assert_eq!(duration(61 * SECOND), "1 min 01 s");
    assert_eq!(duration(3_725 * SECOND), "1 h 02 min");
}
