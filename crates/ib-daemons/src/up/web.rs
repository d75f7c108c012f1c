//! The HTTP server of the web page and its JSON API. It listens on the loopback address.
//!
//! | module | holds |
//! |---|---|
//! | `request` | [`ApiCall`], [`Request`], [`Answer`]: the calls of the API, which the event loop answers |
//! | `feed` | server-sent events with states of the fabric and log lines |
//! | `guard` | access control by token and `Host` header; security headers of all responses |
//! | `routes` | HTTP paths and methods |
//! | `serve` | connections and their limits |
//! | `write_timeout` | a stream that fails if its peer reads nothing for some time |
//!
//! The server runs in a thread of its own. The event loop polls [`Web::bell`], takes requests from
//! [`Web::poll_request`], and answers each of them, at once or later. While [`Web::listeners`] is not 0, the loop
//! publishes states. The loop never waits for a client: a slow client misses states, and a client that reads nothing is
//! disconnected.
//!
//! The server listens only on the loopback address. Every path begins with an unguessable token. If the `Host` of a
//! request is not this machine, the request gets status 403. So neither other users nor pages of other sites can use
//! the API.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use ib_types::Instant;
use tokio::sync::{oneshot, watch};

mod feed;
mod guard;
mod request;
mod routes;
mod serve;
mod write_timeout;

pub use request::{Answer, ApiCall, Json, Link, PathQuery, Refusal, Request, Resolve, Start};

use feed::Feed;
use guard::Token;
use ib_os::alarm::Alarm;
use request::RequestQueue;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Name of the file, such as `app.css`; empty for the page itself.
    pub name: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Content of the file, as bytes.
    pub content: &'static [u8],
}

/// The handle by which the event loop uses the server.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    token: Token,
    alarm: Alarm,
    requests: Receiver<Request>,
    feed: Arc<Feed>,
    states: watch::Sender<Arc<str>>,
    /// Stops the server's thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Starts the server at an address of this machine; port 0 selects a free port. Only requests to `127.0.0.1` and
    /// `::1` are answered.
    ///
    /// # Errors
    /// Fails if the port is in use, or if the system provides no thread or no random bytes.
    pub fn start(address: SocketAddr, files: &'static [File]) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let token = Token::new()?;
        let alarm = Alarm::new()?;
        let (sender, requests) = channel();
        let queue = RequestQueue::new(sender, alarm.bell());
        let feed = Arc::new(Feed::new(alarm.bell()));
        let (states, _) = watch::channel(Arc::from(""));
        let context = routes::Context::new(token.clone(), files, queue, Arc::clone(&feed), &states);
        let (end, ended) = oneshot::channel();
        let runtime = serve::runtime()?;
        let run = move || {
            runtime.block_on(serve::serve(listener, context, ended));
            // Does not wait for answers that are still being computed. Clients that wait for them are disconnected.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(run)?;
        let (end, thread) = (Some(end), Some(thread));
        Ok(Self { address, token, alarm, requests, feed, states, end, thread })
    }

    /// Returns the URL of the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.as_str())
    }

    /// Returns a file descriptor that is readable when a request has arrived or a listener was added.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Makes the file descriptor of [`Web::bell`] unreadable until the next request or listener arrives.
    pub fn silence(&self) {
        self.alarm.silence();
    }

    /// Returns the next request of a client.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }

    /// Returns the number of clients that listen to published states.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.feed.listeners()
    }

    /// Returns true if a listener was added since the last call. The event loop must then publish a state, even if the
    /// state has not changed.
    #[must_use]
    pub fn has_newcomers(&self) -> bool {
        self.feed.take_newcomers()
    }

    /// Publishes a state to all listeners. `members` are the members of a JSON object without its braces. The server
    /// adds the member `log` with the lines that the listener has not received yet.
    pub fn publish(&self, members: &str) {
        self.states.send_replace(Arc::from(members));
    }

    /// Adds a log line, which is sent with the next state.
    pub fn log(&self, at: Instant, line: &str) {
        self.feed.log(at, line);
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, the panic was printed already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
