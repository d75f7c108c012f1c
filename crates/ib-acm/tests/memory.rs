//! What a service needs for what it knows: measured as the system sees it, in a process with nothing else.

use std::fs;

use ib_acm::port::PortId;
use ib_acm::{Address, Arrived, PortState, Service, ServiceConfig};
use ib_link::{LinkPort, Route};
use ib_types::{Gid, Guid, Instant, PKey, Qpn};
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{Method, MgmtClass, TransactionId};

const PREFIX: u64 = 0xfe80 << 48;
const PORT: PortId = PortId(1);

/// How many bytes of memory the process has.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("a table");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes * 1024
}

/// A question of a host for its own address.
fn announcement(host: u32) -> AcmMessage {
    let name = Address::name(&format!("node-{host:06}.cluster.example")).expect("a name");
    let (kind, field) = name.to_field();
    AcmMessage {
        base_version: 1,
        class: MgmtClass::ACM,
        class_version: 1,
        method: Method::GET,
        control: AcmMessage::RESOLVE,
        transaction_id: TransactionId(1),
        destination_type: kind,
        destination_length: 64,
        source_type: kind,
        source_length: 64,
        destination: field,
        source: field,
        ..AcmMessage::zeroed()
    }
}

#[test]
fn a_destination_takes_300_bytes_at_most() {
    let link = LinkPort {
        node_guid: Guid(1),
        port_guid: Guid(1),
        gid_prefix: PREFIX,
        number: 1,
        lid: 1,
        sm_lid: 1,
        ..LinkPort::default()
    };
    let state = PortState {
        device: "dev".into(),
        port_count: 1,
        link,
        is_active: true,
        mtu: MtuCode::MTU_4096,
        rate: RateCode::GBPS_100,
        p_keys: vec![PKey::DEFAULT],
        registrations: 0,
        has_datagrams: true,
        names: vec![Address::name("own").expect("a name")],
    };
    let now = Instant::ZERO;
    let mut service = Service::new(ServiceConfig::default(), [1; 32]);
    service.set_port(now, PORT, &state);
    let before = resident();
    // Just beyond a power of two, where arrays that double have the most room to spare.
    let count = (1 << 17) + 1000;
    for host in 0..count {
        let destination = Gid::new(PREFIX, Guid(0x1000 + u64::from(host)));
        // So many ports have no LIDs of their own; who shares one does so at the same moment.
        let dlid = (host % 0xb000 + 2) as u16;
        let route = Route { destination, dlid, is_global: true, ..Route::default() };
        let (p_key, qpn) = (PKey::DEFAULT, Qpn::truncated(0x100));
        let bytes = announcement(host).to_bytes().into();
        service.handle(now, PORT, Arrived::Datagram { p_key, route, qpn, bytes });
    }
    let endpoints = service.endpoints();
    assert_eq!((endpoints[0].known, endpoints[0].peers), (count as usize, count as usize));
    let each = (resident() - before) as f64 / f64::from(count);
    eprintln!("{each:.0} bytes for each of {count} destinations");
    assert!(each <= 300.0, "{each:.0} bytes for each of {count} destinations");
}
