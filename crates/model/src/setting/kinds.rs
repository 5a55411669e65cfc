//! The types of keys' values: parsing and formatting.

use crate::churn::Churn;
use crate::draw::Choice;
use crate::fault::Script;
use crate::hosts::Ends;
use crate::link::Side;
use crate::message_headers::MessageHeaders;
use crate::payload::Payload;
use crate::payload_content::PayloadContent;
use crate::power::Power;
use crate::promise::Promise;
use crate::topic_set::Subscriptions;
use crate::tuning::Use;
use crate::units::{
    MILLISECOND, Ns, SECOND, format_size, format_time, parse_size, parse_thousandths, parse_time, thousandths,
};
use crate::value::ValueError;
use crate::watch::Watch;
use crate::words::words;
use crate::workload::{Arrival, Pacing, Pattern, Pin, Rate, Receive, Transport, Verify};
use serde_json::Value;

/// A type of values.
pub(crate) trait Kind: Sized {
    /// True if a value may contain commas; an invalid value is then not read as a list.
    const HAS_COMMAS: bool = false;

    /// Parses a value from a file or a flag.
    fn read(text: &str) -> Result<Self, ValueError>;

    /// Parses a value of the study of a results folder, from any version.
    fn read_recorded(text: &str) -> Result<Self, ValueError> {
        Self::read(text)
    }

    /// Returns the canonical form, used in records and resolved studies: sizes and counts are
    /// numbers, times and words are strings.
    fn value(&self) -> Value;

    /// Returns the value as a user would type it.
    fn text(&self) -> String {
        as_typed(&self.value())
    }
}

/// Formats a canonical value as a text that parses back to it.
pub fn as_typed(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Storage of a key's value, whatever its type.
pub(crate) trait Slot {
    fn set(&mut self, text: &str) -> Result<(), ValueError>;
    fn set_recorded(&mut self, text: &str) -> Result<(), ValueError>;
    fn clear(&mut self);
    fn value(&self) -> Option<Value>;
    fn text(&self) -> Option<String>;
}

impl<K: Kind> Slot for Option<K> {
    fn set(&mut self, text: &str) -> Result<(), ValueError> {
        *self = Some(K::read(text)?);
        Ok(())
    }

    fn set_recorded(&mut self, text: &str) -> Result<(), ValueError> {
        *self = Some(K::read_recorded(text)?);
        Ok(())
    }

    fn clear(&mut self) {
        *self = None;
    }

    fn value(&self) -> Option<Value> {
        self.as_ref().map(K::value)
    }

    fn text(&self) -> Option<String> {
        self.as_ref().map(K::text)
    }
}

/// A whole number within bounds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count<T, const LEAST: u64, const MOST: u64>(pub T);

impl<T: TryFrom<u64> + Copy + Into<u64>, const LEAST: u64, const MOST: u64> Kind for Count<T, LEAST, MOST> {
    fn read(text: &str) -> Result<Self, ValueError> {
        let number = text.replace('_', "").parse().ok().filter(|number| (LEAST..=MOST).contains(number));
        let number = number.and_then(|number: u64| T::try_from(number).ok());
        number.map(Count).ok_or_else(|| ValueError::Count { text: text.to_owned(), least: LEAST, most: MOST })
    }

    fn value(&self) -> Value {
        self.0.into().into()
    }
}

/// A size within bounds, both included, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes<const LEAST: u64, const MOST: u64>(pub u64);

impl<const LEAST: u64, const MOST: u64> Kind for Bytes<LEAST, MOST> {
    fn read(text: &str) -> Result<Self, ValueError> {
        let bytes = parse_size(text)?;
        if !(LEAST..=MOST).contains(&bytes) {
            return Err(ValueError::Size { text: text.to_owned(), least: LEAST, most: MOST });
        }
        Ok(Bytes(bytes))
    }

    fn value(&self) -> Value {
        self.0.into()
    }

    fn text(&self) -> String {
        format_size(self.0)
    }
}

impl Kind for Payload {
    fn read(text: &str) -> Result<Self, ValueError> {
        Ok(Payload::parse(text)?)
    }

    fn value(&self) -> Value {
        match self {
            Payload::Constant(bytes) => (*bytes).into(),
            sizes => sizes.to_string().into(),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A time of a least length, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time<const LEAST: Ns = 0>(pub Ns);

impl<const LEAST: Ns> Kind for Time<LEAST> {
    fn read(text: &str) -> Result<Self, ValueError> {
        let ns = parse_time(text)?;
        if ns < LEAST {
            return Err(ValueError::Short { text: text.to_owned(), least_ns: LEAST });
        }
        Ok(Time(ns))
    }

    fn value(&self) -> Value {
        format_time(self.0).into()
    }
}

/// Delay of a link's proxy, ns: whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkDelay(pub Ns);

impl Kind for LinkDelay {
    fn read(text: &str) -> Result<Self, ValueError> {
        let ns = parse_time(text)?;
        if ns % MILLISECOND != 0 || ns > 60 * SECOND {
            return Err(ValueError::Delay(text.to_owned()));
        }
        Ok(LinkDelay(ns))
    }

    fn value(&self) -> Value {
        format_time(self.0).into()
    }
}

/// Loss of a link: always none. The key exists so that a request for more gets an explanation,
/// instead of a run without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkLoss;

impl Kind for LinkLoss {
    fn read(text: &str) -> Result<Self, ValueError> {
        match text.trim() {
            "0" | "0%" => Ok(LinkLoss),
            _ => Err(ValueError::Loss(text.to_owned())),
        }
    }

    fn value(&self) -> Value {
        "0%".into()
    }
}

/// Bandwidth of a link's proxy, bytes a second: whole kilobytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkBandwidth(pub u64);

impl Kind for LinkBandwidth {
    fn read(text: &str) -> Result<Self, ValueError> {
        let bytes = parse_size(text)?;
        if bytes % 1_000 != 0 || !(1_000..=1_000_000_000_000).contains(&bytes) {
            return Err(ValueError::Bandwidth(text.to_owned()));
        }
        Ok(LinkBandwidth(bytes))
    }

    fn value(&self) -> Value {
        self.0.into()
    }
}

/// Processors, in thousandths of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cpus {
    pub thousandths: u64,
}

impl Kind for Cpus {
    fn read(text: &str) -> Result<Self, ValueError> {
        let thousandths = parse_thousandths(text).filter(|found| (10..=4_096_000).contains(found));
        thousandths.map(|thousandths| Cpus { thousandths }).ok_or_else(|| ValueError::Cpus(text.to_owned()))
    }

    fn value(&self) -> Value {
        thousandths(self.thousandths)
    }
}

/// A text that is not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text(pub String);

impl Kind for Text {
    const HAS_COMMAS: bool = true;

    fn read(text: &str) -> Result<Self, ValueError> {
        if text.is_empty() { Err(ValueError::NoText) } else { Ok(Text(text.to_owned())) }
    }

    fn value(&self) -> Value {
        self.0.as_str().into()
    }
}

/// A speed, in thousandths of the original one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed(pub u64);

impl Kind for Speed {
    fn read(text: &str) -> Result<Self, ValueError> {
        let speed = parse_thousandths(text).filter(|speed| (1..=1_000_000).contains(speed));
        speed.map(Speed).ok_or_else(|| ValueError::Speed(text.to_owned()))
    }

    fn value(&self) -> Value {
        thousandths(self.0)
    }
}

/// A percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub f64);

impl Kind for Percent {
    fn read(text: &str) -> Result<Self, ValueError> {
        let percent: Option<f64> = text.strip_suffix('%').and_then(|number| number.trim().parse().ok());
        let percent = percent.filter(|percent| (0.1..=50.0).contains(percent));
        percent.map(Percent).ok_or_else(|| ValueError::Share(text.to_owned()))
    }

    fn value(&self) -> Value {
        format!("{}%", self.0).into()
    }
}

impl Kind for bool {
    fn read(text: &str) -> Result<Self, ValueError> {
        text.parse().map_err(|_| ValueError::Flag(text.to_owned()))
    }

    fn value(&self) -> Value {
        (*self).into()
    }
}

impl Kind for Rate {
    fn read(text: &str) -> Result<Self, ValueError> {
        Ok(Rate::parse(text)?)
    }

    fn value(&self) -> Value {
        self.clone().into()
    }
}

impl Kind for Churn {
    fn read(text: &str) -> Result<Self, ValueError> {
        Ok(Churn::parse(text)?)
    }

    fn value(&self) -> Value {
        self.to_string().into()
    }
}

impl Kind for Script {
    const HAS_COMMAS: bool = true;

    fn read(text: &str) -> Result<Self, ValueError> {
        Ok(Script::parse(text)?)
    }

    fn read_recorded(text: &str) -> Result<Self, ValueError> {
        Ok(Script::recorded(text)?)
    }

    fn value(&self) -> Value {
        self.to_string().into()
    }
}

impl Kind for Ends {
    fn read(text: &str) -> Result<Self, ValueError> {
        match text {
            "spread" => Err(ValueError::Spread),
            "round-trip" => Err(ValueError::RoundTrip),
            _ => Ok(Ends::parse(text)?),
        }
    }

    fn value(&self) -> Value {
        self.to_string().into()
    }
}

words! {
    /// Order of a study's runs.
    RunSequence {
        /// Systems alternate within a repeat, seeded.
        Interleaved = "interleaved",
        /// Cell after cell.
        Sequential = "sequential",
    }
}

words! {
    /// Rule that ends a study.
    StopRule {
        /// After a fixed number of repeats.
        Repeats = "repeats",
        /// When the study's questions are decided, or the time is over.
        Decided = "decided",
    }
}

words! {
    /// Lifetime of a server that is started for runs.
    FreshServer {
        /// For one run.
        Run = "run",
        /// For consecutive runs with the same server need, whatever their cells.
        Cell = "cell",
    }
}

words! {
    /// Rule for the length of windows.
    WindowLength {
        /// The length given in the study.
        Whole = "whole",
        /// As long as the requested figures need.
        Asked = "asked",
    }
}

/// Implements [`Kind`] for types that parse a text and format it with [`std::fmt::Display`].
macro_rules! written {
    ($($kind:ty $(: $has_commas:ident)?),+) => {
        $(impl Kind for $kind {
            $(const $has_commas: bool = true;)?

            fn read(text: &str) -> Result<Self, ValueError> {
                Ok(Self::parse(text)?)
            }

            fn value(&self) -> Value {
                self.to_string().into()
            }
        })+
    };
}

written!(Pattern, Transport, Arrival, Choice, Subscriptions, PayloadContent, MessageHeaders: HAS_COMMAS, Pacing, Receive, Verify, Pin: HAS_COMMAS, Side, Use, RunSequence, StopRule, WindowLength, FreshServer, Power, Promise, Watch: HAS_COMMAS);
