//! Requests under way on one connection, and the bytes of its stream made into their answers.

use std::collections::BTreeMap;
use std::fmt;

use ib_wire::acm::{ClientHeader, ClientOpcode, ClientStatus, HEADER_LENGTH, VERSION};

use super::reply::{self, ReplyError, Wrong};
use super::{Reply, Request};

/// The most requests whose answers nobody waits for any longer that are remembered.
const MOST_FORGOTTEN: usize = 1024;

/// What a request is known by on its connection; no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionNumber(u64);

impl fmt::Display for TransactionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Which one it was.
    pub transaction: TransactionNumber,
    /// What is answered, or why nothing is.
    pub result: Result<Reply, ClientStatus>,
}

/// The requests under way on one connection. It owns no socket and no clock.
///
/// ```
/// use ib_acm::client::{PerfOf, Pipeline, Request};
///
/// let mut pipeline = Pipeline::default();
/// let (transaction, bytes) = pipeline.start(&Request::perf(&PerfOf::Service)?);
/// // One counter is the answer; its bytes come in any pieces.
/// let mut answer = bytes.clone();
/// (answer[3], answer[7]) = (1, 24);
/// answer.extend([0, 0, 0, 0, 0, 0, 0, 9]);
/// pipeline.handle_bytes(&answer[..5]);
/// assert_eq!(pipeline.poll_answer()?, None);
/// pipeline.handle_bytes(&answer[5..]);
/// assert_eq!(pipeline.poll_answer()?.expect("an answer").transaction, transaction);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    last: u64,
    waiting: BTreeMap<u64, Asked>,
    /// Those of `waiting` that nobody waits for.
    forgotten: BTreeMap<u64, Asked>,
    buffer: Vec<u8>,
    /// Where the next answer begins in the buffer.
    start: usize,
    /// Where the buffer begins in the stream.
    offset: u64,
    answers: u64,
    failed: Option<ReplyError>,
}

/// What of a request its answer is checked with.
#[derive(Clone, Copy, Debug)]
struct Asked {
    opcode: ClientOpcode,
    endpoint: u8,
}

impl Pipeline {
    /// Starts a request. Returns its bytes, which are to be written with one call.
    pub fn start(&mut self, request: &Request) -> (TransactionNumber, Vec<u8>) {
        self.last += 1;
        let asked = Asked { opcode: request.opcode(), endpoint: request.endpoint_index() };
        self.waiting.insert(self.last, asked);
        (TransactionNumber(self.last), request.to_bytes(self.last.to_be_bytes()))
    }

    /// Forgets a request: its answer is dropped when it comes after all.
    ///
    /// Of those that were forgotten the latest 1024 are known; an answer to an earlier one is an error.
    pub fn forget(&mut self, transaction: TransactionNumber) {
        let Some(asked) = self.waiting.remove(&transaction.0) else { return };
        self.forgotten.insert(transaction.0, asked);
        if self.forgotten.len() > MOST_FORGOTTEN {
            self.forgotten.pop_first();
        }
    }

    /// Returns how many requests wait for their answers.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.waiting.len()
    }

    /// Takes what has come from the stream, in whatever pieces.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.offset += self.start as u64;
        self.start = 0;
        if self.failed.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns the next answer; `None` when more bytes are needed for it.
    ///
    /// # Errors
    /// Fails when the bytes are no answer to a request that waits. Where the next one begins is not known then: every
    /// further call fails with the same error.
    pub fn poll_answer(&mut self) -> Result<Option<Answer>, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        loop {
            match self.next() {
                Ok(Next::Answer(answer)) => return Ok(Some(answer)),
                Ok(Next::Dropped) => {}
                Ok(Next::Incomplete) => return Ok(None),
                Err(wrong) => {
                    let error = ReplyError {
                        number: self.answers + 1,
                        offset: self.offset + self.start as u64,
                        wrong,
                    };
                    self.failed = Some(error);
                    return Err(error);
                }
            }
        }
    }

    /// Returns how many bytes of the next answer there are.
    #[must_use]
    pub fn incomplete(&self) -> usize {
        self.buffer.len() - self.start
    }

    fn next(&mut self) -> Result<Next, Wrong> {
        let bytes = &self.buffer[self.start..];
        let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
            return Ok(Next::Incomplete);
        };
        let header = ClientHeader::parse(header);
        if header.version != VERSION {
            return Err(Wrong::Version(header.version));
        }
        let number = u64::from_be_bytes(header.transaction);
        let (asked, forgotten) = match (self.waiting.get(&number), self.forgotten.get(&number)) {
            (Some(&asked), _) => (asked, false),
            (None, Some(&asked)) => (asked, true),
            (None, None) => return Err(Wrong::Transaction(number)),
        };
        if header.opcode.request() != asked.opcode {
            return Err(Wrong::Opcode { found: header.opcode, expected: asked.opcode });
        }
        let length = reply::length(&header, asked.opcode)?;
        let Some(data) = bytes.get(HEADER_LENGTH..length) else { return Ok(Next::Incomplete) };
        let result = match header.status {
            ClientStatus::SUCCESS => Ok(Reply::parse(header, asked.opcode, asked.endpoint, data)?),
            refused => Err(refused),
        };
        self.start += length;
        self.answers += 1;
        if forgotten {
            self.forgotten.remove(&number);
            return Ok(Next::Dropped);
        }
        self.waiting.remove(&number);
        Ok(Next::Answer(Answer { transaction: TransactionNumber(number), result }))
    }
}

/// What the bytes at hand are.
enum Next {
    /// An answer that somebody waits for.
    Answer(Answer),
    /// An answer that nobody waits for.
    Dropped,
    /// Less than an answer.
    Incomplete,
}
