//! Tests of the expiry of cached entries: entries in use are refreshed before they expire.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Requests an address every 10 s, and checks that its path is always cached.
fn check_always_cached(net: &mut Net, to: &Address) {
    for _ in 0..40 {
        net.run_for(10 * SECOND);
        assert!(net.cached_path(0, to).is_some(), "{to} at {:?}", net.now);
    }
}

#[test]
fn used_port_without_a_service_stays_cached() {
    let config = ServiceConfig { check_interval: Some(100 * SECOND), ..quiet() };
    for to in [Address::Gid(gid(1)), Address::Lid(lid(1))] {
        let mut net = Net::new(2, &config);
        net.off.push(1);
        net.run_for(SECOND);
        net.find(0, &to).expect("the SA has the path");
        check_always_cached(&mut net, &to);
        assert!(net.counters(0).sa_queries < 10, "{}", net.counters(0).sa_queries);
        // If no client requests the path to the port for up to 180 s, the service still refreshes the cached path
        // before it expires.
        net.run_for(110 * SECOND);
        assert!(net.cached_path(0, &to).is_some());
        let before = net.counters(0).sa_queries;
        net.run_for(180 * SECOND);
        assert!(net.cached_path(0, &to).is_some(), "{to}");
        // A cached entry expires if no client requests it.
        assert!(net.counters(0).sa_queries <= before + 2);
        net.run_for(1000 * SECOND);
        assert_eq!(net.cached_path(0, &to), None);
        assert!(net.counters(0).sa_queries <= before + 4);
    }
}

#[test]
fn used_route_is_refreshed_before_it_expires() {
    let config = ServiceConfig { route_timeout: Some(60 * SECOND), ..quiet() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("the address is resolved");
    check_always_cached(&mut net, &name(1));
}

#[test]
fn used_preloaded_data_is_refreshed_before_it_expires() {
    let stored = Address::name("stored").expect("the name is valid");
    let hosts = vec![(stored.clone(), gid(1))];
    for (route_timeout, address_timeout) in [(Some(60), None), (None, Some(60))] {
        let config = ServiceConfig {
            hosts: hosts.clone(),
            route_timeout: route_timeout.map(|time| time * SECOND),
            address_timeout: address_timeout.map(|time| time * SECOND),
            check_interval: None,
            ..quiet()
        };
        let mut net = Net::new(2, &config);
        net.run_for(SECOND);
        let path = of_file();
        net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
        assert_eq!(net.cached_path(0, &stored).map(|path| path.sl), Some(7));
        check_always_cached(&mut net, &stored);
        check_always_cached(&mut net, &Address::Gid(gid(1)));
        assert_eq!(
            net.cached_path(0, &stored).map(|path| path.sl),
            Some(0),
            "the preloaded route has expired"
        );
    }
}

#[test]
fn used_address_is_verified_before_it_expires() {
    for check in [60, 300] {
        let config = ServiceConfig {
            address_timeout: Some(60 * SECOND),
            check_interval: Some(check * SECOND),
            ..by_group()
        };
        let mut net = Net::new(2, &config);
        net.run_for(SECOND);
        net.find(0, &name(1)).expect("the address is resolved");
        let before = net.counters(0);
        check_always_cached(&mut net, &name(1));
        assert_eq!(net.counters(0).multicasts, before.multicasts, "only the owner is queried");
    }
}

#[test]
fn used_addresses_of_an_ibacm_peer_stay_cached() {
    let ip = Address::V4([10, 0, 0, 2].into());
    for check_interval in [None, Some(20 * SECOND), Some(300 * SECOND)] {
        for config in [by_group(), quiet()] {
            let address_timeout = Some(60 * SECOND);
            let config = ServiceConfig { address_timeout, check_interval, ..config };
            let mut net = Net::new(2, &config);
            net.terse.push(1);
            net.run_for(SECOND);
            let all = [name(1), ip.clone(), Address::Gid(gid(1)), Address::Lid(lid(1))];
            for to in &all {
                net.find(0, to).expect("the address is resolved");
            }
            let (before, checks) = (net.counters(0).multicasts, net.counters(0).checks);
            for _ in 0..60 {
                net.run_for(7 * SECOND);
                for to in &all {
                    let at = net.now;
                    assert!(net.cached_path(0, to).is_some(), "{check_interval:?} {to} at {at:?}");
                }
            }
            assert_eq!(net.counters(0).multicasts, before, "only the owner is queried");
            // The name and the IP address are each verified at most twice in their lifetime of 60 s. The LID is
            // verified at most twice in a check interval.
            let most = 2 * 2 * 420 / 60 + check_interval.map_or(0, |it| 2 * 420 / it.as_secs());
            let checks = net.counters(0).checks - checks;
            assert!(checks <= most, "{checks} checks, expected at most {most}");
            // Recently used addresses are still cached. Unused addresses expire.
            net.run_for(check_interval.unwrap_or(50 * SECOND).min(50 * SECOND));
            assert!(all.iter().all(|to| net.cached_path(0, to).is_some()));
            net.run_for(200 * SECOND);
            assert_eq!(net.cached_path(0, &ip), None);
        }
    }
}

#[test]
fn released_address_expires_without_its_peer() {
    let ip = Address::V4([10, 0, 0, 2].into());
    let config = ServiceConfig { address_timeout: Some(60 * SECOND), ..by_group() };
    let mut net = Net::new(3, &config);
    net.terse.push(1);
    net.run_for(SECOND);
    for to in [&ip, &name(1)] {
        assert_eq!(net.find(0, to).map(|path| path.dgid), Ok(gid(1)));
    }
    // The address moves to another host, which does not announce it.
    net.hosts[1].state.names = vec![name(1)];
    net.hosts[2].state.names.push(ip.clone());
    for host in [1, 2] {
        net.update(host);
    }
    net.settle();
    net.run_for(10 * SECOND);
    for _ in 0..12 {
        assert!(net.cached_path(0, &ip).is_some() && net.cached_path(0, &name(1)).is_some());
        net.run_for(5 * SECOND);
    }
    assert_eq!(net.cached_path(0, &ip).map(|path| path.dgid), Some(gid(2)));
    assert_eq!(net.cached_path(0, &name(1)).map(|path| path.dgid), Some(gid(1)));
}

#[test]
fn preloaded_routes_apply_to_every_partition() {
    let part = Address::name("part").expect("the name is valid");
    let stored = Address::name("stored").expect("the name is valid");
    let p_key = PKey(0x8001);
    let assignment = Assignment { address: part.clone(), device: "dev0".into(), port: 1, p_key };
    let config = ServiceConfig {
        assignments: vec![assignment],
        hosts: vec![(stored.clone(), gid(1))],
        ..quiet()
    };
    let mut net = Net::new(2, &config);
    net.hosts[0].state.p_keys.push(p_key);
    net.update(0);
    net.settle();
    net.run_for(SECOND);
    let path = PathRecord {
        sgid: gid(0),
        dgid: gid(1),
        slid: lid(0),
        dlid: lid(1),
        p_key: PKey::DEFAULT,
        ..PathRecord::zeroed()
    };
    let before = net.counters(0).sa_queries;
    net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
    let destination = stored.to_entry(EntryFlags::DESTINATION).expect("`stored` is a name");
    for (source, expected) in [(part, p_key), (name(0), PKey::DEFAULT)] {
        let source = source.to_entry(EntryFlags::SOURCE).expect("the source is a name");
        let found = net.resolve(0, vec![source, destination]);
        assert_eq!(found.map(|path| (path.p_key, path.dlid)), Ok((expected, lid(1))));
        let by_gid = PathRecord { sgid: gid(0), dgid: gid(1), p_key: expected, ..path };
        let found = net.resolve(0, vec![Entry::path(EntryFlags(0), &by_gid)]);
        assert_eq!(found.map(|path| path.p_key), Ok(expected));
    }
    assert_eq!(net.counters(0).sa_queries, before, "all paths are preloaded");
}

#[test]
fn unused_preloaded_route_lives_for_route_timeout() {
    let route = |route_timeout, address_timeout| {
        let config = ServiceConfig { address_timeout, route_timeout, ..quiet() };
        let mut net = Net::new(2, &config);
        net.run_for(SECOND);
        let (sgid, dgid) = (gid(0), gid(1));
        let path =
            PathRecord { sgid, dgid, slid: lid(0), dlid: lid(1), sl: 7, ..PathRecord::zeroed() };
        net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
        net.is_mute = true;
        for _ in 0..3 {
            net.run_for(1000 * SECOND);
        }
        net.cached_path(0, &Address::Gid(gid(1))).map(|path| path.sl)
    };
    assert_eq!(route(None, ServiceConfig::default().address_timeout), Some(7));
    assert_eq!(route(None, Some(60 * SECOND)), Some(7));
    assert_eq!(route(Some(4000 * SECOND), None), Some(7));
    assert_eq!(route(Some(60 * SECOND), None), None);
}

#[test]
fn removed_preloaded_entries_make_room_for_others() {
    let config = ServiceConfig { max_destinations: 50, ..quiet() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let path = |number: u64| PathRecord {
        sgid: gid(0),
        dgid: Gid::new(PREFIX, Guid(0x9000 + number)),
        slid: lid(0),
        dlid: 1000 + number as u16,
        ..PathRecord::zeroed()
    };
    let paths = |from: u64| (from..from + 30).map(path).collect::<Vec<PathRecord>>();
    for from in [0, 100, 200] {
        let now = net.now;
        net.hosts[0].service.remove_preloaded_paths(PORT);
        net.hosts[0].service.preload_paths(now, PORT, &paths(from));
        for path in paths(from) {
            assert!(
                net.cached_path(0, &Address::Gid(path.dgid)).is_some(),
                "preloaded paths from {from}: {} is not cached",
                path.dgid
            );
        }
        let known = net.hosts[0].service.cached(now, None);
        assert_eq!(known.iter().filter(|it| it.is_preloaded).count(), 30);
    }
    // If the port gets another SM, preloaded routes become invalid.
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    let known = net.hosts[0].service.cached(net.now, None);
    assert_eq!(known.iter().filter(|it| it.is_preloaded).count(), 0);
}
