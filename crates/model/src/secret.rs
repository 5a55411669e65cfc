//! Values that must not be shown or recorded: values under secret names, values that system files
//! mark as secret, and the user, password, query and path of an endpoint.

use crate::credentials::Login;
use crate::endpoint::Endpoint;
pub use crate::login::{HIDDEN, is_plain_path, without_logins};
use crate::options::Options;
pub use crate::secret_name::{is_secret_name, is_switch, may_be_secret_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A shorter text, in characters, is hidden only if it is a whole word: a password `1` is not
/// searched within numbers.
const WORD_CHARS: usize = 6;

/// True if the text of an option must not be recorded unchanged. `marked`: true if the system, or
/// the option's name, marks it as secret.
pub fn secret(name: &str, marked: bool, text: &str) -> bool {
    match name {
        _ if marked => !is_switch(text),
        "endpoint" => Endpoint::parse(text).map_or(text.contains('@'), |endpoint| endpoint.is_secret()),
        _ => without_logins(text) != text,
    }
}

/// Returns options as they may be recorded: without the values of those that are `marked`, and
/// without the secrets of an endpoint.
pub fn recorded(options: &Options, marked: impl Fn(&str) -> bool) -> Options {
    let mut shown = options.clone();
    for (name, value) in &mut shown {
        match value {
            Value::String(text) => *text = recorded_text(name, marked(name), text),
            other if marked(name) && !other.is_boolean() => *other = HIDDEN.into(),
            _ => {}
        }
    }
    shown
}

/// Returns the text of one option as it may be recorded.
pub fn recorded_text(name: &str, marked: bool, text: &str) -> String {
    match name {
        _ if marked => if is_switch(text) { text } else { HIDDEN }.to_owned(),
        "endpoint" => Endpoint::parse(text).map_or_else(|_| HIDDEN.into(), |endpoint| endpoint.to_string()),
        _ => without_logins(text),
    }
}

/// The secrets of a run, in every form in which a message may repeat them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// Longest first.
    forms: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.forms.len())
    }
}

impl Secrets {
    /// Collects the secrets among the options of a run, by their names.
    pub fn of(options: &Options) -> Secrets {
        Secrets::marked(options, is_secret_name)
    }

    /// Collects the secrets among the options of a run: the values of those that are `marked`, and
    /// those of an endpoint.
    pub fn marked(options: &Options, marked: impl Fn(&str) -> bool) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in options {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if marked(name) {
                secrets.add_value(&text);
            } else if name == "endpoint" {
                secrets.add_login(&text);
            }
        }
        secrets
    }

    /// Adds the value of a secret name, unless it is a switch.
    fn add_value(&mut self, text: &str) {
        if !is_switch(text) {
            self.add(text);
        }
    }

    /// Adds the secrets of an endpoint, both as typed and decoded.
    fn add_login(&mut self, text: &str) {
        let login = text.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let login = login.map(|(login, _)| login).unwrap_or_default();
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        [login, user, password].into_iter().for_each(|typed| self.add(typed));
        let tail = text.split_once("://").and_then(|(_, rest)| rest[login.len()..].split_once('/'));
        let path = tail.map(|(_, tail)| tail.split(['?', '#', '\'', '"', '`', ' ']).next().unwrap_or_default());
        let ends = |c: char| c.is_whitespace() || "#'\"`".contains(c);
        let query = text.split_once("://").and_then(|(_, rest)| rest.split_once('?'));
        query.into_iter().for_each(|(_, query)| self.add(query.split(ends).next().unwrap_or_default()));
        let endpoint = Endpoint::parse(text).ok();
        // A path that sets an option, such as a virtual host, is not a secret.
        let is_free = endpoint.as_ref().is_none_or(|endpoint| endpoint.carrier.is_websocket());
        path.filter(|path| is_free && !is_plain_path(path)).into_iter().for_each(|path| self.add(path));
        let parts = endpoint.map(|endpoint| [endpoint.query(), endpoint.user, endpoint.password]);
        parts.into_iter().flatten().flatten().for_each(|part| self.add(&part));
    }

    /// Collects the secrets among the words of a command line, as far as they can be recognized:
    /// the values of secret names and of names that may be mistyped secret ones, and the secrets of
    /// endpoints.
    pub fn of_arguments(arguments: impl IntoIterator<Item = String>) -> Secrets {
        let mut secrets = Secrets::default();
        for argument in arguments {
            let value = argument.match_indices(['=', ':']).find_map(|(at, mark)| {
                let key = argument[..at].rsplit(['=', ' ', ',']).next().unwrap_or_default();
                may_be_secret_name(key).then(|| &argument[at + mark.len()..])
            });
            value.into_iter().for_each(|value| secrets.add_value(value));
            secrets.add_login(&argument);
        }
        secrets
    }

    /// Collects the secrets among the words of a command that connects to another machine, as far
    /// as they can be recognized: the words after a secret flag or name, and words that look
    /// generated. The program's name is not a secret.
    pub fn of_command(command: &[String]) -> Secrets {
        let mut secrets = Secrets::of_arguments(command.iter().skip(1).cloned());
        let splits = |c: char| c.is_whitespace() || "'\"`;&|<>()=".contains(c);
        for (index, word) in command.iter().enumerate().skip(1) {
            let before = command[index - 1].as_str();
            let of_sshpass = command[..index].iter().any(|program| program.ends_with("sshpass"));
            let asks = before.starts_with('-') && !before.contains('=') && is_secret_name(before);
            if asks || of_sshpass && before == "-p" {
                secrets.add_value(word);
            }
            let attached = word.strip_prefix("-p").filter(|_| of_sshpass);
            attached.into_iter().for_each(|password| secrets.add_value(password));
            word.split(splits).filter(|part| looks_made_up(part)).for_each(|part| secrets.add(part));
        }
        secrets
    }

    /// Adds the secrets of `other`.
    #[must_use]
    pub fn and(mut self, other: Secrets) -> Secrets {
        self.forms.extend(other.forms);
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        self.forms.dedup();
        self
    }

    /// Adds a password that no option holds, if there is one.
    #[must_use]
    pub fn and_password(mut self, password: Option<&str>) -> Secrets {
        password.into_iter().for_each(|password| self.add(password));
        self
    }

    /// Adds the values of environment variables with secret names, and the logins of URLs in all of
    /// them.
    #[must_use]
    pub fn and_variables<'a>(mut self, variables: impl IntoIterator<Item = &'a (String, String)>) -> Secrets {
        for (name, value) in variables {
            if is_secret_name(name) {
                self.add_value(value);
            } else if value.contains("://") {
                self.add_login(value);
            }
        }
        self
    }

    /// Adds the users and passwords of single clients.
    #[must_use]
    pub fn and_logins(mut self, logins: &[Login]) -> Secrets {
        let texts = logins.iter().flat_map(|login| [&login.user, &login.password]);
        self.forms.extend(texts.flat_map(|text| forms_of(text)));
        // Of many texts, equal forms are found by sorting.
        self.forms.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        self.forms.dedup();
        self
    }

    /// Adds one secret in all its forms.
    fn add(&mut self, text: &str) {
        for form in forms_of(text) {
            if !self.forms.contains(&form) {
                self.forms.push(form);
            }
        }
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Returns every form, longest first.
    pub(crate) fn forms(&self) -> &[String] {
        &self.forms
    }

    /// Returns the length of the longest form, bytes. Read this much more of a text than is shown,
    /// so that no half of a secret is left at its end.
    pub fn longest(&self) -> usize {
        self.forms.first().map_or(0, String::len)
    }

    /// Returns a text without the secrets, and without the logins of its URLs.
    pub fn hide(&self, text: &str) -> String {
        let shows = |text: &str, form: &String| text.contains(form.as_str()).then(|| replaced(text, form));
        let hidden = self.forms.iter().fold(text.to_owned(), |text, form| shows(&text, form).unwrap_or(text));
        if hidden.contains('@') { without_logins(&hidden) } else { hidden }
    }

    /// Returns the end of a text without the secrets, in at most `bytes` bytes. The text is cut
    /// last, because half a secret could not be found.
    pub fn hide_end(&self, text: &str, bytes: usize) -> String {
        let hidden = self.hide(text);
        let mut from = hidden.len().saturating_sub(bytes);
        while !hidden.is_char_boundary(from) {
            from += 1;
        }
        hidden[from..].trim().to_owned()
    }

    /// Removes the secrets from every text of a value.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_in(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns a secret in every form in which a message may repeat it.
fn forms_of(text: &str) -> impl Iterator<Item = String> {
    let unquoted = |text: &str| text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let escaped = unquoted(&serde_json::to_string(text).unwrap_or_default());
    // JSON that is quoted within a JSON text.
    let twice = unquoted(&serde_json::to_string(&escaped).unwrap_or_default());
    let debugged = unquoted(&format!("{text:?}"));
    let percent = |upper: bool| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            byte if upper => format!("%{byte:02X}"),
            byte => format!("%{byte:02x}"),
        };
        text.bytes().map(byte).collect()
    };
    let forms = [text.to_owned(), escaped, twice, debugged, percent(true), percent(false)];
    forms.into_iter().filter(|form| !form.is_empty())
}

/// True if a word looks like a password or a token: it has letters and digits, and is not a flag, a
/// path or an address.
fn looks_made_up(word: &str) -> bool {
    let has = |kind: fn(&char) -> bool| word.chars().any(|c| kind(&c));
    word.chars().count() >= WORD_CHARS
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && !word.starts_with(['-', '/', '.', '~', '['])
}

fn replaced(text: &str, form: &str) -> String {
    if form.chars().count() >= WORD_CHARS {
        return text.replace(form, HIDDEN);
    }
    let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(form) {
        let (before, after) = (&rest[..at], &rest[at + form.len()..]);
        let word = !joins(before.chars().next_back().or(out.chars().next_back())) && !joins(after.chars().next());
        out.push_str(before);
        out.push_str(if word { HIDDEN } else { form });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn options(pairs: &[(&str, &str)]) -> Options {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect()
    }

    #[test]
    fn a_login_is_taken_out_of_a_url_however_it_is_written() {
        for (text, shown) in [
            ("cannot reach mqtt://me:hid@den@h:1: refused", "cannot reach mqtt://***@h:1: refused"),
            ("mqtt://me:hid/den@h", "mqtt://***@h"),
            ("mqtt://me:hid den@h", "mqtt://***@h"),
            ("there is no system `mqtt:/me:hidden@h`", "there is no system `***@h`"),
            ("one line\nmqtt://me@h", "one line\nmqtt://***@h"),
            ("/home/me@work/study.toml:3:1: mqtt://h", "/home/me@work/study.toml:3:1: mqtt://h"),
            ("write to a@b", "write to a@b"),
            ("--use=mqtt://me:hidden@h: use: `mqtt://me:hidden@h` is", "--use=mqtt://***@h: use: `mqtt://***@h` is"),
            ("--use=me:hid=den@h: use: `me:hid=den@h` is", "--use=***@h: use: `***@h` is"),
            ("me:hidden@h, or http://h", "***@h, or http://h"),
        ] {
            assert_eq!(without_logins(text), shown);
        }
    }

    #[test]
    fn a_short_secret_is_hidden_as_a_word_only() {
        let secrets = Secrets::of(&options(&[("password", "1")]));
        assert_eq!(secrets.hide("password 1 refused after 11 s, 1"), "password *** refused after 11 s, ***");
    }

    #[test]
    fn login_query_and_path_make_an_endpoint_secret() {
        let secret = |text| secret("endpoint", false, text);
        assert!(!secret("mqtt://h") && !secret("ws://h:1883/mqtt") && !secret("redis://h/0"));
        assert!(secret("mqtt://me@h") && secret("ws://h/mqtt?token=x") && secret("ws://h/T0k3n"));
        assert!(secret("no url@h") && !secret("no url"));
        let shown = |text| recorded_text("endpoint", false, text);
        assert_eq!(shown("ws://me:pw@h/mqtt?token=x"), "ws://h:80/mqtt?***");
        assert_eq!(shown("ws://h/T0k3n"), "ws://h:80/***");
        let secrets = Secrets::of(&options(&[("endpoint", "ws://h/T0k3n/x")]));
        assert_eq!(secrets.hide("GET /T0k3n/x: 404"), "GET /***: 404");
    }

    #[test]
    fn what_is_marked_or_named_so_is_hidden_and_nothing_else() {
        let all = options(&[("broker_password", "a b"), ("shape", "round"), ("auth", "none"), ("depth", "7")]);
        let shown = |marked: fn(&str) -> bool| serde_json::to_value(recorded(&all, marked)).unwrap();
        let by_name = serde_json::json!({"broker_password": "***", "shape": "round", "auth": "none", "depth": "7"});
        assert_eq!(shown(is_secret_name), by_name);
        let by_mark = serde_json::json!({"broker_password": "a b", "shape": "***", "auth": "none", "depth": "7"});
        assert_eq!(shown(|name| name == "shape"), by_mark);
        assert_eq!(Secrets::marked(&all, |name| name == "shape").hide("round, a b"), "***, a b");
        assert!(Secrets::of(&options(&[("auth", "true"), ("auth_key", "none")])).forms.is_empty());
        let number = Options::from([("pin".to_owned(), 1234.into()), ("auth".to_owned(), true.into())]);
        assert_eq!(serde_json::to_value(recorded(&number, is_secret_name)).unwrap()["pin"], "***");
        assert_eq!(recorded(&number, is_secret_name)["auth"], true);
    }

    #[test]
    fn a_command_that_leads_elsewhere_is_told_from_its_secrets() {
        let hidden = |words: &[&str], text: &str| {
            Secrets::of_command(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).hide(text)
        };
        assert_eq!(hidden(&["sshpass", "-p", "geheim", "ssh", "b1"], "no geheim at b1 by ssh"), "no *** at b1 by ssh");
        assert_eq!(hidden(&["sshpass", "-v", "-p", "geheim"], "geheim"), "***");
        assert_eq!(hidden(&["/usr/bin/sshpass", "-pgeheim", "ssh"], "geheim by ssh"), "*** by ssh");
        assert_eq!(hidden(&["gate", "--password", "geheim", "--user", "me"], "geheim of me"), "*** of me");
        assert_eq!(hidden(&["gate", "--auth-token=geheim", "x"], "geheim x"), "*** x");
        assert_eq!(hidden(&["env", "TOKEN=geheim", "sh"], "geheim sh"), "*** sh");
        assert_eq!(hidden(&["sh", "-c", "echo S3cr3t!x >&2; exit 1"], "S3cr3t!x: echo"), "***: echo");
        assert_eq!(hidden(&["ssh", "-p", "22", "me@10.0.0.1"], "10.0.0.1 port 22"), "10.0.0.1 port 22");
    }

    proptest! {
        /// Whatever the characters of a secret, no form of it remains in a message.
        #[test]
        fn no_form_of_a_secret_is_left(secret in "[ -~äß\\t]{6,24}", around in "[a-z ]{0,10}") {
            let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let all = options(&[("token", &secret), ("endpoint", &format!("mqtt://me:{percent}@h"))]);
            let secrets = Secrets::of(&all);
            let json = serde_json::to_string(&secret).unwrap();
            for form in [&secret, &percent, &json, &format!("{secret:?}"), &format!("{json:?}")] {
                let hidden = secrets.hide(&format!("{around} {form} {around}"));
                prop_assert!(!hidden.contains(&secret) && !hidden.contains(&percent), "{hidden}");
                prop_assert!(!hidden.contains(&json[1..json.len() - 1]), "{hidden}");
            }
            let shown = serde_json::to_string(&recorded(&all, is_secret_name)).unwrap();
            prop_assert!(!shown.contains(&json[1..json.len() - 1]) && !shown.contains(&percent), "{shown}");
        }
    }
}
