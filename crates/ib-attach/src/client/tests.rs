use ib_types::{Gid, Guid, Mtu, ServiceLevel};

use super::*;
use crate::{AttachServer, ClientEvent, LinkLayer, SLOTS};

fn details() -> PortDetails {
    PortDetails {
        port: ib_link::LinkPort { port_guid: Guid(7), lid: 3, ..ib_link::LinkPort::default() },
        is_active: true,
        mtu: Mtu::B4096,
        rate: ib_wire::mad::sa::RateCode::GBPS_100,
        registrations: 2,
        port_count: 1,
        p_keys: vec![0xffff],
        node: "host".to_owned(),
        addresses: vec!["10.0.0.1".parse().expect("the text is an IP address")],
        qpn_block: 1,
        link_layer: LinkLayer::InfiniBand,
    }
}

fn packet() -> Frame {
    Frame::Packet { slid: 3, dlid: 4, sl: ServiceLevel::default(), grh: None }
}

/// Returns a simulator, the key of its client, and the client.
fn pair(name: &str) -> (AttachServer, usize, AttachedPort) {
    let name = format!("attach-unit-{name}-{}", std::process::id());
    let mut server = AttachServer::bind(&name).expect("the name is not in use");
    let options = AttachOptions { name, node: Some("host:1".to_owned()) };
    let caller = std::thread::spawn(move || {
        AttachedPort::attach(&options, MgmtClass::COMMUNICATION).expect("the client is admitted")
    });
    let client = loop {
        if let [client] = server.accept()[..] {
            break client;
        }
        std::thread::yield_now();
    };
    let said = loop {
        match server.next(client) {
            Some(said) => break said,
            None => std::thread::yield_now(),
        }
    };
    let classes = vec![MgmtClass::COMMUNICATION];
    assert_eq!(said, ClientEvent::Hello { node: Some("host:1".to_owned()), classes });
    server.admit(client, &details()).expect("the rings are created");
    let port = caller.join().expect("the thread has not panicked");
    assert_eq!(*port.details(), details());
    (server, client, port)
}

#[test]
fn sender_does_not_sleep_while_the_ring_has_room() {
    let (mut server, client, mut port) = pair("room");
    let mut sent = 0;
    while port.send_with(|_| Some((packet(), 16))) {
        sent += 1;
    }
    assert_eq!(sent, SLOTS);
    let mut bytes = Vec::new();
    while server.take(client, &mut bytes).is_some() {}
    let start = clock::now();
    port.wait(start + Duration::from_secs(5), true, None).expect("the simulator is connected");
    assert!(clock::now().since(start) < Duration::from_secs(1));
    // If `wants_room` is false, a free slot does not end the wait.
    let start = clock::now();
    port.wait(start + Duration::from_millis(50), false, None).expect("the simulator is connected");
    assert!(clock::now().since(start) >= Duration::from_millis(50));
}

#[test]
fn port_changes_lookups_and_end_of_stream_are_reported() {
    let (mut server, client, mut port) = pair("talk");
    let changed = PortDetails { is_active: false, ..details() };
    server.notify_port(client, &changed);
    port.wait(clock::now() + Duration::from_secs(5), false, None)
        .expect("the simulator is connected");
    assert_eq!((port.details(), port.changes()), (&changed, 1));
    let asked =
        std::thread::spawn(move || (port.resolve("host-2").expect("the simulator responds"), port));
    let number = loop {
        match server.next(client) {
            Some(ClientEvent::Resolve { number, name }) => {
                assert_eq!(name, "host-2");
                break number;
            }
            None => std::thread::yield_now(),
            other => panic!("{other:?}"),
        }
    };
    let place = ResolvedPort { node: "host-2".to_owned(), number: 1, gid: Gid(9), lid: 5 };
    server.answer(client, number, Some(&place));
    let (found, mut port) = asked.join().expect("the thread has not panicked");
    assert_eq!(found, Some(place));
    drop(server);
    let error = port.wait(clock::now() + Duration::from_secs(5), false, None);
    assert!(matches!(error, Err(AttachError::Gone { .. })), "{error:?}");
}
