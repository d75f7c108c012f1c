use super::*;

const AT: fn(u64) -> Instant = Instant::from_nanos;

#[test]
fn waiting_bits_are_those_of_queues_with_packets() {
    let mut queues = Queues::default();
    assert!(queues.push(3, 10, AT(1)) && !queues.push(3, 11, AT(2)) && queues.push(7, 12, AT(3)));
    assert_eq!((queues.waiting(), queues.len(), queues.len_of(3)), (1 << 3 | 1 << 7, 3, 2));
    assert_eq!((queues.pop(3, AT(4)), queues.head(3)), (10, Some(11)));
    queues.check();
    assert_eq!((queues.pop(3, AT(5)), queues.waiting()), (11, 1 << 7));
    queues.check();
    assert_eq!(queues.into_packets(), [12]);
}

#[test]
fn head_expires_counted_from_when_it_became_the_head() {
    let mut queues = Queues::default();
    queues.push(0, 1, AT(100));
    queues.push(0, 2, AT(200));
    assert_eq!(queues.head_expires(0, 0), Some(AT(100 + 4096)));
    queues.pop(0, AT(300));
    assert_eq!(queues.head_expires(0, 1), Some(AT(300 + 8192)));
    assert_eq!(queues.head_expires(0, 20), None, "HOQLife above 19 means no limit");
}

#[test]
fn vl_stalls_only_after_consecutive_drops() {
    let mut queues = Queues::default();
    for key in 0..5 {
        queues.push(2, key, AT(0));
    }
    assert_eq!(queues.stall(2, 2, 0, AT(10)), None);
    queues.end_drops(2);
    assert_eq!(
        queues.stall(2, 2, 0, AT(10)),
        None,
        "drops with a sent packet in between are not consecutive"
    );
    assert_eq!(queues.stall(2, 2, 0, AT(10)), Some(vec![0, 1, 2, 3, 4]));
    assert!(
        queues.is_stalled(2, AT(10 + 8 * 4096 - 1)) && !queues.is_stalled(2, AT(10 + 8 * 4096))
    );
    queues.check();
    assert_eq!(queues.stall(2, 0, 0, AT(10)), None, "a VL with VLStallCount 0 never stalls");
}
