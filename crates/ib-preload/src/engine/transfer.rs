//! Messages of several segments that come in, and acknowledgements of those that go out.

use std::time::Duration;

use ib_ibsim::message::Request;
use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppStatus, RmppType};
use ib_wire::mad::{Mad, Method};

use super::transaction::TransactionKey;
use super::{Engine, Timer, is_response, reply};
use crate::rmpp::{self, Acknowledged, Receiver, Step};

/// How long a whole message may take.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(40);

/// For how long segments of a message that is over are acknowledged again.
const LINGER: Duration = Duration::from_secs(10);

/// What tells messages that come in apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransferKey {
    id: u64,
    queue_pair: u32,
    lid: u16,
    class: u8,
    version: u8,
    method: u8,
}

impl TransferKey {
    fn new(request: &Request, mad: &Mad) -> Self {
        Self {
            id: mad.transaction_id().0,
            queue_pair: request.source_queue_pair,
            lid: request.slid,
            class: mad.class().0,
            version: mad.class_version(),
            method: mad.method().0,
        }
    }
}

/// A message on its way in.
pub(super) struct Transfer {
    pub(super) agent: u16,
    pub(super) deadline: Instant,
    receiver: Receiver,
    /// Where it comes from, to abort it.
    from: Request,
}

impl Engine {
    /// Takes a datagram of a transfer.
    pub(super) fn handle_rmpp(&mut self, now: Instant, request: &Request, mad: &Mad) {
        match mad.rmpp().rmpp_type {
            RmppType::ACK | RmppType::STOP | RmppType::ABORT => {
                self.handle_verdict(now, request, mad);
            }
            _ => self.handle_segment(now, request, mad),
        }
    }

    fn handle_segment(&mut self, now: Instant, request: &Request, mad: &Mad) {
        let Some(agent) = self.agents.for_datagram(mad) else { return };
        let does_rmpp = self.agents.get(agent).is_some_and(super::Agent::does_rmpp);
        let transaction = is_response(mad).then(|| TransactionKey::request(mad));
        let header = mad.rmpp();
        if !does_rmpp {
            // The program does RMPP itself: the first segment answers its request.
            transaction.and_then(|key| self.forget_transaction(key));
            return self.deliver(agent, request, mad.0.to_vec());
        }
        if header.segment == 0 {
            // Programs under libumad2sim send what was meant to be cut, as one datagram.
            let length = usize::from(request.length).clamp(mad.class().data_offset(), mad.0.len());
            if transaction.is_none_or(|key| self.forget_transaction(key).is_some()) {
                self.deliver(agent, request, mad.0[..length].to_vec());
            }
            return;
        }
        let key = TransferKey::new(request, mad);
        if !self.transfers.contains_key(&key) {
            let waits = transaction.is_none_or(|key| self.transactions.contains_key(&key));
            if !waits {
                return;
            }
            let deadline = now + MESSAGE_TIMEOUT;
            let transfer = Transfer { agent, deadline, receiver: Receiver::new(), from: *request };
            self.transfers.insert(key, transfer);
            self.timers.insert((deadline, Timer::Transfer(key)));
        }
        let transfer = self.transfers.get_mut(&key).expect("it is there or was just added");
        let step = transfer.receiver.handle(mad);
        if let Some(transaction) = transaction {
            self.restart_time(now, transaction);
        }
        match step {
            Step::Nothing => {}
            Step::Send(ack) => self.outgoing.push_back(reply(request, &ack)),
            Step::Abort(abort) => {
                self.outgoing.push_back(reply(request, &abort));
                self.forget_transfer(key);
            }
            Step::Whole(ack, message) => {
                self.outgoing.push_back(reply(request, &ack));
                self.linger(now, key);
                if transaction.is_none_or(|key| self.forget_transaction(key).is_some()) {
                    self.deliver(agent, request, message);
                }
            }
        }
    }

    /// Takes an acknowledgement, stop or abort.
    fn handle_verdict(&mut self, now: Instant, request: &Request, mad: &Mad) {
        let header = mad.rmpp();
        let Some(key) = self.acknowledged(mad, request.slid) else {
            return self.handle_stray_verdict(request, mad);
        };
        if header.rmpp_type != RmppType::ACK {
            return self.give_up(key);
        }
        let held = self.transactions.get_mut(&key).expect("it was just found");
        let sender = held.sender.as_mut().expect("only messages with segments are found");
        match sender.handle(&header) {
            Acknowledged::Old => {}
            Acknowledged::Progress => {
                self.restart_retries(key);
                self.transmit(now, key);
            }
            Acknowledged::Wrong(status) => {
                self.outgoing.push_back(reply(request, &rmpp::abort(mad, status)));
                self.give_up(key);
            }
            Acknowledged::Whole if held.wants_answer() && !is_response_to(mad) => {
                held.sender = None;
                if mad.method() == Method::GET_MULTI_RESP {
                    self.outgoing.push_back(reply(request, &rmpp::turn(mad)));
                }
                self.restart_retries(key);
                self.restart_time(now, key);
            }
            Acknowledged::Whole => drop(self.forget_transaction(key)),
        }
    }

    /// A verdict on nothing that was sent: on what comes in, or for a program that does RMPP itself.
    fn handle_stray_verdict(&mut self, request: &Request, mad: &Mad) {
        let agent = self.agents.for_datagram(mad);
        let agent = agent.filter(|&agent| self.agents.get(agent).is_some_and(|a| !a.does_rmpp()));
        if let Some(agent) = agent {
            self.deliver(agent, request, mad.0.to_vec());
        } else if mad.rmpp().rmpp_type != RmppType::ACK {
            self.forget_transfer(TransferKey::new(request, mad));
        }
    }

    /// The time of a message is over, or that of remembering it.
    pub(super) fn transfer_is_due(&mut self, _now: Instant, key: TransferKey) {
        let Some(transfer) = self.forget_transfer(key) else { return };
        if !transfer.receiver.is_done() {
            let abort = rmpp::abort(&Mad(transfer.from.mad), RmppStatus::TIME_TOO_LONG);
            self.outgoing.push_back(reply(&transfer.from, &abort));
        }
    }

    fn linger(&mut self, now: Instant, key: TransferKey) {
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        self.timers.remove(&(transfer.deadline, Timer::Transfer(key)));
        transfer.deadline = now + LINGER;
        self.timers.insert((transfer.deadline, Timer::Transfer(key)));
    }

    fn forget_transfer(&mut self, key: TransferKey) -> Option<Transfer> {
        let transfer = self.transfers.remove(&key)?;
        self.timers.remove(&(transfer.deadline, Timer::Transfer(key)));
        Some(transfer)
    }
}

/// Returns true for an acknowledgement of an answer: those have the method of the request.
const fn is_response_to(ack: &Mad) -> bool {
    ack.method().0 & Method::RESPONSE_BIT == 0
}
