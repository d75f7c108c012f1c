//! RNBD, version 2: the messages of block devices, which RTRS carries as headers of its user.
//!
//! Each starts with two bytes of type and two that mean nothing. All numbers have their least
//! significant byte first.
//!
//! | type | name | carried by | answered by |
//! |---|---|---|---|
//! | 0 | session | a read of 36 bytes | type 1, its data |
//! | 2 | open | a read of 56 bytes | type 3, its data |
//! | 4 | I/O | a read or a write | the data of a read |
//! | 5 | close | a write without data | nothing |
//!
//! What became of each is the error number of RTRS.

use crate::little::{little, little_field};
use crate::mad::{codes, masks};

codes! {
    /// The type of a message.
    MessageType(u16) {
        /// The version of the client.
        SESSION = 0 "sess_info",
        /// The version of the server.
        SESSION_RESPONSE = 1 "sess_info_rsp",
        /// A device is wanted.
        OPEN = 2 "open",
        /// What it is like.
        OPEN_RESPONSE = 3 "open_rsp",
        /// Something is done with it.
        IO = 4 "io",
        /// It is wanted no more.
        CLOSE = 5 "close",
    }
}

codes! {
    /// What a client may do with a device.
    AccessMode(u8) {
        /// Read.
        READ_ONLY = 0 "ro",
        /// Read and write.
        READ_WRITE = 1 "rw",
        /// Read and write, while another client still may, too.
        MIGRATION = 2 "migration",
    }
}

codes! {
    /// What is done with a device: the lowest byte of [`Io::rw`].
    Operation(u8) {
        /// Read.
        READ = 0 "read",
        /// Write.
        WRITE = 1 "write",
        /// Write what is cached.
        FLUSH = 2 "flush",
        /// Forget what is stored.
        DISCARD = 3 "discard",
        /// Make what is stored unreadable.
        SECURE_ERASE = 4 "secure erase",
        /// Write the same data over and over.
        WRITE_SAME = 5 "write same",
    }
}

masks! {
    /// What is done with a device, and how.
    IoFlags(u32) {
        /// Somebody waits for it.
        SYNC = 8 "sync",
        /// It has to reach the medium.
        FUA = 9 "fua",
    }
}

masks! {
    /// How a device caches.
    CachePolicy(u8) {
        /// It can be told to write to the medium at once.
        FUA = 0 "fua",
        /// It caches what is written.
        WRITE_BACK = 1 "write back",
    }
}

little_field!(MessageType, AccessMode, IoFlags, CachePolicy);

impl IoFlags {
    /// Makes what is done and how it is done one number.
    #[must_use]
    pub const fn of(operation: Operation, flags: Self) -> Self {
        Self(flags.0 & !0xff | operation.0 as u32)
    }

    /// Returns what is done.
    #[must_use]
    pub const fn operation(self) -> Operation {
        Operation(self.0 as u8)
    }

    /// Returns how it is done.
    #[must_use]
    pub const fn flags(self) -> Self {
        Self(self.0 & !0xff)
    }
}

little! {
    /// The version of the client, or that of the server.
    pub struct Session: 36 {
        /// [`MessageType::SESSION`] or [`MessageType::SESSION_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The major version, 2.
        pub version: u8 = 4,
        /// Among ends of this project [`Session::ASKS`] and [`Session::KNOWS`]: the client wants to know where the data of
        /// devices comes from, and the server tells it. Linux has nothing here that means anything.
        pub extension: u64 = 8,
        /// Beside [`Session::ASKS`]: a number of the client, the same in all of its sessions; not zero. Beside
        /// [`Session::KNOWS`]: a number of the server, another one each time that it was started.
        pub number: u64 = 16,
    }
}

impl Session {
    /// What clients say that want to know where data comes from.
    pub const ASKS: u64 = u64::from_le_bytes(*b"ibfabric");
    /// What servers say that tell it.
    pub const KNOWS: u64 = !Self::ASKS;
}

little! {
    /// A device is wanted.
    pub struct Open: 264 {
        /// [`MessageType::OPEN`].
        pub message_type: MessageType = 0,
        /// What for.
        pub access_mode: AccessMode = 4,
        /// Its name, ended by a zero.
        pub name: [u8; 255] = 6,
    }
}

little! {
    /// What a device is like.
    pub struct OpenResponse: 56 {
        /// [`MessageType::OPEN_RESPONSE`].
        pub message_type: MessageType = 0,
        /// Its number.
        pub device_id: u32 = 4,
        /// Its size in units of 512 bytes.
        pub sectors: u64 = 8,
        /// The longest I/O of the medium in units of 512 bytes.
        pub max_hw_sectors: u32 = 16,
        /// The longest write of the same data; zero.
        pub max_write_same_sectors: u32 = 20,
        /// The most that can be discarded at once in units of 512 bytes; 0 for nothing.
        pub max_discard_sectors: u32 = 24,
        /// In which units it is discarded, in bytes.
        pub discard_granularity: u32 = 28,
        /// Where the first of them starts, in bytes.
        pub discard_alignment: u32 = 32,
        /// The blocks of the medium in bytes.
        pub physical_block_size: u16 = 36,
        /// The blocks of the device in bytes.
        pub logical_block_size: u16 = 38,
        /// How many parts of memory an I/O may have.
        pub max_segments: u16 = 40,
        /// Not zero when what is stored can be made unreadable.
        pub secure_discard: u16 = 42,
        /// How it caches.
        pub cache_policy: CachePolicy = 45,
        /// From servers that have said [`Session::KNOWS`]: a number that this client is told each time, until another one has
        /// written to the device; with [`OpenResponse::LASTS`] when that is known of the time before the server was started.
        pub writers: u16 = 46,
        /// From these as well: a number of the medium, another one for other data.
        pub medium: u32 = 48,
        /// From these as well: a number of the cache, another one when what was not flushed may be lost.
        pub cache: u32 = 52,
    }
}

impl OpenResponse {
    /// The bit of [`OpenResponse::writers`] that says for how long.
    pub const LASTS: u16 = 0x8000;
}

little! {
    /// Something is done with a device.
    pub struct Io: 32 {
        /// [`MessageType::IO`].
        pub message_type: MessageType = 0,
        /// The device.
        pub device_id: u32 = 4,
        /// Where, in units of 512 bytes.
        pub sector: u64 = 8,
        /// What, and how.
        pub rw: IoFlags = 16,
        /// How much, in bytes.
        pub length: u32 = 20,
        /// The priority of Linux.
        pub priority: u16 = 24,
    }
}

little! {
    /// A device is wanted no more.
    pub struct Close: 8 {
        /// [`MessageType::CLOSE`].
        pub message_type: MessageType = 0,
        /// The device.
        pub device_id: u32 = 4,
    }
}

impl Io {
    /// The length of the oldest form, which has no priority.
    pub const SHORTEST: usize = 24;
}

impl Open {
    /// Returns the name up to its first zero.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

/// A message.
#[allow(clippy::large_enum_variant, reason = "one at a time, and nobody keeps them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The version of the client, or that of the server.
    Session(Session),
    /// A device is wanted.
    Open(Open),
    /// What it is like.
    OpenResponse(OpenResponse),
    /// Something is done with it.
    Io(Io),
    /// It is wanted no more.
    Close(Close),
    /// Something that nobody has named.
    Other(MessageType, &'a [u8]),
}

/// A message is shorter than it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {message_type} of RNBD has {expected} bytes: found {found}")]
pub struct Truncated {
    /// What it would be.
    pub message_type: MessageType,
    /// How many bytes it has to have.
    pub expected: usize,
    /// How many there are.
    pub found: usize,
}

impl<'a> Message<'a> {
    /// Reads a message; what follows it is left alone.
    ///
    /// # Errors
    /// Fails when there are fewer bytes than the message has.
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

    /// Appends the message; the type in it is written as it stands there.
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
