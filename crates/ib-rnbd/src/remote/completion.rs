//! What has ended: messages that were answered or lost, parts of commands, commands.

use std::collections::BTreeMap;

use ib_rtrs::{Outcome, PathState};
use ib_types::Instant;

use super::{ADMIN, Message, REOPEN_DELAY, Remote, RemoteEvent, Step};
use crate::recovery::{self, Recovery, decide};
use crate::{ClientEvent, DeviceId, Kept, Tag};
use ib_block::data::{Part, ReadData};
use ib_block::{Errno, Operation};

impl Remote {
    /// A message has been answered, or has failed.
    pub(super) fn end_message(&mut self, number: usize, outcome: Outcome) {
        let Some(Message { tag, admin }) = self.messages.try_remove(number) else { return };
        let mut data = [0; ADMIN];
        let length = admin.map_or(0, |(slot, length)| {
            self.admin.give(slot);
            let length = length as usize;
            let read = self.admin.memory.read(slot * ADMIN, &mut data[..length]);
            read.expect("messages fit their pieces");
            length
        });
        self.recover(tag, Some(outcome), &data[..length]);
    }

    /// A message was not sent.
    pub(super) fn forget_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.recover(held.tag, None, &[]);
        }
    }

    /// Carries out what follows for a message that has ended, or was not sent.
    fn recover(&mut self, tag: Tag, outcome: Option<Outcome>, data: &[u8]) {
        let Tag::Command(number) = tag else { return self.rnbd.handle(tag, outcome, data) };
        let Some(&step) = self.steps.get(number as usize) else { return };
        let device = self.asks[step.ask].device;
        let is_change = step.command.operation.is_change();
        let state = self.devices.state(device, step.opening);
        match decide(recovery::Message::Command { is_change, device: state }, outcome) {
            Recovery::End(errno) => self.rnbd.end(number, errno),
            Recovery::Reopen => {
                self.devices.reopen();
                self.delayed.clear();
                self.rnbd.connected();
                self.rnbd.again(device, number, step.command);
            }
            _ => self.rnbd.again(device, number, step.command),
        }
    }

    /// Takes what RNBD tells.
    pub(super) fn collect(&mut self, now: Instant) {
        while let Some(event) = self.rnbd.poll_event() {
            match event {
                ClientEvent::Opened(id, geometry, kept) => {
                    let is_kept = match kept {
                        Kept::All => true,
                        Kept::Flushed => false,
                        Kept::Unknown => self.config.trusts_cache,
                    };
                    self.delayed.remove(&id);
                    self.devices.opened(id, is_kept);
                    self.events.push_back(RemoteEvent::Opened(id, geometry));
                }
                ClientEvent::Refused(id, why) => {
                    self.events.push_back(RemoteEvent::Refused(id, why));
                }
                ClientEvent::Unsure(id) => self.drop_changes(id),
                ClientEvent::Delayed(id) => {
                    self.delayed.insert(id, now + REOPEN_DELAY);
                }
                ClientEvent::Done(step, errno) => self.end_step(step as usize, errno),
            }
        }
    }

    /// Returns whether no path is connected, nor will be by itself, for another reason than that somebody wanted that: who has
    /// disconnected all paths may connect them again.
    pub(super) fn is_hopeless(&self) -> bool {
        let mut states = self.rtrs.paths().filter_map(|path| self.rtrs.path_state(path)).peekable();
        self.is_given_up
            && states.peek().is_some()
            && states.all(|state| matches!(state, PathState::Disconnected | PathState::Closing))
    }

    /// Ends all that waits to be sent.
    pub(super) fn end_waiting(&mut self, errno: Errno) {
        self.forget_held();
        self.rnbd.fail_all(errno);
    }

    /// Returns whether parts for a device have not ended.
    pub(super) fn has_steps(&self, device: DeviceId) -> bool {
        self.steps.iter().any(|(_, step)| self.asks[step.ask].device == device)
    }

    /// Ends the changes of a device that nothing was done of yet. Others end when it is known that nothing is being done of
    /// them any more.
    fn drop_changes(&mut self, id: DeviceId) {
        self.devices.may_be_overwritten(id);
        for number in std::mem::take(&mut self.unstarted) {
            let ask = &mut self.asks[number];
            if ask.device != id || !ask.command.operation.is_change() {
                self.unstarted.push_back(number);
                continue;
            }
            (ask.errno, ask.next) = (Errno::EIO, None);
            if ask.under_way == 0 {
                let ask = self.asks.remove(number);
                self.spare.keep(ask.data);
                self.ended.push_back((ask.user, ask.errno, ReadData::default()));
            }
        }
    }

    pub(super) fn end_step(&mut self, number: usize, errno: Errno) {
        let Some(step) = self.steps.try_remove(number) else { return };
        let Step { ask: at, command, slot, .. } = step;
        let device = self.asks[at].device;
        if let Some(at) = self.leaving.iter().position(|leaving| leaving.0 == device)
            && !self.has_steps(device)
        {
            let (_, number) = self.leaving.swap_remove(at);
            self.rnbd.release(number);
        }
        let mut errno = errno;
        if errno.is_ok() {
            self.devices.session_is_known();
            if let Some(geometry) = self.rnbd.geometry(device) {
                let is_own = self.asks[at].command.operation == Operation::Flush;
                errno = self.devices.succeeded(device, geometry, &command, step.covers, is_own);
            }
        }
        let ask = &mut self.asks[at];
        if let (Some(slot), Some(room)) = (slot, &mut self.data) {
            let reads = command.operation == Operation::Read && errno.is_ok();
            let (from, length) = (command.offset - ask.command.offset, command.length as usize);
            match &mut ask.parts {
                Some(parts) if reads => {
                    parts.insert(from, Part { slot, length });
                }
                _ => {
                    if reads && !ask.data.is_empty() {
                        let to = &mut ask.data[from as usize..from as usize + length];
                        room.memory.read(slot * room.piece, to).expect("a step fits its piece");
                    }
                    room.give(slot);
                }
            }
        }
        ask.under_way -= 1;
        if ask.errno.is_ok() && !errno.is_ok() {
            ask.errno = errno;
            // What has failed need not go on.
            ask.next = None;
        }
        if ask.under_way == 0 {
            if ask.next.is_some() {
                if !self.unstarted.contains(&at) {
                    self.unstarted.push_front(at);
                }
                return;
            }
            self.unstarted.retain(|other| *other != at);
            let ask = self.asks.remove(at);
            let reads = ask.command.operation == Operation::Read && ask.errno.is_ok();
            let parts: Vec<Part> = ask.parts.into_iter().flat_map(BTreeMap::into_values).collect();
            let data = match &mut self.data {
                Some(room) if reads && !parts.is_empty() => room.hand_out(parts, &mut self.spare),
                _ if reads => ReadData::Bytes(ask.data),
                room => {
                    self.spare.keep(ask.data);
                    if let Some(room) = room {
                        // What was read of something that has failed.
                        parts.iter().for_each(|part| room.give(part.slot));
                    }
                    ReadData::default()
                }
            };
            self.ended.push_back((ask.user, ask.errno, data));
        }
    }
}
