//! A page for browsers of this machine, and what it asks the loop of a simulated fabric, over HTTP.
//!
//! | module | holds |
//! |---|---|
//! | `ask` | [`Asked`], [`Request`], [`Answer`]: what is asked of the loop, and what it says |
//! | `feed` | states and lines of the log on their way to those who listen |
//! | `guard` | who may ask: the token, the `Host` header; what all answers have in their headers |
//! | `routes` | paths and methods |
//! | `serve` | connections, and how many there may be |
//! | `patient` | connections whose other end takes nothing are given up |
//!
//! The server has a thread of its own. The loop watches [`Web::bell`], takes requests from [`Web::poll_request`] and
//! answers each at once or later; as long as [`Web::listeners`] is not 0 it publishes states. It never waits for anybody:
//! who reads slowly misses states, and who does not read at all is forgotten.
//!
//! Only the loopback device is listened to. Every path begins with a token that nobody can guess, and a request whose
//! `Host` is not this machine is refused, so neither other users nor pages of other sites can ask anything.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use ib_types::Instant;
use tokio::sync::{oneshot, watch};

mod ask;
mod feed;
mod guard;
mod patient;
mod routes;
mod serve;

pub use ask::{Answer, Asked, Json, Link, Refusal, Request, Resolve, Start, Way};

use ask::Desk;
use feed::Feed;
use guard::Token;
use ib_os::alarm::Alarm;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its name, such as `app.css`; the one whose name is empty is the page itself.
    pub name: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// What is in it.
    pub content: &'static [u8],
}

/// The server, at the side of the loop.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    token: Token,
    alarm: Alarm,
    requests: Receiver<Request>,
    feed: Arc<Feed>,
    states: watch::Sender<Arc<str>>,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Web {
    /// Serves a page on a port of the loopback device; 0 for any that is free.
    ///
    /// # Errors
    /// Fails when the port is in use, or the system has no thread or no randomness.
    pub fn start(port: u16, files: &'static [File]) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let token = Token::new()?;
        let alarm = Alarm::new()?;
        let (sender, requests) = channel();
        let desk = Desk::new(sender, alarm.bell());
        let feed = Arc::new(Feed::new(alarm.bell()));
        let (states, _) = watch::channel(Arc::from(""));
        let place = routes::Place::new(token.clone(), files, desk, Arc::clone(&feed), &states);
        let (end, ended) = oneshot::channel();
        let runtime = serve::runtime()?;
        let run = move || {
            runtime.block_on(serve::serve(listener, place, ended));
            // Who computes an answer that nobody waits for any more is not waited for, either.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(run)?;
        let (end, thread) = (Some(end), Some(thread));
        Ok(Self { address, token, alarm, requests, feed, states, end, thread })
    }

    /// Returns where browsers find the page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.as_str())
    }

    /// Returns what can be read when somebody has asked something or begins to listen.
    #[must_use]
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }

    /// Makes the bell silent.
    pub fn silence(&self) {
        self.alarm.silence();
    }

    /// Returns the next request.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }

    /// Returns how many listen to states.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.feed.listeners()
    }

    /// Returns whether somebody has begun to listen since this was asked last, and waits for a state.
    #[must_use]
    pub fn has_newcomers(&self) -> bool {
        self.feed.take_newcomers()
    }

    /// Tells all who listen a state: the members of a JSON object without its braces. A member `log` is added for each, with
    /// the lines that it has not had.
    pub fn publish(&self, members: &str) {
        self.states.send_replace(Arc::from(members));
    }

    /// Notes a line of the log, which comes with the next state.
    pub fn log(&self, at: Instant, line: &str) {
        self.feed.log(at, line);
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
