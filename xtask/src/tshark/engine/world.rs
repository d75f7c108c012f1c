//! Two HCAs with their connection managers, connected by a lossless wire.

use super::*;

/// One of the two HCAs.
struct Side {
    hca: Hca,
    cm: Cm,
    pd: PdId,
    cq: CqId,
    memory: std::sync::Arc<Memory>,
    key: u32,
    /// Statuses of unsuccessful completions.
    failed: Vec<WcStatus>,
}

pub(super) struct World {
    now: Instant,
    gids: [Gid; 2],
    sides: [Side; 2],
    /// All packets, each with the index of the HCA that has sent it.
    pub(super) packets: Vec<(usize, Vec<u8>)>,
}

const ADDRESS: u64 = 0x7f00_0000_1000;
const MTU: u32 = 256;

impl World {
    pub(super) fn new(gids: [Gid; 2]) -> Fallible<Self> {
        let side = |number: u8| -> Fallible<Side> {
            let guid = Guid(0x0002_c903_0000_0010 + u64::from(number));
            let config = HcaConfig::new(guid, vec![gids[usize::from(number)]]);
            let mut hca = Hca::new(config, [number + 1; 32]);
            let cm = CmConfig { ca_guid: guid, ..CmConfig::default() };
            let cm = Cm::new(cm, [number + 3; 32]);
            let (pd, cq) = (hca.alloc_pd()?, hca.create_cq(1024)?);
            let memory = Memory::zeroed(8192)?;
            memory.fill(0, 4096, 0xa5 ^ number)?;
            let mr = hca.reg_mr(pd, (&memory, 0, 8192), ADDRESS, AccessFlags::ALL)?;
            let key = hca.key(mr).ok_or("the memory region is missing")?;
            Ok(Side { hca, cm, pd, cq, memory, key, failed: Vec::new() })
        };
        let sides = [side(0)?, side(1)?];
        Ok(Self { now: Instant::from_nanos(1000), gids, sides, packets: Vec::new() })
    }

    fn route(&self, from: usize) -> Route {
        Route {
            source: self.gids[from],
            destination: self.gids[1 - from],
            is_global: true,
            ..Route::default()
        }
    }

    /// Delivers packets until no HCA sends another packet.
    fn carry(&mut self) {
        let mut buffer = vec![0; MAX_PACKET];
        loop {
            let before = self.packets.len();
            for from in [0, 1] {
                let side = &mut self.sides[from];
                while let Some((route, mad)) = side.cm.poll_transmit() {
                    side.hca.send_mad(route, mad);
                }
                while let Some(sent) = self.sides[from].hca.poll_transmit(self.now, &mut buffer) {
                    let bytes = buffer[..sent.length].to_vec();
                    let back = self.route(1 - from);
                    self.sides[1 - from].hca.handle(self.now, &back, &bytes);
                    self.packets.push((from, bytes));
                }
            }
            for side in &mut self.sides {
                while let Some(event) = side.hca.poll_event() {
                    if let ib_hca::HcaEvent::Mad { route, mad, .. } = event {
                        side.cm.handle(self.now, &route, &mad);
                    }
                }
                while let Some(wc) = side.hca.poll_cq(side.cq) {
                    let status = Some(wc.status).filter(|&status| status != WcStatus::Success);
                    side.failed.extend(status);
                }
            }
            if self.packets.len() == before {
                return;
            }
        }
    }

    /// Delivers packets until no HCA sends another packet and no timer is running.
    fn run(&mut self) {
        self.carry();
        while let Some(at) = self.sides.iter().filter_map(|side| side.hca.poll_timeout()).min() {
            self.now = self.now.max(at);
            for side in &mut self.sides {
                side.hca.handle_timeout(self.now);
            }
            self.carry();
        }
    }

    /// Connects and disconnects queue pairs with CM messages. Then rejects a connection.
    pub(super) fn manage(&mut self) -> Fallible<()> {
        let (port, psn) = (7471, Psn::truncated(0x12_3456));
        self.sides[1].cm.listen_cm(PortSpace::TCP, port)?;
        let [source, destination] =
            self.gids.map(|gid| std::net::Ipv6Addr::from(gid.to_bytes()).to_canonical());
        let cma = CmaHeader { source: (source, 0x1234).into(), destination };
        let service = ServiceId::port(PortSpace::TCP, port);
        for accepts in [true, false] {
            let params = ConnectParams {
                responder_resources: 3,
                initiator_depth: 5,
                rnr_retry_count: 6,
                cma: Some(cma),
                private_data: b"hello".to_vec(),
                ..ConnectParams::new(self.route(0), service, Qpn::truncated(0x1_2345), psn)
            };
            let id = self.sides[0].cm.connect(self.now, &params)?;
            self.carry();
            let requested = match self.sides[1].cm.poll_event() {
                Some(CmEvent::Requested(requested)) => requested.id,
                other => {
                    return Err(format!("expected a connection request, found {other:?}").into());
                }
            };
            if !accepts {
                let reason = RejectReason::CONSUMER;
                self.sides[1].cm.reject(self.now, requested, reason, b"no")?;
                self.carry();
                continue;
            }
            let params = AcceptParams {
                responder_resources: 4,
                initiator_depth: 2,
                ..AcceptParams::new(Qpn::truncated(0x5_4321), Psn::truncated(0x65_4321))
            };
            self.sides[1].cm.accept(self.now, requested, &params)?;
            self.carry();
            self.sides[0].cm.established(id, b"")?;
            self.carry();
            self.sides[0].cm.disconnect(self.now, id, b"")?;
            self.carry();
            for side in &mut self.sides {
                while side.cm.poll_event().is_some() {}
            }
        }
        Ok(())
    }

    /// Creates a queue pair on each HCA, and changes both to RTS. RC and UC queue pairs are connected with each other.
    fn connect(&mut self, qp_type: QpType) -> Fallible<[QpId; 2]> {
        let mut create = |side: usize| {
            let Side { hca, pd, cq, .. } = &mut self.sides[side];
            let (send_cq, recv_cq) = (*cq, *cq);
            let cap = QpCap::default();
            hca.create_qp(*pd, &QpInitAttr { qp_type, send_cq, recv_cq, srq: None, cap })
        };
        let qps = [create(0)?, create(1)?];
        let psns = [0xff_fff0, 0x10_0000].map(Psn::truncated);
        let (is_connected, is_reliable) = (qp_type != QpType::Ud, qp_type == QpType::Rc);
        let to = |state| QpAttr { qp_state: Some(state), ..QpAttr::default() };
        for side in [0, 1] {
            let (peer, ..) = self.sides[1 - side]
                .hca
                .query_qp(qps[1 - side])
                .ok_or("the peer has no such queue pair")?;
            let route = self.route(side);
            let init = QpAttr {
                pkey: Some(PKey::DEFAULT),
                qkey: (!is_connected).then_some(QKey(0x1111)),
                qp_access_flags: is_connected.then_some(AccessFlags::ALL),
                ..to(QpState::Init)
            };
            let rtr = QpAttr {
                route: is_connected.then_some(route),
                path_mtu: is_connected.then_some(Mtu::B256),
                dest_qp_num: is_connected.then_some(peer),
                rq_psn: is_connected.then_some(psns[1 - side]),
                max_dest_rd_atomic: is_reliable.then_some(4),
                min_rnr_timer: is_reliable.then_some(12),
                ..to(QpState::Rtr)
            };
            let rts = QpAttr {
                sq_psn: Some(psns[side]),
                timeout: is_reliable.then_some(14),
                retry_cnt: is_reliable.then_some(7),
                rnr_retry: is_reliable.then_some(7),
                max_rd_atomic: is_reliable.then_some(4),
                ..to(QpState::Rts)
            };
            for attr in [init, rtr, rts] {
                self.sides[side].hca.modify_qp(self.now, qps[side], &attr)?;
            }
        }
        Ok(qps)
    }

    fn data(&self, side: usize, length: u32) -> Data {
        Data::One(Sge { addr: ADDRESS, length, lkey: self.sides[side].key })
    }

    fn send(&mut self, side: usize, qp: QpId, op: SendOp, data: Data) -> Fallible<()> {
        let flags = SendFlags { solicited: true, ..SendFlags::default() };
        let wr = SendWr { wr_id: 1, op, data, flags };
        Ok(self.sides[side].hca.post_send(self.now, qp, wr)?)
    }

    fn receive(&mut self, qp: QpId) -> Fallible<()> {
        let data = self.data(1, 4096);
        Ok(self.sides[1].hca.post_recv(self.now, qp, RecvWr { wr_id: 2, data })?)
    }

    /// Performs all operations of reliable connections. The last operation has a wrong R_Key and must fail.
    pub(super) fn reliable(&mut self) -> Fallible<()> {
        let qps = self.connect(QpType::Rc)?;
        let there = RemoteAddress { addr: ADDRESS + 0x10, rkey: self.sides[1].key };
        for (number, length) in (1..).zip([0, 1, 6, MTU, 3 * MTU - 1]) {
            let data = self.data(0, length);
            for imm in [None, Some(0xdead_beef)] {
                self.send(0, qps[0], SendOp::Write { to: there, imm }, data.clone())?;
                // No receive request is posted for the first SEND, which causes an RNR NAK.
                self.send(0, qps[0], SendOp::Send { imm }, data.clone())?;
                self.carry();
                self.receive(qps[1])?;
                self.receive(qps[1])?;
                self.run();
            }
            self.send(0, qps[0], SendOp::Read { from: there }, data.clone())?;
            let side = &mut self.sides[1];
            let mr = side.hca.alloc_mr(side.pd)?;
            let with = Registration {
                mr,
                key: number,
                memory: side.memory.clone(),
                offset: 0,
                length: 64,
                iova: 0,
                access: AccessFlags::ALL,
            };
            let rkey =
                side.hca.key(mr).ok_or("the memory region is missing")? & !0xff | u32::from(number);
            self.send(1, qps[1], SendOp::Register(Box::new(with)), Data::None)?;
            self.receive(qps[1])?;
            self.run();
            self.send(0, qps[0], SendOp::SendInvalidate { rkey }, data)?;
            self.run();
        }
        let (at, data) = (there, self.data(0, 8));
        self.send(0, qps[0], SendOp::FetchAdd { at, add: 0x11 << 56 | 5 }, data.clone())?;
        let (compare, swap) = (0x22 << 56, 0x33 << 56);
        self.send(0, qps[0], SendOp::CompareSwap { at, compare, swap }, data.clone())?;
        self.run();
        if let Some(status) = self.sides.iter().flat_map(|side| &side.failed).next() {
            return Err(format!("a request has completed with {status:?}").into());
        }
        let to = RemoteAddress { rkey: !there.rkey, ..there };
        self.send(0, qps[0], SendOp::Write { to, imm: None }, data)?;
        self.run();
        let failed = &self.sides[0].failed;
        if failed[..] == [WcStatus::RemAccessErr] {
            return Ok(());
        }
        Err(format!("a request with a wrong R_Key has completed with {failed:?}").into())
    }

    /// Performs all operations of unreliable connections and datagrams.
    pub(super) fn unreliable(&mut self) -> Fallible<()> {
        let (connected, datagrams) = (self.connect(QpType::Uc)?, self.connect(QpType::Ud)?);
        let (remote_qpn, ..) =
            self.sides[1].hca.query_qp(datagrams[1]).ok_or("the queue pair is missing")?;
        let (route, pd) = (self.route(0), self.sides[0].pd);
        let ah: AhId = self.sides[0].hca.create_ah(pd, route)?;
        let way = UdDestination { ah, remote_qpn, remote_qkey: QKey(0x1111) };
        let there = RemoteAddress { addr: ADDRESS, rkey: self.sides[1].key };
        for length in [0, 5, MTU, 2 * MTU + 2] {
            for imm in [None, Some(0x0102_0304)] {
                let data = self.data(0, length);
                for qp in [connected[1], connected[1], datagrams[1]] {
                    self.receive(qp)?;
                }
                self.send(0, connected[0], SendOp::Send { imm }, data.clone())?;
                self.send(0, connected[0], SendOp::Write { to: there, imm }, data.clone())?;
                self.send(0, datagrams[0], SendOp::SendDatagram { to: way, imm }, data)?;
                self.run();
            }
        }
        Ok(())
    }
}
