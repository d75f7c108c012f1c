//! Computes the ICRC of packets on a UDP socket, and checks it although the socket does not report all header bytes.
//!
//! The ICRC covers the IP and UDP headers (IBTA volume 1, annex A17). Between the packets of one
//! route, only the lengths and IPv4's identification change in these headers. A CRC is linear: if
//! bits of the input change, the CRC changes by the exclusive or of the contributions of these
//! bits, whatever the other bits are. So the CRC of the headers is computed once per route, with
//! zero lengths and identification. The contributions of lengths and identifications come from
//! tables. Each packet then needs one pass over its own bytes.
//!
//! # IPv4 without the identification
//!
//! A UDP socket does not report the identification and the flags of an IPv4 packet. These are four
//! consecutive bytes of the header, and a CRC of 32 bits can be solved for four unknown bytes. Let
//! `d` be the exclusive or of two ICRCs: that of the packet, and that computed for identification 0
//! with the flag "don't fragment". Let `m` be the exclusive or of the actual four bytes and the
//! assumed ones, as a number whose least significant byte is the first. If `n` bytes follow the
//! four bytes, then `d = m * x^(32 + 8n)`, in the field of polynomials modulo the polynomial of the
//! CRC. So each `d` has exactly one solution `m = d * x^-(32 + 8n)`. The solution takes one
//! multiplication, by a number that depends only on the length of the packet.
//!
//! If a packet is intact, `m` changes only the identification and, if the sender allows fragments,
//! the flag "don't fragment". Any other `m` shows that the packet is corrupted. A corruption is
//! undetected if `m` is valid by chance. `m` has 32 bits, of which 15 are fixed, so the probability
//! is 2^-15. For packets of this crate's senders it is 2^-26, because their identification is
//! below [`OWN_IDENTIFICATIONS`] and their flag is set.
//!
//! # Which check is required
//!
//! The check does not show whether an HCA of this project has sent a packet. The connection manager
//! (CM) recognizes such HCAs by the vendor ID in REQ and REP. If a packet matches only an
//! identification that the senders of this crate do not use, its route is weak
//! ([`Route::is_weak`](ib_link::Route::is_weak)). A queue pair that is connected to an HCA of this
//! project drops packets with weak routes. The CM drops messages of such an HCA that have a weak
//! route.
//!
//! The check does not use the identification in the received header. A router or the system may
//! have changed it, but the ICRC still covers the sender's identification.

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
    /// All covered bytes were checked, which is possible with IPv6 only. One of 2^32 corruptions is
    /// undetected.
    Verified,
    /// The ICRC matches this IPv4 identification, which is below 64, and the flag "don't fragment".
    /// [`RoceSender`](crate::RoceSender) sends such packets. One of 2^26 corruptions is undetected.
    ConsistentWithOwnId(u16),
    /// The ICRC matches one IPv4 identification, but the receiver does not know the one that the
    /// sender used. One of 2^15 corruptions is undetected. If the packet has a UDP checksum, that
    /// checksum is correct too.
    ConsistentWithSomeId {
        /// The IPv4 identification for which the ICRC is right.
        identification: u16,
        /// True if the ICRC matches with the flag "don't fragment" set, as the specification
        /// requires. False if it matches with the flag clear.
        dont_fragment: bool,
    },
    /// The ICRC was not checked, because [`RoceOptions::icrc`](crate::RoceOptions::icrc) is false.
    Unchecked,
}

/// The segments of a datagram from a sender of this crate have the IPv4 identifications 0, 1, 2 and
/// so on. All of them are below this number.
pub(super) const OWN_IDENTIFICATIONS: usize = 64;

/// Contribution of a flow's IP and UDP headers to the ICRCs of the flow's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    /// CRC-32 of all bytes before the BTH, with the flag "don't fragment", and with zeros as
    /// lengths and identification.
    crc: u32,
    is_v6: bool,
}

impl Headers {
    /// Computes the contribution of a flow's IP and UDP headers to ICRCs.
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

    /// Returns the ICRC of a packet with these bytes from the BTH to the end of the pad. The least
    /// significant byte of the ICRC is the first on the wire.
    ///
    /// The number of bytes must be a multiple of 4 from 12 to [`MAX_PACKET`]. With IPv4, the
    /// identification must be below [`OWN_IDENTIFICATIONS`]; with IPv6, it is ignored.
    ///
    /// # Panics
    /// May panic if the number of bytes or the identification is not as required.
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
        // The byte with FECN and BECN is masked, because switches can change it. The first 16 bytes
        // are hashed together, because the hasher processes 16 bytes per step.
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

    /// Checks the ICRC of a packet, which extends from the BTH to the end of the ICRC. Returns
    /// `None` if the packet is corrupted. The check is fastest if `guess` is the identification of
    /// the packet.
    ///
    /// The number of bytes before the ICRC must be a multiple of 4 from 12 to [`MAX_PACKET`]. With
    /// IPv4, `guess` must be below [`OWN_IDENTIFICATIONS`].
    ///
    /// # Panics
    /// May panic if the number of bytes or `guess` is not as required.
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
    /// Contributions of the length fields of IPv4 and UDP to the CRC at the end of the UDP header.
    /// The index is the packet size from the BTH to the end of the pad, divided by 4.
    lengths_v4: [u32; LENGTHS],
    /// Contributions of the length fields of IPv6 and UDP, indexed like `lengths_v4`.
    lengths_v6: [u32; LENGTHS],
    /// Contributions of IPv4 identifications to the CRC at the end of the UDP header.
    identifications: [u32; OWN_IDENTIFICATIONS],
    /// The factors `x^-(32 + 8n)` of the module documentation, indexed like `lengths_v4`. `n` bytes follow the IPv4
    /// identification and flags, up to the end of the pad.
    rewind_v4: [u32; LENGTHS],
}

const LENGTHS: usize = MAX_PACKET / 4 + 1;

impl Tables {
    /// Returns the tables of contributions. The first call computes them.
    pub(super) fn get() -> &'static Self {
        static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);
        &TABLES
    }

    /// Returns the exclusive or of two ICRCs of a packet: one with the given identification, the
    /// other with identification 0. `length` is the size from the BTH to the end of the pad.
    pub(super) fn without_identification(&self, length: usize, identification: u16) -> u32 {
        let contribution = self.identifications[usize::from(identification)];
        times(contribution, power_of_byte(length))
    }

    fn new() -> Self {
        // `number` pads a field of two bytes to four bytes with zeros. Each constant is the number
        // of bytes from the start of a padded field to the end of the UDP header.
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

/// The polynomial of the CRC. The most significant bit is the constant term.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The polynomial 1.
const ONE: u32 = 1 << 31;

/// Multiplies two polynomials modulo the polynomial of the CRC.
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

/// Returns x^(8 * `exponent`), modulo the polynomial of the CRC.
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

/// Divides a polynomial by x^8, modulo the polynomial of the CRC.
fn divide_by_byte(number: u32) -> u32 {
    (0..8).fold(number, |number, _| {
        // Only a polynomial without constant term can be divided by x. Adding the CRC polynomial,
        // whose constant term is 1, removes the constant term.
        if number & ONE == 0 { number << 1 } else { (number ^ POLYNOMIAL) << 1 | 1 }
    })
}

#[cfg(test)]
mod tests;
