//! The built page that is kept belongs to the sources beside it.

use crate::lab::{Lab, spoil};
use pubmark_model::record::Reason;
use pubmark_report::page::Content;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Files beside `src` that `web/build/seal.mjs` counts among the sources.
const BESIDE: [&str; 6] =
    ["index.html", "package.json", "package-lock.json", "vite.config.mjs", "tsconfig.json", "build/seal.mjs"];

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web")
}

/// The files under a folder, by their path from `web`.
fn within(folder: &str, into: &mut Vec<String>) {
    for entry in fs::read_dir(web().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() { within(&path, into) } else { into.push(path) }
    }
}

/// What the page is made of, as `web/build/seal.mjs` sums it up.
fn stamp() -> String {
    let mut sources: Vec<String> = BESIDE.map(String::from).into();
    within("src", &mut sources);
    sources.sort();
    let mut sum = Context::new(&SHA256);
    for path in sources {
        sum.update(path.as_bytes());
        sum.update(b"\0");
        sum.update(&fs::read(web().join(&path)).unwrap());
        sum.update(b"\0");
    }
    sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("the page has no `{before}`"));
    rest.split_once(after).unwrap_or_else(|| panic!("no `{after}` after `{before}`")).0
}

#[test]
fn the_page_is_built_of_the_sources_beside_it() {
    let page = fs::read_to_string(web().join("report.html")).unwrap();
    let built_of = between(&page, "<!-- sources ", " -->");
    assert_eq!(built_of, stamp(), "web/report.html is older than its sources: run `make web` and commit it");
}

#[test]
fn the_page_has_a_place_for_data_and_loads_nothing() {
    let page = fs::read_to_string(web().join("report.html")).unwrap();
    assert_eq!(page.matches("<!--pubmark:data-->").count(), 1, "the program fills one place");
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    let scripts = between(policy, "script-src ", ";");
    assert!(!scripts.contains("unsafe") && !scripts.contains(' '), "one script, by its hash: {scripts}");
    let head = page.split_once("<script").map_or(&*page, |(head, _)| head);
    assert!(!head.contains("src=\"http") && !head.contains("stylesheet"), "nothing is loaded from elsewhere");
}

#[test]
fn of_very_many_runs_a_page_holds_some_and_counts_all() {
    let data = |each: usize| {
        let mut lab = Lab::new("[axes]\nsystem = [\"alpha\", \"beta\"]\n");
        for label in ["alpha", "beta"] {
            lab.latencies(label, &vec![1_000_000; each]);
        }
        for repeat in 1..=7 {
            lab.run("beta", 1_000_000 + repeat, |run| spoil(run, Reason::NoisyMachine, "busy"));
        }
        let text = Content::of(&[&lab.report()], true).data_json();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    for (each, held) in [(1_240, 2_487), (1_300, 1_000)] {
        let data = data(each);
        let result = &data["page"]["results"][0];
        assert_eq!(result["records"].as_array().unwrap().len(), held);
        assert_eq!(data["records"][0].as_array().unwrap().len(), held, "each with its record");
        let runs = &result["runs"];
        let counted: u64 = ["valid", "partly", "invalid", "failed"].iter().map(|one| runs[one].as_u64().unwrap()).sum();
        assert_eq!((counted, &runs["reasons"]["noisy-machine"]), (2 * each as u64 + 7, &7.into()));
        let said = result["notes"].to_string().contains("of 2607 runs are in this page one by one");
        assert_eq!(said, held == 1_000, "{}", result["notes"]);
    }
}
