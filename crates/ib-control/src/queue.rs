//! Request queue from other threads to an event loop.
//!
//! Other threads send requests through a [`RequestSender`], which wakes the loop. The loop takes them from the
//! [`RequestQueue`] and responds to each at once or later. A client that does not read its response never blocks the loop.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ib_os::alarm::Bell;

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Completion callback; `None` if the request was dropped.
type Completion = Box<dyn FnOnce(Option<String>) + Send>;

/// The sending side of the request queue.
#[derive(Clone)]
pub struct RequestSender {
    requests: Sender<QueuedRequest>,
    bell: Bell,
}

/// The receiving side of the request queue, used by the loop.
pub struct RequestQueue {
    receiver: Receiver<QueuedRequest>,
    /// The next request, if it was taken from the queue already.
    next: Option<QueuedRequest>,
}

/// A request. If it is dropped without a response, the client is notified.
pub struct QueuedRequest {
    line: String,
    completion: Option<Completion>,
}

/// Creates a request queue for a loop that `bell` wakes.
#[must_use]
pub fn request_queue(bell: Bell) -> (RequestSender, RequestQueue) {
    let (sender, receiver) = channel();
    (RequestSender { requests: sender, bell }, RequestQueue { receiver, next: None })
}

impl RequestSender {
    /// Sends a request and waits for the response; `None` if it does not arrive within ten seconds.
    #[must_use]
    pub fn request(&self, line: &str) -> Option<String> {
        self.request_within(line, PATIENCE)
    }

    /// Sends a request and waits for the response; `None` if it does not arrive within `limit`.
    #[must_use]
    pub fn request_within(&self, line: &str, limit: Duration) -> Option<String> {
        let (sender, receiver) = channel();
        self.send(line.to_owned(), move |response| {
            // The client may have stopped waiting.
            let _ = sender.send(response);
        });
        receiver.recv_timeout(limit).ok().flatten()
    }

    /// Sends a request and returns immediately.
    ///
    /// `completion` runs in the loop's thread with the response, or with `None` if the request
    /// was dropped.
    pub fn send(&self, line: String, completion: impl FnOnce(Option<String>) + Send + 'static) {
        // If the loop has ended, the request is dropped and its callback is called with `None`.
        let _ = self.requests.send(QueuedRequest { line, completion: Some(Box::new(completion)) });
        self.bell.ring();
    }
}

impl RequestQueue {
    /// Returns the next request.
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
