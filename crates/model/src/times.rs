//! The measured times of messages. Each is a line of one table that recorder, agent protocol and
//! run record share: a new time needs its name, its name in a record, and the role that measures it
//! here, and nothing else.

use crate::role::Role;
use pubmark_stats::{Histogram, HistogramError, Summary};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Number of measured times.
pub const TIMES: usize = TimeFigures::<()>::COUNT;

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident = $summary:literal by $role:ident, one way $one_way:literal;)+) => {
        /// A value for each measured time: a histogram, its text, its summary.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct TimeFigures<T> {
            $($(#[$doc])* pub $name: T),+
        }

        impl TimeFigures<()> {
            const COUNT: usize = [$($summary),+].len();

            /// The role of the clients that measure each time.
            pub const BY: TimeFigures<Role> = TimeFigures { $($name: Role::$role),+ };

            /// True for each time that begins at a sender and ends at a receiver, which may have
            /// different clocks.
            pub const ONE_WAY: TimeFigures<bool> =
                TimeFigures { $($name: $one_way),+ };

            /// The name of each time.
            pub const NAMES: TimeFigures<&'static str> = TimeFigures { $($name: stringify!($name)),+ };
        }

        impl<T> TimeFigures<T> {
            /// Applies a function to each value.
            pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> TimeFigures<U> {
                TimeFigures { $($name: make(self.$name)),+ }
            }

            /// Pairs the values of two of them.
            pub fn zip<U>(self, other: TimeFigures<U>) -> TimeFigures<(T, U)> {
                TimeFigures { $($name: (self.$name, other.$name)),+ }
            }

            /// Returns a reference to each value.
            pub fn as_ref(&self) -> TimeFigures<&T> {
                TimeFigures { $($name: &self.$name),+ }
            }

            /// Returns a mutable reference to each value.
            pub fn as_mut(&mut self) -> TimeFigures<&mut T> {
                TimeFigures { $($name: &mut self.$name),+ }
            }

            /// Returns all values, in the order of the table.
            #[inline]
            pub fn into_array(self) -> [T; TIMES] {
                [$(self.$name),+]
            }
        }

        /// Form of a record: fields beside its others, with their unit.
        #[derive(Serialize, Deserialize)]
        struct InNs<T> {
            $(#[serde(rename = $summary)] $name: T),+
        }

        impl<T> From<TimeFigures<T>> for InNs<T> {
            fn from(times: TimeFigures<T>) -> InNs<T> {
                InNs { $($name: times.$name),+ }
            }
        }

        impl<T> From<InNs<T>> for TimeFigures<T> {
            fn from(times: InNs<T>) -> TimeFigures<T> {
                TimeFigures { $($name: times.$name),+ }
            }
        }
    };
}

times! {
    /// The headline: from the due time to the arrival (for a request, of the reply), less the
    /// generator delay. For messages under 32 bytes, which cannot carry their ready time, and in
    /// records of schema 1, the generator delay is included.
    latency = "latency_ns" by Subscriber, one way true;
    /// From the due time to the arrival, including the generator delay.
    intended_latency = "intended_latency_ns" by Subscriber, one way true;
    /// From the actual send time to the arrival.
    service_latency = "service_latency_ns" by Subscriber, one way true;
    /// From the due time to the actual send time.
    send_lag = "send_lag_ns" by Publisher, one way false;
    /// The generator delay, which is a part of the send lag: from the ready time (the later of the
    /// due time and the end of the previous send) to the beginning of this send.
    own_lag = "own_lag_ns" by Publisher, one way false;
    /// Time for which messages can have waited for the busy receiving loop: from when it last
    /// listened with nothing to do until a message's arrival time was taken. An upper bound.
    receive_lag = "receive_lag_ns" by Subscriber, one way false;
    /// From the due time until the server's acknowledgement reached the publisher, less the generator
    /// delay. Null where nothing is acknowledged.
    ack_latency = "ack_latency_ns" by Publisher, one way false;
    /// From a requester's send to the request's arrival at the replier. Null if repliers do not
    /// report their times, as for the next two.
    request_latency = "request_latency_ns" by Subscriber, one way true;
    /// From a replier's send to the answer's arrival at the requester.
    reply_latency = "reply_latency_ns" by Subscriber, one way true;
    /// The replier's own time, from the request's arrival until the answer was sent. Together with
    /// the two before it, it is the service latency.
    replier_time = "replier_time_ns" by Subscriber, one way false;
}

impl<'a, T> TimeFigures<Vec<&'a T>> {
    /// Collects the values of several of them, by time.
    pub fn of_each(several: impl Iterator<Item = &'a TimeFigures<T>>) -> TimeFigures<Vec<&'a T>>
    where
        T: 'a,
    {
        let mut lists = TimeFigures::BY.map(|_| Vec::new());
        for one in several {
            lists.as_mut().zip(one.as_ref()).into_array().into_iter().for_each(|(list, item)| list.push(item));
        }
        lists
    }
}

impl<T> TimeFigures<Option<T>> {
    /// Returns `None` for each time.
    pub fn none() -> TimeFigures<Option<T>> {
        TimeFigures::BY.map(|_| None)
    }
}

impl TimeFigures<Option<Histogram>> {
    /// Returns an empty histogram for each time that clients of this role measure.
    pub fn of(role: Role) -> TimeFigures<Option<Histogram>> {
        TimeFigures::BY.map(|by| (by == role).then(Histogram::latency))
    }

    /// Adds the measurements of others.
    ///
    /// # Errors
    /// Those of [`Histogram::merge`]; histograms before the error are added.
    pub fn add(&mut self, others: &TimeFigures<Option<Histogram>>) -> Result<(), HistogramError> {
        for (mine, theirs) in self.as_mut().zip(others.as_ref()).into_array() {
            match (mine, theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => mine.merge(theirs)?,
                (mine, theirs) => mine.clone_from(theirs),
            }
        }
        Ok(())
    }

    /// Encodes the histograms that are not empty.
    pub fn encoded(&self) -> TimeFigures<Option<String>> {
        self.as_ref().map(|histogram| histogram.as_ref().filter(|all| !all.is_empty()).map(Histogram::encode))
    }

    /// Returns the summaries of the histograms that are not empty.
    pub fn summaries(&self) -> TimeFigures<Option<Summary>> {
        self.as_ref().map(|histogram| histogram.as_ref().and_then(Histogram::summary))
    }
}

/// Serializes summaries as fields of a record: `latency_ns` and so on.
pub mod in_ns {
    use super::{Deserialize, Deserializer, InNs, Serialize, Serializer, Summary, TimeFigures};

    /// Serializes them.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(times: &TimeFigures<Option<Summary>>, to: S) -> Result<S::Ok, S::Error> {
        InNs::from(times.as_ref()).serialize(to)
    }

    /// Deserializes them; an absent field is `None`.
    ///
    /// # Errors
    /// A summary is invalid.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TimeFigures<Option<Summary>>, D::Error> {
        InNs::deserialize(from).map(TimeFigures::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[u64]) -> Option<Histogram> {
        let mut histogram = Histogram::latency();
        values.iter().for_each(|value| histogram.record(*value));
        Some(histogram)
    }

    #[test]
    fn each_has_its_own_name_everywhere() {
        #[derive(Serialize, Deserialize, PartialEq, Debug)]
        struct Holder {
            #[serde(flatten, with = "in_ns")]
            times: TimeFigures<Option<Summary>>,
        }
        let all = TimeFigures { latency: histogram(&[5]), own_lag: histogram(&[7, 8]), ..TimeFigures::none() };
        let texts = serde_json::to_value(all.encoded()).unwrap();
        let record = serde_json::to_value(Holder { times: all.summaries() }).unwrap();
        for name in TimeFigures::NAMES.into_array() {
            let there = ["latency", "own_lag"].contains(&name);
            assert_eq!((texts[name].is_string(), record[format!("{name}_ns")].is_object()), (there, there), "{name}");
        }
        assert_eq!(record["own_lag_ns"]["count"], 2);
        assert_eq!(serde_json::from_value::<Holder>(record).unwrap(), Holder { times: all.summaries() });
        let none: TimeFigures<Option<String>> = serde_json::from_str("{}").unwrap();
        assert_eq!(none, TimeFigures::none(), "records of before do not have all of them");
    }

    #[test]
    fn histograms_are_added_each_to_its_own() {
        let mut all = TimeFigures { latency: histogram(&[5]), ..TimeFigures::of(Role::Publisher) };
        all.add(&TimeFigures { latency: histogram(&[6]), receive_lag: histogram(&[1]), ..TimeFigures::none() })
            .unwrap();
        let counts = all.as_ref().map(|one| one.as_ref().map(Histogram::count));
        let wanted = TimeFigures {
            latency: Some(2),
            receive_lag: Some(1),
            send_lag: Some(0),
            own_lag: Some(0),
            ack_latency: Some(0),
            ..TimeFigures::none()
        };
        assert_eq!(counts, wanted);
        assert_eq!(all.encoded().send_lag, None, "what is empty is not told");
        let coarse = TimeFigures { latency: Some(Histogram::coarse()), ..TimeFigures::none() };
        assert!(all.add(&coarse).is_err());
    }
}
