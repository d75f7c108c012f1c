//! RMPP transfers: received messages of several segments, and ACKs of sent messages.

use ib_ibsim::message::Request;
use ib_mad::rmpp::{Acknowledged, Acknowledgement, Progress, ReceiveLimits, Receiver, control};
use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppStatus, RmppType, VERSION};
use ib_wire::mad::{Mad, Method};

use super::transaction::TransactionKey;
use super::{Engine, Timer, is_response, reply};

/// Identifies a received RMPP message.
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

/// A received RMPP message, of which segments may still be missing.
pub(super) struct Transfer {
    pub(super) agent: u16,
    pub(super) deadline: Instant,
    receiver: Receiver,
    limits: ReceiveLimits,
    /// The first datagram received. If the message is not complete in time, an ABORT responds to
    /// this datagram.
    from: Request,
    /// The segment whose headers become those of the message: segment 1, or the first received segment until segment 1
    /// arrives.
    first: Mad,
}

/// The ACK by which the requester of a double-sided RMPP transfer lets the responder send its
/// response.
const DIRECTION_SWITCH: Acknowledgement = Acknowledgement { segment: 0, window_last: 1 };

impl Engine {
    /// Handles a MAD of an RMPP transfer.
    pub(super) fn handle_rmpp(&mut self, now: Instant, request: &Request, mad: &Mad) {
        match mad.rmpp().rmpp_type {
            RmppType::ACK | RmppType::STOP | RmppType::ABORT => {
                self.handle_ack_or_abort(now, request, mad);
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
            // The program implements RMPP itself, so the first segment completes the program's
            // request.
            transaction.and_then(|key| self.forget_transaction(key));
            return self.deliver(agent, request, mad.0.to_vec());
        }
        if header.segment == 0 {
            // The segment number is 0, because a program under libumad2sim has sent an unsegmented
            // message as one datagram.
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
            let limits = ReceiveLimits::default();
            let Some(receiver) = Receiver::new(mad, limits) else { return };
            let receiver = receiver.accept_any_last_length();
            let deadline = now + limits.message_time;
            let transfer =
                Transfer { agent, deadline, receiver, limits, from: *request, first: *mad };
            self.transfers.insert(key, transfer);
            self.timers.insert((deadline, Timer::Transfer(key)));
        }
        let transfer = self.transfers.get_mut(&key).expect("the transfer exists or was just added");
        if header.segment == 1 {
            transfer.first = *mad;
        }
        let progress = match header.version {
            VERSION => transfer.receiver.handle(mad),
            _ => Progress::Failed(RmppStatus::BAD_VERSION),
        };
        if let Some(transaction) = transaction {
            self.restart_time(now, transaction);
        }
        match progress {
            Progress::Nothing => {}
            Progress::Acknowledge(state) => self.acknowledge(request, mad, state),
            Progress::Failed(status) => {
                self.outgoing.push_back(reply(request, &control::refuse(mad, status)));
                self.forget_transfer(key);
            }
            Progress::Complete(state) => {
                self.acknowledge(request, mad, state);
                let message = self.complete(now, key);
                if transaction.is_none_or(|key| self.forget_transaction(key).is_some()) {
                    self.deliver(agent, request, message);
                }
            }
        }
    }

    fn acknowledge(&mut self, request: &Request, mad: &Mad, state: Acknowledgement) {
        self.outgoing.push_back(reply(request, &control::acknowledge(mad, state)));
    }

    /// Handles a received ACK, STOP or ABORT.
    fn handle_ack_or_abort(&mut self, now: Instant, request: &Request, mad: &Mad) {
        let header = mad.rmpp();
        let Some(key) = self.acknowledged(mad, request.slid) else {
            return self.handle_unmatched_ack(request, mad);
        };
        if header.rmpp_type != RmppType::ACK {
            return self.give_up(key);
        }
        let held = self.transactions.get_mut(&key).expect("the transaction was just found");
        let sender = held.sender.as_mut().expect("the found transaction has an RMPP sender");
        match sender.handle(&header) {
            Acknowledged::Nothing => {
                // The ACK acknowledges no new segment, but may have enlarged the window.
                if sender.can_send() {
                    self.transmit(now, key);
                }
            }
            Acknowledged::Progress => {
                self.restart_retries(key);
                self.transmit(now, key);
            }
            Acknowledged::Failed(status) => {
                self.outgoing.push_back(reply(request, &control::refuse(mad, status)));
                self.give_up(key);
            }
            Acknowledged::Complete if held.expects_response() && !is_response_to(mad) => {
                held.sender = None;
                if mad.method() == Method::GET_MULTI_RESP {
                    self.acknowledge(request, mad, DIRECTION_SWITCH);
                }
                self.restart_retries(key);
                self.restart_time(now, key);
            }
            Acknowledged::Complete => drop(self.forget_transaction(key)),
        }
    }

    /// Handles an ACK, STOP or ABORT that matches no sent message. Such a MAD refers to a received
    /// message, or belongs to a program that implements RMPP itself.
    fn handle_unmatched_ack(&mut self, request: &Request, mad: &Mad) {
        let agent = self.agents.for_datagram(mad);
        let agent = agent.filter(|&agent| self.agents.get(agent).is_some_and(|a| !a.does_rmpp()));
        if let Some(agent) = agent {
            self.deliver(agent, request, mad.0.to_vec());
        } else if mad.rmpp().rmpp_type != RmppType::ACK {
            self.forget_transfer(TransferKey::new(request, mad));
        }
    }

    /// Handles the timeout of a received message: removes the message, and sends an ABORT if it is
    /// incomplete.
    pub(super) fn transfer_is_due(&mut self, _now: Instant, key: TransferKey) {
        let Some(transfer) = self.forget_transfer(key) else { return };
        if !transfer.receiver.is_complete() {
            let abort = control::refuse(&Mad(transfer.from.mad), RmppStatus::TIME_TOO_LONG);
            self.outgoing.push_back(reply(&transfer.from, &abort));
        }
    }

    /// Returns a complete message: the headers of the first segment, then the data. The transfer is
    /// removed only after the linger time, so that duplicate segments are acknowledged.
    fn complete(&mut self, now: Instant, key: TransferKey) -> Vec<u8> {
        let Some(transfer) = self.transfers.get_mut(&key) else { return Vec::new() };
        self.timers.remove(&(transfer.deadline, Timer::Transfer(key)));
        transfer.deadline = now + transfer.limits.linger_time;
        self.timers.insert((transfer.deadline, Timer::Transfer(key)));
        let mut message = transfer.first.0[..transfer.first.class().data_offset()].to_vec();
        message.append(&mut transfer.receiver.take_data());
        message
    }

    fn forget_transfer(&mut self, key: TransferKey) -> Option<Transfer> {
        let transfer = self.transfers.remove(&key)?;
        self.timers.remove(&(transfer.deadline, Timer::Transfer(key)));
        Some(transfer)
    }
}

/// Returns true if the MAD is the ACK of a response. Such an ACK has the method of the request.
const fn is_response_to(ack: &Mad) -> bool {
    ack.method().0 & Method::RESPONSE_BIT == 0
}
