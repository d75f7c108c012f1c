//! A fabric on paper: what a kind lays out, before anything is dropped and built.

use ib_types::{Guid, NodeKind};

use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec};

/// The node GUID of the first host; at most 49,151 hosts × ports keep below the switches.
const FIRST_HOST_GUID: u64 = 0x0002_c900_0010_0000;

/// The node GUID of the first switch.
const FIRST_SWITCH_GUID: u64 = 0x0002_c900_0020_0000;

/// How large a plan will be; counts that overflow are given as `u64::MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Switches of the whole fabric.
    pub(super) switches: u64,
    /// Ports of the largest switch.
    pub(super) switch_ports: u64,
    /// Hosts of the whole fabric.
    pub(super) hosts: u64,
    /// Ports of every host.
    pub(super) host_ports: u64,
}

impl Size {
    /// Checks that a subnet can hold the fabric.
    pub(super) fn check(self) -> Result<(), GenerateError> {
        let Self { switches, switch_ports, hosts, host_ports } = self;
        for (node, ports) in [("switch", switch_ports), ("host", host_ports)] {
            if ports > MAX_PORTS {
                return Err(GenerateError::TooManyPorts { node, ports });
            }
        }
        let host_ports = hosts.saturating_mul(host_ports);
        let lids = host_ports.saturating_add(switches);
        if lids > MAX_LIDS {
            return Err(GenerateError::TooManyLids { host_ports, switches, lids });
        }
        Ok(())
    }
}

/// A numbered port of a switch or host: the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    node: u32,
    port: u8,
}

impl End {
    /// Returns an end at a node's index among its kind and a port number from 1.
    pub(super) fn new(node: usize, port: usize) -> Self {
        Self {
            node: u32::try_from(node).expect("a plan has at most 49,151 nodes"),
            port: u8::try_from(port).expect("a plan's nodes have at most 254 ports"),
        }
    }

    /// Returns the node's index among its kind.
    pub(super) fn node(self) -> usize {
        self.node as usize
    }
}

#[derive(Debug)]
struct Switch {
    description: String,
    ports: u8,
    dropped: bool,
}

/// Switches, hosts and the links between them.
///
/// Indices, and the GUIDs made from them, are given before anything is dropped: a degraded fabric
/// keeps the names of the whole one.
#[derive(Debug)]
pub(super) struct Plan {
    switches: Vec<Switch>,
    hosts: Vec<String>,
    host_ports: u8,
    /// Links between two switches.
    pub(super) switch_links: Vec<[End; 2]>,
    /// Links from a host, first, to a switch, second.
    pub(super) host_links: Vec<[End; 2]>,
}

impl Plan {
    /// Returns an empty plan for a fabric of a size.
    ///
    /// # Errors
    /// Fails, before it takes memory, when a subnet cannot hold the fabric.
    pub(super) fn new(size: Size) -> Result<Self, GenerateError> {
        size.check()?;
        Ok(Self {
            switches: Vec::with_capacity(size.switches as usize),
            hosts: Vec::with_capacity(size.hosts as usize),
            host_ports: size.host_ports as u8,
            switch_links: Vec::new(),
            host_links: Vec::with_capacity((size.hosts * size.host_ports) as usize),
        })
    }

    /// Adds a switch and returns its index.
    pub(super) fn add_switch(&mut self, description: String, ports: usize) -> usize {
        let ports = u8::try_from(ports).expect("a plan's nodes have at most 254 ports");
        self.switches.push(Switch { description, ports, dropped: false });
        self.switches.len() - 1
    }

    /// Adds `count` hosts called by their number.
    pub(super) fn add_hosts(&mut self, count: usize) {
        self.hosts.extend((0..count).map(|index| numbered("host", index, count)));
    }

    /// Attaches one single-ported host to each of `count` ports of a switch, from `first_port` on.
    ///
    /// The hosts must have been added: they are those with the next indices.
    pub(super) fn attach_hosts(&mut self, switch: usize, first_port: usize, count: usize) {
        for port in first_port..first_port + count {
            self.host_links.push([End::new(self.host_links.len(), 1), End::new(switch, port)]);
        }
    }

    /// Lays a link between two switches.
    pub(super) fn link(&mut self, a: End, b: End) {
        self.switch_links.push([a, b]);
    }

    /// Returns the number of switches, dropped ones included.
    pub(super) fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Takes a switch out of the plan, but not the links at it.
    pub(super) fn drop_switch(&mut self, index: usize) {
        self.switches[index].dropped = true;
    }

    /// Returns true when a switch was taken out.
    pub(super) fn is_dropped(&self, index: usize) -> bool {
        self.switches[index].dropped
    }

    /// Builds the fabric: the switches that are left, then the hosts that still have a link.
    pub(super) fn build(&self, rate: LinkRate) -> Fabric {
        const SOUND: &str = "a plan's GUIDs and ports are its own";
        let mut fabric = Fabric::new();
        let switches: Vec<Option<NodeId>> = (0..self.switches.len())
            .map(|index| {
                let spec = self.switch_spec(index)?;
                Some(fabric.add_node(spec).expect(SOUND))
            })
            .collect();
        let mut linked = vec![false; self.hosts.len()];
        for [host, _] in &self.host_links {
            linked[host.node()] = true;
        }
        let hosts: Vec<Option<NodeId>> = (0..self.hosts.len())
            .map(|index| {
                let spec = linked[index].then(|| self.host_spec(index))?;
                let guid = spec.guid.0;
                let id = fabric.add_node(spec).expect(SOUND);
                for port in 1..=self.host_ports {
                    fabric.set_port_guid(id, port, Guid(guid + u64::from(port))).expect(SOUND);
                }
                Some(id)
            })
            .collect();
        let switch_links = self.switch_links.iter().map(|[a, b]| ((switches[a.node()], a), b));
        let host_links = self.host_links.iter().map(|[a, b]| ((hosts[a.node()], a), b));
        for ((node, a), b) in switch_links.chain(host_links) {
            let (Some(node), Some(peer)) = (node, switches[b.node()]) else { continue };
            fabric.connect((node, a.port), (peer, b.port), rate).expect(SOUND);
        }
        fabric
    }

    fn switch_spec(&self, index: usize) -> Option<NodeSpec> {
        let switch = &self.switches[index];
        let guid = Guid(FIRST_SWITCH_GUID + index as u64);
        let name = format!("S-{:016x}", guid.0);
        let spec = NodeSpec::new(NodeKind::Switch, name, guid, switch.ports);
        (!switch.dropped).then(|| NodeSpec { description: switch.description.clone(), ..spec })
    }

    fn host_spec(&self, index: usize) -> NodeSpec {
        // ibsim makes a CA's port GUID out of its node GUID and the port number, so that many
        // GUIDs after a host's belong to its ports.
        let step = u64::from(self.host_ports) + 1;
        let guid = Guid(FIRST_HOST_GUID + index as u64 * step);
        let name = format!("H-{:016x}", guid.0);
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, guid, self.host_ports);
        NodeSpec { description: self.hosts[index].clone(), ..spec }
    }
}

/// Returns `name-index`, padded with zeros so that `count` such names sort by their index.
pub(super) fn numbered(name: &str, index: usize, count: usize) -> String {
    let width = count.saturating_sub(1).max(1).ilog10() as usize + 1;
    format!("{name}-{index:0width$}")
}
