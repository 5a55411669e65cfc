//! The crate against vectors from other tools (`vectors/make_vectors.py`) and
//! against properties that must hold for any input.

mod capacity;
mod capacity_ranking;
mod change;
mod change_point;
mod codec;
mod deciding;
mod estimate;
mod histogram;
mod modes;
mod noise;
mod normal;
mod paired;
mod precise;
mod ranking;
mod ranking_rates;
mod sessions;
mod student;
mod trend;
mod typical;
mod vectors;
