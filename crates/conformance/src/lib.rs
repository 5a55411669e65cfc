//! Whether an agent may measure: cases by name, each with what it was told, what
//! was due, and what came.
//!
//! The other side of a case is not another agent but bare sockets of the same
//! library (`tap`): they see every header, body and instant of what the agent
//! sends, and send it messages whose delays, losses and damage are known.
//! The host's `talk` leads the conversation, `order` says what is to be played,
//! and `cases` hold what came against what was due.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bare;
mod bench;
mod case;
mod cases;
mod course;
mod crash;
mod figures;
mod meeting;
mod order;
mod process;
mod receiving;
mod sending;
mod server;
mod subject;
mod suite;
mod tap;
mod wrong;

pub use case::{Came, Outcome};
pub use subject::{Asked, Known};
pub use suite::{SuiteError, check, names, unseen};
