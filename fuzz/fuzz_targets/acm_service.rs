//! An ACM service receives arbitrary client requests, peer messages, SA responses and port changes.
//!
//! Checks that each client request is answered exactly once, before the timeouts of all attempts have passed. The input
//! is a list of events: a byte that selects the event, and its parameters.
#![no_main]

use std::collections::BTreeSet;
use std::time::Duration;

use ib_acm::config::options::RouteProtocol;
use ib_acm::port::PortId;
use ib_acm::{Action, Address, Arrived, ClientId, PortState, Service, ServiceConfig};
use ib_fuzz::Input;
use ib_link::{Datagram, Incoming, LinkPort, Remote, Route};
use ib_types::{Gid, Guid, Instant, PKey, Qpn};
use ib_wire::acm::{ClientHeader, HEADER_LENGTH};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;
use ib_wire::mad::{MAD_LENGTH, Mad, MadStatus};
use libfuzzer_sys::fuzz_target;

const PORT: PortId = PortId(1);
const PREFIX: u64 = 0xfe80 << 48;

fn state(kind: u8) -> PortState {
    let link = LinkPort {
        node_guid: Guid(1),
        port_guid: Guid(1),
        gid_prefix: PREFIX | u64::from(kind >> 7),
        number: 1,
        lid: u16::from(kind & 3) + 1,
        sm_lid: u16::from(kind >> 2 & 1) + 9,
        ..LinkPort::default()
    };
    PortState {
        device: "dev".into(),
        port_count: 1,
        link,
        is_active: kind & 8 == 0,
        mtu: MtuCode::MTU_4096,
        rate: RateCode::GBPS_100,
        p_keys: if kind & 16 == 0 { vec![PKey::DEFAULT] } else { vec![PKey(0x8001)] },
        registrations: u64::from(kind >> 5 & 1),
        has_datagrams: kind & 64 == 0,
        names: vec![Address::name("own").expect("the name is valid")],
    }
}

/// Overwrites some bytes with bytes of the input. The input selects how many.
fn overwrite(bytes: &mut [u8], input: &mut Input<'_>) {
    let (at, count) = (usize::from(input.byte()), usize::from(input.byte()));
    for slot in bytes.iter_mut().skip(at).take(count) {
        *slot = input.byte();
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let kind = input.byte();
    let config = ServiceConfig {
        timeout: Duration::from_millis(100),
        route_protocol: if kind & 1 == 0 { RouteProtocol::Sa } else { RouteProtocol::Acm },
        check_routes: kind & 2 != 0,
        max_destinations: usize::from(kind >> 4) + 1,
        max_pending: 8,
        ..ServiceConfig::default()
    };
    let limit = 2 * config.timeout * (config.retries + 1) + Duration::from_secs(1);
    let mut service = Service::new(config, [kind; 32]);
    let mut now = Instant::ZERO;
    let mut waiting: BTreeSet<u64> = BTreeSet::new();
    let mut client = 0;
    // The latest message to a peer and the latest request to the SA. Responses are constructed from them.
    let mut message = [0; MAD_LENGTH];
    let mut asked: Option<Datagram> = None;
    service.set_port(now, PORT, &state(0));
    while !input.0.is_empty() {
        match input.byte() % 8 {
            0 | 1 => {
                let length = usize::from(input.byte()) * 3 % 600;
                let mut request = vec![0; HEADER_LENGTH + length];
                overwrite(&mut request, &mut input);
                overwrite(&mut request, &mut input);
                let header =
                    ClientHeader::parse(request.first_chunk().expect("the request has a header"));
                let Ok((_, order)) = header.length() else { continue };
                client += 1;
                let mut out = Vec::new();
                let what = (&header, &request[HEADER_LENGTH..], order);
                if service.request(now, ClientId(client), what, &mut out) {
                    assert!(out.len() >= HEADER_LENGTH && out[8..16] == header.transaction);
                } else {
                    assert!(out.is_empty());
                    waiting.insert(client);
                }
            }
            2 | 3 => {
                let mut bytes = message;
                overwrite(&mut bytes, &mut input);
                let guid = Guid(u64::from(input.byte()));
                let lid = u16::from(input.byte());
                let destination = Gid::new(PREFIX, guid);
                let route = Route { destination, dlid: lid, is_global: true, ..Route::default() };
                let length = if input.byte() == 7 { 100 } else { MAD_LENGTH };
                let (p_key, qpn) = (PKey::DEFAULT, Qpn::truncated(u32::from(input.byte())));
                let bytes = bytes[..length].into();
                service.handle(now, PORT, Arrived::Datagram { p_key, route, qpn, bytes });
            }
            4 => {
                let mut datagram =
                    asked.unwrap_or_else(|| Datagram::new(Remote::gsi(9), Mad([0; MAD_LENGTH])));
                datagram.mad.answer(MadStatus::OK);
                overwrite(&mut datagram.mad.0, &mut input);
                let arrived = Arrived::Mad(Box::new(Incoming::Received(datagram)));
                service.handle(now, PORT, arrived);
            }
            5 => service.set_port(now, PORT, &state(input.byte())),
            6 => {
                now = now + Duration::from_millis(u64::from(input.byte()) * 10);
                service.handle_timeout(now);
            }
            _ => {
                let _ = service.flush();
            }
        }
        while let Some(action) = service.poll_action(now, PORT) {
            match action {
                Action::Send { bytes, .. } => message = *bytes,
                Action::Mad(datagram) => asked = Some(*datagram),
                _ => {}
            }
        }
        while let Some((ClientId(client), _)) = service.poll_reply() {
            assert!(waiting.remove(&client), "a second response to a request");
        }
        while service.poll_event().is_some() {}
        assert_eq!(service.pending(), waiting.len());
    }
    let end = now + limit;
    while let Some(due) = service.poll_timeout().filter(|&due| due <= end) {
        now = now.max(due);
        service.handle_timeout(now);
        while service.poll_action(now, PORT).is_some() {}
    }
    while let Some((ClientId(client), _)) = service.poll_reply() {
        assert!(waiting.remove(&client), "a second response to a request");
    }
    assert!(waiting.is_empty(), "requests without a response: {waiting:?}");
});
