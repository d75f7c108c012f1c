//! The extension of ibfabric to RTRS 2.0: path fencing and authentication.
//!
//! Client and server announce their [`Capabilities`] in reserved bytes of the private data of
//! connect requests and responses. Linux sets these bytes to zero and ignores them. Messages of the
//! extension are sent on connection 0, and only to peers that have announced the capability that
//! the message belongs to.
//!
//! Path fencing: a client requests that the server closes a failed path. After the server's
//! confirmation, no request of the failed path can take effect, so the client can safely send these
//! requests on another path.
//!
//! | type | message | sent by |
//! |---|---|---|
//! | 0x8001 | fence: close a failed path and complete its requests | client |
//! | 0x8002 | fenced: the path is closed, all of its requests are complete | server |
//! | 1 | info response, bytes 4 to 7: the epoch of the session | server |
//! | 0x8003 | proof of knowledge of the shared key | client and server |

use super::message::MessageType;
use crate::le_layout::{le_field, le_layout};
use crate::mad::masks;

masks! {
    /// The parts of the extension that the sender supports.
    Capabilities(u8) {
        /// The sender supports path fencing.
        FENCE = 0 "fence",
        /// Authentication: the sender proves that it knows the shared key, and requires the same
        /// proof from its peer.
        PROOF = 1 "proof",
    }
}

le_field!(Capabilities);

/// The magic number of the extension.
pub const EXTENSION_MAGIC: u16 = 0x1bfa;

/// The version of the extension.
pub const EXTENSION_VERSION: u8 = 1;

/// The byte offset of [`Extension`] in a [`ConnectRequest`](super::ConnectRequest).
const IN_REQUEST: usize = 46;
/// The byte offset of [`Extension`] in a [`ConnectResponse`](super::ConnectResponse).
const IN_RESPONSE: usize = 20;

le_layout! {
    /// Announces the capabilities of the sender. It is at byte 46 of the private data of a connect
    /// request, and at byte 20 of the private data of a connect response.
    ///
    /// ```text
    /// 0 magic (2)   2 version (1)   3 capabilities (1)
    /// ```
    pub struct Extension: 4 {
        /// [`EXTENSION_MAGIC`].
        pub magic: u16 = 0,
        /// [`EXTENSION_VERSION`].
        pub version: u8 = 2,
        /// The capabilities of the sender.
        pub capabilities: Capabilities = 3,
    }
}

impl Extension {
    /// Creates the extension that announces these capabilities.
    #[must_use]
    pub const fn new(capabilities: Capabilities) -> Self {
        Self { magic: EXTENSION_MAGIC, version: EXTENSION_VERSION, capabilities }
    }

    /// Returns the capabilities that the private data of a connect request announces; none if it
    /// has no extension.
    #[must_use]
    pub fn of_request(bytes: &[u8]) -> Capabilities {
        Self::at(bytes, IN_REQUEST)
    }

    /// Returns the capabilities that the private data of a connect response announces; none if it
    /// has no extension.
    #[must_use]
    pub fn of_response(bytes: &[u8]) -> Capabilities {
        Self::at(bytes, IN_RESPONSE)
    }

    /// Writes the extension into the private data of a connect request.
    pub fn put_into_request(&self, bytes: &mut [u8; 56]) {
        bytes[IN_REQUEST..IN_REQUEST + Self::LENGTH].copy_from_slice(&self.to_bytes());
    }

    /// Writes the extension into the private data of a connect response.
    pub fn put_into_response(&self, bytes: &mut [u8; 56]) {
        bytes[IN_RESPONSE..IN_RESPONSE + Self::LENGTH].copy_from_slice(&self.to_bytes());
    }

    fn at(bytes: &[u8], offset: usize) -> Capabilities {
        let found = bytes.get(offset..).and_then(<[u8]>::first_chunk).map(Self::parse);
        let is_known = |it: &Self| it.magic == EXTENSION_MAGIC && it.version == EXTENSION_VERSION;
        found.filter(is_known).map_or(Capabilities(0), |it| it.capabilities)
    }
}

le_layout! {
    /// Requests a path fence: the server must close the path, and confirm when all requests of the path are complete.
    pub struct Fence: 32 {
        /// [`MessageType::FENCE`].
        pub message_type: MessageType = 0,
        /// The ID of the fence, which the response repeats.
        pub id: u32 = 4,
        /// The UUID of the failed path.
        pub path_uuid: [u8; 16] = 8,
        /// The value of [`ConnectRequest::reconnects`](super::ConnectRequest) with which the failed path
        /// was connected.
        pub reconnects: u16 = 24,
    }
}

le_layout! {
    /// Confirms a path fence: requests of the path can no longer take effect.
    pub struct Fenced: 8 {
        /// [`MessageType::FENCED`].
        pub message_type: MessageType = 0,
        /// The ID of the fence, as in the request.
        pub id: u32 = 4,
    }
}

le_layout! {
    /// A proof that the sender knows the shared key, or a request for such a proof.
    pub struct Proof: 72 {
        /// [`MessageType::PROOF`].
        pub message_type: MessageType = 0,
        /// A random number that the sender has chosen.
        pub nonce: [u8; 32] = 8,
        /// The HMAC-SHA256 that proves knowledge of the key; zero if the sender only requests a
        /// proof.
        pub code: [u8; 32] = 40,
    }
}
