use ib_topology::Fabric;
use ib_topology::generate::Options;
use ib_types::{Guid, Lmc, NodeKind};

use super::*;
use crate::lft::Lfts;
use crate::lids::LidOptions;
use crate::subnet::SubnetOptions;

pub(super) mod net;
mod properties;

use net::{Net, host_ports, subnet, switches, two_leaves, whole, xgft};

/// Returns the 64-bit FNV-1a hash of all forwarding tables in order.
fn hash(subnet: &Subnet<'_>, lfts: &Lfts) -> u64 {
    let bytes = subnet.switch_ids().flat_map(|id| lfts.table(id).iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn routed(fabric: &Fabric, options: &RoutingOptions) -> Routing {
    FatTree.route(&subnet(fabric), options).unwrap()
}

fn refused(fabric: &Fabric, options: &RoutingOptions) -> String {
    let EngineError::Unsuitable(text) = FatTree.route(&subnet(fabric), options).unwrap_err() else {
        panic!("the engine returned another error")
    };
    text
}

/// Returns the port GUIDs of every third host, from the second one on.
fn one_in_three(fabric: &Fabric) -> Vec<Guid> {
    host_ports(fabric).into_iter().skip(1).step_by(3).collect()
}

/// The tables of OpenSM 3.3.23 for these fabrics have the same hashes.
#[test]
fn tables_are_those_of_opensm() {
    let plain = |_: &Fabric| RoutingOptions::default();
    let roots = |fabric: &Fabric| {
        let top = ["core", "spine"].map(|name| switches(fabric, name));
        let [core, spine] = top;
        let root_guids = Some(if core.is_empty() { spine } else { core });
        RoutingOptions { root_guids, ..RoutingOptions::default() }
    };
    let connected = |fabric: &Fabric| RoutingOptions { connect_roots: true, ..roots(fabric) };
    let io = |fabric: &Fabric| {
        let io_guids = Some(one_in_three(fabric));
        RoutingOptions { io_guids, max_reverse_hops: 2, ..roots(fabric) }
    };
    let compute = |fabric: &Fabric| {
        let cn_guids = Some(one_in_three(fabric));
        RoutingOptions { cn_guids, ..RoutingOptions::default() }
    };
    let quasi = |fabric: &Fabric| RoutingOptions { quasi_ftree_indexing: true, ..roots(fabric) };
    let links = Options { drop_links: 0.15, seed: 3, ..Options::default() };
    let switches = Options { drop_switches: 0.1, seed: 5, ..Options::default() };
    type Case<'a> = (&'a str, &'a Options, &'a dyn Fn(&Fabric) -> RoutingOptions, u64);
    let all = Options::default();
    let cases: [Case<'_>; 14] = [
        ("4,4 1,4", &all, &plain, 0x09ed_6351_ba3c_2def),
        ("6,5 1,2", &all, &plain, 0xfa92_c792_f9a3_eb30),
        ("4,4 1,2 1,2", &all, &plain, 0x8dda_d853_970d_bbf7),
        ("4,3 2,3", &all, &plain, 0xb4de_5131_9406_bb3f),
        ("4,4,4 1,4,4", &all, &plain, 0x839a_d906_1533_ec5b),
        ("3,2,4 1,2,3 1,2,3", &all, &plain, 0xe3f4_c33f_309a_660f),
        ("2,2,2,2,2,2,2,2 1,1,1,1,1,1,1,2", &all, &plain, 0xe92f_9585_5d65_3d05),
        ("4,4,4 1,4,4", &all, &compute, 0x7e25_cfce_eb6b_057b),
        ("4,4,4 1,4,4", &all, &io, 0x45b8_e551_6d9e_7921),
        ("4,4,4 1,4,4", &all, &connected, 0xedba_4758_5558_8c83),
        ("4,4,4 1,4,4", &links, &roots, 0x575c_962c_3456_3310),
        ("4,4,4 1,4,4", &links, &connected, 0x227c_7e0c_e881_6ed8),
        ("4,4,4 1,4,4", &switches, &roots, 0xcac2_80b5_ba42_5014),
        ("4,4,4 1,4,4", &links, &quasi, 0x5922_74a8_405b_3454),
    ];
    for (words, generated, options, expected) in cases {
        let fabric = xgft(&words.split(' ').collect::<Vec<_>>(), generated);
        let routing = routed(&fabric, &options(&fabric));
        let found = hash(&subnet(&fabric), &routing.lfts);
        assert_eq!(found, expected, "the tables of {words} have the hash {found:#018x}");
    }
}

#[test]
fn leaf_with_switches_below_keeps_all_compute_nodes() {
    let mut net = two_leaves();
    net.switches(&["below"]).hosts(&["io"]).link("below", &["leaf0", "leaf1", "io"]);
    let fabric = net.build();
    let mut cn_guids = host_ports(&fabric);
    cn_guids.pop();
    let options = RoutingOptions {
        root_guids: Some(switches(&fabric, "root")),
        cn_guids: Some(cn_guids),
        ..RoutingOptions::default()
    };
    let routing = routed(&fabric, &options);
    let subnet = subnet(&fabric);
    for id in subnet.switch_ids() {
        for end_port in subnet.end_ports().iter().filter(|end_port| !end_port.is_switch()) {
            assert_ne!(routing.lfts.port(id, end_port.base_lid.get()), crate::lft::NO_PATH);
        }
    }
}

#[test]
fn ca_order_contains_dummies() {
    let mut net = two_leaves();
    net.hosts(&["h4"]).link("leaf1", &["h4"]);
    let fabric = net.build();
    let routing = routed(&fabric, &RoutingOptions::default());
    let subnet = subnet(&fabric);
    let names: Vec<_> = routing
        .ca_order
        .iter()
        .map(|entry| entry.map(|id| subnet.end_port_node(id).name.as_str()))
        .collect();
    let expected = [Some("h0"), Some("h1"), None, Some("h2"), Some("h3"), Some("h4")];
    assert_eq!(names, expected);
    assert_eq!(routing.roots, subnet.switch_ids().take(2).collect::<Vec<_>>());
    assert!(routing.layers.is_uniform());
}

#[test]
fn hop_matrix_contains_detours() {
    let mut net = two_leaves();
    net.switches(&["root2"]).link("leaf1", &["root2"]);
    let fabric = net.build();
    let options = RoutingOptions {
        root_guids: Some(switches(&fabric, "root")),
        connect_roots: true,
        ..RoutingOptions::default()
    };
    let routing = routed(&fabric, &options);
    let subnet = subnet(&fabric);
    let [root0, root2, leaf0] = ["root0", "root2", "leaf0"]
        .map(|name| subnet.switch_of(fabric.find_name(name).unwrap()).unwrap());
    // root0 has leaf0 at port 1 and leaf1 at port 2. Only leaf1 is linked to root2.
    assert_eq!(routing.lfts.port(root0, subnet.switch_lid(root2).get()), 2);
    assert_eq!(routing.hops.through(&subnet, root0, 2, root2), 2);
    assert_eq!(routing.hops.through(&subnet, root0, 1, root2), 4);
    assert_eq!(routing.hops.least(leaf0, root2), 3);
}

#[test]
fn unknown_guids_are_reported_in_notes() {
    let fabric = two_leaves().build();
    let options = RoutingOptions {
        root_guids: Some(vec![Guid(0x200), Guid(0x201), Guid(0xdead)]),
        cn_guids: Some(host_ports(&fabric).into_iter().chain([Guid(0xbeef)]).collect()),
        io_guids: Some(vec![Guid(0x200)]),
        ..RoutingOptions::default()
    };
    assert_eq!(
        routed(&fabric, &options).notes,
        [
            "compute-node GUID 0x000000000000beef is not a channel adapter port of the subnet; it is \
             skipped",
            "I/O-node GUID 0x0000000000000200 is not a channel adapter port of the subnet; it is \
             skipped",
            "root GUID 0x000000000000dead is not in the subnet; it is skipped",
        ]
    );
}

#[test]
fn port_in_both_lists_is_a_compute_node() {
    let fabric = two_leaves().build();
    let all = Some(host_ports(&fabric));
    let both = RoutingOptions { cn_guids: all.clone(), io_guids: all, ..RoutingOptions::default() };
    let plain = routed(&fabric, &RoutingOptions::default());
    let routing = routed(&fabric, &both);
    assert_eq!(routing.lfts, plain.lfts);
    assert_eq!(routing.ca_order, plain.ca_order);
}

#[test]
fn routers_are_not_routed() {
    let mut net = two_leaves();
    net.add(NodeKind::Router, &["router"]).link("leaf1", &["router"]);
    let fabric = net.build();
    let routing = routed(&fabric, &RoutingOptions::default());
    let subnet = subnet(&fabric);
    let router = subnet.find_end_port(Guid(0x1041)).unwrap();
    let lid = subnet.end_port(router).base_lid.get();
    assert!(subnet.switch_ids().all(|id| routing.lfts.port(id, lid) == crate::lft::NO_PATH));
}

#[test]
fn lmc_is_refused() {
    let fabric = two_leaves().build();
    let lids = LidOptions { lmc: Lmc::new(1).unwrap(), ..LidOptions::default() };
    let subnet = Subnet::discover(&fabric, &SubnetOptions { lids, ..SubnetOptions::default() });
    let error = FatTree.route(&subnet.unwrap(), &RoutingOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "ftree: LMC is 1; expected 0");
}

#[test]
fn too_few_switches_are_refused() {
    let fabric = whole(&["4", "1"]);
    assert_eq!(
        refused(&fabric, &RoutingOptions::default()),
        "ftree: the subnet has 1 switches; expected at least 2"
    );
}

#[test]
fn too_few_channel_adapters_are_refused() {
    let mut net = Net::default();
    net.switches(&["a", "b"]).hosts(&["h"]).link("a", &["h", "b"]);
    assert_eq!(
        refused(&net.build(), &RoutingOptions::default()),
        "ftree: the subnet has 1 channel adapters on switches; expected at least 2"
    );
}

#[test]
fn cabled_channel_adapters_are_refused() {
    let mut net = Net::default();
    net.hosts(&["h0", "h1"]).link("h0", &["h1"]);
    assert_eq!(
        refused(&net.build(), &RoutingOptions::default()),
        "ftree: channel adapter `h0` (0x0000000000001000) is cabled to channel adapter `h1` \
         (0x0000000000001010); expected every channel adapter on a switch"
    );
}

#[test]
fn missing_compute_nodes_are_refused() {
    let fabric = two_leaves().build();
    let refused = |cn_guids, io_guids| {
        refused(&fabric, &RoutingOptions { cn_guids, io_guids, ..RoutingOptions::default() })
    };
    let none = "ftree: the subnet has no compute node among its 4 channel adapter ports; expected \
                at least one that the list of compute nodes names and the list of I/O nodes does \
                not";
    assert_eq!(refused(Some(vec![Guid(5)]), None), none);
    assert_eq!(refused(None, Some(host_ports(&fabric))), none);
    assert_eq!(
        refused(Some(Vec::new()), None),
        "ftree: the list of compute-node GUIDs is empty; expected at least one port GUID"
    );
    assert_eq!(
        refused(None, Some(Vec::new())),
        "ftree: the list of I/O-node GUIDs is empty; expected at least one port GUID"
    );
}

#[test]
fn too_many_turns_are_refused() {
    let fabric = whole(&["4,4,4", "1,4,4"]);
    let io = host_ports(&fabric)[5];
    let options = RoutingOptions {
        root_guids: Some(switches(&fabric, "core")),
        io_guids: Some(vec![io]),
        max_reverse_hops: 200,
        ..RoutingOptions::default()
    };
    assert_eq!(
        refused(&fabric, &options),
        "ftree: max_reverse_hops is 200, which allows more paths to the I/O nodes than can be \
         tried; expected a smaller number"
    );
}

#[test]
fn odd_fabrics_are_refused_or_routed() {
    let options = RoutingOptions {
        root_guids: Some(vec![Guid(0x200)]),
        connect_roots: true,
        ..RoutingOptions::default()
    };
    let mut ring = Net::default();
    let names = ["s0", "s1", "s2", "s3", "s4"];
    ring.switches(&names).hosts(&["h0", "h1", "h2"]);
    for (index, name) in names.iter().enumerate() {
        ring.link(name, &[names[(index + 1) % 5], name]);
    }
    ring.link("s1", &["h0"]).link("s4", &["h1"]).link("s2", &["h2"]);
    let fabric = ring.build();
    assert_eq!(
        refused(&fabric, &options),
        "ftree: compute node `h2` (port GUID 0x0000000000001021) is on switch `s2` \
         (0x0000000000000202) of rank 2; expected all compute nodes on leaves, which are of rank 1"
    );
    let cn_guids = Some(vec![Guid(0x1001), Guid(0x1011)]);
    let routing = routed(&fabric, &RoutingOptions { cn_guids, ..options.clone() });
    let subnet = subnet(&fabric);
    let lid = subnet.end_port(subnet.find_end_port(Guid(0x1021)).unwrap()).base_lid.get();
    let unrouted =
        subnet.switch_ids().filter(|&id| routing.lfts.port(id, lid) == crate::lft::NO_PATH);
    assert_eq!(unrouted.count(), 0);
}

/// A walk ends after 254 hops, whatever the number of ranks.
#[test]
fn chain_below_the_leaves_ends_at_the_maximum_of_hops() {
    let names: Vec<&'static str> =
        (0..600).map(|index| &*Box::leak(format!("c{index}").into_boxed_str())).collect();
    let mut net = two_leaves();
    net.switches(&names).link("leaf0", &["c0"]);
    for pair in names.windows(2) {
        net.link(pair[0], &[pair[1]]);
    }
    let fabric = net.build();
    let root_guids = Some(switches(&fabric, "root"));
    let routing = routed(&fabric, &RoutingOptions { root_guids, ..RoutingOptions::default() });
    let subnet = subnet(&fabric);
    let lid = subnet.end_port(subnet.sm_port()).base_lid.get();
    let at = |name: &str| {
        let id = subnet.switch_of(fabric.find_name(name).unwrap()).unwrap();
        routing.lfts.port(id, lid)
    };
    assert_eq!([at("c252"), at("c253")], [1, crate::lft::NO_PATH]);
}
