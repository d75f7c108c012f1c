use ib_types::{ServiceLevel, VirtualLane};

use super::*;
use crate::engine::Engine;
use crate::engine::minhop::MinHop;
use crate::engine::updn::UpDown;
use crate::lft::NO_PATH;
use net::{Net, host_lid, tables};

pub(crate) mod net;
mod oracle;

const ONE_LEVEL: Layers = Layers::uniform(match ServiceLevel::new(0) {
    Some(level) => level,
    None => panic!("0 is a service level"),
});

/// Four switches in a cycle. At each switch, port 1 leads to the next switch, port 2 to the previous switch, and port 3
/// to a host.
fn ring() -> Net {
    (0..4).fold(Net::new(&[4; 4]), |net, switch| {
        net.link((switch, 1), ((switch + 1) % 4, 2)).host((switch, 3))
    })
}

/// Switches 0 and 1 are leaves with two hosts each at ports 1 and 2. Their ports 3 lead to spine switch 2, and their
/// ports 4 to spine switch 3. The leaves are at ports 1 and 2 of each spine.
fn tree() -> Net {
    let net = Net::new(&[4, 4, 2, 2]);
    let net =
        net.link((0, 3), (2, 1)).link((0, 4), (3, 1)).link((1, 3), (2, 2)).link((1, 4), (3, 2));
    net.host((0, 1)).host((0, 2)).host((1, 1)).host((1, 2))
}

/// Leaves forward packets to even LIDs over one spine, and to odd LIDs over the other. Spines have no routes to each
/// other.
fn tree_tables(subnet: &Subnet<'_>) -> Lfts {
    tables(subnet, |switch, home, lid| match (switch, home) {
        (0 | 1, 0 | 1) => 3 + (lid % 2) as u8,
        (2 | 3, 2 | 3) => NO_PATH,
        _ => home as u8 + 1,
    })
}

fn held(switch: u16, port: u8, vl: u8) -> HeldChannel {
    HeldChannel {
        switch: SwitchId(switch),
        port,
        vl: VirtualLane::new(vl).expect("the VL is at most 15"),
    }
}

#[test]
fn unidirectional_cycle_has_a_credit_loop() {
    let net = ring();
    let subnet = net.subnet();
    let report = check(&subnet, &tables(&subnet, |_, _, _| 1), &ONE_LEVEL);
    assert_eq!(report.credit.loops, 1);
    let credit_loop = &report.credit.first[0];
    assert_eq!(credit_loop.channels, 4);
    assert_eq!(credit_loop.cycle, [held(0, 1, 0), held(1, 1, 0), held(2, 1, 0), held(3, 1, 0)]);
    assert_eq!(
        credit_loop.describe(&subnet)[3],
        "0x0000000000200003 ('s3') port 1 to 0x0000000000200000 ('s0') port 2 on VL0"
    );
    assert!(!report.is_sound());

    // From each host, one route has 1 hop, one has 2 hops, and one has 3 hops. In place of the routes with 3 hops, the
    // shortest paths have 1 hop.
    assert_eq!(report.hops.histogram, [0, 4, 4, 4]);
    assert_eq!((report.hops.longer_than_minimum, report.hops.worst_excess), (4, 2));
    assert_eq!(report.hops.mean(), 2.0);
    // The routes have 24 hops in total over 4 links. The 4 links of the other direction are unused.
    assert_eq!((report.load.max, report.load.mean, report.load.cv), (6, 3.0, 1.0));
    assert_eq!(report.load.load(SwitchId(2), 1), 6);
    assert_eq!(report.load.load(SwitchId(2), 2), 0);
    assert_eq!(report.load.load(SwitchId(2), 3), 3);
    assert_eq!(report.load.load(SwitchId(2), 99), 0);
    assert_eq!(report.load.histogram, LoadHistogram { width: 1, links: vec![4, 0, 0, 0, 0, 0, 4] });
}

#[test]
fn cycle_routed_as_a_line_has_no_credit_loop() {
    let net = ring();
    let subnet = net.subnet();
    let lfts = tables(&subnet, |switch, home, _| if home > switch { 1 } else { 2 });
    let report = check(&subnet, &lfts, &ONE_LEVEL);
    assert!(report.is_sound());
    assert_eq!(report.credit, CreditLoops::default());
    assert_eq!(report.reach, Reachability { lids: 8, ..Default::default() });
    assert_eq!(report.load.load(SwitchId(3), 1), 0);
    assert_eq!(report.load.load(SwitchId(1), 1), 4);
}

/// Packets over the link from switch 3 to switch 0 have a separate service level and change their VL at switch 0.
#[test]
fn changing_vls_at_a_dateline_breaks_the_credit_loop() {
    let net = ring();
    let subnet = net.subnet();
    let lfts = tables(&subnet, |_, _, _| 1);
    let crosses = |from: usize, to: usize| u8::from(from > to);
    let levels = (0..16).map(|pair| crosses(pair / 4, pair % 4)).collect();
    let layers = Layers::per_pair(4, levels);
    // Without a change of VLs, two service levels are not enough: the routes over the link from switch 3 to switch 0
    // form a cycle.
    let report = check(&subnet, &lfts, &layers);
    assert_eq!(report.credit.loops, 1);
    assert_eq!(report.credit.first[0].cycle[0], held(0, 1, 1));

    let map = |switch: SwitchId, in_port: u8, _: u8, level: ServiceLevel| {
        let behind = level.get() == 1 && (switch.0 == 0 || (switch.0 == 1 && in_port == 2));
        VirtualLane::new(u8::from(behind)).expect("the VL is at most 15")
    };
    let options = CheckOptions { vl_map: Some(&map), ..Default::default() };
    assert!(check_with(&subnet, &lfts, &layers, &options).is_sound());

    let discard =
        |_: SwitchId, _: u8, _: u8, _: ServiceLevel| VirtualLane::new(15).expect("15 is a VL");
    let options = CheckOptions { vl_map: Some(&discard), ..Default::default() };
    assert_eq!(check_with(&subnet, &lfts, &layers, &options).credit.loops, 0);
}

#[test]
fn link_load_follows_the_tables() {
    let net = tree();
    let subnet = net.subnet();
    let report = check(&subnet, &tree_tables(&subnet), &ONE_LEVEL);
    assert!(report.is_sound(), "{report:?}");
    let mut over_spine_3 = 0;
    for host in [2, 3] {
        // Both hosts of leaf 0 send to each host of leaf 1: over spine 3 if the LID is odd.
        over_spine_3 += 2 * u32::from(host_lid(&subnet, host) % 2);
    }
    assert_eq!(report.load.load(SwitchId(0), 4), over_spine_3);
    assert_eq!(report.load.load(SwitchId(0), 3), 4 - over_spine_3);
    assert_eq!(report.load.load(SwitchId(3), 2), over_spine_3);
    assert_eq!(report.load.load(SwitchId(1), 1), 3, "three hosts send to the host at this port");
    assert_eq!((report.load.links, report.load.mean), (8, 2.0));
    assert_eq!(report.hops.histogram, [4, 0, 8]);
    assert_eq!(report.hops.longer_than_minimum, 0);
    // The spines do not reach each other. This is not a fault.
    assert_eq!(report.reach.unreachable, 0);
    assert_eq!(report.reach.unreachable_switch_pairs, 2);
    assert_eq!(
        report.reach.first_switch_pairs[0].describe(&subnet),
        format!(
            "0x0000000000200003 ('s3') to LID {} ('s2'): 0x0000000000200003 ('s3') has no entry",
            subnet.switch_lid(SwitchId(2))
        )
    );
}

#[test]
fn every_kind_of_wrong_entry_has_its_cause() {
    let net = tree();
    let subnet = net.subnet();
    let lid = host_lid(&subnet, 0);
    let failures = |entry: u8| {
        let mut lfts = tree_tables(&subnet);
        // The LFT entries of both spines for host 0 are port 1, which leads to leaf 0. Host 0 is linked to port 1 of
        // leaf 0.
        lfts.table_mut(SwitchId(0))[usize::from(lid)] = entry;
        let report = check(&subnet, &lfts, &ONE_LEVEL);
        assert_eq!(
            report.reach.unreachable_switch_pairs, 2,
            "only the spines do not reach each other"
        );
        assert_eq!(report.reach.unreachable, 4, "the packets of all four switches are lost");
        assert!(!report.is_sound());
        assert_eq!(report.reach.first[1].from, SwitchId(1));
        assert_eq!(report.hops.routes(), 9, "three routes do not arrive");
        (report.reach.first[1].cause, report.reach.first[1].describe(&subnet))
    };
    let at = SwitchId(0);
    assert_eq!(failures(NO_PATH).0, Cause::NoEntry { at });
    let (cause, text) = failures(9);
    assert_eq!(cause, Cause::NoSuchPort { at, port: 9 });
    let (from, to) = ("0x0000000000200001 ('s1')", "0x0000000000200000 ('s0')");
    let start = format!("{from} to LID {lid} ('h0'): {to}");
    assert_eq!(text, format!("{start} sends to port 9: expected at most 4"));
    let arrives_at = subnet.switch(at).end_port;
    assert_eq!(failures(0).0, Cause::WrongEndPort { at, port: 0, arrives_at });
    let (cause, text) = failures(2);
    let arrives_at = subnet.lid_owner(host_lid(&subnet, 1)).expect("the LID belongs to host 1");
    assert_eq!(cause, Cause::WrongEndPort { at, port: 2, arrives_at });
    let other = host_lid(&subnet, 1);
    assert_eq!(text, format!("{start} sends to port 2, where LID {other} is ('h1')"));
    let (cause, text) = failures(3);
    assert!(matches!(cause, Cause::Loop { .. }), "{text}");
}

#[test]
fn unlinked_port_has_its_cause() {
    let net = Net::new(&[4]).host((0, 1));
    let subnet = net.subnet();
    let mut lfts = tables(&subnet, |_, _, _| NO_PATH);
    lfts.table_mut(SwitchId(0))[usize::from(host_lid(&subnet, 0))] = 3;
    let reach = check(&subnet, &lfts, &ONE_LEVEL).reach;
    assert_eq!(reach.first[0].cause, Cause::Unlinked { at: SwitchId(0), port: 3 });
    assert_eq!(reach.unreachable, 1);
}

#[test]
fn missing_entries_are_faults_only_for_hosts() {
    let net = tree();
    let subnet = net.subnet();
    let spine_lid = usize::from(subnet.switch_lid(SwitchId(2)).get());
    let host = usize::from(host_lid(&subnet, 0));
    let counts = |switch: u16, lid: usize, entry: u8| {
        let mut lfts = tree_tables(&subnet);
        lfts.table_mut(SwitchId(switch))[lid] = entry;
        let reach = check(&subnet, &lfts, &ONE_LEVEL).reach;
        (reach.unreachable, reach.unreachable_switch_pairs)
    };
    assert_eq!(counts(1, host, NO_PATH), (1, 2), "a leaf must reach a host");
    assert_eq!(counts(0, spine_lid, NO_PATH), (0, 3), "a leaf need not reach a spine");
    assert_eq!(
        counts(0, spine_lid, 1),
        (1, 2),
        "a leaf must not forward packets to an unlinked port"
    );
    let unused = 2 + (host_lid(&subnet, 0) + 1) % 2;
    assert_eq!(counts(unused, host, NO_PATH), (0, 3), "no route between hosts uses the spine");
    let used = 2 + host_lid(&subnet, 0) % 2;
    assert_eq!(counts(used, host, NO_PATH), (1, 3), "the routes of leaf 1 use the spine");
}

#[test]
fn forwarding_loop_is_reported() {
    let net = ring();
    let subnet = net.subnet();
    let mut lfts = tables(&subnet, |switch, home, _| if home > switch { 1 } else { 2 });
    let lid = host_lid(&subnet, 3);
    lfts.table_mut(SwitchId(2))[usize::from(lid)] = 2;
    let report = check(&subnet, &lfts, &ONE_LEVEL);
    assert_eq!(report.reach.looping_lids, 1);
    let steps = vec![(SwitchId(1), 1), (SwitchId(2), 2)];
    assert_eq!(report.reach.loops, [ForwardingLoop { lid, steps }]);
    assert_eq!(
        report.reach.loops[0].describe(&subnet),
        format!(
            "LID {lid} loops: 0x0000000000200001 ('s1') port 1 -> 0x0000000000200002 ('s2') port 2 \
             -> ..."
        )
    );
    assert_eq!(report.reach.unreachable, 3);
    assert_eq!(report.reach.first[0].cause, Cause::Loop { at: SwitchId(1) });
    assert_eq!(report.credit.loops, 0, "the forwarding loop is not reported as a credit loop");
}

#[test]
fn loopback_cable_is_a_forwarding_loop() {
    let net = Net::new(&[4]).host((0, 1)).link((0, 2), (0, 3));
    let subnet = net.subnet();
    let mut lfts = tables(&subnet, |_, _, _| NO_PATH);
    let lid = host_lid(&subnet, 0);
    lfts.table_mut(SwitchId(0))[usize::from(lid)] = 2;
    let reach = check(&subnet, &lfts, &ONE_LEVEL).reach;
    assert_eq!(reach.loops, [ForwardingLoop { lid, steps: vec![(SwitchId(0), 2)] }]);
}

#[test]
fn directly_linked_hosts_need_no_tables() {
    let mut fabric = ib_topology::Fabric::new();
    let hosts = [1u64, 3].map(|guid| {
        let kind = ib_types::NodeKind::ChannelAdapter;
        let spec = ib_topology::NodeSpec::new(kind, format!("h{guid}"), ib_types::Guid(guid), 1);
        let host = fabric.add_node(spec).expect("the node GUID is unused");
        fabric.set_port_guid(host, 1, ib_types::Guid(guid + 1)).expect("the port GUID is unused");
        host
    });
    let rate = ib_topology::LinkRate::DEFAULT;
    fabric.connect((hosts[0], 1), (hosts[1], 1), rate).expect("both ports are free");
    let subnet = Subnet::discover(&fabric, &Default::default()).expect("the hosts are linked");
    let report = check(&subnet, &Lfts::new(&subnet), &ONE_LEVEL);
    assert!(report.is_sound());
    assert_eq!((report.hops.max(), report.load.max, report.load.links), (0, 0, 0));
}

fn generated(kind: &str, args: &[&str]) -> ib_topology::Fabric {
    let kind = ib_topology::generate::Kind::parse(kind, args)
        .expect("the kind and its arguments are valid");
    ib_topology::generate::generate(&kind, &Default::default())
        .expect("the fabric can be generated")
}

#[test]
fn credit_loops_depend_on_the_scope() {
    let loops = |fabric: &ib_topology::Fabric, engine: &dyn Engine, scope| {
        let subnet =
            Subnet::discover(fabric, &Default::default()).expect("the fabric has a linked port");
        let routing =
            engine.route(&subnet, &Default::default()).expect("the engine supports the subnet");
        let options = CheckOptions { scope, ..Default::default() };
        let report = check_with(&subnet, &routing.lfts, &routing.layers, &options);
        assert_eq!(report.reach.unreachable, 0);
        report.credit.loops
    };
    let tree = generated("xgft", &["4,4", "1,2"]);
    for scope in [Scope::Hosts, Scope::Management, Scope::Everything] {
        assert_eq!(loops(&tree, &UpDown, scope), 0);
    }
    // The routes of minhop between spines go down to a leaf and up again. Neither scope below includes these routes.
    assert_eq!(loops(&tree, &MinHop, Scope::Hosts), 0);
    assert_eq!(loops(&tree, &MinHop, Scope::Management), 0);
    assert_eq!(loops(&generated("torus", &["4x4"]), &MinHop, Scope::Hosts), 1);
}

#[test]
fn report_does_not_depend_on_the_number_of_threads() {
    let fabric = generated("xgft", &["4,4,4", "1,4,4"]);
    let subnet =
        Subnet::discover(&fabric, &Default::default()).expect("the fabric has a linked port");
    let mut lfts =
        MinHop.route(&subnet, &Default::default()).expect("minhop routes every subnet").lfts;
    let mut rng = ib_types::rng::Rng::new(7);
    net::corrupt(&subnet, &mut lfts, &mut rng, 2);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("the threads can be started");
        pool.install(|| check(&subnet, &lfts, &ONE_LEVEL))
    };
    let one = with(1);
    assert!(one.reach.unreachable > 0 && one.reach.looping_lids > 0);
    assert_eq!(one, with(4));
}
