//! Commands of the user, their parts, and the registered memory for their data. A part starts when a buffer is free.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, mpsc};

use ib_block::data::{Lent, Part, ReadData};
use ib_block::{Command, Errno, Geometry, Operation, Plan};
use ib_hca::Memory;
use ib_rtrs::{Adapters, BufferId, Client as Rtrs, Segment, SetupError};
use slab::Slab;

use crate::DeviceId;
use crate::remote::{ReadMode, RemoteConfig};

/// The data of a read is lent only if the read has at most this number of parts.
const MAX_LENT_PARTS: usize = 8;

/// A command of the user.
#[derive(Debug)]
struct PendingCommand {
    device: DeviceId,
    user: u64,
    command: Command,
    plan: Plan,
    /// The next part to start; `None` if all parts were started, or no further part is to be started.
    next: Option<Command>,
    /// Number of parts in flight.
    in_flight: usize,
    errno: Errno,
    /// The data of a write, or the buffer of a read.
    data: Vec<u8>,
    /// The parts that have been read, by their offsets in bytes from the command's offset. `None` if the command is not
    /// a read, or if its data is not lent to the user.
    lent: Option<BTreeMap<u64, Part>>,
}

/// A part of a command, which one request can carry.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandPart {
    /// The index of the command to which the part belongs.
    pending: usize,
    pub(super) device: DeviceId,
    pub(super) command: Command,
    slot: Option<usize>,
    /// True if the command of the user is a flush. False for other commands; a write with FUA may have a flush as its
    /// last part.
    pub(super) is_own_flush: bool,
    /// For a flush: number of confirmed changes of the device that the flush covers.
    pub(super) covers: u64,
    /// Number of times that the device had been opened when the part was sent.
    pub(super) opening: u32,
}

/// All commands that have not completed, and their data. Each command has parts in flight, or is in `unstarted`.
#[derive(Debug)]
pub(super) struct Commands {
    /// Maximum number of parts in flight for each command.
    depth: usize,
    reads: ReadMode,
    /// Registered buffers; `None` until the session is connected, because the maximum length of requests is not known
    /// before.
    buffers: Option<BufferPool>,
    pending: Slab<PendingCommand>,
    /// Commands with parts that were not started, in the order in which parts are started.
    unstarted: VecDeque<usize>,
    parts: Slab<CommandPart>,
    spare: SpareBuffers,
    ended: VecDeque<(u64, Errno, ReadData)>,
    last: ReadData,
}

impl Commands {
    pub(super) fn new(config: &RemoteConfig) -> Self {
        Self {
            depth: config.depth.max(1),
            reads: config.reads,
            buffers: None,
            pending: Slab::new(),
            unstarted: VecDeque::new(),
            parts: Slab::new(),
            spare: SpareBuffers::default(),
            ended: VecDeque::new(),
            last: ReadData::default(),
        }
    }

    pub(super) const fn has_buffers(&self) -> bool {
        self.buffers.is_some()
    }

    pub(super) fn set_buffers(&mut self, buffers: BufferPool) {
        self.buffers = Some(buffers);
    }

    /// Returns the number of commands that have not completed.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Completes a command immediately.
    pub(super) fn end(&mut self, user: u64, errno: Errno) {
        self.ended.push_back((user, errno, ReadData::default()));
    }

    /// Adds a command and divides it into parts of at most `max_io_size` bytes. The caller has checked that the device
    /// can execute the command.
    pub(super) fn submit(
        &mut self,
        device: DeviceId,
        user: u64,
        command: Command,
        data: &[u8],
        geometry: &Geometry,
        max_io_size: u32,
    ) {
        let mut plan = Plan::new(command, geometry, max_io_size);
        // Data is lent only if the command has at most this number of parts. Then the buffers that are never lent
        // suffice for the command. So two commands never block each other while each holds some of its buffers.
        let most = MAX_LENT_PARTS.min(self.buffers.as_ref().map_or(0, BufferPool::unlent));
        let is_lent = command.operation == Operation::Read
            && matches!(self.reads, ReadMode::Lent(least) if command.length >= least)
            && plan.clone().nth(most).is_none();
        let data = match command.operation {
            Operation::Write => {
                assert_eq!(
                    data.len() as u64,
                    command.length,
                    "the data of a write must have the length of the command"
                );
                let mut kept = self.spare.take(data.len());
                kept.copy_from_slice(data);
                kept
            }
            Operation::Read if self.reads != ReadMode::Dropped && !is_lent => {
                self.spare.take(command.length as usize)
            }
            _ => Vec::new(),
        };
        let next = plan.next();
        if next.is_none() {
            // A command of length 0 has no parts.
            return self.end(user, Errno::OK);
        }
        let (in_flight, errno) = (0, Errno::OK);
        let lent = is_lent.then(BTreeMap::new);
        let pending =
            PendingCommand { device, user, command, plan, next, in_flight, errno, data, lent };
        let pending = self.pending.insert(pending);
        self.unstarted.push_back(pending);
    }

    /// Starts a part of a command; returns `None` if no part can start, for example because no buffer is free.
    ///
    /// Commands take turns: each call starts one part of the next command. A command with lent data is an exception:
    /// all of its parts start in consecutive calls. A command has at most `depth` parts in flight, even if its parts
    /// have no data.
    ///
    /// `changes` returns the number of confirmed changes of a device. A flush covers the changes confirmed before it
    /// starts.
    pub(super) fn start(
        &mut self,
        changes: impl Fn(DeviceId) -> u64,
    ) -> Option<(usize, CommandPart)> {
        let buffers = self.buffers.as_mut()?;
        let mut passed = 0;
        while passed < self.unstarted.len() {
            let number = self.unstarted[0];
            let pending = &mut self.pending[number];
            if pending.in_flight >= self.depth {
                self.unstarted.rotate_left(1);
                passed += 1;
                continue;
            }
            let Some(command) = pending.next else {
                self.unstarted.pop_front();
                continue;
            };
            let operation = command.operation;
            if operation == Operation::Flush && pending.in_flight > 0 {
                // A flush starts after all other parts of its command have completed.
                self.unstarted.pop_front();
                continue;
            }
            let has_data =
                matches!(operation, Operation::Read | Operation::Write | Operation::WriteZeroes);
            let slot = if has_data { Some(buffers.take()?) } else { None };
            if let Some(slot) = slot {
                let (at, length) = (slot * buffers.piece, command.length as usize);
                let from = (command.offset - pending.command.offset) as usize;
                let put = match operation {
                    Operation::Write => {
                        buffers.memory.write(at, &pending.data[from..from + length])
                    }
                    Operation::WriteZeroes => buffers.memory.fill(at, length, 0),
                    _ => Ok(()),
                };
                put.expect("a part is within its buffer");
            }
            // A command with lent data keeps its place in the queue until it has all of its buffers.
            if pending.lent.is_none() {
                self.unstarted.rotate_left(1);
            }
            pending.in_flight += 1;
            pending.next = pending.plan.next();
            let device = pending.device;
            let part = CommandPart {
                pending: number,
                device,
                command,
                slot,
                is_own_flush: pending.command.operation == Operation::Flush,
                covers: changes(device),
                opening: 0,
            };
            return Some((self.parts.insert(part), part));
        }
        None
    }

    /// Prepares to send a part, and returns its buffer, if any. `openings` returns the number of times that a device
    /// was opened.
    pub(super) fn send(
        &mut self,
        number: u64,
        length: u32,
        openings: impl Fn(DeviceId) -> u32,
    ) -> Option<Segment> {
        let part = self.parts.get_mut(number as usize)?;
        part.opening = openings(part.device);
        Some(self.buffers.as_ref()?.segment(part.slot?, length))
    }

    /// Returns a part that has not completed.
    pub(super) fn part(&self, number: u64) -> Option<CommandPart> {
        self.parts.get(number as usize).copied()
    }

    /// Removes a completed part. The caller passes it to [`Commands::finish`], with its result.
    pub(super) fn take_part(&mut self, number: u64) -> Option<CommandPart> {
        self.parts.try_remove(number as usize)
    }

    /// Returns true if started parts of a device's commands have not completed.
    pub(super) fn has_parts(&self, device: DeviceId) -> bool {
        self.parts.iter().any(|(_, part)| part.device == device)
    }

    /// Handles the result of a part. A command completes after its last part. If a part fails, no further part of the
    /// command is started.
    pub(super) fn finish(&mut self, part: CommandPart, errno: Errno) {
        let CommandPart { pending: at, command, slot, .. } = part;
        let pending = &mut self.pending[at];
        if let (Some(slot), Some(buffers)) = (slot, &mut self.buffers) {
            let reads = command.operation == Operation::Read && errno.is_ok();
            let (from, length) = (command.offset - pending.command.offset, command.length as usize);
            match &mut pending.lent {
                Some(parts) if reads => {
                    parts.insert(from, Part { slot, length });
                }
                _ => {
                    if reads && !pending.data.is_empty() {
                        let to = &mut pending.data[from as usize..from as usize + length];
                        let read = buffers.memory.read(slot * buffers.piece, to);
                        read.expect("a part is within its buffer");
                    }
                    buffers.give(slot);
                }
            }
        }
        pending.in_flight -= 1;
        if pending.errno.is_ok() && !errno.is_ok() {
            (pending.errno, pending.next) = (errno, None);
        }
        if pending.in_flight > 0 {
            return;
        }
        if pending.next.is_some() {
            if !self.unstarted.contains(&at) {
                self.unstarted.push_front(at);
            }
            return;
        }
        self.unstarted.retain(|other| *other != at);
        self.complete(at);
    }

    /// Completes a command without parts in flight.
    fn complete(&mut self, at: usize) {
        let PendingCommand { user, command, errno, data, lent, .. } = self.pending.remove(at);
        let reads = command.operation == Operation::Read && errno.is_ok();
        let parts: Vec<Part> = lent.into_iter().flat_map(BTreeMap::into_values).collect();
        let data = match &mut self.buffers {
            Some(buffers) if reads && !parts.is_empty() => buffers.hand_out(parts, &mut self.spare),
            _ if reads => ReadData::Bytes(data),
            buffers => {
                self.spare.keep(data);
                if let Some(buffers) = buffers {
                    // If a read has failed, the buffers of its parts are freed.
                    parts.iter().for_each(|part| buffers.give(part.slot));
                }
                ReadData::default()
            }
        };
        self.ended.push_back((user, errno, data));
    }

    /// Fails the commands that change the device and have parts that were not started. If a command has parts in
    /// flight, it completes after them.
    pub(super) fn fail_changes(&mut self, device: DeviceId) {
        for number in std::mem::take(&mut self.unstarted) {
            let pending = &mut self.pending[number];
            if pending.device != device || !pending.command.operation.is_change() {
                self.unstarted.push_back(number);
                continue;
            }
            (pending.errno, pending.next) = (Errno::EIO, None);
            if pending.in_flight == 0 {
                self.complete(number);
            }
        }
    }

    /// Returns true if [`Commands::poll`] returns a completed command.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Returns the next completed command. Its data replaces the data of the previously returned command.
    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        let (user, errno, data) = self.ended.pop_front()?;
        let last = std::mem::replace(&mut self.last, data);
        self.give_back(last);
        Some((user, errno))
    }

    pub(super) fn data(&self) -> &[u8] {
        match &self.last {
            ReadData::Bytes(bytes) => bytes,
            ReadData::Lent(_) => &[],
        }
    }

    pub(super) fn take_data(&mut self) -> ReadData {
        std::mem::take(&mut self.last)
    }

    pub(super) fn give_back(&mut self, data: ReadData) {
        if let ReadData::Bytes(buffer) = data {
            self.spare.keep(buffer);
        }
    }
}

/// Spare buffers for copies of data. They are reused, because the allocation of memory costs more than the copy.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareBuffers {
    /// Maximum number of bytes of all spare buffers.
    const MAX_BYTES: usize = 16 << 20;

    /// Returns a buffer of `length` bytes with arbitrary contents.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer.resize(length, 0);
        buffer
    }

    pub(super) fn keep(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= Self::MAX_BYTES {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// Registered memory, divided into buffers of equal length.
#[derive(Debug)]
pub(super) struct BufferPool {
    pub(super) memory: Arc<Memory>,
    buffer: BufferId,
    pub(super) piece: usize,
    count: usize,
    free: Vec<usize>,
    /// Number of buffers that are lent to the user.
    lent: usize,
    /// Receives the indices of lent buffers whose data the user has dropped.
    returned: Receiver<usize>,
    returns: Sender<usize>,
}

impl BufferPool {
    pub(super) fn new(
        rtrs: &mut Rtrs,
        cx: &mut impl Adapters,
        (piece, count): (usize, usize),
    ) -> Result<Self, SetupError> {
        let memory = Memory::zeroed(piece * count)?;
        let buffer = rtrs.register(cx, Arc::clone(&memory))?;
        let (returns, returned) = mpsc::channel();
        let (free, lent) = ((0..count).rev().collect(), 0);
        Ok(Self { memory, buffer, piece, count, free, lent, returned, returns })
    }

    /// Takes a free buffer.
    pub(super) fn take(&mut self) -> Option<usize> {
        if self.lent > 0 {
            while let Ok(slot) = self.returned.try_recv() {
                self.lent -= 1;
                self.free.push(slot);
            }
        }
        self.free.pop()
    }

    /// Returns a buffer to the pool.
    pub(super) fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Returns the number of buffers that are never lent: half of all buffers, rounded up.
    pub(super) const fn unlent(&self) -> usize {
        self.count - self.count / 2
    }

    /// Lends the data in these buffers to the user. At most half of all buffers are lent, so that slow users do not
    /// block others. If the limit is reached, copies the data.
    pub(super) fn hand_out(&mut self, parts: Vec<Part>, spare: &mut SpareBuffers) -> ReadData {
        if self.lent + parts.len() <= self.count - self.unlent() {
            self.lent += parts.len();
            let (memory, returns) = (Arc::clone(&self.memory), self.returns.clone());
            return ReadData::Lent(Lent::new(memory, parts, self.piece, returns));
        }
        let mut bytes = spare.take(parts.iter().map(|part| part.length).sum());
        let mut rest = &mut bytes[..];
        for Part { slot, length } in parts {
            let (to, behind) = rest.split_at_mut(length);
            self.memory.read(slot * self.piece, to).expect("a part is within its buffer");
            rest = behind;
            self.give(slot);
        }
        ReadData::Bytes(bytes)
    }

    pub(super) const fn segment(&self, slot: usize, length: u32) -> Segment {
        Segment { buffer: self.buffer, offset: slot * self.piece, length }
    }
}
