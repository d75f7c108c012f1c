//! Events on queue pairs, such as `qp 0x11 receive SEND`.
//!
//! ```text
//! EVENT      = ["file" ("1" | "2")] "qp" NUMBER ("send" | "receive") [OPERATION]
//! OPERATION  = "SEND" | "WRITE" | "READ" | "ATOMIC" | "response" | "ACK" | "NAK" | the name of a packet, `SEND middle`
//! ```
//!
//! A message counts as sent when its first packet is sent, and as received when its last packet is
//! received. If the event has no operation, every packet counts.

use std::fmt;
use std::str::FromStr;

use ib_link::Direction;
use ib_types::Qpn;
use ib_wire::packet::{Operation, Position};

use super::message::Kind;
use super::stream::CapturedPacket;

/// A kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventKind {
    /// File index, counted from 0; `None` for any file.
    pub file: Option<u8>,
    /// Queue pair that sends or receives.
    pub qpn: Qpn,
    /// Direction of the packets.
    pub direction: Direction,
    /// Packets that count as events.
    pub filter: EventFilter,
}

/// The packets that count as events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFilter {
    /// All packets.
    Anything,
    /// The first packet of each sent message of this kind, or the last packet of each received message.
    Message(Kind),
    /// The first packet of each sent READ response, or the last packet of each received READ response. Also atomic
    /// responses.
    Response,
    /// Acknowledgements.
    Ack,
    /// NAKs, including RNR NAKs.
    Nak,
    /// Packets with this operation.
    Packet(Operation),
}

/// The reason why the text of an event cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The text does not begin with a queue pair and a direction.
    #[error(
        "`{0}`: expected `qp NUMBER send` or `qp NUMBER receive`, with `file 1` or `file 2` before it if both files have the queue pair"
    )]
    Form(String),
    /// The operation is unknown.
    #[error(
        "`{0}` is not an operation: expected SEND, WRITE, READ, ATOMIC, response, ACK, NAK, or the name of a packet such as `SEND middle`"
    )]
    Operation(String),
}

impl FromStr for EventKind {
    type Err = EventError;

    fn from_str(text: &str) -> Result<Self, EventError> {
        let form = || EventError::Form(text.to_owned());
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let mut file = None;
        if let ["file", number @ ("1" | "2"), ..] = words[..] {
            file = Some(u8::from(number == "2"));
            words.drain(..2);
        }
        let ["qp", number, direction, operation @ ..] = &words[..] else { return Err(form()) };
        let number = match number.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        let qpn = number.ok().and_then(Qpn::new).ok_or_else(form)?;
        let direction = match *direction {
            "send" => Direction::Send,
            "receive" => Direction::Receive,
            _ => return Err(form()),
        };
        let name = operation.join(" ");
        let is = |known: &str| known.eq_ignore_ascii_case(&name);
        let kinds = [Kind::Send, Kind::Write, Kind::Read, Kind::Atomic];
        let filter = if name.is_empty() {
            EventFilter::Anything
        } else if let Some(kind) = kinds.into_iter().find(|kind| is(kind.name())) {
            EventFilter::Message(kind)
        } else if is("response") {
            EventFilter::Response
        } else if is("ACK") {
            EventFilter::Ack
        } else if is("NAK") {
            EventFilter::Nak
        } else {
            let found = Operation::ALL.into_iter().find(|operation| is(&operation.to_string()));
            EventFilter::Packet(found.ok_or(EventError::Operation(name))?)
        };
        Ok(Self { file, qpn, direction, filter })
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file {
            write!(f, "file {} ", file + 1)?;
        }
        write!(f, "qp {} {}", self.qpn, self.direction.name())?;
        match self.filter {
            EventFilter::Anything => Ok(()),
            EventFilter::Message(kind) => write!(f, " {}", kind.name()),
            EventFilter::Response => f.write_str(" response"),
            EventFilter::Ack => f.write_str(" ACK"),
            EventFilter::Nak => f.write_str(" NAK"),
            EventFilter::Packet(operation) => write!(f, " {operation}"),
        }
    }
}

impl EventKind {
    /// Returns true if a packet is an event of this kind. Retransmissions and dropped packets are
    /// not events.
    pub(super) fn is(&self, seen: &CapturedPacket) -> bool {
        let operation = seen.operation();
        let position = operation.position();
        let end = match self.direction {
            Direction::Send => Position::First,
            Direction::Receive => Position::Last,
        };
        let is_complete = position == end || position == Position::Only;
        let is_ack = operation == Operation::Acknowledge;
        let fits = match self.filter {
            EventFilter::Anything => true,
            EventFilter::Message(kind) => Kind::of(operation) == Some(kind) && is_complete,
            EventFilter::Response => operation.is_response() && !is_ack && is_complete,
            EventFilter::Ack => is_ack && !seen.is(CapturedPacket::REFUSAL),
            EventFilter::Nak => seen.is(CapturedPacket::REFUSAL),
            EventFilter::Packet(wanted) => operation == wanted,
        };
        fits && !seen.is(CapturedPacket::AGAIN) && !seen.is(CapturedPacket::DROPPED)
    }
}
