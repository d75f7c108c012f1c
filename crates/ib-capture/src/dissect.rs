//! Dissects RDMA packets: addresses, headers, checksums, and the protocols above the transport.
//!
//! | module | contents |
//! |---|---|
//! | [`fields`] | [`Fields`], [`Value`]: names and values for output |
//! | [`headers`] | the headers of a packet as fields |
//! | [`layer`] | [`Layer`]: a message of a protocol above the transport |
//! | `mad` | dissects MADs of all classes |
//! | `cm` | dissects CM messages |
//! | `connections` | queue pairs and their peers, learnt from CM messages |
//! | `rtrs` | dissects RTRS and RNBD messages |
//!
//! Dissection never fails. Unknown codes are shown as numbers, and data that was not captured is
//! left out.

use ib_types::Qpn;
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::{MAD_LENGTH, MgmtClass};
use ib_wire::packet::{Opcode, Packet, RoceAddresses, RoceNetwork};

use crate::file::Content;

mod cm;
mod connections;
pub mod fields;
pub mod headers;
pub mod layer;
mod mad;
mod rtrs;

pub use connections::Address;
use connections::{Connections, Endpoint};
pub use fields::{Fields, Value};
pub use layer::Layer;
pub use mad::Datagram;

/// A dissected packet.
#[derive(Clone, Debug)]
pub struct Dissection<'a> {
    /// The packet, whose headers are parsed on access.
    pub packet: Packet<'a>,
    /// IP and UDP headers; `None` for InfiniBand.
    pub network: Option<RoceNetwork>,
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// Source queue pair, if the packet or the CM messages of its connection contain it.
    pub source_qpn: Option<Qpn>,
    /// Number of captured payload bytes.
    pub kept: usize,
    /// True if the ICRC is correct; `None` if the packet was truncated.
    pub icrc_ok: Option<bool>,
    /// True if the VCRC is correct; `None` if the packet was truncated or is a RoCEv2 packet.
    pub vcrc_ok: Option<bool>,
    /// The MAD, if the packet carries one.
    pub mad: Option<Datagram>,
    /// The message of a protocol above the transport that this packet carries or completes.
    pub upper: Option<Layer>,
}

/// Dissects packets in sequence, and keeps the state of connections for later packets.
///
/// The number of stored connections is limited. When the limit is reached, the oldest connection is
/// dropped.
#[derive(Debug, Default)]
pub struct Dissector {
    connections: Connections,
}

impl Dissector {
    /// Creates a dissector without stored connections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Dissects a packet.
    pub fn dissect<'a>(&mut self, content: &Content<'a>) -> Dissection<'a> {
        let (packet, network) = (content.packet, content.network);
        let [source, destination] = addresses(&packet, network.as_ref());
        let bth = packet.bth();
        let whole = content.is_whole;
        let icrc_ok = whole.then(|| match &network {
            Some(network) => packet.check_roce_icrc(network).is_ok(),
            None => packet.check_icrc().is_ok(),
        });
        let vcrc_ok = (whole && packet.is_native()).then(|| packet.check_vcrc().is_ok());
        let port = network.map_or(0, |network| network.destination_port);
        let to = Endpoint { address: destination, port, qpn: bth.destination };
        let peer = self.connections.peer(&to);
        let mut dissection = Dissection {
            packet,
            network,
            source,
            destination,
            source_qpn: packet.deth().map(|deth| deth.source).or(peer),
            kept: content.kept,
            icrc_ok,
            vcrc_ok,
            mad: None,
            upper: None,
        };
        // Corrupted packets do not change the stored connections.
        if icrc_ok == Some(false) {
            return dissection;
        }
        let payload = content.payload();
        if bth.opcode == Opcode::UD_SEND_ONLY {
            if bth.destination == Qpn::SMI || bth.destination == Qpn::GSI {
                dissection.mad = Datagram::read(payload);
                let mad = dissection.mad.as_ref().and_then(Datagram::whole);
                let message = mad
                    .filter(|mad| mad.class() == MgmtClass::COMMUNICATION)
                    .and_then(cm::Message::read);
                if let Some(message) = message {
                    self.connections.process(&message, source, to);
                    dissection.upper = Some(message.layer());
                }
            } else {
                dissection.upper = acm(payload);
            }
        } else if let Some(connection) = self.connections.rtrs(&to) {
            dissection.upper = connection.packet(&packet, content.kept);
        }
        dissection
    }
}

/// Returns the source and destination addresses of a packet.
fn addresses(packet: &Packet<'_>, network: Option<&RoceNetwork>) -> [Address; 2] {
    match (network, packet.lrh()) {
        (Some(network), _) => match network.addresses {
            RoceAddresses::V4 { source, destination, .. } => {
                [source, destination].map(|address| Address::Ip(address.into()))
            }
            RoceAddresses::V6 { source, destination } => {
                [source, destination].map(|address| Address::Ip(address.into()))
            }
        },
        (None, Some(lrh)) => [lrh.slid, lrh.dlid].map(Address::Lid),
        // Not reached: parsed packets have an IP header or an LRH.
        (None, None) => [Address::Lid(0); 2],
    }
}

/// Returns the layer of the ACM message in the payload of a UD packet; `None` if the payload is another message.
fn acm(payload: &[u8]) -> Option<Layer> {
    let bytes: &[u8; MAD_LENGTH] = payload.try_into().ok()?;
    let message = AcmMessage::parse(bytes);
    let is_one = message.base_version == 1
        && message.class == MgmtClass::ACM
        && message.class_version == MgmtClass::ACM.version();
    is_one.then(|| mad::acm_layer(&message))
}

#[cfg(test)]
mod tests;
