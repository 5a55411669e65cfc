//! Commands that pages tell a reader to type, converted for a test: the same command, in less time.

use super::page::{Block, Page};
use std::collections::BTreeMap;

/// A command as a page shows it.
#[derive(Clone, Debug)]
pub struct Typed {
    /// Page and line.
    pub at: String,
    /// Variables of the environment set before it.
    pub environment: Vec<(String, String)>,
    /// Its words.
    pub words: Vec<String>,
    /// File of its output, after `>`.
    pub output: Option<String>,
    /// Exit code that the line's comment promises.
    pub code: Option<i32>,
}

/// Returns the commands of a block: each line in `sh`, those after `$ ` in `console`.
pub fn commands(page: &Page, block: &Block) -> Vec<Typed> {
    let console = match block.language.as_deref() {
        Some("sh") => false,
        Some("console") => true,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let mut lines = block.text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let at = page.at(block.line + 1 + number);
        let mut line = match line.strip_prefix("$ ") {
            Some(rest) => rest.to_owned(),
            None if console => continue,
            None => line.to_owned(),
        };
        while line.ends_with('\\') {
            line.pop();
            line.push_str(lines.next().map_or("", |(_, next)| next));
        }
        found.extend(typed(at, &line));
    }
    found
}

/// Parses a line; `None` if it is empty or a comment.
fn typed(at: String, line: &str) -> Option<Typed> {
    let mut words = shlex::split(line).unwrap_or_else(|| panic!("{at}: quotes that do not close: {line}"));
    let mut environment = Vec::new();
    while let Some((name, value)) = words.first().and_then(|word| word.split_once('=')) {
        environment.push((name.to_owned(), value.to_owned()));
        words.remove(0);
    }
    let mut output = None;
    if words.len() > 2 && words[words.len() - 2] == ">" {
        output = words.pop();
        words.pop();
    }
    let joined = words.iter().find(|word| matches!(word.as_str(), "|" | "||" | "&&" | ";" | "<" | ">" | ">>" | "&"));
    assert!(joined.is_none(), "{at}: one command a line, so that each is tested: {line}");
    let comment = line.rsplit_once(" # ").map_or("", |(_, comment)| comment);
    let code = comment.split_once("exit code ").and_then(|(_, rest)| rest.get(..1)?.parse().ok());
    (!words.is_empty()).then_some(Typed { at, environment, words, output, code })
}

/// Flags of a subcommand; true if a flag takes a value.
pub type Flags = BTreeMap<String, bool>;

/// Returns the flags in a help text.
pub fn flags(help: &str) -> Flags {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let flag = |line: &str| {
        let long = &line[line.find("--")?..];
        let end = long.find(|c: char| c != '-' && !c.is_alphanumeric()).unwrap_or(long.len());
        Some((long[..end].to_owned(), long[end..].starts_with(" <")))
    };
    lines.filter_map(flag).collect()
}

/// Returns the words that are neither flags nor their values.
pub fn operands<'a>(words: &'a [String], flags: &Flags) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            found.push(word.as_str());
        } else if flags.get(word.as_str()) == Some(&true) {
            words.next();
        }
    }
    found
}

/// Maximum numbers in a test; those of a page may be larger.
const MOST: [(&str, u64); 7] = [
    ("--repeats", 2),
    ("--pairs", 20),
    ("--publishers", 10),
    ("--subscribers", 10),
    ("--rate", 500),
    ("--count", 300),
    ("--connections", 100),
];

/// Returns the words of a `bench` or `run`, with windows short enough for a test. Faults and their window become ten
/// times as fast.
pub fn shortened(words: &[String]) -> Vec<String> {
    let bench = words[0] == "bench";
    let fault = words.iter().any(|word| word == "--fault");
    let mut short = words.to_vec();
    for index in 1..short.len() {
        let value = short[index].clone();
        let most = MOST.iter().find(|(flag, _)| short[index - 1] == *flag);
        short[index] = match (short[index - 1].as_str(), most) {
            (_, Some((_, most))) => value.parse().map_or(value, |number: f64| number.min(*most as f64).to_string()),
            ("--fault", _) => tenth(&value),
            ("--duration", _) if fault => tenth(&value),
            ("--duration", _) => "500ms".into(),
            ("--warmup", _) => "100ms".into(),
            ("--budget", _) => "3s".into(),
            ("--metrics", _) => "0".into(),
            _ if value.starts_with("--watch=") => "--watch".into(),
            ("--set", _) if value.starts_with("duration=") => "duration=300ms".into(),
            ("--set", _) if value.starts_with("drain=") => "drain=3s".into(),
            _ => value,
        };
    }
    let mut add = |name: &str, value: &str| {
        if !short.iter().any(|word| word == name) {
            short.extend([name.to_owned(), value.to_owned()]);
        }
    };
    if bench {
        add("--warmup", "100ms");
        if !words.iter().any(|word| word == "--count") {
            add("--duration", "500ms");
        }
        match words.iter().any(|word| word == "--precision") {
            true => add("--budget", "3s"),
            false => add("--repeats", "1"),
        }
    } else {
        if !words.iter().any(|word| word == "--budget") {
            add("--repeats", "1");
        }
        short.extend(["--set", "warmup=100ms"].map(str::to_owned));
        if !short.iter().any(|word| word.starts_with("duration=")) {
            short.extend(["--set", "duration=300ms"].map(str::to_owned));
        }
    }
    short
}

/// Converts whole seconds to tenths: `5s` to `500ms`, also before a comma.
fn tenth(text: &str) -> String {
    let word = |word: &str| {
        let (bare, comma) = word.strip_suffix(',').map_or((word, ""), |bare| (bare, ","));
        match bare.strip_suffix('s').and_then(|digits| digits.parse::<u64>().ok()) {
            Some(seconds) => format!("{}ms{comma}", seconds * 100),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn lines_become_commands() {
    let one = typed("p:1".into(), "A=b pubmark report 'x y' --csv > o.csv   # exit code 3").unwrap();
    assert_eq!(one.words, ["pubmark", "report", "x y", "--csv"]);
    assert_eq!((one.output.as_deref(), one.code), (Some("o.csv"), Some(3)));
    assert_eq!(one.environment, [("A".to_owned(), "b".to_owned())]);
    assert!(typed("p:1".into(), "# nothing").is_none());
}

#[test]
fn what_takes_long_is_shortened_and_the_rest_stays() {
    let words = |text: &str| shlex::split(text).unwrap();
    let short = shortened(&words(
        "bench mosquitto --pairs 1000 --rate 10 --duration 20s --fault 'stop server at 5s for 1s, stop server at 9s for 1s'",
    ));
    let wanted = "bench mosquitto --pairs 20 --rate 10 --duration 2000ms --fault 'stop server at 500ms for 100ms, stop server at 900ms for 100ms' --warmup 100ms --repeats 1";
    assert_eq!(short, words(wanted));
    assert_eq!(shortened(&words("bench nng --rate max"))[..4], words("bench nng --rate max"));
}
