//! Logins of single clients: a file with their users and passwords, and the paths of their certificates.

use std::fmt;

/// Name of the option with the path of the file.
pub const CREDENTIALS: &str = "credentials_file";

/// Largest file, bytes: a million clients of 64 bytes each.
pub const MOST_BYTES: u64 = 64 << 20;

/// Options with files of certificates, of which each client may have its own.
pub const CERTIFICATES: [&str; 2] = ["tls_cert", "tls_key"];

/// The part of a path that stands for the number of the client.
const CLIENT: &str = "{client}";

/// Returns the path that is meant for a client, which is numbered from 0, publishers first: `{client}` is its number.
/// `None` if the path is the same for all.
pub fn path_of(path: &str, client: usize) -> Option<String> {
    path.contains(CLIENT).then(|| path.replace(CLIENT, &client.to_string()))
}

/// User and password of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

/// Shows nothing of it.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login")
    }
}

/// Reasons why a file does not have the logins of a run's clients. None repeats a part of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("credentials_file: cannot read {path}: {why}")]
    Unreadable {
        /// The file.
        path: String,
        /// The error.
        why: String,
    },
    /// A line has no comma, or no user before it.
    #[error("credentials_file: {path}:{line}: write `user,password`, with nothing in front of the user")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// A client has no certificate or key.
    #[error(
        "{option}: client {client} of {clients} has no file {path}: make one for each, from 0 on, publishers first"
    )]
    NoFile {
        /// The option.
        option: &'static str,
        /// Number of the client, from 0.
        client: usize,
        /// Number of clients of the run.
        clients: usize,
        /// Path of the missing file.
        path: String,
    },
    /// There are more clients than lines.
    #[error("credentials_file: {path} has {rows} lines, but the run has {clients} clients: write a line for each")]
    Few {
        /// The file.
        path: String,
        /// Number of its lines.
        rows: usize,
        /// Number of clients of the run.
        clients: usize,
    },
}

/// Reads the text of a file: one line `user,password` for each client, publishers first. The password is the rest of the
/// line. Empty lines are skipped.
///
/// # Errors
/// A line has no user, or there are fewer lines than `clients`.
pub fn parse(path: &str, text: &str, clients: usize) -> Result<Vec<Login>, CredentialsError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let login = |line: &str| {
        let (user, password) =
            line.split_once(',').filter(|(user, _)| !user.trim().is_empty() && user.trim() == *user)?;
        Some(Login { user: user.to_owned(), password: password.to_owned() })
    };
    let logins: Result<Vec<Login>, CredentialsError> = lines
        .map(|(number, line)| {
            login(line).ok_or_else(|| CredentialsError::Line { path: path.to_owned(), line: number + 1 })
        })
        .collect();
    let logins = logins?;
    match logins.len() {
        rows if rows < clients => Err(CredentialsError::Few { path: path.to_owned(), rows, clients }),
        _ => Ok(logins),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_line_and_no_error_repeats_one() {
        let logins = parse("c.csv", "ann,secret\n\nbob,p,w \r\ncy,\n", 3).unwrap();
        let read: Vec<_> = logins.iter().map(|login| (login.user.as_str(), login.password.as_str())).collect();
        assert_eq!(read, [("ann", "secret"), ("bob", "p,w "), ("cy", "")]);
        assert_eq!(format!("{:?}", logins[0]), "Login");
        let said = |text, clients| parse("c.csv", text, clients).unwrap_err().to_string();
        assert_eq!(
            said("ann,secret\n", 2),
            "credentials_file: c.csv has 1 lines, but the run has 2 clients: write a line for each"
        );
        for wrong in ["ann,a\nhidden-word\n", "ann,a\n,hidden-word\n", "ann,a\n hidden,word\n"] {
            assert!(
                said(wrong, 1).starts_with("credentials_file: c.csv:2: write `user,password`"),
                "{}",
                said(wrong, 1)
            );
        }
    }
}
