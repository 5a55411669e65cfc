//! The crate against vectors from other tools (`vectors/make_vectors.py`) and
//! against properties that must hold for any input.

mod bootstrap;
mod change;
mod codec;
mod histogram;
mod noise;
mod normal;
mod rank;
mod ranking;
mod ranking_rates;
mod student;
mod trend;
mod vectors;
