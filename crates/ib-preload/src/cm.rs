//! An `rdma_cm` device, through which unmodified librdmacm uses the connection manager of the HCA.
//!
//! | module | holds |
//! |---|---|
//! | `command`, `abi` | commands: decoding, layouts |
//! | `address` | socket addresses |
//! | `ids` | IDs of the program and the ports to which they are bound |
//! | `events` | channels and their events |
//! | `execute`, `resolve`, `connect`, `multicast` | commands on IDs |
//! | `query`, `attributes` | responses about addresses, paths and queue pairs |
//! | `react` | events of the connection manager and responses of the SA |
//! | `port` | the port at which the connection manager works |
//!
//! [`Manager`] gets commands, events and the time from its owner, and reaches the HCA and the fabric through
//! [`CmPort`]. It owns no socket and no thread.

use std::collections::BTreeMap;

use ib_cm::{ListenerId, ServiceId};
use ib_types::Instant;
use ib_wire::mad::TransactionId;

use crate::errno::Errno;
use crate::readiness::Readiness;

mod abi;
mod address;
mod attributes;
mod command;
mod connect;
mod events;
mod execute;
mod ids;
mod multicast;
mod port;
mod query;
mod react;
mod resolve;

pub(crate) use command::{Command, Request};
pub(crate) use port::CmPort;

use events::{Channel, Event, EventType, Parameters};
use ids::Ids;

/// Number of an open file of the program.
pub(crate) type FileId = u64;

/// An SA query of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    /// Query for the path of the ID with this number.
    Path(u32),
    /// Join of the multicast membership with this number.
    Join(u32),
}

/// Listeners on a service.
struct Service {
    listener: ListenerId,
    /// True if the private data of requests has the `rdma_cm` header.
    has_header: bool,
    /// Numbers of the IDs that listen.
    ids: Vec<u32>,
}

/// The IDs and channels of a process.
#[derive(Default)]
pub(crate) struct Manager {
    channels: BTreeMap<FileId, Channel>,
    ids: Ids,
    services: BTreeMap<ServiceId, Service>,
    queries: BTreeMap<TransactionId, Query>,
}

/// Inputs of a command that are not part of its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    /// Value of SET_OPTION.
    pub(crate) option: &'a [u8],
    /// Channel whose descriptor is in a MIGRATE_ID command.
    pub(crate) old_channel: Option<FileId>,
}

impl Manager {
    /// Adds a channel.
    pub(crate) fn open(&mut self, file: FileId, readiness: Readiness) {
        self.channels.insert(file, Channel::new(readiness));
    }

    /// Closes a channel and destroys its IDs. Does nothing if the file is not a channel.
    pub(crate) fn close(&mut self, file: FileId, port: &mut impl CmPort, now: Instant) {
        let own = self.ids.iter().filter(|(_, id)| id.channel == file);
        for number in own.map(|(number, _)| number).collect::<Vec<_>>() {
            self.destroy(number, port, now);
        }
        self.remove_channel(file);
    }

    /// Removes a channel and its IDs after the device has failed, without messages to the peers.
    pub(crate) fn forget(&mut self, file: FileId) {
        let own = self.ids.iter().filter(|(_, id)| id.channel == file);
        for number in own.map(|(number, _)| number).collect::<Vec<_>>() {
            self.ids.remove(number);
        }
        self.remove_channel(file);
    }

    fn remove_channel(&mut self, file: FileId) {
        if let Some(channel) = self.channels.remove(&file) {
            channel.close();
        }
    }

    /// Records that a thread waits for an event of a channel. Returns the descriptor that becomes readable when the
    /// channel has an event; `None` if the file is not a channel.
    pub(crate) fn begin_wait(&mut self, file: FileId) -> Option<i32> {
        self.channels.get_mut(&file).map(Channel::begin_wait)
    }

    /// Records that a thread no longer waits for an event of a channel.
    pub(crate) fn end_wait(&mut self, file: FileId) {
        if let Some(channel) = self.channels.get_mut(&file) {
            channel.waiting = channel.waiting.saturating_sub(1);
        }
    }

    /// Destroys all IDs, which disconnects their connections.
    pub(crate) fn close_all(&mut self, port: &mut impl CmPort, now: Instant) {
        for number in self.ids.iter().map(|(number, _)| number).collect::<Vec<_>>() {
            self.destroy(number, port, now);
        }
    }

    /// Returns true if the file is a channel.
    pub(crate) fn has_channel(&self, file: FileId) -> bool {
        self.channels.contains_key(&file)
    }

    /// Returns true if no channel is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Reports to all IDs with a device that the device was removed.
    pub(crate) fn report_removal(&mut self) {
        let affected = self.ids.iter().filter(|(_, id)| id.has_device);
        for number in affected.map(|(number, _)| number).collect::<Vec<_>>() {
            self.report(number, EventType::DeviceRemoval, 0);
        }
    }

    /// Reads the next event of a channel.
    ///
    /// # Errors
    /// Fails with `EAGAIN` if the channel has no event, and with `EINVAL` if the file is not a channel.
    pub(crate) fn next_event(&mut self, channel: FileId) -> Result<Vec<u8>, Errno> {
        let events = self.channels.get_mut(&channel).ok_or(Errno::INVALID)?;
        let event = events.pop().ok_or(Errno::AGAIN)?;
        if let Some(owner) = self.ids.get_mut(event.owner) {
            owner.events_reported += 1;
            owner.backlog += u32::from(event.child.is_some());
        }
        if let Some(group) = event.group.and_then(|group| self.ids.group_mut(group)) {
            group.events_reported += 1;
        }
        Ok(event.to_bytes())
    }

    /// Adds an event without parameters to the channel of an ID.
    fn report(&mut self, owner: u32, event_type: EventType, status: i32) {
        self.report_with(owner, event_type, status, Parameters::private_data(&[]));
    }

    /// Adds an event of an ID. Events of a new connection that the program has not accepted are dropped, because the
    /// program cannot assign them to an ID.
    fn report_with(
        &mut self,
        owner: u32,
        event_type: EventType,
        status: i32,
        parameters: Parameters,
    ) {
        let Some(id) = self.ids.get(owner).filter(|id| id.uid != 0) else { return };
        let (channel, uid) = (id.channel, id.uid);
        let (group, child) = (None, None);
        let event = Event { owner, group, child, uid, event_type, status, parameters };
        self.push(channel, event);
    }

    fn push(&mut self, channel: FileId, event: Event) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.push(event);
        }
    }
}

#[cfg(test)]
mod tests;
