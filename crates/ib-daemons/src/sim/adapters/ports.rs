//! Ports to which HCAs are attached: look-up by name, and the attributes that the simulator reports to the HCA.

use std::net::IpAddr;

use ib_attach::{LinkLayer, PortDetails};
use ib_link::LinkPort;
use ib_sim::{Addresses, Sim};
use ib_topology::PortId;
use ib_types::{Mtu, PKey};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::PortState;

/// Attributes of a port that the simulator reports to the attached HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PortAttributes {
    port: LinkPort,
    state: PortState,
    mtu: Mtu,
    rate: RateCode,
    registrations: u32,
    p_keys: [PKey; 32],
}

impl PortAttributes {
    pub(super) fn of(sim: &Sim, port: PortId) -> Self {
        let info = sim.port_info(port);
        Self {
            port: sim.link_port(port),
            state: info.port_state,
            mtu: Mtu::from_code(info.neighbor_mtu.0).unwrap_or(Mtu::B256),
            rate: info.rate(),
            registrations: sim.registrations(port),
            p_keys: sim.p_key_block(port, 0),
        }
    }
}

/// Returns the attributes of a port that the simulator reports to the attached HCA.
pub(super) fn details(
    sim: &Sim,
    addresses: &Addresses,
    (port, qpn_block): (PortId, u8),
) -> PortDetails {
    let attributes = PortAttributes::of(sim, port);
    let (node, _) = sim.place(port);
    PortDetails {
        port: attributes.port,
        is_active: attributes.state == PortState::ACTIVE && attributes.port.lid != 0,
        mtu: attributes.mtu,
        rate: attributes.rate,
        registrations: attributes.registrations,
        port_count: sim.node_info(port).num_ports,
        p_keys: attributes.p_keys.iter().map(|key| key.0).filter(|key| key & 0x7fff != 0).collect(),
        node: sim.node_name(node).to_owned(),
        addresses: addresses.of(port).to_vec(),
        qpn_block,
        link_layer: LinkLayer::InfiniBand,
    }
}

/// Finds a port by node name, `NODE:PORT`, IP address, GID or LID. An empty name stands for the port of the fabric's
/// first host.
pub(super) fn locate(sim: &Sim, addresses: &Addresses, name: &str) -> Option<PortId> {
    if name.is_empty() {
        return sim.first_end_port();
    }
    if let Some(node) = sim.find_node(name) {
        return sim.end_port(node);
    }
    let end_ports = || {
        let numbers = |node| if sim.is_switch(node) { 0..=0 } else { 1..=u8::MAX };
        let all =
            sim.node_ids().flat_map(move |node| numbers(node).map(move |number| (node, number)));
        all.filter_map(|(node, number)| sim.find_port(node, number))
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        let by_gid = |address| match address {
            IpAddr::V6(address) => {
                let gid = u128::from(address);
                end_ports().find(|&port| sim.link_port(port).gid().0 == gid)
            }
            IpAddr::V4(_) => None,
        };
        return addresses.find(address).or_else(|| by_gid(address));
    }
    if let Some((node, number)) = name.rsplit_once(':')
        && let (Some(node), Ok(number)) = (sim.find_node(node), number.parse())
    {
        let is_end = sim.is_switch(node) == (number == 0);
        return sim.find_port(node, number).filter(|_| is_end);
    }
    let lid = match name.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => name.parse(),
    };
    let lid = lid.ok().filter(|&lid| lid != 0)?;
    end_ports().find(|&port| sim.has_lid(port, lid))
}
