//! Bare loops: the least that a program can do to send or receive the
//! messages. They check nothing, number nothing and know one protocol; what
//! they cost is what the kernel costs, and the floor for a generator.

mod edges;
mod flood;
mod open;
mod plan;
mod receive;
mod send;

pub use flood::flood;
pub use plan::{All, Go, LoopPlan, LoopResult, Ready};
pub use receive::receive;
pub use send::send;
