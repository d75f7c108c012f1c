//! Services of IB ACM on a simulated fabric.

mod everyone;
mod lab;

use std::time::Duration;

use ib_acm::ServiceConfig;
use ib_acm::service::RouteProtocol;
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
fn names_and_addresses_are_resolved_with_routes_of_either_kind() {
    for routes in [RouteProtocol::Sa, RouteProtocol::Acm] {
        let mut lab = Lab::new("fat-tree 4 2", options(1), "minhop", config(routes));
        lab.run_for(Duration::from_millis(100));
        let count = lab.hosts.len();
        for (from, to) in [(0, 1), (0, count - 1), (count - 1, 0), (1, 1)] {
            for address in [name(to), ip(to)] {
                let path = lab.resolve(from, &address);
                let path = path.unwrap_or_else(|status| panic!("{routes:?} {address}: {status}"));
                assert!(lab.leads(from, to, &path), "{from} {to} {path:?}");
            }
        }
        let nobody = lab.resolve(0, &name(count));
        assert_eq!(nobody, Err(ClientStatus::ETIMEDOUT));
    }
}

#[test]
fn everyone_resolves_everyone_without_asking_subnet_administration() {
    let kind = std::env::var("IBFABRIC_ACM_KIND").unwrap_or("fat-tree 6 2".to_owned());
    for routes in [RouteProtocol::Acm, RouteProtocol::Sa] {
        let begun = std::time::Instant::now();
        let figures = everyone::everyone(&kind, "minhop", routes);
        eprintln!("{routes:?} {figures:?} {:?}", begun.elapsed());
        assert_eq!(figures.wrong, 0);
        assert_eq!(figures.arrived, figures.sent);
        assert!(figures.sent >= figures.hosts);
        // All have heard of all others before.
        assert!(figures.multicasts <= 2 * figures.hosts, "{figures:?}");
        match routes {
            RouteProtocol::Acm => assert!(figures.sa_queries <= figures.hosts, "{figures:?}"),
            RouteProtocol::Sa => assert_eq!(figures.sa_queries, figures.resolutions),
        }
    }
}
