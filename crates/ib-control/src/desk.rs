//! Request queue from other threads to an event loop.
//!
//! Other threads send requests through a [`Desk`], which wakes the loop. The loop reads them from [`Questions`] and
//! answers each at once or later. A client that does not read its response never blocks the loop.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ib_os::alarm::Bell;

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Completion callback; `None` if the request was dropped.
type Told = Box<dyn FnOnce(Option<String>) + Send>;

/// The sending side of the request queue.
#[derive(Clone)]
pub struct Desk {
    questions: Sender<Question>,
    bell: Bell,
}

/// The receiving side of the request queue, used by the loop.
pub struct Questions {
    receiver: Receiver<Question>,
    /// The next request, if it was taken from the queue already.
    next: Option<Question>,
}

/// A request. If it is dropped without a response, the client is notified.
pub struct Question {
    line: String,
    told: Option<Told>,
}

/// Creates a request queue for a loop that `bell` wakes.
#[must_use]
pub fn desk(bell: Bell) -> (Desk, Questions) {
    let (sender, receiver) = channel();
    (Desk { questions: sender, bell }, Questions { receiver, next: None })
}

impl Desk {
    /// Sends a request and waits for the response; `None` if there is none within ten seconds.
    #[must_use]
    pub fn ask(&self, line: &str) -> Option<String> {
        let (sender, receiver) = channel();
        self.leave(line.to_owned(), move |answer| {
            // The client may have stopped waiting.
            let _ = sender.send(answer);
        });
        receiver.recv_timeout(PATIENCE).ok().flatten()
    }

    /// Sends a request and returns immediately.
    ///
    /// `told` is the completion callback. It runs in the loop's thread with the response, or with `None` if the request
    /// was dropped.
    pub fn leave(&self, line: String, told: impl FnOnce(Option<String>) + Send + 'static) {
        // If the loop has ended, the request is dropped and its callback is called with `None`.
        let _ = self.questions.send(Question { line, told: Some(Box::new(told)) });
        self.bell.ring();
    }
}

impl Questions {
    /// Returns the next request.
    #[must_use]
    pub fn take(&mut self) -> Option<Question> {
        self.next.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Returns true if a request is queued.
    #[must_use]
    pub fn has_one(&mut self) -> bool {
        self.next = self.take();
        self.next.is_some()
    }
}

impl Question {
    /// Returns the request line.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Sends the response.
    pub fn answer(mut self, answer: String) {
        if let Some(told) = self.told.take() {
            told(Some(answer));
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            told(None);
        }
    }
}

#[cfg(test)]
mod tests;
