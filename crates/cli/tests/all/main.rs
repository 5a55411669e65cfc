//! Whole-program tests: the real binary, real libraries, real sockets.
#![allow(clippy::unwrap_used)]

mod agents;
mod book;
mod brokers;
mod calibrate;
mod chaos;
mod compare;
mod conformance;
mod errors;
mod faults;
mod folders;
mod guests;
mod heavy;
mod hosts;
mod house;
mod known_answers;
mod left_out;
mod libraries;
mod lifecycle;
mod mock;
mod omission;
mod phases;
mod published;
mod refusals;
mod relay;
mod repeat;
mod screen;
mod secrets;
mod servers;
mod serving;
mod settings;
mod support;
mod terminal;
mod tls;
