//! Tests of the priority and the time limits of SA requests, and of their effect on cached routes.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a client message that requests an SA query for the path to a host.
fn query(to: usize) -> Vec<u8> {
    let wanted = PathRecord { sgid: gid(0), dgid: gid(to), ..PathRecord::zeroed() };
    let mut bytes = Vec::new();
    let entry = Entry::path(EntryFlags::QUERY_SA, &wanted);
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    bytes
}

impl Net {
    /// Returns the statuses of the responses that a host's service sends to clients.
    fn statuses(&mut self, host: usize) -> Vec<ClientStatus> {
        let service = &mut self.hosts[host].service;
        let replies = std::iter::from_fn(|| service.poll_reply());
        replies.map(|(_, bytes)| ClientStatus(bytes[2])).collect()
    }

    fn outstanding(&self, host: usize) -> usize {
        self.hosts[host].service.table.ports[&PORT].requester.outstanding()
    }
}

#[test]
fn used_route_survives_a_busy_sa() {
    let config = ServiceConfig { route_timeout: Some(160 * SECOND), ..quiet() };
    for status in [MadStatus::BUSY, MadStatus::SA_NO_RESOURCES] {
        for to in [name(1), Address::Gid(gid(1)), Address::Lid(lid(1))] {
            let mut net = Net::new(2, &config);
            net.run_for(SECOND);
            net.find(0, &to).expect("the address is resolved");
            net.path_status = status;
            net.wanted.clear();
            for _ in 0..150 {
                net.run_for(SECOND);
                assert!(
                    net.cached_path(0, &to).is_some(),
                    "status {status}, address {to}, at {:?}",
                    net.now
                );
            }
            // Because the SA is busy, the service repeats the query, and doubles the interval each time.
            let count = net.wanted.len();
            assert!((3..=14).contains(&count), "status {status}, address {to}: {count} queries");
            // The service repeats the query even if no client requests the route.
            net.path_status = MadStatus::OK;
            net.sl = 4;
            net.run_for(80 * SECOND);
            assert_eq!(
                net.cached_path(0, &to).map(|path| path.sl),
                Some(4),
                "status {status}, address {to}"
            );
        }
    }
    // The route becomes invalid at the end of its lifetime, or when the SA rejects the query.
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("the address is resolved");
    net.path_status = MadStatus::BUSY;
    net.run_for(170 * SECOND);
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ETIMEDOUT));
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("the address is resolved");
    net.path_status = MadStatus::SA_NO_RECORDS;
    net.run_for(130 * SECOND);
    net.cached_path(0, &name(1)).expect("the path is still cached");
    net.settle();
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENODATA));
}

#[test]
fn client_queries_have_priority_over_refreshes() {
    let config = ServiceConfig { route_timeout: Some(60 * SECOND), sa_depth: 1, ..quiet() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let stored = |number: u64| Gid::new(PREFIX, Guid(0x9_0000 + number));
    let path = |number: u64| PathRecord {
        sgid: gid(0),
        dgid: stored(number),
        slid: lid(0),
        dlid: 1000 + number as u16,
        ..PathRecord::zeroed()
    };
    let paths: Vec<PathRecord> = (0..3000).map(path).collect();
    net.hosts[0].service.preload_paths(net.now, PORT, &paths);
    net.run_for(SECOND);
    for number in 0..3000 {
        net.cached_path(0, &Address::Gid(stored(number))).expect("the address is preloaded");
    }
    // All routes have to be refreshed, but the SA does not respond.
    net.is_mute = true;
    net.run_for(50 * SECOND);
    let waiting = net.outstanding(0);
    assert!((100..=1024).contains(&waiting), "{waiting}");
    net.wanted.clear();
    assert_eq!(net.cached_path(0, &Address::Gid(gid(1))), None);
    net.request(0, &query(1));
    net.run_for(2 * SECOND);
    let is_asked = |net: &Net| net.wanted.iter().any(|wanted| wanted.dgid == gid(1));
    assert!(is_asked(&net), "{} paths queried, but not for the client", net.wanted.len());
    // When the SA responds again, the service responds to the clients.
    net.is_mute = false;
    net.run_for(4 * SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS; 2]);
}

#[test]
fn client_request_does_not_wait_for_a_scheduled_refresh() {
    let config = ServiceConfig { route_timeout: Some(16 * SECOND), sa_depth: 1, ..quiet() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let to = Address::Gid(gid(1));
    net.find(0, &to).expect("the address is resolved");
    net.is_mute = true;
    net.run_for(10 * SECOND);
    net.cached_path(0, &to).expect("the route is still valid");
    // The route has expired. Its next refresh is scheduled for a much later time.
    net.run_for(6 * SECOND);
    net.is_mute = false;
    net.wanted.clear();
    assert_eq!(net.cached_path(0, &to), None);
    net.run_for(SECOND / 10);
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS]);
    assert_eq!(net.wanted.len(), 1);
}

#[test]
fn client_requests_fail_at_their_time_limit() {
    let mut net = Net::new(40, &quiet());
    net.run_for(SECOND);
    net.is_mute = true;
    for host in 1..20 {
        assert_eq!(net.request(0, &query(host)), None);
        assert_eq!(net.cached_path(0, &Address::Gid(gid(host))), None);
        assert_eq!(net.cached_path(0, &Address::Lid(lid(host))), None);
    }
    net.run_for(net.hosts[0].service.config().request_time_limit());
    assert_eq!(net.statuses(0), [ClientStatus::ETIMEDOUT; 57]);
    assert_eq!(net.outstanding(0), 0, "requests without a waiting client are not sent");
    // Queries that no resolution waits for do not delay a new query.
    net.is_mute = false;
    assert!(net.find(0, &Address::Gid(gid(30))).is_ok());
    assert_eq!(net.hosts[0].service.pending(), 0);
}

#[test]
fn joins_have_priority_over_client_queries() {
    let mut net = Net::new(40, &quiet());
    net.run_for(SECOND);
    net.is_mute = true;
    for host in 1..40 {
        assert_eq!(net.request(0, &query(host)), None);
        assert_eq!(net.cached_path(0, &Address::Gid(gid(host))), None);
    }
    net.sa_requests.clear();
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.is_mute = false;
    net.settle();
    assert_eq!(net.sa_requests.first().map(|asked| asked.1), Some(AttributeId::MC_MEMBER_RECORD));
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS; 78]);
}

#[test]
fn client_query_has_a_limit_of_restarts() {
    type Change = fn(&mut PortState, u16);
    let changes: [Change; 2] =
        [|state, number| state.link.lid = 50 + number, |state, number| state.link.sm_lid = number];
    for change in changes {
        let mut net = Net::new(2, &quiet());
        net.run_for(SECOND);
        net.is_mute = true;
        assert_eq!(net.request(0, &query(1)), None);
        net.wanted.clear();
        for number in 0..200 {
            net.run_for(SECOND / 10);
            change(&mut net.hosts[0].state, 200 + number);
            net.update(0);
            net.settle();
        }
        assert_eq!(net.statuses(0), [ClientStatus::ENOTCONN]);
        assert!(net.wanted.len() <= 8, "{}", net.wanted.len());
        // A single change of the port does not extend the time limit of a query.
        assert_eq!(net.request(0, &query(1)), None);
        net.run_for(11 * SECOND);
        change(&mut net.hosts[0].state, 300);
        net.update(0);
        net.settle();
        net.run_for(SECOND);
        assert_eq!(net.statuses(0), [ClientStatus::ETIMEDOUT]);
        assert_eq!(net.hosts[0].service.pending(), 0);
    }
}

#[test]
fn only_final_errors_of_the_sa_end_a_membership() {
    for (refusal, is_kept) in [(MadStatus::SA_NO_RESOURCES, true), (MadStatus(7), false)] {
        let config = ServiceConfig { check_interval: Some(20 * SECOND), ..by_group() };
        let mut net = Net::new(2, &config);
        net.run_for(SECOND);
        net.refusal = refusal;
        net.run_for(40 * SECOND);
        assert_eq!(net.hosts[0].is_member, is_kept, "{refusal}");
    }
}

#[test]
fn impossible_check_fails_its_requests() {
    let config = ServiceConfig { check_interval: Some(10 * SECOND), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("the address is resolved");
    net.run_for(25 * SECOND);
    net.off.push(1);
    let before = net.counters(0).checks;
    assert_eq!(net.cached_path(0, &name(1)), None);
    assert_eq!(net.counters(0).checks, before + 1, "the owner is queried first");
    // The check cannot be sent, because the endpoint no longer has an address for the source field of the request.
    net.hosts[0].state.names.clear();
    net.update(0);
    net.settle();
    net.run_for(SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::ENODATA]);
    assert!(net.resolver().peers.checks.is_empty());
}

#[test]
fn all_lids_of_a_port_can_be_cached() {
    for config in [quiet(), by_group()] {
        let config = ServiceConfig { check_interval: Some(100 * SECOND), ..config };
        let mut net = Net::new(2, &config);
        for (host, lid) in [(0, 10), (1, 20)] {
            net.hosts[host].state.link.lmc = 1;
            net.hosts[host].state.link.lid = lid;
            net.update(host);
        }
        net.settle();
        net.run_for(SECOND);
        net.find(0, &name(1)).expect("the address is resolved");
        let lids = [20, 21].map(Address::Lid);
        for (to, lid) in lids.iter().zip([20, 21]) {
            assert_eq!(net.find(0, to).map(|path| path.dlid), Ok(lid));
        }
        // While clients request the routes to both LIDs, these routes remain cached. They are refreshed as rarely as
        // others.
        let before = net.counters(0).sa_queries;
        for _ in 0..60 {
            for (to, lid) in lids.iter().zip([20, 21]) {
                assert_eq!(
                    net.cached_path(0, to).map(|path| path.dlid),
                    Some(lid),
                    "{:?}",
                    net.now
                );
            }
            assert_eq!(net.cached_path(0, &name(1)).map(|path| path.dlid), Some(20));
            net.run_for(10 * SECOND);
        }
        assert!(net.counters(0).sa_queries - before <= 16, "{}", net.counters(0).sa_queries);
        // After the port has got other LIDs, its old LIDs are invalid.
        net.hosts[1].state.link.lid = 30;
        net.update(1);
        net.run_for(30 * SECOND);
        assert!(net.find(0, &lids[1]).is_err());
        assert_eq!(net.find(0, &Address::Lid(31)).map(|path| path.dlid), Ok(31));
    }
}

#[test]
fn old_lid_of_a_peer_causes_a_bounded_number_of_checks() {
    let config = ServiceConfig { address_timeout: Some(60 * SECOND), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let old = Address::Lid(lid(1));
    for to in [&name(1), &old, &old] {
        net.find(0, to).expect("the address is resolved");
        net.run_for(SECOND);
    }
    // The host gets another LID, and sends its next request from it. No client requests the old LID any more.
    net.hosts[1].state.link.lid = 30;
    net.update(1);
    net.settle();
    assert!(net.find(1, &name(9)).is_err());
    net.run_for(10 * SECOND);
    let before = net.counters(0).checks;
    for _ in 0..36 {
        net.run_for(5 * SECOND);
        net.cached_path(0, &name(1));
    }
    let checks = net.counters(0).checks - before;
    assert!((1..=12).contains(&checks), "{checks}");
}

#[test]
fn zero_lifetimes_cause_no_busy_sweeps() {
    let none = Some(Duration::ZERO);
    for (route_timeout, address_timeout) in [(none, None), (none, none), (None, none)] {
        let config =
            ServiceConfig { route_timeout, address_timeout, check_interval: None, ..quiet() };
        let mut net = Net::new(2, &config);
        net.run_for(5 * SECOND);
        for _ in 0..2 {
            assert_eq!(net.find(0, &name(1)).map(|path| path.dlid), Ok(lid(1)));
        }
        net.run_for(5 * SECOND);
        let mut wakes = 0;
        let end = net.now + 60 * SECOND;
        while let Some(due) = net.hosts[0].service.poll_timeout().filter(|&due| due <= end) {
            net.run_for(due.since(net.now).max(Duration::from_millis(1)));
            wakes += 1;
        }
        assert!(wakes <= 66, "{wakes}");
    }
}

#[test]
fn failing_joins_do_not_starve_client_queries() {
    let group = |sl| GroupSpec { rate: RateCode::GBPS_10, mtu: MtuCode::MTU_2048, sl };
    let groups = (1..6).map(group).collect();
    let config = ServiceConfig { groups, sa_depth: 1, ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.mute_to = Some(AttributeId::MC_MEMBER_RECORD);
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.settle();
    // After a change of the SM, the first join of each group has priority over client queries. Later, a query is
    // delayed by at most one repeated join.
    net.run_for(60 * SECOND);
    for _ in 0..20 {
        assert_eq!(net.request(0, &query(1)), None);
        net.run_for(net.hosts[0].service.config().request_time_limit());
        assert_eq!(net.statuses(0), [ClientStatus::SUCCESS], "at {:?}", net.now);
    }
}

#[test]
fn background_resolutions_do_not_delay_client_requests() {
    let config = ServiceConfig { resolve_depth: 4, ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let now = net.now;
    for number in 0..100 {
        let to = Address::name(&format!("gone{number}")).expect("the name is valid");
        net.resolve_in_background(&to);
    }
    net.settle();
    assert_eq!(net.resolver().resolutions.counts().1, 2, "at most `resolve_depth / 2` are active");
    net.find(0, &name(1)).expect("the address is resolved");
    assert_eq!(net.now, now, "the response is immediate");
    // If a client requests an address whose background resolution is queued, the resolution does not wait for other
    // background resolutions.
    let mut bytes = Vec::new();
    let late = Address::name("gone99").expect("the name is valid");
    Resolve::request([0; 8], vec![entry_of(&late)]).put(ByteOrder::NATIVE, &mut bytes);
    let before = net.sent.len();
    assert_eq!(net.request(0, &bytes), None);
    assert_eq!(net.sent.len(), before + 1, "the request is sent immediately");
    net.run_for(300 * SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}

#[test]
fn removed_group_is_not_joined() {
    let other = GroupSpec { rate: RateCode::GBPS_10, mtu: MtuCode::MTU_2048, sl: 3 };
    let mut net = Net::new(1, &by_group());
    net.run_for(SECOND);
    net.is_mute = true;
    let now = net.now;
    let config = ServiceConfig { groups: vec![other], ..by_group() };
    net.hosts[0].service.configure(now, config);
    net.settle();
    let mgid = ib_wire::mad::acm::group_gid(PKey::DEFAULT, 3, other.rate, other.mtu);
    let joins = |net: &Net| {
        let asked = net.hosts[0].service.table.ports[&PORT].requests();
        asked.filter(|it| matches!(it, sa::SaRequest::Join { mgid: it, .. } if *it == mgid)).count()
    };
    assert_eq!(joins(&net), 1);
    net.hosts[0].service.configure(now, by_group());
    net.settle();
    assert_eq!(joins(&net), 0);
    // The SA may have received the join, so the service leaves the group.
    let leaves = net.sa_requests.iter().filter(|(method, _)| *method == Method::DELETE).count();
    assert_eq!(leaves, 1);
}

#[test]
fn preloaded_routes_survive_link_flaps_but_not_another_sm() {
    let mut net = Net::new(2, &quiet());
    net.run_for(SECOND);
    let path = of_file();
    net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
    let to = Address::Gid(gid(1));
    for is_active in [false, true] {
        net.hosts[0].state.is_active = is_active;
        net.update(0);
        net.settle();
    }
    net.run_for(SECOND);
    assert_eq!(net.cached_path(0, &to).map(|path| path.sl), Some(7));
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.settle();
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(0));
    // Preloaded routes can be added again, and can be removed.
    net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
    assert_eq!(net.cached_path(0, &to).map(|path| path.sl), Some(7));
    net.hosts[0].service.remove_preloaded_paths(PORT);
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(0));
}
