//! Questions of other threads to the loop that can answer them.
//!
//! Other threads leave their questions at a [`Desk`], which rings the loop's bell; the loop takes them from
//! [`Questions`] when it has time, and answers each at once or later. So nobody who asks, or does not take an answer, ever
//! stops the loop.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ib_os::alarm::Bell;

/// How long the loop may take to come to a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// Is told the answer; nothing when there will be none.
type Told = Box<dyn FnOnce(Option<String>) + Send>;

/// Where questions are left.
#[derive(Clone)]
pub struct Desk {
    questions: Sender<Question>,
    bell: Bell,
}

/// Where the loop takes questions from.
pub struct Questions {
    receiver: Receiver<Question>,
    /// The next one, if it was looked for already.
    next: Option<Question>,
}

/// A question. Whoever drops it has not answered, which is told, too.
pub struct Question {
    line: String,
    told: Option<Told>,
}

/// Makes a desk of a loop that a bell wakes.
#[must_use]
pub fn desk(bell: Bell) -> (Desk, Questions) {
    let (sender, receiver) = channel();
    (Desk { questions: sender, bell }, Questions { receiver, next: None })
}

impl Desk {
    /// Asks, and waits for the answer; `None` when there is none within ten seconds.
    #[must_use]
    pub fn ask(&self, line: &str) -> Option<String> {
        let (sender, receiver) = channel();
        self.leave(line.to_owned(), move |answer| {
            // Who has asked may wait no more.
            let _ = sender.send(answer);
        });
        receiver.recv_timeout(PATIENCE).ok().flatten()
    }

    /// Asks; `told` is called with the answer, in the thread of the loop, or with `None` when there is none.
    pub fn leave(&self, line: String, told: impl FnOnce(Option<String>) + Send + 'static) {
        // What the loop does not take any more is dropped, and told so.
        let _ = self.questions.send(Question { line, told: Some(Box::new(told)) });
        self.bell.ring();
    }
}

impl Questions {
    /// Returns the next question.
    #[must_use]
    pub fn take(&mut self) -> Option<Question> {
        self.next.take().or_else(|| self.receiver.try_recv().ok())
    }

    /// Returns whether there is one.
    #[must_use]
    pub fn has_one(&mut self) -> bool {
        self.next = self.take();
        self.next.is_some()
    }
}

impl Question {
    /// Returns what is asked.
    #[must_use]
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Answers.
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
