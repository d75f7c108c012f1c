//! Messages that the client sends.

use ib_rtrs::Direction;
use ib_wire::rnbd::{Io, IoFlags, MessageType, Open, Operation as Code};

use super::DeviceId;
use ib_block::device::SECTOR;
use ib_block::{Command, Operation};

/// The kind of a message, by which the client identifies the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// The message with the protocol version of the client.
    Session,
    /// A request to open a device.
    Open(DeviceId),
    /// A request to close a device: the number that the server gave to the device.
    Close(u32),
    /// A command: the number that the user gave to the command.
    Command(u64),
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The kind of the message, which the user passes to [`Client::handle`](super::Client::handle).
    pub tag: Tag,
    /// The direction of the message's data.
    pub direction: Direction,
    header: [u8; Open::LENGTH],
    header_length: u16,
    /// The length in bytes of the data that the message sends, or of the buffer for the data that the response returns.
    pub data_length: u32,
}

impl Outgoing {
    /// Returns the message, which the RTRS request contains as its user header.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header[..self.header_length.into()]
    }

    pub(super) fn new(tag: Tag, direction: Direction, message: &[u8], data_length: u32) -> Self {
        let mut header = [0; Open::LENGTH];
        header[..message.len()].copy_from_slice(message);
        Self { tag, direction, header, header_length: message.len() as u16, data_length }
    }
}

/// Returns the message of a command. `device_id` is the number that the server has assigned to the device.
pub(super) fn message(device_id: u32, user: u64, command: &Command) -> Outgoing {
    let Command { operation, offset, length, fua } = *command;
    let (code, direction) = match operation {
        Operation::Read => (Code::READ, Direction::Read),
        // Linux sends a flush as a read without data.
        Operation::Flush => (Code::FLUSH, Direction::Read),
        // The protocol has no write-zeroes message, so the zeros are sent as the data of a write.
        Operation::Write | Operation::WriteZeroes => (Code::WRITE, Direction::Write),
        Operation::Discard => (Code::DISCARD, Direction::Write),
        Operation::SecureErase => (Code::SECURE_ERASE, Direction::Write),
    };
    let has_data = matches!(operation, Operation::Read | Operation::Write | Operation::WriteZeroes);
    let sync = if operation == Operation::Read { 0 } else { IoFlags::SYNC.0 };
    let fua = if fua || operation == Operation::Flush { IoFlags::FUA.0 } else { 0 };
    let is_flush = operation == Operation::Flush;
    let io = Io {
        message_type: MessageType::IO,
        device_id,
        sector: if is_flush { u64::MAX } else { offset / SECTOR },
        rw: IoFlags::of(code, IoFlags(sync | fua)),
        length: if is_flush { 0 } else { length as u32 },
        priority: 0,
    };
    let data = if has_data { length as u32 } else { 0 };
    Outgoing::new(Tag::Command(user), direction, &io.to_bytes(), data)
}
