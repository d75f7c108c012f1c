//! The ICRC of packets on a UDP socket: fast computation, and the check without the header bytes that a socket does not
//! report.
//!
//! The ICRC covers the IP and UDP headers; IBTA volume 1, annex A17. Of these only the lengths and
//! IPv4's identification change between the packets of one route. A CRC is linear: if bits of
//! its input change, its value changes by the exclusive or of their contributions,
//! independently of the other bits. So the CRC of the headers is computed once per route, with zeros in these
//! fields. The contributions of lengths and identifications come from tables. A packet costs one
//! pass over its own bytes.
//!
//! # IPv4 without the identification
//!
//! A UDP socket does not report the identification and the flags of an IPv4 packet. They are
//! four consecutive bytes of the header, and a CRC of 32 bits can be solved for four bytes:
//! let `d` be the difference between the ICRC found and the one of the identification 0 with the
//! flag "don't fragment". A difference `m` of the four bytes, read as a number with the least
//! significant byte first, followed by `n` bytes leaves `d = m * x^(32 + 8n)` in the field of the
//! polynomials modulo the CRC's. There is exactly one such `m = d * x^-(32 + 8n)` for any `d`: a
//! multiplication by a number that depends on the length of the packet alone.
//!
//! An intact packet gives an `m` that changes only the identification and, if the sender allows
//! fragments, the flag "don't fragment". Any other `m` shows a corruption. A corruption is undetected if its
//! `m` is valid by chance. `m` has 32 bits, of which 15 are fixed, so the probability is 2^-15. With an
//! identification below [`OWN_IDENTIFICATIONS`] and the flag, as in packets of this module's own senders,
//! the probability is 2^-26.
//!
//! # Which check is required
//!
//! The check does not identify the sender of a packet. The connection manager (CM) does: REQ and REP of an HCA
//! of this project carry its vendor ID. The route of a packet that matches only another identification is weak
//! ([`Route::is_weak`](ib_link::Route::is_weak)). A queue pair that is connected to an HCA of this project
//! drops such packets, as its CM drops such messages.
//!
//! The identification in the received header is not used: a router or the system may have changed it, but the
//! ICRC still covers that of the sender.

use std::net::IpAddr;
use std::sync::LazyLock;

use crc32fast::Hasher;

/// Maximum size of a packet in bytes, from the BTH to the end of the pad: a payload of 4096 bytes
/// and at most 64 bytes of headers.
pub const MAX_PACKET: usize = 4096 + 64;

/// Size of a BTH in bytes.
pub(super) const BTH: usize = 12;

/// Size of an ICRC in bytes.
pub(super) const ICRC: usize = 4;

/// Result of a successful ICRC check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcrcCheck {
    /// All covered bytes were checked, as with IPv6: one of 2^32 corruptions is undetected.
    Verified,
    /// The ICRC matches this IPv4 identification below 64 without fragments, as sent by
    /// [`RoceSender`](super::RoceSender): one of 2^26 corruptions is undetected.
    ConsistentWithOwnId(u16),
    /// The ICRC matches one IPv4 identification, which may differ from that of the packet: one of 2^15 corruptions
    /// is undetected. The UDP checksum, if the sender computes one, was correct, too.
    ConsistentWithSomeId {
        /// The identification.
        identification: u16,
        /// True if the flag "don't fragment" is set, as the specification requires.
        dont_fragment: bool,
    },
    /// Not checked: [`RoceOptions::icrc`](super::RoceOptions::icrc) is off.
    Unchecked,
}

/// Number of identifications, from 0, in packets of this module's senders: one for each segment of a datagram.
pub(super) const OWN_IDENTIFICATIONS: usize = 64;

/// Contribution of the IP and UDP headers of a flow to the ICRCs of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// CRC-32 of all bytes before the BTH, with zero lengths and identification and with the flag "don't fragment".
    crc: u32,
    is_v6: bool,
}

impl Headers {
    /// Computes the contribution of the headers of a flow.
    ///
    /// # Panics
    /// Panics if one address is IPv4 and the other one is IPv6.
    pub(super) fn new(
        source: IpAddr,
        destination: IpAddr,
        source_port: u16,
        destination_port: u16,
    ) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&[0xff; 8]);
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                hasher.update(&[0x45, 0xff, 0, 0, 0, 0, DONT_FRAGMENT, 0, 0xff, UDP, 0xff, 0xff]);
                hasher.update(&source.octets());
                hasher.update(&destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                hasher.update(&[0x6f, 0xff, 0xff, 0xff, 0, 0, UDP, 0xff]);
                hasher.update(&source.octets());
                hasher.update(&destination.octets());
            }
            _ => panic!("{source} and {destination} have different address families"),
        }
        hasher.update(&source_port.to_be_bytes());
        hasher.update(&destination_port.to_be_bytes());
        hasher.update(&[0, 0, 0xff, 0xff]);
        Self { crc: hasher.finalize(), is_v6: source.is_ipv6() }
    }

    /// Returns the ICRC of the bytes from the BTH to the end of the pad. Its least significant byte is the first one on
    /// the wire. With IPv6 the identification is ignored.
    ///
    /// # Panics
    /// Panics if the length is not a multiple of 4 from 12 to [`MAX_PACKET`], or if the identification is not below
    /// [`OWN_IDENTIFICATIONS`].
    pub(super) fn icrc(&self, tables: &Tables, bytes: &[u8], identification: u16) -> u32 {
        let words = bytes.len() / 4;
        let before = if self.is_v6 {
            self.crc ^ tables.lengths_v6[words]
        } else {
            self.crc
                ^ tables.lengths_v4[words]
                ^ tables.identifications[usize::from(identification)]
        };
        let mut hasher = Hasher::new_with_initial(before);
        // The byte with FECN and BECN, which switches may change, is masked. The hasher processes 16 bytes per step.
        let rest = if let Some((first, rest)) = bytes.split_first_chunk::<16>() {
            let mut masked = *first;
            masked[4] = 0xff;
            hasher.update(&masked);
            rest
        } else {
            hasher.update(&bytes[..4]);
            hasher.update(&[0xff]);
            &bytes[5..]
        };
        hasher.update(rest);
        hasher.finalize()
    }

    /// Checks a packet from the BTH to the end of the ICRC; `None` if it is corrupt. The check is fastest if `guess` is
    /// the identification of the packet.
    ///
    /// # Panics
    /// Panics for the same lengths as [`Headers::icrc`], if the packet contains an ICRC.
    pub(super) fn check(&self, tables: &Tables, packet: &[u8], guess: u16) -> Option<IcrcCheck> {
        let (bytes, found) = packet.split_last_chunk::<ICRC>()?;
        let guess = if self.is_v6 { 0 } else { guess };
        let difference = u32::from_le_bytes(*found) ^ self.icrc(tables, bytes, guess);
        match (self.is_v6, difference) {
            (true, 0) => return Some(IcrcCheck::Verified),
            (true, _) => return None,
            (false, 0) => return Some(IcrcCheck::ConsistentWithOwnId(guess)),
            (false, _) => {}
        }
        let [high, low, flags, offset] =
            times(difference, tables.rewind_v4[bytes.len() / 4]).to_le_bytes();
        let identification = guess ^ u16::from_be_bytes([high, low]);
        if offset != 0 || flags & !DONT_FRAGMENT != 0 {
            return None;
        }
        let dont_fragment = flags == 0;
        Some(if dont_fragment && usize::from(identification) < OWN_IDENTIFICATIONS {
            IcrcCheck::ConsistentWithOwnId(identification)
        } else {
            IcrcCheck::ConsistentWithSomeId { identification, dont_fragment }
        })
    }
}

/// The flag in the seventh byte of an IPv4 header that forbids fragments.
const DONT_FRAGMENT: u8 = 0x40;

/// The protocol number of UDP.
const UDP: u8 = 17;

/// Tables of the contributions of lengths and identifications to ICRCs.
pub(super) struct Tables {
    /// Contributions, at the end of the UDP header, of the length fields of IPv4 and UDP. The index is the packet size
    /// from the BTH to the end of the pad, divided by 4.
    lengths_v4: [u32; LENGTHS],
    /// Contributions of the length fields of IPv6 and UDP.
    lengths_v6: [u32; LENGTHS],
    /// Contributions of identifications, at the end of the UDP header.
    identifications: [u32; OWN_IDENTIFICATIONS],
    /// Factors `x^-(32 + 8n)` of the module documentation, by packet size divided by 4: they turn a difference of ICRCs
    /// into that of four bytes of the IPv4 header, from the identification on.
    rewind_v4: [u32; LENGTHS],
}

const LENGTHS: usize = MAX_PACKET / 4 + 1;

impl Tables {
    /// Returns the tables, which the first call computes.
    pub(super) fn get() -> &'static Self {
        static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);
        &TABLES
    }

    /// Returns the exclusive or of the ICRCs of a packet with an identification and with
    /// identification 0. `length` is the size from the BTH to the end of the pad.
    pub(super) fn without_identification(&self, length: usize, identification: u16) -> u32 {
        let contribution = self.identifications[usize::from(identification)];
        times(contribution, power_of_byte(length))
    }

    fn new() -> Self {
        // Numbers of bytes from the start of a group of four bytes to the end of the UDP header.
        const LENGTH_V4: usize = 28;
        const IDENTIFICATION_V4: usize = 24;
        const LENGTH_V6: usize = 44;
        const LENGTH_UDP: usize = 4;
        let number = |bytes: [u8; 2], at: usize| {
            let mut group = [0; 4];
            group[at..at + 2].copy_from_slice(&bytes);
            u32::from_le_bytes(group)
        };
        let powers = [LENGTH_V4, IDENTIFICATION_V4, LENGTH_V6, LENGTH_UDP].map(power_of_byte);
        let length = |words: usize| (8 + 4 * words + ICRC) as u16;
        let udp = |words| times(number(length(words).to_be_bytes(), 0), powers[3]);
        let mut rewind = (0..IDENTIFICATION_V4).fold(ONE, |power, _| divide_by_byte(power));
        Self {
            lengths_v4: std::array::from_fn(|words| {
                let whole = (20 + length(words)).to_be_bytes();
                times(number(whole, 2), powers[0]) ^ udp(words)
            }),
            lengths_v6: std::array::from_fn(|words| {
                times(number(length(words).to_be_bytes(), 0), powers[2]) ^ udp(words)
            }),
            identifications: std::array::from_fn(|identification| {
                times(number((identification as u16).to_be_bytes(), 0), powers[1])
            }),
            rewind_v4: std::array::from_fn(|_| {
                let power = rewind;
                rewind = (0..4).fold(rewind, |power, _| divide_by_byte(power));
                power
            }),
        }
    }
}

/// The CRC's polynomial; the most significant bit of a number is its constant term.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The polynomial 1.
const ONE: u32 = 1 << 31;

/// Multiplies modulo the polynomial.
const fn times(mut left: u32, mut right: u32) -> u32 {
    let mut product = 0;
    let mut bit = 0;
    while bit < u32::BITS {
        product ^= right & 0u32.wrapping_sub(left >> 31);
        left <<= 1;
        right = right >> 1 ^ (POLYNOMIAL & 0u32.wrapping_sub(right & 1));
        bit += 1;
    }
    product
}

/// Returns x^8 raised to a power.
fn power_of_byte(mut exponent: usize) -> u32 {
    let (mut power, mut square) = (ONE, 1 << 23);
    while exponent != 0 {
        if exponent & 1 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    power
}

/// Divides by x^8.
fn divide_by_byte(number: u32) -> u32 {
    (0..8).fold(number, |number, _| {
        // Adding the polynomial, whose constant term is 1, removes the constant term.
        if number & ONE == 0 { number << 1 } else { (number ^ POLYNOMIAL) << 1 | 1 }
    })
}

#[cfg(test)]
mod tests;
