//! Small fabrics, linked by hand or at random.

use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec};
use ib_types::rng::Rng;
use ib_types::{Guid, Lmc, NodeKind};

use crate::lft::{Lfts, NO_PATH};
use crate::lids::LidOptions;
use crate::subnet::{Subnet, SubnetOptions, SwitchId};

/// Switches and hosts in the order in which they were added. The subnet numbers them in the same order.
pub(crate) struct Net {
    pub(crate) fabric: Fabric,
    switches: Vec<NodeId>,
    hosts: usize,
}

impl Net {
    /// Returns unlinked switches with the given numbers of ports.
    pub(crate) fn new(ports: &[u8]) -> Self {
        let mut fabric = Fabric::new();
        let switches = ports.iter().zip(0u64..).map(|(&ports, index)| {
            let guid = Guid(0x20_0000 + index);
            let spec = NodeSpec::new(NodeKind::Switch, format!("s{index}"), guid, ports);
            fabric.add_node(spec).expect("the node GUID is unused")
        });
        let switches = switches.collect();
        Self { fabric, switches, hosts: 0 }
    }

    pub(crate) fn link(self, a: (usize, u8), b: (usize, u8)) -> Self {
        self.link_at(a, b, LinkRate::DEFAULT)
    }

    pub(crate) fn link_at(mut self, a: (usize, u8), b: (usize, u8), rate: LinkRate) -> Self {
        let (from, to) = ((self.switches[a.0], a.1), (self.switches[b.0], b.1));
        self.fabric.connect(from, to, rate).expect("both ports are free");
        self
    }

    pub(crate) fn host(self, at: (usize, u8)) -> Self {
        self.host_at(at, LinkRate::DEFAULT)
    }

    pub(crate) fn host_at(mut self, at: (usize, u8), rate: LinkRate) -> Self {
        let (name, guid) = (format!("h{}", self.hosts), Guid(0x10_0000 + 2 * self.hosts as u64));
        let spec = NodeSpec::new(NodeKind::ChannelAdapter, name, guid, 1);
        let host = self.fabric.add_node(spec).expect("the node GUID is unused");
        self.fabric.set_port_guid(host, 1, Guid(guid.0 + 1)).expect("the port GUID is unused");
        self.fabric
            .connect((host, 1), (self.switches[at.0], at.1), rate)
            .expect("both ports are free");
        self.hosts += 1;
        self
    }

    pub(crate) fn subnet(&self) -> Subnet<'_> {
        self.subnet_with(Lmc::ZERO)
    }

    pub(crate) fn subnet_with(&self, lmc: Lmc) -> Subnet<'_> {
        let lids = LidOptions { lmc, ..Default::default() };
        Subnet::discover(&self.fabric, &SubnetOptions { lids, ..Default::default() })
            .expect("the fabric has a linked port")
    }

    /// Returns a random fabric of 1 to 9 switches and at least one host, possibly with parallel and loopback cables.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let sizes: Vec<u8> = (0..=rng.below(9)).map(|_| [4, 8, 8, 130][rng.below(4)]).collect();
        let mut net = Self::new(&sizes);
        let mut free: Vec<(usize, u8)> = Vec::new();
        for (switch, &ports) in sizes.iter().enumerate() {
            free.extend((1..=ports).map(|port| (switch, port)));
        }
        rng.shuffle(&mut free);
        free.truncate(4 + (2 + rng.below(4)) * sizes.len());
        net = net.host(free.pop().expect("every switch has at least 4 ports"));
        while let Some(first) = free.pop() {
            net = match (rng.below(4), free.pop()) {
                (0, _) | (_, None) => net.host(first),
                (_, Some(second)) => net.link(first, second),
            };
        }
        net
    }
}

/// Returns the LID of a host.
pub(crate) fn host_lid(subnet: &Subnet<'_>, host: u64) -> u16 {
    let port = subnet.find_end_port(Guid(0x10_0001 + 2 * host)).expect("the host is in the subnet");
    subnet.end_port(port).base_lid.get()
}

/// Returns tables for all switches. A switch forwards packets to its own LID and hosts directly. For other LIDs, it
/// uses the port `port(switch, owner's switch, LID)`.
pub(crate) fn tables(subnet: &Subnet<'_>, port: impl Fn(usize, usize, u16) -> u8) -> Lfts {
    let mut lfts = Lfts::new(subnet);
    for end in subnet.end_ports() {
        let home = end.attachment.switch().expect("all hosts are at switches");
        let number = match end.attachment {
            crate::Attachment::Port(_, number) => number,
            _ => 0,
        };
        for lid in end.lid_range() {
            for switch in subnet.switch_ids() {
                let out =
                    if switch == home { number } else { port(switch.index(), home.index(), lid) };
                lfts.table_mut(switch)[usize::from(lid)] = out;
            }
        }
    }
    lfts
}

/// Changes about `percent` % of all entries. Half of the changed entries use a random linked port.
/// The others drop packets or use a random port number.
pub(crate) fn corrupt(subnet: &Subnet<'_>, lfts: &mut Lfts, rng: &mut Rng, percent: usize) {
    for switch in (0..subnet.switches().len() as u16).map(SwitchId) {
        let links: Vec<u8> = subnet.switch_links(switch).map(|(port, ..)| port).collect();
        for entry in lfts.table_mut(switch) {
            if rng.below(100) < percent {
                *entry = match rng.below(4) {
                    0 | 1 if !links.is_empty() => links[rng.below(links.len())],
                    2 => NO_PATH,
                    _ => rng.next_u64() as u8,
                };
            }
        }
    }
}
