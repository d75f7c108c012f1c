//! Turns: of those that programs wait for, and of those that nobody waits for.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns two hosts with empty caches. The second one does not respond.
fn one_of_two(config: &ServiceConfig) -> Net {
    let mut net = Net::new(2, config);
    net.run_for(SECOND);
    net.off.push(1);
    net
}

impl Net {
    /// Returns the statuses of what programs have been told.
    fn told(&mut self) -> Vec<ClientStatus> {
        let service = &mut self.hosts[0].service;
        let replies = std::iter::from_fn(|| service.poll_reply());
        replies.map(|(_, bytes)| ClientStatus(bytes[2])).collect()
    }
}

#[test]
fn who_joins_a_question_that_nobody_waited_for_has_all_of_its_time() {
    let mut net = one_of_two(&by_group());
    net.resolve_in_background(&name(1));
    net.settle();
    // It was asked for the last time long ago, and is about to end.
    net.run_for(Duration::from_millis(4300));
    assert_eq!(net.resolver().resolutions.counts().0, 1);
    net.off.clear();
    assert_eq!(net.known(0, &name(1)), None);
    net.settle();
    assert_eq!(net.told(), [ClientStatus::SUCCESS], "it is asked for at once");
    assert_eq!(net.resolver().resolutions.counts().1, 0);
}

#[test]
fn who_joins_a_question_that_has_waited_for_its_turn_has_all_of_its_time() {
    let mut net = one_of_two(&ServiceConfig { resolve_depth: 1, ..by_group() });
    for to in [Address::name("gone").expect("a name"), name(1)] {
        net.resolve_in_background(&to);
    }
    net.settle();
    let limit = net.hosts[0].service.config().request_time_limit();
    // The first one has had its turn, the second one is at it.
    net.run_for(limit - SECOND);
    assert_eq!(net.resolver().resolutions.counts().0, 1);
    let before = net.sent.len();
    assert_eq!(net.known(0, &name(1)), None);
    assert_eq!(net.sent.len(), before + 1, "it is asked for at once");
    // Each further question comes when its time has come, and all of them do.
    net.run_for(3 * SECOND / 2);
    assert_eq!((net.told(), net.sent.len()), (vec![], before + 2));
    net.off.clear();
    net.run_for(2 * SECOND);
    assert_eq!(net.told(), [ClientStatus::SUCCESS]);
    // Whoever asks for nobody is told so in time.
    net.off.push(1);
    let nobody = Address::name("nobody").expect("a name");
    net.resolve_in_background(&nobody);
    net.run_for(3 * SECOND);
    assert_eq!(net.known(0, &nobody), None);
    net.run_for(limit);
    assert_eq!(net.told(), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}

#[test]
fn what_nobody_waits_for_has_a_turn_of_its_own_where_there_is_one_only() {
    let mut net = one_of_two(&ServiceConfig { resolve_depth: 1, ..by_group() });
    net.off.clear();
    for number in 0..10 {
        let to = Address::name(&format!("gone{number}")).expect("a name");
        net.resolve_in_background(&to);
    }
    net.settle();
    let now = net.now;
    net.find(0, &name(1)).expect("it is there");
    assert_eq!(net.now, now, "at once");
    assert_eq!(net.resolver().resolutions.counts().1, 1);
    // A program asks for nobody: what nobody waits for goes on beside it, one at a time.
    let nobody = Address::name("nobody").expect("a name");
    assert_eq!(net.known(0, &nobody), None);
    assert_eq!(net.resolver().resolutions.counts().1, 2);
    net.run_for(200 * SECOND);
    assert_eq!(net.told(), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}
