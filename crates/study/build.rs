//! The systems and studies that come with pubmark: every file in `systems/`,
//! every folder in `studies/`, embedded by name.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let (systems, studies) = (root.join("systems"), root.join("studies"));
    let mut text = String::from("const SYSTEMS: &[(&str, &str)] = &[\n");
    for path in entries(&systems).iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let _ = writeln!(text, "    ({:?}, include_str!({path:?})),", name(path));
    }
    text += "];\n\n/// The studies, by name.\npub const STUDIES: &[Included] = &[\n";
    for folder in entries(&studies).iter().filter(|path| path.join("study.toml").exists()) {
        let reference = folder.join("reference.csv");
        let reference = if reference.exists() { format!("Some(include_str!({reference:?}))") } else { "None".into() };
        let (name, study) = (name(folder), folder.join("study.toml"));
        let _ =
            writeln!(text, "    Included {{ name: {name:?}, text: include_str!({study:?}), reference: {reference} }},");
    }
    text += "];\n";
    println!("cargo::rerun-if-changed={}", systems.display());
    println!("cargo::rerun-if-changed={}", studies.display());
    let to = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("included.rs");
    std::fs::write(&to, text).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}

/// What a folder holds, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = read.flatten().filter_map(|entry| entry.path().canonicalize().ok()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
