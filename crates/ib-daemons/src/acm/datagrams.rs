//! The UD QPs of an ACM service at an HCA, one for each partition. The service sends and receives its ACM messages over
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_acm::{Action, Arrived, Destination};
use ib_hca::{
    AccessFlags, AhId, CqId, Data, Hca, Memory, MrId, PdId, QpAttr, QpCap, QpId, QpInitAttr,
    QpState, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge, UdDestination, WcOpcode, WcStatus,
};
use ib_link::{Datagram, Remote, Route};
use ib_types::{Gid, Instant, PKey, Psn, QKey, Qpn, ServiceLevel};
use ib_wire::mad::{MAD_LENGTH, Mad};
use ib_wire::packet::Grh;

/// Size in bytes of the GRH. A receive buffer has this space before the message, even if the packet has no GRH.
const GRH: usize = 40;

/// Size of a receive buffer, in bytes.
const SLOT: usize = GRH + MAD_LENGTH;

/// Size of the send queue of each UD QP, in work requests.
const SENDS: u32 = 256;

/// The UD QP of a partition, and its receive buffers of [`SLOT`] bytes each.
struct PartitionQp {
    p_key: PKey,
    qp: QpId,
    memory: Arc<Memory>,
    region: MrId,
}

/// The UD QPs of an ACM service at an HCA.
pub(super) struct Datagrams {
    pd: PdId,
    cq: CqId,
    /// The QPs by partition. The key is the P_Key without the membership bit.
    qps: BTreeMap<u16, PartitionQp>,
    /// The partition of each QP, by QP number.
    partitions: BTreeMap<Qpn, u16>,
    /// Address handles of outstanding sends, by `wr_id`.
    address_handles: BTreeMap<u64, AhId>,
    /// `wr_id` of the last send request.
    last_send: u64,
    /// Number of receive buffers of each QP.
    depth: u32,
}

/// Bit that is set in the `wr_id` of receives. The other bits are the index of the receive buffer.
const RECEIVE: u64 = 1 << 63;

impl Datagrams {
    /// Allocates the PD and the CQ of the UD QPs. `depth` is the number of receive buffers of each QP.
    pub(super) fn new(hca: &mut Hca, depth: u32) -> Option<Self> {
        let pd = hca.alloc_pd().ok()?;
        let cq = hca.create_cq((depth + SENDS) * 4).ok()?;
        let (qps, partitions, address_handles) = Default::default();
        Some(Self { pd, cq, qps, partitions, address_handles, last_send: 0, depth })
    }

    /// Executes an action of the service; returns false if it failed.
    pub(super) fn act(&mut self, hca: &mut Hca, now: Instant, action: &Action) -> bool {
        match action {
            Action::Open { p_key } => self.open(hca, now, *p_key).is_some(),
            Action::Close { p_key } => self.close(hca, *p_key).is_some(),
            Action::Attach { p_key, mgid, .. } => {
                self.get(*p_key).is_some_and(|qp| hca.attach_mcast(qp, *mgid).is_ok())
            }
            Action::Detach { p_key, mgid, .. } => {
                self.get(*p_key).is_some_and(|qp| hca.detach_mcast(qp, *mgid).is_ok())
            }
            Action::Send { p_key, to, bytes } => self.send(hca, now, *p_key, to, &**bytes),
            Action::Mad(_) => false,
        }
    }

    fn get(&self, p_key: PKey) -> Option<QpId> {
        self.qps.get(&(p_key.0 & 0x7fff)).map(|partition_qp| partition_qp.qp)
    }

    fn open(&mut self, hca: &mut Hca, now: Instant, p_key: PKey) -> Option<()> {
        let partition = p_key.0 & 0x7fff;
        if self.qps.contains_key(&partition) {
            return Some(());
        }
        let cap = QpCap {
            max_send_wr: SENDS,
            max_recv_wr: self.depth,
            max_inline_data: MAD_LENGTH as u32,
            ..QpCap::default()
        };
        let (send_cq, recv_cq) = (self.cq, self.cq);
        let init = QpInitAttr { qp_type: QpType::Ud, send_cq, recv_cq, srq: None, cap };
        let length = SLOT * self.depth as usize;
        let memory = Memory::zeroed(length).ok()?;
        let region = hca.reg_mr(self.pd, (&memory, 0, length), 0, AccessFlags::ALL).ok()?;
        let Ok(qp) = hca.create_qp(self.pd, &init) else {
            hca.dereg_mr(region).ok();
            return None;
        };
        let to = |qp_state| QpAttr { qp_state: Some(qp_state), ..QpAttr::default() };
        let states = [
            QpAttr { pkey: Some(p_key), qkey: Some(QKey::GSI), ..to(QpState::Init) },
            to(QpState::Rtr),
            QpAttr { sq_psn: Some(Psn::truncated(0)), ..to(QpState::Rts) },
        ];
        for attr in states {
            hca.modify_qp(now, qp, &attr).expect("the transitions of a new UD QP to RTS are valid");
        }
        let (number, ..) = hca.query_qp(qp).expect("the QP was created above");
        self.qps.insert(partition, PartitionQp { p_key, qp, memory, region });
        self.partitions.insert(number, partition);
        for slot in 0..self.depth {
            self.receive_into(hca, now, partition, slot);
        }
        Some(())
    }

    fn close(&mut self, hca: &mut Hca, p_key: PKey) -> Option<()> {
        let partition_qp = self.qps.remove(&(p_key.0 & 0x7fff))?;
        if let Some((number, ..)) = hca.query_qp(partition_qp.qp) {
            self.partitions.remove(&number);
        }
        hca.destroy_qp(partition_qp.qp).ok()?;
        hca.dereg_mr(partition_qp.region).ok()
    }

    fn receive_into(&self, hca: &mut Hca, now: Instant, partition: u16, slot: u32) {
        let Some(partition_qp) = self.qps.get(&partition) else { return };
        let lkey =
            hca.key(partition_qp.region).expect("the region is registered while the QP exists");
        let addr = u64::from(slot) * SLOT as u64;
        let data = Data::One(Sge { addr, length: SLOT as u32, lkey });
        let wr = RecvWr { wr_id: RECEIVE | u64::from(slot), data };
        // Posting cannot fail: the QP has left the Reset state, and its receive queue has space for all buffers.
        let _ = hca.post_recv(now, partition_qp.qp, wr);
    }

    fn send(
        &mut self,
        hca: &mut Hca,
        now: Instant,
        p_key: PKey,
        to: &Destination,
        bytes: &[u8],
    ) -> bool {
        let Some(qp) = self.get(p_key) else { return false };
        let Ok(ah) = hca.create_ah(self.pd, to.route) else { return false };
        self.last_send += 1;
        let wr_id = self.last_send;
        let (remote_qpn, remote_qkey) = (to.qpn, QKey::GSI);
        let op =
            SendOp::SendDatagram { to: UdDestination { ah, remote_qpn, remote_qkey }, imm: None };
        let flags = SendFlags { signaled: true, ..SendFlags::default() };
        let wr = SendWr { wr_id, op, data: Data::Inline(bytes.into()), flags };
        let is_posted = hca.post_send(now, qp, wr).is_ok();
        if is_posted {
            self.address_handles.insert(wr_id, ah);
        } else {
            hca.destroy_ah(ah).ok();
        }
        is_posted
    }

    /// Returns the next message that one of the QPs has received. `gid` is the GID of the port.
    pub(super) fn receive(&mut self, hca: &mut Hca, now: Instant, gid: Gid) -> Option<Arrived> {
        loop {
            let wc = hca.poll_cq(self.cq)?;
            if wc.wr_id & RECEIVE == 0 {
                if let Some(ah) = self.address_handles.remove(&wc.wr_id) {
                    hca.destroy_ah(ah).ok();
                }
                continue;
            }
            let Some(&partition) = self.partitions.get(&wc.qp_num) else { continue };
            let slot = (wc.wr_id & !RECEIVE) as u32;
            let is_good = wc.status == WcStatus::Success && wc.opcode == WcOpcode::Recv;
            let partition_qp = &self.qps[&partition];
            let length = (wc.byte_len as usize).clamp(GRH, SLOT);
            let all = partition_qp.memory.to_vec(slot as usize * SLOT, length);
            let p_key = partition_qp.p_key;
            // A receive of a QP in the error state is flushed immediately, so it is not posted again.
            if wc.status != WcStatus::WrFlushErr {
                self.receive_into(hca, now, partition, slot);
            }
            let (Ok(mut all), true) = (all, is_good) else { continue };
            let bytes = all.split_off(GRH);
            let sl = ServiceLevel::new(wc.sl).unwrap_or_default();
            let mut route = Route { source: gid, dlid: wc.slid, sl, ..Route::default() };
            if wc.grh {
                let header = Grh::parse(all.first_chunk().expect("`all` has 40 bytes"));
                route = Route { destination: header.source, is_global: true, ..route };
            }
            let qpn = wc.src_qp;
            return Some(Arrived::Datagram { p_key, route, qpn, bytes: bytes.into() });
        }
    }
}

/// Converts a received GMP to a datagram. `route` is the route from this port back to the sender of the GMP.
pub(super) fn datagram(route: &Route, source: Qpn, mad: Mad) -> Datagram {
    let grh = route.is_global.then(|| Grh {
        source: route.destination,
        destination: route.source,
        traffic_class: route.traffic_class,
        flow_label: route.flow_label,
        hop_limit: route.hop_limit,
        ..Grh::default()
    });
    let remote = Remote { qpn: source, sl: route.sl, grh, ..Remote::gsi(route.dlid) };
    Datagram { local_qpn: Qpn::GSI, ..Datagram::new(remote, mad) }
}
