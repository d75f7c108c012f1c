//! RNBD, version 2: messages of block devices over RTRS, as in the Linux kernel's `rnbd-proto.h`.
//!
//! RTRS carries each request as the user header of an RTRS read or write. The response is the data
//! of the RTRS read. The status is the error number in the RTRS response. A message starts with its
//! type in two bytes, and two bytes of padding. All numbers are little-endian.
//!
//! | type | request | RTRS operation | response |
//! |---|---|---|---|
//! | 0 | session info | read of 36 bytes | type 1 |
//! | 2 | open | read of 56 bytes | type 3 |
//! | 4 | I/O | read or write | the data of a read |
//! | 5 | close | write without data | none |

use crate::le_layout::{le_field, le_layout};
use crate::mad::{codes, masks};

codes! {
    /// The type of a message.
    MessageType(u16) {
        /// Session info, with the version of the client.
        SESSION = 0 "sess_info",
        /// Response to session info, with the version of the server.
        SESSION_RESPONSE = 1 "sess_info_rsp",
        /// Opens a device.
        OPEN = 2 "open",
        /// Response to an open, with the properties of the device.
        OPEN_RESPONSE = 3 "open_rsp",
        /// Executes a block command.
        IO = 4 "io",
        /// Closes a device.
        CLOSE = 5 "close",
    }
}

codes! {
    /// The access mode of an open device.
    AccessMode(u8) {
        /// The client can only read.
        READ_ONLY = 0 "ro",
        /// The client can read and write. No other client may have the device open for writing.
        READ_WRITE = 1 "rw",
        /// The client can read and write. One other client may also have the device open for writing,
        /// as during a live migration.
        MIGRATION = 2 "migration",
    }
}

codes! {
    /// The block operation, which is the lowest byte of [`Io::rw`].
    Operation(u8) {
        /// Reads blocks.
        READ = 0 "read",
        /// Writes blocks.
        WRITE = 1 "write",
        /// Writes the cache of the device to the medium.
        FLUSH = 2 "flush",
        /// Discards blocks.
        DISCARD = 3 "discard",
        /// Erases blocks so that their data cannot be recovered.
        SECURE_ERASE = 4 "secure erase",
        /// Writes the same data to all blocks of a range.
        WRITE_SAME = 5 "write same",
    }
}

masks! {
    /// The operation of an [`Io`], in the lowest byte, and its flags.
    IoFlags(u32) {
        /// Synchronous I/O: the submitter waits for completion.
        SYNC = 8 "sync",
        /// Force unit access (FUA): the write completes when its data is on the medium.
        FUA = 9 "fua",
    }
}

masks! {
    /// The write cache of a device.
    CachePolicy(u8) {
        /// The device supports FUA.
        FUA = 0 "fua",
        /// The device has a write-back cache.
        WRITE_BACK = 1 "write back",
    }
}

le_field!(MessageType, AccessMode, IoFlags, CachePolicy);

impl IoFlags {
    /// Combines an operation with flags.
    #[must_use]
    pub const fn of(operation: Operation, flags: Self) -> Self {
        Self(flags.0 & !0xff | operation.0 as u32)
    }

    /// Returns the operation.
    #[must_use]
    pub const fn operation(self) -> Operation {
        Operation(self.0 as u8)
    }

    /// Returns the flags without the operation.
    #[must_use]
    pub const fn flags(self) -> Self {
        Self(self.0 & !0xff)
    }
}

le_layout! {
    /// Session info of the client, or the server's response to it.
    pub struct Session: 36 {
        /// [`MessageType::SESSION`] or [`MessageType::SESSION_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The major version, 2.
        pub version: u8 = 4,
        /// Extension of ibfabric: a client sends [`Session::EXTENSION_REQUEST`], a server sends
        /// [`Session::EXTENSION_RESPONSE`]. Linux ignores this field.
        ///
        /// If client and server support the extension, the fields `writers`, `medium` and `cache` of
        /// [`OpenResponse`] show whether the device's data has changed since the client last opened it.
        pub extension: u64 = 8,
        /// In a request with the extension: the ID of the client, which is not zero and is the same
        /// in all sessions of the client.
        ///
        /// In a response with the extension: the ID of the server, which changes whenever the server
        /// starts.
        pub number: u64 = 16,
    }
}

impl Session {
    /// The value of [`Session::extension`] in the request of a client that supports the extension.
    pub const EXTENSION_REQUEST: u64 = u64::from_le_bytes(*b"ibfabric");
    /// The value of [`Session::extension`] in the response of a server that supports the extension.
    pub const EXTENSION_RESPONSE: u64 = !Self::EXTENSION_REQUEST;
}

le_layout! {
    /// A request to open a device.
    pub struct Open: 264 {
        /// [`MessageType::OPEN`].
        pub message_type: MessageType = 0,
        /// The requested access mode.
        pub access_mode: AccessMode = 4,
        /// The name of the device, terminated by a zero byte.
        pub name: [u8; 255] = 6,
    }
}

le_layout! {
    /// The response to [`Open`]: the properties of the device.
    pub struct OpenResponse: 56 {
        /// [`MessageType::OPEN_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The ID of the open device, which [`Io`] and [`Close`] must contain.
        pub device_id: u32 = 4,
        /// The size in sectors of 512 bytes.
        pub sectors: u64 = 8,
        /// The maximum size of an I/O that the hardware supports, in sectors.
        pub max_hw_sectors: u32 = 16,
        /// The maximum size of a write-same command, in sectors. Always zero.
        pub max_write_same_sectors: u32 = 20,
        /// The maximum size of a discard, in sectors; 0 if discard is not supported.
        pub max_discard_sectors: u32 = 24,
        /// The granularity of discards in bytes.
        pub discard_granularity: u32 = 28,
        /// The offset in bytes of the first discard unit.
        pub discard_alignment: u32 = 32,
        /// The physical block size in bytes.
        pub physical_block_size: u16 = 36,
        /// The logical block size in bytes.
        pub logical_block_size: u16 = 38,
        /// The maximum number of memory segments of an I/O.
        pub max_segments: u16 = 40,
        /// Not zero if secure erase is supported.
        pub secure_discard: u16 = 42,
        /// The write cache of the device.
        pub cache_policy: CachePolicy = 45,
        /// Extension of ibfabric ([`Session::EXTENSION_RESPONSE`]): detects writes of other clients.
        ///
        /// The lower 15 bits are a number that the server assigns to a client that opens the device for
        /// writing. The number changes when another client writes to the device. It is zero if the
        /// device is opened read-only. The upper bit is [`OpenResponse::WRITERS_PERSISTENT`].
        pub writers: u16 = 46,
        /// Extension of ibfabric: a number that identifies the file, block device or memory with the
        /// data. It changes if that file, device or memory is replaced, but not when data is written.
        pub medium: u32 = 48,
        /// Extension of ibfabric: a number that changes if the device may have lost completed writes
        /// that were not flushed.
        pub cache: u32 = 52,
    }
}

impl OpenResponse {
    /// The upper bit of [`OpenResponse::writers`]: set if the server stores the number in the lower 15 bits
    /// persistently, so that a restart of the server does not reset it.
    pub const WRITERS_PERSISTENT: u16 = 0x8000;
}

le_layout! {
    /// A block command.
    pub struct Io: 32 {
        /// [`MessageType::IO`].
        pub message_type: MessageType = 0,
        /// The ID of the device, as in [`OpenResponse`].
        pub device_id: u32 = 4,
        /// The first sector, in units of 512 bytes.
        pub sector: u64 = 8,
        /// The operation and its flags.
        pub rw: IoFlags = 16,
        /// The length of the I/O in bytes.
        pub length: u32 = 20,
        /// The I/O priority, encoded as in Linux.
        pub priority: u16 = 24,
    }
}

le_layout! {
    /// A request to close a device.
    pub struct Close: 8 {
        /// [`MessageType::CLOSE`].
        pub message_type: MessageType = 0,
        /// The ID of the device, as in [`OpenResponse`].
        pub device_id: u32 = 4,
    }
}

impl Io {
    /// The minimum length in bytes. Old clients send messages of this length, which lack the
    /// priority field.
    pub const SHORTEST: usize = 24;
}

impl Open {
    /// Returns the name up to the first zero byte.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// A decoded message.
#[allow(clippy::large_enum_variant, reason = "messages are decoded one at a time and not stored")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Session info, or the response to session info.
    Session(Session),
    /// A request to open a device.
    Open(Open),
    /// The response to an open.
    OpenResponse(OpenResponse),
    /// A block command.
    Io(Io),
    /// A request to close a device.
    Close(Close),
    /// A message of unknown type, with the bytes after the type.
    Other(MessageType, &'a [u8]),
}

/// A message cannot be parsed, because it is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the RNBD message{} has {found} bytes: expected at least {expected}",
    if *expected > 2 { format!(" {message_type}") } else { String::new() }
)]
pub struct Truncated {
    /// The type of the message; zero if the type itself is truncated.
    pub message_type: MessageType,
    /// The minimum length of the message in bytes.
    pub expected: usize,
    /// The number of bytes of the message that were found.
    pub found: usize,
}

impl<'a> Message<'a> {
    /// Parses a message. Ignores bytes after the message.
    ///
    /// # Errors
    /// Fails if the message is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let (message_type, found) = (MessageType(0), bytes.len());
        let code = bytes.first_chunk().ok_or(Truncated { message_type, expected: 2, found })?;
        let message_type = MessageType(u16::from_le_bytes(*code));
        let short = |expected| Truncated { message_type, expected, found };
        macro_rules! whole {
            ($kind:ident) => {
                $kind::parse(bytes.first_chunk().ok_or_else(|| short($kind::LENGTH))?)
            };
        }
        Ok(match message_type {
            MessageType::SESSION | MessageType::SESSION_RESPONSE => Self::Session(whole!(Session)),
            MessageType::OPEN => Self::Open(whole!(Open)),
            MessageType::OPEN_RESPONSE => Self::OpenResponse(whole!(OpenResponse)),
            MessageType::CLOSE => Self::Close(whole!(Close)),
            MessageType::IO => {
                if found < Io::SHORTEST {
                    return Err(short(Io::SHORTEST));
                }
                let mut padded = [0; Io::LENGTH];
                let length = found.min(Io::LENGTH);
                padded[..length].copy_from_slice(&bytes[..length]);
                Self::Io(Io::parse(&padded))
            }
            other => Self::Other(other, &bytes[2..]),
        })
    }

    /// Appends the encoded message to `out`. The caller must set the `message_type` field correctly;
    /// `emit` does not check it.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Session(session) => out.extend(session.to_bytes()),
            Self::Open(open) => out.extend(open.to_bytes()),
            Self::OpenResponse(response) => out.extend(response.to_bytes()),
            Self::Io(io) => out.extend(io.to_bytes()),
            Self::Close(close) => out.extend(close.to_bytes()),
            Self::Other(message_type, rest) => {
                out.extend(message_type.0.to_le_bytes());
                out.extend(*rest);
            }
        }
    }

    /// Returns the type.
    #[must_use]
    pub const fn message_type(&self) -> MessageType {
        match self {
            Self::Session(session) => session.message_type,
            Self::Open(_) => MessageType::OPEN,
            Self::OpenResponse(_) => MessageType::OPEN_RESPONSE,
            Self::Io(_) => MessageType::IO,
            Self::Close(_) => MessageType::CLOSE,
            Self::Other(message_type, _) => *message_type,
        }
    }
}

#[cfg(test)]
mod tests;
