//! Fast-registration regions whose keys become valid and invalid without work requests: by `open_mr`, `close_mr` and
//! `reopen_mr`.

use ib_hca::{AccessFlags, Memory, RegionError, RemoteAddress, SendOp, WcStatus};

use crate::pair::{Pair, Wiring};

const WRITABLE: AccessFlags = AccessFlags(AccessFlags::LOCAL_WRITE.0 | AccessFlags::REMOTE_WRITE.0);

/// Writes 64 bytes of value 1 to an address of side 1, with the given R_Key. Returns the completion status.
fn write(pair: &mut Pair, addr: u64, rkey: u32) -> WcStatus {
    let qps = pair.connect(&Wiring::default());
    let own = pair.region(0, 64, AccessFlags::ALL);
    own.memory.fill(0, 64, 1).expect("the range is within the memory");
    let to = RemoteAddress { addr, rkey };
    pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, own.data(0, 64));
    pair.run();
    pair.done(0)[0].status
}

#[test]
fn region_gives_access_only_while_it_is_open() {
    let mut pair = Pair::new(1);
    let memory = Memory::zeroed(4096).unwrap();
    let side = &mut pair.sides[1];
    let mr = side.hca.alloc_mr(side.pd).unwrap();
    assert_eq!(side.hca.reopen_mr(mr), Err(RegionError::NotFast), "the region has no memory yet");
    let key = side.hca.open_mr(mr, (&memory, 1024, 64), 0x5000, WRITABLE).unwrap();
    assert_eq!(side.hca.key(mr), Some(key));
    assert_eq!(write(&mut pair, 0x5000, key), WcStatus::Success);
    assert_eq!(memory.to_vec(1024, 64).unwrap(), [1; 64]);
    assert_eq!(write(&mut pair, 0x5001, key), WcStatus::RemAccessErr);
    pair.sides[1].hca.close_mr(mr).unwrap();
    memory.fill(0, 4096, 0).unwrap();
    assert_eq!(write(&mut pair, 0x5000, key), WcStatus::RemAccessErr);
    // `reopen_mr` increments the lowest byte of the key. The previous key remains invalid.
    let next = pair.sides[1].hca.reopen_mr(mr).unwrap();
    assert_eq!((next >> 8, next as u8), (key >> 8, (key as u8).wrapping_add(1)));
    assert_eq!(write(&mut pair, 0x5000, key), WcStatus::RemAccessErr);
    assert_eq!(memory.to_vec(1024, 64).unwrap(), [0; 64]);
    assert_eq!(write(&mut pair, 0x5000, next), WcStatus::Success);
    // `open_mr` can assign other memory to the region. The previous key then becomes invalid.
    let other = Memory::zeroed(128).unwrap();
    let third = pair.sides[1].hca.open_mr(mr, (&other, 0, 128), 0, WRITABLE).unwrap();
    assert_eq!(write(&mut pair, 0x5000, next), WcStatus::RemAccessErr);
    assert_eq!(write(&mut pair, 64, third), WcStatus::Success);
    assert_eq!(other.to_vec(64, 64).unwrap(), [1; 64]);
}

#[test]
fn plain_regions_cannot_be_opened_or_closed() {
    let mut pair = Pair::new(1);
    let region = pair.region(1, 64, AccessFlags::ALL);
    let hca = &mut pair.sides[1].hca;
    assert_eq!(hca.close_mr(region.mr), Err(RegionError::NotFast));
    assert_eq!(hca.reopen_mr(region.mr), Err(RegionError::NotFast));
    let range = (&region.memory, 0, 64);
    assert_eq!(hca.open_mr(region.mr, range, 0, WRITABLE), Err(RegionError::NotFast));
    let mr = hca.alloc_mr(pair.sides[1].pd).unwrap();
    let hca = &mut pair.sides[1].hca;
    let beyond = hca.open_mr(mr, (&region.memory, 1, 64), 0, WRITABLE);
    assert_eq!(beyond, Err(RegionError::Range { offset: 1, length: 64, size: 64 }));
    hca.dereg_mr(mr).unwrap();
    assert_eq!(hca.close_mr(mr), Err(RegionError::NoSuchMr));
}
