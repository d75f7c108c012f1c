//! Messages over the socket: one JSON object each.

use std::net::IpAddr;

use ib_link::LinkPort;
use ib_types::{Gid, Guid, Mtu, ServiceLevel};
use ib_wire::mad::sa::RateCode;
use serde::{Deserialize, Serialize};

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// InfiniBand: a port of a simulated fabric.
    InfiniBand,
    /// Ethernet: an IP address of this machine, over RoCEv2. Packets are [`Frame::Ethernet`](crate::Frame::Ethernet).
    /// GID prefix and port GUID are the two halves of the address's GID, and the LID is 0.
    Ethernet,
}

/// The state of a client's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDetails {
    /// Number, GUIDs, GID prefix and LID of the port, and LID and SL of its master SM.
    pub port: LinkPort,
    /// True if the port is Active: an SM has configured the port, and it can send data packets.
    pub is_active: bool,
    /// MTU of the port.
    pub mtu: Mtu,
    /// Rate of the link.
    pub rate: RateCode,
    /// Number of client reregistrations that SMs have requested.
    pub registrations: u32,
    /// Number of external ports of the node.
    pub port_count: u8,
    /// P_Key table of the port.
    pub p_keys: Vec<u16>,
    /// Name of the node; on Ethernet, name of the network interface.
    pub node: String,
    /// IP addresses of the port.
    pub addresses: Vec<IpAddr>,
    /// Index of the QPN block of the client's HCA.
    pub qpn_block: u8,
    /// The link layer of the port.
    pub link_layer: LinkLayer,
}

/// A port of the fabric that a client has looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedPort {
    /// Name of the node.
    pub node: String,
    /// Port number on the node.
    pub number: u8,
    /// First GID of the port.
    pub gid: Gid,
    /// LID of the port; 0 if it has none.
    pub lid: u16,
}

/// A message from a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ClientMessage {
    /// The first message of a client: requests a port.
    Hello {
        /// Protocol version.
        version: u32,
        /// Node name of the port, optionally followed by `:port`; `None` for the first host of the
        /// fabric.
        node: Option<String>,
        /// Management classes that the client serves.
        classes: Vec<u8>,
    },
    /// Looks up a port by node name (with optional `:port`), IP address, GID or LID.
    Resolve {
        /// Number of the request, which the response repeats.
        number: u32,
        /// The name or address of the port.
        name: String,
    },
    /// The client requests to serve another management class.
    Serve {
        /// Number of the request, which the response repeats.
        number: u32,
        /// The management class.
        class: u8,
    },
    /// The client disconnects deliberately, so the simulator does not take the client's port down.
    Bye,
}

/// A message from a simulator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ServerMessage {
    /// The client gets the requested port. The message carries the descriptors of the shared memory
    /// and of both event counters.
    Welcome {
        /// Protocol version.
        version: u32,
        /// The state of the port.
        port: WirePort,
    },
    /// The simulator refuses the request for a port.
    Refused {
        /// The reason.
        why: String,
    },
    /// The state of the port has changed.
    Port(WirePort),
    /// Response to `Resolve`.
    Resolved {
        /// Number of the request to which this message responds.
        number: u32,
        /// The port; `None` if no port has the requested name or address.
        place: Option<WireResolvedPort>,
    },
    /// Response to `Serve`.
    Served {
        /// Number of the request to which this message responds.
        number: u32,
        /// The reason why the client does not get the class; `None` if the client gets it.
        refusal: Option<String>,
    },
}

/// [`PortDetails`] in wire format.
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
    link_layer: LinkLayer,
}

/// [`ResolvedPort`] in wire format.
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
        let PortDetails {
            registrations,
            port_count,
            p_keys,
            node,
            addresses,
            qpn_block,
            link_layer,
            ..
        } = details;
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
            link_layer: *link_layer,
        }
    }
}

impl TryFrom<WirePort> for PortDetails {
    type Error = String;

    fn try_from(wire: WirePort) -> Result<Self, String> {
        let mtu = Mtu::within(wire.mtu.into()).filter(|mtu| mtu.bytes() == usize::from(wire.mtu));
        let port = LinkPort {
            node_guid: Guid(wire.node_guid),
            port_guid: Guid(wire.port_guid),
            gid_prefix: wire.gid_prefix,
            number: wire.number,
            lid: wire.lid,
            lmc: wire.lmc,
            sm_lid: wire.sm_lid,
            sm_sl: ServiceLevel::new(wire.sm_sl)
                .ok_or_else(|| format!("service level {}: expected 0 to 15", wire.sm_sl))?,
        };
        Ok(Self {
            port,
            is_active: wire.active,
            mtu: mtu.ok_or_else(|| format!("MTU {}: expected 256 to 4096", wire.mtu))?,
            rate: RateCode(wire.rate),
            registrations: wire.registrations,
            port_count: wire.port_count,
            p_keys: wire.p_keys,
            node: wire.node,
            addresses: wire.addresses,
            qpn_block: wire.qpn_block,
            link_layer: wire.link_layer,
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
