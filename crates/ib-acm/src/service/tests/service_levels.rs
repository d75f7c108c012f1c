//! Service levels: which routes are made of groups.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// What tells a route that is made of a group from one of subnet administration.
const OF_GROUP: LifeTimeCode = LifeTimeCode(18);

impl Net {
    /// Returns the service level of the path to a host, and whether it is made of a group.
    fn level(&mut self, to: usize) -> (u8, bool) {
        let path = self.find(0, &name(to)).expect("it is there");
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
fn each_route_is_judged_by_itself() {
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
fn a_group_that_is_not_joined_makes_no_difference() {
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
    // Joined after all it is not the best that both have, and people are told that it is of no use.
    net.refusal = MadStatus::OK;
    net.run_for(120 * SECOND);
    net.hosts[0].service.flush();
    assert_eq!(net.level(1), (0, true));
    assert!(net.events(0).iter().any(differs));
}

#[test]
fn groups_make_routes_again_once_service_levels_are_theirs() {
    let mut net = Net::new(3, &by_group());
    net.levels = [(1, 3), (2, 5)].into();
    net.run_for(SECOND);
    assert_eq!((net.level(1), net.level(2)), ((3, false), (5, false)));
    assert!(net.events(0).iter().any(differs));
    // It is asked again, now and then only, and is not told twice what is no news.
    net.asked.clear();
    net.run_for(3600 * SECOND);
    let tables = net.asked.iter().filter(|(method, _)| *method == Method::GET_TABLE).count();
    assert!((3..=5 * 3).contains(&tables), "{tables}");
    assert!(!net.events(0).iter().any(differs));
    // No manager changes, and nothing is said to anybody.
    net.levels.clear();
    net.run_for(2 * 3600 * SECOND);
    assert_eq!((net.level(1), net.level(2)), ((0, true), (0, true)));
    assert_eq!(net.events(0).iter().filter(|it| agrees(it)).count(), 1);
}

#[test]
fn one_route_with_another_service_level_has_all_compared() {
    // Where it is known that they differ, a route that is asked for tells its own.
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
    // And where they were the same.
    net.levels = [(1, 3), (2, 3)].into();
    net.hosts[0].service.flush();
    let to = Address::Gid(gid(1));
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(3));
    net.run_for(5 * SECOND);
    assert_eq!(net.level(2), (3, false), "it was never asked for by itself");
    assert!(net.events(0).iter().any(differs));
}

#[test]
fn no_route_is_made_of_groups_before_service_levels_are_known() {
    for status in [MadStatus::BUSY, MadStatus::SA_NO_RESOURCES, MadStatus(2 << 8), MadStatus(7)] {
        let mut net = Net::new(2, &by_group());
        (net.sl, net.table_status) = (3, status);
        assert_eq!(net.level(1), (3, false), "{status}");
        net.run_for(30 * SECOND);
        let events = net.events(0);
        let unknown = events.iter().filter(|it| is_unknown(it)).count();
        assert_eq!((unknown, net.level(1)), (1, (3, false)), "{status}: {events:?}");
        // It is asked again until it answers.
        (net.sl, net.table_status) = (0, MadStatus::OK);
        net.run_for(90 * SECOND);
        assert_eq!(net.level(1), (0, true), "{status}");
    }
}

#[test]
fn ports_that_are_new_have_the_service_level_of_all_others_or_are_asked_for() {
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
        assert_eq!(net.level(3), (0, true), "it is known now");
    }
}

#[test]
fn who_waits_for_a_comparison_goes_on_when_none_is_wanted_any_more() {
    let other = [
        ServiceConfig { check_routes: false, ..by_group() },
        quiet(),
        ServiceConfig { timeout: SECOND, ..by_group() },
    ];
    for config in other {
        let mut net = Net::new(2, &by_group());
        net.run_for(SECOND);
        net.find(0, &name(1)).expect("it is there");
        // Another manager, which is asked again and takes its time.
        net.is_slow = true;
        net.hosts[0].state.link.sm_lid = 101;
        net.update(0);
        net.settle();
        net.deliver_late();
        net.run_for(SECOND);
        assert_eq!(net.known(0, &name(1)), None, "it waits");
        net.late.clear();
        net.is_slow = false;
        net.hosts[0].service.configure(net.now, config);
        net.settle();
        net.run_for(SECOND);
        let answer = net.hosts[0].service.poll_reply().expect("an answer").1;
        assert_eq!(ClientStatus(answer[2]), ClientStatus::SUCCESS);
    }
}

#[test]
fn what_was_compared_counts_on_when_files_are_read_again() {
    let mut net = Net::new(3, &by_group());
    net.levels = [(2, 3)].into();
    net.run_for(SECOND);
    assert_eq!((net.level(1), net.level(2)), ((0, true), (3, false)));
    net.events(0);
    // Whoever reads them again while subnet administration is silent loses nothing.
    net.is_mute = true;
    for _ in 0..3 {
        net.hosts[0].service.configure(net.now, by_group());
        net.settle();
        assert!(net.known(0, &name(1)).is_some_and(|path| path.life_time == OF_GROUP));
        assert_eq!(net.known(0, &name(2)).map(|path| path.sl), Some(3));
        net.run_for(20 * SECOND);
    }
    assert!(!net.events(0).iter().any(is_unknown));
    // It is compared again all the same.
    net.is_mute = false;
    net.levels = [(1, 4), (2, 4)].into();
    net.hosts[0].service.configure(net.now, by_group());
    net.run_for(SECOND);
    assert_eq!(net.level(1), (4, false));
}

#[test]
fn who_was_told_that_routes_differ_is_told_that_they_agree_after_another_manager() {
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
fn one_of_several_paths_to_a_port_does_not_speak_for_the_others() {
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
fn who_has_to_register_again_with_the_same_manager_keeps_levels_and_routes_of_files() {
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
    // The manager has much to do, and does not tell its paths for a while.
    net.is_mute = true;
    net.hosts[0].state.registrations += 1;
    net.update(0);
    net.run_for(20 * SECOND);
    let known = net.known(0, &name(1)).map(|path| (path.sl, path.life_time));
    assert_eq!(known, Some((0, OF_GROUP)));
    assert_eq!(net.known(0, &Address::Gid(path.dgid)).map(|path| path.sl), Some(7));
    // A route that it has told itself is not what it tells now.
    assert_eq!(net.known(0, &name(2)), None);
    // They are compared again all the same.
    net.is_mute = false;
    net.levels = [(1, 4), (2, 4)].into();
    net.hosts[0].state.registrations += 1;
    net.update(0);
    net.run_for(SECOND);
    assert_eq!(net.level(1), (4, false));
    // Another manager is another matter.
    net.is_mute = true;
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.run_for(SECOND);
    for to in [name(1), Address::Gid(path.dgid)] {
        assert_eq!(net.known(0, &to), None, "{to}");
    }
}

#[test]
fn who_knows_many_paths_takes_its_time_to_compare_them_again() {
    let mut net = Net::new(2, &by_group());
    net.run_for(SECOND);
    let tables =
        |net: &Net| net.asked.iter().filter(|(method, _)| *method == Method::GET_TABLE).count();
    let many = |number: u64| PathRecord {
        dgid: Gid::new(PREFIX, Guid(0x9000 + number)),
        ..PathRecord::zeroed()
    };
    let many: Vec<PathRecord> = (0..5000).map(many).collect();
    net.resolver().policy.store_levels(&many);
    let before = tables(&net);
    // The manager wants it again and again, which does not put off for ever what was to be done.
    for _ in 0..3 {
        assert_eq!(tables(&net), before);
        net.hosts[0].state.registrations += 1;
        net.update(0);
        net.run_for(7 * SECOND / 2);
    }
    net.run_for(5 * SECOND / 2);
    assert_eq!(tables(&net), before + 1);
}
