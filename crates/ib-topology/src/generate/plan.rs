//! The plan of a fabric: switches, hosts and links before some are dropped and the [`Fabric`] is
//! built.

use ib_types::{Guid, NodeKind};

use super::error::{GenerateError, MAX_LIDS, MAX_PORTS};
use crate::fabric::{Fabric, LinkRate, NodeId, NodeSpec};

/// Node GUID of the first host. With at most 49,151 host ports, all host GUIDs are below those of
/// switches.
const FIRST_HOST_GUID: u64 = 0x0002_c900_0010_0000;

/// The node GUID of the first switch.
const FIRST_SWITCH_GUID: u64 = 0x0002_c900_0020_0000;

/// The size of a plan; counts saturate at `u64::MAX`.
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
    /// Checks that a subnet has enough LIDs and that no node has too many ports.
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

/// One end of a planned link: a port of a switch or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    node: u32,
    port: u8,
}

impl Endpoint {
    /// Returns the port with a number (from 1) on a node, given as its index among the switches or
    /// hosts.
    pub(super) fn new(node: usize, port: usize) -> Self {
        Self {
            node: u32::try_from(node).expect("a plan has at most 49,151 nodes"),
            port: u8::try_from(port).expect("a plan's nodes have at most 254 ports"),
        }
    }

    /// Returns the index of the node among the switches or hosts.
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

/// A fabric before it is built: switches, hosts and links.
///
/// Indices and GUIDs do not change when nodes are dropped: a degraded fabric keeps the names of the
/// whole one.
#[derive(Debug)]
pub(super) struct Plan {
    switches: Vec<Switch>,
    hosts: Vec<String>,
    host_ports: u8,
    /// Links between two switches.
    pub(super) switch_links: Vec<[Endpoint; 2]>,
    /// Links of hosts, each as [host port, switch port].
    pub(super) host_links: Vec<[Endpoint; 2]>,
}

impl Plan {
    /// Returns an empty plan for a fabric of the given size.
    ///
    /// # Errors
    /// Fails if a subnet cannot hold the fabric, before memory is allocated.
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

    /// Adds `count` hosts with numbered descriptions.
    pub(super) fn add_hosts(&mut self, count: usize) {
        self.hosts.extend((0..count).map(|index| numbered("host", index, count)));
    }

    /// Attaches a single-port host to each of `count` ports of a switch, starting at `first_port`.
    ///
    /// Uses the next unattached hosts, which must have been added.
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

    /// Returns the number of switches, including dropped ones.
    pub(super) fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Marks a switch as dropped; its links are kept.
    pub(super) fn drop_switch(&mut self, index: usize) {
        self.switches[index].dropped = true;
    }

    /// Returns true if a switch was dropped.
    pub(super) fn is_dropped(&self, index: usize) -> bool {
        self.switches[index].dropped
    }

    /// Builds the fabric from the remaining switches and the hosts with at least one link.
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
        // In ibsim a CA port has the node GUID plus the port number, so the GUIDs after that of a
        // host are reserved for its ports.
        let step = u64::from(self.host_ports) + 1;
        let guid = Guid(FIRST_HOST_GUID + index as u64 * step);
        let name = format!("H-{:016x}", guid.0);
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, guid, self.host_ports);
        NodeSpec { description: self.hosts[index].clone(), ..spec }
    }
}

/// Returns `name-index`, padded with zeros so that `count` such names sort by index.
pub(super) fn numbered(name: &str, index: usize, count: usize) -> String {
    let width = count.saturating_sub(1).max(1).ilog10() as usize + 1;
    format!("{name}-{index:0width$}")
}
