//! Messages as Linux 6.1 sent them between two machines: 192.168.77.1 and 192.168.77.2, and over IPv6
//! `fd00::1` and `fd00::2`; zeros at their ends are left out.
//! They are understood, and the same values give the same bytes.

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

/// A REQ over IPv6 for a port that nobody listens at, and its refusal.
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

/// Where the numbers of the sender and of the receiver stand.
const LOCAL: std::ops::Range<usize> = 24..28;
const REMOTE: std::ops::Range<usize> = 28..32;
const TRANSACTION: std::ops::Range<usize> = 8..16;

/// Returns the datagram with some bytes of another one.
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

fn way(from: u8, to: u8) -> Route {
    let (source, destination) = (address(from), address(to));
    Route { source, destination, is_global: true, flow_label: 0x3541, ..Route::default() }
}

#[test]
fn the_active_side_says_what_linux_says() {
    let mut cm = linux(ACTIVE_GUID, 1);
    let service = ServiceId::port(PortSpace::TCP, 1234);
    let said = bytes(REQ)[24 + 140 + 36..].to_vec();
    let params = ConnectParams {
        cma: Some(CmaHeader {
            source: "192.168.77.2:34225".parse().unwrap(),
            destination: "192.168.77.1".parse().unwrap(),
        }),
        private_data: said,
        ..ConnectParams::new(way(2, 1), service, qpn(0x11), psn(0xcc_d920))
    };
    let id = cm.connect(NOW, &params).unwrap();
    let (over, req) = cm.poll_transmit().unwrap();
    assert_eq!(over, way(2, 1));
    let expected = with(golden(REQ), LOCAL, &req.0[LOCAL]);
    assert_eq!(req, with(expected, TRANSACTION, &req.0[TRANSACTION]));

    let number = id.get().to_be_bytes();
    let rep = with(golden(REP), REMOTE, &number);
    assert!(cm.handle(NOW, &way(2, 1), &rep));
    let told = events(&mut cm);
    let [CmEvent::Connected(connected)] = &told[..] else { panic!("{told:?}") };
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

    cm.handle(NOW, &way(2, 1), &with(golden(DREP), REMOTE, &number));
    let told = events(&mut cm);
    assert!(matches!(told[..], [CmEvent::Disconnected { cause: Cause::Local, .. }]), "{told:?}");
}

#[test]
fn the_passive_side_says_what_linux_says() {
    let mut cm = linux(PASSIVE_GUID, 2);
    let listener = cm.listen_cm(PortSpace::TCP, 1234).unwrap();
    assert!(cm.handle(NOW, &way(1, 2), &golden(REQ)));
    let asked = requested(&mut cm);
    assert_eq!(asked.listener, listener);
    assert_eq!(asked.service_id.to_port(), Some((PortSpace::TCP, 1234)));
    let addresses = asked.cma.unwrap();
    assert_eq!(addresses.source, "192.168.77.2:34225".parse().unwrap());
    assert_eq!(addresses.destination, std::net::Ipv4Addr::new(192, 168, 77, 1));
    assert_eq!((asked.private_data.len(), &asked.private_data[..4]), (56, &[0, 0, 0xbd, 0x1b][..]));
    assert_eq!(asked.path, Route { is_weak: true, ..way(1, 2) });
    assert_eq!(
        (asked.req.p_key, asked.req.primary_path.local_ack_timeout),
        (PartitionKey::DEFAULT, 19)
    );

    let params = AcceptParams {
        private_data: bytes(REP)[24 + 36..].to_vec(),
        ..AcceptParams::new(qpn(0x11), psn(0x64_dd15))
    };
    cm.accept(NOW, asked.id, &params).unwrap();
    let rep = sent(&mut cm)[0];
    let number = asked.id.get().to_be_bytes();
    assert_eq!(rep, with(golden(REP), LOCAL, &number));
    // The REQ allows 4.3 s.
    assert_eq!(cm.poll_timeout(), Some(NOW + timeout(20)));

    cm.handle(NOW, &way(1, 2), &with(golden(RTU), REMOTE, &number));
    assert!(matches!(events(&mut cm)[..], [CmEvent::Established { .. }]));
    cm.handle(NOW, &way(1, 2), &with(golden(DREQ), REMOTE, &number));
    assert_eq!(sent(&mut cm), [with(golden(DREP), LOCAL, &number)]);
    assert!(matches!(events(&mut cm)[..], [CmEvent::Disconnected { cause: Cause::Remote, .. }]));
}

#[test]
fn refusals_are_those_of_linux() {
    let mut cm = linux(PASSIVE_GUID, 2);
    cm.handle(NOW, &way(1, 2), &golden(REQ_UNSERVED));
    assert_eq!(sent(&mut cm), [golden(REJ_UNSERVED)]);

    // A consumer's refusal, here of the same REQ: the reason and the private data differ.
    let expected = with(golden(REJ_UNSERVED), 35..36, &[28]);
    let expected = with(expected, 24 + 84..24 + 90, &[0xbd, 0x1b, 0, 2, 0xef, 0xff]);
    cm.listen_cm(PortSpace::TCP, 4321).unwrap();
    cm.handle(NOW, &way(1, 2), &golden(REQ_UNSERVED));
    let asked = requested(&mut cm);
    let addresses = asked.cma.unwrap();
    assert_eq!(addresses.source, "[fd00::2]:60907".parse().unwrap());
    assert_eq!(addresses.destination, "fd00::1".parse::<std::net::IpAddr>().unwrap());
    let why = [0xbd, 0x1b, 0, 2, 0xef, 0xff];
    cm.reject(NOW, asked.id, RejectReason::CONSUMER, &why).unwrap();
    assert_eq!(sent(&mut cm), [expected]);
}

#[test]
fn a_header_of_another_version_is_refused() {
    for (at, value) in [(164, 1), (165, 0x50), (165, 0x04), (165, 0)] {
        let mut cm = linux(PASSIVE_GUID, 2);
        cm.listen_cm(PortSpace::TCP, 4321).unwrap();
        cm.handle(NOW, &way(1, 2), &with(golden(REQ_UNSERVED), at..at + 1, &[value]));
        assert_eq!(sent(&mut cm), [with(golden(REJ_UNSERVED), 35..36, &[28])]);
        assert_eq!((cm.connections(), events(&mut cm)), (0, vec![]));
    }
    // Who wants no header gets all 92 bytes.
    let mut cm = linux(PASSIVE_GUID, 2);
    cm.listen(ServiceId::port(PortSpace::TCP, 4321)).unwrap();
    cm.handle(NOW, &way(1, 2), &with(golden(REQ_UNSERVED), 164..165, &[9]));
    let asked = requested(&mut cm);
    assert_eq!((asked.cma, asked.private_data.len(), asked.private_data[0]), (None, 92, 9));
}

#[test]
fn lids_and_local_routes_of_infiniband() {
    let mut pair = Pair::new();
    let over = Route {
        source: gid(1),
        destination: gid(2),
        slid: 7,
        dlid: 9,
        sl: ib_types::ServiceLevel::new(3).unwrap(),
        ..Route::default()
    };
    pair.here.connect(NOW, &ConnectParams { route: over, ..request(0x10) }).unwrap();
    let req = sent(&mut pair.here)[0];
    let back = Route { source: gid(2), destination: gid(1), slid: 9, dlid: 7, ..over };
    pair.there.handle(NOW, &back, &req);
    let asked = requested(&mut pair.there);
    assert_eq!((asked.path, asked.route), (Route { is_weak: true, ..back }, back));
    assert!(asked.req.primary_path.subnet_local);
}

/// Linux takes a path from IB ACM on Ethernet, too, and then asks with the LIDs and the locality that this one has.
#[test]
fn a_path_of_infiniband_on_ethernet() {
    let mut pair = Pair::new();
    let (over, back) = (way(2, 1), way(1, 2));
    let with_lids = Route { slid: 3, dlid: 4, is_global: false, ..over };
    pair.here.connect(NOW, &ConnectParams { route: with_lids, ..request(0x10) }).unwrap();
    let req = sent(&mut pair.here)[0];
    pair.there.handle(NOW, &back, &req);
    let asked = requested(&mut pair.there);
    assert!(asked.req.primary_path.subnet_local);
    assert_eq!((asked.path, asked.route), (Route { is_weak: true, ..back }, back));
}
