//! What the two sides tell each other over the socket: a JSON object in each message.

use std::net::IpAddr;

use ib_link::LinkPort;
use ib_types::{Gid, Guid, Mtu, ServiceLevel};
use ib_wire::mad::sa::RateCode;
use serde::{Deserialize, Serialize};

/// What a client is told of the port that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDetails {
    /// What every link knows of its port.
    pub port: LinkPort,
    /// Whether packets can leave by it: a subnet manager has brought it into service.
    pub is_active: bool,
    /// The largest payload of packets that it carries.
    pub mtu: Mtu,
    /// The rate of its link.
    pub rate: RateCode,
    /// How often a subnet manager has wanted everybody at the port to register again.
    pub registrations: u32,
    /// How many ports the node has, beside port 0 of a switch.
    pub port_count: u8,
    /// The partitions, as the port's table has them.
    pub p_keys: Vec<u16>,
    /// The name of the node.
    pub node: String,
    /// The IP addresses by which others may call the port.
    pub addresses: Vec<IpAddr>,
    /// The HCA's block of queue pair numbers at the port, below [`super::protocol::BLOCKS`].
    pub qpn_block: u8,
}

/// A port of the fabric that a client has resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPort {
    /// The name of its node.
    pub node: String,
    /// Its number on the node.
    pub number: u8,
    /// Its first GID.
    pub gid: Gid,
    /// Its LID; 0 when it has none.
    pub lid: u16,
}

/// A message of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ClientMessage {
    /// The first one.
    Hello {
        /// The version of the protocol.
        version: u32,
        /// What the port is found by, as with `Resolve`; the fabric's first host without it.
        node: Option<String>,
        /// The classes of management datagrams that it serves.
        classes: Vec<u8>,
    },
    /// Asks for a port by the name of its node, with `:port` behind it or without, an address, a GID or a LID.
    Resolve {
        /// What the answer is known by.
        number: u32,
        /// The name.
        name: String,
    },
    /// It goes of its own will: its port stays as it is.
    Bye,
}

/// A message of a simulator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ServerMessage {
    /// The client has its port; with it come the memory and the event counters.
    Welcome {
        /// The version of the protocol.
        version: u32,
        /// The port.
        port: WirePort,
    },
    /// It has not.
    Refused {
        /// Why.
        why: String,
    },
    /// The port has changed.
    Port(WirePort),
    /// An answer.
    Resolved {
        /// The question.
        number: u32,
        /// The port; none for a name that nobody has.
        place: Option<WireResolvedPort>,
    },
}

/// [`PortDetails`] as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WirePort {
    node_guid: u64,
    port_guid: u64,
    gid_prefix: u64,
    number: u8,
    lid: u16,
    lmc: u8,
    sm_lid: u16,
    sm_sl: u8,
    active: bool,
    mtu: u16,
    rate: u8,
    registrations: u32,
    port_count: u8,
    p_keys: Vec<u16>,
    node: String,
    addresses: Vec<IpAddr>,
    qpn_block: u8,
}

/// [`ResolvedPort`] as it is sent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireResolvedPort {
    node: String,
    number: u8,
    prefix: u64,
    guid: u64,
    lid: u16,
}

impl From<&PortDetails> for WirePort {
    fn from(details: &PortDetails) -> Self {
        let PortDetails { port, is_active, mtu, rate, .. } = details;
        let PortDetails { registrations, port_count, p_keys, node, addresses, qpn_block, .. } =
            details;
        Self {
            node_guid: port.node_guid.0,
            port_guid: port.port_guid.0,
            gid_prefix: port.gid_prefix,
            number: port.number,
            lid: port.lid,
            lmc: port.lmc,
            sm_lid: port.sm_lid,
            sm_sl: port.sm_sl.get(),
            active: *is_active,
            mtu: mtu.bytes() as u16,
            rate: rate.0,
            registrations: *registrations,
            port_count: *port_count,
            p_keys: p_keys.clone(),
            node: node.clone(),
            addresses: addresses.clone(),
            qpn_block: *qpn_block,
        }
    }
}

impl TryFrom<WirePort> for PortDetails {
    type Error = String;

    fn try_from(wire: WirePort) -> Result<Self, String> {
        let mtu = Mtu::within(wire.mtu.into()).filter(|mtu| mtu.bytes() == usize::from(wire.mtu));
        if wire.qpn_block >= super::protocol::BLOCKS {
            return Err(format!("block {} of queue pair numbers", wire.qpn_block));
        }
        let port = LinkPort {
            node_guid: Guid(wire.node_guid),
            port_guid: Guid(wire.port_guid),
            gid_prefix: wire.gid_prefix,
            number: wire.number,
            lid: wire.lid,
            lmc: wire.lmc,
            sm_lid: wire.sm_lid,
            sm_sl: ServiceLevel::new(wire.sm_sl)
                .ok_or_else(|| format!("a service level of {}", wire.sm_sl))?,
        };
        Ok(Self {
            port,
            is_active: wire.active,
            mtu: mtu.ok_or_else(|| format!("an MTU of {}", wire.mtu))?,
            rate: RateCode(wire.rate),
            registrations: wire.registrations,
            port_count: wire.port_count,
            p_keys: wire.p_keys,
            node: wire.node,
            addresses: wire.addresses,
            qpn_block: wire.qpn_block,
        })
    }
}

impl From<&ResolvedPort> for WireResolvedPort {
    fn from(place: &ResolvedPort) -> Self {
        let ResolvedPort { node, number, gid, lid } = place;
        let (prefix, guid) = ((gid.0 >> 64) as u64, gid.0 as u64);
        Self { node: node.clone(), number: *number, prefix, guid, lid: *lid }
    }
}

impl From<WireResolvedPort> for ResolvedPort {
    fn from(wire: WireResolvedPort) -> Self {
        let gid = Gid::new(wire.prefix, Guid(wire.guid));
        Self { node: wire.node, number: wire.number, gid, lid: wire.lid }
    }
}
