//! The report as one HTML file that needs nothing else: the front end (`web/`,
//! built into one file and embedded here) with the data in it.
//!
//! What is shown at once is plain JSON (`page/data.rs`); the records themselves are
//! compressed one by one, and the page unpacks those that are asked for. Their
//! histograms stay in `runs.jsonl`: the curves made of them are in the data.

mod beside;
mod curves;
mod data;
mod explain;
mod findings;
mod records;

use crate::report::Report;
use data::Page;
use serde::Serialize;

/// The front end, built by `make web`.
const FRONT_END: &str = include_str!("../../../web/report.html");
/// Where the data goes.
const PLACE: &str = "<!--pubmark:data-->";
/// Columns of the tables that a browser without scripts shows.
const PLAIN_WIDTH: usize = 120;

/// The page for these reports, side by side where there are several. A `live`
/// page asks the server that it came from for what is new; another never asks
/// anybody for anything.
pub fn html(reports: &[&Report], live: bool) -> String {
    let (before, after) = FRONT_END.split_once(PLACE).unwrap_or((FRONT_END, ""));
    let page = Page::of(reports, live);
    let records: Vec<Vec<String>> = reports.iter().map(|report| records::packed(report)).collect();
    let plain: String = reports.iter().map(|report| escaped(&report.terminal(PLAIN_WIDTH, false))).collect();
    [
        before,
        "<noscript><p>Charts need scripts; these tables do not.</p><pre>",
        &plain,
        "</pre></noscript>\n",
        &island("pubmark-page", &page),
        &island("pubmark-records", &records),
        after,
    ]
    .concat()
}

/// What a live page asks for: the data and the records, `{page, records}`.
pub fn data_json(reports: &[&Report]) -> String {
    #[derive(Serialize)]
    struct Fresh<'a> {
        page: Page<'a>,
        records: Vec<Vec<String>>,
    }
    let records = reports.iter().map(|report| records::packed(report)).collect();
    json(&Fresh { page: Page::of(reports, true), records })
}

/// A block of data that no browser runs.
fn island(id: &str, value: &impl Serialize) -> String {
    // Within JSON these stand in strings only, where they may be escaped; so
    // nothing in the data can end the block or begin another.
    let text = json(value).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    format!("<script type=\"application/json\" id=\"{id}\">{text}</script>\n")
}

/// Nothing that is shown can fail to be JSON: keys are strings, and numbers
/// that are not finite become null.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
