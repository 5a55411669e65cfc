//! A rate that changes over time: a ramp or steps, once or again and again, or a sine.

use crate::units::{MILLISECOND, Ns, SECOND, format_time, parse_thousandths, parse_time};
use std::fmt;
use std::ops::RangeInclusive;

/// Nanoseconds in 1,000 s: rates are stored in messages per 1,000 s, so that 0.001 msg/s is exact.
pub const KILOSECOND: u64 = 1_000_000_000_000;

/// Most rates of a course.
const SEGMENTS_MAX: usize = 6;

/// Highest rate of a course, messages per 1,000 s: up to it, all products below fit 128 bits.
const FASTEST_PER_KS: u64 = 1_000_000_000;

/// Longest time over which a course changes.
const LONGEST: Ns = 24 * 3_600 * SECOND;

/// Linear segments of a sine.
const SINE_SEGMENTS: usize = 64;

/// The first quarter of a sine with the amplitude 10^9, at the ends of its segments. It is multiplied by tan(h) / h,
/// where h is half of a segment's angle: then the area below the segments is the one below the sine, at the end of
/// each. (A table, because the sines of two machines may differ in their last bit.)
const SINE: [i64; SINE_SEGMENTS / 4 + 1] = [
    0,
    98_095_943,
    195_247_168,
    290_518_056,
    382_991_097,
    471_775_723,
    556_016_892,
    634_903_314,
    707_675_271,
    773_631_927,
    832_138_085,
    882_630_298,
    924_622_300,
    957_709_683,
    981_573_798,
    995_984_821,
    1_000_803_965,
];

/// A rate that is linear within segments. After the last it is constant, or the first follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    shape: Shape,
    repeats: bool,
    count: u8,
    segments: [Segment; SEGMENTS_MAX],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Ramp,
    Steps,
    /// Its only segment has the period, the lowest and the highest rate.
    Sine,
}

/// A part of a course, with its rates at both ends in messages per 1,000 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    length_ns: Ns,
    from_per_ks: u32,
    to_per_ks: u32,
}

/// A segment with its beginning, and the messages before it in units of 1 / (2 × 10^12).
struct Place {
    segment: Segment,
    begin_ns: i128,
    before: i128,
    is_last: bool,
}

/// Returns a number, or the largest that fits.
pub fn clamped(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Units of a message: half of them are the ns of a rate of one message per 1,000 s.
const UNITS: i128 = 2 * KILOSECOND as i128;

impl Segment {
    fn rates(&self) -> (i128, i128) {
        (i128::from(self.from_per_ks), i128::from(self.to_per_ks))
    }

    /// Returns the units of messages in the whole segment.
    fn units(&self) -> i128 {
        let (from, to) = self.rates();
        i128::from(self.length_ns) * (from + to)
    }

    /// Returns a segment of a sine.
    fn of_sine(&self, index: usize) -> Segment {
        let sum = i64::from(self.from_per_ks) + i64::from(self.to_per_ks);
        let difference = i64::from(self.to_per_ks) - i64::from(self.from_per_ks);
        let rate = |end: usize| {
            let (half, at) = (end / (SINE_SEGMENTS / 2) % 2, end % (SINE_SEGMENTS / 2));
            let sine = SINE[at.min(SINE_SEGMENTS / 2 - at)];
            // The second half is the first one upside down, so that all of them add up to the mean.
            let first = (sum * 1_000_000_000 + difference * sine) / 2_000_000_000;
            (if half == 0 { first } else { sum - first }).max(1) as u32
        };
        let length_ns = self.length_ns / SINE_SEGMENTS as Ns;
        Segment { length_ns, from_per_ks: rate(index), to_per_ks: rate(index + 1) }
    }

    /// Returns the units of messages by `at_ns` from its beginning, times its length.
    fn scaled_units(&self, at_ns: i128) -> i128 {
        let (from, to) = self.rates();
        let length = i128::from(self.length_ns);
        2 * length * from * at_ns + (to - from) * at_ns * at_ns
    }
}

impl Course {
    /// Parses `ramp R to R in T`, `steps R R … each T` or `sine R to R each T`; rates are in messages per second. After
    /// its time a course keeps the last rate, or begins again if the text ends in `repeat`. A sine begins at its mean,
    /// rises first, and always begins again; its period is a number of whole milliseconds, and its lowest rate at least
    /// a thousandth of the highest.
    pub fn parse(text: &str) -> Option<Course> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (repeats, words) = match words.as_slice() {
            [once @ .., "repeat"] => (true, once),
            once => (false, once),
        };
        let (shape, rates, length) = match words {
            ["ramp", from, "to", to, "in", length] => (Shape::Ramp, vec![*from, *to], *length),
            ["steps", rates @ .., "each", length] => (Shape::Steps, rates.to_vec(), *length),
            ["sine", low, "to", high, "each", length] if !repeats => (Shape::Sine, vec![*low, *high], *length),
            _ => return None,
        };
        let length_ns = parse_time(length).ok().filter(|ns| *ns > 0)?;
        let in_range = |rate: &u64| (1..=FASTEST_PER_KS).contains(rate);
        let rates: Vec<u32> = rates
            .iter()
            .map(|rate| parse_thousandths(rate).filter(in_range)?.try_into().ok())
            .collect::<Option<_>>()?;
        let repeats = repeats || shape == Shape::Sine;
        let mut course = Course { shape, repeats, count: 0, segments: [Segment::default(); SEGMENTS_MAX] };
        match (shape, rates.as_slice()) {
            (Shape::Ramp, [from, to]) => course.push(length_ns, *from, *to)?,
            (Shape::Sine, [low, high]) if length_ns % MILLISECOND == 0 && low < high && *low >= high / 1_000 => {
                course.push(length_ns, *low, *high)?;
            }
            (Shape::Steps, rates) if rates.len() >= 2 => {
                rates.iter().try_for_each(|rate| course.push(length_ns, *rate, *rate))?;
            }
            _ => return None,
        }
        (course.length_ns() <= LONGEST).then_some(course)
    }

    /// True if it is a sine.
    pub fn is_sine(&self) -> bool {
        self.shape == Shape::Sine
    }

    /// Returns its length until it ends or begins again, ns.
    fn length_ns(&self) -> Ns {
        let lengths = self.segments.iter().take(self.count.into()).map(|segment| segment.length_ns);
        lengths.fold(0, Ns::saturating_add)
    }

    /// Returns the units of its messages until it ends or begins again.
    fn units(&self) -> i128 {
        // The mean of a sine is half of the sum of its bounds, as that of a ramp is.
        self.segments.iter().take(self.count.into()).map(Segment::units).sum()
    }

    fn push(&mut self, length_ns: Ns, from_per_ks: u32, to_per_ks: u32) -> Option<()> {
        *self.segments.get_mut(usize::from(self.count))? = Segment { length_ns, from_per_ks, to_per_ks };
        self.count += 1;
        Some(())
    }

    fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        let count = if self.shape == Shape::Sine { SINE_SEGMENTS } else { self.count.into() };
        (0..count).map(|index| match self.shape {
            Shape::Sine => self.segments[0].of_sine(index),
            _ => self.segments[index],
        })
    }

    /// Returns how often it was repeated by the time at which `part` of `whole` has passed.
    fn rounds(&self, part: i128, whole: i128) -> i128 {
        if self.repeats { part / whole.max(1) } else { 0 }
    }

    /// Returns the first segment that is not over, of those that follow after so many rounds, or the
    /// constant rate after all of them: `is_over` gets the end of each segment and the units of
    /// messages by then.
    fn find(&self, rounds: i128, is_over: impl Fn(i128, i128) -> bool) -> Place {
        let (mut begin_ns, mut before) = (rounds * i128::from(self.length_ns()), rounds * self.units());
        // A float may be rounded to the end of a round.
        let rounds = if self.repeats { 2 } else { 1 };
        for segment in (0..rounds).flat_map(|_| self.segments()) {
            let (end_ns, after) = (begin_ns + i128::from(segment.length_ns), before + segment.units());
            if !is_over(end_ns, after) {
                return Place { segment, begin_ns, before, is_last: false };
            }
            (begin_ns, before) = (end_ns, after);
        }
        let last = self.segments().last().map_or(1, |segment| segment.to_per_ks);
        let segment = Segment { length_ns: 1, from_per_ks: last, to_per_ks: last };
        Place { segment, begin_ns, before, is_last: true }
    }

    /// Returns the segment of an instant.
    fn at(&self, at_ns: Ns) -> Place {
        let at_ns = i128::from(at_ns);
        self.find(self.rounds(at_ns, self.length_ns().into()), |end_ns, _| at_ns >= end_ns)
    }

    /// See [`super::Profile::due`].
    pub fn due(&self, index: u64) -> Ns {
        let wanted = i128::from(index) * UNITS;
        let rounds = self.rounds(wanted, self.units());
        let Place { segment, begin_ns, before, .. } = self.find(rounds, |_, after| wanted >= after);
        let left = wanted - before;
        let (from, to) = segment.rates();
        if from == to {
            return clamped((begin_ns + left / (2 * from)) as u128);
        }
        let (length, left_f) = (segment.length_ns as f64, left as f64);
        let root = (from as f64).mul_add(from as f64, (to - from) as f64 * left_f / length).max(0.0).sqrt();
        let scaled = left * i128::from(segment.length_ns);
        // The estimate is off by the rounding of a float: a few ns at most.
        let mut at = (left_f / (from as f64 + root)) as i128;
        while segment.scaled_units(at) > scaled {
            at -= 1;
        }
        while segment.scaled_units(at + 1) <= scaled {
            at += 1;
        }
        clamped((begin_ns + at) as u128)
    }

    /// See [`super::Profile::due_before`].
    pub fn due_before(&self, at_ns: Ns) -> u64 {
        let Place { segment, begin_ns, before, .. } = self.at(at_ns);
        let length = i128::from(segment.length_ns);
        let at = i128::from(at_ns) - begin_ns;
        let scaled = match segment.from_per_ks == segment.to_per_ks {
            true => {
                return clamped(((before + 2 * i128::from(segment.from_per_ks) * at) as u128).div_ceil(UNITS as u128));
            }
            false => before * length + segment.scaled_units(at),
        };
        clamped((scaled as u128).div_ceil((UNITS * length) as u128))
    }

    /// See [`super::Profile::expected`].
    pub fn expected(&self, at_ns: Ns) -> f64 {
        let Place { segment, begin_ns, before, .. } = self.at(at_ns);
        let (at, length) = ((i128::from(at_ns) - begin_ns) as f64, segment.length_ns as f64);
        let (from, to) = (f64::from(segment.from_per_ks), f64::from(segment.to_per_ks));
        (before as f64 + 2.0 * from * at + (to - from) * at * at / length) / UNITS as f64
    }

    /// See [`super::Profile::after`].
    pub fn after(&self, at_ns: f64, messages: f64) -> f64 {
        let (mut at_ns, mut left) = (at_ns, messages * UNITS as f64);
        loop {
            let rounds = self.rounds(at_ns as i128, self.length_ns().into());
            let Place { segment, begin_ns, is_last, .. } = self.find(rounds, |end_ns, _| at_ns >= end_ns as f64);
            let (from, to) = (f64::from(segment.from_per_ks), f64::from(segment.to_per_ks));
            let slope = (to - from) / segment.length_ns as f64;
            let begin = begin_ns as f64;
            let rate = slope.mul_add(at_ns - begin, from);
            let rest_ns = begin + segment.length_ns as f64 - at_ns;
            let rest = rest_ns * (2.0 * rate + slope * rest_ns);
            if is_last || left <= rest {
                return at_ns + left / (rate + rate.mul_add(rate, slope * left).max(0.0).sqrt());
            }
            (at_ns, left) = (begin + segment.length_ns as f64, left - rest);
        }
    }

    /// Returns its lowest and its highest rate, messages per 1,000 s.
    pub fn per_ks(&self) -> RangeInclusive<u64> {
        let rates = || self.segments().flat_map(|segment| [segment.from_per_ks, segment.to_per_ks]);
        u64::from(rates().min().unwrap_or(1))..=u64::from(rates().max().unwrap_or(1))
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_s = |per_ks: u32| f64::from(per_ks) / 1e3;
        let length = format_time(self.segments[0].length_ns);
        match self.shape {
            Shape::Ramp => {
                let Segment { from_per_ks, to_per_ks, .. } = self.segments[0];
                write!(f, "ramp {} to {} in {length}", per_s(from_per_ks), per_s(to_per_ks))?;
            }
            Shape::Sine => {
                let Segment { from_per_ks, to_per_ks, .. } = self.segments[0];
                write!(f, "sine {} to {} each {length}", per_s(from_per_ks), per_s(to_per_ks))?;
            }
            Shape::Steps => {
                f.write_str("steps")?;
                self.segments().try_for_each(|segment| write!(f, " {}", per_s(segment.from_per_ks)))?;
                write!(f, " each {length}")?;
            }
        }
        if self.repeats && self.shape != Shape::Sine { f.write_str(" repeat") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(text: &str) -> Course {
        Course::parse(text).unwrap()
    }

    /// By hand: a ramp from 100/s to 300/s in 10 s sends 2,000 messages, and 100 t + 10 t² by t.
    #[test]
    fn a_ramp_sends_the_area_below_it_and_then_keeps_its_last_rate() {
        let ramp = course("ramp 100 to 300 in 10s");
        assert_eq!([0, 1, 5, 10, 12].map(|s| ramp.due_before(s * SECOND)), [0, 110, 750, 2_000, 2_600]);
        assert_eq!([0, 110, 750, 2_000, 2_600].map(|index| ramp.due(index)), [0, 1, 5, 10, 12].map(|s| s * SECOND));
        assert_eq!(ramp.per_ks(), 100_000..=300_000);
        let down = course("ramp 300 to 100 in 10s");
        assert_eq!([1, 10, 11].map(|s| down.due_before(s * SECOND)), [290, 2_000, 2_100]);
        assert!((ramp.expected(5 * SECOND) - 750.0).abs() < 1e-9);
        assert!((ramp.after(1e9, 640.0) / 5e9 - 1.0).abs() < 1e-9, "from 110 to 750 messages");
        assert!((ramp.after(5e9, 1_850.0) / 12e9 - 1.0).abs() < 1e-9, "beyond its end");
    }

    #[test]
    fn steps_change_at_once() {
        let steps = course("steps 10 100 1 each 2s");
        assert_eq!([1, 2, 3, 4, 6, 10].map(|s| steps.due_before(s * SECOND)), [10, 20, 120, 220, 222, 226]);
        assert_eq!([19, 20, 21].map(|index| steps.due(index)), [1_900_000_000, 2_000_000_000, 2_010_000_000]);
        assert!((steps.after(1.5e9, 10.0) / 2.05e9 - 1.0).abs() < 1e-9);
    }

    /// By hand: 10 messages in 1 s, then 1 in 1 s; and a ramp of 100 messages each second.
    #[test]
    fn a_course_can_begin_again() {
        let steps = course("steps 10 1 each 1s repeat");
        assert_eq!([1, 2, 3, 4, 21].map(|s| steps.due_before(s * SECOND)), [10, 11, 21, 22, 120]);
        assert_eq!(
            [10, 11, 12, 22].map(|index| steps.due(index)),
            [1_000, 2_000, 2_100, 4_000].map(|ms| ms * 1_000_000)
        );
        assert!((steps.after(0.5e9, 5.0 + 1.0 + 7.0) / 2.7e9 - 1.0).abs() < 1e-9);
        let ramp = course("ramp 50 to 150 in 1s repeat");
        assert_eq!([1, 2, 60].map(|s| ramp.due_before(s * SECOND)), [100, 200, 6_000]);
        assert!((ramp.expected(2_500_000_000) - 237.5).abs() < 1e-9, "50 t + 50 t² in each second");
        assert_eq!(ramp.due(6_000), 60 * SECOND);
        assert_eq!((ramp.due(u64::MAX), steps.due(u64::MAX)), (Ns::MAX, Ns::MAX));
    }

    /// A sine of mean 200/s and amplitude 100/s sends 200 t + 100 T / 2π (1 - cos(2π t / T)) messages by t.
    #[test]
    fn a_sine_sends_the_area_below_it() {
        let sine = course("sine 100 to 300 each 60s");
        // 100 × 60 / 2π = 954.93.
        assert_eq!(
            [15, 30, 45, 60, 75, 120].map(|s| sine.due_before(s * SECOND)),
            [3_955, 7_910, 9_955, 12_000, 15_955, 24_000]
        );
        assert_eq!([0, 12_000, 24_000].map(|index| sine.due(index)), [0, 60, 120].map(|s| s * SECOND));
        for (low, high, period) in [(100.0, 300.0, 60.0), (1.0, 1_000.0, 7.0), (50_000.0, 150_000.0, 0.5)] {
            let sine = course(&format!("sine {low} to {high} each {}ms", period * 1e3));
            let (mean, amplitude) = ((low + high) / 2.0, (high - low) / 2.0);
            for end in 0..=200_u32 {
                let at_s = period * f64::from(end) / 64.0;
                let turn = std::f64::consts::TAU * at_s / period;
                let wanted = mean * at_s + amplitude * period / std::f64::consts::TAU * (1.0 - turn.cos());
                let found = sine.due_before((at_s * 1e9).round() as Ns) as f64;
                assert!((found - wanted).abs() <= 1.001, "{high} {end}: {found} {wanted}");
            }
            let (slowest, fastest) = sine.per_ks().into_inner();
            assert!(
                (slowest as f64 / 1e3 - low).abs() <= 0.001 * amplitude
                    && (fastest as f64 / 1e3 - high).abs() <= 0.001 * amplitude
            );
        }
    }

    #[test]
    fn its_text_is_read_again() {
        for text in [
            "ramp 100 to 5000 in 60s",
            "ramp 0.5 to 2 in 1500ms",
            "steps 1 2 3 4 5 6 each 10s",
            "steps 5 1 each 1s repeat",
            "sine 0.5 to 250 each 1500ms",
        ] {
            assert_eq!(course(text).to_string(), text);
        }
        for wrong in [
            "ramp 100 to 200",
            "ramp 0 to 100 in 5s",
            "ramp 1 to 2000000 in 5s",
            "ramp 1 to 2 in 25h",
            "ramp 1 to 2 in 0s",
            "steps 1 each 5s",
            "steps 1 2 3 4 5 6 7 each 5s",
            "steps 1 2",
            "repeat",
            "steps 1 2 each 5s repeat repeat",
            "sine 1 to 2 each 5s repeat",
            "sine 2 to 1 each 5s",
            "sine 0.5 to 2000 each 5s",
            "sine 1 to 2 each 1500us",
        ] {
            assert_eq!(Course::parse(wrong), None, "{wrong}");
        }
    }
}
