//! Clients: programs that send and receive management datagrams at an end port.
//!
//! Several clients may share a port. What tells them apart is the upper 16 bits of a request's
//! transaction, where the fabric writes the client's number plus one and from where it takes it off
//! again before the client sees the response. What nobody asked for goes to the client that has
//! registered for its class, or has the duty of a subnet manager, or has the queue pair.

use std::collections::VecDeque;

use ib_link::upper_bits::OWN_BITS;
use ib_link::{Datagram, Incoming, LinkPort, Remote, UpperBits};
use ib_topology::PortId;
use ib_types::{NodeKind, QKey, Qpn, ServiceLevel};
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{MgmtClass, TransactionId};

use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::{MadPayload, Payload};
use crate::sim::{ClientId, Sim};

mod request;

pub(crate) use request::{Request, RequestKey, is_rmpp_control};

/// For how many transactions of a client is remembered what stood in the upper bits. A request that
/// waits for its answer knows its own; these are for all that comes after the first datagram of it:
/// further segments, acknowledgements, copies, answers that are late.
const REMEMBERED: usize = 4096;

/// How many clients can be attached: the fabric stamps transactions with their numbers plus one, and
/// neither 0 nor 0xffff stands for a client.
pub const MOST_CLIENTS: u32 = 65_534;

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
    pub(crate) inbox: VecDeque<Incoming>,
    upper_bits: UpperBits,
    /// Whether it is among the clients for which something has come.
    woken: bool,
    /// How many requests it waits for.
    waiting: u32,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
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

impl Sim {
    /// Attaches a client to an end port.
    ///
    /// # Errors
    /// Fails when there is no such port, and when [`MOST_CLIENTS`] are attached.
    pub fn attach(
        &mut self,
        port: PortId,
        options: ClientOptions,
    ) -> Result<ClientId, AttachError> {
        if !self.has_port(port) {
            return Err(AttachError::NoSuchPort(port));
        }
        let id = self.free_client().ok_or(AttachError::Full)?;
        let client = Client {
            port,
            options,
            inbox: VecDeque::new(),
            upper_bits: UpperBits::new(REMEMBERED),
            woken: false,
            waiting: 0,
            sent: 0,
            received: 0,
            lost: 0,
        };
        self.clients[id.0 as usize] = Some(client);
        self.clients_of.entry(port).or_default().push(id);
        self.log(Entry::Attached { client: id, port });
        if options.is_sm {
            self.update_is_sm(port);
        }
        Ok(id)
    }

    /// Returns the number of a new client: that of one that has left only when all others were given
    /// since, so that nobody takes the late answers to somebody else. `None` when all are in use.
    fn free_client(&mut self) -> Option<ClientId> {
        let free = (0..MOST_CLIENTS)
            .map(|step| (self.next_client + step) % MOST_CLIENTS)
            .find(|&id| self.client(ClientId(id)).is_none())?;
        if free as usize >= self.clients.len() {
            self.clients.resize_with(free as usize + 1, || None);
        }
        self.next_client = (free + 1) % MOST_CLIENTS;
        Some(ClientId(free))
    }

    /// Detaches a client: what it still waits for is forgotten, and what it was to answer fails.
    /// A client that has gone already is no error.
    pub fn detach(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id.0 as usize).and_then(Option::take) else {
            return;
        };
        let port = client.port;
        if let Some(others) = self.clients_of.get_mut(&port) {
            others.retain(|&other| other != id);
        }
        self.log(Entry::Detached { client: id, port });
        for request in self.requests_of(id) {
            self.take_request(request);
        }
        self.fail_handed_to(id);
        if client.options.is_sm {
            self.update_is_sm(port);
        }
    }

    /// Gives a client the duty of a subnet manager, or takes it away.
    pub fn set_is_sm(&mut self, id: ClientId, is_sm: bool) {
        if let Some(client) = self.client_mut(id) {
            client.options.is_sm = is_sm;
            let port = client.port;
            self.update_is_sm(port);
        }
    }

    /// Sets the capability of a port by what its clients are, and tells the manager of a change.
    fn update_is_sm(&mut self, port: PortId) {
        let clients = self.clients_of.get(&port).into_iter().flatten();
        let is_sm = clients.filter_map(|&id| self.client(id)).any(|client| client.options.is_sm);
        if self.set_capability(port, CapabilityMask::SM, is_sm) {
            self.trap_capabilities(port);
        }
    }

    /// Sets or clears a capability of a port; returns whether that is a change.
    pub(crate) fn set_capability(
        &mut self,
        port: PortId,
        capability: CapabilityMask,
        set: bool,
    ) -> bool {
        let mask = &mut self.port_mut(port).info.capability_mask;
        let changed = mask.with(capability, set);
        std::mem::replace(mask, changed) != changed
    }

    pub(crate) fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns what a client did so far; all zero for one that has gone.
    #[must_use]
    pub fn client_report(&self, id: ClientId) -> ClientReport {
        self.client(id).map_or_else(ClientReport::default, |client| ClientReport {
            is_sm: client.options.is_sm,
            sent: client.sent,
            received: client.received,
            lost: client.lost,
        })
    }

    /// Returns the port that a client is attached to.
    #[must_use]
    pub fn client_port(&self, id: ClientId) -> Option<PortId> {
        self.client(id).map(|client| client.port)
    }

    /// Returns what a client can know of its port.
    #[must_use]
    pub fn link_port(&self, port: PortId) -> LinkPort {
        let state = self.port(port);
        let node = self.node(state.node);
        LinkPort {
            node_guid: node.guid,
            port_guid: state.guid,
            gid_prefix: state.info.gid_prefix,
            number: if node.kind == NodeKind::Switch { 0 } else { state.number },
            lid: state.info.lid,
            lmc: state.info.lmc,
            sm_lid: state.info.master_sm_lid,
            sm_sl: ServiceLevel::new(state.info.master_sm_sl).unwrap_or_default(),
        }
    }

    /// Sends a client's datagram on its way. One of a client that has gone is dropped.
    pub fn submit(&mut self, id: ClientId, datagram: &Datagram) {
        let Some(client) = self.client_mut(id) else { return };
        client.sent += 1;
        let port = client.port;
        let mut packet = self.datagram_packet(port, datagram);
        let Payload::Mad(MadPayload { mad, .. }) = &mut packet.payload else {
            unreachable!("a datagram was sent")
        };
        let transaction = mad.transaction_id().0;
        let directed = mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE;
        let request = if mad.method().is_response() {
            // The answer to what the client was handed belongs to the request of whoever asked; what
            // only acknowledges a part of the request is no answer yet.
            let answers = !is_rmpp_control(mad);
            answers.then(|| self.take_handed(transaction, port)).flatten()
        } else {
            let stamp = u64::from(id.0 + 1) << OWN_BITS;
            let own = UpperBits::own(TransactionId(transaction));
            mad.set_transaction_id(TransactionId(own.0 | stamp));
            let Some(request) = self.remember(id, datagram) else {
                self.stats.lose(Loss::TooManyRequests);
                return self.tell_of_loss(id, *datagram);
            };
            if let Some(client) = self.client_mut(id) {
                client.upper_bits.strip(TransactionId(transaction));
            }
            Some(request)
        };
        if directed && datagram.remote.qpn.get() == 0 {
            self.send_directed(port, packet, request);
        } else {
            self.send_by_lid(port, packet, request);
        }
    }

    /// Hands a datagram that has arrived at an end port to the client that it is for.
    pub(crate) fn hand_over(&mut self, port: PortId, key: u32) {
        let packet = &self.flight(key).packet;
        let Payload::Mad(payload) = &packet.payload else { unreachable!("clients take datagrams") };
        let (transaction, response) =
            (payload.mad.transaction_id().0, payload.mad.method().is_response());
        let target = if response {
            let asker = ClientId(((transaction >> OWN_BITS) as u32).wrapping_sub(1));
            if transaction >> OWN_BITS == 0 {
                self.taker(port, payload)
            } else {
                self.client(asker).filter(|client| client.port == port).map(|_| asker)
            }
        } else {
            self.taker(port, payload)
        };
        let Some(target) = target else {
            let why = if response { Loss::ClientLeft } else { Loss::NoReceiver };
            if self.flight(key).packet.is_smp() {
                return self.lose(port, key, why);
            }
            self.port_mut(port).counters.qp1_dropped += 1;
            return self.lose(port, key, why);
        };
        self.note_delivery(port, key);
        let flight = self.land(key);
        let Payload::Mad(mut payload) = flight.packet.payload else {
            unreachable!("clients take datagrams")
        };
        let request = flight.request.filter(|&key| self.request(key).is_some());
        if response {
            let own = self.own_transaction(target, request, transaction);
            payload.mad.set_transaction_id(own);
            if let Some(key) = request {
                self.take_request(key);
            }
        } else if let Some(key) = request {
            self.await_answer(Some(target), port, key, transaction);
        }
        let lid = self.port(port).info.lid;
        let path_bits = if flight.packet.dlid == PERMISSIVE_LID {
            0
        } else {
            (flight.packet.dlid.wrapping_sub(lid) & 0x7f) as u8
        };
        let datagram = Datagram {
            remote: Remote {
                lid: flight.packet.slid,
                qpn: payload.source_qpn,
                q_key: if payload.source_qpn.get() == 0 { QKey(0) } else { payload.q_key },
                sl: flight.packet.sl,
                p_key: match payload.destination_qpn.get() {
                    0 => payload.p_key,
                    _ => self.port(port).own_key(payload.p_key),
                },
                path_bits,
                grh: flight.packet.grh,
            },
            local_qpn: payload.destination_qpn,
            length: payload.length,
            mad: payload.mad,
        };
        let client = self.client_mut(target).expect("the client was found");
        client.received += 1;
        self.give(target, Incoming::Received(datagram));
    }

    /// Returns the transaction of a response as the client that it is for knows it: that of its
    /// request, which ends with the first response, or the one that it used last under this number.
    fn own_transaction(
        &self,
        target: ClientId,
        request: Option<RequestKey>,
        transaction: u64,
    ) -> TransactionId {
        let stamped = transaction >> OWN_BITS != 0;
        let request =
            request.and_then(|key| self.request(key)).filter(|request| request.client == target);
        match (request, self.client(target)) {
            (Some(request), _) => request.datagram.mad.transaction_id(),
            (None, Some(client)) if stamped => {
                client.upper_bits.restore(TransactionId(transaction))
            }
            _ => UpperBits::own(TransactionId(transaction)),
        }
    }

    /// Puts something into a client's inbox, if it is still there.
    pub(crate) fn give(&mut self, id: ClientId, incoming: Incoming) {
        let Some(client) = self.clients.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        client.inbox.push_back(incoming);
        let port = client.port;
        if !client.woken {
            client.woken = true;
            self.woken.push_back(id);
        }
        self.wake_port(port);
    }

    /// Returns the client that takes what nobody asked for.
    fn taker(&self, port: PortId, payload: &MadPayload) -> Option<ClientId> {
        let (qpn, class) = (payload.destination_qpn, payload.mad.class());
        let clients = self.clients_of.get(&port)?;
        let first = |fits: &dyn Fn(&ClientOptions) -> bool| {
            let fits = |&id: &ClientId| self.client(id).is_some_and(|it| fits(&it.options));
            clients.iter().copied().find(fits)
        };
        if qpn.get() > 1 {
            return first(&|options| options.queue_pair == qpn.get());
        }
        let registered = || first(&|options| options.class == Some(class));
        let registered = if qpn == Qpn::GSI { registered() } else { None };
        registered.or_else(|| first(&|options| options.is_sm))
    }

    /// Returns a client for which something has come since it was last returned; `None` when there is
    /// no other.
    pub fn next_woken(&mut self) -> Option<ClientId> {
        loop {
            let id = self.woken.pop_front()?;
            if let Some(client) = self.client_mut(id)
                && std::mem::take(&mut client.woken)
            {
                return Some(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
