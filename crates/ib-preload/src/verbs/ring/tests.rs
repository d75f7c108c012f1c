use std::os::fd::FromRawFd;

use proptest::prelude::*;

use super::*;

fn file() -> RingFile {
    // SAFETY: the name ends with a zero byte; the descriptor has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
    RingFile::new(file)
}

fn ring(elements: u32) -> Ring {
    Ring::create(&mut file(), elements, 16).expect("the ring can be created")
}

/// Writes an index of the ring, as a program does.
fn set(ring: &Ring, offset: usize, value: u32) {
    ring.index(offset).store(value, Ordering::Release);
}

#[test]
fn elements_are_taken_in_order_and_released_later() {
    let mut ring = ring(3);
    let mut buffer = Vec::new();
    assert!(!ring.peek(&mut buffer));
    for number in 0..3_u8 {
        ring.memory
            .write(ELEMENTS + 16 * usize::from(number), &[number; 16])
            .expect("the element is within the ring");
    }
    set(&ring, PRODUCER, 3);
    for number in 0..3 {
        assert!(ring.peek(&mut buffer));
        assert_eq!(buffer, [number; 16]);
        ring.advance();
    }
    assert!(!ring.peek(&mut buffer));
    assert_eq!(ring.index(CONSUMER).load(Ordering::Relaxed), 0);
    ring.release();
    assert_eq!(ring.index(CONSUMER).load(Ordering::Relaxed), 1);
    ring.release_all_but(1);
    assert_eq!(ring.index(CONSUMER).load(Ordering::Relaxed), 2);
    ring.release();
    ring.release();
    assert_eq!(ring.index(CONSUMER).load(Ordering::Relaxed), 3);
}

#[test]
fn full_ring_takes_no_completion() {
    let mut ring = ring(3);
    for _ in 0..3 {
        assert!(ring.push(&[1; 16]));
    }
    assert!(!ring.push(&[1; 16]));
    set(&ring, CONSUMER, 1);
    assert!(ring.push(&[1; 16]));
    assert!(!ring.push(&[1; 17]), "the element is longer than a slot");
}

#[test]
fn rings_of_a_file_do_not_overlap() {
    let mut file = file();
    let one = Ring::create(&mut file, 100, 48).expect("the ring can be created");
    let other = Ring::create(&mut file, 1, 1024).expect("the ring can be created");
    assert_eq!(one.info().offset, 0);
    assert_eq!(other.info().offset, u64::from(one.info().size));
    assert!(other.info().offset.is_multiple_of(4096));
}

proptest! {
    #[test]
    fn no_index_leads_out_of_the_ring(
        steps in proptest::collection::vec((any::<u32>(), any::<u32>(), 0_u8..5), 1..50),
        elements in 1_u32..40,
    ) {
        let mut ring = ring(elements);
        let mut buffer = Vec::new();
        for (producer, consumer, step) in steps {
            set(&ring, PRODUCER, producer);
            set(&ring, CONSUMER, consumer);
            // The program may also overwrite the element size and the mask.
            set(&ring, 0, producer);
            set(&ring, 4, consumer);
            match step {
                0 => if ring.peek(&mut buffer) { ring.advance() },
                1 => ring.release(),
                2 => ring.release_all_but(consumer as usize),
                3 => ring.clear(),
                _ => { ring.push(&[0; 16]); }
            }
        }
    }
}
