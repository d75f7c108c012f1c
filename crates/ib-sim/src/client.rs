//! Clients: programs that send and receive management datagrams at an end port.
//!
//! Several clients may share a port. What tells them apart is the upper 16 bits of a request's
//! transaction, where the fabric writes the client's number plus one and from where it takes it off
//! again before the client sees the response. What nobody asked for goes to the client that has
//! registered for its class, or has the duty of a subnet manager, or has the queue pair.

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

/// For how many transactions of a client is remembered what stood in the upper bits. A request that
/// waits for its answer knows its own; these are for all that comes after the first datagram of it:
/// further segments, acknowledgements, copies, answers that are late.
const REMEMBERED: usize = 4096;

/// How many clients can be attached: the fabric stamps transactions with their numbers plus one, and
/// neither 0 nor 0xffff stands for a client.
pub const MOST_CLIENTS: u32 = 65_534;

/// How many datagrams a client may wait for at once.
const MOST_WAITING: u32 = 65_536;

/// What a client wants to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Whether it has the duty of a subnet manager: it is handed what nobody asked for.
    pub is_sm: bool,
    /// A queue pair above 1 whose datagrams it is handed; zero for none.
    pub queue_pair: u32,
    /// A class whose datagrams to queue pair 1 it is handed that nobody asked for, before a client
    /// with the duty of a subnet manager is. Of several clients of a port, it is the first.
    pub class: Option<MgmtClass>,
    /// Whether it is told of lost datagrams, as ibsim's clients have to be. Otherwise it waits, as
    /// on a real fabric.
    pub told_of_losses: bool,
}

/// A client of the fabric.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) port: PortId,
    pub(crate) options: ClientOptions,
    inbox: VecDeque<Incoming>,
    upper_bits: UpperBits,
    /// Whether it is among the clients for which something has come.
    woken: bool,
    /// How many requests it waits for.
    waiting: u32,
    sent: u64,
    received: u64,
    lost: u64,
}

/// Why a client cannot be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The fabric has no such port.
    #[error("the fabric has no port number {}", .0.0)]
    NoSuchPort(PortId),
    /// Every number that tells clients apart is in use.
    #[error("{MOST_CLIENTS} clients are attached, expected fewer")]
    Full,
}

/// What a client did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientReport {
    /// Whether it has the duty of a subnet manager.
    pub is_sm: bool,
    /// Datagrams that it sent.
    pub sent: u64,
    /// Datagrams that were handed to it.
    pub received: u64,
    /// Datagrams of its own that were lost, or whose answers were.
    pub lost: u64,
}

/// All clients, and their requests that wait for an answer.
///
/// Each client waits for as many requests as [`Requests`] has of it.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    clients: Vec<Option<Client>>,
    /// Where the search for a client's number starts.
    next: u32,
    by_port: BTreeMap<PortId, Vec<ClientId>>,
    requests: Requests,
    /// The clients for which something has come.
    woken: VecDeque<ClientId>,
}

impl Clients {
    /// Adds a client at a port; `None` when all numbers are in use.
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

    /// Returns the number of a new client: that of one that has left only when all others were given
    /// since, so that nobody takes the late answers to somebody else. `None` when all are in use.
    fn free_number(&mut self) -> Option<ClientId> {
        let free = (0..MOST_CLIENTS)
            .map(|step| (self.next + step) % MOST_CLIENTS)
            .find(|&id| self.get(ClientId(id)).is_none())?;
        if free as usize >= self.clients.len() {
            self.clients.resize_with(free as usize + 1, || None);
        }
        self.next = (free + 1) % MOST_CLIENTS;
        Some(ClientId(free))
    }

    /// Removes a client: its requests are cancelled, and those that it was to answer fail.
    pub(crate) fn detach(&mut self, id: ClientId, ports: &mut OpenPorts) -> Option<Client> {
        let client = self.clients.get_mut(id.0 as usize).and_then(Option::take)?;
        if let Some(others) = self.by_port.get_mut(&client.port) {
            others.retain(|&other| other != id);
        }
        self.requests.cancel_of(id);
        for request in self.requests.handed_to(id) {
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

    /// Returns true if a client at a port has the duty of a subnet manager.
    pub(crate) fn has_sm(&self, port: PortId) -> bool {
        let clients = self.by_port.get(&port).into_iter().flatten();
        clients.filter_map(|&id| self.get(id)).any(|client| client.options.is_sm)
    }

    /// Returns what a client did so far; all zero for one that has gone.
    pub(crate) fn report(&self, id: ClientId) -> ClientReport {
        self.get(id).map_or_else(ClientReport::default, |client| ClientReport {
            is_sm: client.options.is_sm,
            sent: client.sent,
            received: client.received,
            lost: client.lost,
        })
    }

    /// Returns true when something has come for a client.
    pub(crate) fn has_incoming(&self, id: ClientId) -> bool {
        self.get(id).is_some_and(|client| !client.inbox.is_empty())
    }

    /// Returns the next thing that came for a client.
    pub(crate) fn receive(&mut self, id: ClientId) -> Option<Incoming> {
        self.get_mut(id)?.inbox.pop_front()
    }

    /// Returns a client for which something has come since it was last returned; `None` when there is
    /// no other.
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

    /// Counts a datagram that a client sends; returns the client's port.
    pub(crate) fn count_sent(&mut self, id: ClientId) -> Option<PortId> {
        let client = self.get_mut(id)?;
        client.sent += 1;
        Some(client.port)
    }

    /// Returns a transaction with a client's number in its upper bits.
    pub(crate) const fn stamped(id: ClientId, transaction: TransactionId) -> TransactionId {
        let stamp = ((id.0 + 1) as u64) << OWN_BITS;
        TransactionId(UpperBits::own(transaction).0 | stamp)
    }

    /// Remembers what a client asks; `None` when it waits for too much already.
    pub(crate) fn remember(&mut self, id: ClientId, datagram: &Datagram) -> Option<RequestKey> {
        let client = self.clients.get_mut(id.0 as usize)?.as_mut()?;
        if client.waiting >= MOST_WAITING {
            return None;
        }
        client.waiting += 1;
        client.upper_bits.strip(datagram.mad.transaction_id());
        Some(self.requests.add(id, datagram))
    }

    pub(crate) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the request that was handed out as a transaction at a port, which its answer belongs to.
    pub(crate) fn take_handed(&mut self, transaction: u64, port: PortId) -> Option<RequestKey> {
        self.requests.take_handed(transaction, port)
    }

    /// Removes a request that is waited for: it was answered, has failed, or nobody waits for it any
    /// more. Packets that still carry its key belong to nobody then.
    pub(crate) fn take_request(&mut self, key: RequestKey) -> Option<Request> {
        let request = self.requests.remove(key)?;
        if let Some(client) = self.get_mut(request.client) {
            client.waiting -= 1;
        }
        Some(request)
    }

    /// Fails a request: a client's datagram is lost, or the answer to it.
    pub(crate) fn fail(&mut self, key: RequestKey, ports: &mut OpenPorts) {
        if let Some(request) = self.take_request(key) {
            self.lose(request.client, request.datagram, ports);
        }
    }

    /// Counts a client's datagram as lost, and tells the client if it wants to be told.
    pub(crate) fn lose(&mut self, id: ClientId, datagram: Datagram, ports: &mut OpenPorts) {
        let Some(client) = self.get_mut(id) else { return };
        client.lost += 1;
        if client.options.told_of_losses {
            self.give(id, Incoming::Lost(datagram), ports);
        }
    }

    /// Hands a request to a client of a port, or to an agent of its node, to be answered. Returns true if
    /// an answer is due.
    ///
    /// A request that was handed out before as the same transaction is replaced: it is cancelled if it is
    /// an earlier copy or segment of the same message, and fails otherwise.
    pub(crate) fn hand_out(
        &mut self,
        taker: Option<ClientId>,
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
        self.requests.hand_out(key, transaction, port, taker);
        true
    }

    /// Returns the client that a datagram is for which has arrived at a port.
    pub(crate) fn recipient(&self, port: PortId, payload: &MadPayload) -> Option<ClientId> {
        let transaction = payload.mad.transaction_id().0;
        if !payload.mad.method().is_response() || transaction >> OWN_BITS == 0 {
            return self.taker(port, payload);
        }
        let asker = ClientId(((transaction >> OWN_BITS) as u32).wrapping_sub(1));
        self.get(asker).filter(|client| client.port == port).map(|_| asker)
    }

    /// Returns the client that takes what nobody asked for.
    fn taker(&self, port: PortId, payload: &MadPayload) -> Option<ClientId> {
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

    /// Returns the transaction of a response as the client that it is for knows it: that of its
    /// request, which ends with the first response, or the one that it used last under this number.
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

    /// Puts a datagram that has arrived into a client's inbox.
    #[inline]
    pub(crate) fn deliver(&mut self, id: ClientId, datagram: Datagram, ports: &mut OpenPorts) {
        if let Some(client) = self.get_mut(id) {
            client.received += 1;
            self.give(id, Incoming::Received(datagram), ports);
        }
    }

    /// Puts something into a client's inbox, if it is still there.
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
    /// Returns the numbers of the clients of a port.
    pub(crate) fn at(&self, port: PortId) -> &[ClientId] {
        &self.by_port[&port]
    }

    /// Sets where the search for a client's number starts.
    pub(crate) const fn set_next(&mut self, number: u32) {
        self.next = number;
    }

    /// Checks that each client waits for as many requests as there are of it.
    pub(crate) fn check(&self) {
        let mut waiting = BTreeMap::<ClientId, u32>::new();
        for request in self.requests.iter() {
            *waiting.entry(request.client).or_default() += 1;
        }
        for (index, client) in self.clients.iter().enumerate() {
            let counted = client.as_ref().map_or(0, |client| client.waiting);
            let id = ClientId(index as u32);
            assert_eq!(waiting.remove(&id).unwrap_or(0), counted, "requests of client {id}");
        }
        assert!(waiting.is_empty(), "requests of clients that have gone");
        self.requests.check();
    }
}

#[cfg(test)]
mod tests;
