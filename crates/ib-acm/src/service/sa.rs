//! Requests to the SA: their priority and timing, and the meaning of the SA's responses.

use std::collections::{BTreeMap, VecDeque};

use ib_link::Remote;
use ib_mad::{Backoff, Completion, Failure, Request, Requester, RequesterConfig, Timing, Urgency};
use ib_types::Gid;
use ib_wire::acm::ClientStatus;
use ib_wire::mad::sa::{ComponentMask, SaHeader};
use ib_wire::mad::{Attribute, Mad, MadStatus, Method, MgmtClass, TransactionId};

use super::config::ServiceConfig;
use super::key::{EndpointKey, PathTarget};
use crate::port::{Action, PortState};

/// Bit numbers of the components of a path record in the component mask.
pub(super) const DGID: u8 = 2;
pub(super) const SGID: u8 = 3;
pub(super) const DLID: u8 = 4;
pub(super) const REVERSIBLE: u8 = 11;
pub(super) const NUMB_PATH: u8 = 12;
pub(super) const P_KEY: u8 = 13;

/// Purpose of an SA request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaRequest {
    /// Join a multicast group; `is_first` is false for a repeated join.
    Join { key: EndpointKey, mgid: Gid, is_first: bool },
    /// Leave a multicast group.
    Leave,
    /// Query a path, for a pending resolution or to refresh a cached route.
    Path { key: EndpointKey, target: PathTarget, is_refresh: bool },
    /// Query all paths of a port, to compare their service levels with the service levels of groups.
    AllPaths { key: EndpointKey },
    /// Query a path that a client has specified.
    ClientQuery { key: EndpointKey, number: u64 },
}

impl SaRequest {
    /// Returns the endpoint that handles the response; `None` if the response is ignored.
    pub(super) const fn endpoint(self) -> Option<EndpointKey> {
        match self {
            Self::Leave => None,
            Self::Join { key, .. }
            | Self::Path { key, .. }
            | Self::AllPaths { key }
            | Self::ClientQuery { key, .. } => Some(key),
        }
    }

    /// Returns the priority of the request. Requests on which all resolutions depend have the highest priority,
    /// followed by requests of clients, and refreshes.
    ///
    /// Repeated joins have only the priority of client requests, so that they do not delay client requests.
    const fn urgency(self) -> Urgency {
        match self {
            Self::Join { is_first: true, .. } | Self::Leave | Self::AllPaths { .. } => {
                Urgency::First
            }
            Self::Join { is_first: false, .. }
            | Self::Path { is_refresh: false, .. }
            | Self::ClientQuery { .. } => Urgency::Normal,
            Self::Path { is_refresh: true, .. } => Urgency::Last,
        }
    }

    /// Returns true if the request has the full number of retries. Otherwise it has one retry, so that it does not
    /// delay other requests. No client waits for such a request, or it is repeated later in any case.
    const fn has_all_retries(self) -> bool {
        !matches!(
            self,
            Self::Leave | Self::Join { is_first: false, .. } | Self::Path { is_refresh: true, .. }
        )
    }
}

/// Failure of an SA request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SaError {
    /// Status that clients receive.
    pub(super) status: ClientStatus,
    /// Reason of the failure, for log messages.
    pub(super) reason: String,
    /// True if the SA rejected the request. False if the SA did not respond, is busy, lacks resources, or responded
    /// with another attribute. In these cases cached data remains valid, and a retry may succeed.
    pub(super) is_final: bool,
}

impl SaError {
    /// Returns the error for a response that does not match its request.
    pub(super) fn mismatch() -> Self {
        let reason = "the response of the SA has another attribute".to_owned();
        Self { status: ClientStatus::EINVAL, reason, is_final: false }
    }

    /// Returns the error for a MAD status other than OK.
    fn from_status(status: MadStatus) -> Self {
        let code = match status.class_specific() {
            _ if status.is_busy() => ClientStatus::ETIMEDOUT,
            // The SA has no records, or the GID is invalid.
            3 | 5 => ClientStatus::ENODATA,
            1 => ClientStatus::ENOMEM,
            _ => ClientStatus::EINVAL,
        };
        let is_temporary = status.is_busy() || status == MadStatus::SA_NO_RESOURCES;
        Self { status: code, reason: status.to_string(), is_final: !is_temporary }
    }

    /// Returns the error for a failed request.
    pub(super) fn from_completion(completion: &Completion) -> Self {
        match &completion.result {
            Ok(message) => Self::from_status(message.status()),
            Err(failure) => {
                let status = match failure {
                    Failure::TimedOut { .. } => ClientStatus::ETIMEDOUT,
                    _ => ClientStatus::ENOTCONN,
                };
                Self { status, reason: failure.to_string(), is_final: false }
            }
        }
    }
}

/// Returns the attribute in the response to an SA request; fails if the request failed.
pub(super) fn attribute_of<A: Attribute>(completion: &Completion) -> Result<A, SaError> {
    match &completion.result {
        Ok(message) if message.status().is_ok() => {
            message.mad().attribute().ok_or_else(SaError::mismatch)
        }
        _ => Err(SaError::from_completion(completion)),
    }
}

/// A port of this machine, with its outstanding SA requests and its queued actions.
pub(super) struct LocalPort {
    pub(super) state: PortState,
    pub(super) requester: Requester,
    /// Purposes of outstanding SA requests, by transaction ID.
    requests: BTreeMap<u64, SaRequest>,
    pub(super) actions: VecDeque<Action>,
}

impl LocalPort {
    /// Returns a port whose first transaction ID is `first`.
    pub(super) fn new(state: PortState, config: &ServiceConfig, first: u32) -> Self {
        let window = config.sa_depth.max(1);
        let requester = RequesterConfig { tag: 0x2c, window, first, ..Default::default() };
        let (requester, requests) = (Requester::new(requester), BTreeMap::new());
        Self { state, requester, requests, actions: VecDeque::new() }
    }

    /// Sends a request to the SA.
    pub(super) fn send_sa<A: Attribute>(
        &mut self,
        config: &ServiceConfig,
        method: Method,
        components: &[u8],
        attribute: &A,
        request: SaRequest,
    ) -> TransactionId {
        let own = self.state.link;
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        mad.set_attribute(attribute);
        let component_mask = ComponentMask::of(components);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let remote = Remote { sl: own.sm_sl, ..Remote::gsi(own.sm_lid) };
        let backoff = Backoff::Doubling { longest: config.timeout };
        let retries = match request.has_all_retries() {
            true => config.retries.saturating_add(2),
            false => 1,
        };
        let timing = Timing { timeout: config.timeout / 4, retries, backoff };
        let mad = Request::new(remote, mad).with_timing(timing).with_urgency(request.urgency());
        let transaction = self.requester.start(mad).expect("the method has a response");
        self.requests.insert(transaction.0, request);
        transaction
    }

    /// Cancels an SA request.
    pub(super) fn cancel_sa(&mut self, transaction: TransactionId) {
        self.requester.cancel(transaction);
        self.requests.remove(&transaction.0);
    }

    /// Cancels all SA requests with this purpose.
    pub(super) fn cancel_all(&mut self, request: SaRequest) {
        let is_it = |_: &u64, it: &mut SaRequest| *it == request;
        for (transaction, _) in self.requests.extract_if(.., is_it) {
            self.requester.cancel(TransactionId(transaction));
        }
    }

    /// Returns the purposes of outstanding SA requests.
    #[cfg(test)]
    pub(super) fn requests(&self) -> impl Iterator<Item = &SaRequest> {
        self.requests.values()
    }

    /// Returns the next completed SA request.
    pub(super) fn poll_sa(&mut self) -> Option<(SaRequest, Completion)> {
        while let Some(completion) = self.requester.poll_event() {
            if let Some(request) = self.requests.remove(&completion.transaction_id.0) {
                return Some((request, completion));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_final_and_temporary_errors_are_not() {
        // Statuses 0x0007 and 0x0003 have both the Busy bit and the Redirect bit, so they do not count as busy. Some
        // agents return status 0x0007 for an invalid field.
        for (status, is_final, code) in [
            (0x0001, false, ClientStatus::ETIMEDOUT),
            (0x0100, false, ClientStatus::ENOMEM),
            (0x0101, false, ClientStatus::ETIMEDOUT),
            (0x0200, true, ClientStatus::EINVAL),
            (0x0300, true, ClientStatus::ENODATA),
            (0x0500, true, ClientStatus::ENODATA),
            (0x0700, true, ClientStatus::EINVAL),
            (0x0007, true, ClientStatus::EINVAL),
            (0x0003, true, ClientStatus::EINVAL),
        ] {
            let error = SaError::from_status(MadStatus(status));
            assert_eq!((error.is_final, error.status), (is_final, code), "{status:#06x}");
        }
    }
}
