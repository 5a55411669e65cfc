//! A block of lines at the bottom of a terminal, redrawn in place.
//!
//! The cursor rests at the block's first column and line: even if the terminal's size changes, erasing from there to
//! the end removes the block and nothing else. The cursor is never hidden, so it needs no restoring.

use super::board::SharedBoard;
use super::table::{ScreenLine, Tone, lines};
use crate::output::colours;
use pubmark_host::clock;
use pubmark_model::printable::printable;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval of redrawing: two pictures per second are enough for the eye, and cost nothing.
const EVERY: Duration = Duration::from_millis(500);

/// Erases from the cursor to the end of the screen.
const ERASE: &str = "\r\x1b[J";

/// Default size if the terminal does not report one: that of the oldest.
const SIZE: (usize, usize) = (80, 24);

/// The live display.
pub struct Screen {
    thread: Option<JoinHandle<()>>,
    canvas: Arc<Canvas>,
}

struct Canvas {
    shared: Arc<SharedBoard>,
    interrupt: Arc<AtomicBool>,
    colour: bool,
    /// True when it is over; its lock also orders the output to the terminal.
    over: Mutex<bool>,
    wake: Condvar,
}

impl Screen {
    /// Starts to show the state of a study. Returns `None` if no thread can be started.
    pub fn start(shared: Arc<SharedBoard>, interrupt: Arc<AtomicBool>) -> Option<Screen> {
        let canvas = Canvas { shared, interrupt, colour: colours(true), over: Mutex::new(false), wake: Condvar::new() };
        let canvas = Arc::new(canvas);
        let mine = canvas.clone();
        let thread = thread::Builder::new().name("screen".into()).spawn(move || mine.keep_drawing()).ok()?;
        Some(Screen { thread: Some(thread), canvas })
    }

    /// Prints a line above the block permanently.
    pub fn say(&self, text: &str) {
        let over = self.canvas.over.lock().unwrap_or_else(PoisonError::into_inner);
        let mut picture = format!("{ERASE}{}\r\n", printable(text).replace('\n', "\r\n"));
        if !*over {
            picture.push_str(&self.canvas.picture());
        }
        show(&picture);
    }

    /// Removes the block from the screen. The lines above it stay.
    pub fn finish(&mut self) {
        *self.canvas.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.canvas.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Canvas {
    fn keep_drawing(&self) {
        let mut over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*over {
            show(&self.picture());
            over = self.wake.wait_timeout(over, EVERY).unwrap_or_else(PoisonError::into_inner).0;
        }
        show(ERASE);
    }

    /// Returns the block, drawn over the one before, with the cursor back at its beginning.
    fn picture(&self) -> String {
        let size = terminal_size::terminal_size_of(std::io::stderr());
        let (columns, rows) = size.map_or(SIZE, |(columns, rows)| (columns.0.into(), rows.0.into()));
        let lines = if self.interrupt.load(Ordering::Relaxed) {
            let text =
                super::table::fit("interrupted: ending in order (Ctrl-C again: at once)", columns.saturating_sub(1));
            vec![ScreenLine { text, tone: Tone::Bad }]
        } else {
            lines(&self.shared.lock(), clock::now(), columns, rows)
        };
        let mut out = String::from("\r");
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                out.push_str("\r\n");
            }
            let text = printable(&line.text);
            match code(line.tone).filter(|_| self.colour) {
                Some(code) => out.push_str(&format!("\x1b[{code}m{text}\x1b[0m\x1b[K")),
                None => out.push_str(&format!("{text}\x1b[K")),
            }
        }
        // Erases what the block before had beyond this one.
        out.push_str("\x1b[J\r");
        if lines.len() > 1 {
            out.push_str(&format!("\x1b[{}A", lines.len() - 1));
        }
        out
    }
}

fn code(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Bold => Some("1"),
        Tone::Dim => Some("2"),
        Tone::Live => Some("36"),
        Tone::Bad => Some("33"),
    }
}

/// Writes in one piece, so that no half picture is visible. A terminal that is gone is not an error.
fn show(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
