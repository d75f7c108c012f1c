//! Events of a device.

use ib_cm::{CmEvent, ConnectionId};
use ib_hca::HcaEvent;

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
