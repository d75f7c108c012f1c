use ib_types::NodeKind;

use super::*;

const CA: HopNode = HopNode { kind: NodeKind::ChannelAdapter, ports: 2 };
const SWITCH: HopNode = HopNode { kind: NodeKind::Switch, ports: 8 };
const ROUTER: HopNode = HopNode { kind: NodeKind::Router, ports: 8 };

/// Returns an SMP whose initial path is 1, 2, 3 … and whose return path is 4, 5, 6 …. After port 8, each path continues
/// with port 1.
fn smp(returning: bool, pointer: u8, count: u8, slid: u16, dlid: u16) -> Mad {
    let path: Vec<u8> = (1..=count).map(|hop| (hop - 1) % 8 + 1).collect();
    let id = (AttributeId::NODE_INFO, 0);
    let mut mad = directed_request(Method::GET, TransactionId(1), id, &path);
    mad.set_returning(returning);
    mad.set_hop_pointer(pointer);
    mad.set_dr_lids(slid, dlid);
    for hop in 1..=usize::from(count) {
        mad.0[RETURN_PATH + hop] = (hop as u8 + 2) % 8 + 1;
    }
    mad
}

/// Returns the expected action and hop pointer according to the table in [`hop`](super::hop).
fn expected(mad: &Mad, node: HopNode) -> (HopAction, u8) {
    let (hp, hc) = (mad.hop_pointer(), mad.hop_count());
    let switch = node.kind == NodeKind::Switch;
    let port = |path: &[u8; 64], hop: u8| HopAction::Forward(path[usize::from(hop)]);
    let not_a_switch = (HopAction::Drop(DropReason::NotASwitch), hp);
    let stray = (HopAction::Drop(DropReason::HopPointer { pointer: hp, count: hc }), hp);
    let end = |lid: u16, pointer: u8| match lid {
        PERMISSIVE_LID => (HopAction::Deliver, pointer),
        _ if switch => (HopAction::RouteByLid(lid), pointer),
        _ => not_a_switch,
    };
    match mad.is_returning() {
        false if hp == 0 && hc > 0 => match mad.dr_slid() {
            PERMISSIVE_LID => stray,
            _ if switch => (port(mad.initial_path(), 1), 1),
            _ => stray,
        },
        false if hp >= 1 && hp < hc && switch => (port(mad.initial_path(), hp + 1), hp + 1),
        false if hp >= 1 && hp < hc => not_a_switch,
        false if hp == hc => end(mad.dr_dlid(), hc + 1),
        false if hp == hc + 1 => (HopAction::Deliver, hp),
        true if hp == 0 => (HopAction::Deliver, 0),
        true if hp == 1 => end(mad.dr_slid(), 0),
        true if hp <= hc + 1 && switch => (port(mad.return_path(), hp - 1), hp - 1),
        true if hp <= hc + 1 => not_a_switch,
        _ => stray,
    }
}

#[test]
fn every_hop_pointer_and_direction_has_its_action() {
    for node in [CA, SWITCH, ROUTER] {
        for count in 0..=MAX_HOPS {
            for pointer in 0..=count + 3 {
                for returning in [false, true] {
                    for slid in [7, PERMISSIVE_LID] {
                        for dlid in [9, PERMISSIVE_LID] {
                            let before = smp(returning, pointer, count, slid, dlid);
                            let mut mad = before;
                            let action = receive(&mut mad, node, 5);
                            let context = format!("{node:?} {before:?}");
                            assert_eq!(
                                (action, mad.hop_pointer()),
                                expected(&before, node),
                                "{context}"
                            );
                            check_paths(&before, &mad, action);
                        }
                    }
                }
            }
        }
    }
}

/// Checks that `receive` writes arrival port 5 to the return path of a request, at the entry of the current hop. All
/// other entries remain unchanged, as do both paths of responses and of dropped SMPs.
fn check_paths(before: &Mad, after: &Mad, action: HopAction) {
    let pointer = usize::from(before.hop_pointer());
    let mut path = *before.return_path();
    let collects =
        !before.is_returning() && (1..=before.hop_count()).contains(&before.hop_pointer());
    if collects && !matches!(action, HopAction::Drop(_)) {
        path[pointer] = 5;
    }
    assert_eq!(*after.return_path(), path, "{before:?}");
    assert_eq!(after.initial_path(), before.initial_path());
}

#[test]
fn smp_to_a_missing_port_is_dropped() {
    for port in [0, 9, 255] {
        let mut mad = smp(false, 1, 2, PERMISSIVE_LID, PERMISSIVE_LID);
        mad.0[INITIAL_PATH + 2] = port;
        let before = mad;
        let reason = DropReason::NoSuchPort { port, ports: 8 };
        assert_eq!(receive(&mut mad, SWITCH, 3), HopAction::Drop(reason));
        assert_eq!(mad, before);
    }
}

#[test]
fn smp_with_too_many_hops_is_dropped() {
    let mut mad = smp(false, 1, 2, PERMISSIVE_LID, PERMISSIVE_LID);
    mad.0[7] = 64;
    assert_eq!(receive(&mut mad, SWITCH, 3), HopAction::Drop(DropReason::HopCount(64)));
    assert_eq!(send(&mut mad, SWITCH), HopAction::Drop(DropReason::HopCount(64)));
}

#[test]
fn request_follows_its_path_and_response_returns() {
    // The route: CA port 1, switch (ingress port 4, egress port 6), switch (ingress port 2, egress port 7), CA port 2.
    let id = (AttributeId::NODE_INFO, 0);
    let mut mad = directed_request(Method::GET, TransactionId(1), id, &[1, 6, 7]);
    assert_eq!(send(&mut mad, CA), HopAction::Forward(1));
    assert_eq!(receive(&mut mad, SWITCH, 4), HopAction::Forward(6));
    assert_eq!(receive(&mut mad, SWITCH, 2), HopAction::Forward(7));
    assert_eq!(receive(&mut mad, CA, 2), HopAction::Deliver);
    assert_eq!(mad.hop_pointer(), 4);
    assert_eq!(mad.return_path()[..5], [0, 4, 2, 2, 0]);

    answer(&mut mad, MadStatus::OK);
    assert_eq!((mad.method(), mad.is_returning()), (Method::GET_RESP, true));
    assert_eq!(send(&mut mad, CA), HopAction::Forward(2));
    assert_eq!(receive(&mut mad, SWITCH, 7), HopAction::Forward(2));
    assert_eq!(receive(&mut mad, SWITCH, 6), HopAction::Forward(4));
    assert_eq!(receive(&mut mad, CA, 1), HopAction::Deliver);
    assert_eq!(mad.hop_pointer(), 0);
}

#[test]
fn lid_routed_parts_at_both_ends_are_followed() {
    let id = (AttributeId::NODE_INFO, 0);
    let mut mad = directed_request(Method::GET, TransactionId(1), id, &[6, 7]);
    mad.set_dr_lids(11, 22);
    // The SMP arrives at the first switch of the directed route by LID routing. The switch at the end of
    // the directed route routes the SMP by LID again.
    assert_eq!(receive(&mut mad, SWITCH, 4), HopAction::Forward(6));
    assert_eq!(receive(&mut mad, SWITCH, 2), HopAction::Forward(7));
    assert_eq!(receive(&mut mad, SWITCH, 3), HopAction::RouteByLid(22));
    assert_eq!(receive(&mut mad, CA, 1), HopAction::Deliver);

    answer(&mut mad, MadStatus::OK);
    assert_eq!(receive(&mut mad, SWITCH, 8), HopAction::Forward(3));
    assert_eq!(receive(&mut mad, SWITCH, 7), HopAction::Forward(2));
    assert_eq!(receive(&mut mad, SWITCH, 6), HopAction::RouteByLid(11));
    assert_eq!(receive(&mut mad, CA, 1), HopAction::Deliver);
}

#[test]
fn smp_without_hops_is_delivered_locally() {
    for node in [CA, SWITCH] {
        let id = (AttributeId::NODE_INFO, 0);
        let mut mad = directed_request(Method::GET, TransactionId(1), id, &[]);
        assert_eq!(send(&mut mad, node), HopAction::Deliver);
        answer(&mut mad, MadStatus::OK);
        assert_eq!(send(&mut mad, node), HopAction::Deliver);
        assert_eq!(mad.hop_pointer(), 0);
    }
}
