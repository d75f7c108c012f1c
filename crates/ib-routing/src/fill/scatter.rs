//! The random numbers for `--scatter-ports`.

/// The additive feedback generator behind `random` in the C library. With it, the same seed gives the same routes as in
/// OpenSM.
///
/// Each output is the sum of the values 3 and 31 steps before, without the lowest bit. The first 31 values are computed
/// from the seed, with the multiplier 16,807 modulo 2^31 - 1. The next 310 outputs are discarded.
pub(super) struct LibcRandom {
    state: [u32; 31],
    next: usize,
}

impl LibcRandom {
    const MODULUS: i64 = 0x7fff_ffff;

    pub(super) fn new(seed: u32) -> Self {
        let mut state = [0; 31];
        let mut word = i64::from(seed.max(1) as i32);
        for slot in &mut state {
            *slot = word as u32;
            word = word * 16_807 % Self::MODULUS;
            if word < 0 {
                word += Self::MODULUS;
            }
        }
        let mut random = Self { state, next: 3 };
        for _ in 0..310 {
            random.next();
        }
        random
    }

    /// Returns the next random number, from 0 to 2^31 - 1.
    pub(super) fn next(&mut self) -> u32 {
        let three_back = self.state[(self.next + 28) % 31];
        let sum = self.state[self.next].wrapping_add(three_back);
        self.state[self.next] = sum;
        self.next = (self.next + 1) % 31;
        sum >> 1
    }
}
