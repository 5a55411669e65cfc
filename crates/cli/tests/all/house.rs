//! Rules of the architecture: which crate may import which, and no two files of a crate that import each other in a
//! circle. Tests may import anything.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::visit::Visit;

/// Layers: a crate imports crates of lower layers only.
const FLOORS: [&[&str]; 7] = [
    &["stats", "wire", "files"],
    &["model"],
    &["clock"],
    &["load", "peer", "host", "judge", "import"],
    &["study", "report", "conformance"],
    &["calibrate"],
    &["cli"],
];

/// Crates that are functions of their input alone, or open no socket: crates that they may not import, though on a
/// lower layer.
const NEVER: [(&str, &[&str]); 6] = [
    ("model", &["files", "wire"]),
    ("load", &["files"]),
    ("judge", &["clock", "files", "wire"]),
    ("import", &["clock", "files"]),
    ("study", &["clock", "load", "peer", "wire"]),
    ("report", &["clock", "host", "judge", "load", "peer", "wire"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Returns the packages of the workspace, as cargo lists them.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]).current_dir(crates());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    told["packages"].as_array().unwrap().clone()
}

/// Returns the workspace crates that each crate imports, by the name of its folder.
fn named_crates() -> BTreeMap<String, Vec<String>> {
    let ours = |name: &Value| name.as_str().unwrap().strip_prefix("pubmark-").map(str::to_owned);
    let of_package = |package: &Value| {
        let needs = package["dependencies"].as_array().unwrap().iter().filter(|needed| needed["kind"].is_null());
        let name = ours(&package["name"]).unwrap_or_else(|| "cli".into());
        (name, needs.filter_map(|needed| ours(&needed["name"])).collect())
    };
    packages().iter().map(of_package).collect()
}

/// Projects outside the workspace are built with `--locked`: their lock files must have the dependencies of the crates
/// that they use.
#[test]
fn lock_files_outside_the_workspace_have_the_dependencies_of_its_crates() {
    let root = crates().join("..");
    for project in ["fuzz", "agents/zenoh", "agents/zeromq-rust"] {
        let lock = std::fs::read_to_string(root.join(project).join("Cargo.lock")).unwrap();
        let entry =
            |name: &str| lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"\n")));
        for package in packages() {
            let name = package["name"].as_str().unwrap();
            let Some(entry) = entry(name) else { continue };
            let needs = package["dependencies"].as_array().unwrap().iter();
            for needed in needs.filter(|needed| needed["kind"].is_null() && needed["optional"] == false) {
                let needed = needed["name"].as_str().unwrap();
                assert!(entry.contains(&format!("\"{needed}")), "{project}/Cargo.lock: {name} lacks {needed}");
            }
        }
    }
}

/// Names and declarations of a file that is not a test.
#[derive(Default)]
struct Code {
    /// Every path, including imports: `a::b`.
    paths: Vec<String>,
    /// Its public types.
    types: Vec<String>,
}

impl Code {
    fn of(path: &Path) -> Code {
        let file = syn::parse_file(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut code = Code::default();
        code.visit_file(&file);
        code
    }

    /// Collects `a::{b, c::{d}}` as `a::b` and `a::c::d`.
    fn uses(&mut self, before: &str, tree: &syn::UseTree) {
        let below = |name: &syn::Ident| if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
        match tree {
            syn::UseTree::Path(path) => self.uses(&below(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.paths.push(below(&name.ident)),
            syn::UseTree::Rename(renamed) => self.paths.push(below(&renamed.ident)),
            syn::UseTree::Glob(_) => self.paths.push(before.to_owned()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.uses(before, tree)),
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|what| what == "test")
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Code {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.uses("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if words.len() > 1 {
            self.paths.push(words.join("::"));
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let declared = match item {
            syn::Item::Struct(item) => Some((&item.vis, &item.ident)),
            syn::Item::Enum(item) => Some((&item.vis, &item.ident)),
            syn::Item::Trait(item) => Some((&item.vis, &item.ident)),
            syn::Item::Type(item) => Some((&item.vis, &item.ident)),
            _ => None,
        };
        if let Some((syn::Visibility::Public(_), name)) = declared {
            self.types.push(name.to_string());
        }
        syn::visit::visit_item(self, item);
    }
}

/// Returns the module that a path within `own` means, if it is one of this crate's files.
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

/// Returns the files of a crate that are not tests, by their modules' paths.
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

/// Returns the files that each file of a crate imports, as module paths.
fn imports(of: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = modules(of);
    let names: BTreeSet<String> = files.keys().cloned().collect();
    let imported = |module: &String, path: &PathBuf| {
        let own: Vec<String> = module.split("::").map(str::to_owned).collect();
        let meant = Code::of(path).paths.into_iter().filter_map(|path| meant(&path, &own, &names));
        (module.clone(), meant.filter(|to| to != module).collect())
    };
    files.iter().map(|(module, path)| imported(module, path)).collect()
}

/// Removes files that import none of the remaining ones, until there are none: the rest is in a circle, or imports one.
fn circles(mut imports: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        let count = imports.len();
        imports.values_mut().for_each(|to| to.retain(|to| left.contains(to)));
        imports.retain(|_, to| !to.is_empty());
        // Also those that no remaining file imports.
        let named: BTreeSet<String> = imports.values().flatten().cloned().collect();
        imports.retain(|from, _| named.contains(from));
        if imports.len() == count {
            return imports;
        }
    }
}

#[test]
fn a_crate_names_only_those_that_it_may() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    let named = named_crates();
    for (name, needs) in &named {
        let own = floor(name).unwrap_or_else(|| panic!("the crate {name} has no floor"));
        for needed in needs {
            assert!(floor(needed) < Some(own), "{name} names {needed}, which is on no lower floor");
            let never = NEVER.iter().any(|(who, never)| who == name && never.contains(&needed.as_str()));
            assert!(!never, "{name} may not name {needed}");
        }
    }
    assert_eq!(named.len(), FLOORS.concat().len(), "each crate has a floor, and each floor its crates");
}

#[test]
fn no_two_files_of_a_crate_import_each_other_in_a_circle() {
    for name in FLOORS.concat() {
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
    let mut code = Code::default();
    code.visit_file(&syn::parse_str("use a::{b, c::{d, self}}; #[cfg(test)] mod tests { use e::f; }").unwrap());
    assert_eq!(code.paths, ["a::b", "a::c::d", "a::c::self"]);
    let files = ["run", "run::made", "lead"].map(str::to_owned).into();
    let own = ["run".to_owned(), "made".to_owned()];
    for (path, to) in [("super::Play", Some("run")), ("crate::lead::Leader", Some("lead")), ("std::fs", None)] {
        assert_eq!(meant(path, &own, &files).as_deref(), to, "{path}");
    }
}

/// Returns words in backticks that end like a file of the project.
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

#[test]
fn no_two_public_types_of_the_workspace_have_one_name() {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut twice = Vec::new();
    for name in FLOORS.concat() {
        for (module, path) in modules(name) {
            for found in Code::of(&path).types {
                let place = format!("{name}::{module}");
                if let Some(other) = known.insert(found.clone(), place.clone()) {
                    twice.push(format!("{found}: {other} and {place}"));
                }
            }
        }
    }
    assert!(twice.is_empty(), "{twice:#?}");
    assert!(known.len() > 400, "{}", known.len());
}
