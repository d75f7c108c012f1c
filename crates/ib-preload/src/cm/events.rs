//! Events of a channel, which the program reads with GET_EVENT.

use std::collections::VecDeque;

use super::abi::{ConnectionParam, DatagramParam, EVENT, Ece, EventHead, PRIVATE_DATA};
use crate::layout::{Bytes, Field};
use crate::readiness::Readiness;

/// Type of an event (`rdma_cm_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventType {
    AddrResolved = 0,
    AddrError = 1,
    RouteResolved = 2,
    RouteError = 3,
    ConnectRequest = 4,
    ConnectResponse = 5,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
    DeviceRemoval = 11,
    MulticastJoin = 12,
    MulticastError = 13,
    TimewaitExit = 15,
}

/// Parameters of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    Connection(ConnectionParam),
    Datagram(DatagramParam),
}

impl Parameters {
    /// Returns parameters of a connection that consist of private data only.
    pub(super) fn private_data(data: &[u8]) -> Self {
        let (private_data, private_data_len) = padded(data);
        Self::Connection(ConnectionParam {
            private_data,
            private_data_len,
            ..ConnectionParam::default()
        })
    }
}

/// Returns private data in the format of the ABI, and its length.
pub(super) fn padded(data: &[u8]) -> (Bytes<PRIVATE_DATA>, u8) {
    (Bytes::padded(data), data.len().try_into().unwrap_or(u8::MAX))
}

/// An event that the program has not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Number of the ID to which the event belongs. The ID counts the events that the program has read.
    pub(super) owner: u32,
    /// Number of the multicast membership to which the event belongs, if any. The membership also counts read events.
    pub(super) group: Option<u32>,
    /// Number of the ID of a new connection, for a connection request. The program gets the number with this event.
    pub(super) child: Option<u32>,
    /// Value by which the program identifies the owner or the membership.
    pub(super) uid: u64,
    pub(super) event_type: EventType,
    pub(super) status: i32,
    pub(super) parameters: Parameters,
}

impl Event {
    /// Encodes the event.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let id = self.child.or(self.group).unwrap_or(self.owner);
        let event = self.event_type as u32;
        let mut bytes = Vec::with_capacity(EVENT);
        EventHead { uid: self.uid, id, event, status: self.status }.write(&mut bytes);
        match &self.parameters {
            Parameters::Connection(connection) => connection.write(&mut bytes),
            Parameters::Datagram(datagram) => datagram.write(&mut bytes),
        }
        bytes.resize(EVENT - Ece::SIZE, 0);
        // The ECE of a REQ or REP is not reported, because librdmacm cannot set it on a queue pair of rxe.
        Ece::default().write(&mut bytes);
        bytes
    }
}

/// An open `rdma_cm` device with its events.
pub(super) struct Channel {
    pub(super) events: VecDeque<Event>,
    readiness: Readiness,
    /// Number of threads that wait for an event.
    pub(super) waiting: u32,
}

impl Channel {
    pub(super) const fn new(readiness: Readiness) -> Self {
        Self { events: VecDeque::new(), readiness, waiting: 0 }
    }

    /// Records that a thread waits for an event. Returns the descriptor that becomes readable when there is an event.
    pub(super) fn begin_wait(&mut self) -> i32 {
        self.waiting += 1;
        self.readiness.descriptor()
    }

    /// Closes the channel. If threads wait for an event, its descriptor remains open until the process exits.
    /// Otherwise, a new file could get the number of the descriptor for which these threads wait.
    pub(super) fn close(self) {
        if self.waiting > 0 {
            std::mem::forget(self.readiness);
        }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        self.readiness.raise();
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        self.lower();
        event
    }

    /// Removes the events that satisfy a condition, and returns them.
    pub(super) fn take(&mut self, mut is_taken: impl FnMut(&Event) -> bool) -> Vec<Event> {
        let (taken, kept) = self.events.drain(..).partition(|event| is_taken(event));
        let taken: VecDeque<Event> = taken;
        self.events = kept;
        self.lower();
        taken.into()
    }

    /// Clears the readiness of the channel's descriptor if the channel has no event.
    fn lower(&self) {
        if self.events.is_empty() {
            self.readiness.lower();
        }
    }
}
