//! Packs the front end, so that the program is the smaller by it.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;
use std::path::Path;

fn main() {
    let of = |name| std::env::var_os(name).expect("cargo sets it");
    let from = Path::new(&of("CARGO_MANIFEST_DIR")).join("../../web/report.html");
    let page = std::fs::read(&from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&page).expect("memory");
    let to = Path::new(&of("OUT_DIR")).join("page");
    std::fs::write(to, packed.finish().expect("memory")).expect("cargo's own folder");
    println!("cargo::rerun-if-changed={}", from.display());
}
