//! IP and UDP headers of RoCEv2 packets, and the ICRC that covers them.
//!
//! The ICRC of RoCEv2 covers the following bytes in this order (IBTA volume 1, annex A17):
//!
//! 1. eight bytes of ones instead of the LRH,
//! 2. the IP header with traffic class, flow label, hop limit and checksum set to ones,
//! 3. the UDP header with the checksum set to ones,
//! 4. the bytes from the BTH to the pad, with byte 4 of the BTH set to ones.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::PacketError;
use super::header::ICRC;
use crate::crc::Icrc;

/// The IP and UDP header fields that the ICRC of a RoCEv2 packet covers, except for the length
/// fields.
///
/// The ICRC covers the IPv4 identification, which an ordinary UDP socket does not return for received datagrams. To
/// check the ICRC of an IPv4 packet, a receiver with such a socket must know how the sender chooses the
/// identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoceNetwork {
    /// The fields of the IPv4 or IPv6 header.
    pub addresses: RoceAddresses,
    /// The UDP source port. Senders vary it so that ECMP spreads flows.
    pub source_port: u16,
    /// The UDP destination port, usually [`RoceNetwork::PORT`].
    pub destination_port: u16,
}

/// The IPv4 or IPv6 header fields of a [`RoceNetwork`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoceAddresses {
    /// IPv4 without options.
    V4 {
        /// The source address.
        source: Ipv4Addr,
        /// The destination address.
        destination: Ipv4Addr,
        /// The identification field.
        identification: u16,
        /// The flags and the fragment offset; 0x4000 means "don't fragment".
        fragment: u16,
    },
    /// IPv6, without extension headers.
    V6 {
        /// The source address.
        source: Ipv6Addr,
        /// The destination address.
        destination: Ipv6Addr,
    },
}

/// The IP header fields that the ICRC does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoceHop {
    /// The type of service (IPv4) or traffic class (IPv6).
    pub traffic_class: u8,
    /// The time to live (IPv4) or hop limit (IPv6).
    pub hop_limit: u8,
    /// The flow label (IPv6), 20 bits.
    pub flow_label: u32,
}

impl Default for RoceHop {
    /// Returns traffic class 0, hop limit 64 and flow label 0.
    fn default() -> Self {
        Self { traffic_class: 0, hop_limit: 64, flow_label: 0 }
    }
}

impl RoceNetwork {
    /// The UDP port of RoCEv2.
    pub const PORT: u16 = 4791;

    /// The maximum length of the IP and UDP headers in bytes.
    pub const MAX_LENGTH: usize = 48;

    const UDP: usize = 8;
    const UDP_PROTOCOL: u8 = 17;

    /// Parses the IP and UDP headers at the start of an IP packet, and returns the UDP payload.
    ///
    /// Ignores bytes after the IP packet, such as the padding of short Ethernet frames. Accepts all
    /// UDP ports. Does not check checksums.
    ///
    /// # Errors
    /// Returns the first invalid field. IPv4 options, IPv6 extension headers, fragments and
    /// protocols other than UDP are not supported.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let truncated = |what, offset, expected| PacketError::Truncated {
            what,
            offset,
            expected,
            found: bytes.len(),
        };
        let value = |what, offset, expected, found: u8| {
            Err(PacketError::Value { what, offset, expected, found: found.into() })
        };
        let first = *bytes.first().ok_or(truncated("the IP header", 0, 20))?;
        let (addresses, header, length, protocol_at) = match first >> 4 {
            4 => {
                let ip: &[u8; 20] =
                    bytes.first_chunk().ok_or(truncated("the IPv4 header", 0, 20))?;
                if first != 0x45 {
                    return value("IHL of the IPv4 header", 0, "5", first & 15);
                }
                let fragment = u16::from_be_bytes([ip[6], ip[7]]);
                if fragment & 0x3fff != 0 {
                    let (what, expected) = ("the fragment field", "no fragment");
                    let found = fragment.into();
                    return Err(PacketError::Value { what, offset: 6, expected, found });
                }
                let addresses = RoceAddresses::V4 {
                    source: Ipv4Addr::new(ip[12], ip[13], ip[14], ip[15]),
                    destination: Ipv4Addr::new(ip[16], ip[17], ip[18], ip[19]),
                    identification: u16::from_be_bytes([ip[4], ip[5]]),
                    fragment,
                };
                (addresses, 20, usize::from(u16::from_be_bytes([ip[2], ip[3]])), 9)
            }
            6 => {
                let ip: &[u8; 40] =
                    bytes.first_chunk().ok_or(truncated("the IPv6 header", 0, 40))?;
                let address = |at: usize| {
                    Ipv6Addr::from(*ip[at..].first_chunk::<16>().expect("the header has 40 bytes"))
                };
                let addresses = RoceAddresses::V6 { source: address(8), destination: address(24) };
                (addresses, 40, 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]])), 6)
            }
            other => return value("IP version", 0, "4 or 6", other),
        };
        if bytes[protocol_at] != Self::UDP_PROTOCOL {
            return value("protocol of the IP header", protocol_at, "17 (UDP)", bytes[protocol_at]);
        }
        let whole = bytes.get(..length).ok_or(truncated("the IP packet", 0, length))?;
        let udp: &[u8; 8] =
            whole.get(header..).and_then(<[u8]>::first_chunk).ok_or(PacketError::Truncated {
                what: "the UDP header",
                offset: header,
                expected: header + Self::UDP,
                found: length,
            })?;
        let (expected, found) = (length - header, u16::from_be_bytes([udp[4], udp[5]]).into());
        if expected != found {
            let (what, offset) = ("length of the UDP header", header + 4);
            return Err(PacketError::Length { what, offset, expected, found });
        }
        let network = Self {
            addresses,
            source_port: u16::from_be_bytes([udp[0], udp[1]]),
            destination_port: u16::from_be_bytes([udp[2], udp[3]]),
        };
        Ok((network, &whole[header + Self::UDP..]))
    }

    /// Returns the length of the IP and UDP headers in bytes: 28 for IPv4, 48 for IPv6.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self.addresses {
            RoceAddresses::V4 { .. } => 20 + Self::UDP,
            RoceAddresses::V6 { .. } => 40 + Self::UDP,
        }
    }

    /// Writes the IP and UDP headers for a UDP payload of `payload` bytes to the start of the
    /// buffer.
    ///
    /// Computes the IPv4 header checksum, and sets the UDP checksum to zero. Returns the length of
    /// the headers in bytes.
    ///
    /// # Panics
    /// Panics if the buffer is shorter than [`RoceNetwork::length`], or the payload is longer than
    /// 65,000 bytes.
    pub fn emit(&self, hop: RoceHop, payload: usize, buffer: &mut [u8]) -> usize {
        assert!(payload <= 65_000, "a payload of {payload} bytes: expected at most 65000");
        let length = self.length();
        let headers = &mut buffer[..length];
        self.fill(hop, payload, headers);
        if let RoceAddresses::V4 { .. } = self.addresses {
            let sum: u32 = headers[..20]
                .chunks_exact(2)
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
                .sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            headers[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
        length
    }

    /// Computes the ICRC of a packet. `bytes` are its bytes from the BTH to the pad.
    ///
    /// # Panics
    /// Panics if `bytes` is shorter than a BTH, which has 12 bytes.
    #[must_use]
    pub fn icrc(&self, bytes: &[u8]) -> u32 {
        const BTH: usize = 12;
        let mut masked = [0; Self::MAX_LENGTH + BTH];
        let length = self.length();
        let ones = RoceHop { traffic_class: 0xff, hop_limit: 0xff, flow_label: 0xf_ffff };
        self.fill(ones, bytes.len() + ICRC, &mut masked[..length]);
        if let RoceAddresses::V4 { .. } = self.addresses {
            masked[10..12].fill(0xff);
        }
        masked[length - 2..length].fill(0xff);
        masked[length..length + BTH].copy_from_slice(&bytes[..BTH]);
        masked[length + 4] = 0xff;
        let mut icrc = Icrc::after_lrh_of_ones();
        icrc.update(&masked[..length + BTH]);
        icrc.update(&bytes[BTH..]);
        icrc.finish()
    }

    /// Writes the IP and UDP headers with zero checksums.
    fn fill(&self, hop: RoceHop, payload: usize, headers: &mut [u8]) {
        let datagram = (Self::UDP + payload) as u16;
        let udp = match self.addresses {
            RoceAddresses::V4 { source, destination, identification, fragment } => {
                headers[0] = 0x45;
                headers[1] = hop.traffic_class;
                headers[2..4].copy_from_slice(&datagram.wrapping_add(20).to_be_bytes());
                headers[4..6].copy_from_slice(&identification.to_be_bytes());
                headers[6..8].copy_from_slice(&fragment.to_be_bytes());
                headers[8] = hop.hop_limit;
                headers[9] = Self::UDP_PROTOCOL;
                headers[10..12].fill(0);
                headers[12..16].copy_from_slice(&source.octets());
                headers[16..20].copy_from_slice(&destination.octets());
                20
            }
            RoceAddresses::V6 { source, destination } => {
                let word =
                    6 << 28 | u32::from(hop.traffic_class) << 20 | (hop.flow_label & 0xf_ffff);
                headers[..4].copy_from_slice(&word.to_be_bytes());
                headers[4..6].copy_from_slice(&datagram.to_be_bytes());
                headers[6] = Self::UDP_PROTOCOL;
                headers[7] = hop.hop_limit;
                headers[8..24].copy_from_slice(&source.octets());
                headers[24..40].copy_from_slice(&destination.octets());
                40
            }
        };
        headers[udp..udp + 2].copy_from_slice(&self.source_port.to_be_bytes());
        headers[udp + 2..udp + 4].copy_from_slice(&self.destination_port.to_be_bytes());
        headers[udp + 4..udp + 6].copy_from_slice(&datagram.to_be_bytes());
        headers[udp + 6..udp + 8].fill(0);
    }
}

#[cfg(test)]
mod tests;
