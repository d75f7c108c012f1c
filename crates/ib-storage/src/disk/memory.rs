//! A disk in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use ib_block::{Command, Discard, Errno, Geometry, Operation};
use ib_hca::Memory;

use super::{DiskError, Job};

/// Maximum length of a discard in bytes.
const MAX_DISCARD: u64 = 4 << 20;

/// A disk in memory. Jobs complete immediately.
#[derive(Debug)]
pub(super) struct MemoryDisk {
    memory: Arc<Memory>,
    ended: VecDeque<(u64, Errno)>,
}

impl MemoryDisk {
    pub(super) fn new(size: u64) -> Result<(Self, Geometry), DiskError> {
        if size == 0 || !size.is_multiple_of(512) {
            return Err(DiskError::Size(size));
        }
        let length = usize::try_from(size).ok();
        let memory = length.and_then(|length| Memory::zeroed(length).ok());
        let memory = memory.ok_or(DiskError::OutOfMemory(size))?;
        let discard = Discard { granularity: 512, alignment: 0, max: MAX_DISCARD };
        let geometry = Geometry {
            discard: Some(discard),
            physical_block: 4096,
            // A disk in memory has no write cache.
            write_back: false,
            fua: false,
            ..Geometry::new(size, 512)
        };
        Ok((Self { memory, ended: VecDeque::new() }, geometry))
    }

    pub(super) const fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(super) fn submit(&mut self, job: &Job) {
        let Command { operation, offset, length, .. } = job.command;
        let (at, length) = (offset as usize, length as usize);
        let done = match operation {
            Operation::Read => job.memory.copy_from(job.offset, &self.memory, at, length),
            Operation::Write => self.memory.copy_from(at, &job.memory, job.offset, length),
            Operation::Flush => Ok(()),
            Operation::Discard | Operation::SecureErase | Operation::WriteZeroes => {
                self.memory.fill(at, length, 0)
            }
        };
        self.ended.push_back((job.id, if done.is_ok() { Errno::OK } else { Errno::EIO }));
    }

    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        self.ended.pop_front()
    }
}
