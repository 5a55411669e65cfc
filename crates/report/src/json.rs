//! The summary as JSON: an object a cell, its keys those of `summary.csv`; of a
//! search for a capacity an object a search. And the questions of a study that is
//! measured until they are decided.

use crate::capacity::CapacityResult;
use crate::headroom::CellHeadroom;
use crate::questions::{QuestionState, StudyQuestion};
use crate::report::Report;
use crate::summary;
use pubmark_model::figure::Figure;
use serde_json::{Map, Value, json};

/// The rows, with the questions where the study is measured until they are decided, what became
/// of the promise that it ranks at, and the capacities that it asks for.
pub(crate) fn whole(report: &Report) -> Value {
    let (decides, asks) = (report.study().until_decided(), report.study().asked_capacity().is_some());
    if !decides && !asks && report.promise().is_none() {
        return summary(report);
    }
    let mut all = json!({"summary": summary(report)});
    if decides {
        all["questions"] = questions(report);
        all["made_again"] = report.counts().made_again.into();
    }
    if let Some(promise) = report.promise() {
        all["promise"] = json!(promise);
    }
    if asks {
        all["capacities"] = report.capacities().iter().map(CapacityResult::json).collect();
    }
    all
}

/// Returns the questions of the study in their order, with the state of each.
fn questions(report: &Report) -> Value {
    report.questions().into_iter().map(question).collect()
}

/// Returns one question. It has all keys; those that do not apply are null.
fn question(asked: StudyQuestion) -> Value {
    let (state, answer, why, blocks_more) = match asked.state {
        QuestionState::Decided(answer) => ("decided", Some(answer), None, None),
        QuestionState::Open { why, blocks_more, .. } => ("open", None, Some(why), blocks_more),
        QuestionState::Closed(why) => ("closed", None, Some(why), None),
    };
    json!({
        "text": asked.text,
        "kind": asked.kind.word(),
        "state": state,
        "answer": answer,
        "why": why,
        "blocks_more": blocks_more,
    })
}

/// The rows of `summary.csv` as objects; null where there is no figure. Where the
/// study names an objective: its capacities, as `pubmark capacity` prints them.
pub(crate) fn summary(report: &Report) -> Value {
    if report.study().recorded_capacity().is_some() {
        return report.capacities().iter().map(CapacityResult::json).collect();
    }
    let headrooms = report.study().headroom().then(|| report.headrooms());
    let rows = summary::rows(report).map(|of| {
        let result = of.result;
        let mut row: Map<String, Value> = result.cell.axes.clone();
        row.extend(summary::HEADER.map(str::to_owned).into_iter().zip(of.facts()));
        for column in Figure::columns() {
            let word = column.key();
            let estimate = result.figures.get(column);
            let interval = estimate.and_then(|estimate| estimate.interval);
            row.insert(word.into(), number(estimate.map(|e| e.value)));
            row.insert(format!("{word}_lo"), number(interval.map(|i| i.lo)));
            row.insert(format!("{word}_hi"), number(interval.map(|i| i.hi)));
        }
        if let Some(headrooms) = &headrooms {
            row.insert("headroom".into(), headrooms[of.index].as_ref().map_or(Value::Null, CellHeadroom::json));
        }
        Value::Object(row)
    });
    Value::Array(rows.collect())
}

/// Whole numbers without a fraction, so that counts read as counts.
fn number(number: Option<f64>) -> Value {
    /// Up to here every whole number is exact as an `f64`.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => (number as i64).into(),
        other => other.into(),
    }
}
