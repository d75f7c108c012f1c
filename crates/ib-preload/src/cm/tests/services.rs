//! UD services, InfiniBand addresses, options and queries.

use super::*;
use crate::cm::address::IbAddress;

const UDP: u16 = 0x0111;
const IB: u16 = 0x013f;

#[test]
fn service_is_resolved_to_its_queue_pair() {
    let (mut here, mut there) = sides();
    there.listen(0xa0, UDP, "0.0.0.0:7174", 5);
    let client = here.create(0xb0, UDP);
    here.resolve(client, "10.0.0.2:7174").unwrap();
    here.connect(client, b"hello").unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = there.next().unwrap();
    assert_eq!((head.uid, head.event), (0xa0, EventType::ConnectRequest as u32));
    let request = DatagramParam::read(&bytes);
    assert_eq!((&request.private_data.0[..5], request.private_data_len), (&b"hello"[..], 180));
    there.accept(head.id, 0xa1, b"welcome").unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = here.next().unwrap();
    assert_eq!((head.uid, head.event), (0xb0, EventType::Established as u32));
    let reply = DatagramParam::read(&bytes);
    assert_eq!((reply.qp_num, reply.q_key), (0x22, 0x0123_4567));
    assert_eq!(reply.address.dgid, gid_of(THERE.parse().unwrap()).0.to_be_bytes());
    assert_eq!((&reply.private_data.0[..7], reply.private_data_len), (&b"welcome"[..], 136));
}

#[test]
fn service_without_a_listener_is_unreachable() {
    let (mut here, mut there) = sides();
    // A listener for connections gets no requests for UD services.
    there.listen(0xa0, 0x0106, "0.0.0.0:7174", 5);
    let client = here.create(0xb0, UDP);
    here.resolve(client, "10.0.0.2:7174").unwrap();
    here.connect(client, b"").unwrap();
    carry(&mut here, &mut there);
    // The status is "service ID not supported".
    assert_eq!(here.event(), (EventType::Unreachable as u32, 1));
    assert_eq!(there.next(), None);
}

#[test]
fn rejected_service_request_has_the_status() {
    let (mut here, mut there) = sides();
    there.listen(0xa0, UDP, "0.0.0.0:7174", 5);
    let client = here.create(0xb0, UDP);
    here.resolve(client, "10.0.0.2:7174").unwrap();
    here.connect(client, b"").unwrap();
    carry(&mut here, &mut there);
    let (head, _) = there.next().unwrap();
    there.run(&Request::Reject(Reject { id: head.id, ..Reject::default() })).unwrap();
    carry(&mut here, &mut there);
    // The status is "rejected by service provider".
    assert_eq!(here.event(), (EventType::Unreachable as u32, 2));
}

/// librdmacm checks by this command whether the kernel supports InfiniBand addresses.
#[test]
fn infiniband_address_without_a_gid_can_be_bound() {
    let (mut here, _) = sides();
    let id = here.create(1, IB);
    let address = Address::Ib(IbAddress {
        p_key: 0,
        flow_info: 0,
        gid: Gid::ZERO,
        service: 0x0106_0000,
        mask: 0xffff_ffff_ffff_0000,
        scope: 0,
    });
    let bytes = address.to_bytes();
    let address = Bytes::padded(&bytes);
    let bind = Bind { id, address_size: 48, reserved: 0, address };
    here.run(&Request::Bind(bind)).unwrap();
    let response = here.run(&Request::QueryAddress(id)).unwrap();
    let response = AddressResponse::read(&response);
    assert_eq!((response.node_guid, response.source_size), ([0; 8], 48));
}

#[test]
fn infiniband_addresses_connect_without_a_header() {
    let (mut here, mut there) = sides();
    let address = |host: &str, service| {
        let gid = gid_of(host.parse().unwrap());
        let (p_key, mask) = (0xffff, u64::MAX);
        Address::Ib(IbAddress { p_key, flow_info: 0, gid, service, mask, scope: 0 }).to_bytes()
    };
    let listener = there.create(0xa0, IB);
    let own = address(THERE, 0x013f_1234);
    let bind = Bind { id: listener, address_size: 48, reserved: 0, address: Bytes::padded(&own) };
    there.run(&Request::Bind(bind)).unwrap();
    there.run(&Request::Listen(Listen { id: listener, backlog: 1 })).unwrap();
    let active = here.create(0xb0, IB);
    here.run(&Request::ResolveAddr(ResolveAddr {
        id: active,
        destination_size: 48,
        destination: Bytes::padded(&own),
        ..ResolveAddr::default()
    }))
    .unwrap();
    here.run(&Request::ResolveRoute(ResolveRoute { id: active, timeout_ms: 1 })).unwrap();
    here.connect(active, &[7; 92]).unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = there.next().unwrap();
    assert_eq!(head.event, EventType::ConnectRequest as u32);
    assert_eq!(ConnectionParam::read(&bytes).private_data.0[..92], [7; 92]);
}

#[test]
fn queries_return_addresses_and_the_path() {
    let (mut here, _) = sides();
    let id = here.create(1, 0x0106);
    here.bind(id, "10.0.0.1:4000").unwrap();
    here.resolve(id, "10.0.0.2:7174").unwrap();
    let response = AddressResponse::read(&here.run(&Request::QueryAddress(id)).unwrap());
    assert_eq!(Address::parse(&response.source.0), Some(socket("10.0.0.1:4000")));
    assert_eq!(Address::parse(&response.destination.0), Some(socket("10.0.0.2:7174")));
    assert_eq!((response.source_size, response.destination_size), (16, 16));
    assert_eq!((response.port_num, response.p_key), (1, [0xff, 0xff]));
    let path = here.run(&Request::QueryPath(id)).unwrap();
    assert_eq!(PathResponse::read(&path).num_paths, 1);
    let path = PathData::read(&path[PathResponse::SIZE..]);
    let record = PathRecord::parse(&path.record.0);
    assert_eq!(record.dgid, gid_of(THERE.parse().unwrap()));
    assert_eq!((path.flags, record.hop_limit), (0x2b, 64));
    let route = RouteResponse::read(&here.run(&Request::QueryRoute(id)).unwrap());
    assert_eq!((route.num_paths, route.port_num), (1, 1));
    assert_eq!(route.paths[0].dgid, record.dgid.0.to_be_bytes());
    assert_eq!(&route.source[..4], &response.source.0[..4]);
    let gids = AddressResponse::read(&here.run(&Request::QueryGid(id)).unwrap());
    let Some(Address::Ib(own)) = Address::parse(&gids.source.0) else { panic!("found no GID") };
    assert_eq!((own.gid, own.service), (gid_of(HERE.parse().unwrap()), 0x0106_0000 | 4000));
}

#[test]
fn options_are_checked() {
    let (mut here, _) = sides();
    let id = here.create(1, 0x0106);
    let set = |side: &mut Side, (level, name), option: &[u8]| {
        let length = option.len() as u32;
        let request = Request::SetOption(SetOption { value: 0, id, level, name, length });
        let context = Context { now: side.now, option, old_channel: None };
        side.manager.execute(CHANNEL, &request, context, &mut side.port).map(drop)
    };
    let one = 1_i32.to_ne_bytes();
    assert_eq!(set(&mut here, (0, 0), &[8]), Ok(()));
    assert_eq!(set(&mut here, (0, 0), &one), Err(Errno::INVALID));
    assert_eq!(set(&mut here, (0, 1), &one), Ok(()));
    assert_eq!(set(&mut here, (0, 2), &one), Ok(()));
    assert_eq!(set(&mut here, (0, 3), &[31]), Ok(()));
    assert_eq!(set(&mut here, (0, 3), &[32]), Err(Errno::INVALID));
    assert_eq!(set(&mut here, (0, 4), &[1]), Err(Errno::NO_SYSTEM_CALL));
    assert_eq!(set(&mut here, (2, 0), &[1]), Err(Errno::NO_SYSTEM_CALL));
    assert_eq!(set(&mut here, (1, 1), &[0; 72]), Err(Errno::INVALID));
    here.resolve(id, "10.0.0.2:7174").unwrap();
    let path = PathRecord::parse(
        &PathData::read(&here.run(&Request::QueryPath(id)).unwrap()[PathResponse::SIZE..]).record.0,
    );
    // The type of service is the traffic class of the path.
    assert_eq!(path.traffic_class, 8);
    assert_eq!(set(&mut here, (0, 2), &one), Err(Errno::INVALID));
}

#[test]
fn path_of_the_program_replaces_that_of_the_fabric() {
    let (mut here, _) = sides();
    let id = here.create(1, 0x0106);
    let bytes = socket("10.0.0.2:7174").to_bytes();
    here.run(&Request::ResolveAddr(ResolveAddr {
        id,
        destination_size: 16,
        destination: Bytes::padded(&bytes),
        ..ResolveAddr::default()
    }))
    .unwrap();
    assert_eq!(here.event(), (EventType::AddrResolved as u32, 0));
    let record = PathRecord { dlid: 7, slid: 3, sl: 2, ..PathRecord::zeroed() };
    let data = PathData { flags: 0x2b, reserved: 0, record: Bytes(record.to_bytes()) };
    let option = crate::layout::bytes_of(&data);
    let length = option.len() as u32;
    let request = Request::SetOption(SetOption { value: 0, id, level: 1, name: 1, length });
    let context = Context { now: here.now, option: &option, old_channel: None };
    here.manager.execute(CHANNEL, &request, context, &mut here.port).unwrap();
    assert_eq!(here.event(), (EventType::RouteResolved as u32, 0));
    let path = here.run(&Request::QueryPath(id)).unwrap();
    let path = PathRecord::parse(&PathData::read(&path[PathResponse::SIZE..]).record.0);
    assert_eq!((path.dlid, path.slid, path.sl), (7, 3, 2));
}

#[test]
fn multicast_on_ethernet_is_refused() {
    let (mut here, _) = sides();
    let id = here.create(1, UDP);
    here.bind(id, "10.0.0.1:0").unwrap();
    let bytes = socket("239.1.1.1:0").to_bytes();
    let address = Bytes::padded(&bytes);
    let join = JoinMcast { id, uid: 5, address_size: 16, address, ..JoinMcast::default() };
    assert_eq!(here.run(&Request::JoinMcast(join)), Err(Errno::NOT_SUPPORTED));
    let flags = JoinMcast { join_flags: 2, ..join };
    assert_eq!(here.run(&Request::JoinMcast(flags)), Err(Errno::INVALID));
    assert_eq!(here.run(&Request::LeaveMcast(1)), Err(Errno::NO_ENTRY));
}
