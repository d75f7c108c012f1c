//! `rdma serve`: clients of `rdma bw` and `rdma lat`, and of rping.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ib_hca::cm::ConnectionId;
use ib_hca::{QpId, RemoteAddress, SendOp, Wc, WcOpcode, WcStatus};
use ib_net::alarm::Alarm;
use ib_net::clock;
use ib_net::console::ConsoleServer;
use ib_net::device::{Device, DeviceEvent, Endpoint, EndpointOptions, Request};
use ib_net::signals::{Order, Orders};
use ib_types::{Instant, Qpn};

use super::devinfo::{self, Info};
use super::perf::{Answer, Kind, Offer};
use super::rping::Pinged;
use super::stage::{Buffer, Stage, doing};
use crate::cli::rdma::{RPING_PORT, ServeArgs};
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

/// How many receives a client of ours has.
const RECEIVES: u32 = 1024;

/// How much memory the clients may have together, in bytes.
const MOST_MEMORY: usize = 4 << 30;

/// What serves a client.
enum Service {
    Ours(Ours),
    Ping(Pinged),
}

/// A client of ours.
struct Ours {
    endpoint: Endpoint,
    buffer: Buffer,
    offer: Offer,
    /// How many messages were answered.
    answered: u64,
}

struct Server<'a> {
    args: &'a ServeArgs,
    stage: Stage,
    clients: BTreeMap<Qpn, Service>,
    by_connection: BTreeMap<ConnectionId, Qpn>,
    gone: u64,
}

pub(super) fn run(args: &ServeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut stage = Stage::open(&args.adapter, None)?;
    let listening = |port: u16| move |error| doing(&format!("listening at port {port}"), error);
    stage.device.listen(args.port).map_err(listening(args.port))?;
    if args.rping || args.rping_port != RPING_PORT {
        stage.device.listen(args.rping_port).map_err(listening(args.rping_port))?;
    }
    let failed = |error| doing("waiting for signals", error);
    let alarm = Alarm::new().map_err(failed)?;
    let mut orders = Orders::catch(&alarm.bell()).map_err(failed)?;
    let asked = listen_to_devinfo(&stage, &alarm);
    writeln!(out, "READY {}", stage.device.address())?;
    out.flush()?;
    let mut server =
        Server { args, stage, clients: BTreeMap::new(), by_connection: BTreeMap::new(), gone: 0 };
    while args.clients.is_none_or(|most| server.gone < most) {
        let moved = server.work(out)?;
        for reply in asked.try_iter() {
            let told = serde_json::to_string(&Info::of(&mut server.stage.device));
            // Who does not wait any more does not want to know.
            let _ = reply.send(told.expect("it is plain"));
        }
        if moved {
            continue;
        }
        alarm.silence();
        if let Some(Order::End) = orders.take() {
            break;
        }
        if !server.watches_memory() {
            let waited = server.stage.device.wait(Instant::NEVER, Some(&alarm));
            waited.map_err(|error| doing("driving the adapter", error))?;
        }
    }
    // Who has just ended the connection hears of it.
    let end = clock::now() + Duration::from_millis(200);
    while clock::now() < end {
        if !server.stage.progress()? {
            server.stage.wait(end)?;
        }
    }
    Ok(Verdict::Good)
}

/// Has `rdma devinfo` of other processes answered; each question comes with the way of its answer.
fn listen_to_devinfo(stage: &Stage, alarm: &Alarm) -> Receiver<SyncSender<String>> {
    let (asks, asked) = sync_channel::<SyncSender<String>>(16);
    let (bell, device) = (alarm.bell(), &stage.device);
    let name = devinfo::console(device.address(), device.port());
    let served = ConsoleServer::bind(&name).and_then(|server| {
        server.serve(move |line| {
            if line != devinfo::QUESTION {
                return format!("expected {:?}", devinfo::QUESTION);
            }
            let (reply, answer) = sync_channel(1);
            if asks.send(reply).is_err() {
                return String::new();
            }
            bell.ring();
            answer.recv_timeout(Duration::from_secs(2)).unwrap_or_default()
        })
    });
    if let Err(error) = served {
        say!("`rdma devinfo` cannot ask this process: {error}");
    }
    asked
}

impl Server<'_> {
    /// Does what there is to do; returns whether there was anything.
    fn work(&mut self, out: &mut Output) -> Result<bool, Failure> {
        let mut moved = self.stage.progress()?;
        while let Some(event) = self.stage.device.poll_event() {
            moved = true;
            self.take(event)?;
        }
        while let Some(wc) = self.stage.poll() {
            moved = true;
            self.complete(&wc, out)?;
        }
        Ok(self.watch() || moved)
    }

    fn take(&mut self, event: DeviceEvent) -> Result<(), Failure> {
        if let Some(id) = event.disconnected() {
            self.end(id);
            return Ok(());
        }
        let Ok(request) = Device::request(event) else { return Ok(()) };
        if let Err(error) = self.accept(&request) {
            say!("{}: {}", request.peer, error.into_message());
            // It may be gone by itself.
            self.stage.device.reject(&request, b"").ok();
        }
        Ok(())
    }

    fn accept(&mut self, request: &Request) -> Result<(), Failure> {
        let is_ping =
            request.port() == Some(self.args.rping_port) && self.args.rping_port != self.args.port;
        let service = if is_ping { self.accept_ping(request)? } else { self.accept_ours(request)? };
        let endpoint = service.endpoint();
        if self.args.verbose {
            say!("{} has connected, MTU {}", endpoint.peer, endpoint.mtu.bytes());
        }
        let (qp, connection) = (endpoint.qp, endpoint.connection);
        let (number, ..) = self.stage.device.hca().query_qp(qp).expect("it was just made");
        self.by_connection.insert(connection, number);
        self.clients.insert(number, service);
        Ok(())
    }

    fn accept_ping(&mut self, request: &Request) -> Result<Service, Failure> {
        let qp = self.stage.queue_pair(16, 4)?;
        let ready = self.init(qp).and_then(|()| Pinged::prepare(&mut self.stage, qp));
        let options = EndpointOptions {
            responder_resources: 1,
            initiator_depth: 1,
            ..EndpointOptions::default()
        };
        let accepted = ready.and_then(|buffer| {
            let accepted = self.stage.device.accept(qp, request, &options);
            Ok((accepted.map_err(Failure::unusable)?, buffer))
        });
        match accepted {
            Ok((endpoint, buffer)) => Ok(Service::Ping(Pinged::new(endpoint, buffer))),
            Err(error) => {
                self.destroy(qp);
                Err(error)
            }
        }
    }

    fn accept_ours(&mut self, request: &Request) -> Result<Service, Failure> {
        let offer = Offer::parse(request.private_data())?;
        let qp = self.stage.queue_pair(RECEIVES, RECEIVES)?;
        let accepted = self.prepare_ours(qp, &offer).and_then(|buffer| {
            let answer = Answer { remote: buffer.remote() };
            let options = EndpointOptions {
                private_data: answer.to_bytes().to_vec(),
                ..EndpointOptions::default()
            };
            let accepted = self.stage.device.accept(qp, request, &options);
            Ok((accepted.map_err(Failure::unusable)?, buffer))
        });
        match accepted {
            Ok((endpoint, buffer)) => {
                Ok(Service::Ours(Ours { endpoint, buffer, offer, answered: 0 }))
            }
            Err(error) => {
                self.destroy(qp);
                Err(error)
            }
        }
    }

    /// A queue pair gets receives before it is connected.
    fn prepare_ours(&mut self, qp: QpId, offer: &Offer) -> Result<Buffer, Failure> {
        let taken: usize = self.clients.values().map(|it| it.buffer().memory.len()).sum();
        if taken + 2 * offer.size as usize > MOST_MEMORY {
            let message = format!("the buffers of all clients may have {MOST_MEMORY} bytes together");
            return Err(Failure::Unusable(message));
        }
        self.init(qp)?;
        let buffer = self.stage.buffer(2 * offer.size.max(1) as usize)?;
        if matches!(offer.kind, Kind::SendBandwidth | Kind::SendLatency) {
            for _ in 0..RECEIVES {
                self.stage.post_receive(qp, 0, buffer.data(0, offer.size as usize))?;
            }
        }
        Ok(buffer)
    }

    fn init(&mut self, qp: QpId) -> Result<(), Failure> {
        self.stage.device.prepare(qp, ib_hca::AccessFlags::ALL).map_err(Failure::unusable)
    }

    fn destroy(&mut self, qp: QpId) {
        // It is there, and in no group.
        self.stage.device.hca().destroy_qp(qp).ok();
    }

    /// A client has gone.
    fn end(&mut self, id: ConnectionId) {
        let number = self.by_connection.remove(&id);
        let Some(service) = number.and_then(|number| self.clients.remove(&number)) else { return };
        self.gone += 1;
        let endpoint = service.endpoint();
        if self.args.verbose {
            say!("{} has gone", endpoint.peer);
        }
        let qp = endpoint.qp;
        self.destroy(qp);
        self.stage.forget(service.buffer());
    }

    fn complete(&mut self, wc: &Wc, out: &mut Output) -> Result<(), Failure> {
        let Some(service) = self.clients.get_mut(&wc.qp_num) else { return Ok(()) };
        if wc.status != WcStatus::Success {
            if wc.status != WcStatus::WrFlushErr {
                say!("{}: {:?}", service.endpoint().peer, wc.status);
            }
            return Ok(());
        }
        match service {
            Service::Ping(pinged) => match pinged.advance(&mut self.stage, wc) {
                Ok(Some(text)) if self.args.verbose => {
                    writeln!(out, "server ping data: {text}")?;
                    out.flush()?;
                }
                Ok(_) => {}
                Err(error) => say!("{}", error.into_message()),
            },
            Service::Ours(ours) => {
                // A client that breaks its own rules ends nobody else's.
                if wc.opcode == WcOpcode::Recv
                    && let Err(error) = ours.received(&mut self.stage)
                {
                    say!("{}: {}", ours.endpoint.peer, error.into_message());
                }
            }
        }
        Ok(())
    }

    /// Returns whether somebody writes into memory and waits to be answered.
    fn watches_memory(&self) -> bool {
        self.clients.values().any(|service| {
            matches!(service, Service::Ours(ours) if ours.offer.kind == Kind::WriteLatency)
        })
    }

    /// Answers what was written.
    fn watch(&mut self) -> bool {
        let mut moved = false;
        for service in self.clients.values_mut() {
            if let Service::Ours(ours) = service
                && ours.offer.kind == Kind::WriteLatency
            {
                moved |= ours.watch(&mut self.stage);
            }
        }
        moved
    }
}

impl Service {
    const fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Ours(ours) => &ours.endpoint,
            Self::Ping(pinged) => &pinged.endpoint,
        }
    }

    const fn buffer(&self) -> &Buffer {
        match self {
            Self::Ours(ours) => &ours.buffer,
            Self::Ping(pinged) => &pinged.buffer,
        }
    }
}

impl Ours {
    /// A message has come.
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

    /// Looks at the last byte of what is written, which counts, and answers a new one.
    fn watch(&mut self, stage: &mut Stage) -> bool {
        let size = self.offer.size as usize;
        let expected = (self.answered + 1) as u8;
        let last = self.buffer.memory.to_vec(size - 1, 1).expect("it has that size")[0];
        if last != expected {
            return false;
        }
        self.answered += 1;
        self.buffer.memory.fill(2 * size - 1, 1, expected).expect("it has that size");
        let addr = self.offer.remote.addr.wrapping_add(size as u64);
        let to = RemoteAddress { addr, ..self.offer.remote };
        let signaled = self.answered.is_multiple_of(u64::from(RECEIVES / 2));
        let data = self.buffer.data(size, size);
        let op = SendOp::Write { to, imm: None };
        if let Err(error) = stage.post(self.endpoint.qp, (0, signaled), op, data) {
            say!("{}: {}", self.endpoint.peer, error.into_message());
        }
        true
    }
}
