//! HTTP server of one text page, from which monitoring systems read metrics.
//!
//! The server answers only requests for `/metrics`.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take to send its request, and to read the response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a request in bytes.
const LONGEST: u64 = 16 * 1024;

/// Maximum number of simultaneous clients.
const MOST_CLIENTS: usize = 16;

/// Media type of Prometheus metrics.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// HTTP server of one page.
#[derive(Debug)]
pub struct PageServer(TcpListener);

impl PageServer {
    /// Listens on an address; port 0 chooses a free port.
    ///
    /// # Errors
    /// Fails if this machine does not have the address, or if the port is in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self)
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// Fails if the system call failed.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves clients until the process exits, each in a thread of its own. The page is generated for each request. If
    /// too many clients are connected, the oldest one is disconnected.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
        let page = Arc::new(page);
        let serve = move || {
            let mut clients: VecDeque<Arc<TcpStream>> = VecDeque::new();
            loop {
                let Ok((stream, _)) = self.0.accept() else {
                    // The process may have no free file descriptors at present.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                clients.retain(|client| Arc::strong_count(client) > 1);
                if clients.len() == MOST_CLIENTS
                    && let Some(first) = clients.pop_front()
                {
                    // The shutdown fails if the client has disconnected.
                    let _ = first.shutdown(Shutdown::Both);
                }
                let stream = Arc::new(stream);
                clients.push_back(Arc::clone(&stream));
                let page = Arc::clone(&page);
                // If no thread can be created, the client is disconnected.
                let serve = move || {
                    let _ = answer(&stream, &*page);
                    // The connection must be shut down explicitly, since the list of clients also holds it.
                    let _ = stream.shutdown(Shutdown::Both);
                };
                let _ = std::thread::Builder::new().name("metrics".to_owned()).spawn(serve);
            }
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).map(drop)
    }
}

/// Reads a request and sends the response.
fn answer(mut stream: &TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    stream.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut lines = BufReader::new(stream.take(LONGEST));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    // The rest of the request is read and ignored.
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", METRICS, page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "expected /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "expected GET or HEAD\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

#[cfg(test)]
mod tests;
