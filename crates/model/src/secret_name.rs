//! Secret names: one rule for options, environment variables, URL parameters and words of a
//! command.

/// Parts that make a name secret at any position: `DBPASSWORD`, `mytoken`.
const PARTS: [&str; 9] =
    ["password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "apikey", "privatekey"];

/// Words that make a name secret if they are whole words of it: `api_key`, `authHeader`, but not
/// `keyspace` or `author`.
const WORDS: [&str; 14] = [
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cred",
    "creds",
    "key",
    "keys",
    "nkey",
    "oauth",
    "pass",
    "pin",
    "psk",
    "pwd",
];

/// Last words of file names: such a name says where a secret is kept.
const PLACES: [&str; 4] = ["file", "path", "dir", "folder"];

/// Values that switch something on or off, which are never secret.
const SWITCHES: [&str; 9] = ["", "true", "false", "yes", "no", "on", "off", "none", "null"];

/// True if a value of this name is secret. A name is split at `_`, `-`, `.` and at capitals. Names
/// in doubt are secret: `max_keys` hides a number that is not.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    if words.last().is_some_and(|last| PLACES.contains(&last.as_str())) {
        return false;
    }
    let joined = name.to_ascii_lowercase();
    PARTS.iter().any(|part| joined.contains(part))
        || words.iter().any(|word| WORDS.contains(&word.as_str()) || word.ends_with("pass") || word.ends_with("pwd"))
}

/// True if a value of this unknown name may be secret: the name is secret, or may be a mistyped
/// secret one.
pub fn may_be_secret_name(name: &str) -> bool {
    let near = |word: &String, part: &str| {
        word.len() > 4 && strsim::damerau_levenshtein(word, part) <= if part.len() < 8 { 1 } else { 2 }
    };
    is_secret_name(name) || words(name).iter().any(|word| PARTS.iter().any(|part| near(word, part)))
}

/// True if a value is a switch, which is never secret.
pub fn is_switch(value: &str) -> bool {
    SWITCHES.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Splits a name into words in lower case, without numbers at their ends.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let chars: Vec<char> = name.chars().collect();
    for (index, &c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(index + 1);
        // `dbPassword`, and `DBPassword`.
        let begins = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase() || before.is_uppercase() && after.is_some_and(|after| after.is_lowercase())
            });
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    let bare = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned());
    bare.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_secret_by_its_words() {
        for name in [
            "password",
            "MY_PASSWORD",
            "dbPassword",
            "DBPassword",
            "broker-passwd",
            "DBPASS",
            "token",
            "API_TOKEN",
            "sessiontoken",
            "admin_token2",
            "client_secret",
            "LICENSE_KEY",
            "apiKey",
            "x.key",
            "signing-key",
            "APIKEY",
            "auth",
            "basic_auth",
            "AuthHeader",
            "aws_credentials",
            "creds",
            "KEY1",
            "passphrase",
            "max_keys",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "set_tcp_nodelay",
            "keyspace",
            "monkey",
            "author",
            "authority",
            "keepalive",
            "hotkeys",
            "compute",
            "endpoint",
            "queue_bytes",
            "password_file",
            "token-path",
            "keyDir",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_mistyped_name_may_be_a_secrets() {
        for name in ["pasword", "my_passwort", "tokn_of", "sercet", "MY_SECRT", "credentail"] {
            assert_eq!(may_be_secret_name(name), name != "tokn_of", "{name}");
            assert!(!is_secret_name(name), "{name}");
        }
        for name in ["tls", "prefix", "depth", "tcp_nodelay", "endpiont"] {
            assert!(!may_be_secret_name(name), "{name}");
        }
    }

    #[test]
    fn switches_are_not_secret() {
        assert!(is_switch("true") && is_switch("None") && is_switch(" off ") && is_switch(""));
        assert!(!is_switch("1") && !is_switch("truest"));
    }
}
