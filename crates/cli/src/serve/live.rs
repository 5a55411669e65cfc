//! `--watch`: the report of a running study, in a browser of this machine.
//!
//! The page is made between runs, on the coordinator's thread, and only if it was requested since: an analysis within a
//! window would take processor time from the measurement. Within a run a request costs a copy.

use super::{HttpRequest, HttpResponse, HttpServer};
use crate::failure::Failure;
use crate::output::note;
use crate::progress::board::SharedBoard;
use crate::progress::table;
use pubmark_host::clock;
use pubmark_model::units::{Ns, SECOND};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Interval at which the wait checks for the end.
const LOOK: Duration = Duration::from_millis(100);
/// Content type of pages.
const HTML: &str = "text/html; charset=utf-8";
/// Page shown until the first one is made. The browser asks for it again every second.
const NOT_YET: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"1\">\
<title>pubmark</title><p>The report appears here when the first run begins.</p></html>\n";

/// Makes the page and its data from a results folder.
pub type Make = dyn Fn(&Path) -> Result<Pages, String> + Send + Sync;

/// Content for a browser.
pub struct Pages {
    /// The page.
    pub html: String,
    /// Data that the page requests when there is more.
    pub data: String,
}

/// A study that can be watched.
pub struct LiveReport {
    shared: Arc<SharedBoard>,
    folder: PathBuf,
    make: Box<Make>,
    /// True if there was a request since the page was made.
    asked: AtomicBool,
    made: Mutex<Option<Made>>,
}

#[derive(Clone)]
struct Made {
    html: Arc<[u8]>,
    data: Arc<[u8]>,
    etag: String,
}

/// State of the current run.
#[derive(Serialize)]
struct Status {
    running: bool,
    label: String,
    phase: String,
    sent: u64,
    received: u64,
    sent_per_s: f64,
    received_per_s: f64,
    lag_ns: Option<Ns>,
    done: usize,
    runs: usize,
    eta_s: u64,
}

impl LiveReport {
    /// Returns the live report for the results in a folder.
    pub fn new(shared: Arc<SharedBoard>, folder: &Path, make: Box<Make>) -> Arc<LiveReport> {
        // The first page is made without a request.
        let asked = AtomicBool::new(true);
        Arc::new(LiveReport { shared, folder: folder.to_owned(), make, asked, made: Mutex::new(None) })
    }

    /// Serves it on the loopback interface, and prints the address.
    pub fn serve(self: &Arc<LiveReport>, port: u16) -> Result<HttpServer, Failure> {
        let live = self.clone();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let server =
            HttpServer::start("--watch", address, Arc::new(move |request: &HttpRequest| live.answer(request)))?;
        note(&format!("live report: http://{}/", server.address));
        Ok(server)
    }

    /// Makes the page again if it was requested. Must be called between runs.
    pub fn refresh(&self) {
        if !self.asked.swap(false, Ordering::Relaxed) {
            return;
        }
        let number = self.shared.lock().records;
        match (self.make)(&self.folder) {
            Ok(pages) => {
                // It contains the process id, because a browser may outlive a process.
                let etag = format!("\"{}-{number}\"", std::process::id());
                let made = Made { html: pages.html.into_bytes().into(), data: pages.data.into_bytes().into(), etag };
                *self.lock() = Some(made);
            }
            // The study must not suffer: the next run tries again.
            Err(_) => self.asked.store(true, Ordering::Relaxed),
        }
    }

    /// Makes the page again in any case, because no further run will.
    pub fn refresh_for_good(&self) {
        self.asked.store(true, Ordering::Relaxed);
        self.refresh();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> HttpResponse {
        match request.path.as_str() {
            "/" | "/index.html" => {
                let not_yet = || HttpResponse { status: 503, ..HttpResponse::ok(HTML, NOT_YET.as_bytes()) };
                self.page(request, HTML, |made| made.html).unwrap_or_else(not_yet)
            }
            "/data.json" => {
                let made = self.page(request, "application/json", |made| made.data);
                made.unwrap_or_else(|| HttpResponse::status(503))
            }
            "/status.json" => {
                HttpResponse::ok("application/json", serde_json::to_vec(&self.status()).unwrap_or_default())
            }
            _ => HttpResponse::status(404),
        }
    }

    /// Returns the part of the page that `body` picks; `None` before the first page is made.
    fn page(
        &self,
        request: &HttpRequest,
        content_type: &'static str,
        body: impl FnOnce(Made) -> Arc<[u8]>,
    ) -> Option<HttpResponse> {
        self.asked.store(true, Ordering::Relaxed);
        let made = self.lock().clone()?;
        let etag = made.etag.clone();
        let known = request.if_none_match.as_deref() == Some(etag.as_str());
        let response = HttpResponse { etag: Some(etag), ..HttpResponse::ok(content_type, body(made)) };
        Some(if known { HttpResponse { status: 304, ..response } } else { response })
    }

    fn status(&self) -> Status {
        let now_ns = clock::now();
        let board = self.shared.lock();
        let current = board.current.as_ref();
        let figures = current.and_then(|current| current.figures).unwrap_or_default();
        Status {
            running: !board.ended,
            label: current.map_or_else(String::new, |run| run.label.clone()),
            phase: current.map_or_else(String::new, |run| table::phase(run, now_ns)),
            sent: figures.sent,
            received: figures.received,
            sent_per_s: figures.sent_per_s,
            received_per_s: figures.received_per_s,
            lag_ns: figures.own_lag_max_ns,
            done: board.tally().runs(),
            runs: board.runs,
            eta_s: if board.ended { 0 } else { board.left_ns(now_ns).div_ceil(SECOND) },
        }
    }
}

/// Keeps serving until the user interrupts.
pub fn linger(server: &HttpServer, interrupt: &AtomicBool) {
    note(&format!("the report stays at http://{}/ until Ctrl-C", server.address));
    while !interrupt.load(Ordering::Relaxed) {
        thread::park_timeout(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_when_somebody_has_asked_and_told_apart_by_its_records() {
        let make = |_: &Path| Ok(Pages { html: "<p>".into(), data: "{}".into() });
        let shared = Arc::new(SharedBoard::default());
        let live = LiveReport::new(shared.clone(), Path::new("x"), Box::new(make));
        let ask = |path: &str, etag: Option<String>| {
            live.answer(&HttpRequest { path: path.into(), if_none_match: etag, host: Some("localhost".into()) })
        };
        let nothing = ask("/", None);
        assert_eq!((nothing.status, nothing.content_type), (503, HTML), "nothing has been made");
        assert!(String::from_utf8_lossy(&nothing.body).contains("http-equiv=\"refresh\""), "a browser asks again");
        assert_eq!(ask("/data.json", None).status, 503);
        live.refresh();
        let first = ask("/data.json", None);
        assert_eq!((first.status, &*first.body), (200, &b"{}"[..]));
        assert_eq!(ask("/data.json", first.etag.clone()).status, 304);
        shared.lock().records += 1;
        assert_eq!(ask("/data.json", first.etag.clone()).status, 304, "not before it is made anew");
        live.refresh();
        let second = ask("/", first.etag.clone());
        assert_eq!(second.status, 200);
        live.refresh();
        shared.lock().records += 1;
        live.refresh();
        assert_eq!(ask("/", None).etag, second.etag, "nobody had asked");
        assert_eq!(ask("/../etc/passwd", None).status, 404);
    }
}
