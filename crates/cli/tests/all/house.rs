//! The house keeps its order: which crate may name which, and no two files of
//! a crate that import each other in a circle. Tests may import what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which crates of ours each crate may name.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("stats", &[]),
    ("wire", &[]),
    ("model", &["stats"]),
    ("clock", &["model"]),
    ("files", &[]),
    ("load", &["clock", "model", "stats", "wire"]),
    ("peer", &["clock", "model", "stats", "wire"]),
    ("host", &["clock", "files", "model", "stats"]),
    ("judge", &["model", "stats"]),
    ("study", &["files", "host", "judge", "model", "stats"]),
    ("report", &["files", "model", "stats"]),
    ("calibrate", &["host", "judge", "load", "model", "stats", "study", "wire"]),
    ("conformance", &["host", "load", "model", "peer", "stats"]),
    (
        "cli",
        &["calibrate", "conformance", "files", "host", "judge", "load", "model", "peer", "report", "stats", "study"],
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// A file's text without comments and without the modules of its tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let text = lines.join("\n");
    // A module of tests within a file stands at its end. One with a file of its
    // own is declared among the other modules, and code follows.
    let inline = |at: &usize| text[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let Some(at) = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(inline) else { return text };
    text[..at].to_owned()
}

/// `a::{b, c::{d}}` as `a::b` and `a::c::d`.
fn flat(tree: &str) -> Vec<String> {
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![path.split_whitespace().collect()];
    };
    let (prefix, inner) = (&tree[..open], &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())]);
    let (mut depth, mut from, mut found) = (0, 0, Vec::new());
    for (at, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[from..at].trim();
                if !part.is_empty() {
                    found.extend(flat(&format!("{prefix}{part}")));
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Every path that a file names: those that it uses, and those within its code
/// that begin with `crate`, `super` or a module of its own.
fn paths(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let statement = text[..at].rsplit(['\n', ';', '{', '}']).next().unwrap_or_default().trim();
        let tree = text[at + 4..].split(';').next().unwrap_or_default();
        // A line of a text may begin with the word.
        if (statement.is_empty() || statement.starts_with("pub")) && !tree.contains('"') {
            found.extend(flat(tree));
        }
    }
    let of_a_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    // What ends in `::` opens a brace, and was seen above.
    let words = text.split(|letter| !of_a_path(letter)).filter(|word| word.contains("::") && !word.ends_with("::"));
    found.extend(words.map(str::to_owned));
    found
}

/// The module that a path of `own` means, if it is one of this crate's files.
fn meant(path: &str, own: &[String], files: &BTreeSet<String>) -> Option<String> {
    let mut words = path.split("::").map(str::to_owned).peekable();
    let mut place: Vec<String> = match words.peek().map(String::as_str) {
        Some("crate") => Vec::new(),
        Some("self") => own.to_vec(),
        Some("super") => own[..own.len().saturating_sub(1)].to_vec(),
        Some(word) if files.contains(&[own, &[word.to_owned()]].concat().join("::")) => {
            own.iter().cloned().chain(words.next()).collect()
        }
        _ => return None,
    };
    if matches!(words.peek().map(String::as_str), Some("crate" | "self" | "super")) {
        words.next();
    }
    for word in words {
        match word.as_str() {
            "super" => drop(place.pop()),
            _ => place.push(word),
        }
    }
    while !place.is_empty() && !files.contains(&place.join("::")) {
        place.pop();
    }
    (!place.is_empty()).then(|| place.join("::"))
}

/// The files of a crate that are no tests, by their modules' paths.
fn modules(of: &str) -> BTreeMap<String, PathBuf> {
    let src = crates().join(of).join("src");
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let module = path.strip_prefix(&src).unwrap().with_extension("");
                let words: Vec<&str> = module.iter().map(|word| word.to_str().unwrap()).collect();
                if !words.contains(&"tests") && words != ["lib"] && words != ["main"] {
                    files.insert(words.join("::"), path);
                }
            }
        }
    }
    files
}

/// By file of a crate, as a module's path, the files that it imports.
fn imports(of: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = modules(of);
    let names: BTreeSet<String> = files.keys().cloned().collect();
    let imported = |module: &String, path: &PathBuf| {
        let own: Vec<String> = module.split("::").map(str::to_owned).collect();
        let meant = paths(&code(path)).into_iter().filter_map(|path| meant(&path, &own, &names));
        (module.clone(), meant.filter(|to| to != module).collect())
    };
    files.iter().map(|(module, path)| imported(module, path)).collect()
}

/// Takes away what imports nothing that is left, until nothing goes: what stays
/// is in a circle, or imports one.
fn circles(mut imports: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        let count = imports.len();
        imports.values_mut().for_each(|to| to.retain(|to| left.contains(to)));
        imports.retain(|_, to| !to.is_empty());
        // And what nobody imports that is left.
        let named: BTreeSet<String> = imports.values().flatten().cloned().collect();
        imports.retain(|from, _| named.contains(from));
        if imports.len() == count {
            return imports;
        }
    }
}

#[test]
fn a_crate_names_only_those_that_it_may() {
    for (name, may) in MAY_NAME {
        let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
        let needed = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let named = needed.lines().filter_map(|line| line.strip_prefix("pubmark-")?.split(['.', ' ']).next());
        assert_eq!(named.collect::<Vec<_>>(), *may, "{name}");
    }
    let folders = std::fs::read_dir(crates()).unwrap().count();
    assert_eq!(folders, MAY_NAME.len(), "each crate has its line");
}

#[test]
fn no_two_files_of_a_crate_import_each_other_in_a_circle() {
    for (name, _) in MAY_NAME {
        let found = circles(imports(name));
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

#[test]
fn a_circle_is_found() {
    let graph = |arrows: &[(&str, &str)]| {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in arrows {
            graph.entry((*from).into()).or_default().insert((*to).into());
            graph.entry((*to).into()).or_default();
        }
        circles(graph).into_keys().collect::<Vec<_>>()
    };
    assert!(graph(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    assert_eq!(graph(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]), ["b", "c"]);
    assert_eq!(flat("a::{b, c::{d, self}}"), ["a::b", "a::c::d", "a::c::self"]);
    let files = ["run", "run::made", "lead"].map(str::to_owned).into();
    let own = ["run".to_owned(), "made".to_owned()];
    for (path, to) in [("super::Play", Some("run")), ("crate::lead::Leader", Some("lead")), ("std::fs", None)] {
        assert_eq!(meant(path, &own, &files).as_deref(), to, "{path}");
    }
}

/// Words in backticks that end like a file of ours.
fn named_files(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.ends_with(".rs") && !word.contains(['{', '*', 'X'])).collect()
}

#[test]
fn the_files_that_the_pages_for_developers_name_are_there() {
    let root = crates().join("..").canonicalize().unwrap();
    let mut files = Vec::new();
    let mut folders = vec![crates()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    let mut named = 0;
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        for name in named_files(&text) {
            assert!(files.iter().any(|file| file.ends_with(name)), "{page} names `{name}`");
            named += 1;
        }
    }
    assert!(named >= 30, "{named}");
}

/// Public types of a file, but for those of its tests.
fn types(text: &str) -> Vec<&str> {
    let name = |line: &'_ str| -> Option<usize> {
        let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
        kinds.iter().find(|kind| line.starts_with(*kind)).map(|kind| kind.len())
    };
    let named = text.lines().filter_map(|line| Some(&line[name(line)?..]));
    named.map(|rest| rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default()).collect()
}

#[test]
fn no_two_public_types_of_the_workspace_have_one_name() {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut twice = Vec::new();
    for (name, _) in MAY_NAME {
        for (module, path) in modules(name) {
            for found in types(&code(&path)) {
                let place = format!("{name}::{module}");
                if let Some(other) = known.insert(found.to_owned(), place.clone()) {
                    twice.push(format!("{found}: {other} and {place}"));
                }
            }
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
    assert!(known.len() > 400, "{}", known.len());
}
