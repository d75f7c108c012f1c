//! Slots in memory that two processes share: a ring in each direction.
//!
//! A ring has one producer and one consumer. Two numbers count what was ever put in and taken out; both wrap.
//! Each side writes one of them and reads the other, so no lock is needed. Before a side sleeps it
//! says so in a flag and looks once more; the other one looks at the flag after every step that may
//! wake it, and rings the sleeper's event counter.

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

/// How many packets and datagrams may be on their way between a simulator and a client, each way.
pub const SLOTS: u32 = 512;

/// Where the slots of the first ring start; before it are the numbers of both.
const START: usize = 4096;

/// The length of the memory.
const LENGTH: usize = START + 2 * SLOTS as usize * SLOT;

/// Where the numbers of a ring are, a cache line for each.
const PUT: usize = 0;
const TAKEN: usize = 64;
/// Whether the consumer sleeps until something is put in.
const HUNGRY: usize = 128;
/// Whether the producer sleeps until something is taken out.
const FULL: usize = 192;
/// What a ring has of them.
const NUMBERS: usize = 256;

/// Memory that is shared.
struct Mapping(NonNull<u8>);

// SAFETY: the memory is reached by atomics, and by copies of slots that the numbers give to one side only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length and nobody refers to it any more. There is
        // nothing to be done where that fails.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), LENGTH) };
    }
}

impl Mapping {
    fn new(file: BorrowedFd<'_>) -> io::Result<Arc<Self>> {
        // SAFETY: a new mapping is made where the system wants it, of a file that cannot shrink.
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
        Ok(Arc::new(Self(NonNull::new(address.cast()).expect("a mapping is not at 0"))))
    }

    fn number(&self, ring: usize, which: usize) -> &AtomicU32 {
        // SAFETY: the offset is within the mapping and aligned, and nobody reaches these bytes otherwise
        // than by atomics.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().add(ring * NUMBERS + which).cast()) }
    }

    fn slot(&self, ring: usize, number: u32) -> NonNull<u8> {
        let slot = ring * SLOTS as usize + (number % SLOTS) as usize;
        // SAFETY: the offset is within the mapping.
        unsafe { self.0.add(START + slot * SLOT) }
    }
}

/// An event counter that wakes a process.
struct Bell(OwnedFd);

impl Bell {
    fn ring(&self) {
        // It is full when it has rung very often and nobody has listened: that wakes as well.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// The files that two processes share.
pub(super) struct Files {
    pub(super) memory: OwnedFd,
    /// What wakes the simulator, and what wakes the client.
    pub(super) bells: [OwnedFd; 2],
}

impl Files {
    /// Makes new ones. The memory cannot shrink under whoever looks at it.
    pub(super) fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memory = memfd_create("ibfabric-port", flags)?;
        ftruncate(&memory, LENGTH as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(Self { memory, bells: [bell()?, bell()?] })
    }
}

/// Which side a process is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Simulator,
    Client,
}

/// One side of both rings.
pub(super) struct Rings {
    memory: Arc<Mapping>,
    side: Side,
    /// What was ever put into the outgoing ring, and taken out of the incoming one.
    put: u32,
    taken: u32,
    /// What wakes this side, and the other one.
    own: OwnedFd,
    other: Bell,
    /// Whether something was put in or taken out since the other side was last woken.
    news: bool,
}

impl Rings {
    /// Maps the memory.
    pub(super) fn open(files: Files, side: Side) -> io::Result<Self> {
        let seals = fcntl_get_seals(&files.memory)?;
        let length = fstat(&files.memory)?.st_size;
        if !seals.contains(SealFlags::SHRINK) || length != LENGTH as i64 {
            let what = format!("memory of {length} bytes: expected {LENGTH} that cannot shrink");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let memory = Mapping::new(files.memory.as_fd())?;
        let [simulator, client] = files.bells;
        let (own, other) = match side {
            Side::Simulator => (simulator, client),
            Side::Client => (client, simulator),
        };
        Ok(Self { memory, side, put: 0, taken: 0, own, other: Bell(other), news: false })
    }

    const fn outgoing(&self) -> usize {
        matches!(self.side, Side::Simulator) as usize
    }

    const fn incoming(&self) -> usize {
        1 - self.outgoing()
    }

    /// Returns what this side waits with.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// Has the own event counter be silent again.
    pub(super) fn silence(&self) {
        let _ = rustix::io::read(&self.own, &mut [0; 8]);
    }

    /// Returns how many slots are free for outgoing frames. A number that cannot be leaves none.
    pub(super) fn room(&self) -> u32 {
        let taken = self.memory.number(self.outgoing(), TAKEN).load(Ordering::Acquire);
        SLOTS.saturating_sub(self.put.wrapping_sub(taken))
    }

    /// Puts a frame into the outgoing ring; false when it has no room.
    pub(super) fn put(&mut self, frame: Frame, bytes: &[u8]) -> bool {
        if self.room() == 0 {
            return false;
        }
        let header = frame.to_bytes(bytes.len());
        let slot = self.memory.slot(self.outgoing(), self.put);
        assert!(HEADER + bytes.len() <= SLOT, "a frame fits into a slot");
        // SAFETY: the slot is within the mapping and has room for both, and the numbers have given it to this
        // side: the other one reads it after the next line.
        unsafe {
            slot.copy_from_nonoverlapping(NonNull::from(&header).cast(), HEADER);
            let bytes = NonNull::from(bytes);
            slot.add(HEADER).copy_from_nonoverlapping(bytes.cast(), bytes.len());
        }
        self.committed();
        true
    }

    /// Has somebody write a frame straight into the outgoing ring; returns whether there was one, and false
    /// where there is no room.
    ///
    /// This is for the client's side: the simulator, which it believes, does not touch a slot that
    /// is not its own.
    pub(super) fn put_with(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<(Frame, usize)>,
    ) -> bool {
        debug_assert_eq!(self.side, Side::Client);
        if self.room() == 0 {
            return false;
        }
        let slot = self.memory.slot(self.outgoing(), self.put);
        // SAFETY: the bytes are within the mapping and initialized, and until the number is written
        // nobody else reaches them.
        let slot = unsafe { std::slice::from_raw_parts_mut(slot.as_ptr(), SLOT) };
        let (header, bytes) = slot.split_at_mut(HEADER);
        let Some((frame, length)) = write(bytes) else { return false };
        header.copy_from_slice(&frame.to_bytes(length));
        self.committed();
        true
    }

    fn committed(&mut self) {
        self.put = self.put.wrapping_add(1);
        self.memory.number(self.outgoing(), PUT).store(self.put, Ordering::Release);
        self.news = true;
    }

    /// Returns whether something has come in.
    pub(super) fn has_incoming(&self) -> bool {
        self.memory.number(self.incoming(), PUT).load(Ordering::Acquire) != self.taken
    }

    /// Takes the next frame; its bytes are copied to the end of `bytes`. `Err` tells of what is no
    /// frame, or of numbers that cannot be.
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
        // SAFETY: the header is within the mapping. The other side may write to it meanwhile: then the copy is
        // of some bytes or other, and those are checked.
        unsafe {
            slot.cast::<[u8; HEADER]>().copy_to_nonoverlapping(NonNull::from(&mut header), 1)
        };
        let frame = Frame::parse(&header);
        if let Some((_, length)) = frame {
            bytes.reserve(length);
            let end = bytes.len();
            // SAFETY: a frame fits into its slot, the vector has room for as much, and all that is copied is
            // initialized.
            unsafe {
                let to = bytes.as_mut_ptr().add(end);
                slot.add(HEADER).as_ptr().copy_to_nonoverlapping(to, length);
                bytes.set_len(end + length);
            }
        }
        self.was_taken();
        Some(frame.map(|(frame, _)| frame).ok_or(Malformed))
    }

    /// Hands somebody the next frame where it stands; returns whether there was one.
    ///
    /// This is for the client's side, as [`Rings::put_with`].
    pub(super) fn take_with(&mut self, read: impl FnOnce(Frame, &[u8])) -> bool {
        debug_assert_eq!(self.side, Side::Client);
        if !self.has_incoming() {
            return false;
        }
        let slot = self.memory.slot(self.incoming(), self.taken);
        // SAFETY: the bytes are within the mapping and initialized, and the simulator does not write to
        // them until the number below is written.
        let slot = unsafe { std::slice::from_raw_parts(slot.as_ptr(), SLOT) };
        if let Some((frame, length)) = Frame::parse(slot.first_chunk().expect("a header")) {
            read(frame, &slot[HEADER..HEADER + length]);
        }
        self.was_taken();
        true
    }

    fn was_taken(&mut self) {
        self.taken = self.taken.wrapping_add(1);
        self.memory.number(self.incoming(), TAKEN).store(self.taken, Ordering::Release);
        self.news = true;
    }

    /// Wakes the other side when it sleeps and something has come for it, or room.
    pub(super) fn flush(&mut self) {
        if !std::mem::take(&mut self.news) {
            return;
        }
        fence(Ordering::SeqCst);
        let flags = [(self.outgoing(), HUNGRY), (self.incoming(), FULL)];
        let mut wakes = false;
        for (ring, flag) in flags {
            let flag = self.memory.number(ring, flag);
            wakes |= flag.load(Ordering::Relaxed) != 0 && flag.swap(0, Ordering::Relaxed) != 0;
        }
        if wakes {
            self.other.ring();
        }
    }

    /// Says that this side will sleep until something comes in, if it `wants_frames`, or until there is room,
    /// if it `wants_room`; returns false when it need not sleep at all.
    pub(super) fn may_sleep(&mut self, wants_frames: bool, wants_room: bool) -> bool {
        self.flush();
        if wants_frames {
            self.memory.number(self.incoming(), HUNGRY).store(1, Ordering::Relaxed);
        }
        if wants_room {
            self.memory.number(self.outgoing(), FULL).store(1, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        !(wants_frames && self.has_incoming() || wants_room && self.room() > 0)
    }
}

/// What is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[cfg(test)]
mod tests;
