use std::collections::VecDeque;

use ib_block::{Errno, ReadData};

use super::*;

/// A device in memory. Its requests complete when they are polled.
#[derive(Default)]
pub(in crate::up) struct Memory {
    pub(in crate::up) bytes: Vec<u8>,
    /// Outstanding requests, each with its number, the data that it read, and its result.
    outstanding: VecDeque<(u64, Vec<u8>, Errno)>,
    data: Vec<u8>,
    /// Number of bytes that are missing at the end of each read.
    short: usize,
    /// The offset at which reads fail, and the offset at which writes fail.
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
            return self.outstanding.push_back((user, Vec::new(), Errno::EIO));
        }
        let mut read = Vec::new();
        if is_write {
            self.bytes[part].copy_from_slice(data);
        } else {
            read.extend_from_slice(&self.bytes[part.start..part.end - self.short]);
        }
        self.outstanding.push_back((user, read, Errno::OK));
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        let (user, data, errno) = self.outstanding.pop_front()?;
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
    assert!(pass.is_over() && pass.outstanding() == 0);
}

#[test]
fn written_pattern_is_verified_and_other_data_is_wrong() {
    let size = 5 * LENGTH + 512;
    let mut device = Memory::new(size as usize);
    let mut content = Content::Pattern(3);
    let old = device.bytes[..4096].to_vec();
    let part = 4096..size;
    let mut write = Pass::new(Task::Write, part.clone());
    run(&mut write, &mut device, &mut content);
    assert_eq!((write.done, write.wrong, write.errors), (size - 4096, 0, 0));
    assert_eq!(device.bytes[..4096], old, "bytes outside of the part are unchanged");
    let compare = |device: &mut Memory, content: &mut Content| {
        let mut pass = Pass::new(Task::Compare, part.clone());
        run(&mut pass, device, content);
        (pass.done, pass.wrong, pass.errors)
    };
    assert_eq!(compare(&mut device, &mut content), (size - 4096, 0, 0));
    assert_eq!(compare(&mut device, &mut Content::Pattern(4)).1, 5, "every read differs");
    device.bytes[size as usize - 1] ^= 1;
    assert_eq!(compare(&mut device, &mut content).1, 1);
    device.bad[0] = Some(4096);
    assert_eq!(compare(&mut device, &mut content), (size - 4096 - LENGTH, 1, 1));
    device.bytes[size as usize - 1] ^= 1;
    device.bad[0] = None;
    device.short = 8;
    assert_eq!(compare(&mut device, &mut content).1, 5, "short reads count as wrong");
    let mut save = Pass::new(Task::Save, part);
    let mut saved = Content::Bytes(4096, vec![0; size as usize - 4096]);
    run(&mut save, &mut device, &mut saved);
    assert_eq!(save.wrong, 5);
}

#[test]
fn saved_content_can_be_restored() {
    let size = 3 * LENGTH;
    let mut device = Memory::new(size as usize);
    let before = device.bytes.clone();
    let part = LENGTH..size;
    let mut saved = Content::Bytes(LENGTH, vec![0; 2 * LENGTH as usize]);
    run(&mut Pass::new(Task::Save, part.clone()), &mut device, &mut saved);
    run(&mut Pass::new(Task::Write, part.clone()), &mut device, &mut Content::Pattern(0));
    assert_ne!(device.bytes, before);
    run(&mut Pass::new(Task::Write, part.clone()), &mut device, &mut saved);
    assert_eq!(device.bytes, before);
    let mut check = Pass::new(Task::Compare, part);
    run(&mut check, &mut device, &mut saved);
    assert_eq!(check.wrong, 0);
}

#[test]
fn stopped_pass_completes_outstanding_requests() {
    let size = 2 * MOST as u64 * LENGTH;
    let mut device = Memory::new(size as usize);
    let mut pass = Pass::new(Task::Write, 0..size);
    assert!(pass.work(&mut device, &mut Content::Pattern(0)));
    assert_eq!((pass.outstanding(), pass.is_over()), (MOST, false));
    pass.stop();
    run(&mut pass, &mut device, &mut Content::Pattern(0));
    assert_eq!((pass.done, device.writes), (MOST as u64 * LENGTH, MOST));
}
