//! From a results folder to an HTML page, terminal table, Markdown, CSV and JSON.
//!
//! A report is a function of the folder alone: run records are grouped by the
//! study's cells, each figure is the median over the runs with its 95 %
//! interval, systems are ranked where the rest of the workload is equal, and
//! the study's claims are decided. Nothing here prints, exits or reads a clock, so the report of an
//! old folder can be made again at any time and comes out the same.
//!
//! Two rules hold throughout. A run that may not be quoted for a figure is shown
//! and marked, never mixed with those that may. A throughput never stands
//! without its delivered ratio.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod analysis;
mod axes;
mod bars;
mod benchmark_json;
mod bound_check;
mod brief;
mod build_info;
mod capacities;
mod capacity;
mod catch_up;
mod cell_table;
mod claims;
mod columns;
mod command;
pub mod compare;
mod constraint;
mod csv;
mod curves;
mod document;
mod export;
mod figures;
mod findings;
mod floor;
mod guarantee_card;
mod headroom;
mod histogram_text;
mod join;
mod json;
mod knee;
mod languages;
mod last_will;
mod layout;
mod light_records;
mod long_output;
mod markdown;
mod members;
mod modes;
mod not_run;
mod notes;
mod omb_json;
pub mod page;
mod points;
mod promises;
mod questions;
mod ranking;
mod records;
mod recovery;
mod recovery_capacity;
mod reference;
mod report;
mod searches;
mod settings;
mod summary;
mod terminal;
pub mod text;
pub mod words;

pub use analysis::{CellResult, ReasonCount, Status};
pub use brief::{BRIEF_LINES_MAX, BriefPlaces};
pub use capacity::{CapacityResult, RecoveryHeadroom};
pub use claims::{ClaimOutcome, ClaimResult, PartResult, PointResult};
pub use constraint::{ConstraintError, Constraints};
pub use figures::{CellFigures, Observation, Sign};
pub use floor::REFERENCES;
pub use guarantee_card::{CARD, CARD_EVENTS, CardEvent, GuaranteeCard, NotMeasured};
pub use histogram_text::{HistogramTextError, interval_log, percentile_tables};
pub use join::{JoinError, earlier_runs};
pub use knee::{Knee, KneeEnd};
pub use omb_json::OmbJsonError;
pub use points::Point;
pub use promises::{BrokenPromise, PromiseOutcome, UntestedPromise};
pub use questions::{QuestionKind, QuestionState, StudyQuestion};
pub use ranking::{Distance, Placing, Ranked, Standing, Why};
pub use records::{ReadError, Records, read_records, read_records_from};
pub use reference::{Reference, ReferenceRow};
pub use report::{Report, ReportError, RunCounts};
pub use words::CellVerdict;
