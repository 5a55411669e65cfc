//! Every key that a study file, a flag or an axis can set, in one table.

mod kinds;

use crate::churn::Churn;
use crate::diagnostic::suggestion;
use crate::draw::Choice;
use crate::fault::Script;
use crate::header::MAX_SEQUENCE;
use crate::hosts::Ends;
use crate::link::Side;
use crate::message_headers::MessageHeaders;
use crate::payload::Payload;
use crate::payload_content::PayloadContent;
use crate::power::Power;
use crate::promise::Promise;
use crate::topic_set::{MOST_TOPICS, Subscriptions};
use crate::tuning::Use;
use crate::units::{MICROSECOND, MILLISECOND, SECOND};
use crate::value::ValueError;
use crate::watch::Watch;
use crate::workload::{self, Arrival, Pacing, Pattern, Pin, Rate, Receive, Transport, Verify};
pub use kinds::FreshServer;
pub use kinds::RunSequence;
pub use kinds::StopRule;
pub use kinds::WindowLength;
pub use kinds::as_typed;
use kinds::{Bytes, Count, Cpus, Kind, LinkBandwidth, LinkDelay, LinkLoss, Percent, Slot};
pub(crate) use kinds::{Speed, Text, Time};
use serde_json::Value;

/// The most clients of a role.
pub const MOST_CLIENTS: u64 = 1_000_000;

/// The most agents of a side.
pub const MOST_AGENTS: u32 = 256;

/// Default window if neither `duration` nor `count` is set.
pub(crate) const WINDOW: Time = Time(5 * SECOND);

type Clients = Count<u32, 1, MOST_CLIENTS>;

/// Reasons why a text is not a value of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The value is invalid.
    #[error("{key}: {source}")]
    Value {
        /// The key.
        key: &'static str,
        /// The error of the value.
        source: ValueError,
    },
    /// The key is unknown.
    #[error("there is no key `{name}`: {}", suggestion(name, KEYS.iter().map(|key| key.name)))]
    Key {
        /// The key as typed.
        name: String,
    },
}

/// Section of a study file that a key belongs to.
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
    /// Returns the section's name in the file.
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
    /// Its section.
    pub section: Section,
    /// Its meaning, with unit and range.
    pub doc: &'static str,
    /// True if a value may contain commas.
    pub(crate) has_commas: bool,
    read: fn(&str) -> Result<Value, ValueError>,
    recorded: fn(&str) -> Result<Value, ValueError>,
    slot: fn(&Settings) -> &dyn Slot,
    slot_mut: fn(&mut Settings) -> &mut dyn Slot,
}

/// Returns a field's name in files: `use` is a keyword of Rust.
const fn in_files(field: &str) -> &str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Expands the table of keys to a struct of the keys that a study sets, as typed and each with its
/// type, and a function for each key that has a default.
macro_rules! keys {
    ($([$section:ident] $(#[doc = $doc:literal] $name:ident: $kind:ty $(= $default:expr)?;)+)+) => {
        /// The keys that are set, each `None` if it is not.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings {
            $($(#[doc = $doc] pub(crate) $name: Option<$kind>,)+)+
        }

        impl Settings {
            $($($(
                #[doc = $doc]
                pub(crate) fn $name(&self) -> $kind {
                    self.$name.clone().unwrap_or_else(|| $default)
                }
            )?)+)+

            /// Fills in the defaults of the keys that were not set.
            #[must_use]
            pub fn with_defaults(mut self) -> Settings {
                $($($(
                    if self.$name.is_none() {
                        self.$name = Some($default);
                    }
                )?)+)+
                self
            }

            /// Returns the keys of `other`, and those that only `self` sets.
            #[must_use]
            pub(crate) fn overridden_by(self, other: Settings) -> Settings {
                Settings { $($($name: other.$name.or(self.$name),)+)+ }
            }
        }

        /// All keys.
        pub const KEYS: &[Key] = &[
            $($(Key {
                name: in_files(stringify!($name)),
                section: Section::$section,
                doc: $doc.trim_ascii(),
                has_commas: <$kind>::HAS_COMMAS,
                read: |text| <$kind>::read(text).map(|found| found.value()),
                recorded: |text| <$kind>::read_recorded(text).map(|found| found.value()),
                slot: |settings| &settings.$name,
                slot_mut: |settings| &mut settings.$name,
            },)+)+
        ];
    };
}

keys! {
    [Workload]
    /// who sends to whom: pairs, fan-out, fan-in, request-reply, fan-out-echo, pipeline or tree
    pattern: Pattern = Pattern::Pairs;
    /// libraries only: inproc, ipc, tcp or udp
    transport: Transport;
    /// number of publishers, 1 to 1,000,000 (1)
    publishers: Clients;
    /// number of subscribers, 1 to 1,000,000 (1)
    subscribers: Clients;
    /// pairs of one publisher and one subscriber, 1 to 1,000,000 (1)
    pairs: Clients;
    /// pattern tree: devices per subsystem, 1 to 1,000,000 (100)
    tree_devices: Count<u32, 1, MOST_CLIENTS>;
    /// pattern tree: parameters per device, which are topics used in turn, 1 to 1,000,000 (10)
    tree_parameters: Count<u32, 1, MOST_CLIENTS>;
    /// messages/s per publisher, max, or a rate over time
    rate: Rate = Rate::per_kilosecond(1_000_000);
    /// trace to replay in place of `rate`: a path from the study's folder
    trace: Text;
    /// speed of the replay, 0.001 to 1,000 (1)
    trace_speed: Speed;
    /// flow or topic of the trace to replay (all)
    trace_flow: Text;
    /// uniform, poisson, burst:K or on-off:T/T
    arrival: Arrival = Arrival::Uniform;
    /// when publishers begin, from the start of the window (with the warm-up)
    start: Time;
    /// when publishers stop, from the start of the window (at its end)
    end: Time;
    /// streams: when subscribers connect, from the start of the window; they read from the beginning (before publishers)
    subscribers_start: Time;
    /// messages/s that each subscriber takes at most: a number, max, or a rate over time
    consume: Rate = workload::default_consume();
    /// request-reply at a broker: requests of each client that wait for an answer, 1 to 1,000,000
    outstanding: Count<u32, 1, MOST_CLIENTS> = Count(workload::ONE_REQUEST);
    /// request-reply: longest wait for an answer, `drain` at most; later answers are counted as timed out (`drain`)
    timeout: Time<{ MILLISECOND }>;
    /// brokers: further clients/s that connect, subscribe and disconnect: 50/s, a rate over time, or none
    churn: Churn = Churn::NONE;
    /// MQTT: each publisher leaves a last will with the server, which its subscribers get if it ends without a goodbye
    last_will: bool = false;
    /// message size with its 16-byte header, 16B to 1GiB, or sizes that vary
    payload: Payload = Payload::Constant(1_024);
    /// body of each message: random (bytes that nothing compresses), zeros, or zeros P% (of each 100 bytes)
    payload_content: PayloadContent = PayloadContent::default();
    /// file with one message per line, sent in turn behind a header of 36 bytes: a path from the study's folder
    payload_file: Text;
    /// text of each message behind a header of 36 bytes, with `{sequence}`, `{time}` or `{key}`
    payload_template: Text;
    /// MQTT 5, NATS and AMQP: headers of each message, `name: value, name: value` or `3 x 20B`
    headers: MessageHeaders;
    /// brokers: number of topics, from which that of each message is drawn, 1 to 100,000; each pair has its own
    topics: Count<u32, 1, { MOST_TOPICS as u64 }>;
    /// draw of the topic: uniform, or zipf S, where topic k has a share proportional to 1/(k+1)^S (uniform)
    topic_choice: Choice;
    /// subscriptions to topics: wildcard (to all), or each (by name, shared out among the subscribers) (wildcard)
    subscriptions: Subscriptions;
    /// quality of service: 0, 1 or 2
    qos: Count<u8, 0, 2> = Count(0);
    /// keep subscriptions and queued messages across disconnects and server restarts
    durable: bool = false;
    /// start servers with TLS, and connect over it
    tls: bool = false;
    /// time from the start to the measured window
    warmup: Time = Time(SECOND);
    /// longest warm-up, 100ms or more: a pilot run finds when the figures are steady, after `warmup` at the earliest
    warmup_max: Time<{ 100 * MILLISECOND }>;
    /// length of the measured window (5s)
    duration: Time;
    /// messages per publisher in the window, in place of `duration`
    count: Count<u64, 1, { MAX_SEQUENCE as u64 }>;
    /// longest wait for messages after the last send
    drain: Time = Time(10 * SECOND);
    /// time limit for clients to connect and to hear each other
    connect_timeout: Time = Time(30 * SECOND);
    /// brokers: clients reconnect if the server is silent for this long, 1s or more, and owes an acknowledgement or a message
    client_timeout: Time<{ SECOND }>;
    /// connections/s to a broker, 1 to 100,000
    connect_rate: Count<u32, 1, 100_000> = Count(workload::default_connect_rate());
    /// how publishers wait: hybrid (sleep, then poll the clock), sleep, or spin (uses a core)
    pacing: Pacing = Pacing::Hybrid;
    /// shortest time between two wake-ups of a publisher
    pacing_quantum: Time = Time(50 * MICROSECOND);
    /// how subscribers wait: block (sleep until a message comes), or spin (uses a core)
    receive: Receive = workload::default_receive();
    /// together (both ends of a stream on one host), server-apart (the same, with the server on another host) or apart (together, if the roles of the hosts allow it)
    placement: Ends;
    /// client processes per side, 1 to 256 (from the system file)
    agents: Count<u32, 1, { MOST_AGENTS as u64 }>;
    /// header, or full (CRC-32C of the body) (full, if it costs under 2 % of an event loop)
    verify: Verify;
    /// CPU pinning: none, roles (publishers and subscribers on separate CPUs, isolated ones if there are two), or sets: `publishers 2, subscribers 3, server 0-1`
    pin: Pin = workload::default_pin();
    /// processes of a server that already runs: `process NAME`, `pid N` or `container NAME`; add `on HOST` if they run on another host than the server
    watch: Watch;
    /// p99 of the generator delay above which a run is generator-saturated
    max_send_lag: Time = Time(workload::default_max_send_lag_ns());
    /// latency above which a delivered message counts as late
    late_after: Time = Time(workload::default_late_after_ns());

    [Limits]
    /// CPUs that the server may use
    cpus: Cpus;
    /// memory that the server may use
    memory: Bytes<{ 1 << 20 }, { 1 << 50 }>;

    [Faults]
    /// what happens when, from the start of the window: `stop server at 5s for 1s`, or several with commas
    fault: Script = Script::default();
    /// clients that connect over the link: subscribers, publishers or both (subscribers)
    link: Side;
    /// what a server's folder lies on while its power is cut: disk (ext4), xfs, ledger or ledger-strict (disk)
    power: Power;
    /// mean time to a failure of the link, exponential, 100ms or more
    mttf: Time<{ 100 * MILLISECOND }>;
    /// mean time to repair of the link, exponential, 10ms or more
    mttr: Time<{ 10 * MILLISECOND }>;
    /// one-way delay of the link in each direction: whole milliseconds
    link_delay: LinkDelay;
    /// random deviation from `link_delay`, uniform, in order: whole milliseconds, `link_delay` at most
    link_jitter: LinkDelay;
    /// bytes/s of each connection in each direction: whole kB
    link_bandwidth: LinkBandwidth;
    /// `0%` only: TCP connections lose nothing
    link_loss: LinkLoss;

    [Settings]
    /// options of the system: stock (vendor defaults) or tuned (recommended settings) (tuned)
    r#use: Use;

    [Run]
    /// runs of each cell, 1 to 1,000
    repeats: Count<u32, 1, 1_000> = Count(3);
    /// end of the study: repeats (after that many) or decided (when each question is decided or `--budget` is spent; `--budget` sets it) (repeats)
    stop: StopRule;
    /// whole (`duration`) or asked (as many messages as the requested figures need, 2 s at least, `duration` at most; `--budget` sets it unless the study says whole) (whole)
    windows: WindowLength;
    /// interleaved (systems alternate, seeded) or sequential
    order: RunSequence = RunSequence::Interleaved;
    /// systems tie if they are shown to differ by less than this, 0.1% to 50%
    tie: Percent = Percent(5.0);
    /// leave systems out of rankings whose runs here broke it: survives slow consumer, survives cut link, survives freeze, survives full disk, survives kill or survives power cut
    promise: Promise;
    /// lifetime of a server: run (one run) or cell (consecutive runs that need the same server, while they are ok) (run)
    fresh: FreshServer;
    /// keep each CPU awake during a run, with a spinner of the idle class
    awake: bool = false;
    /// after the runs, search how many times its load each cell sustains, up to 10 times (false)
    headroom: bool;
    /// seed of the run order and of Poisson gaps
    seed: Count<u64, 0, { u64::MAX }> = Count(1);
}

/// Finds a key by name (`pacing_quantum`, or `pacing-quantum` as flags write it).
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name || key.name == name.replace('-', "_"))
}

impl Key {
    /// Reads a value into its canonical form: sizes and counts are numbers, times and words are
    /// strings.
    pub fn read(&self, text: &str) -> Result<Value, SettingError> {
        (self.read)(text.trim()).map_err(|source| SettingError::Value { key: self.name, source })
    }

    /// Reads a value of the study of a results folder, from any version, into its canonical form:
    /// values that only a later pubmark knows are kept if possible.
    pub(crate) fn read_recorded(&self, text: &str) -> Result<Value, SettingError> {
        (self.recorded)(text.trim()).map_err(|source| SettingError::Value { key: self.name, source })
    }

    /// Returns its default as it would be typed.
    pub fn default(&self) -> Option<String> {
        (self.slot)(&Settings::default().with_defaults()).text()
    }

    /// Sets it.
    pub(crate) fn set(&self, settings: &mut Settings, text: &str) -> Result<(), SettingError> {
        let set = (self.slot_mut)(settings).set(text.trim());
        set.map_err(|source| SettingError::Value { key: self.name, source })
    }

    /// Sets it to a value of the study of a results folder.
    pub(crate) fn set_recorded(&self, settings: &mut Settings, text: &str) -> Result<(), SettingError> {
        let set = (self.slot_mut)(settings).set_recorded(text.trim());
        set.map_err(|source| SettingError::Value { key: self.name, source })
    }

    /// Returns its value, canonical.
    pub(crate) fn value(&self, settings: &Settings) -> Option<Value> {
        (self.slot)(settings).value()
    }

    /// Unsets it, and returns its previous value.
    pub(crate) fn take(&self, settings: &mut Settings) -> Option<Value> {
        let slot = (self.slot_mut)(settings);
        let value = slot.value();
        slot.clear();
        value
    }
}

impl Settings {
    /// Sets keys from these names and texts.
    pub fn of<N: AsRef<str>, T: AsRef<str>>(texts: impl IntoIterator<Item = (N, T)>) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for (name, text) in texts {
            settings.set(name.as_ref(), text.as_ref())?;
        }
        Ok(settings)
    }

    /// Sets a key by its name.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let key = key(name).ok_or_else(|| SettingError::Key { name: name.to_owned() })?;
        key.set(self, text)
    }

    /// Returns the value of a key, canonical, by its name.
    pub fn get(&self, name: &str) -> Option<Value> {
        key(name)?.value(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn every_default_is_legal_and_resolves() {
        let defaults = Settings::default().with_defaults();
        for key in KEYS {
            if let Some(default) = key.default() {
                assert_eq!(key.read(&default).ok(), key.value(&defaults), "{}", key.name);
            }
        }
        let workload = Workload::resolve(&Settings::default()).unwrap();
        assert_eq!(Workload::resolve(&defaults).unwrap(), workload);
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
        assert!(
            said("placement", "spread")
                .to_string()
                .ends_with("did you mean `together`? Pairs are spread over all hosts of clients")
        );
        assert!(said("placement", "round-trip").to_string().contains("did you mean pattern = \"request-reply\""));
        assert_eq!(
            said("receive", "blok").to_string(),
            "receive: `blok` is not one of block, spin: did you mean `block`?"
        );
    }

    #[test]
    fn bodies_are_checked_where_that_costs_next_to_nothing_or_somebody_asks() {
        let verify = |settings: &[(&str, &str)]| {
            let workload = Workload::of(settings.iter().copied()).unwrap();
            (workload.verify, workload.checks_bodies())
        };
        let (checked, unchecked) = ((Verify::Full, true), (Verify::Header, false));
        assert_eq!(verify(&[]), checked);
        // 20 ns and 0.1 ns a byte: 122.4 ns for 1 KiB, so 163,398 messages take 2 % of a second.
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
        let slice_ms = |length: &str| Workload::of([("duration", length)]).unwrap().usage_slice_ns() / 1_000_000;
        assert_eq!(["500ms", "4s", "5s", "60s", "600m"].map(slice_ms), [100, 200, 1_000, 1_000, 10_000]);
    }

    #[test]
    fn the_documentation_lists_every_key() {
        let page = include_str!("../../../docs/study-file.md");
        for key in KEYS {
            let default = key.default().map_or(String::new(), |default| format!("`{default}`"));
            let row = format!("| `{}` | {default} | {} |", key.name, key.doc);
            assert!(page.contains(&row), "docs/study-file.md lacks: {row}");
        }
    }

    #[test]
    fn contradictions_are_all_reported() {
        let errors = Workload::of([
            ("pairs", "2"),
            ("publishers", "3"),
            ("duration", "1s"),
            ("count", "5"),
            ("rate", "max"),
            ("arrival", "poisson"),
        ]);
        let errors = errors.unwrap_err().0;
        assert_eq!(errors.len(), 3, "{errors:?}");
    }

    #[test]
    fn only_a_tree_has_devices_and_parameters() {
        let sizes = |more: &[(&str, &str)]| {
            Workload::of(more.iter().copied()).map(|workload| (workload.tree_devices, workload.tree_parameters))
        };
        assert_eq!(sizes(&[("pattern", "tree")]), Ok((100, 10)));
        assert_eq!(sizes(&[("pattern", "tree"), ("tree_devices", "7"), ("tree_parameters", "1")]), Ok((7, 1)));
        let errors = sizes(&[("tree_devices", "7"), ("tree_parameters", "1")]).unwrap_err().0;
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(key("tree_parameters").unwrap().read("0").is_err());
    }
}
