//! The page's data types as TypeScript, so that the front end cannot drift from
//! what the program writes.

use super::data::Page;
use std::any::TypeId;
use std::path::Path;
use ts_rs::{Config, TS, TypeVisitor};

/// Relative to this crate.
const FILE: &str = "../../web/src/page.ts";

/// Declarations of types, each once. They are met in an order that differs from build to build.
struct Declarations {
    config: Config,
    met: Vec<TypeId>,
    declarations: Vec<String>,
}

impl TypeVisitor for Declarations {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if T::output_path().is_none() || self.met.contains(&TypeId::of::<T>()) {
            return;
        }
        self.met.push(TypeId::of::<T>());
        let docs = T::docs().unwrap_or_default();
        self.declarations.push(format!("\n{docs}export {}\n", T::decl(&self.config)));
        T::visit_dependencies(self);
    }
}

#[test]
fn the_types_of_the_front_end_are_those_of_the_page() {
    let head = "// Generated from the types of crates/report by\n\
                // PUBMARK_WRITE_TYPES=1 cargo test -p pubmark-report --lib typescript\n\
                import type { Figure, Group, Unit } from \"./model\";\n";
    let config = Config::new().with_large_int("number");
    let mut all = Declarations { config, met: Vec::new(), declarations: Vec::new() };
    all.visit::<Page<'static>>();
    all.declarations.sort();
    let text = head.to_owned() + &all.declarations.concat();
    let text = text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect::<String>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("PUBMARK_WRITE_TYPES").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "web/src/page.ts is not what crates/report writes: \
         run `PUBMARK_WRITE_TYPES=1 cargo test -p pubmark-report --lib typescript`, then `make web`"
    );
}
