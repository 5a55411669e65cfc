//! The credentials of servers that other hosts can reach: a user, and a random password per process of this program.

use crate::credentials;
use pubmark_model::cell::Cell;
use pubmark_model::host::HostSpec;
use pubmark_model::options::OptionValues;
use pubmark_model::printable::hexadecimal;
use pubmark_model::secret::Secrets;
use ring::rand::{SecureRandom, SystemRandom};
use std::net::IpAddr;
use std::sync::OnceLock;

const USER: &str = "pubmark";

/// Returns the password; `None` if this machine provides no random bytes.
fn password() -> Option<&'static str> {
    static MADE: OnceLock<Option<String>> = OnceLock::new();
    let make = || {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).is_ok().then(|| hexadecimal(&bytes))
    };
    MADE.get_or_init(make).as_deref()
}

/// Returns the login of a cell's server if it is started for the run, listens beyond the loopback addresses, and
/// supports one. A system's own agent may not support one.
pub fn of(cell: &Cell) -> Option<(String, String)> {
    let system = &cell.system;
    let starts = system.broker() && cell.options.text("endpoint").is_none() && system.agent.built_in();
    let takes = system.server.as_ref().is_some_and(|server| server.takes_login());
    let is_loopback = |host: &HostSpec| host.address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let others_reach = !cell.placement.of_members().all(is_loopback);
    let password = password().filter(|_| starts && takes && others_reach)?;
    Some((USER.to_owned(), password.to_owned()))
}

/// Returns the secrets of a run, which nothing may show.
pub fn secrets(cell: &Cell) -> Secrets {
    let login = of(cell);
    let mine = cell.system.secrets(&cell.options).and_password(login.as_ref().map(|(_, password)| password.as_str()));
    // Without its file the run fails, and says nothing of it.
    let mine = mine.and_logins(&credentials::read(cell).unwrap_or_default());
    cell.placement.hosts().into_iter().fold(mine, |mine, host| mine.and(host.secrets()))
}

/// Returns the secrets of the runs of these cells, which nothing may show.
pub fn secrets_of<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Secrets {
    cells.into_iter().map(secrets).fold(Secrets::default(), Secrets::and)
}

/// Returns an endpoint with a login inserted.
pub fn put_into(endpoint: &str, login: Option<&(String, String)>) -> String {
    match (login, endpoint.split_once("://")) {
        (Some((user, password)), Some((scheme, rest))) => format!("{scheme}://{user}:{password}@{rest}"),
        _ => endpoint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use pubmark_model::study::{ReadOptions, Study};

    fn login(system: &str, address: &str, more: &str) -> Option<(String, String)> {
        let text = format!(
            "title = \"t\"\n[axes]\nsystem = \"{system}\"\n[hosts.b]\nreach = [\"ssh\", \"b\"]\naddress = \"{address}\"\n{more}"
        );
        let study =
            Study::parse("t", &text, &registry::built_in, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let cell = pubmark_model::plan::cells(&study).unwrap().remove(0);
        let found = of(&cell);
        if let Some((_, password)) = &found {
            assert!(password.len() == 32 && !secrets(&cell).hide(password).contains(password.as_str()));
        }
        found
    }

    #[test]
    fn servers_that_others_can_reach_get_a_password_where_they_can_be_told_one() {
        for system in ["mosquitto", "redis", "valkey", "nats", "rabbitmq-mqtt", "rabbitmq-amqp"] {
            assert!(login(system, "10.0.0.1", "").is_some(), "{system}");
            assert!(login(system, "127.0.0.1", "").is_none(), "{system}");
        }
        let endpoint = "[options.mosquitto]\nendpoint = \"mqtt://10.0.0.9:1883\"\n";
        assert!(login("mosquitto", "10.0.0.1", endpoint).is_none(), "it is somebody else's");
    }

    #[test]
    fn a_login_stands_before_the_host() {
        let login = ("u".to_owned(), "p".to_owned());
        assert_eq!(put_into("mqtt://10.0.0.1:1883", Some(&login)), "mqtt://u:p@10.0.0.1:1883");
        assert_eq!(put_into("mqtt://10.0.0.1:1883", None), "mqtt://10.0.0.1:1883");
    }
}
