//! What is refused of a file is said without the secrets in it.

use proptest::prelude::*;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;

const SYSTEM: &str = "title = \"T\"\nabout = \"a\"\nlicence = \"l\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";

/// Where a secret may stand in a file, each time in a place that is refused.
const OF_STUDIES: [&str; 14] = [
    "[options]\npasword = S",
    "[options]\nshards = 1\nshards = S",
    "[options.mqtt]\npasword = S",
    "[options.nothing]\npassword = S",
    "[options.password]\nvalue = S",
    "[options]\npassword = [S, S]",
    "[axes]\n\"options.password\" = [\n  S,\n  S,\n]",
    "[parts.a]\n\"options.password\" = S",
    "[quick.parts.a]\n\"options.password\" = S",
    "[[skip]]\nwhy = \"w\"\n\"options.password\" = S",
    "[[claims]]\nid = \"1\"\n[claims.where]\n\"options.password\" = S",
    "[workload]\npassword = S",
    "[run]\nrepeats = 1\n[faults]\ntoken = { is = S, rate = 1 }",
    "[options]\npassword = S x",
];
const OF_SYSTEMS: [&str; 6] = [
    "password = S",
    "[options.password]\nkind = \"count\"\ndefault = S",
    "[options.password]\nkind = \"text\"\ndefalt = S",
    "[server]\npassword = S",
    "[server]\ncommand = [\"s\", S, 1.5e]",
    "[docker]\ntoken = [S]",
];

proptest! {
    #[test]
    fn no_mistake_in_a_file_shows_a_secret(secret in "[!-~ ]{6,20}") {
        let quoted = serde_json::to_string(&secret).unwrap();
        let system = System::parse("mqtt", "mqtt.toml", SYSTEM).unwrap();
        let systems = |name: &str| (name == "mqtt").then_some(&system);
        let said = |text: String| {
            let reading = ReadOptions { quick: true, set: &[], only: &[], ..ReadOptions::default() };
            Study::parse("f", &text, &systems, &reading).map(drop).unwrap_err().to_string()
        };
        let mut all: Vec<String> = Vec::new();
        for place in OF_STUDIES {
            let head = "title = \"t\"\nquestion = \"\"\n";
            let mine = if place.contains("[axes]") { "" } else { "\n[axes]\nsystem = [\"mqtt\"]\n" };
            all.push(said(format!("{head}{}\n{mine}", place.replace('S', &quoted))));
        }
        let set = [("options.pasword".to_owned(), secret.clone()), ("password".to_owned(), secret.clone())];
        let only = [("options.password".to_owned(), secret.clone())];
        let reading = ReadOptions { quick: false, set: &set, only: &only, ..ReadOptions::default() };
        let text = "title = \"t\"\n[axes]\nsystem = [\"mqtt\"]\n";
        all.push(Study::parse("f", text, &systems, &reading).unwrap_err().to_string());
        for place in OF_SYSTEMS {
            let text = format!("{SYSTEM}{}\n", place.replace('S', &quoted));
            all.push(System::parse("x", "f", &text).map(drop).unwrap_err().to_string());
        }
        for said in all {
            prop_assert!(!said.contains(&secret) && !said.contains(&quoted[1..quoted.len() - 1]), "{said}");
        }
    }
}
