//! Tests that the CM parses messages of Linux 6.1, and sends the same bytes for the same parameters.
//!
//! The messages are from two Linux hosts with the addresses 192.168.77.1 and 192.168.77.2 or, with IPv6, `fd00::1` and
//! `fd00::2`. Trailing zeros of the messages are omitted.

use ib_types::PKey as PartitionKey;
use ib_wire::mad::cm::{RejectReason, Rep};

use super::*;

const REQ: &str = "010702030000000000000002980e1545001000000000000045150e9800000000\
    00000000010604d2505400fffe00770200000000000000000000110000000000000000a0ccd920a7ffff37f0\
    ffffffff00000000000000000000ffffc0a84d0200000000000000000000ffffc0a84d010354100000400098\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    004085b1000000000000000000000000c0a84d02000000000000000000000000c0a84d01\
    0000bd1b0002000003000100af4d2ac7c21e4b34b6874df3044e572a2d6ff10b7cfc44878f49dbaadfc5711c01";
const REP: &str = "010702030000000000000002980e15450013000000000000b35172e845150e98\
    00000000000011000000000064dd1500000078e0505400fffe007701bd1b00020000000200f001000010000002";
const RTU: &str = "010702030000000000000002980e1545001400000000000045150e98b35172e8";
const DREQ: &str = "010702030000000000000002980e1545001500000000000045150e98b35172e8000011";
const DREP: &str = "010702030000000000000002980e15450016000000000000b35172e845150e98";

/// A REQ with IPv6 addresses to a port without a listener. The next constant is its REJ.
const REQ_UNSERVED: &str = "0107020300000000000000027ae8925500100000000000005592e87a00000000\
    00000000010610e1505400fffe00770200000000000000000000150000000000000000a05e7251a7ffff37f0\
    fffffffffd000000000000000000000000000002fd000000000000000000000000000001ce05600000400098\
    0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
    0060edebfd000000000000000000000000000002fd000000000000000000000000000001\
    0000bd1b00020000030001000e0479023ea743139cfbd3cb750321383c0a17c66c824e738592c8d6ae718f8b01";
const REJ_UNSERVED: &str =
    "0107020300000000000000027ae892550012000000000000000000005592e87a00000008";

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn golden(hex: &str) -> Mad {
    let mut mad = Mad::default();
    let bytes = bytes(hex);
    mad.0[..bytes.len()].copy_from_slice(&bytes);
    mad
}

/// Position of the local communication ID in a MAD.
const LOCAL: std::ops::Range<usize> = 24..28;
/// Position of the remote communication ID in a MAD.
const REMOTE: std::ops::Range<usize> = 28..32;
/// Position of the transaction ID in a MAD.
const TRANSACTION: std::ops::Range<usize> = 8..16;

/// Replaces the bytes at this position of a MAD, and returns the MAD.
fn with(mut mad: Mad, at: std::ops::Range<usize>, other: &[u8]) -> Mad {
    mad.0[at].copy_from_slice(other);
    mad
}

fn linux(guid: u64, seed: u8) -> Cm {
    let settings = CmConfig { ca_guid: Guid(guid), response_timeout: 20, ..CmConfig::default() };
    Cm::new(settings, [seed; 32])
}

const ACTIVE_GUID: u64 = 0x5054_00ff_fe00_7702;
const PASSIVE_GUID: u64 = 0x5054_00ff_fe00_7701;

fn address(last: u8) -> Gid {
    Gid::from_bytes(std::net::Ipv4Addr::new(192, 168, 77, last).to_ipv6_mapped().octets())
}

fn ethernet_route(from: u8, to: u8) -> Route {
    let (source, destination) = (address(from), address(to));
    Route { source, destination, is_global: true, flow_label: 0x3541, ..Route::default() }
}

#[test]
fn active_side_sends_the_same_bytes_as_linux() {
    let mut cm = linux(ACTIVE_GUID, 1);
    let service = ServiceId::port(PortSpace::TCP, 1234);
    let said = bytes(REQ)[24 + 140 + 36..].to_vec();
    let params = ConnectParams {
        cma: Some(CmaHeader {
            source: "192.168.77.2:34225".parse().unwrap(),
            destination: "192.168.77.1".parse().unwrap(),
        }),
        private_data: said,
        ..ConnectParams::new(ethernet_route(2, 1), service, qpn(0x11), psn(0xcc_d920))
    };
    let id = cm.connect(NOW, &params).unwrap();
    let (forward, req) = cm.poll_transmit().unwrap();
    assert_eq!(forward, ethernet_route(2, 1));
    let expected = with(golden(REQ), LOCAL, &req.0[LOCAL]);
    assert_eq!(req, with(expected, TRANSACTION, &req.0[TRANSACTION]));

    let number = id.get().to_be_bytes();
    let rep = with(golden(REP), REMOTE, &number);
    assert!(cm.handle(NOW, &ethernet_route(2, 1), &rep));
    let found = events(&mut cm);
    let [CmEvent::Connected(connected)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(connected.rep, rep.attribute::<Rep>().unwrap());
    assert_eq!((connected.rep.local_qpn, connected.rep.starting_psn.get()), (qpn(0x11), 0x64_dd15));
    assert_eq!((connected.rep.target_ack_delay, connected.rep.rnr_retry_count), (15, 7));
    assert_eq!(connected.private_data[..4], [0xbd, 0x1b, 0, 2]);

    cm.established(id, b"").unwrap();
    let rtu = sent(&mut cm)[0];
    let expected = with(golden(RTU), LOCAL, &number);
    assert_eq!(rtu, with(expected, TRANSACTION, &req.0[TRANSACTION]));

    cm.disconnect(NOW, id, b"").unwrap();
    let dreq = sent(&mut cm)[0];
    let expected = with(golden(DREQ), LOCAL, &number);
    assert_eq!(dreq, with(expected, TRANSACTION, &dreq.0[TRANSACTION]));

    cm.handle(NOW, &ethernet_route(2, 1), &with(golden(DREP), REMOTE, &number));
    let found = events(&mut cm);
    assert!(matches!(found[..], [CmEvent::Disconnected { cause: Cause::Local, .. }]), "{found:?}");
}

#[test]
fn passive_side_sends_the_same_bytes_as_linux() {
    let mut cm = linux(PASSIVE_GUID, 2);
    let listener = cm.listen_cm(PortSpace::TCP, 1234).unwrap();
    assert!(cm.handle(NOW, &ethernet_route(1, 2), &golden(REQ)));
    let incoming = requested(&mut cm);
    assert_eq!(incoming.listener, listener);
    assert_eq!(incoming.service_id.to_port(), Some((PortSpace::TCP, 1234)));
    let addresses = incoming.cma.unwrap();
    assert_eq!(addresses.source, "192.168.77.2:34225".parse().unwrap());
    assert_eq!(addresses.destination, std::net::Ipv4Addr::new(192, 168, 77, 1));
    assert_eq!(
        (incoming.private_data.len(), &incoming.private_data[..4]),
        (56, &[0, 0, 0xbd, 0x1b][..])
    );
    assert_eq!(incoming.path, Route { is_weak: true, ..ethernet_route(1, 2) });
    assert_eq!(
        (incoming.req.p_key, incoming.req.primary_path.local_ack_timeout),
        (PartitionKey::DEFAULT, 19)
    );

    let params = AcceptParams {
        private_data: bytes(REP)[24 + 36..].to_vec(),
        ..AcceptParams::new(qpn(0x11), psn(0x64_dd15))
    };
    cm.accept(NOW, incoming.id, &params).unwrap();
    let rep = sent(&mut cm)[0];
    let number = incoming.id.get().to_be_bytes();
    assert_eq!(rep, with(golden(REP), LOCAL, &number));
    // The CM retransmits the REP after the response timeout in the REQ, which is 4.3 s.
    assert_eq!(cm.poll_timeout(), Some(NOW + timeout(20)));

    cm.handle(NOW, &ethernet_route(1, 2), &with(golden(RTU), REMOTE, &number));
    assert!(matches!(events(&mut cm)[..], [CmEvent::Established { .. }]));
    cm.handle(NOW, &ethernet_route(1, 2), &with(golden(DREQ), REMOTE, &number));
    assert_eq!(sent(&mut cm), [with(golden(DREP), LOCAL, &number)]);
    assert!(matches!(events(&mut cm)[..], [CmEvent::Disconnected { cause: Cause::Remote, .. }]));
}

#[test]
fn rejects_have_the_same_bytes_as_linux() {
    let mut cm = linux(PASSIVE_GUID, 2);
    cm.handle(NOW, &ethernet_route(1, 2), &golden(REQ_UNSERVED));
    assert_eq!(sent(&mut cm), [golden(REJ_UNSERVED)]);

    // A REJ by the consumer differs from `REJ_UNSERVED` only in the reason and the private data.
    let expected = with(golden(REJ_UNSERVED), 35..36, &[28]);
    let expected = with(expected, 24 + 84..24 + 90, &[0xbd, 0x1b, 0, 2, 0xef, 0xff]);
    cm.listen_cm(PortSpace::TCP, 4321).unwrap();
    cm.handle(NOW, &ethernet_route(1, 2), &golden(REQ_UNSERVED));
    let incoming = requested(&mut cm);
    let addresses = incoming.cma.unwrap();
    assert_eq!(addresses.source, "[fd00::2]:60907".parse().unwrap());
    assert_eq!(addresses.destination, "fd00::1".parse::<std::net::IpAddr>().unwrap());
    let why = [0xbd, 0x1b, 0, 2, 0xef, 0xff];
    cm.reject(NOW, incoming.id, RejectReason::CONSUMER, &why).unwrap();
    assert_eq!(sent(&mut cm), [expected]);
}

#[test]
fn invalid_rdma_cm_header_is_rejected() {
    for (at, value) in [(164, 1), (165, 0x50), (165, 0x04), (165, 0)] {
        let mut cm = linux(PASSIVE_GUID, 2);
        cm.listen_cm(PortSpace::TCP, 4321).unwrap();
        cm.handle(NOW, &ethernet_route(1, 2), &with(golden(REQ_UNSERVED), at..at + 1, &[value]));
        assert_eq!(sent(&mut cm), [with(golden(REJ_UNSERVED), 35..36, &[28])]);
        assert_eq!((cm.connections(), events(&mut cm)), (0, vec![]));
    }
    // A listener that expects no `rdma_cm` header receives all 92 bytes of private data.
    let mut cm = linux(PASSIVE_GUID, 2);
    cm.listen(ServiceId::port(PortSpace::TCP, 4321)).unwrap();
    cm.handle(NOW, &ethernet_route(1, 2), &with(golden(REQ_UNSERVED), 164..165, &[9]));
    let incoming = requested(&mut cm);
    assert_eq!(
        (incoming.cma, incoming.private_data.len(), incoming.private_data[0]),
        (None, 92, 9)
    );
}

#[test]
fn infiniband_request_has_lids_and_a_local_route() {
    let mut pair = Pair::new();
    let forward = Route {
        source: gid(1),
        destination: gid(2),
        slid: 7,
        dlid: 9,
        sl: ib_types::ServiceLevel::new(3).unwrap(),
        ..Route::default()
    };
    pair.here.connect(NOW, &ConnectParams { route: forward, ..request(0x10) }).unwrap();
    let req = sent(&mut pair.here)[0];
    let back = Route { source: gid(2), destination: gid(1), slid: 9, dlid: 7, ..forward };
    pair.there.handle(NOW, &back, &req);
    let incoming = requested(&mut pair.there);
    assert_eq!((incoming.path, incoming.route), (Route { is_weak: true, ..back }, back));
    assert!(incoming.req.primary_path.subnet_local);
}

/// Linux may obtain a path from ibacm even on Ethernet. Its REQ then contains the LIDs of this path.
#[test]
fn infiniband_path_in_a_req_on_ethernet_is_ignored() {
    let mut pair = Pair::new();
    let (forward, back) = (ethernet_route(2, 1), ethernet_route(1, 2));
    let with_lids = Route { slid: 3, dlid: 4, is_global: false, ..forward };
    pair.here.connect(NOW, &ConnectParams { route: with_lids, ..request(0x10) }).unwrap();
    let req = sent(&mut pair.here)[0];
    pair.there.handle(NOW, &back, &req);
    let incoming = requested(&mut pair.there);
    assert!(incoming.req.primary_path.subnet_local);
    assert_eq!((incoming.path, incoming.route), (Route { is_weak: true, ..back }, back));
}
