//! How ends that share a key prove it to each other, in messages that only ends of this project know.
//!
//! The client sends a random number, the server another one and its proof, then the client its own proof: HMAC-SHA256
//! of who proves it, both numbers, the path and the session. What follows is neither encrypted nor signed.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use ib_wire::rtrs::{MessageType, Proof};

/// A key that both ends share, and that nobody else knows.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey(Vec<u8>);

impl SharedKey {
    /// Takes the bytes of a key; 32 random ones are a good one.
    #[must_use]
    pub const fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl std::fmt::Debug for SharedKey {
    /// Writes nothing of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedKey")
    }
}

/// Who proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prover {
    Client,
    Server,
}

/// What a proof is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) client: [u8; 32],
    pub(crate) server: [u8; 32],
    pub(crate) path: [u8; 16],
    pub(crate) session: [u8; 16],
}

impl Claim {
    fn mac(&self, key: &SharedKey, prover: Prover) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("a key has any length");
        mac.update(match prover {
            Prover::Client => b"ibfabric rtrs client",
            Prover::Server => b"ibfabric rtrs server",
        });
        mac.update(&self.client);
        mac.update(&self.server);
        mac.update(&self.path);
        mac.update(&self.session);
        mac
    }

    /// Returns the message that proves it.
    pub(crate) fn prove(&self, key: &SharedKey, prover: Prover) -> Proof {
        let nonce = match prover {
            Prover::Client => self.client,
            Prover::Server => self.server,
        };
        let code = self.mac(key, prover).finalize().into_bytes().into();
        Proof { message_type: MessageType::PROOF, nonce, code }
    }

    /// Returns whether a message proves it. That takes as long for a wrong one as for the right one.
    pub(crate) fn is_proven(&self, key: &SharedKey, prover: Prover, proof: &Proof) -> bool {
        self.mac(key, prover).verify_slice(&proof.code).is_ok()
    }
}
