//! Queues of requests that a client will send, and of requests that it has received.

use std::collections::VecDeque;
use std::io;

use super::Client;
use crate::message::Request;
use ib_os::batch::Batch;

/// Requests to send, in order.
#[derive(Default)]
pub struct Outbox {
    kept: VecDeque<[u8; Request::LENGTH]>,
}

impl Outbox {
    /// Appends a request.
    pub fn push(&mut self, request: &Request) {
        self.kept.push_back(request.to_bytes());
    }

    /// Returns true if the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Sends queued requests until the socket is full.
    ///
    /// # Errors
    /// Fails if the server has exited.
    pub fn flush(&mut self, client: &Client) -> io::Result<()> {
        while !self.kept.is_empty() {
            let (first, _) = self.kept.as_slices();
            match client.send(first)? {
                0 => break,
                sent => drop(self.kept.drain(..sent)),
            }
        }
        Ok(())
    }
}

/// Received requests.
pub struct Inbox {
    batch: Batch<{ Request::LENGTH }>,
    received: VecDeque<Request>,
    malformed: u64,
}

impl Inbox {
    /// Creates an empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self { batch: Batch::new(), received: VecDeque::new(), malformed: 0 }
    }

    /// Returns the next received request; `None` if none has arrived.
    ///
    /// # Errors
    /// Fails if the server has exited or a system call failed.
    pub fn next(&mut self, client: &Client) -> io::Result<Option<Request>> {
        while self.received.is_empty() {
            let count = self.batch.receive(client.data())?;
            if count == 0 {
                return Ok(None);
            }
            for index in 0..count {
                match self.batch.datagram(index).map(Request::parse) {
                    Some(Ok(request)) => self.received.push_back(request),
                    Some(Err(_)) | None => self.malformed += 1,
                }
            }
        }
        Ok(self.received.pop_front())
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}
