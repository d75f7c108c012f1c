//! A queue of requests from other threads to an event loop.
//!
//! Other threads send requests through a [`RequestSender`], which wakes the loop. The loop takes them from the
//! [`RequestQueue`] and responds to each, at once or later. A client that does not read its response never blocks the
//! loop.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ib_os::alarm::Bell;

/// Time for which [`RequestSender::request`] waits for the response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Callback that gets the response; `None` if the request was dropped.
type Completion = Box<dyn FnOnce(Option<String>) + Send>;

/// The sending side of the request queue.
#[derive(Clone)]
pub struct RequestSender {
    requests: Sender<QueuedRequest>,
    bell: Bell,
}

/// The receiving side of the request queue, which the event loop uses.
pub struct RequestQueue {
    receiver: Receiver<QueuedRequest>,
    /// The next request, if it was already received from the channel.
    next: Option<QueuedRequest>,
}

/// A request in the queue. If it is dropped without a response, its completion callback gets `None`.
pub struct QueuedRequest {
    line: String,
    completion: Option<Completion>,
}

/// Creates a request queue to an event loop. `bell` wakes the loop.
#[must_use]
pub fn request_queue(bell: Bell) -> (RequestSender, RequestQueue) {
    let (sender, receiver) = channel();
    (RequestSender { requests: sender, bell }, RequestQueue { receiver, next: None })
}

impl RequestSender {
    /// Sends a request and waits for its response; `None` if none arrives within ten seconds.
    #[must_use]
    pub fn request(&self, line: &str) -> Option<String> {
        self.request_within(line, PATIENCE)
    }

    /// Sends a request and waits for its response; `None` if none arrives within `limit`.
    #[must_use]
    pub fn request_within(&self, line: &str, limit: Duration) -> Option<String> {
        let (sender, receiver) = channel();
        self.send(line.to_owned(), move |response| {
            // The send fails if the client no longer waits.
            let _ = sender.send(response);
        });
        receiver.recv_timeout(limit).ok().flatten()
    }

    /// Sends a request and returns immediately.
    ///
    /// `completion` runs in the thread of the event loop. It gets the response, or `None` if the request was dropped.
    pub fn send(&self, line: String, completion: impl FnOnce(Option<String>) + Send + 'static) {
        // If the event loop has ended, the request is dropped, and its callback is called with `None`.
        let _ = self.requests.send(QueuedRequest { line, completion: Some(Box::new(completion)) });
        self.bell.ring();
    }
}

impl RequestQueue {
    /// Removes and returns the next request; `None` if the queue is empty.
    #[must_use]
    pub fn take(&mut self) -> Option<QueuedRequest> {
        self.next.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Returns true if a request is queued.
    #[must_use]
    pub fn has_request(&mut self) -> bool {
        self.next = self.take();
        self.next.is_some()
    }
}

impl QueuedRequest {
    /// Returns the request line.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Sends the response.
    pub fn respond(mut self, response: String) {
        if let Some(complete) = self.completion.take() {
            complete(Some(response));
        }
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        if let Some(complete) = self.completion.take() {
            complete(None);
        }
    }
}

#[cfg(test)]
mod tests;
