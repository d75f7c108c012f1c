//! Tests of the queues of resolutions: resolutions with client requests, and background resolutions.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns two hosts with empty caches. The second host does not respond.
fn one_of_two(config: &ServiceConfig) -> Net {
    let mut net = Net::new(2, config);
    net.run_for(SECOND);
    net.off.push(1);
    net
}

impl Net {
    /// Returns the statuses of the responses to clients.
    fn reply_statuses(&mut self) -> Vec<ClientStatus> {
        let service = &mut self.hosts[0].service;
        let replies = std::iter::from_fn(|| service.poll_reply());
        replies.map(|(_, bytes)| ClientStatus(bytes[2])).collect()
    }
}

#[test]
fn request_for_a_background_resolution_has_full_time() {
    let mut net = one_of_two(&by_group());
    net.resolve_in_background(&name(1));
    net.settle();
    // The last attempt was sent long ago, and the resolution is about to fail.
    net.run_for(Duration::from_millis(4300));
    assert_eq!(net.resolver().resolutions.counts().0, 1);
    net.off.clear();
    assert_eq!(net.cached_path(0, &name(1)), None);
    net.settle();
    assert_eq!(net.reply_statuses(), [ClientStatus::SUCCESS], "an immediate attempt succeeds");
    assert_eq!(net.resolver().resolutions.counts().1, 0);
}

#[test]
fn request_for_a_queued_background_resolution_has_full_time() {
    let mut net = one_of_two(&ServiceConfig { resolve_depth: 1, ..by_group() });
    for to in [Address::name("gone").expect("the name is valid"), name(1)] {
        net.resolve_in_background(&to);
    }
    net.settle();
    let limit = net.hosts[0].service.config().request_time_limit();
    // The first resolution has failed, and the second one is active.
    net.run_for(limit - SECOND);
    assert_eq!(net.resolver().resolutions.counts().0, 1);
    let before = net.sent.len();
    assert_eq!(net.cached_path(0, &name(1)), None);
    assert_eq!(net.sent.len(), before + 1, "a request is sent immediately");
    // The request that was sent immediately counts as the first attempt. Retries follow at the regular intervals.
    net.run_for(3 * SECOND / 2);
    assert_eq!((net.reply_statuses(), net.sent.len()), (vec![], before + 2));
    net.off.clear();
    net.run_for(2 * SECOND);
    assert_eq!(net.reply_statuses(), [ClientStatus::SUCCESS]);
    // A client request for an unknown name fails at its time limit.
    net.off.push(1);
    let nobody = Address::name("nobody").expect("the name is valid");
    net.resolve_in_background(&nobody);
    net.run_for(3 * SECOND);
    assert_eq!(net.cached_path(0, &nobody), None);
    net.run_for(limit);
    assert_eq!(net.reply_statuses(), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}

#[test]
fn background_resolutions_have_a_slot_of_their_own() {
    let mut net = one_of_two(&ServiceConfig { resolve_depth: 1, ..by_group() });
    net.off.clear();
    for number in 0..10 {
        let to = Address::name(&format!("gone{number}")).expect("the name is valid");
        net.resolve_in_background(&to);
    }
    net.settle();
    let now = net.now;
    net.find(0, &name(1)).expect("the address is resolved");
    assert_eq!(net.now, now, "the response is immediate");
    assert_eq!(net.resolver().resolutions.counts().1, 1);
    // While a client request for an unknown name is pending, background resolutions continue one by one.
    let nobody = Address::name("nobody").expect("the name is valid");
    assert_eq!(net.cached_path(0, &nobody), None);
    assert_eq!(net.resolver().resolutions.counts().1, 2);
    net.run_for(200 * SECOND);
    assert_eq!(net.reply_statuses(), [ClientStatus::ETIMEDOUT]);
    assert_eq!(net.resolver().resolutions.counts(), (0, 0));
}
