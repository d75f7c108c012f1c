//! Injects the faults of a trial, by console commands and by a proxy between the tracer and the fabric.

use std::collections::{BTreeMap, BTreeSet};

use ib_link::Datagram;
use ib_topology::NodeId;
use ib_types::Guid;
use ib_types::rng::Rng;
use ib_wire::mad::sm::{NodeInfo, PortInfo};
use ib_wire::mad::vendor::SourceRoute;
use ib_wire::mad::{AttributeId, MadStatus, MgmtClass};

use crate::lab::Lab;

/// The injected faults. The index of a fault is the index of its line in `lines`.
#[derive(Debug, Default)]
pub(crate) struct Injected {
    pub(crate) lines: Vec<String>,
    /// By misrouted port: the actual egress port, and the index of the fault.
    pub(crate) misrouted: BTreeMap<(NodeId, u8), (u8, usize)>,
    /// Ports that lose all packets.
    pub(crate) dead: BTreeMap<(NodeId, u8), usize>,
    /// Ports that lose some packets.
    pub(crate) lossy: BTreeMap<(NodeId, u8), usize>,
    /// Ports at both ends of removed cables.
    pub(crate) cables: BTreeMap<(NodeId, u8), usize>,
    /// Nodes whose GUID was changed.
    pub(crate) guids: BTreeMap<NodeId, usize>,
    /// Nodes whose LID was changed.
    pub(crate) lids: BTreeMap<NodeId, usize>,
    /// Nodes whose responses are changed or dropped.
    pub(crate) proxied: BTreeMap<NodeId, (Proxied, usize)>,
}

/// The change that the proxy makes to the responses of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proxied {
    SilentAgent,
    SilentNode,
    WrongAgentPort,
    WrongAgentRoute,
    AgentStatus7,
    WrongLocalPort,
    ForeignLid(u16),
}

/// Number of kinds of faults.
const KINDS: usize = 19;

/// Injects faults of random kinds at random ports and nodes.
pub(crate) fn inject(lab: &mut Lab, rng: &mut Rng, count: usize) -> Injected {
    let mut all = Injected::default();
    let switches: Vec<NodeId> =
        lab.sim.node_ids().filter(|&node| lab.sim.is_switch(node)).collect();
    let hosts: Vec<NodeId> = lab.sim.node_ids().filter(|&node| !lab.sim.is_switch(node)).collect();
    for index in 0..count {
        let switch = switches[rng.below(switches.len())];
        // The first host is left out, because the tracer and the SM run there.
        let host = hosts[1 + rng.below(hosts.len() - 1)];
        let node = if rng.below(2) == 0 { switch } else { host };
        let ports = lab.ports(switch);
        let port = 1 + rng.below(ports.into()) as u8;
        let rate = [0.001, 0.01, 0.1, 0.5][rng.below(4)];
        let name = lab.sim.node_name(switch).to_owned();
        let node_name = lab.sim.node_name(node).to_owned();
        let run = |lab: &mut Lab, all: &mut Injected, line: String| {
            let done = lab.try_command(&line);
            if done {
                all.lines[index] += &format!("{line}; ");
            }
            done
        };
        all.lines.push(String::new());
        match rng.below(KINDS) {
            0..=2 => misroute(lab, rng, &mut all, index, switch, &[port]),
            3 => {
                let second = 1 + rng.below(ports.into()) as u8;
                misroute(lab, rng, &mut all, index, switch, &[port, second]);
            }
            4 | 5 => {
                let every: Vec<u8> = (1..=ports).collect();
                misroute(lab, rng, &mut all, index, switch, &every);
            }
            6 => {
                if run(lab, &mut all, format!("Fault \"{name}\"[{port}] loss={rate}")) {
                    all.dead.remove(&(switch, port));
                    all.lossy.insert((switch, port), index);
                }
            }
            7 => {
                if run(lab, &mut all, format!("Fault \"{node_name}\"[1] loss={rate}")) {
                    all.dead.remove(&(node, 1));
                    all.lossy.insert((node, 1), index);
                }
            }
            8 => {
                let rate = [0.001, 0.01, 0.05, 0.1, 0.5][rng.below(5)];
                for &switch in &switches {
                    let name = lab.sim.node_name(switch).to_owned();
                    if run(lab, &mut all, format!("Fault \"{name}\" loss={rate}")) {
                        let ports = 1..=lab.ports(switch);
                        // The new loss rate replaces earlier loss rates of all ports of this switch.
                        all.dead.retain(|&(node, _), _| node != switch);
                        all.lossy.extend(ports.map(|port| ((switch, port), index)));
                    }
                }
                all.lines[index] = format!("loss {rate} on all switches");
            }
            9 => {
                if run(lab, &mut all, format!("Fault \"{name}\"[{port}] loss=1")) {
                    all.dead.insert((switch, port), index);
                }
            }
            10 => {
                let percent = rate * 100.0;
                if run(lab, &mut all, format!("Error \"{name}\"[{port}] {percent}")) {
                    all.lossy.insert((switch, port), index);
                }
            }
            11 => {
                let peer = peer(lab, (switch, port));
                if run(lab, &mut all, format!("Unlink \"{name}\"[{port}]")) {
                    all.cables.insert((switch, port), index);
                    all.cables.extend(peer.map(|peer| (peer, index)));
                }
            }
            12 => {
                let other = if lab.sim.is_switch(node) { &switches } else { &hosts };
                let other = other[rng.below(other.len())];
                let guid = match rng.below(3) {
                    0 => Guid(0x5eed_0000 + index as u64),
                    _ => lab.guid(other),
                };
                if other != node && run(lab, &mut all, format!("Guid \"{node_name}\" {guid}")) {
                    all.guids.insert(node, index);
                }
            }
            13 => {
                let other = lab.sim.node_ids().nth(rng.below(switches.len() + hosts.len()));
                let taken = other.filter(|&it| it != node).map_or(700, |it| lab.lid(it));
                let lid = if rng.below(2) == 0 { 600 + index as u16 } else { taken };
                let port = u8::from(!lab.sim.is_switch(node));
                if run(lab, &mut all, format!("Baselid \"{node_name}\"[{port}] {lid}")) {
                    all.lids.insert(node, index);
                }
            }
            kind => {
                let other = hosts[rng.below(hosts.len())];
                let what = match kind {
                    14 => Proxied::SilentAgent,
                    15 => Proxied::SilentNode,
                    16 => [Proxied::WrongAgentPort, Proxied::WrongAgentRoute][rng.below(2)],
                    17 => Proxied::AgentStatus7,
                    _ if rng.below(2) == 0 => Proxied::WrongLocalPort,
                    _ => Proxied::ForeignLid(if other == node { 701 } else { lab.lid(other) }),
                };
                all.lines[index] = format!("{what:?} \"{node_name}\"");
                all.proxied.insert(node, (what, index));
            }
        }
    }
    let proxy = Proxy::of(lab, &all);
    lab.corrupt(move |datagram| proxy.passes(datagram));
    all
}

fn misroute(
    lab: &mut Lab,
    rng: &mut Rng,
    all: &mut Injected,
    index: usize,
    switch: NodeId,
    ports: &[u8],
) {
    let (name, count) = (lab.sim.node_name(switch).to_owned(), lab.ports(switch));
    for &port in ports {
        let other = 1 + rng.below(count.into()) as u8;
        if other == port {
            continue;
        }
        let line = format!("Misroute \"{name}\" {port} {other}");
        if lab.try_command(&line) {
            all.lines[index] += &format!("{line}; ");
            all.misrouted.insert((switch, port), (other, index));
        }
    }
}

/// Returns the port at the other end of a cable.
pub(crate) fn peer(lab: &Lab, (node, port): (NodeId, u8)) -> Option<(NodeId, u8)> {
    let peer = lab.sim.peer(lab.sim.find_port(node, port)?)?;
    Some(lab.sim.place(peer))
}

/// Proxy that changes or drops the responses of some nodes.
struct Proxy {
    nodes: BTreeMap<NodeId, Proxied>,
    own: NodeId,
    peers: BTreeMap<(NodeId, u8), (NodeId, u8)>,
    by_lid: BTreeMap<u16, NodeId>,
    true_lids: BTreeMap<NodeId, u16>,
    ports: BTreeMap<NodeId, u8>,
    switches: BTreeSet<NodeId>,
}

impl Proxy {
    fn of(lab: &Lab, all: &Injected) -> Self {
        let nodes: Vec<NodeId> = lab.sim.node_ids().collect();
        let ports: BTreeMap<NodeId, u8> =
            nodes.iter().map(|&node| (node, lab.ports(node))).collect();
        let cables = ports.iter().flat_map(|(&node, &count)| (1..=count).map(move |it| (node, it)));
        Self {
            nodes: all.proxied.iter().map(|(&node, &(what, _))| (node, what)).collect(),
            own: lab.node_of_first_host(),
            peers: cables.filter_map(|place| Some((place, peer(lab, place)?))).collect(),
            by_lid: nodes
                .iter()
                .map(|&node| (lab.lid(node), node))
                // If two nodes have the same LID, the proxy does not change responses from this LID.
                .filter(|&(lid, node)| !nodes.iter().any(|&it| it != node && lab.lid(it) == lid))
                .collect(),
            true_lids: nodes.iter().map(|&node| (node, lab.lid(node))).collect(),
            switches: nodes.iter().copied().filter(|&node| lab.sim.is_switch(node)).collect(),
            ports,
        }
    }

    /// Returns the node that sent a response.
    fn source(&self, datagram: &Datagram) -> Option<NodeId> {
        let mad = &datagram.mad;
        if mad.class() != MgmtClass::SUBN_DIRECTED_ROUTE {
            return self.by_lid.get(&datagram.remote.lid).copied();
        }
        if mad.dr_dlid() != ib_wire::mad::smp::PERMISSIVE_LID {
            return self.by_lid.get(&mad.dr_dlid()).copied();
        }
        let route = &mad.initial_path()[1..=usize::from(mad.hop_count())];
        route.iter().try_fold(self.own, |node, &port| Some(self.peers.get(&(node, port))?.0))
    }

    /// Changes a response. Returns false if the response is dropped.
    fn passes(&self, datagram: &mut Datagram) -> bool {
        let Some(node) = self.source(datagram) else { return true };
        let Some(&what) = self.nodes.get(&node) else { return true };
        let class = datagram.mad.class();
        let is_agent = class == MgmtClass::TRACER;
        let is_route = is_agent && datagram.mad.attribute_id() == AttributeId::SOURCE_ROUTE;
        let count = self.ports.get(&node).copied().unwrap_or(1);
        match what {
            Proxied::SilentAgent => return !is_agent,
            Proxied::SilentNode => return class == MgmtClass::SUBN_ADM,
            Proxied::WrongAgentPort if is_route => datagram.mad.data_mut()[0] ^= 1,
            Proxied::WrongAgentRoute if is_route => datagram.mad.data_mut()[3] ^= 0x40,
            Proxied::AgentStatus7 if is_route => {
                let route: Option<SourceRoute> = datagram.mad.attribute();
                let other = route.map_or(1, |route| route.incoming_port % count.max(2) + 1);
                datagram.mad.set_status(MadStatus::BAD_FIELD);
                datagram.mad.data_mut()[0] = other;
            }
            Proxied::WrongLocalPort => {
                if datagram.mad.attribute_id() == AttributeId::NODE_INFO
                    && let Some(mut info) = datagram.mad.attribute::<NodeInfo>()
                {
                    info.local_port = info.local_port % count.max(2) + 1;
                    datagram.mad.set_attribute(&info);
                }
            }
            Proxied::ForeignLid(lid) => {
                if datagram.mad.attribute_id() == AttributeId::PORT_INFO
                    && (!self.switches.contains(&node) || datagram.mad.attribute_modifier() == 0)
                    && let Some(mut info) = datagram.mad.attribute::<PortInfo>()
                    && Some(&info.lid) == self.true_lids.get(&node)
                {
                    info.lid = lid;
                    datagram.mad.set_attribute(&info);
                }
            }
            _ => {}
        }
        true
    }
}
