//! Bare loops: the minimal programs that send or receive the messages. They check
//! nothing, number nothing and know one protocol. Their cost is the cost of the kernel,
//! and the floor for a generator.

mod edges;
mod flood;
mod open;
mod plan;
mod receive;
mod send;

pub use flood::flood;
pub use plan::{All, LoopPlan, LoopResult, LoopStart, Ready};
pub use receive::receive;
pub use send::send;
