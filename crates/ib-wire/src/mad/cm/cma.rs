//! The `rdma_cm` header at the start of the private data of REQ and `SIDR_REQ`; IBTA volume 1,
//! annex A11.
//!
//! ```text
//!  0 version (1)   1 IP version (4 bits) | reserved   2 source port (2)
//!  4 source address (16)
//! 20 destination address (16)
//! ```
//!
//! An IPv4 address is in the last 4 of the 16 bytes; the others are zero. The destination port is
//! part of the service ID.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

crate::layout! {
    /// The encoding of a [`CmaHeader`].
    struct Header: 36 {
        /// The version of the header, 0.
        version: u8 = bits(0, 0, 8),
        /// The IP version, 4 or 6.
        ip_version: u8 = bits(1, 0, 4),
        /// The TCP or UDP port of the client.
        source_port: u16 = bits(2, 0, 16),
        /// The IP address of the client.
        source: [u8; 16] = bits(4, 0, 128),
        /// The IP address of the server.
        destination: [u8; 16] = bits(20, 0, 128),
    }
}

/// The IP addresses of client and server in a connection request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmaHeader {
    /// The address and port of the client.
    pub source: SocketAddr,
    /// The address of the server. Its port is part of the service ID.
    pub destination: IpAddr,
}

impl CmaHeader {
    /// The length on the wire in bytes.
    pub const LENGTH: usize = Header::LENGTH;

    /// Parses the header.
    ///
    /// Returns `None` if the header version is not 0, or the IP version is neither 4 nor 6. Ignores
    /// the first twelve bytes of IPv4 addresses, as Linux does.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let header = Header::parse(bytes);
        let address: fn([u8; 16]) -> IpAddr = match (header.version, header.ip_version) {
            (0, 4) => |[.., a, b, c, d]| Ipv4Addr::new(a, b, c, d).into(),
            (0, 6) => |bytes| Ipv6Addr::from(bytes).into(),
            _ => return None,
        };
        let source = SocketAddr::new(address(header.source), header.source_port);
        Some(Self { source, destination: address(header.destination) })
    }

    /// Encodes the header; `None` if one address is IPv4 and the other is IPv6.
    #[must_use]
    pub fn to_bytes(&self) -> Option<[u8; Self::LENGTH]> {
        let (ip_version, source, destination) = match (self.source.ip(), self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                (4, last_four(source), last_four(destination))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                (6, source.octets(), destination.octets())
            }
            _ => return None,
        };
        let source_port = self.source.port();
        Some(Header { version: 0, ip_version, source_port, source, destination }.to_bytes())
    }
}

fn last_four(address: Ipv4Addr) -> [u8; 16] {
    u128::from(address.to_bits()).to_be_bytes()
}
