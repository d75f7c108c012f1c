//! The random numbers of `--scatter-ports`.

/// The additive feedback generator behind the C library's `random`, so that a seed scatters
/// routes as it does in OpenSM.
///
/// Each output is the sum of the outputs 3 and 31 places before, its lowest bit dropped. The
/// first 31 are made from the seed by the multiplier 16,807 modulo 2^31 - 1, and the 310 outputs
/// after them are thrown away.
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

    /// Returns the next number, 0 to 2^31 - 1.
    pub(super) fn next(&mut self) -> u32 {
        let three_back = self.state[(self.next + 28) % 31];
        let sum = self.state[self.next].wrapping_add(three_back);
        self.state[self.next] = sum;
        self.next = (self.next + 1) % 31;
        sum >> 1
    }
}
