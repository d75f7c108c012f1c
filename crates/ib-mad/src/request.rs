//! What a requester is asked to do and what it says in the end.

use std::time::Duration;

use ib_link::Remote;
use ib_wire::mad::{Mad, TransactionId};

use crate::{Failure, Message};

/// A request and how patiently an answer is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who is asked.
    pub remote: Remote,
    /// The datagram; of a message of several segments its headers. The transaction is filled in.
    pub mad: Mad,
    /// The data of a message of several segments; `None` for a plain datagram.
    pub message: Option<Vec<u8>>,
    /// How long and how often.
    pub timing: Timing,
    /// What to do when the link knows that the request is lost.
    pub on_loss: OnLoss,
    /// Whose answer counts.
    pub answer_from: AnswerFrom,
    /// Which of those that wait for room in the window go first.
    pub urgency: Urgency,
}

impl Request {
    /// Returns a request of one datagram.
    #[must_use]
    pub fn new(remote: Remote, mad: Mad) -> Self {
        Self {
            remote,
            mad,
            message: None,
            timing: Timing::default(),
            on_loss: OnLoss::default(),
            answer_from: AnswerFrom::default(),
            urgency: Urgency::default(),
        }
    }

    /// Returns a request of any length, sent in segments under the headers of a datagram.
    #[must_use]
    pub fn message(remote: Remote, header: Mad, data: Vec<u8>) -> Self {
        Self { message: Some(data), ..Self::new(remote, header) }
    }

    /// Returns the request with another patience.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Returns the request with another urgency.
    #[must_use]
    pub fn with_urgency(self, urgency: Urgency) -> Self {
        Self { urgency, ..self }
    }
}

/// How long an answer or an acknowledgement is awaited, and how often the attempt is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time that the first attempt has. Segments wait for their acknowledgement as long, but at
    /// most 2 s.
    pub timeout: Duration,
    /// How many attempts follow the first one.
    pub retries: u32,
    /// The time that later attempts have.
    pub backoff: Backoff,
}

impl Default for Timing {
    /// One second, three retries, always the same time, as libibmad has it.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), retries: 3, backoff: Backoff::Fixed }
    }
}

impl Timing {
    /// Returns the time of an attempt; `retry` is 0 for the first one.
    #[must_use]
    pub fn wait(&self, retry: u32) -> Duration {
        match self.backoff {
            Backoff::Fixed => self.timeout,
            Backoff::Doubling { longest } => {
                let factor = 1u32.checked_shl(retry).unwrap_or(u32::MAX);
                self.timeout.saturating_mul(factor).min(longest.max(self.timeout))
            }
        }
    }
}

/// How the time of an attempt follows from that of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// It is the same.
    Fixed,
    /// It is twice as long.
    Doubling {
        /// It grows no longer than that.
        longest: Duration,
    },
}

/// What to do when the link knows that a request is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// End the request: who knows that it is lost knows that nobody is there.
    #[default]
    Fail,
    /// Send it again at once, which takes one of the retries.
    Retry,
}

/// Whose answer counts. A directed route and the permissive LID are answered from anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerFrom {
    /// Only that of the LID which was asked; of the GID, where both have a global route header.
    #[default]
    Asked,
    /// That of any port: for classes that are redirected.
    Anyone,
}

/// Which requests go first when the window has room again. Those of the same urgency keep their order, and what is on
/// the wire stays there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Before all others.
    First,
    /// In the middle.
    #[default]
    Normal,
    /// Once nothing else waits.
    Last,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What [`Requester::start`](crate::Requester::start) returned.
    pub transaction_id: TransactionId,
    /// How often it was sent: the attempts of a plain request, the rounds of one in segments.
    pub attempts: u32,
    /// The time since it was first sent.
    pub elapsed: Duration,
    /// The answer, whatever its status says, or why there is none.
    pub result: Result<Message, Failure>,
}

impl Completion {
    /// Returns how many bytes the answer holds beside its datagram.
    pub(crate) fn held(&self) -> usize {
        self.result.as_ref().map_or(0, Message::held)
    }
}
