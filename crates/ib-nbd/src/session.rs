//! The server of one connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::input::Input;
use super::output::Output;
use super::wire::{self, HEADER, handshake};
use ib_block::{Command, Errno, Geometry, ReadData, Slice};

/// A device that programs are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name; the empty name means the first one.
    pub name: String,
    /// What it is for, as one reads it.
    pub description: String,
    /// What it is like.
    pub geometry: Geometry,
    /// The length of a request that is done best, in bytes: a power of two, not below the logical block.
    pub preferred: u32,
}

/// The longest request in bytes: what clients expect that ask for nothing.
pub(super) const MOST_DATA: u32 = 32 << 20;

/// How many requests a program may have in flight, and how much data they may have in bytes.
pub(super) const MOST_REQUESTS: usize = 256;
pub(super) const MOST_HELD: usize = 64 << 20;

/// Behind how much that was not sent yet nothing more is read.
const MOST_UNSENT: usize = 64 << 20;

/// The number of a request within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestToken(pub u64);

/// A request of a program. It has to be answered with [`Session::complete`].
#[derive(Debug, PartialEq, Eq)]
pub struct NbdRequest<'a> {
    /// Its number.
    pub token: RequestToken,
    /// Which device.
    pub export: usize,
    /// What is to be done with it; it was found to be possible.
    pub command: Command,
    /// The data of a write.
    pub data: &'a [u8],
}

impl NbdRequest<'_> {
    /// Returns the length of its data in bytes, to read or to write; 0 for other operations.
    #[must_use]
    pub fn held(&self) -> usize {
        held(&self.command)
    }
}

/// Why a connection ends before its time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The client has flags that nobody knows.
    #[error("the client has flags {0:#x}: expected at most {expected:#x}", expected = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)]
    ClientFlags(u32),
    /// The program has not chosen a device in time.
    #[error("the program has not chosen a device in time")]
    Silent,
    /// The program has taken no answer for a time, in seconds, while others waited for memory.
    #[error("the program has taken no answer for {0} s while others waited for memory")]
    Stalled(u64),
    /// The client has sent no more of a write for a time, in seconds, while others waited for memory.
    #[error("the client has sent no more of a write for {0} s while others waited for memory")]
    Unfinished(u64),
    /// What comes is no option.
    #[error("an option starts with {0:#x}: expected {expected:#x}", expected = wire::OPTION_MAGIC)]
    OptionMagic(u64),
    /// An option is longer than anything that makes sense.
    #[error("option {option} has {length} bytes: expected at most {most}")]
    OptionLength {
        /// The option.
        option: u32,
        /// Its length.
        length: u32,
        /// The longest.
        most: u32,
    },
    /// A device is chosen that is not there, in the way that knows no reply to that.
    #[error("there is no device {0:?}")]
    NoExport(String),
    /// What comes is no request.
    #[error("a request starts with {0:#x}: expected {expected:#x}", expected = wire::REQUEST_MAGIC)]
    RequestMagic(u32),
    /// A write is so long that its data is not waited for.
    #[error("a write of {0} bytes: expected at most {MOST_DATA}")]
    WriteLength(u32),
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The client's flags are awaited.
    Flags,
    /// Options are.
    Options,
    /// Requests for a device are.
    Requests(usize),
    /// Nothing more is.
    Over,
}

/// A request that is in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    pub(super) cookie: u64,
    pub(super) command: Command,
}

/// The server of one connection. Bytes that come in are put into [`Session::room`], and [`Session::handle`] is told of
/// them; requests come from [`Session::poll_request`], and what is to be sent stands in [`Session::output`].
#[derive(Debug)]
pub struct Session {
    pub(super) exports: Arc<[Export]>,
    pub(super) stage: Stage,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) no_zeroes: bool,
    pub(super) structured: bool,
    pub(super) requests: BTreeMap<u64, PendingRequest>,
    pub(super) last: u64,
    /// How much data the requests have that are in flight.
    pub(super) held: usize,
    /// How much of a write's data, or of an option, that is refused is still to come.
    pub(super) skipped: usize,
    /// What was wrong, once something was.
    failed: Option<NbdError>,
}

impl Session {
    /// Starts a connection on which some devices are offered, at least one.
    #[must_use]
    pub fn new(exports: Arc<[Export]>) -> Self {
        assert!(!exports.is_empty(), "without a device there is nothing to serve");
        let mut output = Output::default();
        output.extend(wire::MAGIC.to_be_bytes());
        output.extend(wire::OPTION_MAGIC.to_be_bytes());
        output.extend((handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
        Self {
            exports,
            stage: Stage::Flags,
            input: Input::default(),
            output,
            no_zeroes: false,
            structured: false,
            requests: BTreeMap::new(),
            last: 0,
            held: 0,
            skipped: 0,
            failed: None,
        }
    }

    /// Returns room for bytes of the program, and whether it is to be used now: a program that has much in flight, or
    /// does not take its replies, waits.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        if self.is_full() || self.stage == Stage::Over {
            return None;
        }
        let wanted = self.wanted();
        Some(self.input.room(wanted))
    }

    /// Returns whether no more can be asked for until something has ended, or has been sent.
    fn is_full(&self) -> bool {
        self.requests.len() >= MOST_REQUESTS
            || self.held >= MOST_HELD
            || self.output.len() >= MOST_UNSENT
    }

    /// So many bytes have come into the room.
    ///
    /// # Panics
    /// Panics when it is more than there was room for.
    pub fn handle(&mut self, length: usize) {
        self.input.filled(length);
        self.negotiate();
    }

    /// Returns the next request. Those that have come at once wait too while there is too much in flight.
    pub fn poll_request(&mut self) -> Option<NbdRequest<'_>> {
        if self.is_full() {
            return None;
        }
        let Stage::Requests(export) = self.stage else { return None };
        let (token, command, length) = self.next_request(export)?;
        let data = self.input.take(length);
        Some(NbdRequest { token, export, command, data })
    }

    /// Answers a request; with the data of a read that has succeeded, which comes back from [`Session::poll_used`].
    ///
    /// # Panics
    /// Panics when a read that has succeeded has other than its length in data.
    pub fn complete(&mut self, token: RequestToken, errno: Errno, data: impl Into<ReadData>) {
        let data = data.into();
        match self.requests.remove(&token.0) {
            Some(request) => {
                self.held -= held(&request.command);
                self.reply(&request, errno, data);
            }
            None => self.output.give_back(data),
        }
    }

    /// Returns data that came with an answer and is not needed any more.
    pub fn poll_used(&mut self) -> Option<ReadData> {
        self.output.poll_used()
    }

    /// Returns what is to be sent, in order; none of the slices is empty.
    pub fn output(&self) -> impl Iterator<Item = Slice<'_>> {
        self.output.slices()
    }

    /// Returns how many bytes are to be sent.
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.output.len()
    }

    /// So many bytes of it were sent.
    ///
    /// # Panics
    /// Panics when it is more than there were.
    pub fn sent(&mut self, length: usize) {
        self.output.sent(length);
    }

    /// Returns whether the connection can be closed: nothing more comes in, and everything was answered and sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over && self.requests.is_empty() && self.unsent() == 0
    }

    /// Returns whether more is taken from the program just now.
    #[must_use]
    pub fn takes(&self) -> bool {
        !self.is_full() && self.stage != Stage::Over
    }

    /// Returns whether nothing more is taken from the program: it has gone, or is sent away. What it has asked for may still be
    /// in flight.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Returns the device that was chosen.
    #[must_use]
    pub const fn export(&self) -> Option<usize> {
        match self.stage {
            Stage::Requests(export) => Some(export),
            _ => None,
        }
    }

    /// Returns how much memory the program has of this one, in bytes: for what it sends, data of requests that are under
    /// way, and answers that it has not taken.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.input.held() + self.held + self.output.len()
    }

    /// Returns the length of the data of outstanding requests, in bytes.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.held
    }

    /// Returns the memory that the next request takes when it is done, in bytes; 0 if it has not come yet.
    #[must_use]
    pub fn next_held(&self) -> usize {
        self.next_length()
    }

    /// Returns the memory that reading more input takes, in bytes.
    #[must_use]
    pub fn growth(&self) -> usize {
        self.input.growth(self.wanted())
    }

    /// Gives memory back in which nothing waits.
    pub fn shrink(&mut self) {
        self.input.shrink();
    }

    /// Returns whether what the program asks for next is to write, and its data is on its way or there: that it goes on
    /// takes no more memory than was asked for already.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.wanted() > HEADER
    }

    /// Returns how many requests are in flight.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Notes that the client sends no more requests. Requests in flight still get their replies.
    pub fn end(&mut self) {
        self.stage = Stage::Over;
    }

    /// Returns why the connection ends before its time.
    #[must_use]
    pub const fn failed(&self) -> Option<&NbdError> {
        self.failed.as_ref()
    }

    /// Returns whether the program has not chosen a device yet, and may.
    #[must_use]
    pub const fn is_choosing(&self) -> bool {
        matches!(self.stage, Stage::Flags | Stage::Options)
    }

    /// Ends the connection of a program that has not chosen a device in time; one that has is left alone.
    pub fn give_up(&mut self) {
        if self.is_choosing() {
            self.fail(NbdError::Silent);
        }
    }

    pub(super) fn fail(&mut self, why: NbdError) {
        self.failed = Some(why);
        self.stage = Stage::Over;
    }

    /// Skips bytes that belong to something that was refused; returns whether all of them were there.
    pub(super) fn skip(&mut self) -> bool {
        let there = self.skipped.min(self.input.len());
        self.input.take(there);
        self.skipped -= there;
        self.skipped == 0
    }
}

/// Returns how much data a command holds.
pub(super) fn held(command: &Command) -> usize {
    match command.operation {
        ib_block::Operation::Read | ib_block::Operation::Write => command.length as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
