//! The client of perftest's protocol.

use std::net::SocketAddr;
use std::time::Duration;

use ib_device::{ConnectError, Endpoint, EndpointOptions, gid_of};
use ib_hca::{AccessFlags, QpId, RemoteAddress, SendOp, WcOpcode};
use ib_wire::mad::cm::RejectReason;

pub(in super::super) use super::wire::Rates;
use super::wire::{Keys, check, opening};
use super::{OPENING, Step};
use crate::cli::rdma::PerftestArg;
use crate::command::rdma::stage::{Buffer, Stage};
use crate::failure::Failure;

/// If the server does not reply within this time, the client fails.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum number of connection requests that the client sends while the server does not listen yet.
const ATTEMPTS: u32 = 100;

/// The pause after each rejected connection request.
const PAUSE: Duration = Duration::from_millis(100);

/// Offsets within the control connection's buffer at which received and sent messages are stored.
const IN: usize = 0;
const OUT: usize = 64;

/// The control connection to a server of perftest's protocol.
pub(in super::super) struct Control {
    pub(in super::super) endpoint: Endpoint,
    buffer: Buffer,
    program: PerftestArg,
    peer: SocketAddr,
    options: EndpointOptions,
}

impl Control {
    /// Connects to a server, and checks that it is a program of perftest.
    pub(in super::super) fn open(
        stage: &mut Stage,
        program: PerftestArg,
        peer: SocketAddr,
        options: EndpointOptions,
    ) -> Result<Self, Failure> {
        let qp = stage.queue_pair(4, 4)?;
        stage.device.prepare(qp, AccessFlags::default()).map_err(Failure::unusable)?;
        let buffer = stage.buffer(2 * OUT)?;
        stage.post_receive(qp, 0, buffer.data(IN, OUT))?;
        let without =
            EndpointOptions { responder_resources: 0, initiator_depth: 0, ..options.clone() };
        let endpoint = stage.device.connect(qp, peer, &without).map_err(Failure::unusable)?;
        let this = Self { endpoint, buffer, program, peer, options };
        let mtu = stage.device.connection_mtu();
        for step in OPENING {
            this.exchange(stage, step, &opening(step, mtu))?;
        }
        Ok(this)
    }

    /// Makes a measured connection for `qp`. Retries while the server does not listen for measured connections yet.
    pub(in super::super) fn connect(
        &self,
        stage: &mut Stage,
        qp: QpId,
    ) -> Result<Endpoint, Failure> {
        for _ in 0..ATTEMPTS {
            match stage.device.connect(qp, self.peer, &self.options) {
                Err(ConnectError::Rejected {
                    reason: RejectReason::INVALID_SERVICE_ID, ..
                }) => stage.linger(PAUSE)?,
                connected => return connected.map_err(Failure::unusable),
            }
        }
        let peer = self.peer;
        Err(Failure::Unusable(format!("{peer} does not listen for the connections to measure")))
    }

    /// Exchanges [`Keys`] for each queue pair. Returns the address and rkey of the server's buffer for each queue pair.
    /// `own` is the client's buffer, to which the server writes.
    pub(in super::super) fn meet(
        &self,
        stage: &mut Stage,
        endpoints: &[Endpoint],
        own: RemoteAddress,
    ) -> Result<Vec<RemoteAddress>, Failure> {
        self.exchange(stage, Step::Met, &Keys::default().to_bytes())?;
        let mut found = vec![RemoteAddress { addr: 0, rkey: 0 }; endpoints.len()];
        for step in self.program.meeting(endpoints.len()) {
            let Step::Keys(at) = step else { unreachable!("all steps of `meeting` exchange keys") };
            let keys = Keys {
                out_reads: self.options.initiator_depth.into(),
                qpn: stage.number(endpoints[at].qp).get(),
                rkey: own.rkey,
                vaddr: own.addr,
                gid: gid_of(stage.device.address()).0,
                ..Keys::default()
            };
            let answer = Keys::parse(&self.exchange(stage, step, &keys.to_bytes())?);
            let hca = stage.device.hca();
            let (_, _, attributes) = hca.query_qp(endpoints[at].qp).expect("the queue pair exists");
            let (found_qpn, expected) = (answer.qpn, attributes.dest_qp_num.get());
            if found_qpn != expected {
                return Err(self.wrong(&format!(
                    "found the keys of queue pair {found_qpn:#x}, expected {expected:#x}"
                )));
            }
            found[at] = RemoteAddress { addr: answer.vaddr, rkey: answer.rkey };
        }
        Ok(found)
    }

    /// Performs the steps that follow the measurement, such as reporting the result to the server.
    pub(in super::super) fn part(&self, stage: &mut Stage, rates: &Rates) -> Result<(), Failure> {
        for step in self.program.parting() {
            let message = match step {
                Step::Report(at) => rates.number(at).to_vec(),
                _ => vec![0; step.length()],
            };
            self.exchange(stage, step, &message)?;
        }
        Ok(())
    }

    /// Sends the message of a step, and waits for the reply.
    fn exchange(&self, stage: &mut Stage, step: Step, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let (qp, name) = (self.endpoint.qp, step.name());
        self.buffer.memory.write(OUT, message).expect("the range is within the region");
        let data = self.buffer.data(OUT, message.len());
        stage.post(qp, (0, false), SendOp::Send { imm: None }, data)?;
        let number = stage.number(qp);
        let received = loop {
            let wc = stage.completion_within(self.peer, RESPONSE_TIMEOUT).map_err(|error| {
                let message = error.into_message();
                Failure::Unusable(format!("{message}, after {name} of perftest was sent"))
            })?;
            // Completions of the measured queue pairs can arrive before the server's reply. They are ignored.
            if wc.opcode == WcOpcode::Recv && wc.qp_num == number {
                break wc;
            }
        };
        let answer = self.buffer.memory.to_vec(IN, received.byte_len as usize);
        let answer = answer.expect("the range is within the region");
        stage.post_receive(qp, 0, self.buffer.data(IN, OUT))?;
        check(step, &answer).map_err(|error| self.wrong(&error))?;
        Ok(answer)
    }

    fn wrong(&self, what: &str) -> Failure {
        Failure::Unusable(format!("{}: {what}", self.peer))
    }
}
