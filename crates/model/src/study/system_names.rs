//! Finds the systems that a study file names before it is parsed: some may be files.

use crate::document::Document;

/// Returns the names and paths of the systems in a study, each once; empty if the file is not TOML.
pub fn named_systems(text: &str) -> Vec<String> {
    let document = Document::parse(text, &mut Vec::new());
    let mut found: Vec<String> = Vec::new();
    let names = |key: &str| ["system", "best", "among", "baseline"].contains(&key);
    for entry in document.tables.iter().flat_map(|table| &table.entries).filter(|entry| names(&entry.key)) {
        for value in entry.values.iter().filter(|value| !value.text.is_empty()) {
            if !found.contains(&value.text) {
                found.push(value.text.clone());
            }
        }
    }
    found
}

/// True if a study file has a table for shortening it.
pub fn has_quick_table(text: &str) -> bool {
    let document = Document::parse(text, &mut Vec::new());
    document.tables.iter().any(|table| table.name == "quick" || table.name.starts_with("quick."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_found_wherever_a_study_names_them() {
        let text = "title = \"t\"\n[axes]\nsystem = [\"nats\", \"./my.toml\"]\n[[skip]]\nsystem = \"./my.toml\"\n\
                    why = \"w\"\n[parts.a]\nsystem = \"redis\"\n[workload]\npattern = \"pairs\"\n";
        assert_eq!(named_systems(text), ["nats", "./my.toml", "redis"]);
        assert!(named_systems("system = [").is_empty());
    }
}
