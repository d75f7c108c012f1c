//! The interface between captures and the HCAs of embedded hosts. The number of an HCA is the [`PortId`] of its port.
//! Timestamps are in virtual time.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ib_capture::Link;
use ib_control::capture::message::AdapterInfo;
use ib_control::capture::{Captures, Clock, HcaOwner, OnReader};
use ib_hca::Hca;
use ib_hca::trace::PacketReader;
use ib_os::inbox::{Handle, Inbox};
use ib_topology::PortId;
use ib_types::Instant;

use super::Hosts;

/// State of the captures of the hosts' HCAs.
#[derive(Default)]
pub(super) struct Capturing {
    pub(super) clock: SimClock,
    inbox: Option<Inbox<Hosts>>,
    captures: Option<Captures<Hosts>>,
    on_reader: Option<OnReader>,
    /// Packet readers that trace selections ([`Hca::select`]) have created and that no capture uses; each with the port
    /// of its HCA.
    pub(super) others: VecDeque<(PortId, PacketReader)>,
}

/// The virtual time at the last call of [`Hosts::work`], in nanoseconds. Other threads can read it.
#[derive(Clone, Default)]
pub(super) struct SimClock(Arc<AtomicU64>);

impl SimClock {
    pub(super) fn set(&self, now: Instant) {
        self.0.store(now.as_nanos(), Ordering::Release);
    }
}

impl Hosts {
    /// Returns the captures of all hosts' HCAs, including hosts that are added later.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
    pub fn captures(&mut self) -> io::Result<Captures<Self>> {
        let captures = match &self.capturing.captures {
            Some(captures) => captures.clone(),
            None => Captures::new(self)?,
        };
        self.capturing.captures = Some(captures.clone());
        Ok(captures)
    }

    /// Returns the file descriptor that is readable while other threads have queued work for [`Hosts::work`].
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.capturing.inbox.as_ref().map(Inbox::as_fd)
    }

    /// Makes the file descriptor of [`Hosts::bell`] unreadable until other threads queue further work.
    pub fn silence(&self) {
        self.capturing.inbox.as_ref().into_iter().for_each(Inbox::silence);
    }

    pub(super) fn capture_added(&mut self, port: PortId) {
        if let Some(captures) = self.capturing.captures.clone() {
            captures.added(self, port.0);
        }
    }

    pub(super) fn capture_removed(&self, port: PortId) {
        if let Some(captures) = &self.capturing.captures {
            captures.removed(port.0);
        }
    }

    /// Runs the work that other threads have queued; returns true if there was any.
    pub(super) fn run_queued(&mut self) -> bool {
        if self.capturing.inbox.as_ref().is_none_or(|inbox| !inbox.is_pending()) {
            return false;
        }
        while let Some(work) = self.capturing.inbox.as_ref().and_then(Inbox::next) {
            work(self);
        }
        true
    }
}

impl HcaOwner for Hosts {
    fn handle(&mut self) -> io::Result<Handle<Self>> {
        let inbox = match self.capturing.inbox.take() {
            Some(inbox) => inbox,
            None => Inbox::new()?,
        };
        Ok(self.capturing.inbox.insert(inbox).handle())
    }

    fn set_on_reader(&mut self, on_reader: OnReader) {
        self.capturing.on_reader = Some(on_reader);
    }

    fn hand_over(&mut self) {
        while let Some((port, selection, reader)) = self.devices.poll_selected() {
            let left = match &mut self.capturing.on_reader {
                Some(on_reader) => on_reader(port.0, selection, reader),
                None => Some(reader),
            };
            self.capturing.others.extend(left.map(|reader| (port, reader)));
        }
    }

    fn next_adapter(&self, from: u32) -> Option<u32> {
        self.hosts.range(PortId(from)..).next().map(|(port, _)| port.0)
    }

    fn engine(&mut self, adapter: u32) -> Option<&mut Hca> {
        self.devices.get_mut(PortId(adapter)).map(ib_device::SimDevice::hca)
    }

    fn describe(&self, adapter: u32) -> Option<AdapterInfo> {
        let host = self.hosts.get(&PortId(adapter))?;
        let address = Ipv6Addr::from(host.gid.0).to_string();
        let link = format!("host {} of the simulated fabric", host.name);
        Some(AdapterInfo { adapter, address, udp_port: 0, link, qps: Vec::new() })
    }

    fn name_among(&self, adapter: u32) -> Option<String> {
        self.hosts.get(&PortId(adapter)).map(|host| host.name.clone())
    }

    fn link(&self) -> Link {
        Link::Infiniband
    }

    fn clock(&self) -> Clock {
        let SimClock(now) = self.capturing.clock.clone();
        Clock::new(move || Instant::from_nanos(now.load(Ordering::Acquire)))
    }
}
