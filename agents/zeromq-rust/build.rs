//! What the record says of how the agent is made: the compiler, the versions of
//! the crates as Cargo.lock has them, and how well it was optimised.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock is part of the sources");
    for name in ["crossbeam-channel", "tokio", "zeromq", "zmq"] {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let version = lock.split_once(&entry).and_then(|(_, rest)| rest.split_once('"')).map(|(version, _)| version);
        let variable = name.to_uppercase().replace('-', "_");
        println!("cargo::rustc-env={variable}_VERSION={}", version.expect("a dependency stands in Cargo.lock"));
    }
    let rustc = std::env::var_os("RUSTC").expect("cargo sets it");
    let output = Command::new(rustc).arg("--version").output().expect("the compiler says its version");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("cargo::rustc-env=RUST_VERSION={}", text.split(' ').nth(1).unwrap_or("unknown").trim());
    let variable = |name| std::env::var(name).unwrap_or_default();
    let more = variable("CARGO_ENCODED_RUSTFLAGS").replace('\x1f', " ");
    println!("cargo::rustc-env=FLAGS={}", format!("opt-level={} {more}", variable("OPT_LEVEL")).trim());
}
