//! The ports of channel adapters, with their switches and roles.

use std::collections::BTreeSet;

use ib_types::{Guid, NodeKind};

use super::super::{EngineError, RoutingOptions};
use super::unsuitable;
use crate::subnet::{Attachment, EndPort, EndPortId, Subnet, SwitchId};

/// The role of a channel adapter port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A compute node, attached to a leaf. Routes to compute nodes are balanced for shift patterns, in which every
    /// compute node sends to the compute node k positions further in [`Routing::ca_order`](super::Routing::ca_order).
    Compute,
    /// An I/O node, attached to a switch of any rank. Packets to it may go up again after they went down.
    Io,
    /// Neither a compute node nor an I/O node. The port is attached to a switch of any rank.
    Other,
}

/// A port of a channel adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdapterPort {
    pub(super) end_port: EndPortId,
    /// The switch to which the port is linked.
    pub(super) switch: SwitchId,
    /// The port of `switch` to which the channel adapter is linked.
    pub(super) switch_port: u8,
    pub(super) role: Role,
}

/// Returns all channel adapter ports that are linked to switches, in OpenSM's order: by byte-swapped node GUID, then by
/// port number.
///
/// Routers are skipped, because this engine does not route them.
///
/// # Errors
/// Fails if there are fewer than two channel adapters, if a list of GUIDs is empty, and if no port of the subnet is a
/// compute node.
pub(super) fn collect(
    subnet: &Subnet<'_>,
    options: &RoutingOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<AdapterPort>, EngineError> {
    let roles = Roles::new(subnet, options, notes)?;
    let mut ports = Vec::new();
    for id in subnet.end_port_ids() {
        let end_port = subnet.end_port(id);
        let node = subnet.end_port_node(id);
        if node.kind != NodeKind::ChannelAdapter {
            continue;
        }
        let number = subnet.fabric().port(end_port.port).number;
        match end_port.attachment {
            Attachment::Port(switch, switch_port) => {
                let role = roles.of(end_port.guid);
                let key = (node.guid.wire_order(), number);
                ports.push((key, AdapterPort { end_port: id, switch, switch_port, role }));
            }
            Attachment::Direct | Attachment::Management(_) => {}
        }
    }
    ports.sort_unstable_by_key(|&(key, _)| key);
    let adapters = ports.chunk_by(|((a, _), _), ((b, _), _)| a == b).count();
    if adapters < 2 {
        return unsuitable(format_args!(
            "the subnet has {adapters} channel adapters on switches; expected at least 2"
        ));
    }
    let ports: Vec<AdapterPort> = ports.into_iter().map(|(_, port)| port).collect();
    if !ports.iter().any(|port| port.role == Role::Compute) {
        return unsuitable(format_args!(
            "the subnet has no compute node among its {} channel adapter ports; expected at least \
             one that the list of compute nodes names and the list of I/O nodes does not",
            ports.len()
        ));
    }
    Ok(ports)
}

/// The port GUIDs of compute nodes and I/O nodes in the options.
struct Roles {
    compute: Option<BTreeSet<Guid>>,
    io: BTreeSet<Guid>,
}

impl Roles {
    fn new(
        subnet: &Subnet<'_>,
        options: &RoutingOptions,
        notes: &mut Vec<String>,
    ) -> Result<Self, EngineError> {
        let lists = [("compute-node", &options.cn_guids), ("I/O-node", &options.io_guids)];
        for (what, list) in lists {
            let Some(list) = list else { continue };
            if list.is_empty() {
                return unsuitable(format_args!(
                    "the list of {what} GUIDs is empty; expected at least one port GUID"
                ));
            }
            for &guid in list {
                if subnet.find_end_port(guid).is_none_or(|id| subnet.end_port(id).is_switch()) {
                    notes.push(format!(
                        "{what} GUID {guid} is not a channel adapter port of the subnet; it is skipped"
                    ));
                }
            }
        }
        let set = |list: &Vec<Guid>| list.iter().copied().collect();
        Ok(Self {
            compute: options.cn_guids.as_ref().map(set),
            io: options.io_guids.as_ref().map(set).unwrap_or_default(),
        })
    }

    /// Returns the role of a port. A port in both lists is a compute node. If there is no list of compute nodes, all
    /// ports except I/O nodes are compute nodes.
    fn of(&self, guid: Guid) -> Role {
        let named = self.compute.as_ref().map(|compute| compute.contains(&guid));
        match (named, self.io.contains(&guid)) {
            (Some(true), _) | (None, false) => Role::Compute,
            (_, true) => Role::Io,
            (Some(false), false) => Role::Other,
        }
    }
}

/// Fails if channel adapters are linked to each other.
///
/// # Errors
/// Fails on the first pair of such channel adapters.
pub(super) fn refuse_direct(subnet: &Subnet<'_>) -> Result<(), EngineError> {
    let fabric = subnet.fabric();
    let direct = |port: &&EndPort| port.attachment == Attachment::Direct;
    for end_port in subnet.end_ports().iter().filter(direct) {
        let near = fabric.node(fabric.port(end_port.port).node);
        let Some(far) = fabric.peer(end_port.port).map(|peer| fabric.node(peer.node)) else {
            continue;
        };
        if near.kind == NodeKind::ChannelAdapter && far.kind == NodeKind::ChannelAdapter {
            return unsuitable(format_args!(
                "channel adapter `{}` ({}) is cabled to channel adapter `{}` ({}); expected every \
                 channel adapter on a switch",
                near.description, near.guid, far.description, far.guid
            ));
        }
    }
    Ok(())
}
