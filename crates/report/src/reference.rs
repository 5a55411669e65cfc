//! Published figures beside the study's own.

use crate::analysis::CellResult;
use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::figure::Figure;
use pubmark_model::reference::parse;
use pubmark_model::study::{Source, Study};
use pubmark_model::system::Systems;
use serde_json::{Map, Value};

/// A published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceRow {
    /// Cells that it is about, by axis; an axis that is not named may have any value.
    pub axes: Map<String, Value>,
    /// Which.
    pub figure: Figure,
    /// The figure, in the column's unit.
    pub value: f64,
    /// Remark from the file: untrusted text.
    pub note: Option<String>,
}

/// The published figures of a study. All its texts come from files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Origin of the figures, and the machine that they were measured on.
    pub source: Source,
    /// All rows, in the order of the file.
    pub rows: Vec<ReferenceRow>,
    /// Pairs of a cell's index in the report and a row's index, in the order of the cells.
    pub matched: Vec<(usize, usize)>,
    /// The rows that are about no cell, as where a study was cut down.
    pub unmatched: Vec<usize>,
}

impl Reference {
    /// Reads a `reference.csv` and holds it against the cells.
    pub(crate) fn read(
        file: &str,
        text: &str,
        source: &Source,
        systems: Systems<'_>,
        cells: &[CellResult],
    ) -> Result<Reference, Diagnostics> {
        let mut reference =
            Reference { source: source.clone(), rows: rows(file, text, systems, None)?, ..Self::default() };
        let mut used = vec![false; reference.rows.len()];
        for (index, result) in cells.iter().enumerate() {
            // Cells times rows: 960 times 2,000 for the largest of the studies.
            for (number, _) in reference.rows.iter().enumerate().filter(|(_, row)| row.is_about(&result.cell.axes)) {
                reference.matched.push((index, number));
                used[number] = true;
            }
        }
        reference.unmatched = (0..used.len()).filter(|number| !used[*number]).collect();
        Ok(reference)
    }

    /// Reads a `reference.csv` as a study's author has it, strictly.
    ///
    /// # Errors
    /// All that is wrong with it: columns that are not axes of the study, what
    /// is no figure, no number, or there twice.
    pub fn check(
        file: &str,
        text: &str,
        systems: Systems<'_>,
        study: &Study,
    ) -> Result<Vec<ReferenceRow>, Diagnostics> {
        rows(file, text, systems, Some(study))
    }

    /// Each row that is about a cell, with the cell's index in the report.
    pub fn matches(&self) -> impl Iterator<Item = (usize, &ReferenceRow)> {
        self.matched.iter().map(|(cell, row)| (*cell, &self.rows[*row]))
    }
}

impl ReferenceRow {
    /// True if it is about the cell with this position.
    pub fn is_about(&self, cell: &Map<String, Value>) -> bool {
        self.axes.iter().all(|(axis, value)| cell.get(axis) == Some(value))
    }
}

fn rows(file: &str, text: &str, systems: Systems<'_>, study: Option<&Study>) -> Result<Vec<ReferenceRow>, Diagnostics> {
    let words: Vec<&str> = Figure::columns().map(|column| column.key()).collect();
    let read = parse(file, text, systems, &words, study)?;
    let row = |row: pubmark_model::reference::Row| {
        let figure = Figure::columns().find(|column| column.key() == row.figure)?;
        Some(ReferenceRow { axes: row.axes, figure, value: row.value, note: row.note })
    };
    Ok(read.into_iter().filter_map(row).collect())
}
