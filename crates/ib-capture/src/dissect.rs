//! What is in an RDMA packet: addresses, headers, checksums, and the protocols above.
//!
//! | module | holds |
//! |---|---|
//! | [`fields`] | [`Fields`], [`Value`]: names and values, for whoever shows or writes them |
//! | [`headers`] | the headers of a packet as fields |
//! | [`layer`] | [`Layer`]: a protocol above the transport |
//! | `mad` | management datagrams of all classes |
//! | `cm` | the messages of connection management |
//! | `connections` | what those tell of queue pairs: who is whose peer, and what they speak |
//! | `rtrs` | RTRS and RNBD on such connections |
//!
//! Nothing is ever refused: what is not known has its number, and what was not captured is missing.

use ib_types::Qpn;
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::{MAD_LENGTH, MgmtClass};
use ib_wire::packet::{Opcode, Packet, RoceAddresses, RoceNetwork};

use crate::file::Content;

mod address;
mod cm;
mod connections;
pub mod fields;
pub mod headers;
pub mod layer;
mod mad;
mod rtrs;

pub use address::Address;
use connections::{Connections, Endpoint};
pub use fields::{Fields, Value};
pub use layer::Layer;
pub use mad::Datagram;

/// What is in a packet.
#[derive(Clone, Debug)]
pub struct Dissection<'a> {
    /// Its headers, read where they lie.
    pub packet: Packet<'a>,
    /// IP and UDP, for RoCEv2.
    pub network: Option<RoceNetwork>,
    /// Where it comes from.
    pub source: Address,
    /// Where it goes to.
    pub destination: Address,
    /// The queue pair that it comes from, as far as the packet or the messages that made its connection say so.
    pub source_qpn: Option<Qpn>,
    /// How many bytes of the payload were captured.
    pub kept: usize,
    /// Whether the ICRC is right; `None` when not everything was captured.
    pub icrc_ok: Option<bool>,
    /// Whether the VCRC is right; `None` when not everything was captured, and for RoCEv2.
    pub vcrc_ok: Option<bool>,
    /// The management datagram.
    pub mad: Option<Datagram>,
    /// The protocol above.
    pub upper: Option<Layer>,
}

/// Looks into packets, one after the other, and remembers what it needs to understand later ones.
///
/// What is remembered is bounded: when there are too many connections, the oldest is forgotten.
#[derive(Debug, Default)]
pub struct Dissector {
    connections: Connections,
}

impl Dissector {
    /// Returns one that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks into a packet.
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
        // What was changed on its way says nothing about later packets.
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
                    self.connections.learn(&message, source, to);
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

/// Returns where a packet comes from and where it goes to.
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
        // Nobody makes such contents.
        (None, None) => [Address::Lid(0); 2],
    }
}

/// Finds a message of IB ACM in a datagram to some queue pair.
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
