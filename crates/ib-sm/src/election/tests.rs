use ib_types::{Guid, NodeKind};
use ib_wire::mad::sm::{NodeInfo, NodeType};

use super::*;

fn manager(guid: u64, priority: u8, state: SmState) -> SmInfo {
    SmInfo { guid: Guid(guid), priority, state, ..SmInfo::zeroed() }
}

/// Returns a subnet with the given other SMs. The first of them is at node 0.
fn found(others: &[SmInfo]) -> DiscoveredSubnet {
    let mut found = DiscoveredSubnet::default();
    for (index, &info) in others.iter().enumerate() {
        let node_info = NodeInfo {
            node_type: NodeType::CHANNEL_ADAPTER,
            num_ports: 1,
            node_guid: Guid(100 + index as u64),
            ..NodeInfo::zeroed()
        };
        let node = found.add(NodeKind::ChannelAdapter, node_info, [].into());
        found.managers.insert(node.at(1), info);
    }
    found
}

const STATES: [SmState; 4] =
    [SmState::NOT_ACTIVE, SmState::DISCOVERING, SmState::STANDBY, SmState::MASTER];

#[test]
fn election_with_one_other_sm() {
    // Columns: state of this SM, state of the other SM, outcome if this SM wins the election, outcome if this SM loses.
    let port_index =
        found(&[manager(1, 0, SmState::MASTER)]).managers.keys().next().copied().unwrap();
    let (wait, give) = (Outcome::Standby(port_index), Outcome::HandOver(port_index));
    let table = [
        (SmState::DISCOVERING, SmState::NOT_ACTIVE, Outcome::Master, Outcome::Master),
        (SmState::DISCOVERING, SmState::DISCOVERING, Outcome::Master, wait),
        (SmState::DISCOVERING, SmState::STANDBY, Outcome::Master, wait),
        (SmState::DISCOVERING, SmState::MASTER, wait, wait),
        (SmState::MASTER, SmState::NOT_ACTIVE, Outcome::Master, Outcome::Master),
        (SmState::MASTER, SmState::DISCOVERING, Outcome::Master, Outcome::Master),
        (SmState::MASTER, SmState::STANDBY, Outcome::Master, give),
        (SmState::MASTER, SmState::MASTER, wait, give),
    ];
    for (own, other, worse, better) in table {
        let own = manager(5, 3, own);
        for (info, expected) in [
            (manager(6, 3, other), worse),
            (manager(4, 2, other), worse),
            (manager(4, 3, other), better),
            (manager(6, 4, other), better),
        ] {
            assert_eq!(decide(&own, &found(&[info])), expected, "{own:?} and {info:?}");
        }
    }
}

#[test]
fn standby_prefers_a_master_over_a_better_sm() {
    let others = found(&[
        manager(1, 9, SmState::STANDBY),
        manager(2, 4, SmState::MASTER),
        manager(3, 9, SmState::STANDBY),
    ]);
    let places: Vec<PortIndex> = others.managers.keys().copied().collect();
    let own = |state| manager(7, 5, state);
    assert_eq!(decide(&own(SmState::DISCOVERING), &others), Outcome::Standby(places[1]));
    assert_eq!(decide(&own(SmState::MASTER), &others), Outcome::HandOver(places[0]));
    assert_eq!(decide(&own(SmState::DISCOVERING), &found(&[])), Outcome::Master);
}

#[test]
fn every_set_sm_info_in_every_state() {
    for own in STATES {
        for sender in STATES {
            for modifier in 0..=6 {
                let expected = match (modifier, sender, own) {
                    (SmInfo::HANDOVER, SmState::MASTER, SmState::NOT_ACTIVE) => None,
                    (SmInfo::HANDOVER, SmState::MASTER, _) => Some(Order::TakeOver),
                    (SmInfo::ACKNOWLEDGE, SmState::STANDBY, _) => Some(Order::Nothing),
                    (SmInfo::DISABLE, SmState::MASTER, SmState::STANDBY) => Some(Order::Disable),
                    (SmInfo::STANDBY, SmState::MASTER, SmState::NOT_ACTIVE) => Some(Order::Standby),
                    (SmInfo::DISCOVER, SmState::MASTER, SmState::STANDBY) => Some(Order::Discover),
                    _ => None,
                };
                let result = order(own, &manager(1, 1, sender), modifier);
                assert_eq!(result.ok(), expected, "{own:?}, {sender:?}, {modifier}");
                if expected.is_none() {
                    assert_eq!(result, Err(MadStatus::BAD_FIELD));
                }
            }
        }
    }
}
