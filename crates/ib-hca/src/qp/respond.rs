//! What a responder sends: acknowledgements, what was read, the results of atomic operations.

use ib_types::Psn;
use ib_wire::packet::{
    Acknowledgement, Aeth, AtomicAckEth, Bth, Header, NakCode, Opcode, Operation, Reth, RnrTimer,
    Syndrome,
};

use super::core::{Core, Cx};
use super::receive::Responder;
use crate::packet::{Packet, Writer};
use crate::region::AccessFlags;

/// Something to be sent to the other side.
#[derive(Clone, Copy, Debug)]
pub(super) enum Response {
    /// An acknowledgement or a refusal.
    Ack { psn: Psn, syndrome: Syndrome, msn: u32 },
    /// What was read, of which packets were sent already.
    Read { psn: Psn, packets: u32, addr: u64, rkey: u32, length: u32, msn: u32, sent: u32 },
    /// The result of an atomic operation.
    Atomic { psn: Psn, original: u64, msn: u32 },
}

/// What may be asked for once more.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resource {
    Read { first: Psn, packets: u32, addr: u64, rkey: u32, length: u32, msn: u32 },
    Atomic { psn: Psn, original: u64, msn: u32 },
}

impl Response {
    /// Returns whether it refuses something.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Ack { syndrome, .. } if *syndrome != Syndrome::ACK)
    }
}

impl Responder {
    /// Acknowledges everything up to a packet.
    pub(super) fn ack(&mut self, psn: Psn) {
        self.push_ack(psn, Syndrome::ACK);
    }

    /// Refuses the packet that is expected.
    pub(super) fn nak(&mut self, code: NakCode) {
        self.push_ack(self.expected, Syndrome::new(Acknowledgement::Nak(code)));
    }

    /// Has the other side wait for a receive.
    pub(super) fn not_ready(&mut self, core: &Core) {
        let timer = RnrTimer::new(core.attributes.min_rnr_timer).expect("it was checked");
        self.push_ack(self.expected, Syndrome::new(Acknowledgement::RnrNak(timer)));
    }

    fn push_ack(&mut self, psn: Psn, syndrome: Syndrome) {
        let msn = self.msn;
        let ack = Response::Ack { psn, syndrome, msn };
        // One that says more takes the place of one that has not gone out. A refusal says that all before it has
        // arrived, too.
        match self.responses.back_mut() {
            Some(Response::Ack { psn: of, syndrome: before, .. })
                if *before != Syndrome::ACK && psn.is_before(*of) => {}
            Some(last @ Response::Ack { .. }) => *last = ack,
            _ => self.responses.push_back(ack),
        }
    }

    /// Answers with what was asked for again, before what acknowledges it.
    fn push_again(&mut self, response: Response) {
        let last = self.responses.pop_back_if(|last| matches!(last, Response::Ack { .. }));
        self.responses.push_back(response);
        self.responses.extend(last);
    }

    /// Returns whether one acknowledgement is all that there is to answer.
    pub(super) fn only_acknowledges(&self) -> bool {
        self.responses.len() == 1 && matches!(self.responses[0], Response::Ack { .. })
    }

    /// Keeps what may be asked for again, as much as the other side may have under way.
    pub(super) fn remember(&mut self, core: &Core, resource: Resource) {
        let most = core.most_served().max(1);
        while self.resources.len() >= most {
            self.resources.pop_front();
        }
        self.resources.push_back(resource);
    }

    /// Answers a request that was carried out before.
    pub(super) fn repeat(&mut self, core: &Core, operation: Operation, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        match operation {
            Operation::ReadRequest => {
                let Some(reth) = packet.header(Header::Reth).map(Reth::parse) else { return };
                self.repeat_read(core, psn, &reth);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                let found = self.resources.iter().find_map(|resource| match *resource {
                    Resource::Atomic { psn: of, original, msn } if of == psn => {
                        Some((original, msn))
                    }
                    _ => None,
                });
                if let Some((original, msn)) = found {
                    let is_this = |it: &Response| matches!(it, Response::Atomic { psn: of, .. } if *of == psn);
                    self.responses.retain(|it| !is_this(it));
                    self.push_again(Response::Atomic { psn, original, msn });
                }
            }
            _ => {
                // All up to here has arrived, whatever of it was sent again. What waits to be answered before
                // goes out before.
                self.ack(self.expected.wrapping_sub(1));
            }
        }
    }

    /// Sends once more what was read, from some packet on.
    fn repeat_read(&mut self, core: &Core, psn: Psn, reth: &Reth) {
        let mtu = core.mtu() as u32;
        let found = self.resources.iter().find_map(|resource| {
            let Resource::Read { first, packets, addr, rkey, length, msn } = *resource else {
                return None;
            };
            let skipped = psn.distance_from(first);
            if skipped < 0 || skipped.unsigned_abs() >= packets {
                return None;
            }
            // It asks for the rest of what it had asked for, and no more.
            let done = skipped.unsigned_abs() * mtu;
            let same = reth.virtual_address == addr.wrapping_add(u64::from(done))
                && reth.r_key == rkey
                && reth.dma_length == length - done;
            same.then_some((packets - skipped.unsigned_abs(), msn))
        });
        let Some((packets, msn)) = found else { return };
        // What follows it will be asked for again, too.
        let is_later = |of: Psn| !of.is_before(psn);
        self.responses.retain(|it| match *it {
            Response::Read { psn: of, packets, .. } => of.wrapping_add(packets - 1).is_before(psn),
            Response::Atomic { psn: of, .. } => !is_later(of),
            Response::Ack { .. } => true,
        });
        let (addr, rkey, length) = (reth.virtual_address, reth.r_key, reth.dma_length);
        self.push_again(Response::Read { psn, packets, addr, rkey, length, msn, sent: 0 });
    }

    /// Writes the next packet; false when there is none. An error is the end of the queue pair.
    pub(super) fn transmit(
        &mut self,
        core: &Core,
        cx: &Cx<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<bool, ()> {
        let Some(response) = self.responses.front_mut() else { return Ok(false) };
        match response {
            Response::Ack { psn, syndrome, msn } => {
                head(core, Operation::Acknowledge, *psn, 0, writer);
                writer.put(&Aeth { syndrome: *syndrome, msn: *msn }.to_bytes());
                self.responses.pop_front();
            }
            Response::Atomic { psn, original, msn } => {
                head(core, Operation::AtomicAcknowledge, *psn, 0, writer);
                writer.put(&Aeth { syndrome: Syndrome::ACK, msn: *msn }.to_bytes());
                writer.put(&AtomicAckEth { original: *original }.to_bytes());
                self.responses.pop_front();
            }
            Response::Read { psn, packets, addr, rkey, length, msn, sent } => {
                let (is_first, is_last) = (*sent == 0, *sent + 1 == *packets);
                let operation = match (is_first, is_last) {
                    (true, true) => Operation::ReadResponseOnly,
                    (true, false) => Operation::ReadResponseFirst,
                    (false, false) => Operation::ReadResponseMiddle,
                    (false, true) => Operation::ReadResponseLast,
                };
                let start = *sent * core.mtu() as u32;
                let part = (*length - start).min(core.mtu() as u32) as usize;
                // The key is looked at again: the region may have been closed meanwhile.
                let range = (*rkey, addr.wrapping_add(u64::from(start)), part);
                let opened = match part {
                    0 => None,
                    _ => match cx.regions.open(core.pd, range, AccessFlags::REMOTE_READ) {
                        Ok(opened) => Some(opened),
                        Err(_) => {
                            let (psn, msn) = (psn.wrapping_add(*sent), *msn);
                            let code = Acknowledgement::Nak(NakCode::REMOTE_ACCESS);
                            head(core, Operation::Acknowledge, psn, 0, writer);
                            let syndrome = Syndrome::new(code);
                            writer.put(&Aeth { syndrome, msn }.to_bytes());
                            self.responses.clear();
                            return Err(());
                        }
                    },
                };
                head(core, operation, psn.wrapping_add(*sent), part, writer);
                if is_first || is_last {
                    writer.put(&Aeth { syndrome: Syndrome::ACK, msn: *msn }.to_bytes());
                }
                if let Some((memory, offset)) = opened {
                    memory.read(offset, writer.take(part)).expect("the region lies within it");
                }
                writer.pad();
                *sent += 1;
                if is_last {
                    self.responses.pop_front();
                }
            }
        }
        Ok(true)
    }
}

/// Writes the BTH of a response.
fn head(core: &Core, operation: Operation, psn: Psn, payload: usize, writer: &mut Writer<'_>) {
    let bth = Bth {
        opcode: Opcode::new(ib_wire::packet::Transport::Rc, operation).expect("RC has it"),
        pad_count: (payload.wrapping_neg() & 3) as u8,
        p_key: core.attributes.pkey,
        destination: core.attributes.dest_qp_num,
        psn,
        ..Bth::default()
    };
    writer.put(&bth.to_bytes());
}
