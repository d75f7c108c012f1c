use std::sync::Arc;

use super::*;

fn memory(length: usize) -> Arc<Memory> {
    Memory::zeroed(length).expect("the system has memory")
}

#[test]
fn written_bytes_are_read_back() {
    let memory = memory(100);
    memory.write(90, &[1, 2, 3]).expect("the range is within the memory");
    assert_eq!(memory.to_vec(89, 5), Ok(vec![0, 1, 2, 3, 0]));
    memory.fill(91, 2, 9).expect("the range is within the memory");
    assert_eq!(memory.to_vec(90, 3), Ok(vec![1, 9, 9]));
    assert_eq!(memory.address() % ALIGNMENT as u64, 0);
}

#[test]
fn accesses_beyond_the_end_fail() {
    let memory = memory(16);
    let all = usize::MAX;
    for (offset, length) in [(16, 1), (17, 0), (0, 17), (all, 1), (all, 0), (1, 16)] {
        let error = OutOfBounds { offset, length, size: 16 };
        assert_eq!(memory.write(offset, &vec![1; length.min(100)]).err(), Some(error));
        assert_eq!(memory.fill(offset, length, 1), Err(error));
        assert_eq!(memory.to_vec(offset, length), Err(error));
    }
    assert_eq!(memory.write(16, &[]), Ok(()));
    assert_eq!(memory.to_vec(0, 16), Ok(vec![0; 16]));
    assert!(Memory::zeroed(usize::MAX).is_err());
}

#[test]
fn memory_of_0_bytes_allows_empty_accesses() {
    let memory = memory(0);
    assert!(memory.is_empty());
    assert_eq!(memory.write(0, &[]), Ok(()));
    assert!(memory.write(0, &[1]).is_err());
}

#[test]
fn atomics_return_the_original_and_need_alignment() {
    let memory = memory(24);
    assert_eq!(memory.fetch_add(8, 5), Ok(0));
    assert_eq!(memory.fetch_add(8, u64::MAX), Ok(5));
    assert_eq!(memory.compare_swap(8, 3, 7), Ok(4));
    assert_eq!(memory.compare_swap(8, 4, 7), Ok(4));
    assert_eq!(memory.to_vec(8, 8), Ok(7_u64.to_ne_bytes().to_vec()));
    for offset in [1, 4, 17, 20, 24, usize::MAX - 7] {
        assert!(memory.fetch_add(offset, 1).is_err(), "{offset}");
    }
}

#[test]
fn additions_of_two_threads_are_atomic() {
    let memory = memory(8);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    memory.fetch_add(0, 1).expect("the range is within the memory");
                }
            });
        }
    });
    assert_eq!(memory.fetch_add(0, 0), Ok(2000));
}

/// A read that races with writes returns only bytes that were written before or during the read.
#[test]
fn racing_reads_return_old_or_new_bytes() {
    const LENGTH: usize = 600;
    let memory = Memory::zeroed(LENGTH + 3).expect("the system has memory");
    let rounds = if cfg!(miri) { 5 } else { 2000 };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..rounds {
                for length in [5, 64, LENGTH] {
                    memory
                        .write(3, &vec![(round % 2) as u8 + 1; length])
                        .expect("the range is within the memory");
                }
            }
        });
        let mut bytes = vec![0; LENGTH];
        for _ in 0..rounds {
            memory.read(3, &mut bytes).expect("the range is within the memory");
            assert!(bytes.iter().all(|byte| *byte <= 2), "{bytes:?}");
            memory.fill(0, 3, 9).expect("the range is within the memory");
        }
    });
}

#[test]
fn copies_of_any_length_and_offset_are_exact() {
    let most = if cfg!(miri) { 20 } else { 600 };
    let memory = Memory::zeroed(most + 40).expect("the system has memory");
    assert_eq!(memory.address() % 4096, 0);
    for offset in 0..17 {
        for length in (0..most).step_by(if cfg!(miri) { 3 } else { 1 }) {
            memory.fill(0, most + 40, 0xee).expect("the range is within the memory");
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + offset) as u8).collect();
            memory.write(offset, &bytes).expect("the range is within the memory");
            assert_eq!(
                memory.to_vec(offset, length).expect("the range is within the memory"),
                bytes
            );
            let around = [memory.to_vec(0, offset), memory.to_vec(offset + length, 10)];
            assert!(around.iter().flatten().flatten().all(|byte| *byte == 0xee));
        }
    }
}

#[test]
fn copies_between_memories_are_exact() {
    let most = if cfg!(miri) { 20 } else { 700 };
    let [from, to] = [0, 1].map(|_| Memory::zeroed(most + 40).expect("the system has memory"));
    let bytes: Vec<u8> = (0..most + 40).map(|at| (at * 11) as u8).collect();
    from.write(0, &bytes).expect("the range is within the memory");
    for (from_offset, offset) in [(0, 0), (3, 0), (0, 5), (7, 9)] {
        for length in (0..most).step_by(if cfg!(miri) { 3 } else { 1 }) {
            to.fill(0, most + 40, 0xee).expect("the range is within the memory");
            to.copy_from(offset, &from, from_offset, length)
                .expect("the range is within the memory");
            let expected = &bytes[from_offset..from_offset + length];
            assert_eq!(
                to.to_vec(offset, length).expect("the range is within the memory"),
                expected
            );
            let around = [to.to_vec(0, offset), to.to_vec(offset + length, 10)];
            assert!(around.iter().flatten().flatten().all(|byte| *byte == 0xee));
        }
    }
    assert!(to.copy_from(41, &from, 0, most).is_err());
    assert!(to.copy_from(0, &from, 41, most).is_err());
}
