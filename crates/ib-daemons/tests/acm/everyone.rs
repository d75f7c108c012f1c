//! Resolves the names of all hosts at every host of a fabric, and counts the results.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_acm::ServiceConfig;
use ib_acm::config::options::RouteProtocol;
use ib_device::route_of;
use ib_hca::{
    AccessFlags, Data, Memory, QpAttr, QpCap, QpInitAttr, QpState, QpType, RecvWr, SendFlags,
    SendOp, SendWr, Sge, UdDestination,
};
use ib_sim::Options;
use ib_types::{PKey, Psn, QKey, Qpn};
use ib_wire::acm::EntryFlags;
use ib_wire::mad::sa::PathRecord;

use crate::lab::{Lab, name};

/// Counters of one run of [`everyone`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) hosts: u64,
    pub(crate) resolutions: u64,
    /// Number of requests that failed, plus the number of paths that lead to a wrong host.
    pub(crate) wrong: u64,
    pub(crate) announcements: u64,
    /// Number of multicast requests that were sent, including announcements.
    pub(crate) multicasts: u64,
    pub(crate) sa_queries: u64,
    pub(crate) joins: u64,
    /// Number of packets that were sent over resolved paths.
    pub(crate) sent: u64,
    /// Number of packets that arrived, out of the `sent` packets.
    pub(crate) arrived: u64,
    /// Simulated time from the first request to the last reply.
    pub(crate) time: Duration,
}

/// Maximum number of outstanding requests of each host.
const WINDOW: usize = 64;

/// Maximum number of resolved paths over which each host sends a packet.
const SENDS_PER_HOST: usize = 10;

/// Resolves the name of every host at every other host, and then sends packets over some of the resolved paths.
pub(crate) fn everyone(kind: &str, engine: &str, routes: RouteProtocol) -> Figures {
    let config = ServiceConfig { route_protocol: routes, sa_depth: 4, ..ServiceConfig::default() };
    let mut lab = Lab::new(kind, Options { seed: 1, ..Options::default() }, engine, config);
    // Waits for the announcements, which each service sends after a random delay of some seconds.
    lab.run_for(Duration::from_secs(20));
    let start = lab.managed.sim.now();
    let count = lab.hosts.len();
    let mut figures = Figures { hosts: count as u64, ..Figures::default() };
    let mut outstanding: Vec<BTreeMap<u64, usize>> = vec![BTreeMap::new(); count];
    let mut next = vec![0; count];
    let mut paths: Vec<Vec<(usize, PathRecord)>> = vec![Vec::new(); count];
    let names: Vec<_> = (0..count)
        .map(|host| {
            name(host).to_entry(EntryFlags::DESTINATION).expect("the name fits into an entry")
        })
        .collect();
    let links: Vec<_> = lab.hosts.iter().map(|host| lab.managed.sim.link_port(host.port)).collect();
    let mut left = count * (count - 1);
    let mut hosts: Vec<usize> = (0..count).collect();
    while left > 0 {
        for host in std::mem::take(&mut hosts) {
            let mut done = Vec::new();
            while let Some((number, reply)) = lab.hosts[host].replies.pop_first() {
                let to = outstanding[host]
                    .remove(&number)
                    .expect("a request with this number is outstanding");
                done.push((to, reply));
            }
            while outstanding[host].len() < WINDOW && next[host] < count {
                // Each host begins with a different destination.
                let to = (host + next[host]) % count;
                next[host] += 1;
                if to == host {
                    continue;
                }
                match lab.request(host, vec![names[to]]) {
                    (_, Some(reply)) => done.push((to, reply)),
                    (number, None) => {
                        outstanding[host].insert(number, to);
                    }
                }
            }
            for (to, reply) in done {
                left -= 1;
                figures.resolutions += 1;
                let Ok(path) = reply else {
                    figures.wrong += 1;
                    continue;
                };
                let (own, other) = (&links[host], &links[to]);
                let ends = (path.slid, path.sgid, path.dlid, path.dgid);
                figures.wrong += u64::from(ends != (own.lid, own.gid(), other.lid, other.gid()));
                if paths[host].len() < SENDS_PER_HOST
                    && (host * 31 + to * 17) % count.div_ceil(SENDS_PER_HOST) == 0
                {
                    paths[host].push((to, path));
                }
            }
        }
        lab.step(ib_types::Instant::NEVER);
        hosts.append(&mut lab.driven);
    }
    figures.time = lab.managed.sim.now() - start;
    for host in &lab.hosts {
        let counters = host.service.counters();
        figures.announcements += counters.announcements;
        figures.multicasts += counters.multicasts;
        figures.sa_queries += counters.sa_queries;
        figures.joins += counters.joins;
    }
    send(&mut lab, &paths, &mut figures);
    figures
}

/// Sends a packet over each path, and counts those that arrive.
fn send(lab: &mut Lab, paths: &[Vec<(usize, PathRecord)>], figures: &mut Figures) {
    let key = QKey(0x1234);
    let mut qps = Vec::new();
    let ports: Vec<_> = lab.hosts.iter().map(|host| host.port).collect();
    for &port in &ports {
        let now = lab.managed.sim.now();
        let hca = lab.managed.devices.get_mut(port).expect("every host has an HCA").hca();
        let pd = hca.alloc_pd().expect("the HCA has free resources");
        let cq = hca.create_cq(4096).expect("the HCA has free resources");
        let cap =
            QpCap { max_send_wr: 64, max_recv_wr: 64, max_inline_data: 64, ..QpCap::default() };
        let init = QpInitAttr { qp_type: QpType::Ud, send_cq: cq, recv_cq: cq, srq: None, cap };
        let qp = hca.create_qp(pd, &init).expect("the HCA has free resources");
        let to = |state| QpAttr { qp_state: Some(state), ..QpAttr::default() };
        for attr in [
            QpAttr { pkey: Some(PKey::DEFAULT), qkey: Some(key), ..to(QpState::Init) },
            to(QpState::Rtr),
            QpAttr { sq_psn: Some(Psn::truncated(0)), ..to(QpState::Rts) },
        ] {
            hca.modify_qp(now, qp, &attr).expect("the queue pair accepts the state change");
        }
        let memory = Memory::zeroed(4096).expect("memory is sufficient");
        let region = hca
            .reg_mr(pd, (&memory, 0, 4096), 0, AccessFlags::ALL)
            .expect("the HCA has free resources");
        let lkey = hca.key(region).expect("the region has a key");
        for wr_id in 0..64 {
            let data = Data::One(Sge { addr: 0, length: 128, lkey });
            hca.post_recv(now, qp, RecvWr { wr_id: 1000 + wr_id, data }).expect("the RQ has room");
        }
        let number: Qpn = hca.query_qp(qp).expect("the queue pair exists").0;
        qps.push((pd, cq, qp, number));
    }
    for (host, list) in paths.iter().enumerate() {
        for (wr_id, (to, path)) in list.iter().enumerate() {
            let now = lab.managed.sim.now();
            let (pd, _, qp, _) = qps[host];
            let hca =
                lab.managed.devices.get_mut(ports[host]).expect("every host has an HCA").hca();
            let ah = hca.create_ah(pd, route_of(path)).expect("the HCA has free resources");
            let to = UdDestination { ah, remote_qpn: qps[*to].3, remote_qkey: key };
            let wr = SendWr {
                wr_id: wr_id as u64,
                op: SendOp::SendDatagram { to, imm: None },
                data: Data::Inline(Box::new([7; 32])),
                flags: SendFlags::default(),
            };
            hca.post_send(now, qp, wr).expect("the SQ has room");
            figures.sent += 1;
        }
    }
    lab.run_for(Duration::from_millis(100));
    for (&port, &(_, cq, ..)) in ports.iter().zip(&qps) {
        let hca = lab.managed.devices.get_mut(port).expect("every host has an HCA").hca();
        while let Some(wc) = hca.poll_cq(cq) {
            figures.arrived += u64::from(wc.wr_id >= 1000 && wc.byte_len == 40 + 32);
        }
    }
}
