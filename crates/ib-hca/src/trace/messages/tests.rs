use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use super::*;

fn message(number: u64) -> Message {
    Message {
        direction: if number.is_multiple_of(3) { Direction::Receive } else { Direction::Send },
        opcode: WcOpcode::ALL[(number % WcOpcode::ALL.len() as u64) as usize],
        status: WcStatus::ALL[(number % WcStatus::ALL.len() as u64) as usize],
        wr_id: number * 7,
        begin: Instant::from_nanos(number),
        started: Instant::from_nanos(number + 1),
        end: Instant::from_nanos(number + 2),
        length: number as u32,
        first: Psn::truncated(number as u32 * 3),
        packets: number as u32 + 1,
    }
}

fn check(number: u64, block: &MessageBlock) {
    let Message { direction, opcode, status, wr_id, begin, started, end, length, first, packets } =
        message(number);
    let (operation, status) = (opcode.name(), status.name());
    let expected = MessageBlock {
        number,
        direction,
        operation,
        status,
        wr_id,
        begin,
        started,
        end,
        length,
        first,
        packets,
    };
    assert_eq!(*block, expected);
}

#[test]
fn last_messages_are_returned_and_overwritten_ones_counted() {
    let ring = MessageRing::default();
    assert_eq!((ring.ended(), ring.get(0)), (0, None));
    for number in 0..1000 {
        ring.write(&message(number));
        check(number, &ring.get(number).expect("the message was just written"));
        assert_eq!(ring.get(number + 1), None);
    }
    let (found, lost) = ring.since(900);
    // The oldest block is not returned, because the HCA may be overwriting it.
    assert_eq!((found.len() as u64, lost), (BLOCKS - 1, 100 - (BLOCKS - 1)));
    for block in found {
        check(block.number, &block);
    }
    assert_eq!(ring.since(1000), (Vec::new(), 0));
}

#[test]
fn command_block_has_64_bytes() {
    assert_eq!(size_of::<Block>(), 64);
}

/// A concurrent reader gets consistent blocks, and the exact number of overwritten blocks.
#[test]
fn concurrent_reader_gets_consistent_blocks() {
    const COUNT: u64 = 300_000;
    let ring = Arc::new(MessageRing::default());
    let done = Arc::new(AtomicBool::new(false));
    let (other, ends) = (Arc::clone(&ring), Arc::clone(&done));
    let reader = thread::spawn(move || {
        let (mut next, mut read, mut lost) = (0, 0, 0);
        loop {
            let ended = ends.load(Ordering::Acquire);
            let (found, missed) = other.since(next);
            for block in &found {
                check(block.number, block);
            }
            read += found.len() as u64;
            lost += missed;
            next += found.len() as u64 + missed;
            if ended && next == COUNT {
                return (read, lost);
            }
        }
    });
    for number in 0..COUNT {
        ring.write(&message(number));
    }
    done.store(true, Ordering::Release);
    let (read, lost) = reader.join().expect("the reader has not panicked");
    assert_eq!(read + lost, COUNT);
    assert!(read >= BLOCKS - 1);
}
