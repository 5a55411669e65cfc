//! What may be neither shown nor recorded: passwords, tokens, and the user and
//! password of an endpoint.

use crate::endpoint::Endpoint;
pub use crate::login::{HIDDEN, without_logins};
use crate::options::Options;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Options whose values are secret.
pub const SECRETS: [&str; 2] = ["password", "token"];

/// A text of fewer characters is hidden only where it stands as a word: a
/// password `1` is not looked for within numbers.
const WORD_CHARS: usize = 6;

/// Whether the text of an option may not be recorded as it is.
pub fn secret(name: &str, text: &str) -> bool {
    match name {
        name if SECRETS.contains(&name) => true,
        "endpoint" => Endpoint::parse(text).map_or(text.contains('@'), |endpoint| endpoint.is_secret()),
        _ => without_logins(text) != text,
    }
}

/// Whether an environment variable of this name is taken to hold a secret.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "secret", "token", "credential", "api_key", "apikey"]
        .iter()
        .any(|part| name.contains(part))
}

/// Options as they may be recorded: without secrets, and without the user and
/// password of an endpoint.
pub fn recorded(options: &Options) -> Options {
    let mut shown = options.clone();
    for (name, value) in &mut shown {
        match value {
            Value::String(text) => *text = recorded_text(name, text),
            other if SECRETS.contains(&name.as_str()) => *other = HIDDEN.into(),
            _ => {}
        }
    }
    shown
}

/// The same, for the text of one option.
pub fn recorded_text(name: &str, text: &str) -> String {
    match name {
        name if SECRETS.contains(&name) => HIDDEN.into(),
        "endpoint" => Endpoint::parse(text).map_or_else(|_| HIDDEN.into(), |endpoint| endpoint.to_string()),
        _ => without_logins(text),
    }
}

/// The secrets of a run, in every form in which a message may repeat them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The longest first.
    forms: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.forms.len())
    }
}

impl Secrets {
    /// Those among the options of a run.
    pub fn of(options: &Options) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in options {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if SECRETS.contains(&name.as_str()) {
                secrets.add(&text);
            } else if name == "endpoint" {
                secrets.add_login(&text);
            }
        }
        secrets
    }

    /// The login of an endpoint, as it is typed and as it is meant.
    fn add_login(&mut self, text: &str) {
        let login = text.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let login = login.map(|(login, _)| login).unwrap_or_default();
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        [login, user, password].into_iter().for_each(|typed| self.add(typed));
        let endpoint = Endpoint::parse(text).ok();
        let parts = endpoint.map(|endpoint| [endpoint.query(), endpoint.user, endpoint.password]);
        parts.into_iter().flatten().flatten().for_each(|part| self.add(&part));
    }

    /// Those among the words of a command line, as far as one can be seen to be
    /// secret: the values of options and of what is called by such a name, and
    /// the logins of endpoints.
    pub fn of_arguments(arguments: impl IntoIterator<Item = String>) -> Secrets {
        let mut secrets = Secrets::default();
        for argument in arguments {
            let value = argument.match_indices(['=', ':']).find_map(|(at, mark)| {
                let key = argument[..at].rsplit(['=', ' ']).next().unwrap_or_default();
                let secret = key.starts_with("options.") || is_secret_variable(key);
                secret.then(|| &argument[at + mark.len()..])
            });
            value.into_iter().for_each(|value| secrets.add(value));
            secrets.add_login(&argument);
        }
        secrets
    }

    /// With the secrets of others.
    #[must_use]
    pub fn and(mut self, other: Secrets) -> Secrets {
        self.forms.extend(other.forms);
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        self.forms.dedup();
        self
    }

    /// With a password that no option holds, where there is one.
    #[must_use]
    pub fn and_password(mut self, password: Option<&str>) -> Secrets {
        password.into_iter().for_each(|password| self.add(password));
        self
    }

    /// With what variables of an environment hold, where their names say that it
    /// is secret, and with the logins of URLs in all of them.
    #[must_use]
    pub fn and_variables<'a>(mut self, variables: impl IntoIterator<Item = &'a (String, String)>) -> Secrets {
        for (name, value) in variables {
            if is_secret_variable(name) {
                self.add(value);
            } else if value.contains("://") {
                self.add_login(value);
            }
        }
        self
    }

    /// One more.
    fn add(&mut self, text: &str) {
        let unquoted = |text: &str| text.get(1..text.len().saturating_sub(1)).unwrap_or_default().to_owned();
        let escaped = unquoted(&serde_json::to_string(text).unwrap_or_default());
        // JSON that is quoted within a text of JSON.
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
        for form in [text.to_owned(), escaped, twice, debugged, percent(true), percent(false)] {
            if !form.is_empty() && !self.forms.contains(&form) {
                self.forms.push(form);
            }
        }
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Every form, the longest first.
    pub(crate) fn forms(&self) -> &[String] {
        &self.forms
    }

    /// The length of the longest form, bytes: so much of a text is read beyond
    /// what is shown of it, or else half a secret could be left.
    pub fn longest(&self) -> usize {
        self.forms.first().map_or(0, String::len)
    }

    /// A text without them, and without the logins of URLs in it.
    pub fn hide(&self, text: &str) -> String {
        let shows = |text: &str, form: &String| text.contains(form.as_str()).then(|| replaced(text, form));
        let hidden = self.forms.iter().fold(text.to_owned(), |text, form| shows(&text, form).unwrap_or(text));
        if hidden.contains('@') { without_logins(&hidden) } else { hidden }
    }

    /// The end of a text without them, in so many bytes or a little less. It is
    /// cut last: half a secret could not be found.
    pub fn hide_end(&self, text: &str, bytes: usize) -> String {
        let hidden = self.hide(text);
        let mut from = hidden.len().saturating_sub(bytes);
        while !hidden.is_char_boundary(from) {
            from += 1;
        }
        hidden[from..].trim().to_owned()
    }

    /// A value without them, in every text of it.
    pub fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_in(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
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
    fn only_a_login_makes_an_endpoint_secret() {
        assert!(!secret("endpoint", "mqtt://h") && !secret("endpoint", "mqtt://h:1883/x"));
        assert!(secret("endpoint", "mqtt://me@h") && secret("endpoint", "ws://h/mqtt?token=x"));
        assert!(secret("endpoint", "no url@h") && !secret("endpoint", "no url"));
        assert_eq!(recorded_text("endpoint", "ws://me:pw@h/mqtt?token=x"), "ws://h:80/mqtt?***");
    }

    proptest! {
        /// Whatever a secret is made of, no form of it is left in a message.
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
            let shown = serde_json::to_string(&recorded(&all)).unwrap();
            prop_assert!(!shown.contains(&json[1..json.len() - 1]) && !shown.contains(&percent), "{shown}");
        }
    }
}
