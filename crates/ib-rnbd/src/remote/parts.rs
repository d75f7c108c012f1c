//! Messages, parts of commands and commands in flight.

use std::collections::BTreeMap;

use crate::{DeviceId, Tag};
use ib_block::data::Part;
use ib_block::{Command, Errno, Plan};

#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) tag: Tag,
    /// The piece of the room of messages that it has, and how much data that is.
    pub(super) admin: Option<(usize, u32)>,
}

/// What the user has asked for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) device: DeviceId,
    pub(super) user: u64,
    pub(super) command: Command,
    pub(super) plan: Plan,
    pub(super) next: Option<Command>,
    pub(super) under_way: usize,
    pub(super) errno: Errno,
    /// What is to be written, or room for what is read.
    pub(super) data: Vec<u8>,
    /// For data that is lent: where the parts are that have been read, by where they start in the whole.
    pub(super) parts: Option<BTreeMap<u64, Part>>,
}

/// A part of it that the device does at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) ask: usize,
    pub(super) command: Command,
    pub(super) slot: Option<usize>,
    /// For a flush: how many changes it makes sure of.
    pub(super) covers: u64,
    /// How often the device had been opened when it was sent.
    pub(super) opening: u32,
}
