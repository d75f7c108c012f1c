//! The messages of RTRS: two bytes of type, then what belongs to it.
//!
//! | type | name | carried by |
//! |---|---|---|
//! | 0 | information wanted | a SEND of the client on connection 0 |
//! | 1 | information | a SEND of the server: where its chunks are |
//! | 2 | write | the end of what the client writes into a chunk: data, header of the user, message |
//! | 3 | read | the end of what the client writes into a chunk: header of the user, message |
//! | 4 | new key | a SEND with immediate data of the server: the key of a chunk from now on |

use super::RtrsError;
use super::connect::first;
use crate::little::{little, little_field};
use crate::mad::{codes, masks};

codes! {
    /// The type of a message.
    MessageType(u16) {
        /// Information wanted.
        INFO_REQUEST = 0 "info request",
        /// Information.
        INFO_RESPONSE = 1 "info response",
        /// A write.
        WRITE = 2 "write",
        /// A read.
        READ = 3 "read",
        /// A new key.
        RKEY_RESPONSE = 4 "rkey response",
        /// A path is dead; see [`super::extension`].
        FENCE = 0x8001 "fence",
        /// It has no effect any more.
        FENCED = 0x8002 "fenced",
        /// The key that both ends share is known.
        PROOF = 0x8003 "proof",
    }
}

masks! {
    /// What a client says of a read.
    ReadFlags(u16) {
        /// The server is to invalidate the remote key that the answer was written with.
        NEED_INVALIDATION = 0 "need invalidation",
    }
}

little_field!(MessageType, ReadFlags);

little! {
    /// The question for a server's chunks.
    pub struct InfoRequest: 272 {
        /// [`MessageType::INFO_REQUEST`].
        pub message_type: MessageType = 0,
        /// The name of the session, padded with zeros.
        pub name: [u8; 255] = 2,
    }
}

impl InfoRequest {
    /// Makes the question; of a name that is too long the rest is left out.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let mut request = Self::zeroed();
        let length = name.len().min(request.name.len() - 1);
        request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
        request
    }

    /// Returns the name up to its first zero.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.name.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

little! {
    /// What comes before the chunks.
    pub struct InfoHeader: 8 {
        /// [`MessageType::INFO_RESPONSE`].
        pub message_type: MessageType = 0,
        /// How many descriptors follow.
        pub count: u16 = 2,
        /// Zero from Linux. Servers of this project tell clients of it that can have paths fenced by which number they know
        /// the session since it has begun; when all its paths are gone it begins anew, with another one.
        pub epoch: u32 = 4,
    }
}

little! {
    /// A part of memory at the other end.
    pub struct Descriptor: 16 {
        /// Its address there.
        pub address: u64 = 0,
        /// Its remote key.
        pub r_key: u32 = 8,
        /// Its length in bytes.
        pub length: u32 = 12,
    }
}

little! {
    /// A write.
    pub struct WriteHeader: 4 {
        /// [`MessageType::WRITE`].
        pub message_type: MessageType = 0,
        /// The length of the user's header before the message.
        pub user_length: u16 = 2,
    }
}

little! {
    /// A read; a descriptor follows where there is something to be read.
    pub struct ReadHeader: 8 {
        /// [`MessageType::READ`].
        pub message_type: MessageType = 0,
        /// The length of the user's header before the message.
        pub user_length: u16 = 2,
        /// Flags.
        pub flags: ReadFlags = 4,
        /// How many descriptors follow.
        pub count: u16 = 6,
    }
}

little! {
    /// The key that a chunk has from now on.
    pub struct RkeyResponse: 8 {
        /// [`MessageType::RKEY_RESPONSE`].
        pub message_type: MessageType = 0,
        /// The chunk.
        pub chunk: u16 = 2,
        /// Its remote key.
        pub r_key: u32 = 4,
    }
}

/// Descriptors, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptors<'a>(&'a [u8]);

impl<'a> Descriptors<'a> {
    /// Makes descriptors of bytes; those after the last whole one are left out.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(&bytes[..bytes.len() / Descriptor::LENGTH * Descriptor::LENGTH])
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len() / Descriptor::LENGTH
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns one of them.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Descriptor> {
        self.iter().nth(index)
    }

    /// Returns them in their order.
    pub fn iter(&self) -> impl Iterator<Item = Descriptor> + use<'a> {
        let (chunks, _) = self.0.as_chunks();
        chunks.iter().map(Descriptor::parse)
    }

    /// Returns them as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A message.
#[allow(clippy::large_enum_variant, reason = "one at a time, and nobody keeps them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Information wanted.
    InfoRequest(InfoRequest),
    /// Where the server's chunks are: one descriptor for each, or fewer for longer parts.
    InfoResponse(Descriptors<'a>),
    /// A write.
    Write(WriteHeader),
    /// A read, and where to.
    Read(ReadHeader, Descriptors<'a>),
    /// A new key.
    RkeyResponse(RkeyResponse),
    /// Something that nobody has named.
    Other(MessageType, &'a [u8]),
}

impl<'a> Message<'a> {
    /// Reads a message; what follows it is left alone.
    ///
    /// # Errors
    /// Fails when there are fewer bytes than the message has.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RtrsError> {
        let message_type = MessageType(u16::from_le_bytes(*first(bytes, "a message of RTRS")?));
        Ok(match message_type {
            MessageType::INFO_REQUEST => {
                Self::InfoRequest(InfoRequest::parse(first(bytes, "an info request")?))
            }
            MessageType::INFO_RESPONSE => {
                let header = InfoHeader::parse(first(bytes, "an info response")?);
                let rest = &bytes[InfoHeader::LENGTH..];
                Self::InfoResponse(descriptors("an info response", rest, header.count)?)
            }
            MessageType::WRITE => Self::Write(WriteHeader::parse(first(bytes, "a write")?)),
            MessageType::READ => {
                let header = ReadHeader::parse(first(bytes, "a read")?);
                let rest = &bytes[ReadHeader::LENGTH..];
                Self::Read(header, descriptors("a read", rest, header.count)?)
            }
            MessageType::RKEY_RESPONSE => {
                Self::RkeyResponse(RkeyResponse::parse(first(bytes, "an rkey response")?))
            }
            other => Self::Other(other, &bytes[2..]),
        })
    }

    /// Appends the message. The types and counts in it are written as they stand there, but for the
    /// count of an info response, which is that of its descriptors.
    ///
    /// # Panics
    /// Panics when an info response has more than 65,535 descriptors.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::InfoRequest(request) => out.extend(request.to_bytes()),
            Self::InfoResponse(descriptors) => {
                let count = u16::try_from(descriptors.len()).expect("as many as a count can tell");
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

    /// Finds the message at the end of what a client has written into a chunk. `length` is that of all that
    /// was written, of which `end` is the last part, and `offset` where in the chunk its immediate data says that the
    /// message is. Returns the message and the user's header before it.
    ///
    /// A write starts where the chunk does, and a read so far behind that the answer has room: that
    /// is how they are told apart. `None` when it is neither, or `end` does not reach back far enough.
    #[must_use]
    pub fn at_end(end: &'a [u8], length: usize, offset: usize) -> Option<(Self, &'a [u8])> {
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
