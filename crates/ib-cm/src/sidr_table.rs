//! The table of SIDR requests: the requests that this CM has sent, and the requests of peers.

use std::collections::BTreeMap;

use ib_link::Route;
use ib_types::Gid;
use ib_wire::mad::{Mad, TransactionId};

use crate::id::{ServiceId, SidrId, SidrRequestId};

/// Key of a peer's SIDR request: GID and LID of the peer, and the request ID.
pub(crate) type PeerRequest = (Gid, u16, u32);

/// A SIDR request that this CM has sent and that has no response yet.
#[derive(Debug)]
pub(crate) struct SentRequest {
    pub(crate) route: Route,
    pub(crate) mad: Mad,
    /// Number of retransmissions of the `SIDR_REQ` that are left.
    pub(crate) retries_left: u8,
}

/// A SIDR request that a peer has sent.
#[derive(Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) peer: PeerRequest,
    pub(crate) route: Route,
    pub(crate) transaction_id: TransactionId,
    pub(crate) service_id: ServiceId,
    /// The response; `None` until the consumer has responded.
    pub(crate) response: Option<Mad>,
}

/// The SIDR requests of a CM.
#[derive(Debug, Default)]
pub(crate) struct SidrTable {
    pub(crate) sent: BTreeMap<SidrId, SentRequest>,
    received: BTreeMap<SidrRequestId, ReceivedRequest>,
    by_peer: BTreeMap<PeerRequest, SidrRequestId>,
    next: u64,
}

impl SidrTable {
    /// Returns the number of all SIDR requests, sent and received.
    pub(crate) fn len(&self) -> usize {
        self.sent.len() + self.received.len()
    }

    /// Returns the number of SIDR requests of peers.
    pub(crate) fn received(&self) -> usize {
        self.received.len()
    }

    /// Returns the SIDR request that a peer has sent with this key.
    pub(crate) fn find(&self, peer: &PeerRequest) -> Option<(SidrRequestId, &ReceivedRequest)> {
        let id = *self.by_peer.get(peer)?;
        Some((id, self.received.get(&id)?))
    }

    /// Returns the received SIDR request with this ID; `None` if it does not exist or already has a response.
    pub(crate) fn unanswered(&mut self, id: SidrRequestId) -> Option<&mut ReceivedRequest> {
        self.received.get_mut(&id).filter(|request| request.response.is_none())
    }

    /// Adds a SIDR request of a peer; returns its ID.
    pub(crate) fn insert(&mut self, request: ReceivedRequest) -> SidrRequestId {
        let id = SidrRequestId(self.next);
        self.next += 1;
        self.by_peer.insert(request.peer, id);
        self.received.insert(id, request);
        id
    }

    /// Removes a SIDR request of a peer.
    pub(crate) fn remove(&mut self, id: SidrRequestId) {
        if let Some(request) = self.received.remove(&id) {
            self.by_peer.remove(&request.peer);
        }
    }
}
