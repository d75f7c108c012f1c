//! Traces of multicast groups.

use ib_tracer::{BranchEnd, Verdict};
use ib_types::{Gid, Guid, PKey, QKey};
use ib_wire::mad::AttributeId;
use ib_wire::mad::sa::{ComponentMask, JoinState, MCMemberRecord};

use crate::lab::Lab;

/// Joins hosts to a new multicast group. Returns the multicast LID.
fn group(lab: &mut Lab, hosts: &[usize]) -> u16 {
    let mut wanted = MCMemberRecord {
        q_key: QKey(0x1234),
        p_key: PKey::DEFAULT,
        join_state: JoinState::FULL_MEMBER,
        scope: 2,
        ..MCMemberRecord::zeroed()
    };
    for &host in hosts {
        wanted.port_gid = lab.host_gid(host);
        let new = wanted.mgid == Gid(0);
        let named: &[u8] = if new { &[1, 2, 6, 7, 12, 13, 15, 16] } else { &[0, 1, 16] };
        let answer = lab.join(host, ComponentMask::of(named), &wanted);
        (wanted.mgid, wanted.mlid) = (answer.mgid, answer.mlid);
    }
    lab.settle();
    wanted.mlid
}

#[test]
fn multicast_tree_reaches_each_member_once() {
    for kind in ["fat-tree 4", "torus 3x3 hosts=1"] {
        let mut lab = Lab::new(kind, "minhop", |_| true);
        let members = [0, 2, 5, 7];
        let mlid = group(&mut lab, &members);
        let (tree, tracer) = lab.trace_tree(mlid);
        let tree = tree.expect("the trace succeeds");
        let found: Vec<Guid> = tree.deliveries(tracer.model()).into_keys().collect();
        let mut expected: Vec<Guid> =
            members[1..].iter().map(|&host| lab.host_gid(host).guid()).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{kind}");
        assert!(tree.deliveries(tracer.model()).values().all(|&count| count == 1));
        assert_eq!(tree.duplicates().count(), 0);
        for branch in &tree.branches {
            let known = matches!(branch.verdict, Verdict::Validated | Verdict::Observed { .. });
            assert!(known, "{kind} {branch:?}");
        }
    }
}

#[test]
fn wrong_multicast_tables_are_detected() {
    let mut lab = Lab::new("torus 3x3 hosts=1", "minhop", |_| true);
    let mlid = group(&mut lab, &[0, 4, 8]);
    let (tree, tracer) = lab.trace_tree(mlid);
    let whole = tree.expect("the trace succeeds");
    let before = whole.deliveries(tracer.model());
    assert_eq!(before.len(), 2);
    // The tables are changed on their way to the tracer: each switch forwards packets out of all ports. The torus has
    // cycles, so switches receive duplicates.
    let switch = whole.branches[0].hop.node;
    let guid = tracer.model().node(switch).guid;
    lab.corrupt(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0xff);
        }
        true
    });
    let (tree, _) = lab.trace_tree(mlid);
    assert!(tree.expect("the trace succeeds").duplicates().count() > 0, "{guid}");
    // Now the tables that the tracer receives have no egress ports. According to them, each switch drops the packets.
    lab.corrupt(move |datagram| {
        if datagram.mad.attribute_id() == AttributeId::MULTICAST_FORWARDING {
            datagram.mad.data_mut()[..64].fill(0);
        }
        true
    });
    let (tree, tracer) = lab.trace_tree(mlid);
    let tree = tree.expect("the trace succeeds");
    assert!(tree.deliveries(tracer.model()).is_empty());
    assert_eq!(tree.branches.len(), 1);
    assert_eq!(tree.branches[0].end, BranchEnd::Sent(Vec::new()));
}
