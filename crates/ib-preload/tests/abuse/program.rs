//! A program that misuses a uverbs device: it writes arbitrary commands to the device file, and changes the shared
//! rings arbitrarily.
//!
//! The program calls the same functions of the C library as libibverbs. ib-preload, which is linked into this process,
//! replaces these functions. The input bytes choose the actions. The test `abuse` and the fuzz target `verbs_device`
//! use this module.

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::commands::{self, Kind, Words};
use super::memory::{Arena, Mapping};

/// Offset of the producer's index in a ring.
pub(crate) const PRODUCER: usize = 128;

/// Offset of the consumer's index in a ring.
pub(crate) const CONSUMER: usize = 256;

/// Offset of the elements in a ring.
const ELEMENTS: usize = 384;

/// Binary logarithm of the size of a completion in a ring.
const COMPLETION: u32 = 6;

/// Rings that another thread of the program may change at any time.
pub(crate) static SHARED: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

/// Commands that have succeeded, and completions that the device has returned.
#[derive(Default)]
pub(crate) struct Reached {
    pub(crate) commands: BTreeSet<Kind>,
    /// Statuses of completions (`ibv_wc_status`).
    pub(crate) statuses: BTreeSet<u32>,
}

/// A program whose input bytes select its actions until the input ends. One action is one case.
pub(crate) struct Program<I> {
    input: I,
    pub(crate) device: RawFd,
    pub(crate) arena: Arena,
    pub(crate) words: Words,
    pub(crate) rings: Vec<Mapping>,
    /// Descriptors of event files.
    events: Vec<RawFd>,
    /// Successful commands and completion statuses so far.
    pub(crate) reached: Reached,
    /// Number of actions so far.
    pub(crate) cases: u64,
    /// True if all queue pairs were connected at the start.
    pub(crate) has_connected: bool,
}

impl<I: Iterator<Item = u8>> Program<I> {
    /// Opens the device and creates objects of each kind. The queue pairs are connected to themselves.
    pub(crate) fn new(input: I, gid: [u8; 16]) -> Self {
        // SAFETY: the path is a C string that ends with a zero byte.
        let device = unsafe { libc::open(c"/dev/infiniband/uverbs0".as_ptr(), libc::O_RDWR) };
        assert!(device >= 0, "the device can be opened: {}", std::io::Error::last_os_error());
        let arena = Arena::new();
        let words = Words::new(gid);
        let (rings, events) = (Vec::new(), Vec::new());
        let mut program = Self {
            input,
            device,
            arena,
            words,
            rings,
            events,
            cases: 0,
            reached: Reached::default(),
            has_connected: false,
        };
        program.has_connected = program.set_up();
        program
    }

    /// Creates the objects. Returns true if all queue pairs are connected. Another thread that changes the rings can
    /// prevent a connection.
    fn set_up(&mut self) -> bool {
        self.command(Kind::GetContext, false);
        for kind in [
            Kind::CreateCompChannel,
            Kind::AllocPd,
            Kind::RegMr,
            Kind::AllocMw,
            Kind::CreateCq,
            Kind::CreateSrq,
            Kind::CreateAh,
        ] {
            assert!(self.command(kind, false), "{kind:?} succeeds");
        }
        let mut has_connected = true;
        for kind in [Kind::CreateRc, Kind::CreateRcWithSrq, Kind::CreateUc, Kind::CreateUd] {
            assert!(self.command(kind, false), "{kind:?} succeeds");
            for kind in [Kind::ToInit, Kind::ToRtr, Kind::ToRts] {
                has_connected &= self.command(kind, false);
            }
        }
        has_connected
    }

    /// Performs actions until the input ends.
    pub(crate) fn run(&mut self) {
        while let Some(action) = self.input.next() {
            self.cases += 1;
            self.words.turn = usize::from(self.byte());
            match action % 16 {
                0..=4 => {
                    let kind = Kind::ALL[usize::from(self.byte()) % Kind::ALL.len()];
                    self.command(kind, action & 0x80 != 0);
                }
                5 => self.raw_command(),
                6 | 7 => self.change_ring(),
                8..=12 => self.post(action),
                13 => self.consume(),
                14 => self.read_events(),
                _ => self.use_wild_pointer(),
            }
        }
    }

    fn byte(&mut self) -> u8 {
        self.input.next().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_ne_bytes([self.byte(), self.byte()])) % bound
    }

    /// Returns a word that may have a meaning for the device, such as a key, or an arbitrary word.
    fn word(&mut self) -> u32 {
        let place = usize::from(self.byte());
        match self.words.pool(place) {
            Some(word) => word,
            None => u32::from_ne_bytes([0; 4].map(|_: u8| self.byte())),
        }
    }

    /// Writes a command to the device. If `is_changed` is true, some words of the command are replaced first. Returns
    /// true if the command succeeds.
    fn command(&mut self, kind: Kind, is_changed: bool) -> bool {
        let mut response = [commands::UNWRITTEN; 128];
        let mut bytes = self.words.command(kind, &self.arena, response.as_mut_ptr().addr() as u64);
        if is_changed {
            for _ in 0..=self.below(3) {
                let place = self.below(bytes.len() / 4) * 4;
                let word = self.word();
                if !commands::has_pointer(&bytes, place) {
                    bytes[place..place + 4].copy_from_slice(&word.to_ne_bytes());
                }
            }
            if self.byte() == 0 {
                let length = self.below(bytes.len() + 1);
                bytes.truncate(length);
            }
            if self.byte() == 1 && commands::has_pointer(&bytes, 8) && bytes.len() >= 16 {
                let to = self.pointer();
                bytes[8..16].copy_from_slice(&to.to_ne_bytes());
            }
        }
        if !self.write(&bytes) {
            return false;
        }
        if !is_changed {
            self.reached.commands.insert(kind);
        }
        self.words.learn(kind, &response);
        if let Some(descriptor) = commands::descriptors_of(kind, &response) {
            self.events.push(descriptor);
        }
        for (offset, size) in commands::rings_of(kind, &response) {
            self.map(offset, size);
        }
        true
    }

    /// Writes arbitrary bytes as a command. Each address in the command is one that [`Self::pointer`] returns.
    fn raw_command(&mut self) {
        let count = self.below(64);
        let mut bytes = Vec::new();
        for _ in 0..count {
            bytes.extend_from_slice(&self.word().to_ne_bytes());
        }
        bytes.truncate(bytes.len().saturating_sub(self.below(4)));
        if bytes.len() >= 16 {
            // Commands 0 and 17 open descriptors. The program would not know their numbers, and could not close them.
            let number = match self.byte() % 48 {
                0 | 17 => 18,
                number => u32::from(number) | u32::from(self.byte() & 1) << 31,
            };
            bytes[..4].copy_from_slice(&number.to_ne_bytes());
            let extended = number >> 31 != 0;
            let words = if extended { bytes.len().saturating_sub(24) / 8 } else { bytes.len() / 4 };
            bytes[4..6].copy_from_slice(&(words as u16).to_ne_bytes());
            for place in (0..bytes.len() / 8 * 8).step_by(8) {
                if commands::has_pointer(&bytes, place) {
                    let to = self.pointer();
                    bytes[place..place + 8].copy_from_slice(&to.to_ne_bytes());
                }
            }
            if extended && bytes.len() >= 24 {
                bytes[16..24].fill(0);
            }
        }
        self.write(&bytes);
    }

    /// Returns an address that is safe for a response: in the arena, in a ring, or not writable.
    fn pointer(&mut self) -> u64 {
        let choice = self.byte();
        let ring = self.below(self.rings.len() + 1);
        match self.rings.get(ring) {
            Some(ring) if choice & 0x80 != 0 => ring.start as u64 + u64::from(choice & 0x7f),
            _ => self.arena.pointer(choice),
        }
    }

    fn write(&self, bytes: &[u8]) -> bool {
        // SAFETY: the call reads a live slice. The addresses in the command are in the arena, in mapped rings, in a
        // buffer of the caller, or invalid.
        let written = unsafe { libc::write(self.device, bytes.as_ptr().cast(), bytes.len()) };
        assert!(written == -1 || written == bytes.len() as isize, "a partial write: {written}");
        written >= 0
    }

    fn map(&mut self, offset: u64, size: u32) {
        if let Some(mapping) = Mapping::of_file(self.device, offset, size as usize) {
            SHARED.lock().expect("no thread panics").push(mapping);
            self.rings.push(mapping);
        }
    }

    fn ring(&mut self) -> Mapping {
        let place = self.below(self.rings.len());
        self.rings[place]
    }

    /// Overwrites one to eight words of a ring, which may be words of its header.
    fn change_ring(&mut self) {
        let ring = self.ring();
        for _ in 0..=self.byte() % 8 {
            let place = match self.byte() % 4 {
                0 => PRODUCER,
                1 => CONSUMER,
                2 => self.below(2) * 4,
                _ => self.below(ring.size / 4) * 4,
            };
            let word = self.word();
            ring.word(place).store(word, Ordering::Release);
        }
    }

    /// Puts a request into a ring, and writes a POST_SEND command. If bit 7 of `action` is set, some words of the
    /// request are replaced.
    fn post(&mut self, action: u8) {
        let ring = self.ring();
        let log2 = ring.log2.clamp(4, 12);
        let slots = ((ring.size - ELEMENTS) >> log2).max(1);
        let index = ring.word(PRODUCER).load(Ordering::Relaxed) as usize;
        let at = ELEMENTS + ((index % slots) << log2);
        let choice = (u32::from(self.byte()) % 12, self.byte());
        let mut words = self.words.request(choice, 1 << log2, &self.arena);
        if action & 0x80 != 0 {
            for _ in 0..=self.below(3) {
                let place = self.below(words.len());
                words[place] = self.word();
            }
        }
        for (number, word) in words.iter().enumerate() {
            ring.word(at + number * 4).store(*word, Ordering::Relaxed);
        }
        let count = if action & 0x40 != 0 { self.word() } else { 1 };
        let next = (index as u32 % slots as u32).wrapping_add(count);
        ring.word(PRODUCER).store(next, Ordering::Release);
        self.command(Kind::PostSend, false);
    }

    /// Consumes all completions of a ring, as a program does that polls a CQ. Records the status of the last one.
    fn consume(&mut self) {
        let ring = self.ring();
        let producer = ring.word(PRODUCER).load(Ordering::Acquire);
        let last = ELEMENTS + ((producer.wrapping_sub(1) as usize % 128) << COMPLETION);
        if ring.log2 == COMPLETION && producer > 0 && last + 64 <= ring.size {
            self.reached.statuses.insert(ring.word(last + 8).load(Ordering::Relaxed));
        }
        ring.word(CONSUMER).store(producer, Ordering::Release);
    }

    /// Reads an event from an event file, if there is one.
    fn read_events(&mut self) {
        let place = self.below(self.events.len());
        let to = self.pointer();
        let size = usize::from(self.byte()) % 32;
        let mut polled = libc::pollfd { fd: self.events[place], events: libc::POLLIN, revents: 0 };
        // SAFETY: the call reads and writes one live structure.
        if unsafe { libc::poll(&raw mut polled, 1, 0) } == 1 {
            // SAFETY: the address is that of memory that this program may overwrite, or is invalid.
            unsafe { libc::read(polled.fd, to as *mut libc::c_void, size) };
        }
    }

    /// Writes a command whose bytes are at an address that may be invalid.
    fn use_wild_pointer(&mut self) {
        let (choice, size) = (self.byte(), usize::from(self.byte()));
        let from = self.arena.pointer(choice);
        self.arena.clear();
        // SAFETY: the size field of the command is zero or not readable, so the library refuses the command.
        unsafe { libc::write(self.device, from as *const libc::c_void, size) };
    }
}

impl<I> Drop for Program<I> {
    fn drop(&mut self) {
        for &descriptor in &self.events {
            // SAFETY: the call takes a number only.
            unsafe { libc::close(descriptor) };
        }
        // SAFETY: the call takes a number only.
        let closed = unsafe { libc::close(self.device) };
        assert_eq!(closed, 0, "the device file is open until here");
        SHARED.lock().expect("no thread panics").clear();
        for ring in &self.rings {
            ring.unmap();
        }
    }
}

impl Mapping {
    /// Returns the word at an offset of a mapped ring.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.size, "{offset} is within a ring of {} bytes", self.size);
        // SAFETY: the four bytes are aligned. They remain mapped until the [`Program`] is dropped.
        unsafe { AtomicU32::from_ptr((self.start + offset) as *mut u32) }
    }
}
