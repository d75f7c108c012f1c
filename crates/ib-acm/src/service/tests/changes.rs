//! Tests of changes: SMs are replaced, are slow, do not respond or reject requests; LIDs and configurations change.

use super::*;

/// A change of the state of a port.
type Change = fn(&mut PortState);

const MOVED: Change = |state| state.link.lid = 77;
const OTHER_MANAGER: Change = |state| state.link.sm_lid = 101;
const REGISTERED_AGAIN: Change = |state| state.registrations += 1;

#[test]
fn sa_response_before_a_port_change_is_discarded() {
    let to_port = PathRecord { sgid: gid(0), dgid: gid(1), ..PathRecord::zeroed() };
    let questions = [
        entry_of(&name(1)),
        entry_of(&Address::Gid(gid(1))),
        entry_of(&Address::Lid(lid(1))),
        Entry::path(EntryFlags::QUERY_SA, &to_port),
    ];
    for change in [MOVED, OTHER_MANAGER, REGISTERED_AGAIN] {
        for question in questions {
            let mut net = Net::new(2, &quiet());
            net.run_for(Duration::from_secs(1));
            net.is_slow = true;
            let mut bytes = Vec::new();
            Resolve::request([0; 8], vec![question]).put(ByteOrder::NATIVE, &mut bytes);
            assert_eq!(net.request(0, &bytes), None);
            net.run_for(Duration::from_millis(100));
            assert_eq!(net.late.len(), 1);
            // The paths in responses of the SA after the change have another service level.
            (net.is_slow, net.sl) = (false, 5);
            change(&mut net.hosts[0].state);
            net.update(0);
            net.deliver_late();
            net.settle();
            let (_, answer) = net.hosts[0].service.poll_reply().expect("a reply is queued");
            let header = ClientHeader::parse(answer.first_chunk().expect("the header is complete"));
            let answer = Resolve::parse(header, &answer[HEADER_LENGTH..], ByteOrder::NATIVE);
            let path = answer.entries[0].path_record();
            assert_eq!((path.slid, path.sl), (net.hosts[0].state.link.lid, 5));
            assert_eq!(net.hosts[0].service.pending(), 0);
            assert_eq!(net.find(0, &Address::Gid(gid(1))).map(|path| path.sl), Ok(5));
        }
    }
}

#[test]
fn sa_response_to_a_port_that_was_down_is_discarded() {
    let mut net = Net::new(2, &quiet());
    net.run_for(Duration::from_secs(1));
    net.is_slow = true;
    assert_eq!(net.cached_path(0, &Address::Gid(gid(1))), None);
    for is_active in [false, true] {
        net.hosts[0].state.is_active = is_active;
        net.update(0);
    }
    let (_, answer) = net.hosts[0].service.poll_reply().expect("the request has completed");
    assert_eq!(ClientStatus(answer[2]), ClientStatus::ENOTCONN);
    (net.is_slow, net.sl) = (false, 5);
    net.deliver_late();
    net.settle();
    assert_eq!(net.find(0, &Address::Gid(gid(1))).map(|path| path.sl), Ok(5));
}

#[test]
fn comparison_before_an_sm_change_is_discarded() {
    let mut net = Net::new(2, &by_group());
    net.is_slow = true;
    net.run_for(Duration::from_secs(1));
    let tables = net.sa_requests.iter().filter(|(method, _)| *method == Method::GET_TABLE).count();
    assert!(tables >= 2, "both hosts query all paths");
    (net.is_slow, net.sl) = (false, 3);
    for host in 0..2 {
        net.hosts[host].state.link.sm_lid = 101;
        net.update(host);
    }
    net.deliver_late();
    net.settle();
    assert_eq!(net.find(0, &name(1)).map(|path| path.sl), Ok(3));
}

#[test]
fn membership_ends_only_if_the_sa_rejects_a_join() {
    for (is_mute, refusal, is_kept) in [
        (true, MadStatus::OK, true),
        (false, MadStatus::BUSY, true),
        (false, MadStatus(2 << 8), false),
    ] {
        let config = ServiceConfig { check_interval: Some(Duration::from_secs(20)), ..by_group() };
        let mut net = Net::new(2, &config);
        net.run_for(Duration::from_secs(1));
        (net.is_mute, net.refusal) = (is_mute, refusal);
        let before = net.counters(0).joins;
        // The service joins its groups again about every 20 s.
        net.run_for(Duration::from_secs(40));
        assert!(net.counters(0).joins > before);
        let not_joined = |it: &Event| matches!(it, Event::NotJoined { .. });
        assert!(
            net.events(0).iter().any(not_joined),
            "mute: {is_mute}, status of joins: {refusal}"
        );
        assert_eq!(
            net.hosts[0].service.endpoints()[0].is_up,
            is_kept,
            "mute: {is_mute}, status of joins: {refusal}"
        );
        assert_eq!(net.hosts[0].is_member, is_kept);
        // If the host is still a member of the base group, its service still resolves addresses.
        let found = net.find(0, &name(1)).map(|path| path.dlid);
        assert_eq!(
            found.ok(),
            is_kept.then(|| lid(1)),
            "mute: {is_mute}, status of joins: {refusal}"
        );
        (net.is_mute, net.refusal) = (false, MadStatus::OK);
        net.run_for(Duration::from_secs(120));
        assert!(net.hosts[0].service.endpoints()[0].is_up && net.hosts[0].is_member);
        assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    }
}

#[test]
fn cached_routes_are_used_while_the_sa_is_silent() {
    let config = ServiceConfig { route_timeout: Some(Duration::from_secs(60)), ..quiet() };
    let mut net = Net::new(3, &config);
    net.run_for(Duration::from_secs(1));
    let (known, other) = (Address::Gid(gid(1)), Address::Gid(gid(2)));
    net.find(0, &known).expect("the address is resolved");
    net.is_mute = true;
    for _ in 0..11 {
        net.run_for(Duration::from_secs(5));
        assert_eq!(net.cached_path(0, &known).map(|path| path.dlid), Some(lid(1)), "{:?}", net.now);
    }
    let begun = net.now;
    assert_eq!(net.find(0, &other), Err(ClientStatus::ETIMEDOUT));
    assert!(net.now.since(begun) < Duration::from_secs(13));
    // The service finds the owner of the name, but not the route to the owner.
    assert_eq!(net.find(0, &name(2)), Err(ClientStatus::ETIMEDOUT));
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.find(0, &known), Err(ClientStatus::ETIMEDOUT), "the route has expired");
    net.is_mute = false;
    for to in [known, other, name(2)] {
        net.find(0, &to).expect("the SA responds again");
    }
}

#[test]
fn service_levels_are_compared_with_all_groups() {
    // The base group has the service level of all paths, but the preferred group has another one.
    let best = GroupSpec { rate: RateCode::GBPS_100, mtu: MtuCode::MTU_4096, sl: 3 };
    let config = ServiceConfig { groups: vec![best], ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.find(0, &name(1)).map(|path| path.sl), Ok(0));
    let differs = |event: &Event| matches!(event, Event::RoutesDiffer { group: 3, given: 0, .. });
    let events = net.events(0);
    assert!(events.iter().any(differs), "{events:?}");
    // If all service levels are equal, routes are derived from the preferred group.
    net.sl = 3;
    let base_group = GroupSpec { sl: 3, ..config.base_group };
    let mut net = Net::new(2, &ServiceConfig { base_group, ..config });
    net.sl = 3;
    for host in 0..2 {
        net.hosts[host].state.registrations += 1;
        net.update(host);
    }
    net.settle();
    net.run_for(Duration::from_secs(1));
    let before = net.counters(0).sa_queries;
    let path = net.find(0, &name(1)).expect("the address is resolved");
    assert_eq!((path.sl, path.rate), (3, RateCode::GBPS_100));
    assert_eq!(net.counters(0).sa_queries, before);
}

#[test]
fn immediately_failing_resolutions_do_not_recurse() {
    let config = ServiceConfig { resolve_depth: 1, ..quiet() };
    let mut net = Net::new(1, &config);
    net.run_for(Duration::from_secs(1));
    for number in 0..20_000 {
        let to = Address::name(&format!("nobody{number}")).expect("the name is valid");
        assert_eq!(net.cached_path(0, &to), None);
    }
    // The first resolution is active. When it fails, each of the others is started and fails immediately.
    net.hosts[0].state.has_datagrams = false;
    net.update(0);
    net.run_for(Duration::from_secs(5));
    let replies = std::iter::from_fn(|| net.hosts[0].service.poll_reply()).count();
    assert_eq!((replies, net.hosts[0].service.pending()), (20_000, 0));
}

#[test]
fn changed_configuration_applies_to_existing_endpoints() {
    let stored = |number| Address::name(&format!("stored{number}")).expect("the name is valid");
    let host = |number: usize, to| (stored(number), gid(to));
    let config = ServiceConfig { hosts: vec![host(1, 1), host(2, 1), host(3, 2)], ..quiet() };
    let mut net = Net::new(3, &config);
    net.run_for(Duration::from_secs(1));
    for (number, to) in [(1, 1), (2, 1), (3, 2)] {
        assert_eq!(net.find(0, &stored(number)).map(|path| path.dlid), Ok(lid(to)));
    }
    // In the new configuration, the first name is unchanged, and the second name has another GID. The third name is
    // removed, and the fourth name is new.
    let config = ServiceConfig { hosts: vec![host(1, 1), host(2, 2), host(4, 1)], ..config };
    net.hosts[0].service.configure(net.now, config.clone());
    net.settle();
    for (number, to) in [(1, 1), (2, 2), (4, 1)] {
        assert_eq!(net.find(0, &stored(number)).map(|path| path.dlid), Ok(lid(to)));
    }
    assert_eq!(net.find(0, &stored(3)), Err(ClientStatus::ETIMEDOUT));
    // The new configuration has a smaller cache.
    for host in [1, 2] {
        net.find(0, &name(host)).expect("the address is resolved");
    }
    let known = |net: &Net| net.hosts[0].service.endpoints()[0].cached_addresses;
    assert!(known(&net) > 4);
    let config = ServiceConfig { hosts: Vec::new(), max_destinations: 4, ..config };
    net.hosts[0].service.configure(net.now, config.clone());
    net.settle();
    assert!(known(&net) <= 4);
    assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
    assert!(known(&net) <= 4);
    // The new configuration allows more outstanding SA queries.
    net.hosts[0].service.flush();
    net.run_for(Duration::from_secs(1));
    net.is_slow = true;
    net.sa_requests.clear();
    for host in [1, 2] {
        assert_eq!(net.cached_path(0, &Address::Gid(gid(host))), None);
    }
    let queries = |net: &Net| {
        net.sa_requests.iter().filter(|(_, id)| *id == AttributeId::PATH_RECORD).count()
    };
    assert_eq!(queries(&net), 1);
    net.hosts[0].service.configure(net.now, ServiceConfig { sa_depth: 4, ..config });
    net.settle();
    assert_eq!(queries(&net), 2);
}

#[test]
fn preloaded_routes_are_replaced_by_a_new_configuration() {
    let mut net = Net::new(3, &quiet());
    net.run_for(Duration::from_secs(1));
    let path = |to: usize| PathRecord {
        sgid: gid(0),
        dgid: gid(to),
        slid: lid(0),
        dlid: lid(to),
        sl: 7,
        ..PathRecord::zeroed()
    };
    net.hosts[0].service.preload_paths(net.now, PORT, &[path(1), path(2)]);
    for to in [1, 2] {
        assert_eq!(net.find(0, &Address::Gid(gid(to))).map(|path| path.sl), Ok(7));
    }
    net.hosts[0].service.configure(net.now, quiet());
    net.hosts[0].service.preload_paths(net.now, PORT, &[PathRecord { sl: 6, ..path(1) }]);
    net.settle();
    assert_eq!(net.find(0, &Address::Gid(gid(1))).map(|path| path.sl), Ok(6));
    assert_eq!(
        net.find(0, &Address::Gid(gid(2))).map(|path| path.sl),
        Ok(0),
        "the path is no longer preloaded"
    );
}

/// Returns a preloaded path from the first host to the host `to`.
fn of_file(to: usize) -> PathRecord {
    let (sgid, dgid) = (gid(0), gid(to));
    PathRecord { sgid, dgid, slid: lid(0), dlid: lid(to), sl: 7, ..PathRecord::zeroed() }
}

#[test]
fn cached_routes_are_invalid_after_a_port_change_while_down() {
    let changes: [Change; 4] = [
        |state| state.link.gid_prefix = 0xfec0 << 48,
        MOVED,
        OTHER_MANAGER,
        |state| {
            MOVED(state);
            OTHER_MANAGER(state);
            state.link.gid_prefix = 0xfec0 << 48;
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut net = Net::new(3, &by_group());
        net.run_for(Duration::from_secs(1));
        net.find(0, &name(1)).expect("the address is resolved");
        net.find(0, &Address::Gid(gid(1))).expect("the address is resolved");
        net.hosts[0].service.preload_paths(net.now, PORT, &[of_file(2)]);
        change(&mut net.hosts[0].state);
        net.hosts[0].state.is_active = false;
        net.update(0);
        let queries = net.counters(0).sa_queries;
        net.run_for(Duration::from_secs(5));
        assert_eq!(net.counters(0).sa_queries, queries, "an inactive port sends no queries");
        net.hosts[0].state.is_active = true;
        (net.is_mute, net.off) = (true, vec![1, 2]);
        net.update(0);
        for to in [Address::Gid(gid(2)), Address::Gid(gid(1)), name(1)] {
            assert_eq!(net.cached_path(0, &to), None, "change {number}: {to}");
        }
    }
}

#[test]
fn rejected_group_does_not_keep_the_endpoint_down() {
    let best = |sl| GroupSpec { rate: RateCode::GBPS_100, mtu: MtuCode::MTU_4096, sl };
    let config = ServiceConfig {
        groups: vec![best(0), best(3)],
        announcements: 2,
        check_interval: Some(Duration::from_secs(20)),
        ..by_group()
    };
    let mut net = Net::new(0, &config);
    (net.refusal, net.refused_sl) = (MadStatus(7), Some(3));
    let service = Service::new(config, [1; 32]);
    let qpn = Qpn::truncated(0x100);
    net.hosts.push(Host { service, state: state(0), qpn, is_member: false });
    net.update(0);
    net.settle();
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.counters(0).announcements, 2);
    let events = net.events(0);
    let is_up = |event: &&Event| matches!(event, Event::Up { groups: 2, .. });
    assert_eq!(events.iter().filter(is_up).count(), 1, "{events:?}");
    // Periodic joins include only the two groups that are joined.
    let before = net.counters(0).joins;
    net.run_for(Duration::from_secs(100));
    let refused = |event: &Event| matches!(event, Event::NotJoined { .. });
    let refused = net.events(0).iter().filter(|it| refused(it)).count() as u64;
    let joined = net.counters(0).joins - before - refused;
    assert!((6..=14).contains(&joined), "{joined}");
}

#[test]
fn recreated_endpoint_has_a_single_rejoin_timer() {
    let config = ServiceConfig { check_interval: Some(Duration::from_secs(20)), ..by_group() };
    let mut net = Net::new(1, &config);
    net.run_for(Duration::from_secs(1));
    for _ in 0..20 {
        for p_keys in [vec![], vec![PKey::DEFAULT]] {
            net.hosts[0].state.p_keys = p_keys;
            net.update(0);
            net.run_for(Duration::from_millis(300));
        }
    }
    let groups = net.hosts[0].service.endpoints()[0].groups.len() as u64;
    let before = net.counters(0).joins;
    net.run_for(Duration::from_secs(200));
    let joins = net.counters(0).joins - before;
    assert!((7 * groups..=14 * groups).contains(&joins), "{joins} joins of {groups} groups");
}
