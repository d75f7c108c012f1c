//! Clients of `rdma bw` and `rdma lat`.

use ib_device::{Endpoint, EndpointOptions, Request};
use ib_hca::{AccessFlags, RemoteAddress, SendOp, Wc, WcOpcode};

use super::super::perf::{Answer, Kind, Offer};
use super::super::stage::{Buffer, Stage};
use crate::failure::{Failure, say};

/// Number of receives that are posted for each client.
const RECEIVES: u32 = 1024;

/// A client of `ibfabric`, with the resources that the server holds for it.
pub(super) struct Ours {
    pub(super) endpoint: Endpoint,
    pub(super) buffer: Buffer,
    offer: Offer,
    /// Number of replies that the server has posted for this client.
    answered: u64,
}

impl Ours {
    /// Accepts a client whose buffers fit into `room` bytes. Receives are posted before the connection is
    /// established.
    pub(super) fn accept(
        stage: &mut Stage,
        request: &Request,
        room: usize,
    ) -> Result<Self, Failure> {
        let offer = Offer::parse(request.private_data())?;
        if 2 * offer.size as usize > room {
            let message =
                format!("its buffers exceed the {room} bytes of buffer memory that are left");
            return Err(Failure::Unusable(message));
        }
        let qp = stage.queue_pair(RECEIVES, RECEIVES)?;
        stage.device.prepare(qp, AccessFlags::ALL).map_err(Failure::unusable)?;
        let buffer = stage.buffer(2 * offer.size.max(1) as usize)?;
        if matches!(offer.kind, Kind::SendBandwidth | Kind::SendLatency) {
            for _ in 0..RECEIVES {
                stage.post_receive(qp, 0, buffer.data(0, offer.size as usize))?;
            }
        }
        let answer = Answer { remote: buffer.remote() };
        let options = EndpointOptions {
            private_data: answer.to_bytes().to_vec(),
            ..EndpointOptions::default()
        };
        let endpoint = stage.accept((qp, &buffer), request, &options)?;
        Ok(Self { endpoint, buffer, offer, answered: 0 })
    }

    /// Returns true if the client sends RDMA WRITEs and expects replies, so that the buffer has to be polled.
    pub(super) fn is_watched(&self) -> bool {
        self.offer.kind == Kind::WriteLatency
    }

    /// Processes a completion.
    pub(super) fn advance(&mut self, stage: &mut Stage, wc: &Wc) -> Result<(), Failure> {
        match wc.opcode {
            WcOpcode::Recv | WcOpcode::RecvRdmaWithImm => self.received(stage),
            _ => Ok(()),
        }
    }

    /// Processes a received message: posts a new receive, and replies if the client measures the latency of SENDs.
    fn received(&mut self, stage: &mut Stage) -> Result<(), Failure> {
        let (qp, size) = (self.endpoint.qp, self.offer.size as usize);
        stage.post_receive(qp, 0, self.buffer.data(0, size))?;
        if self.offer.kind == Kind::SendLatency {
            self.answered += 1;
            let signaled = self.answered.is_multiple_of(u64::from(RECEIVES / 2));
            let data = self.buffer.data(size, size);
            stage.post(qp, (0, signaled), SendOp::Send { imm: None }, data)?;
        }
        Ok(())
    }

    /// Polls for the client's next RDMA WRITE, whose last byte is the number of the write. If it has arrived, replies
    /// and returns true.
    pub(super) fn watch(&mut self, stage: &mut Stage) -> bool {
        let size = self.offer.size as usize;
        let expected = (self.answered + 1) as u8;
        let last =
            self.buffer.memory.to_vec(size - 1, 1).expect("the range is within the region")[0];
        if last != expected {
            return false;
        }
        self.answered += 1;
        self.buffer.memory.fill(2 * size - 1, 1, expected).expect("the range is within the region");
        let addr = self.offer.remote.addr.wrapping_add(size as u64);
        let to = RemoteAddress { addr, ..self.offer.remote };
        let signaled = self.answered.is_multiple_of(u64::from(RECEIVES / 2));
        let data = self.buffer.data(size, size);
        let op = SendOp::Write { to, imm: None };
        // An error of one client's queue pair is only printed, since other clients are not affected.
        if let Err(error) = stage.post(self.endpoint.qp, (0, signaled), op, data) {
            say!("{}: {}", self.endpoint.peer, error.into_message());
        }
        true
    }
}
