//! Streams at QoS 1: JetStream, and those of Redis.

use super::{faults, faults_with, stall};
use crate::left_out::is_long;

#[test]
fn faults_are_counted_exactly_over_jetstream() {
    faults("nats", 1, &["--qos", "1"]);
}

#[test]
fn faults_are_counted_exactly_over_jetstream_that_pushes() {
    if is_long("faults_are_counted_exactly_over_jetstream_that_pushes") {
        faults("nats", 1, &["--qos", "1", "--set", "options.consumer=push"]);
    }
}

#[test]
fn a_stall_is_found_over_jetstream() {
    if is_long("a_stall_is_found_over_jetstream") {
        stall("nats", &["--qos", "1"]);
    }
}

/// A server answers each XADD, so no message is lost without an answer.
#[test]
fn faults_are_counted_exactly_over_streams_of_redis() {
    for resp in ["options.resp=2", "options.resp=3"] {
        faults_with("redis", 1, None, &["--qos", "1", "--set", resp]);
    }
}

#[test]
fn a_stall_is_found_over_streams_of_redis() {
    if is_long("a_stall_is_found_over_streams_of_redis") {
        stall("redis", &["--qos", "1"]);
    }
}
