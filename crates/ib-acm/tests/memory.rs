//! Measures the resident memory per cached address. The test has its own process, because resident memory is known only
//! for a whole process.

use std::fs;

use ib_acm::port::PortId;
use ib_acm::{Action, Address, Arrived, ClientId, Service, ServiceConfig};
use ib_link::{Incoming, Route};
use ib_types::{Gid, Guid, Instant, PKey, Qpn};
use ib_wire::acm::{ByteOrder, ClientHeader, ClientStatus, EntryFlags, HEADER_LENGTH, Resolve};
use ib_wire::mad::acm::AcmMessage;
use ib_wire::mad::sa::PathRecord;
use ib_wire::mad::{Attribute as _, MadStatus, Method, MgmtClass, TransactionId};

#[path = "../src/service/tests/port.rs"]
mod port_of_tests;

use port_of_tests::{PREFIX, port};

const PORT: PortId = PortId(1);

/// Returns the resident memory of the process in bytes.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/status").expect("the file is readable");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS is listed");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("the value is in kB");
    kilobytes * 1024
}

/// Function that returns the address of the host with the given number.
type AddressOf = fn(u32) -> Address;

fn name(host: u32) -> Address {
    Address::name(&format!("node-{host:06}.cluster.example")).expect("the name is valid")
}

/// Returns an announcement: the request of a host for its own address.
fn announcement(address: &Address) -> AcmMessage {
    let (kind, field) = address.to_field();
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

/// Resolves an address for a client. The response of the SA has the destination LID `dlid`.
fn resolve(service: &mut Service, now: Instant, address: &Address, dlid: u16) {
    let entry = address.to_entry(EntryFlags::DESTINATION).expect("the address is a name or IP");
    let mut bytes = Vec::new();
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    let header = ClientHeader::parse(bytes.first_chunk().expect("the header is complete"));
    let message = (&header, &bytes[HEADER_LENGTH..], ByteOrder::NATIVE);
    assert!(!service.request(now, ClientId(1), message, &mut Vec::new()), "no immediate response");
    while let Some(action) = service.poll_action(now, PORT) {
        let Action::Mad(asked) = action else { continue };
        let mut mad = asked.mad;
        if let Some(wanted) =
            mad.attribute::<PathRecord>().filter(|_| asked.mad.attribute_id() == PathRecord::ID)
        {
            mad.set_attribute(&PathRecord { dlid, slid: 1, ..wanted });
            mad.answer(MadStatus::OK);
            let answer = Incoming::Received(asked.reply(mad));
            service.handle(now, PORT, Arrived::Mad(Box::new(answer)));
        }
    }
    let (_, answer) = service.poll_reply().expect("a reply is queued");
    assert_eq!(ClientStatus(answer[2]), ClientStatus::SUCCESS);
}

#[test]
fn cached_address_takes_at_most_300_bytes() {
    let v4 = |host: u32| Address::V4((0x0a00_0000 + host).into());
    let v6 = |host: u32| Address::V6((0xfd00 << 112 | u128::from(host)).into());
    // The kind of address that needs the most memory is measured first, because later kinds may reuse freed memory.
    let kinds: [(&str, AddressOf, bool); 4] = [
        ("IPv6 with a route", v6, true),
        ("IPv4 with a route", v4, true),
        ("IPv6", v6, false),
        ("name", name, false),
    ];
    let mut services = Vec::new();
    for (kind, address_of, has_route) in kinds {
        services.push(fill(kind, address_of, has_route));
    }
}

/// Returns a service that has cached many ports. Each port has an address of the given kind.
fn fill(kind: &str, address_of: AddressOf, has_route: bool) -> Service {
    let state = port("dev", Guid(1), 1, vec![Address::name("own").expect("the name is valid")]);
    let now = Instant::ZERO;
    // With several outstanding SA requests, unanswered joins do not delay path queries.
    let config = ServiceConfig { sa_depth: 16, ..ServiceConfig::default() };
    let mut service = Service::new(config, [1; 32]);
    service.set_port(now, PORT, &state);
    let before = resident();
    // The number of ports is slightly above a power of two, because arrays that double their capacity then have the
    // most unused memory.
    let count = (1 << 17) + 1000;
    for host in 0..count {
        let destination = Gid::new(PREFIX, Guid(0x1000 + u64::from(host)));
        // There are fewer LIDs than ports, so several ports have the same LID. These ports send their messages at the
        // same time, so the service does not check whether one of them has moved.
        let dlid = (host % 0xb000 + 2) as u16;
        let route = Route { destination, dlid, is_global: true, ..Route::default() };
        let (p_key, qpn) = (PKey::DEFAULT, Qpn::truncated(0x100));
        let address = address_of(host);
        let bytes = announcement(&address).to_bytes().into();
        service.handle(now, PORT, Arrived::Datagram { p_key, route, qpn, bytes });
        if has_route {
            resolve(&mut service, now, &address, dlid);
        }
    }
    let endpoints = service.endpoints();
    // A port with a route is also cached by its GID.
    let known = count as usize * if has_route { 2 } else { 1 };
    assert_eq!((endpoints[0].cached_addresses, endpoints[0].cached_peers), (known, count as usize));
    let each = (resident() - before) as f64 / f64::from(count);
    eprintln!("{kind}: {each:.0} bytes for each of {count} destinations");
    assert!(each <= 300.0, "{kind}: {each:.0} bytes for each of {count} destinations");
    service
}
