use super::*;

#[test]
fn sequence_numbers_go_round() {
    let last = Psn::MAX;
    let first = last.wrapping_add(1);
    assert_eq!(first, Psn::default());
    assert_eq!(first.wrapping_sub(1), last);
    assert_eq!(first.distance_from(last), 1);
    assert_eq!(last.distance_from(first), -1);
    assert!(last.is_before(first) && !first.is_before(last) && !first.is_before(first));
    let half = first.wrapping_add(1 << 23);
    assert_eq!(half.distance_from(first), -(1 << 23));
    assert_eq!(half.wrapping_sub(1).distance_from(first), (1 << 23) - 1);
}

#[test]
fn numbers_of_more_than_24_bits_are_refused_or_cut() {
    assert_eq!(Qpn::new(0xff_ffff), Some(Qpn::MULTICAST));
    assert_eq!(Qpn::new(0x100_0000), None);
    assert_eq!(Qpn::truncated(0x0100_0011).get(), 17);
    assert_eq!(Qpn::GSI.to_string(), "0x000001");
    assert_eq!(format!("{:x}", Psn::truncated(0xabc)), "abc");
}

#[test]
fn partition_keys_match_as_the_members_may_talk() {
    let limited = PKey::DEFAULT_LIMITED;
    assert!(PKey::DEFAULT.matches(PKey::DEFAULT));
    assert!(PKey::DEFAULT.matches(limited) && limited.matches(PKey::DEFAULT));
    assert!(!limited.matches(limited));
    assert!(!PKey(0x8001).matches(PKey(0x8002)));
    assert!(!PKey(0x8000).matches(PKey(0x8000)));
    assert_eq!(PKey::default().to_string(), "0xffff");
}

#[test]
fn a_controlled_queue_key_has_its_upper_bit_set() {
    assert!(QKey::GSI.is_controlled());
    assert!(!QKey(0x0123_4567).is_controlled());
    assert_eq!(QKey::GSI.to_string(), "0x80010000");
}

#[test]
fn an_mtu_has_a_code_and_bytes() {
    for (code, bytes) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
        let mtu = Mtu::from_code(code).expect("a code");
        assert_eq!((mtu.code(), mtu.bytes()), (code, bytes));
        assert_eq!((Mtu::within(bytes), Mtu::within(bytes + 255)), (Some(mtu), Some(mtu)));
    }
    assert_eq!((Mtu::from_code(0), Mtu::from_code(6), Mtu::within(255)), (None, None, None));
}
