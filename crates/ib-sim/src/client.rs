//! Clients: programs that send and receive management datagrams at an end port.
//!
//! Several clients may share a port. What tells them apart is the upper 16 bits of a request's
//! transaction, where the fabric writes the client's number plus one and from where it takes it off
//! again before the client sees the response. What nobody asked for goes to the client that has the
//! duty of a subnet manager, or has the queue pair.

use std::collections::VecDeque;

use ib_link::{Datagram, Incoming, LinkPort, Remote};
use ib_topology::PortId;
use ib_types::{NodeKind, QKey, Qpn, ServiceLevel};
use ib_wire::mad::rmpp::RmppType;
use ib_wire::mad::sm::CapabilityMask;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::loss::Loss;
use crate::packet::Payload;
use crate::sim::{ClientId, Sim};

/// The bits of a transaction that are the client's own.
const OWN_BITS: u32 = 48;

/// What a client wants to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Whether it has the duty of a subnet manager: it is handed what nobody asked for.
    pub is_sm: bool,
    /// A queue pair above 1 whose datagrams it is handed; zero for none.
    pub queue_pair: u32,
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
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
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

/// What a client has asked and still waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    client: ClientId,
    /// What it sent, as it sent it.
    datagram: Datagram,
    /// Whether an answer is due; what has none is done when it arrives.
    answered: bool,
    /// Tells requests apart that had the same place.
    number: u32,
}

impl Sim {
    /// Attaches a client to an end port.
    ///
    /// # Panics
    /// Panics when there is no such port, or 65,534 clients are attached.
    pub fn attach(&mut self, port: PortId, options: ClientOptions) -> ClientId {
        assert!(port.index() < self.ports.len(), "the port exists");
        let client = Client {
            port,
            options,
            inbox: VecDeque::new(),
            sent: 0,
            received: 0,
            lost: 0,
        };
        let free = self.clients.iter().position(Option::is_none);
        let index = free.unwrap_or(self.clients.len());
        assert!(index < 65_534, "a number has 16 bits");
        if index == self.clients.len() {
            self.clients.push(Some(client));
        } else {
            self.clients[index] = Some(client);
        }
        let id = ClientId(index as u32);
        self.clients_of.entry(port).or_default().push(id);
        self.log(Entry::Attached { client: id, port });
        if options.is_sm {
            self.update_is_sm(port);
        }
        id
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
        let waited_for: Vec<u32> = self
            .requests
            .iter()
            .filter(|(_, request)| request.client == id)
            .map(|(key, _)| key as u32)
            .collect();
        for request in waited_for {
            self.forget(request);
        }
        // Nobody may be left to answer what was handed to the clients of this port.
        if self.clients_of.get(&port).is_none_or(Vec::is_empty) {
            let unanswered: Vec<u64> = self
                .handed
                .iter()
                .filter(|(_, (_, at))| *at == port)
                .map(|(&transaction, _)| transaction)
                .collect();
            for transaction in unanswered {
                if let Some((request, _)) = self.handed.remove(&transaction) {
                    self.fail(request);
                }
            }
        }
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
        let is_sm = clients
            .filter_map(|&id| self.client(id))
            .any(|client| client.options.is_sm);
        let mask = self.port(port).info.capability_mask;
        let bits = if is_sm {
            mask.0 | CapabilityMask::SM.0
        } else {
            mask.0 & !CapabilityMask::SM.0
        };
        if bits != mask.0 {
            self.port_mut(port).info.capability_mask = CapabilityMask(bits);
            self.trap_capabilities(port);
        }
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
        let mut mad = datagram.mad;
        let transaction = mad.transaction_id().0;
        let request = if mad.method().is_response() {
            // The answer to what the client was handed belongs to the request of whoever asked.
            self.handed.remove(&transaction).map(|(request, _)| request)
        } else {
            let stamp = u64::from(id.0 + 1) << OWN_BITS;
            let own = transaction & ((1 << OWN_BITS) - 1);
            mad.set_transaction_id(TransactionId(own | stamp));
            Some(self.remember(id, datagram))
        };
        let packet = self.datagram_packet(port, &Datagram { mad, ..*datagram });
        if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE && datagram.remote.qpn.get() == 0 {
            self.send_directed(port, packet, request);
        } else {
            self.send_by_lid(port, packet, request);
        }
    }

    fn remember(&mut self, client: ClientId, datagram: &Datagram) -> u32 {
        self.request_number = self.request_number.wrapping_add(1);
        let answered = expects_answer(&datagram.mad);
        let number = self.request_number;
        let request = Request { client, datagram: *datagram, answered, number };
        self.requests.insert(request) as u32
    }

    /// Forgets a request: it was answered, or nobody waits for it any more. Packets that still
    /// carry it belong to nobody then.
    fn forget(&mut self, request: u32) {
        self.requests.remove(request as usize);
        for (_, flight) in &mut self.flights {
            if flight.request == Some(request) {
                flight.request = None;
            }
        }
        self.handed.retain(|_, &mut (other, _)| other != request);
    }

    /// A client's datagram is lost, or the answer to it.
    pub(crate) fn fail(&mut self, request: u32) {
        let Some(request) = self.requests.try_remove(request as usize) else { return };
        let Some(client) = self.client_mut(request.client) else { return };
        client.lost += 1;
        if client.options.told_of_losses {
            client.inbox.push_back(Incoming::Lost(request.datagram));
            self.woken.insert(request.client);
        }
    }

    /// A client did not answer in time.
    pub(crate) fn no_answer(&mut self, request: u32, number: u32) {
        let Some(waiting) = self.requests.get(request as usize) else { return };
        if waiting.number != number {
            return;
        }
        let client = waiting.client;
        self.handed.retain(|_, &mut (other, _)| other != request);
        self.stats.lose(Loss::NoAnswer);
        self.log(Entry::Unanswered { client });
        self.fail(request);
    }

    /// Hands a datagram that has arrived at an end port to the client that it is for.
    pub(crate) fn hand_over(&mut self, port: PortId, key: u32) {
        let packet = &self.flight(key).packet;
        let Payload::Mad(payload) = &packet.payload else {
            unreachable!("clients take datagrams")
        };
        let (transaction, response) =
            (payload.mad.transaction_id().0, payload.mad.method().is_response());
        let target = if response {
            let asker = ClientId(((transaction >> OWN_BITS) as u32).wrapping_sub(1));
            let asked_here = self.client(asker).is_some_and(|client| client.port == port);
            if asked_here { Some(asker) } else { self.taker(port, payload.destination_qpn) }
        } else {
            self.taker(port, payload.destination_qpn)
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
        let request = flight.request.filter(|&key| self.requests.contains(key as usize));
        if response {
            let own = transaction & ((1 << OWN_BITS) - 1);
            let upper = request
                .map(|key| &self.requests[key as usize])
                .filter(|request| request.client == target)
                .map_or(0, |request| {
                    request.datagram.mad.transaction_id().0 & !((1 << OWN_BITS) - 1)
                });
            payload.mad.set_transaction_id(TransactionId(own | upper));
            if let Some(key) = request {
                self.requests.remove(key as usize);
            }
        } else if let Some(key) = request {
            self.await_answer(port, key, transaction);
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
                p_key: payload.p_key,
                path_bits,
                grh: flight.packet.grh,
            },
            local_qpn: payload.destination_qpn,
            length: payload.length,
            mad: payload.mad,
        };
        let client = self.client_mut(target).expect("the client was found");
        client.received += 1;
        client.inbox.push_back(Incoming::Received(datagram));
        self.woken.insert(target);
    }

    /// Waits for the answer of the client or agent that a request was handed to.
    pub(crate) fn await_answer(&mut self, port: PortId, key: u32, transaction: u64) {
        let request = &self.requests[key as usize];
        if !request.answered {
            self.requests.remove(key as usize);
            return;
        }
        let number = request.number;
        if let Some((older, _)) = self.handed.insert(transaction, (key, port))
            && older != key
        {
            // The same transaction anew: whoever repeats it waits for one answer.
            self.requests.try_remove(older as usize);
        }
        let at = self.now() + self.options.answer_within;
        self.schedule(at, Event::Timer(Timer::Answer { request: key, number }));
    }

    /// Returns the client that takes what nobody asked for.
    fn taker(&self, port: PortId, qpn: Qpn) -> Option<ClientId> {
        let clients = self.clients_of.get(&port)?;
        clients.iter().copied().find(|&id| {
            self.client(id).is_some_and(|client| {
                let options = &client.options;
                if qpn.get() > 1 { options.queue_pair == qpn.get() } else { options.is_sm }
            })
        })
    }

    /// Returns the clients for which something has come since this was last asked.
    pub fn take_woken(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.woken).into_iter().collect()
    }
}

/// Returns true when a datagram has an answer that its sender waits for.
fn expects_answer(mad: &Mad) -> bool {
    let method = mad.method();
    if matches!(method, Method::SEND | Method::TRAP | Method::TRAP_REPRESS) || method.is_response()
    {
        return false;
    }
    // ACK, STOP and ABORT of a message of several segments.
    !mad.is_rmpp() || mad.rmpp().rmpp_type == RmppType::DATA
}
