use super::*;

const PREFIX: u64 = Gid::DEFAULT_PREFIX;
const FULL: &[PKey] = &[PKey(0xffff)];
const OTHER: &[PKey] = &[PKey(0x8005)];
/// Component mask bits of MTU and rate. Without their selectors, OpenSM ignores these values.
const MTU: u8 = 5;
const RATE: u8 = 9;

const GROUP: Gid = Gid(0xff12_4005_0000_0000_0000_0000_0000_0001);

fn port(number: u64) -> Gid {
    Gid::new(PREFIX, Guid(number))
}

fn membership(requester: Gid) -> MembershipRequest<'static> {
    let limits = PortLimits {
        mtu: MtuCode::MTU_2048,
        rate: RateCode::GBPS_100,
        life_time: LifeTimeCode(18),
    };
    MembershipRequest { requester, requester_keys: FULL, keys: FULL, limits }
}

fn wanted(member: Gid, state: JoinState) -> MCMemberRecord {
    MCMemberRecord {
        mgid: GROUP,
        port_gid: member,
        p_key: PKey::DEFAULT,
        join_state: state,
        ..MCMemberRecord::zeroed()
    }
}

/// Returns the component mask of a request that creates the group if it does not exist.
fn mask() -> ComponentMask {
    let named = [MGID, PORT_GID, Q_KEY, TRAFFIC_CLASS, P_KEY, SL, FLOW_LABEL, JOIN_STATE];
    ComponentMask(named.iter().map(|bit| 1 << bit).sum())
}

fn join(
    groups: &mut Groups,
    of: &MembershipRequest<'_>,
    record: &MCMemberRecord,
) -> Result<u8, MadStatus> {
    groups.join(mask(), record, of, PREFIX).map(|change| change.record.join_state.0)
}

fn leave(
    groups: &mut Groups,
    of: &MembershipRequest<'_>,
    record: &MCMemberRecord,
) -> Result<(u8, bool), MadStatus> {
    let change = groups.leave(mask(), record, of)?;
    Ok((change.record.join_state.0, change.deleted))
}

#[test]
fn join_states_add_up_and_only_present_ones_can_leave() {
    let (mut groups, own) = (Groups::default(), membership(port(1)));
    let with = |state| wanted(port(1), JoinState(state));
    assert_eq!(join(&mut groups, &own, &with(1)), Ok(1));
    assert_eq!(join(&mut groups, &own, &with(2)), Ok(3));
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(leave(&mut groups, &own, &with(6)), invalid, "the port is not a send-only member");
    assert_eq!(leave(&mut groups, &own, &with(0)), invalid, "the request names no join state");
    assert_eq!(
        leave(&mut groups, &own, &with(2)),
        Ok((1, false)),
        "the remaining state is returned"
    );
    assert_eq!(leave(&mut groups, &own, &with(1)), Ok((0, true)));
    assert_eq!(leave(&mut groups, &own, &with(1)), invalid, "the port is not a member any more");
    assert_eq!(groups.members, 0);
}

#[test]
fn proxy_membership_can_be_ended_by_the_partition() {
    let mut groups = Groups::default();
    let record = wanted(port(1), JoinState(1));
    assert_eq!(join(&mut groups, &membership(port(1)), &record), Ok(1));
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(
        leave(&mut groups, &membership(port(2)), &record),
        Err(MadStatus::SA_REQUEST_INVALID)
    );
    assert_eq!(join(&mut groups, &membership(port(2)), &wanted(port(1), JoinState(2))), invalid);
    // The first port has joined for the second one. Any port in the group's partition may now end this membership.
    let record = wanted(port(2), JoinState(1));
    let change = groups.join(mask(), &record, &membership(port(1)), PREFIX).unwrap();
    assert!(change.record.proxy_join);
    let stranger = MembershipRequest { requester_keys: OTHER, ..membership(port(3)) };
    assert_eq!(leave(&mut groups, &stranger, &record), Err(MadStatus::SA_REQUEST_INVALID));
    assert_eq!(leave(&mut groups, &membership(port(3)), &record), Ok((0, false)));
}

#[test]
fn groups_admit_only_ports_of_their_partition() {
    let mut groups = Groups::default();
    let record = wanted(port(1), JoinState(1));
    let stranger = MembershipRequest { requester_keys: OTHER, keys: OTHER, ..membership(port(1)) };
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(join(&mut groups, &stranger, &record), invalid, "the group is in another partition");
    assert_eq!(join(&mut groups, &membership(port(2)), &wanted(port(2), JoinState(1))), Ok(1));
    // The partition of the group is checked, even though the request gives no P_Key.
    let unnamed = ComponentMask(1 << MGID | 1 << PORT_GID | 1 << JOIN_STATE);
    let joined = groups.join(unnamed, &record, &stranger, PREFIX);
    assert_eq!(joined.map(|change| change.created), Err(MadStatus::SA_REQUEST_INVALID));
    let by_stranger = MembershipRequest { requester_keys: OTHER, ..membership(port(3)) };
    assert_eq!(join(&mut groups, &by_stranger, &record), invalid, "requester in another partition");
}

#[test]
fn invalid_mgids_create_no_group() {
    let own = membership(port(1));
    let of = |head: u128| MCMemberRecord {
        mgid: Gid(head << 96 | 0x1234),
        ..wanted(port(1), JoinState(1))
    };
    let cases = [
        (0xef12_a01c, false, "not a multicast GID"),
        (0xff12_a01b, false, "MGID with the signature of the SA and link-local scope"),
        (0xff15_a01b, true, "MGID with the signature of the SA"),
        (0xff22_1234, false, "reserved flag"),
        (0xff82_401b, false, "IPoIB group without a broadcast group"),
        (0xff02_0000, true, "well-known group"),
    ];
    for (head, is_good, why) in cases {
        let joined = join(&mut Groups::default(), &own, &of(head));
        assert_eq!(joined.is_ok(), is_good, "{head:x}: {why}");
    }
}

#[test]
fn number_of_groups_is_limited_by_the_switches() {
    let (mut groups, own) = (Groups::default(), membership(port(1)));
    groups.set_lid_limit(3);
    let of = |number: u128, mlid| MCMemberRecord {
        mgid: Gid(GROUP.0 + number),
        mlid,
        ..wanted(port(1), JoinState(1))
    };
    let named = ComponentMask(mask().0 | 1 << MLID);
    let beyond = groups.join(named, &of(9, 0xc003), &own, PREFIX);
    assert_eq!(
        beyond.map(|change| change.record.mlid),
        Ok(0xc000),
        "as in OpenSM, the SA assigns an MLID other than the requested one"
    );
    assert_eq!(leave(&mut groups, &own, &of(9, 0)), Ok((0, true)));
    for number in 0..3 {
        assert_eq!(join(&mut groups, &own, &of(number, 0)), Ok(1));
    }
    assert_eq!(join(&mut groups, &own, &of(3, 0)), Err(MadStatus::SA_NO_RESOURCES));
    assert_eq!(leave(&mut groups, &own, &of(1, 0)), Ok((0, true)));
    assert_eq!(join(&mut groups, &own, &of(3, 0)), Ok(1), "a multicast LID is free again");
}

#[test]
fn ipoib_groups_match_their_broadcast_group() {
    let own = membership(port(1));
    let mut groups = Groups::default();
    let group = partition::Group::broadcast(0x7fff);
    groups.add_of_partition(0x7fff, &group, LifeTimeCode(18)).unwrap();
    let good = MCMemberRecord {
        mgid: Gid(0xff12_401b_ffff << 80 | 0x1234),
        q_key: QKey(0xb1b),
        ..wanted(port(1), JoinState(1))
    };
    let at = |head: u128, record| MCMemberRecord { mgid: Gid(head << 80 | 0x1234), ..record };
    let exactly =
        |bits: &[u8]| ComponentMask(mask().0 | bits.iter().map(|bit| 1 << bit).sum::<u64>());
    let (plain, hops) = (mask(), exactly(&[HOP_LIMIT]));
    // Each case has a record, a component mask, and true if OpenSM 3.3.23 accepts the join.
    let cases = [
        (good, plain, true, "equal"),
        (MCMemberRecord { q_key: QKey(0), ..good }, plain, false, "another Q_Key"),
        (MCMemberRecord { sl: 1, ..good }, plain, false, "another service level"),
        (MCMemberRecord { traffic_class: 1, ..good }, plain, false, "another traffic class"),
        (MCMemberRecord { flow_label: 1, ..good }, plain, false, "another flow label"),
        (MCMemberRecord { hop_limit: 1, ..good }, plain, true, "hop limit outside the mask"),
        (MCMemberRecord { hop_limit: 1, ..good }, hops, false, "another hop limit"),
        (MCMemberRecord { p_key: PKey(0x7fff), ..good }, plain, true, "limited membership"),
        (at(0xff12_601b_ffff, good), plain, true, "IPv6"),
        (at(0xff82_401b_ffff, good), plain, true, "flags of IPoIB groups are not checked"),
        (
            at(0xff12_601b_ffff, MCMemberRecord { sl: 1, ..good }),
            plain,
            false,
            "IPv6, another service level",
        ),
        (at(0xff15_401b_ffff, good), plain, false, "no broadcast group of this scope"),
        (at(0xff12_401b_8005, good), plain, false, "no broadcast group of this partition"),
        (at(0xff12_0000_ffff, MCMemberRecord { sl: 1, ..good }), plain, true, "not IPoIB"),
        (
            MCMemberRecord { mgid: Gid(0xff15_401b_ffff << 80 | 0xffff_ffff), sl: 1, ..good },
            plain,
            true,
            "the broadcast group itself",
        ),
        (
            MCMemberRecord {
                mtu_selector: Selector::EXACTLY,
                mtu: MtuCode::MTU_256,
                rate_selector: Selector::EXACTLY,
                rate: RateCode::GBPS_2_5,
                ..good
            },
            exactly(&[MTU_SELECTOR, MTU, RATE_SELECTOR, RATE]),
            true,
            "another MTU and rate",
        ),
    ];
    for (record, mask, is_good, why) in cases {
        let joined = groups.join(mask, &record, &own, PREFIX);
        assert_eq!(joined.is_ok(), is_good, "{why}: {joined:?}");
        if is_good {
            groups.leave(mask, &record, &own).unwrap();
        }
    }
}

#[test]
fn group_value_needs_a_selector_and_a_defined_code() {
    let made = |bits: &[u8], code| {
        let record = MCMemberRecord {
            mtu_selector: Selector::LESS,
            mtu: MtuCode(code),
            ..wanted(port(1), JoinState(1))
        };
        let mask = ComponentMask(mask().0 | bits.iter().map(|bit| 1 << bit).sum::<u64>());
        let joined = Groups::default().join(mask, &record, &membership(port(1)), PREFIX);
        joined.map(|change| change.record.mtu.0)
    };
    assert_eq!(made(&[MTU_SELECTOR, MTU], 3), Ok(2));
    assert_eq!(made(&[MTU], 3), Ok(4), "a value without selector is ignored");
    assert_eq!(made(&[MTU_SELECTOR, MTU], 6), Err(MadStatus::SA_REQUEST_INVALID));
}
