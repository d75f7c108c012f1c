//! Tests of peers that send false claims, floods or malformed messages.

use super::*;
use crate::cache::MAX_ADDRESSES;

/// Returns a request for the address `to` from a peer with the address `from`.
pub(super) fn question(from: &Address, to: &Address) -> AcmMessage {
    let (source_type, source) = from.to_field();
    let (destination_type, destination) = to.to_field();
    let mut gids = [Gid::ZERO; 6];
    gids[0] = ib_wire::mad::acm::group_gid(PKey::DEFAULT, 0, RateCode::GBPS_10, MtuCode::MTU_2048);
    AcmMessage {
        base_version: 1,
        class: MgmtClass::ACM,
        class_version: 1,
        method: Method::GET,
        control: AcmMessage::RESOLVE,
        transaction_id: TransactionId(77),
        destination_type,
        destination_length: 64,
        source_type,
        source_length: 64,
        gid_count: 1,
        destination,
        source,
        gids,
        ..AcmMessage::zeroed()
    }
}

/// Returns three hosts. Host 0 has cached host 1. Tests use host 2 as the source of false claims.
pub(super) fn three() -> Net {
    let mut net = Net::new(3, &by_group());
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    net.events(0);
    net
}

#[test]
fn claim_is_rejected_while_the_owner_responds() {
    let mut net = three();
    let lie = question(&name(1), &name(0)).to_bytes();
    net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &lie);
    net.settle();
    assert_eq!(net.find(0, &name(1)).map(|path| path.dgid), Ok(gid(1)));
    assert_eq!(net.counters(0).conflicts, 1);
    let conflict = Event::Conflict {
        endpoint: EndpointName { device: "dev0".into(), port: 1, p_key: PKey::DEFAULT },
        address: name(1),
        owner: gid(1),
        other: gid(2),
    };
    assert!(net.events(0).contains(&conflict));
    // The service accepts the claim when the owner of the address no longer responds.
    net.off.push(1);
    net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &lie);
    net.settle();
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dgid), Ok(gid(2)));
}

#[test]
fn claims_to_other_gids_and_lids_are_rejected() {
    let mut net = three();
    let before = net.counters(0);
    for claimed in [Address::Lid(lid(1)), Address::Gid(gid(1)), Address::Lid(77)] {
        let lie = question(&claimed, &name(0)).to_bytes();
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &lie);
    }
    net.settle();
    assert_eq!(net.counters(0).malformed, before.malformed + 3);
    assert_eq!(net.find(0, &Address::Lid(lid(1))).map(|path| path.dgid), Ok(gid(1)));
    assert_eq!(net.find(0, &Address::Gid(gid(1))).map(|path| path.dlid), Ok(lid(1)));
    assert!(net.find(0, &Address::Lid(77)).is_err());
}

#[test]
fn claim_to_another_gid_does_not_change_its_lid() {
    let mut net = three();
    let lie = question(&name(1), &name(0)).to_bytes();
    net.deliver(0, gid(1), lid(2), Qpn::truncated(0x102), &lie);
    net.settle();
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    // A claim to only the GID, in a message without a name, is rejected as well.
    let claim = question(&Address::Gid(gid(1)), &name(0)).to_bytes();
    net.deliver(0, gid(1), lid(2), Qpn::truncated(0x102), &claim);
    net.settle();
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    // Messages are ignored if their source GID is in another subnet, is a multicast GID, has GUID 0, or is the GID of
    // the receiver.
    let before = net.counters(0);
    for gid in [Gid(7), Gid(0xff << 120 | 1), Gid::new(PREFIX, Guid(0)), gid(0)] {
        net.deliver(0, gid, lid(2), Qpn::truncated(0x102), &lie);
    }
    assert_eq!(net.counters(0).heard, before.heard);
    for (lid, qpn) in [(0, 0x102), (0xc001, 0x102), (3, 0), (3, 1), (3, 0xff_ffff)] {
        net.deliver(0, gid(2), lid, Qpn::truncated(qpn), &lie);
    }
    assert_eq!(net.counters(0).heard, before.heard);
}

#[test]
fn unsolicited_responses_are_ignored() {
    let mut net = three();
    let before = net.hosts[0].service.cached(net.now, None);
    let mut answer = question(&name(2), &name(2));
    answer.method = Method::GET_RESP;
    for tid in 0..1000 {
        answer.transaction_id = TransactionId(tid);
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &answer.to_bytes());
    }
    assert_eq!(net.counters(0).unasked, 1000);
    assert_eq!(net.hosts[0].service.cached(net.now, None), before);
}

#[test]
fn unsolicited_sa_responses_are_ignored() {
    let mut net = three();
    for (id, tid) in [(AttributeId::MC_MEMBER_RECORD, 5), (AttributeId::PATH_RECORD, 6)] {
        for tid in [tid, 0x2c_0000_0000 | tid] {
            let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_RESP, TransactionId(tid));
            mad.set_attribute_id(id);
            let datagram = Datagram::new(ib_link::Remote::gsi(100), mad);
            let arrived = Arrived::Mad(Box::new(Incoming::Received(datagram)));
            net.hosts[0].service.handle(net.now, PORT, arrived);
        }
    }
    net.settle();
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
}

#[test]
fn join_response_with_another_group_is_rejected() {
    for lie in [
        |record: &mut MCMemberRecord| record.mgid = Gid(0xff15 << 112),
        |record: &mut MCMemberRecord| record.mlid = 5,
        |record: &mut MCMemberRecord| record.mlid = 0xffff,
    ] {
        let mut service = Service::new(by_group(), [3; 32]);
        let now = Instant::ZERO;
        service.set_port(now, PORT, &state(0));
        let mut asked = None;
        while let Some(action) = service.poll_action(now, PORT) {
            if let Action::Mad(datagram) = action {
                asked = asked.or(Some(*datagram));
            }
        }
        let asked = asked.expect("the service requests a join");
        let mut mad = asked.mad;
        let mut record: MCMemberRecord = mad.attribute().expect("the MAD contains a record");
        record.mlid = MLID;
        lie(&mut record);
        mad.set_attribute(&record);
        mad.answer(MadStatus::OK);
        let answer = Incoming::Received(asked.reply(mad));
        service.handle(now, PORT, Arrived::Mad(Box::new(answer)));
        let refused = std::iter::from_fn(|| service.poll_event());
        assert!(refused.into_iter().any(|event| matches!(event, Event::NotJoined { .. })));
        assert!(!service.endpoints()[0].is_up);
    }
}

#[test]
fn malformed_messages_are_dropped_and_counted() {
    let mut net = three();
    let good = question(&name(2), &name(0));
    type Spoil = fn(&mut AcmMessage);
    let bad: [(&str, Spoil); 12] = [
        ("base version", |it| it.base_version = 2),
        ("class", |it| it.class = MgmtClass(0x2d)),
        ("class version", |it| it.class_version = 2),
        ("method", |it| it.method = Method::SET),
        ("control", |it| it.control = 9),
        ("seven groups", |it| it.gid_count = 7),
        ("255 groups", |it| it.gid_count = 255),
        ("a short source", |it| it.source_length = 4),
        ("a long destination", |it| it.destination_length = 255),
        ("an unterminated source", |it| (it.source_type, it.source) = (1.into_type(), [b'x'; 64])),
        ("a source of type 0", |it| it.source_type = 0.into_type()),
        ("a destination of unknown type", |it| it.destination_type = 99.into_type()),
    ];
    for (what, spoil) in bad {
        let (mut message, before) = (good, net.counters(0));
        spoil(&mut message);
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &message.to_bytes());
        assert_eq!(net.counters(0).malformed, before.malformed + 1, "{what}");
        assert_eq!(net.counters(0).heard, before.heard, "{what}");
    }
    for length in [0, 1, 23, 24, 152, 255, 257, 4096] {
        let before = net.counters(0).malformed;
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &vec![1; length]);
        assert_eq!(net.counters(0).malformed, before + 1);
    }
    // A message of an older service version is accepted: without further addresses, and with zeros in reserved fields.
    net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &good.to_bytes());
    assert_eq!(net.find(0, &name(2)).map(|path| path.dgid), Ok(gid(2)));
}

trait IntoType {
    fn into_type(self) -> ib_wire::mad::acm::AddressType;
}

impl IntoType for u8 {
    fn into_type(self) -> ib_wire::mad::acm::AddressType {
        ib_wire::mad::acm::AddressType(self)
    }
}

#[test]
fn addresses_of_a_gid_are_limited() {
    let mut net = three();
    for number in 0..1000 {
        let name = Address::name(&format!("alias{number}")).expect("the name is valid");
        let message = question(&name, &self::name(9));
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &message.to_bytes());
    }
    let known = net.hosts[0].service.cached(net.now, None);
    let of_it = known.iter().filter(|it| it.gid == gid(2)).count();
    assert_eq!(of_it, usize::from(MAX_ADDRESSES));
    assert_eq!(net.counters(0).refused, 1000 - u64::from(MAX_ADDRESSES));
    assert_eq!(net.find(0, &name(1)).map(|path| path.dgid), Ok(gid(1)));
}

#[test]
fn flood_is_dropped_and_reported_once() {
    let mut net = three();
    let message = question(&name(2), &name(9)).to_bytes();
    for _ in 0..100_000 {
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &message);
    }
    let floods = net.events(0).into_iter().filter(|it| matches!(it, Event::Flood { .. })).count();
    assert_eq!(floods, 1);
    assert!(net.counters(0).flooded > 90_000);
    let message = question(&name(1), &name(0)).to_bytes();
    let before = net.counters(0).answers;
    net.deliver(0, gid(1), lid(1), Qpn::truncated(0x101), &message);
    assert_eq!(net.counters(0).answers, before + 1);
}

#[test]
fn full_cache_keeps_used_entries() {
    let config = ServiceConfig { max_destinations: 50, ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    for number in 0..500_u16 {
        net.run_for(Duration::from_millis(200));
        let name = Address::name(&format!("other{number}")).expect("the name is valid");
        let message = question(&name, &self::name(9));
        let gid = Gid::new(PREFIX, Guid(0x9000 + u64::from(number)));
        net.deliver(0, gid, 100 + number, Qpn::truncated(0x200), &message.to_bytes());
        net.find(0, &self::name(1)).expect("the address is resolved");
        assert!(net.hosts[0].service.endpoints()[0].cached_addresses <= 50);
    }
    assert!(net.counters(0).multicasts <= 2, "entries in use are never evicted");
}

#[test]
fn lids_of_removed_peers_are_removed() {
    let config = ServiceConfig { max_destinations: 50, ..by_group() };
    let mut net = Net::new(2, &config);
    for number in 0..2000_u16 {
        let name = Address::name(&format!("other{number}")).expect("the name is valid");
        let message = question(&name, &self::name(9));
        let gid = Gid::new(PREFIX, Guid(0x9000 + u64::from(number)));
        net.deliver(0, gid, 100 + number, Qpn::truncated(0x200), &message.to_bytes());
        let table = &net.resolver().peers.table;
        let lids = table.lid_count();
        assert!(table.cache.peers() <= 50 && lids <= 2 * 51 + 64, "{lids} LIDs");
    }
}

#[test]
fn response_cannot_claim_other_gids() {
    let mut net = three();
    // Host 2 is queried for its name, and its response claims addresses of other hosts.
    net.off.push(2);
    assert_eq!(net.cached_path(0, &name(2)), None);
    let (_, _, asked) =
        net.sent.iter().rev().find(|(from, ..)| *from == 0).expect("host 0 has sent a request");
    let mut answer = AcmMessage::parse(asked);
    answer.method = Method::GET_RESP;
    let mut bytes = answer.to_bytes();
    let ip = Address::V4([10, 0, 0, 77].into());
    let nobodys = Address::Gid(Gid::new(PREFIX, Guid(0x7777)));
    let claims = [Address::Gid(gid(1)), nobodys.clone(), ip.clone()];
    further_addresses::write_further_addresses(&mut bytes, &name(2), &claims);
    assert_eq!(bytes[23], 3, "the message has room for all three addresses");
    let before = net.counters(0);
    net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &bytes);
    net.settle();
    assert_eq!(
        net.cached_path(0, &ip).map(|path| path.dgid),
        Some(gid(2)),
        "the response is accepted"
    );
    assert_eq!(net.cached_path(0, &Address::Gid(gid(1))).map(|path| path.dlid), Some(lid(1)));
    assert_eq!(net.counters(0).checks, before.checks, "the response causes no check");
    assert_eq!(net.cached_path(0, &nobodys), None);
}

#[test]
fn claim_to_a_gid_reported_by_the_sa_is_rejected() {
    for config in [quiet(), by_group()] {
        let mut net = Net::new(3, &config);
        net.run_for(Duration::from_secs(1));
        net.off.push(1);
        let to = Address::Gid(gid(1));
        assert_eq!(net.find(0, &to).map(|path| path.dlid), Ok(lid(1)));
        let before = net.counters(0).sa_queries;
        let taken = Address::name("taken").expect("the name is valid");
        let lie = question(&taken, &name(0)).to_bytes();
        for _ in 0..200 {
            net.deliver(0, gid(1), lid(2), Qpn::truncated(0x102), &lie);
            net.settle();
            assert_eq!(net.cached_path(0, &to).map(|path| path.dlid), Some(lid(1)));
            net.run_for(Duration::from_millis(200));
        }
        assert!(!net.hosts[0].service.cached(net.now, None).iter().any(|it| it.address == taken));
        let asked = net.counters(0).sa_queries - before;
        assert!((2..=6).contains(&asked), "{asked}");
    }
}

#[test]
fn new_lid_of_a_port_reported_by_the_sa_is_found() {
    for wait in [1, 60] {
        let mut net = Net::new(2, &by_group());
        net.run_for(Duration::from_secs(1));
        net.find(0, &Address::Gid(gid(1))).expect("the address is resolved");
        net.run_for(Duration::from_secs(wait));
        net.hosts[1].state.link.lid = 30;
        net.update(1);
        net.settle();
        // The host with the new LID sends one request.
        net.find(1, &Address::name("nobody").expect("the name is valid"))
            .expect_err("the name has no owner");
        net.run_for(Duration::from_secs(15));
        let found = net.cached_path(0, &Address::Gid(gid(1)));
        assert_eq!(found.map(|path| path.dlid), Some(30), "{wait}");
        // From now on, the service accepts the claims of host 1.
        assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(30));
    }
}

#[test]
fn gids_of_a_port_are_limited() {
    let config = ServiceConfig { max_destinations: 200, ..by_group() };
    let mut net = Net::new(40, &config);
    net.run_for(Duration::from_secs(1));
    for host in 1..40 {
        net.find(0, &name(host)).expect("the address is resolved");
    }
    let (multicasts, refused) = (net.counters(0).multicasts, net.counters(0).refused);
    for number in 0..5000_u64 {
        let name = Address::name(&format!("alias{number}")).expect("the name is valid");
        let gid = Gid::new(PREFIX, Guid(0x9000 + number));
        let message = question(&name, &self::name(99)).to_bytes();
        net.deliver(0, gid, lid(2), Qpn::truncated(0x102), &message);
        // The service has accepted the first GID, so further messages from this GID do not claim a new GID.
        if number % 100 == 0 {
            let gid = Gid::new(PREFIX, Guid(0x9000));
            net.deliver(0, gid, lid(2), Qpn::truncated(0x102), &message);
        }
        net.run_for(Duration::from_millis(2));
    }
    assert!(net.counters(0).refused - refused > 4500);
    let known = net.hosts[0].service.cached(net.now, None);
    let of_it = |gid: Gid| (0x9000..0x9000 + 5000).contains(&gid.guid().0);
    let mut gids: Vec<Gid> = known.iter().map(|it| it.gid).filter(|&gid| of_it(gid)).collect();
    gids.sort();
    gids.dedup();
    // The service accepts 16 new GIDs of a port in a minute. One of them was the GID of host 2.
    assert_eq!(gids.len(), 15);
    for host in 1..40 {
        assert!(net.cached_path(0, &name(host)).is_some());
    }
    assert_eq!(net.counters(0).multicasts, multicasts);
    // After a minute, the service accepts another new GID of the port.
    net.run_for(Duration::from_secs(61));
    let late = Gid::new(PREFIX, Guid(0xa000));
    let message =
        question(&Address::name("late").expect("the name is valid"), &name(99)).to_bytes();
    net.deliver(0, late, lid(2), Qpn::truncated(0x102), &message);
    assert!(net.hosts[0].service.cached(net.now, None).iter().any(|it| it.gid == late));
}

#[test]
fn late_claim_does_not_override_a_new_owner() {
    let mut net = Net::new(4, &by_group());
    net.run_for(Duration::from_secs(1));
    let shared = Address::name("shared").expect("the name is valid");
    let says = question(&shared, &name(99)).to_bytes();
    net.deliver(0, gid(1), lid(1), Qpn::truncated(0x101), &says);
    // Another port claims the address. The owner does not respond to the check.
    net.off.push(1);
    net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &says);
    // Before the check ends, the address moves to host 3, which claims it.
    net.resolver().peers.table.cache.unbind(&shared);
    net.hosts[3].state.names.push(shared.clone());
    net.update(3);
    net.deliver(0, gid(3), lid(3), Qpn::truncated(0x103), &says);
    for _ in 0..50 {
        net.run_for(Duration::from_millis(200));
        assert_eq!(
            net.cached_path(0, &shared).map(|path| path.dgid),
            Some(gid(3)),
            "{:?}",
            net.now
        );
    }
}
