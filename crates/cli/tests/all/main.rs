//! Whole-program tests: the real binary, real libraries, real sockets.
#![allow(clippy::unwrap_used)]

mod brokers;
mod errors;
mod heavy;
mod known_answers;
mod libraries;
mod lifecycle;
mod mock;
mod refusals;
mod screen;
mod servers;
mod support;
mod tls;
