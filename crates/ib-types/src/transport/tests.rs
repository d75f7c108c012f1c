use super::*;

#[test]
fn psns_wrap_at_24_bits() {
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
fn new_rejects_and_truncated_cuts_numbers_above_24_bits() {
    assert_eq!(Qpn::new(0xff_ffff), Some(Qpn::MULTICAST));
    assert_eq!(Qpn::new(0x100_0000), None);
    assert_eq!(Qpn::truncated(0x0100_0011).get(), 17);
    assert_eq!(Qpn::GSI.to_string(), "0x000001");
    assert_eq!(format!("{:x}", Psn::truncated(0xabc)), "abc");
}

#[test]
fn p_keys_match_in_one_partition_with_a_full_member() {
    let limited = PKey::DEFAULT_LIMITED;
    assert!(PKey::DEFAULT.matches(PKey::DEFAULT));
    assert!(PKey::DEFAULT.matches(limited) && limited.matches(PKey::DEFAULT));
    assert!(!limited.matches(limited));
    assert!(!PKey(0x8001).matches(PKey(0x8002)));
    assert!(!PKey(0x8000).matches(PKey(0x8000)));
    assert_eq!(PKey::default().to_string(), "0xffff");
}

#[test]
fn controlled_q_key_has_its_upper_bit_set() {
    assert!(QKey::GSI.is_controlled());
    assert!(!QKey(0x0123_4567).is_controlled());
    assert_eq!(QKey::GSI.to_string(), "0x80010000");
}

#[test]
fn mtu_has_a_code_and_a_size() {
    for (code, bytes) in [(1, 256), (2, 512), (3, 1024), (4, 2048), (5, 4096)] {
        let mtu = Mtu::from_code(code).expect("codes 1 to 5 are valid");
        assert_eq!((mtu.code(), mtu.bytes()), (code, bytes));
        assert_eq!((Mtu::within(bytes), Mtu::within(bytes + 255)), (Some(mtu), Some(mtu)));
    }
    assert_eq!((Mtu::from_code(0), Mtu::from_code(6), Mtu::within(255)), (None, None, None));
}
