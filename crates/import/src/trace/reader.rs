//! From lines of a file to rows.

use super::monitor;
use super::row::{TraceError, TraceFormat, TraceRow};
use super::time::{self, TimeUnit};
use pubmark_model::payload::MOST_BYTES;
use std::borrow::Cow;
use std::io::{BufRead, Read};

/// Longest text that an error repeats, characters.
const EXCERPT: usize = 80;
/// Longest line that is read, bytes: a line of MONITOR has the whole message, with up to four characters a byte.
const LINE_MAX: u64 = 64 << 20;

/// Reads the lines of one file in turn.
pub struct TraceReader {
    file: String,
    format: TraceFormat,
    /// Number of the last line, from 1.
    line: u64,
    /// Indices of time, flow and size, once the header is read.
    columns: Option<[usize; 3]>,
    unit: TimeUnit,
    last_ns: u64,
    latest_ns: u64,
    rows: u64,
    others: u64,
}

impl TraceReader {
    /// Creates a reader of a file. `latest_ns` is the latest time that a row may have, ns since 1970.
    pub fn new(file: &str, format: TraceFormat, latest_ns: u64) -> TraceReader {
        let unit = if format == TraceFormat::Csv { TimeUnit::Open } else { TimeUnit::Seconds };
        let file = file.to_owned();
        TraceReader { file, format, line: 0, columns: None, unit, last_ns: 0, latest_ns, rows: 0, others: 0 }
    }

    /// Returns an error at the line that was read last.
    pub fn error(&self, message: impl Into<String>) -> TraceError {
        TraceError { file: self.file.clone(), line: Some(self.line), message: message.into() }
    }

    /// Returns the number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of lines that are no messages, such as other commands of Redis.
    pub fn others(&self) -> u64 {
        self.others
    }

    /// Reads all lines of an input, and passes on each row with the number of its line.
    ///
    /// # Errors
    /// The input cannot be read, a line is damaged, or a row is refused.
    pub fn read_all<E: From<TraceError>>(
        &mut self,
        mut input: impl BufRead,
        mut row: impl FnMut(u64, &TraceRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = (&mut input).take(LINE_MAX).read_until(b'\n', &mut line).map_err(|error| {
                let message = format!("{error}. Name a trace, or an endpoint such as mqtt://127.0.0.1");
                TraceError { file: self.file.clone(), line: None, message }
            })?;
            if bytes == 0 {
                return Ok(self.finish()?);
            }
            if bytes as u64 == LINE_MAX && line.last() != Some(&b'\n') {
                self.line += 1;
                let message =
                    format!("the line is longer than {} MiB. Name a file with one message a line", LINE_MAX >> 20);
                return Err(self.error(message).into());
            }
            if let Some(found) = self.read(&line)? {
                row(self.line, &found)?;
            }
        }
    }

    /// Reads the next line, with or without its line break. Returns `None` for a header, an empty line and another
    /// command.
    ///
    /// # Errors
    /// The line is damaged, or its time is earlier than that of the row before it.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Result<Option<TraceRow<'a>>, TraceError> {
        self.line += 1;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line).map_err(|_| self.error("not UTF-8 text. Remove the damaged line"))?;
        let text = if self.line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        if text.trim().is_empty() {
            return Ok(None);
        }
        let [time, flow, size] = match self.format {
            TraceFormat::Csv => match self.csv(text)? {
                Some(fields) => fields,
                None => return Ok(None),
            },
            TraceFormat::MosquittoSub => self.mosquitto(text)?,
            TraceFormat::RedisMonitor if text == "OK" => return Ok(None),
            TraceFormat::RedisMonitor => {
                let published = monitor::parse(text).map_err(|why| self.error(format!("{why}: {}", excerpt(text))))?;
                let Some(published) = published else {
                    self.others += 1;
                    return Ok(None);
                };
                [published.time.into(), published.channel.into(), published.bytes.to_string().into()]
            }
        };
        let time_ns = time::parse(time.trim(), &mut self.unit).map_err(|why| self.error(why))?;
        if time_ns > self.latest_ns {
            return Err(
                self.error(format!("the time `{time}` is in the future. Correct it, or the clock of this machine"))
            );
        }
        if time_ns < self.last_ns {
            let earlier = (self.last_ns - time_ns) as f64 / 1e9;
            return Err(
                self.error(format!("the time is {earlier} s earlier than the one before it. Sort the file by time"))
            );
        }
        if flow.is_empty() {
            return Err(self.error("the flow has no name. Write the topic, or any name"));
        }
        let digits = size.trim();
        let bytes = digits.parse::<u64>().ok().filter(|bytes| *bytes <= MOST_BYTES && !digits.starts_with('+'));
        let bytes = bytes.ok_or_else(|| {
            self.error(format!("`{}` is not a size. Write whole bytes, 0 to {MOST_BYTES}", excerpt(digits)))
        })?;
        self.last_ns = time_ns;
        self.rows += 1;
        Ok(Some(TraceRow { time_ns, flow, bytes }))
    }

    /// Checks that the file has rows.
    ///
    /// # Errors
    /// It has none.
    pub fn finish(&self) -> Result<(), TraceError> {
        let why = match (self.line, self.rows) {
            (0, _) => "the file is empty. Write a line `time,flow,size`, and one line for each message",
            (_, 0) if self.format == TraceFormat::Csv => "the file has only a header. Write one line for each message",
            (_, 0) => "the file has no messages. Record while clients publish",
            _ => return Ok(()),
        };
        Err(TraceError { file: self.file.clone(), line: None, message: why.into() })
    }

    /// Returns time, flow and size of a line of CSV; `None` for the header.
    fn csv<'a>(&mut self, text: &'a str) -> Result<Option<[Cow<'a, str>; 3]>, TraceError> {
        let fields = fields(text).ok_or_else(|| {
            self.error(format!("a quote is not closed in its line, or text follows it: {}", excerpt(text)))
        })?;
        let Some(columns) = self.columns else {
            self.columns = Some(self.header(&fields)?);
            return Ok(None);
        };
        if fields.len() != columns.len() {
            let message = format!("the line has {} fields, and should have 3: {}", fields.len(), excerpt(text));
            return Err(self.error(message));
        }
        Ok(Some(columns.map(|index| fields[index].clone())))
    }

    /// Returns the places of time, flow and size.
    fn header(&self, fields: &[Cow<'_, str>]) -> Result<[usize; 3], TraceError> {
        const ADVICE: &str = "Begin the file with the line `time,flow,size`";
        let known = ["time", "flow", "size"];
        let names: Vec<&str> =
            fields.iter().map(|name| if name.trim() == "topic" { "flow" } else { name.trim() }).collect();
        if let Some(strange) = names.iter().find(|name| !known.contains(name)) {
            let message = format!(
                "unknown column `{}`: the columns are time, flow (or topic) and size. {ADVICE}",
                excerpt(strange)
            );
            return Err(self.error(message));
        }
        let mut columns = [0; 3];
        for (name, column) in known.iter().zip(&mut columns) {
            let places: Vec<usize> = (0..names.len()).filter(|index| names[*index] == *name).collect();
            *column = match places.as_slice() {
                [place] => *place,
                [] => return Err(self.error(format!("there is no column `{name}`. {ADVICE}"))),
                _ => return Err(self.error(format!("the column `{name}` is here twice. {ADVICE}"))),
            };
        }
        Ok(columns)
    }

    /// Returns time, flow and size of a line of mosquitto_sub. A topic may contain spaces.
    fn mosquitto<'a>(&self, text: &'a str) -> Result<[Cow<'a, str>; 3], TraceError> {
        let split = text.split_once(' ').and_then(|(time, rest)| Some((time, rest.rsplit_once(' ')?)));
        let (time, (topic, size)) = split.ok_or_else(|| {
            let message = "not a line of mosquitto_sub: record with mosquitto_sub -t '#' -F '%U %t %l'";
            self.error(format!("{message}: {}", excerpt(text)))
        })?;
        Ok([time.into(), topic.into(), size.into()])
    }
}

fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(EXCERPT).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// Splits a line of CSV; `None` if a quote is not closed.
fn fields(text: &str) -> Option<Vec<Cow<'_, str>>> {
    let (mut rest, mut fields) = (text, Vec::new());
    loop {
        let after = match rest.strip_prefix('"') {
            None => {
                let (field, after) = rest.find(',').map_or((rest, ""), |end| rest.split_at(end));
                fields.push(field.into());
                after
            }
            Some(quoted) => {
                let (mut field, mut tail) = (String::new(), quoted);
                loop {
                    let end = tail.find('"')?;
                    field.push_str(&tail[..end]);
                    tail = &tail[end + 1..];
                    let Some(more) = tail.strip_prefix('"') else { break };
                    field.push('"');
                    tail = more;
                }
                fields.push(field.into());
                tail
            }
        };
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.is_empty() => return Some(fields),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATEST: u64 = 2_000_000_000_000_000_000;

    fn read(format: TraceFormat, text: &str) -> Result<Vec<(u64, String, u64)>, String> {
        let mut reader = TraceReader::new("t", format, LATEST);
        let mut rows = Vec::new();
        for line in text.split_inclusive('\n') {
            let row = reader.read(line.as_bytes()).map_err(|error| error.to_string())?;
            rows.extend(row.map(|row| (row.time_ns, row.flow.into_owned(), row.bytes)));
        }
        reader.finish().map_err(|error| error.to_string())?;
        Ok(rows)
    }

    #[test]
    fn columns_may_have_any_order_and_fields_may_have_quotes() {
        let text = "\u{feff}size,topic,time\r\n64,\"a,\"\"b\"\"\",0.5\r\n\n0,c d,1.25";
        let wanted = vec![(500_000_000, "a,\"b\"".to_owned(), 64), (1_250_000_000, "c d".to_owned(), 0)];
        assert_eq!(read(TraceFormat::Csv, text), Ok(wanted));
    }

    #[test]
    fn a_row_is_written_as_it_is_read() {
        let mut text = format!("{TRACE_HEADER}\n");
        let names = ["a", "a,b", "\"", " c", "d "];
        for (number, name) in names.iter().enumerate() {
            TraceRow { time_ns: number as u64 * 1_000_000_001, flow: (*name).into(), bytes: 7 }.write_csv(&mut text);
        }
        let rows = read(TraceFormat::Csv, &text).unwrap();
        assert_eq!(rows.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(), names);
        assert_eq!(rows[3].0, 3_000_000_003);
    }

    use super::super::row::TRACE_HEADER;

    #[test]
    fn each_error_has_its_line() {
        let head = "time,flow,size\n";
        for (text, wanted) in [
            ("", "t: the file is empty"),
            (head, "t: the file has only a header"),
            ("time,flow\n", "t:1: there is no column `size`"),
            ("time,flow,size,qos\n", "t:1: unknown column `qos`"),
            ("time,flow,topic,size\n", "t:1: the column `flow` is here twice"),
            ("0.5,a,1\n", "t:1: unknown column `0.5`"),
            ("time,flow,size\n0.5,a,1\n0.4,a,1\n", "t:3: the time is 0.1 s earlier"),
            ("time,flow,size\n0.5,a\n", "t:2: the line has 2 fields"),
            ("time,flow,size\n0.5,\"a,1\n", "t:2: a quote is not closed"),
            ("time,flow,size\n0.5,\"a\"b,1\n", "t:2: a quote is not closed"),
            ("time,flow,size\n0.5,,1\n", "t:2: the flow has no name"),
            ("time,flow,size\n0.5,a,NaN\n", "t:2: `NaN` is not a size"),
            ("time,flow,size\n0.5,a,-1\n", "t:2: `-1` is not a size"),
            ("time,flow,size\n0.5,a,1073741825\n", "is not a size"),
            ("time,flow,size\nNaN,a,1\n", "t:2: `NaN` is not a time"),
            ("time,flow,size\n-0.5,a,1\n", "t:2: the time `-0.5` is negative"),
            ("time,flow,size\n2000000000.5,a,1\n", "t:2: the time `2000000000.5` is in the future"),
        ] {
            let error = read(TraceFormat::Csv, text).unwrap_err();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        let mut reader = TraceReader::new("t", TraceFormat::Csv, LATEST);
        assert!(reader.read(b"\xff").unwrap_err().to_string().starts_with("t:1: not UTF-8"));
    }

    #[test]
    fn lines_of_mosquitto_sub_may_have_spaces_in_topics() {
        let text = "1700000000.123456789 a/b 12\n1700000001.000000000 a b/c 0\n";
        let wanted =
            vec![(1_700_000_000_123_456_789, "a/b".to_owned(), 12), (1_700_000_001_000_000_000, "a b/c".to_owned(), 0)];
        assert_eq!(read(TraceFormat::MosquittoSub, text), Ok(wanted));
        let error = read(TraceFormat::MosquittoSub, "1700000000.1 a\n").unwrap_err();
        assert!(error.starts_with("t:1: not a line of mosquitto_sub"), "{error}");
    }

    #[test]
    fn of_a_redis_monitor_only_publish_counts() {
        let text = "OK\n1.107412 [0 127.0.0.1:60866] \"PUBLISH\" \"a.\\\"b\\x41\" \"1\\x00\\n\\\\é\"\n\
                    1.2 [0 lua] \"set\" \"k\" \"v\"\n1.3 [0 unix:/s] \"spublish\" \"c\" \"\"\n";
        let wanted = vec![(1_107_412_000, "a.\"bA".to_owned(), 6), (1_300_000_000, "c".to_owned(), 0)];
        assert_eq!(read(TraceFormat::RedisMonitor, text), Ok(wanted));
        for damaged in
            ["x", "1.2 [0 a] \"publish\" \"c\"", "1.2 [0 a] \"publish\" \"c\" \"m", "1.2 \"publish\" \"c\" \"m\""]
        {
            assert!(read(TraceFormat::RedisMonitor, damaged).unwrap_err().starts_with("t:1: not a line of MONITOR"));
        }
        let error = read(TraceFormat::RedisMonitor, "OK\n1.2 [0 a] \"get\" \"k\"\n").unwrap_err();
        assert_eq!(error, "t: the file has no messages. Record while clients publish");
    }
}
