use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use ib_link::{Datagram, Incoming, LinkError, MadLink, Remote};
use ib_types::{Guid, Instant as Moment};
use ib_wire::mad::sm::{NodeInfo, PortInfo};
use ib_wire::mad::{AttributeId, Mad, Method, MgmtClass, TransactionId};

use super::*;
use crate::message::TIMED_OUT;
use crate::server::{Address, Input, Server};

/// A server in a thread. It reports port 3, sends every request back as a response, and returns
/// requests to LID 99 as undelivered.
struct Simulator {
    stop: Arc<AtomicBool>,
    /// True if a client has set `IsSM` by a separate message, as ibsim needs.
    is_sm: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Request>>>,
}

impl Simulator {
    fn new(address: Address) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut server = Server::bind(address).expect("the address is not in use");
        let stopped = Arc::clone(&stop);
        let is_sm = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_sm);
        let thread = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                while let Some(input) = server.next() {
                    if let Input::Connect { connect, .. } = &input {
                        assert!(
                            !connect.is_sm,
                            "IsSM is set only after the client can receive queries of other SMs"
                        );
                    }
                    if let Input::Control { message, .. } = &input
                        && message.kind == kind::SET_IS_SM
                    {
                        told.store(message.payload[..4] != [0; 4], Ordering::Relaxed);
                    }
                    serve(&mut server, input, &mut seen);
                }
                server.flush();
                server.wait(Some(Duration::from_millis(5))).expect("waits");
            }
            seen
        });
        Self { stop, is_sm, thread: Some(thread) }
    }

    fn stop(mut self) -> Vec<Request> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("the server runs").join().expect("the server has not panicked")
    }
}

fn serve(server: &mut Server, input: Input, seen: &mut Vec<Request>) {
    match input {
        Input::Connect { ticket, connect } if connect.node == "nowhere" => {
            drop(connect);
            server.refuse(&ticket);
        }
        Input::Connect { ticket, .. } => drop(server.accept(&ticket, "here")),
        Input::Control { client, message } => {
            let mut payload = [0; 64];
            match message.kind {
                kind::GET_PORT_INFO => {
                    let mut info = PortInfo::parse(&[0; 64]);
                    (info.local_port, info.lid, info.master_sm_lid) = (3, 17, 4);
                    info.emit(&mut payload);
                }
                kind::GET_NODE_INFO => {
                    let mut bytes = [0; NodeInfo::LENGTH];
                    let mut info = NodeInfo::parse(&bytes);
                    info.node_guid = Guid(0x10);
                    info.emit(&mut bytes);
                    payload[..bytes.len()].copy_from_slice(&bytes);
                }
                kind::GET_GID => {
                    payload[..8].copy_from_slice(&0xfe80_0000_0000_0000_u64.to_be_bytes());
                    payload[8..16].copy_from_slice(&0x10_u64.to_ne_bytes());
                }
                _ => payload = message.payload,
            }
            server.answer(client, &Control::new(client, message.kind, &payload));
        }
        Input::Request { client, mut request } => {
            seen.push(request);
            let mut mad = Mad(request.mad);
            if let Some(info) = mad.attribute::<NodeInfo>() {
                mad.set_attribute(&NodeInfo { port_guid: Guid(0x13), ..info });
                request.mad = mad.0;
            }
            if request.dlid == 99 {
                request.status = TIMED_OUT;
            } else {
                // Like ibsim, the test server overwrites the upper 16 bits of the transaction ID.
                request.mad[8..10].copy_from_slice(&[0, 5]);
                request.mad[3] |= 0x80;
                (request.dlid, request.slid) = (17, request.dlid);
            }
            server.send(client, &request);
        }
        Input::Gone { .. } | Input::Ready(_) => {}
    }
}

fn unique(what: &str) -> String {
    format!("ibfabric-client-{}-{what}", std::process::id())
}

fn attach(name: &str) -> Attach {
    Attach::new(ServerAddress::Name(name.to_owned()))
}

fn get(lid: u16, id: u64) -> Datagram {
    let mut mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(id));
    mad.set_attribute_id(AttributeId::PORT_COUNTERS);
    mad.0[255] = 0xee;
    Datagram::new(Remote::gsi(lid), mad)
}

fn next(link: &mut IbsimLink) -> Incoming {
    let deadline = link.now() + Duration::from_secs(5);
    loop {
        if let Some(incoming) = link.receive().expect("the server runs") {
            return incoming;
        }
        assert!(link.now() < deadline, "no message arrived");
        link.wait(deadline).expect("the server runs");
    }
}

#[test]
fn requests_and_responses_are_unchanged() {
    let name = unique("whole");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let mut link = IbsimLink::attach(&attach(&name)).expect("the server replies");
    assert_eq!(link.client().node(), "here");
    let port = link.port().expect("the server replies");
    assert_eq!((port.number, port.lid, port.sm_lid), (3, 17, 4));
    assert_eq!((port.node_guid, port.port_guid), (Guid(0x10), Guid(0x13)));
    assert_eq!(port.gid_prefix, 0xfe80_0000_0000_0000);

    for id in [7, 0xabcd_0001_0002_0003] {
        let sent = get(5, id);
        link.send(&sent).expect("sent");
        let Incoming::Received(received) = next(&mut link) else { panic!("no response") };
        assert_eq!(
            (received.remote.lid, received.remote.qpn.get(), received.local_qpn.get()),
            (5, 1, 1)
        );
        let mut expected = sent.mad;
        expected.set_method(Method::GET_RESP);
        assert_eq!(received.mad, expected);
    }
    let sent = get(99, 0x1111_0000_0000_0009);
    link.send(&sent).expect("sent");
    assert_eq!(next(&mut link), Incoming::Lost(sent));

    assert_eq!(link.receive().expect("the server runs"), None);
    let before = link.now();
    link.wait(before + Duration::from_millis(20)).expect("waits");
    assert!(link.now() - before >= Duration::from_millis(20));
    drop(link);
    let seen = simulator.stop();
    assert!(seen.iter().all(|request| request.mad[8..10] == [0, 0]), "the upper bits are zeros");
}

#[test]
fn undelivered_response_is_returned_unchanged() {
    let name = unique("response");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let mut link = IbsimLink::attach(&attach(&name)).expect("the server replies");
    // The link's request and the request to which the link responds differ in the upper bits of the
    // transaction ID only.
    link.send(&get(5, 0x1111_0000_0000_0009)).expect("sent");
    assert!(matches!(next(&mut link), Incoming::Received(_)));
    let mut response = get(99, 0x0002_0000_0000_0009);
    response.mad.set_method(Method::GET_RESP);
    link.send(&response).expect("sent");
    assert_eq!(next(&mut link), Incoming::Lost(response));
    drop(link);
    simulator.stop();
}

#[test]
fn sm_sets_is_sm_by_a_separate_message() {
    let name = unique("manager");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let client = IbsimLink::attach(&attach(&name)).expect("the server replies");
    assert!(!simulator.is_sm.load(Ordering::Relaxed));
    drop(client);
    let link =
        IbsimLink::attach(&Attach { is_sm: true, ..attach(&name) }).expect("the server replies");
    assert!(simulator.is_sm.load(Ordering::Relaxed));
    drop(link);
    simulator.stop();
}

#[test]
fn process_has_several_links_and_links_over_udp() {
    let name = unique("several");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let mut links: Vec<_> =
        (0..3).map(|_| IbsimLink::attach(&attach(&name)).expect("room")).collect();
    for (id, link) in (0..).zip(&mut links) {
        link.send(&get(5, id)).expect("sent");
    }
    for (id, link) in (0..).zip(&mut links) {
        let Incoming::Received(received) = next(link) else { panic!("no response") };
        assert_eq!(received.mad.transaction_id(), TransactionId(id));
    }
    simulator.stop();

    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("a UDP port can be bound");
    let port = free.local_addr().expect("the socket is bound").port();
    drop(free);
    let simulator = Simulator::new(Address::Port(port));
    let server = ServerAddress::Udp { host: "127.0.0.1".to_owned(), port };
    let mut link = IbsimLink::attach(&Attach::new(server)).expect("the server replies");
    link.send(&get(5, 1)).expect("sent");
    assert!(matches!(next(&mut link), Incoming::Received(_)));
    simulator.stop();
}

#[test]
fn errors_name_the_server() {
    let name = unique("nobody");
    let patience = Duration::from_millis(150);
    let error =
        IbsimLink::attach(&Attach { patience, ..attach(&name) }).err().expect("no server listens");
    assert!(matches!(error, ClientError::NoServer { .. }), "{error}");
    assert!(error.to_string().contains(&format!("@{name}:ctl")), "{error}");
    let server = ServerAddress::Udp { host: "127.0.0.1".to_owned(), port: 1 };
    let error = IbsimLink::attach(&Attach { patience, ..Attach::new(server) }).err();
    assert!(matches!(error, Some(ClientError::NoServer { .. })), "{error:?}");

    let name = unique("silent");
    let silent = Server::bind(Address::Name(name.clone())).expect("the name is not in use");
    let error = IbsimLink::attach(&Attach { patience, ..attach(&name) })
        .err()
        .expect("the server is silent");
    assert!(matches!(error, ClientError::Silent { .. }), "{error}");
    drop(silent);

    let name = unique("refuses");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let node = Some("nowhere".to_owned());
    let error =
        IbsimLink::attach(&Attach { node, ..attach(&name) }).err().expect("the server refuses");
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("\"nowhere\""), "{error}");
    let node = Some("n".repeat(32));
    let error =
        IbsimLink::attach(&Attach { node, ..attach(&name) }).err().expect("the name is too long");
    assert!(matches!(error, ClientError::Node { .. }), "{error}");

    let mut link = IbsimLink::attach(&attach(&name)).expect("room");
    simulator.stop();
    assert!(matches!(link.send(&get(5, 1)), Err(LinkError::Closed { .. })));
    assert!(matches!(link.port(), Err(LinkError::Closed { .. })));
    assert!(link.now() > Moment::ZERO);
}

#[test]
fn disconnected_sm_clears_is_sm() {
    let name = unique("duty");
    let simulator = Simulator::new(Address::Name(name.clone()));
    let attach = Attach { is_sm: true, ..Attach::new(ServerAddress::Name(name)) };
    let client = Client::attach(&attach).expect("the server replies");
    assert!(simulator.is_sm.load(Ordering::Relaxed));
    drop(client);
    assert!(!simulator.is_sm.load(Ordering::Relaxed));
    simulator.stop();
}
