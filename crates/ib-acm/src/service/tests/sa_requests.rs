//! What is asked of subnet administration: in which order, for how long, and what becomes of what is known.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns what a program says that wants subnet administration asked for the path to a host.
fn query(to: usize) -> Vec<u8> {
    let wanted = PathRecord { sgid: gid(0), dgid: gid(to), ..PathRecord::zeroed() };
    let mut bytes = Vec::new();
    let entry = Entry::path(EntryFlags::QUERY_SA, &wanted);
    Resolve::request([0; 8], vec![entry]).put(ByteOrder::NATIVE, &mut bytes);
    bytes
}

impl Net {
    /// Returns the statuses of the answers that have come to the programs of a host.
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
fn a_route_in_use_outlasts_a_manager_that_is_busy_and_is_asked_for_again_with_longer_waits() {
    let config = ServiceConfig { route_timeout: Some(160 * SECOND), ..quiet() };
    for status in [MadStatus::BUSY, MadStatus::SA_NO_RESOURCES] {
        for to in [name(1), Address::Gid(gid(1)), Address::Lid(lid(1))] {
            let mut net = Net::new(2, &config);
            net.run_for(SECOND);
            net.find(0, &to).expect("it is there");
            net.path_status = status;
            net.wanted.clear();
            for _ in 0..150 {
                net.run_for(SECOND);
                assert!(net.known(0, &to).is_some(), "{status} {to} at {:?}", net.now);
            }
            // A datagram to begin with and one more where it says that it is busy, each after twice the time.
            let count = net.wanted.len();
            assert!((3..=14).contains(&count), "{status} {to}: {count}");
            // It is asked again without anybody who asks for the route.
            net.path_status = MadStatus::OK;
            net.sl = 4;
            net.run_for(80 * SECOND);
            assert_eq!(net.known(0, &to).map(|path| path.sl), Some(4), "{status} {to}");
        }
    }
    // Once its time is over it is gone, and so it is when the manager says no.
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("it is there");
    net.path_status = MadStatus::BUSY;
    net.run_for(170 * SECOND);
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ETIMEDOUT));
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("it is there");
    net.path_status = MadStatus::SA_NO_RECORDS;
    net.run_for(130 * SECOND);
    net.known(0, &name(1)).expect("it is asked for again now");
    net.settle();
    assert_eq!(net.find(0, &name(1)), Err(ClientStatus::ENODATA));
}

#[test]
fn what_programs_ask_goes_before_what_keeps_routes_fresh() {
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
        net.known(0, &Address::Gid(stored(number))).expect("a file says it");
    }
    // All of them grow old, and there is no answer.
    net.is_mute = true;
    net.run_for(50 * SECOND);
    let waiting = net.outstanding(0);
    assert!((100..=1024).contains(&waiting), "{waiting}");
    net.wanted.clear();
    assert_eq!(net.known(0, &Address::Gid(gid(1))), None);
    net.say(0, &query(1));
    net.run_for(2 * SECOND);
    let is_asked = |net: &Net| net.wanted.iter().any(|wanted| wanted.dgid == gid(1));
    assert!(is_asked(&net), "{} others were", net.wanted.len());
    // One of them was on the wire; the manager answers those that wait once it is there.
    net.is_mute = false;
    net.run_for(4 * SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS; 2]);
}

#[test]
fn a_route_that_a_program_waits_for_is_not_asked_for_as_one_that_is_refreshed() {
    let config = ServiceConfig { route_timeout: Some(16 * SECOND), sa_depth: 1, ..quiet() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let to = Address::Gid(gid(1));
    net.find(0, &to).expect("it is there");
    net.is_mute = true;
    net.run_for(10 * SECOND);
    net.known(0, &to).expect("it still counts");
    // It is too old now, and its turn comes after a long while only.
    net.run_for(6 * SECOND);
    net.is_mute = false;
    net.wanted.clear();
    assert_eq!(net.known(0, &to), None);
    net.run_for(SECOND / 10);
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS]);
    assert_eq!(net.wanted.len(), 1);
}

#[test]
fn everything_that_a_program_asks_ends_in_time_and_nothing_is_left() {
    let mut net = Net::new(40, &quiet());
    net.run_for(SECOND);
    net.is_mute = true;
    for host in 1..20 {
        assert_eq!(net.say(0, &query(host)), None);
        assert_eq!(net.known(0, &Address::Gid(gid(host))), None);
        assert_eq!(net.known(0, &Address::Lid(lid(host))), None);
    }
    net.run_for(net.hosts[0].service.config().request_time_limit());
    assert_eq!(net.statuses(0), [ClientStatus::ETIMEDOUT; 57]);
    assert_eq!(net.outstanding(0), 0, "what nobody waits for is not asked");
    // Whoever asks now has the manager to itself.
    net.is_mute = false;
    assert!(net.find(0, &Address::Gid(gid(30))).is_ok());
    assert_eq!(net.hosts[0].service.pending(), 0);
}

#[test]
fn groups_are_joined_before_what_programs_have_asked() {
    let mut net = Net::new(40, &quiet());
    net.run_for(SECOND);
    net.is_mute = true;
    for host in 1..40 {
        assert_eq!(net.say(0, &query(host)), None);
        assert_eq!(net.known(0, &Address::Gid(gid(host))), None);
    }
    net.asked.clear();
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.is_mute = false;
    net.settle();
    assert_eq!(net.asked.first().map(|asked| asked.1), Some(AttributeId::MC_MEMBER_RECORD));
    assert_eq!(net.statuses(0), [ClientStatus::SUCCESS; 78]);
}

#[test]
fn a_question_is_not_begun_again_for_ever_while_lids_and_managers_change() {
    type Change = fn(&mut PortState, u16);
    let changes: [Change; 2] =
        [|state, number| state.link.lid = 50 + number, |state, number| state.link.sm_lid = number];
    for change in changes {
        let mut net = Net::new(2, &quiet());
        net.run_for(SECOND);
        net.is_mute = true;
        assert_eq!(net.say(0, &query(1)), None);
        net.wanted.clear();
        for number in 0..200 {
            net.run_for(SECOND / 10);
            change(&mut net.hosts[0].state, 200 + number);
            net.update(0);
            net.settle();
        }
        assert_eq!(net.statuses(0), [ClientStatus::ENOTCONN]);
        assert!(net.wanted.len() <= 8, "{}", net.wanted.len());
        // Few changes make no difference but that it takes no longer than ever.
        assert_eq!(net.say(0, &query(1)), None);
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
fn who_is_out_of_resources_puts_nobody_out_of_a_group_and_the_bare_code_of_a_bad_field_does() {
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
fn who_waits_for_a_check_that_cannot_be_sent_is_not_kept_waiting() {
    let config = ServiceConfig { check_interval: Some(10 * SECOND), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.find(0, &name(1)).expect("it is there");
    net.run_for(25 * SECOND);
    net.off.push(1);
    let before = net.counters(0).checks;
    assert_eq!(net.known(0, &name(1)), None);
    assert_eq!(net.counters(0).checks, before + 1, "its owner is asked first");
    // There is nobody any more in whose name it could be asked.
    net.hosts[0].state.names.clear();
    net.update(0);
    net.settle();
    net.run_for(SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::ENODATA]);
    assert!(net.resolver().peers.checks.is_empty());
}

#[test]
fn all_lids_of_a_port_are_known_at_a_time() {
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
        net.find(0, &name(1)).expect("it is there");
        let lids = [20, 21].map(Address::Lid);
        for (to, lid) in lids.iter().zip([20, 21]) {
            assert_eq!(net.find(0, to).map(|path| path.dlid), Ok(lid));
        }
        // Each of them is for as long as it is used, and asked for as rarely as any other route.
        let before = net.counters(0).sa_queries;
        for _ in 0..60 {
            for (to, lid) in lids.iter().zip([20, 21]) {
                assert_eq!(net.known(0, to).map(|path| path.dlid), Some(lid), "{:?}", net.now);
            }
            assert_eq!(net.known(0, &name(1)).map(|path| path.dlid), Some(20));
            net.run_for(10 * SECOND);
        }
        assert!(net.counters(0).sa_queries - before <= 16, "{}", net.counters(0).sa_queries);
        // They are another's once the port has moved.
        net.hosts[1].state.link.lid = 30;
        net.update(1);
        net.run_for(30 * SECOND);
        assert!(net.find(0, &lids[1]).is_err());
        assert_eq!(net.find(0, &Address::Lid(31)).map(|path| path.dlid), Ok(31));
    }
}

#[test]
fn a_lid_that_a_peer_does_not_answer_from_is_no_reason_to_ask_it_without_end() {
    let config = ServiceConfig { address_timeout: Some(60 * SECOND), ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let old = Address::Lid(lid(1));
    for to in [&name(1), &old, &old] {
        net.find(0, to).expect("it is there");
        net.run_for(SECOND);
    }
    // It moves, and is heard of when it asks for somebody; nobody asks for its old LID any more.
    net.hosts[1].state.link.lid = 30;
    net.update(1);
    net.settle();
    assert!(net.find(1, &name(9)).is_err());
    net.run_for(10 * SECOND);
    let before = net.counters(0).checks;
    for _ in 0..36 {
        net.run_for(5 * SECOND);
        net.known(0, &name(1));
    }
    let checks = net.counters(0).checks - before;
    assert!((1..=12).contains(&checks), "{checks}");
}

#[test]
fn what_counts_for_no_time_is_not_looked_for_all_the_time() {
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
fn groups_that_cannot_be_joined_keep_no_program_from_its_turn() {
    let group = |sl| GroupSpec { rate: RateCode::GBPS_10, mtu: MtuCode::MTU_2048, sl };
    let groups = (1..6).map(group).collect();
    let config = ServiceConfig { groups, sa_depth: 1, ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    net.mute_to = Some(AttributeId::MC_MEMBER_RECORD);
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.settle();
    // The first round of joins goes first; then each question has its turn after one more at most.
    net.run_for(60 * SECOND);
    for _ in 0..20 {
        assert_eq!(net.say(0, &query(1)), None);
        net.run_for(net.hosts[0].service.config().request_time_limit());
        assert_eq!(net.statuses(0), [ClientStatus::SUCCESS], "at {:?}", net.now);
    }
}

#[test]
fn what_nobody_waits_for_keeps_no_program_from_its_turn() {
    let config = ServiceConfig { resolve_depth: 4, ..by_group() };
    let mut net = Net::new(2, &config);
    net.run_for(SECOND);
    let now = net.now;
    for number in 0..100 {
        let to = Address::name(&format!("gone{number}")).expect("a name");
        net.resolve_in_background(&to);
    }
    net.settle();
    assert_eq!(net.resolver().resolutions.counts().1, 2, "half of the turns");
    net.find(0, &name(1)).expect("it is there");
    assert_eq!(net.now, now, "at once");
    // Whoever asks for one of those does not wait for the others either.
    let mut bytes = Vec::new();
    let late = Address::name("gone99").expect("a name");
    Resolve::request([0; 8], vec![entry_of(&late)]).put(ByteOrder::NATIVE, &mut bytes);
    let before = net.sent.len();
    assert_eq!(net.say(0, &bytes), None);
    assert_eq!(net.sent.len(), before + 1, "it is asked for at once");
    net.run_for(300 * SECOND);
    assert_eq!(net.statuses(0), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}

#[test]
fn a_group_that_is_wanted_no_more_is_not_joined_later() {
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
    // The manager may have heard the first question.
    let leaves = net.asked.iter().filter(|(method, _)| *method == Method::DELETE).count();
    assert_eq!(leaves, 1);
}

#[test]
fn routes_of_files_outlast_a_link_that_comes_back_and_no_other_manager() {
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
    assert_eq!(net.known(0, &to).map(|path| path.sl), Some(7));
    net.hosts[0].state.link.sm_lid = 101;
    net.update(0);
    net.settle();
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(0));
    // A file that was written since is told again, and one that is gone is forgotten.
    net.hosts[0].service.preload_paths(net.now, PORT, &[path]);
    assert_eq!(net.known(0, &to).map(|path| path.sl), Some(7));
    net.hosts[0].service.remove_preloaded_paths(PORT);
    assert_eq!(net.find(0, &to).map(|path| path.sl), Ok(0));
}
