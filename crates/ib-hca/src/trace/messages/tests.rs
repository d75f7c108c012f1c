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
fn the_last_messages_are_there_and_older_ones_are_counted() {
    let ring = MessageRing::default();
    assert_eq!((ring.ended(), ring.get(0)), (0, None));
    for number in 0..1000 {
        ring.write(&message(number));
        check(number, &ring.get(number).expect("it has just ended"));
        assert_eq!(ring.get(number + 1), None);
    }
    let (found, lost) = ring.since(900);
    // The oldest one's place may be written to at any moment.
    assert_eq!((found.len() as u64, lost), (BLOCKS - 1, 100 - (BLOCKS - 1)));
    for block in found {
        check(block.number, &block);
    }
    assert_eq!(ring.since(1000), (Vec::new(), 0));
}

#[test]
fn a_block_has_64_bytes() {
    assert_eq!(size_of::<Block>(), 64);
}

/// What a reader beside the adapter gets is whole, and what it does not get is counted.
#[test]
fn a_reader_beside_the_adapter_gets_whole_blocks() {
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
    let (read, lost) = reader.join().expect("no panic");
    assert_eq!(read + lost, COUNT);
    assert!(read >= BLOCKS - 1);
}
