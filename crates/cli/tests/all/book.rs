//! The docs are true: their links lead somewhere, their files parse, and their commands are run, with shorter windows.

mod command;
pub mod page;
mod stage;
mod tools;

use page::{Block, Page, root};
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;
use pubmark_peer::PeerScript;
use pubmark_study::registry;
use stage::{Stage, file_of, help, help_flags, pages};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Pages that are played at a time: most of it is waiting.
const PLAYERS: usize = 2;

fn assert_none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n\n"));
}

#[test]
fn every_command_works() {
    let stage = Stage::new();
    let queue = Mutex::new(pages());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..PLAYERS {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some(page) = next else { break };
                    let found = stage.play(&page);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.extend(stage.unused());
    assert_none(&wrong);
}

#[test]
fn a_page_that_is_wrong_is_found_out() {
    let lines = [
        "```sh",
        "pubmark bench mock --no-such-flag",
        "pubmark run gone.toml",
        "pubmark studies   # exit code 3",
        "make nothing-like-this",
        "pubmark bench mock   # fine",
        "pubmark bench zeromq --set options.library=/no/such.so",
        "```",
    ];
    let wrong = Stage::new().play(&Page::parse(Path::new("docs/wrong.md"), &lines.join("\n")));
    let places: Vec<&str> = wrong.iter().filter_map(|why| why.split(": ").next()).collect();
    let expected = ["docs/wrong.md:2", "docs/wrong.md:3", "docs/wrong.md:4", "docs/wrong.md:5", "docs/wrong.md"];
    assert_eq!(places, expected, "{wrong:#?}");
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut wrong = Vec::new();
    for page in &pages {
        for (line, link) in page.links.iter().filter(|(_, link)| !link.contains("://")) {
            let (target, place) = page.target(link);
            if !root().join(&target).exists() {
                wrong.push(format!("{}: {link}: there is no {}", page.at(*line), target.display()));
            } else if let Some(place) = place
                && !pages.iter().any(|other| other.path == target && other.anchors.contains(&place))
            {
                wrong.push(format!("{}: {link}: there is no such heading", page.at(*line)));
            }
        }
    }
    assert_none(&wrong);
}

#[test]
fn the_table_of_contents_is_complete() {
    let summary = Page::read(Path::new("docs/SUMMARY.md"));
    let listed: Vec<PathBuf> = summary.links.iter().map(|(_, link)| summary.target(link).0).collect();
    let distinct: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(listed.len(), distinct.len(), "a page is listed twice");
    let there = pages();
    let is_page = |page: &&Page| page.path.starts_with("docs") && page.path != summary.path;
    let there: BTreeSet<&PathBuf> = there.iter().filter(is_page).map(|page| &page.path).collect();
    assert_eq!(distinct, there, "docs/SUMMARY.md (left) and the pages in docs/ (right)");
}

/// Parses a block of TOML, whose kind follows from its keys.
fn parse(page: &Page, block: &Block) -> Result<(), String> {
    let text = &block.text;
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    if has("driver =") {
        let name = page.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        return System::parse(name, "block", text).map(drop).map_err(|error| error.to_string());
    }
    if has("delay =") {
        return PeerScript::parse(text).map(drop);
    }
    // A part of a study is read as part of the smallest study.
    let mut whole = String::new();
    if !has("title =") {
        whole.push_str("title = \"t\"\n");
    }
    whole.push_str(text);
    if !has("[axes]") {
        whole.push_str("\n[axes]\nsystem = [\"zeromq\", \"nanomsg\", \"nng\"]\n");
        if has("[[") {
            // Conditions refer to axes.
            whole.push_str("payload = [\"1KB\", \"1MB\"]\ntransport = [\"ipc\", \"tcp\"]\n");
        }
    }
    let study = Study::parse("block", &whole, &registry::built_in, &ReadOptions::default());
    study.map(drop).map_err(|errors| errors.to_string())
}

#[test]
fn every_file_that_is_shown_is_sound() {
    let mut wrong = Vec::new();
    for page in pages() {
        for block in &page.blocks {
            let at = page.at(block.line);
            match block.language.as_deref() {
                None => wrong.push(format!("{at}: a block without a fence says not what it is")),
                Some("") => wrong.push(format!("{at}: say what the block is: sh, console, toml, text …")),
                Some("toml") => wrong.extend(parse(&page, block).err().map(|why| format!("{at}: {why}"))),
                Some(_) => {}
            }
            assert!(file_of(block).is_none_or(|file| !file.starts_with('/') && !file.contains("..")), "{at}");
        }
    }
    for entry in std::fs::read_dir(root().join("docs/examples")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let parsed = System::parse("example", "file", &text);
            wrong.extend(parsed.err().map(|why| format!("{}: {why}", path.display())));
        }
    }
    assert_none(&wrong);
}

#[test]
fn commands_within_sentences_name_what_exists() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (line, span) in &page.spans {
            let Some(words) = shlex::split(span).filter(|words| words.len() > 1) else { continue };
            let placeholder = words.iter().any(|word| word.contains('…') || word.contains('*'));
            match words[0].as_str() {
                "make" | "cargo" if !placeholder => {
                    wrong.extend(tools::check(&words).err().map(|why| format!("{}: {span}: {why}", page.at(*line))));
                }
                "pubmark" if words[1].chars().all(|c| c.is_ascii_lowercase() || c == '-') => {
                    let known = help_flags(&words[1]);
                    let flags = words[2..].iter().filter(|word| word.starts_with("--") && word.len() > 2);
                    let strange = flags.filter(|flag| !known.contains_key(flag.split('=').next().unwrap_or_default()));
                    wrong.extend(strange.map(|flag| format!("{}: {span}: there is no {flag}", page.at(*line))));
                }
                _ => {}
            }
        }
    }
    assert_none(&wrong);
}

/// Collects the text of all source files, without the breaks of long texts.
fn sources(folder: &Path, all: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap().replace("\\\"", "\"");
            all.extend(text.split("\\\n").map(str::trim_start));
        }
    }
}

#[test]
fn errors_that_are_quoted_are_those_of_the_program() {
    let mut all = String::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap().flatten() {
        sources(&entry.path().join("src"), &mut all);
    }
    let page = Page::read(Path::new("docs/troubleshooting.md"));
    assert!(page.quoted.len() > 10, "the page quotes errors in its headings");
    let pieces = page.quoted.iter().flat_map(|(line, text)| text.split('…').map(move |piece| (line, piece.trim())));
    let wrong = pieces.filter(|(_, piece)| !all.contains(*piece));
    assert_none(&wrong.map(|(line, piece)| format!("{}: nothing says {piece:?}", page.at(*line))).collect::<Vec<_>>());
}

#[test]
fn every_reason_of_a_verdict_is_explained() {
    let data: serde_json::Value = serde_json::from_str(&pubmark_report::page::data_json(&[])).unwrap();
    let reasons = data["page"]["reasons"].as_object().unwrap();
    assert!(reasons.len() > 10);
    for path in ["docs/measurement.md", "docs/troubleshooting.md"] {
        let page = Page::read(Path::new(path));
        let missing: Vec<_> =
            reasons.keys().filter(|reason| page.spans.iter().all(|(_, span)| span != *reason)).collect();
        assert!(missing.is_empty(), "{path} says nothing of {missing:?}");
    }
}

/// Returns a block of options in which those that another command had before are named only.
fn options_once<'a>(block: &str, name: &'a str, known: &mut HashMap<String, &'a str>) -> String {
    let (mut own, mut before): (Vec<String>, Vec<(&str, Vec<String>)>) = Default::default();
    let mut option: Vec<&str> = Vec::new();
    let mut ended = |option: &[&str]| {
        let words = option.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        let flag = words.split_whitespace().find(|word| word.starts_with("--")).map(str::to_owned);
        match (*known.entry(words).or_insert(name), flag) {
            (first, Some(flag)) if first != name => match before.iter_mut().find(|(of, _)| *of == first) {
                Some((_, flags)) => flags.push(flag),
                None => before.push((first, vec![flag])),
            },
            _ => own.push(option.join("\n")),
        }
    };
    for line in block.lines() {
        if line.trim_start().starts_with('-') && !option.is_empty() {
            ended(&std::mem::take(&mut option));
        }
        option.push(line);
    }
    ended(&option);
    let told = |(of, flags): &(&str, Vec<String>)| {
        let of = format!("pubmark {of}");
        format!("  as for {}: {}", of.trim_end(), flags.join(", "))
    };
    own.into_iter().chain(before.iter().map(told)).collect::<Vec<_>>().join("\n")
}

/// Returns the correct docs/command-line.md.
fn command_line() -> String {
    let mut page = String::from(
        "# The command line\n\n\
         The output of `pubmark --help` and of each command with `--help`. A test compares this page with the \
         program; `PUBMARK_WRITE_DOCS=1 cargo test -p pubmark --test all book::the_command_line` updates it. The \
         page shows each option once.\n\n\
         See also [exit codes](exit-codes.md) and [what is in a results folder](results-folder.md).\n",
    );
    let top = help("");
    let commands = top.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut groups: HashMap<String, &str> = HashMap::new();
    let mut options: HashMap<String, &str> = HashMap::new();
    for name in std::iter::once("").chain(names) {
        let text = help(name);
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        let text = lines.join("\n");
        let blocks = text.split("\n\n").map(|block| {
            let head = block.lines().next().filter(|line| line.ends_with(':') && *line != "Examples:");
            let words = block.split_whitespace().collect::<Vec<_>>().join(" ");
            match head.map(|head| (head, *groups.entry(words).or_insert(name))) {
                Some((head, first)) if first != name => format!("{head} as for pubmark {first}"),
                Some(("Options:", _)) => options_once(block, name, &mut options),
                _ => block.to_owned(),
            }
        });
        let shown = blocks.collect::<Vec<_>>().join("\n\n");
        let heading = format!("pubmark {name}");
        page.push_str(&format!("\n## {}\n\n```text\n{shown}\n```\n", heading.trim_end()));
    }
    page
}

#[test]
fn the_command_line_is_that_of_the_program() {
    let path = root().join("docs/command-line.md");
    let wanted = command_line();
    if std::env::var_os("PUBMARK_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == wanted, "docs/command-line.md is not what --help says: update it with PUBMARK_WRITE_DOCS=1");
}

/// Figures on evidence pages, and in what is generated from them, are those of the kept records.
#[test]
fn evidence_pages_are_those_of_their_records() {
    let mut check = Command::new("python3");
    check.args(["tools/evidence.py", "pages", "--check"]).current_dir(root());
    let output = check.env("PUBMARK", env!("CARGO_BIN_EXE_pubmark")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A line that the terminal's width breaks is another command when it is pasted.
#[test]
fn examples_of_the_help_are_no_wider_than_a_terminal() {
    let page = command_line();
    let blocks = page.split("Examples:\n").skip(1).map(|rest| rest.split("\n\n").next().unwrap_or(rest));
    let (mut broken, mut seen) = (Vec::new(), 0);
    for block in blocks {
        let lines: Vec<&str> = block.lines().take_while(|line| !line.starts_with("```")).collect();
        seen += lines.len();
        let goes_on = |at: usize| at > 0 && lines[at - 1].ends_with('\\');
        let begins = |line: &str| line.starts_with("  pubmark ") || !line.starts_with("  ");
        let own = (0..lines.len()).filter(|at| !begins(lines[*at]) && !goes_on(*at));
        broken.extend(own.map(|at| lines[at].to_owned()));
    }
    assert!(seen > 20, "{seen} lines of examples");
    assert_none(&broken);
}
