//! The SM respects the capabilities of ports and switches, and reports limits that result from them.

use ib_sim::{Options, Sim};
use ib_sm::{Alarm, Fault, QosConfig, SmConfig};
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};
use ib_wire::mad::sm::{MtuCode, PortInfo, PortState, SwitchInfo, VlCap};
use ib_wire::mad::{AttributeId, MadStatus, Method};

use crate::lab::{Lab, generated};
use crate::walk::{Connected, Host};

/// Starts an SM, and waits until the subnet is up. `change` changes each PortInfo that the SM receives.
fn with_port_info(kind: &str, config: SmConfig, change: impl Fn(&mut PortInfo) + 'static) -> Lab {
    let mut lab = Lab::new(kind);
    lab.corrupt(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::PORT_INFO
            && let Some(mut info) = datagram.mad.attribute::<PortInfo>()
        {
            change(&mut info);
            datagram.mad.set_attribute(&info);
        }
    });
    lab.add(0, config);
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab
}

#[test]
fn lids_do_not_exceed_linear_fdb_cap() {
    for cap in [64, 100] {
        let options = Options { linear_fdb_cap: cap, ..Options::default() };
        let mut lab = Lab::with(Sim::new(&generated("torus 5x5 hosts=4"), options));
        let own = lab.host(0);
        lab.add(0, SmConfig::default());
        lab.run_while(|lab| lab.sms[0].reports.is_empty());
        let sm = &lab.sms[0];
        let no_lid = |fault: &&Fault| matches!(fault, Fault::NoLid { .. });
        // 125 ports need a LID, but only `cap - 1` LIDs are usable, because LID 0 is not valid.
        let without = 125 - (usize::from(cap) - 1);
        assert_eq!(sm.faults.iter().filter(no_lid).count(), without);
        assert_eq!(sm.faults.len(), without);
        assert_eq!(sm.last().faults, without);
        let sim = &lab.sim;
        let connected = Connected::to(sim, own);
        assert!(connected.hosts.iter().all(|host| sim.port_info(host.port).lid < cap));
        let (served, left): (Vec<Host>, Vec<Host>) =
            connected.hosts.iter().partition(|host| sim.port_info(host.port).lid > 0);
        assert_eq!(left.len(), without, "all ports without a LID are hosts");
        for host in left {
            assert_eq!(sim.port_info(host.port).port_state, PortState::INIT);
        }
        for &from in &served {
            for &to in served.iter().filter(|to| to.port != from.port) {
                connected.walk(from, to, |_| {}).expect("hosts with LIDs are connected");
            }
        }
    }
}

#[test]
fn groups_do_not_exceed_multicast_fdb_cap() {
    let options = Options { multicast_fdb_cap: 2, ..Options::default() };
    let mut lab = Lab::with(Sim::new(&generated("mesh 1x2"), options));
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let mut client = lab.sa_client(1);
    let port_gid = ib_types::Gid::new(ib_types::Gid::DEFAULT_PREFIX, {
        let host = lab.host(1);
        lab.sim.link_port(host).port_guid
    });
    let mut statuses = Vec::new();
    for group in 0..3_u64 {
        let mut join = MCMemberRecord::zeroed();
        join.mgid = ib_types::Gid::new(0xff12_601b_ffff_0000, ib_types::Guid(0x1_0000 + group));
        join.port_gid = port_gid;
        join.p_key = ib_types::PKey(0xffff);
        join.q_key = ib_types::QKey(0x0b1b);
        join.join_state = JoinState::FULL_MEMBER;
        // The mask selects MGID, PortGID, Q_Key, TrafficClass, P_Key, SL, FlowLabel and JoinState.
        let mask = ComponentMask::of(&[0, 1, 2, 6, 7, 12, 13, 16]);
        let answer = lab.ask_records(&mut client, (Method::SET, mask), &join);
        statuses.push(answer.status());
    }
    assert_eq!(statuses[0], MadStatus::OK);
    assert_ne!(
        statuses[2],
        MadStatus::OK,
        "the switches can forward only two groups: {statuses:?}"
    );
}

#[test]
fn oper_vls_do_not_exceed_vl_cap() {
    // With a single VL, lash cannot separate paths into layers.
    let lash = ib_sm::RoutingConfig {
        engines: "lash".parse().expect("lash is an engine"),
        ..ib_sm::RoutingConfig::default()
    };
    let config = SmConfig { routing: lash, ..SmConfig::default() };
    let lab = with_port_info("torus 5x5 hosts=1", config, |info| info.vl_cap = VlCap::VL0);
    assert!(lab.sms[0].manager.alarms().any(|it| matches!(it.alarm, Alarm::CreditLoops { .. })));
    for node in lab.sim.node_ids().filter(|&node| lab.sim.is_switch(node)) {
        for port in crate::walk::ports(&lab.sim, node) {
            if lab.live_peer(port).is_some() {
                assert_eq!(lab.sim.port_info(port).operational_vls, VlCap::VL0);
            }
        }
    }
    lab.check();
}

#[test]
fn vl_arbitration_entries_do_not_exceed_the_caps() {
    let config = SmConfig { qos: Some(QosConfig::default()), ..SmConfig::default() };
    let lab = with_port_info("mesh 2x2 hosts=1", config.clone(), |info| {
        (info.vl_arbitration_low_cap, info.vl_arbitration_high_cap) = (0, 0);
    });
    assert_eq!(lab.sms[0].last().written.arbitration_blocks, 0);
    lab.check();
    let lab = with_port_info("mesh 2x2 hosts=1", config, |_| {});
    assert!(lab.sms[0].last().written.arbitration_blocks > 0);
}

#[test]
fn neighbor_mtu_does_not_exceed_either_mtu_cap() {
    let lab = with_port_info("mesh 2x2 hosts=1", SmConfig::default(), |info| {
        info.mtu_cap = MtuCode::MTU_512;
    });
    for node in lab.sim.node_ids() {
        for port in crate::walk::ports(&lab.sim, node) {
            if lab.live_peer(port).is_some() {
                assert_eq!(lab.sim.port_info(port).neighbor_mtu, MtuCode::MTU_512);
            }
        }
    }
    lab.check();
}

#[test]
fn enforcement_is_not_set_on_switches_without_the_capability() {
    let mut lab = Lab::new("mesh 2x2 hosts=1");
    lab.corrupt(|datagram| {
        if datagram.mad.attribute_id() == AttributeId::SWITCH_INFO
            && let Some(mut info) = datagram.mad.attribute::<SwitchInfo>()
        {
            info.partition_enforcement_cap = 0;
            datagram.mad.set_attribute(&info);
        }
    });
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    assert_eq!(lab.sms[0].faults, []);
    let leaf = lab.sim.peer(lab.host(1)).expect("host 1 has a link");
    assert!(!lab.sim.port_info(leaf).partition_enforcement_inbound);
    lab.check();
}
