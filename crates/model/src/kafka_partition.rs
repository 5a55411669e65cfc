//! Rule by which producers of Kafka choose the partition of a batch.

use crate::diagnostic::Diagnostic;
use crate::options::{OptionValues, Options};

/// Option that names the rule.
const RULE: &str = "partition_by";
/// Option that states the number of keys, and its value if it is not set.
const KEYS: &str = "keyspace";
const KEYS_DEFAULT: u32 = 1_000;
/// Most keys.
pub const MOST_KEYS: u64 = 1_000_000;

/// The rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionBy {
    /// All batches of a producer go to one partition.
    Publisher,
    /// Each batch goes to the next partition.
    RoundRobin,
    /// Each message has one of this many keys, which selects its partition.
    Key(u32),
}

impl PartitionBy {
    /// Reads the options of a system.
    ///
    /// # Errors
    /// An unknown rule, a number of keys that is out of range, or keys that would have no effect.
    pub fn read(options: &Options) -> Result<PartitionBy, Diagnostic> {
        let refuse = |what: String, help: &str| Err(Diagnostic::whole(what).help(help.to_owned()));
        let rule = match options.text(RULE).unwrap_or("publisher") {
            "publisher" => PartitionBy::Publisher,
            "round-robin" => PartitionBy::RoundRobin,
            "key" if !options.contains_key(KEYS) => return Ok(PartitionBy::Key(KEYS_DEFAULT)),
            "key" => {
                return match options.number(KEYS) {
                    keys @ 1..=MOST_KEYS => Ok(PartitionBy::Key(keys as u32)),
                    keys => refuse(
                        format!("options.{KEYS} = {keys}: the messages of a topic have 1 to {MOST_KEYS} keys"),
                        "write a number in this range",
                    ),
                };
            }
            other => {
                return refuse(
                    format!("options.{RULE} = \"{other}\""),
                    "write \"publisher\", \"round-robin\" or \"key\"",
                );
            }
        };
        if options.contains_key(KEYS) {
            return refuse(
                format!("options.{KEYS}: messages have keys only with options.{RULE} = \"key\""),
                "set options.partition_by = \"key\", or leave it out",
            );
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_with_their_rule_only() {
        let read = |rule: Option<&str>, keys: Option<u32>| {
            let rule = rule.map(|rule| (RULE.to_owned(), rule.into()));
            let keys = keys.map(|keys| (KEYS.to_owned(), keys.into()));
            PartitionBy::read(&rule.into_iter().chain(keys).collect()).map_err(|why| why.message)
        };
        assert_eq!(read(None, None), Ok(PartitionBy::Publisher));
        assert_eq!(read(Some("round-robin"), None), Ok(PartitionBy::RoundRobin));
        assert_eq!(read(Some("key"), None), Ok(PartitionBy::Key(1_000)));
        assert_eq!(read(Some("key"), Some(1_000_000)), Ok(PartitionBy::Key(1_000_000)));
        for (rule, keys, wanted) in [
            (Some("hash"), None, "options.partition_by = \"hash\""),
            (Some("key"), Some(0), "options.keyspace = 0: the messages of a topic have 1 to 1000000 keys"),
            (Some("key"), Some(1_000_001), "options.keyspace = 1000001"),
            (Some("round-robin"), Some(5), "options.keyspace: messages have keys only with options.partition_by"),
            (None, Some(5), "options.keyspace: messages have keys only with options.partition_by"),
        ] {
            let said = read(rule, keys).unwrap_err();
            assert!(said.contains(wanted), "{said}");
        }
    }
}
