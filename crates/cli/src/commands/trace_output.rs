//! Output of `pubmark trace`: the rows as CSV, or the study that fits them.

use crate::failure::Failure;
use crate::output::note;
use pubmark_import::trace::{TRACE_HEADER, TraceFit, TraceFitOptions, TraceRow};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write, stdout};
use std::path::Path;

/// Where rows go.
pub struct TraceOutput {
    out: BufWriter<Box<dyn Write>>,
    /// The fit, if a study is wanted in place of rows.
    fit: Option<TraceFit>,
    line: String,
    name: String,
    remarks: Vec<String>,
}

impl TraceOutput {
    /// Opens a file or, without one, standard output.
    pub fn open(path: Option<&Path>, fits: bool) -> Result<TraceOutput, Failure> {
        let name = path.map_or_else(|| "standard output".into(), |path| path.display().to_string());
        let out: Box<dyn Write> = match path {
            None => Box::new(stdout()),
            Some(path) => {
                Box::new(File::create(path).map_err(|error| Failure::usage(format!("--out {name}: {error}")))?)
            }
        };
        let fit = fits.then(TraceFit::default);
        let mut output = TraceOutput { out: BufWriter::new(out), fit, line: String::new(), name, remarks: Vec::new() };
        if !fits {
            output.write(&format!("{TRACE_HEADER}\n"))?;
        }
        Ok(output)
    }

    /// Adds a message.
    pub fn row(&mut self, row: &TraceRow<'_>) -> Result<(), Failure> {
        if let Some(fit) = &mut self.fit {
            fit.add(row);
            return Ok(());
        }
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        row.write_csv(&mut line);
        let written = self.write(&line);
        self.line = line;
        written
    }

    /// Adds a remark, which follows the output on standard error.
    pub fn remark(&mut self, text: String) {
        self.remarks.push(text);
    }

    /// Writes what is buffered, so that others can read it.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.check(flushed)
    }

    /// Writes the study, if one is wanted, and the remarks.
    pub fn finish(mut self, file: &str, scale: f64, system: &str) -> Result<(), Failure> {
        if let Some(fit) = self.fit.take() {
            let study = fit.study(&TraceFitOptions { file, scale, system }).map_err(Failure::usage)?;
            self.write(&study.text)?;
            self.remarks.extend(study.remarks.iter().map(ToString::to_string));
        }
        self.flush()?;
        self.remarks.iter().for_each(|remark| note(remark));
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes());
        self.check(written)
    }

    /// A reader that has gone away, as `head` does, ends the program without an error.
    fn check(&self, written: std::io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => Err(Failure::run(format!("{} cannot be written: {error}", self.name))),
            Ok(()) => Ok(()),
        }
    }
}
