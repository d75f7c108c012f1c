use std::collections::VecDeque;

use ib_block::{Errno, ReadData};

use super::*;

/// A device in memory, which answers when it is asked.
#[derive(Default)]
pub(in crate::up) struct Memory {
    pub(in crate::up) bytes: Vec<u8>,
    /// What is under way: number, what is read, how it ends.
    under_way: VecDeque<(u64, Vec<u8>, Errno)>,
    data: Vec<u8>,
    /// How many bytes are missing at the end of what is read.
    short: usize,
    /// Where reads and where writes fail.
    pub(in crate::up) bad: [Option<u64>; 2],
    pub(in crate::up) writes: usize,
}

impl Memory {
    pub(in crate::up) fn new(size: usize) -> Self {
        let bytes = (0..size).map(|at| (at % 251) as u8).collect();
        Self { bytes, ..Self::default() }
    }
}

impl Backing for Memory {
    fn submit(&mut self, user: u64, command: Command, data: &[u8]) {
        let part = command.offset as usize..(command.offset + command.length) as usize;
        let is_write = command.operation == Operation::Write;
        self.writes += usize::from(is_write);
        if self.bad[usize::from(is_write)].is_some_and(|bad| part.contains(&(bad as usize))) {
            return self.under_way.push_back((user, Vec::new(), Errno::EIO));
        }
        let mut read = Vec::new();
        if is_write {
            self.bytes[part].copy_from_slice(data);
        } else {
            read.extend_from_slice(&self.bytes[part.start..part.end - self.short]);
        }
        self.under_way.push_back((user, read, Errno::OK));
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        let (user, data, errno) = self.under_way.pop_front()?;
        self.data = data;
        Some((user, errno))
    }

    fn take_data(&mut self) -> ReadData {
        std::mem::take(&mut self.data).into()
    }

    fn give_back(&mut self, _: ReadData) {}

    fn losses(&self) -> u64 {
        0
    }
}

fn run(pass: &mut Pass, device: &mut Memory, content: &mut Content) {
    while pass.work(device, content) {}
    assert!(pass.is_over() && pass.under_way() == 0);
}

#[test]
fn what_was_written_is_read_again_and_anything_else_is_wrong() {
    let size = 5 * LENGTH + 512;
    let mut device = Memory::new(size as usize);
    let mut content = Content::Pattern(3);
    let old = device.bytes[..4096].to_vec();
    let part = 4096..size;
    let mut write = Pass::new(Task::Write, part.clone());
    run(&mut write, &mut device, &mut content);
    assert_eq!((write.done, write.wrong, write.errors), (size - 4096, 0, 0));
    assert_eq!(device.bytes[..4096], old, "the rest is as it was");
    let compare = |device: &mut Memory, content: &mut Content| {
        let mut pass = Pass::new(Task::Compare, part.clone());
        run(&mut pass, device, content);
        (pass.done, pass.wrong, pass.errors)
    };
    assert_eq!(compare(&mut device, &mut content), (size - 4096, 0, 0));
    assert_eq!(compare(&mut device, &mut Content::Pattern(4)).1, 5, "every request");
    device.bytes[size as usize - 1] ^= 1;
    assert_eq!(compare(&mut device, &mut content).1, 1);
    device.bad[0] = Some(4096);
    assert_eq!(compare(&mut device, &mut content), (size - 4096 - LENGTH, 1, 1));
    device.bytes[size as usize - 1] ^= 1;
    device.bad[0] = None;
    device.short = 8;
    assert_eq!(compare(&mut device, &mut content).1, 5, "what is short is wrong");
    let mut keep = Pass::new(Task::Keep, part);
    let mut kept = Content::Bytes(4096, vec![0; size as usize - 4096]);
    run(&mut keep, &mut device, &mut kept);
    assert_eq!(keep.wrong, 5);
}

#[test]
fn what_is_kept_can_be_put_back() {
    let size = 3 * LENGTH;
    let mut device = Memory::new(size as usize);
    let before = device.bytes.clone();
    let part = LENGTH..size;
    let mut kept = Content::Bytes(LENGTH, vec![0; 2 * LENGTH as usize]);
    run(&mut Pass::new(Task::Keep, part.clone()), &mut device, &mut kept);
    run(&mut Pass::new(Task::Write, part.clone()), &mut device, &mut Content::Pattern(0));
    assert_ne!(device.bytes, before);
    run(&mut Pass::new(Task::Write, part.clone()), &mut device, &mut kept);
    assert_eq!(device.bytes, before);
    let mut check = Pass::new(Task::Compare, part);
    run(&mut check, &mut device, &mut kept);
    assert_eq!(check.wrong, 0);
}

#[test]
fn a_pass_that_stops_ends_with_what_is_under_way() {
    let size = 2 * MOST as u64 * LENGTH;
    let mut device = Memory::new(size as usize);
    let mut pass = Pass::new(Task::Write, 0..size);
    assert!(pass.work(&mut device, &mut Content::Pattern(0)));
    assert_eq!((pass.under_way(), pass.is_over()), (MOST, false));
    pass.stop();
    run(&mut pass, &mut device, &mut Content::Pattern(0));
    assert_eq!((pass.done, device.writes), (MOST as u64 * LENGTH, MOST));
}
