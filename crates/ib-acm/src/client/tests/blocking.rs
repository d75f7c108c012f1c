use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use ib_wire::acm::{ClientHeader, ClientStatus, Entry, HEADER_LENGTH};

use super::super::{
    Client, ClientError, ClientOptions, CounterScope, ReplyDefect, ResolveOptions, ServiceAddress,
};
use super::server::{Peer, SOON, Server};
use super::{answer, counters, endpoint, path, resolved};
use crate::Address;

const NOW: ResolveOptions = ResolveOptions { no_delay: false, query_sa: false };

fn connect(server: &Server, options: ClientOptions) -> Client {
    Client::connect(&server.address, options).unwrap()
}

fn node(name: &str) -> Address {
    Address::name(name).unwrap()
}

/// Script of a server that responds to requests with paths, counters and two endpoints.
fn serves(peer: &mut Peer) {
    while let Some(request) = peer.request() {
        let header = ClientHeader::parse(request.first_chunk().unwrap());
        match (header.opcode.0, header.src_out) {
            (1, _) if request.len() == HEADER_LENGTH + Entry::LENGTH => {
                peer.answer(&request, ClientStatus::SUCCESS, &resolved(7, Some([10, 0, 0, 1])));
            }
            (1, _) => peer.answer(&request, ClientStatus::SUCCESS, &resolved(8, None)),
            (2, _) => peer.answer(&request, ClientStatus::SUCCESS, &counters(&[0, 5])),
            (3, index @ 1..=2) => {
                let name = format!("node{index}");
                peer.answer(&request, ClientStatus::SUCCESS, &endpoint(index.into(), &[&name]));
            }
            _ => peer.answer(&request, ClientStatus::EINVAL, &[]),
        }
    }
}

fn check_all_requests(server: &Server) {
    let mut client = connect(server, ClientOptions::default());
    let found = client.resolve(None, &node("b"), NOW).unwrap();
    assert_eq!((found.path, found.source), (path(7), Some(Address::V4([10, 0, 0, 1].into()))));
    let found = client.resolve(Some(&node("a")), &node("b"), NOW).unwrap();
    assert_eq!((found.path, found.source), (path(8), None));
    assert_eq!(client.resolve_path(&path(9), NOW).unwrap().path, path(7));
    let perf = client.perf(&CounterScope::Service).unwrap();
    assert_eq!((&perf.0[..], perf.known().resolves, perf.known().no_data), (&[0, 5][..], 5, 0));
    let endpoints = client.endpoints(0).unwrap();
    let names: Vec<_> = endpoints.iter().map(|it| (it.index, &*it.addresses[0])).collect();
    assert_eq!(names, [(1, "node1"), (2, "node2")]);
}

#[test]
fn all_requests_work_over_tcp() {
    check_all_requests(&Server::tcp(serves));
}

#[test]
#[cfg(unix)]
fn all_requests_work_over_a_unix_socket() {
    check_all_requests(&Server::unix(serves));
}

#[test]
fn reply_may_arrive_in_parts() {
    let server = Server::tcp(|peer| {
        let request = peer.request().unwrap();
        for piece in answer(&request, true, ClientStatus::SUCCESS, &resolved(7, None)).chunks(30) {
            peer.send(piece);
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut client = connect(&server, ClientOptions::default());
    assert_eq!(client.resolve(None, &node("b"), NOW).unwrap().path, path(7));
}

#[test]
fn every_status_has_an_error_kind() {
    const EXPECTED: [(u8, ErrorKind); 11] = [
        (1, ErrorKind::OutOfMemory),
        (2, ErrorKind::InvalidInput),
        (3, ErrorKind::NotFound),
        (4, ErrorKind::InvalidInput),
        (5, ErrorKind::NotConnected),
        (6, ErrorKind::TimedOut),
        (7, ErrorKind::AddrNotAvailable),
        (8, ErrorKind::InvalidInput),
        (9, ErrorKind::AddrNotAvailable),
        (10, ErrorKind::InvalidInput),
        (200, ErrorKind::InvalidInput),
    ];
    let server = Server::tcp(|peer| {
        for (status, _) in EXPECTED {
            let request = peer.request().unwrap();
            peer.answer(&request, ClientStatus(status), &[]);
        }
    });
    let mut client = connect(&server, ClientOptions::default());
    for (status, kind) in EXPECTED {
        let error = client.resolve(None, &node("b"), NOW).unwrap_err();
        assert_eq!((error.status(), error.kind()), (Some(ClientStatus(status)), kind));
        assert_eq!(std::io::Error::from(error).kind(), kind);
    }
}

#[test]
fn late_reply_does_not_complete_the_next_request() {
    let server = Server::tcp(|peer| {
        let (first, second) = (peer.request().unwrap(), peer.request().unwrap());
        peer.answer(&first, ClientStatus::SUCCESS, &resolved(1, None));
        peer.answer(&second, ClientStatus::SUCCESS, &resolved(2, None));
    });
    let mut client = connect(&server, SOON);
    let start = Instant::now();
    let error = client.resolve(None, &node("b"), NOW).unwrap_err();
    assert!(start.elapsed() >= SOON.reply);
    assert!(matches!(error, ClientError::Timeout { limit, .. } if limit == SOON.reply), "{error}");
    client.set_reply_timeout(Duration::from_secs(30));
    assert_eq!(client.resolve(None, &node("c"), NOW).unwrap().path, path(2));
}

#[test]
fn received_bytes_do_not_extend_the_reply_timeout() {
    let server = Server::tcp(|peer| {
        let request = peer.request().unwrap();
        for byte in answer(&request, true, ClientStatus::SUCCESS, &resolved(1, None)) {
            peer.send(&[byte]);
            thread::sleep(Duration::from_millis(10));
        }
    });
    let mut client = connect(&server, SOON);
    let error = client.resolve(None, &node("b"), NOW).unwrap_err();
    assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
}

#[test]
fn closed_connection_fails_all_further_requests() {
    let server = Server::tcp(|peer| {
        let request = peer.request().unwrap();
        peer.send(&answer(&request, true, ClientStatus::SUCCESS, &resolved(1, None))[..50]);
    });
    let mut client = connect(&server, ClientOptions::default());
    for _ in 0..2 {
        let error = client.resolve(None, &node("b"), NOW).unwrap_err();
        assert!(matches!(error, ClientError::Closed { incomplete: 50, .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn invalid_reply_fails_the_connection() {
    let server = Server::tcp(|peer| {
        let request = peer.request().unwrap();
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        assert_eq!(
            peer.request(),
            None,
            "the client sent another request after the one of {} bytes",
            request.len()
        );
    });
    let mut client = connect(&server, ClientOptions::default());
    for _ in 0..2 {
        let error = client.perf(&CounterScope::Service).unwrap_err();
        let ClientError::Reply { error: reply, .. } = &error else { panic!("{error}") };
        assert_eq!(reply.defect, ReplyDefect::Version(b'H'));
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}

#[test]
fn connect_error_has_the_address_of_the_service() {
    let directory = tempfile::tempdir().unwrap();
    let unused = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let error = Client::connect(&ServiceAddress::tcp("127.0.0.1", port), SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let expected = ServiceAddress::tcp("127.0.0.1", port);
    assert!(matches!(error, ClientError::Connect { service, .. } if service == expected));
    #[cfg(unix)]
    {
        let path = directory.path().join("none");
        let error = Client::connect(&ServiceAddress::Unix(path.clone()), SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let expected = ServiceAddress::Unix(path);
        assert!(matches!(error, ClientError::Connect { service, .. } if service == expected));
        let error = Client::connect(&ServiceAddress::Unix("/x".repeat(200).into()), SOON);
        assert!(matches!(error, Err(ClientError::Connect { .. })));
    }
    drop(directory);
}

/// While the backlog of the listener is full, the system blocks a client that connects.
#[test]
#[cfg(target_os = "linux")]
fn connecting_to_a_full_backlog_times_out() {
    use rustix::net;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full");
    let socket = net::socket(net::AddressFamily::UNIX, net::SocketType::STREAM, None).unwrap();
    net::bind(&socket, &net::SocketAddrUnix::new(&path).unwrap()).unwrap();
    net::listen(&socket, 0).unwrap();
    let service = ServiceAddress::Unix(path);
    let options = ClientOptions { connect: Duration::from_millis(100), ..SOON };
    let _first = Client::connect(&service, options).unwrap();
    let start = Instant::now();
    let error = Client::connect(&service, options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(start.elapsed() < Duration::from_secs(3));
}
