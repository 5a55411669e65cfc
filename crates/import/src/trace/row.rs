//! A row of a trace, the formats of its files, and errors in them.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write;

/// Header of a trace in CSV.
pub const TRACE_HEADER: &str = "time,flow,size";

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// CSV with the columns `time`, `flow` (or `topic`) and `size`.
    Csv,
    /// Lines of `mosquitto_sub -F '%U %t %l'`.
    MosquittoSub,
    /// Lines of the Redis command MONITOR. Only PUBLISH and SPUBLISH are messages.
    RedisMonitor,
}

/// One message of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRow<'a> {
    /// Its time, ns from an origin that all rows share.
    pub time_ns: u64,
    /// Its flow: a topic, subject or channel.
    pub flow: Cow<'a, str>,
    /// Length of its payload, bytes.
    pub bytes: u64,
}

impl TraceRow<'_> {
    /// Appends the row as a line of CSV, with the time in seconds.
    pub fn write_csv(&self, out: &mut String) {
        let _ = write!(out, "{}.{:09},", self.time_ns / 1_000_000_000, self.time_ns % 1_000_000_000);
        // A line break would end the row, and a terminal may obey other control characters.
        let name = match self.flow.contains(char::is_control) {
            true => Cow::Owned(self.flow.replace(char::is_control, " ")),
            false => Cow::Borrowed(&*self.flow),
        };
        match &*name {
            "" => out.push_str("(empty)"),
            name if name.contains([',', '"']) || name.trim() != name => {
                let _ = write!(out, "\"{}\"", name.replace('"', "\"\""));
            }
            name => out.push_str(name),
        }
        let _ = writeln!(out, ",{}", self.bytes);
    }
}

/// An error in a trace: where it is, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1; `None` if the file as a whole is wrong.
    pub line: Option<u64>,
    /// Description of the error, with advice.
    pub message: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.line.map_or(Ok(()), |line| write!(f, ":{line}"))?;
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for TraceError {}
