//! Outstanding transactions: requests that wait for responses, and RMPP messages that are being sent.

use std::time::Duration;

use ib_ibsim::message::Request;
use ib_mad::rmpp::Sender;
use ib_types::Instant;
use ib_umad::abi::UmadHeader;
use ib_wire::mad::rmpp::{RmppFlags, last_data};
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{MAD_LENGTH, Mad, Method, MgmtClass, TransactionId};

use super::queue::Message;
use super::{Engine, OWN_BITS, Timer, is_response, rmpp_is_active};
use crate::errno::Errno;

/// Maximum and default time that the sender of an RMPP message waits for an ACK.
const SEGMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// Identifies a transaction by transaction ID and class. For a response that this device sends,
/// also by the LID of the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransactionKey {
    id: u64,
    class: u8,
    requester: Option<u16>,
}

impl TransactionKey {
    /// Returns the key of a request that this device has sent. `mad` is the request itself or a
    /// response to it.
    pub(super) fn request(mad: &Mad) -> Self {
        Self { id: mad.transaction_id().0 & OWN_BITS, class: mad.class().0, requester: None }
    }

    /// Returns the key of a response that this device sends to a LID.
    pub(super) fn answer(mad: &Mad, lid: u16) -> Self {
        Self { id: mad.transaction_id().0, class: mad.class().0, requester: Some(lid) }
    }
}

/// An outstanding transaction.
pub(super) struct Transaction {
    pub(super) agent: u16,
    pub(super) deadline: Instant,
    /// Sender of the message's segments (RMPP); `None` if the message has one MAD or is completely
    /// acknowledged.
    pub(super) sender: Option<Sender>,
    header: UmadHeader,
    queue_pair: u32,
    mad: Mad,
    retries_left: u32,
}

impl Transaction {
    /// Returns true if the program expects a response.
    pub(super) const fn expects_response(&self) -> bool {
        self.header.timeout_ms != 0
    }

    fn timeout(&self) -> Duration {
        let timeout = Duration::from_millis(self.header.timeout_ms.into());
        match self.sender {
            Some(_) if timeout.is_zero() => SEGMENT_TIMEOUT,
            Some(_) => timeout.min(SEGMENT_TIMEOUT),
            None => timeout,
        }
    }

    /// Returns the datagram that carries a MAD to the destination of the transaction.
    pub(super) fn datagram(&self, mad: &Mad, length: u16) -> Request {
        datagram(&self.header, self.queue_pair, mad, length)
    }
}

fn datagram(header: &UmadHeader, queue_pair: u32, mad: &Mad, length: u16) -> Request {
    Request {
        dlid: header.lid,
        slid: if header.lid == PERMISSIVE_LID { PERMISSIVE_LID } else { 0 },
        destination_queue_pair: header.queue_pair,
        source_queue_pair: queue_pair,
        status: 0,
        length,
        mad: mad.0,
    }
}

/// Returns the length of a segment with its headers. Only the last segment of a message can be
/// shorter than 256 bytes.
fn segment_length(segment: &Mad) -> u16 {
    let (header, offset) = (segment.rmpp(), segment.class().data_offset());
    let room = (MAD_LENGTH - offset) as u32;
    let data = match header.flags.contains(RmppFlags::LAST) {
        true => last_data(header.length_or_window, room).unwrap_or(room),
        false => room,
    };
    (offset + data as usize) as u16
}

impl Engine {
    /// Sends a message of an agent.
    pub(super) fn send_message(
        &mut self,
        now: Instant,
        agent: u16,
        queue_pair: u32,
        does_rmpp: bool,
        header: &UmadHeader,
        message: &[u8],
    ) -> Result<(), Errno> {
        let in_segments = does_rmpp && rmpp_is_active(message);
        let class = MgmtClass(message[1]);
        let fits = if in_segments {
            message.len() >= class.data_offset()
        } else {
            message.len() <= MAD_LENGTH
        };
        if !fits {
            return Err(Errno::INVALID);
        }
        let mut mad = Mad::default();
        let length = message.len().min(MAD_LENGTH);
        mad.0[..length].copy_from_slice(&message[..length]);
        let is_answer = is_response(&mad);
        if !is_answer {
            let id = u64::from(agent) << 32 | mad.transaction_id().0 & 0xffff_ffff;
            mad.set_transaction_id(TransactionId(id));
        }
        let key = if is_answer {
            TransactionKey::answer(&mad, header.lid)
        } else {
            TransactionKey::request(&mad)
        };
        let rmpp_of_its_own = !does_rmpp && mad.is_rmpp();
        let sender = match in_segments {
            true => {
                let data = message[class.data_offset()..].to_vec();
                Some(Sender::new(&mad, data, 1).ok_or(Errno::INVALID)?)
            }
            false => None,
        };
        if sender.is_none() && (header.timeout_ms == 0 || is_answer) {
            let request = datagram(header, queue_pair, &mad, MAD_LENGTH as u16);
            self.outgoing.push_back(request);
            return Ok(());
        }
        if self.transactions.contains_key(&key) && !rmpp_of_its_own {
            return Err(Errno::INVALID);
        }
        self.forget_transaction(key);
        let transaction = Transaction {
            agent,
            deadline: now,
            sender,
            header: *header,
            queue_pair,
            mad,
            retries_left: header.retries,
        };
        self.transactions.insert(key, transaction);
        self.transmit(now, key);
        Ok(())
    }

    /// Sends the MAD of a transaction, or the segments that the RMPP window allows. Restarts the
    /// transaction's timer.
    pub(super) fn transmit(&mut self, now: Instant, key: TransactionKey) {
        let Some(held) = self.transactions.get_mut(&key) else { return };
        match &mut held.sender {
            None => self.outgoing.push_back(held.datagram(&held.mad, MAD_LENGTH as u16)),
            Some(sender) => {
                while let Some(segment) = sender.next_segment() {
                    let length = segment_length(&segment);
                    let request = datagram(&held.header, held.queue_pair, &segment, length);
                    self.outgoing.push_back(request);
                }
            }
        }
        self.restart_time(now, key);
    }

    /// Restarts the timer of a transaction.
    pub(super) fn restart_time(&mut self, now: Instant, key: TransactionKey) {
        let Some(held) = self.transactions.get_mut(&key) else { return };
        self.timers.remove(&(held.deadline, Timer::Transaction(key)));
        held.deadline = now + held.timeout();
        self.timers.insert((held.deadline, Timer::Transaction(key)));
    }

    /// Restores the full number of retries of a transaction, because it has made progress.
    pub(super) fn restart_retries(&mut self, key: TransactionKey) {
        if let Some(held) = self.transactions.get_mut(&key) {
            held.retries_left = held.header.retries;
        }
    }

    /// Handles the timeout of a transaction: retries the transaction, or fails it after the last
    /// retry.
    pub(super) fn transaction_is_due(&mut self, now: Instant, key: TransactionKey) {
        let Some(held) = self.transactions.get_mut(&key) else { return };
        if held.retries_left == 0 {
            return self.give_up(key);
        }
        held.retries_left -= 1;
        if let Some(sender) = &mut held.sender {
            sender.rewind();
        }
        self.transmit(now, key);
    }

    /// Handles a datagram that the simulator has returned as lost. A request is retried
    /// immediately, instead of after its timeout.
    pub(super) fn handle_lost(&mut self, now: Instant, mad: &Mad) {
        if is_response(mad) {
            return;
        }
        let key = TransactionKey::request(mad);
        if self.transactions.get(&key).is_some_and(|held| held.sender.is_none()) {
            self.transaction_is_due(now, key);
        }
    }

    /// Fails a transaction that has got no response. The program reads the first 24 bytes of its
    /// request, with status `ETIMEDOUT`.
    pub(super) fn give_up(&mut self, key: TransactionKey) {
        let Some(held) = self.forget_transaction(key) else { return };
        let Some(agent) = self.agents.get(held.agent) else { return };
        let Some(file) = self.files.get_mut(&agent.file) else { return };
        let header = UmadHeader { status: libc::ETIMEDOUT as u32, ..held.header };
        let start = held.mad.0.first_chunk().expect("a MAD has a header of 24 bytes");
        file.messages.push_back(Message::unanswered(header, start));
        self.woken.push_back(agent.file);
    }

    /// Removes a transaction.
    pub(super) fn forget_transaction(&mut self, key: TransactionKey) -> Option<Transaction> {
        let held = self.transactions.remove(&key)?;
        self.timers.remove(&(held.deadline, Timer::Transaction(key)));
        Some(held)
    }

    /// Returns the key of the message that an ACK, STOP or ABORT refers to.
    pub(super) fn acknowledged(&self, mad: &Mad, lid: u16) -> Option<TransactionKey> {
        let key = if mad.method().0 & Method::RESPONSE_BIT == 0 {
            TransactionKey::answer(mad, lid)
        } else {
            TransactionKey::request(mad)
        };
        let sends = |held: &Transaction| held.sender.is_some();
        self.transactions.get(&key).is_some_and(sends).then_some(key)
    }
}
