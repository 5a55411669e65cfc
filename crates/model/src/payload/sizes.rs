//! Sizes of messages as classes, and the size of each message.

use super::bodies::PayloadBodies;
use crate::header::{FREE_LEN, Header, SENT_LEN};
use crate::payload_content::PayloadContent;
use crate::profile::trace::TraceRate;
use crate::weights::Weights;
use pubmark_stats::Random;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Most classes.
const CLASSES_MAX: usize = 4_096;
/// Range of a message, bytes.
const RANGE: std::ops::RangeInclusive<u64> = crate::header::MIN_LEN as u64..=1 << 30;
/// Increment of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sizes that are equally likely, and how often one of them is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct SizeClass {
    /// Share of the messages, relative to the other classes.
    pub weight: u64,
    /// Smallest size, bytes.
    pub least: u64,
    /// Largest size, bytes.
    pub most: u64,
}

impl From<(u64, u64, u64)> for SizeClass {
    fn from((weight, least, most): (u64, u64, u64)) -> SizeClass {
        SizeClass { weight, least, most }
    }
}

impl From<SizeClass> for (u64, u64, u64) {
    fn from(class: SizeClass) -> (u64, u64, u64) {
        (class.weight, class.least, class.most)
    }
}

/// Reasons why classes are no distribution of sizes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// There are no classes, or too many.
    #[error("there are {0} different sizes, and 1 to {CLASSES_MAX} can be used: round them to fewer")]
    Count(usize),
    /// A class is empty, or out of range.
    #[error("the sizes {0} to {1} are not within 16 bytes to 1 GiB, or have no weight")]
    Class(u64, u64),
    /// The weights are too large.
    #[error("the counts add up to more than 4,294,967,296: divide them")]
    Weight,
}

/// A distribution of sizes. Copies share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Told", into = "Told")]
pub struct PayloadSizes(Arc<Distribution>);

#[derive(Debug, PartialEq, Eq)]
struct Distribution {
    text: String,
    classes: Vec<SizeClass>,
    weights: Weights,
}

/// The form in records and between processes.
#[derive(Serialize, Deserialize)]
struct Told {
    text: String,
    #[serde(default)]
    mean_bytes: f64,
    classes: Vec<SizeClass>,
}

impl TryFrom<Told> for PayloadSizes {
    type Error = SizesError;
    fn try_from(told: Told) -> Result<PayloadSizes, SizesError> {
        PayloadSizes::new(told.text, told.classes)
    }
}

impl From<PayloadSizes> for Told {
    fn from(sizes: PayloadSizes) -> Told {
        Told { text: sizes.text().to_owned(), mean_bytes: sizes.mean_bytes(), classes: sizes.classes().to_vec() }
    }
}

impl PayloadSizes {
    /// Makes a distribution of classes; `text` is the expression that users know it by.
    ///
    /// # Errors
    /// If a class is empty or out of range, or if there are too many classes or messages.
    pub fn new(text: String, classes: Vec<SizeClass>) -> Result<PayloadSizes, SizesError> {
        if !(1..=CLASSES_MAX).contains(&classes.len()) {
            return Err(SizesError::Count(classes.len()));
        }
        let is_sound = |class: &&SizeClass| {
            class.weight > 0 && class.least <= class.most && RANGE.contains(&class.least) && RANGE.contains(&class.most)
        };
        if let Some(wrong) = classes.iter().find(|class| !is_sound(class)) {
            return Err(SizesError::Class(wrong.least, wrong.most));
        }
        let weights = Weights::new(classes.iter().map(|class| class.weight)).ok_or(SizesError::Weight)?;
        Ok(PayloadSizes(Arc::new(Distribution { text, classes, weights })))
    }

    /// Returns the expression, such as `uniform 64B to 4KiB`.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns its classes.
    pub fn classes(&self) -> &[SizeClass] {
        &self.0.classes
    }

    /// Returns the smallest size, bytes.
    pub fn least_bytes(&self) -> u64 {
        self.0.classes.iter().map(|class| class.least).min().unwrap_or(*RANGE.start())
    }

    /// Returns the largest size, bytes.
    pub fn most_bytes(&self) -> u64 {
        self.0.classes.iter().map(|class| class.most).max().unwrap_or(*RANGE.start())
    }

    /// Returns the expected size, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let of = |class: &SizeClass| class.weight as f64 * (class.least + class.most) as f64 / 2.0;
        self.0.classes.iter().map(of).sum::<f64>() / self.0.weights.total() as f64
    }

    /// Returns the size that a random number stands for, bytes.
    #[inline]
    pub(super) fn at(&self, random: u64) -> u64 {
        let Distribution { classes, weights, .. } = &*self.0;
        let low = random & 0xffff_ffff;
        let SizeClass { least, most, .. } = classes[weights.at((random >> 32) as u32)];
        least + ((low * (most - least + 1)) >> 32)
    }
}

/// The size of each message of a run: a pure function of its publisher and its number, the same at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageSizes {
    sizes: Sizes,
    /// The body of a message that is too short for a ready time.
    short_body: [u8; FREE_LEN - SENT_LEN],
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sizes {
    Drawn { sizes: PayloadSizes, seed: u64 },
    Trace(Box<TraceRate>),
    Bodies(PayloadBodies),
}

impl MessageSizes {
    /// Makes the sizes of a run with this seed, whose bodies are random.
    pub fn new(sizes: PayloadSizes, seed: u64) -> MessageSizes {
        MessageSizes::of(Sizes::Drawn { sizes, seed })
    }

    /// Makes the sizes of the rows of a trace.
    pub fn of_trace(trace: &TraceRate) -> MessageSizes {
        MessageSizes::of(Sizes::Trace(Box::new(trace.clone())))
    }

    /// Makes the sizes of messages with these bodies.
    pub fn of_bodies(bodies: PayloadBodies) -> MessageSizes {
        MessageSizes::of(Sizes::Bodies(bodies))
    }

    /// Returns the bodies of messages, if they are not a pattern.
    #[inline]
    pub fn bodies(&self) -> Option<&PayloadBodies> {
        if let Sizes::Bodies(bodies) = &self.sizes { Some(bodies) } else { None }
    }

    fn of(sizes: Sizes) -> MessageSizes {
        MessageSizes { sizes, short_body: [0; FREE_LEN - SENT_LEN] }.with_content(PayloadContent::default())
    }

    /// Returns the sizes of messages with this content.
    #[must_use]
    pub fn with_content(mut self, content: PayloadContent) -> MessageSizes {
        self.short_body.copy_from_slice(&content.message(FREE_LEN)[SENT_LEN..]);
        self
    }

    /// Writes the body of a message, in whose place another one was written. Of a pattern only that of a message that
    /// is too short for a ready time differs.
    #[inline]
    pub fn restore_body(&self, header: &Header, message: &mut [u8]) {
        if let Sizes::Bodies(bodies) = &self.sizes {
            return bodies.write(header, message);
        }
        if message.len() < FREE_LEN && message.len() > SENT_LEN {
            let body = &mut message[SENT_LEN..];
            body.copy_from_slice(&self.short_body[..body.len()]);
        }
    }

    /// Returns the size of a message, bytes.
    ///
    /// The publisher has a SplitMix64 whose first state is the second output of one with state `seed` ^ (publisher ×
    /// 2^32); the first output gives the gaps of Poisson arrivals. Its output number `sequence` is the draw.
    #[inline]
    pub fn bytes(&self, publisher: u32, sequence: u32) -> usize {
        let (sizes, seed) = match &self.sizes {
            Sizes::Drawn { sizes, seed } => (sizes, seed),
            Sizes::Trace(trace) => return trace.bytes(publisher, sequence),
            Sizes::Bodies(bodies) => return bodies.message_bytes(sequence),
        };
        let state = Random((seed ^ (u64::from(publisher) << 32)).wrapping_add(GAMMA)).bits();
        let draw = Random(state.wrapping_add(GAMMA.wrapping_mul(u64::from(sequence)))).bits();
        sizes.at(draw) as usize
    }

    /// Returns the sum of the sizes of consecutive messages of a publisher, bytes.
    pub fn sum_bytes(&self, publisher: u32, sequences: std::ops::Range<u64>) -> u64 {
        sequences.map(|sequence| self.bytes(publisher, sequence as u32) as u64).fold(0, u64::saturating_add)
    }
}
