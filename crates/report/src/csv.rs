//! `summary.csv`: a row a cell.

use crate::figures::Column;
use crate::report::Report;
use crate::summary;
use crate::text::clean;
use pubmark_stats::Interval;
use serde_json::Value;

/// Longest axis value that is written, characters.
const VALUE_CHARS: usize = 1_000;

/// The table as text: the axes, the runs, the verdict, then each figure with
/// the ends of its interval. Plain numbers; blank where there is none. Cells
/// that the study skips have no row.
pub(crate) fn render(report: &Report) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let axes: Vec<&str> = report.study().axis_names();
    let mut header: Vec<String> = axes.iter().map(|name| clean(name, VALUE_CHARS)).collect();
    header.extend(summary::HEADER.map(str::to_owned));
    for column in Column::ALL {
        let word = column.word();
        header.extend([word.into(), format!("{word}_lo"), format!("{word}_hi")]);
    }
    writer.write_record(&header)?;
    for row in summary::rows(report) {
        let result = row.result;
        let mut fields: Vec<String> = axes
            .iter()
            .map(|axis| match result.cell.axes.get(*axis) {
                Some(Value::String(text)) => clean(text, VALUE_CHARS),
                Some(value) => value.to_string(),
                None => String::new(),
            })
            .collect();
        fields.extend(row.facts().into_iter().map(|fact| match fact {
            Value::Null => String::new(),
            Value::String(text) => text,
            other => other.to_string(),
        }));
        for column in Column::ALL {
            let estimate = result.figures.get(*column);
            let interval: Option<Interval> = estimate.and_then(|e| e.interval);
            for number in [estimate.map(|e| e.value), interval.map(|i| i.lo), interval.map(|i| i.hi)] {
                fields.push(number.map_or_else(String::new, |number| number.to_string()));
            }
        }
        writer.write_record(&fields)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
