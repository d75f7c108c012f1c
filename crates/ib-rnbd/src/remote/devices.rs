//! State of the devices of a [`Remote`](super::Remote): unflushed changes, and possible losses of the session state.

use std::collections::BTreeMap;

use ib_block::{Command, Errno, Geometry, Operation};

use crate::DeviceId;
use crate::recovery::{DeviceState, MAX_REOPENINGS, SessionLoss};

/// A device that was open at least once, and that the user has not closed.
#[derive(Clone, Copy, Debug, Default)]
struct Device {
    /// Number of confirmed changes that need a flush.
    changes: u64,
    /// Number of the confirmed changes that a flush has written to the medium.
    flushed: u64,
    /// True if unflushed changes may have been lost, and the user has not learned it yet from a failed flush.
    has_lost: bool,
    /// Value of [`Devices::paths`] when the device was last opened.
    paths: u64,
    /// Number of times that the device was opened.
    openings: u32,
    /// Number of the last opening, counted from 1, after which other clients may have written to the device; 0 if none.
    /// Commands that were sent during this opening or an earlier one may be older than the data of the device.
    overwritten_until: u32,
}

/// All devices of the session.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: BTreeMap<DeviceId, Device>,
    /// Number of times that a path was connected.
    paths: u64,
    /// Number of times that all devices were reopened since the last successful command.
    reopenings: u32,
    /// True while devices are being reopened.
    is_reopening: bool,
    /// Number of times that unflushed changes of any device may have been lost.
    losses: u64,
}

impl Devices {
    /// Records that a path is connected.
    pub(super) const fn path_connected(&mut self) {
        self.paths += 1;
    }

    /// Records that the session is lost.
    pub(super) const fn session_lost(&mut self) {
        self.is_reopening = false;
    }

    /// Records that all devices are being reopened, because the server has lost its session state.
    pub(super) const fn reopen(&mut self) {
        (self.is_reopening, self.reopenings) = (true, self.reopenings + 1);
    }

    /// Records that a device was opened. `is_kept` is false if its unflushed changes may be lost.
    pub(super) fn opened(&mut self, id: DeviceId, is_kept: bool) {
        self.is_reopening = false;
        let device = self.devices.entry(id).or_default();
        device.paths = self.paths;
        device.openings += 1;
        if !is_kept && device.changes > device.flushed {
            device.has_lost = true;
            self.losses += 1;
            device.flushed = device.changes;
        }
    }

    /// Records that other clients may have written to a device before it was reopened. Has to be called before
    /// [`Devices::opened`] counts the reopening.
    pub(super) fn may_be_overwritten(&mut self, id: DeviceId) {
        let device = self.devices.entry(id).or_default();
        device.overwritten_until = device.openings;
    }

    /// Removes a device that the user has closed.
    pub(super) fn close(&mut self, id: DeviceId) {
        self.devices.remove(&id);
    }

    /// Returns the number of times that unflushed changes of any device may have been lost.
    pub(super) const fn losses(&self) -> u64 {
        self.losses
    }

    /// Returns the number of times that a device was opened.
    pub(super) fn openings(&self, id: DeviceId) -> u32 {
        self.devices.get(&id).map_or(0, |device| device.openings)
    }

    /// Returns the number of confirmed changes of a device. A flush that starts now covers them.
    pub(super) fn changes(&self, id: DeviceId) -> u64 {
        self.devices.get(&id).map_or(0, |device| device.changes)
    }

    /// Returns the state of a device for the decision about a command: whether it is still open, or was closed or
    /// reopened after the command was sent. `opening` is the result of [`Devices::openings`] when it was sent.
    pub(super) fn state(&self, id: DeviceId, opening: u32) -> DeviceState {
        let Some(device) = self.devices.get(&id) else { return DeviceState::Closed };
        if (1..=device.overwritten_until).contains(&opening) {
            return DeviceState::ReopenedAfterRestart;
        }
        if opening < device.openings {
            return DeviceState::Reopened;
        }
        DeviceState::Open(if self.is_reopening {
            SessionLoss::Known
        } else if device.paths == self.paths {
            SessionLoss::Excluded
        } else if self.reopenings >= MAX_REOPENINGS {
            SessionLoss::Repeated
        } else {
            SessionLoss::Possible
        })
    }

    /// Handles a part of a command that the server has executed successfully, and returns the status of the part.
    ///
    /// If unflushed changes may have been lost, the next flush that the user submits fails although the server has
    /// executed it. Before this flush, writes with FUA whose last part is a flush fail too. `is_own` is true if the
    /// part is a flush that the user has submitted. `covers` is the number of changes that a flush covers.
    pub(super) fn succeeded(
        &mut self,
        id: DeviceId,
        geometry: &Geometry,
        part: &Command,
        covers: u64,
        is_own: bool,
    ) -> Errno {
        let device = self.devices.entry(id).or_default();
        match part.operation {
            Operation::Flush if device.has_lost => {
                device.has_lost = !is_own;
                return Errno::EIO;
            }
            _ if !geometry.write_back => {}
            Operation::Read => {}
            Operation::Flush => device.flushed = device.flushed.max(covers),
            _ if part.fua && geometry.fua => {}
            _ => device.changes += 1,
        }
        Errno::OK
    }

    /// Records that a command has succeeded, which shows that the server has the session state.
    pub(super) const fn session_is_known(&mut self) {
        self.reopenings = 0;
    }
}

#[cfg(test)]
mod tests;
