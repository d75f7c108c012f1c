//! Listeners by service ID.

use std::collections::BTreeMap;

use crate::error::CmError;
use crate::id::{ListenerId, ServiceId};

/// A listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    pub(crate) id: ListenerId,
    /// True if private data must start with the `rdma_cm` header.
    pub(crate) has_header: bool,
}

/// The listeners of a CM.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    by_service: BTreeMap<ServiceId, Listener>,
    by_id: BTreeMap<ListenerId, ServiceId>,
    next: u64,
}

impl Listeners {
    pub(crate) fn add(
        &mut self,
        service: ServiceId,
        has_header: bool,
    ) -> Result<ListenerId, CmError> {
        if self.by_service.contains_key(&service) {
            return Err(CmError::ServiceInUse { service });
        }
        let id = ListenerId(self.next);
        self.next += 1;
        self.by_service.insert(service, Listener { id, has_header });
        self.by_id.insert(id, service);
        Ok(id)
    }

    pub(crate) fn remove(&mut self, id: ListenerId) -> bool {
        let Some(service) = self.by_id.remove(&id) else { return false };
        self.by_service.remove(&service).is_some()
    }

    pub(crate) fn get(&self, service: ServiceId) -> Option<Listener> {
        self.by_service.get(&service).copied()
    }
}
