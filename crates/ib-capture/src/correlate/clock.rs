//! Estimates offset and drift between the clocks of two captures.
//!
//! In the plot below, each point is a packet that is in both captures. To the right is its time by the clock of file 1.
//! Upwards is its time by the clock of file 2 minus its time by the clock of file 1.
//!
//! ```text
//! time in file 2 − time in file 1
//! |   .  .   .     .  .      .     packets sent in file 1: receive time in file 2 − send time in file 1
//! |  .  .  .   .  . .   .  .
//! |  _________________________     the clock offset: a line between both sets of points
//! |   x   x    x  x    x   x
//! |     x    x       x    x        packets sent in file 2: send time in file 2 − receive time in file 1
//! ```
//!
//! No packet arrives before it was sent. The line of the clock offset is therefore below all points
//! of one direction and above all points of the other. The line with the largest distance from both
//! sets of points is the estimate. The capture is divided into intervals. In each interval and
//! direction, only the fastest packet counts.

/// Maximum drift of one clock relative to the other, as a fraction. Quartz clocks drift less.
const FASTEST: f64 = 100e-6;

/// Number of intervals into which the duration of a capture is divided.
const SPANS: usize = 256;

/// Number of steps of a bisection. A ternary search takes twice as many.
const STEPS: usize = 80;

/// Transit times of the packets that are in both captures.
#[derive(Clone, Debug)]
pub struct ClockPoints {
    start: u64,
    span: u64,
    /// For each direction and interval, the fastest packet: its time by the first clock, and its
    /// receive time minus its send time, in nanoseconds.
    fastest: [Vec<Option<(u64, i64)>>; 2],
    counted: [u64; 2],
}

/// The relation of the clocks of two captures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clocks {
    /// Both captures have the same clock.
    Same,
    /// Offset and drift are estimated.
    Estimated(Estimate),
    /// Unknown: at most one direction has packets that are in both captures.
    Unknown,
}

/// Estimated offset and drift of the second clock relative to the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Time by the first clock at which the offset applies, in nanoseconds since 1970.
    pub at: u64,
    /// Offset of the second clock from the first in nanoseconds.
    pub offset: f64,
    /// Maximum error of the offset during the whole capture, in nanoseconds.
    pub uncertainty: f64,
    /// Drift of the second clock in ppm; positive if it runs faster than the first.
    pub drift_ppm: f64,
    /// Maximum error of the drift in ppm.
    pub drift_uncertainty_ppm: f64,
    /// Sum of the shortest transit times in both directions, in nanoseconds.
    pub round_trip: f64,
    /// True if no line fits: one of the clocks was set during the capture.
    pub is_contradictory: bool,
    /// Number of packets that are sent in capture 1 and received in capture 2, and number of packets in
    /// the opposite direction.
    pub packets: [u64; 2],
}

impl ClockPoints {
    /// Creates an empty set for packets between `start` and `end`, which are times by the first
    /// clock.
    #[must_use]
    pub fn new(start: u64, end: u64) -> Self {
        let span = end.saturating_sub(start) / SPANS as u64 + 1;
        Self { start, span, fastest: [vec![None; SPANS], vec![None; SPANS]], counted: [0; 2] }
    }

    /// Adds a packet that is sent in capture 1 and received in capture 2.
    pub fn forward(&mut self, sent: u64, received: u64) {
        self.add(0, sent, received.wrapping_sub(sent).cast_signed());
    }

    /// Adds a packet that is sent in capture 2 and received in capture 1.
    pub fn backward(&mut self, sent: u64, received: u64) {
        self.add(1, received, received.wrapping_sub(sent).cast_signed());
    }

    fn add(&mut self, direction: usize, at: u64, delay: i64) {
        self.counted[direction] += 1;
        let span = ((at.saturating_sub(self.start) / self.span) as usize).min(SPANS - 1);
        let fastest = &mut self.fastest[direction][span];
        if fastest.is_none_or(|(_, least)| delay < least) {
            *fastest = Some((at, delay));
        }
    }

    /// Estimates offset and drift of the second clock from the packets that were added.
    #[must_use]
    pub fn estimate(&self) -> Clocks {
        let points = |direction: usize| self.fastest[direction].iter().flatten().copied();
        let Some(&(_, near)) = points(0).collect::<Vec<_>>().first() else {
            return Clocks::Unknown;
        };
        if points(1).next().is_none() {
            return Clocks::Unknown;
        }
        let times = || points(0).chain(points(1)).map(|(at, _)| at);
        let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let at = first + (last - first) / 2;
        // Times relative to the middle of the capture keep their precision as floating-point
        // numbers.
        let x = |time: u64| time.wrapping_sub(at).cast_signed() as f64;
        let room = LineBounds {
            above: points(0).map(|(at, delay)| (x(at), delay.wrapping_sub(near) as f64)).collect(),
            below: points(1)
                .map(|(at, delay)| (x(at), delay.wrapping_neg().wrapping_sub(near) as f64))
                .collect(),
        };
        let slope = highest(-FASTEST, FASTEST, |slope| room.width(slope));
        // If the drift fits the points hardly better than no drift, the drift is reported as 0.
        let slope = if room.width(0.0) >= 0.95 * room.width(slope) { 0.0 } else { slope };
        let width = room.width(slope);
        let middle = f64::midpoint(room.ceiling(slope), room.floor(slope));
        let packets = self.counted;
        let offset = middle + near as f64;
        let mut estimate = Estimate {
            at,
            offset,
            uncertainty: width.abs() / 2.0,
            drift_ppm: slope * 1e6,
            drift_uncertainty_ppm: FASTEST * 1e6,
            round_trip: width.max(0.0),
            is_contradictory: width < 0.0,
            packets,
        };
        if estimate.is_contradictory {
            return Clocks::Estimated(estimate);
        }
        let (least, most) = room.slopes(slope);
        estimate.drift_uncertainty_ppm = (slope - least).max(most - slope) * 1e6;
        for time in [first, at, last] {
            let x = x(time);
            let line = middle + slope * x;
            let up = highest(least, most, |slope| room.ceiling(slope) + slope * x);
            let down = highest(least, most, |slope| -(room.floor(slope) + slope * x));
            let up = room.ceiling(up) + up * x - line;
            let down = line - (room.floor(down) + down * x);
            estimate.uncertainty = estimate.uncertainty.max(up).max(down);
        }
        Clocks::Estimated(estimate)
    }
}

impl Clocks {
    /// Converts a time of the second clock to the first; `None` if the clocks cannot be compared.
    #[must_use]
    pub fn to_first_clock(&self, time: u64) -> Option<u64> {
        match self {
            Self::Same => Some(time),
            Self::Unknown => None,
            Self::Estimated(estimate) => {
                let slope = estimate.drift_ppm / 1e6;
                let x = time.wrapping_sub(estimate.at).cast_signed() as f64 - estimate.offset;
                let offset = estimate.offset + slope * x / (1.0 + slope);
                Some(time.wrapping_sub((offset.round() as i64).cast_unsigned()))
            }
        }
    }
}

/// The points that bound the line of clock offsets.
struct LineBounds {
    /// Points that must be above the line of clock offsets.
    above: Vec<(f64, f64)>,
    /// Points that must be below the line of clock offsets.
    below: Vec<(f64, f64)>,
}

impl LineBounds {
    /// Returns the value at time 0 of the highest line that has this slope and is below all points
    /// of `above`.
    fn ceiling(&self, slope: f64) -> f64 {
        self.above.iter().map(|(x, y)| y - slope * x).fold(f64::INFINITY, f64::min)
    }

    fn floor(&self, slope: f64) -> f64 {
        self.below.iter().map(|(x, y)| y - slope * x).fold(f64::NEG_INFINITY, f64::max)
    }

    fn width(&self, slope: f64) -> f64 {
        self.ceiling(slope) - self.floor(slope)
    }

    /// Returns the lowest and the highest slope for which a line fits between the points. A line must
    /// fit with the slope `possible`.
    fn slopes(&self, possible: f64) -> (f64, f64) {
        let edge = |mut no: f64| {
            if self.width(no) >= 0.0 {
                return no;
            }
            let mut yes = possible;
            for _ in 0..STEPS {
                let middle = f64::midpoint(no, yes);
                *(if self.width(middle) >= 0.0 { &mut yes } else { &mut no }) = middle;
            }
            yes
        };
        (edge(-FASTEST), edge(FASTEST))
    }
}

/// Returns the argument at which a concave function has its maximum.
fn highest(mut from: f64, mut to: f64, value: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..2 * STEPS {
        let third = (to - from) / 3.0;
        if value(from + third) < value(to - third) {
            from += third;
        } else {
            to -= third;
        }
    }
    f64::midpoint(from, to)
}

#[cfg(test)]
mod tests;
