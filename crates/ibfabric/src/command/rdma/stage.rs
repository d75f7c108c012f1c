//! Common parts of the RDMA programs: the HCA, buffers, completions.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use ib_attach::AttachOptions;
use ib_cm::ConnectionId;
use ib_control::capture::Captures;
use ib_daemons::adapter::{self, PortOptions, name_service};
use ib_daemons::own_capture::Tracing;
use ib_device::{Device, DeviceOptions, Endpoint, EndpointOptions, Request};
use ib_hca::{
    AccessFlags, CqId, Data, Memory, MrId, PdId, QpCap, QpId, QpInitAttr, QpType, RecvWr,
    RemoteAddress, SendFlags, SendOp, SendWr, Sge, Wc, WcStatus,
};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_types::{Instant, Qpn};

use crate::cli::rdma::{AdapterArgs, LocalAddress};
use crate::cli::values::simulator;
use crate::failure::Failure;

/// The maximum window of a connection: the number of packets that may be in flight. The window bounds the use of
/// the socket buffers.
const WINDOW: u32 = 256;

/// The window that is divided equally among the queue pairs of the program, in packets. The share of a queue pair is
/// raised to [`LEAST_WINDOW`] if it is less, and lowered to [`WINDOW`] if it is more.
const MOST_PACKETS: u32 = 1024;

/// The minimum window of a connection, in packets.
const LEAST_WINDOW: u32 = 8;

/// If no completion arrives for this time, the program fails. Unacknowledged requests fail earlier.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// An HCA with a protection domain and a completion queue.
pub(super) struct Stage {
    pub(super) device: Device,
    pub(super) pd: PdId,
    pub(super) cq: CqId,
    tracing: Tracing<Device>,
    interruption: Option<Interruption>,
}

/// The connections that the program disconnects on SIGINT, SIGTERM or exit.
struct Interruption {
    alarm: Alarm,
    orders: Orders,
    connections: Vec<ConnectionId>,
}

/// Registered memory.
pub(super) struct Buffer {
    pub(super) memory: Arc<Memory>,
    mr: MrId,
    pub(super) key: u32,
}

impl Stage {
    /// Opens the HCA that can reach the given peer. Also returns the peer's address.
    pub(super) fn open_to(
        args: &AdapterArgs,
        local: &LocalAddress,
        peer: &str,
    ) -> Result<(Self, IpAddr), Failure> {
        Self::open_many(args, local, peer, 1)
    }

    /// Like [`Stage::open_to`], for `qps` queue pairs that send concurrently and share the socket buffers.
    pub(super) fn open_many(
        args: &AdapterArgs,
        local: &LocalAddress,
        peer: &str,
        qps: u32,
    ) -> Result<(Self, IpAddr), Failure> {
        let window = (MOST_PACKETS / qps.max(1)).clamp(LEAST_WINDOW, WINDOW);
        let unknown = |expected: &str| Failure::Unusable(format!("{peer}: expected {expected}"));
        if args.attach.is_none() {
            let address = peer.parse().map_err(|_| {
                unknown("an IP address, or --attach for a peer in a simulated fabric")
            })?;
            return Ok((Self::open_with(args, local.from, Some(address), window)?, address));
        }
        let mut this = Self::open_with(args, None, None, window)?;
        if let (Some(_), Ok(address)) = (name_service(args.acm.as_deref()), peer.parse()) {
            // The ACM service can resolve addresses that the simulator does not know, so the simulator is not queried.
            return Ok((this, address));
        }
        let found =
            this.device.find(peer).map_err(|error| doing("querying the simulator", error))?;
        let address = found.ok_or_else(|| {
            unknown("NODE, NODE:PORT, an address, a GID or a LID of the simulated fabric")
        })?;
        Ok((this, address))
    }

    /// Opens the HCA. If the local address is `None`, the route to `peer` determines it.
    pub(super) fn open(
        args: &AdapterArgs,
        local: Option<IpAddr>,
        peer: Option<IpAddr>,
    ) -> Result<Self, Failure> {
        Self::open_with(args, local, peer, WINDOW)
    }

    fn open_with(
        args: &AdapterArgs,
        local: Option<IpAddr>,
        peer: Option<IpAddr>,
        window: u32,
    ) -> Result<Self, Failure> {
        let mut device = match &args.attach {
            Some(_) => adapter::attach(&PortOptions {
                port: attach_options(args).expect("`attach` is set"),
                mtu: args.transport.mtu,
                spin: args.transport.busy_poll_us,
                window: Some(window),
                acm: args.acm.clone(),
            })?,
            None => Self::open_roce(args, local, peer, window)?,
        };
        let pd = device.hca().alloc_pd().map_err(Failure::unusable)?;
        let cq = device.hca().create_cq(1 << 18).map_err(Failure::unusable)?;
        let captures = Captures::new(&mut device).map_err(Failure::unusable)?;
        let tracing = Tracing::start(args.capture.own().as_ref(), captures, &mut device)?;
        Ok(Self { device, pd, cq, tracing, interruption: None })
    }

    fn open_roce(
        args: &AdapterArgs,
        local: Option<IpAddr>,
        peer: Option<IpAddr>,
        window: u32,
    ) -> Result<Device, Failure> {
        let address = match local {
            Some(address) => address,
            None => own_address(peer)?,
        };
        let peer_port = args.transport.peer_udp_port.unwrap_or(args.udp_port);
        if peer == Some(address) && peer_port == args.udp_port {
            let other = match address {
                IpAddr::V4(own) if own.is_loopback() => " such as 127.0.0.2",
                _ => "",
            };
            return Err(Failure::Unusable(format!(
                "{address} is also the local address, and the HCA cannot connect to itself: expected --from ADDR, \
                 another address of this machine{other}"
            )));
        }
        let mut options = DeviceOptions::new(address);
        options.socket.port = args.udp_port;
        options.socket.peer_port = peer_port;
        options.socket.allow_zero_checksum = args.transport.allow_zero_checksum;
        options.mtu = args.transport.mtu;
        options.window = Some(window);
        options.spin = Duration::from_micros(args.transport.busy_poll_us);
        Ok(adapter::open(options)?)
    }

    /// Creates a protection domain for a new client, and returns it. The buffers and queue pairs that are created next
    /// belong to it. The client cannot access memory of another protection domain, even if it knows the memory's rkey.
    pub(super) fn begin_session(&mut self) -> Result<PdId, Failure> {
        self.pd = self.device.hca().alloc_pd().map_err(Failure::unusable)?;
        Ok(self.pd)
    }

    /// Deallocates the protection domain of a client whose objects have been destroyed.
    pub(super) fn end_session(&mut self, pd: PdId) {
        // Deallocating fails only if the protection domain is already deallocated.
        self.device.hca().dealloc_pd(pd).ok();
    }

    /// Allocates and registers memory.
    pub(super) fn buffer(&mut self, length: usize) -> Result<Buffer, Failure> {
        let memory = Memory::zeroed(length).map_err(Failure::unusable)?;
        let (hca, iova) = (self.device.hca(), memory.address());
        let region = (&memory, 0, length);
        let mr = hca.reg_mr(self.pd, region, iova, AccessFlags::ALL).map_err(Failure::unusable)?;
        let key = hca.key(mr).expect("the memory region was registered above");
        Ok(Buffer { memory, mr, key })
    }

    /// Deregisters memory.
    pub(super) fn forget(&mut self, buffer: &Buffer) {
        // Deregistering fails only if the memory is already deregistered.
        self.device.hca().dereg_mr(buffer.mr).ok();
    }

    /// Creates a queue pair.
    pub(super) fn queue_pair(&mut self, sends: u32, receives: u32) -> Result<QpId, Failure> {
        let cap = QpCap { max_send_wr: sends, max_recv_wr: receives, ..QpCap::default() };
        let init =
            QpInitAttr { qp_type: QpType::Rc, send_cq: self.cq, recv_cq: self.cq, srq: None, cap };
        self.device.hca().create_qp(self.pd, &init).map_err(Failure::unusable)
    }

    /// Returns the QPN of an existing queue pair.
    pub(super) fn number(&mut self, qp: QpId) -> Qpn {
        self.device.hca().query_qp(qp).expect("the queue pair exists").0
    }

    /// Accepts a connection request. If this fails, destroys the queue pair and deregisters the buffer.
    pub(super) fn accept(
        &mut self,
        (qp, buffer): (QpId, &Buffer),
        request: &Request,
        options: &EndpointOptions,
    ) -> Result<Endpoint, Failure> {
        self.device.accept(qp, request, options).map_err(|error| {
            self.destroy(qp);
            self.forget(buffer);
            Failure::unusable(error)
        })
    }

    /// Destroys a queue pair.
    pub(super) fn destroy(&mut self, qp: QpId) {
        // The queue pair is in no multicast group, so destroying it fails only if it is already destroyed.
        self.device.hca().destroy_qp(qp).ok();
    }

    pub(super) fn post(
        &mut self,
        qp: QpId,
        (wr_id, signaled): (u64, bool),
        op: SendOp,
        data: Data,
    ) -> Result<(), Failure> {
        let flags = SendFlags { signaled, ..SendFlags::default() };
        let wr = SendWr { wr_id, op, data, flags };
        let now = clock::now();
        self.device.hca().post_send(now, qp, wr).map_err(|error| doing("posting a request", error))
    }

    pub(super) fn post_receive(&mut self, qp: QpId, wr_id: u64, data: Data) -> Result<(), Failure> {
        let (now, wr) = (clock::now(), RecvWr { wr_id, data });
        self.device.hca().post_recv(now, qp, wr).map_err(|error| doing("posting a receive", error))
    }

    /// Returns the next completion, if there is one.
    pub(super) fn poll(&mut self) -> Option<Wc> {
        self.device.hca().poll_cq(self.cq)
    }

    /// Makes the program disconnect `connections` on SIGINT, SIGTERM or exit, so that the other ends release their
    /// resources.
    pub(super) fn end_in_order(&mut self, connections: Vec<ConnectionId>) -> Result<(), Failure> {
        let failed = |error| doing("waiting for signals", error);
        let alarm = Alarm::new().map_err(failed)?;
        let orders = Orders::catch_end(&alarm.bell()).map_err(failed)?;
        self.interruption = Some(Interruption { alarm, orders, connections });
        Ok(())
    }

    /// Processes packets and timers; fails after a signal.
    pub(super) fn progress(&mut self) -> Result<bool, Failure> {
        if let Some(Interruption { orders, .. }) = &mut self.interruption
            && orders.take() == Some(Order::End)
        {
            return Err(Failure::Interrupted(
                "a signal stopped the program before the operation was complete".to_owned(),
            ));
        }
        self.device.progress().map_err(|error| doing("driving the HCA", error))
    }

    /// Waits for a packet, a timer of the HCA or a signal, at most until `until`.
    pub(super) fn wait(&mut self, until: Instant) -> Result<(), Failure> {
        let alarm = self.interruption.as_ref().map(|it| &it.alarm);
        self.device.wait(until, alarm).map_err(|error| doing("driving the HCA", error))
    }

    /// Waits for a completion for at most [`RESPONSE_TIMEOUT`].
    pub(super) fn completion(&mut self, peer: SocketAddr) -> Result<Wc, Failure> {
        self.completion_within(peer, RESPONSE_TIMEOUT)
    }

    /// Waits for a completion for at most `timeout`.
    pub(super) fn completion_within(
        &mut self,
        peer: SocketAddr,
        timeout: Duration,
    ) -> Result<Wc, Failure> {
        let end = clock::now() + timeout;
        loop {
            if let Some(wc) = self.poll() {
                return checked(wc, peer);
            }
            if clock::now() >= end {
                return Err(Failure::Unusable(format!("{peer} does not respond")));
            }
            if !self.progress()? {
                self.gone(peer)?;
                self.wait(end)?;
            }
        }
    }

    /// Keeps processing packets for the given time, to retransmit replies that the other end did not receive.
    pub(super) fn linger(&mut self, time: Duration) -> Result<(), Failure> {
        let end = clock::now() + time;
        while clock::now() < end {
            if !self.progress()? {
                self.wait(end)?;
            }
        }
        Ok(())
    }

    /// Fails if the other end has disconnected.
    pub(super) fn gone(&mut self, peer: SocketAddr) -> Result<(), Failure> {
        while let Some(event) = self.device.poll_event() {
            if event.disconnected().is_some() {
                return Err(Failure::Unusable(format!("{peer} has disconnected")));
            }
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for id in self.interruption.iter().flat_map(|it| &it.connections) {
            // Disconnecting fails only if the connection has already ended.
            self.device.cm().disconnect(clock::now(), *id, b"").ok();
        }
        self.device.flush();
        self.tracing.finish(&mut self.device);
    }
}

impl Buffer {
    pub(super) fn sge(&self, offset: usize, length: usize) -> Sge {
        let addr = self.memory.address() + offset as u64;
        Sge { addr, length: length as u32, lkey: self.key }
    }

    pub(super) fn data(&self, offset: usize, length: usize) -> Data {
        if length == 0 { Data::None } else { Data::One(self.sge(offset, length)) }
    }

    pub(super) fn remote(&self) -> RemoteAddress {
        RemoteAddress { addr: self.memory.address(), rkey: self.key }
    }
}

/// Returns the completion `wc` if it is successful, and an error if its work request failed.
pub(super) fn checked(wc: Wc, peer: SocketAddr) -> Result<Wc, Failure> {
    if wc.status == WcStatus::Success {
        return Ok(wc);
    }
    let status = wc.status;
    Err(Failure::Unusable(format!("{peer}: a work request failed with {status:?}")))
}

/// Returns the port of a simulated fabric that the options specify, if any.
pub(super) fn attach_options(args: &AdapterArgs) -> Option<AttachOptions> {
    let name = args.attach.as_deref().map(simulator)?;
    Some(AttachOptions { name, node: args.node.clone() })
}

/// Returns the failure with the message "activity: error".
pub(super) fn doing(what: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Unusable(format!("{what}: {error}"))
}

/// Returns the local address of the route to a peer, or of the default route if `peer` is `None`.
pub(super) fn own_address(peer: Option<IpAddr>) -> Result<IpAddr, Failure> {
    let failed = |error| doing("finding the local address (see --listen)", error);
    let (any, to): (IpAddr, IpAddr) = match peer {
        Some(peer @ IpAddr::V4(_)) => (Ipv4Addr::UNSPECIFIED.into(), peer),
        Some(peer @ IpAddr::V6(_)) => (Ipv6Addr::UNSPECIFIED.into(), peer),
        // The address is reserved for documentation. Only its route is looked up, and no packet is sent to it.
        None => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
    };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    socket.connect((to, 4791)).map_err(failed)?;
    Ok(socket.local_addr().map_err(failed)?.ip())
}
