//! The report as one HTML file that needs nothing else: the front end (`web/`,
//! built into one file and embedded here) with the data in it.
//!
//! What is shown at once is plain JSON (`page/data.rs`); the records themselves are
//! compressed one by one, and the page unpacks those that are asked for. Their
//! histograms stay in `runs.jsonl`: the curves made of them are in the data.

mod beside;
mod capacity;
mod curves;
mod data;
pub(crate) mod explain;
mod records;

use crate::bounded;
use crate::layout::document;
use crate::report::Report;
use data::Page;
use flate2::read::DeflateDecoder;
use serde::Serialize;
use std::io::Read;
use std::sync::LazyLock;

/// The front end, built by `make web` and packed by `build.rs`.
static FRONT_END: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    // Packed when pubmark was built: what is broken there is found by its tests.
    let _ = DeflateDecoder::new(include_bytes!(concat!(env!("OUT_DIR"), "/page")).as_slice()).read_to_string(&mut text);
    text
});
/// Where the data goes.
const PLACE: &str = "<!--pubmark:data-->";
/// Columns of the tables that a browser without scripts shows.
const PLAIN_WIDTH: usize = 120;

/// What a page holds, made once for each form in which it is wanted.
pub struct Content {
    /// What is shown at once, JSON.
    page: String,
    /// The records, packed, JSON.
    records: String,
    /// What a browser without scripts shows, text.
    plain: String,
}

impl Content {
    /// Of these reports, side by side where there are several. A `live` page
    /// asks the server that it came from for what is new; another never asks
    /// anybody for anything.
    pub fn of(reports: &[&Report], live: bool) -> Content {
        let records: Vec<Vec<String>> = reports.iter().map(|report| records::packed(report)).collect();
        Content {
            page: json(&Page::of(reports, live)),
            records: json(&records),
            plain: reports.iter().map(|report| bounded::render(|| document(report), PLAIN_WIDTH, false)).collect(),
        }
    }

    /// The page.
    pub fn html(&self) -> String {
        let (before, after) = FRONT_END.split_once(PLACE).unwrap_or((&FRONT_END, ""));
        [
            before,
            "<noscript><p>Charts need scripts; these tables do not.</p><pre>",
            &escaped(&self.plain),
            "</pre></noscript>\n",
            &island("pubmark-page", &self.page),
            &island("pubmark-records", &self.records),
            after,
        ]
        .concat()
    }

    /// What a live page asks for: the data and the records, `{page, records}`.
    pub fn data_json(&self) -> String {
        format!("{{\"page\":{},\"records\":{}}}", self.page, self.records)
    }
}

/// The page for these reports.
pub fn html(reports: &[&Report], live: bool) -> String {
    Content::of(reports, live).html()
}

/// What the live page of these reports asks for.
pub fn data_json(reports: &[&Report]) -> String {
    Content::of(reports, true).data_json()
}

/// A block of JSON that no browser runs.
fn island(id: &str, json: &str) -> String {
    // Within JSON these stand in strings only, where they may be escaped; so
    // nothing in the data can end the block or begin another.
    let text = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
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
