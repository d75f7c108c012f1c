use super::*;

const PREFIX: u64 = Gid::DEFAULT_PREFIX;
const FULL: &[PKey] = &[PKey(0xffff)];
const OTHER: &[PKey] = &[PKey(0x8005)];
/// Bits of the component mask that OpenSM does not look at.
const MTU: u8 = 5;
const RATE: u8 = 9;

const GROUP: Gid = Gid(0xff12_4005_0000_0000_0000_0000_0000_0001);

fn port(number: u64) -> Gid {
    Gid::new(PREFIX, Guid(number))
}

fn applicant(asker: Gid) -> Applicant<'static> {
    let limits = PortLimits {
        mtu: MtuCode::MTU_2048,
        rate: RateCode::GBPS_100,
        life_time: LifeTimeCode(18),
    };
    Applicant { asker, asker_keys: FULL, keys: FULL, limits }
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

/// The mask of a request that makes a group where there is none.
fn mask() -> ComponentMask {
    let named = [MGID, PORT_GID, Q_KEY, TRAFFIC_CLASS, P_KEY, SL, FLOW_LABEL, JOIN_STATE];
    ComponentMask(named.iter().map(|bit| 1 << bit).sum())
}

fn join(groups: &mut Groups, of: &Applicant<'_>, record: &MCMemberRecord) -> Result<u8, MadStatus> {
    groups.join(mask(), record, of, PREFIX).map(|change| change.record.join_state.0)
}

fn leave(
    groups: &mut Groups,
    of: &Applicant<'_>,
    record: &MCMemberRecord,
) -> Result<(u8, bool), MadStatus> {
    let change = groups.leave(mask(), record, of)?;
    Ok((change.record.join_state.0, change.deleted))
}

#[test]
fn states_add_up_and_only_those_that_are_there_can_be_left() {
    let (mut groups, own) = (Groups::default(), applicant(port(1)));
    let with = |state| wanted(port(1), JoinState(state));
    assert_eq!(join(&mut groups, &own, &with(1)), Ok(1));
    assert_eq!(join(&mut groups, &own, &with(2)), Ok(3));
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(leave(&mut groups, &own, &with(6)), invalid, "it never was a send-only member");
    assert_eq!(leave(&mut groups, &own, &with(0)), invalid, "it names no state");
    assert_eq!(leave(&mut groups, &own, &with(2)), Ok((1, false)), "what is left is told");
    assert_eq!(leave(&mut groups, &own, &with(1)), Ok((0, true)));
    assert_eq!(leave(&mut groups, &own, &with(1)), invalid, "it has gone");
    assert_eq!(groups.members, 0);
}

#[test]
fn a_membership_is_changed_by_its_port_or_by_its_partition_when_another_asked_for_it() {
    let mut groups = Groups::default();
    let record = wanted(port(1), JoinState(1));
    assert_eq!(join(&mut groups, &applicant(port(1)), &record), Ok(1));
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(
        leave(&mut groups, &applicant(port(2)), &record),
        Err(MadStatus::SA_REQUEST_INVALID)
    );
    assert_eq!(join(&mut groups, &applicant(port(2)), &wanted(port(1), JoinState(2))), invalid);
    // The second port's membership is asked for by the first one: whoever is in the partition may end it.
    let record = wanted(port(2), JoinState(1));
    let change = groups.join(mask(), &record, &applicant(port(1)), PREFIX).unwrap();
    assert!(change.record.proxy_join);
    let stranger = Applicant { asker_keys: OTHER, ..applicant(port(3)) };
    assert_eq!(leave(&mut groups, &stranger, &record), Err(MadStatus::SA_REQUEST_INVALID));
    assert_eq!(leave(&mut groups, &applicant(port(3)), &record), Ok((0, false)));
}

#[test]
fn groups_are_for_the_ports_of_their_partition() {
    let mut groups = Groups::default();
    let record = wanted(port(1), JoinState(1));
    let stranger = Applicant { asker_keys: OTHER, keys: OTHER, ..applicant(port(1)) };
    let invalid = Err(MadStatus::SA_REQUEST_INVALID);
    assert_eq!(join(&mut groups, &stranger, &record), invalid, "it would make a group of others");
    assert_eq!(join(&mut groups, &applicant(port(2)), &wanted(port(2), JoinState(1))), Ok(1));
    // Whoever names no partition is asked for its own nevertheless.
    let unnamed = ComponentMask(1 << MGID | 1 << PORT_GID | 1 << JOIN_STATE);
    let joined = groups.join(unnamed, &record, &stranger, PREFIX);
    assert_eq!(joined.map(|change| change.created), Err(MadStatus::SA_REQUEST_INVALID));
    let by_stranger = Applicant { asker_keys: OTHER, ..applicant(port(3)) };
    assert_eq!(join(&mut groups, &by_stranger, &record), invalid, "they share no partition");
}

#[test]
fn addresses_that_are_none_make_no_group() {
    let own = applicant(port(1));
    let of = |head: u128| MCMemberRecord {
        mgid: Gid(head << 96 | 0x1234),
        ..wanted(port(1), JoinState(1))
    };
    let cases = [
        (0xef12_a01c, false, "no multicast address"),
        (0xff12_a01b, false, "of those that administration makes, but it ends at the link"),
        (0xff15_a01b, true, "of those that administration makes"),
        (0xff22_1234, false, "a reserved flag"),
        (0xff82_401b, false, "of IPoIB, but there is no broadcast group"),
        (0xff02_0000, true, "well known"),
    ];
    for (head, is_good, why) in cases {
        let joined = join(&mut Groups::default(), &own, &of(head));
        assert_eq!(joined.is_ok(), is_good, "{head:x}: {why}");
    }
}

#[test]
fn there_are_no_more_groups_than_the_switches_can_forward() {
    let (mut groups, own) = (Groups::default(), applicant(port(1)));
    groups.set_room(3);
    let of = |number: u128, mlid| MCMemberRecord {
        mgid: Gid(GROUP.0 + number),
        mlid,
        ..wanted(port(1), JoinState(1))
    };
    let named = ComponentMask(mask().0 | 1 << MLID);
    let beyond = groups.join(named, &of(9, 0xc003), &own, PREFIX);
    assert_eq!(beyond.map(|change| change.record.mlid), Ok(0xc000), "another MLID, as in OpenSM");
    assert_eq!(leave(&mut groups, &own, &of(9, 0)), Ok((0, true)));
    for number in 0..3 {
        assert_eq!(join(&mut groups, &own, &of(number, 0)), Ok(1));
    }
    assert_eq!(join(&mut groups, &own, &of(3, 0)), Err(MadStatus::SA_NO_RESOURCES));
    assert_eq!(leave(&mut groups, &own, &of(1, 0)), Ok((0, true)));
    assert_eq!(join(&mut groups, &own, &of(3, 0)), Ok(1), "there is room again");
}

#[test]
fn groups_of_ipoib_are_like_the_broadcast_group_of_their_partition() {
    let own = applicant(port(1));
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
    // What OpenSM 3.3.23 says to each.
    let cases = [
        (good, plain, true, "the same"),
        (MCMemberRecord { q_key: QKey(0), ..good }, plain, false, "another Q_Key"),
        (MCMemberRecord { sl: 1, ..good }, plain, false, "another service level"),
        (MCMemberRecord { traffic_class: 1, ..good }, plain, false, "another traffic class"),
        (MCMemberRecord { flow_label: 1, ..good }, plain, false, "another flow label"),
        (MCMemberRecord { hop_limit: 1, ..good }, plain, true, "the hop limit is not given"),
        (MCMemberRecord { hop_limit: 1, ..good }, hops, false, "another hop limit"),
        (MCMemberRecord { p_key: PKey(0x7fff), ..good }, plain, true, "a limited member"),
        (at(0xff12_601b_ffff, good), plain, true, "IPv6"),
        (at(0xff82_401b_ffff, good), plain, true, "its flags are taken as they are"),
        (
            at(0xff12_601b_ffff, MCMemberRecord { sl: 1, ..good }),
            plain,
            false,
            "IPv6, another level",
        ),
        (at(0xff15_401b_ffff, good), plain, false, "there is no broadcast group of this scope"),
        (at(0xff12_401b_8005, good), plain, false, "nor of this partition"),
        (at(0xff12_0000_ffff, MCMemberRecord { sl: 1, ..good }), plain, true, "no IPoIB"),
        (
            MCMemberRecord { mgid: Gid(0xff15_401b_ffff << 80 | 0xffff_ffff), sl: 1, ..good },
            plain,
            true,
            "the broadcast group may have anything",
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
            "MTU and rate may differ",
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
fn a_value_counts_with_its_selector_and_has_to_exist() {
    let made = |bits: &[u8], code| {
        let record = MCMemberRecord {
            mtu_selector: Selector::LESS,
            mtu: MtuCode(code),
            ..wanted(port(1), JoinState(1))
        };
        let mask = ComponentMask(mask().0 | bits.iter().map(|bit| 1 << bit).sum::<u64>());
        let joined = Groups::default().join(mask, &record, &applicant(port(1)), PREFIX);
        joined.map(|change| change.record.mtu.0)
    };
    assert_eq!(made(&[MTU_SELECTOR, MTU], 3), Ok(2));
    assert_eq!(made(&[MTU], 3), Ok(4), "OpenSM heeds a value only with its selector");
    assert_eq!(made(&[MTU_SELECTOR, MTU], 6), Err(MadStatus::SA_REQUEST_INVALID));
}
