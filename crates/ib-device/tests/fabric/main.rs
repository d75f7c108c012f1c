//! Tests HCAs at the hosts of a simulated fabric that an SM of ib-sm has brought up.

mod captures;
#[allow(dead_code, reason = "the benchmark shares it")]
mod lab;

use std::time::Duration;

use ib_device::route_of;
use ib_hca::{Data, QpId, SendOp, UdDestination, WcOpcode};
use ib_link::Route;
use ib_sim::{LogLevel, Options};
use ib_types::{Gid, Mtu, QKey, Qpn};

use lab::Lab;

/// A fat tree with three levels of switches and 18 hosts.
const FAT_TREE: &str = "xgft 3,2,3 1,2,2";

/// Two hosts whose path passes all levels of switches.
const FAR: (usize, usize) = (1, 17);

fn fat_tree() -> Lab {
    Lab::new(FAT_TREE, Options::default())
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn data_arrives_intact_on_all_service_levels() {
    let mut lab = fat_tree();
    let (here, there) = FAR;
    assert!(lab.path_ports(here, there).len() >= 5, "the path misses a level of switches");
    let qps = lab.connect(here, there);
    exchange(&mut lab, FAR, qps);
    let lost = &lab.sim.stats().lost;
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!([lab.retransmitted(here, qps[0]), lab.retransmitted(there, qps[1])], [0, 0]);
}

#[test]
fn global_route_adds_a_grh() {
    let mut lab = fat_tree();
    let (here, there) = FAR;
    let global = |path| Route { is_global: true, hop_limit: 64, ..route_of(&path) };
    let qps = lab.connect_by(here, there, global);
    exchange(&mut lab, FAR, qps);
}

/// Transfers data by SEND, RDMA WRITE, RDMA READ and both atomics, and compares the received data with the sent data.
fn exchange(lab: &mut Lab, (here, there): (usize, usize), qps: [QpId; 2]) {
    const LENGTH: usize = 300_001;
    let (from, to) = (lab.region(here, LENGTH), lab.region(there, LENGTH));
    let data = pattern(LENGTH);
    from.memory.write(0, &data).expect("the range is inside the memory");

    lab.receive(there, qps[1], 1, to.data(0, LENGTH));
    lab.send(here, qps[0], 2, SendOp::Send { imm: Some(99) }, from.data(0, LENGTH));
    let [received] = lab.done(there, 1)[..] else { panic!("expected one completion") };
    assert_eq!((received.opcode, received.imm_data), (WcOpcode::Recv, Some(99)));
    assert_eq!(received.byte_len as usize, LENGTH);
    lab.done(here, 1);
    assert_eq!(to.bytes(), data);

    to.memory.fill(0, LENGTH, 0).expect("the range is inside the memory");
    let write = SendOp::Write { to: to.remote(1), imm: None };
    lab.send(here, qps[0], 3, write, from.data(0, LENGTH - 1));
    lab.done(here, 1);
    assert_eq!(to.bytes()[1..], data[..LENGTH - 1]);

    from.memory.fill(0, LENGTH, 0).expect("the range is inside the memory");
    let read = SendOp::Read { from: to.remote(1) };
    lab.send(here, qps[0], 4, read, from.data(0, LENGTH - 1));
    lab.done(here, 1);
    assert_eq!(from.bytes()[..LENGTH - 1], data[..LENGTH - 1]);

    to.memory.write(8, &40_u64.to_ne_bytes()).expect("the range is inside the memory");
    let add = SendOp::FetchAdd { at: to.remote(8), add: 2 };
    lab.send(here, qps[0], 5, add, from.data(0, 8));
    let swap = SendOp::CompareSwap { at: to.remote(8), compare: 42, swap: 7 };
    lab.send(here, qps[0], 6, swap, from.data(8, 8));
    lab.done(here, 2);
    let number =
        |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("the slice has 8 bytes"));
    assert_eq!((number(&from.bytes()[..8]), number(&from.bytes()[8..16])), (40, 42));
    assert_eq!(number(&to.bytes()[8..16]), 7);
}

#[test]
fn multicast_reaches_only_members() {
    let mut lab = fat_tree();
    let group = lab.join(2, Gid(0));
    let members = [2, 7, 12, 17];
    for host in members[1..].iter().copied() {
        assert_eq!(lab.join(host, group.mgid).mlid, group.mlid);
    }
    lab.run_for(Duration::from_secs(1));
    let data = pattern(1000);
    let mut heard = Vec::new();
    for host in 2..18 {
        let qp = lab.datagrams(host);
        lab.device(host).hca().attach_mcast(qp, group.mgid).expect("the GID is a multicast GID");
        let region = lab.region(host, 2048);
        lab.receive(host, qp, 1, region.data(0, 2048));
        heard.push((host, region));
    }

    // A host that is not a member of the group can send to it.
    let qp = lab.datagrams(1);
    let path = lab.path(1, 2);
    let route = Route {
        destination: group.mgid,
        dlid: group.mlid,
        is_global: true,
        hop_limit: group.hop_limit,
        ..route_of(&path)
    };
    let pd = lab.pd(1);
    let ah = lab.device(1).hca().create_ah(pd, route).expect("the source GID is a GID of the port");
    let region = lab.region(1, 1000);
    region.memory.write(0, &data).expect("the range is inside the memory");
    let to = UdDestination { ah, remote_qpn: Qpn::MULTICAST, remote_qkey: QKey(0x1111) };
    lab.send(1, qp, 2, SendOp::SendDatagram { to, imm: None }, region.data(0, 1000));
    lab.done(1, 1);
    lab.run_for(Duration::from_secs(1));
    for (host, region) in heard {
        let done = std::mem::take(&mut lab.hosts[host].done);
        if members.contains(&host) {
            let [wc] = done[..] else { panic!("completions of host {host}: {done:?}") };
            assert!(wc.grh);
            assert_eq!((wc.byte_len, wc.slid), (1040, path.slid));
            assert_eq!(region.bytes()[40..1040], data, "data of host {host}");
        } else {
            assert!(done.is_empty(), "completions of host {host}: {done:?}");
        }
    }
}

/// Transfers data over a lossy link. Returns the number of retransmissions, and the log.
fn lossy(seed: u64) -> (u64, String) {
    let mut lab = Lab::new(FAT_TREE, Options { seed, log: LogLevel::Events, ..Options::default() });
    let (here, there) = FAR;
    let qps = lab.connect(here, there);
    let port = lab.name(lab.path_ports(here, there)[1]);
    lab.command(&format!("Fault {port} loss=0.01 corrupt=0.005"));
    const LENGTH: usize = 4 << 20;
    let (from, to) = (lab.region(here, LENGTH), lab.region(there, LENGTH));
    let data = pattern(LENGTH);
    from.memory.write(0, &data).expect("the range is inside the memory");
    for number in 0..4 {
        let (at, length) = (number * LENGTH / 4, LENGTH / 4);
        let write = SendOp::Write { to: to.remote(at), imm: None };
        lab.send(here, qps[0], number as u64, write, from.data(at, length));
    }
    let done = lab.done(here, 4);
    assert!(done.iter().map(|wc| wc.wr_id).eq(0..4), "the completions are not in order");
    assert_eq!(to.bytes(), data);
    (lab.retransmitted(here, qps[0]), lab.sim.take_log())
}

#[test]
fn lossy_link_only_causes_retransmissions() {
    let (again, log) = lossy(3);
    assert!(again > 10, "found {again} retransmissions, expected more than 10");
    let repeated = lossy(3);
    assert_eq!(again, repeated.0);
    assert!(log == repeated.1, "runs with the same seed differ");
    assert!(log != lossy(4).1, "runs with different seeds are equal");
}

#[test]
fn transfer_survives_a_cut_link() {
    let mut lab = fat_tree();
    let (here, there) = FAR;
    let qps = lab.connect(here, there);
    const LENGTH: usize = 8 << 20;
    let (from, to) = (lab.region(here, LENGTH), lab.region(there, LENGTH));
    let data = pattern(LENGTH);
    from.memory.write(0, &data).expect("the range is inside the memory");
    let write = SendOp::Write { to: to.remote(0), imm: None };
    lab.send(here, qps[0], 1, write, from.data(0, LENGTH));
    lab.run_for(Duration::from_micros(200));
    assert!(lab.hosts[here].done.is_empty(), "the transfer has already completed");
    let ports = lab.path_ports(here, there);
    let name = lab.name(ports[1]);
    lab.command(&format!("Unlink {name}"));
    lab.done(here, 1);
    assert_eq!(to.bytes(), data);
    assert_ne!(lab.path_ports(here, there), ports, "the SM has not rerouted");
    assert!(lab.retransmitted(here, qps[0]) > 0);
}

#[test]
fn mtu_4096_requires_ports_with_mtu_4096() {
    let mut lab = Lab::new("xgft 2 1", Options { mtu_cap: Mtu::B4096, ..Options::default() });
    assert_eq!(Mtu::from_code(lab.path(0, 1).mtu.0), Some(Mtu::B4096));
    let qps = lab.connect(0, 1);
    let before = lab.device(0).hca().counters().sent_packets;
    let (from, to) = (lab.region(0, 1 << 20), lab.region(1, 1 << 20));
    let write = SendOp::Write { to: to.remote(0), imm: None };
    lab.send(0, qps[0], 1, write, from.data(0, 1 << 20));
    lab.done(0, 1);
    assert_eq!(lab.device(0).hca().counters().sent_packets - before, 256);
    let none = SendOp::Write { to: to.remote(0), imm: None };
    lab.send(0, qps[0], 2, none, Data::None);
    lab.done(0, 1);
}
