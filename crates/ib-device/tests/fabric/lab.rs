//! A simulated fabric with an SM, and HCAs at its hosts, in virtual time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use ib_cm::{CmEvent, ServiceId};
use ib_device::DeviceEvent;
use ib_device::sim::{SimDevice, SimDeviceOptions};
use ib_hca::{
    AccessFlags, CqId, Data, HcaEvent, Memory, PdId, QpAttr, QpCap, QpId, QpInitAttr, QpState,
    QpType, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, Sge, Wc, WcStatus,
};
use ib_link::{Datagram, Remote};
use ib_sim::Options;
use ib_topology::PortId;
use ib_types::{Gid, Instant, PKey, Psn, QKey, Qpn};
use ib_wire::mad::sa::{ComponentMask, MCMemberRecord, PathRecord, SaHeader};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

#[path = "lab/connect.rs"]
mod connect;
#[path = "lab/managed.rs"]
mod managed;

use managed::Managed;

/// Service ID on which hosts listen.
const SERVICE: ServiceId = ServiceId(0x1234);

/// A host with an HCA, and the completions, CM events and SA responses of the HCA.
pub(crate) struct Host {
    pub(crate) port: PortId,
    pd: PdId,
    cq: CqId,
    pub(crate) done: Vec<Wc>,
    cm: Vec<CmEvent>,
    answers: Vec<Mad>,
}

pub(crate) struct Lab {
    managed: Managed,
    pub(crate) hosts: Vec<Host>,
    transactions: u64,
}

impl Deref for Lab {
    type Target = Managed;

    fn deref(&self) -> &Managed {
        &self.managed
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut Managed {
        &mut self.managed
    }
}

/// A registered memory region.
pub(crate) struct Region {
    pub(crate) memory: Arc<Memory>,
    addr: u64,
    key: u32,
}

impl Region {
    pub(crate) fn data(&self, offset: usize, length: usize) -> Data {
        Data::One(Sge { addr: self.addr + offset as u64, length: length as u32, lkey: self.key })
    }

    pub(crate) fn remote(&self, offset: usize) -> RemoteAddress {
        RemoteAddress { addr: self.addr + offset as u64, rkey: self.key }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.memory.to_vec(0, self.memory.len()).expect("the range is the whole memory")
    }
}

impl Lab {
    /// Creates a fabric that an SM has brought up, with HCAs at all hosts.
    pub(crate) fn new(kind: &str, options: Options) -> Self {
        let seed = options.seed;
        let managed = Managed::new(&managed::fabric(kind), options, "minhop");
        let mut this = Self { managed, hosts: Vec::new(), transactions: 0 };
        for port in this.end_ports() {
            this.add_host(port, seed);
        }
        this
    }

    fn add_host(&mut self, port: PortId, seed: u64) {
        let mut options = SimDeviceOptions::default();
        options.seed[8..16].copy_from_slice(&seed.to_le_bytes());
        let Managed { sim, devices, .. } = &mut self.managed;
        devices.attach(sim, port, &options).expect("the port accepts an HCA");
        let device = devices.get_mut(port).expect("the HCA was attached above");
        let pd = device.hca().alloc_pd().expect("the HCA can have another protection domain");
        let cq = device.hca().create_cq(4096).expect("the HCA can have another completion queue");
        device.engines().cm.listen(SERVICE).expect("the service ID is not in use");
        let (done, cm, answers) = (Vec::new(), Vec::new(), Vec::new());
        self.hosts.push(Host { port, pd, cq, done, cm, answers });
    }

    pub(crate) fn device(&mut self, host: usize) -> &mut SimDevice {
        let port = self.hosts[host].port;
        self.devices.get_mut(port).expect("every host has an HCA")
    }

    pub(crate) fn pd(&self, host: usize) -> PdId {
        self.hosts[host].pd
    }

    /// Collects completions and events of the HCAs.
    fn collect(&mut self) {
        for host in &mut self.hosts {
            let Some(device) = self.managed.devices.get_mut(host.port) else { continue };
            while let Some(wc) = device.hca().poll_cq(host.cq) {
                host.done.push(wc);
            }
            while let Some(event) = device.poll_event() {
                match event {
                    DeviceEvent::Cm(event) => host.cm.push(event),
                    DeviceEvent::Hca(HcaEvent::Mad { mad, .. }) => host.answers.push(*mad),
                    DeviceEvent::Hca(_) => {}
                }
            }
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.managed.run_for(time);
        self.collect();
    }

    /// Runs the fabric until `find` returns a value, and returns this value.
    pub(crate) fn wait<T>(&mut self, mut find: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = self.sim.now() + Duration::from_secs(100);
        loop {
            self.collect();
            if let Some(found) = find(self) {
                return found;
            }
            assert!(self.step(end) && self.sim.now() < end, "the awaited event does not occur");
        }
    }

    /// Runs the fabric until a host has `count` completions. Returns these completions.
    pub(crate) fn done(&mut self, host: usize, count: usize) -> Vec<Wc> {
        self.wait(|lab| (lab.hosts[host].done.len() >= count).then_some(()));
        let done = std::mem::take(&mut self.hosts[host].done);
        assert_eq!(done.len(), count);
        for wc in &done {
            assert_eq!(wc.status, WcStatus::Success, "{wc:?}");
        }
        done
    }

    /// Runs the fabric until a host has completions. Returns their number. Polls only this host, and only after every
    /// 256 events of the fabric, so that polling does not slow down a benchmark.
    pub(crate) fn next_done(&mut self, host: usize) -> usize {
        let Host { port, cq, .. } = self.hosts[host];
        loop {
            let goes_on = (0..256).all(|_| self.step(Instant::NEVER));
            let hca = self.devices.get_mut(port).expect("every host has an HCA").hca();
            let done = std::iter::from_fn(|| hca.poll_cq(cq));
            let count = done.inspect(|wc| assert_eq!(wc.status, WcStatus::Success)).count();
            if count > 0 {
                return count;
            }
            assert!(goes_on, "no completion arrives");
        }
    }

    /// Sends an SA query from a host, and returns the record in the response. `what` contains the method, and the
    /// component mask bits of the fields of `wanted` that the SA considers.
    fn ask<R: Attribute>(&mut self, host: usize, what: (Method, &[u8]), wanted: &R) -> R {
        let (method, components) = what;
        self.transactions += 1;
        let transaction = TransactionId(self.transactions);
        let mut mad = Mad::new(MgmtClass::SUBN_ADM, method, transaction);
        mad.set_attribute(wanted);
        let component_mask = ComponentMask::of(components);
        mad.set_sa(&SaHeader { component_mask, ..mad.sa() });
        let manager = self.sim.link_port(self.hosts[host].port).sm_lid;
        let client = self.device(host).client();
        self.sim.submit(client, &Datagram::new(Remote::gsi(manager), mad));
        let answer = self.wait(|lab| lab.hosts[host].answers.pop());
        assert!(answer.status().is_ok(), "{answer}");
        answer.attribute().expect("the response contains the record")
    }

    /// Queries the path between two hosts.
    pub(crate) fn path(&mut self, from: usize, to: usize) -> PathRecord {
        let lid = |host: usize| self.sim.link_port(self.hosts[host].port).lid;
        let ends = PathRecord { slid: lid(from), dlid: lid(to), ..PathRecord::zeroed() };
        self.ask(from, (Method::GET, &[4, 5]), &ends)
    }

    /// Joins a host to the multicast group with this GID, or to a new group if the GID is 0.
    pub(crate) fn join(&mut self, host: usize, mgid: Gid) -> MCMemberRecord {
        let wanted = MCMemberRecord {
            mgid,
            port_gid: self.device(host).gid(),
            q_key: QKey(0x1111),
            p_key: PKey::DEFAULT,
            join_state: ib_wire::mad::sa::JoinState::FULL_MEMBER,
            scope: 2,
            ..MCMemberRecord::zeroed()
        };
        let named: &[u8] = if mgid == Gid(0) { &[1, 2, 6, 7, 12, 13, 15, 16] } else { &[0, 1, 16] };
        self.ask(host, (Method::SET, named), &wanted)
    }

    pub(crate) fn region(&mut self, host: usize, length: usize) -> Region {
        let pd = self.hosts[host].pd;
        let memory = Memory::zeroed(length).expect("the system has free memory");
        let hca = self.device(host).hca();
        let addr = 0x1000_0000;
        let mr = hca
            .reg_mr(pd, (&memory, 0, length), addr, AccessFlags::ALL)
            .expect("the range and the access flags are valid");
        let key = hca.key(mr).expect("the memory region exists");
        Region { memory, addr, key }
    }

    pub(crate) fn create(&mut self, host: usize, qp_type: QpType) -> QpId {
        let (pd, cq) = (self.hosts[host].pd, self.hosts[host].cq);
        let cap = QpCap { max_send_wr: 256, max_recv_wr: 256, ..QpCap::default() };
        let init = QpInitAttr { qp_type, send_cq: cq, recv_cq: cq, srq: None, cap };
        self.device(host).hca().create_qp(pd, &init).expect("the HCA can have another queue pair")
    }

    pub(crate) fn number(&mut self, host: usize, qp: QpId) -> Qpn {
        self.device(host).hca().query_qp(qp).expect("the queue pair exists").0
    }

    pub(crate) fn modify(&mut self, host: usize, qp: QpId, attr: &QpAttr) {
        let now = self.sim.now();
        self.device(host).hca().modify_qp(now, qp, attr).expect("the state change is valid");
    }

    /// Creates a UD queue pair in state `Rts`.
    pub(crate) fn datagrams(&mut self, host: usize) -> QpId {
        let qp = self.create(host, QpType::Ud);
        let states = [
            QpAttr { pkey: Some(PKey::DEFAULT), qkey: Some(QKey(0x1111)), ..to(QpState::Init) },
            to(QpState::Rtr),
            QpAttr { sq_psn: Some(Psn::truncated(7)), ..to(QpState::Rts) },
        ];
        for attr in states {
            self.modify(host, qp, &attr);
        }
        qp
    }

    pub(crate) fn send(&mut self, host: usize, qp: QpId, wr_id: u64, op: SendOp, data: Data) {
        let now = self.sim.now();
        let flags = SendFlags { signaled: true, ..SendFlags::default() };
        let wr = SendWr { wr_id, op, data, flags };
        self.device(host).hca().post_send(now, qp, wr).expect("the request is valid");
    }

    pub(crate) fn receive(&mut self, host: usize, qp: QpId, wr_id: u64, data: Data) {
        let now = self.sim.now();
        self.device(host)
            .hca()
            .post_recv(now, qp, RecvWr { wr_id, data })
            .expect("the request is valid");
    }

    pub(crate) fn retransmitted(&mut self, host: usize, qp: QpId) -> u64 {
        self.device(host).hca().retransmitted(qp).expect("the queue pair exists")
    }

    /// Returns the ports of switches on the path between two hosts. The last one is the egress port
    /// to the destination host.
    pub(crate) fn path_ports(&self, from: usize, to: usize) -> Vec<PortId> {
        let lid = |host: usize| self.sim.link_port(self.hosts[host].port).lid;
        let (ports, loss) = self.sim.route(lid(from), lid(to)).expect("both LIDs exist");
        assert!(loss.is_none(), "{loss:?}");
        ports.into_iter().filter(|&port| self.sim.is_switch(self.sim.place(port).0)).collect()
    }

    /// Returns the name of a port as console commands use it.
    pub(crate) fn name(&self, port: PortId) -> String {
        let (node, number) = self.sim.place(port);
        format!("\"{}\"[{number}]", self.sim.node_name(node))
    }
}

/// Returns the attributes for the transition of a queue pair to `state`.
pub(crate) fn to(state: QpState) -> QpAttr {
    QpAttr { qp_state: Some(state), ..QpAttr::default() }
}
