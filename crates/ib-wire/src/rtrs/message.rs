//! Messages of RTRS. The first two bytes of a message are its type.
//!
//! | type | message | carried by |
//! |---|---|---|
//! | 0 | info request | a SEND of the client on connection 0 |
//! | 1 | info response: addresses and R_Keys of the chunks | a SEND of the server |
//! | 2 | write | an RDMA WRITE of the client into a chunk: data, user header, message |
//! | 3 | read | an RDMA WRITE of the client into a chunk: user header, message |
//! | 4 | R_Key response: the new R_Key of a chunk | a SEND with immediate data of the server |

use super::RtrsError;
use super::connect::first;
use crate::le_layout::{le_field, le_layout};
use crate::mad::{codes, masks};

codes! {
    /// The type of a message.
    MessageType(u16) {
        /// Requests the addresses and R_Keys of the server's chunks.
        INFO_REQUEST = 0 "info request",
        /// The addresses and R_Keys of the server's chunks.
        INFO_RESPONSE = 1 "info response",
        /// Write request.
        WRITE = 2 "write",
        /// Read request.
        READ = 3 "read",
        /// The new R_Key of a chunk.
        RKEY_RESPONSE = 4 "rkey response",
        /// Extension of ibfabric: requests a path fence; see [`super::extension`].
        FENCE = 0x8001 "fence",
        /// Extension of ibfabric: confirms a path fence.
        FENCED = 0x8002 "fenced",
        /// Extension of ibfabric: proves knowledge of the shared key.
        PROOF = 0x8003 "proof",
    }
}

masks! {
    /// The flags of a read request.
    ReadFlags(u16) {
        /// The server must invalidate the R_Key of the client's buffer.
        NEED_INVALIDATION = 0 "need invalidation",
    }
}

le_field!(MessageType, ReadFlags);

le_layout! {
    /// The info request: requests the addresses and R_Keys of the server's chunks.
    pub struct InfoRequest: 272 {
        /// [`MessageType::INFO_REQUEST`].
        pub message_type: MessageType = 0,
        /// The name of the session, padded with zeros.
        pub name: [u8; 255] = 2,
    }
}

impl InfoRequest {
    /// Creates the request. Truncates names of more than 254 bytes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut request = Self::zeroed();
        let length = name.len().min(request.name.len() - 1);
        request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        request
    }

    /// Returns the name up to the first zero byte.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

le_layout! {
    /// The header of the info response. The [`Descriptors`] of the chunks follow.
    pub struct InfoHeader: 8 {
        /// [`MessageType::INFO_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The number of descriptors that follow.
        pub count: u16 = 2,
        /// Extension of ibfabric: the epoch of the session, a random number. Linux servers send zero.
        ///
        /// The server sends the epoch only to clients that support path fencing. It draws a new epoch
        /// when a path is connected while no other path of the session is connected. A new epoch
        /// shows the client that the server has restarted the session.
        pub epoch: u32 = 4,
    }
}

le_layout! {
    /// Describes a buffer in the memory of the sender of the message.
    pub struct Descriptor: 16 {
        /// The virtual address of the buffer.
        pub address: u64 = 0,
        /// The R_Key of the buffer.
        pub r_key: u32 = 8,
        /// The length of the buffer in bytes.
        pub length: u32 = 12,
    }
}

le_layout! {
    /// A write request.
    pub struct WriteHeader: 4 {
        /// [`MessageType::WRITE`].
        pub message_type: MessageType = 0,
        /// The length in bytes of the user header that precedes this message.
        pub user_length: u16 = 2,
    }
}

le_layout! {
    /// A read request. The descriptors of the client's buffers follow.
    pub struct ReadHeader: 8 {
        /// [`MessageType::READ`].
        pub message_type: MessageType = 0,
        /// The length in bytes of the user header that precedes this message.
        pub user_length: u16 = 2,
        /// The flags of this read request.
        pub flags: ReadFlags = 4,
        /// The number of descriptors that follow.
        pub count: u16 = 6,
    }
}

le_layout! {
    /// The new R_Key of a chunk.
    pub struct RkeyResponse: 8 {
        /// [`MessageType::RKEY_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The index of the chunk.
        pub chunk: u16 = 2,
        /// The new R_Key.
        pub r_key: u32 = 4,
    }
}

/// A list of descriptors in encoded form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptors<'a>(&'a [u8]);

impl<'a> Descriptors<'a> {
    /// Creates the list from its bytes. Ignores bytes after the last whole descriptor.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(&bytes[..bytes.len() / Descriptor::LENGTH * Descriptor::LENGTH])
    }

    /// Returns the number of descriptors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / Descriptor::LENGTH
    }

    /// Returns true if the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the descriptor at an index; `None` if the index is too large.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Descriptor> {
        self.iter().nth(index)
    }

    /// Returns an iterator over the descriptors.
    pub fn iter(&self) -> impl Iterator<Item = Descriptor> + use<'a> {
        let (chunks, _) = self.0.as_chunks();
        chunks.iter().map(Descriptor::parse)
    }

    /// Returns the encoded descriptors.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A decoded message.
#[allow(clippy::large_enum_variant, reason = "messages are decoded one at a time and not stored")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The info request: requests the addresses and R_Keys of the server's chunks.
    InfoRequest(InfoRequest),
    /// The info response: describes the chunks of the server. A descriptor can cover several
    /// consecutive chunks.
    InfoResponse(Descriptors<'a>),
    /// A write request.
    Write(WriteHeader),
    /// A read request, with the descriptors of the client's buffers.
    Read(ReadHeader, Descriptors<'a>),
    /// The new R_Key of a chunk.
    RkeyResponse(RkeyResponse),
    /// A message of any other type, with the bytes after the type.
    Other(MessageType, &'a [u8]),
}

impl<'a> Message<'a> {
    /// Parses a message. Ignores bytes after the message.
    ///
    /// # Errors
    /// Fails if the message is truncated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RtrsError> {
        let message_type = MessageType(u16::from_le_bytes(*first(bytes, "the RTRS message")?));
        Ok(match message_type {
            MessageType::INFO_REQUEST => {
                Self::InfoRequest(InfoRequest::parse(first(bytes, "the info request")?))
            }
            MessageType::INFO_RESPONSE => {
                let header = InfoHeader::parse(first(bytes, "the info response")?);
                let rest = &bytes[InfoHeader::LENGTH..];
                Self::InfoResponse(descriptors(
                    "the descriptor list of the info response",
                    rest,
                    header.count,
                )?)
            }
            MessageType::WRITE => {
                Self::Write(WriteHeader::parse(first(bytes, "the write request")?))
            }
            MessageType::READ => {
                let header = ReadHeader::parse(first(bytes, "the read request")?);
                let rest = &bytes[ReadHeader::LENGTH..];
                Self::Read(
                    header,
                    descriptors("the descriptor list of the read request", rest, header.count)?,
                )
            }
            MessageType::RKEY_RESPONSE => {
                Self::RkeyResponse(RkeyResponse::parse(first(bytes, "the rkey response")?))
            }
            other => Self::Other(other, &bytes[2..]),
        })
    }

    /// Appends the encoded message to `out`.
    ///
    /// Does not check the `message_type` and `count` fields of the message. In an info response, the
    /// count is the number of descriptors, and the epoch is 0.
    ///
    /// # Panics
    /// Panics if an info response has more than 65,535 descriptors.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::InfoRequest(request) => out.extend(request.to_bytes()),
            Self::InfoResponse(descriptors) => {
                let count = u16::try_from(descriptors.len())
                    .expect("the response has at most 65,535 descriptors");
                let message_type = MessageType::INFO_RESPONSE;
                out.extend(InfoHeader { message_type, count, epoch: 0 }.to_bytes());
                out.extend(descriptors.0);
            }
            Self::Write(header) => out.extend(header.to_bytes()),
            Self::Read(header, descriptors) => {
                out.extend(header.to_bytes());
                out.extend(descriptors.0);
            }
            Self::RkeyResponse(response) => out.extend(response.to_bytes()),
            Self::Other(message_type, rest) => {
                out.extend(message_type.0.to_le_bytes());
                out.extend(*rest);
            }
        }
    }

    /// Parses the message at the end of the data that a client has written into a chunk of the
    /// server.
    ///
    /// `end` is the last part of the written bytes, and `length` is the number of all written bytes.
    /// `offset` is the offset of the message in the chunk, as in the immediate data. Returns the
    /// message, and the user header that precedes it.
    ///
    /// The lengths distinguish writes from reads. A write starts at the start of the chunk, so `offset`
    /// bytes precede its message. In a read, only the user header precedes the message, because the
    /// start of the chunk is reserved for the response data. Returns `None` if the bytes are neither
    /// a write nor a read with at most one descriptor. Also returns `None` if `end` does not contain
    /// the whole user header.
    #[must_use]
    pub fn parse_at_end(end: &'a [u8], length: usize, offset: usize) -> Option<(Self, &'a [u8])> {
        const LENGTHS: [usize; 3] =
            [WriteHeader::LENGTH, ReadHeader::LENGTH + Descriptor::LENGTH, ReadHeader::LENGTH];
        LENGTHS.into_iter().find_map(|own| {
            let at = end.len().checked_sub(own)?;
            let message = Self::parse(&end[at..]).ok()?;
            let before = length.checked_sub(own)?;
            let user = match message {
                Self::Write(header) if own == WriteHeader::LENGTH && before == offset => {
                    usize::from(header.user_length)
                }
                Self::Read(header, found)
                    if own == ReadHeader::LENGTH + found.as_bytes().len()
                        && before == usize::from(header.user_length)
                        && before <= offset =>
                {
                    before
                }
                _ => return None,
            };
            Some((message, &end[at.checked_sub(user)?..at]))
        })
    }
}

fn descriptors<'a>(
    what: &'static str,
    bytes: &'a [u8],
    count: u16,
) -> Result<Descriptors<'a>, RtrsError> {
    let expected = usize::from(count) * Descriptor::LENGTH;
    let all = bytes.get(..expected);
    all.map(Descriptors::new).ok_or(RtrsError::Truncated { what, expected, found: bytes.len() })
}
