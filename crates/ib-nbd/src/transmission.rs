//! Requests of clients, and the replies to them.
//!
//! ```text
//! request:    magic u32 | flags u16 | type u16 | cookie u64 | offset u64 | length u32 | data of a write
//! simple:     magic u32 | error u32 | cookie u64 | data of a read
//! structured: magic u32 | flags u16 | type u16 | cookie u64 | length u32 | data of the chunk
//! ```

use super::session::{MAX_DATA, NbdError, PendingRequest, RequestToken, Session, Stage, held};
use super::wire::{self, HEADER, chunk, command, command_flags as flag, error};
use ib_block::{Command, CommandError, Errno, Operation, ReadData};

/// If a write is refused, at most this many bytes of its data are skipped. If its data is longer, the connection ends.
const MAX_SKIPPED: u32 = 128 << 20;

impl Session {
    /// Returns how many bytes of input must have arrived before the next request can be processed. These are its header
    /// and, for a write, its data. Returns 0 if the server expects no requests.
    pub(super) fn wanted(&self) -> usize {
        let Stage::Requests(_) = self.stage else { return 0 };
        match self.input.peek::<HEADER>().map(Request::parse) {
            Some(request) if request.kind == command::WRITE && request.length <= MAX_DATA => {
                HEADER + request.length as usize
            }
            _ => HEADER,
        }
    }

    /// Returns the length in bytes of the data of the next request. Returns 0 if its header has not arrived, or if the
    /// request is not a read or write of a valid length.
    pub(super) fn next_length(&self) -> usize {
        let Stage::Requests(_) = self.stage else { return 0 };
        match self.input.peek::<HEADER>().map(Request::parse) {
            Some(Request { kind: command::READ | command::WRITE, length, .. })
                if self.skipped == 0 && length <= MAX_DATA =>
            {
                length as usize
            }
            _ => 0,
        }
    }

    /// Removes the header of the next complete and valid request. Returns the request and the length of the data that
    /// follows the header. Invalid requests get an error reply. A wrong magic number, or an invalid write with more
    /// data than [`MAX_SKIPPED`], ends the connection.
    pub(super) fn next_request(&mut self, export: usize) -> Option<(RequestToken, Command, usize)> {
        loop {
            if !self.skip() {
                return None;
            }
            let request = Request::parse(self.input.peek::<HEADER>()?);
            if request.magic != wire::REQUEST_MAGIC {
                self.fail(NbdError::RequestMagic(request.magic));
                return None;
            }
            let writes = request.kind == command::WRITE;
            let found = self.check(export, &request);
            if writes && found.is_err() {
                if request.length > MAX_SKIPPED {
                    self.fail(NbdError::WriteLength(request.length));
                    return None;
                }
                self.skipped = request.length as usize;
            }
            let data = if writes && found.is_ok() { request.length as usize } else { 0 };
            if self.input.len() < HEADER + data {
                return None;
            }
            self.input.take(HEADER);
            match found {
                Ok(Some(command)) => {
                    self.last += 1;
                    let cookie = request.cookie;
                    self.requests.insert(self.last, PendingRequest { cookie, command });
                    self.held += held(&command);
                    return Some((RequestToken(self.last), command, data));
                }
                // The client disconnects and expects no reply to this request.
                Ok(None) => {
                    self.stage = Stage::Over;
                    return None;
                }
                Err((code, why)) => self.reply_error(request.cookie, code, why),
            }
        }
    }

    /// Returns the command of a request, or `None` if the client disconnects. If the request is invalid, returns an
    /// error number and a message.
    fn check(
        &self,
        export: usize,
        request: &Request,
    ) -> Result<Option<Command>, (u32, &'static str)> {
        let (operation, allowed) = match request.kind {
            command::READ if self.structured => (Operation::Read, flag::DF),
            command::READ => (Operation::Read, 0),
            command::WRITE => (Operation::Write, flag::FUA),
            command::DISC => return Ok(None),
            command::FLUSH => (Operation::Flush, flag::FUA),
            command::TRIM => (Operation::Discard, flag::FUA),
            command::WRITE_ZEROES => (Operation::WriteZeroes, flag::FUA | flag::NO_HOLE),
            _ => return Err((error::EINVAL, "unknown request type")),
        };
        // Some clients set FUA even for requests on which FUA has no effect, so the flag is accepted for all requests.
        if request.flags & !(allowed | flag::FUA) != 0 {
            return Err((error::EINVAL, "unsupported request flags"));
        }
        if operation == Operation::Flush {
            return Ok(Some(Command::FLUSH));
        }
        if request.length == 0 {
            return Err((error::EINVAL, "the length of the request is 0"));
        }
        let has_data = matches!(operation, Operation::Read | Operation::Write);
        if has_data && request.length > MAX_DATA {
            return Err((error::EINVAL, "the request exceeds the maximum length"));
        }
        let fua = request.flags & flag::FUA != 0 && operation != Operation::Read;
        let (offset, length) = (request.offset, request.length.into());
        let command = Command { operation, offset, length, fua };
        match self.exports[export].geometry.check(&command) {
            Ok(()) => Ok(Some(command)),
            Err(CommandError::Unaligned) => {
                Err((error::EINVAL, "the request is not a multiple of the block size"))
            }
            Err(CommandError::Beyond)
                if matches!(operation, Operation::Write | Operation::WriteZeroes) =>
            {
                Err((error::ENOSPC, "the request exceeds the end of the device"))
            }
            Err(CommandError::Beyond) => {
                Err((error::EINVAL, "the request exceeds the end of the device"))
            }
            Err(CommandError::ReadOnly) => Err((error::EPERM, "the device is read-only")),
            Err(CommandError::NotDone) => {
                Err((error::EINVAL, "the device does not support the operation"))
            }
        }
    }

    /// Queues the reply to a completed request.
    pub(super) fn reply(&mut self, request: &PendingRequest, errno: Errno, mut data: ReadData) {
        let Command { operation, offset, length, .. } = request.command;
        if !errno.is_ok() {
            self.output.give_back(data);
            return self.reply_error(request.cookie, code(errno), "the device has failed");
        }
        let reads = operation == Operation::Read;
        assert!(!reads || data.len() as u64 == length, "the data must have the length of the read");
        if !reads {
            self.output.give_back(std::mem::take(&mut data));
        }
        if !self.structured {
            self.output.extend(wire::SIMPLE_MAGIC.to_be_bytes());
            self.output.extend(0_u32.to_be_bytes());
            self.output.extend(request.cookie.to_be_bytes());
            self.output.append(data);
        } else if reads {
            self.start_chunk(chunk::OFFSET_DATA, request.cookie, 8 + data.len());
            self.output.extend(offset.to_be_bytes());
            self.output.append(data);
        } else {
            self.start_chunk(chunk::NONE, request.cookie, 0);
        }
    }

    fn reply_error(&mut self, cookie: u64, code: u32, why: &str) {
        if self.structured {
            self.start_chunk(chunk::ERROR, cookie, 6 + why.len());
            self.output.extend(code.to_be_bytes());
            self.output.extend((why.len() as u16).to_be_bytes());
            self.output.extend(why.as_bytes());
        } else {
            self.output.extend(wire::SIMPLE_MAGIC.to_be_bytes());
            self.output.extend(code.to_be_bytes());
            self.output.extend(cookie.to_be_bytes());
        }
    }

    /// Queues the header of the only chunk of a reply.
    fn start_chunk(&mut self, kind: u16, cookie: u64, length: usize) {
        self.output.extend(wire::STRUCTURED_MAGIC.to_be_bytes());
        self.output.extend(chunk::DONE.to_be_bytes());
        self.output.extend(kind.to_be_bytes());
        self.output.extend(cookie.to_be_bytes());
        self.output.extend((length as u32).to_be_bytes());
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    magic: u32,
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u32,
}

impl Request {
    fn parse(bytes: &[u8; HEADER]) -> Self {
        let short =
            |at: usize| u16::from_be_bytes(*bytes[at..].first_chunk().expect("2 bytes follow"));
        let word =
            |at: usize| u32::from_be_bytes(*bytes[at..].first_chunk().expect("4 bytes follow"));
        let long =
            |at: usize| u64::from_be_bytes(*bytes[at..].first_chunk().expect("8 bytes follow"));
        Self {
            magic: word(0),
            flags: short(4),
            kind: short(6),
            cookie: long(8),
            offset: long(16),
            length: word(24),
        }
    }
}

/// Returns the error number that NBD uses for an error.
const fn code(errno: Errno) -> u32 {
    match errno {
        Errno::EPERM | Errno::EACCES | Errno::EROFS => error::EPERM,
        Errno::ENOMEM => error::ENOMEM,
        Errno::EINVAL => error::EINVAL,
        Errno::ENOSPC => error::ENOSPC,
        Errno::EOPNOTSUPP => error::ENOTSUP,
        Errno::ENODEV => error::ESHUTDOWN,
        _ => error::EIO,
    }
}
