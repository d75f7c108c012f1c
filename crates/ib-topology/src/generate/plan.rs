//! The plan of a fabric: its switches, hosts and links. Switches and links can be dropped before the [`Fabric`] is
//! built.

use ib_types::{Guid, NodeKind};

use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec};

/// The node GUID of the first host. All host GUIDs are below the switch GUIDs, because there are at most 49,151 host
/// ports.
const FIRST_HOST_GUID: u64 = 0x0002_c900_0010_0000;

/// The node GUID of the first switch.
const FIRST_SWITCH_GUID: u64 = 0x0002_c900_0020_0000;

/// The size of a planned fabric. The counts saturate at `u64::MAX`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Number of switches.
    pub(super) switches: u64,
    /// Number of ports of the largest switch.
    pub(super) switch_ports: u64,
    /// Number of hosts.
    pub(super) hosts: u64,
    /// Number of ports of every host.
    pub(super) host_ports: u64,
}

impl Size {
    /// Checks that the fabric does not need more LIDs than a subnet has, and that no node has too many ports.
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

/// One end of a planned link, i.e. a port of a switch or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    node: u32,
    port: u8,
}

impl Endpoint {
    /// Returns the endpoint at a port of a node. `node` is the index among the switches or among the hosts, and `port`
    /// counts from 1.
    pub(super) fn new(node: usize, port: usize) -> Self {
        Self {
            node: u32::try_from(node).expect("a plan has at most 49,151 nodes"),
            port: u8::try_from(port).expect("a plan's nodes have at most 254 ports"),
        }
    }

    /// Returns the index of the node among the switches or among the hosts.
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

/// The switches, hosts and links of a fabric that is not built yet.
///
/// Dropping a node does not change the index and GUID of any other node. So a node has the same name in the degraded
/// fabric as in the whole fabric.
#[derive(Debug)]
pub(super) struct Plan {
    switches: Vec<Switch>,
    hosts: Vec<String>,
    host_ports: u8,
    /// Links between two switches.
    pub(super) switch_links: Vec<[Endpoint; 2]>,
    /// Links between a host and a switch, each as the port of the host and the port of the switch.
    pub(super) host_links: Vec<[Endpoint; 2]>,
}

impl Plan {
    /// Returns an empty plan for a fabric of the given size.
    ///
    /// # Errors
    /// Fails if the fabric does not fit into a subnet. This is checked before memory is allocated.
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

    /// Adds `count` hosts, whose descriptions contain their indices.
    pub(super) fn add_hosts(&mut self, count: usize) {
        self.hosts.extend((0..count).map(|index| numbered("host", index, count)));
    }

    /// Attaches a host to each of `count` consecutive ports of a switch, from `first_port` on. Each host has one port.
    ///
    /// The hosts must have been added with `add_hosts`. They are attached in the order of their indices, from the first
    /// unattached host on.
    pub(super) fn attach_hosts(&mut self, switch: usize, first_port: usize, count: usize) {
        for port in first_port..first_port + count {
            self.host_links
                .push([Endpoint::new(self.host_links.len(), 1), Endpoint::new(switch, port)]);
        }
    }

    /// Adds a link between two switches.
    pub(super) fn link(&mut self, a: Endpoint, b: Endpoint) {
        self.switch_links.push([a, b]);
    }

    /// Returns the number of switches, including the dropped switches.
    pub(super) fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Marks a switch as dropped. Its links remain in the plan.
    pub(super) fn drop_switch(&mut self, index: usize) {
        self.switches[index].dropped = true;
    }

    /// Returns true if a switch was dropped.
    pub(super) fn is_dropped(&self, index: usize) -> bool {
        self.switches[index].dropped
    }

    /// Builds the fabric from the switches that are not dropped, their links, and the hosts that have a link.
    pub(super) fn build(&self, rate: LinkRate) -> Fabric {
        const UNIQUE: &str = "a plan has unique GUIDs and ports";
        let mut fabric = Fabric::new();
        let switches: Vec<Option<NodeId>> = (0..self.switches.len())
            .map(|index| {
                let spec = self.switch_spec(index)?;
                Some(fabric.add_node(spec).expect(UNIQUE))
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
                let id = fabric.add_node(spec).expect(UNIQUE);
                for port in 1..=self.host_ports {
                    fabric.set_port_guid(id, port, Guid(guid + u64::from(port))).expect(UNIQUE);
                }
                Some(id)
            })
            .collect();
        let switch_links = self.switch_links.iter().map(|[a, b]| ((switches[a.node()], a), b));
        let host_links = self.host_links.iter().map(|[a, b]| ((hosts[a.node()], a), b));
        for ((node, a), b) in switch_links.chain(host_links) {
            let (Some(node), Some(peer)) = (node, switches[b.node()]) else { continue };
            fabric.connect((node, a.port), (peer, b.port), rate).expect(UNIQUE);
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
        // In ibsim, a port of a channel adapter has the node GUID plus the port number, so the GUIDs after the node
        // GUID are reserved for ports.
        let step = u64::from(self.host_ports) + 1;
        let guid = Guid(FIRST_HOST_GUID + index as u64 * step);
        let name = format!("H-{:016x}", guid.0);
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, guid, self.host_ports);
        NodeSpec { description: self.hosts[index].clone(), ..spec }
    }
}

/// Returns `name-index`. The index is padded with zeros, so that the names of `count` nodes sort by index.
pub(super) fn numbered(name: &str, index: usize, count: usize) -> String {
    let width = count.saturating_sub(1).max(1).ilog10() as usize + 1;
    format!("{name}-{index:0width$}")
}
