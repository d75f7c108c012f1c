//! Who has written to a device: a client that comes back after a while has to know whether others have meanwhile, as what it
//! wanted to write was asked for by somebody who knows nothing of that.
//!
//! Each client is told a number when it opens the device, and the same one again as long as nobody else writes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// How many clients are remembered that have the device closed: to those that were forgotten it is as if others had written.
const MOST: usize = 64;

/// The clients of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Writers {
    /// Who has opened it, the last one at the end.
    clients: Vec<Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    client: u64,
    /// What it is told: 15 bits.
    number: u16,
    /// Whether nobody else has written since it was told.
    is_current: bool,
}

impl Writers {
    /// Which of its bits a number has.
    pub(super) const BITS: u16 = 0x7fff;

    /// How long a client is in bytes.
    const LENGTH: usize = 11;

    /// Returns the number that a client is told who opens the device, and whether there is something new to be kept. Numbers
    /// that nobody was told before come from the seed, which is to be another one each time. Those who have it open are not
    /// forgotten.
    pub(super) fn open(
        &mut self,
        client: u64,
        seed: (u64, u64),
        has_open: impl Fn(u64) -> bool,
    ) -> (u16, bool) {
        let at = self.clients.iter().position(|known| known.client == client);
        let before = at.map(|at| self.clients.remove(at));
        let known = match before {
            Some(known) => Known { is_current: true, ..known },
            None => {
                let mut hasher = DefaultHasher::new();
                (seed, client).hash(&mut hasher);
                Known { client, number: hasher.finish() as u16 & Self::BITS, is_current: true }
            }
        };
        if self.clients.len() >= MOST
            && let Some(at) = self.clients.iter().position(|known| !has_open(known.client))
        {
            self.clients.remove(at);
        }
        self.clients.push(known);
        (known.number, before != Some(known))
    }

    /// A client writes. Returns whether there is something new to be kept.
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

    /// Returns them as they are kept.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let bytes = |known: &Known| {
            let mut bytes = [0; Self::LENGTH];
            bytes[..8].copy_from_slice(&known.client.to_le_bytes());
            bytes[8..10].copy_from_slice(&known.number.to_le_bytes());
            bytes[10] = known.is_current.into();
            bytes
        };
        self.clients.iter().flat_map(bytes).collect()
    }

    /// Reads what was kept: of what makes no sense, nothing.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let (known, rest) = bytes.as_chunks::<{ Self::LENGTH }>();
        if !rest.is_empty() {
            return Self::default();
        }
        let parse = |bytes: &[u8; Self::LENGTH]| Known {
            client: u64::from_le_bytes(*bytes.first_chunk().expect("it is longer")),
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
    fn clients_are_told_the_same_until_others_write() {
        let mut writers = Writers::default();
        let (one, is_new) = writers.open(1, (5, 0), |_| false);
        assert!(is_new);
        assert_eq!((writers.open(1, (5, 1), |_| false), writers.write(1)), ((one, false), false));
        // Another one that writes before, between and after.
        let (two, _) = writers.open(2, (5, 2), |_| false);
        assert!(writers.write(2) && !writers.write(2));
        assert_eq!(writers.open(2, (5, 3), |_| false).0, two);
        let (again, _) = writers.open(1, (5, 4), |_| false);
        assert_ne!(again, one);
        assert!(writers.write(2));
        assert_ne!(writers.open(1, (5, 5), |_| false).0, again);
        assert_eq!(writers.open(2, (5, 6), |_| false).0, two);
        // What is kept is the same.
        let mut kept = Writers::parse(&writers.to_bytes());
        assert_eq!(kept, writers);
        assert!(kept.write(1));
        assert_ne!(kept.open(2, (5, 7), |_| false).0, two);
        assert_eq!(Writers::parse(b"what is this"), Writers::default());
    }

    #[test]
    fn who_was_forgotten_is_told_something_else() {
        let mut writers = Writers::default();
        let (told, _) = writers.open(1, (9, 0), |_| false);
        for client in 2..=1 + MOST as u64 {
            writers.open(client, (9, client), |_| false);
        }
        assert_eq!(writers.to_bytes().len(), MOST * Writers::LENGTH);
        let again = writers.open(1, (9, 100), |_| false).0;
        assert_ne!(again, told);
        // Not who has the device open, however many others come.
        for client in 1000..1000 + 2 * MOST as u64 {
            writers.open(client, (9, client), |client| client == 1);
        }
        assert_eq!(writers.open(1, (9, 101), |_| false).0, again);
    }
}
