//! Embeds, by name, what comes with pubmark: every file in `systems/`, every folder in `studies/` and in `agents/`. An
//! agent that is a Cargo project is built beside pubmark, and not embedded.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Build outputs in an agent's folder, which are not sources.
const MADE: [&str; 4] = ["build", "node_modules", "target", "__pycache__"];

fn main() {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let [systems, studies, agents] = ["systems", "studies", "agents"].map(|name| root.join(name));
    // Name, folder of the agent or nothing, text.
    let mut text = String::from("const SYSTEMS: &[(&str, &str, &str)] = &[\n");
    let mut system = |path: &Path, folder: &str| {
        let _ = writeln!(text, "    ({:?}, {folder:?}, include_str!({path:?})),", name(path));
    };
    for path in entries(&systems).iter().filter(|path| is_toml(path)) {
        system(path, "");
    }
    let (mut carried, mut watched) = (Vec::new(), Vec::new());
    // Names that begin with a dot belong to tools.
    for folder in entries(&agents).iter().filter(|path| path.is_dir() && !name(path).starts_with('.')) {
        let is_project = folder.join("Cargo.toml").exists();
        for path in entries(folder).iter().filter(|path| is_system(path)) {
            system(path, &if is_project { String::new() } else { name(folder) });
        }
        if !is_project {
            gather(folder, &mut carried);
            watched.push(folder.clone());
        }
    }
    // Paths and lengths; the texts follow each other in one packed file.
    text += "];\n\nconst CARRIED: &[(&str, usize)] = &[\n";
    let agents = agents.canonicalize().unwrap_or(agents);
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    for path in &carried {
        let below = path.strip_prefix(&agents).unwrap_or(path);
        let source = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let _ = writeln!(text, "    ({below:?}, {}),", source.len());
        packed.write_all(source.as_bytes()).expect("memory");
    }
    let to = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(to.join("carried"), packed.finish().expect("memory")).expect("cargo's own folder");
    text += "];\n\nconst PACKED: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/carried\"));\n";
    text += "\n/// The studies, by name.\npub const STUDIES: &[IncludedStudy] = &[\n";
    for folder in entries(&studies).iter().filter(|path| path.join("study.toml").exists()) {
        let reference = folder.join("reference.csv");
        let reference = if reference.exists() { format!("Some(include_str!({reference:?}))") } else { "None".into() };
        let (name, study) = (name(folder), folder.join("study.toml"));
        let _ = writeln!(
            text,
            "    IncludedStudy {{ name: {name:?}, text: include_str!({study:?}), reference: {reference} }},"
        );
    }
    text += "];\n";
    for folder in [systems, studies].iter().chain(&watched) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let to = to.join("included.rs");
    std::fs::write(&to, text).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
}

/// Returns the entries of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = read.flatten().filter_map(|entry| entry.path().canonicalize().ok()).collect();
    paths.sort();
    paths
}

/// Collects the sources of an agent.
fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match path.is_dir() {
            _ if name.starts_with('.') || MADE.contains(&&*name) => {}
            true => gather(&path, found),
            false => found.push(path),
        }
    }
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml")
}

/// Returns whether a file among an agent's sources is a system file: it names a driver.
fn is_system(path: &Path) -> bool {
    let names_driver = |text: String| text.lines().any(|line| line.starts_with("driver = "));
    is_toml(path) && std::fs::read_to_string(path).is_ok_and(names_driver)
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
