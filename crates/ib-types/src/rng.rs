//! Random numbers that a seed determines, identical on every platform and in every release.

/// The `SplitMix64` generator of pseudorandom numbers. It is not cryptographically secure.
///
/// The same seed gives the same numbers on every platform and in every release. Source: Steele, Lea and Flood, "Fast
/// Splittable Pseudorandom Number Generators", OOPSLA 2014, with the mixing constants of the reference implementation.
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

    /// Creates a generator from a seed. Every seed is allowed, including zero.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates the generator of one stream of random numbers. A seed has many streams; drawing numbers from one of them
    /// does not change the numbers of the others.
    #[must_use]
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(Self::GAMMA))) }
    }

    /// Returns the next number, uniformly distributed over all 64-bit values.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::GAMMA);
        mix(self.state)
    }

    /// Returns a number uniformly distributed over 0 to `bound` - 1.
    ///
    /// The method is multiplication with rejection, which has no modulo bias: Lemire, "Fast Random Integer Generation
    /// in an Interval", TOMACS 2019.
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "the upper bound of a random number is 0: expected at least 1");
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// Returns true with the given probability, which is 0.0 to 1.0.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next_u64() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// Draws `count` elements of a slice uniformly without replacement, and swaps them to the front of the slice.
    ///
    /// Returns the drawn elements in the order in which they were drawn. With the same seed, a larger count draws the
    /// same elements first. If the count exceeds the length of the slice, all elements are drawn.
    pub fn draw<'a, T>(&mut self, items: &'a mut [T], count: usize) -> &'a mut [T] {
        let count = count.min(items.len());
        for index in 0..count {
            let other = index + self.below(items.len() - index);
            items.swap(index, other);
        }
        &mut items[..count]
    }

    /// Shuffles a slice; all orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.draw(items, items.len());
    }
}

/// Mixes the bits of a state into an output number. This is the finalizer of `SplitMix64`.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
