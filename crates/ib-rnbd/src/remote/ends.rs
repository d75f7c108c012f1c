//! What has ended: messages that were answered or lost, parts of commands, commands.

use std::collections::BTreeMap;

use ib_rtrs::{Completion, PathState};
use ib_types::Instant;

use super::{ADMIN, AGAIN, End, MOST_REFUSALS, Message, Remote, RemoteEvent, Step};
use crate::{ClientEvent, DeviceId, Kept, Tag};
use ib_block::data::{Part, ReadData};
use ib_block::{Errno, Geometry, Operation};

/// Returns whether an operation leaves a device other than it was.
const fn changes(operation: Operation) -> bool {
    !matches!(operation, Operation::Read | Operation::Flush)
}

impl Remote {
    pub(super) fn complete(&mut self, completion: &Completion) {
        let end = match (completion.is_answer, completion.is_fenced) {
            (true, _) => End::Answered,
            (false, true) => End::Undone,
            (false, false) => End::Unknown,
        };
        self.end_message(completion.user as usize, completion.errno, end);
    }

    /// A message has been answered, or has failed.
    pub(super) fn end_message(&mut self, number: usize, errno: Errno, end: End) {
        let Some(Message { tag, admin }) = self.messages.try_remove(number) else { return };
        let mut data = [0; ADMIN];
        let length = admin.map_or(0, |(slot, length)| {
            self.admin.give(slot);
            let length = length as usize;
            let read = self.admin.memory.read(slot * ADMIN, &mut data[..length]);
            read.expect("messages fit their pieces");
            length
        });
        match tag {
            // Its session was lost; it is asked for again when the device is open again.
            Tag::Command(step)
                if errno == Errno::ECONNABORTED
                    && (end == End::Undone || end == End::Unknown && self.is_harmless(step)) =>
            {
                self.again(step);
            }
            Tag::Command(step) if errno == Errno::ENOTCONN && self.renews(step, end) => {
                self.again(step);
            }
            Tag::Command(_) => self.rnbd.handle(tag, errno, &[]),
            _ if end == End::Answered => self.rnbd.handle(tag, errno, &data[..length]),
            // It is said again in the next session.
            _ if errno == Errno::ECONNABORTED => {}
            // Nobody has answered, and to say it again does no harm.
            _ if errno == Errno::ETIMEDOUT => self.rnbd.unanswered(tag),
            _ => self.rnbd.handle(tag, errno, &data[..length]),
        }
    }

    /// A server that has forgotten a session, while its client took a path for alive, answers that a device is not open: a
    /// Linux kernel does not say so otherwise. Returns whether everything is opened again because of that.
    ///
    /// Where no path was connected since the device was opened, somebody has closed it at the server, and wants that.
    fn renews(&mut self, step: u64, end: End) -> bool {
        /// How often in succession.
        const MOST: u32 = 3;
        let step = self.steps.get(step as usize);
        let device = step.map(|step| self.asks[step.ask].device);
        let openings = device.and_then(|device| self.caches.get(&device)).map(|it| it.openings);
        // It was asked of the device as it was open before.
        if end == End::Answered && step.map(|step| step.opening) < openings {
            return true;
        }
        let opened = device.and_then(|device| self.caches.get(&device)).map(|it| it.connected);
        // It is wanted no more.
        let Some(opened) = opened else { return end == End::Answered };
        if opened == self.connected && !self.is_renewing {
            return false;
        }
        if end != End::Answered || !self.is_renewing && self.renewals >= MOST {
            return false;
        }
        if !self.is_renewing {
            (self.is_renewing, self.renewals) = (true, self.renewals + 1);
            self.delayed.clear();
            self.rnbd.connected();
        }
        true
    }

    /// Returns whether a part may be done twice, and late, without anybody noticing.
    fn is_harmless(&self, step: u64) -> bool {
        let step = self.steps.get(step as usize);
        step.is_some_and(|it| !changes(it.command.operation))
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
                    self.is_renewing = false;
                    let cache = self.caches.entry(id).or_default();
                    cache.connected = self.connected;
                    cache.openings += 1;
                    if !is_kept && cache.changes > cache.flushed {
                        cache.has_lost = true;
                        self.losses += 1;
                        cache.flushed = cache.changes;
                    }
                    self.events.push_back(RemoteEvent::Opened(id, geometry));
                }
                ClientEvent::Refused(id, why) => {
                    self.events.push_back(RemoteEvent::Refused(id, why));
                }
                ClientEvent::Unsure(id) => self.drop_changes(id),
                ClientEvent::Delayed(id) => {
                    let (count, at) = self.delayed.entry(id).or_insert((0, now));
                    *count += 1;
                    *at = now + AGAIN;
                    if *count > MOST_REFUSALS {
                        self.delayed.remove(&id);
                        self.rnbd.give_up(id);
                    }
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

    /// What was not sent is asked for again once the device is open again.
    pub(super) fn forget_held(&mut self) {
        let Some(held) = self.held.take() else { return };
        match held.tag {
            Tag::Command(step) => self.again(step),
            tag => self.rnbd.unanswered(tag),
        }
    }

    /// Returns whether parts for a device have not ended.
    pub(super) fn has_steps(&self, device: DeviceId) -> bool {
        self.steps.iter().any(|(_, step)| self.asks[step.ask].device == device)
    }

    /// Asks for a part once more, unless it is a change of which that may be too late.
    pub(super) fn again(&mut self, step: u64) {
        let Some(&it) = self.steps.get(step as usize) else { return };
        let device = self.asks[it.ask].device;
        let unsure = self.caches.get(&device).map_or(0, |cache| cache.unsure);
        if changes(it.command.operation) && (1..=unsure).contains(&it.opening) {
            return self.end_step(step as usize, Errno::EIO);
        }
        self.rnbd.again(device, step, it.command);
    }

    /// Ends the changes of a device that nothing was done of yet. Others end when it is known that nothing is being done of
    /// them any more.
    fn drop_changes(&mut self, id: DeviceId) {
        let cache = self.caches.entry(id).or_default();
        cache.unsure = cache.openings;
        for number in std::mem::take(&mut self.unstarted) {
            let ask = &mut self.asks[number];
            if ask.device != id || !changes(ask.command.operation) {
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

    /// Takes note of what was done with a device. A flush fails once after something may have been lost.
    fn note_change(&mut self, device: DeviceId, step: &Step) -> Errno {
        let Some(&Geometry { write_back, fua: has_fua, .. }) = self.rnbd.geometry(device) else {
            return Errno::OK;
        };
        let cache = self.caches.entry(device).or_default();
        let operation = step.command.operation;
        if operation == Operation::Flush && cache.has_lost {
            // One that only follows a write tells that write alone.
            cache.has_lost = self.asks[step.ask].command.operation != Operation::Flush;
            return Errno::EIO;
        }
        match operation {
            _ if !write_back => {}
            Operation::Read => {}
            Operation::Flush => cache.flushed = cache.flushed.max(step.covers),
            _ if step.command.fua && has_fua => {}
            _ => cache.changes += 1,
        }
        Errno::OK
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
        let errno = if errno.is_ok() {
            self.renewals = 0;
            self.note_change(device, &step)
        } else {
            errno
        };
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
