//! Programs that are slow, and what others see of that: nothing.

use std::time::Instant;

use ib_wire::acm::ClientOpcode;

use super::*;

/// What is answered to every request.
const ANSWER: [u8; 88] = [7; 88];

fn tcp() -> (Server, SocketAddr) {
    let tcp = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let options = ServerOptions { tcp, most_clients: 100, ..ServerOptions::default() };
    let server = Server::bind(&options).expect("the address is free");
    let address = server.tcp().expect("a list")[0];
    (server, address)
}

fn call(address: SocketAddr) -> std::net::TcpStream {
    let stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream.set_nonblocking(true).expect("a socket");
    stream
}

/// A request of some bytes.
fn request(length: usize) -> Vec<u8> {
    let mut header = ClientHeader::new(ClientOpcode::RESOLVE, [1; 8]);
    header.set_length(length, ByteOrder::NATIVE);
    let mut bytes = header.to_bytes().to_vec();
    bytes.resize(length, 5);
    bytes
}

/// Serves once; returns how many requests were taken.
fn serve(server: &mut Server) -> usize {
    let mut taken = 0;
    server.wait(Duration::from_millis(1)).expect("the server can poll");
    server.serve(|_, _, out| {
        taken += 1;
        out.extend_from_slice(&ANSWER);
        true
    });
    taken
}

/// Reads what is there.
fn read(stream: &mut impl Read, most: usize) -> usize {
    let mut room = vec![0; most];
    stream.read(&mut room).unwrap_or(0)
}

/// Has a program ask and get its answer, in so many rounds at most.
fn is_answered(server: &mut Server, stream: &mut (impl Read + Write), rounds: usize) -> bool {
    stream.write_all(&request(HEADER_LENGTH)).expect("the peer accepts data");
    let mut got = 0;
    (0..rounds).any(|_| {
        serve(server);
        got += read(stream, ANSWER.len() - got);
        got == ANSWER.len()
    })
}

#[test]
fn what_waits_for_a_program_that_is_always_behind_stays_small() {
    // The system keeps little for a program here, so that the rest is the service's to keep.
    let directory = tempfile::tempdir().expect("a directory");
    let unix = Some(directory.path().join("acm.sock"));
    let options = ServerOptions { unix, most_clients: 10, ..ServerOptions::default() };
    let mut server = Server::bind(&options).expect("the address is free");
    let call = || {
        let path = options.unix.as_ref().expect("`options` has a path");
        let stream = std::os::unix::net::UnixStream::connect(path).expect("the server listens");
        stream.set_nonblocking(true).expect("a socket");
        stream
    };
    let (mut slow, mut other) = (call(), call());
    let asked = request(HEADER_LENGTH).repeat(4096);
    let (mut got, mut caught_up, mut at) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(60);
    while got < 16 << 20 {
        assert!(Instant::now() < end, "{got} bytes");
        // It always asks for more than it takes.
        if let Ok(length) = slow.write(&asked[at..]) {
            at = (at + length) % asked.len();
        }
        serve(&mut server);
        got += read(&mut slow, 32 * 1024);
        let waits = server.clients.iter().flatten().map(|it| it.output.len() - it.sent).max();
        caught_up += usize::from(got > 1 << 20 && waits == Some(0));
        let room = server.clients.iter().flatten().map(|it| it.output.capacity()).max();
        assert!(room.is_none_or(|room| room <= 1 << 20), "{room:?} bytes after {got}");
    }
    assert_eq!(caught_up, 0, "it is always behind");
    assert!(is_answered(&mut server, &mut other, 100), "another one sees nothing of that");
}

#[test]
fn requests_over_tcp_that_come_in_halves_or_byte_by_byte_keep_nobody_waiting() {
    let (mut server, address) = tcp();
    let mut half = call(address);
    half.write_all(&request(88)[..50]).expect("the peer accepts data");
    let mut header = call(address);
    header.write_all(&request(88)[..7]).expect("the peer accepts data");
    let (mut slow, mut other) = (call(address), call(address));
    for byte in request(88) {
        slow.write_all(&[byte]).expect("the peer accepts data");
        assert!(is_answered(&mut server, &mut other, 100));
    }
    let mut got = 0;
    for _ in 0..100 {
        serve(&mut server);
        got += read(&mut slow, 1000);
    }
    assert_eq!(got, ANSWER.len(), "one request, however slow, has one answer");
    // The rest of the halves, and the end of one.
    half.write_all(&request(88)[50..]).expect("the peer accepts data");
    drop(header);
    let mut got = 0;
    for _ in 0..100 {
        serve(&mut server);
        got += read(&mut half, 1000);
    }
    assert_eq!((got, server.clients()), (ANSWER.len(), 3));
    assert_eq!(server.rejected(), Rejected::default());
}
