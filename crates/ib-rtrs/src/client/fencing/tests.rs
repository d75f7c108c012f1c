use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::address::Address;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u32) -> Instant {
    Instant::ZERO + seconds * SECOND
}

fn ends(adapter: u32) -> PathEnds {
    let destination = Address::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    (AdapterId(adapter), PathAddress { source: None, destination })
}

fn failed(fencing: &mut Fencing, slots: &[u16]) {
    fencing.await_fence([7; 16], 3, slots.to_vec(), false);
}

#[test]
fn fences_are_requested_once_until_their_path_fails() {
    let mut fencing = Fencing::default();
    failed(&mut fencing, &[4]);
    let fence =
        fencing.request_over(PathId(1), at(1), Some(SECOND)).expect("a path waits for a fence");
    assert_eq!((fence.id, fence.path_uuid, fence.reconnects), (1, [7; 16], 3));
    assert_eq!(fencing.request_over(PathId(2), at(1), Some(SECOND)), None);
    fencing.path_failed(PathId(1), false);
    let again =
        fencing.request_over(PathId(2), at(5), Some(SECOND)).expect("the fence is unconfirmed");
    assert_eq!(again.id, 1);
    assert_eq!(fencing.deadline(), Some(at(2)), "a repeated request keeps the deadline");
}

#[test]
fn confirmed_fence_returns_its_requests_once() {
    let mut fencing = Fencing::default();
    failed(&mut fencing, &[4, 9]);
    fencing.request_over(PathId(1), at(1), Some(SECOND)).expect("a path waits for a fence");
    assert_eq!(fencing.confirm(2), None);
    assert_eq!(fencing.confirm(1), Some(Fenced { slots: vec![4, 9], is_lost: false }));
    assert_eq!((fencing.confirm(1), fencing.deadline()), (None, None));
}

#[test]
fn outstanding_fences_report_loss_of_all_paths() {
    let mut fencing = Fencing::default();
    failed(&mut fencing, &[4]);
    fencing.path_failed(PathId(2), true);
    assert_eq!(fencing.confirm(1).map(|it| it.is_lost), Some(true));
}

#[test]
fn late_fences_stay_outstanding_without_a_deadline() {
    let mut fencing = Fencing::default();
    failed(&mut fencing, &[4]);
    fencing.await_path(at(1), Some(SECOND));
    assert_eq!(fencing.take_late(at(1)), []);
    assert_eq!(fencing.take_late(at(2)), [4]);
    assert_eq!((fencing.take_late(at(9)), fencing.deadline()), (vec![], None));
    assert!(fencing.confirm(1).is_some());
    failed(&mut fencing, &[5]);
    assert_eq!(fencing.give_up(), [5]);
    assert_eq!(fencing.clear(), [5]);
    assert_eq!(fencing.confirm(2), None);
}

#[test]
fn unfenced_requests_end_when_the_same_ends_are_connected() {
    let mut fencing = Fencing::default();
    fencing.add_unfenced(PathId(1), &[4]);
    fencing.add_unfenced(PathId(2), &[5]);
    fencing.path_removed(PathId(1), ends(1));
    assert_eq!(fencing.path_connected(PathId(3), ends(3)), []);
    assert!(fencing.is_unfenced(4) && fencing.is_unfenced(5));
    assert_eq!(fencing.path_connected(PathId(2), ends(2)), [5]);
    assert_eq!(fencing.path_connected(PathId(4), ends(1)), [4]);
    assert!(!fencing.is_unfenced(4) && !fencing.is_unfenced(5));
}
