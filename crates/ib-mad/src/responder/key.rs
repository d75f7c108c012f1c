//! Identifiers of RMPP transfers.

use ib_link::Remote;
use ib_wire::mad::{Mad, Method, TransactionId};

/// Identifies an RMPP transfer between the responder and a requester.
///
/// `method` lacks the response bit, so that segments and their ACKs have the same key. A request and its response have
/// the same key, except for Set, whose response has method GetResp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransferKey {
    pub(super) transaction_id: TransactionId,
    lid: u16,
    qpn: u32,
    class: u8,
    class_version: u8,
    method: u8,
}

impl TransferKey {
    pub(super) fn of(remote: &Remote, mad: &Mad) -> Self {
        Self {
            transaction_id: mad.transaction_id(),
            lid: remote.lid,
            qpn: remote.qpn.get(),
            class: mad.class().0,
            class_version: mad.class_version(),
            method: mad.method().0 & !Method::RESPONSE_BIT,
        }
    }
}
