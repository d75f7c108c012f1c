//! Clients: programs that send and receive MADs at an end port.
//!
//! Several clients may share a port. The fabric replaces the upper 16 bits of the transaction ID of a
//! request by the client ID plus one. Before the client receives the response, the fabric restores
//! the bits that the client has sent. The options of a client determine which unsolicited MADs the client
//! receives; see [`ClientOptions`].

use std::collections::{BTreeMap, VecDeque};

use ib_link::upper_bits::OWN_BITS;
use ib_link::{Datagram, Incoming, UpperBits};
use ib_topology::PortId;
use ib_types::Qpn;
use ib_wire::mad::{MgmtClass, TransactionId};

use crate::ids::{ClientId, RequestKey};
use crate::open_port::OpenPorts;
use crate::packet::MadPayload;

mod request;

pub(crate) use request::{Request, Requests, is_rmpp_control};

/// Maximum number of transaction IDs of a client whose upper bits the fabric stores.
///
/// While a request is outstanding, the fabric takes the upper bits from the request itself. The
/// stored bits are for later MADs of the transaction: further segments, ACKs, duplicates and late
/// responses.
const REMEMBERED: usize = 4096;

/// Maximum number of attached clients. Transaction IDs contain the client ID plus one in 16 bits,
/// of which the values 0 and 0xffff are not used.
pub const MAX_CLIENTS: u32 = 65_534;

/// Maximum number of requests of a client that may be outstanding.
pub(crate) const MAX_OUTSTANDING: u32 = 65_536;

/// Options of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// True if the client is a subnet manager. Unsolicited MADs are delivered to subnet managers.
    pub is_sm: bool,
    /// QPN, above 1, of the client's own queue pair: unsolicited MADs to it are delivered to the
    /// client. Zero if the client has no such queue pair.
    pub queue_pair: u32,
    /// A management class whose unsolicited MADs to QP 1 are delivered to this client instead of a
    /// subnet manager. If several clients of a port register the same class, the client that
    /// attached first receives the MADs.
    pub class: Option<MgmtClass>,
    /// True if lost MADs are reported to the client, as ibsim's clients require. Otherwise the
    /// client has to use timeouts, as on a real fabric.
    pub reports_losses: bool,
}

/// An attached client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) port: PortId,
    pub(crate) options: ClientOptions,
    inbox: VecDeque<Incoming>,
    upper_bits: UpperBits,
    /// True if the client is in the queue [`Clients::woken`].
    woken: bool,
    /// Number of outstanding requests.
    waiting: u32,
    sent: u64,
    received: u64,
    lost: u64,
}

/// Error of attaching a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The fabric has no such port.
    #[error("the fabric has no port with ID {}: expected a port ID of this fabric", .0.0)]
    NoSuchPort(PortId),
    /// All client IDs are in use.
    #[error("{MAX_CLIENTS} clients are attached, which is the maximum: detach a client first")]
    Full,
}

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientReport {
    /// True if the client is a subnet manager.
    pub is_sm: bool,
    /// MADs sent.
    pub sent: u64,
    /// MADs received.
    pub received: u64,
    /// MADs of the client that were lost. A request whose response does not arrive counts as lost.
    pub lost: u64,
}

/// All clients and their outstanding requests.
///
/// Invariant: each client's counter of outstanding requests is the number of its requests in
/// [`Requests`].
#[derive(Debug, Default)]
pub(crate) struct Clients {
    clients: Vec<Option<Client>>,
    /// The client ID at which the search for a free ID starts.
    next: u32,
    by_port: BTreeMap<PortId, Vec<ClientId>>,
    requests: Requests,
    /// Clients that have received input since [`Self::next_woken`] last returned them.
    woken: VecDeque<ClientId>,
}

impl Clients {
    /// Adds a client at a port; `None` if all client IDs are in use.
    pub(crate) fn attach(&mut self, port: PortId, options: ClientOptions) -> Option<ClientId> {
        let id = self.free_number()?;
        self.clients[id.0 as usize] = Some(Client {
            port,
            options,
            inbox: VecDeque::new(),
            upper_bits: UpperBits::new(REMEMBERED),
            woken: false,
            waiting: 0,
            sent: 0,
            received: 0,
            lost: 0,
        });
        self.by_port.entry(port).or_default().push(id);
        Some(id)
    }

    /// Returns a free client ID; `None` if all are in use.
    ///
    /// An ID is reused only after all other IDs, so that late responses are not delivered to a new
    /// client.
    fn free_number(&mut self) -> Option<ClientId> {
        let free = (0..MAX_CLIENTS)
            .map(|step| (self.next + step) % MAX_CLIENTS)
            .find(|&id| self.get(ClientId(id)).is_none())?;
        if free as usize >= self.clients.len() {
            self.clients.resize_with(free as usize + 1, || None);
        }
        self.next = (free + 1) % MAX_CLIENTS;
        Some(ClientId(free))
    }

    /// Removes a client. Requests that it has sent are cancelled. Requests that it has received,
    /// but not answered, fail.
    pub(crate) fn detach(&mut self, id: ClientId, ports: &mut OpenPorts) -> Option<Client> {
        let client = self.clients.get_mut(id.0 as usize).and_then(Option::take)?;
        if let Some(others) = self.by_port.get_mut(&client.port) {
            others.retain(|&other| other != id);
        }
        self.requests.cancel_of(id);
        for request in self.requests.assigned_to(id) {
            self.fail(request, ports);
        }
        Some(client)
    }

    pub(crate) fn get(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns true if a client at the port is a subnet manager.
    pub(crate) fn has_sm(&self, port: PortId) -> bool {
        let clients = self.by_port.get(&port).into_iter().flatten();
        clients.filter_map(|&id| self.get(id)).any(|client| client.options.is_sm)
    }

    /// Returns the counters of a client; all zero if it is detached.
    pub(crate) fn report(&self, id: ClientId) -> ClientReport {
        self.get(id).map_or_else(ClientReport::default, |client| ClientReport {
            is_sm: client.options.is_sm,
            sent: client.sent,
            received: client.received,
            lost: client.lost,
        })
    }

    /// Returns true if a client has unread input.
    pub(crate) fn has_incoming(&self, id: ClientId) -> bool {
        self.get(id).is_some_and(|client| !client.inbox.is_empty())
    }

    /// Takes the next received MAD or loss report of a client, if any.
    pub(crate) fn receive(&mut self, id: ClientId) -> Option<Incoming> {
        self.get_mut(id)?.inbox.pop_front()
    }

    /// Takes the next attached client from the queue [`Self::woken`]; `None` if the queue contains no
    /// attached client.
    pub(crate) fn next_woken(&mut self) -> Option<ClientId> {
        loop {
            let id = self.woken.pop_front()?;
            if let Some(client) = self.get_mut(id)
                && std::mem::take(&mut client.woken)
            {
                return Some(id);
            }
        }
    }

    /// Counts a MAD that a client sends. Returns the port of the client; `None` if it is detached.
    pub(crate) fn count_sent(&mut self, id: ClientId) -> Option<PortId> {
        let client = self.get_mut(id)?;
        client.sent += 1;
        Some(client.port)
    }

    /// Returns the transaction ID with the client ID plus one in the upper bits.
    pub(crate) const fn stamped(id: ClientId, transaction: TransactionId) -> TransactionId {
        let stamp = ((id.0 + 1) as u64) << OWN_BITS;
        TransactionId(UpperBits::own(transaction).0 | stamp)
    }

    /// Records an outstanding request. Returns `None` if the client is detached or already has
    /// [`MAX_OUTSTANDING`] outstanding requests.
    pub(crate) fn remember(&mut self, id: ClientId, datagram: &Datagram) -> Option<RequestKey> {
        let client = self.clients.get_mut(id.0 as usize)?.as_mut()?;
        if client.waiting >= MAX_OUTSTANDING {
            return None;
        }
        client.waiting += 1;
        client.upper_bits.strip(datagram.mad.transaction_id());
        Some(self.requests.add(id, datagram))
    }

    pub(crate) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Removes the request with this transaction ID from the assigned requests of a port, because
    /// its response was sent. Returns the key of the request.
    pub(crate) fn take_assigned(&mut self, transaction: u64, port: PortId) -> Option<RequestKey> {
        self.requests.take_assigned(transaction, port)
    }

    /// Removes an outstanding request because it was answered, failed or was cancelled. Packets in
    /// flight with the key of the request then belong to no request.
    pub(crate) fn take_request(&mut self, key: RequestKey) -> Option<Request> {
        let request = self.requests.remove(key)?;
        if let Some(client) = self.get_mut(request.client) {
            client.waiting -= 1;
        }
        Some(request)
    }

    /// Fails a request because it or its response was lost.
    pub(crate) fn fail(&mut self, key: RequestKey, ports: &mut OpenPorts) {
        if let Some(request) = self.take_request(key) {
            self.lose(request.client, request.datagram, ports);
        }
    }

    /// Counts a lost MAD of a client. Reports the loss if the client has requested reports.
    pub(crate) fn lose(&mut self, id: ClientId, datagram: Datagram, ports: &mut OpenPorts) {
        let Some(client) = self.get_mut(id) else { return };
        client.lost += 1;
        if client.options.reports_losses {
            self.give(id, Incoming::Lost(datagram), ports);
        }
    }

    /// Assigns an arrived request to a client of the port, or to an agent of the port's node.
    /// Returns true if a response is expected.
    ///
    /// If the port has an unanswered request with the same transaction ID, the arrived request
    /// replaces this earlier request. If both are MADs of the same message, the earlier request is
    /// cancelled. Otherwise the earlier request fails.
    pub(crate) fn assign(
        &mut self,
        responder: Option<ClientId>,
        port: PortId,
        key: RequestKey,
        transaction: u64,
        ports: &mut OpenPorts,
    ) -> bool {
        let Some(request) = self.requests.get(key) else { return false };
        if !request.answered {
            self.take_request(key);
            return false;
        }
        match self.requests.replaced_by(key, transaction, port) {
            Some((older, true)) => _ = self.take_request(older),
            Some((older, false)) => self.fail(older, ports),
            None => {}
        }
        self.requests.assign(key, transaction, port, responder);
        true
    }

    /// Returns the client that gets a MAD which has arrived at a port.
    pub(crate) fn recipient(&self, port: PortId, payload: &MadPayload) -> Option<ClientId> {
        let transaction = payload.mad.transaction_id().0;
        if !payload.mad.method().is_response() || transaction >> OWN_BITS == 0 {
            return self.responder(port, payload);
        }
        let asker = ClientId(((transaction >> OWN_BITS) as u32).wrapping_sub(1));
        self.get(asker).filter(|client| client.port == port).map(|_| asker)
    }

    /// Returns the client that gets an unsolicited MAD.
    fn responder(&self, port: PortId, payload: &MadPayload) -> Option<ClientId> {
        let (qpn, class) = (payload.destination_qpn, payload.mad.class());
        let clients = self.by_port.get(&port)?;
        let first = |fits: &dyn Fn(&ClientOptions) -> bool| {
            let fits = |&id: &ClientId| self.get(id).is_some_and(|it| fits(&it.options));
            clients.iter().copied().find(fits)
        };
        if qpn.get() > 1 {
            return first(&|options| options.queue_pair == qpn.get());
        }
        let registered = || first(&|options| options.class == Some(class));
        let registered = if qpn == Qpn::GSI { registered() } else { None };
        registered.or_else(|| first(&|options| options.is_sm))
    }

    /// Returns the transaction ID with which a response is delivered to a client: with the upper bits
    /// that the client has sent.
    ///
    /// While the request is outstanding, returns the transaction ID of the request. For further
    /// segments of the response and late responses, returns the client's last transaction ID with the
    /// same lower bits.
    pub(crate) fn own_transaction(
        &self,
        target: ClientId,
        request: Option<RequestKey>,
        transaction: u64,
    ) -> TransactionId {
        let stamped = transaction >> OWN_BITS != 0;
        let request = request.and_then(|key| self.requests.get(key));
        match (request.filter(|request| request.client == target), self.get(target)) {
            (Some(request), _) => request.datagram.mad.transaction_id(),
            (None, Some(client)) if stamped => {
                client.upper_bits.restore(TransactionId(transaction))
            }
            _ => UpperBits::own(TransactionId(transaction)),
        }
    }

    /// Queues an arrived MAD for a client.
    #[inline]
    pub(crate) fn deliver(&mut self, id: ClientId, datagram: Datagram, ports: &mut OpenPorts) {
        if let Some(client) = self.get_mut(id) {
            client.received += 1;
            self.give(id, Incoming::Received(datagram), ports);
        }
    }

    /// Queues input for a client, if it is still attached.
    #[inline]
    fn give(&mut self, id: ClientId, incoming: Incoming, ports: &mut OpenPorts) {
        let Some(client) = self.clients.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        client.inbox.push_back(incoming);
        if !client.woken {
            client.woken = true;
            self.woken.push_back(id);
        }
        ports.wake(client.port);
    }
}

#[cfg(test)]
impl Clients {
    /// Returns the IDs of the clients of a port.
    pub(crate) fn at(&self, port: PortId) -> &[ClientId] {
        &self.by_port[&port]
    }

    /// Sets the client ID at which the search for a free ID starts.
    pub(crate) const fn set_next(&mut self, number: u32) {
        self.next = number;
    }

    /// Checks the invariants of [`Clients`] and [`Requests`].
    pub(crate) fn check(&self) {
        let mut waiting = BTreeMap::<ClientId, u32>::new();
        for request in self.requests.iter() {
            *waiting.entry(request.client).or_default() += 1;
        }
        for (index, client) in self.clients.iter().enumerate() {
            let counted = client.as_ref().map_or(0, |client| client.waiting);
            let id = ClientId(index as u32);
            assert_eq!(
                waiting.remove(&id).unwrap_or(0),
                counted,
                "number of outstanding requests of client {id}"
            );
        }
        assert!(waiting.is_empty(), "detached clients have no outstanding requests");
        self.requests.check();
    }
}

#[cfg(test)]
mod tests;
