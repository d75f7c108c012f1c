use std::sync::Arc;

use super::*;

fn memory(length: usize) -> Arc<Memory> {
    Memory::zeroed(length).expect("memory")
}

#[test]
fn what_is_written_is_read_again() {
    let memory = memory(100);
    memory.write(90, &[1, 2, 3]).expect("it fits");
    assert_eq!(memory.to_vec(89, 5), Ok(vec![0, 1, 2, 3, 0]));
    memory.fill(91, 2, 9).expect("it fits");
    assert_eq!(memory.to_vec(90, 3), Ok(vec![1, 9, 9]));
    assert_eq!(memory.address() % ALIGNMENT as u64, 0);
}

#[test]
fn nothing_beyond_the_end_is_touched() {
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
fn memory_of_no_bytes_is_memory() {
    let memory = memory(0);
    assert!(memory.is_empty());
    assert_eq!(memory.write(0, &[]), Ok(()));
    assert!(memory.write(0, &[1]).is_err());
}

#[test]
fn numbers_change_in_one_step() {
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
fn threads_add_without_loss() {
    let memory = memory(8);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    memory.fetch_add(0, 1).expect("it fits");
                }
            });
        }
    });
    assert_eq!(memory.fetch_add(0, 0), Ok(2000));
}
