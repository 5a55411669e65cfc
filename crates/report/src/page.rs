//! The report as one HTML file that needs nothing else: the front end (`web/`,
//! built into one file and embedded here) with the data in it.
//!
//! What is shown at once is plain JSON (`page/data.rs`); the records themselves are
//! compressed one by one, and the page unpacks those that are asked for. Their
//! histograms stay in `runs.jsonl`: the curves made of them are in the data.

mod capacity;
mod data;
pub(crate) mod explain;
mod records;
mod side_by_side;
#[cfg(test)]
mod typescript;

use crate::document::Rows;
use crate::layout::document;
use crate::long_output;
use crate::report::Report;
use data::Page;
use flate2::read::DeflateDecoder;
use serde::Serialize;
use std::io::{self, Read, Write};
use std::sync::LazyLock;

/// The front end, built by `make web` and packed by `build.rs`.
static FRONT_END: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    // Packed when pubmark was built: what is broken there is found by its tests.
    let _ = DeflateDecoder::new(include_bytes!(concat!(env!("OUT_DIR"), "/page")).as_slice()).read_to_string(&mut text);
    text
});
/// Placeholder of the data.
const PLACE: &str = "<!--pubmark:data-->";
/// Columns of the tables that a browser without scripts shows.
const PLAIN_WIDTH: usize = 120;

/// Content of a page, computed once for all output formats.
pub struct Content {
    /// Data that the page shows at once, JSON.
    page: String,
    /// The records, packed, JSON.
    records: String,
    /// Text for a browser without scripts.
    plain: String,
}

impl Content {
    /// Makes the content of these reports, side by side if there are several. A `live` page asks
    /// its server for news; any other page makes no requests.
    pub fn of(reports: &[&Report], live: bool) -> Content {
        Content { page: json(&Page::of(reports, live)), records: json(&records(reports)), plain: plain(reports) }
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut page = Vec::new();
        let blocks = Blocks {
            page: |out: &mut dyn Write| out.write_all(self.page.as_bytes()),
            records: |out: &mut dyn Write| out.write_all(self.records.as_bytes()),
        };
        // Writing to memory does not fail, and what was written is text.
        let _ = blocks.write(&self.plain, &mut page);
        String::from_utf8(page).unwrap_or_default()
    }

    /// Returns the data for a live page: `{page, records}`.
    pub fn data_json(&self) -> String {
        format!("{{\"page\":{},\"records\":{}}}", self.page, self.records)
    }
}

/// Writes the page for these reports, which asks nobody for anything. It is in
/// memory at no time as a whole: that of many runs is some megabytes.
///
/// # Errors
/// Those of `out`.
pub fn write(reports: &[&Report], out: &mut dyn Write) -> io::Result<()> {
    let plain = plain(reports);
    let blocks = Blocks {
        page: |out: &mut dyn Write| serde_json::to_writer(out, &Page::of(reports, false)).map_err(io::Error::from),
        records: |out: &mut dyn Write| serde_json::to_writer(out, &records(reports)).map_err(io::Error::from),
    };
    blocks.write(&plain, out)
}

/// The records of each report, packed.
fn records(reports: &[&Report]) -> Vec<Vec<String>> {
    reports.iter().map(|report| records::packed(report)).collect()
}

/// Returns the text for a browser without scripts.
fn plain(reports: &[&Report]) -> String {
    reports.iter().map(|report| long_output::render(|| document(report, Rows::ToBeRun), PLAIN_WIDTH, false)).collect()
}

/// The blocks of JSON in the page: what writes each.
struct Blocks<P, R> {
    page: P,
    records: R,
}

impl<P, R> Blocks<P, R>
where
    P: FnOnce(&mut dyn Write) -> io::Result<()>,
    R: FnOnce(&mut dyn Write) -> io::Result<()>,
{
    fn write(self, plain: &str, out: &mut dyn Write) -> io::Result<()> {
        let (before, after) = FRONT_END.split_once(PLACE).unwrap_or((&FRONT_END, ""));
        out.write_all(before.as_bytes())?;
        out.write_all(b"<noscript><p>Charts need scripts; these tables do not.</p><pre>")?;
        out.write_all(escaped(plain).as_bytes())?;
        out.write_all(b"</pre></noscript>\n")?;
        island("pubmark-page", out, self.page)?;
        island("pubmark-records", out, self.records)?;
        out.write_all(after.as_bytes())
    }
}

/// The page for these reports.
pub fn html(reports: &[&Report], live: bool) -> String {
    Content::of(reports, live).html()
}

/// Returns the data for the live page of these reports.
pub fn data_json(reports: &[&Report]) -> String {
    Content::of(reports, true).data_json()
}

/// A block of JSON that no browser runs.
fn island(id: &str, out: &mut dyn Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    write!(out, "<script type=\"application/json\" id=\"{id}\">")?;
    fill(&mut Harmless(&mut *out))?;
    out.write_all(b"</script>\n")
}

/// JSON on its way into a page. Within JSON `<`, `>` and `&` stand in strings only,
/// where they may be escaped; so nothing in the data can end the block or begin
/// another.
struct Harmless<'a>(&'a mut dyn Write);

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let escaped = |byte: &u8| match byte {
            b'<' => Some("\\u003c"),
            b'>' => Some("\\u003e"),
            b'&' => Some("\\u0026"),
            _ => None,
        };
        if let Some(escaped) = bytes.first().and_then(escaped) {
            self.0.write_all(escaped.as_bytes())?;
            return Ok(1);
        }
        let harmless = bytes.iter().position(|byte| escaped(byte).is_some()).unwrap_or(bytes.len());
        self.0.write_all(&bytes[..harmless])?;
        Ok(harmless)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Nothing that is shown can fail to be JSON: keys are strings, and numbers
/// that are not finite become null.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
