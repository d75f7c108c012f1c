//! Multicast groups, and how changes of the subnet affect them.

use std::time::Duration;

use ib_sim::{Packet, Payload};
use ib_sm::SmConfig;
use ib_types::{Gid, Guid, PKey, QKey, Qpn, ServiceLevel};
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::mad::{AttributeId, MadStatus, Method};
use ib_wire::packet::{Bth, Deth, Opcode};

use crate::lab::Lab;

const SECOND: Duration = Duration::from_secs(1);

/// Brings up a fabric.
fn up(kind: &str) -> Lab {
    let mut lab = Lab::managed(kind);
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    lab
}

/// Joins a host to the group with the given MGID, or to a new group if the MGID is 0. Returns the group.
fn join(lab: &mut Lab, host: usize, mgid: Gid) -> MCMemberRecord {
    let wanted = MCMemberRecord {
        mgid,
        port_gid: lab.sim.link_port(lab.host(host)).gid(),
        q_key: QKey(0x1234),
        p_key: PKey::DEFAULT,
        join_state: JoinState::FULL_MEMBER,
        scope: 2,
        ..MCMemberRecord::zeroed()
    };
    let named: &[u8] = if mgid == Gid(0) { &[1, 2, 6, 7, 12, 13, 15, 16] } else { &[0, 1, 16] };
    let mut sa_client = lab.sa_client(host);
    let what = (Method::SET, ComponentMask::of(named));
    let answer = lab.ask_records(&mut sa_client, what, &wanted);
    assert_eq!(answer.status(), MadStatus::OK, "host {host}");
    answer.mad().attribute().expect("the response holds a record")
}

/// Joins the given hosts to a new group. Returns the group.
fn group(lab: &mut Lab, members: &[usize]) -> MCMemberRecord {
    let group = join(lab, members[0], Gid(0));
    for &host in &members[1..] {
        assert_eq!(join(lab, host, group.mgid).mlid, group.mlid);
    }
    lab.run_for(SECOND);
    group
}

/// Sends a packet to a group. Returns the hosts that have received it. A host that has received several copies is
/// returned several times.
fn delivered(lab: &mut Lab, from: usize, mlid: u16) -> Vec<usize> {
    let hosts = lab.hosts();
    for host in 0..hosts {
        lab.sim.open(lab.host(host));
    }
    let packet = Packet {
        slid: lab.lid(from),
        dlid: mlid,
        sl: ServiceLevel::default(),
        grh: None,
        payload: Payload::Transport(datagram()),
    };
    lab.sim.send_packet(lab.host(from), packet);
    lab.run_for(SECOND);
    let mut got = Vec::new();
    for host in 0..hosts {
        while lab.sim.receive_packet(lab.host(host)).is_some() {
            got.push(host);
        }
    }
    got
}

/// Returns BTH, DETH and payload of a UD packet to a group.
fn datagram() -> Vec<u8> {
    let bth = Bth { opcode: Opcode::UD_SEND_ONLY, ..Bth::default() };
    let mut bytes = vec![0; Bth::LENGTH + Deth::LENGTH + 4];
    bth.emit(bytes[..Bth::LENGTH].first_chunk_mut().expect("a BTH has 12 bytes"));
    let deth = Deth { q_key: QKey(0x1234), source: Qpn::truncated(9) };
    deth.emit(bytes[Bth::LENGTH..].first_chunk_mut().expect("the packet has room for a DETH"));
    bytes
}

#[test]
fn members_of_a_group_get_each_packet_once() {
    let mut lab = up("torus 3x3 hosts=1");
    let group = group(&mut lab, &[1, 4, 7]);
    assert!(group.mlid >= 0xc000);
    assert_eq!(delivered(&mut lab, 4, group.mlid), [1, 7]);
    // A port that has left the group does not receive packets to the group.
    let mut sa_client = lab.sa_client(7);
    let gone = MCMemberRecord {
        mgid: group.mgid,
        port_gid: lab.sim.link_port(lab.host(7)).gid(),
        join_state: JoinState::FULL_MEMBER,
        ..MCMemberRecord::zeroed()
    };
    let what = (Method::DELETE, ComponentMask::of(&[0, 1, 16]));
    assert_eq!(lab.ask_records(&mut sa_client, what, &gone).status(), MadStatus::OK);
    lab.run_for(SECOND);
    assert_eq!(delivered(&mut lab, 4, group.mlid), [1]);
}

#[test]
fn many_groups_are_delivered_each_to_its_members() {
    let mut lab = up("xgft 3,2,3 1,2,2");
    let members: Vec<Vec<usize>> = (0..40)
        .map(|number| vec![number % 18, (number * 7 + 3) % 18, (number * 5 + 11) % 18])
        .collect();
    let groups: Vec<u16> = members.iter().map(|members| group(&mut lab, members).mlid).collect();
    for (mlid, members) in groups.into_iter().zip(members) {
        let mut others: Vec<usize> = members[1..].to_vec();
        others.retain(|&host| host != members[0]);
        others.sort_unstable();
        others.dedup();
        assert_eq!(delivered(&mut lab, members[0], mlid), others, "{members:?}");
    }
}

#[test]
fn restarted_switch_gets_its_multicast_tables() {
    for switches in ["leaf", "all"] {
        let mut lab = up("torus 3x3 hosts=1");
        let group = group(&mut lab, &[1, 4, 7]);
        let own = lab.sim.place(lab.sim.peer(lab.host(0)).expect("host 0 is linked")).0;
        let leaf = lab.sim.place(lab.sim.peer(lab.host(4)).expect("host 4 is linked")).0;
        let nodes: Vec<_> = lab.sim.node_ids().filter(|&node| lab.sim.is_switch(node)).collect();
        let reset =
            nodes.into_iter().filter(|&at| if switches == "leaf" { at == leaf } else { at != own });
        let names: Vec<String> = reset.map(|node| lab.sim.node_name(node).to_owned()).collect();
        for name in &names {
            lab.command(&format!("power \"{name}\" off"));
            lab.command(&format!("power \"{name}\" on"));
        }
        lab.run_for(10 * SECOND);
        lab.check();
        // Switching the switch off has not removed the members from the group.
        assert_eq!(delivered(&mut lab, 1, group.mlid), [4, 7], "{switches}");
    }
}

#[test]
fn forgotten_client_is_requested_to_reregister() {
    let mut lab = up("torus 3x3 hosts=1");
    lab.corrupt(|datagram| {
        let mad = &mut datagram.mad;
        if mad.attribute_id() == AttributeId::PORT_INFO
            && let Some(mut info) = mad.attribute::<ib_wire::mad::sm::PortInfo>()
        {
            info.capability_mask.0 |= CapabilityMask::CLIENT_REREGISTRATION.0;
            mad.set_attribute(&info);
        }
    });
    let lid = lab.lid(4);
    let leaf = lab.sim.place(lab.sim.peer(lab.host(4)).expect("host 4 is linked")).0;
    let name = lab.sim.node_name(leaf).to_owned();
    let ports =
        (1..=20).filter_map(|number| lab.sim.find_port(leaf, number).map(|port| (number, port)));
    let between = ports.filter(|&(_, port)| {
        let peer = lab.sim.peer(port).map(|peer| lab.sim.place(peer).0);
        peer.is_some_and(|node| lab.sim.is_switch(node))
    });
    let between: Vec<u8> = between.map(|(number, _)| number).collect();
    for order in ["unlink", "relink"] {
        for number in &between {
            lab.command(&format!("{order} \"{name}\"[{number}]"));
        }
        lab.run_for(5 * SECOND);
    }
    lab.check();
    // Only links between switches were down. The link between host 4 and its switch was up all the time, so host 4
    // reregisters only if the SM requests it.
    assert!(lab.reregistered.contains(&lid), "{:?}", lab.reregistered);
    let others = lab.reregistered.iter().filter(|&&lid| lid == lab.lid(1)).count();
    assert_eq!(others, 0, "other ports are not requested to reregister");
    lab.reregistered.clear();
    let now = lab.sim.now();
    lab.sms[0].manager.sweep(now);
    lab.run_for(SECOND);
    assert!(lab.reregistered.is_empty(), "the SM sends no second request: {:?}", lab.reregistered);
}

#[test]
fn port_with_a_duplicate_guid_gets_no_lid() {
    let mut lab = Lab::new("torus 3x3 hosts=1");
    let (first, second) = (lab.host(3), lab.host(5));
    let guid: Guid = lab.sim.link_port(first).port_guid;
    let name = lab.sim.node_name(lab.sim.place(second).0).to_owned();
    lab.command(&format!("guid \"{name}\"[1] {guid}"));
    lab.add(0, SmConfig::default());
    lab.run_while(|lab| lab.sms[0].reports.is_empty());
    let faults: Vec<String> = lab.sms[0].faults.iter().map(ToString::to_string).collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains(&format!("GUID {guid} exists twice")), "{faults:?}");
    let lids = [first, second].map(|port| lab.sim.port_info(port).lid);
    assert!(lids.contains(&0) && lids.iter().any(|&lid| lid > 0), "{lids:?}");
    // A port gets a LID again once its GUID is unique.
    lab.command(&format!("guid \"{name}\"[1] 0x00dead0000beef00"));
    lab.run_for(30 * SECOND);
    lab.check();
}
