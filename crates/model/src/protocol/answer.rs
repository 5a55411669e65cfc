//! Checks of a run's requirements against an agent's `hello`.

use super::hello::AgentHello;
use crate::diagnostic::suggestion;
use crate::options::Options;

/// Longest text of an agent that is repeated in errors, characters.
const TEXT: usize = 80;
/// Most words of an agent's list that are repeated in errors.
const WORDS: usize = 32;

fn cut(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

/// Error: an agent lacks a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent} has no driver `{wanted}`; it has: {has}")]
pub struct NoSuchDriver {
    /// The agent's name and version.
    pub agent: String,
    /// The required driver.
    pub wanted: String,
    /// The agent's drivers.
    pub has: String,
}

/// Error: an agent does not know an option that a run gives it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{agent} does not know the option `{option}` for its driver `{driver}`: {meant}")]
pub struct UnknownOption {
    /// The agent's name and version.
    pub agent: String,
    /// The driver.
    pub driver: String,
    /// The option.
    pub option: String,
    /// The option that may have been meant, or the known ones.
    pub meant: String,
}

impl AgentHello {
    fn called(&self) -> String {
        format!("{} {}", cut(&self.name), cut(&self.version))
    }

    /// Checks that the agent has this driver.
    pub fn has_driver(&self, wanted: &str) -> Result<(), NoSuchDriver> {
        if self.drivers.iter().any(|known| known == wanted) {
            return Ok(());
        }
        let has = self.drivers.join(", ").chars().take(10 * TEXT).collect();
        Err(NoSuchDriver { agent: self.called(), wanted: wanted.to_owned(), has })
    }

    /// True if the agent lists the options that a driver knows.
    pub fn tells_options(&self, driver: &str) -> bool {
        self.options.contains_key(driver)
    }

    /// Checks that a driver knows these options; if the agent does not list its options, it knows
    /// any.
    ///
    /// # Errors
    /// Returns the first unknown option.
    pub fn knows_options<'a>(
        &self,
        driver: &str,
        options: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), UnknownOption> {
        let Some(known) = self.options.get(driver) else { return Ok(()) };
        let unknown = options.into_iter().find(|option| known.iter().all(|name| name.as_str() != *option));
        let Some(option) = unknown else { return Ok(()) };
        let short: Vec<String> = known.iter().take(WORDS).map(|word| cut(word)).collect();
        let meant = suggestion(option, short.iter().map(String::as_str));
        Err(UnknownOption { agent: self.called(), driver: driver.to_owned(), option: option.to_owned(), meant })
    }

    /// Returns those of a run's options that a driver knows, or all if the agent does not list
    /// them.
    pub fn options_for(&self, driver: &str, options: &Options) -> Options {
        let mut for_driver = options.clone();
        if let Some(known) = self.options.get(driver) {
            for_driver.retain(|name, _| known.contains(name));
        }
        for_driver
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(options: &[(&str, &[&str])]) -> AgentHello {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        AgentHello {
            name: "my-agent".into(),
            version: "1.2".into(),
            drivers: texts(&["d", "e"]),
            options: options.iter().map(|(driver, names)| ((*driver).to_owned(), texts(names))).collect(),
            ..AgentHello::default()
        }
    }

    #[test]
    fn an_option_that_a_driver_does_not_know_is_named_with_one_that_is_near() {
        let said = hello(&[("d", &["queue_messages", "linger"])]);
        assert_eq!(said.knows_options("d", ["linger", "queue_messages"]), Ok(()));
        assert_eq!(said.knows_options("e", ["whatever"]), Ok(()), "of that one it does not say");
        let unknown = said.knows_options("d", ["linger", "queue_mesages"]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "my-agent 1.2 does not know the option `queue_mesages` for its driver `d`: did you mean `queue_messages`?"
        );
        let none = hello(&[("d", &[])]).knows_options("d", ["linger"]).unwrap_err();
        assert!(none.to_string().ends_with("there are none here"), "{none}");
    }

    #[test]
    fn an_agent_is_given_what_it_knows_or_all_where_it_does_not_say() {
        let given: Options = [("linger", 1), ("gc", 2)].map(|(name, value)| (name.to_owned(), value.into())).into();
        let names = |hello: AgentHello| hello.options_for("d", &given).into_keys().collect::<Vec<_>>();
        assert_eq!(names(hello(&[("d", &["linger", "more"])])), ["linger"]);
        assert_eq!(names(hello(&[("e", &[])])), ["gc", "linger"]);
    }
}
