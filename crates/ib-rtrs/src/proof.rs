//! Mutual authentication by a shared key. Its messages are specific to this project: Linux does not have them.
//!
//! 1. The client sends a nonce.
//! 2. The server sends a second nonce and its proof.
//! 3. The client sends its proof.
//!
//! A proof is the HMAC-SHA256 of the sender's role, both nonces, and the UUIDs of path and session. Later messages are
//! neither encrypted nor signed.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use ib_wire::rtrs::{MessageType, Proof};

/// The secret key that client and server share.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey(Vec<u8>);

impl SharedKey {
    /// Creates a key from bytes. A key of 32 random bytes is recommended.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for SharedKey {
    /// Omits the key, so that logs do not contain it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKey")
    }
}

/// The side that sends a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prover {
    Client,
    Server,
}

/// The values that a proof authenticates: both nonces, and the UUIDs of path and session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transcript {
    pub(crate) client_nonce: [u8; 32],
    pub(crate) server_nonce: [u8; 32],
    pub(crate) path: [u8; 16],
    pub(crate) session: [u8; 16],
}

impl Transcript {
    fn mac(&self, key: &SharedKey, prover: Prover) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC accepts keys of any length");
        mac.update(match prover {
            Prover::Client => b"ibfabric rtrs client",
            Prover::Server => b"ibfabric rtrs server",
        });
        mac.update(&self.client_nonce);
        mac.update(&self.server_nonce);
        mac.update(&self.path);
        mac.update(&self.session);
        mac
    }

    /// Returns the proof message of the given side.
    pub(crate) fn prove(&self, key: &SharedKey, prover: Prover) -> Proof {
        let nonce = match prover {
            Prover::Client => self.client_nonce,
            Prover::Server => self.server_nonce,
        };
        let code = self.mac(key, prover).finalize().into_bytes().into();
        Proof { message_type: MessageType::PROOF, nonce, code }
    }

    /// Returns true if the proof message of the given side is valid. The comparison takes constant time.
    pub(crate) fn verify(&self, key: &SharedKey, prover: Prover, proof: &Proof) -> bool {
        self.mac(key, prover).verify_slice(&proof.code).is_ok()
    }
}
