//! ACM services with several ports, several partitions, and paths with different SLs.

use std::time::Duration;

use ib_acm::config::options::RouteProtocol;
use ib_acm::service::Assignment;
use ib_acm::{Address, Event, ServiceConfig};
use ib_sim::Options;
use ib_sm::SmConfig;
use ib_sm::partition::Partitions;
use ib_topology::PortId;
use ib_topology::read;
use ib_types::{Gid, PKey};
use ib_wire::acm::{ClientStatus, Entry, EntryFlags};
use ib_wire::mad::sa::PathRecord;

use crate::lab::managed::Managed;
use crate::lab::{Lab, ReplyResult, ip, name};

/// GID prefix of the second subnet.
const SECOND_PREFIX: u64 = 0xfec0_0000_0000_0001;

fn options() -> Options {
    Options { seed: 5, ..Options::default() }
}

/// Returns the port with the number `number` of the node with the name `node`.
fn port(managed: &Managed, node: &str, number: u8) -> PortId {
    let node = managed.sim.find_node(node).expect("the node exists");
    managed.sim.find_port(node, number).expect("the port exists")
}

impl Lab {
    fn gid(&self, port: PortId) -> Gid {
        self.managed.sim.link_port(port).gid()
    }

    /// Resolves an address with the service of a host. The request contains a source address.
    fn resolve_from(&mut self, host: usize, from: &Address, to: &Address) -> ReplyResult {
        let source =
            from.to_entry(EntryFlags::SOURCE).expect("the address is a name or an IP address");
        let to =
            to.to_entry(EntryFlags::DESTINATION).expect("the address is a name or an IP address");
        let (number, found) = self.request(host, vec![source, to]);
        found.unwrap_or_else(|| self.await_reply(host, number))
    }

    /// Resolves a GID with the service of a host.
    fn resolve_gid(&mut self, host: usize, dgid: Gid) -> ReplyResult {
        let path = PathRecord { dgid, ..PathRecord::zeroed() };
        let (number, found) = self.request(host, vec![Entry::path(EntryFlags::PATH, &path)]);
        found.unwrap_or_else(|| self.await_reply(host, number))
    }
}

/// Creates two subnets with one host each, and an HCA that has a port in each subnet. Also returns the two ports of
/// this HCA.
fn two_subnets(config: ServiceConfig) -> (Lab, [PortId; 2]) {
    let text = "Switch 4 \"left\"\n[1] \"gate\"[1]\n[2] \"west\"[1]\n\n\
                Switch 4 \"right\"\n[1] \"gate\"[2]\n[2] \"east\"[1]\n\n\
                Ca 2 \"gate\"\n[1] \"left\"[1]\n[2] \"right\"[1]\n\n\
                Ca 1 \"west\"\n[1] \"left\"[2]\n\nCa 1 \"east\"\n[1] \"right\"[2]\n";
    let fabric = read::ibsim("two.net", text.as_bytes()).expect("the fabric file is valid");
    let mut managed = Managed::new(&fabric, options(), "minhop");
    let other =
        SmConfig { subnet_prefix: SECOND_PREFIX, sweep_interval: None, ..SmConfig::default() };
    let east = port(&managed, "east", 1);
    managed.add_manager(east, other);
    managed.manage();
    managed.run_for(Duration::from_secs(2));
    let gates = [1, 2].map(|number| port(&managed, "gate", number));
    let hosts = vec![gates.to_vec(), vec![port(&managed, "west", 1)], vec![east]];
    (Lab::with(managed, 5, config, hosts), gates)
}

#[test]
fn requests_leave_from_the_port_in_the_subnet_of_the_target() {
    // With 2 announcements the addresses are cached before the requests are sent; with 0 announcements they are not.
    for announcements in [2, 0] {
        let config = ServiceConfig { announcements, ..ServiceConfig::default() };
        let (mut lab, gates) = two_subnets(config);
        assert_eq!(lab.gid(gates[1]).prefix(), SECOND_PREFIX);
        lab.run_for(Duration::from_secs(20));
        for (to, gate) in [(1, gates[0]), (2, gates[1]), (1, gates[0])] {
            let there = lab.gid(lab.hosts[to].port);
            for path in [
                lab.resolve(0, &name(to)),
                lab.resolve(0, &ip(to)),
                lab.resolve_from(0, &name(0), &name(to)),
                lab.resolve_gid(0, there),
            ] {
                let path = path.unwrap_or_else(|status| panic!("resolving host {to}: {status}"));
                assert_eq!((path.sgid, path.dgid), (lab.gid(gate), there), "{announcements}");
            }
        }
        assert_eq!(lab.resolve(0, &name(7)), Err(ClientStatus::ETIMEDOUT));
        assert_eq!(lab.hosts[0].service.pending(), 0);
        // Hosts 1 (`west`) and 2 (`east`) cannot reach each other, because no router connects their subnets.
        assert_eq!(lab.resolve(1, &name(2)), Err(ClientStatus::ETIMEDOUT));
    }
}

#[test]
fn requests_use_the_other_port_while_one_is_down() {
    let (mut lab, gates) = two_subnets(ServiceConfig::default());
    lab.run_for(Duration::from_secs(20));
    lab.managed.command("Unlink \"gate\"[1]");
    lab.run_for(Duration::from_secs(1));
    let path = lab.resolve(0, &name(2)).expect("the subnet of the second port is up");
    assert_eq!(path.sgid, lab.gid(gates[1]));
    let own = lab.resolve(0, &name(0)).expect("the second port is active");
    assert_eq!(own.sgid, lab.gid(gates[1]));
    assert!(lab.resolve(0, &name(1)).is_err());
    lab.managed.command("Relink \"gate\"[1]");
    lab.run_for(Duration::from_secs(20));
    let path = lab.resolve(0, &name(1)).expect("the link of the first port is up again");
    assert_eq!(path.sgid, lab.gid(gates[0]));
}

/// Returns two partitions: the default partition with all ports, and partition 1 with the ports whose GUIDs are
/// `members`.
fn partitions(members: &[u64]) -> Partitions {
    let members: Vec<String> = members.iter().map(|guid| format!("{guid:#x}=full")).collect();
    let blue = match &members[..] {
        [] => String::new(),
        members => format!("blue=0x1 : {};\n", members.join(", ")),
    };
    let text = format!("Default=0x7fff : ALL=full;\n{blue}");
    Partitions::read("partitions.conf", text.as_bytes()).expect("the partition file is valid")
}

fn blue(host: usize) -> Address {
    Address::name(&format!("blue-{host}")).expect("the name is valid")
}

#[test]
fn address_resolves_only_inside_its_partition() {
    for route_protocol in [RouteProtocol::Sa, RouteProtocol::Acm] {
        let mut text = String::from("Switch 4 \"leaf\"\n");
        for host in 1..=3 {
            text += &format!("[{host}] \"host-{host}\"[1]\n");
        }
        for host in 1..=3 {
            text += &format!("\ncaguid=0x{host}00\nCa 1 \"host-{host}\"\n[1] \"leaf\"[{host}]\n");
        }
        let fabric = read::ibsim("leaf.net", text.as_bytes()).expect("the fabric file is valid");
        let config = SmConfig { partitions: partitions(&[0x101, 0x201]), ..SmConfig::default() };
        let managed = Managed::with(&fabric, options(), "minhop", config);
        let assignments = (0..3).map(|host| Assignment {
            address: blue(host),
            device: format!("host-{}", host + 1).into(),
            port: 1,
            p_key: PKey(0x8001),
        });
        let config = ServiceConfig {
            route_protocol,
            assignments: assignments.collect(),
            ..ServiceConfig::default()
        };
        let hosts = managed.end_ports().into_iter().map(|port| vec![port]).collect();
        let mut lab = Lab::with(managed, 5, config, hosts);
        lab.run_for(Duration::from_secs(20));
        for path in [lab.resolve(0, &blue(1)), lab.resolve_from(0, &blue(0), &blue(1))] {
            let path = path.unwrap_or_else(|status| {
                panic!("cannot resolve `blue-1` with {route_protocol:?} routes: {status}")
            });
            assert_eq!((path.p_key, lab.leads(0, 1, &path)), (PKey(0x8001), true));
        }
        let path = lab
            .resolve_from(0, &name(0), &name(1))
            .expect("both hosts are in the default partition");
        assert_eq!(path.p_key, PKey(0xffff));
        // A name in partition 1 does not resolve from an address in the default partition. The third host is not in
        // partition 1. So this host resolves no name in partition 1, and its name `blue-2` is not a valid destination
        // or source.
        assert_eq!(lab.resolve_from(0, &name(0), &blue(1)), Err(ClientStatus::ETIMEDOUT));
        assert_eq!(lab.resolve(2, &blue(1)), Err(ClientStatus::ETIMEDOUT));
        assert_eq!(lab.resolve_from(0, &blue(0), &blue(2)), Err(ClientStatus::ETIMEDOUT));
        assert_eq!(lab.resolve_from(2, &blue(2), &blue(0)), Err(ClientStatus::ESRCADDR));

        // The second host is removed from partition 1.
        lab.managed.change(|manager| manager.set_partitions(partitions(&[0x101])));
        lab.run_for(Duration::from_secs(10));
        let keys = |lab: &Lab, host: usize| {
            let endpoints = lab.hosts[host].service.endpoints();
            endpoints.iter().map(|it| it.p_key.0).collect::<Vec<_>>()
        };
        assert_eq!((keys(&lab, 0), keys(&lab, 1)), (vec![0x8001, 0xffff], vec![0xffff]));
        let is_down = |(_, event): &(_, Event)| matches!(event, Event::Down { endpoint, .. } if endpoint.p_key.0 == 0x8001);
        assert!(lab.hosts[1].events.iter().any(is_down));
        assert_eq!(lab.resolve_from(1, &blue(1), &blue(0)), Err(ClientStatus::ESRCADDR));
        assert_eq!(lab.resolve(1, &blue(0)), Err(ClientStatus::ETIMEDOUT));
        assert!(lab.resolve(1, &name(0)).is_ok());

        // The second host is added to partition 1 again.
        lab.managed.change(|manager| manager.set_partitions(partitions(&[0x101, 0x201])));
        lab.run_for(Duration::from_secs(20));
        let path = lab.resolve(1, &blue(0)).expect("both hosts are in the partition again");
        assert_eq!((path.p_key, lab.leads(1, 0, &path)), (PKey(0x8001), true));
    }
}

#[test]
fn group_routes_are_not_used_if_lash_assigns_other_sls() {
    // If `check_routes` is false, the services do not compare a group's SL with the SL of the SA's path. So each
    // path that needs a nonzero SL gets a wrong SL. This run shows that the comparison is needed.
    for check_routes in [true, false] {
        let config = ServiceConfig {
            route_protocol: RouteProtocol::Acm,
            check_routes,
            ..ServiceConfig::default()
        };
        let mut lab = Lab::new("torus 5x5", options(), "lash", config);
        lab.run_for(Duration::from_secs(20));
        let count = lab.hosts.len();
        let (mut wrong, mut nonzero_sls, mut reported) = (0, 0, 0);
        for from in 0..count {
            let differs = |(_, it): &&(_, Event)| matches!(it, Event::RoutesDiffer { .. });
            let event = lab.hosts[from].events.iter().find(differs);
            reported += usize::from(event.is_some());
            for to in (0..count).filter(|to| *to != from) {
                let path = lab.resolve(from, &name(to)).expect("the host can be resolved");
                assert!(lab.leads(from, to, &path), "path {from} to {to}: {path:?}");
                // The service queries the SA for a path between the same hosts. This path has the right SL.
                let flags = EntryFlags(EntryFlags::PATH.0 | EntryFlags::QUERY_SA.0);
                let query = PathRecord {
                    sgid: path.sgid,
                    dgid: path.dgid,
                    reversible: true,
                    numb_path: 1,
                    ..PathRecord::zeroed()
                };
                let (number, found) = lab.request(from, vec![Entry::path(flags, &query)]);
                let response = found
                    .unwrap_or_else(|| lab.await_reply(from, number))
                    .expect("the SA has a path");
                wrong += usize::from(response.sl != path.sl);
                nonzero_sls += usize::from(response.sl != 0);
            }
        }
        assert!(nonzero_sls > 0, "lash uses only one SL: the fabric is too small");
        match check_routes {
            true => assert_eq!(wrong, 0, "{wrong} SLs are wrong, {nonzero_sls} are not 0"),
            false => assert_eq!(wrong, nonzero_sls),
        }
        assert_eq!(reported > 0, check_routes);
    }
}
