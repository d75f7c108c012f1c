//! Tests of the comparison of service levels, which decides whether a route is derived from a group.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Packet lifetime of groups. Only routes derived from groups have this lifetime, not routes of the SA.
const OF_GROUP: LifeTimeCode = LifeTimeCode(18);

impl Net {
    /// Returns the service level of the path to a host, and true if the path is derived from a group.
    fn level(&mut self, to: usize) -> (u8, bool) {
        let path = self.find(0, &name(to)).expect("the address is resolved");
        (path.sl, path.life_time == OF_GROUP)
    }
}

fn agrees(event: &Event) -> bool {
    matches!(event, Event::RoutesAgree { .. })
}

fn differs(event: &Event) -> bool {
    matches!(event, Event::RoutesDiffer { .. })
}

fn is_unknown(event: &Event) -> bool {
    matches!(event, Event::RoutesUnknown { .. })
}

#[test]
fn service_levels_are_compared_per_path() {
    let mut net = Net::new(4, &by_group());
    net.levels = [(2, 3)].into();
    net.run_for(SECOND);
    assert_eq!(net.level(1), (0, true));
    assert_eq!(net.level(2), (3, false));
    assert_eq!(net.level(3), (0, true));
    let events = net.events(0);
    let differing = |it: &Event| matches!(it, Event::RoutesDiffer { group: 0, given: 3, to, count: (1, 3), .. } if *to == gid(2));
    assert_eq!(events.iter().filter(|it| differing(it)).count(), 1, "{events:?}");
}

#[test]
fn service_level_of_unjoined_group_is_ignored() {
    let best = GroupSpec { rate: RateCode::GBPS_100, mtu: MtuCode::MTU_4096, sl: 3 };
    let mut net = Net::new(0, &by_group());
    (net.refusal, net.refused_sl) = (MadStatus(2 << 8), Some(3));
    let config = ServiceConfig { groups: vec![best], ..by_group() };
    for host in 0..2 {
        let service = Service::new(config.clone(), [host as u8 + 1; 32]);
        let qpn = Qpn::truncated(0x100 + host as u32);
        net.hosts.push(Host { service, state: state(host), qpn, is_member: false });
        net.update(host);
    }
    net.settle();
    net.run_for(SECOND);
    assert_eq!(net.level(1), (0, true));
    assert!(!net.events(0).iter().any(differs));
    // After the endpoint has joined the second group, the service reports that the service level of this group differs
    // from the service level of the paths.
    net.refusal = MadStatus::OK;
    net.run_for(120 * SECOND);
    net.hosts[0].service.flush();
    assert_eq!(net.level(1), (0, true));
    assert!(net.events(0).iter().any(differs));
}

#[test]
fn routes_use_groups_again_once_service_levels_match() {
    let mut net = Net::new(3, &by_group());
    net.levels = [(1, 3), (2, 5)].into();
    net.run_for(SECOND);
    assert_eq!((net.level(1), net.level(2)), ((3, false), (5, false)));
    assert!(net.events(0).iter().any(differs));
    // The service compares the service levels again at long intervals. It does not report the same differences again.
    net.sa_requests.clear();
    net.run_for(3600 * SECOND);
    let tables = net.sa_requests.iter().filter(|(method, _)| *method == Method::GET_TABLE).count();
    assert!((3..=5 * 3).contains(&tables), "{tables}");
    assert!(!net.events(0).iter().any(differs));
    // The SM changes the service levels without notice.
    net.levels.clear();
    net.run_for(2 * 3600 * SECOND);
    assert_eq!((net.level(1), net.level(2)), ((0, true), (0, true)));
    assert_eq!(net.events(0).iter().filter(|it| agrees(it)).count(), 1);
}

#[test]
fn unexpected_service_level_triggers_a_comparison() {
    // If paths have different service levels, the response to a query of a single path updates the service level of
    // this path.
    let mut net = Net::new(3, &by_group());
    net.levels = [(1, 3)].into();
    net.run_for(SECOND);
    assert_eq!(net.level(1), (3, false));
    net.levels.clear();
    net.hosts[0].service.flush();
    assert_eq!(net.level(1), (0, false));
    assert_eq!(net.level(1), (0, true));
    net.run_for(5 * SECOND);
    assert!(net.events(0).iter().any(agrees));
    // All service levels were equal until now. A path with another service level triggers a comparison of all paths.
    net.levels = [(1, 3), (2, 3)].into();
    net.hosts[0].service.flush();
    let to = Address::Gid(gid(1));
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(3));
    net.run_for(5 * SECOND);
    assert_eq!(net.level(2), (3, false), "all paths were compared again");
    assert!(net.events(0).iter().any(differs));
}

#[test]
fn groups_are_not_used_before_service_levels_are_compared() {
    for status in [MadStatus::BUSY, MadStatus::SA_NO_RESOURCES, MadStatus(2 << 8), MadStatus(7)] {
        let mut net = Net::new(2, &by_group());
        (net.sl, net.table_status) = (3, status);
        assert_eq!(net.level(1), (3, false), "{status}");
        net.run_for(30 * SECOND);
        let events = net.events(0);
        let unknown = events.iter().filter(|it| is_unknown(it)).count();
        assert_eq!((unknown, net.level(1)), (1, (3, false)), "{status}: {events:?}");
        // The service repeats the query of all paths until the SA responds.
        (net.sl, net.table_status) = (0, MadStatus::OK);
        net.run_for(90 * SECOND);
        assert_eq!(net.level(1), (0, true), "{status}");
    }
}

#[test]
fn new_port_is_assumed_to_have_the_common_service_level() {
    for (levels, new, expected) in [(&[][..], 0, (0, true)), (&[(1, 3)], 0, (0, false))] {
        let mut net = Net::new(3, &by_group());
        net.levels = levels.iter().copied().collect();
        net.run_for(SECOND);
        let service = Service::new(by_group(), [9; 32]);
        let qpn = Qpn::truncated(0x109);
        net.hosts.push(Host { service, state: state(3), qpn, is_member: false });
        net.levels.insert(3, new);
        net.update(3);
        net.settle();
        net.run_for(SECOND);
        assert_eq!(net.level(3), expected, "{levels:?}");
        assert_eq!(net.level(3), (0, true), "the service level is known");
    }
}

#[test]
fn disabling_the_comparison_resumes_waiting_requests() {
    let other = [
        ServiceConfig { check_routes: false, ..by_group() },
        quiet(),
        ServiceConfig { timeout: SECOND, ..by_group() },
    ];
    for config in other {
        let mut net = Net::new(2, &by_group());
        net.run_for(SECOND);
        net.find(0, &name(1)).expect("the address is resolved");
        // Another SM takes over, and the responses of its SA are delayed.
        net.is_slow = true;
        net.hosts[0].state.link.sm_lid = 101;
        net.update(0);
        net.settle();
        net.deliver_late();
        net.run_for(SECOND);
        assert_eq!(net.cached_path(0, &name(1)), None, "the resolution waits");
        net.late.clear();
        net.is_slow = false;
        net.hosts[0].service.configure(net.now, config);
        net.settle();
        net.run_for(SECOND);
        let answer = net.hosts[0].service.poll_reply().expect("a reply is queued").1;
        assert_eq!(ClientStatus(answer[2]), ClientStatus::SUCCESS);
    }
}

#[test]
fn new_configuration_keeps_known_service_levels() {
    let mut net = Net::new(3, &by_group());
    net.levels = [(2, 3)].into();
    net.run_for(SECOND);
    assert_eq!((net.level(1), net.level(2)), ((0, true), (3, false)));
    net.events(0);
    // While the SA does not respond, a new configuration does not discard the known service levels.
    net.is_mute = true;
    for _ in 0..3 {
        net.hosts[0].service.configure(net.now, by_group());
        net.settle();
        assert!(net.cached_path(0, &name(1)).is_some_and(|path| path.life_time == OF_GROUP));
        assert_eq!(net.cached_path(0, &name(2)).map(|path| path.sl), Some(3));
        net.run_for(20 * SECOND);
    }
    assert!(!net.events(0).iter().any(is_unknown));
    // A new configuration causes a comparison of service levels, even if they are known. From here on the SA responds
    // again.
    net.is_mute = false;
    net.levels = [(1, 4), (2, 4)].into();
    net.hosts[0].service.configure(net.now, by_group());
    net.run_for(SECOND);
    assert_eq!(net.level(1), (4, false));
}

#[test]
fn agreement_is_reported_after_another_sm() {
    let mut net = Net::new(2, &by_group());
    net.levels = [(1, 3)].into();
    net.run_for(SECOND);
    assert_eq!(net.level(1), (3, false));
    assert!(net.events(0).iter().any(differs));
    net.levels.clear();
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.run_for(SECOND);
    assert_eq!(net.level(1), (0, true));
    assert_eq!(net.events(0).iter().filter(|it| agrees(it)).count(), 1);
}

#[test]
fn ports_with_several_service_levels_use_the_sa() {
    let mut net = Net::new(3, &by_group());
    net.second_levels = [(1, 3)].into();
    net.run_for(SECOND);
    for _ in 0..3 {
        assert_eq!(net.level(1), (0, false));
        net.hosts[0].service.flush();
    }
    assert_eq!(net.level(2), (0, true));
}

#[test]
fn reregistration_keeps_service_levels_and_preloaded_routes() {
    let mut net = Net::new(3, &by_group());
    net.levels = [(2, 3)].into();
    net.run_for(SECOND);
    assert_eq!((net.level(1), net.level(2)), ((0, true), (3, false)));
    let path = PathRecord {
        sgid: gid(0),
        dgid: Gid::new(PREFIX, Guid(0x5000)),
        slid: lid(0),
        dlid: 50,
        sl: 7,
        ..PathRecord::zeroed()
    };
    net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
    // The SM requests reregistration, and the SA does not respond for a while.
    net.is_mute = true;
    net.hosts[0].state.registrations += 1;
    net.update(0);
    net.run_for(20 * SECOND);
    let known = net.cached_path(0, &name(1)).map(|path| (path.sl, path.life_time));
    assert_eq!(known, Some((0, OF_GROUP)));
    assert_eq!(net.cached_path(0, &Address::Gid(path.dgid)).map(|path| path.sl), Some(7));
    // Routes that were queried from the SA have become invalid.
    assert_eq!(net.cached_path(0, &name(2)), None);
    // When the SA responds, a request for reregistration causes a comparison of service levels.
    net.is_mute = false;
    net.levels = [(1, 4), (2, 4)].into();
    net.hosts[0].state.registrations += 1;
    net.update(0);
    net.run_for(SECOND);
    assert_eq!(net.level(1), (4, false));
    // Another SM invalidates service levels and preloaded routes.
    net.is_mute = true;
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.run_for(SECOND);
    for to in [name(1), Address::Gid(path.dgid)] {
        assert_eq!(net.cached_path(0, &to), None, "{to}");
    }
}

#[test]
fn comparison_of_many_paths_is_delayed() {
    let mut net = Net::new(2, &by_group());
    net.run_for(SECOND);
    let tables = |net: &Net| {
        net.sa_requests.iter().filter(|(method, _)| *method == Method::GET_TABLE).count()
    };
    let many = |number: u64| PathRecord {
        dgid: Gid::new(PREFIX, Guid(0x9000 + number)),
        ..PathRecord::zeroed()
    };
    let many: Vec<PathRecord> = (0..5000).map(many).collect();
    net.resolver().policy.store_levels(&many);
    let before = tables(&net);
    // Repeated reregistration requests do not postpone the comparison of service levels indefinitely.
    for _ in 0..3 {
        assert_eq!(tables(&net), before);
        net.hosts[0].state.registrations += 1;
        net.update(0);
        net.run_for(7 * SECOND / 2);
    }
    net.run_for(5 * SECOND / 2);
    assert_eq!(tables(&net), before + 1);
}
