//! The engines of a device: an HCA and its connection manager. The events of a device.

use std::collections::VecDeque;

use ib_cm::{Cm, CmConfig, CmEvent, ConnectionId};
use ib_hca::{Hca, HcaConfig, HcaEvent};
use ib_link::Route;
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;

/// An HCA and its connection manager.
#[derive(Debug)]
pub struct Engines {
    /// The HCA.
    pub hca: Hca,
    /// The connection manager.
    pub cm: Cm,
    pub(crate) events: VecDeque<DeviceEvent>,
}

impl Engines {
    pub(crate) fn new(hca: HcaConfig, hca_seed: [u8; 32], cm: CmConfig, cm_seed: [u8; 32]) -> Self {
        let (hca, cm) = (Hca::new(hca, hca_seed), Cm::new(cm, cm_seed));
        Self { hca, cm, events: VecDeque::new() }
    }

    /// Processes a received MAD. The connection manager handles messages of communication
    /// management; other MADs become events.
    pub(crate) fn handle_mad(&mut self, now: Instant, route: Route, source: Qpn, mad: Mad) {
        if !self.cm.handle(now, &route, &mad) {
            let mad = Box::new(mad);
            self.events.push_back(DeviceEvent::Hca(HcaEvent::Mad { route, source, mad }));
        }
    }

    /// Processes expired timers. Returns true if any had expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let (hca, cm) = (is_due(self.hca.poll_timeout()), is_due(self.cm.poll_timeout()));
        if hca {
            self.hca.handle_timeout(now);
        }
        if cm {
            self.cm.handle_timeout(now);
        }
        hca || cm
    }

    /// Returns the time of the next timeout of the HCA or of the connection manager.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.hca.poll_timeout().into_iter().chain(self.cm.poll_timeout()).min()
    }

    /// Sends the messages of the connection manager and queues its events.
    pub(crate) fn collect_cm(&mut self) {
        while let Some((route, mad)) = self.cm.poll_transmit() {
            // If the HCA's queue of MADs is full, the MAD is dropped. The connection manager recovers as if the
            // network had lost the MAD.
            self.hca.send_mad(route, mad);
        }
        while let Some(event) = self.cm.poll_event() {
            self.events.push_back(DeviceEvent::Cm(event));
        }
    }
}

/// An event of a device.
#[derive(Debug)]
pub enum DeviceEvent {
    /// An event of the HCA.
    Hca(HcaEvent),
    /// An event of the connection manager.
    Cm(CmEvent),
}

impl DeviceEvent {
    /// Returns the connection that this event reports as failed or closed by the peer; `None` for
    /// other events.
    #[must_use]
    pub const fn disconnected(&self) -> Option<ConnectionId> {
        match self {
            Self::Cm(CmEvent::Disconnected { id, .. } | CmEvent::Failed { id, .. }) => Some(*id),
            _ => None,
        }
    }
}
