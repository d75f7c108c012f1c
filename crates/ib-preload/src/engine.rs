//! What the kernel does between its umad devices and the wire: agents, requests that wait for
//! answers, retries, RMPP, and what open files have to read. Sans-IO: [`Engine::write`],
//! [`Engine::handle`] and [`Engine::handle_timeout`] are told the time, [`Engine::poll_transmit`],
//! [`Engine::poll_woken`] and [`Engine::poll_timeout`] tell what follows.

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

/// The bits of a transaction identifier that belong to the client; the simulator uses the others.
const OWN_BITS: u64 = 0x0000_ffff_ffff_ffff;

/// How many messages an open file keeps for a program that does not read.
const MOST_KEPT: usize = 200_000;

/// The number of an open file.
pub(crate) type FileId = u64;

/// What has a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Transaction(TransactionKey),
    Transfer(TransferKey),
}

/// An open umad device.
struct File {
    /// 56, or 64 after `ENABLE_PKEY`.
    header: usize,
    agents: [Option<u16>; MAX_AGENTS],
    /// Whether an agent was ever registered.
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
    /// Opens the device once more.
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

    /// Closes a file with all its agents.
    pub(crate) fn close(&mut self, file: FileId) {
        let agents = self.files.remove(&file).map_or([None; MAX_AGENTS], |file| file.agents);
        for agent in agents.into_iter().flatten() {
            self.forget_agent(agent);
        }
    }

    /// Has headers of 64 bytes from now on.
    pub(crate) fn enable_p_key(&mut self, file: FileId) -> Result<(), Errno> {
        let file = self.files.get_mut(&file).ok_or(Errno::INVALID)?;
        if file.used {
            return Err(Errno::INVALID);
        }
        file.header = HEADER;
        Ok(())
    }

    /// Registers an agent and returns its number in the file.
    pub(crate) fn register(&mut self, id: FileId, wish: &Registration) -> Result<u32, Errno> {
        let file = self.files.get_mut(&id).ok_or(Errno::INVALID)?;
        let slot = file.agents.iter().position(Option::is_none).ok_or(Errno::NO_MEMORY)?;
        let agent = self.agents.add(Agent::new(id, slot as u32, wish)?)?;
        file.agents[slot] = Some(agent);
        file.used = true;
        Ok(slot as u32)
    }

    /// Removes an agent and all that waits for it.
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

    /// Returns true when an agent wants datagrams that nobody asked for.
    pub(crate) fn serves(&self) -> bool {
        self.agents.iter().any(|agent| agent.registration.methods != 0)
    }

    /// Takes what a program writes: a header and a message.
    pub(crate) fn write(&mut self, now: Instant, id: FileId, bytes: &[u8]) -> Result<(), Errno> {
        if self.closed {
            return Err(Errno::IO);
        }
        let file = self.files.get(&id).ok_or(Errno::INVALID)?;
        // The kernel wants the headers of the datagram and of RMPP at least.
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

    /// Takes a datagram from the wire.
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

    /// Takes a datagram that is no part of a transfer.
    fn handle_single(&mut self, request: &Request, mad: &Mad) {
        if is_response(mad) {
            let key = TransactionKey::request(mad);
            // As in the kernel, an answer that nobody waits for is dropped.
            let Some(held) = self.forget_transaction(key) else { return };
            self.deliver(held.agent, request, mad.0.to_vec());
            return;
        }
        match self.agents.for_class(mad) {
            Some(agent) => self.deliver(agent, request, mad.0.to_vec()),
            None => self.refuse(request, mad),
        }
    }

    /// Answers a request that no agent serves, as the kernel does.
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

    /// Puts a message into the queue of an agent's file.
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

    /// Gives a program the next message, as the kernel's `read` does: returns its length, or fails
    /// with `EAGAIN` when there is none, `EINVAL` or `ENOSPC` when the buffer is too small. The
    /// message stays then, and with `ENOSPC` its first segment is in the buffer.
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

    /// Returns true when a file has something to read, or will never have.
    pub(crate) fn is_readable(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|file| self.closed || !file.messages.is_empty())
    }

    /// Does what is due: sends again, gives up.
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

    /// Ends all requests because the other side has gone; files fail with `EIO` from now on.
    pub(crate) fn shut_down(&mut self) {
        self.closed = true;
        for key in self.transactions.keys().copied().collect::<Vec<_>>() {
            self.give_up(key);
        }
        self.outgoing.clear();
        self.woken.extend(self.files.keys());
    }

    /// Returns the next datagram for the wire.
    pub(crate) fn poll_transmit(&mut self) -> Option<Request> {
        self.outgoing.pop_front()
    }

    /// Returns a file that has something new to read; not one whose reader was there before.
    pub(crate) fn poll_woken(&mut self) -> Option<FileId> {
        loop {
            let file = self.woken.pop_front()?;
            if self.is_readable(file) {
                return Some(file);
            }
        }
    }

    /// Returns when [`Engine::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(deadline, _)| deadline)
    }
}

/// Returns the datagram that carries an answer back to where a request came from.
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

/// Returns true for a datagram that answers another one.
fn is_response(mad: &Mad) -> bool {
    mad.method().is_response()
}

fn rmpp_is_active(message: &[u8]) -> bool {
    MgmtClass(message[1]).may_use_rmpp() && message[26] & 1 != 0
}

#[cfg(test)]
mod tests;
