//! Completions of messages and of parts of commands.

use ib_rtrs::{Outcome, PathState};
use ib_types::Instant;

use super::{ADMIN, Message, REOPEN_DELAY, Remote, RemoteEvent};
use crate::recovery::{self, Recovery, decide};
use crate::{ClientEvent, Kept, Tag};
use ib_block::Errno;

impl Remote {
    /// Handles the completion of a message.
    pub(super) fn end_message(&mut self, number: usize, outcome: Outcome) {
        let Some(Message { tag, admin }) = self.messages.try_remove(number) else { return };
        let mut data = [0; ADMIN];
        let length = admin.map_or(0, |(slot, length)| {
            self.admin.give(slot);
            let length = length as usize;
            let read = self.admin.memory.read(slot * ADMIN, &mut data[..length]);
            read.expect("responses are within their buffers");
            length
        });
        self.recover(tag, Some(outcome), &data[..length]);
    }

    /// Removes the message in [`Remote::held`], if any, and handles it as not sent.
    pub(super) fn forget_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.recover(held.tag, None, &[]);
        }
    }

    /// Carries out the [`Recovery`] of a message that has completed or was not sent.
    fn recover(&mut self, tag: Tag, outcome: Option<Outcome>, data: &[u8]) {
        let Tag::Command(number) = tag else { return self.rnbd.handle(tag, outcome, data) };
        let Some(part) = self.commands.part(number) else { return };
        let is_change = part.command.operation.is_change();
        let state = self.devices.state(part.device, part.opening);
        match decide(recovery::Message::Command { is_change, device: state }, outcome) {
            Recovery::End(errno) => self.rnbd.end(number, errno),
            Recovery::Reopen => {
                self.devices.reopen();
                self.delayed.clear();
                self.rnbd.connected();
                self.rnbd.again(part.device, number, part.command);
            }
            _ => self.rnbd.again(part.device, number, part.command),
        }
    }

    /// Handles the events of the RNBD protocol client `rnbd`.
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
                ClientEvent::MaybeOverwritten(id) => {
                    self.devices.may_be_overwritten(id);
                    self.commands.fail_changes(id);
                }
                ClientEvent::Delayed(id) => {
                    self.delayed.insert(id, now + REOPEN_DELAY);
                }
                ClientEvent::Done(part, errno) => self.end_part(part, errno),
            }
        }
    }

    /// Returns true if all paths are disconnected, and the client has given up reconnecting one of them. A path that
    /// the user has disconnected does not count as given up, because the user may reconnect it.
    pub(super) fn is_hopeless(&self) -> bool {
        let mut states = self.rtrs.paths().filter_map(|path| self.rtrs.path_state(path)).peekable();
        self.is_given_up
            && states.peek().is_some()
            && states.all(|state| matches!(state, PathState::Disconnected | PathState::Closing))
    }

    /// Completes all queued commands with this error.
    pub(super) fn end_waiting(&mut self, errno: Errno) {
        self.forget_held();
        self.rnbd.fail_all(errno);
    }

    /// Handles the completion of a part of a command.
    fn end_part(&mut self, number: u64, errno: Errno) {
        let Some(part) = self.commands.take_part(number) else { return };
        let device = part.device;
        if let Some(at) = self.leaving.iter().position(|leaving| leaving.0 == device)
            && !self.commands.has_parts(device)
        {
            let (_, number) = self.leaving.swap_remove(at);
            self.rnbd.release(number);
        }
        let mut errno = errno;
        if errno.is_ok() {
            self.devices.session_is_known();
            if let Some(geometry) = self.rnbd.geometry(device) {
                let (command, covers) = (&part.command, part.covers);
                let is_own = part.is_own_flush;
                errno = self.devices.succeeded(device, geometry, command, covers, is_own);
            }
        }
        self.commands.finish(part, errno);
    }
}
