//! A slow client must not delay other clients.

use std::time::Instant;

use ib_wire::acm::ClientOpcode;

use super::*;

/// The reply to every request.
const REPLY: [u8; 88] = [7; 88];

fn tcp_server() -> (Server, SocketAddr) {
    let tcp = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let options = ServerOptions { tcp, max_clients: 100, ..ServerOptions::default() };
    let server = Server::bind(&options).expect("the address is free");
    let address = server.tcp_addresses().expect("each listener has an address")[0];
    (server, address)
}

fn connect(address: SocketAddr) -> std::net::TcpStream {
    let stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.set_nonblocking(true).expect("the socket can be made non-blocking");
    stream
}

/// Returns a request that is `length` bytes long.
fn request(length: usize) -> Vec<u8> {
    let mut header = ClientHeader::new(ClientOpcode::RESOLVE, [1; 8]);
    header.set_length(length, ByteOrder::NATIVE);
    let mut bytes = header.to_bytes().to_vec();
    bytes.resize(length, 5);
    bytes
}

/// Serves all clients once; returns the number of requests handled.
fn serve(server: &mut Server) -> usize {
    let mut handled = 0;
    server.wait(Duration::from_millis(1)).expect("the server can poll");
    server.serve(|_, _, out| {
        handled += 1;
        out.extend_from_slice(&REPLY);
        true
    });
    handled
}

/// Reads at most `limit` bytes without blocking; returns the number of bytes read.
fn read(stream: &mut impl Read, limit: usize) -> usize {
    let mut buffer = vec![0; limit];
    stream.read(&mut buffer).unwrap_or(0)
}

/// Sends a request; returns true if its reply is received within `rounds` calls of [`serve`].
fn gets_reply(server: &mut Server, stream: &mut (impl Read + Write), rounds: usize) -> bool {
    stream.write_all(&request(HEADER_LENGTH)).expect("the peer accepts data");
    let mut got = 0;
    (0..rounds).any(|_| {
        serve(server);
        got += read(stream, REPLY.len() - got);
        got == REPLY.len()
    })
}

#[test]
fn output_of_a_client_that_never_catches_up_stays_bounded() {
    // The kernel buffers less data for a Unix socket than for TCP, so that the server must buffer more.
    let directory = tempfile::tempdir().expect("a temporary directory can be created");
    let unix = Some(directory.path().join("acm.sock"));
    let options = ServerOptions { unix, max_clients: 10, ..ServerOptions::default() };
    let mut server = Server::bind(&options).expect("the address is free");
    let connect = || {
        let path = options.unix.as_ref().expect("`options` contains a Unix socket path");
        let stream = std::os::unix::net::UnixStream::connect(path).expect("the server listens");
        stream.set_nonblocking(true).expect("the socket can be made non-blocking");
        stream
    };
    let (mut slow, mut other) = (connect(), connect());
    let requests = request(HEADER_LENGTH).repeat(4096);
    let (mut received, mut caught_up, mut at) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(60);
    while received < 16 << 20 {
        assert!(Instant::now() < end, "only {received} bytes received in 60 s");
        // In each round the client sends as many requests as its socket accepts, but reads at most 32 KiB of replies.
        if let Ok(length) = slow.write(&requests[at..]) {
            at = (at + length) % requests.len();
        }
        serve(&mut server);
        received += read(&mut slow, 32 * 1024);
        let unsent = server.clients.iter().flatten().map(|it| it.output.len() - it.sent).max();
        caught_up += usize::from(received > 1 << 20 && unsent == Some(0));
        let capacity = server.clients.iter().flatten().map(|it| it.output.capacity()).max();
        let is_bounded = capacity.is_none_or(|capacity| capacity <= 1 << 20);
        assert!(is_bounded, "output buffer of {capacity:?} bytes after {received} bytes");
    }
    assert_eq!(caught_up, 0, "the slow client never catches up");
    assert!(gets_reply(&mut server, &mut other, 100), "another client gets its reply");
}

#[test]
fn requests_in_fragments_do_not_delay_other_clients() {
    let (mut server, address) = tcp_server();
    let mut half = connect(address);
    half.write_all(&request(88)[..50]).expect("the peer accepts data");
    let mut header = connect(address);
    header.write_all(&request(88)[..7]).expect("the peer accepts data");
    let (mut slow, mut other) = (connect(address), connect(address));
    for byte in request(88) {
        slow.write_all(&[byte]).expect("the peer accepts data");
        assert!(gets_reply(&mut server, &mut other, 100));
    }
    let mut got = 0;
    for _ in 0..100 {
        serve(&mut server);
        got += read(&mut slow, 1000);
    }
    assert_eq!(
        got,
        REPLY.len(),
        "the server sends one reply to a request that arrives in single bytes"
    );
    // The client `half` completes its request. The client `header` disconnects; it has sent only a part of a header.
    half.write_all(&request(88)[50..]).expect("the peer accepts data");
    drop(header);
    let mut got = 0;
    for _ in 0..100 {
        serve(&mut server);
        got += read(&mut half, 1000);
    }
    assert_eq!((got, server.client_count()), (REPLY.len(), 3));
    assert_eq!(server.rejected(), RejectedClients::default());
}
