//! Features of the SM besides routing: VLs, partitions, caches, refusals, groups and notices.

use std::time::Duration;

use ib_link::{Datagram, Incoming, Remote};
use ib_routing::EngineKind;
use ib_sm::{Alarm, PartEnforce, Partitions, PortQos, QosConfig, RoutingConfig, SmConfig};
use ib_types::{PKey, Qpn};
use ib_wire::mad::sa::{ComponentMask, InformInfo, MCMemberRecord, NodeRecord, SaNotice};
use ib_wire::mad::sm::{Notice, PortState, SlToVl, TrapNumber, VlArbitration, VlCap};
use ib_wire::mad::smp;
use ib_wire::mad::{AttributeId, Mad, MadStatus, Method, MgmtClass, TransactionId};

use crate::lab::{CLIENT_QPN, Lab};

const SECOND: Duration = Duration::from_secs(1);

fn routed_with(engines: &str) -> RoutingConfig {
    RoutingConfig {
        engines: engines.parse().expect("the engine list is valid"),
        ..RoutingConfig::default()
    }
}

fn up(kind: &str, config: SmConfig) -> Lab {
    let mut lab = Lab::new(kind);
    lab.add(0, config);
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab
}

#[test]
fn vl_tables_are_written_to_each_port_once() {
    let sl2vl = PortQos::parse_sl_to_vl("3,2,1,0,3,2,1,0,3,2,1,0,3,2,1,15").unwrap();
    let low = PortQos::parse_arbitration("0:7,1:5,12:3").unwrap();
    let swe = PortQos { sl2vl, max_vls: 4, vlarb_low: low, high_limit: 9, ..PortQos::default() };
    let qos = Some(QosConfig { switch_external: swe, ..QosConfig::default() });
    let mut lab = up("torus 3x3 hosts=1", SmConfig { qos, ..SmConfig::default() });
    let written = lab.sms[0].last().written;
    assert!(written.sl_to_vl_tables > 9 * 5 && written.arbitration_blocks > 9 * 5, "{written:?}");
    let leaf = lab.sim.peer(lab.host(3)).unwrap();
    let number = lab.sim.place(leaf).1;
    let info = lab.sim.port_info(leaf);
    assert_eq!((info.operational_vls.lanes(), info.vl_high_limit), (Some(4), 9));
    assert_eq!(
        lab.sim.port_info(lab.host(3)).operational_vls.lanes(),
        Some(4),
        "both ports of a link use the same VLs"
    );
    let lid = lab.sim.port_info(lab.sim.find_port(lab.sim.place(leaf).0, 0).unwrap()).lid;
    let mut sa_client = lab.sa_client(1);
    let mut get = |lab: &mut Lab, id, modifier| {
        let mad = smp::lid_request(Method::GET, TransactionId(0), (id, modifier));
        *lab.ask(&mut sa_client, Remote::smi(lid), mad).mad()
    };
    let read = get(&mut lab, AttributeId::SL_TO_VL, SlToVl::modifier(1, number));
    let read: SlToVl = read.attribute().unwrap();
    assert_eq!(read.lanes, sl2vl);
    let read = get(&mut lab, AttributeId::VL_ARBITRATION, 1 << 16 | u32::from(number));
    let read: VlArbitration = read.attribute().unwrap();
    let turns = read.entries.map(|turn| (turn.lane.get(), turn.weight));
    assert_eq!(
        turns[..4],
        [(0, 7), (1, 5), (0, 3), (0, 0)],
        "with four VLs, VL 12 is mapped to VL 0"
    );
    let now = lab.sim.now();
    lab.sms[0].manager.sweep(now);
    lab.run_while(|lab| lab.sms[0].reports.len() < 2);
    let written = lab.sms[0].last().written;
    assert_eq!((written.sl_to_vl_tables, written.arbitration_blocks), (0, 0), "{written:?}");
    lab.check();
}

#[test]
fn lash_writes_sl_to_vl_tables_without_qos() {
    let config = SmConfig { routing: routed_with("lash,no_fallback"), ..SmConfig::default() };
    let lab = up("torus 5x5 hosts=1", config);
    let report = lab.sms[0].last();
    assert!(report.plan.routing.layers.count() > 1);
    assert!(report.written.sl_to_vl_tables > 25 * 5, "{:?}", report.written);
    assert_eq!(report.written.arbitration_blocks, 0);
    assert_eq!(lab.sms[0].warnings, [""; 0]);
    assert_eq!(lab.sms[0].manager.alarms().count(), 0);
}

#[test]
fn up_down_rooted_at_a_spine_gives_a_warning() {
    let config = SmConfig { routing: routed_with("updn,no_fallback"), ..SmConfig::default() };
    let mut lab = Lab::new("xgft 2,2,4 1,2,2");
    let switches: Vec<_> = lab.sim.node_ids().filter(|&node| lab.sim.is_switch(node)).collect();
    let hosts = |lab: &Lab, node| {
        let ports = (1..=20).filter_map(|number| lab.sim.find_port(node, number));
        let peers = ports.filter_map(|port| lab.sim.peer(port));
        peers.filter(|&peer| !lab.sim.is_switch(lab.sim.place(peer).0)).count()
    };
    let spine = switches.iter().find(|&&node| hosts(&lab, node) == 0).unwrap();
    let leaf = switches.iter().find(|&&node| hosts(&lab, node) > 0).unwrap();
    let mut warnings = Vec::new();
    for &node in [spine, leaf] {
        lab.add_at(lab.sim.end_port(node).unwrap(), config.clone());
        lab.run_while(|lab| lab.sms[0].reports.is_empty());
        warnings.push(std::mem::take(&mut lab.sms[0].warnings));
        lab.kill(0);
    }
    assert_eq!((warnings[0].len(), warnings[1].len()), (1, 0), "{warnings:?}");
    assert!(warnings[0][0].contains("leaf"), "{warnings:?}");
}

#[test]
fn switches_enforce_the_partitions_of_their_hosts() {
    let text = "Default=0x7fff:ALL=full;\nstorage=0x0123:0x1=full,ALL=limited;\n";
    let partitions = Partitions::read("test", text.as_bytes()).unwrap();
    for (part_enforce, wanted) in [
        (PartEnforce::Both, (true, true)),
        (PartEnforce::In, (true, false)),
        (PartEnforce::Out, (false, true)),
        (PartEnforce::Off, (false, false)),
    ] {
        let partitions = partitions.clone();
        let lab =
            up("torus 3x3 hosts=1", SmConfig { part_enforce, partitions, ..SmConfig::default() });
        let host = lab.host(4);
        let leaf = lab.sim.peer(host).unwrap();
        let info = lab.sim.port_info(leaf);
        let bits = (info.partition_enforcement_inbound, info.partition_enforcement_outbound);
        assert_eq!(bits, wanted, "{part_enforce:?}");
        let keys = |port| lab.sim.p_key_block(port, 0)[..3].to_vec();
        assert_eq!(keys(host), [PKey(0xffff), PKey(0x0123), PKey(0)]);
        if part_enforce == PartEnforce::Off {
            continue;
        }
        assert_eq!(keys(leaf), keys(host));
        let (switch, _) = lab.sim.place(leaf);
        let between = (1..=8).filter_map(|number| lab.sim.find_port(switch, number));
        for port in between.filter(|&port| port != leaf && lab.sim.peer(port).is_some()) {
            let info = lab.sim.port_info(port);
            assert!(
                !info.partition_enforcement_inbound,
                "links between switches enforce no partitions"
            );
        }
    }
}

#[test]
fn rebooted_host_and_bounced_leaf_need_no_new_routes() {
    let config = SmConfig {
        use_ucast_cache: true,
        routing: routed_with("updn,no_fallback"),
        ..SmConfig::default()
    };
    let mut lab = up("xgft 2,3,3 1,2,2", config);
    let counters = |lab: &Lab| {
        let counters = lab.sms[0].manager.counters();
        (counters.routings, counters.cached_plans)
    };
    assert_eq!(counters(&lab), (1, 0));
    let name = |lab: &Lab, port| lab.sim.node_name(lab.sim.place(port).0).to_owned();
    let host = lab.host(5);
    let leaf = lab.sim.peer(lab.host(8)).unwrap();
    let mut cached = 0;
    for victim in [name(&lab, host), name(&lab, leaf)] {
        for state in ["off", "on"] {
            let (before, nodes) = (counters(&lab), lab.sms[0].last().nodes);
            lab.command(&format!("power \"{victim}\" {state}"));
            lab.run_while(|lab| {
                let now = lab.sms[0].last().nodes;
                if state == "off" { now >= nodes } else { now <= nodes }
            });
            lab.run_for(SECOND);
            let after = counters(&lab);
            assert_eq!(after.0, 1, "{victim} {state}");
            assert!(after.1 > before.1, "{victim} {state}");
            cached = after.1;
        }
        lab.check();
    }
    assert!(lab.sms[0].last().cached);
    // If a link between switches is lost, new routes are needed.
    let up = (1..=20).filter_map(|number| lab.sim.find_port(lab.sim.place(leaf).0, number));
    let mut up = up.filter(|&port| {
        let peer = lab.sim.peer(port);
        peer.is_some_and(|peer| lab.sim.is_switch(lab.sim.place(peer).0))
    });
    let port = up.next().unwrap();
    let number = lab.sim.place(port).1;
    lab.command(&format!("unlink \"{}\"[{number}]", name(&lab, port)));
    lab.run_while(|lab| counters(lab).0 < 2);
    lab.run_for(SECOND);
    lab.check();
    assert_eq!(counters(&lab), (2, cached));
}

/// Returns the only alarm of the SM. Panics if there is no alarm, or more than one.
fn only_alarm(lab: &Lab) -> Alarm {
    let alarms: Vec<Alarm> =
        lab.sms[0].manager.alarms().map(|raised| raised.alarm.clone()).collect();
    let [alarm] = &alarms[..] else { panic!("{alarms:?}") };
    alarm.clone()
}

#[test]
fn credit_loops_of_configured_engines_raise_an_alarm() {
    let config = SmConfig { routing: routed_with("minhop"), ..SmConfig::default() };
    let lab = up("torus 5 hosts=1", config);
    let Alarm::CreditLoops { engine, loops, first, avoided_by, tried } = only_alarm(&lab) else {
        panic!("unexpected alarm");
    };
    assert_eq!((engine, loops, first.len()), (EngineKind::MinHop, 2, 5));
    // Up/down finds no root in a ring. Lash avoids the credit loop with two VLs.
    assert_eq!(avoided_by, Some(EngineKind::Lash));
    assert_eq!(tried, [EngineKind::MinHop, EngineKind::Lash]);
    lab.check();
}

#[test]
fn default_engines_avoid_credit_loops() {
    let lab = up("torus 5 hosts=1", SmConfig::default());
    assert_eq!(lab.sms[0].last().plan.routing.engine, EngineKind::Lash);
    assert_eq!(lab.sms[0].manager.alarms().count(), 0);
    // With a single VL, lash cannot route the ring. No engine avoids the credit loop, so the SM programs tables with
    // the loop.
    let lab = up("torus 5 hosts=1", SmConfig { max_op_vls: VlCap::VL0, ..SmConfig::default() });
    let Alarm::CreditLoops { engine, avoided_by, .. } = only_alarm(&lab) else {
        panic!("unexpected alarm");
    };
    assert_eq!((engine, avoided_by), (EngineKind::MinHop, None));
    lab.check();
}

#[test]
fn required_freedom_of_deadlock_refuses_credit_loops() {
    let config = SmConfig {
        routing: routed_with("minhop"),
        require_deadlock_free: true,
        ..SmConfig::default()
    };
    let mut lab = Lab::new("torus 5 hosts=1");
    lab.add(0, config);
    lab.run_for(5 * SECOND);
    let sm = &lab.sms[0];
    assert_eq!(sm.reports.len(), 0);
    assert_eq!(sm.refusals.len(), 1, "reported once: {:?}", sm.refusals);
    let alarms: Vec<Alarm> = sm.manager.alarms().map(|raised| raised.alarm.clone()).collect();
    let [Alarm::Unreachable { host_pairs: 20, .. }, Alarm::NoPlan { .. }] = &alarms[..] else {
        panic!("{alarms:?}")
    };
    assert_ne!(lab.sim.port_info(lab.host(2)).port_state, PortState::ACTIVE);
}

/// The switch acknowledges writes of its table, but the table does not change.
#[test]
fn tables_that_a_switch_ignores_are_not_counted_as_written() {
    let interval = Some(3 * SECOND);
    let config = SmConfig { sweep_interval: interval, ..SmConfig::default() };
    let mut lab = up("fat-tree 4 3", config);
    let leaf = lab.sim.place(lab.live_peer(lab.host(2)).expect("the link of the host is up")).0;
    let leaf = lab.sim.node_name(leaf).to_owned();
    lab.command(&format!("IgnoreLft \"{leaf}\" all"));
    lab.command(&format!("Unlink \"{leaf}\"[3]"));
    lab.run_for(60 * SECOND);
    let manager = &lab.sms[0].manager;
    assert!(manager.quality().is_none_or(|it| it.unreachable_host_pairs > 0));
    let faults: Vec<&str> = manager.faults().collect();
    assert!(faults.iter().any(|fault| fault.contains("forwarding table")), "{faults:?}");
    assert!(manager.alarms().count() > 0);
    // One sweep runs in each interval of 3 s: the faults cause no further sweeps.
    let sweeps = manager.counters().sweeps;
    assert!(sweeps <= 25, "{sweeps}");
    lab.command(&format!("IgnoreLft \"{leaf}\" none"));
    lab.run_for(60 * SECOND);
    let manager = &lab.sms[0].manager;
    assert_eq!(manager.quality().map(|it| it.unreachable_host_pairs), Some(0));
    assert_eq!(manager.alarms().count(), 0);
    lab.check();
}

#[test]
fn table_quality_is_reported_when_no_engine_can_route() {
    let mut lab = Lab::new("torus 5 hosts=1");
    lab.add(0, SmConfig { routing: routed_with("ftree,no_fallback"), ..SmConfig::default() });
    lab.run_for(5 * SECOND);
    let alarms: Vec<Alarm> =
        lab.sms[0].manager.alarms().map(|raised| raised.alarm.clone()).collect();
    let [Alarm::Unreachable { host_pairs: 20, .. }, Alarm::NoPlan { .. }] = &alarms[..] else {
        panic!("{alarms:?}")
    };
    // One VL suffices for lash on a line of switches, but not on a ring.
    let lash = SmConfig {
        routing: routed_with("lash,no_fallback"),
        max_op_vls: VlCap::VL0,
        ..SmConfig::default()
    };
    let (mut lab, cut) = open_ring(lash);
    lab.command(&format!("relink {cut}"));
    lab.run_for(15 * SECOND);
    let Alarm::NoPlan { .. } = only_alarm(&lab) else { panic!("unexpected alarm") };
    let manager = &lab.sms[0].manager;
    assert_eq!(manager.quality().map(|it| it.unreachable_host_pairs), Some(0));
    // A switch that has restarted has no tables, so its host and the other hosts do not reach each other.
    let last = lab.sim.node_name(lab.sim.place(lab.sim.peer(lab.host(4)).unwrap()).0).to_owned();
    for state in ["off", "on"] {
        lab.command(&format!("power \"{last}\" {state}"));
        lab.run_for(15 * SECOND);
    }
    let manager = &lab.sms[0].manager;
    assert!(manager.quality().is_some_and(|it| it.unreachable_host_pairs >= 8));
}

/// Returns a ring of switches in which one link was removed, and the name of a port of that link.
fn open_ring(config: SmConfig) -> (Lab, String) {
    let mut lab = Lab::new("torus 5 hosts=1");
    let (switch, _) = lab.sim.place(lab.sim.peer(lab.host(2)).expect("the host has a link"));
    let ports = (1..=8).filter_map(|number| lab.sim.find_port(switch, number));
    let mut ports = ports.filter(|&port| {
        lab.sim.peer(port).is_some_and(|peer| lab.sim.is_switch(lab.sim.place(peer).0))
    });
    let number = lab.sim.place(ports.next().expect("the switch has a link to a switch")).1;
    let cut = format!("\"{}\"[{number}]", lab.sim.node_name(switch));
    lab.command(&format!("unlink {cut}"));
    lab.add(0, config);
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    assert_eq!(lab.sms[0].manager.alarms().count(), 0);
    (lab, cut)
}

#[test]
fn loop_free_tables_that_reach_all_are_kept() {
    let config = SmConfig { routing: routed_with("minhop"), ..SmConfig::default() };
    let (mut lab, cut) = open_ring(config);
    let tables = |lab: &Lab| {
        let nodes = lab.sim.node_ids().filter(|&node| lab.sim.is_switch(node));
        nodes.map(|node| lab.sim.forwarding_table(node).to_vec()).collect::<Vec<_>>()
    };
    let before = tables(&lab);
    lab.command(&format!("relink {cut}"));
    lab.run_for(30 * SECOND);
    let sm = &lab.sms[0];
    assert!(sm.last().plan.is_kept);
    assert_eq!(sm.last().plan.report.credit.loops, 0);
    assert_eq!((sm.refusals.len(), sm.manager.alarms().count()), (0, 0));
    assert_eq!(tables(&lab), before);
    // The ports of the repaired link are configured.
    lab.check();
}

#[test]
fn repaired_routes_with_a_credit_loop_are_programmed() {
    let config = SmConfig { routing: routed_with("minhop"), ..SmConfig::default() };
    let (mut lab, cut) = open_ring(config);
    let other = lab.sim.node_name(lab.sim.place(lab.sim.peer(lab.host(4)).unwrap()).0).to_owned();
    // The cut link comes back while another switch of the ring is off. When that switch is on again, the ring is
    // complete, and its routes have a credit loop.
    lab.command(&format!("power \"{other}\" off"));
    lab.run_for(5 * SECOND);
    lab.command(&format!("relink {cut}"));
    lab.run_for(5 * SECOND);
    assert_eq!(lab.sms[0].manager.alarms().count(), 0);
    lab.command(&format!("power \"{other}\" on"));
    lab.run_for(30 * SECOND);
    let Alarm::CreditLoops { engine, .. } = only_alarm(&lab) else { panic!("unexpected alarm") };
    assert_eq!(engine, EngineKind::MinHop);
    lab.check();
    // When there is no credit loop any more, the alarm is cleared.
    lab.command(&format!("unlink {cut}"));
    lab.run_for(30 * SECOND);
    assert_eq!(lab.sms[0].manager.alarms().count(), 0);
    lab.check();
}

#[test]
fn subscribers_are_notified_of_ports_that_leave_and_join() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let mut sa_client = lab.sa_client(2);
    let info = InformInfo {
        lid_range_begin: 0xffff,
        is_generic: 1,
        subscribe: 1,
        notice_type: 0xffff,
        trap: 0xffff,
        qpn: Qpn::truncated(CLIENT_QPN),
        producer: 0xff_ffff,
        ..InformInfo::zeroed()
    };
    let answer = lab.ask_records(&mut sa_client, (Method::SET, ComponentMask::of(&[])), &info);
    assert_eq!(answer.status(), MadStatus::OK);
    let name = lab.sim.node_name(lab.sim.place(lab.host(6)).0).to_owned();
    lab.command(&format!("power \"{name}\" off"));
    let end = lab.sim.now() + 5 * SECOND;
    while lab.sim.now() < end {
        lab.listen(&mut sa_client);
    }
    let reports = |sa_client: &crate::lab::SaClient| -> Vec<u16> {
        let notices = sa_client.reports.iter().filter_map(|it| it.mad.attribute());
        notices.map(|it: SaNotice| it.notice.trap.0).collect()
    };
    assert!(reports(&sa_client).contains(&65), "{:?}", reports(&sa_client));
    assert!(reports(&sa_client).contains(&128), "{:?}", reports(&sa_client));
    sa_client.reports.clear();
    lab.command(&format!("power \"{name}\" on"));
    let end = lab.sim.now() + 5 * SECOND;
    while lab.sim.now() < end {
        lab.listen(&mut sa_client);
    }
    assert_eq!(
        reports(&sa_client).iter().filter(|&&trap| trap == 64).count(),
        1,
        "{:?}",
        reports(&sa_client)
    );
}

#[test]
fn received_trap_is_repressed_and_not_repeated() {
    let config = SmConfig { m_key: 0x1234, m_key_protection_level: 2, ..SmConfig::default() };
    let mut lab = up("torus 3x3 hosts=1", config);
    let name = lab.sim.node_name(lab.sim.place(lab.host(6)).0).to_owned();
    lab.command(&format!("power \"{name}\" off"));
    lab.run_for(20 * SECOND);
    assert_eq!(lab.sms[0].traps, 1);
    let counters = lab.sms[0].manager.counters();
    assert_eq!((counters.traps, counters.sweeps), (1, 2));
}

#[test]
fn unresponsive_nodes_are_queried_at_growing_intervals() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let name = lab.sim.node_name(lab.sim.place(lab.host(6)).0).to_owned();
    lab.command(&format!("mkey \"{name}\" 0x77 1"));
    let config = SmConfig { sweep_interval: Some(300 * SECOND), ..SmConfig::default() };
    lab.add(0, config);
    lab.run_for(60 * SECOND);
    let sweeps = lab.sms[0].manager.counters().sweeps;
    assert!((4..=10).contains(&sweeps), "{sweeps}");
}

#[test]
fn responses_with_many_records_arrive_completely() {
    let mut lab = up("xgft 2,8,8 1,2,4", SmConfig::default());
    let mut sa_client = lab.sa_client(3);
    let all = (Method::GET_TABLE, ComponentMask::of(&[]));
    let answer = lab.ask_records(&mut sa_client, all, &NodeRecord::zeroed());
    let nodes = lab.sim.node_ids().count();
    assert_eq!(answer.records::<NodeRecord>().count(), nodes);
    assert!(answer.is_reassembled(), "{nodes} records do not fit into a datagram");
}

#[test]
fn broadcast_group_is_created_and_removed_with_its_partition() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let mut sa_client = lab.sa_client(3);
    let all = (Method::GET_TABLE, ComponentMask::of(&[]));
    let mut keys = |lab: &mut Lab, text: &str| {
        let partitions = Partitions::read("p", text.as_bytes()).expect("the partitions are valid");
        lab.sms[0].manager.set_partitions(partitions);
        // The SA client sees only groups of the partitions in its P_Key table. Therefore a sweep has to write this
        // table before the query.
        let now = lab.sim.now();
        lab.sms[0].manager.sweep(now);
        lab.run_for(5 * SECOND);
        let answer = lab.ask_records(&mut sa_client, all, &MCMemberRecord::zeroed());
        answer.records::<MCMemberRecord>().map(|it| it.p_key.0).collect::<Vec<_>>()
    };
    let default = "Default=0x7fff, ipoib : ALL=full ;\n";
    assert_eq!(keys(&mut lab, default), [0xffff]);
    assert_eq!(keys(&mut lab, &format!("{default}a=0x10, ipoib : ALL=full ;\n")), [0x8010, 0xffff]);
    assert_eq!(keys(&mut lab, &format!("{default}b=0x11 : ALL=full ;\n")), [0xffff]);
}

#[test]
fn events_give_the_reason_of_a_discovery_and_the_changes() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let first = std::mem::take(&mut lab.sms[0].changes);
    assert_eq!(first.len(), 1 + 18, "{first:?}");
    assert_eq!(first[0], "discovery: the SM starts");
    let name = lab.sim.node_name(lab.sim.place(lab.host(6)).0).to_owned();
    lab.command(&format!("power \"{name}\" off"));
    lab.run_for(Duration::from_secs(5));
    let changes = std::mem::take(&mut lab.sms[0].changes);
    assert!(changes[0].ends_with(" reported changes"), "{changes:?}");
    assert_eq!(changes[1..], ["port false", "link false"], "{changes:?}");
}

#[test]
fn response_has_the_hop_pointer_of_the_directed_route_request() {
    let mut lab = up("torus 3x3 hosts=1", SmConfig::default());
    let what = (AttributeId::SM_INFO, 0);
    let now = lab.sim.now();
    // The hop pointer of a received request depends on the kind of port. At a port of ibsim it is 0. At an HCA it is
    // one more than the number of hops.
    for pointer in [0, 3] {
        let mut mad = smp::directed_request(Method::GET, TransactionId(5), what, &[1, 2]);
        mad.set_hop_pointer(pointer);
        let asked = Datagram::new(Remote::directed(), mad);
        assert!(lab.sms[0].manager.handle(now, &Incoming::Received(asked)));
        let answer = lab.sms[0].manager.poll_transmit(now).unwrap();
        assert!(answer.mad.is_returning());
        assert_eq!(answer.mad.hop_pointer(), pointer);
    }
}

#[test]
fn p_keys_that_do_not_fit_into_a_port_table_are_reported() {
    let text: String = (1..=100).map(|key| format!("P{key}={key:#x}:ALL=full;\n")).collect();
    let partitions = Partitions::read("test", text.as_bytes()).unwrap();
    let lab = up("mesh 1x2", SmConfig { partitions, ..SmConfig::default() });
    let faults: Vec<String> = lab.sms[0].faults.iter().map(ToString::to_string).collect();
    let hosts =
        faults.iter().filter(|fault| fault.contains("further P_Keys are configured")).count();
    let switches = faults.iter().filter(|fault| fault.contains("nothing is checked")).count();
    assert_eq!((hosts, switches), (4, 2), "{faults:?}");
}

#[test]
fn traps_of_unknown_ports_start_at_most_one_discovery_a_second() {
    let mut lab = up("mesh 1x2", SmConfig::default());
    let sweeps = |lab: &Lab| lab.sms[0].manager.counters().sweeps;
    let before = sweeps(&lab);
    let mut notice = Notice::zeroed();
    notice.is_generic = true;
    notice.trap = TrapNumber::LINK_STATE_CHANGE;
    notice.issuer_lid = 0x7777;
    let mut mad = Mad::new(MgmtClass::SUBN_LID_ROUTED, Method::TRAP, TransactionId(5));
    mad.set_attribute(&notice);
    for _ in 0..100 {
        let datagram = Datagram::new(Remote::smi(0x7777), mad);
        let now = lab.sim.now();
        lab.sms[0].manager.handle(now, &Incoming::Received(datagram));
        lab.run_for(SECOND / 20);
    }
    let more = sweeps(&lab) - before;
    assert!((1..=6).contains(&more), "{more} discoveries in five seconds");
}
