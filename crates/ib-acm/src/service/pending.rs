//! Pending client requests, and the responses to clients.

use std::collections::{BTreeMap, VecDeque};

use ib_wire::acm::{
    ByteOrder, ClientHeader, ClientStatus, Entry, EntryFlags, HEADER_LENGTH, PerfCounters, Resolve,
};
use ib_wire::mad::sa::PathRecord;

/// Identifies a client. The owner of a service must not assign the same number to two clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A client request without a response yet.
#[derive(Clone, Debug)]
pub(super) struct PendingRequest {
    pub(super) client: ClientId,
    pub(super) header: ClientHeader,
    pub(super) order: ByteOrder,
    /// Entry of the response with the source address that the service chose; `None` if it chose none.
    pub(super) source: Option<Entry>,
    /// Number that identifies the request in [`PendingRequests`]; `None` if a single endpoint resolves the request.
    pub(super) shared: Option<u64>,
}

impl PendingRequest {
    /// Appends a response with a path to `out`.
    pub(super) fn write_path(&self, path: &PathRecord, out: &mut Vec<u8>) {
        let path = Entry::path(EntryFlags::PATH, path);
        let header = response_header(&self.header, ClientStatus::SUCCESS);
        let entries = [Some(path), self.source].into_iter().flatten().collect();
        Resolve { header, entries }.put(self.order, out);
    }

    /// Appends a response with an error to `out`.
    pub(super) fn write_error(&self, status: ClientStatus, out: &mut Vec<u8>) {
        let mut response = response_header(&self.header, status);
        response.set_length(HEADER_LENGTH, self.order);
        out.extend_from_slice(&response.to_bytes());
    }
}

/// Returns the header of the response to a request.
pub(super) fn response_header(request: &ClientHeader, status: ClientStatus) -> ClientHeader {
    let opcode = request.opcode.answer();
    ClientHeader { opcode, status, ..ClientHeader::new(opcode, request.transaction) }
}

/// Counts pending requests and queues their responses.
///
/// Several endpoints may resolve the same request. The first path that one of them finds is the response. The response
/// is an error only if all of them fail.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    /// Number of pending requests.
    pub(super) count: usize,
    /// For each request that several endpoints resolve: number of endpoints that have not failed yet.
    shared: BTreeMap<u64, usize>,
    responses: VecDeque<(ClientId, Vec<u8>)>,
}

impl PendingRequests {
    /// Adds a request. If several endpoints resolve the request, `shared` identifies it, and `endpoints` is the number
    /// of these endpoints.
    pub(super) fn add(&mut self, shared: Option<u64>, endpoints: usize) {
        self.count += 1;
        self.shared.extend(shared.map(|shared| (shared, endpoints)));
    }

    /// Removes a request that an endpoint has resolved. Returns false if another endpoint has already resolved it.
    pub(super) fn remove_resolved(&mut self, request: &PendingRequest) -> bool {
        let is_first = request.shared.is_none_or(|shared| self.shared.remove(&shared).is_some());
        self.count -= usize::from(is_first);
        is_first
    }

    /// Removes a request that an endpoint failed to resolve. Returns false if another endpoint has resolved it or is
    /// still trying.
    pub(super) fn remove_failed(&mut self, request: &PendingRequest) -> bool {
        if let Some(shared) = request.shared {
            let Some(left) = self.shared.get_mut(&shared) else { return false };
            *left -= 1;
            if *left > 0 {
                return false;
            }
            self.shared.remove(&shared);
        }
        self.count -= 1;
        true
    }

    /// Queues the response to a resolved request.
    pub(super) fn succeed(&mut self, request: &PendingRequest, path: &PathRecord) {
        if self.remove_resolved(request) {
            let mut out = Vec::new();
            request.write_path(path, &mut out);
            self.responses.push_back((request.client, out));
        }
    }

    /// Queues the response to a failed request and counts the error.
    pub(super) fn fail(
        &mut self,
        request: &PendingRequest,
        status: ClientStatus,
        counters: &mut PerfCounters,
    ) {
        if self.remove_failed(request) {
            let mut out = Vec::new();
            request.write_error(status, &mut out);
            counters.errors += 1;
            self.responses.push_back((request.client, out));
        }
    }

    /// Returns the next queued response.
    pub(super) fn poll_response(&mut self) -> Option<(ClientId, Vec<u8>)> {
        self.responses.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(shared: Option<u64>) -> PendingRequest {
        let header = ClientHeader::new(ib_wire::acm::ClientOpcode::RESOLVE, [0; 8]);
        let order = ByteOrder::NATIVE;
        PendingRequest { client: ClientId(1), header, order, source: None, shared }
    }

    #[test]
    fn first_path_wins_and_last_error_counts() {
        let mut pending = PendingRequests::default();
        let mut counters = PerfCounters::default();
        let one = request(Some(7));
        pending.add(one.shared, 3);
        pending.fail(&one, ClientStatus::ENODATA, &mut counters);
        assert_eq!((pending.count, counters.errors), (1, 0));
        pending.succeed(&one, &PathRecord::zeroed());
        pending.succeed(&one, &PathRecord::zeroed());
        pending.fail(&one, ClientStatus::ENODATA, &mut counters);
        assert_eq!((pending.count, counters.errors), (0, 0));
        assert!(pending.poll_response().is_some() && pending.poll_response().is_none());
        let other = request(Some(8));
        pending.add(other.shared, 2);
        for errors in [0, 1] {
            pending.fail(&other, ClientStatus::ENODATA, &mut counters);
            assert_eq!((pending.count, counters.errors), (1 - errors as usize, errors));
        }
        assert!(pending.poll_response().is_some() && pending.poll_response().is_none());
    }
}
