//! Outstanding requests of a connection, and the parser of the replies in its byte stream.

use std::collections::BTreeMap;
use std::fmt;

use ib_wire::acm::{ClientHeader, ClientOpcode, ClientStatus, HEADER_LENGTH, VERSION};

use super::reply::{self, ReplyDefect, ReplyError};
use super::{Reply, Request};

/// Maximum number of cancelled requests that are remembered, so that their late replies are dropped.
const MOST_FORGOTTEN: usize = 1024;

/// Transaction ID of a request, unique on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionNumber(u64);

impl fmt::Display for TransactionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A completed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Transaction ID of the request.
    pub transaction: TransactionNumber,
    /// The reply, or the status with which the service rejected the request.
    pub result: Result<Reply, ClientStatus>,
}

/// Outstanding requests of a connection. The pipeline owns no socket and no clock.
///
/// ```
/// use ib_acm::client::{CounterScope, Pipeline, Request};
///
/// let mut pipeline = Pipeline::default();
/// let (transaction, bytes) = pipeline.start(&Request::perf(&CounterScope::Service)?);
/// // The reply has one counter. Its bytes may arrive in any parts.
/// let mut answer = bytes.clone();
/// (answer[3], answer[7]) = (1, 24);
/// answer.extend([0, 0, 0, 0, 0, 0, 0, 9]);
/// pipeline.handle_bytes(&answer[..5]);
/// assert_eq!(pipeline.poll_answer()?, None);
/// pipeline.handle_bytes(&answer[5..]);
/// assert_eq!(pipeline.poll_answer()?.expect("the reply is complete").transaction, transaction);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    last: u64,
    waiting: BTreeMap<u64, ExpectedReply>,
    /// Cancelled requests by transaction ID. Their replies are dropped.
    forgotten: BTreeMap<u64, ExpectedReply>,
    buffer: Vec<u8>,
    /// Offset in `buffer` at which the next reply starts.
    start: usize,
    /// Offset in the stream of the first byte in `buffer`.
    offset: u64,
    answers: u64,
    failed: Option<ReplyError>,
}

/// Properties that the reply to a request must have.
#[derive(Clone, Copy, Debug)]
struct ExpectedReply {
    opcode: ClientOpcode,
    endpoint: u8,
}

impl Pipeline {
    /// Starts a request. Returns its bytes, which the caller must write with one call.
    pub fn start(&mut self, request: &Request) -> (TransactionNumber, Vec<u8>) {
        self.last += 1;
        let expected =
            ExpectedReply { opcode: request.opcode(), endpoint: request.endpoint_index() };
        self.waiting.insert(self.last, expected);
        (TransactionNumber(self.last), request.to_bytes(self.last.to_be_bytes()))
    }

    /// Cancels a request: its reply is dropped when it arrives.
    ///
    /// Only the last 1024 cancelled requests are remembered. A reply to an older one is an error.
    pub fn forget(&mut self, transaction: TransactionNumber) {
        let Some(expected) = self.waiting.remove(&transaction.0) else { return };
        self.forgotten.insert(transaction.0, expected);
        if self.forgotten.len() > MOST_FORGOTTEN {
            self.forgotten.pop_first();
        }
    }

    /// Returns the number of outstanding requests.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Appends bytes received from the stream.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.offset += self.start as u64;
        self.start = 0;
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the next completed request; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Fails if the bytes are not a reply to an outstanding request. All further calls then fail with the same error,
    /// because the start of the next reply is unknown.
    pub fn poll_answer(&mut self) -> Result<Option<Answer>, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        loop {
            match self.next() {
                Ok(NextReply::Answer(answer)) => return Ok(Some(answer)),
                Ok(NextReply::Dropped) => {}
                Ok(NextReply::Incomplete) => return Ok(None),
                Err(defect) => {
                    let error = ReplyError {
                        number: self.answers + 1,
                        offset: self.offset + self.start as u64,
                        defect,
                    };
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
    }

    /// Returns the number of received bytes of the reply that is still incomplete.
    #[must_use]
    pub fn incomplete(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn next(&mut self) -> Result<NextReply, ReplyDefect> {
        let bytes = &self.buffer[self.start..];
        let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Ok(NextReply::Incomplete);
        };
        let header = ClientHeader::parse(header);
        if header.version != VERSION {
            return Err(ReplyDefect::Version(header.version));
        }
        let number = u64::from_be_bytes(header.transaction);
        let (expected, forgotten) = match (self.waiting.get(&number), self.forgotten.get(&number)) {
            (Some(&expected), _) => (expected, false),
            (None, Some(&expected)) => (expected, true),
            (None, None) => return Err(ReplyDefect::Transaction(number)),
        };
        if header.opcode.request() != expected.opcode {
            return Err(ReplyDefect::Opcode { found: header.opcode, expected: expected.opcode });
        }
        let length = reply::length(&header, expected.opcode)?;
        let Some(data) = bytes.get(HEADER_LENGTH..length) else { return Ok(NextReply::Incomplete) };
        let result = match header.status {
            ClientStatus::SUCCESS => {
                Ok(Reply::parse(header, expected.opcode, expected.endpoint, data)?)
            }
            refused => Err(refused),
        };
        self.start += length;
        self.answers += 1;
        if forgotten {
            self.forgotten.remove(&number);
            return Ok(NextReply::Dropped);
        }
        self.waiting.remove(&number);
        Ok(NextReply::Answer(Answer { transaction: TransactionNumber(number), result }))
    }
}

/// Result of parsing the next reply.
enum NextReply {
    /// The reply to an outstanding request.
    Answer(Answer),
    /// The reply to a cancelled request.
    Dropped,
    /// More bytes are needed.
    Incomplete,
}
