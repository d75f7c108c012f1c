//! A page of text for whoever asks with HTTP on this machine, such as a collector of metrics.
//!
//! `GET /metrics` is all there is. Only the loopback device is listened to.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a client may take to ask and to take its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest request that is read.
const LONGEST: u64 = 16 * 1024;

/// How many clients are served at once.
const MOST_CLIENTS: usize = 16;

/// The type of a page of metrics, as Prometheus wants it.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A server of one page.
#[derive(Debug)]
pub struct PageServer(TcpListener);

impl PageServer {
    /// Listens on a port of the loopback device; 0 for any that is free.
    ///
    /// # Errors
    /// Fails when the port is in use.
    pub fn bind(port: u16) -> io::Result<Self> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(Self)
    }

    /// Returns where it listens.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves clients, each in a thread of its own, for as long as the process lives; the page is made
    /// again for each. When there are too many, the one that came first has to go.
    ///
    /// # Errors
    /// Fails when the system makes no further thread.
    pub fn serve(self, page: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
        let page = Arc::new(page);
        let serve = move || {
            let mut clients: VecDeque<Arc<TcpStream>> = VecDeque::new();
            loop {
                let Ok((stream, _)) = self.0.accept() else {
                    // Out of files, perhaps: others may be closed meanwhile.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                clients.retain(|client| Arc::strong_count(client) > 1);
                if clients.len() == MOST_CLIENTS
                    && let Some(first) = clients.pop_front()
                {
                    // It may have gone by itself.
                    let _ = first.shutdown(Shutdown::Both);
                }
                let stream = Arc::new(stream);
                clients.push_back(Arc::clone(&stream));
                let page = Arc::clone(&page);
                // A client that leaves has no answer to get; one without a thread finds that it is over.
                let serve = move || {
                    let _ = answer(&stream, &*page);
                    // The list holds it, too.
                    let _ = stream.shutdown(Shutdown::Both);
                };
                let _ = std::thread::Builder::new().name("metrics".to_owned()).spawn(serve);
            }
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve).map(drop)
    }
}

/// Reads a request and answers it.
fn answer(mut stream: &TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(LONGEST));
    let mut first = String::new();
    lines.read_line(&mut first)?;
    // The rest of the request says nothing that matters, but has to be taken.
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", METRICS, page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "there is /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET is answered\n".to_owned()),
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
