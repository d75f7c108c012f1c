//! The state of one connection at the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::buffers::{Input, Output};
use super::wire::{self, HEADER, handshake};
use ib_block::{Command, Errno, Geometry, ReadData, Slice};

/// An exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name of the device. A client that sends an empty name gets the first device.
    pub name: String,
    /// A description of the device for users.
    pub description: String,
    /// The geometry of the device.
    pub geometry: Geometry,
    /// Length of a request that the server recommends, in bytes: a power of two, at least the logical block size.
    pub preferred: u32,
}

/// Maximum length of a read or write in bytes. A client that does not query block sizes assumes this maximum.
pub(super) const MAX_DATA: u32 = 32 << 20;

/// Maximum number of outstanding requests of a client.
pub(super) const MAX_REQUESTS: usize = 256;

/// If outstanding requests have at least this many bytes of data, no further request is accepted.
pub(super) const MAX_HELD: usize = 64 << 20;

/// If at least this many bytes are unsent, no further request is accepted.
const MAX_UNSENT: usize = 64 << 20;

/// The number of a request within its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestToken(pub u64);

/// A request of a client. The owner of the session must complete it with [`Session::complete`].
#[derive(Debug, PartialEq, Eq)]
pub struct NbdRequest<'a> {
    /// The number of the request.
    pub token: RequestToken,
    /// The index of the device to which the client sends the request.
    pub export: usize,
    /// The command. It fits the geometry of the device.
    pub command: Command,
    /// The data of a write; empty for other operations.
    pub data: &'a [u8],
}

impl NbdRequest<'_> {
    /// Returns the length of the data of a read or write in bytes; 0 for other operations.
    #[must_use]
    pub fn held(&self) -> usize {
        held(&self.command)
    }
}

/// The reason why the server closes a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NbdError {
    /// The client has sent unknown flags.
    #[error("the client has sent the handshake flags {0:#x}: expected only bits of {expected:#x}", expected = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)]
    ClientFlags(u32),
    /// The client has not chosen a device in time.
    #[error("the client has not chosen a device in time")]
    Silent,
    /// The client has read no reply for this number of seconds while other clients waited for memory.
    #[error("the client has read no reply for {0} s while other clients waited for memory")]
    Stalled(u64),
    /// The client has sent no further data of a write for this number of seconds while other clients waited for memory.
    #[error("the client has not continued a write for {0} s while other clients waited for memory")]
    Unfinished(u64),
    /// The magic number of an option is invalid.
    #[error("found option magic {0:#x}: expected {expected:#x}", expected = wire::OPTION_MAGIC)]
    OptionMagic(u64),
    /// An option is too long.
    #[error("option {option} has {length} bytes: expected at most {most}")]
    OptionLength {
        /// The number of the option.
        option: u32,
        /// Length of the option's data in bytes.
        length: u32,
        /// Maximum length of an option's data in bytes.
        most: u32,
    },
    /// The client has chosen an unknown device with [`EXPORT_NAME`](wire::option::EXPORT_NAME), an option that has no
    /// error reply.
    #[error(
        "the client has chosen device {0:?}: expected an exported device, or an empty name for the first"
    )]
    NoExport(String),
    /// The magic number of a request is invalid.
    #[error("found request magic {0:#x}: expected {expected:#x}", expected = wire::REQUEST_MAGIC)]
    RequestMagic(u32),
    /// A refused write has more data than the server skips. The value is the length of the data in bytes.
    #[error("found a write of {0} bytes: expected at most {MAX_DATA}")]
    WriteLength(u32),
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The server expects the client's flags.
    Flags,
    /// The server expects options.
    Options,
    /// The server expects requests for the device with this index.
    Requests(usize),
    /// The server accepts no more input.
    Over,
}

/// A request that the owner of the session has not completed yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingRequest {
    pub(super) cookie: u64,
    pub(super) command: Command,
}

/// The state of one connection at the server.
///
/// The owner reads input into [`Session::room`] and passes the number of read bytes to [`Session::handle`]. The owner
/// executes the requests that [`Session::poll_request`] returns, and completes them with [`Session::complete`]. The
/// owner sends the bytes of [`Session::output`] and passes the number of sent bytes to [`Session::sent`].
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
    /// Number of bytes of data of all outstanding requests.
    pub(super) held: usize,
    /// Number of bytes of a refused write or option that still have to be skipped.
    pub(super) skipped: usize,
    /// The error that has ended the connection.
    failed: Option<NbdError>,
}

impl Session {
    /// Creates the state of a new connection, which offers the given devices.
    ///
    /// # Panics
    /// Panics if `exports` is empty.
    #[must_use]
    pub fn new(exports: Arc<[Export]>) -> Self {
        assert!(!exports.is_empty(), "a session must have a device");
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

    /// Returns the buffer into which the owner must read further input. Returns `None` while the client has too many
    /// outstanding requests or unsent replies, and after the connection has ended.
    pub fn room(&mut self) -> Option<&mut [u8]> {
        if self.is_full() || self.stage == Stage::Over {
            return None;
        }
        let wanted = self.wanted();
        Some(self.input.room(wanted))
    }

    /// Returns true if the client has too many outstanding requests or too many unsent replies.
    fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS
            || self.held >= MAX_HELD
            || self.output.len() >= MAX_UNSENT
    }

    /// Accepts `length` bytes of input, which the owner has read into [`Session::room`]. Processes the options in this
    /// input. [`Session::poll_request`] returns its requests.
    ///
    /// # Panics
    /// Panics if `length` exceeds the size of the buffer.
    pub fn handle(&mut self, length: usize) {
        self.input.filled(length);
        self.negotiate();
    }

    /// Returns the next request. Returns `None` if no complete request has arrived, while the client has too many
    /// outstanding requests or unsent replies, and after the connection has ended.
    pub fn poll_request(&mut self) -> Option<NbdRequest<'_>> {
        if self.is_full() {
            return None;
        }
        let Stage::Requests(export) = self.stage else { return None };
        let (token, command, length) = self.next_request(export)?;
        let data = self.input.take(length);
        Some(NbdRequest { token, export, command, data })
    }

    /// Completes a request. `data` is the data of a successful read. After this data was sent, [`Session::poll_used`]
    /// returns it.
    ///
    /// # Panics
    /// Panics if the request was a successful read and its data has a wrong length.
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

    /// Returns a data buffer of a completed request to the owner, who can reuse it. The data was sent, or need not be
    /// sent.
    pub fn poll_used(&mut self) -> Option<ReadData> {
        self.output.poll_used()
    }

    /// Returns the bytes to send as slices, in order. No slice is empty.
    pub fn output(&self) -> impl Iterator<Item = Slice<'_>> {
        self.output.slices()
    }

    /// Returns the number of bytes to send.
    #[must_use]
    pub const fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Removes the first `length` bytes of the output, which were sent.
    ///
    /// # Panics
    /// Panics if the output has fewer than `length` bytes.
    pub fn sent(&mut self, length: usize) {
        self.output.sent(length);
    }

    /// Returns true if the connection can be closed: no more input is accepted, and all replies were sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over && self.requests.is_empty() && self.unsent() == 0
    }

    /// Returns true if the session accepts further input now.
    #[must_use]
    pub fn takes(&self) -> bool {
        !self.is_full() && self.stage != Stage::Over
    }

    /// Returns true if no more input will be accepted: the client has disconnected, or the server has ended the
    /// connection. There may still be outstanding requests.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Returns the index of the device that the client has chosen. Returns `None` before the choice, and after the
    /// connection has ended.
    #[must_use]
    pub const fn export(&self) -> Option<usize> {
        match self.stage {
            Stage::Requests(export) => Some(export),
            _ => None,
        }
    }

    /// Returns how many bytes of memory the client uses: its input buffer, the data of outstanding requests, and unsent
    /// replies.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.input.held() + self.held + self.output.len()
    }

    /// Returns the number of bytes of data of all outstanding requests.
    #[must_use]
    pub const fn outstanding(&self) -> usize {
        self.held
    }

    /// Returns the length in bytes of the data of the next request. Returns 0 if its header has not arrived, or if the
    /// request is not a read or write of a valid length.
    #[must_use]
    pub fn next_held(&self) -> usize {
        self.next_length()
    }

    /// Returns the number of bytes that [`Session::room`] would allocate.
    #[must_use]
    pub fn growth(&self) -> usize {
        self.input.growth(self.wanted())
    }

    /// Frees the input buffer if it is large and empty.
    pub fn shrink(&mut self) {
        self.input.shrink();
    }

    /// Returns true if the next request is a write whose header has arrived. Its data is collected in the input buffer,
    /// so executing the write needs no further memory.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.wanted() > HEADER
    }

    /// Returns the number of outstanding requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Ends the input. The owner must call this function when the client will send no more requests. Outstanding
    /// requests still get their replies.
    pub fn end(&mut self) {
        self.stage = Stage::Over;
    }

    /// Returns the error that has ended the connection, if any.
    #[must_use]
    pub const fn failed(&self) -> Option<&NbdError> {
        self.failed.as_ref()
    }

    /// Returns true if the client has not chosen a device yet.
    #[must_use]
    pub const fn is_choosing(&self) -> bool {
        matches!(self.stage, Stage::Flags | Stage::Options)
    }

    /// Closes the connection if the client has not chosen a device yet.
    pub fn give_up(&mut self) {
        if self.is_choosing() {
            self.fail(NbdError::Silent);
        }
    }

    pub(super) fn fail(&mut self, why: NbdError) {
        self.failed = Some(why);
        self.stage = Stage::Over;
    }

    /// Skips the input of a refused write or option; returns true if nothing is left to skip.
    pub(super) fn skip(&mut self) -> bool {
        let there = self.skipped.min(self.input.len());
        self.input.take(there);
        self.skipped -= there;
        self.skipped == 0
    }
}

/// Returns the length of the data of a read or write in bytes; 0 for other operations.
pub(super) fn held(command: &Command) -> usize {
    match command.operation {
        ib_block::Operation::Read | ib_block::Operation::Write => command.length as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
