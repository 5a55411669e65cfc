//! Files that options name.

use crate::session::{ClientSettings, SettingsError};
use pubmark_model::credentials::{self, CREDENTIALS, Login};
use pubmark_model::options::OptionValues;
use std::fs::File;
use std::io::Read;

/// Reads the file of an option, as far as this many bytes.
pub fn read_file(option: &str, path: &str, most_bytes: u64) -> Result<String, SettingsError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(most_bytes).read_to_string(&mut text));
    read.map(|_| text).map_err(|why| format!("{option}: cannot read {path}: {why}").into())
}

/// Users and passwords of single clients.
pub struct Logins(Vec<Login>);

impl Logins {
    /// Reads the file of the option `credentials_file`; `None` without it.
    ///
    /// # Errors
    /// It has fewer lines than there are clients, or a user or a password is given besides.
    pub fn of(terms: &ClientSettings<'_>) -> Result<Option<Logins>, SettingsError> {
        let Some(path) = terms.options.text(CREDENTIALS) else { return Ok(None) };
        let given = |name: &str| terms.options.text(name).is_some();
        if terms.endpoint.user.is_some() || ["username", "password"].into_iter().any(given) {
            return Err("both `credentials_file` and a user or password for all clients are given: write either".into());
        }
        let text = read_file(CREDENTIALS, path, credentials::MOST_BYTES)?;
        let logins = credentials::parse(path, &text, terms.clients).map_err(|error| error.to_string())?;
        Ok(Some(Logins(logins)))
    }

    /// Returns the login of a client.
    pub fn row(&self, row: u32) -> Option<(&str, &str)> {
        self.0.get(row as usize).map(|login| (login.user.as_str(), login.password.as_str()))
    }
}
