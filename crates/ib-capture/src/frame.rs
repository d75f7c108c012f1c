//! Adds the link headers to a traced packet.
//!
//! HCAs trace packets from the BTH on. The headers before the BTH are derived from the route.
//! Fields that sockets do not provide, such as Ethernet addresses and the IPv4 identification, have
//! constant or derived values.

use std::net::{Ipv4Addr, Ipv6Addr};

use ib_link::{Direction, PacketRecord, Route};
use ib_pcap::LinkType;
use ib_types::{Gid, VirtualLane};
use ib_wire::crc;
use ib_wire::packet::roce::{RoceAddresses, RoceHop, RoceNetwork};
use ib_wire::packet::{Grh, LinkNextHeader, Lrh};

/// Lengths in bytes of the ICRC, and of the VCRC that follows it on InfiniBand.
const ICRC: usize = 4;
const VCRC: usize = 2;

/// Length in bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// The link type of an HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// RoCEv2 on Ethernet.
    Ethernet {
        /// UDP port of the HCA: source port of sent packets, and destination port of received packets.
        own_port: u16,
        /// Destination UDP port of the packets that the HCA sends.
        peer_port: u16,
    },
    /// InfiniBand.
    Infiniband,
}

impl Link {
    /// Returns the link type in capture files.
    #[must_use]
    pub const fn link_type(self) -> LinkType {
        match self {
            Self::Ethernet { .. } => LinkType::ETHERNET,
            Self::Infiniband => LinkType::ERF,
        }
    }

    /// Replaces the contents of `out` by a frame: headers, packet, and checksums if the whole
    /// packet was captured. Returns the length in bytes of the frame on the wire.
    pub fn frame(self, record: &PacketRecord, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        out.clear();
        let whole = record.length as usize;
        let is_whole = bytes.len() == whole;
        // `record.route` is the route from the HCA to the peer. For received packets, source and destination are
        // therefore swapped.
        let Route { source, destination, slid, dlid, .. } = record.route;
        let is_sent = record.direction == Direction::Send;
        let (from, to) = if is_sent { (source, destination) } else { (destination, source) };
        match self {
            Self::Ethernet { own_port, peer_port } => {
                let ports = if is_sent {
                    (own_port, peer_port)
                } else {
                    (record.route.source_port, own_port)
                };
                let network = network(from, to, ports);
                ethernet(&network, out);
                let hop = RoceHop {
                    traffic_class: record.route.traffic_class,
                    hop_limit: record.route.hop_limit,
                    flow_label: record.route.flow_label,
                };
                let mut headers = [0; RoceNetwork::MAX_LENGTH];
                let length = network.emit(hop, whole + ICRC, &mut headers);
                out.extend(&headers[..length]);
                out.extend(bytes);
                if is_whole {
                    out.extend(network.icrc(bytes).to_be_bytes());
                }
                ETHERNET + length + whole + ICRC
            }
            Self::Infiniband => {
                let (slid, dlid) = if is_sent { (slid, dlid) } else { (dlid, slid) };
                let grh = record.route.is_global.then(|| Grh {
                    traffic_class: record.route.traffic_class,
                    flow_label: record.route.flow_label,
                    hop_limit: record.route.hop_limit,
                    source: from,
                    destination: to,
                    payload_length: (whole + ICRC) as u16,
                    ..Grh::default()
                });
                let header = Lrh::LENGTH + if grh.is_some() { Grh::LENGTH } else { 0 };
                let lrh = Lrh {
                    vl: VirtualLane::default(),
                    link_version: 0,
                    sl: record.route.sl,
                    next_header: match grh {
                        Some(_) => LinkNextHeader::GLOBAL,
                        None => LinkNextHeader::LOCAL,
                    },
                    dlid,
                    length: ((header + whole + ICRC) / 4) as u16,
                    slid,
                };
                out.extend(lrh.to_bytes());
                if let Some(grh) = grh {
                    out.extend(grh.to_bytes());
                }
                out.extend(bytes);
                if is_whole {
                    let icrc = crc::icrc_native(out);
                    out.extend(icrc.to_be_bytes());
                    let vcrc = crc::vcrc(out);
                    out.extend(vcrc.to_be_bytes());
                }
                header + whole + ICRC + VCRC
            }
        }
    }
}

/// Returns IP and UDP headers for two GIDs.
fn network(from: Gid, to: Gid, (source_port, destination_port): (u16, u16)) -> RoceNetwork {
    let v4 = |gid: Gid| Ipv6Addr::from(gid.0).to_ipv4_mapped();
    let addresses = match (v4(from), v4(to)) {
        (Some(source), Some(destination)) => {
            RoceAddresses::V4 { source, destination, identification: 0, fragment: 0x4000 }
        }
        _ => RoceAddresses::V6 { source: from.0.into(), destination: to.0.into() },
    };
    RoceNetwork { addresses, source_port, destination_port }
}

/// Writes an Ethernet header. The MAC addresses are locally administered, and derived from the IP
/// addresses.
fn ethernet(network: &RoceNetwork, out: &mut Vec<u8>) {
    let local = |last: [u8; 4]| [2, 0, last[0], last[1], last[2], last[3]];
    let v4 = |address: Ipv4Addr| local(address.octets());
    let v6 = |address: Ipv6Addr| {
        local(*address.octets().last_chunk().expect("an IPv6 address has 16 bytes"))
    };
    let (source, destination, kind) = match network.addresses {
        RoceAddresses::V4 { source, destination, .. } => (v4(source), v4(destination), 0x0800_u16),
        RoceAddresses::V6 { source, destination } => (v6(source), v6(destination), 0x86dd),
    };
    out.extend(destination);
    out.extend(source);
    out.extend(kind.to_be_bytes());
}

#[cfg(test)]
mod tests;
