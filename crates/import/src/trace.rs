//! Traces: time, flow and size of each message of real traffic, but never its contents.
//!
//! A trace is read line by line, and memory does not grow with its length. [`TraceReader`] turns lines into rows,
//! [`TraceFit`] turns rows into a study that sends similar traffic.

mod arrivals;
mod counts;
mod fit;
mod flow_fit;
mod monitor;
mod pcap;
mod reader;
mod row;
mod sizes;
mod time;

pub use fit::{TraceFit, TraceFitOptions};
pub use pcap::PcapReader;
pub use reader::TraceReader;
pub use row::{TRACE_HEADER, TraceError, TraceFormat, TraceRow};
