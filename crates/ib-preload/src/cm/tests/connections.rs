//! Connections of port space TCP.

use super::*;

const TCP: u16 = 0x0106;

/// Establishes a connection. Returns the numbers of its IDs.
fn established(here: &mut Side, there: &mut Side) -> (u32, u32) {
    there.listen(0xa0, TCP, "0.0.0.0:7174", 5);
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"hello").unwrap();
    carry(here, there);
    let (head, _) = there.next().unwrap();
    let passive = head.id;
    there.accept(passive, 0xa1, b"welcome").unwrap();
    carry(here, there);
    assert_eq!(here.event(), (EventType::ConnectResponse as u32, 0));
    let accept = Accept { id: active, ..Accept::default() };
    here.run(&Request::Accept(accept)).unwrap();
    carry(here, there);
    assert_eq!(there.event(), (EventType::Established as u32, 0));
    (active, passive)
}

#[test]
fn events_have_the_parameters_of_the_peer() {
    let (mut here, mut there) = sides();
    let listener = there.listen(0xa0, TCP, "0.0.0.0:7174", 5);
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"hello").unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = there.next().unwrap();
    assert_eq!((head.uid, head.event), (0xa0, EventType::ConnectRequest as u32));
    assert_ne!(head.id, listener);
    let request = ConnectionParam::read(&bytes);
    assert_eq!(request.qp_num, 0x11);
    assert_eq!((&request.private_data.0[..5], request.private_data_len), (&b"hello"[..], 56));
    // The event swaps the two limits in the requester's REQ.
    assert_eq!((request.responder_resources, request.initiator_depth), (2, 3));
    there.accept(head.id, 0xa1, b"welcome").unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = here.next().unwrap();
    let event = EventType::ConnectResponse as u32;
    assert_eq!((head.uid, head.id, head.event), (0xb0, active, event));
    let reply = ConnectionParam::read(&bytes);
    assert_eq!((&reply.private_data.0[..7], reply.private_data_len), (&b"welcome"[..], 196));
    assert_eq!(reply.qp_num, 0x22);
}

#[test]
fn queue_pair_attributes_come_from_both_sides() {
    let (mut here, mut there) = sides();
    let (active, passive) = established(&mut here, &mut there);
    let attributes = |side: &mut Side, id, qp_state| {
        let init = InitQpAttr { id, qp_state, response: 0 };
        QpAttributes::read(&side.run(&Request::InitQpAttr(init)).unwrap())
    };
    let (one, other) = (attributes(&mut here, active, 2), attributes(&mut there, passive, 2));
    assert_eq!((one.dest_qp_num, other.dest_qp_num), (0x22, 0x11));
    assert_eq!(one.address.dgid, gid_of(THERE.parse().unwrap()).0.to_be_bytes());
    assert_eq!(other.address.dgid, gid_of(HERE.parse().unwrap()).0.to_be_bytes());
    let (one_rts, other_rts) =
        (attributes(&mut here, active, 3), attributes(&mut there, passive, 3));
    assert_eq!((one.rq_psn, other.rq_psn), (other_rts.sq_psn, one_rts.sq_psn));
    assert_ne!(one.rq_psn, other.rq_psn);
    let init = attributes(&mut here, active, 1);
    // Remote writes, reads and atomics.
    assert_eq!((init.access_flags, init.p_key_index, init.port_num), (0xe, 0, 1));
    for qp_state in [0, 4, 5, 6, 7] {
        let init = InitQpAttr { id: active, qp_state, response: 0 };
        assert_eq!(here.run(&Request::InitQpAttr(init)), Err(Errno::INVALID));
    }
}

#[test]
fn both_sides_learn_of_the_disconnect_and_of_the_end_of_time_wait() {
    let (mut here, mut there) = sides();
    let (active, passive) = established(&mut here, &mut there);
    here.run(&Request::Disconnect(active)).unwrap();
    carry(&mut here, &mut there);
    assert_eq!(here.event(), (EventType::Disconnected as u32, 0));
    assert_eq!(there.event(), (EventType::Disconnected as u32, 0));
    // The connection has ended, but the call succeeds as in the kernel.
    there.run(&Request::Disconnect(passive)).unwrap();
    for side in [&mut here, &mut there] {
        side.wait();
        assert_eq!(side.event(), (EventType::TimewaitExit as u32, 0));
        assert_eq!(side.next(), None);
    }
    // Two events of the resolution, the response, the disconnect, and the end of time-wait.
    assert_eq!(here.destroy(active), Ok(5));
    assert_eq!(there.destroy(passive), Ok(3));
    assert_eq!(here.destroy(active), Err(Errno::NO_ENTRY));
}

#[test]
fn destroyed_id_disconnects_its_peer() {
    let (mut here, mut there) = sides();
    let (active, _) = established(&mut here, &mut there);
    here.destroy(active).unwrap();
    carry(&mut here, &mut there);
    assert_eq!(there.event(), (EventType::Disconnected as u32, 0));
}

#[test]
fn closed_channel_disconnects_its_peers() {
    let (mut here, mut there) = sides();
    established(&mut here, &mut there);
    let now = there.now;
    there.manager.close(CHANNEL, &mut there.port, now);
    assert!(there.manager.is_empty());
    carry(&mut here, &mut there);
    assert_eq!(here.event(), (EventType::Disconnected as u32, 0));
}

#[test]
fn rejection_has_its_private_data() {
    let (mut here, mut there) = sides();
    there.listen(0xa0, TCP, "10.0.0.2:7174", 5);
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"").unwrap();
    carry(&mut here, &mut there);
    let (request, _) = there.next().unwrap();
    let reject = Reject {
        id: request.id,
        private_data_len: 3,
        private_data: Bytes::padded(b"no!"),
        ..Reject::default()
    };
    let wrong = Reject { reason: 1, ..reject };
    assert_eq!(there.run(&Request::Reject(wrong)), Err(Errno::INVALID));
    there.run(&Request::Reject(reject)).unwrap();
    carry(&mut here, &mut there);
    let (head, bytes) = here.next().unwrap();
    // The reason is "consumer reject".
    assert_eq!((head.event, head.status), (EventType::Rejected as u32, 28));
    assert_eq!(&ConnectionParam::read(&bytes).private_data.0[..3], b"no!");
    here.wait();
    assert_eq!(here.next(), None);
}

#[test]
fn request_without_a_listener_is_rejected() {
    let (mut here, mut there) = sides();
    there.listen(0xa0, TCP, "10.0.0.2:7174", 5);
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7175").unwrap();
    here.connect(active, b"").unwrap();
    carry(&mut here, &mut there);
    // The reason is "invalid service ID".
    assert_eq!(here.event(), (EventType::Rejected as u32, 8));
    assert_eq!(there.next(), None);
}

#[test]
fn peer_that_does_not_respond_is_unreachable() {
    let (mut here, _) = sides();
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"").unwrap();
    here.wait();
    assert_eq!(here.event(), (EventType::Unreachable as u32, -libc::ETIMEDOUT));
}

#[test]
fn requests_beyond_the_backlog_are_rejected() {
    let (mut here, mut there) = sides();
    there.listen(0xa0, TCP, "0.0.0.0:7174", 2);
    for qp in 0..3 {
        let active = here.create(0xb0 + qp, TCP);
        here.resolve(active, "10.0.0.2:7174").unwrap();
        let mut connect = Connect { parameters: parameters(0x30, b""), id: active, reserved: 0 };
        connect.parameters.qp_num += qp as u32;
        here.run(&Request::Connect(connect)).unwrap();
        carry(&mut here, &mut there);
    }
    assert_eq!(here.event(), (EventType::Rejected as u32, 28));
    assert_eq!(here.next(), None);
    for _ in 0..2 {
        assert_eq!(there.event(), (EventType::ConnectRequest as u32, 0));
    }
    assert_eq!(there.next(), None);
}

#[test]
fn destroyed_listener_rejects_requests_that_were_not_read() {
    let (mut here, mut there) = sides();
    let listener = there.listen(0xa0, TCP, "0.0.0.0:7174", 5);
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"").unwrap();
    carry(&mut here, &mut there);
    assert_eq!(there.destroy(listener), Ok(0));
    assert_eq!(there.next(), None);
    carry(&mut here, &mut there);
    assert_eq!(here.event(), (EventType::Rejected as u32, 28));
}

#[test]
fn listener_on_the_address_precedes_the_one_on_all_addresses() {
    let (mut here, mut there) = sides();
    let reuse = |side: &mut Side, id| {
        let option = SetOption { id, level: 0, name: 1, length: 4, value: 0 };
        let value = 1_i32.to_ne_bytes();
        let context = Context { now: side.now, option: &value, old_channel: None };
        side.manager.execute(CHANNEL, &Request::SetOption(option), context, &mut side.port)
    };
    let only = there.create(0xa1, TCP);
    reuse(&mut there, only).unwrap();
    there.bind(only, "[::]:7174").unwrap();
    there.run(&Request::Listen(Listen { id: only, backlog: 1 })).unwrap();
    let active = here.create(0xb0, TCP);
    here.resolve(active, "10.0.0.2:7174").unwrap();
    here.connect(active, b"").unwrap();
    carry(&mut here, &mut there);
    // The listener on all IPv6 addresses also gets requests to IPv4 addresses.
    assert_eq!(there.next().unwrap().0.uid, 0xa1);
}

#[test]
fn migrated_id_takes_its_events_along() {
    const OTHER: FileId = 2;
    let (mut here, mut there) = sides();
    let (active, _) = established(&mut here, &mut there);
    here.run(&Request::Disconnect(active)).unwrap();
    carry(&mut here, &mut there);
    here.open(OTHER);
    let migrate = Request::MigrateId(MigrateId { response: 0, id: active, fd: 9 });
    let context = Context { now: here.now, option: &[], old_channel: None };
    let result = here.manager.execute(OTHER, &migrate, context, &mut here.port);
    assert_eq!(result, Err(Errno::INVALID));
    let context = Context { old_channel: Some(CHANNEL), ..context };
    let result = here.manager.execute(OTHER, &migrate, context, &mut here.port);
    assert_eq!(result.map(|bytes| u32::read(&bytes)), Ok(3));
    assert_eq!(here.next(), None);
    let event = here.on(OTHER, &Request::GetEvent).unwrap();
    assert_eq!(EventHead::read(&event).event, EventType::Disconnected as u32);
    assert_eq!(here.destroy(active), Err(Errno::INVALID));
}

#[test]
fn calls_in_the_wrong_state_are_refused() {
    let (mut here, mut there) = sides();
    let id = here.create(1, TCP);
    assert_eq!(here.connect(id, b""), Err(Errno::INVALID));
    assert_eq!(here.accept(id, 1, b""), Err(Errno::INVALID));
    assert_eq!(here.run(&Request::Disconnect(id)), Err(Errno::INVALID));
    assert_eq!(here.bind(id, "10.0.0.9:1"), Err(Errno(libc::EADDRNOTAVAIL)));
    here.bind(id, "10.0.0.1:1").unwrap();
    assert_eq!(here.bind(id, "10.0.0.1:1"), Err(Errno::INVALID));
    let route = ResolveRoute { id, timeout_ms: 1 };
    assert_eq!(here.run(&Request::ResolveRoute(route)), Err(Errno::INVALID));
    here.resolve(id, "10.0.0.2:7174").unwrap();
    assert_eq!(here.run(&Request::Listen(Listen { id, backlog: 1 })), Err(Errno::INVALID));
    assert_eq!(here.connect(id, &[0; 57]), Err(Errno::INVALID));
    here.connect(id, &[0; 56]).unwrap();
    assert_eq!(here.connect(id, b""), Err(Errno::INVALID));
    carry(&mut here, &mut there);
    for (port_space, error) in [(0x9999, Errno::INVALID), (0x0107, Errno::INVALID)] {
        let create = CreateId { port_space, ..CreateId::default() };
        assert_eq!(here.run(&Request::CreateId(create)), Err(error));
    }
    let create = CreateId { port_space: 0x013f, qp_type: 9, ..CreateId::default() };
    assert_eq!(here.run(&Request::CreateId(create)), Err(Errno::NOT_SUPPORTED));
}

#[test]
fn unknown_destination_is_an_event() {
    let (mut here, _) = sides();
    let id = here.create(1, TCP);
    let bytes = socket("10.0.0.77:7").to_bytes();
    let resolve = ResolveAddr {
        id,
        destination_size: bytes.len() as u16,
        destination: Bytes::padded(&bytes),
        ..ResolveAddr::default()
    };
    here.run(&Request::ResolveAddr(resolve)).unwrap();
    assert_eq!(here.event(), (EventType::AddrError as u32, -libc::EHOSTUNREACH));
}

#[test]
fn removed_device_is_reported_to_the_ids_that_use_it() {
    let (mut here, mut there) = sides();
    established(&mut here, &mut there);
    there.manager.report_removal();
    assert_eq!(there.event(), (EventType::DeviceRemoval as u32, 0));
    // The listener on all addresses has no device.
    assert_eq!(there.next(), None);
}
