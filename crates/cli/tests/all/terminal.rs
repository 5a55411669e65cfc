//! The live table, through a pseudo-terminal whose screen is interpreted while the study runs.

use crate::support::{ENDLESS, PATIENCE, Place};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// A terminal, and a program on it.
pub struct Terminal {
    child: Child,
    master: File,
    screen: Arc<(Mutex<Seen>, Condvar)>,
}

struct Seen {
    parser: vt100::Parser,
    raw: Vec<u8>,
    over: bool,
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    pub fn start(place: &Place, columns: u16, rows: u16, arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let pty = openpty(Some(&size(columns, rows)), None).unwrap();
        let mut command = place.command(arguments);
        command.stdout(Stdio::from(pty.slave.try_clone().unwrap())).stderr(Stdio::from(pty.slave)).env("TERM", "xterm");
        command.envs(variables.iter().copied());
        let child = command.spawn().unwrap();
        drop(command);
        let master = File::from(pty.master);
        let parser = vt100::Parser::new(rows, columns, 0);
        let screen = Arc::new((Mutex::new(Seen { parser, raw: Vec::new(), over: false }), Condvar::new()));
        let (theirs, mut reader) = (screen.clone(), master.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // The kernel answers EIO once the last user of the other side has gone.
                let read = reader.read(&mut buffer).unwrap_or(0);
                let mut seen = theirs.0.lock().unwrap();
                seen.parser.process(&buffer[..read]);
                seen.raw.extend_from_slice(&buffer[..read]);
                seen.over = read == 0;
                theirs.1.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Terminal { child, master, screen }
    }

    /// Returns what `look` finds in the screen's lines, once it is there. Half-drawn pictures are skipped.
    pub fn wait<T>(&self, what: &str, mut look: impl FnMut(&[String]) -> Option<T>) -> T {
        self.wait_raw(what, |seen| Some(lines(seen)).filter(|_| is_whole(&seen.raw)).and_then(|lines| look(&lines)))
    }

    /// Returns the rest of a line, once there is one that begins so.
    pub fn wait_for_line(&self, start: &str) -> String {
        self.wait_raw(start, |seen| lines(seen).into_iter().find(|line| line.starts_with(start)))
    }

    fn wait_raw<T>(&self, what: &str, mut look: impl FnMut(&Seen) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.screen.0.lock().unwrap();
        loop {
            if let Some(found) = look(&seen) {
                return found;
            }
            assert!(!seen.over && Instant::now() < deadline, "waited in vain for {what}: {:#?}", lines(&seen));
            seen = self.screen.1.wait_timeout(seen, PATIENCE).unwrap().0;
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.screen.0.lock().unwrap().parser.screen_mut().set_size(rows, columns);
        terminal_size_set(&self.master, columns, rows);
    }

    /// Waits for the end. Returns the exit code, the last screen and the whole output.
    pub fn end(mut self) -> (i32, Vec<String>, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.screen.0.lock().unwrap();
        while !seen.over {
            assert!(Instant::now() < deadline, "it does not end: {:#?}", lines(&seen));
            seen = self.screen.1.wait_timeout(seen, PATIENCE).unwrap().0;
        }
        let code = self.child.wait().unwrap().code().unwrap();
        assert!(!seen.parser.screen().hide_cursor(), "the cursor is there");
        (code, lines(&seen), String::from_utf8_lossy(&seen.raw).into_owned())
    }
}

fn terminal_size_set(master: &File, columns: u16, rows: u16) {
    // The standard tool of every machine, with the terminal as its input.
    let status = std::process::Command::new("stty")
        .args(["rows", &rows.to_string(), "cols", &columns.to_string()])
        .stdin(Stdio::from(master.as_fd().try_clone_to_owned().unwrap()))
        .status()
        .unwrap();
    assert!(status.success());
}

/// Returns whether the last output is the end of a picture, and not its middle.
fn is_whole(raw: &[u8]) -> bool {
    let last = raw.iter().rposition(|byte| *byte == 0x1b).map_or(raw, |at| &raw[at..]);
    last.starts_with(b"\x1b[") && matches!(last.last(), Some(b'A' | b'J' | b'\r')) && last.len() < 8
}

fn lines(seen: &Seen) -> Vec<String> {
    let screen = seen.parser.screen();
    screen.rows(0, screen.size().1).map(|line| line.trim_end().to_owned()).collect()
}

/// Returns the figures in a system's row: done, running, left, and so on.
fn row(lines: &[String], name: &str) -> Option<Vec<String>> {
    let line = lines.iter().find(|line| line.starts_with(name))?;
    let figures: Vec<String> = line[name.len()..].split_whitespace().map(str::to_owned).collect();
    (figures.len() == 7).then_some(figures)
}

/// Returns a screen that shows the whole table: head, a row of the mock, the current run.
fn whole(lines: &[String]) -> Option<Vec<String>> {
    let complete =
        lines.iter().any(|line| line.starts_with("cells ")) && lines.iter().any(|line| line.contains("left"));
    row(lines, "mock ").filter(|_| complete)
}

/// More repeats than a machine makes during a test; the test ends the program.
const MANY: usize = 1_000;

/// Starts forty cells of the mock, so quick that only their agents take time.
fn many_cells(place: &Place, repeats: usize) {
    let payloads: Vec<String> = (0..40).map(|index| format!("\"{}B\"", 64 + index)).collect();
    place.study(&format!(
        "title = \"Forty cells\"\n[workload]\nrate = 1000\nduration = \"2s\"\n[axes]\nsystem = [\"mock\"]\npayload = [{}]\n[run]\nrepeats = {repeats}\norder = \"sequential\"\n",
        payloads.join(", ")
    ));
}

#[test]
fn the_table_counts_cells_while_they_are_made_and_leaves_nothing_behind() {
    for (columns, rows) in [(80, 24), (200, 50)] {
        let place = Place::new();
        many_cells(&place, 8);
        let terminal = Terminal::start(&place, columns, rows, &["run", "study.toml", "--out", "r"], &[]);
        let mut most = 0;
        terminal.wait("a screen with some cells done and some left", |lines| {
            let figures = whole(lines)?;
            let number = |column: usize| figures[column].parse::<usize>().unwrap();
            assert_eq!(number(0) + number(1) + number(2), 40, "{lines:#?}");
            let (runs, planned) = figures[3].split_once('/').unwrap();
            assert_eq!(planned, "320");
            let runs: usize = runs.parse().unwrap();
            assert_eq!(number(4) + number(5) + number(6), runs, "each run has one verdict: {lines:#?}");
            assert_eq!(runs / 8, number(0), "in sequence, eight runs make a cell: {lines:#?}");
            assert!(runs >= most, "it counts up: {runs} after {most}");
            most = runs;
            // Drawn no further than the last column but one.
            assert!(lines.iter().all(|line| line.chars().count() < columns.into()), "{lines:#?}");
            (number(0) > 0 && number(2) > 0 && number(4) > 0).then_some(())
        });
        let (code, last, _) = terminal.end();
        assert_eq!(code, 0, "{last:#?}");
        let text = last.join("\n");
        assert!(text.contains("Page: r/report.html"), "{text}");
        for live in ["cells  ", "now   ", "last  ", "running  "] {
            assert!(!text.contains(live), "{live:?} of the live table is left: {text}");
        }
        assert_eq!(place.records("r").len(), 320);
    }
}

#[test]
fn a_real_run_shows_its_phases_its_rates_and_its_lag() {
    let place = Place::new();
    let arguments = [
        "bench",
        "kernel",
        "--transport",
        "tcp",
        "--rate",
        "500",
        "--warmup",
        "1s",
        "--duration",
        ENDLESS,
        "--repeats",
        "1",
        "--out",
        "r",
    ];
    let terminal = Terminal::start(&place, 100, 30, &arguments, &[]);
    terminal.wait("the window", |lines| {
        lines.iter().any(|line| line.contains("window ") && line.contains(" of 3600.0 s")).then_some(())
    });
    // If the machine stood still, a rate is that of catching up.
    terminal.wait("rates and lag", |lines| {
        let line = lines.iter().find(|line| line.contains("generator delay ≤ "))?;
        let rate = |name: &str| {
            let rest = line.split(name).nth(1)?.split('(').nth(1)?;
            rest.split("/s)").next()?.parse::<f64>().ok().filter(|rate| (400.0..600.0).contains(rate))
        };
        rate("sent ").zip(rate("received "))
    });
    terminal.signal(Signal::SIGINT);
    let (_, last, raw) = terminal.end();
    assert!(raw.contains("warm-up") || raw.contains("starting"), "what comes before the window");
    assert!(!last.iter().any(|line| line.starts_with("now ")), "{last:#?}");
}

#[test]
fn a_smaller_and_a_larger_screen_are_drawn_anew() {
    let place = Place::new();
    many_cells(&place, MANY);
    let terminal = Terminal::start(&place, 120, 40, &["run", "study.toml", "--out", "r"], &[]);
    terminal.wait("the table", |lines| whole(lines).map(|_| ()));
    for (columns, rows) in [(60, 12), (150, 30)] {
        terminal.resize(columns, rows);
        // The progress of the title is right-aligned: it shows for which width it was drawn. The cursor rests at the
        // table's first line. A table that was being drawn while the size changed may have left a half of itself above.
        terminal.wait_raw("a title of the new width", |seen| {
            let from = usize::from(seen.parser.screen().cursor_position().0);
            let lines = Some(lines(seen)).filter(|_| is_whole(&seen.raw))?.split_off(from);
            let titles: Vec<&String> = lines.iter().filter(|line| line.starts_with("Forty cells")).collect();
            (titles.len() == 1 && titles[0].chars().count() == usize::from(columns) - 1).then_some(())
        });
    }
    terminal.signal(Signal::SIGINT);
    terminal.end();
}

#[test]
fn an_interrupt_leaves_the_records_and_no_table() {
    let place = Place::new();
    many_cells(&place, MANY);
    let terminal = Terminal::start(&place, 80, 24, &["run", "study.toml", "--out", "r"], &[]);
    terminal.wait("some runs", |lines| whole(lines).filter(|figures| !figures[3].starts_with("0/")).map(|_| ()));
    terminal.signal(Signal::SIGINT);
    let (code, last, _) = terminal.end();
    let text = last.join("\n");
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("interrupted: finished runs are kept"), "{text}");
    for live in ["cells  ", "now   ", "last  ", "running  ", "in order"] {
        assert!(!text.contains(live), "{live:?} of the live table is left: {text}");
    }
    assert!(!place.records("r").is_empty());
}

#[test]
fn a_run_that_fails_is_said_above_the_table_and_stays() {
    let place = Place::new();
    let options = ["run", "study.toml", "--out", "r", "--set", "options.endpoint=mqtt://127.0.0.1:1"];
    place.study("title = \"No server\"\n[workload]\nrate = 10\nduration = \"1s\"\nconnect_timeout = \"1s\"\n[axes]\nsystem = [\"mqtt\"]\n[run]\nrepeats = 2\n");
    let (code, last, _) = Terminal::start(&place, 120, 40, &options, &[]).end();
    let text = last.join("\n");
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("[1/2]") && text.contains("[2/2]") && text.contains("failed"), "{text}");
    assert!(!text.contains("now   ") && !text.contains("cells  "), "{text}");
}

#[test]
fn no_colour_and_dumb_terminals_are_respected() {
    let place = Place::new();
    many_cells(&place, MANY);
    let terminal = Terminal::start(&place, 80, 24, &["run", "study.toml", "--out", "r"], &[("NO_COLOR", "1")]);
    terminal.wait("the table", |lines| whole(lines).map(|_| ()));
    terminal.signal(Signal::SIGINT);
    let (_, _, raw) = terminal.end();
    assert!(!raw.contains("\x1b[1m") && !raw.contains("\x1b[36m") && !raw.contains("\x1b[2m"), "{raw:?}");
    many_cells(&place, 1);
    let dumb =
        Terminal::start(&place, 80, 24, &["run", "study.toml", "--out", "d"], &[("TERM", "dumb"), ("NO_COLOR", "1")]);
    let (_, _, raw) = dumb.end();
    assert!(!raw.contains('\x1b') && raw.contains("[40/40] mock"), "{raw:?}");
}
