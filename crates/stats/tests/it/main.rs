//! The crate against vectors from other tools (`vectors/make_vectors.py`) and
//! against properties that must hold for any input.

mod bootstrap;
mod change;
mod codec;
mod histogram;
mod normal;
mod rank;
mod student;
mod trend;
mod vectors;
