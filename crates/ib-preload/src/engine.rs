//! The umad device of a port, as the kernel implements it: agents, outstanding requests, retries, RMPP, and the queues
//! of open files. Sans-IO: [`Engine::write`], [`Engine::handle`] and [`Engine::handle_timeout`] take the inputs and the
//! time. [`Engine::poll_transmit`], [`Engine::poll_woken`] and [`Engine::poll_timeout`] return the outputs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_ibsim::message::{Request, TIMED_OUT};
use ib_types::Instant;
use ib_umad::abi::{HEADER, MAX_AGENTS, Registration, SHORT_HEADER, UmadHeader};
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{MAD_LENGTH, Mad, MadStatus, Method, MgmtClass};

use crate::errno::Errno;

mod agent;
mod queue;
mod transaction;
mod transfer;

use agent::{Agent, Agents};
use queue::Message;
use transaction::{Transaction, TransactionKey};
use transfer::{Transfer, TransferKey};

/// Bits of a transaction ID that the program and this engine set. The simulator overwrites the other bits.
const OWN_BITS: u64 = 0x0000_ffff_ffff_ffff;

/// If an open file has this many unread messages, received messages for its agents are dropped.
const MOST_KEPT: usize = 200_000;

/// The number of an open file.
pub(crate) type FileId = u64;

/// A timer of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Transaction(TransactionKey),
    Transfer(TransferKey),
}

/// An open umad device.
struct File {
    /// Size of the umad header in bytes: 56, or 64 after `ENABLE_PKEY`.
    header: usize,
    agents: [Option<u16>; MAX_AGENTS],
    /// True if an agent was ever registered through this file.
    used: bool,
    messages: VecDeque<Message>,
}

/// The umad device of a port.
#[derive(Default)]
pub(crate) struct Engine {
    files: BTreeMap<FileId, File>,
    next_file: FileId,
    agents: Agents,
    transactions: BTreeMap<TransactionKey, Transaction>,
    transfers: BTreeMap<TransferKey, Transfer>,
    timers: BTreeSet<(Instant, Timer)>,
    outgoing: VecDeque<Request>,
    woken: VecDeque<FileId>,
    closed: bool,
}

impl Engine {
    /// Opens the umad device. Returns the number of the new file.
    pub(crate) fn open(&mut self) -> FileId {
        self.next_file += 1;
        let file = File {
            header: SHORT_HEADER,
            agents: [None; MAX_AGENTS],
            used: false,
            messages: VecDeque::new(),
        };
        self.files.insert(self.next_file, file);
        self.next_file
    }

    /// Closes an open umad device, and removes its agents.
    pub(crate) fn close(&mut self, file: FileId) {
        let agents = self.files.remove(&file).map_or([None; MAX_AGENTS], |file| file.agents);
        for agent in agents.into_iter().flatten() {
            self.forget_agent(agent);
        }
    }

    /// Enables umad headers of 64 bytes for a file. Fails with `EINVAL` if an agent was ever
    /// registered through the file.
    pub(crate) fn enable_p_key(&mut self, file: FileId) -> Result<(), Errno> {
        let file = self.files.get_mut(&file).ok_or(Errno::INVALID)?;
        if file.used {
            return Err(Errno::INVALID);
        }
        file.header = HEADER;
        Ok(())
    }

    /// Registers an agent. Returns the agent's number within the file.
    pub(crate) fn register(&mut self, id: FileId, wish: &Registration) -> Result<u32, Errno> {
        let file = self.files.get_mut(&id).ok_or(Errno::INVALID)?;
        let slot = file.agents.iter().position(Option::is_none).ok_or(Errno::NO_MEMORY)?;
        let agent = self.agents.add(Agent::new(id, slot as u32, wish)?)?;
        file.agents[slot] = Some(agent);
        file.used = true;
        Ok(slot as u32)
    }

    /// Removes an agent, its outstanding requests and its incomplete messages.
    pub(crate) fn unregister(&mut self, file: FileId, slot: u32) -> Result<(), Errno> {
        let file = self.files.get_mut(&file).ok_or(Errno::INVALID)?;
        let agent = file.agents.get_mut(slot as usize).and_then(Option::take);
        self.forget_agent(agent.ok_or(Errno::INVALID)?);
        Ok(())
    }

    fn forget_agent(&mut self, number: u16) {
        self.agents.remove(number);
        let transactions = self.transactions.extract_if(.., |_, held| held.agent == number);
        let transfers = self.transfers.extract_if(.., |_, held| held.agent == number);
        let timers = &mut self.timers;
        for (key, held) in transactions {
            timers.remove(&(held.deadline, Timer::Transaction(key)));
        }
        for (key, held) in transfers {
            timers.remove(&(held.deadline, Timer::Transfer(key)));
        }
    }

    /// Returns true if any agent is registered to receive requests of other ports.
    pub(crate) fn serves(&self) -> bool {
        self.agents.iter().any(|agent| agent.registration.methods != 0)
    }

    /// Sends a message that the program has written. The bytes begin with the umad header.
    pub(crate) fn write(&mut self, now: Instant, id: FileId, bytes: &[u8]) -> Result<(), Errno> {
        if self.closed {
            return Err(Errno::IO);
        }
        let file = self.files.get(&id).ok_or(Errno::INVALID)?;
        // The kernel requires at least the MAD header and the RMPP header.
        if bytes.len() < file.header + 36 {
            return Err(Errno::INVALID);
        }
        let (header, message) = bytes.split_at(file.header);
        let header = UmadHeader::parse(header);
        let slot = file.agents.get(header.agent as usize).copied().flatten();
        let number = slot.ok_or(Errno::INVALID)?;
        let agent = self.agents.get(number).ok_or(Errno::INVALID)?;
        let queue_pair = agent.registration.queue_pair;
        let does_rmpp = agent.does_rmpp();
        self.send_message(now, number, queue_pair, does_rmpp, &header, message)
    }

    /// Handles a received datagram.
    pub(crate) fn handle(&mut self, now: Instant, request: &Request) {
        let mut mad = Mad(request.mad);
        if request.status == TIMED_OUT {
            return self.handle_lost(now, &mad);
        }
        if is_response(&mad) {
            let id = mad.transaction_id().0 & OWN_BITS;
            mad.set_transaction_id(ib_wire::mad::TransactionId(id));
        }
        if mad.is_rmpp() {
            return self.handle_rmpp(now, request, &mad);
        }
        self.handle_single(request, &mad);
    }

    /// Handles a MAD that is not part of an RMPP transfer.
    fn handle_single(&mut self, request: &Request, mad: &Mad) {
        if is_response(mad) {
            let key = TransactionKey::request(mad);
            // As in the kernel, a response without an outstanding request is dropped.
            let Some(held) = self.forget_transaction(key) else { return };
            self.deliver(held.agent, request, mad.0.to_vec());
            return;
        }
        match self.agents.for_class(mad) {
            Some(agent) => self.deliver(agent, request, mad.0.to_vec()),
            None => self.refuse(request, mad),
        }
    }

    /// Rejects a request for which no agent is registered, as the kernel does.
    fn refuse(&mut self, request: &Request, mad: &Mad) {
        if !matches!(mad.method(), Method::GET | Method::SET) {
            return;
        }
        let mut mad = *mad;
        mad.answer(MadStatus::BAD_METHOD_ATTRIBUTE);
        if mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE {
            mad.0[4] |= 0x80;
        }
        self.outgoing.push_back(reply(request, &mad));
    }

    /// Adds a received message to the queue of an agent's file.
    fn deliver(&mut self, agent: u16, request: &Request, body: Vec<u8>) {
        let Some(agent) = self.agents.get(agent) else { return };
        let Some(file) = self.files.get_mut(&agent.file) else { return };
        if file.messages.len() >= MOST_KEPT {
            return;
        }
        let header = UmadHeader {
            agent: agent.slot,
            length: (file.header + body.len()) as u32,
            queue_pair: request.source_queue_pair,
            lid: request.slid,
            ..UmadHeader::default()
        };
        file.messages.push_back(Message::received(header, body));
        self.woken.push_back(agent.file);
    }

    /// Reads the next message of a file, as the kernel's `read` does. Returns the number of bytes
    /// read.
    ///
    /// # Errors
    /// Fails with `EAGAIN` if there is no message, and with `EIO` if the simulator has
    /// disconnected. Fails with `EINVAL` or `ENOSPC` if the buffer is too small; the message then
    /// remains in the queue. With `ENOSPC` the buffer contains the first segment of the message.
    pub(crate) fn read(&mut self, file: FileId, buffer: &mut [u8]) -> Result<usize, Errno> {
        let file = self.files.get_mut(&file).ok_or(Errno::INVALID)?;
        if buffer.len() < file.header {
            return Err(Errno::INVALID);
        }
        let Some(message) = file.messages.front() else {
            return Err(if self.closed { Errno::IO } else { Errno::AGAIN });
        };
        let length = message.copy_to(file.header, buffer)?;
        file.messages.pop_front();
        Ok(length)
    }

    /// Returns true if a file has a message, or if the simulator has disconnected.
    pub(crate) fn is_readable(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| self.closed || !file.messages.is_empty())
    }

    /// Handles expired timers: retries or fails transactions, and removes expired RMPP transfers.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(deadline, timer)) = self.timers.first() {
            if deadline > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Transaction(key) => self.transaction_is_due(now, key),
                Timer::Transfer(key) => self.transfer_is_due(now, key),
            }
        }
    }

    /// Fails all outstanding requests, because the simulator has disconnected. From then on, writes fail with `EIO`, and
    /// reads do so once all queued messages have been read.
    pub(crate) fn shut_down(&mut self) {
        self.closed = true;
        for key in self.transactions.keys().copied().collect::<Vec<_>>() {
            self.give_up(key);
        }
        self.outgoing.clear();
        self.woken.extend(self.files.keys());
    }

    /// Returns the next datagram to send.
    pub(crate) fn poll_transmit(&mut self) -> Option<Request> {
        self.outgoing.pop_front()
    }

    /// Returns the next file that has a new message. Skips files whose messages have been read
    /// meanwhile.
    pub(crate) fn poll_woken(&mut self) -> Option<FileId> {
        loop {
            let file = self.woken.pop_front()?;
            if self.is_readable(file) {
                return Some(file);
            }
        }
    }

    /// Returns the time at which [`Engine::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(deadline, _)| deadline)
    }
}

/// Returns the datagram that sends a MAD, such as an ACK, back to the sender of `request`.
fn reply(request: &Request, mad: &Mad) -> Request {
    let directed = request.slid == PERMISSIVE_LID;
    Request {
        dlid: request.slid,
        slid: if directed { PERMISSIVE_LID } else { request.dlid },
        destination_queue_pair: request.source_queue_pair,
        source_queue_pair: request.destination_queue_pair,
        status: 0,
        length: MAD_LENGTH as u16,
        mad: mad.0,
    }
}

/// Returns true if the MAD is a response.
fn is_response(mad: &Mad) -> bool {
    mad.method().is_response()
}

fn rmpp_is_active(message: &[u8]) -> bool {
    MgmtClass(message[1]).may_use_rmpp() && message[26] & 1 != 0
}

#[cfg(test)]
mod tests;
