//! What a client sends.

use ib_rtrs::Direction;
use ib_wire::rnbd::{Io, IoFlags, MessageType, Open, Operation as Code};

use super::DeviceId;
use ib_block::device::SECTOR;
use ib_block::{Command, Operation};

/// Which message an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// The version.
    Session,
    /// A device that was to be opened.
    Open(DeviceId),
    /// A device that was to be closed, by the server's number.
    Close(u32),
    /// What the user has asked for, by the user's number.
    Command(u64),
}

/// A message that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What it is, to be handed back with its answer.
    pub tag: Tag,
    /// The way of its data.
    pub direction: Direction,
    header: [u8; Open::LENGTH],
    header_length: u16,
    /// How much data there is, or may become, in bytes: the user's for a command.
    pub data_length: u32,
}

impl Outgoing {
    /// Returns the user's header of the request.
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

/// Returns the message that asks for a command of a user with a device, which has the server's number.
pub(super) fn message(device_id: u32, user: u64, command: &Command) -> Outgoing {
    let Command { operation, offset, length, fua } = *command;
    let (code, direction) = match operation {
        Operation::Read => (Code::READ, Direction::Read),
        // Linux asks for it as a read without data.
        Operation::Flush => (Code::FLUSH, Direction::Read),
        // There is no other word for zeros than the zeros.
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
