//! Info request and response. The response has the addresses of the server's chunks. If a shared key is configured,
//! both sides prove before the info request that they have the key.

use std::sync::Arc;

use ib_hca::{AccessFlags, Data, Hca, Memory, SendOp, Wc};
use ib_types::Instant;
use ib_wire::rtrs::{Descriptor, InfoHeader, InfoRequest, Message, MessageType, Proof};
use rand::Rng;

use super::path::{Chunk, Inbox, Path, PathState, Receives};
use super::session::{Limits, Stage};
use super::{Client, ClientEvent, Failure, PathId, Timer};
use crate::connection::Adapters;
use crate::connection::{self, SetupError, WorkId};
use crate::proof::{Prover, Transcript};

/// The receive index that marks the receive for the info response.
pub(super) const INFO_RECEIVE: u32 = u32::MAX;

/// Length in bytes of a receive buffer, if it only receives the new key of a chunk.
const KEY_LENGTH: u32 = 8;
/// Length in bytes of a receive buffer, if it also receives messages that only servers of this project send.
const EXTENSION_LENGTH: u32 = 80;

/// Number of receives that the first connection has for messages other than responses.
const EXTRA_RECEIVES: u32 = 64;

impl Client {
    /// Posts the receives of a path whose connections are established. Then sends the info request. If a key is
    /// configured, sends the client's nonce instead; the info request then follows the server's proof.
    pub(super) fn request_info(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: PathId,
    ) -> Result<(), SetupError> {
        let needs_proof = self.config.key.is_some();
        let Self { paths, registrations, .. } = self;
        let Some(path) = paths.get_mut(id) else { return Ok(()) };
        let depth = u32::from(path.offer.limits.queue_depth);
        // A response may need two receives: one for the SEND with invalidate, and one for the response itself.
        let most = hca.config().max_qp_wr - 1;
        let key = if path.offer.has_new_keys { KEY_LENGTH } else { 0 };
        let mut offset = info_length(depth);
        let mut receives = Vec::with_capacity(path.connections.len());
        for number in 0..path.connections.len() {
            let (size, spare) = match number {
                0 => (if path.fences() { EXTENSION_LENGTH } else { key }, EXTRA_RECEIVES),
                _ => (key, 0),
            };
            let count = (2 * depth + spare).min(most);
            receives.push(Receives { offset, size, count });
            offset += (size * count) as usize;
        }
        let memory = Memory::zeroed(offset)?;
        let range = (&memory, 0, offset);
        let pd = registrations.get(path.local).pd;
        let mr = hca.reg_mr(pd, range, memory.address(), AccessFlags::LOCAL_WRITE)?;
        let key = hca.key(mr).expect("the region was just registered");
        let info =
            ib_hca::Sge { addr: memory.address(), length: info_length(depth) as u32, lkey: key };
        let counts: Vec<u32> = receives.iter().map(|it| it.count).collect();
        path.inbox = Some(Inbox { memory, mr, key, receives });
        let qp = path.connections[0].qp;
        // If there is a key, a second receive is needed: the server's proof arrives before the info response.
        for _ in 0..1 + u32::from(needs_proof) {
            connection::receive(hca, now, qp, WorkId { connection: 0, index: INFO_RECEIVE }, info)?;
        }
        for (number, count) in (0..).zip(counts) {
            let qp = path.connections[usize::from(number)].qp;
            for index in 0..count {
                let sge = path.receive(number, index);
                connection::receive(hca, now, qp, WorkId { connection: number, index }, sge)?;
            }
        }
        if !needs_proof {
            return self.send_info_request(now, hca, id);
        }
        let mut nonce = [0; 32];
        self.rng.fill_bytes(&mut nonce);
        self.paths.get_mut(id).expect("the path was looked up above").nonce = Some(nonce);
        let hello = Proof { message_type: MessageType::PROOF, nonce, code: [0; 32] };
        let data = Data::Inline(Box::new(hello.to_bytes()));
        connection::send(hca, now, qp, SendOp::Send { imm: None }, data)?;
        Ok(())
    }

    fn send_info_request(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: PathId,
    ) -> Result<(), SetupError> {
        let request = InfoRequest::new(&self.config.name).to_bytes();
        let data = Data::Inline(Box::new(request));
        let Some(path) = self.paths.get(id) else { return Ok(()) };
        connection::send(hca, now, path.connections[0].qp, SendOp::Send { imm: None }, data)?;
        Ok(())
    }

    /// Verifies the server's proof. Sends the client's proof and the info request.
    fn handle_proof(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: PathId,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let (session, key) = (self.session.uuid, self.config.key.clone());
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        let proof = bytes.first_chunk().map(Proof::parse);
        let (Some(proof), Some(client_nonce), Some(key)) = (proof, path.nonce.take(), key) else {
            return Err(Failure::Protocol("an unexpected proof"));
        };
        let transcript =
            Transcript { client_nonce, server_nonce: proof.nonce, path: path.uuid, session };
        if !transcript.verify(&key, Prover::Server, &proof) {
            return Err(Failure::WrongKey);
        }
        let qp = path.connections[0].qp;
        let data = Data::Inline(Box::new(transcript.prove(&key, Prover::Client).to_bytes()));
        let sent = connection::send(hca, now, qp, SendOp::Send { imm: None }, data);
        sent.map_err(SetupError::from)?;
        Ok(self.send_info_request(now, hca, id)?)
    }

    /// Handles the info response, or the proof that precedes it. After the info response, the path is connected.
    pub(super) fn handle_info(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: PathId,
        wc: &Wc,
    ) -> Result<(), Failure> {
        let heartbeat = self.config.heartbeats.interval;
        let watch = self.config.io_timeout;
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        if path.state != PathState::Connecting {
            return Err(Failure::Protocol("an unexpected info response"));
        }
        let inbox = path.inbox.as_ref().expect("the receive has a buffer in the inbox");
        let length = (wc.byte_len as usize).min(info_length(path.offer.limits.queue_depth.into()));
        let bytes = read(&inbox.memory, length)?;
        if bytes.first_chunk() == Some(&MessageType::PROOF.0.to_le_bytes()) {
            return self.handle_proof(now, hca, id, &bytes);
        }
        if path.nonce.is_some() {
            return Err(Failure::WrongKey);
        }
        path.chunks = chunks(&bytes, &path.offer.limits)?;
        let header = bytes.first_chunk().filter(|_| path.fences()).map(InfoHeader::parse);
        let epoch = header.map_or(0, |header| header.epoch);
        path.state = PathState::Connected;
        path.attempts = 0;
        if std::mem::replace(&mut path.was_connected, true) {
            path.stats.reconnects.succeeded += 1;
        }
        path.liveness.connected(now);
        let others = self.paths.connected();
        if self.session.path_connected(epoch, !others.is_empty()) {
            // The server had lost all paths, and has therefore closed the objects that the session had opened. So the
            // other paths, which the client considers connected, fail.
            self.failed.extend(others.iter().map(|&other| (other, Failure::SessionRestarted)));
            self.events.push_back(ClientEvent::Lost);
        }
        self.paths.set_connected(id);
        self.timers.stop((id, Timer::Connect));
        self.timers.set((id, Timer::Heartbeat), (), now + heartbeat);
        if let Some(watch) = watch {
            self.timers.set((id, Timer::IoTimeout), (), now + watch / 4);
        }
        if std::mem::take(&mut self.session.is_lost) {
            self.events.push_back(ClientEvent::Restored);
        }
        self.events.push_back(ClientEvent::PathUp(id));
        self.newly_connected.push_back(id);
        Ok(())
    }

    /// Handles newly connected paths: starts to connect the other paths of the session, and requests fences.
    pub(super) fn after_path_up(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some(id) = self.newly_connected.pop_front() {
            self.end_unfenced(id);
            if self.session.stage == Stage::Opening {
                // The first path has created the session at the server, so that the other paths may now join it.
                let idle = |path: &&Path| {
                    path.is_awaited && path.reconnects == 0 && path.state == PathState::Disconnected
                };
                let others = self.paths.iter().filter(idle);
                let others: Vec<PathId> = others.map(|path| path.id).collect();
                for id in others {
                    self.start_connecting(now, cx, id);
                }
                self.open_session();
            }
            self.send_fences(now, cx);
        }
    }

    /// Opens the session once a path is connected and each other path has been connected or has failed once.
    pub(super) fn open_session(&mut self) {
        if self.session.stage != Stage::Opening || self.paths.connected().is_empty() {
            return;
        }
        let mut awaited = self.paths.iter().filter(|path| path.is_awaited);
        if awaited.all(|path| path.state == PathState::Connected) {
            self.session.stage = Stage::Open;
            self.events.push_back(ClientEvent::Up);
        }
    }
}

/// Returns the length in bytes of the receive buffer for the info response and for the proof that precedes it.
const fn info_length(depth: u32) -> usize {
    let length = InfoHeader::LENGTH + Descriptor::LENGTH * depth as usize;
    if length < Proof::LENGTH { Proof::LENGTH } else { length }
}

fn read(memory: &Arc<Memory>, length: usize) -> Result<Vec<u8>, Failure> {
    memory.to_vec(0, length).map_err(|_| Failure::Protocol("an info response that is too long"))
}

/// Parses an info response, and divides the server's memory into chunks.
fn chunks(bytes: &[u8], limits: &Limits) -> Result<Vec<Chunk>, Failure> {
    let wrong = Failure::Protocol;
    let Ok(Message::InfoResponse(descriptors)) = Message::parse(bytes) else {
        return Err(wrong("a message that is not an info response"));
    };
    let (depth, size) = (usize::from(limits.queue_depth), limits.chunk_size());
    let mut chunks = Vec::with_capacity(depth);
    for Descriptor { address, r_key, length } in descriptors.iter() {
        let length = u64::from(length);
        if length == 0 || !length.is_multiple_of(size) || address.checked_add(length).is_none() {
            return Err(wrong("an info response whose length is not a multiple of the chunk size"));
        }
        let count = length / size;
        if count > (depth - chunks.len()) as u64 {
            return Err(wrong("an info response with more chunks than its queue depth"));
        }
        chunks.extend((0..count).map(|at| Chunk { addr: address + at * size, rkey: r_key }));
    }
    if chunks.len() != depth {
        return Err(wrong("an info response with fewer chunks than its queue depth"));
    }
    Ok(chunks)
}
