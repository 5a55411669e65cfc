//! `pubmark trace`

use super::trace_output::TraceOutput;
use super::trace_record;
use crate::args::{TraceArgs, TraceSource};
use crate::failure::{Code, Failure};
use pubmark_files::{Links, open};
use pubmark_import::trace::{PcapReader, TraceFormat, TraceReader};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    if args.topic.is_some() || args.duration.is_some() || !args.set.is_empty() {
        return Err(Failure::usage(
            "--topic, --duration and --set are for an endpoint, and this is a file: leave them out",
        ));
    }
    let (format, system) = match args.from {
        None => (Some(TraceFormat::Csv), USUAL_SYSTEM),
        Some(TraceSource::MosquittoSub) => (Some(TraceFormat::MosquittoSub), USUAL_SYSTEM),
        Some(TraceSource::RedisMonitor) => (Some(TraceFormat::RedisMonitor), "redis"),
        Some(TraceSource::Pcap) => (None, USUAL_SYSTEM),
    };
    let fits = args.fit || args.from.is_none();
    let mut output = TraceOutput::open(args.out.as_deref(), fits)?;
    let name = &args.source;
    let cannot =
        |error| Failure::usage(format!("{name}: {error}. Name a trace, or an endpoint such as mqtt://127.0.0.1"));
    let file = BufReader::with_capacity(1 << 16, open(Path::new(name), Links::Follow).map_err(cannot)?);
    match format {
        Some(format) => read(name, file, format, &mut output)?,
        None => read_capture(name, file, &mut output)?,
    }
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
fn read(name: &str, file: impl BufRead, format: TraceFormat, output: &mut TraceOutput) -> Result<(), Failure> {
    let latest = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + AHEAD;
    let mut reader = TraceReader::new(name, format, latest.as_nanos() as u64);
    reader.read_all(file, |_, row| output.row(row))?;
    if reader.others() > 0 {
        output.remark(format!("{} other commands of Redis are left out", reader.others()));
    }
    Ok(())
}

/// Reads a capture of tcpdump.
fn read_capture(name: &str, file: impl BufRead, output: &mut TraceOutput) -> Result<(), Failure> {
    let mut reader = PcapReader::new(name);
    reader.read_all(file, |row| output.row(row))?;
    reader.remarks().into_iter().for_each(|remark| output.remark(remark));
    Ok(())
}
