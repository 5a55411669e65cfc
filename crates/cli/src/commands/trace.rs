//! `pubmark trace`

use super::trace_output::TraceOutput;
use super::trace_record;
use crate::args::{TraceArgs, TraceSource};
use crate::failure::{Code, Failure};
use pubmark_files::{Links, open};
use pubmark_import::trace::{TraceFormat, TraceReader};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest line that is read, bytes: a line of MONITOR has the whole message, with up to four characters a byte.
const LINE_MAX: u64 = 64 << 20;
/// Time by which a recording host's clock may be ahead of this one.
const AHEAD: Duration = Duration::from_secs(24 * 3_600);
/// System of a study if nothing says which.
const USUAL_SYSTEM: &str = "mosquitto";

/// Records a trace, or reads one.
pub fn trace(args: &TraceArgs) -> Result<Code, Failure> {
    if args.source.contains("://") {
        if args.from.is_some() {
            return Err(Failure::usage("--from reads a file, and this is an endpoint: leave it out"));
        }
        return trace_record::record(args, scale(args)?);
    }
    if args.topic.is_some() || args.duration.is_some() {
        return Err(Failure::usage("--topic and --duration are for an endpoint, and this is a file: leave them out"));
    }
    let (format, system) = match args.from {
        None => (TraceFormat::Csv, USUAL_SYSTEM),
        Some(TraceSource::MosquittoSub) => (TraceFormat::MosquittoSub, USUAL_SYSTEM),
        Some(TraceSource::RedisMonitor) => (TraceFormat::RedisMonitor, "redis"),
    };
    let fits = args.fit || args.from.is_none();
    let mut output = TraceOutput::open(args.out.as_deref(), fits)?;
    read(&args.source, format, &mut output)?;
    output.finish(&args.source, scale(args)?, system)?;
    Ok(Code::Done)
}

/// Returns the factor of the rates.
fn scale(args: &TraceArgs) -> Result<f64, Failure> {
    let Some(text) = &args.scale else { return Ok(1.0) };
    let number = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    number.filter(|scale| scale.is_finite() && *scale >= 0.001 && *scale <= 1e6).ok_or_else(|| {
        Failure::usage(format!("--scale `{text}` is not a factor. Write a number from 0.001 to 1000000, such as 2x"))
    })
}

/// Reads a file line by line.
fn read(name: &str, format: TraceFormat, output: &mut TraceOutput) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::usage(format!("{name}: {error}. Name a trace, or an endpoint such as mqtt://127.0.0.1"))
    };
    let mut file = BufReader::with_capacity(1 << 16, open(Path::new(name), Links::Follow).map_err(cannot)?);
    let latest = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + AHEAD;
    let mut reader = TraceReader::new(name, format, latest.as_nanos() as u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        let bytes = (&mut file).take(LINE_MAX).read_until(b'\n', &mut line).map_err(cannot)?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 == LINE_MAX && line.last() != Some(&b'\n') {
            reader.skip_line();
            let message =
                format!("the line is longer than {} MiB. Name a file with one message a line", LINE_MAX >> 20);
            return Err(Failure::usage(reader.error(message)));
        }
        if let Some(row) = reader.read(&line).map_err(Failure::usage)? {
            output.row(&row)?;
        }
    }
    reader.finish().map_err(Failure::usage)?;
    if reader.others() > 0 {
        output.remark(format!("{} other commands of Redis are left out", reader.others()));
    }
    Ok(())
}
