//! The list of clients to run on a fabric.

use std::collections::BTreeMap;

use ib_topology::{Fabric, NodeId, PortId};
use ib_types::{Guid, NodeKind};

use super::expect::directed_routes;
use super::program::Question;

/// The nodes of a fabric that the clients query, or on which they run.
#[derive(Clone, Debug)]
pub struct Actors {
    /// The node on which OpenSM and most clients run: the first CA.
    pub manager: Host,
    /// The second CA.
    pub second: Host,
    /// The last CA.
    pub last: Host,
    /// The switch to which the first CA is connected.
    pub leaf: Switch,
    /// The switch to which the last CA is connected. Its `port` leads to this CA.
    pub far: Switch,
    /// The last switch, which may also be `leaf` or `far`.
    pub other: Switch,
}

/// A CA.
#[derive(Clone, Debug)]
pub struct Host {
    /// The host's name in the net file.
    pub name: String,
    /// The GUID of the host's port.
    pub guid: Guid,
    /// The base LID of the host's port.
    pub lid: u16,
    /// A directed route from the first CA to this host.
    pub route: String,
}

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    /// The switch's name in the net file.
    pub name: String,
    /// Node GUID.
    pub guid: Guid,
    /// LID.
    pub lid: u16,
    /// A directed route from the first CA to this switch.
    pub route: String,
    /// A port of the switch that has a link.
    pub port: u8,
}

impl Actors {
    /// Chooses the nodes among those that the first CA can reach. Returns `None` if a chosen node has no LID, or if
    /// there are too few nodes.
    #[must_use]
    pub fn choose(fabric: &Fabric, lids: &BTreeMap<Guid, u16>) -> Option<Self> {
        let linked = |id| fabric.ports_of(id).find(|(_, port)| port.peer.is_some());
        let hosts: Vec<(NodeId, PortId)> = fabric
            .nodes()
            .filter(|(_, node)| node.kind == NodeKind::ChannelAdapter)
            .filter_map(|(id, _)| Some((id, linked(id)?.0)))
            .collect();
        let routes = directed_routes(fabric, hosts.first()?.1);
        let host = |&(id, port): &(NodeId, PortId)| -> Option<Host> {
            let guid = fabric.port(port).guid;
            let name = fabric.node(id).name.clone();
            Some(Host { name, guid, lid: *lids.get(&guid)?, route: routes.get(&id)?.clone() })
        };
        let switch = |id: NodeId, port: u8| -> Option<Switch> {
            let node = fabric.node(id);
            let (name, guid) = (node.name.clone(), node.guid);
            Some(Switch {
                name,
                guid,
                port,
                lid: *lids.get(&guid)?,
                route: routes.get(&id)?.clone(),
            })
        };
        let behind = |&(_, port): &(NodeId, PortId)| -> Option<Switch> {
            let peer = fabric.peer(port)?;
            switch(peer.node, peer.number)
        };
        let reachable: Vec<_> = hosts.iter().filter(|(id, _)| routes.contains_key(id)).collect();
        let (first, last) = (*reachable.first()?, *reachable.last()?);
        let switches = fabric.nodes().filter(|(_, node)| node.kind.is_switch());
        let (other, _) = switches.filter(|(id, _)| routes.contains_key(id)).last()?;
        Some(Self {
            manager: host(first)?,
            second: host(reachable.get(1)?)?,
            last: host(last)?,
            leaf: behind(first)?,
            far: behind(last)?,
            other: switch(other, linked(other)?.1.number)?,
        })
    }
}

/// Returns the command lines that concern the whole fabric or the chosen nodes.
#[must_use]
pub fn all(actors: &Actors) -> Vec<Question> {
    let mut list: Vec<Question> = WHOLE.iter().map(|line| Question::new(line)).collect();
    list.extend(about_paths(actors));
    for host in [&actors.manager, &actors.last] {
        list.extend(about_port(host.lid, &host.route, 1));
        let lid = host.lid;
        for line in [
            format!("perfquery {lid} 1"),
            format!("perfquery -x {lid} 1"),
            format!("perfquery -a {lid}"),
            format!("perfquery -r {lid} 1"),
            format!("perfquery {lid} 1"),
            format!("perfquery -R {lid} 1"),
            format!("perfquery -x {lid} 1"),
        ] {
            list.push(Question::new(&line));
        }
    }
    list.push(Question::new(&format!("perfquery -X {} 1", actors.last.lid)));
    list.extend(about_congestion(actors.last.lid, 1));
    list.extend(about_congestion(actors.far.lid, actors.far.port));
    for switch in [&actors.leaf, &actors.other] {
        let Switch { lid, route, port, .. } = switch;
        list.extend(about_port(*lid, route, *port));
        for line in [
            format!("smpquery switchinfo {lid}"),
            format!("smpdump -D {route} 0x12"),
            format!("smpdump -D {route} 0x31"),
            format!("smpquery -D switchinfo {route}"),
            format!("smpquery portinfo {lid} {port}"),
            format!("smpquery -D portinfo {route} 0"),
            format!("smpquery pkeys {lid} {port}"),
            format!("smpquery mepi {lid} {port}"),
            format!("ibroute {lid}"),
            format!("ibroute -a {lid}"),
            format!("ibroute -n {lid}"),
            format!("ibroute -M {lid}"),
            format!("ibroute -D {route}"),
            format!("perfquery {lid}"),
            format!("perfquery {lid} {port}"),
            format!("perfquery -x {lid} {port}"),
            format!("perfquery -a {lid}"),
            format!("perfquery -l {lid}"),
            format!("perfquery -D {lid} {port}"),
            format!("perfquery -E {lid} {port}"),
            format!("perfquery -S {lid} {port}"),
            format!("perfquery -c {lid} {port}"),
            format!("perfquery -r {lid} {port}"),
            format!("perfquery {lid} {port}"),
            format!("ibportstate -D {route} {port} query"),
            format!("saquery SWIR {lid}"),
            format!("saquery LFTR {lid}/0"),
            format!("saquery PIR {lid}/0"),
            format!("saquery PIR {lid}/{port}"),
            format!("saquery LR {lid}/{port}"),
        ] {
            list.push(Question::new(&line));
        }
    }
    list
}

/// The command lines that specify no node.
const WHOLE: [&str; 24] = [
    "ibnetdiscover",
    "ibnetdiscover -p",
    "ibnetdiscover -f",
    "ibnetdiscover -l",
    "ibhosts",
    "ibswitches",
    "ibrouters",
    "iblinkinfo",
    "iblinkinfo -l",
    "ibqueryerrors",
    "ibqueryerrors --data",
    "ibqueryerrors --counters",
    "dump_lfts",
    "dump_mfts",
    "sminfo",
    "saquery -g",
    "saquery -m",
    "saquery -c",
    "saquery -s",
    "saquery SMIR",
    "ibaddr",
    "ibstat",
    "ibstat -p",
    "perfquery",
];

/// Returns congestion control queries. ibsim does not implement congestion control, but responds to the queries.
fn about_congestion(lid: u16, port: u8) -> Vec<Question> {
    let of_node = [
        "CongestionInfo",
        "CongestionKeyInfo",
        "SwitchCongestionSetting",
        "CACongestionSetting",
        "CongestionControlTable",
        "Timestamp",
    ];
    let mut lines: Vec<String> =
        of_node.iter().map(|query| format!("ibccquery {query} {lid}")).collect();
    lines.push(format!("ibccquery SwitchPortCongestionSetting {lid} {port}"));
    lines.iter().map(|line| Question::new(line)).collect()
}

fn about_paths(actors: &Actors) -> Vec<Question> {
    let Actors { manager, second, last, leaf, far, other } = actors;
    let on = &second.name;
    [
        format!("ibtracert {} {}", manager.lid, last.lid),
        format!("ibtracert {} {}", last.lid, manager.lid),
        format!("ibtracert {} {}", second.lid, other.lid),
        format!("ibtracert {} {}", other.lid, last.lid),
        format!("ibtracert -n {} {}", leaf.lid, far.lid),
        format!("ibtracert -G {} {}", manager.guid, last.guid),
        format!("saquery -p --src-to-dst {}:{}", manager.lid, last.lid),
        format!("saquery -p --slid {} --dlid {}", last.lid, other.lid),
        format!("saquery LR {} {}", manager.lid, leaf.lid),
        format!("saquery -L {}", last.lid),
        format!("saquery -l {}", last.lid),
        format!("saquery -G {}", last.lid),
        format!("saquery NR {}", 0xbfff),
    ]
    .iter()
    .map(|line| Question::new(line))
    .chain([
        // `saquery -O` queries the records of all nodes and searches them, so the response has several MADs.
        Question { many: true, ..Question::new(&format!("saquery -O {}", last.lid)) },
        Question::new("sminfo").on(on),
        Question::new("ibaddr").on(on),
        Question::new("ibstat").on(on),
        Question::new("perfquery").on(on),
        Question::new("ibnetdiscover").on(on),
        Question::new(&format!("ibtracert {} {}", second.lid, last.lid)).on(on),
        Question::new(&format!("saquery NR {}", second.lid)).on(on),
        Question::new("sminfo").on(&far.name),
        Question::new("ibaddr").on(&far.name),
        Question::new("ibstat").on(&far.name),
        Question::new("smpquery -D nodeinfo 0").on(&far.name),
    ])
    .collect()
}

/// Returns queries of a node's port. Those of `smpquery` address the port both by LID and by directed route.
///
/// The first host is not queried for attributes that ibsim's agents do not support, such as SwitchInfo or
/// `PortXmitDataSL`. ibsim would deliver these queries to OpenSM, which is the client on this port, and OpenSM would
/// terminate.
fn about_port(lid: u16, route: &str, port: u8) -> Vec<Question> {
    let mut lines = Vec::new();
    for (option, address) in [("", lid.to_string()), ("-D ", route.to_owned())] {
        for attribute in ["nodeinfo", "nodedesc", "guidinfo"] {
            lines.push(format!("smpquery {option}{attribute} {address}"));
        }
        for attribute in ["portinfo", "pkeys", "sl2vl", "vlarb", "mepi"] {
            lines.push(format!("smpquery {option}{attribute} {address} {port}"));
        }
    }
    lines.extend([
        format!("saquery NR {lid}"),
        format!("saquery VLAR {lid}/{port}/1"),
        format!("saquery GIR {lid}/0"),
        format!("saquery PKTR {lid}/{port}/0"),
        format!("saquery --smkey 1 PKTR {lid}/{port}/0"),
        format!("saquery SL2VL {lid}/0/{port}"),
        format!("sminfo {lid}"),
        format!("ibaddr {lid}"),
        format!("ibaddr -g {lid}"),
        format!("ibaddr -l {lid}"),
        format!("smpdump -D {route} 0x15 {port}"),
        format!("smpdump {lid} 0x11"),
        format!("smpdump -D {route} 0x16 {port}"),
        format!("smpdump {lid} 0x14"),
    ]);
    lines.iter().map(|line| Question::new(line)).collect()
}
