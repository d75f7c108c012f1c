//! Two rings of slots in shared memory, one per direction.
//!
//! A ring has one producer and one consumer. The producer counts the slots that it has filled, and the
//! consumer counts the slots that it has emptied. Both counters wrap. Each process writes one counter and
//! reads the other, so that no lock is needed. Before a process sleeps, it sets a flag and checks
//! the ring once more. A process that has filled or emptied slots checks the flags of the other process
//! (`Rings::flush`). If a flag is set, it signals the event counter of the sleeping process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::frame::{Frame, HEADER, SLOT};

/// Number of slots of each ring: maximum number of packets and MADs in flight per direction.
pub const SLOTS: u32 = 512;

/// Offset of the first slot, behind the counters of both rings.
const START: usize = 4096;

/// Size of the shared memory in bytes.
const LENGTH: usize = START + 2 * SLOTS as usize * SLOT;

/// Offsets of a ring's counters and flags. Each has its own cache line.
const PUT: usize = 0;
const TAKEN: usize = 64;
/// Flag: the consumer sleeps until the producer fills a slot.
const CONSUMER_SLEEPS: usize = 128;
/// Flag: the producer sleeps until the consumer empties a slot.
const PRODUCER_SLEEPS: usize = 192;
/// Size of the counters and flags of a ring in bytes.
const NUMBERS: usize = 256;

/// A mapping of the shared memory.
struct Mapping(NonNull<u8>);

// SAFETY: counters and flags are accessed by atomics. A slot is accessed only by the side to which
// the counters assign it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and no references to it exist. A failure
        // has no consequence.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

impl Mapping {
    fn new(file: BorrowedFd<'_>) -> io::Result<Arc<Self>> {
        // SAFETY: the kernel chooses the address, and the file cannot shrink.
        let address = unsafe {
            mmap(
                ptr::null_mut(),
                LENGTH,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Arc::new(Self(NonNull::new(address.cast()).expect("a mapping is not at address 0"))))
    }

    fn number(&self, ring: usize, which: usize) -> &AtomicU32 {
        // SAFETY: the offset is within the mapping and aligned, and these bytes are accessed by
        // atomics only.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().add(ring * NUMBERS + which).cast()) }
    }

    fn slot(&self, ring: usize, number: u32) -> NonNull<u8> {
        let slot = ring * SLOTS as usize + (number % SLOTS) as usize;
        // SAFETY: the offset is within the mapping.
        unsafe { self.0.add(START + slot * SLOT) }
    }
}

/// An event counter (eventfd) that wakes a process.
struct Bell(OwnedFd);

impl Bell {
    fn ring(&self) {
        // If the counter is at its maximum, the write fails, but the nonzero counter still wakes
        // the process.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The descriptors that two processes share.
pub(super) struct Files {
    pub(super) memory: OwnedFd,
    /// Event counters: the first wakes the simulator, the second the client.
    pub(super) bells: [OwnedFd; 2],
}

impl Files {
    /// Creates the shared memory and both event counters. The memory is sealed, so that it cannot
    /// shrink while a process accesses it.
    pub(super) fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("ibfabric-port", flags)?;
        ftruncate(&memory, LENGTH as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { memory, bells: [bell()?, bell()?] })
    }
}

/// One of the two processes that share the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Simulator,
    Client,
}

/// Access of one process, the simulator or the client, to both rings.
pub(super) struct Rings {
    memory: Arc<Mapping>,
    side: Side,
    /// `put` counts the frames that this process has put into the outgoing ring. `taken` counts the frames that this
    /// process has taken out of the incoming ring.
    put: u32,
    taken: u32,
    /// Event counters: `own` wakes this process, `other` the other process.
    own: OwnedFd,
    other: Bell,
    /// True if this process has filled or emptied slots since the last [`Rings::flush`].
    has_unannounced: bool,
}

impl Rings {
    /// Maps the memory.
    pub(super) fn open(files: Files, side: Side) -> io::Result<Self> {
        let seals = fcntl_get_seals(&files.memory)?;
        let length = fstat(&files.memory)?.st_size;
        if !seals.contains(SealFlags::SHRINK) || length != LENGTH as i64 {
            let what = format!(
                "found memory of {length} bytes, expected {LENGTH} bytes, sealed against shrinking"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let memory = Mapping::new(files.memory.as_fd())?;
        let [simulator, client] = files.bells;
        let (own, other) = match side {
            Side::Simulator => (simulator, client),
            Side::Client => (client, simulator),
        };
        Ok(Self { memory, side, put: 0, taken: 0, own, other: Bell(other), has_unannounced: false })
    }

    const fn outgoing(&self) -> usize {
        matches!(self.side, Side::Simulator) as usize
    }

    const fn incoming(&self) -> usize {
        1 - self.outgoing()
    }

    /// Returns the event counter that wakes this process.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// Resets the event counter that wakes this process.
    pub(super) fn silence(&self) {
        let _ = rustix::io::read(&self.own, &mut [0; 8]);
    }

    /// Returns the number of free slots for outgoing frames; 0 if the other process has written an
    /// invalid counter.
    pub(super) fn room(&self) -> u32 {
        let taken = self.memory.number(self.outgoing(), TAKEN).load(Ordering::Acquire);
        SLOTS.saturating_sub(self.put.wrapping_sub(taken))
    }

    /// Puts a frame into the outgoing ring. Returns false if the ring is full.
    pub(super) fn put(&mut self, frame: Frame, bytes: &[u8]) -> bool {
        if self.room() == 0 {
            return false;
        }
        let header = frame.to_bytes(bytes.len());
        let slot = self.memory.slot(self.outgoing(), self.put);
        assert!(HEADER + bytes.len() <= SLOT, "the caller checked the length");
        // SAFETY: the slot is within the mapping and large enough. The counters assign it to this
        // process: the other process reads it only after `record_put`.
        unsafe {
            slot.copy_from_nonoverlapping(NonNull::from(&header).cast(), HEADER);
            let bytes = NonNull::from(bytes);
            slot.add(HEADER).copy_from_nonoverlapping(bytes.cast(), bytes.len());
        }
        self.record_put();
        true
    }

    /// Calls `write` to write a frame directly into the outgoing ring. Returns false if the ring is
    /// full or `write` returned `None`.
    ///
    /// Only the client may call this function, because only the client trusts the other process not
    /// to access its slots.
    pub(super) fn put_with(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<(Frame, usize)>,
    ) -> bool {
        debug_assert_eq!(self.side, Side::Client);
        if self.room() == 0 {
            return false;
        }
        let slot = self.memory.slot(self.outgoing(), self.put);
        // SAFETY: the bytes are within the mapping and initialized, and the simulator does not
        // access them before the client increments its counter.
        let slot = unsafe { std::slice::from_raw_parts_mut(slot.as_ptr(), SLOT) };
        let (header, bytes) = slot.split_at_mut(HEADER);
        let Some((frame, length)) = write(bytes) else { return false };
        header.copy_from_slice(&frame.to_bytes(length));
        self.record_put();
        true
    }

    fn record_put(&mut self) {
        self.put = self.put.wrapping_add(1);
        self.memory.number(self.outgoing(), PUT).store(self.put, Ordering::Release);
        self.has_unannounced = true;
    }

    /// Returns true if frames are waiting.
    pub(super) fn has_incoming(&self) -> bool {
        self.memory.number(self.incoming(), PUT).load(Ordering::Acquire) != self.taken
    }

    /// Takes the next frame and appends its bytes to `bytes`. Returns `Err` for an invalid frame or
    /// counter.
    pub(super) fn take(&mut self, bytes: &mut Vec<u8>) -> Option<Result<Frame, Malformed>> {
        let there = self.memory.number(self.incoming(), PUT).load(Ordering::Acquire);
        match there.wrapping_sub(self.taken) {
            0 => return None,
            1..=SLOTS => {}
            _ => {
                self.taken = there;
                return Some(Err(Malformed));
            }
        }
        let slot = self.memory.slot(self.incoming(), self.taken);
        let mut header = [0; HEADER];
        // SAFETY: the header is within the mapping. The other process may write to it during the
        // copy, so the copy is checked below.
        unsafe {
            slot.cast::<[u8; HEADER]>().copy_to_nonoverlapping(NonNull::from(&mut header), 1)
        };
        let frame = Frame::parse(&header);
        if let Some((_, length)) = frame {
            bytes.reserve(length);
            let end = bytes.len();
            // SAFETY: the length is within the slot, the vector has room for it, and all copied
            // bytes are initialized.
            unsafe {
                let to = bytes.as_mut_ptr().add(end);
                slot.add(HEADER).as_ptr().copy_to_nonoverlapping(to, length);
                bytes.set_len(end + length);
            }
        }
        self.record_taken();
        Some(frame.map(|(frame, _)| frame).ok_or(Malformed))
    }

    /// Passes the next frame to `read` without a copy. Returns false if no frame is waiting.
    ///
    /// Only the client may call this function, for the same reason as [`Rings::put_with`].
    pub(super) fn take_with(&mut self, read: impl FnOnce(Frame, &[u8])) -> bool {
        debug_assert_eq!(self.side, Side::Client);
        if !self.has_incoming() {
            return false;
        }
        let slot = self.memory.slot(self.incoming(), self.taken);
        // SAFETY: the bytes are within the mapping and initialized, and the simulator does not
        // write to them before `record_taken` increments the counter.
        let slot = unsafe { std::slice::from_raw_parts(slot.as_ptr(), SLOT) };
        if let Some((frame, length)) =
            Frame::parse(slot.first_chunk().expect("a slot is longer than a header"))
        {
            read(frame, &slot[HEADER..HEADER + length]);
        }
        self.record_taken();
        true
    }

    fn record_taken(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.memory.number(self.incoming(), TAKEN).store(self.taken, Ordering::Release);
        self.has_unannounced = true;
    }

    /// Wakes the other process if it sleeps and frames or free slots are available for it.
    pub(super) fn flush(&mut self) {
        if !std::mem::take(&mut self.has_unannounced) {
            return;
        }
        fence(Ordering::SeqCst);
        let flags = [(self.outgoing(), CONSUMER_SLEEPS), (self.incoming(), PRODUCER_SLEEPS)];
        let mut wakes = false;
        for (ring, flag) in flags {
            let flag = self.memory.number(ring, flag);
            wakes |= flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0;
        }
        if wakes {
            self.other.ring();
        }
    }

    /// Announces that this process will sleep until a frame arrives (`wants_frames`) or a slot is
    /// free (`wants_room`). Returns false if a frame or slot is available already.
    pub(super) fn may_sleep(&mut self, wants_frames: bool, wants_room: bool) -> bool {
        self.flush();
        if wants_frames {
            self.memory.number(self.incoming(), CONSUMER_SLEEPS).store(1, Ordering::Relaxed);
        }
        if wants_room {
            self.memory.number(self.outgoing(), PRODUCER_SLEEPS).store(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        !(wants_frames && self.has_incoming() || wants_room && self.room() > 0)
    }
}

/// Error: the other process has written an invalid frame or counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[cfg(test)]
mod tests;
