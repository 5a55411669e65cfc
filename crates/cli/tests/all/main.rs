//! Whole-program tests: the real binary, real libraries, real sockets.
#![allow(clippy::unwrap_used)]

mod brokers;
mod calibrate;
mod errors;
mod heavy;
mod libraries;
mod lifecycle;
mod mock;
mod refusals;
mod screen;
mod servers;
mod support;
mod tls;
