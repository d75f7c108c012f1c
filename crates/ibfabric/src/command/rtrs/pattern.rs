//! What `--verify` writes: each sector of 512 bytes tells which one it is and in which round it was written, and is filled
//! by that; so whatever is found elsewhere, or is older than it should be, is seen.

/// The length of what is told apart, in bytes.
pub(super) const SECTOR: u64 = 512;

/// What stands at the start of a sector that was written here.
const MAGIC: u64 = 0x7472_7369_6266_6162;

/// Fills whole sectors from a place of the device on.
pub(super) fn fill(bytes: &mut [u8], offset: u64, round: u32) {
    for (at, sector) in bytes.chunks_mut(SECTOR as usize).enumerate() {
        let number = offset / SECTOR + at as u64;
        let mut state = number ^ u64::from(round) << 40 ^ MAGIC;
        for (at, word) in sector.chunks_mut(8).enumerate() {
            let value = match at {
                0 => MAGIC,
                1 => number,
                2 => u64::from(round),
                _ => next(&mut state),
            };
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
}

/// Compares whole sectors that were written in a round; 0 is that of sectors that were not written here, of which nothing
/// is known.
pub(super) fn check(bytes: &[u8], offset: u64, round: u32) -> Result<(), String> {
    if round == 0 {
        return Ok(());
    }
    let mut expected = vec![0; bytes.len()];
    fill(&mut expected, offset, round);
    if bytes == expected {
        return Ok(());
    }
    let at = bytes.iter().zip(&expected).position(|(found, expected)| found != expected);
    let at = at.expect("they differ") / SECTOR as usize * SECTOR as usize;
    let word = |place: usize| {
        u64::from_le_bytes(bytes[at + place..at + place + 8].try_into().expect("8 bytes"))
    };
    let number = offset / SECTOR + (at as u64) / SECTOR;
    let found = match word(0) {
        MAGIC => format!("sector {} of round {}", word(8), word(16)),
        0 if bytes[at..at + SECTOR as usize].iter().all(|byte| *byte == 0) => "zeros".to_owned(),
        _ => "other data".to_owned(),
    };
    Err(format!("sector {number} has {found}: expected what was written in round {round}"))
}

/// Returns the next of numbers that look random.
pub(super) const fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_known_again() {
        let mut bytes = vec![0; 4096];
        fill(&mut bytes, 8192, 3);
        assert_eq!(check(&bytes, 8192, 3), Ok(()));
        assert_eq!(check(&bytes, 0, 0), Ok(()));
        let old = check(&bytes, 8192, 4).expect_err("it is old");
        assert_eq!(old, "sector 16 has sector 16 of round 3: expected what was written in round 4");
        let moved = check(&bytes, 4096, 3).expect_err("it is elsewhere");
        assert!(moved.starts_with("sector 8 has sector 16 of round 3"), "{moved}");
        bytes[1024 + 300] ^= 1;
        let hurt = check(&bytes, 8192, 3).expect_err("a bit differs");
        assert!(hurt.starts_with("sector 18 has sector 18 of round 3"), "{hurt}");
        bytes[512..1024].fill(0);
        let lost = check(&bytes, 8192, 3).expect_err("it was lost");
        assert!(lost.starts_with("sector 17 has zeros"), "{lost}");
        bytes[512] = 7;
        assert!(check(&bytes, 8192, 3).expect_err("it is other").contains("other data"));
    }
}
