//! Seeded random numbers whose sequence never changes.

/// The generator `SplitMix64`: the same seed gives the same numbers on every platform and in every
/// release.
///
/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, with the
/// mixing constants of its reference implementation. It is neither cryptographic nor meant to be.
///
/// ```
/// use ib_types::rng::Rng;
///
/// let mut rng = Rng::new(1_234_567);
/// assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
/// assert!(rng.below(6) < 6);
/// ```
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns the generator of a seed; every seed, zero included, is as good as another.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the generator of one of a seed's streams, so that what one purpose draws does not
    /// shift what another one gets.
    #[must_use]
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(Self::GAMMA))) }
    }

    /// Returns the next number, uniform over all 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::GAMMA);
        mix(self.state)
    }

    /// Returns a number uniform over 0 to `bound` - 1.
    ///
    /// Multiplies and rejects, after Lemire, "Fast Random Integer Generation in an Interval",
    /// TOMACS 2019: without the bias of a remainder.
    ///
    /// # Panics
    /// Panics when `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number lies below zero");
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// Returns true with a probability, 0.0 to 1.0.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next_u64() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// Moves `count` members, drawn uniformly without replacement, to the front of a slice and
    /// returns them in the order of the draw.
    ///
    /// A greater count draws the same members first. A count beyond the slice draws all of it.
    pub fn draw<'a, T>(&mut self, items: &'a mut [T], count: usize) -> &'a mut [T] {
        let count = count.min(items.len());
        for index in 0..count {
            let other = index + self.below(items.len() - index);
            items.swap(index, other);
        }
        &mut items[..count]
    }

    /// Puts a slice into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.draw(items, items.len());
    }
}

/// The finalizer of `SplitMix64`.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
