//! A server that runs a script for one connection.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ib_wire::acm::{ClientHeader, ClientStatus, MAX_LENGTH};

use super::super::{ClientOptions, ServiceAddress};
use super::answer;

/// Options with a short reply timeout, for tests of missing replies.
pub(super) const SOON: ClientOptions =
    ClientOptions { connect: Duration::from_secs(5), reply: Duration::from_millis(200) };

/// A server for one connection. It runs until its script returns. If the script panics, the test fails.
pub(super) struct Server {
    pub(super) address: ServiceAddress,
    thread: Option<JoinHandle<()>>,
    #[cfg(unix)]
    _directory: Option<tempfile::TempDir>,
}

/// The server's end of the connection to the client under test.
pub(super) struct Peer {
    stream: Box<dyn Stream>,
}

trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl Server {
    /// Starts a server at a TCP port.
    pub(super) fn tcp(script: impl FnOnce(&mut Peer) + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            script(&mut Peer { stream: Box::new(stream) });
        });
        Self {
            address: ServiceAddress::tcp("127.0.0.1", port),
            thread: Some(thread),
            #[cfg(unix)]
            _directory: None,
        }
    }

    /// Starts a server at a Unix domain socket.
    #[cfg(unix)]
    pub(super) fn unix(script: impl FnOnce(&mut Peer) + Send + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acm.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let thread = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            script(&mut Peer { stream: Box::new(stream) });
        });
        let address = ServiceAddress::Unix(path);
        Self { address, thread: Some(thread), _directory: Some(directory) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let thread = self.thread.take().expect("`drop` is called once");
        if !thread::panicking() {
            thread.join().expect("the script does not panic");
        }
    }
}

impl Peer {
    /// Reads a request with one call, like ibacm. Checks that the call returns exactly one complete request. Returns
    /// `None` at the end of the stream.
    pub(super) fn request(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 2 * MAX_LENGTH];
        let read = self.stream.read(&mut buffer).unwrap_or(0);
        let request = buffer[..read].to_vec();
        let header = ClientHeader::parse(request.first_chunk()?);
        assert_eq!(header.length().unwrap().0, read, "a read call returns one request");
        Some(request)
    }

    /// Sends bytes. Errors are ignored, because the client may have disconnected.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a reply to a request.
    pub(super) fn answer(&mut self, request: &[u8], status: ClientStatus, data: &[u8]) {
        self.send(&answer(request, true, status, data));
    }
}
