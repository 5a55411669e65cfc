//! The report in each of the forms in which it leaves: one function a form.

use crate::document::Rows;
use crate::layout::document;
use crate::report::{Report, ReportError};
use crate::{csv, json, long_output, markdown, page, terminal};
use pubmark_files as files;
use serde_json::Value;
use std::io;
use std::path::Path;

impl Report {
    /// Tables for a terminal of so many columns. Less important columns are
    /// left out where there is no room, and the text says so. Lines are longer
    /// than `width` only where the axes alone leave no room. Of a report with more
    /// than 200 lines it is the beginning of each table, and the way to the rest. Cells
    /// that were not to be run have no row: they are counted, with their reasons.
    pub fn terminal(&self, width: usize, colour: bool) -> String {
        long_output::render(|| document(self, Rows::ToBeRun), width, colour)
    }

    /// Returns the report with all rows and all reasons.
    pub fn terminal_whole(&self, width: usize, colour: bool) -> String {
        terminal::render(&document(self, Rows::All), width, colour)
    }

    /// Returns the tables with all columns as GitHub Markdown.
    pub fn markdown(&self) -> String {
        markdown::render(&document(self, Rows::ToBeRun))
    }

    /// Returns GitHub Markdown with a row for every cell, and with all reasons.
    pub fn markdown_whole(&self) -> String {
        markdown::render(&document(self, Rows::All))
    }

    /// The text of `summary.csv`: a row a cell.
    ///
    /// # Errors
    /// None that can be caused from outside; writing to memory may fail only
    /// where memory runs out.
    pub fn csv(&self) -> io::Result<String> {
        csv::render(self).map_err(io::Error::from)
    }

    /// Writes `summary.csv`.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<(), ReportError> {
        let written = self.csv().and_then(|text| files::replace(path, |out| out.write_all(text.as_bytes())));
        written.map_err(|source| ReportError::Write { path: path.to_owned(), source })
    }

    /// Writes the HTML page of these reports: whole, or not at all.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write_html(reports: &[&Report], path: &Path) -> Result<(), ReportError> {
        let written = files::replace(path, |mut out| page::write(reports, &mut out));
        written.map_err(|source| ReportError::Write { path: path.to_owned(), source })
    }

    /// The rows of `summary.csv` as an array of objects; where the study names an
    /// objective, its capacities.
    pub fn summary_json(&self) -> Value {
        json::summary(self)
    }

    /// Returns the output of `--json`: [`Report::summary_json`]; for a study that is measured until
    /// its questions are decided, an object of these rows (`summary`) and the results
    /// (`questions`).
    pub fn json(&self) -> Value {
        json::whole(self)
    }
}
