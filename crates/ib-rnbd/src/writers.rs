//! The clients that write to a device. A client that reconnects must not send its pending writes if another client has
//! written to the device in the meantime.
//!
//! Therefore the open response contains a number, which is different for each client. The number of a client changes
//! when another client writes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Maximum number of stored clients. If a removed client opens the device again, it gets a new number, as if others had
/// written.
const MAX_CLIENTS: usize = 64;

/// The clients that have opened a device for writing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writers {
    /// Clients in the order in which they last opened the device.
    clients: Vec<Writer>,
}

/// A client that has opened the device for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Writer {
    client: u64,
    /// The number for the next open response to the client, 15 bits.
    number: u16,
    /// True if no other client has written since the last open response to the client.
    is_current: bool,
}

impl Writers {
    /// Bits of the field `writers` of an open response that contain the number of a client.
    pub(super) const BITS: u16 = 0x7fff;

    /// Length of a stored client in bytes.
    const LENGTH: usize = 11;

    /// Records that a client opens the device. Returns the number for the open response, and true if the list of
    /// clients has changed and has to be stored.
    ///
    /// The number of a new client is derived from `seed`. The caller must pass a different seed in each call. If
    /// [`MAX_CLIENTS`] clients are stored, removes one that does not have the device open. `has_open` returns true if a
    /// client has the device open.
    pub(super) fn open(
        &mut self,
        client: u64,
        seed: (u64, u64),
        has_open: impl Fn(u64) -> bool,
    ) -> (u16, bool) {
        let at = self.clients.iter().position(|known| known.client == client);
        let before = at.map(|at| self.clients.remove(at));
        let known = match before {
            Some(known) => Writer { is_current: true, ..known },
            None => {
                let mut hasher = DefaultHasher::new();
                (seed, client).hash(&mut hasher);
                Writer { client, number: hasher.finish() as u16 & Self::BITS, is_current: true }
            }
        };
        if self.clients.len() >= MAX_CLIENTS
            && let Some(at) = self.clients.iter().position(|known| !has_open(known.client))
        {
            self.clients.remove(at);
        }
        self.clients.push(known);
        (known.number, before != Some(known))
    }

    /// Records that a client writes to the device. Returns true if the list of clients has changed and has to be
    /// stored.
    pub(super) fn write(&mut self, client: u64) -> bool {
        let mut is_new = false;
        let others = self.clients.iter_mut().filter(|it| it.is_current && it.client != client);
        for other in others {
            other.number = other.number.wrapping_add(1) & Self::BITS;
            other.is_current = false;
            is_new = true;
        }
        is_new
    }

    /// Returns the clients in the format in which they are stored.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let bytes = |known: &Writer| {
            let mut bytes = [0; Self::LENGTH];
            bytes[..8].copy_from_slice(&known.client.to_le_bytes());
            bytes[8..10].copy_from_slice(&known.number.to_le_bytes());
            bytes[10] = known.is_current.into();
            bytes
        };
        self.clients.iter().flat_map(bytes).collect()
    }

    /// Parses stored clients. Returns an empty list if the length is invalid.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let (known, rest) = bytes.as_chunks::<{ Self::LENGTH }>();
        if !rest.is_empty() {
            return Self::default();
        }
        let parse = |bytes: &[u8; Self::LENGTH]| Writer {
            client: u64::from_le_bytes(*bytes.first_chunk().expect("an entry has 11 bytes")),
            number: u16::from_le_bytes([bytes[8], bytes[9]]) & Self::BITS,
            is_current: bytes[10] != 0,
        };
        Self { clients: known.iter().map(parse).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_changes_only_when_others_write() {
        let mut writers = Writers::default();
        let (one, is_new) = writers.open(1, (5, 0), |_| false);
        assert!(is_new);
        assert_eq!((writers.open(1, (5, 1), |_| false), writers.write(1)), ((one, false), false));
        // Client 2 writes before, between and after the openings of client 1.
        let (two, _) = writers.open(2, (5, 2), |_| false);
        assert!(writers.write(2) && !writers.write(2));
        assert_eq!(writers.open(2, (5, 3), |_| false).0, two);
        let (again, _) = writers.open(1, (5, 4), |_| false);
        assert_ne!(again, one);
        assert!(writers.write(2));
        assert_ne!(writers.open(1, (5, 5), |_| false).0, again);
        assert_eq!(writers.open(2, (5, 6), |_| false).0, two);
        // The list of clients can be stored and parsed without a change.
        let mut kept = Writers::parse(&writers.to_bytes());
        assert_eq!(kept, writers);
        assert!(kept.write(1));
        assert_ne!(kept.open(2, (5, 7), |_| false).0, two);
        assert_eq!(Writers::parse(b"what is this"), Writers::default());
    }

    #[test]
    fn removed_client_gets_another_number() {
        let mut writers = Writers::default();
        let (told, _) = writers.open(1, (9, 0), |_| false);
        for client in 2..=1 + MAX_CLIENTS as u64 {
            writers.open(client, (9, client), |_| false);
        }
        assert_eq!(writers.to_bytes().len(), MAX_CLIENTS * Writers::LENGTH);
        let again = writers.open(1, (9, 100), |_| false).0;
        assert_ne!(again, told);
        // A client that has the device open is not removed.
        for client in 1000..1000 + 2 * MAX_CLIENTS as u64 {
            writers.open(client, (9, client), |client| client == 1);
        }
        assert_eq!(writers.open(1, (9, 101), |_| false).0, again);
    }
}
