//! Requests, their timeouts and retries, and their completions.

use std::time::Duration;

use ib_link::Remote;
use ib_wire::mad::{Mad, TransactionId};

use crate::{Failure, Message};

/// A request, its timeouts, and the ports from which a response is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address of the responder.
    pub remote: Remote,
    /// The MAD; for an RMPP message, the headers of its segments. The requester sets the
    /// transaction ID.
    pub mad: Mad,
    /// The data of an RMPP message; `None` for a single MAD.
    pub message: Option<Vec<u8>>,
    /// How long each attempt waits for a response or ACK, and how often the requester retries.
    pub timing: Timing,
    /// The requester's reaction if the link reports the loss of the request.
    pub on_loss: OnLoss,
    /// The ports from which a response is accepted.
    pub answer_from: AnswerFrom,
    /// The priority among the requests that wait for a place in the window of outstanding requests.
    pub urgency: Urgency,
}

impl Request {
    /// Creates a request of one MAD.
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

    /// Creates a request with data of up to 4 GiB. The request is sent by RMPP, and all segments have the headers of
    /// `header`.
    #[must_use]
    pub fn message(remote: Remote, header: Mad, data: Vec<u8>) -> Self {
        Self { message: Some(data), ..Self::new(remote, header) }
    }

    /// Replaces the timeouts and retries of the request.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Replaces the priority of the request.
    #[must_use]
    pub fn with_urgency(self, urgency: Urgency) -> Self {
        Self { urgency, ..self }
    }
}

/// The timeout of responses and ACKs, and the number of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long the first attempt waits for the response, or for an ACK of sent segments. The wait for an ACK is at
    /// most 2 s.
    pub timeout: Duration,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// Whether retries have longer timeouts.
    pub backoff: Backoff,
}

impl Default for Timing {
    /// Returns the default of libibmad: a timeout of 1 s, three retries, no backoff.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), retries: 3, backoff: Backoff::Fixed }
    }
}

impl Timing {
    /// Returns the timeout of an attempt; `retry` is 0 for the first attempt.
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

/// Whether retries have longer timeouts than the first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// All attempts have the same timeout.
    Fixed,
    /// The timeout of each retry is twice the timeout of the preceding attempt.
    Doubling {
        /// The maximum to which doubling increases the timeout.
        longest: Duration,
    },
}

/// The requester's reaction if the link reports the loss of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// The request fails with [`Failure::Lost`], without further retries.
    #[default]
    Fail,
    /// The request is retransmitted immediately, which counts as a retry.
    Retry,
}

/// The ports from which a response is accepted.
///
/// Responses to directed-route SMPs, and to requests to the permissive LID, are accepted from all
/// ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerFrom {
    /// The response must come from the LID to which the request was sent. If request and response have a GRH, it must
    /// come from the request's destination GID instead.
    #[default]
    Asked,
    /// The response may come from any port, because the class may be redirected.
    Anyone,
}

/// The priority among the requests that wait for a place in the window of outstanding requests.
///
/// Requests of the same priority are sent in the order in which they were started. Outstanding
/// requests are not affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Sent before all waiting requests of other priorities.
    First,
    /// Sent after [`Urgency::First`] and before [`Urgency::Last`].
    #[default]
    Normal,
    /// Sent only if no request of a higher priority waits.
    Last,
}

/// The completion of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The transaction ID that [`Requester::start`](crate::Requester::start) has returned.
    pub transaction_id: TransactionId,
    /// The number of attempts; for an RMPP message, the number of times its first segment was sent.
    pub attempts: u32,
    /// The time from the first attempt to the completion.
    pub elapsed: Duration,
    /// The response, which may have any status, or the reason why no response was received.
    pub result: Result<Message, Failure>,
}

impl Completion {
    /// Returns how many bytes the reassembled response takes.
    pub(crate) fn held(&self) -> usize {
        self.result.as_ref().map_or(0, Message::held)
    }
}
