//! Every key that a study file, a flag or an axis can set, in one table.

use crate::diagnostic::suggestion;
use crate::fault;
use crate::link::Side;
use crate::tuning::Use;
use crate::units::{MILLISECOND, Ns, Rate, SECOND, format_time, parse_size, parse_time};
use crate::value::ValueError;
use crate::workload::{Arrival, Pacing, Pattern, Pin, Receive, Transport, Verify};
use serde_json::Value;
use std::collections::BTreeMap;

/// Values by key, each in its canonical form: sizes and counts are numbers,
/// times and words are strings.
pub type Settings = BTreeMap<String, Value>;

/// The most clients of a role.
pub const MOST_CLIENTS: u64 = 1_000_000;

/// Why a text is no value of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {source}")]
pub struct SettingError {
    /// The key.
    pub key: &'static str,
    /// What is wrong with the text.
    pub source: ValueError,
}

/// Where in a study file a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// `[workload]`
    Workload,
    /// `[limits]`
    Limits,
    /// `[faults]`
    Faults,
    /// `[settings]`
    Settings,
    /// `[run]`
    Run,
}

impl Section {
    /// The section's name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Section::Workload => "workload",
            Section::Limits => "limits",
            Section::Faults => "faults",
            Section::Settings => "settings",
            Section::Run => "run",
        }
    }
}

/// One key.
pub struct Key {
    /// Its name in files; flags write it with dashes.
    pub name: &'static str,
    /// Where it stands.
    pub section: Section,
    /// Its value where none is given.
    pub default: Option<&'static str>,
    /// What it says, with unit and range.
    pub doc: &'static str,
    read: fn(&str) -> Result<Value, ValueError>,
}

fn count(text: &str, least: u64, most: u64) -> Result<Value, ValueError> {
    let bad = || ValueError::Count { text: text.to_owned(), least, most };
    let number: u64 = text.replace('_', "").parse().map_err(|_| bad())?;
    if !(least..=most).contains(&number) {
        return Err(bad());
    }
    Ok(number.into())
}

/// A percentage, as it is written.
fn share(text: &str) -> Result<Value, ValueError> {
    let percent: Option<f64> = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
    match percent.filter(|percent| (0.1..=50.0).contains(percent)) {
        Some(percent) => Ok(format!("{percent}%").into()),
        None => Err(ValueError::Share(text.to_owned())),
    }
}

fn size(text: &str, least: u64, most: u64) -> Result<Value, ValueError> {
    let bytes = parse_size(text)?;
    if !(least..=most).contains(&bytes) {
        return Err(ValueError::Size { text: text.to_owned(), least, most });
    }
    Ok(bytes.into())
}

fn time(text: &str) -> Result<Value, ValueError> {
    Ok(format_time(parse_time(text)?).into())
}

fn flag(text: &str) -> Result<Value, ValueError> {
    text.parse::<bool>().map(Value::from).map_err(|_| ValueError::Flag(text.to_owned()))
}

/// A mean time between failures, or to a repair: what can still be carried out.
fn mean(text: &str, least_ns: Ns) -> Result<Value, ValueError> {
    let ns = parse_time(text)?;
    if ns < least_ns {
        return Err(ValueError::Short { text: text.to_owned(), least_ns });
    }
    Ok(format_time(ns).into())
}

/// What the proxy of a link can do: it counts in whole milliseconds.
fn delay(text: &str) -> Result<Value, ValueError> {
    let ns = parse_time(text)?;
    if ns % MILLISECOND != 0 || ns > 60 * SECOND {
        return Err(ValueError::Delay(text.to_owned()));
    }
    Ok(format_time(ns).into())
}

/// What the proxy of a link can do: it counts in whole kilobytes.
fn bandwidth(text: &str) -> Result<Value, ValueError> {
    let bytes = parse_size(text)?;
    if bytes % 1_000 != 0 || !(1_000..=1_000_000_000_000).contains(&bytes) {
        return Err(ValueError::Bandwidth(text.to_owned()));
    }
    Ok(bytes.into())
}

fn cpus(text: &str) -> Result<Value, ValueError> {
    match Rate::parse(text) {
        Ok(cpus @ Rate::PerKilosecond(10..=4_096_000)) => Ok(cpus.into()),
        _ => Err(ValueError::Cpus(text.to_owned())),
    }
}

macro_rules! word {
    ($kind:ident) => {
        |text| Ok($kind::parse(text)?.word().into())
    };
}

/// All keys.
pub const KEYS: &[Key] = &[
    Key {
        name: "pattern",
        section: Section::Workload,
        default: Some("pairs"),
        doc: "who sends to whom: pairs, fan-out, fan-in, request-reply, pipeline, tree",
        read: word!(Pattern),
    },
    Key {
        name: "transport",
        section: Section::Workload,
        default: None,
        doc: "for libraries: inproc, ipc, tcp or udp",
        read: word!(Transport),
    },
    Key {
        name: "publishers",
        section: Section::Workload,
        default: None,
        doc: "publishers, 1 to 1,000,000 (1)",
        read: |text| count(text, 1, MOST_CLIENTS),
    },
    Key {
        name: "subscribers",
        section: Section::Workload,
        default: None,
        doc: "subscribers, 1 to 1,000,000 (1)",
        read: |text| count(text, 1, MOST_CLIENTS),
    },
    Key {
        name: "pairs",
        section: Section::Workload,
        default: None,
        doc: "pairs of one publisher and one subscriber, 1 to 1,000,000 (1)",
        read: |text| count(text, 1, MOST_CLIENTS),
    },
    Key {
        name: "rate",
        section: Section::Workload,
        default: Some("1000"),
        doc: "messages per second and publisher, or max",
        read: |text| Ok(Rate::parse(text)?.into()),
    },
    Key {
        name: "arrival",
        section: Section::Workload,
        default: Some("uniform"),
        doc: "uniform, poisson or burst:K",
        read: |text| Ok(Arrival::parse(text)?.to_string().into()),
    },
    Key {
        name: "payload",
        section: Section::Workload,
        default: Some("1KiB"),
        doc: "bytes of a message with its 16-byte header, 16B to 1GiB",
        read: |text| size(text, 16, 1 << 30),
    },
    Key {
        name: "qos",
        section: Section::Workload,
        default: Some("0"),
        doc: "quality of service: 0, 1 or 2",
        read: |text| count(text, 0, 2),
    },
    Key {
        name: "durable",
        section: Section::Workload,
        default: Some("false"),
        doc: "whether subscriptions, and what waits for them, outlive connections and the server",
        read: flag,
    },
    Key {
        name: "warmup",
        section: Section::Workload,
        default: Some("1s"),
        doc: "time from the start to the measured window",
        read: time,
    },
    Key {
        name: "duration",
        section: Section::Workload,
        default: None,
        doc: "length of the measured window (5s)",
        read: time,
    },
    Key {
        name: "count",
        section: Section::Workload,
        default: None,
        doc: "instead of duration: messages of each publisher in the window",
        read: |text| count(text, 1, u64::from(crate::header::MAX_SEQUENCE)),
    },
    Key {
        name: "drain",
        section: Section::Workload,
        default: Some("10s"),
        doc: "how long after the last send a message may still arrive",
        read: time,
    },
    Key {
        name: "connect_timeout",
        section: Section::Workload,
        default: Some("30s"),
        doc: "how long clients may take to connect and hear each other",
        read: time,
    },
    Key {
        name: "connect_rate",
        section: Section::Workload,
        default: Some("1000"),
        doc: "connections that are opened to a broker in a second, 1 to 100,000",
        read: |text| count(text, 1, 100_000),
    },
    Key {
        name: "pacing",
        section: Section::Workload,
        default: Some("hybrid"),
        doc: "hybrid (sleeps, then watches the clock shortly before), sleep, or spin (costs a core)",
        read: word!(Pacing),
    },
    Key {
        name: "pacing_quantum",
        section: Section::Workload,
        default: Some("50us"),
        doc: "least time between two wake-ups of a publisher",
        read: time,
    },
    Key {
        name: "receive",
        section: Section::Workload,
        default: Some("block"),
        doc: "how subscribers wait: block (sleep until something comes), or spin (costs a core)",
        read: word!(Receive),
    },
    Key {
        name: "verify",
        section: Section::Workload,
        default: None,
        doc: "header, or full (CRC-32C of the body); where nothing is said full, as long as it costs under 2 % of an event loop",
        read: word!(Verify),
    },
    Key {
        name: "pin",
        section: Section::Workload,
        default: Some("none"),
        doc: "none, or roles (publishers and subscribers on separate processors)",
        read: word!(Pin),
    },
    Key {
        name: "max_send_lag",
        section: Section::Workload,
        default: Some("1ms"),
        doc: "the generator's own p99 lag that makes a run generator-saturated",
        read: time,
    },
    Key {
        name: "late_after",
        section: Section::Workload,
        default: Some("10ms"),
        doc: "latency above which a delivered message counts as late",
        read: time,
    },
    Key {
        name: "cpus",
        section: Section::Limits,
        default: None,
        doc: "processors that the server may use",
        read: cpus,
    },
    Key {
        name: "memory",
        section: Section::Limits,
        default: None,
        doc: "memory that the server may use",
        read: |text| size(text, 1 << 20, 1 << 50),
    },
    Key {
        name: "fault",
        section: Section::Faults,
        default: Some(fault::NONE),
        doc: "what happens to which part, from the window's beginning: `stop server at 5s for 1s`, or several with commas",
        read: |text| Ok(fault::Script::parse(text)?.to_string().into()),
    },
    Key {
        name: "link",
        section: Section::Faults,
        default: None,
        doc: "whose connections go over the link: subscribers (where nothing is said), publishers or both",
        read: word!(Side),
    },
    Key {
        name: "mttf",
        section: Section::Faults,
        default: None,
        doc: "mean time to a failure of the link, exponential, from the window's beginning or a repair; 100ms at least",
        read: |text| mean(text, 100 * MILLISECOND),
    },
    Key {
        name: "mttr",
        section: Section::Faults,
        default: None,
        doc: "mean time from a failure of the link to its repair, exponential; 10ms at least",
        read: |text| mean(text, 10 * MILLISECOND),
    },
    Key {
        name: "link_delay",
        section: Section::Faults,
        default: None,
        doc: "what the link holds bytes back for, one way, in each direction: whole milliseconds",
        read: delay,
    },
    Key {
        name: "link_bandwidth",
        section: Section::Faults,
        default: None,
        doc: "bytes a second that the link carries of each connection, in each direction: whole kB",
        read: bandwidth,
    },
    Key {
        name: "use",
        section: Section::Settings,
        default: None,
        doc: "whose defaults systems have: stock (their makers') or tuned (pubmark's) (tuned)",
        read: |text| Ok(Use::parse(text)?.word().into()),
    },
    Key {
        name: "repeats",
        section: Section::Run,
        default: Some("3"),
        doc: "runs of each cell, 1 to 1,000",
        read: |text| count(text, 1, 1_000),
    },
    Key {
        name: "order",
        section: Section::Run,
        default: Some("interleaved"),
        doc: "interleaved (systems alternate, seeded) or sequential",
        read: |text| match text {
            "interleaved" | "sequential" => Ok(text.into()),
            _ => {
                Err(ValueError::Order { text: text.to_owned(), help: suggestion(text, ["interleaved", "sequential"]) })
            }
        },
    },
    Key {
        name: "tie",
        section: Section::Run,
        default: Some("5%"),
        doc: "systems tie where they are shown to differ by less than this, 0.1% to 50%",
        read: share,
    },
    Key {
        name: "awake",
        section: Section::Run,
        default: Some("false"),
        doc: "true keeps each processor awake with a spinner of the idle class while a run is on",
        read: flag,
    },
    Key {
        name: "seed",
        section: Section::Run,
        default: Some("1"),
        doc: "seed of the order and of Poisson gaps",
        read: |text| count(text, 0, u64::MAX),
    },
];

/// Finds a key by name (`pacing_quantum`, or `pacing-quantum` as flags write it).
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name || key.name == name.replace('-', "_"))
}

impl Key {
    /// Reads a value into its canonical form.
    pub fn read(&self, text: &str) -> Result<Value, SettingError> {
        (self.read)(text.trim()).map_err(|source| SettingError { key: self.name, source })
    }
}

/// Fills in the defaults of the keys that were not set.
pub fn with_defaults(mut settings: Settings) -> Settings {
    for key in KEYS {
        if let (Some(default), false) = (key.default, settings.contains_key(key.name))
            && let Ok(value) = key.read(default)
        {
            settings.insert(key.name.to_owned(), value);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn every_default_is_legal_and_resolves() {
        for key in KEYS {
            if let Some(default) = key.default {
                assert!(key.read(default).is_ok(), "{}", key.name);
            }
        }
        let workload = Workload::resolve(&with_defaults(Settings::new())).unwrap();
        assert_eq!((workload.publishers, workload.subscribers), (1, 1));
        assert_eq!(workload.payload_bytes, 1024);
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_and_kept_as_it_came() {
        use std::error::Error;
        let said = |name: &str, text: &str| key(name).unwrap().read(text).unwrap_err();
        let error = said("fault", "stop server at 5 for 1s");
        assert!(error.to_string().starts_with("fault: `stop server at 5 for 1s`: `5` is not a time"), "{error}");
        let wrong = error.source().and_then(|value| value.source()).expect("the time is what is wrong");
        assert!(wrong.downcast_ref::<crate::units::UnitError>().is_some(), "{wrong:?}");
        assert_eq!(said("qos", "3").to_string(), "qos: `3` is not a whole number from 0 to 2");
        assert_eq!(said("pin", "role").to_string(), "pin: `role` is none of none, roles: did you mean `roles`?");
    }

    #[test]
    fn bodies_are_checked_where_that_costs_next_to_nothing_or_somebody_asks() {
        let verify = |settings: &[(&str, &str)]| {
            let read = |(name, value): &(&str, &str)| ((*name).to_owned(), key(name).unwrap().read(value).unwrap());
            let workload = Workload::resolve(&with_defaults(settings.iter().map(read).collect())).unwrap();
            (workload.verify, workload.checks_bodies())
        };
        let (checked, unchecked) = ((Verify::Full, true), (Verify::Header, false));
        assert_eq!(verify(&[]), checked);
        // 20 ns and 0.1 ns a byte: 122.4 ns of 1 KiB, of which 163,398 fill 2 % of a second.
        assert_eq!(verify(&[("rate", "163398")]), checked);
        assert_eq!(verify(&[("rate", "163399")]), unchecked);
        assert_eq!(verify(&[("rate", "163399"), ("verify", "full")]), checked);
        assert_eq!(verify(&[("pairs", "1000"), ("rate", "163")]), checked);
        assert_eq!(verify(&[("pairs", "1000"), ("rate", "164")]), unchecked);
        assert_eq!(verify(&[("pattern", "fan-out"), ("subscribers", "200")]), unchecked);
        assert_eq!(verify(&[("payload", "1MB"), ("rate", "199")]), checked);
        assert_eq!(verify(&[("payload", "1MB"), ("rate", "200")]), unchecked);
        assert_eq!(verify(&[("verify", "header")]), unchecked);
        assert_eq!(verify(&[("rate", "max")]), unchecked);
        assert_eq!(verify(&[("rate", "max"), ("payload", "16B")]), (Verify::Header, true), "there is no body");
    }

    #[test]
    fn what_is_used_is_looked_at_once_a_second_and_in_short_windows_as_often_as_the_record_has_slices() {
        let slice_ms = |length: &str| {
            let settings = Settings::from([("duration".to_owned(), key("duration").unwrap().read(length).unwrap())]);
            Workload::resolve(&with_defaults(settings)).unwrap().usage_slice_ns() / 1_000_000
        };
        assert_eq!(["500ms", "4s", "5s", "60s", "600m"].map(slice_ms), [100, 200, 1_000, 1_000, 10_000]);
    }

    #[test]
    fn the_documentation_lists_every_key() {
        let page = include_str!("../../../docs/study-file.md");
        for key in KEYS {
            let default = key.default.map_or(String::new(), |default| format!("`{default}`"));
            let row = format!("| `{}` | {default} | {} |", key.name, key.doc);
            assert!(page.contains(&row), "docs/study-file.md lacks: {row}");
        }
        assert!(crate::claim::Figure::ALL.iter().all(|figure| page.contains(&format!("`{}`", figure.word()))));
    }

    #[test]
    fn contradictions_are_all_reported() {
        let mut settings = Settings::new();
        for (name, value) in [
            ("pairs", "2"),
            ("publishers", "3"),
            ("duration", "1s"),
            ("count", "5"),
            ("rate", "max"),
            ("arrival", "poisson"),
        ] {
            settings.insert(name.into(), key(name).unwrap().read(value).unwrap());
        }
        let errors = Workload::resolve(&with_defaults(settings)).unwrap_err();
        assert_eq!(errors.len(), 3, "{errors:?}");
    }
}
