//! Verifiable content of sectors. A sector of 512 bytes starts with a magic number, the sector number and the round.
//! The round is the number of the write command that has written the sector. Pseudorandom bytes follow; the sector
//! number and the round are their seed. So the content shows if a sector is misplaced or comes from an older write.

use ib_types::rng::Rng;

/// Size of a sector in bytes.
pub(super) const SECTOR: u64 = 512;

/// First word of each sector with verifiable content. The sector number and the round follow it.
const MAGIC: u64 = 0x7472_7369_6266_6162;

/// Fills `bytes` with the content that write number `round` gives to the sectors that start at byte `offset` of the
/// device.
pub(super) fn fill(bytes: &mut [u8], offset: u64, round: u32) {
    for (at, sector) in bytes.chunks_mut(SECTOR as usize).enumerate() {
        let number = offset / SECTOR + at as u64;
        let mut random = Rng::new(number ^ u64::from(round) << 40 ^ MAGIC);
        for (at, word) in sector.chunks_mut(8).enumerate() {
            let value = match at {
                0 => MAGIC,
                1 => number,
                2 => u64::from(round),
                _ => random.next_u64(),
            };
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
    }
}

/// Compares a sector with the content that write number `round` gives it. If `round` is 0, any content is accepted.
pub(super) fn check(sector: &[u8], number: u64, round: u32) -> Result<(), String> {
    let mut expected = [0; SECTOR as usize];
    fill(&mut expected, number * SECTOR, round);
    if round == 0 || sector == expected {
        return Ok(());
    }
    let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("8 bytes"));
    let found = match word(0) {
        MAGIC => format!("data marked as sector {} of write {}", word(8), word(16)),
        0 if sector.iter().all(|byte| *byte == 0) => "zeros".to_owned(),
        _ => "other data".to_owned(),
    };
    Err(format!("sector {number} contains {found}: expected the data of write {round}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_detects_old_moved_and_changed_sectors() {
        let mut bytes = vec![0; 4096];
        fill(&mut bytes, 8192, 3);
        let sector = |bytes: &[u8], at: usize| bytes[at * 512..][..512].to_vec();
        assert_eq!(check(&sector(&bytes, 7), 23, 3), Ok(()));
        assert_eq!(check(&sector(&bytes, 7), 99, 0), Ok(()));
        let old =
            check(&sector(&bytes, 0), 16, 4).expect_err("the sector was written by an older write");
        assert_eq!(
            old,
            "sector 16 contains data marked as sector 16 of write 3: expected the data of write 4"
        );
        let moved = check(&sector(&bytes, 0), 8, 3).expect_err("the sector is misplaced");
        assert!(
            moved.starts_with("sector 8 contains data marked as sector 16 of write 3"),
            "{moved}"
        );
        bytes[1024 + 300] ^= 1;
        let hurt = check(&sector(&bytes, 2), 18, 3).expect_err("a bit differs");
        assert!(
            hurt.starts_with("sector 18 contains data marked as sector 18 of write 3"),
            "{hurt}"
        );
        bytes[512..1024].fill(0);
        let lost = check(&sector(&bytes, 1), 17, 3).expect_err("the sector contains zeros");
        assert!(lost.starts_with("sector 17 contains zeros"), "{lost}");
        bytes[512] = 7;
        assert!(
            check(&sector(&bytes, 1), 17, 3)
                .expect_err("the sector contains other data")
                .contains("other data")
        );
    }
}
