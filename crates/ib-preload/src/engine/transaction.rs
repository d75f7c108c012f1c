//! What was sent and is not over: requests that wait for answers, messages of several segments.

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

/// The longest time between two attempts to send a segment, and the time when none is given.
const SEGMENT_TIMEOUT: Duration = Duration::from_secs(2);

/// What tells transactions apart: the identifier and class, and for a message that is an answer
/// itself, who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransactionKey {
    id: u64,
    class: u8,
    asked_by: Option<u16>,
}

impl TransactionKey {
    /// Returns the key of the own request that has, or is answered by, a datagram.
    pub(super) fn request(mad: &Mad) -> Self {
        Self { id: mad.transaction_id().0 & OWN_BITS, class: mad.class().0, asked_by: None }
    }

    /// Returns the key of the own answer to a port.
    pub(super) fn answer(mad: &Mad, lid: u16) -> Self {
        Self { id: mad.transaction_id().0, class: mad.class().0, asked_by: Some(lid) }
    }
}

/// Something that was sent.
pub(super) struct Transaction {
    pub(super) agent: u16,
    pub(super) deadline: Instant,
    /// The message when it has several segments and not all were acknowledged.
    pub(super) sender: Option<Sender>,
    header: UmadHeader,
    queue_pair: u32,
    mad: Mad,
    retries_left: u32,
}

impl Transaction {
    /// Returns true when an answer is waited for.
    pub(super) const fn wants_answer(&self) -> bool {
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

    /// Returns the datagram that carries something to the other side.
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

/// Returns the length of a segment with its headers: that of the last one depends on its data.
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
    /// Sends what a program wrote through an agent.
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

    /// Sends the datagram of a transaction, or the segments that its window lets out, and starts its
    /// time again.
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

    /// Gives a transaction its whole time again.
    pub(super) fn restart_time(&mut self, now: Instant, key: TransactionKey) {
        let Some(held) = self.transactions.get_mut(&key) else { return };
        self.timers.remove(&(held.deadline, Timer::Transaction(key)));
        held.deadline = now + held.timeout();
        self.timers.insert((held.deadline, Timer::Transaction(key)));
    }

    /// Gives a transaction its retries again, after progress.
    pub(super) fn restart_retries(&mut self, key: TransactionKey) {
        if let Some(held) = self.transactions.get_mut(&key) {
            held.retries_left = held.header.retries;
        }
    }

    /// The time of a transaction is over: once more, or no more.
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

    /// The simulator gave a datagram back. A request is sent again at once while it has retries; to
    /// wait for its time would only make a lost datagram slower to notice than on a wire.
    pub(super) fn handle_lost(&mut self, now: Instant, mad: &Mad) {
        if is_response(mad) {
            return;
        }
        let key = TransactionKey::request(mad);
        if self.transactions.get(&key).is_some_and(|held| held.sender.is_none()) {
            self.transaction_is_due(now, key);
        }
    }

    /// Ends a transaction that nobody answered; the program reads its beginning with `ETIMEDOUT`.
    pub(super) fn give_up(&mut self, key: TransactionKey) {
        let Some(held) = self.forget_transaction(key) else { return };
        let Some(agent) = self.agents.get(held.agent) else { return };
        let Some(file) = self.files.get_mut(&agent.file) else { return };
        let header = UmadHeader { status: libc::ETIMEDOUT as u32, ..held.header };
        let start = held.mad.0.first_chunk().expect("a datagram has its header");
        file.messages.push_back(Message::unanswered(header, start));
        self.woken.push_back(agent.file);
    }

    /// Removes a transaction.
    pub(super) fn forget_transaction(&mut self, key: TransactionKey) -> Option<Transaction> {
        let held = self.transactions.remove(&key)?;
        self.timers.remove(&(held.deadline, Timer::Transaction(key)));
        Some(held)
    }

    /// Returns the key of the message that an acknowledgement, stop or abort is about.
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
