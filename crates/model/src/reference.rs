//! Published figures that a study compares its own with: `[reference]` of the study file, and
//! `reference.csv` beside it.

use crate::diagnostic::{Diagnostic, Diagnostics, suggestion};
use crate::document::Scalar;
use crate::study::Study;
use crate::study::axis::{axis_value, known_axis, no_axis};
use crate::system::Systems;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The file's name, in a study's folder and in a results folder.
pub const FILE: &str = "reference.csv";
/// Maximum number of rows.
pub const ROWS_MAX: usize = 100_000;
/// Maximum number of errors that are reported.
const ERRORS_MAX: usize = 50;
/// Longest text from the file that an error shows, characters.
const SHOWN_CHARS: usize = 200;

const FIGURE: &str = "figure";
const VALUE: &str = "value";
const NOTE: &str = "note";

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Values on axes, canonical as in a cell; an axis that is not named may have any value.
    pub axes: Map<String, Value>,
    /// Name of the figure: its column in `summary.csv`.
    pub figure: String,
    /// The figure, in that column's unit; finite, not negative.
    pub value: f64,
    /// Remark on this figure.
    pub note: Option<String>,
}

/// Reads `reference.csv`: a header of axes, `figure`, `value` and optionally `note`; axis values as
/// in the study file, empty for any. `figures` are the known columns. If a study is given, the axes
/// must be its own, unless it was shortened and may have lost some.
///
/// # Errors
/// Returns all errors with their lines, up to 50.
pub fn parse(
    file: &str,
    text: &str,
    systems: Systems<'_>,
    figures: &[&str],
    study: Option<&Study>,
) -> Result<Vec<Row>, Diagnostics> {
    let mut reader = Reader { systems, figures, errors: Vec::new(), seen: HashMap::new() };
    let rows = reader.read(text, study);
    let mut errors = reader.errors;
    if errors.is_empty() {
        return Ok(rows);
    }
    let more = errors.len().saturating_sub(ERRORS_MAX);
    errors.truncate(ERRORS_MAX);
    if more > 0 {
        errors.push(Diagnostic::whole(format!("and {more} errors more")));
    }
    Err(Diagnostics { file: file.to_owned(), text: text.to_owned(), errors })
}

/// Meaning of a column.
#[derive(Clone, PartialEq)]
enum Column {
    Axis(String),
    Figure,
    Value,
    Note,
    /// Already reported.
    Wrong,
}

struct Reader<'a, 'b> {
    systems: Systems<'a>,
    figures: &'b [&'b str],
    errors: Vec<Diagnostic>,
    /// Line number of each figure of each place.
    seen: HashMap<String, u64>,
}

impl Reader<'_, '_> {
    fn read(&mut self, text: &str, study: Option<&Study>) -> Vec<Row> {
        let mut csv = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let mut columns: Option<Vec<Column>> = None;
        let mut rows = Vec::new();
        for record in csv.records() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    self.errors.push(Diagnostic::whole(format!("not CSV: {error}")));
                    break;
                }
            };
            let place = record.position();
            let at = place.map_or(0, |place| place.byte() as usize);
            let Some(columns) = &columns else {
                let header = self.header(&record, at, study);
                // If the header is invalid, the rows are not checked.
                let is_table = header != [Column::Wrong];
                columns = Some(header);
                if !is_table {
                    break;
                }
                continue;
            };
            if rows.len() >= ROWS_MAX {
                self.errors.push(Diagnostic::at_value(at, format!("more than {ROWS_MAX} rows")));
                break;
            }
            rows.extend(self.row(columns, &record, at, place.map_or(0, csv::Position::line)));
        }
        if columns.is_none() {
            self.errors
                .push(Diagnostic::whole("the file is empty").help("its first line names axes, `figure` and `value`"));
        }
        rows
    }

    fn header(&mut self, names: &csv::StringRecord, at: usize, study: Option<&Study>) -> Vec<Column> {
        if let (1, Some(separator)) = (names.len(), names.get(0).and_then(|line| line.find([';', '\t']))) {
            let semicolon = names[0][separator..].starts_with(';');
            let what = if semicolon { "semicolons" } else { "tabs" };
            let message = format!("the columns are separated by {what}");
            let help = "separate them by commas, and write decimals with a point: spreadsheets call this CSV (comma delimited)";
            self.errors.push(Diagnostic::at_value(at, message).help(help));
            return vec![Column::Wrong];
        }
        let mut columns: Vec<Column> = Vec::new();
        for name in names {
            let column = match name.trim() {
                FIGURE => Column::Figure,
                VALUE => Column::Value,
                NOTE => Column::Note,
                axis => self.axis(axis, at, study),
            };
            if column != Column::Wrong && columns.contains(&column) {
                self.errors.push(Diagnostic::at_value(at, format!("the column `{}` is there twice", shown(name))));
            }
            columns.push(column);
        }
        for (column, name) in [(Column::Figure, FIGURE), (Column::Value, VALUE)] {
            if !columns.contains(&column) {
                self.errors.push(Diagnostic::at_value(at, format!("there is no column `{name}`")));
            }
        }
        columns
    }

    fn axis(&mut self, name: &str, at: usize, study: Option<&Study>) -> Column {
        let own = study.map(Study::axis_names);
        match own {
            Some(own) if !own.contains(&name) => {
                let known = own.into_iter().chain([FIGURE, VALUE, NOTE]).collect::<Vec<_>>();
                let message = format!("the column `{}` is not an axis of this study", shown(name));
                self.errors.push(Diagnostic::at_value(at, message).help(suggestion(&shown(name), known)));
                Column::Wrong
            }
            None if !known_axis(name) => {
                self.errors.push(no_axis(&shown(name), at));
                Column::Wrong
            }
            _ => Column::Axis(name.to_owned()),
        }
    }

    fn row(&mut self, columns: &[Column], fields: &csv::StringRecord, at: usize, line: u64) -> Option<Row> {
        if fields.len() != columns.len() {
            let message = format!("{} fields, where the first line has {}", fields.len(), columns.len());
            self.errors.push(Diagnostic::at_value(at, message));
            return None;
        }
        let before = self.errors.len();
        let mut row = Row { axes: Map::new(), figure: String::new(), value: 0.0, note: None };
        for (column, field) in columns.iter().zip(fields.iter().map(str::trim)) {
            match column {
                Column::Axis(_) | Column::Note if field.is_empty() => {}
                Column::Axis(name) => match axis_value(name, &Scalar { text: field.to_owned(), at }, self.systems) {
                    Ok(value) => drop(row.axes.insert(name.clone(), value)),
                    Err(error) => self.errors.push(Diagnostic { message: shown(&error.message), ..error }),
                },
                Column::Figure if self.figures.contains(&field) => row.figure = field.to_owned(),
                Column::Figure => {
                    let help = suggestion(&shown(field), self.figures.iter().copied());
                    self.errors
                        .push(Diagnostic::at_value(at, format!("`{}` is not a figure", shown(field))).help(help));
                }
                Column::Value => match field.parse::<f64>() {
                    Ok(value) if value.is_finite() && value >= 0.0 => row.value = value,
                    _ => self
                        .errors
                        .push(Diagnostic::at_value(at, format!("`{}` is not a number from 0 on", shown(field)))),
                },
                Column::Note => row.note = Some(field.to_owned()),
                Column::Wrong => {}
            }
        }
        if self.errors.len() > before {
            return None;
        }
        if let Some(first) = self.seen.insert(format!("{:?} {}", row.axes, row.figure), line) {
            let message = format!("`{}` of this place is in line {first} already", row.figure);
            self.errors.push(Diagnostic::at_value(at, message));
            return None;
        }
        Some(row)
    }
}

/// Returns a text from the file as errors show it.
fn shown(field: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut text: String = field.chars().take(SHOWN_CHARS).map(plain).collect();
    if field.chars().nth(SHOWN_CHARS).is_some() {
        text.push('…');
    }
    text
}
