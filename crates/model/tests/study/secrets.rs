//! Errors about a file never contain its secrets.

use proptest::prelude::*;
use pubmark_model::study::{ReadOptions, Study};
use pubmark_model::system::System;

const SYSTEM: &str = "title = \"T\"\nabout = \"a\"\nlicence = \"l\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";

/// Places of a file in which a secret may be, each of which is refused.
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
        let systems = |name: &str| (name == "mqtt").then(|| std::sync::Arc::new(system.clone()));
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

const MARKED: &str = "[options.shape]\nkind = \"text\"\nsecret = true\ndoc = \"d\"\n\
    [options.max_keys]\nkind = \"count\"\nsecret = false\ndoc = \"d\"\n\
    [options.admin_token]\nkind = \"text\"\ndoc = \"d\"\n\
    [options.auth_retries]\nkind = \"count\"\ndoc = \"d\"\n\
    [options.key_size]\nkind = \"size\"\ndoc = \"d\"\n";

/// Returns the resolved study with these options, or the error.
fn resolved(tables: &str, set: &[(&str, &str)]) -> Result<String, String> {
    let system = System::parse("mqtt", "mqtt.toml", &format!("{SYSTEM}{MARKED}")).unwrap();
    let systems = |name: &str| (name == "mqtt").then(|| std::sync::Arc::new(system.clone()));
    let set: Vec<(String, String)> = set.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    let text = format!("title = \"t\"\n[axes]\nsystem = [\"mqtt\"]\n{tables}");
    let reading = ReadOptions { set: &set, ..ReadOptions::default() };
    Study::parse("f", &text, &systems, &reading).map(|study| study.to_toml()).map_err(|error| error.to_string())
}

#[test]
fn an_option_is_secret_by_its_mark_or_else_by_its_name_and_kind() {
    let tables = "[options]\nshape = \"round\"\nmax_keys = 7\nadmin_token = \"abc\"\n\
        auth_retries = 3\nkey_size = \"8KiB\"\ntcp_nodelay = true\n";
    let kept = resolved(tables, &[]).unwrap();
    let options = &kept[kept.find("[options]").unwrap()..];
    for line in [
        "shape = \"***\"",
        "max_keys = \"7\"",
        "admin_token = \"***\"",
        "auth_retries = \"***\"",
        "key_size = \"8KiB\"",
        "tcp_nodelay = \"true\"",
    ] {
        assert!(options.contains(line), "{line}: {options}");
    }
    // Set on the command line, for all systems or for one.
    for name in ["options.shape", "options.mqtt.shape"] {
        assert!(resolved("", &[(name, "round")]).unwrap().contains("shape = \"***\""), "{name}");
    }
    for axis in ["\"options.shape\" = [\"a\", \"b\"]", "\"options.admin_token\" = [\"a\"]"] {
        assert!(resolved(axis, &[]).unwrap_err().contains("cannot be an axis with a secret value"), "{axis}");
    }
    assert!(resolved("\"options.max_keys\" = [1, 2]", &[]).is_ok());
    let mistaken = format!("{SYSTEM}[options.x]\nkind = \"text\"\nsecret = 1\ndoc = \"d\"\n");
    let error = System::parse("mqtt", "mqtt.toml", &mistaken).unwrap_err().to_string();
    assert!(error.contains("secret: ") && error.contains("true"), "{error}");
}

#[test]
fn what_was_typed_is_said_unless_it_is_secret() {
    let error = |name, text| resolved("", &[(name, text)]).unwrap_err();
    assert!(error("options.tls", "true").contains("--set options.tls=true: unknown option `tls`"));
    assert!(error("rat", "7").contains("--set rat=7: there is no such key"));
    for name in ["options.pasword", "options.mqtt.api_key", "pasword", "my_token"] {
        assert!(error(name, "geheim").contains(&format!("--set {name}=***: ")), "{name}");
    }
    assert!(error("options.auth_retries", "many").contains("--set options.auth_retries=***: auth_retries: no count"));
}
