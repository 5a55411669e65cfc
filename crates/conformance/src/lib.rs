//! Tests whether an agent is fit to measure, with named cases, each with its input, the expected behaviour and the
//! observed behaviour.
//!
//! The other side of a case is not another agent but bare sockets of the same library (`tap`): they record every
//! header, body and instant of the agent's messages, and send it messages with known delays, losses and damage. The
//! host's `talk` leads the conversation, `order` creates the orders to play, and `cases` compare observed with expected
//! behaviour.
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

pub use case::{ObservedBehaviour, Outcome};
pub use subject::{CaseParameters, Known};
pub use suite::{SuiteError, check, names, unseen};
