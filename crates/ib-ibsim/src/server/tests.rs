use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::*;

/// Returns a socket name that no other test or run uses.
fn unique(what: &str) -> String {
    format!("ibfabric-test-{}-{what}", std::process::id())
}

fn abstract_name(base: &str, what: &str) -> SocketAddr {
    SocketAddr::from_abstract_name(format!("{base}:{what}\0")).expect("the name fits")
}

/// The sockets of a client, opened as libumad2sim opens them.
struct Peer {
    base: String,
    control: UnixDatagram,
    data: UnixDatagram,
}

impl Peer {
    fn new(base: &str, id: u32) -> Self {
        let bind = |what: String| {
            let socket = UnixDatagram::bind_addr(&abstract_name(base, &what))
                .expect("the name is not in use");
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .expect("the socket accepts a read timeout");
            socket
        };
        let control = bind(format!("ctl{id}"));
        control.connect_addr(&abstract_name(base, "ctl")).expect("the server is bound");
        Self { base: base.to_owned(), control, data: bind(format!("in{id}")) }
    }

    fn send_control(&self, message: &Control) {
        self.control.send(&message.to_bytes()).expect("sent");
    }

    fn receive_control(&self) -> Control {
        let mut bytes = [0; 200];
        let length = self.control.recv(&mut bytes).expect("the server responds");
        Control::parse(&bytes[..length]).expect("the reply is valid")
    }

    /// Connects to the server, which the same thread drives.
    fn connect(&self, server: &mut Server, id: u32) -> u32 {
        let wish = Connect { id, queue_pair: 0, is_sm: false, node: "here".to_owned() };
        self.send_control(&Control::new(0, kind::CONNECT, &wish.to_bytes()));
        let Input::Connect { ticket, connect } = input(server) else {
            panic!("no connect message")
        };
        assert_eq!(connect, wish);
        let client = server.accept(&ticket, "there").expect("sockets");
        let answer = self.receive_control();
        assert_eq!((answer.kind, answer.client), (kind::CONNECT, client));
        assert_eq!(Connect::parse(&answer.payload).node, "there");
        let out = abstract_name(&self.base, &format!("out{client}"));
        self.data.connect_addr(&out).expect("the server has bound the socket");
        client
    }
}

fn input(server: &mut Server) -> Input {
    for _ in 0..100 {
        if let Some(input) = server.next() {
            return input;
        }
        server.wait(Some(Duration::from_millis(50))).expect("the system waits");
    }
    panic!("no input arrived");
}

fn request(number: u8) -> Request {
    Request {
        dlid: 0xffff,
        slid: 0xffff,
        destination_queue_pair: 0,
        source_queue_pair: 0,
        status: 0,
        length: 256,
        mad: [number; 256],
    }
}

#[test]
fn client_connects_sends_requests_and_disconnects() {
    let base = unique("comes");
    let mut server = Server::bind(Address::Name(base.clone())).expect("the name is not in use");
    let peer = Peer::new(&base, 17);
    let client = peer.connect(&mut server, 17);

    peer.send_control(&Control::new(client, kind::GET_GUID, &[]));
    let Input::Control { client: from, message } = input(&mut server) else {
        panic!("no control message")
    };
    assert_eq!((from, message.kind), (client, kind::GET_GUID));
    server.answer(client, &Control::new(client, kind::GET_GUID, &[1; 8]));
    assert_eq!(peer.receive_control().payload[..9], [1, 1, 1, 1, 1, 1, 1, 1, 0]);

    for number in 0..9 {
        peer.data.send(&request(number).to_bytes()).expect("room");
    }
    for number in 0..9 {
        let Input::Request { request: got, .. } = input(&mut server) else { panic!("no request") };
        assert_eq!(got, request(number));
        server.send(client, &got);
    }
    server.flush();
    let mut bytes = [0; 300];
    for number in 0..9 {
        let length = peer.data.recv(&mut bytes).expect("the server responds");
        assert_eq!(Request::parse(&bytes[..length]), Ok(request(number)));
    }

    peer.send_control(&Control::new(client, kind::DISCONNECT, &[]));
    assert!(matches!(input(&mut server), Input::Gone { client: gone } if gone == client));
    assert_eq!(peer.receive_control().kind, kind::DISCONNECT);
}

#[test]
fn malformed_and_forged_messages_are_counted() {
    let base = unique("wrong");
    let mut server = Server::bind(Address::Name(base.clone())).expect("the name is not in use");
    let (honest, liar) = (Peer::new(&base, 21), Peer::new(&base, 22));
    let client = honest.connect(&mut server, 21);

    let wish = Connect { id: 99, queue_pair: 0, is_sm: false, node: String::new() };
    liar.send_control(&Control::new(0, kind::CONNECT, &wish.to_bytes()));
    liar.send_control(&Control::new(client, kind::DISCONNECT, &[]));
    liar.control.send(&[1, 2, 3]).expect("sent");
    honest.data.send(&[0; 300]).expect("sent");
    honest.data.send(&request(7).to_bytes()).expect("sent");
    let Input::Request { .. } = input(&mut server) else { panic!("no request") };
    assert_eq!(liar.receive_control().kind, kind::ERROR);
    assert_eq!(liar.receive_control().kind, kind::ERROR);
    assert_eq!(server.refused(), Refused { malformed: 2, forged: 2, overflowed: 0 });
    assert!(Server::bind(Address::Name(base)).is_err(), "a name in use is refused");
}

#[test]
fn stalled_client_does_not_block_others() {
    let base = unique("slow");
    let mut server = Server::bind(Address::Name(base.clone())).expect("the name is not in use");
    let (slow, quick) = (Peer::new(&base, 31), Peer::new(&base, 32));
    let (slow_client, quick_client) =
        (slow.connect(&mut server, 31), quick.connect(&mut server, 32));
    for number in 0..100 {
        server.send(slow_client, &request(number));
    }
    server.send(quick_client, &request(1));
    server.flush();
    let mut bytes = [0; 300];
    quick.data.recv(&mut bytes).expect("a request arrives");
    // The queued messages arrive in order when the client reads again.
    for number in 0..100 {
        slow.data.set_nonblocking(true).expect("the socket can be non-blocking");
        let length = loop {
            match slow.data.recv(&mut bytes) {
                Ok(length) => break length,
                Err(_) => server.wait(Some(Duration::from_millis(20))).expect("waits"),
            }
        };
        assert_eq!(Request::parse(&bytes[..length]), Ok(request(number)));
    }
}

#[test]
fn exited_client_is_removed() {
    let base = unique("dies");
    let mut server = Server::bind(Address::Name(base.clone())).expect("the name is not in use");
    let peer = Peer::new(&base, 41);
    let client = peer.connect(&mut server, 41);
    drop(peer);
    server.send(client, &request(0));
    server.flush();
    assert!(matches!(input(&mut server), Input::Gone { client: gone } if gone == client));
}

#[test]
fn udp_ports_in_use_are_skipped() {
    // Another socket uses the UDP port of client number 0, which is the server's port + 1.
    let (port, _foreign) = std::iter::repeat_with(|| {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("a UDP port can be bound");
        free.local_addr().expect("the socket is bound").port()
    })
    .find_map(|port| {
        let next = port.checked_add(1)?;
        Some((port, std::net::UdpSocket::bind(("127.0.0.1", next)).ok()?))
    })
    .expect("the iterator is infinite");
    let mut server = Server::bind(Address::Port(port)).expect("the port is free again");
    let socket = |to: u16| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a UDP port can be bound");
        socket.connect(("127.0.0.1", to)).expect("loopback");
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("the socket accepts a read timeout");
        socket
    };
    let (control, data) = (socket(port), socket(port));
    let id = u32::from(data.local_addr().expect("bound").port());
    let wish = Connect { id, queue_pair: 0, is_sm: true, node: String::new() };
    control.send(&Control::new(0, kind::CONNECT, &wish.to_bytes()).to_bytes()).expect("sent");
    let Input::Connect { ticket, .. } = input(&mut server) else { panic!("no connect message") };
    let client = server.accept(&ticket, "there").expect("sockets");
    let mut bytes = [0; 300];
    let length = control.recv(&mut bytes).expect("the server responds");
    assert_eq!(Control::parse(&bytes[..length]).expect("the reply is valid").client, client);
    assert!(client > 0, "the client number whose port is in use is skipped");
    data.connect(("127.0.0.1", port + 1 + client as u16)).expect("loopback");
    data.send(&request(5).to_bytes()).expect("sent");
    assert!(matches!(input(&mut server), Input::Request { .. }));
    server.send(client, &request(6));
    server.flush();
    let length = data.recv(&mut bytes).expect("the server responds");
    assert_eq!(Request::parse(&bytes[..length]), Ok(request(6)));
}
