//! The two checksums of a packet: ICRC and VCRC.
//!
//! | checksum | bits | covers | recomputed by switches |
//! |---|---|---|---|
//! | ICRC (invariant CRC) | 32 | the packet, with ones in fields that switches or routers may change | no |
//! | VCRC (variant CRC) | 16 | the packet, including the ICRC | yes, if the LRH changes |
//!
//! Both checksums process the least significant bit of a byte first, start with all ones, and are
//! inverted at the end. The checksums are returned as big-endian numbers. Source: IBTA volume 1,
//! chapters 7.8.1 and 7.8.2.

use crc32fast::Hasher;

/// Computes the VCRC of a packet. `bytes` are its bytes from the LRH to the ICRC.
///
/// The polynomial is 0x100B; see IBTA volume 1, chapter 7.8.2.
#[must_use]
pub fn vcrc(bytes: &[u8]) -> u16 {
    let mut state = u16::MAX;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let [low, high] = state.to_le_bytes();
        state = TABLES[7][usize::from(chunk[0] ^ low)]
            ^ TABLES[6][usize::from(chunk[1] ^ high)]
            ^ TABLES[5][usize::from(chunk[2])]
            ^ TABLES[4][usize::from(chunk[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    for &byte in chunks.remainder() {
        state = state >> 8 ^ TABLES[0][usize::from(state as u8 ^ byte)];
    }
    (!state).swap_bytes()
}

/// Slicing-by-8 tables: `TABLES[n][byte]` is the CRC of a byte that is followed by `n` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    const POLYNOMIAL: u16 = 0x100b_u16.reverse_bits();
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte as u16;
        let mut bit = 0;
        while bit < 8 {
            state = if state & 1 == 1 { state >> 1 ^ POLYNOMIAL } else { state >> 1 };
            bit += 1;
        }
        tables[0][byte] = state;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Computes the ICRC over several slices. The caller must set all bits of variant fields to one.
///
/// ```
/// let mut icrc = ib_wire::crc::Icrc::new();
/// icrc.update(b"123456789");
/// assert_eq!(icrc.finish(), 0x2639_f4cb);
/// ```
#[derive(Clone, Debug)]
pub struct Icrc(Hasher);

impl Icrc {
    /// Starts a computation.
    #[must_use]
    pub fn new() -> Self {
        Self(Hasher::new())
    }

    /// Starts a computation whose first eight bytes are 0xFF.
    ///
    /// These bytes replace the LRH in the ICRC of RoCEv2 packets, which have no LRH, and of packets
    /// with a GRH, whose LRH routers change.
    #[must_use]
    pub fn after_lrh_of_ones() -> Self {
        Self(Hasher::new_with_initial(AFTER_LRH_OF_ONES))
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum.
    #[must_use]
    pub fn finish(self) -> u32 {
        self.0.finalize().swap_bytes()
    }
}

impl Default for Icrc {
    fn default() -> Self {
        Self::new()
    }
}

/// The CRC-32 of eight bytes with value 0xFF.
const AFTER_LRH_OF_ONES: u32 = 0x2144_df1c;

/// Computes the ICRC of a native packet that has a BTH. `bytes` are its bytes from the LRH to the
/// end of the padding.
///
/// All bits of fields that switches or routers may change count as ones (IBTA volume 1, chapter
/// 7.8.1):
///
/// * without a GRH: the VL of the LRH,
/// * with a GRH: the LRH, and the traffic class, flow label and hop limit of the GRH,
/// * always: byte 4 of the BTH, which contains FECN and BECN.
///
/// # Panics
/// Panics if `bytes` is shorter than the LRH, the GRH (if the LNH field announces one) and the BTH.
#[must_use]
pub fn icrc_native(bytes: &[u8]) -> u32 {
    const HAS_GRH: u8 = 3;
    let mut masked = [0; 60];
    let global = bytes[1] & 3 == HAS_GRH;
    let headers = if global { 60 } else { 20 };
    masked[..headers].copy_from_slice(&bytes[..headers]);
    let bth = headers - 12;
    masked[bth + 4] = 0xff;
    let mut icrc = if global {
        masked[8] |= 0x0f;
        masked[9..12].fill(0xff);
        masked[15] = 0xff;
        let mut icrc = Icrc::after_lrh_of_ones();
        icrc.update(&masked[8..headers]);
        icrc
    } else {
        masked[0] |= 0xf0;
        let mut icrc = Icrc::new();
        icrc.update(&masked[..headers]);
        icrc
    };
    icrc.update(&bytes[headers..]);
    icrc.finish()
}

#[cfg(test)]
mod tests;
