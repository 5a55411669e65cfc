//! Whole-program tests: the real binary, real libraries, real sockets.
#![allow(clippy::unwrap_used)]

mod errors;
mod heavy;
mod libraries;
mod lifecycle;
mod mock;
mod screen;
mod servers;
mod support;
