//! What ends of this project say to each other beyond RTRS 2.0, where Linux neither writes nor reads anything:
//! in the zeros of what a connection starts with, and in messages on connection 0 that are sent only to whom has
//! announced to know them.
//!
//! | type | name | carried by |
//! |---|---|---|
//! | 0x8001 | fence | a SEND of the client: what of a path that is dead may still have an effect? |
//! | 0x8002 | fenced | a SEND of the server: nothing any more |
//! | 1 | info response | its bytes 4 to 7: by which number the server knows the session since it has begun |
//! | 0x8003 | proof | a SEND of either: who knows the key that both share |

use super::message::MessageType;
use crate::little::{little, little_field};
use crate::mad::masks;

masks! {
    /// What an end knows beyond RTRS 2.0.
    Capabilities(u8) {
        /// A path can be fenced.
        FENCE = 0 "fence",
        /// It proves that it knows a key, and wants a proof.
        PROOF = 1 "proof",
    }
}

little_field!(Capabilities);

/// The number by which an extension is known.
pub const EXTENSION_MAGIC: u16 = 0x1bfa;

/// The version of the extension.
pub const EXTENSION_VERSION: u8 = 1;

/// Where the extension stands in a request, and in a response.
const IN_REQUEST: usize = 46;
const IN_RESPONSE: usize = 20;

little! {
    /// The extension in the private data of a connection: at byte 46 of a request, at byte 20 of a response.
    ///
    /// ```text
    /// 0 magic (2)   2 version (1)   3 capabilities (1)
    /// ```
    pub struct Extension: 4 {
        /// [`EXTENSION_MAGIC`].
        pub magic: u16 = 0,
        /// [`EXTENSION_VERSION`].
        pub version: u8 = 2,
        /// What the end knows.
        pub capabilities: Capabilities = 3,
    }
}

impl Extension {
    /// Makes the extension that tells of what an end knows.
    #[must_use]
    pub const fn new(capabilities: Capabilities) -> Self {
        Self { magic: EXTENSION_MAGIC, version: EXTENSION_VERSION, capabilities }
    }

    /// Returns what is told by the private data of a request; nothing where there is no extension.
    #[must_use]
    pub fn of_request(bytes: &[u8]) -> Capabilities {
        Self::at(bytes, IN_REQUEST)
    }

    /// Returns what is told by the private data of a response; nothing where there is no extension.
    #[must_use]
    pub fn of_response(bytes: &[u8]) -> Capabilities {
        Self::at(bytes, IN_RESPONSE)
    }

    /// Writes it into the private data of a request.
    pub fn put_into_request(&self, bytes: &mut [u8; 56]) {
        bytes[IN_REQUEST..IN_REQUEST + Self::LENGTH].copy_from_slice(&self.to_bytes());
    }

    /// Writes it into the private data of a response.
    pub fn put_into_response(&self, bytes: &mut [u8; 56]) {
        bytes[IN_RESPONSE..IN_RESPONSE + Self::LENGTH].copy_from_slice(&self.to_bytes());
    }

    fn at(bytes: &[u8], offset: usize) -> Capabilities {
        let found = bytes.get(offset..).and_then(<[u8]>::first_chunk).map(Self::parse);
        let is_known = |it: &Self| it.magic == EXTENSION_MAGIC && it.version == EXTENSION_VERSION;
        found.filter(is_known).map_or(Capabilities(0), |it| it.capabilities)
    }
}

little! {
    /// A path is dead: what has come over it is to have no effect any more.
    pub struct Fence: 32 {
        /// [`MessageType::FENCE`].
        pub message_type: MessageType = 0,
        /// What the answer repeats.
        pub id: u32 = 4,
        /// The path.
        pub path_uuid: [u8; 16] = 8,
        /// As which of its connections it was last used, [`ConnectRequest::reconnects`](super::ConnectRequest).
        pub reconnects: u16 = 24,
    }
}

little! {
    /// Nothing that has come over a path has an effect any more.
    pub struct Fenced: 8 {
        /// [`MessageType::FENCED`].
        pub message_type: MessageType = 0,
        /// That of the question.
        pub id: u32 = 4,
    }
}

little! {
    /// A proof that an end knows the key that both share.
    pub struct Proof: 72 {
        /// [`MessageType::PROOF`].
        pub message_type: MessageType = 0,
        /// A random number of whoever sends it.
        pub nonce: [u8; 32] = 8,
        /// HMAC-SHA256; zero in what only asks for a proof.
        pub code: [u8; 32] = 40,
    }
}
