//! ACM services on a simulated fabric.

mod campaign;
mod everyone;
mod lab;
mod ports;

use std::time::Duration;

use ib_acm::ServiceConfig;
use ib_acm::config::options::RouteProtocol;
use ib_sim::Options;
use ib_wire::acm::ClientStatus;

use lab::{Lab, ip, name};

fn options(seed: u64) -> Options {
    Options { seed, ..Options::default() }
}

fn config(route_protocol: RouteProtocol) -> ServiceConfig {
    ServiceConfig { route_protocol, ..ServiceConfig::default() }
}

#[test]
fn names_and_addresses_resolve_with_either_route_protocol() {
    for routes in [RouteProtocol::Sa, RouteProtocol::Acm] {
        let mut lab = Lab::new("fat-tree 4 2", options(1), "minhop", config(routes));
        lab.run_for(Duration::from_millis(100));
        let count = lab.hosts.len();
        for (from, to) in [(0, 1), (0, count - 1), (count - 1, 0), (1, 1)] {
            for address in [name(to), ip(to)] {
                let path = lab.resolve(from, &address);
                let path = path.unwrap_or_else(|status| {
                    panic!("cannot resolve {address} with {routes:?} routes: {status}")
                });
                assert!(lab.leads(from, to, &path), "path {from} to {to}: {path:?}");
            }
        }
        let unknown = lab.resolve(0, &name(count));
        assert_eq!(unknown, Err(ClientStatus::ETIMEDOUT));
    }
}

#[test]
fn all_to_all_resolution_needs_few_requests() {
    let kind = std::env::var("IBFABRIC_ACM_KIND").unwrap_or("fat-tree 6 2".to_owned());
    for routes in [RouteProtocol::Acm, RouteProtocol::Sa] {
        let start = std::time::Instant::now();
        let figures = everyone::everyone(&kind, "minhop", routes);
        eprintln!("{routes:?} {figures:?} {:?}", start.elapsed());
        assert_eq!(figures.wrong, 0);
        assert_eq!(figures.arrived, figures.sent);
        assert!(figures.sent >= figures.hosts);
        // Each service caches the announced addresses, so only the two announcements of each host are multicast.
        assert!(figures.multicasts <= 2 * figures.hosts, "{figures:?}");
        match routes {
            RouteProtocol::Acm => assert!(figures.sa_queries <= figures.hosts, "{figures:?}"),
            RouteProtocol::Sa => assert_eq!(figures.sa_queries, figures.resolutions),
        }
    }
}

#[test]
fn returned_host_resolves_despite_stale_cache_entries() {
    let config = ServiceConfig {
        check_interval: Some(Duration::from_secs(10)),
        ..config(RouteProtocol::Acm)
    };
    let mut lab = Lab::new("fat-tree 4 2", options(3), "minhop", config);
    lab.run_for(Duration::from_secs(10));
    let before = lab.resolve(0, &name(5)).expect("the host can be resolved");
    lab.reboot(5);
    assert_eq!(lab.resolve(0, &name(5)), Ok(before), "the LID of the host has changed");

    // Each service checks cached peers by unicast requests. The host without a link does not respond, so the services
    // remove their cache entries of this host.
    let host = lab.managed.sim.place(lab.hosts[5].port).0;
    let host = lab.managed.sim.node_name(host).to_owned();
    lab.managed.command(&format!("Unlink \"{host}\"[1]"));
    lab.run_for(Duration::from_secs(40));
    assert_eq!(lab.resolve(0, &name(5)), Err(ClientStatus::ETIMEDOUT));
    lab.managed.command(&format!("Relink \"{host}\"[1]"));
    lab.run_for(Duration::from_secs(10));
    let after = lab.resolve(0, &name(5)).expect("the link of the host is up again");
    assert!(lab.leads(0, 5, &after));
}
