//! Tables by numbers that the adapter has chosen, at random: nobody else can have them meet in one place.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by numbers of queue pairs or memory regions.
pub(crate) type ByNumber<T> = HashMap<u32, T, BuildHasherDefault<Spread>>;

/// Spreads such numbers, in an instruction or two.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(byte.into());
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        // The table looks at the lowest and at the highest bits.
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
